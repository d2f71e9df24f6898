//! Every stage as text, for `%explain`.

use crate::emit::Draft;
use crate::graph::{Graph, Kind, NodeId};
use std::fmt::Write;
use vramlab_ir::kernel::{Access, Body, Kernel, Loop, Per, Place, Routine, Slot, Trips};
use vramlab_ir::{MemorySpace, Stage};

/// Rows of a table beyond which only a count is printed.
const ROWS: usize = 200;
/// Columns of the plan's picture.
const WIDTH: usize = 48;

/// Bytes as people say them: `512 B`, `1.5 KiB`, `64.0 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = None;
    for name in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = Some(name);
    }
    match unit {
        Some(unit) => format!("{value:.1} {unit}"),
        None => format!("{bytes} B"),
    }
}

/// The simplified program: one line a value that anything uses.
pub(crate) fn graph(graph: &Graph) -> String {
    let live = graph.live();
    let mut text = String::new();
    let mut lines = 0;
    for (at, node) in graph.nodes.iter().enumerate().filter(|&(at, _)| live[at]) {
        lines += 1;
        if lines > ROWS {
            continue;
        }
        let _ = write!(text, "%{at} = {}", node.op);
        match &node.kind {
            Kind::Param(index) => {
                let _ = write!(text, " {index}");
                if let Some(name) = graph.arg_names.get(*index as usize).filter(|n| !n.is_empty()) {
                    let _ = write!(text, " {name}");
                }
            }
            Kind::Empty => text.push_str(" (no elements)"),
            Kind::View { offset, strides } => {
                let _ = write!(text, " view[offset={offset}, strides={strides:?}]");
            }
            Kind::Reduce { outer, reduced, inner, .. } => {
                let _ = write!(text, " reduce[{outer} x {reduced}* x {inner}]");
            }
            Kind::Dot { batch, m, n, k } => {
                let _ = write!(text, " product[batch={batch}, m={m}, n={n}, k={k}]");
            }
            Kind::Output(number) => {
                let _ = write!(text, " result {number} of");
            }
            Kind::Scratch => text.push_str(" works in bytes of"),
            _ => {}
        }
        if let Some(value) = graph.literal(NodeId(at as u32)) {
            let _ = write!(text, " {value}");
        }
        for input in &node.inputs {
            let _ = write!(text, " {input}");
        }
        let Kind::Region(region) = node.kind else {
            let _ = writeln!(text, " : {}", node.ty);
            continue;
        };
        text.push('\n');
        let image = graph.images.get(region as usize).and_then(Option::as_ref);
        for (name, inside) in image.iter().flat_map(|image| &image.insides) {
            let _ = writeln!(text, "  {name}:");
            text.push_str(&indented(inside, "    "));
        }
    }
    more(&mut text, lines);
    let results: Vec<String> = graph.results.iter().map(NodeId::to_string).collect();
    let _ = writeln!(text, "return {}", results.join(" "));
    text
}

fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}\n")).collect()
}

fn more(text: &mut String, lines: usize) {
    if lines > ROWS {
        let _ = writeln!(text, "… and {} more", lines - ROWS);
    }
}

/// The kernels: what each holds, its loop, what it reads and stores.
pub(crate) fn kernels(
    graph: &Graph,
    drafts: &[&Draft],
    stored: &[bool],
    fused_bytes: u64,
) -> String {
    let ops: usize = graph.computing().count();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} → {}; {} of intermediates never stored",
        count(ops, "op"),
        count(drafts.len(), "kernel"),
        size(fused_bytes)
    );
    for (at, draft) in drafts.iter().enumerate().take(ROWS) {
        let kernel = &draft.kernel;
        let _ = writeln!(text, "kernel {at} {}: {}", kernel.name, shape(kernel));
        let kept = |id: &&NodeId| {
            let node = graph.node(**id);
            let computed = !node.inputs.is_empty() && !matches!(node.kind, Kind::Region(_));
            computed && !stored[id.index()]
        };
        let inner: Vec<NodeId> = draft.nodes.iter().filter(kept).copied().collect();
        if !inner.is_empty() {
            let bytes = inner.iter().map(|&id| graph.ty(id).bytes()).sum();
            let listed: Vec<String> =
                inner.iter().take(12).map(|&id| format!("{id} {}", graph.node(id).op)).collect();
            let end = if inner.len() > 12 { ", …" } else { "" };
            let _ = writeln!(text, "  within: {}{end} ({})", listed.join(", "), size(bytes));
        }
        let _ = writeln!(
            text,
            "  reads {}, writes {}, {} flops",
            size(kernel.bytes_read),
            size(kernel.bytes_written),
            kernel.flops
        );
        text.push_str(&indented(&inside(kernel), "  "));
    }
    more(&mut text, drafts.len());
    text
}

