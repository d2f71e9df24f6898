//! vramlab's own trace: what a ledger writes comes back, the page that describes it is true, damage is said.

mod common;

use common::{one, read};
use std::io::Write;
use std::path::Path;
use vramlab_memory::conformance::Random;
use vramlab_memory::heap::Request;
use vramlab_memory::replay::{Device, Part, Trace as Steps, run};
use vramlab_memory::trace::own::{Field, Header, Line, ROWS, Word, lines, parse};
use vramlab_memory::{Fake, GIB, Heap, MIB, ModeSpec, Owner, Stream};
use vramlab_traces::{Ask, Format, Kind, replay, view};

fn ask(modes: &str, capacity: Option<u64>) -> Ask {
    Ask { modes: ModeSpec::parse_list(modes).expect("modes"), capacity, exact: false }
}

/// A session of some cells, as a ledger has it.
fn session(mode: &str) -> Heap {
    let mut heap = Heap::new(Box::new(Fake::new(GIB)), ModeSpec::parse(mode).expect("a mode"));
    let mut random = Random::new(4);
    let mut live = Vec::new();
    let mut now = 0;
    for cell in 1..=20 {
        heap.ledger_mut().begin_cell(now, cell);
        for n in 0..20 {
            now += 1000;
            let owner = heap.ledger_mut().intern(Owner::Variable(format!("x[{n}].weird  name")));
            let stream = Stream(n % 3);
            let request =
                Request { owner, stream, now_ns: now, ..Request::of(random.size(4 * MIB)) };
            live.push((heap.allocate(request).expect("fits"), stream));
            if random.below(2) == 0 {
                let (block, stream) = live.swap_remove(random.below(live.len() as u64) as usize);
                heap.deallocate(block, stream, now);
            }
        }
        heap.ledger_mut().end_cell(now);
    }
    assert!(heap.allocate(Request { now_ns: now, ..Request::of(4 * GIB) }).is_err());
    live.into_iter().skip(7).for_each(|(block, stream)| heap.deallocate(block, stream, now));
    heap
}

fn written(heap: &Heap) -> String {
    let header = Header { device: "fake".into(), capacity: GIB, mode: "ondemand".into() };
    lines(heap.ledger(), &header).collect()
}

#[test]
fn what_a_ledger_writes_comes_back() {
    for mode in ["ondemand gc=on", "vmm", "platform", "caching"] {
        let heap = session(mode);
        let text = written(&heap);
        let trace = one(&text);
        assert_eq!((trace.format, trace.capacity), (Format::Own, Some(GIB)));
        assert_eq!(trace.device_name.as_deref(), Some("fake"));
        assert_eq!(trace.events.len() as usize, heap.ledger().events().len());
        assert_eq!(trace.notes, Vec::<String>::new());
        let view = view(&trace).expect("readable");
        let (stats, ledger) = (heap.stats(), heap.ledger());
        assert_eq!(view.end.requested, stats.requested_bytes);
        assert_eq!(view.end.reserved, stats.pool_bytes, "{mode}");
        assert_eq!(view.peak_reserved, ledger.peaks().2);
        assert_eq!(view.peak.requested, ledger.peaks().1);
        let in_use: u64 = view.end.segments.iter().map(|segment| segment.in_use).sum();
        assert_eq!(in_use, stats.bytes_in_use, "{mode}");
        let fragmentation = view.end.fragmentation.unwrap_or(0.0);
        assert!((fragmentation - stats.fragmentation()).abs() < 1e-9, "{mode}");
        let blocks: u64 = view.end.owners.iter().map(|owned| owned.blocks).sum();
        assert_eq!(blocks as usize, ledger.live_blocks());
        assert!(view.end.owners[0].lines[0].ends_with("].weird  name"));
    }
}

/// The file's road and `%whatif`'s over the same ledger give the same.
#[test]
fn a_replay_of_the_file_is_a_replay_of_the_ledger() {
    let heap = session("ondemand");
    let trace = one(written(&heap));
    let steps = Steps::from_ledger(heap.ledger(), Part::Kept).expect("all of it");
    let replayed = replay(&trace, &ask("preallocate,platform,vmm", None)).expect("readable");
    assert_eq!(replayed.capacity, GIB);
    for row in &replayed.rows {
        let outcome = run(&steps, &row.outcome.mode, Device::of(GIB));
        assert_eq!(row.outcome.peak_in_use, outcome.peak_in_use, "{}", outcome.mode);
        assert_eq!(row.outcome.driver_calls, outcome.driver_calls, "{}", outcome.mode);
        let failure = row.failure.as_ref().expect("4 GiB are too many");
        assert_eq!(failure.asked, 4 * GIB);
        let Some(event) = heap.ledger().events().nth(failure.event as usize - 1) else { panic!() };
        assert_eq!(event.kind, vramlab_memory::EventKind::Oom);
    }
    let json: serde_json::Value = serde_json::from_str(&replayed.json_line()).expect("JSON");
    assert_eq!(json["modes"][0]["failure"]["asked_bytes"], 4 * GIB);
    assert_eq!(json["capacity_from"], "recorded");
}

