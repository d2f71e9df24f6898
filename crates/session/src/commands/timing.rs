//! `%time`, `%timeit` and `%compare`: what an expression costs.

use super::{Command, Completing, Effect, Refusal};
use crate::event::{Event, Table};
use crate::report::{duration, mib};
use crate::session::{Failed, Session};
use crate::sink::Sink;
use std::time::{Duration, Instant};
use vramlab_runtime::Work;

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
    Command {
        name: "compare",
        arguments: "EXPRESSION",
        help: "One expression eager and jitted: peak, kernels, bytes moved, driver calls, time.",
        example: "%compare tanh(&x)",
        complete: Completing::Code,
        action: compare,
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
    let code = format!("{{ {}; }}", arguments.trim_end_matches(';'));
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

/// What one way of running did.
struct Style {
    name: &'static str,
    peak: u64,
    beside: u64,
    planned: Option<u64>,
    work: Work,
    driver: u64,
    took: Duration,
}

fn compare(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let expression = arguments.trim_end_matches(';').trim();
    if expression.is_empty() {
        return Err(Refusal::new("compare what? write %compare tanh(&x)"));
    }
    let arrays = array_names(session, expression);
    let eager = format!("{{ let _kept = {expression}; }}");
    let mut styles = vec![measured(session, "eager", &eager)?];
    match arrays.is_empty() {
        true => sink.say("no array variable is named in it, so there is nothing to jit over"),
        false => styles.push(jitted(session, expression, &arrays)?),
    }
    let mut table = Table::new(&[
        "style",
        "peak",
        "beside",
        "planned",
        "kernels",
        "bytes moved",
        "driver",
        "time",
    ]);
    for style in &styles {
        table.row([
            style.name.to_string(),
            mib(style.peak),
            mib(style.beside),
            style.planned.map_or("–".into(), mib),
            style.work.kernels.to_string(),
            mib(style.work.bytes_read + style.work.bytes_written),
            style.driver.to_string(),
            duration(style.took.as_nanos() as u64),
        ]);
    }
    table
        .note("peak of all arrays; beside: above what was there; each ran once before, to warm up");
    sink.table(table);
    Ok(Effect::Told)
}

/// Array variables that the expression names, in the order of their first use.
fn array_names(session: &Session, expression: &str) -> Vec<String> {
    let variables = session.variables();
    let mut names: Vec<String> = Vec::new();
    for token in crate::scan::scan(expression) {
        let word = token.text(expression);
        let is_array = variables.iter().any(|variable| {
            variable.name == word && variable.ty == "Array" && variable.moved.is_none()
        });
        if is_array && !names.iter().any(|name| name == word) {
            names.push(word.to_string());
        }
    }
    names
}

/// The same expression as a jitted function of the arrays it names.
fn jitted(session: &mut Session, expression: &str, arrays: &[String]) -> Result<Style, Refusal> {
    let parameters = arrays.join(", ");
    let arguments: Vec<String> = arrays.iter().map(|name| format!("&{name}")).collect();
    let body = crate::scan::scan(expression);
    // Inside, a parameter is a reference already: `&x` becomes `x`.
    let mut text = String::new();
    let mut at = 0;
    for (index, token) in body.iter().enumerate() {
        let next = body.get(index + 1).map(|token| token.text(expression));
        let borrowed = next.is_some_and(|word| arrays.iter().any(|name| name == word));
        if token.is_mark(expression, '&') && borrowed {
            text.push_str(&expression[at..token.range.start]);
            at = token.range.end;
        }
    }
    text.push_str(&expression[at..]);
    let code = format!(
        "{{ let compared = jit(|[{parameters}]| {text}); let _kept = compared([{}]); }}",
        arguments.join(", ")
    );
    let mut style = measured(session, "jit", &code)?;
    let entry = session
        .context
        .caches()
        .into_iter()
        .filter(|entry| entry.kind == vramlab_array::ir::CompileKind::Jit)
        .max_by_key(|entry| entry.last_use_ns);
    let explained = entry
        .and_then(|entry| vramlab_array::ir::Engine::explain(&*session.context, entry.executable));
    style.planned = explained.map(|explanation| explanation.analysis.peak_memory_in_bytes);
    Ok(style)
}

/// Runs once to compile and warm up, and once to measure.
fn measured(session: &mut Session, name: &'static str, code: &str) -> Result<Style, Refusal> {
    use vramlab_array::ir::Engine;
    run_quietly(session, code)?;
    let work = session.context.work();
    session.context.scope_begin(name);
    let ran = run_quietly(session, code);
    let scope = session.context.scope_end();
    let took = ran?;
    Ok(Style {
        name,
        peak: scope.peak_bytes,
        beside: scope.peak_bytes.saturating_sub(scope.start_bytes),
        planned: None,
        work: session.context.work().since(work),
        driver: scope.driver_allocs + scope.driver_frees,
        took,
    })
}
