//! `%compare`: one expression in several styles and modes, each on a device of its own.

mod expression;
mod question;

use super::{Command, Completing, Effect, Refusal};
use crate::event::{Event, Table};
use crate::report::{duration, mib};
use crate::session::{Failed, Session};
use crate::sink::Sink;
use crate::trial::{NoTrial, Stopped, Trial};
use expression::Expression;
use question::{Question, parse};
use std::time::Duration;
use vramlab_array::ir::{CompileKind, Engine, FaultKind};
use vramlab_array::surface;
use vramlab_memory::ModeSpec;
use vramlab_runtime::{Context, Work};

pub static COMMANDS: &[Command] = &[Command {
    name: "compare",
    arguments: "EXPRESSION [modes=MODE,…|all] [styles=STYLE,…] [capacity=SIZE]",
    help: "One expression eager and jitted, in other modes, on a smaller device: peak, kernels, bytes moved, time.",
    example: "%compare tanh(&x) modes=preallocate,platform capacity=1GiB",
    complete: Completing::Code,
    check: Some(|arguments| parse(arguments).map(|_| ())),
    action: compare,
    ..Command::BASE
}];

/// One way to run an expression.
struct Style {
    name: &'static str,
    /// The function of the prelude that it takes; where that is missing, so is the style.
    needs: Option<&'static str>,
    /// Whether it is compared unless styles are named.
    usual: bool,
    /// Whether it compiles one program, whose plan is shown.
    plans: bool,
    /// The code that runs it so, or why there is none.
    code: fn(&Expression) -> Result<String, &'static str>,
}

/// Every style, in the order of the rows.
static STYLES: [Style; 4] = [
    Style {
        name: "eager",
        needs: None,
        usual: true,
        plans: false,
        code: |expression| Ok(expression.eager()),
    },
    Style {
        name: "jit",
        needs: Some("jit"),
        usual: true,
        plans: true,
        code: |expression| expression.jitted(),
    },
    Style {
        name: "checkpoint",
        needs: Some("checkpoint"),
        usual: false,
        plans: true,
        code: |expression| expression.checkpointed(),
    },
    Style {
        name: "offload",
        needs: Some("offload_dot_with_no_batch_dims"),
        usual: false,
        plans: true,
        code: |expression| expression.offloaded(),
    },
];

impl Style {
    fn is_there(&self) -> bool {
        self.needs.is_none_or(|name| !surface::named(name).is_empty())
    }
}

/// The styles of these names, or the usual ones.
fn styles_of(names: &[String]) -> Result<Vec<&'static Style>, Refusal> {
    if names.is_empty() {
        return Ok(STYLES.iter().filter(|style| style.usual && style.is_there()).collect());
    }
    let there = || STYLES.iter().filter(|style| style.is_there()).map(|style| style.name);
    let style = |name: &String| match STYLES.iter().find(|style| style.name == name) {
        Some(style) if style.is_there() => Ok(style),
        Some(style) => {
            let list = there().collect::<Vec<_>>().join(", ");
            let text = format!("this version has no {} yet; the styles are {list}", style.name);
            Err(Refusal::new(text))
        }
        None => {
            let names: Vec<&str> = there().collect();
            Err(Refusal::new(crate::config::unknown("style", name, names)))
        }
    };
    names.iter().map(style).collect()
}

/// What one run of one style in one mode did.
struct Row {
    style: &'static str,
    mode: String,
    figures: Option<Figures>,
    took: Option<Duration>,
    result: String,
    passed: bool,
}

/// From the first run, on a device that holds the inputs alone.
struct Figures {
    peak: u64,
    beside: u64,
    /// The plan's peak, and the arguments in it.
    planned: Option<(u64, u64)>,
    /// The most host memory that offloaded values took.
    host: u64,
    work: Work,
    allocations: u64,
    driver: u64,
}

const PASSES: &str = "passes";

fn compare(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let question = parse(arguments)?;
    let styles = styles_of(&question.styles)?;
    let expression = Expression::of(session, &question.expression);
    // What is wrong with the expression itself is said as of any cell.
    let alone = format!("{}{}", session.typed_before(&question.expression), question.expression);
    session.prepare(&alone, 1).map_err(Failed::before)?;
    session.prepare(&expression.eager(), 1).map_err(Failed::before)?;
    let asked_modes = !question.modes.is_empty();
    let modes = match asked_modes {
        true => question.modes.clone(),
        false => vec![session.context.mode()],
    };
    let mut notes = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    let count = styles.len() * modes.len();
    for style in styles {
        let code = match (style.code)(&expression) {
            Ok(code) => code,
            Err(why) => {
                notes.push(why.to_string());
                continue;
            }
        };
        for mode in &modes {
            if count > 2 {
                let label = format!("{} in {mode}", style.name);
                let fraction = rows.len() as f64 / count as f64;
                sink.send(Event::Progress { label, fraction });
            }
            match row(session, style, mode, &expression, &code, &question)? {
                Ok(row) => rows.push(row),
                Err(why) => {
                    notes.push(format!("not as {}: {why}", style.name));
                    break;
                }
            }
        }
    }
    if rows.is_empty() {
        notes.iter().for_each(|note| sink.say(note));
        return Ok(Effect::Told);
    }
    let shows_results = question.capacity.is_some() || rows.iter().any(|row| !row.passed);
    sink.table(table(&rows, asked_modes, asked_modes || shows_results, notes));
    Ok(Effect::Told)
}