#[test]
fn a_ring_that_ran_over_begins_with_what_was_live() {
    let mut heap = session("ondemand");
    heap.ledger_mut().set_recording(false);
    heap.ledger_mut().set_recording(true);
    let block = heap.allocate(Request::of(MIB)).expect("fits");
    assert!(heap.ledger().dropped() > 0);
    let trace = one(written(&heap));
    assert!(trace.notes[0].contains("events came before the first one here"), "{:?}", trace.notes);
    assert_eq!(trace.skipped, heap.ledger().dropped());
    assert_eq!(trace.start.len(), heap.ledger().checkpoint().len());
    assert_eq!(view(&trace).expect("readable").end.requested, heap.stats().requested_bytes);
    heap.deallocate(block, Stream(0), 0);
}

#[test]
fn damage_is_said_and_what_is_whole_is_used() {
    let text = written(&session("vmm"));
    let cut = one(&text[..text.len() * 2 / 3]);
    assert!(cut.notes[0].contains("breaks off in line"), "{:?}", cut.notes);
    assert!(cut.events.len() > 100);
    let wrong = text.replacen("\nfree ", "\nfree x", 2);
    let notes = one(&wrong).notes;
    assert!(
        notes[0].contains("2 lines are no events") && notes[0].contains("not a number"),
        "{notes:?}"
    );
    let newer = read("vramlab trace 2\n").expect_err("newer").to_string();
    assert!(newer.contains("version 2"), "{newer}");
    let strays = one("vramlab trace 1\nfree 5 1\nalloc 4 2 100\nfree 3 2\nfree 2 2\nalloc 1 3 0\n");
    assert!(strays.notes[0].contains("2 frees of blocks"), "{:?}", strays.notes);
    assert!(strays.notes[1].contains("goes back 4 times"), "{:?}", strays.notes);
    assert_eq!(strays.peak_requested, 100);
    let twice = one("vramlab trace 1\nalloc 1 1 100\nalloc 2 1 9223372036854775808\nfree 3 1\n");
    assert!(twice.notes[0].contains("1 blocks were handed out where"), "{:?}", twice.notes);
    let none = read("vramlab trace 1\nalloc\n").expect_err("nothing").to_string();
    assert!(none.contains("line 2: a field is missing"), "{none}");
    for (bytes, words) in [
        (&b""[..], "empty"),
        (b"PK\x03\x04", "zip"),
        (b"{\"a\": 1}", "JSON"),
        (b"\x1f\x8bxx", "damaged gzip"),
    ] {
        let why = read(bytes).expect_err(words).to_string();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn gzipped_is_the_same() {
    let text = written(&session("caching"));
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(text.as_bytes()).expect("memory");
    let bytes = gz.finish().expect("memory");
    let (plain, zipped) = (one(&text), one(&bytes));
    assert_eq!(
        (plain.events.len(), plain.peak_requested),
        (zipped.events.len(), zipped.peak_requested)
    );
    let cut = one(&bytes[..bytes.len() / 2]);
    assert!(cut.notes[0].contains("breaks off"), "{:?}", cut.notes);
}

#[test]
fn a_capacity_below_one_granule_fails_in_words() {
    let trace = one("vramlab trace 1\nalloc 1 1 100\nfree 2 1\n");
    for row in replay(&trace, &ask("all", Some(1000))).expect("readable").rows {
        // 256 bytes of 1000 are enough for a driver call a block, and for one region; what is mapped or made in MiB is not there.
        let fits = ["platform", "preallocate", "ondemand"];
        let name = row.outcome.mode.mode().name();
        assert_eq!(row.outcome.passes(), fits.contains(&name), "{row:?}");
        assert_eq!(row.smallest.map(|smallest| smallest.exact), Some(true), "{row:?}");
    }
}

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace-format.md");
    std::fs::read_to_string(page).expect("the page that describes the format")
}

#[test]
fn the_example_of_the_page_is_a_trace() {
    let page = page();
    let example = page.split("```trace\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    for line in example.lines() {
        assert!(!matches!(parse(line.as_bytes()), Err(_) | Ok(Line::Nothing)), "{line}");
    }
    let trace = one(example);
    assert_eq!(trace.notes, Vec::<String>::new());
    assert_eq!((trace.events.len(), trace.peak_requested), (8, MIB + 4096));
    let mut kinds = Vec::new();
    let read = trace.events.each(|_, record| {
        kinds.push(record.kind);
        true
    });
    read.expect("readable");
    assert_eq!(kinds[..4], [Kind::Grow, Kind::Alloc, Kind::Mark, Kind::Alloc]);
    assert_eq!(view(&trace).expect("readable").end.owners[0].lines, ["x"]);
}

/// Each row of the format's table stands in the page, with its fields in order and the required ones in bold.
#[test]
fn the_page_names_every_word_and_field() {
    let page = page();
    for row in ROWS {
        let named = matches!(row.about, Word::Event(_));
        let fields = row.fields.iter().enumerate().map(|(n, field)| {
            let name = match field {
                Field::Text if named => "NAME".to_string(),
                field => format!("{field:?}").to_uppercase(),
            };
            if n < row.required { format!("**{name}**") } else { name }
        });
        let line = format!("| `{}` {} |", row.word, fields.collect::<Vec<_>>().join(" "));
        assert!(page.contains(&line), "the page lacks: {line}");
    }
}
