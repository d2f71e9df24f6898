//! Exports of heaps that lived: each format read back, by our own readers where there are any.

mod life;

use life::{Life, MODES, exported};
use serde_json::Value;
use std::collections::BTreeMap;
use vramlab_diagnosis::{Name, diagnose};
use vramlab_export::{Executable, FORMATS, find};
use vramlab_memory::ledger::Owner;
use vramlab_memory::replay::{Part, Step, Trace};
use vramlab_memory::trace::pickle::Pickle;
use vramlab_memory::trace::{own, torch};
use vramlab_memory::{MIB, Stream};

#[test]
fn every_format_stands_whole_in_the_table() {
    for format in &FORMATS {
        assert!(!format.help.is_empty() && format.ending.starts_with('.'), "{}", format.name);
        assert!(find(format.name).is_ok());
    }
    let why = find("pproff").err().expect("no such format");
    assert!(why.contains("did you mean `pprof`?") && why.contains("perfetto"), "{why}");
}

/// The same requests and returns, in order, whatever names they have. A request that failed is one of our own traces
/// alone, which ask it again.
fn shape(trace: &Trace) -> Vec<(bool, u64)> {
    let mut names: BTreeMap<u64, u64> = BTreeMap::new();
    let mut next = 0;
    let mut never: Option<u64> = None;
    let passed = trace.steps.iter().filter(|step| match step {
        Step::Alloc { id, bytes } if *bytes == life::NEVER => {
            never = Some(*id);
            false
        }
        Step::Free { id } => Some(*id) != never,
        Step::Alloc { .. } => true,
    });
    let step = |step: &Step| match step {
        Step::Alloc { id, bytes } => {
            names.insert(*id, next);
            next += 1;
            (true, *bytes)
        }
        Step::Free { id } => (false, names.remove(id).expect("it was allocated")),
    };
    passed.map(step).collect()
}

#[test]
fn viz_protocol_reads_back_and_replays_in_every_mode() {
    for mode in MODES {
        let mut life = Life::new(mode);
        life.busy(400);
        // What a stream still uses has no `free_completed`, so a replay would keep it.
        life.heap.synchronize(life.now);
        let bytes = exported(&life.heap, "viz");
        let devices = torch::read(&bytes).unwrap_or_else(|why| panic!("{mode}: {why}"));
        assert_eq!(devices.len(), 1, "{mode}");
        let ours = Trace::from_ledger(life.heap.ledger(), Part::Kept).expect("all of it");
        assert_eq!(shape(&torch::trace(&devices[0])), shape(&ours), "{mode}");
        life.end();
    }
}

#[test]
fn viz_protocol_is_address_exact_in_caching_mode() {
    for mode in ["caching", "caching max_split_size=64MiB", "caching roundup_power2_divisions=4"] {
        let mut life = Life::new(mode);
        life.busy(600);
        let devices = torch::read(&exported(&life.heap, "viz")).expect("a snapshot");
        let options = torch::options_of(&devices[0]);
        let found = torch::predict(&devices[0], options);
        assert!(found.allocs > 200, "{mode}: {found:?}");
        assert_eq!((found.right, found.strays), (found.allocs, 0), "{mode}: {found:?}");
        life.end();
    }
}

#[test]
fn viz_protocol_begins_where_the_kept_events_begin() {
    let mut life = Life::new("caching");
    life.busy(200);
    let ledger = life.heap.ledger_mut();
    ledger.set_recording(false);
    ledger.set_recording(true);
    life.busy(200);
    let device = torch::read(&exported(&life.heap, "viz")).expect("a snapshot").remove(0);
    let state = torch::state_at_start(&device, &torch::options_of(&device));
    let blocks = state.iter().flat_map(|segment| &segment.used);
    let blocks: BTreeMap<u64, u64> = blocks.map(|(at, _, asked)| (*at, *asked)).collect();
    let checkpoint = life.heap.ledger().checkpoint();
    assert!(checkpoint.len() > 10, "{}", checkpoint.len());
    assert_eq!(blocks, checkpoint.iter().map(|live| (live.address, live.requested)).collect());
    let csv = String::from_utf8(exported(&life.heap, "csv")).expect("text");
    let live = csv.lines().filter(|line| line.split(',').nth(2) == Some("live")).count();
    assert_eq!(live, checkpoint.len());
    life.end();
}

