//! Whole sessions: cells in, events out, and tables that do not lie.

mod cases;
mod compare;
mod explanations;
mod export;
mod gradients;
mod owners;
mod pictures;
mod random;
mod sharing;
mod statistics;
mod structs;

use crate::event::{CellResult, Completeness, Event, Status, Tier, Watch};
use crate::{Config, Session};

fn session(options: &[(&str, &str)]) -> Session {
    let mut config = Config { capacity: Some("1GiB".into()), ..Config::default() };
    for (name, value) in options {
        match *name {
            "device" => (config.device, config.capacity) = (Some(value.to_string()), None),
            "mode" => config.mode = Some(value.to_string()),
            "capacity" => config.capacity = Some(value.to_string()),
            name => {
                config.env.insert(name.to_string(), value.to_string());
            }
        }
    }
    Session::new(config).expect("a session")
}

/// What a cell showed as text, and how it ended.
fn run(session: &mut Session, cell: &str) -> (String, CellResult) {
    let mut text = String::new();
    let result = session.execute(cell, &mut |event| match event {
        Event::Stdout(piece) | Event::Stderr(piece) => text.push_str(&piece),
        Event::Value { content, .. } | Event::Display { content, .. } => {
            text.push_str(&content.text);
            text.push('\n');
        }
        Event::Error(error) => text.push_str(&error.rendered),
        _ => {}
    });
    (text, result)
}

/// A cell that must work; its text.
#[track_caller]
fn ok(session: &mut Session, cell: &str) -> String {
    let (text, result) = run(session, cell);
    assert_eq!(result.status, Status::Ok, "{cell}\n{text}");
    text
}

/// A cell that must fail; what it says.
#[track_caller]
fn fails(session: &mut Session, cell: &str, kind: &str) -> String {
    let (text, result) = run(session, cell);
    assert_eq!(result.error.map(|error| error.kind).as_deref(), Some(kind), "{cell}\n{text}");
    text
}

const MIB: u64 = 1 << 20;

#[test]
fn the_table_of_the_first_cell() {
    let mut session = session(&[]);
    let (_, result) = run(&mut session, "let a = zeros([2560, 1024]);");
    let memory = result.memory;
    assert_eq!((memory.requested_bytes, memory.delta_bytes), (10 * MIB, 10 * MIB as i64));
    assert_eq!((memory.pool_bytes, memory.bytes_limit), (768 * MIB, 768 * MIB));
    assert_eq!(memory.largest_free_block_bytes, 758 * MIB);
    assert_eq!((memory.driver_allocs_cell, memory.num_allocs_cell), (1, 1));
    assert_eq!((result.tier, result.cell), (Tier::Instant, 1));
}

#[test]
fn a_switch_moves_arrays_and_says_so() {
    let mut session = session(&[]);
    ok(&mut session, "let a = arange(2560 * 1024).reshape([2560, 1024]);");
    let text = ok(&mut session, "%mode ondemand");
    assert_eq!(
        text,
        " moves 1 array: old pool 768 + new 16 = 784 of 1024, fits. Done.\n arrays 10.0   in use 16.0 (slack 6.0)   pool 16/768\n"
    );
    let text = ok(&mut session, "%mode platform");
    assert_eq!(
        text,
        " moves 1 array: 16 + 10 = 26 of 1024, fits. Done.\n arrays 10.0   in use 10.0   pool 10/1024\n"
            .replace(": 16 + 10", ": old pool 16 + new 10")
    );
    let last = ok(&mut session, "a.slice((2559, 1022..1024)).to_vec::<f32>()");
    assert_eq!(last.trim(), "[2621438.0, 2621439.0]");
    assert_eq!(ok(&mut session, "drop(a); %mode ondemand").trim(), "nothing to move. pool 0/768");
}

#[test]
fn mode_refuse_names_the_holders() {
    let mut session = session(&[]);
    ok(&mut session, "let weights = zeros([1024]);");
    let text = fails(&mut session, "%mode platform refuse", "command");
    assert!(text.contains("weights"), "{text}");
    assert!(ok(&mut session, "%mode platform new-only").contains("stay"), "{text}");
    let (_, result) = run(&mut session, "let b = zeros([1024]);");
    assert_eq!(result.memory.mode, "platform");
}

