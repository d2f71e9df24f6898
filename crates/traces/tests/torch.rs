//! PyTorch memory snapshots: every protocol, stacks, the state at the start, and files that are damaged or hostile.

mod common;

use common::{Folder, Py, block, event, frame, one, pickle, read, recorded, segment, snapshot};
use std::io::Write;
use vramlab_memory::conformance::Random;
use vramlab_memory::replay::{Device, run};
use vramlab_memory::trace::torch;
use vramlab_memory::{GIB, MIB, ModeSpec};
use vramlab_traces::{Ask, Format, Trace, open, replay, view};

const BASE: u64 = 0x7f00_0000_0000;

/// Two stacks, a block that was out before, one that comes and goes, one that stays; a second device without events.
fn small() -> Py {
    let shared = Py::Shared(1, Box::new(frame("model.py", 54, "forward")));
    let stack =
        Py::Shared(2, Box::new(Py::List(vec![shared.clone(), frame("train.py", 7, "main")])));
    let other = Py::List(vec![frame("optimizer.py", 300, "step")]);
    let events = vec![
        event("alloc", BASE + MIB, 1000, 10, stack.clone()),
        event("free_requested", BASE, 512, 11, Py::List(vec![])),
        event("free_completed", BASE, 512, 12, Py::List(vec![])),
        event("alloc", BASE, 300, 13, other.clone()),
        event("free_completed", BASE + MIB, 1000, 14, stack.clone()),
        event("alloc", BASE + 512, 700, 15, stack.clone()),
    ];
    let blocks = vec![
        block(BASE, 512, 300, "active_allocated", other),
        block(BASE + 512, 1024, 700, "active_allocated", stack),
        block(BASE + 1536, 2 * MIB - 1536, 0, "inactive", Py::List(vec![])),
    ];
    snapshot(
        vec![
            segment(0, BASE, 2 * MIB, "small", blocks),
            segment(
                1,
                BASE + GIB,
                2 * MIB,
                "small",
                vec![block(BASE + GIB, 2 * MIB, 0, "inactive", Py::List(vec![]))],
            ),
        ],
        vec![Py::List(events), Py::List(vec![])],
    )
}

#[test]
fn every_protocol_gives_the_same_trace() {
    for protocol in 2..=5 {
        let all = read(pickle(protocol, &small())).expect("a snapshot");
        assert_eq!(all.iter().map(|trace| trace.device).collect::<Vec<_>>(), [0, 1], "{protocol}");
        let trace = &all[0];
        assert_eq!((trace.format, trace.events.len()), (Format::Torch, 6));
        assert_eq!(trace.start.len(), 1);
        assert_eq!((trace.start[0].address, trace.start[0].bytes), (BASE, 512));
        // 512 at the start, 1000 beside it, 300 for the 512, then 700 for the 1000.
        assert_eq!(trace.peak_requested, 1512);
        assert_eq!(trace.notes, Vec::<String>::new());
        let view = view(trace).expect("readable");
        assert_eq!((view.peak.requested, view.peak.event), (1512, 1));
        let owners: Vec<(u64, &[String])> =
            view.peak.owners.iter().map(|owned| (owned.bytes, &owned.lines[..])).collect();
        let forward = ["forward (model.py:54)".to_string(), "main (train.py:7)".to_string()];
        let before = ["before the recording began".to_string()];
        assert_eq!(owners, [(1000, &forward[..]), (512, &before[..])]);
        assert_eq!((view.end.requested, view.end.blocks), (1000, 2));
        assert_eq!(view.end.segments[0].largest_free, 2 * MIB - 512 - 1024);
        assert_eq!((view.allocs, view.frees, view.start_bytes), (3, 2, 512));
        assert_eq!(view.prediction.map(|found| (found.allocs, found.segments)), Some((3, 0)));
    }
}

fn ask(modes: &str) -> Ask {
    Ask {
        modes: ModeSpec::parse_list(modes).expect("modes"),
        capacity: Some(160 * GIB),
        exact: false,
    }
}

