//! What a replayed event costs, from the file on. `cargo bench -p vramlab-traces`.
//!
//! 10 million events with 10,000 blocks live, as a vramlab trace: read once into records, then run through each mode
//! in constant memory. The most that this process held is printed at the end. With a FILE behind `--` that file is
//! measured instead.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};
use vramlab_memory::conformance::Random;
use vramlab_memory::{GIB, ModeSpec};
use vramlab_traces::{Ask, open, replay, view};

const BLOCKS: u64 = 5_000_000;
const LIVE: u64 = 10_000;

fn main() {
    if let Some(file) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) {
        return measure(std::path::Path::new(&file));
    }
    let path = std::env::temp_dir().join(format!("vramlab-bench-{}.trace", std::process::id()));
    write(&path).expect("a temporary file");
    measure(&path);
    std::fs::remove_file(&path).expect("the file is there");
}

fn write(path: &std::path::Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut random = Random::new(5);
    writeln!(out, "vramlab trace 1\ndevice {} bench", 80 * GIB)?;
    for id in 0..BLOCKS + LIVE {
        if id < BLOCKS {
            let bytes = random.size(1 << 20);
            writeln!(out, "alloc {} {} {bytes} {bytes} 0 0 0", id * 100, id + 1)?;
        }
        if id >= LIVE {
            writeln!(out, "free {} {}", id * 100 + 50, id + 1 - LIVE)?;
        }
    }
    out.flush()
}

fn measure(path: &std::path::Path) {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    let start = Clock::now();
    let trace = &open(path).expect("a trace")[0];
    let events = trace.events.len();
    per(&format!("read {} MB", bytes / 1_000_000), start, events);
    for mode in ModeSpec::parse_list("all").expect("modes") {
        let name = mode.to_string();
        let ask = Ask { modes: vec![mode], capacity: None, exact: false };
        let start = Clock::now();
        let replayed = replay(trace, &ask).expect("readable");
        let passes = if replayed.rows[0].outcome.passes() { "" } else { ", fails" };
        per(&format!("{name}{passes}"), start, events);
    }
    let start = Clock::now();
    view(trace).expect("readable");
    per("view", start, events);
    println!("the most that was resident: {}", resident());
}

/// A moment, by the clock and by the processor's time of this thread, which other programs do not add to.
struct Clock(Instant, Duration);

impl Clock {
    fn now() -> Clock {
        Clock(Instant::now(), processor())
    }
}

/// The processor's time of this thread, where the system tells.
fn processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}

fn per(what: &str, start: Clock, events: u64) {
    let seconds = start.0.elapsed().as_secs_f64();
    let busy = (processor() - start.1).as_secs_f64();
    let rate = events as f64 / busy / 1e6;
    println!("{what:<42} {events} events in {seconds:>6.2} s, {busy:>6.2} s busy  {rate:>6.2} M/s");
}

/// The most that this process held, where the system tells.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.map_or("not told", |line| line.trim_start_matches("VmHWM:").trim()).to_string()
}
