//! `%time` and `%timeit`: what an expression costs in time.

use super::{Command, Completing, Effect, Refusal};
use crate::event::Event;
use crate::report::duration;
use crate::session::{Failed, Session};
use crate::sink::Sink;
use std::time::{Duration, Instant};

pub static COMMANDS: &[Command] = &[
    Command {
        name: "time",
        arguments: "STATEMENT",
        help: "Runs a statement once and says how long it took and what it allocated.",
        example: "%time zeros([1024, 1024]).sum()",
        complete: Completing::Code,
        changes_names: true,
        action: time,
        ..Command::BASE
    },
    Command {
        name: "timeit",
        arguments: "EXPRESSION",
        help: "Runs an expression many times and says how long one run takes.",
        example: "%timeit ones([1024]) + 1.0",
        complete: Completing::Code,
        action: timeit,
        ..Command::BASE
    },
];

fn time(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if arguments.is_empty() {
        return Err(Refusal::new("time what? write %time x.sum()"));
    }
    let before = session.context.scope_now();
    let started = Instant::now();
    let effect = session.run_rust(arguments, 1, sink)?;
    let took = started.elapsed();
    let after = session.context.scope_now();
    sink.say(format!(
        "wall {}   allocs {}   frees {}",
        duration(took.as_nanos() as u64),
        after.num_allocs - before.num_allocs,
        after.num_frees - before.num_frees
    ));
    Ok(effect)
}

/// Long enough to be measured, short enough to be waited for.
const ONE_RUN: Duration = Duration::from_millis(30);
const RUNS: usize = 7;
const MOST_LOOPS: u64 = 100_000;

fn timeit(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    if arguments.is_empty() {
        return Err(Refusal::new("time what? write %timeit x.sum()"));
    }
    let code = repeatable(session, arguments.trim_end_matches(';'))?;
    let mut loops = 1u64;
    let mut took = loop_time(session, &code, loops)?;
    while took < ONE_RUN && loops < MOST_LOOPS {
        let per_loop = took.as_nanos().max(100) as u64 / loops;
        let wanted = ONE_RUN.as_nanos() as u64 / per_loop.max(1) + 1;
        loops = wanted.clamp(loops * 2, loops * 100).min(MOST_LOOPS);
        took = loop_time(session, &code, loops)?;
    }
    let mut runs = vec![took];
    // One run of something slow is enough.
    while runs.len() < RUNS && took < Duration::from_secs(2) {
        runs.push(loop_time(session, &code, loops)?);
    }
    let each: Vec<f64> = runs.iter().map(|run| run.as_nanos() as f64 / loops as f64).collect();
    let mean = each.iter().sum::<f64>() / each.len() as f64;
    let variance = each.iter().map(|ns| (ns - mean).powi(2)).sum::<f64>() / each.len() as f64;
    let best = each.iter().copied().fold(f64::INFINITY, f64::min);
    sink.say(format!(
        "{} ± {} per loop, best {} ({} runs of {loops})",
        duration(mean as u64),
        duration(variance.sqrt() as u64),
        duration(best as u64),
        runs.len()
    ));
    Ok(Effect::Ran)
}

/// The statement as a block, each character where it was typed, once it is known to be right by itself
/// and to leave the session's variables as they are.
fn repeatable(session: &Session, statement: &str) -> Result<String, Refusal> {
    let before = session.typed_before(statement);
    let alone = format!("{before}{statement}");
    session.prepare(&alone, 1).map_err(Failed::before)?;
    let twice = format!("for _ in 0..2 {{ {statement}; }}");
    match session.prepare(&twice, 1) {
        Err(error) if error.kind == "E0382" => {
            let moved = error.message.rsplit(':').next().unwrap_or("a variable").trim().to_string();
            Err(Refusal::new(format!(
                "%timeit runs it many times, and it moves {moved}: pass a reference, or {}.clone()",
                moved.trim_matches('`')
            )))
        }
        _ => Ok(format!("{}{{ {statement}; }}", &before[..before.len().saturating_sub(2)])),
    }
}

/// The checked code is run `loops` times; what it prints is dropped. Preparing is not counted.
fn loop_time(session: &mut Session, code: &str, loops: u64) -> Result<Duration, Failed> {
    let mut total = Duration::ZERO;
    for _ in 0..loops {
        total += run_quietly(session, code)?;
    }
    Ok(total)
}

fn run_quietly(session: &mut Session, code: &str) -> Result<Duration, Failed> {
    let (prepared, _) = session.prepare(code, 1).map_err(Failed::before)?;
    let mut drop_event = |_: Event| {};
    let mut quiet = Sink::new(&mut drop_event);
    let started = Instant::now();
    let shown = session.run_prepared(prepared, &mut quiet).map_err(Failed::within)?;
    drop(shown);
    Ok(started.elapsed())
}