/// The file's road and the road in memory give the same.
#[test]
fn caching_real_traces() {
    let Some(folder) = recorded() else { return };
    let (mut right, mut all) = (0, 0);
    for name in
        ["small-cnn", "lm-1024-train", "lm-128-forward", "lm-256-step", "lm-512-forward-bf16"]
    {
        let file = folder.join(format!("{name}.pickle"));
        let bytes = std::fs::read(&file).expect("a recorded trace is readable");
        let in_memory = &torch::read(&bytes).expect("a snapshot")[0];
        let trace = &open(&file).expect("a snapshot")[0];
        assert_eq!(trace.events.len() as usize, in_memory.events.len());
        let found = view(trace).expect("readable").prediction.expect("a snapshot predicts");
        assert_eq!(found, torch::predict(in_memory, torch::options_of(in_memory)), "{name}");
        (right, all) = (right + found.right, all + found.allocs);
        let replayed = replay(trace, &ask("all")).expect("readable");
        for row in &replayed.rows {
            let outcome = run(&torch::trace(in_memory), &row.outcome.mode, Device::of(160 * GIB));
            assert!(row.outcome.passes() && row.outcome.strays == 0, "{name}: {row:?}");
            assert_eq!(row.outcome.peak_requested, trace.peak_requested);
            assert_eq!(row.outcome.driver_calls, outcome.driver_calls, "{name} {}", outcome.mode);
            assert_eq!(row.outcome.peak_pool, outcome.peak_pool, "{name} {}", outcome.mode);
            // What is said to be enough is enough, and where that is exact, a MiB less is not.
            let smallest = row.smallest.expect("found");
            let on = |bytes| run(&torch::trace(in_memory), &row.outcome.mode, Device::of(bytes));
            assert!(on(smallest.bytes).passes(), "{name} {row:?}");
            assert!(!smallest.exact || !on(smallest.bytes - MIB).passes(), "{name} {row:?}");
        }
    }
    assert_eq!((right, all), (21_055, 21_055));
}

#[test]
fn a_gzipped_snapshot_is_the_same() {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&pickle(4, &small())).expect("memory");
    let bytes = gz.finish().expect("memory");
    let all = read(&bytes).expect("a snapshot");
    assert_eq!((all[0].peak_requested, all[0].events.len()), (1512, 6));
    // Cut within the compression: what came before is used, or it is said that nothing did.
    let cut = read(&bytes[..bytes.len() / 2]);
    assert!(
        cut.map_or_else(|why| why.to_string(), |all| all[0].notes.join(" "))
            .contains("ends at byte")
    );
}

/// Many events with frames of their own, so that a cut can be anywhere.
fn long() -> Vec<u8> {
    let stack = |n: u64| Py::List(vec![Py::Shared(n as u32, Box::new(frame("m.py", n, "f")))]);
    let mut events = vec![event("free_completed", BASE + 64 * MIB, 4096, 0, stack(0))];
    for n in 0..3000 {
        let at = BASE + (n % 40) * 1024;
        events.push(event("alloc", at, 1000, n, stack(n % 7)));
        events.push(event("free_completed", at, 1000, n, stack(n % 5)));
    }
    let idle = vec![block(BASE, 128 * MIB, 0, "inactive", Py::List(vec![]))];
    pickle(4, &snapshot(vec![segment(0, BASE, 128 * MIB, "large", idle)], vec![Py::List(events)]))
}

#[test]
fn of_a_snapshot_cut_in_half_what_is_whole_is_used() {
    let bytes = long();
    assert_eq!(one(&bytes).events.len(), 6001);
    let half = one(&bytes[..bytes.len() / 2]);
    let events = half.events.len();
    // Python writes a thousand items at once, and events go out with their batch.
    assert!((2000..4000).contains(&events) && events.is_multiple_of(1000), "{events}");
    // What is freed and was never handed out was there before.
    assert_eq!((half.start.len(), half.start[0].bytes), (1, 4096));
    assert!(
        half.notes[0].contains(&format!("ends at byte {}", bytes.len() / 2)),
        "{:?}",
        half.notes
    );
    let early = read(&bytes[..400]).expect_err("no event yet").to_string();
    assert!(early.contains("no event comes before"), "{early}");
}

