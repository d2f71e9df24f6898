//! PyTorch's sentence, in all its forms: the parenthesis with "cached" (1.0), with "reserved in total" (1.4 on), the
//! sentences with a list of processes (2.1 on, with the "capacty" of that version), with "allowed" and private pools, and
//! what HIP, XPU, MPS and the generic allocator make of it.
//!
//! The labels are read from the squeezed text, so a sentence that was wrapped, quoted or coloured is whole; each figure is
//! found by what stands before or behind it, so a sentence that was cut gives what is left of it.

use crate::clean::Text;
use crate::quantity::{self, Found};
use crate::table::Table;
use crate::{Certainty, Diagnosis, Kind, Name, Process, Quantity, Verdict, show, torch_advice};
use vramlab_memory::Verdict as Live;

/// What a CUDA context and the libraries in it may take beside the allocator: 1.2 GiB.
const CONTEXT: u64 = (12 << 30) / 10;

/// Two printed figures of one process may differ by their rounding and by what changed between two calls.
const SLACK: u64 = 16 << 20;

/// No sentence is longer, process list included.
const LONGEST: usize = 16 << 10;

/// Who wrote the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Cuda,
    Hip,
    Xpu,
    Mps,
    Generic,
}

impl Backend {
    fn word(self) -> &'static str {
        match self {
            Backend::Cuda => "CUDA",
            Backend::Hip => "HIP",
            Backend::Xpu => "XPU",
            Backend::Mps => "MPS",
            Backend::Generic => "generic allocator",
        }
    }
}

/// Which of the forms: they differ in what they print and in what their hints understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// Too little is left to tell.
    Cut,
    Mps,
    /// "cached": idle is stated, reserved is not.
    Cached,
    /// "reserved in total", without and with the hint.
    Reserved,
    ReservedHint,
    /// "capacty", max_split_size_mb.
    Capacty,
    /// "capacity", expandable_segments.
    Capacity,
    /// With "allowed" and "private pools".
    PrivatePools,
    /// PYTORCH_ALLOC_CONF.
    AllocConf,
    /// Sentences without a process list.
    Short,
}

impl Form {
    fn words(self) -> &'static str {
        match self {
            Form::Cut => "cut",
            Form::Mps => "MPS counters",
            Form::Cached => "1.0 to 1.3, \"cached\"",
            Form::Reserved => "1.4 to 1.10, \"reserved in total\"",
            Form::ReservedHint => "1.11 to 2.0, hint at max_split_size_mb",
            Form::Capacty => "2.1, \"capacty\", process list",
            Form::Capacity => "2.2 on, process list, hint at expandable_segments",
            Form::PrivatePools => "2.3 on, allowed and private pools",
            Form::AllocConf => "2.10 on, PYTORCH_ALLOC_CONF",
            Form::Short => "without a process list",
        }
    }
}

/// What one sentence says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sentence {
    pub asked: Option<Quantity>,
    pub total: Option<Quantity>,
    pub free: Option<Quantity>,
    pub allocated: Option<Quantity>,
    pub reserved: Option<Quantity>,
    pub idle: Option<Quantity>,
    pub allowed: Option<Quantity>,
    pub private_idle: Option<Quantity>,
    pub other_allocations: Option<Quantity>,
    pub own: Option<Quantity>,
    /// The driver printed its "not available" for this process.
    pub own_not_available: bool,
    /// "Process N has …".
    pub listed: Vec<(u64, Option<Quantity>)>,
    pub device: Option<u64>,
    pub backend: Option<Backend>,
    pub form: Option<Form>,
}

impl Sentence {
    pub fn backend(&self) -> Backend {
        self.backend.unwrap_or(Backend::Generic)
    }

    pub fn form(&self) -> Form {
        self.form.unwrap_or(Form::Cut)
    }

    /// How much it says.
    fn figures(&self) -> usize {
        let figures = [self.asked, self.total, self.free, self.allocated, self.reserved, self.idle];
        figures.iter().flatten().count()
    }
}

/// Reads the sentences; the one that says most is the diagnosis, others with other figures come later.
pub(crate) fn read(text: &Text, table: &Table) -> Option<Diagnosis> {
    let sentences = sentences(&text.squeezed);
    // The last of equals would win in `max_by_key`; the first failure is the cause.
    let best = sentences.iter().rev().max_by_key(|s| s.figures())?;
    let mut diagnosis = Diagnosis::from_sentence(best, table);
    let mut seen = vec![best.asked];
    for sentence in &sentences {
        if sentence.figures() > 2 && !seen.contains(&sentence.asked) {
            seen.push(sentence.asked);
            diagnosis.later.push(Diagnosis::from_sentence(sentence, table));
        }
    }
    Some(diagnosis)
}

