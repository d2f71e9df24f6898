//! What a user waits for, printed as min and median: start, a trivial cell, an idle process, and
//! whole jitted expressions beside JAX on the CPU when `.venv` holds it
//! (`.venv/bin/pip install -r benches/requirements.txt`). Peers are interleaved in one run; both
//! sides make a fresh output each time. A word behind `--` picks the expressions that have it in their
//! name (`cargo bench -p vramlab --bench session -- MLP`). Pin the run to one core (`taskset -c 0 cargo bench …`) to
//! compare single-core figures.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use vramlab_session::{Config, Event, Session, Status};

const PROGRAM: &str = env!("CARGO_BIN_EXE_vramlab");

fn main() {
    // `cargo test --benches` passes this flag: then there is nothing to measure.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let word = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if let Some(word) = word {
        return expressions(&word);
    }
    start_and_exit();
    idle_memory();
    trivial_cell();
    table_of_many_arrays();
    expressions("");
}

/// What a table adds to a cell that does nothing, with 10,000 live arrays: its report and its text.
fn table_of_many_arrays() {
    let config = Config { capacity: Some("256MiB".into()), ..Config::default() };
    let mut session = Session::new(config).expect("a session");
    let made = "let mut v = vec![]; for n in 0..10000 { v.push(zeros([16])); }";
    assert_eq!(session.execute(made, &mut |_| {}).status, Status::Ok);
    let times = (0..100).map(|_| {
        let begin = Instant::now();
        session.execute("1;", &mut |event| {
            if let Event::Memory(memory) = event {
                let tables = vramlab_session::report::tables(&memory, 100);
                assert!(
                    tables
                        .iter()
                        .map(vramlab_session::table::plain)
                        .any(|text| text.contains("arrays"))
                );
            }
        });
        begin.elapsed()
    });
    report("a cell and its table, 10,000 live arrays", times.collect());
}

fn report(name: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let (least, middle) = (times[0], times[times.len() / 2]);
    println!("{name:44} min {least:>10.1?}  median {middle:>10.1?}");
    middle
}

fn start_and_exit() {
    let times = (0..30).map(|_| {
        let begin = Instant::now();
        let run = Command::new(PROGRAM).args(["-c", "1 + 1"]).output().expect("it starts");
        assert!(run.status.success());
        begin.elapsed()
    });
    report("start, one cell, exit (whole process)", times.collect());
}

/// Resident memory of a process that ran a cell and waits for the next.
fn idle_memory() {
    let mut child = Command::new(PROGRAM)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let input = child.stdin.as_mut().expect("piped");
    input.write_all(b"1 + 1\n// %%\n").expect("it reads");
    std::thread::sleep(Duration::from_millis(300));
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    for field in status.lines().filter(|l| l.starts_with("VmRSS") || l.starts_with("RssAnon")) {
        println!("idle process: {}", field.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    drop(child.stdin.take());
    child.wait().expect("it leaves");
}

fn session() -> Session {
    let mut session = Session::new(Config::default()).expect("the default settings are good");
    run(&mut session, "%watch off");
    session
}

fn run(session: &mut Session, code: &str) -> u64 {
    let result = session.execute(code, &mut |_| {});
    if let (Status::Error, Some(error)) = (result.status, &result.error) {
        panic!("{}", error.rendered);
    }
    result.wall_ns
}

fn trivial_cell() {
    let mut session = session();
    let times = (0..2000).map(|_| {
        let begin = Instant::now();
        run(&mut session, "1 + 1");
        begin.elapsed()
    });
    report("cell `1 + 1` in the session", times.collect());
    let times = (0..2000).map(|_| {
        let begin = Instant::now();
        run(&mut session, "let a = zeros([16, 16]);");
        begin.elapsed()
    });
    report("cell `let a = zeros([16, 16]);`", times.collect());
}

/// (name as in benches/jax_peer.py, cells that make the arguments, the timed cell)
const EXPRESSIONS: [(&str, &str, &str); 4] = [
    (
        "tanh(a*b+c)*2, 16M",
        "let a = randn([16777216]); let b = randn([16777216]); let c = randn([16777216]);
         let f = jit(|[a, b, c]| (a * b + c).tanh() * 2.0);",
        "f([&a, &b, &c]);",
    ),
    (
        "20-op polynomial, 16M",
        "let a = randn([16777216]);
         let f = jit(|[x]| {
             let mut y = x * x + 0.5;
             for i in 1..10 { y = &y * x + (0.5 - 0.1 * (i as f64)); }
             y
         });",
        "f([&a]);",
    ),
    (
        "softmax, 4096x4096",
        "let a = randn([4096, 4096]); let f = jit(|[x]| x.softmax(-1));",
        "f([&a]);",
    ),
    (
        "step of an MLP 784-1024-1024-10, batch 1024",
        "let x = randn([1024, 784]); let y = one_hot(arange_as(I32, 1024) % 10, 10);
         let mut a = randn([784, 1024]) * 0.03; let mut b = randn([1024, 1024]) * 0.03;
         let mut c = randn([1024, 10]) * 0.03;
         fn loss([a, b, c, x, y]: [&Array; 5]) -> Array {
             let h = x.dot(a).relu().dot(b).relu();
             -(h.dot(c).log_softmax(-1) * y).sum() / 1024.0
         }
         let slopes = value_and_grad_wrt([0, 1, 2], loss);
         let step = jit(move |[a, b, c, x, y]| {
             let (l, [da, db, dc]) = slopes([a, b, c, x, y]);
             (l, a - da * 0.1, b - db * 0.1, c - dc * 0.1)
         });",
        "let (l, a2, b2, c2) = step.call((a, b, c, &x, &y)); a = a2; b = b2; c = c2;",
    ),
];

fn expressions(word: &str) {
    let mut peer = Peer::start();
    for (name, setup, timed) in EXPRESSIONS.into_iter().filter(|(name, ..)| name.contains(word)) {
        let mut session = session();
        run(&mut session, "%outputs off");
        run(&mut session, setup);
        run(&mut session, timed);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..21 {
            ours.push(Duration::from_nanos(run(&mut session, timed)));
            if let Some(peer) = &mut peer {
                theirs.push(peer.run(name));
            }
        }
        let ours = report(&format!("{name}: vramlab"), ours);
        if !theirs.is_empty() {
            let theirs = report(&format!("{name}: JAX"), theirs);
            println!("{:44} {:.2}x", "", theirs.as_secs_f64() / ours.as_secs_f64());
        }
    }
}

/// JAX in a process of its own, a workload a line.
struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Option<Peer> {
        let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.into();
        let mut child = Command::new(root.join(".venv/bin/python"))
            .arg(root.join("benches/jax_peer.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let input = child.stdin.take()?;
        let mut peer = Peer { output: BufReader::new(child.stdout.take()?), input, child };
        let greeting = peer.line();
        if !greeting.starts_with("ready") {
            println!("JAX is not installed in .venv: no peer in this run");
            return None;
        }
        println!("peer: JAX {}", greeting.trim_start_matches("ready").trim());
        Some(peer)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        // An empty line means that the peer ended; the callers see that it is no figure.
        let _ = self.output.read_line(&mut line);
        line
    }

    fn run(&mut self, name: &str) -> Duration {
        writeln!(self.input, "{name}").expect("the peer reads");
        Duration::from_nanos(self.line().trim().parse().expect("nanoseconds"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