#[test]
fn outputs_are_kept_named_and_cleared() {
    let mut session = session(&[]);
    ok(&mut session, "ones([1024, 256])");
    ok(&mut session, "let x = ones([1024, 256]);");
    ok(&mut session, "x");
    let text = ok(&mut session, "%mem vars");
    assert!(text.contains("Out[1]") && !text.contains("Out[3]"), "{text}");
    assert_eq!(ok(&mut session, "(Out[1].sum() + _.sum()).item()").trim(), "524288.0");
    ok(&mut session, "%clear outputs");
    let (_, result) = run(&mut session, "%mem");
    assert_eq!(result.memory.requested_bytes, MIB);
    let text = fails(&mut session, "Out[1]", "E0425");
    assert!(text.contains("no output is kept"), "{text}");
    ok(&mut session, "%outputs off");
    let (_, result) = run(&mut session, "ones([1024, 256])");
    assert_eq!(result.memory.requested_bytes, MIB);
}

#[test]
fn commands_and_rust_run_in_order() {
    let mut session = session(&[]);
    let text = ok(
        &mut session,
        "println!(\"one\");\n%mode ondemand\nlet a = zeros([256]);\n%mem who a\nprintln!(\"two\");",
    );
    let places: Vec<usize> = ["one", "nothing to move", "a f32[256]", "two"]
        .iter()
        .map(|word| text.find(word).expect(word))
        .collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn nothing_runs_when_a_later_line_is_wrong() {
    let mut session = session(&[]);
    for cell in [
        "let a = zeros([4]);\n%moed\n",
        "let a = zeros([4]);\n%expect peek<1\n",
        "let a = zeros([4]);\n%mem\nlet b = nope;",
    ] {
        let (text, result) = run(&mut session, cell);
        assert_eq!(result.status, Status::Error, "{text}");
        assert_eq!(result.memory.live_arrays, 0, "{cell}");
    }
}

#[test]
fn expect_judges_its_own_cell_or_the_one_before() {
    let mut session = session(&[]);
    ok(&mut session, "%expect peak<=10MiB, allocs=1\nlet a = zeros([2560, 1024]);");
    ok(&mut session, "%expect delta=10MiB and in_use=10MiB");
    let text = fails(&mut session, "let b = zeros([2560, 1024]);\n%expect peak<=15MiB", "expect");
    assert!(text.contains("it was 20.0 MiB"), "{text}");
    ok(&mut session, "b.sum();");
}

#[test]
fn an_out_of_memory_is_explained() {
    let mut session = session(&[]);
    ok(&mut session, "%mode ondemand");
    let cell = "for n in (20..=200).step_by(20) { zeros([n, 1024, 256]); }\nlet big = zeros([400, 1024, 256]);";
    let text = fails(&mut session, cell, "OOM");
    for line in [
        "error[OOM]: zeros([400, 1024, 256]) asked 400.0      cell 2, line 2",
        "FRAGMENTED: 0.0 live; 480.0 free in empty regions of 32, 64, 128, 256\n",
        "that cannot join (largest 256.0, 0.4667)",
        "empty regions kept (gc=off, as XLA)",
        "remove XLA_PYTHON_CLIENT_PREALLOCATE=false",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(ok(&mut session, "%why").contains("passes  in preallocate"));
    let table = ok(&mut session, "%whatif cell=2");
    let row =
        table.lines().find(|line| line.trim_start().starts_with("ondemand gc=on")).expect("a row");
    assert!(row.contains("passes") && row.contains("512.0"), "{table}");
    // The same cell fails at the same place: nothing leaked.
    let again = fails(&mut session, cell, "OOM");
    assert!(again.contains("480.0 free"), "{again}");
    ok(&mut session, "%mode ondemand gc=on");
    let (_, result) = run(&mut session, "let big = zeros([400, 1024, 256]);");
    assert_eq!((result.memory.bytes_in_use, result.memory.pool_bytes), (512 * MIB, 512 * MIB));
}

#[test]
fn oom_owners_are_listed() {
    let mut session = session(&[("mode", "platform")]);
    ok(
        &mut session,
        "let weights = zeros([100, 1024, 256]);\nlet others = vec![zeros([50, 1024, 256])];",
    );
    let text = fails(&mut session, "let big = zeros([900, 1024, 256]);", "OOM");
    assert!(text.contains("weights 100.0 (cell 1, line 1)"), "{text}");
    assert!(text.contains("others[0] 50.0"), "{text}");
}

#[test]
fn the_environment_of_jax_acts_now() {
    let mut session = session(&[]);
    ok(&mut session, "let a = zeros([1024]);");
    let text = ok(&mut session, "%env XLA_PYTHON_CLIENT_PREALLOCATE=off");
    assert!(text.contains("acts now: ondemand") && text.contains("JAX would not"), "{text}");
    let text = fails(&mut session, "%env XLA_PYTHON_CLIENT_PREALLOCATE=maybe", "command");
    assert!(text.contains("false"), "{text}");
    assert!(ok(&mut session, "%mode dry platform").contains("Nothing was changed"));
    assert_eq!(run(&mut session, "%mem").1.memory.mode, "ondemand");
}

#[test]
fn captured_output_becomes_a_string() {
    let mut session = session(&[]);
    assert_eq!(ok(&mut session, "%%capture said\nprintln!(\"hello\");"), "");
    assert_eq!(ok(&mut session, "said.trim().len()").trim(), "5");
    assert!(ok(&mut session, "%%time\n1 + 1").contains("wall "));
}

#[test]
fn files_are_run_saved_and_loaded() {
    let folder = std::env::temp_dir().join(format!("vramlab-session-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).to_str().expect("plain text").to_string();
    let mut first = session(&[]);
    ok(&mut first, "let a = 20;");
    fails(&mut first, "let b = nope;", "E0425");
    ok(&mut first, "%mode ondemand\nlet c = a + 22;");
    let saved = path("saved.rs");
    assert!(ok(&mut first, &format!("%save {saved}")).contains("2 cells"));
    let mut second = session(&[]);
    ok(&mut second, &format!("%run {saved}"));
    assert_eq!(ok(&mut second, "c").trim(), "42");
    assert_eq!(run(&mut second, "%mem").1.memory.mode, "ondemand");
    let (_, result) = run(&mut second, &format!("%load {saved}"));
    assert!(result.next_input.expect("text").contains("let c = a + 22;"));
    let wrong = path("wrong.rs");
    std::fs::write(&wrong, "let d = 1;\n// %%\nlet e = nope;\n").expect("a file");
    let text = fails(&mut second, &format!("%run {wrong}"), "E0425");
    assert!(text.contains("let e = nope;"), "{text}");
    assert_eq!(ok(&mut second, "d").trim(), "1");
    let endless = path("endless.rs");
    std::fs::write(&endless, format!("%run {endless}\n")).expect("a file");
    assert!(fails(&mut second, &format!("%run {endless}"), "command").contains("itself"));
    fails(&mut second, "%run /nonexistent", "command");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn time_and_compare_measure() {
    let mut session = session(&[("mode", "platform")]);
    ok(&mut session, "let x = ones([1024, 1024]);");
    assert!(ok(&mut session, "%time x.sum().item()").contains("wall"));
    assert!(ok(&mut session, "%timeit 1 + 1").contains("per loop"));
    let text = ok(&mut session, "%compare tanh(exp(&x))");
    let row = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    // Eager: two arrays beside x; jitted: one kernel and the result alone.
    assert_eq!(row("eager")[1..5], ["12.0", "8.0", "–", "2"]);
    assert_eq!(row("jit")[1..5], ["8.0", "4.0", "8.0", "1"]);
    fails(&mut session, "/* never ended", "syntax");
    ok(&mut session, "/* ended */");
    // Errors point into what was typed.
    let told = fails(&mut session, "%timeit nope", "E0425");
    assert!(told.contains(":1:9") && !told.contains('{'), "{told}");
    let told = fails(&mut session, "%compare  nope + 1.0", "E0425");
    assert!(told.contains(":1:11") && !told.contains("_kept"), "{told}");
    fails(&mut session, "%timeit 300u8", "overflowing_literals");
    // What runs many times must leave the variables as they are.
    ok(&mut session, "let moved = ones([3]);");
    let told = fails(&mut session, "%timeit drop(moved)", "command");
    assert!(told.contains("it moves `moved`"), "{told}");
    ok(&mut session, "moved");
    ok(&mut session, "%timeit let twice = &moved + &moved; twice.sum()");
    fails(&mut session, "%time", "command");
}

#[test]
fn variables_are_listed_and_deleted() {
    let mut session = session(&[]);
    ok(&mut session, "let x = zeros([1024, 1024]); let y = x.clone(); let n = 3;");
    assert_eq!(ok(&mut session, "%vars").trim(), "x  y  n");
    let text = ok(&mut session, "%whos");
    assert!(text.contains("f32[1024,1024]") && text.contains("4.0"), "{text}");
    assert_eq!(ok(&mut session, "%del x").trim(), "x: 0 B freed; y still holds it");
    assert_eq!(ok(&mut session, "%del y").trim(), "y: 4.0 MiB freed");
    assert!(fails(&mut session, "%del z", "command").contains("no variable `z`"));
    ok(&mut session, "%reset");
    fails(&mut session, "n", "E0425");
}

#[test]
fn a_drop_that_frees_nothing_names_the_holder() {
    let mut session = session(&[]);
    ok(&mut session, "let x = zeros([1024, 1024]); let y = x.clone();");
    let (_, result) = run(&mut session, "drop(x);");
    assert_eq!(result.memory.notes, ["drop(x) freed nothing: y still holds its 4.0 MiB"]);
    let (_, result) = run(&mut session, "drop(y);");
    assert!(result.memory.notes.is_empty());
    // The next array takes the freed bytes: the address is the same and the allocation is not.
    ok(&mut session, "let z = zeros([1024, 1024]);");
    let (_, result) = run(&mut session, "drop(z); let w = zeros([1024, 1024]);");
    assert!(result.memory.notes.is_empty(), "{:?}", result.memory.notes);
}

#[test]
fn an_interrupt_keeps_the_state() {
    let mut session = session(&[]);
    ok(&mut session, "let a = zeros([16]);");
    for endless in ["loop {}", "let mut n = 0; while true { n = (n + 1) % 7; }", "sleep(60.0);"] {
        let interrupt = session.interrupt_handle();
        let raiser = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            interrupt.raise();
        });
        let (text, result) = run(&mut session, endless);
        assert_eq!(result.status, Status::Interrupted, "{text}");
        raiser.join().expect("the raiser ends");
    }
    assert_eq!(ok(&mut session, "a.sum().item()").trim(), "0.0");
}

#[test]
fn a_dry_device_has_figures_and_no_data() {
    let mut session = session(&[("device", "dry:80GiB")]);
    let (_, result) = run(&mut session, "let a = zeros([10, 1024, 1024, 1024]);");
    assert_eq!(result.memory.requested_bytes, 40 << 30);
    fails(&mut session, "a.sum().item()", "no-data");
    fails(&mut session, "let b = zeros([10, 1024, 1024, 1024]);", "OOM");
}

#[test]
fn complete_and_inspect_know_names() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "let weights = zeros([4, 4]); let f = jit(|[x]| x.tanh()); let y = f([&weights]);",
    );
    let complete = |session: &Session, code: &str| {
        let found = session.complete(code, code.len());
        found.items.into_iter().map(|item| item.text).collect::<Vec<_>>()
    };
    assert_eq!(complete(&session, "wei"), ["weights"]);
    assert!(complete(&session, "weights.ta").contains(&"tanh".to_string()));
    assert!(complete(&session, "weights.dot(&weights).tan").contains(&"tanh".to_string()));
    assert!(complete(&session, "zer").contains(&"zeros".to_string()));
    assert_eq!(complete(&session, "%wat"), ["watch"]);
    assert_eq!(complete(&session, "%watch b"), ["brief"]);
    assert!(complete(&session, "%mode ondemand ").contains(&"gc=on".to_string()));
    assert_eq!(complete(&session, "%del wei"), ["weights"]);
    assert!(complete(&session, "%clear ").contains(&"pool".to_string()));
    assert!(complete(&session, "\"wei").is_empty() && complete(&session, "3").is_empty());
    let about = session.inspect("weights.tanh()", 10).expect("tanh is known").text;
    assert!(about.contains("tanh") && about.contains("example"), "{about}");
    let about = session.inspect("weights", 3).expect("a variable").text;
    assert!(about.contains("f32[4,4]") && about.contains("cell 1"), "{about}");
    assert!(ok(&mut session, "%mode?").contains("%mode"));
    assert!(ok(&mut session, "?tanh").contains("Array"));
    assert!(fails(&mut session, "?softmx", "command").contains("`softmax`"));
}

#[test]
fn a_cell_is_whole_or_not() {
    let session = session(&[]);
    let is = |code: &str| session.completeness(code);
    assert_eq!(is("let a = 1;"), Completeness::Complete);
    assert_eq!(is("%mem"), Completeness::Complete);
    assert!(matches!(is("for i in 0..3 {"), Completeness::Incomplete { .. }));
    assert!(matches!(is("%mem\nlet a = ("), Completeness::Incomplete { .. }));
    assert_eq!(is("let a = 1; }"), Completeness::Invalid);
}

#[test]
fn clear_says_what_each_target_would_free() {
    let mut session = session(&[("mode", "ondemand")]);
    ok(&mut session, "let f = jit(|[x]| x * 2.0); let a = zeros([1024, 1024]); f([&a])");
    ok(&mut session, "let big = zeros([128, 1024, 1024]); drop(big);");
    let text = ok(&mut session, "%clear");
    assert!(text.contains("outputs  4.0 MiB") && text.contains("caches"), "{text}");
    let (before, live) = {
        let (_, result) = run(&mut session, "%caches");
        (result.memory.compile, result.memory.requested_bytes)
    };
    let text = ok(&mut session, "%clear caches");
    assert!(
        text.contains(&format!("{} entries, {} bytes gone", before.entries, before.bytes)),
        "{text}"
    );
    let (_, result) = run(&mut session, "%mem");
    assert_eq!((result.memory.compile.entries, result.memory.requested_bytes), (0, live));
    // trim-says
    let text = ok(&mut session, "%clear pool");
    assert!(text.contains("512.0 MiB returned") && text.contains("pinned by a"), "{text}");
    assert!(fails(&mut session, "%clear poool", "command").contains("`pool`"));
}

#[test]
fn watch_off_shows_no_table_and_full_shows_owners() {
    let mut session = session(&[]);
    let tables = |session: &mut Session, cell: &str| {
        let mut reports = Vec::new();
        session.execute(cell, &mut |event| {
            if let Event::Memory(report) = event {
                reports.push(report);
            }
        });
        reports
    };
    assert_eq!(tables(&mut session, "let a = zeros([256]);").len(), 1);
    assert_eq!(tables(&mut session, "%mem").len(), 0);
    assert_eq!(tables(&mut session, "fn twice(x: &Array) -> Array { x * 2.0 }").len(), 0);
    ok(&mut session, "%watch full");
    let report = tables(&mut session, "let b = zeros([256]);").remove(0);
    assert_eq!(report.watch, Watch::Full);
    assert!(!report.strip.is_empty());
    let text: String = crate::report::tables(&report, 80).iter().map(crate::table::plain).collect();
    assert!(text.contains("arrays by owner") && text.contains("b"), "{text}");
    ok(&mut session, "%watch off");
    assert_eq!(tables(&mut session, "let c = zeros([256]);").len(), 0);
}

/// xorshift64*: the same cells in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

fn random_cell(random: &mut Random, next: &mut usize, live: &mut Vec<usize>) -> String {
    let size = 1 + random.below(300);
    match random.below(9) {
        0 if !live.is_empty() => {
            let gone = live.swap_remove(random.below(live.len()));
            format!("drop(v{gone});")
        }
        1 if !live.is_empty() => {
            format!("(&v{} * 2.0).tanh().sum()", live[random.below(live.len())])
        }
        2 => ["%mode ondemand", "%mode platform", "%mode preallocate", "%mode ondemand gc=on"]
            [random.below(4)]
        .to_string(),
        3 => {
            ["%clear outputs", "%clear pool", "%clear caches", "%mem"][random.below(4)].to_string()
        }
        4 => format!("let big = zeros([{}, 1024, 256]);", 600 + size),
        5 => format!("zeros([{size}, 1024])"),
        6 => format!("{{ let t = zeros([{size}, 1024]); let u = &t + 1.0; u.sum(); }}"),
        7 if !live.is_empty() => {
            let from = live[random.below(live.len())];
            *next += 1;
            live.push(*next);
            format!("let v{next} = v{from}.clone();")
        }
        _ => {
            *next += 1;
            live.push(*next);
            format!("let v{next} = ones([{size}, 1024]);")
        }
    }
}

#[test]
fn a_table_never_lies() {
    for seed in 1..=6 {
        let mut session = session(&[]);
        let mut random = Random(seed);
        let (mut next, mut live) = (0, Vec::new());
        let mut before = 0;
        for _ in 0..60 {
            let cell = random_cell(&mut random, &mut next, &mut live);
            let (text, result) = run(&mut session, &cell);
            let memory = &result.memory;
            let granted: u64 = session.context.buffers().iter().map(|buffer| buffer.granted).sum();
            let requested: u64 =
                session.context.buffers().iter().map(|buffer| buffer.requested).sum();
            assert_eq!(memory.bytes_in_use, granted, "seed {seed}: {cell}\n{text}");
            assert_eq!(memory.requested_bytes, requested, "seed {seed}: {cell}");
            assert_eq!(memory.delta_bytes, requested as i64 - before, "seed {seed}: {cell}");
            let by_owner: u64 = memory.variables.iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(by_owner, requested, "seed {seed}: {cell}");
            let peak = memory.peak_bytes_in_use_cell;
            assert!(peak >= memory.bytes_in_use, "seed {seed}: {cell}");
            assert!(memory.peak_requested_bytes_cell as i64 >= before, "seed {seed}: {cell}");
            assert!(memory.bytes_in_use <= memory.pool_bytes, "seed {seed}: {cell}");
            assert!(memory.pool_bytes <= memory.device_bytes, "seed {seed}: {cell}");
            assert_eq!(memory.regions.iter().sum::<u64>(), memory.pool_bytes, "{cell}");
            before = requested as i64;
        }
    }
}