const ANCHOR: &str = "triedtoallocate";

/// The sentences of a squeezed text.
pub(crate) fn sentences(squeezed: &str) -> Vec<Sentence> {
    let anchors: Vec<usize> = squeezed
        .match_indices(ANCHOR)
        .map(|(at, _)| at)
        .filter(|at| !before(squeezed, *at, 60).contains("defaultcpuallocator"))
        .collect();
    let mut found = Vec::new();
    for (n, at) in anchors.iter().enumerate() {
        let start = head(squeezed, *at, if n == 0 { 0 } else { anchors[n - 1] + ANCHOR.len() });
        let end = anchors.get(n + 1).map_or(squeezed.len(), |next| head(squeezed, *next, *at));
        let end = boundary(squeezed, end.min(at + LONGEST));
        let sentence = parse(&squeezed[start..end], squeezed);
        // "You tried to allocate" of another library has neither a device nor a figure of a device.
        if sentence.backend.is_some() || sentence.figures() > 1 {
            found.push(sentence);
        }
    }
    let labels = ["alreadyallocated;", "isallocatedbypytorch", "totalcapacity;"];
    if found.is_empty() && labels.iter().any(|label| squeezed.contains(label)) {
        let start = labels.iter().filter_map(|label| squeezed.find(label)).min().unwrap_or(0);
        let start = boundary(squeezed, start.saturating_sub(LONGEST));
        found.push(parse(&squeezed[start..boundary(squeezed, start + 2 * LONGEST)], squeezed));
    }
    found
}

/// Where the sentence begins whose "Tried to allocate" stands at `at`: MPS puts its counters before it.
fn head(text: &str, at: usize, earliest: usize) -> usize {
    let near = before(text, at, 260);
    let start = match near.rfind("mpsbackendoutofmemory") {
        Some(mps) => at - near.len() + mps,
        None => {
            at - near.len() + near.rfind("outofmemory").map_or(near.len(), |o| o.saturating_sub(4))
        }
    };
    boundary(text, start.max(earliest.min(at)))
}

/// At most `length` bytes before `at`.
fn before(text: &str, at: usize, length: usize) -> &str {
    &text[boundary(text, at.saturating_sub(length))..at]
}

fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn parse(text: &str, whole: &str) -> Sentence {
    let mut sentence = Sentence::default();
    for found in quantity::scan(text) {
        take(text, &found, &mut sentence);
    }
    sentence.backend = backend(text);
    sentence.device = device(text);
    sentence.form = Some(form(text, whole, &sentence));
    if sentence.backend.is_none() && sentence.form() >= Form::Cached && sentence.figures() > 1 {
        sentence.backend = Some(Backend::Generic);
    }
    sentence
}

/// A label: what stands right before a figure or right behind it, and whose figure that is.
struct Label {
    front: &'static [&'static str],
    back: &'static [&'static str],
    slot: fn(&mut Sentence) -> &mut Option<Quantity>,
}

/// The labels of all forms, squeezed. Those in front serve a sentence that was cut behind the figure.
static LABELS: &[Label] = &[
    Label { front: &[ANCHOR], back: &[], slot: |s| &mut s.asked },
    Label {
        front: &["totalcapacityof", "totalcapactyof"],
        back: &["totalcapacity"],
        slot: |s| &mut s.total,
    },
    Label {
        front: &["mpsallocated:", "oftheallocatedmemory"],
        back: &["alreadyallocated", "isallocatedbypytorch"],
        slot: |s| &mut s.allocated,
    },
    Label { front: &["ofwhich"], back: &["free;", "isfree"], slot: |s| &mut s.free },
    Label { front: &[], back: &["reservedintotal"], slot: |s| &mut s.reserved },
    Label {
        front: &["isallocatedbypytorch,and", "cudagraphs),and"],
        back: &["cached", "isreservedbypytorch"],
        slot: |s| &mut s.idle,
    },
    Label {
        front: &["isallocatedbypytorch,with"],
        back: &["allocatedinprivatepools"],
        slot: |s| &mut s.private_idle,
    },
    Label { front: &["maxallowed:"], back: &["allowed"], slot: |s| &mut s.allowed },
    Label { front: &["otherallocations:"], back: &[], slot: |s| &mut s.other_allocations },
    Label { front: &["thisprocesshas"], back: &[], slot: |s| &mut s.own },
];

