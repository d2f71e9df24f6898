//! The same requests elsewhere: `%whatif` replays the ledger in other modes and sizes.

use super::{Command, Completing, Effect, Refusal};
use crate::config::unknown;
use crate::event::Table;
use crate::report::{mib, size};
use crate::session::Session;
use crate::sink::Sink;
use vramlab_memory::ModeSpec;
use vramlab_memory::modes::parse_capacity;
use vramlab_memory::oom::what_if_modes;
use vramlab_memory::replay::{Device, Outcome, Part, Row, Trace, what_if};

pub static COMMANDS: &[Command] = &[Command {
    name: "whatif",
    arguments: "[cell=N] [capacity=SIZE] [mode=MODE …]",
    help: "Replays the session's requests, or one cell's, in every mode: would it pass, and where?",
    example: "%whatif cell=1 capacity=16GiB",
    complete: Completing::Words(&["cell=", "capacity=", "mode="]),
    check: Some(|arguments| parse(arguments).map(|_| ())),
    action: whatif,
    ..Command::BASE
}];

struct Question {
    cell: Option<u32>,
    capacity: Option<u64>,
    mode: Option<ModeSpec>,
}

fn parse(arguments: &str) -> Result<Question, Refusal> {
    let mut question = Question { cell: None, capacity: None, mode: None };
    let (rest, mode) = match arguments.split_once("mode=") {
        Some((rest, mode)) => (rest, Some(mode)),
        None => (arguments, None),
    };
    let (mode_words, more) = options_behind(mode.unwrap_or(""));
    for word in rest.split_whitespace().chain(more) {
        match word.split_once('=') {
            Some(("cell", number)) => {
                let number = number.parse();
                let why = || Refusal::new(format!("`{word}`: cell=N takes a cell's number"));
                question.cell = Some(number.map_err(|_| why())?);
            }
            Some(("capacity", size)) => question.capacity = Some(parse_capacity(size)?),
            _ => {
                let name = word.split('=').next().unwrap_or(word);
                return Err(Refusal::new(unknown("option", name, ["cell", "capacity", "mode"])));
            }
        }
    }
    if mode.is_some() {
        let spec = ModeSpec::parse(&mode_words.join(" "));
        question.mode = Some(spec.map_err(|why| Refusal::new(why.to_string()))?);
    }
    Ok(question)
}

/// A mode's own words, and the options of the command behind them.
fn options_behind(text: &str) -> (Vec<&str>, Vec<&str>) {
    let is_ours = |word: &&str| word.starts_with("cell=") || word.starts_with("capacity=");
    let (ours, modes) = text.split_whitespace().partition(|word| is_ours(word));
    (modes, ours)
}

fn whatif(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let question = parse(arguments)?;
    let part = question.cell.map_or(Part::Kept, Part::Cell);
    let (trace, now, dropped) = session.context.with_heap(|heap| {
        let figures = heap.device();
        let device = Device { capacity: figures.total, others: figures.others };
        (Trace::from_ledger(heap.ledger(), part), device, heap.ledger().dropped())
    });
    let Some(trace) = trace else {
        let cell = question.cell.unwrap_or_default();
        return Err(Refusal::new(format!("cell {cell} is not in the ledger")));
    };
    if trace.steps.is_empty() {
        sink.say("nothing was asked of the device there, so every mode passes");
        return Ok(Effect::Told);
    }
    let device = Device { capacity: question.capacity.unwrap_or(now.capacity), ..now };
    let modes = match question.mode {
        Some(mode) => vec![mode],
        None => what_if_modes(session.context.mode().fraction()),
    };
    let rows = what_if(&trace, &modes, device);
    sink.table(table(&rows, device, &trace, dropped));
    Ok(Effect::Told)
}

fn table(rows: &[Row], device: Device, trace: &Trace, dropped: u64) -> Table {
    let mut table =
        Table::new(&["mode", "result", "peak in use", "pool", "frag", "driver", "smallest device"]);
    for row in rows {
        let outcome = &row.outcome;
        table.row([
            outcome.mode.to_string(),
            result(outcome),
            mib(outcome.peak_in_use),
            mib(outcome.peak_pool),
            crate::report::percent(outcome.fragmentation),
            outcome.driver_calls.to_string(),
            row.smallest_device_mib.map_or("none tried passes".into(), |mib| mib.to_string()),
        ]);
    }
    let from = if trace.from_event > 0 {
        format!(" from event {} on ({} blocks were live)", trace.from_event, trace.start)
    } else {
        String::new()
    };
    let beside = match device.others {
        0 => String::new(),
        others => format!(" of which others hold {} (smallest device: without them)", size(others)),
    };
    table.note(format!(
        "{} requests and returns replayed{from} on a device of {}{beside}",
        trace.steps.len(),
        size(device.capacity)
    ));
    if dropped > 0 {
        table.note(format!("the ledger has dropped {dropped} older events"));
    }
    table
}

fn result(outcome: &Outcome) -> String {
    match &outcome.failure {
        None => "passes".into(),
        Some(failure) => format!("OOM at {} ({})", mib(failure.asked), failure.verdict),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read() {
        let question = parse("cell=3 capacity=16GiB mode=ondemand gc=on").ok().unwrap();
        assert_eq!((question.cell, question.capacity), (Some(3), Some(16 << 30)));
        assert_eq!(question.mode.unwrap().to_string(), "ondemand gc=on");
        let question = parse("mode=platform cell=2").ok().unwrap();
        assert_eq!(
            (question.cell, question.mode.unwrap().to_string()),
            (Some(2), "platform".into())
        );
        for wrong in ["cell=x", "size=1", "mode=never", "capacity=big"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
