//! Errors without figures of a device: bare CUDA errors, libraries that could not start, the host's memory, and texts that
//! are about something else.

use crate::clean::Text;
use crate::quantity::{Units, digits};
use crate::{Diagnosis, Kind, Name, Quantity, Verdict, show};

/// A mark in the squeezed text, and what it means.
struct Mark {
    words: &'static [&'static str],
    grammar: &'static str,
    verdict: Verdict,
    sub: Option<&'static str>,
    because: &'static str,
    advice: &'static str,
}

/// In this order: the more a mark says, the earlier it stands.
static MARKS: &[Mark] = &[
    Mark {
        words: &[
            "oom-kill:",
            "outofmemory:kill",
            "cgroupoutofmemory",
            "invokedoom-killer",
            "oomkilled",
            "oom_kill",
        ],
        grammar: "kernel log",
        verdict: Verdict::HostMemory,
        sub: None,
        because: "the kernel killed the process because the host's memory, or its control group's, ran out",
        advice: "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.peak  # and: free -h",
    },
    Mark {
        words: &[
            "defaultcpuallocator",
            "std::bad_alloc",
            "cannotallocatememory",
            "enomem",
            "unabletoallocate",
        ],
        grammar: "host allocation",
        verdict: Verdict::HostMemory,
        sub: None,
        because: "an allocation in the host's memory failed",
        advice: "free -h; ulimit -v",
    },
    Mark {
        words: &[
            "outofsharedmemory",
            "insufficientsharedmemory",
            "iskilledbysignal:buserror",
            "increasetheshm",
        ],
        grammar: "shared memory",
        verdict: Verdict::HostMemory,
        sub: None,
        because: "a worker ran out of shared memory, which is the host's",
        advice: "df -h /dev/shm  # docker run --shm-size=8g, or num_workers=0",
    },
    Mark {
        words: &[
            "cuda_error_out_of_memory",
            "cudaerrormemoryallocation",
            "cudaerror:outofmemory",
            "cudaerror2:",
            "cudamallocfailed",
            "hiperroroutofmemory",
            "hiperror:outofmemory",
            "cublas_status_alloc_failed",
            "cudnn_status_alloc_failed",
            "cufft_alloc_failed",
            "cusparse_status_alloc_failed",
            "cusolver_status_alloc_failed",
            "outofmemory",
            "failedtoallocate",
        ],
        grammar: "bare device error",
        verdict: Verdict::CannotTell,
        sub: None,
        because: "the device refused memory; the text has no figures",
        advice: "nvidia-smi  # while it runs: who holds what",
    },
    Mark {
        words: &[
            "cudnn_status_not_initialized",
            "cublas_status_not_initialized",
            "cusolver_status_not_initialized",
            "cudnn_status_internal_error",
            "miopenstatusinternalerror",
        ],
        grammar: "library that could not start",
        verdict: Verdict::CannotTell,
        sub: None,
        because: "a library could not start; a device without free memory is a common reason, and the text does not say",
        advice: "print(torch.cuda.mem_get_info(), torch.cuda.memory_reserved())  # before the call that failed",
    },
];

pub(crate) fn read(text: &Text) -> Option<Diagnosis> {
    // Python's own, not PyTorch's OutOfMemoryError.
    let python = || {
        let mut found = text.plain.match_indices("MemoryError");
        found.any(|(at, _)| !text.plain[..at].ends_with("OutOf"))
    };
    let mark = MARKS.iter().find(|mark| text.has(mark.words));
    let mut d = match mark {
        Some(mark) => from_mark(mark),
        None if python() => from_mark(&MARKS[1]),
        None => killed(text)?,
    };
    let asked = asked(&text.squeezed);
    d.figures.set(Name::Asked, asked);
    if d.verdict == Verdict::HostMemory {
        host_figures(text, &mut d);
    } else if let Some(asked) = asked {
        d.because =
            format!("the device refused {}; limit and use are not in the text", show(asked));
    }
    let lacks = |name: Name| d.figures.get(name).is_none();
    let on_device = d.verdict != Verdict::HostMemory;
    let absent = [
        (lacks(Name::Asked), "how much was asked for"),
        (lacks(Name::Limit) && lacks(Name::HostLimit), "the limit"),
        (lacks(Name::InUse), "what was in use"),
        (true, "what was free"),
        (on_device, "the largest free block"),
        (on_device, "other processes"),
        (!on_device, "anything about the device"),
    ];
    let absent = absent.iter().filter(|(absent, _)| *absent);
    d.absent = absent.map(|(_, words)| words.to_string()).collect();
    Some(d)
}