/// Gives one figure to the label beside it. The first figure under a label counts.
fn take(text: &str, found: &Found, sentence: &mut Sentence) {
    let (front, back) = (&text[..found.range.start], &text[found.range.end..]);
    // A text that begins with a figure may have lost its first digits.
    if front.trim_start_matches(['.', ',']).is_empty() {
        return;
    }
    if let Some(pid) = listed_pid(front) {
        return sentence.listed.push((pid, found.figure));
    }
    sentence.own_not_available |= found.figure.is_none() && front.ends_with("thisprocesshas");
    let fits = |label: &&Label| {
        label.front.iter().any(|words| front.ends_with(words))
            || label.back.iter().any(|words| back.starts_with(words))
    };
    let slot = match LABELS.iter().find(fits) {
        Some(label) => (label.slot)(sentence),
        None if gpu_in_parenthesis(front) => &mut sentence.total,
        None => return,
    };
    if slot.is_none() {
        *slot = found.figure;
    }
}

/// "(gpu0;"
fn gpu_in_parenthesis(front: &str) -> bool {
    let Some(front) = front.strip_suffix(';') else { return false };
    let word = front.trim_end_matches(|c: char| c.is_ascii_digit());
    word.len() < front.len() && word.ends_with("(gpu")
}

/// The pid of "process4242has".
fn listed_pid(front: &str) -> Option<u64> {
    let front = front.strip_suffix("has")?;
    let word = front.trim_end_matches(|c: char| c.is_ascii_digit());
    word.ends_with("process").then(|| front[word.len()..].parse().ok())?
}

fn backend(text: &str) -> Option<Backend> {
    let at = text.find("outofmemory")?;
    let words = [
        ("cuda", Backend::Cuda),
        ("hip", Backend::Hip),
        ("xpu", Backend::Xpu),
        ("mpsbackend", Backend::Mps),
    ];
    let named = words.iter().find(|(word, _)| text[..at].ends_with(word));
    Some(named.map_or(Backend::Generic, |(_, backend)| *backend))
}

/// The index in "(gpu0;" or "gpu0hasatotal".
fn device(text: &str) -> Option<u64> {
    text.match_indices("gpu").find_map(|(at, word)| {
        let rest = &text[at + word.len()..];
        let behind = &rest[quantity::digits(rest)..];
        (behind.starts_with(';') || behind.starts_with("hasatotal"))
            .then(|| quantity::number(rest))?
    })
}

fn form(text: &str, whole: &str, s: &Sentence) -> Form {
    let has = |word: &str| text.contains(word);
    let alloc_conf = has("pytorch_alloc_conf");
    match () {
        () if s.backend == Some(Backend::Mps) || has("mpsallocated:") => Form::Mps,
        () if has("reservedintotal") => {
            match has("ifreservedmemoryis>>") || has("max_split_size_mb") {
                true => Form::ReservedHint,
                false => Form::Reserved,
            }
        }
        () if has("cached)") || s.idle.is_some() && has("alreadyallocated") => Form::Cached,
        () if has("capacty") => Form::Capacty,
        () if s.backend == Some(Backend::Xpu) => Form::Short,
        () if has("totalcapacityof") || has("isallocatedbypytorch") => match () {
            () if alloc_conf && s.own.is_none() && s.listed.is_empty() && !s.own_not_available => {
                Form::Short
            }
            () if alloc_conf => Form::AllocConf,
            () if s.private_idle.is_some() || s.allowed.is_some() => Form::PrivatePools,
            // The class was renamed in 2.5.
            () if whole.contains("torch.outofmemoryerror") => Form::PrivatePools,
            () => Form::Capacity,
        },
        () => Form::Cut,
    }
}

/// The figures that the rules weigh.
struct Facts {
    asked: Option<Quantity>,
    total: Option<Quantity>,
    free: Option<Quantity>,
    allocated: Option<Quantity>,
    idle: Option<Quantity>,
    idle_is_a_difference: bool,
    allowed: Option<Quantity>,
    private_idle: Option<Quantity>,
    others: Option<Quantity>,
    others_inferred: bool,
    beside: Option<Quantity>,
}

