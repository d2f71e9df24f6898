//! What PyTorch's sentence leaves out, how it is misread, and what to try.

use crate::torch::{Backend, Form, Sentence};
use crate::{Diagnosis, Name, Verdict};
use vramlab_memory::Verdict as Live;

/// Fills in what is absent, the notes and the advice.
pub(crate) fn explain(s: &Sentence, d: &mut Diagnosis) {
    d.absent = absent(s, d);
    d.notes = notes(s, d);
    d.advice = advice(s, d);
}

fn absent(s: &Sentence, d: &Diagnosis) -> Vec<String> {
    let mut absent = vec![
        "the tensor's size: the figure is the segment that the allocator asked for",
        "the largest free block",
        "what is alive and which line made it",
        "the version of PyTorch",
    ];
    let lacks = |name: Name| d.figures.get(name).is_none();
    match s.form() {
        Form::Mps => absent.extend(["what is free", "other processes"]),
        Form::Short => absent.push("the processes on the device"),
        Form::Cut | Form::Cached | Form::Reserved | Form::ReservedHint => {
            absent.push("which processes hold the rest of the device");
        }
        _ => {}
    }
    if matches!(s.form(), Form::Cached) || s.form() >= Form::Capacty {
        absent.push("the reserved total; it is allocated + idle");
    }
    if matches!(s.form(), Form::Capacty | Form::Capacity) {
        absent.push("a limit per process, if one was set: this version does not print it");
    }
    if s.backend() == Backend::Generic {
        absent.push("which kind of device");
    }
    if s.own.is_none() && !s.listed.is_empty() {
        absent.push("that a listed process is this very process; only the figures show it");
    }
    if s.own_not_available {
        absent.push("what this process holds: the driver printed its \"not available\"");
    }
    if s.form() != Form::Mps && [Name::Free, Name::InUse, Name::Reserved].into_iter().any(lacks) {
        absent.push("free, allocated or reserved: cut away");
    }
    absent.into_iter().map(String::from).collect()
}

fn notes(s: &Sentence, d: &Diagnosis) -> Vec<String> {
    let mut notes = Vec::new();
    match s.asked.map(|q| q.bytes) {
        Some(asked) if asked == 2 << 20 => {
            notes.push("2 MiB is the segment for every tensor of up to 1 MiB".to_string());
        }
        Some(asked) if asked == 20 << 20 => {
            notes.push("20 MiB is the segment for every tensor of 1 to 10 MiB".to_string());
        }
        _ => {}
    }
    let fragmented = d.verdict == Verdict::Failure(Live::Fragmented);
    if fragmented && s.backend() != Backend::Xpu {
        notes.push(
            "whole cached blocks were given back before this message: what is idle are split remainders, so \
             empty_cache() is not the cure"
                .into(),
        );
    }
    if let (Some(allocated), Some(total)) = (s.allocated, s.total)
        && allocated.bytes > total.bytes
    {
        notes.push(
            "more is allocated than the device has: the driver spilled to host memory".into(),
        );
    }
    if s.private_idle.is_some() {
        notes.push(
            "memory idle in private pools is counted as allocated: what is alive is that much less"
                .into(),
        );
    }
    if d.processes.iter().any(|p| p.ours == Some(true)) {
        notes.push(
            "a listed process is taken for this one: its figure lies just above what is reserved, and pids \
             differ in a container"
                .into(),
        );
    }
    notes
}

fn advice(s: &Sentence, d: &Diagnosis) -> Vec<String> {
    let Verdict::Failure(verdict) = d.verdict else { return open(s, d) };
    match verdict {
        Live::TooBig => too_big(s, d),
        Live::Limit if d.sub == Some("allowed_fraction") => vec![
            format!("torch.cuda.set_per_process_memory_fraction({})", fraction(d)),
            "or lower what is alive: a smaller batch, torch.utils.checkpoint".into(),
        ],
        Live::Limit => live_data(s),
        Live::Fragmented => fragmented(s),
        Live::Cached => vec![
            "g = torch.cuda.CUDAGraph(); with torch.cuda.graph(g, pool=first_graph.pool()): ..."
                .into(),
            "share one pool among graphs, or drop graphs that are no longer replayed".into(),
        ],
        Live::OtherProcess => other_process(d),
    }
}