#[test]
fn viz_protocol_a_block_that_a_stream_still_uses_is_pending() {
    let mut life = Life::new("cuda_async");
    let kept = life.allocate(4 * MIB, Stream(1));
    let gone = life.allocate(8 * MIB, Stream(1));
    life.heap.deallocate(gone, Stream(1), 7000);
    let devices = torch::read(&exported(&life.heap, "viz")).expect("a snapshot");
    let of = |action| devices[0].events.iter().filter(|event| event.action == action).count();
    assert_eq!((of(torch::Action::FreeRequested), of(torch::Action::FreeCompleted)), (1, 0));
    let blocks: Vec<(u64, bool)> = devices[0]
        .segments
        .iter()
        .flat_map(|segment| &segment.blocks)
        .map(|block| (block.bytes, block.used))
        .collect();
    assert!(blocks.contains(&(8 * MIB, true)), "{blocks:?}");
    life.heap.synchronize(8000);
    let devices = torch::read(&exported(&life.heap, "viz")).expect("a snapshot");
    let completed =
        devices[0].events.iter().filter(|event| event.action == torch::Action::FreeCompleted);
    assert_eq!(completed.count(), 1);
    life.heap.deallocate(kept, Stream(1), 9000);
}

#[test]
fn viz_protocol_events_of_switches_agree_with_themselves() {
    let mut life = Life::new("preallocate");
    for mode in MODES.iter().chain(MODES.iter().rev()) {
        life.busy(60);
        life.switch(mode);
        let device = torch::read(&exported(&life.heap, "viz")).expect("a snapshot").remove(0);
        let mut live: BTreeMap<u64, u64> = BTreeMap::new();
        for event in &device.events {
            match event.action {
                torch::Action::Alloc => {
                    let over = live.range(..event.address + event.bytes.max(1)).next_back();
                    let clear = over.is_none_or(|(at, bytes)| at + bytes <= event.address);
                    assert!(clear, "{mode}: {event:?} lies over a block that is out");
                    live.insert(event.address, event.bytes);
                }
                torch::Action::FreeCompleted => {
                    let gone = live.remove(&event.address);
                    assert_eq!(gone, Some(event.bytes), "{mode}: {event:?}");
                }
                _ => {}
            }
        }
        let at_end = device.segments.iter().flat_map(|segment| &segment.blocks);
        let used = at_end.filter(|block| block.used).map(|block| (block.address, block.requested));
        assert_eq!(live, used.collect(), "{mode}");
    }
    life.end();
}

#[test]
fn viz_protocol_blocks_tile_each_segment() {
    for mode in MODES {
        let mut life = Life::new(mode);
        life.busy(300);
        let bytes = exported(&life.heap, "viz");
        assert_eq!(bytes[..2], [0x80, 4], "the protocol");
        let pickle = Pickle::read(&bytes).expect("a pickle");
        let number =
            |of, key| pickle.get(of, key).and_then(|value| pickle.unsigned(value)).expect(key);
        let mut by_state: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut pool = 0;
        for &segment in pickle.items(pickle.get(pickle.root(), "segments").expect("segments")) {
            let (mut at, total) = (number(segment, "address"), number(segment, "total_size"));
            let (end, mut allocated) = (at + total, 0);
            for &block in pickle.items(pickle.get(segment, "blocks").expect("blocks")) {
                assert_eq!(number(block, "address"), at, "{mode}: a hole or an overlap");
                let size = number(block, "size");
                let state = pickle.get(block, "state").and_then(|state| pickle.text(state));
                let state = state.expect("a state");
                let frames = pickle.items(pickle.get(block, "frames").expect("frames"));
                assert_eq!(frames.is_empty(), state != "active_allocated", "{mode}: {state}");
                let sums = by_state.entry(state).or_default();
                *sums = (sums.0 + size, sums.1 + number(block, "requested_size"));
                allocated += if state == "active_allocated" { size } else { 0 };
                at += size;
            }
            assert_eq!((at, number(segment, "allocated_size")), (end, allocated), "{mode}");
            pool += total;
        }
        let stats = life.heap.stats();
        let known = ["active_allocated", "active_pending_free", "inactive"];
        assert!(by_state.keys().all(|state| known.contains(state)), "{mode}: {by_state:?}");
        let used = by_state["active_allocated"];
        assert_eq!(
            (pool, used),
            (stats.pool_bytes, (stats.bytes_in_use, stats.requested_bytes)),
            "{mode}"
        );
        life.end();
    }
}

