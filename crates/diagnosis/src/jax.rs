//! `RESOURCE_EXHAUSTED` of JAX and XLA without an allocator's dump: the bare sentence, the statistics of the buffer
//! assignment, and what the TPU compiler says.

use crate::clean::Text;
use crate::quantity::Units;
use crate::{Certainty, Diagnosis, Kind, Name, Owner, Quantity, Verdict, counters, show};
use vramlab_memory::Verdict as Live;

pub(crate) fn read(text: &Text) -> Option<Diagnosis> {
    let marks = [
        "resource_exhausted",
        "resourceexhausted",
        "bufferassignmentstats:",
        "outofmemoryinmemoryspace",
        "outofmemoryallocating",
        "outofmemorywhiletryingtoallocate",
    ];
    if !text.has(&marks) {
        return None;
    }
    let mut d = Diagnosis::new(Kind::JaxError, "RESOURCE_EXHAUSTED", Verdict::CannotTell);
    d.figures.set(Name::Asked, asked(&text.squeezed));
    tpu(text, &mut d);
    buffer_statistics(text, &mut d);
    counters::give(text, &mut d);
    judge(&mut d);
    Some(d)
}

/// The request, in the words of the several places that raise it.
fn asked(squeezed: &str) -> Option<Quantity> {
    let labels = [
        "outofmemoryallocating",
        "outofmemorywhiletryingtoallocate",
        "outofmemorytryingtoallocate",
        "attemptingtoallocate",
        "attemptingtoreserve",
        "failedtoallocate",
        "tryingtoallocate",
    ];
    labels.iter().find_map(|label| {
        let (_, rest) = squeezed.split_once(label)?;
        let rest = rest.strip_prefix("requestfor").unwrap_or(rest);
        Quantity::at_start(rest, Units::Any)?.0
    })
}

/// `Ran out of memory in memory space hbm. Used 21.50G of 15.48G hbm.` and `There are 1.26G free.`
fn tpu(text: &Text, d: &mut Diagnosis) {
    let words = text.plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let behind = |label: &str| {
        let (_, rest) = words.split_once(label)?;
        let (figure, length) = Quantity::at_start(rest, Units::Any)?;
        Some((figure?, &rest[length..]))
    };
    if let Some((used, rest)) = behind("hbm. Used ") {
        d.grammar = "XLA for TPU, program against HBM".into();
        d.figures.set(Name::Total, Some(used));
        d.figures.set(Name::Needed, Some(used));
        let limit = rest.strip_prefix(" of ").and_then(|rest| Quantity::at_start(rest, Units::Any));
        d.figures.set(Name::Limit, limit.and_then(|(figure, _)| figure));
    }
    let free = behind("There are ").filter(|(_, rest)| rest.starts_with(" free"));
    d.figures.set(Name::Free, free.map(|(figure, _)| figure));
}

/// The block `BufferAssignment stats:` and the peak buffers under it.
pub(crate) fn buffer_statistics(text: &Text, d: &mut Diagnosis) {
    if !text.plain.contains("BufferAssignment stats") && !text.has(&["preallocatedtempallocation:"])
    {
        return;
    }
    d.grammar.push_str(", buffer assignment statistics");
    let rows = [
        ("parameter allocation:", Name::Argument),
        ("maybe_live_out allocation:", Name::Output),
        ("preallocated temp allocation:", Name::Temp),
        ("preallocated temp fragmentation:", Name::InternalFragmentation),
        ("constant allocation:", Name::ConstantAndThreadLocal),
        ("total allocation:", Name::Total),
    ];
    for line in text.lines() {
        for (label, name) in rows {
            if let Some((_, rest)) = line.split_once(label) {
                let figure =
                    Quantity::at_start(rest.trim(), Units::Any).and_then(|(figure, _)| figure);
                d.figures.complete(name, figure);
            }
        }
    }
    d.owners.extend(peak_buffers(text));
    d.keep_largest_owners(20);
    d.figures.set(Name::LargestValue, d.owners.first().map(|owner| owner.held));
}

