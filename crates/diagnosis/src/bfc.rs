//! The dump of the BFC allocator of TensorFlow and of JAX on GPUs: its request, bins, chunks and statistics.
//!
//! What the dump prints and what it means differ: `LargestFreeBlock` and `Reserved` are always 0B, so the largest free
//! block is read from the chunks; the limit has two decimals while "rounded to" is exact; the waste inside chunks stands
//! only in the bins, as "client-requested".

use crate::clean::{Record, Text};
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
    /// Sizes of the chunks in use.
    used: Vec<u64>,
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

/// How lines of a dump begin that have no mark of the logger.
static STARTS: &[&str] = &[
    "Limit:",
    "InUse:",
    "MaxInUse:",
    "NumAllocs:",
    "MaxAllocSize:",
    "Reserved:",
    "PeakReserved:",
    "LargestFreeBlock:",
    "Stats:",
    "Bin (",
    "Bin for ",
    "Next region of size",
    "InUse at",
    "Chunk at",
    "Free  at",
    "Free at",
    "Sum Total of",
    "Total size in pool",
    "total_region_allocated",
    "Allocator (",
    "If the cause is memory fragmentation",
    "Current allocation summary",
    "Traceback",
];

/// One dump for each request that failed; a text without a request is one dump.
fn dumps(text: &Text) -> Vec<Dump> {
    let mut dumps = vec![Dump::default()];
    let mut asked_once = false;
    // The first line may have lost its beginning: `InUse:` would be what is left of `MaxInUse:`.
    let first = text.plain.lines().next().unwrap_or("").trim_start();
    let lost = usize::from(first.starts_with("InUse:"));
    for record in text.records(STARTS).iter().skip(lost) {
        if record.squeezed.contains(REQUEST) {
            if asked_once || dumps.last().is_some_and(|d| d.limit.is_some()) {
                dumps.push(Dump::default());
            }
            asked_once = true;
            if let Some(dump) = dumps.last_mut() {
                dump.request(record);
            }
        } else if let Some(dump) = dumps.last_mut() {
            dump.record(record);
        }
    }
    dumps.retain(Dump::says_something);
    dumps
}

/// What the request says, squeezed.
const REQUEST: &str = "ranoutofmemorytryingtoallocate";

/// What stands behind `label` where no other name ends with it: `InUse:` is no part of `MaxInUse:`.
fn rest<'a>(squeezed: &'a str, label: &str) -> Option<&'a str> {
    squeezed.match_indices(label).find_map(|(at, _)| {
        let own = !squeezed[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        own.then(|| &squeezed[at + label.len()..])
    })
}

