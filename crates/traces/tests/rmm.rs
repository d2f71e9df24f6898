//! RMM's logs: goldens written by hand, every version's spelling, damage.

mod common;

use common::{one, read};
use vramlab_memory::conformance::Random;
use vramlab_memory::{GIB, KIB, MIB, ModeSpec};
use vramlab_traces::{Ask, Format, replay, view};

/// 1 and 2 MiB, the first goes, 16 GiB fail, 4 MiB: at most 6 MiB at once, at the fifth event.
const LOG: &str = "Thread,Time,Action,Pointer,Size,Stream
1001,14:21:19.998533,allocate,0x7f0000000000,1048576,0x0
1001,14:21:19.998600,allocate,0x7f0000100000,2097152,0x2
1002,14:21:20.000001,free,0x7f0000000000,1048576,0x0
1001,14:21:20.000100,allocate failure,(nil),17179869184,0x0
1002,14:21:20.000200,allocate,0x7f0000300000,4194304,0x0
";

fn ask(modes: &str, capacity: u64) -> Ask {
    let modes = ModeSpec::parse_list(modes).expect("modes");
    Ask { modes, capacity: Some(capacity), exact: false }
}

#[test]
fn a_log_by_hand() {
    let trace = one(LOG);
    assert_eq!((trace.format, trace.events.len()), (Format::Rmm, 5));
    assert_eq!(trace.peak_requested, 6 * MIB);
    assert_eq!(trace.notes, Vec::<String>::new());
    let view = view(&trace).expect("readable");
    assert_eq!((view.peak.requested, view.peak.event), (6 * MIB, 5));
    assert_eq!(view.time_ns.1 - view.time_ns.0, 1_667_000);
    assert_eq!((view.ooms, view.first_oom), (1, Some((4, 16 * GIB))));
    let owners: Vec<_> =
        view.peak.owners.iter().map(|owned| (owned.bytes, owned.lines[0].as_str())).collect();
    assert_eq!(owners, [(4 * MIB, "thread 1002"), (2 * MIB, "thread 1001")]);
    assert_eq!(view.peak.fragmentation, None);
}

#[test]
fn a_replay_by_hand() {
    let trace = one(LOG);
    // 1 GiB: the request that failed there fails here, at the same event.
    for row in replay(&trace, &ask("all", GIB)).expect("readable").rows {
        let failure = row.failure.expect("16 GiB are too many");
        assert_eq!((failure.event, failure.asked), (4, 16 * GIB), "{}", row.outcome.mode);
        assert_eq!(row.outcome.peak_requested, 3 * MIB);
    }
    // platform holds what is asked for: 2 MiB and the 16 GiB at once, in 4 calls and 2 back.
    let rows = replay(&trace, &ask("platform", 32 * GIB)).expect("readable").rows;
    let outcome = &rows[0].outcome;
    assert!(outcome.passes());
    assert_eq!((outcome.peak_in_use, outcome.driver_calls), (16 * GIB + 2 * MIB, 6));
    assert_eq!(
        rows[0].smallest.map(|found| (found.bytes, found.exact)),
        Some((16 * GIB + 2 * MIB, true))
    );
    // caching: 1 MiB from a segment of 2 MiB, 2 MiB on a stream of its own from one of 20 MiB; 4 MiB from the cached 16 GiB.
    let rows = replay(&trace, &ask("caching", 32 * GIB)).expect("readable").rows;
    assert_eq!(rows[0].outcome.peak_pool, 16 * GIB + 2 * MIB + 20 * MIB);
}

#[test]
fn every_version_is_read() {
    let body = LOG.split_once('\n').expect("a header").1;
    let colons = LOG.replace("19.99", "19:99").replace("20.00", "20:00");
    let seconds = LOG.replace("14:21:", "16345678");
    let windows = LOG.replace('\n', "\r\n");
    let bom = format!("\u{feff}{LOG}");
    let older = LOG.replace(",free,", ",deallocate,");
    let joined = format!("{LOG}{}", "Thread,Time,Action,Pointer,Size,Stream\n");
    let unended = LOG.trim_end().to_string();
    for text in [body, &colons, &seconds, &windows, &bom, &older, &joined, &unended] {
        let trace = one(text);
        assert_eq!((trace.events.len(), trace.peak_requested), (5, 6 * MIB), "{text}");
        assert_eq!(trace.notes, Vec::<String>::new(), "{text}");
        let span = view(&trace).expect("readable").time_ns;
        assert_eq!(span.1 - span.0, 1_667_000, "{text}");
    }
    // Columns are where the header says.
    let moved =
        one("Action,Size,Pointer\nallocate,1024,0x100\nallocate,1024,0x500\nfree,1024,0x100\n");
    assert_eq!((moved.events.len(), moved.peak_requested), (3, 2 * KIB));
    // Midnight: one millisecond later, and not a day earlier.
    let midnight = one("1,23:59:59.9995,allocate,0x1,256,0\n1,00:00:00.0005,free,0x1,256,0\n");
    let span = view(&midnight).expect("readable").time_ns;
    assert_eq!((span.1 - span.0, midnight.notes.len()), (1_000_000, 0));
}

#[test]
fn damage_is_said_and_what_is_whole_is_used() {
    let cut = one(&LOG[..LOG.len() - 22]);
    assert_eq!((cut.events.len(), cut.peak_requested), (4, 3 * MIB));
    assert!(cut.notes[0].contains("breaks off in line 6 (byte "), "{:?}", cut.notes);
    let wrong = LOG.replace("allocate,0x7f0000100000", "alocate,0x7f0000100000");
    let notes = one(&wrong).notes;
    assert!(notes[0].contains("1 lines are no events") && notes[0].contains("line 3"), "{notes:?}");
    let odd = one(
        "1,1,allocate,0x1,0,0\n1,2,allocate,0x2,9223372036854775808,0\n1,3,free,0x9,1,0\n1,2,allocate,0x3,9223372036854775808,0\n\
         1,5,allocate,0x4,18446744073709551616,0\n1,6,free,0x3,1,0\n1,7,free,0x3,1,0\n",
    );
    // Nothing at all gives no memory; 2^64 is no size; two of 2^63 are more than 64 bits hold.
    assert_eq!((odd.events.len(), odd.peak_requested), (5, u64::MAX));
    assert!(odd.notes[0].contains("line 5: the size is no number of 64 bits"), "{:?}", odd.notes);
    assert!(
        odd.notes[1].contains("2 frees of blocks that were never handed out"),
        "{:?}",
        odd.notes
    );
    assert!(odd.notes[2].contains("goes back 1 times"), "{:?}", odd.notes);
    for row in replay(&odd, &ask("all", GIB)).expect("readable").rows {
        assert_eq!(row.failure.expect("too large").event, 1);
    }
    let none = read("Thread,Time,Action,Pointer,Size,Stream\n1,2,3\n").expect_err("no event");
    assert!(none.to_string().contains("no line of it is an event; line 2"), "{none}");
}

#[test]
fn mutations_never_panic() {
    let mut random = Random::new(8);
    for _ in 0..500 {
        let mut bytes = LOG.as_bytes().to_vec();
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] = random.bits() as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes[at] = b"0123456789,\nx:.-"[random.below(16) as usize],
            }
        }
        if let Ok(all) = read(&bytes) {
            all.iter().for_each(|trace| {
                view(trace).expect("readable");
                replay(trace, &ask("caching,vmm", GIB)).expect("readable");
            });
        }
    }
}