#[test]
fn a_profile_reads_back_with_equal_figures() {
    let mut life = Life::new("caching");
    life.busy(300);
    let executables = [
        Executable { name: "f".into(), bytes: 4079 },
        Executable { name: "tanh, g".into(), bytes: 2532 },
    ];
    let bytes = life::exported_with(&life.heap, "pprof", &executables);
    assert_eq!(bytes[..2], [0x1f, 0x8b], "gzip");
    let read = diagnose(&bytes);
    let stats = life.heap.stats();
    assert_eq!(read.figures.bytes(Name::InUse), Some(stats.requested_bytes + 4079 + 2532));
    assert_eq!(read.counts["live_buffers"], life.heap.ledger().live_blocks() as u64);
    assert_eq!(read.counts["executables"], 2);
    let held: BTreeMap<String, u64> =
        read.owners.iter().map(|owner| (owner.name.clone(), owner.held.bytes)).collect();
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for figures in life.heap.ledger().by_owner() {
        let name = match life.heap.ledger().owner(figures.owner) {
            Owner::Unknown => "unknown".to_string(),
            owner => owner.to_string(),
        };
        *ours.entry(name).or_default() += figures.requested;
    }
    ours.extend([("f".into(), 4079), ("tanh, g".into(), 2532)]);
    assert_eq!(held, ours);
    life.end();
}

#[test]
fn a_chrome_trace_keeps_the_rules_of_its_format() {
    for mode in MODES {
        let mut life = Life::new(mode);
        life.busy(200);
        life.heap.ledger_mut().begin_cell(life.now, 99);
        let text = exported(&life.heap, "perfetto");
        let trace: Value = serde_json::from_slice(&text).expect("JSON");
        let events = trace["traceEvents"].as_array().expect("a list");
        let mut slices: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        let mut counters: BTreeMap<&str, u64> = BTreeMap::new();
        for event in events {
            assert_eq!(event["pid"], 1);
            let tid = event["tid"].as_u64().expect("a thread");
            let name = event["name"].as_str().expect("a name");
            let time = || event["ts"].as_f64().filter(|ts| *ts >= 0.0).expect("a time");
            match event["ph"].as_str().expect("a phase") {
                "M" => assert!(event["args"]["name"].is_string()),
                "C" => {
                    time();
                    counters.insert(name, event["args"]["bytes"].as_u64().expect("bytes"));
                }
                "X" => {
                    let lasts = event["dur"].as_f64().filter(|dur| *dur >= 0.0).expect("a length");
                    slices.entry(tid).or_default().push((time(), time() + lasts));
                }
                "i" => {
                    time();
                    assert!(matches!(event["s"].as_str(), Some("g" | "p" | "t")), "{event}");
                }
                other => panic!("phase {other}"),
            }
        }
        for (tid, slices) in &slices {
            for (n, a) in slices.iter().enumerate() {
                for b in &slices[n + 1..] {
                    let apart = a.1 <= b.0 || b.1 <= a.0;
                    let within = (a.0 <= b.0 && b.1 <= a.1) || (b.0 <= a.0 && a.1 <= b.1);
                    assert!(apart || within, "{mode}: {a:?} and {b:?} of thread {tid}");
                }
            }
        }
        let unfinished = events.iter().filter(|event| event["args"]["unfinished"] == true);
        assert_eq!(unfinished.count(), 1, "{mode}: the open cell");
        let stats = life.heap.stats();
        let figures = [("arrays", stats.requested_bytes), ("in use", stats.bytes_in_use)];
        for (name, bytes) in figures.into_iter().chain([("pool", stats.pool_bytes)]) {
            assert_eq!(counters[name], bytes, "{mode}: {name}");
        }
        let ooms = events.iter().filter(|event| event["name"] == "oom").count();
        assert!(ooms > 0, "{mode}: the life has a failure");
        life.heap.ledger_mut().end_cell(life.now);
        life.end();
    }
}

