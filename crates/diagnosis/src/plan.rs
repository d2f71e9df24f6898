//! What XLA writes about a program's memory with `--xla_dump_to`: the buffer assignment, the live ranges, the memory usage
//! report. Plans: nothing failed, no device is in sight.

use crate::clean::Text;
use crate::quantity::{Units, digits, number};
use crate::{Diagnosis, Kind, Name, Owner, Quantity, Verdict, show};

/// As many owners as somebody reads.
const OWNERS: usize = 20;

pub(crate) fn read(text: &Text) -> Option<Diagnosis> {
    let mut d = assignment(text).or_else(|| live_range(text)).or_else(|| report(text))?;
    let mut absent = vec![
        "any failure: this is a plan, not an error",
        "a device's limit",
        "memory of other programs and of other arrays alive",
        "the framework's pools",
    ];
    match d.kind {
        Kind::LiveRange => absent.push("sizes of what is not alive at the peak, and offsets"),
        Kind::MemoryReport => absent.extend([
            "which block holds temporaries, arguments or outputs: they are not labelled",
            "the names of instructions",
        ]),
        _ => {}
    }
    d.absent = absent.into_iter().map(String::from).collect();
    d.keep_largest_owners(OWNERS);
    Some(d)
}

/// What an allocation is for, by the words behind its size.
#[derive(Default)]
struct Assignment {
    total: u64,
    argument: u64,
    output: u64,
    temp: u64,
    constant_and_thread_local: u64,
    donated: u64,
    allocations: usize,
}

/// ```text
/// BufferAssignment:
/// allocation 3: size 8388608, preallocated-temp:
///  value: <64 wrapped_tanh @0> (size=1048576,offset=6291456): f32[512,512]{1,0}
/// ```
fn assignment(text: &Text) -> Option<Diagnosis> {
    let mut sums = Assignment::default();
    let mut owners: Vec<Owner> = Vec::new();
    let mut place = String::new();
    let (mut cut, mut open) = (false, 0);
    for line in text.lines().map(str::trim) {
        cut |=
            sums.allocations > 0 && line.starts_with("allocation ") && allocation(line).is_none();
        cut |= line.starts_with("value: ") && value(line, "").is_none();
        if let Some((index, size, rest)) = allocation(line) {
            sums.add(size, rest);
            open = size;
            place = format!("allocation {index}, {}", purpose(rest));
        } else if let Some(owner) = value(line, &place).filter(|_| sums.allocations > 0) {
            if end(line) == Some(open) {
                open = 0;
            }
            // The closing section lists the same values again.
            if !owners.iter().any(|o| o.name == owner.name) {
                owners.push(owner);
            }
        } else if line.starts_with("Used values:") || line.starts_with("Total bytes used") {
            break;
        }
    }
    if sums.allocations == 0 {
        return None;
    }
    // The values of an allocation reach to its end.
    cut |= open > 0 || !ends_whole(text);
    let mut d = Diagnosis::new(Kind::BufferAssignment, "XLA buffer assignment", Verdict::NoFailure);
    if cut {
        d.because =
            "a plan that was cut: sums of a part would say nothing about the program".into();
        d.notes.push("the text ends within an allocation".into());
        d.advice = vec!["read the whole *-buffer-assignment.txt".into()];
        d.owners = owners;
        return Some(d);
    }
    let exact = |bytes| Some(Quantity::exact(bytes));
    let largest = owners.iter().map(|o| o.held.bytes).max();
    for (name, figure) in [
        (Name::Total, exact(sums.total)),
        (Name::Needed, exact(sums.total)),
        (Name::Argument, exact(sums.argument)),
        (Name::Output, exact(sums.output)),
        (Name::Temp, exact(sums.temp)),
        (Name::ConstantAndThreadLocal, exact(sums.constant_and_thread_local)),
        (Name::Donated, exact(sums.donated)),
        (Name::LargestValue, largest.map(Quantity::exact)),
    ] {
        d.figures.set(name, figure);
    }
    d.because = format!(
        "a plan: the program needs {}, of which {} are arguments, {} outputs and {} temporaries",
        show(Quantity::exact(sums.total)),
        show(Quantity::exact(sums.argument)),
        show(Quantity::exact(sums.output)),
        show(Quantity::exact(sums.temp)),
    );
    d.notes.push("values of one allocation share its bytes at different times".into());
    d.advice = match sums.temp >= sums.argument.max(sums.output) {
        true => vec!["jax.checkpoint(block)  # temporaries are the largest part".into()],
        false if sums.donated == 0 => {
            vec![
                "jax.jit(f, donate_argnums=(0,))  # an output may take the place of an argument"
                    .into(),
            ]
        }
        false => vec![
            "jax.jit(f).lower(*args).compile().memory_analysis()  # the same figures live".into(),
        ],
    };
    d.owners = owners;
    Some(d)
}