/// The kernels inside a loop or a branch.
fn inside(kernel: &Kernel) -> String {
    match &kernel.body {
        Body::Loop(body) => {
            let mut text = match &body.trips {
                Trips::While { condition, .. } => routine("condition", condition),
                Trips::Counted { .. } => String::new(),
            };
            text.push_str(&routine("body", &body.body));
            text
        }
        Body::Branch(body) => {
            routine("when true", &body.on_true) + &routine("when false", &body.on_false)
        }
        _ => String::new(),
    }
}

fn routine(role: &str, routine: &Routine) -> String {
    let kernels = count(routine.kernels.len(), "kernel");
    let mut text = format!("{role}: {kernels}, temporaries {}\n", size(routine.temp_bytes));
    for (at, kernel) in routine.kernels.iter().enumerate().take(ROWS) {
        let _ = writeln!(text, "  kernel {at} {}: {}", kernel.name, shape(kernel));
        text.push_str(&indented(&inside(kernel), "    "));
    }
    more(&mut text, routine.kernels.len());
    text
}

fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// A kernel's loop nest in words.
fn shape(kernel: &Kernel) -> String {
    match &kernel.body {
        Body::Rows(rows) => {
            let dims = dims(&[rows.outer.as_slice(), &[rows.columns]].concat());
            let whole = rows.stages.iter().all(|s| s.per == Per::Columns) && rows.stages.len() == 1;
            let reads = reads(&rows.reads);
            match (whole, rows.row_scalars) {
                (true, 0) => format!("map over {dims}, {reads}"),
                _ => format!(
                    "rows {dims} in {}, {reads}, {} kept",
                    count(rows.stages.len(), "stage"),
                    count(rows.kept as usize, "row")
                ),
            }
        }
        Body::Columns(body) => format!(
            "reduces {} of {}, {}",
            body.reduced,
            dims(&[body.outer.as_slice(), &[body.reduced, body.columns]].concat()),
            reads(&body.reads)
        ),
        Body::Dot(dot) => {
            let batch = dims(&dot.batch);
            let batch = if dot.batch.is_empty() { String::new() } else { format!("{batch} x ") };
            let end = match &dot.epilogue {
                Some(epilogue) => {
                    format!(", epilogue of {}", count(epilogue.insts.len(), "instruction"))
                }
                None => String::new(),
            };
            format!("product {batch}{} x {} x {}{end}", dot.m, dot.n, dot.k)
        }
        Body::Conv(conv) => {
            let of = |each: fn(&vramlab_ir::kernel::Space) -> usize| {
                dims(&conv.space.iter().map(each).collect::<Vec<usize>>())
            };
            let (results, taps) = (of(|axis| axis.results), of(|axis| axis.taps));
            let (n, c, o) = (conv.examples, conv.channels, conv.results);
            format!("convolves {n} x {results} x {o}, taps {taps} x {c}")
        }
        Body::Cumulative(body) => {
            let end = if body.reverse { ", from the end" } else { "" };
            let dims = dims(&[body.outer, body.length, body.inner]);
            format!("runs along {} of {dims}{end}", body.length)
        }
        Body::Scatter(body) => {
            let dims = dims(&[body.outer, body.extent, body.inner]);
            format!("adds {} updates to {dims}", body.outer * body.count * body.inner)
        }
        Body::Transfer(body) => format!("copies {} to {}", size(body.bytes), body.to.name()),
        Body::Loop(body) => looped(body),
        Body::Branch(_) => "one of two".to_string(),
    }
}