fn too_big(s: &Sentence, d: &Diagnosis) -> Vec<String> {
    let asked = d.figures.bytes(Name::Asked).unwrap_or(0);
    let limit = d.figures.bytes(Name::Limit).unwrap_or(u64::MAX);
    match asked / 4 > limit {
        true => vec![
            "print(a.shape, b.shape)  # on the line of the traceback: two operands that broadcast to the wrong shape?"
                .into(),
            "a request of many times the device is almost surely a wrong shape or index".into(),
        ],
        false => {
            let mut advice =
                vec!["torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)  # and a smaller batch".into()];
            if s.backend() == Backend::Mps {
                advice.push("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0  # lifts the limit; the system may swap".into());
            }
            advice.push("no setting makes this one request fit: split it into pieces".into());
            advice
        }
    }
}

fn live_data(s: &Sentence) -> Vec<String> {
    let snapshot = match s.backend() {
        Backend::Cuda | Backend::Hip | Backend::Generic => {
            "torch.cuda.memory._record_memory_history()  # then _dump_snapshot(\"oom.pickle\"), to see what is alive"
        }
        Backend::Xpu => "print(torch.xpu.memory_summary())",
        Backend::Mps => {
            "print(torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory())"
        }
    };
    vec![
        "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)  # or a smaller batch"
            .into(),
        snapshot.into(),
    ]
}

fn fragmented(s: &Sentence) -> Vec<String> {
    let asked = s.asked.map_or(512, |q| (q.bytes >> 20).clamp(21, 512));
    let split = format!("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:{asked}");
    let expandable = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
    match (s.backend(), s.form()) {
        (Backend::Mps, _) => vec!["torch.mps.empty_cache()".into()],
        (Backend::Xpu, _) => {
            vec!["torch.xpu.empty_cache()  # between phases whose sizes differ".into()]
        }
        (Backend::Hip, _) => vec![
            split.replace("CUDA", "HIP"),
            format!("{}  # where the driver supports it", expandable.replace("CUDA", "HIP")),
        ],
        (_, Form::Cached) => vec![
            "torch.cuda.empty_cache()  # before the phase with larger tensors; this version has no other remedy".into(),
            "use few distinct sizes: pad batches to fixed lengths".into(),
        ],
        (_, Form::Reserved | Form::ReservedHint) => {
            vec![split, "use few distinct sizes: pad batches to fixed lengths".into()]
        }
        (_, Form::AllocConf | Form::Short) => {
            vec!["PYTORCH_ALLOC_CONF=expandable_segments:True".into()]
        }
        _ => vec![expandable.into(), split],
    }
}

fn other_process(d: &Diagnosis) -> Vec<String> {
    let others: Vec<String> = {
        let mut others: Vec<_> = d.processes.iter().filter(|p| p.ours == Some(false)).collect();
        others.sort_by_key(|p| std::cmp::Reverse(p.held.map(|q| q.bytes)));
        others.iter().map(|p| p.pid.to_string()).collect()
    };
    match others.is_empty() {
        true => vec![
            "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv".into(),
            "the holder may also be another library in this process: the text does not say".into(),
        ],
        false => vec![
            format!("ps -o pid,user,etime,cmd -p {}", others.join(",")),
            "end them if they are yours, or choose another device: CUDA_VISIBLE_DEVICES=1".into(),
        ],
    }
}

/// What may be held, with the request, as a fraction of the device.
fn fraction(d: &Diagnosis) -> String {
    let bytes = |name| d.figures.bytes(name).unwrap_or(0);
    let needed = bytes(Name::Reserved).saturating_add(bytes(Name::Asked));
    let fraction = needed as f64 / bytes(Name::DeviceTotal).max(1) as f64;
    format!("{:.2}", (fraction * 100.0).ceil().min(100.0) / 100.0)
}

fn open(s: &Sentence, d: &Diagnosis) -> Vec<String> {
    match d.sub {
        Some("limit_not_printed") => vec![
            "print(torch.cuda.get_per_process_memory_fraction())  # and grep for set_per_process_memory_fraction".into(),
            "a limit of the container or of another library would look the same".into(),
        ],
        _ if s.form() == Form::Cut => {
            vec!["python train.py 2>&1 | tee run.log  # the whole sentence says free, allocated and reserved".into()]
        }
        _ => vec!["print(torch.cuda.memory_summary())  # in an except torch.cuda.OutOfMemoryError".into()],
    }
}
