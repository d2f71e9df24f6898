//! Counters that a program printed about itself: PyTorch's `memory_allocated` and its kin, JAX's `memory_stats()`.

use crate::clean::Text;
use crate::quantity::{digits, number};
use crate::{Certainty, Diagnosis, Kind, Name, Quantity, Verdict, show};
use vramlab_memory::Verdict as Live;

/// What a counter is called, and which figure it is.
const COUNTERS: [(&str, Name); 8] = [
    ("memory_allocated", Name::InUse),
    ("max_memory_allocated", Name::PeakInUse),
    ("memory_reserved", Name::Reserved),
    ("memory_cached", Name::Reserved),
    ("bytes_in_use", Name::InUse),
    ("peak_bytes_in_use", Name::PeakInUse),
    ("bytes_limit", Name::Limit),
    ("largest_free_block_bytes", Name::LargestFree),
];

/// Sets the figures of the counters in the text that nothing better has set.
pub(crate) fn give(text: &Text, d: &mut Diagnosis) {
    for (counter, name) in COUNTERS {
        d.figures.complete(name, behind(&text.plain, counter).and_then(amount));
    }
    if let Some((free, total)) = behind(&text.plain, "mem_get_info").and_then(two) {
        d.figures.complete(Name::Free, Some(free));
        d.figures.complete(Name::DeviceTotal, Some(total));
        d.figures.complete(Name::Limit, Some(total));
    }
    if let (Some(reserved), Some(in_use)) =
        (d.figures.get(Name::Reserved), d.figures.get(Name::InUse))
    {
        d.figures.complete(Name::IdleReserved, Some(reserved.minus(in_use)));
    }
}

/// Counters beside a failure that does not name memory.
pub(crate) fn read(text: &Text) -> Option<Diagnosis> {
    let mut d = Diagnosis::new(Kind::Counters, "printed counters", Verdict::CannotTell);
    give(text, &mut d);
    d.figures.get(Name::InUse)?;
    let library = [
        "cudnn",
        "cublas",
        "cufft",
        "cusolver",
        "cusparse",
        "nccl",
        "cudaerror",
        "hiperror",
        "miopen",
    ];
    let failed = text.has(&["error", "failed", "not_initialized"]) && text.has(&library);
    let figure = |name| d.figures.get(name);
    let idle = figure(Name::IdleReserved).unwrap_or_default();
    let (free, total) = (figure(Name::Free), figure(Name::DeviceTotal));
    // A cache is large where it holds more than is free, and a tenth of the device.
    let large = free.is_some_and(|free| idle.bytes > free.bytes)
        && total.is_some_and(|total| idle.bytes > total.bytes / 10);
    d.absent = ["how much was asked for", "the largest free block", "other processes"]
        .map(String::from)
        .to_vec();
    if failed && large {
        d.verdict = Verdict::Failure(Live::Cached);
        d.certainty = Certainty::Inferred;
        d.because = format!(
            "PyTorch's cache holds {} idle while {} are free, and a library outside PyTorch could not get its memory",
            show(idle),
            free.map_or("?".into(), show)
        );
        d.absent.push("that memory was the reason".into());
        d.advice = vec!["torch.cuda.empty_cache()  # before the call that failed".into()];
    } else if failed || text.has(&["outofmemory"]) {
        d.because = "something failed; the counters do not show that memory was the reason".into();
        d.advice =
            vec!["CUDA_LAUNCH_BLOCKING=1 python train.py  # names the call that failed".into()];
    } else if text.has(&["traceback", "error:"]) {
        d.verdict = Verdict::NotOom;
        d.certainty = Certainty::Shown;
        d.because = "what failed was not for lack of memory; the counters are by the way".into();
    } else {
        d.verdict = Verdict::NoFailure;
        d.certainty = Certainty::Shown;
        d.because = "counters of a running program; that anything failed is not said".into();
    }
    Some(d)
}

/// What stands behind the counter's name and the signs between. A name that only ends like it is another counter.
fn behind<'a>(text: &'a str, counter: &str) -> Option<&'a str> {
    text.match_indices(counter).find_map(|(at, word)| {
        let own = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let rest = &text[at + word.len()..];
        let value = rest.trim_start_matches([' ', '(', ')', '=', ':', '\'', '"']);
        // Digits at the very end of a text may have lost others.
        let whole = digits(value) < value.len();
        (own && whole
            && value.len() < rest.len()
            && value.starts_with(|c: char| c.is_ascii_digit()))
        .then_some(value)
    })
}

/// A whole number counts bytes; a number with decimals needs its unit.
fn amount(text: &str) -> Option<Quantity> {
    Quantity::or_bytes(text)
}

/// `88080384, 16928342016)`
fn two(text: &str) -> Option<(Quantity, Quantity)> {
    let first = number(text)?;
    let rest = text[digits(text)..].trim_start().strip_prefix(',')?;
    let second = number(rest.trim_start())?;
    let whole = digits(rest.trim_start()) < rest.trim_start().len();
    whole.then_some((Quantity::exact(first), Quantity::exact(second)))
}
