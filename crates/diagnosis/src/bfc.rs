//! The dump of the BFC allocator of TensorFlow and of JAX on GPUs: its request, bins, chunks and statistics.
//!
//! What the dump prints and what it means differ: `LargestFreeBlock` and `Reserved` are always 0B, so the largest free
//! block is read from the chunks; the limit has two decimals while "rounded to" is exact; the waste inside chunks stands
//! only in the bins, as "client-requested".

use crate::clean::Text;
use crate::quantity::{Units, digits, number};
use crate::{Certainty, Diagnosis, Kind, Name, Owner, Quantity, Verdict, jax, show};
use vramlab_memory::Verdict as Live;

/// What one dump says.
#[derive(Clone, Debug, Default)]
struct Dump {
    allocator: Option<String>,
    asked: Option<Quantity>,
    printed: Option<Quantity>,
    /// From the line of the op: shape × width of the type, and the line's words.
    tensor: Option<(u64, String)>,
    op: Option<String>,
    regions: Vec<Region>,
    /// Chunks before the first region line of a text that was cut.
    stray: bool,
    /// Bin size and what the clients asked for in it.
    bins: Vec<(u64, Quantity)>,
    /// The line behind the last bin was seen.
    bins_end: bool,
    in_use: Option<Quantity>,
    pool: Option<Quantity>,
    limit: Option<Quantity>,
    peak: Option<Quantity>,
}

#[derive(Clone, Debug, Default)]
struct Region {
    size: u64,
    used: u64,
    free: u64,
    largest_free: u64,
}

/// Rounding of the allocator.
const GRANULE: u64 = 256;

pub(crate) fn read(text: &Text) -> Option<Diagnosis> {
    let marks = [
        "bfc_allocator",
        "bfcallocatordump",
        "sumtotalofin-usechunks",
        "memory_limit_:",
        "chunksinuse:",
        "nextregionofsize",
        "oomwhenallocatingtensor",
    ];
    if !text.has(&marks) {
        return None;
    }
    let dumps = dumps(text);
    let mut diagnoses = dumps.iter().map(diagnosis);
    let mut first = diagnoses.next()?;
    first.later = diagnoses.collect();
    // A failed program adds its plan to the dump.
    jax::buffer_statistics(text, &mut first);
    Some(first)
}

/// One dump for each request that failed; a text without a request is one dump.
fn dumps(text: &Text) -> Vec<Dump> {
    let mut dumps = vec![Dump::default()];
    let mut asked_once = false;
    // The first line may have lost its beginning: `InUse:` would be what is left of `MaxInUse:`.
    let first = text.plain.lines().next().unwrap_or("").trim_start();
    for line in text.whole_figures().skip(usize::from(first.starts_with("InUse:"))) {
        if let Some((_, rest)) = line.split_once("ran out of memory trying to allocate ") {
            if asked_once || dumps.last().is_some_and(|d| d.limit.is_some()) {
                dumps.push(Dump::default());
            }
            asked_once = true;
            if let Some(dump) = dumps.last_mut() {
                dump.request(line, rest);
            }
        } else if let Some(dump) = dumps.last_mut() {
            dump.line(line);
        }
    }
    dumps.retain(Dump::says_something);
    dumps
}

/// The figure behind `label`.
fn behind(line: &str, label: &str) -> Option<Quantity> {
    let (_, rest) = line.split_once(label)?;
    Quantity::or_bytes(rest.trim_start())
}

/// The number behind `label`.
fn count(line: &str, label: &str) -> Option<u64> {
    let (_, rest) = line.split_once(label)?;
    let rest = rest.trim_start();
    // A number at the very end of a text that was cut may have lost digits; the callers check sums.
    number(rest)
}

impl Dump {
    fn says_something(&self) -> bool {
        self.asked.is_some()
            || self.printed.is_some()
            || self.limit.is_some()
            || self.pool.is_some()
            || self.tensor.is_some()
            || !self.regions.is_empty()
            || !self.bins.is_empty()
    }