/// The fields of a CSV line.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        let field = fields.last_mut().expect("one");
        match sign {
            '"' if quoted && signs.peek() == Some(&'"') => {
                field.push('"');
                signs.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            sign => field.push(sign),
        }
    }
    assert!(!quoted, "{line}");
    fields
}

#[test]
fn csv_has_one_row_an_event_and_ends_at_the_present_state() {
    let mut life = Life::new("ondemand");
    life.busy(200);
    let block = life.allocate(MIB, Stream(0));
    let odd = life.heap.ledger_mut().intern(Owner::Variable("a, \"b\"".into()));
    life.heap.ledger_mut().change_owner(life.now, block.id(), odd);
    let csv = String::from_utf8(exported(&life.heap, "csv")).expect("text");
    let mut lines = csv.lines();
    let header = fields(lines.next().expect("a header"));
    let rows: Vec<Vec<String>> = lines.map(fields).collect();
    assert_eq!(rows.len(), life.heap.ledger().events().len());
    assert!(rows.iter().all(|row| row.len() == header.len()));
    let last = |name: &str| {
        let column = header.iter().position(|own| own == name).expect(name);
        rows.last().expect("rows")[column].clone()
    };
    let stats = life.heap.stats();
    assert_eq!((last("kind"), last("owner")), ("owner_change".into(), "a, \"b\"".into()));
    assert_eq!(last("arrays_bytes"), stats.requested_bytes.to_string());
    assert_eq!(last("in_use_bytes"), stats.bytes_in_use.to_string());
    assert_eq!(last("pool_bytes"), stats.pool_bytes.to_string());
    life.heap.deallocate(block, Stream(0), life.now);
    life.end();
}

#[test]
fn our_own_trace_has_a_line_for_each_event() {
    let mut life = Life::new("platform");
    life.busy(100);
    let text = exported(&life.heap, "trace");
    let lines = text.split(|byte| *byte == b'\n').map(|line| own::parse(line).expect("a line"));
    let events = lines.filter(|line| matches!(line, own::Line::Row(own::Word::Event(_), _)));
    assert_eq!(events.count(), life.heap.ledger().events().len());
    life.end();
}

#[test]
fn a_device_that_was_never_used_exports_too() {
    let life = Life::new("preallocate");
    for format in &FORMATS {
        let bytes = exported(&life.heap, format.name);
        assert!(!bytes.is_empty(), "{}", format.name);
    }
    assert!(torch::read(&exported(&life.heap, "viz")).is_ok());
    assert_eq!(diagnose(&exported(&life.heap, "pprof")).figures.bytes(Name::InUse), Some(0));
}

/// A sink that is full after some bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_wherever_it_comes() {
    let mut life = Life::new("caching");
    life.busy(40);
    for format in &FORMATS {
        let whole = exported(&life.heap, format.name).len();
        for room in (0..whole).step_by(whole / 40 + 1) {
            let recording = life::recording(&life.heap, &[]);
            let why = (format.write)(&recording, &mut Full(room)).expect_err("no room");
            assert_eq!(why.kind(), std::io::ErrorKind::StorageFull, "{}", format.name);
        }
    }
    life.end();
}