impl Diagnosis {
    fn from_sentence(s: &Sentence, table: &Table) -> Diagnosis {
        let reserved = match (s.reserved, s.allocated, s.idle) {
            (Some(reserved), ..) => Some(reserved),
            (None, Some(allocated), Some(idle)) => Some(allocated + idle),
            _ => None,
        };
        let idle = s.idle.or_else(|| Some(s.reserved?.minus(s.allocated?)));
        let outside = (|| Some(s.total?.minus(s.free?).minus(reserved?)))();
        let processes = processes(s, reserved, table);
        let own = s.own.or_else(|| processes.iter().find(|p| p.ours == Some(true))?.held);
        // A list that was cut at either end may lack processes.
        let whole_list = s.free.is_some() && s.allocated.is_some();
        let listed = others(&processes).filter(|_| whole_list);
        let unseen = outside.filter(|_| s.allocated.is_some()).map(|outside| {
            // What this process holds beside its pool is not somebody else's.
            let ours = match (own, reserved) {
                (Some(own), Some(reserved)) => own.minus(reserved).bytes,
                _ => CONTEXT,
            };
            Quantity { bytes: outside.bytes.saturating_sub(ours), ..outside }
        });
        let unseen = unseen.filter(|unseen| listed.is_none() && unseen.bytes > 0);
        let unseen = unseen.filter(|unseen| own.is_none() || unseen.bytes > CONTEXT);
        let facts = Facts {
            asked: s.asked,
            total: s.total,
            free: s.free,
            allocated: s.allocated,
            idle,
            idle_is_a_difference: s.idle.is_none(),
            allowed: s.allowed,
            private_idle: s.private_idle,
            others: listed.or(unseen),
            others_inferred: listed.is_none(),
            beside: s.other_allocations,
        };
        let (verdict, sub, certainty) = judge(&facts);
        let grammar = format!("PyTorch, {}: {}", s.backend().word(), s.form().words());
        let mut d = Diagnosis::new(Kind::PytorchSentence, grammar, verdict);
        (d.sub, d.certainty) = (sub, certainty);
        let figures = [
            (Name::Asked, s.asked),
            (Name::Limit, s.allowed.or(s.total)),
            (Name::DeviceTotal, s.total),
            (Name::InUse, s.allocated),
            (Name::Reserved, reserved),
            (Name::IdleReserved, idle),
            (Name::PrivatePoolIdle, s.private_idle),
            (Name::Free, s.free),
            (Name::OwnProcess, own),
            (Name::OtherProcesses, listed),
            (Name::OutsidePytorch, outside),
            (Name::OtherAllocations, s.other_allocations),
        ];
        for (name, figure) in figures {
            d.figures.set(name, figure);
        }
        if let Some(device) = s.device {
            d.counts.insert("device_index", device);
        }
        d.processes = processes;
        d.because = because(&facts, verdict, sub);
        torch_advice::explain(s, &mut d);
        d
    }
}

/// The processes of the sentence, or else of a table beside it, each marked as ours or not where the figures tell.
///
/// In a container the pids of the driver are not those of `getpid`, so "Process N" may be the very process that failed:
/// it is the one whose figure lies just above what PyTorch reserved.
fn processes(s: &Sentence, reserved: Option<Quantity>, table: &Table) -> Vec<Process> {
    let mut processes: Vec<Process> = match s.listed.is_empty() && s.own.is_none() {
        false => s
            .listed
            .iter()
            .map(|(pid, held)| Process { pid: *pid, held: *held, name: None, ours: None })
            .collect(),
        true => table.processes_of(s.device),
    };
    let above = |p: &Process| {
        let (held, reserved) = (p.held?, reserved?);
        let slack = held.tolerance.saturating_add(reserved.tolerance).saturating_add(SLACK);
        let over = held.bytes.saturating_add(slack).checked_sub(reserved.bytes)?;
        (over <= CONTEXT + 2 * slack).then_some(over)
    };
    let own = match s.own {
        Some(_) => None,
        None => {
            let candidates = processes.iter().enumerate();
            candidates.filter_map(|(n, p)| Some((above(p)?, n))).min().map(|(_, n)| n)
        }
    };
    if s.own.is_some() || own.is_some() || reserved.is_some() {
        for (n, process) in processes.iter_mut().enumerate() {
            process.ours = Some(own == Some(n));
        }
    }
    processes
}

fn others(processes: &[Process]) -> Option<Quantity> {
    let others = processes.iter().filter(|p| p.ours == Some(false)).filter_map(|p| p.held);
    others.reduce(|a, b| a + b)
}