    fn request(&mut self, line: &str, rest: &str) {
        self.printed = Quantity::at_start(rest, Units::Any).and_then(|(figure, _)| figure);
        self.asked = rest.split_once("(rounded to ").and_then(|(_, n)| {
            n[digits(n)..].starts_with(')').then(|| number(n).map(Quantity::exact))?
        });
        self.allocator = between(line, "Allocator (", ")").map(String::from);
        self.op = line.split_once("requested by op ").map(|(_, op)| op.trim().to_string());
    }

    fn line(&mut self, line: &str) {
        if let Some(size) = count(line, "Next region of size ") {
            self.regions.push(Region { size, ..Region::default() });
        } else if let Some(size) = chunk(line, "InUse at ") {
            self.chunk(size, true);
        } else if let Some(size) = chunk(line, "Free  at ").or_else(|| chunk(line, "Free at ")) {
            self.chunk(size, false);
        } else if line.contains("client-requested in use in bin") {
            self.bin(line);
        } else if line.contains("] Bin for ") || line.contains(", Chunk State:") {
            self.bins_end = true;
        } else if let Some(sum) = behind(line, "Sum Total of in-use chunks: ") {
            self.in_use = Some(sum);
        } else if let Some(pool) = behind(line, "otal size in pool: ") {
            self.pool = Some(pool);
            self.limit = self.limit.or_else(|| behind(line, "memory_limit_: "));
        } else if let Some(pool) = behind(line, "total_region_allocated_bytes_: ") {
            self.pool = Some(pool);
            self.limit = self.limit.or_else(|| behind(line, "memory_limit_: "));
        } else if let Some(rest) = line.trim().strip_prefix("Limit:") {
            self.limit = Quantity::or_bytes(rest.trim()).or(self.limit);
        } else if let Some(rest) = line.trim().strip_prefix("InUse:") {
            self.in_use = Quantity::or_bytes(rest.trim()).or(self.in_use);
        } else if let Some(rest) = line.trim().strip_prefix("MaxInUse:") {
            self.peak = Quantity::or_bytes(rest.trim());
        } else if self.tensor.is_none() {
            self.tensor = tensor(line);
        }
    }

    fn chunk(&mut self, size: u64, used: bool) {
        let Some(region) = self.regions.last_mut() else {
            self.stray = true;
            return;
        };
        if used {
            region.used = region.used.saturating_add(size);
        } else {
            region.free = region.free.saturating_add(size);
            region.largest_free = region.largest_free.max(size);
        }
    }

    fn bin(&mut self, line: &str) {
        let size = between(line, "Bin (", ")").and_then(number);
        let requested = line.split_once("in use in bin. ").map(|(_, rest)| rest);
        let requested =
            requested.and_then(|rest| Quantity::at_start(rest.trim_start(), Units::Any));
        if let (Some(size), Some((Some(requested), _))) = (size, requested) {
            self.bins.push((size, requested));
        }
    }

    /// Does every region's list of chunks fill it, and do the sums agree with all that is printed?
    fn chunks_are_complete(&self) -> bool {
        let full = |r: &Region| r.used.checked_add(r.free) == Some(r.size);
        let sum =
            |part: fn(&Region) -> u64| self.regions.iter().map(part).fold(0, u64::saturating_add);
        let agrees = |printed: Option<Quantity>, sum: u64| match printed {
            Some(printed) => printed.may_be(sum),
            None => true,
        };
        !self.regions.is_empty()
            && !self.stray
            && self.regions.iter().all(full)
            && (self.pool.is_some() || self.in_use.is_some())
            && agrees(self.pool, sum(|r| r.size))
            && agrees(self.in_use, sum(|r| r.used))
    }

    fn asked(&self) -> Option<Quantity> {
        let from_tensor = || {
            let (bytes, _) = self.tensor.as_ref()?;
            Some(Quantity::exact(bytes.checked_next_multiple_of(GRANULE)?))
        };
        self.asked.or_else(from_tensor).or(self.printed)
    }