/// Does the text end behind a whole value, or with something else than allocations and values?
fn ends_whole(text: &Text) -> bool {
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("");
    match last.starts_with("alloc") || last.starts_with("val") {
        true => value(last, "").is_some_and(|v| v.detail.ends_with(['}', ']'])),
        false => true,
    }
}

impl Assignment {
    fn add(&mut self, size: u64, words: &str) {
        let has = |word: &str| words.contains(word);
        self.allocations += 1;
        let add = |sum: &mut u64| *sum = sum.saturating_add(size);
        add(&mut self.total);
        let (parameter, output) = (has("parameter "), has("maybe-live-out"));
        if parameter {
            add(&mut self.argument);
        }
        if output {
            add(&mut self.output);
        }
        if parameter && output {
            add(&mut self.donated);
        }
        if has("preallocated-temp") {
            add(&mut self.temp);
        }
        if !parameter && !output && (has("thread-local") || has("constant")) {
            add(&mut self.constant_and_thread_local);
        }
    }
}

/// Index, size and the words behind of `allocation 3: size 8388608, preallocated-temp:`; other versions put an address
/// before the size.
fn allocation(line: &str) -> Option<(u64, u64, &str)> {
    let rest = line.strip_prefix("allocation ")?;
    let index = number(rest)?;
    let (_, rest) = rest.split_once("size ")?;
    let size = number(rest)?;
    let rest = rest[digits(rest)..].strip_prefix(',')?;
    Some((index, size, rest.trim().trim_end_matches(':')))
}

/// Where a value ends within its allocation.
fn end(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("(size=")?;
    let (_, offset) = rest.split_once(",offset=")?;
    number(rest)?.checked_add(number(offset)?)
}

fn purpose(words: &str) -> &'static str {
    let purposes = [
        ("preallocated-temp", "temporaries"),
        ("parameter ", "argument"),
        ("maybe-live-out", "output"),
        ("thread-local", "thread-local"),
        ("constant", "constant"),
    ];
    purposes.iter().find(|(word, _)| words.contains(word)).map_or("other", |(_, name)| name)
}

/// ` value: <64 wrapped_tanh @0> (size=1048576,offset=6291456): f32[512,512]{1,0}`
fn value(line: &str, place: &str) -> Option<Owner> {
    let rest = line.strip_prefix("value: <")?;
    let (name, rest) = rest.split_once('>')?;
    let (_, rest) = rest.split_once("(size=")?;
    let held = Quantity::exact(number(rest)?);
    let shape = rest.split_once("): ").map_or("", |(_, shape)| shape.trim());
    let name = name.split_once(' ').map_or(name, |(_, name)| name);
    let name = name.trim_end_matches(" @0").to_string();
    Some(Owner { name, detail: format!("{shape}  {place}").trim().to_string(), held })
}

/// ```text
/// HloLiveRange (max 18):
///   Live ranges at 11 (peak):
///     add_tanh_fusion{}: 1048576 bytes (cumulative: 1048576 bytes)
/// ```
fn live_range(text: &Text) -> Option<Diagnosis> {
    if !text.plain.contains("HloLiveRange") && !text.plain.contains("BufferLiveRange:") {
        return None;
    }
    let mut d = Diagnosis::new(Kind::LiveRange, "XLA live ranges", Verdict::NoFailure);
    // The list of the peak is whole where something else follows it.
    let (mut peak, mut ended) = (None, false);
    for line in text.lines().map(str::trim) {
        ended |= peak.is_some() && line.starts_with("Stack trace breakdown for peak");
        let Some((name, rest)) = line.split_once("}: ") else { continue };
        let Some((size, rest)) = rest.split_once(" bytes (cumulative: ") else { continue };
        let (Ok(size), Some(sum)) = (size.parse(), number(rest)) else { continue };
        let name = name.split('{').next().unwrap_or(name).to_string();
        d.owners.push(Owner {
            name,
            detail: "alive at the peak".into(),
            held: Quantity::exact(size),
        });
        peak = Some(sum).max(peak);
    }
    let peak = peak.filter(|_| ended);
    d.figures.set(Name::PeakLive, peak.map(Quantity::exact));
    d.because = match peak {
        Some(peak) => format!(
            "a plan: order and lives of values; {} are alive at the peak",
            show(Quantity::exact(peak))
        ),
        None => "a plan: order and lives of values, no sizes".into(),
    };
    d.advice =
        vec!["read the *-buffer-assignment.txt beside it: it has the sizes and the places".into()];
    Some(d)
}