/// ```text
/// Buffer 1:
///     Size: 8.00GiB
///     Operator: op_name="…" source_file="train.py" source_line=61
///     XLA Label: fusion
///     Shape: f32[64,32,1024,1024]
/// ```
fn peak_buffers(text: &Text) -> Vec<Owner> {
    let mut buffers: Vec<Owner> = Vec::new();
    let mut open = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("Buffer ") && line.ends_with(':') {
            open = false;
        } else if let Some(size) = line.strip_prefix("Size:") {
            if let Some((Some(held), _)) = Quantity::at_start(size.trim(), Units::Any) {
                buffers.push(Owner { name: "buffer".into(), detail: String::new(), held });
                open = true;
            }
        } else if let Some(buffer) = buffers.last_mut().filter(|_| open) {
            if let Some(operator) = line.strip_prefix("Operator:") {
                name_by_operator(operator, buffer);
            } else if let Some(label) = line
                .strip_prefix("XLA Label:")
                .or_else(|| line.strip_prefix("Entry Parameter Subshape:"))
            {
                if buffer.name == "buffer" {
                    buffer.name = label.trim().into();
                }
            } else if let Some(shape) = line.strip_prefix("Shape:") {
                let separator = if buffer.detail.is_empty() { "" } else { "  " };
                buffer.detail = format!("{}{separator}{}", shape.trim(), buffer.detail);
            } else if line.starts_with("====") {
                open = false;
            }
        }
    }
    buffers
}

fn name_by_operator(operator: &str, buffer: &mut Owner) {
    let quoted = |label: &str| {
        operator.split_once(label).and_then(|(_, rest)| rest.split_once('"')).map(|(v, _)| v)
    };
    if let Some(name) = quoted("op_name=\"") {
        buffer.name = name.into();
    }
    let line = operator.split_once("source_line=").map(|(_, rest)| rest);
    let line = line.map(|rest| &rest[..crate::quantity::digits(rest)]).unwrap_or("");
    if let Some(file) = quoted("source_file=\"") {
        buffer.detail = format!("{file}:{line}");
    }
}

fn judge(d: &mut Diagnosis) {
    let figure = |name| d.figures.get(name);
    let needed = [figure(Name::Asked), figure(Name::Total)].into_iter().flatten();
    let needed = needed.max_by_key(|q| q.bytes);
    let (limit, in_use) = (figure(Name::Limit), figure(Name::InUse));
    match (needed, limit, in_use) {
        (Some(needed), Some(limit), _) if needed.bytes > limit.bytes => {
            d.verdict = Verdict::Failure(Live::TooBig);
            d.because = format!("{} are needed, the limit is {}", show(needed), show(limit));
            d.advice = vec![
                "jax.checkpoint(f, policy=jax.checkpoint_policies.nothing_saveable)  # or a smaller batch, or shards".into(),
            ];
        }
        (Some(needed), Some(limit), Some(in_use)) => {
            let fits = needed.bytes <= limit.bytes.saturating_sub(in_use.bytes);
            let live = if fits { Live::Fragmented } else { Live::Limit };
            d.verdict = Verdict::Failure(live);
            d.because = format!(
                "{} are needed beside {} in use of {}",
                show(needed),
                show(in_use),
                show(limit)
            );
            d.advice = match fits {
                true => vec!["XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async".into()],
                false => {
                    vec!["jax.checkpoint(f)  # or drop arrays that are no longer needed".into()]
                }
            };
        }
        _ => {
            d.because = match figure(Name::Asked) {
                Some(asked) => format!(
                    "asked {}; neither the limit nor what was in use is in the text, and the sentence is the same for a \
                     request that is too big and for a device full of live arrays",
                    show(asked)
                ),
                None => "neither the request nor the limit is in the text".into(),
            };
            d.advice = vec![
                "print(jax.local_devices()[0].memory_stats())  # bytes_limit and bytes_in_use, just before the line that failed".into(),
                "print(jax.jit(f).lower(*args).compile().memory_analysis())  # is it the temporaries of one program?".into(),
            ];
        }
    }
    if d.verdict != Verdict::CannotTell {
        d.certainty = Certainty::Shown;
    }
    let lacks = |name: Name| d.figures.get(name).is_none();
    let mut absent = Vec::new();
    for (name, words) in [
        (Name::Asked, "how much was asked for"),
        (Name::Limit, "the limit"),
        (Name::InUse, "what was in use outside this program"),
        (Name::Free, "what was free"),
    ] {
        if lacks(name) {
            absent.push(words.to_string());
        }
    }
    absent.push("the largest free block".into());
    absent.push("other processes".into());
    let temporaries = d.figures.bytes(Name::Temp);
    match temporaries.is_some() && temporaries == d.figures.bytes(Name::Asked) {
        true => d.notes.push("the request is the whole arena of temporaries of one program".into()),
        false if temporaries.is_none() => {
            absent.push("whether the request is one array or the temporaries of a program".into());
        }
        false => {}
    }
    d.absent = absent;
}