    /// What clients asked for in chunks of more than the smallest size: the smallest hold the framework's own scalars.
    fn requested(&self) -> Option<Quantity> {
        let doubling = self.bins.windows(2).all(|pair| pair[0].0.checked_mul(2) == Some(pair[1].0));
        let complete = self.bins_end && doubling && self.bins.first()?.0 == GRANULE;
        let ours = self.bins.iter().filter(|(size, _)| *size > GRANULE).map(|(_, q)| *q);
        ours.reduce(|a, b| a + b).filter(|_| complete)
    }
}

/// The size in `InUse at 7f1761ffd040 of size 16777216 next …`.
fn chunk(line: &str, label: &str) -> Option<u64> {
    let (_, rest) = line.split_once(label)?;
    count(rest, " of size ")
}

fn between<'a>(line: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// Bytes and words of `OOM when allocating tensor with shape[4096,4096] and type float on …`.
fn tensor(line: &str) -> Option<(u64, String)> {
    let (_, rest) = line.split_once("OOM when allocating tensor with shape[")?;
    let (shape, rest) = rest.split_once(']')?;
    let kind: String = rest
        .strip_prefix(" and type ")?
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    let width = match kind.as_str() {
        "bool" | "int8" | "uint8" | "qint8" | "quint8" | "float8_e5m2" | "float8_e4m3fn" => 1,
        "half" | "bfloat16" | "int16" | "uint16" | "qint16" | "quint16" => 2,
        "float" | "int32" | "uint32" | "qint32" => 4,
        "double" | "int64" | "uint64" | "complex64" => 8,
        "complex128" => 16,
        _ => return None,
    };
    let dimensions = shape.split(',').map(str::trim).filter(|d| !d.is_empty());
    let bytes = dimensions
        .map(str::parse::<u64>)
        .try_fold(width, |product: u64, dimension| product.checked_mul(dimension.ok()?))?;
    Some((bytes, format!("tensor [{shape}] of {kind}")))
}

fn diagnosis(dump: &Dump) -> Diagnosis {
    let name = dump.allocator.as_deref().unwrap_or("name not in the text");
    let grammar = format!("BFC allocator dump ({name})");
    let mut d = Diagnosis::new(Kind::BfcDump, grammar, Verdict::CannotTell);
    let complete = dump.chunks_are_complete();
    let sum = |part: fn(&Region) -> u64| {
        let total = dump.regions.iter().map(part).fold(0, u64::saturating_add);
        complete.then_some(Quantity::exact(total))
    };
    let in_use = sum(|r| r.used).or(dump.in_use);
    let pool = sum(|r| r.size).or(dump.pool);
    let free = sum(|r| r.free).or_else(|| Some(pool?.minus(in_use?)));
    let largest = dump.regions.iter().map(|r| r.largest_free).max().filter(|_| complete);
    let unrounded = dump.tensor.as_ref().map(|(bytes, _)| Quantity::exact(*bytes));
    let figures = [
        (Name::Asked, dump.asked()),
        (Name::AskedUnrounded, unrounded.or(dump.printed)),
        (Name::Limit, dump.limit),
        (Name::InUse, in_use),
        (Name::Reserved, pool),
        (Name::Free, free),
        (Name::LargestFree, largest.map(Quantity::exact)),
        (Name::CanStillGrow, dump.limit.zip(pool).map(|(limit, pool)| limit.minus(pool))),
        (Name::Requested, dump.requested()),
        (Name::PeakInUse, dump.peak),
    ];
    for (name, figure) in figures {
        d.figures.set(name, figure);
    }
    judge(dump, complete, &mut d);
    if let Some((bytes, words)) = &dump.tensor {
        d.owners.push(Owner {
            name: "the request".into(),
            detail: words.clone(),
            held: Quantity::exact(*bytes),
        });
    }
    absent(dump, complete, &mut d);
    d
}

