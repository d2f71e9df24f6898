//! Devices that sessions share: real processes that contend, come, go and are killed.

use crate::binary::{Folder, command, stderr, stdout};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A session in a process of its own, spoken to cell by cell.
struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    errors: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    marks: u32,
}

impl Talk {
    fn start(folder: &Folder, arguments: &[&str]) -> Talk {
        let mut child = command(arguments)
            .arg("--keep-going")
            .env("VRAMLAB_SHARED_FOLDER", folder.0.join("own"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        let errors = Arc::new(Mutex::new(String::new()));
        let kept = errors.clone();
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = stderr.read(&mut piece) {
                let text = String::from_utf8_lossy(&piece[..read]).into_owned();
                kept.lock().expect("no panic holds it").push_str(&text);
            }
        });
        Talk { child, stdin, stdout, errors, reader: Some(reader), marks: 0 }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, cell: &str) {
        let stdin = self.stdin.as_mut().expect("open until the end");
        stdin.write_all(format!("{cell}\n\n").as_bytes()).expect("the session reads");
    }

    /// Runs a cell; what standard output showed until it was over. Marks on both streams come from a shell line, which
    /// has no table behind it.
    fn say(&mut self, cell: &str) -> String {
        self.marks += 1;
        let mark = format!("mark {}", self.marks);
        self.errors.lock().expect("no panic holds it").clear();
        self.send(cell);
        self.send(&format!("!echo {mark}; echo {mark} >&2"));
        let mut shown = String::new();
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).expect("text");
            assert!(read > 0, "the session ended: {shown}{}", self.errors());
            if line.trim_end() == mark {
                break;
            }
            shown.push_str(&line);
        }
        for _ in 0..1000 {
            if self.errors().contains(&mark) {
                let mut errors = self.errors.lock().expect("no panic holds it");
                *errors = errors.replace(&format!("{mark}\n"), "");
                return shown;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("standard error stays behind: {}", self.errors());
    }

    /// Runs a cell that must fail; what it said.
    fn fails(&mut self, cell: &str) -> String {
        self.say(cell);
        let errors = self.errors();
        assert!(errors.contains("error["), "{cell} passed: {errors}");
        // A verdict is broken into lines of a terminal's width.
        errors.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn errors(&self) -> String {
        self.errors.lock().expect("no panic holds it").clone()
    }

    /// Bytes of arrays as the figures of a cell give them.
    fn bytes(&mut self, what: &str) -> u64 {
        let text = self.say("%mem");
        let row = text.lines().find(|line| line.trim_start().starts_with(what));
        let row = row.unwrap_or_else(|| panic!("{what} is missing in {text}"));
        let figures = row.trim_start().trim_start_matches(what).split_whitespace();
        figures.filter_map(|word| word.parse().ok()).next().expect("a figure in bytes")
    }

    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    fn end(mut self) {
        drop(self.stdin.take());
        self.child.wait().expect("it ends");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader ends");
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LAB: [&str; 2] = ["--device", "cpu:lab"];

fn at_lab(folder: &Folder, more: &[&str]) -> Talk {
    let arguments: Vec<&str> = LAB.iter().chain(more).copied().collect();
    Talk::start(folder, &arguments)
}

fn ledger(folder: &Folder) -> std::path::PathBuf {
    folder.0.join("own/cpu-lab.device")
}

/// The row of a process in the table of `%peers`, as words.
fn row(table: &str, pid: u32) -> Vec<String> {
    let pid = pid.to_string();
    let words = |line: &str| -> Vec<String> {
        line.split_whitespace().filter(|word| *word != "→").map(String::from).collect()
    };
    let found = table.lines().map(words).find(|words| words.first() == Some(&pid));
    found.unwrap_or_else(|| panic!("pid {pid} is missing in {table}"))
}

#[test]
fn peers_are_listed_with_mode_held_and_live() {
    let folder = Folder::new("sharing");
    let mut first = at_lab(&folder, &["--capacity", "1GiB", "--mode", "ondemand"]);
    first.say("let a = zeros([2560, 1024]);");
    let mut second = at_lab(&folder, &["--mode", "platform"]);
    second.say("let b = zeros([1024, 1024]);");
    let table = second.say("%peers");
    assert_eq!(row(&table, first.pid())[1..5], ["vramlab", "ondemand", "16.0", "10.0"], "{table}");
    assert_eq!(row(&table, second.pid())[1..5], ["vramlab", "platform", "4.0", "4.0"], "{table}");
    let own = table.lines().find(|line| line.contains('→')).expect("marked");
    assert!(own.contains(&second.pid().to_string()), "{table}");
    assert!(table.contains("20 of 1024 MiB held"), "{table}");
    let smi = second.say("%smi");
    assert!(smi.contains(&first.pid().to_string()) && smi.contains("20MiB / 1024MiB"), "{smi}");
    first.say("%mode platform");
    assert!(second.say("%device").contains(&format!("shared with pid {}", first.pid())));
    assert_eq!(row(&second.say("%peers"), first.pid())[2..4], ["platform", "10.0"]);
    first.end();
    let table = second.say("%peers");
    assert!(table.contains("4 of 1024 MiB held") && !table.contains("ended without"), "{table}");
    second.end();
    assert!(!ledger(&folder).exists(), "the last one removes the device");
}

#[test]
fn the_one_that_came_second_is_told_who_holds_what_and_passes_later() {
    let folder = Folder::new("sharing");
    let mut first = at_lab(&folder, &["--capacity", "1GiB"]);
    first.say("let a = zeros([2560, 1024]);");
    let mut second = at_lab(&folder, &["--mode", "ondemand"]);
    let cell = "let big = zeros([300, 1024, 256]);";
    let errors = second.fails(cell);
    let holder = format!("pid {} vramlab 768.0", first.pid());
    for words in
        ["OTHER PROCESS", "others hold 768.0 of 1024.0", &holder, "256.0 left at the driver"]
    {
        assert!(errors.contains(words), "{words} is missing in {errors}");
    }
    assert!(errors.contains("in no other mode"), "the replay stands beside the peer: {errors}");
    let table = second.say("%whatif");
    assert!(table.contains("of which others hold 768.0 MiB"), "{table}");
    assert!(second.fails(cell).contains("OTHER PROCESS"), "the same cell fails again");
    first.end();
    second.say(cell);
    assert_eq!(second.say("big.sum().item()").lines().next().map(str::trim), Some("0.0"));
    second.end();
}

/// Eight processes take and give a thousand times each; then each holds what it says, and the sum is theirs.
#[test]
fn eight_processes_keep_the_sum_right() {
    let folder = Folder::new("sharing");
    let mut watcher = at_lab(&folder, &["--capacity", "1GiB", "--mode", "platform"]);
    watcher.say("1");
    let mut workers: Vec<Talk> = (0..8).map(|_| at_lab(&folder, &["--mode", "platform"])).collect();
    for (index, worker) in workers.iter_mut().enumerate() {
        let n = index + 1;
        worker.send(&format!(
            "let mut kept: Vec<Array> = vec![];\nfor i in 0..1000 {{ kept.push(zeros([{n}, 256])); if i % 4 != 0 {{ kept.remove(0); }} }}"
        ));
    }
    for (index, worker) in workers.iter_mut().enumerate() {
        // 250 arrays of n KiB stay; meanwhile the others are still at it.
        let n = index as u64 + 1;
        assert_eq!(worker.bytes("pool"), 250 * n * 1024);
    }
    let table = watcher.say("%peers");
    let kib: u64 = (1..=8).map(|n| 250 * n).sum();
    let held = format!("{:.1} of 1024 MiB held", kib as f64 / 1024.0);
    assert!(table.contains(&held), "{held} is missing in {table}");
    workers.into_iter().for_each(Talk::end);
    assert!(watcher.say("%peers").contains("\n cpu:lab: 0 of 1024 MiB held"));
    watcher.end();
}

/// All want everything: together they get exactly everything.
#[test]
fn nobody_gets_more_than_there_is() {
    let folder = Folder::new("sharing");
    let mut watcher = at_lab(&folder, &["--capacity", "64MiB", "--mode", "platform"]);
    watcher.say("1");
    let mut workers: Vec<Talk> = (0..4).map(|_| at_lab(&folder, &["--mode", "platform"])).collect();
    for worker in &mut workers {
        worker.send("let mut kept: Vec<Array> = vec![];\nloop { kept.push(zeros([1024, 256])); }");
    }
    let errors = workers[0].fails("zeros([1])");
    assert!(errors.contains("OTHER PROCESS"), "{errors}");
    let mut sum = 0;
    for worker in &mut workers {
        sum += worker.bytes("pool");
    }
    assert_eq!(sum, 64 << 20);
    assert!(watcher.say("%peers").contains("64 of 64 MiB held, 0.0 free"));
    watcher.fails("zeros([1])");
    workers.into_iter().for_each(Talk::end);
    watcher.say("let a = zeros([16, 1024, 1024]);");
    assert_eq!(watcher.bytes("pool"), 64 << 20);
    watcher.end();
}

/// Killed at any moment of an allocation, a process leaves neither a lock nor its bytes behind.
#[test]
fn a_process_killed_in_the_middle_of_an_allocation() {
    let folder = Folder::new("sharing");
    let mut watcher = at_lab(&folder, &["--capacity", "64MiB", "--mode", "platform"]);
    watcher.say("let own = zeros([1024]);");
    let mut deaths = 0;
    for round in 0..40u64 {
        let mut victim = at_lab(&folder, &["--mode", "platform"]);
        let pid = victim.pid();
        victim.say("let kept = zeros([16, 1024, 256]);");
        victim.send("loop { let a = zeros([1024, 256]); let b = zeros([1000]); }");
        // Not a wait for anything: the moment of the kill should differ from round to round.
        std::thread::sleep(Duration::from_micros(round * round * 7 % 5000));
        victim.kill();
        // All of it can be had at once, and the dead one is spoken of.
        let shown = watcher.say("let all = zeros([60, 1024, 256]); drop(all);");
        assert!(watcher.errors().is_empty(), "round {round}: {}{shown}", watcher.errors());
        let table = watcher.say("%peers");
        assert!(
            !table.lines().any(|line| line.trim_start().starts_with(&pid.to_string())),
            "{table}"
        );
        assert!(table.contains(&format!("pid {pid} vramlab ended without leaving")), "{table}");
        deaths += u32::from(shown.contains("came back"));
    }
    assert_eq!(deaths, 40, "each is noted in the table of the cell that found it");
    watcher.end();
    assert!(!ledger(&folder).exists());
}

/// Everybody was killed: the next one finds the file and nobody in it.
#[test]
fn a_device_whose_users_are_all_dead_is_made_anew() {
    let folder = Folder::new("sharing");
    let mut first = at_lab(&folder, &["--capacity", "1GiB"]);
    first.say("let a = zeros([4]);");
    let pid = first.pid();
    first.kill();
    assert!(ledger(&folder).exists());
    let mut second = at_lab(&folder, &["--capacity", "64MiB"]);
    let table = second.say("%peers");
    assert!(table.contains("0 of 64 MiB held"), "{table}");
    assert!(
        table.contains(&format!(
            "pid {pid} vramlab ended without leaving the device; its 768.0 MiB came back"
        )),
        "{table}"
    );
    second.end();
}

#[test]
fn odd_names_and_sizes_are_refused_in_words() {
    let folder = Folder::new("sharing");
    let start = |arguments: &[&str], environment: &[(&str, &str)]| {
        let mut command = command(arguments);
        command.env("VRAMLAB_SHARED_FOLDER", folder.0.join("own"));
        command.envs(environment.iter().copied()).args(["-c", "1 + 1"]);
        command.output().expect("the program runs")
    };
    let long = format!("cpu:{}", "x".repeat(300));
    for odd in [
        "cpu:",
        "cpu:a/b",
        "cpu:..",
        "cpu:../../etc",
        "cpu:a b",
        "cpu:läb",
        "cpu:7",
        "dry:1GiB:💥",
        &long,
    ] {
        for output in [start(&["--device", odd], &[]), start(&[], &[("VRAMLAB_DEVICE", odd)])] {
            assert_eq!(output.status.code(), Some(2), "{odd}");
            let errors = stderr(&output);
            assert!(
                errors.contains("a name begins with a letter") || errors.contains("size"),
                "{odd}: {errors}"
            );
            assert!(!errors.contains("panicked"), "{errors}");
        }
    }
    assert!(!folder.0.join("own").exists(), "no file was touched");
    let first = at_lab(&folder, &["--capacity", "1GiB"]);
    while !ledger(&folder).exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = start(&["--device", "cpu:lab", "--capacity", "2GiB"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is there with 1.0 GiB"), "{}", stderr(&output));
    assert_eq!(stdout(&start(&["--device", "cpu:lab"], &[])).lines().next(), Some("2"));
    first.end();
}

/// The folder for shared memory is absent, not ours to write, or full.
#[test]
fn without_a_folder_for_shared_memory() {
    let folder = Folder::new("sharing");
    let run = |folders: &str, limit: &str| {
        let script = format!("{limit} exec \"$0\" \"$@\"");
        let program = crate::binary::path().to_str().expect("a path of ASCII");
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &script, program, "--device", "cpu:lab", "-c", "%device"]).env_clear();
        shell.env("VRAMLAB_SHARED_FOLDER", folders).output().expect("the shell runs")
    };
    let at = |name: &str| folder.0.join(name).to_str().expect("a path of ASCII").to_string();
    let output = run(&format!("{}:{}", at("absent/own"), at("other")), "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let notes = stderr(&output);
    assert!(notes.contains(&at("other")) && notes.contains("because"), "{notes}");
    let output = run(&at("absent/own"), "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no folder takes the ledger"), "{}", stderr(&output));
    // A limit on the size of files stands for a full disk: what cannot be written is an error and no signal.
    let output = run(&at("own"), "ulimit -f 1;");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no folder takes the ledger"), "{}", stderr(&output));
    assert!(
        !at("own/cpu-lab.device").is_empty() && !ledger(&folder).exists(),
        "half a file is removed"
    );
}

/// Files that something else has had in hand: an answer in words, never a crash.
#[test]
fn ledgers_that_are_none() {
    let folder = Folder::new("sharing");
    std::fs::create_dir(folder.0.join("own")).expect("a folder");
    let start = || {
        let mut command = command(&["--device", "cpu:lab", "-c", "zeros([4]).sum().item()"]);
        command.env("VRAMLAB_SHARED_FOLDER", folder.0.join("own")).output().expect("it runs")
    };
    let mut first = at_lab(&folder, &[]);
    first.say("1");
    let whole = std::fs::read(ledger(&folder)).expect("readable");
    std::fs::write(ledger(&folder), &whole[..200]).expect("writable");
    assert!(first.fails("zeros([4])").contains("damaged"));
    assert!(stderr(&start()).contains("damaged"));
    std::fs::write(ledger(&folder), &whole).expect("writable");
    first.say("let a = zeros([4]);");
    first.end();
    for bytes in [&b""[..], &whole[..200], &whole[..], &[0; 100]] {
        std::fs::write(ledger(&folder), bytes).expect("writable");
        assert_eq!(
            stdout(&start()).lines().next().map(str::trim),
            Some("0.0"),
            "{}",
            stderr(&start())
        );
    }
    std::fs::write(ledger(&folder), "hello").expect("writable");
    let output = start();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is no ledger of vramlab's"), "{}", stderr(&output));
}

#[test]
fn json_lines_are_the_same_on_a_shared_device() {
    let folder = Folder::new("sharing");
    let file = folder.file("cells.rs", "let a = zeros([2560, 1024]);\n// %%\n%guest 64MiB\n");
    let arguments = ["run", "--json", "--device", "cpu:lab", "--capacity", "1GiB", &file];
    let mut command = command(&arguments);
    let output =
        command.env("VRAMLAB_SHARED_FOLDER", folder.0.join("own")).output().expect("it runs");
    let shown = stdout(&output);
    let cell: serde_json::Value =
        serde_json::from_str(shown.lines().next().expect("a line")).expect("JSON");
    assert_eq!(cell["memory"]["pool_bytes"], 768 << 20);
    assert_eq!(output.status.code(), Some(0));
    assert!(shown.lines().nth(1).expect("a line").contains("guest 1 got 64.0"), "{shown}");
}