/// The figure behind `label`.
fn behind(squeezed: &str, label: &str) -> Option<Quantity> {
    Quantity::or_bytes(rest(squeezed, label)?)
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

    fn request(&mut self, record: &Record) {
        let asked = record.squeezed.split_once(REQUEST).map_or("", |(_, rest)| rest);
        self.printed = Quantity::at_start(asked, Units::Any).and_then(|(figure, _)| figure);
        self.asked = asked.split_once("(roundedto").and_then(|(_, n)| {
            n[digits(n)..].starts_with(')').then(|| number(n).map(Quantity::exact))?
        });
        self.allocator = between(&record.plain, "Allocator (", ")").map(String::from);
        let op = record.plain.split_once("requested by op ").map(|(_, op)| op);
        self.op = op.and_then(|op| op.split_whitespace().next()).map(String::from);
    }

    fn record(&mut self, record: &Record) {
        let line = record.squeezed.as_str();
        if let Some((_, size)) = line.split_once("nextregionofsize") {
            self.regions.extend(number(size).map(|size| Region { size, ..Region::default() }));
        } else if let Some(size) = chunk(line, "inuseat").or_else(|| chunk(line, "chunkat")) {
            self.chunk(size, true);
        } else if let Some(size) = chunk(line, "freeat") {
            self.chunk(size, false);
        } else if line.contains("client-requestedinuseinbin") {
            self.bin(line);
        } else if line.contains("]binfor") || line.contains(",chunkstate:") {
            self.bins_end = true;
        } else if let Some((_, sum)) = line.split_once("sumtotalofin-usechunks:") {
            self.in_use = Quantity::or_bytes(sum);
        } else if let Some((_, pool)) = line
            .split_once("otalsizeinpool:")
            .or_else(|| line.split_once("total_region_allocated_bytes_:"))
        {
            self.pool = Quantity::or_bytes(pool);
            self.limit = self.limit.or_else(|| behind(line, "memory_limit_:"));
        } else if let Some(limit) = behind(line, "limit:") {
            self.limit = Some(limit);
        } else if let Some(in_use) = behind(line, "maxinuse:") {
            self.peak = Some(in_use);
        } else if let Some(in_use) = behind(line, "inuse:") {
            self.in_use = Some(in_use);
        } else if self.tensor.is_none() {
            self.tensor = tensor(&record.plain);
        }
    }

    fn chunk(&mut self, size: u64, used: bool) {
        let Some(region) = self.regions.last_mut() else {
            self.stray = true;
            return;
        };
        if used {
            self.used.push(size);
            region.used = region.used.saturating_add(size);
        } else {
            region.free = region.free.saturating_add(size);
            region.largest_free = region.largest_free.max(size);
        }
    }

    fn bin(&mut self, line: &str) {
        let size = between(line, "bin(", ")").and_then(number);
        let requested = line.split_once("inuseinbin.").and_then(|(_, rest)| {
            // The unit would run on into the next word.
            Some(rest.split_once("client-requested")?.0)
        });
        let requested = requested.and_then(|rest| Quantity::at_start(rest, Units::Any));
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
    fn requested(&self, complete: bool) -> Option<Quantity> {
        let doubling = self.bins.windows(2).all(|pair| pair[0].0.checked_mul(2) == Some(pair[1].0));
        let whole = self.bins_end && doubling && self.bins.first()?.0 == GRANULE;
        let last = self.bins.last()?.0;
        let ours = self.bins.iter().filter(|(size, _)| *size > GRANULE).map(|(bin, printed)| {
            // Nobody asks for more than his chunk.
            let above = if *bin == last { u64::MAX } else { bin * 2 };
            let held = self.used.iter().filter(|used| (*bin..above).contains(*used));
            let most = if complete { held.copied().fold(0, u64::saturating_add) } else { u64::MAX };
            roundest(*printed, most)
        });
        ours.reduce(|a, b| a + b).filter(|_| whole)
    }
}

/// The roundest count up to `most` that is printed as this figure: sizes of arrays are multiples of large powers of two
/// far more often than not. How far the truth may be from it stays with it.
fn roundest(printed: Quantity, most: u64) -> Quantity {
    let low = printed.bytes.saturating_sub(printed.tolerance);
    let high = printed.bytes.saturating_add(printed.tolerance).min(most).max(low);
    let fits = |shift: &u32| (high >> shift) << shift >= low;
    let shift = (0..63).rev().find(fits).unwrap_or(0);
    let bytes = (high >> shift) << shift;
    Quantity { bytes, tolerance: (high - bytes).max(bytes - low) }
}

/// The size in `InUse at 7f1761ffd040 of size 16777216 next …`, squeezed.
fn chunk(line: &str, label: &str) -> Option<u64> {
    let (_, rest) = line.split_once(label)?;
    number(rest.split_once("ofsize")?.1)
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
        (Name::Requested, dump.requested(complete)),
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
    if let Some(requested) = d.figures.get(Name::Requested).filter(|q| q.tolerance > 0) {
        d.notes.push(format!(
            "what is alive was asked for as {} bytes, give or take {}: the bins print two decimals, and the text cannot tell \
             the last digits",
            requested.bytes, requested.tolerance
        ));
    }
    if let Some(op) = &dump.op {
        d.notes.push(format!("requested by op {op}"));
    }
}