fn judge(dump: &Dump, complete: bool, d: &mut Diagnosis) {
    let figure = |name| d.figures.get(name);
    let (Some(asked), Some(limit), Some(in_use)) =
        (figure(Name::Asked), figure(Name::Limit), figure(Name::InUse))
    else {
        d.because = match figure(Name::Asked) {
            Some(asked) => format!("asked {}; the dump's figures are cut away", show(asked)),
            None => "the text does not say how much was asked for".into(),
        };
        d.advice = vec!["python train.py 2>&1 | tee run.log  # the whole dump tells".into()];
        return;
    };
    let (verdict, sub, because, advice) = if asked.bytes > limit.bytes {
        let because = format!("asked {}, the limit is {}", show(asked), show(limit));
        (Live::TooBig, None, because, too_big())
    } else if asked.bytes <= limit.minus(in_use).bytes {
        let free = figure(Name::Free).map_or("some".into(), show);
        let because = format!(
            "asked {}, in use {} of {}: {free} lie free in pieces that cannot join",
            show(asked),
            show(in_use),
            show(limit)
        );
        let (sub, advice) = fragmented(dump, complete, asked, d);
        (Live::Fragmented, sub, because, advice)
    } else {
        let because = format!("asked {}, in use {} of {}", show(asked), show(in_use), show(limit));
        let requested = figure(Name::Requested);
        let wasted = requested.is_some_and(|r| asked.bytes <= limit.bytes.saturating_sub(r.bytes));
        (Live::Limit, wasted.then_some("waste_inside_chunks"), because, live_data(wasted))
    };
    d.verdict = Verdict::Failure(verdict);
    let shown = complete || verdict != Live::Fragmented;
    d.certainty = if shown { Certainty::Shown } else { Certainty::Inferred };
    (d.sub, d.because, d.advice) = (sub, because, advice);
}

/// Regions that could not join, or chunks between live ones.
fn fragmented(
    dump: &Dump,
    complete: bool,
    asked: Quantity,
    d: &Diagnosis,
) -> (Option<&'static str>, Vec<String>) {
    let fixed_pool =
        "XLA_PYTHON_CLIENT_PREALLOCATE=true  # TensorFlow: TF_FORCE_GPU_ALLOW_GROWTH=false";
    let stream_ordered =
        "TF_GPU_ALLOCATOR=cuda_malloc_async  # JAX: XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async";
    if !complete {
        return (None, vec![stream_ordered.into(), fixed_pool.into()]);
    }
    let empty = dump.regions.iter().filter(|r| r.used == 0).map(|r| r.size);
    let empty = empty.fold(0, u64::saturating_add);
    let grow = d.figures.bytes(Name::CanStillGrow).unwrap_or(0);
    match asked.bytes <= empty.saturating_add(grow) {
        true => (Some("regions"), vec![fixed_pool.into(), stream_ordered.into()]),
        false => (
            Some("chunks"),
            vec![
                stream_ordered.into(),
                "drop the small arrays between the large ones first".into(),
            ],
        ),
    }
}

fn too_big() -> Vec<String> {
    vec![
        "split the array, or shard it over devices; no setting below this limit makes it fit"
            .into(),
        "XLA_CLIENT_MEM_FRACTION=.95  # if the limit is a fraction of a larger device".into(),
    ]
}

fn live_data(wasted: bool) -> Vec<String> {
    let mut advice =
        vec!["jax.checkpoint(block)  # or a smaller batch, or fewer live arrays".to_string()];
    if wasted {
        advice.insert(
            0,
            "XLA_PYTHON_CLIENT_PREALLOCATE=true  # one region splits its chunks; what rounding wastes would hold the request"
                .into(),
        );
    }
    advice
}

fn absent(dump: &Dump, complete: bool, d: &mut Diagnosis) {
    let mut absent = vec!["what the live tensors are", "who freed what", "other processes"];
    if dump.limit.is_some_and(|limit| limit.tolerance > 0) {
        absent.push("the limit in exact bytes: two decimals are printed");
    }
    match (complete, dump.limit.is_some()) {
        (true, _) => {
            absent.push("the largest free block as a stated figure: it is taken from the chunks")
        }
        (false, true) => absent.push("the list of chunks, so the largest free block"),
        (false, false) => absent.push("limit, in use, pool and the list of chunks: cut away"),
    }
    if dump.limit.is_some() {
        d.notes.push("LargestFreeBlock and Reserved print 0B whatever they are".into());
    }
    d.absent = absent.into_iter().map(String::from).collect();
    if let Some(op) = &dump.op {
        d.notes.push(format!("requested by op {op}"));
    }
}