fn looped(body: &Loop) -> String {
    let times = match body.trips {
        Trips::Counted { length, reverse: false } => count(length, "iteration"),
        Trips::Counted { length, reverse: true } => {
            format!("{} from the last", count(length, "iteration"))
        }
        Trips::While { .. } => "while its condition holds".to_string(),
    };
    let swapped = (0..).zip(&body.next).filter(|(at, next)| at != *next).count();
    let carries = count(body.inits.len(), "carry").replace("carrys", "carries");
    match swapped {
        0 => format!("{times}, {carries} updated in place"),
        _ => format!("{times}, {carries}, {} change places", count(swapped, "buffer")),
    }
}

fn dims(dims: &[usize]) -> String {
    let words: Vec<String> = dims.iter().map(usize::to_string).collect();
    words.join(" x ")
}

fn reads(reads: &[Access]) -> String {
    count(reads.len(), "read")
}

/// The order of kernels with the bytes alive beside the arguments.
pub(crate) fn schedule(kernels: &[&Draft], live: &[u64]) -> String {
    let width = kernels.iter().take(ROWS).map(|d| d.kernel.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (at, (draft, &live)) in kernels.iter().zip(live).enumerate().take(ROWS) {
        let _ = writeln!(text, "{at:>4}  {:width$}  live {}", draft.kernel.name, size(live));
    }
    more(&mut text, kernels.len());
    text
}

/// When a slot is in use, by kernel, inclusive.
pub(crate) type Life = Option<(usize, usize)>;

/// The plan as a strip chart: a row per buffer, a column per kernel (or per several).
pub(crate) fn plan(slots: &[Slot], lives: &[Life], kernels: usize) -> String {
    let mut text = String::new();
    let per = kernels.div_ceil(WIDTH).max(1);
    let columns = kernels.div_ceil(per);
    let mut order: Vec<usize> = (0..slots.len()).filter(|&s| lives[s].is_some()).collect();
    order.sort_by_key(|&s| (place_key(slots[s].place), lives[s]));
    let shown: Vec<usize> = order.iter().copied().take(ROWS).collect();
    let places: Vec<String> = shown.iter().map(|&s| place(slots[s].place)).collect();
    let sizes: Vec<String> = shown.iter().map(|&s| size(slots[s].ty.bytes())).collect();
    let width = |words: &[String]| words.iter().map(|w| w.chars().count()).max().unwrap_or(0);
    let (place_width, size_width) = (width(&places), width(&sizes));
    for (row, &slot) in shown.iter().enumerate() {
        let (first, last) = lives[slot].expect("filtered above");
        let strip: String = (0..columns)
            .map(|c| if c * per <= last && first < (c + 1) * per { '█' } else { '·' })
            .collect();
        let _ = writeln!(
            text,
            "{:<place_width$}  {:>size_width$}  {strip}  {}",
            places[row], sizes[row], slots[slot].label
        );
    }
    more(&mut text, order.len());
    text
}

fn place_key(place: Place) -> (u8, u64) {
    match place {
        Place::Argument { index } => (0, index as u64),
        Place::Result { index } => (1, index as u64),
        Place::Temporary { offset } => (2, offset),
        Place::Host { offset } => (3, offset),
    }
}

fn place(place: Place) -> String {
    match place {
        Place::Argument { index } => format!("argument {index}"),
        Place::Result { index } => format!("result buffer {index}"),
        Place::Temporary { offset } => format!("temporary +{offset}"),
        Place::Host { offset } => format!("host +{offset}"),
    }
}

/// Bytes that a kernel copies to a memory from the other one. A loop without a known end is counted
/// once, and of a branch the side that copies more.
fn moved(kernel: &Kernel, to: MemorySpace) -> u64 {
    let all =
        |routine: &Routine| -> u64 { routine.kernels.iter().map(|kernel| moved(kernel, to)).sum() };
    match &kernel.body {
        Body::Transfer(transfer) if transfer.to == to => transfer.bytes,
        Body::Loop(looped) => {
            let times = match looped.trips {
                Trips::Counted { length, .. } => length as u64,
                Trips::While { .. } => 1,
            };
            times * all(&looped.body)
        }
        Body::Branch(branch) => all(&branch.on_true).max(all(&branch.on_false)),
        _ => 0,
    }
}

/// Buffers with the kernels between which they are in use.
fn list(text: &mut String, shown: &[usize], slots: &[Slot], lives: &[Life]) {
    for &slot in shown.iter().take(ROWS) {
        let Some((first, last)) = lives[slot] else { continue };
        let Slot { ty, label, .. } = &slots[slot];
        let _ = writeln!(text, "  {label} {ty} {}, kernels {first} to {last}", size(ty.bytes()));
    }
    more(text, shown.len());
}

/// What a kernel of a gradient's program is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Forward,
    Recompute,
    Backward,
    /// What is done with the gradient.
    Update,
}