/// ```text
/// Total bytes: 4194328 (4.00MiB)
///   cumulative_size;       size;       offset; used_by_n_values; shapes_list
///     2.00MiB(100%);    2.00MiB;            0;                2; 2×f32[2,4,256,256]
/// ```
fn report(text: &Text) -> Option<Diagnosis> {
    if !text.plain.contains("cumulative_size;") && !text.plain.contains("Memory Space: ") {
        return None;
    }
    let totals = text.lines().filter_map(|line| line.trim().strip_prefix("Total bytes:"));
    // `Total bytes: 4194328 (4.00MiB)`: the parenthesis shows that no digit is missing.
    let total = totals.filter_map(|rest| {
        let rest = rest.trim();
        number(rest).filter(|_| rest[digits(rest)..].starts_with(" ("))
    });
    let total = total.reduce(u64::saturating_add);
    let mut d = Diagnosis::new(Kind::MemoryReport, "XLA memory usage report", Verdict::NoFailure);
    for line in text.lines() {
        let cells: Vec<&str> = line.split(';').map(str::trim).collect();
        let [cumulative, size, _, _, shapes] = cells.as_slice() else { continue };
        if !cumulative.contains('%') {
            continue;
        }
        let Some((Some(printed), _)) = Quantity::at_start(size, Units::Any) else { continue };
        d.owners.push(row(printed, shapes));
    }
    let largest = d.owners.iter().map(|o| o.held).max_by_key(|q| q.bytes);
    d.figures.set(Name::Total, total.map(Quantity::exact));
    d.figures.set(Name::Needed, total.map(Quantity::exact));
    d.figures.set(Name::LargestValue, largest);
    d.because = match total {
        Some(total) => format!("a plan: the program needs {}", show(Quantity::exact(total))),
        None => "a plan, cut before its total".into(),
    };
    d.notes.push("only the total is exact; the rows are rounded".into());
    d.advice = vec![
        "read the *-buffer-assignment.txt beside it: it tells arguments from temporaries".into(),
    ];
    Some(d)
}

/// One row. A shape tells the exact size that the row rounds.
fn row(printed: Quantity, shapes: &str) -> Owner {
    let sizes = shapes.split_inclusive(']').filter_map(shape_bytes);
    let exact = sizes.filter(|bytes| printed.may_be(*bytes)).max().map(Quantity::exact);
    Owner { name: shapes.to_string(), detail: String::new(), held: exact.unwrap_or(printed) }
}

/// Bytes of `f32[2,4,256,256]`, whatever stands before it.
pub(crate) fn shape_bytes(text: &str) -> Option<u64> {
    let (kind, dimensions) = text.strip_suffix(']')?.rsplit_once('[')?;
    let letters = kind.len() - kind.trim_end_matches(|c: char| c.is_ascii_alphanumeric()).len();
    let kind = &kind[kind.len() - letters..];
    let width = match kind {
        "pred" | "s8" | "u8" => 1,
        "s16" | "u16" | "f16" | "bf16" => 2,
        "s32" | "u32" | "f32" => 4,
        "s64" | "u64" | "f64" | "c64" => 8,
        "c128" => 16,
        kind if kind.starts_with("f8") => 1,
        _ => return None,
    };
    let dimensions = dimensions.split(',').map(str::trim).filter(|d| !d.is_empty());
    dimensions.map(str::parse::<u64>).try_fold(width, |bytes: u64, d| bytes.checked_mul(d.ok()?))
}