type Judged = (Verdict, Option<&'static str>, Certainty);

/// The rules, in their order.
fn judge(f: &Facts) -> Judged {
    let shown = |live| (Verdict::Failure(live), None, Certainty::Shown);
    let open = |sub| (Verdict::CannotTell, sub, Certainty::Open);
    let Some(asked) = f.asked else { return open(None) };
    let exceeds = |limit: Option<Quantity>| limit.is_some_and(|limit| asked.bytes > limit.bytes);
    if exceeds(f.allowed) || exceeds(f.total) {
        return shown(Live::TooBig);
    }
    let Some(free) = f.free else {
        return match (f.allowed, f.allocated) {
            // MPS prints neither free nor reserved: its own limit is all that it weighs.
            (Some(allowed), Some(allocated)) => {
                let held = allocated + f.beside.unwrap_or_default();
                match held.bytes.saturating_add(asked.bytes) > allowed.bytes {
                    true => shown(Live::Limit),
                    false => open(None),
                }
            }
            _ => open(None),
        };
    };
    if asked.bytes <= free.bytes {
        return match f.allowed {
            Some(_) => (Verdict::Failure(Live::Limit), Some("allowed_fraction"), Certainty::Shown),
            None => open(Some("limit_not_printed")),
        };
    }
    let (Some(idle), Some(_)) = (f.idle, f.allocated) else { return open(None) };
    let within = free + idle;
    // A difference of two figures of two decimals cannot judge a request of its own size.
    let doubt = within.tolerance.saturating_add(asked.tolerance);
    if f.idle_is_a_difference && asked.bytes.abs_diff(within.bytes) <= doubt {
        return open(Some("too_close"));
    }
    if asked.bytes <= within.bytes {
        return shown(Live::Fragmented);
    }
    if asked.bytes <= within.bytes.saturating_add(f.private_idle.unwrap_or_default().bytes) {
        return (Verdict::Failure(Live::Cached), Some("private_pools"), Certainty::Shown);
    }
    match f.others {
        Some(others) if asked.bytes <= within.bytes.saturating_add(others.bytes) => {
            let certainty = if f.others_inferred { Certainty::Inferred } else { Certainty::Shown };
            (Verdict::Failure(Live::OtherProcess), None, certainty)
        }
        _ => shown(Live::Limit),
    }
}

/// The figures that prove it, as a sentence.
fn because(f: &Facts, verdict: Verdict, sub: Option<&str>) -> String {
    let say = |q: Option<Quantity>| q.map_or("?".to_string(), show);
    let (asked, free, idle) = (say(f.asked), say(f.free), say(f.idle));
    match (verdict, sub) {
        (Verdict::Failure(Live::TooBig), _) => {
            let allowed = f.allowed.filter(|x| f.asked.is_some_and(|a| a.bytes > x.bytes));
            match allowed {
                Some(allowed) => format!("asked {asked}, allowed are {}", show(allowed)),
                None => format!("asked {asked}, the whole device has {}", say(f.total)),
            }
        }
        (Verdict::Failure(Live::Limit), Some(_)) => format!(
            "asked {asked}, {free} are free on the device, but this process may hold only {}",
            say(f.allowed)
        ),
        (Verdict::Failure(Live::Limit), None) if f.free.is_none() => format!(
            "asked {asked} beside {} in use of {} allowed",
            say(f.allocated),
            say(f.allowed)
        ),
        (Verdict::Failure(Live::Limit), None) => format!(
            "asked {asked}, {free} free and {idle} idle: {} of live data fill the device",
            say(f.allocated)
        ),
        (Verdict::Failure(Live::Fragmented), _) => {
            format!(
                "asked {asked}, {free} free and {idle} reserved but idle, in pieces that cannot join"
            )
        }
        (Verdict::Failure(Live::Cached), _) => {
            format!("asked {asked}, {} lie idle in private pools", say(f.private_idle))
        }
        (Verdict::Failure(Live::OtherProcess), _) => {
            format!("asked {asked}, {free} free; others hold {}", say(f.others))
        }
        (_, Some("limit_not_printed")) => format!(
            "asked {asked} and {free} were free, yet it failed: a limit that this text does not print, such as a fraction \
             per process"
        ),
        (_, Some("too_close")) => format!(
            "asked {asked}; free and idle make {free} + {idle}, a difference of rounded figures that is too coarse for it"
        ),
        _ => match f.asked {
            Some(_) => format!("asked {asked}; the text lacks the figures to weigh it against"),
            None => "the text does not say how much was asked for".into(),
        },
    }
}