/// A row, or why the expression cannot be had in this style.
fn row(
    session: &Session,
    style: &Style,
    mode: &ModeSpec,
    expression: &Expression,
    code: &str,
    question: &Question,
) -> Result<Result<Row, String>, Refusal> {
    let mut row = Row {
        style: style.name,
        mode: mode.to_string(),
        figures: None,
        took: None,
        result: PASSES.into(),
        passed: true,
    };
    let trial = Trial::open(session, &expression.names, mode.clone(), question.capacity);
    let mut trial = match trial {
        Ok(trial) => trial,
        Err(NoTrial::Refused(why)) => return Err(Refusal::new(why)),
        Err(NoTrial::Interrupted) => {
            return Err(Refusal::interrupted("the comparison was stopped"));
        }
        Err(NoTrial::InputsDoNotFit) => {
            let (result, passed) = ("the inputs do not fit".into(), false);
            return Ok(Ok(Row { result, passed, ..row }));
        }
    };
    let (figures, first) = measured(&mut trial, code, style.plans);
    row.figures = Some(figures);
    // The first run compiles; the second one is timed.
    match first.and_then(|_| trial.run(code)) {
        Ok(took) => row.took = Some(took),
        Err(Stopped::Check(why)) => return Ok(Err(why)),
        Err(Stopped::Fault(fault)) => match fault.kind {
            FaultKind::OutOfMemory => {
                (row.result, row.passed) = (failure(&trial.context), false);
            }
            FaultKind::Interrupted => {
                return Err(Refusal::interrupted("the comparison was stopped"));
            }
            _ if style.plans => return Ok(Err(fault.to_string())),
            kind => {
                let refusal = Refusal { kind: kind.code(), ..Refusal::new(fault.to_string()) };
                return Err(Refusal { help: fault.help.clone(), ..refusal });
            }
        },
    }
    Ok(Ok(row))
}

fn measured(trial: &mut Trial, code: &str, plans: bool) -> (Figures, Result<Duration, Stopped>) {
    let context = trial.context.clone();
    let work = context.work();
    context.scope_begin("compare");
    let ran = trial.run(code);
    let scope = context.scope_end();
    let figures = Figures {
        peak: scope.peak_bytes,
        beside: scope.peak_bytes.saturating_sub(scope.start_bytes),
        planned: if plans { plan(&context) } else { None },
        host: context.host_memory().peak_bytes_in_use,
        work: context.work().since(work),
        allocations: scope.num_allocs,
        driver: scope.driver_allocs + scope.driver_frees,
    };
    (figures, ran)
}

/// Peak and arguments of what was compiled last.
fn plan(context: &Context) -> Option<(u64, u64)> {
    let compiled = context.caches().into_iter().filter(|entry| entry.kind == CompileKind::Jit);
    let entry = compiled.max_by_key(|entry| entry.last_use_ns)?;
    let analysis = context.explain(entry.executable)?.analysis;
    Some((analysis.peak_memory_in_bytes, analysis.argument_size_in_bytes))
}

fn failure(context: &Context) -> String {
    match context.last_oom() {
        Some(oom) => format!("OOM at {} ({})", mib(oom.asked), oom.verdict),
        None => "OOM".into(),
    }
}

fn table(rows: &[Row], modes: bool, results: bool, notes: Vec<String>) -> Table {
    let figures =
        ["peak", "beside", "planned", "kernels", "bytes moved", "driver", "allocs", "time"];
    let mut header = vec!["style"];
    header.extend(modes.then_some("mode"));
    header.extend(figures);
    header.extend(results.then_some("result"));
    let mut table = Table::new(&header);
    for row in rows {
        let mut cells = vec![row.style.to_string()];
        cells.extend(modes.then(|| row.mode.clone()));
        cells.extend(row.cells());
        cells.extend(results.then(|| row.result.clone()));
        table.row(cells);
    }
    notes.into_iter().for_each(|note| table.note(note));
    for row in rows {
        let planned = row.figures.as_ref().and_then(|figures| figures.planned);
        if let Some((peak, arguments)) = planned
            && rows
                .iter()
                .find(|other| other.style == row.style)
                .is_some_and(|first| std::ptr::eq(first, row))
        {
            let beside = mib(peak.saturating_sub(arguments));
            let host = match row.figures.as_ref().map_or(0, |figures| figures.host) {
                0 => String::new(),
                host => format!("; {} more wait in host memory", mib(host)),
            };
            table.note(format!(
                "{} plans {}, {beside} of it beside the inputs{host}",
                row.style,
                mib(peak)
            ));
        }
    }
    table.note(
        "peak of all arrays; beside: above the inputs, which lie alone on a device of their own",
    );
    table
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let none = || "–".to_string();
        let took = self.took.map_or_else(none, |took| duration(took.as_nanos() as u64));
        let Some(figures) = &self.figures else {
            let mut cells = vec![none(); 7];
            cells.push(took);
            return cells;
        };
        vec![
            mib(figures.peak),
            mib(figures.beside),
            figures.planned.map_or_else(none, |(peak, _)| mib(peak)),
            figures.work.kernels.to_string(),
            mib(figures.work.bytes_read + figures.work.bytes_written),
            figures.driver.to_string(),
            figures.allocations.to_string(),
            took,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_found_and_missing_ones_said() {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(styles_of(&[]).map_or(0, |styles| styles.len()), 2);
        let why = styles_of(&names(&["jitt"])).err().expect("unknown").message;
        assert!(why.contains("did you mean `jit`?") && why.contains("eager"), "{why}");
        // A style whose function the prelude lacks is named as missing, and works as soon as it is there.
        let checkpoint = styles_of(&names(&["checkpoint"]));
        match surface::named("checkpoint").is_empty() {
            true => {
                let why = checkpoint.err().expect("not there").message;
                assert!(why.contains("no checkpoint yet"), "{why}");
            }
            false => assert_eq!(checkpoint.map_or(0, |styles| styles.len()), 1),
        }
    }
}