impl Part {
    const ALL: [Part; 4] = [Part::Forward, Part::Recompute, Part::Backward, Part::Update];

    fn name(self) -> &'static str {
        match self {
            Part::Forward => "forward",
            Part::Recompute => "recompute",
            Part::Backward => "backward",
            Part::Update => "update",
        }
    }

    /// Of each kernel. One that computes several parts together is there for the gradient.
    fn of(graph: &Graph, drafts: &[&Draft]) -> Vec<Part> {
        let mut behind: Vec<bool> = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let of_gradient = |input: &NodeId| behind[input.index()];
            behind.push(node.stage == Stage::Backward || node.inputs.iter().any(of_gradient));
        }
        let part = |draft: &&Draft| {
            let nodes = || draft.nodes.iter().chain([&draft.order]);
            let any = |stage: Stage| nodes().any(|&id| graph.node(id).stage == stage);
            match () {
                () if any(Stage::Backward) => Part::Backward,
                () if any(Stage::Recompute) => Part::Recompute,
                () if behind[draft.order.index()] => Part::Update,
                () => Part::Forward,
            }
        };
        drafts.iter().map(part).collect()
    }
}

/// Forward, recomputation and backward, what lives from the one to the other, and where the peak
/// is, which is `beside` the arguments; `None` when the program holds no gradient.
pub(crate) fn gradient(
    graph: &Graph,
    drafts: &[&Draft],
    slots: &[Slot],
    lives: &[Life],
    (beside, alive): (u64, &[u64]),
) -> Option<String> {
    let stages = Part::of(graph, drafts);
    if stages.iter().all(|&stage| stage == Part::Forward) {
        return None;
    }
    let mut text = String::new();
    for stage in Part::ALL {
        let own: Vec<&Draft> =
            drafts.iter().zip(&stages).filter(|(_, s)| **s == stage).map(|(d, _)| *d).collect();
        let flops: u64 = own.iter().map(|draft| draft.kernel.flops).sum();
        if !own.is_empty() {
            let kernels = count(own.len(), "kernel");
            let _ = writeln!(text, "{}: {kernels}, {flops} flops", stage.name());
        }
    }
    let kept = |slot: &usize| {
        let life = lives[*slot].filter(|_| *slot >= graph.params.len());
        life.filter(|&(first, last)| {
            let read = [Part::Recompute, Part::Backward].contains(&stages[last]);
            stages[first] == Part::Forward && read
        })
    };
    let residuals: Vec<usize> = (0..slots.len()).filter(|slot| kept(slot).is_some()).collect();
    let (offloaded, held): (Vec<usize>, Vec<usize>) =
        residuals.into_iter().partition(|&slot| slots[slot].ty.is_host());
    let bytes = |of: &[usize]| size(of.iter().map(|&slot| slots[slot].ty.bytes()).sum());
    let buffers = count(held.len(), "residual");
    let _ = writeln!(text, "{buffers}, {} from forward to backward", bytes(&held));
    list(&mut text, &held, slots, lives);
    let [out, back]: [u64; 2] = [MemorySpace::PinnedHost, MemorySpace::Device]
        .map(|to| drafts.iter().map(|draft| moved(&draft.kernel, to)).sum());
    if out + back > 0 {
        let buffers = count(offloaded.len(), "residual");
        let _ = writeln!(
            text,
            "offloaded to host: {buffers}, {} in pinned_host; moved: {} there, {} back",
            bytes(&offloaded),
            size(out),
            size(back)
        );
        list(&mut text, &offloaded, slots, lives);
    }
    let peak = (0..alive.len()).max_by_key(|&at| (alive[at], std::cmp::Reverse(at)))?;
    let (stage, name) = (stages[peak].name(), &drafts[peak].kernel.name);
    let used = match size(alive[peak]) {
        used if used != size(beside) => format!(", {used} of them in use"),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "peak: {} beside the arguments{used}, at kernel {peak} of {} ({name}, {stage})",
        size(beside),
        drafts.len()
    );
    Some(text)
}