#[test]
fn code_is_refused_by_name_and_nothing_runs() {
    for (bytes, name) in [
        (&b"cposix\nsystem\n(S'true'\ntR."[..], "posix.system"),
        (b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.", "posix.system"),
        (b"\x80\x02]}b.", "an object's state"),
        (b"\x80\x02cbuiltins\neval\nq\x00X\x01\x00\x00\x001\x85R.", "builtins.eval"),
    ] {
        let why = read(bytes).expect_err("refused").to_string();
        assert!(why.contains(name) && why.contains("only data is read"), "{why}");
    }
}

#[test]
fn hostile_files_neither_crash_nor_grow() {
    let mut deep = vec![0x80, 4];
    deep.extend(b"]".repeat(1_000_000));
    deep.extend(b"a".repeat(999_999));
    deep.push(b'.');
    let marks = [&b"\x80\x04"[..], &b"(".repeat(8_000_000), b"."].concat();
    let values = [&b"\x80\x04"[..], &b"N".repeat(8_000_000), b"."].concat();
    let itself = b"\x80\x04}\x94(\x8c\x08segmentsh\x00\x8c\x0ddevice_tracesh\x00u.";
    for (bytes, words) in [
        (&deep[..], "it has no segments"),
        (&marks, "too deep"),
        (&values, "too many values"),
        (b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc", "no event comes before"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xffabc", "no event comes before"),
        (b"\x80\x04\x8b\xff\xff\xff\xff.", "beyond 64 bits"),
        (b"\x80\x04j\xff\xff\xff\xff.", "never kept"),
        (b"\x80\x04r\xff\xff\xff\xff.", "nothing is there"),
        (b"\x80\x06}.", "protocol 6"),
        (b"\x80\x04}.", "it has no segments"),
        (b"\x80\x04]K\x01.", "it is no dictionary"),
        (b"\x80\x04].", "it has no segments"),
        (b"\x80\x04Ns.", "nothing is there"),
        (b"\x80\x04}NNNu.", "no mark"),
        (b"\x80\x04}(Nu.", "no dictionary"),
        (b"\x80\x04}Na.", "no list"),
        (itself, "without events or memory"),
    ] {
        let why = read(bytes).expect_err(words).to_string();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn odd_sizes_are_carried_or_left_out() {
    let none = || Py::List(vec![]);
    let sizes = [0, 1 << 63, u64::MAX, 100];
    let events = sizes.iter().enumerate();
    let events =
        events.map(|(n, bytes)| event("alloc", BASE + n as u64 * 512, *bytes, n as u64, none()));
    let trace = one(pickle(4, &snapshot(vec![], vec![Py::List(events.collect())])));
    // An address and a size whose end is beyond 64 bits are none.
    assert_eq!(trace.events.len(), 3);
    assert!(trace.notes[0].contains("1 events or segments lack"), "{:?}", trace.notes);
    assert_eq!(trace.peak_requested, (1 << 63) + 100);
    let replayed = replay(&trace, &ask("all")).expect("readable");
    for row in replayed.rows {
        assert_eq!(row.failure.expect("nothing is that large").event, 2);
    }
    assert!(view(&trace).expect("readable").to_string().contains("peak"));
}

#[test]
fn mutations_never_panic() {
    let good = pickle(4, &small());
    let mut random = Random::new(3);
    let folder = Folder::new();
    let (mut traces, mut refused) = (0, 0);
    for _ in 0..800 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes[at] = random.bits() as u8,
                1 => drop(bytes.drain(at..(at + 1 + random.below(8) as usize).min(bytes.len()))),
                2 => bytes.insert(at, random.bits() as u8),
                _ => bytes[at] = b".(]}u)a0e12h\x94\x8c\x8aKsdt"[random.below(19) as usize],
            }
        }
        match open(&folder.file("mutated", &bytes)) {
            Ok(all) => {
                traces += 1;
                all.iter().for_each(look);
            }
            Err(why) => {
                refused += 1;
                assert!(!why.to_string().is_empty());
            }
        }
    }
    assert!(traces > 50 && refused > 50, "{traces} {refused}");
}

fn look(trace: &Trace) {
    let view = view(trace).expect("readable");
    assert!(!view.to_string().is_empty() && view.json_line().starts_with('{'));
    let replayed = replay(trace, &ask("caching,vmm,preallocate")).expect("readable");
    assert_eq!(replayed.rows.len(), 3);
}