fn from_mark(mark: &Mark) -> Diagnosis {
    let kind =
        if mark.verdict == Verdict::HostMemory { Kind::HostError } else { Kind::DeviceError };
    let mut d = Diagnosis::new(kind, mark.grammar, mark.verdict);
    d.sub = mark.sub;
    d.because = mark.because.into();
    d.advice = vec![mark.advice.into()];
    d
}

/// "Killed" by itself: the host's killer is the usual reason, and nothing says so.
fn killed(text: &Text) -> Option<Diagnosis> {
    let alone = |line: &str| {
        let line = line.trim().trim_end_matches('.');
        let word = line.rsplit(' ').find(|w| !w.is_empty()).unwrap_or("");
        let shell = line.contains(": line ") && line.split_whitespace().any(|w| w == "Killed");
        shell
            || line == "Killed"
            || line.starts_with("Killed ")
            || word == "Killed"
            || word == "SIGKILL"
    };
    let codes = [
        "exitcode137",
        "exitcode:137",
        "exitcode:-9",
        "exitcode-9",
        "signal9",
        "sigkill",
        "exitedwithcode137",
    ];
    if !text.lines().any(alone) && !text.has(&codes) {
        return None;
    }
    let mut d = Diagnosis::new(Kind::HostError, "Killed", Verdict::CannotTell);
    d.because = "something killed the process; the host's memory is the usual reason, and the text does not say".into();
    d.advice = vec!["dmesg -T | grep -i -E 'oom|killed process'".into()];
    Some(d)
}

/// The request, where a bare error names one: `failed to allocate 2.00G (2147483648 bytes) from device`.
fn asked(squeezed: &str) -> Option<Quantity> {
    let labels = [
        "youtriedtoallocate",
        "triedtoallocate",
        "failedtoallocate",
        "unabletoallocate",
        "tryingtoallocate",
    ];
    labels.iter().find_map(|label| {
        let (_, rest) = squeezed.split_once(label)?;
        let (figure, length) = Quantity::at_start(rest, Units::Any)?;
        let exact = rest[length..].strip_prefix('(').and_then(|rest| {
            let bytes = rest[..digits(rest)].parse().ok()?;
            rest[digits(rest)..].starts_with("bytes").then_some(Quantity::exact(bytes))
        });
        exact.or(figure)
    })
}

/// `anon-rss:12345678kB`, `memory: usage 16777216kB, limit 16777216kB`.
fn host_figures(text: &Text, d: &mut Diagnosis) {
    let behind = |label: &str| {
        let (_, rest) = text.squeezed.split_once(label)?;
        // The kernel counts kibibytes, exactly.
        Quantity::at_start(rest, Units::Whole)?.0.map(|q| Quantity::exact(q.bytes))
    };
    d.figures.set(Name::InUse, behind("anon-rss:"));
    if d.figures.get(Name::InUse).is_some() {
        d.notes.push("in use is the host's memory, as the kernel counts it (anon-rss)".into());
    }
    d.figures.set(Name::HostLimit, behind("kb,limit"));
}

/// A text without any mark.
pub(crate) fn nothing(text: &Text) -> Diagnosis {
    let empty = text.plain.trim().is_empty();
    let grammar = if empty { "empty" } else { "no memory failure" };
    let mut d = Diagnosis::new(Kind::Nothing, grammar, Verdict::NotOom);
    d.because = match empty {
        true => "the file is empty".into(),
        false => "the text names no memory failure".into(),
    };
    if text.has(&["cudaerror", "device-sideassert", "illegalmemoryaccess"]) {
        d.because = "the device failed, not for lack of memory".into();
        d.advice =
            vec!["CUDA_LAUNCH_BLOCKING=1 python train.py  # names the call that failed".into()];
    }
    d
}
