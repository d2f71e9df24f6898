//! PyTorch's statistics: cases worked out by hand, an obvious count of the same after every step, and recordings.

use std::path::Path;
use vramlab_memory::conformance::Random;
use vramlab_memory::heap::Request;
use vramlab_memory::statistics::{Metric, Stat, TorchStats};
use vramlab_memory::trace::torch;
use vramlab_memory::{
    Block, Caching, CachingOptions, ChunkState, Fake, GIB, Heap, KIB, MIB, MemoryResource,
    ModeSpec, Stream,
};

const S: Stream = Stream(0);

fn heap(mode: &str) -> Heap {
    Heap::new(Box::new(Fake::new(GIB)), ModeSpec::parse(mode).expect("a valid mode"))
}

fn value(stats: &TorchStats, key: &str) -> i64 {
    let entries = stats.entries();
    let found = entries.iter().find(|(name, _)| name == key);
    found.unwrap_or_else(|| panic!("{key} is missing in {entries:?}")).1
}

#[test]
fn one_small_block() {
    let mut heap = heap("caching");
    let block = heap.allocate(Request::of(1)).expect("fits");
    let stats = heap.torch_stats();
    for (key, expected) in [
        ("allocated_bytes.all.current", 512),
        ("allocated_bytes.small_pool.peak", 512),
        ("allocated_bytes.large_pool.current", 0),
        ("requested_bytes.all.current", 1),
        ("reserved_bytes.all.current", 2 << 20),
        ("reserved_bytes.small_pool.allocated", 2 << 20),
        ("inactive_split_bytes.all.current", (2 << 20) - 512),
        ("inactive_split.small_pool.current", 1),
        ("allocation.all.current", 1),
        ("active.all.allocated", 1),
        ("segment.all.current", 1),
        ("num_device_alloc", 1),
        ("num_ooms", 0),
        ("max_split_size", -1),
    ] {
        assert_eq!(value(&stats, key), expected, "{key}");
    }
    heap.deallocate(block, S, 0);
    let stats = heap.torch_stats();
    // The segment is whole again: nothing keeps it from going back.
    for (key, expected) in [
        ("allocated_bytes.all.current", 0),
        ("allocated_bytes.all.freed", 512),
        ("requested_bytes.all.freed", 1),
        ("inactive_split_bytes.all.current", 0),
        ("inactive_split_bytes.all.freed", (2 << 20) - 512),
        ("reserved_bytes.all.current", 2 << 20),
        ("active_bytes.all.peak", 512),
    ] {
        assert_eq!(value(&stats, key), expected, "{key}");
    }
    heap.trim(0);
    let stats = heap.torch_stats();
    assert_eq!(value(&stats, "segment.all.freed"), 1);
    assert_eq!(value(&stats, "num_device_free"), 1);
    assert_eq!(value(&stats, "num_sync_all_streams"), 1);
}

/// A, B, C in one segment of 20 MiB; B comes back, then A, then C.
#[test]
fn what_a_split_keeps_from_going_back() {
    let mut heap = heap("caching");
    let mut take = |mib: u64| heap.allocate(Request::of(mib * MIB)).expect("fits");
    let (a, b, c) = (take(3), take(4), take(5));
    let split = |heap: &Heap| {
        let stats = heap.torch_stats();
        let of = |key: &str| value(&stats, &format!("inactive_split{key}.large_pool.current"));
        (of(""), of("_bytes") / MIB as i64)
    };
    assert_eq!(split(&heap), (1, 8));
    heap.deallocate(b, S, 0);
    assert_eq!(split(&heap), (2, 12));
    heap.deallocate(a, S, 0);
    assert_eq!(split(&heap), (2, 15));
    // The rest of the hole of 7 is cut again: one part still, 4 less.
    let d = heap.allocate(Request::of(4 * MIB)).expect("fits");
    assert_eq!(split(&heap), (2, 11));
    heap.deallocate(c, S, 0);
    assert_eq!(split(&heap), (1, 16));
    heap.deallocate(d, S, 0);
    assert_eq!(split(&heap), (0, 0));
    let stats = heap.torch_stats();
    assert_eq!(value(&stats, "inactive_split.all.peak"), 2);
    assert_eq!(value(&stats, "inactive_split_bytes.all.peak"), 17 << 20);
}

#[test]
fn oversize_blocks_retries_and_failures() {
    let mut heap = heap("caching max_split_size=100MiB");
    let big = heap.allocate(Request::of(512 * MIB)).expect("fits");
    heap.deallocate(big, S, 0);
    // 768 beside the cached 512 do not fit: that one goes first.
    let bigger = heap.allocate(Request::of(768 * MIB)).expect("fits");
    let failed = heap.allocate(Request::of(400 * MIB));
    assert!(failed.is_err());
    let stats = heap.torch_stats();
    for (key, expected) in [
        ("oversize_allocations.current", 1),
        ("oversize_allocations.allocated", 2),
        ("oversize_segments.freed", 1),
        ("max_split_size", 100 << 20),
        ("num_ooms", 1),
        // Each of the two was tried once more after everything cached had gone.
        ("num_alloc_retries", 2),
    ] {
        assert_eq!(value(&stats, key), expected, "{key}");
    }
    heap.deallocate(bigger, S, 0);
}

#[test]
fn peaks_begin_again_where_they_are() {
    for mode in ["caching", "ondemand"] {
        let mut heap = heap(mode);
        let a = heap.allocate(Request::of(30 * MIB)).expect("fits");
        let b = heap.allocate(Request::of(MIB)).expect("fits");
        heap.deallocate(a, S, 0);
        assert_eq!(value(&heap.torch_stats(), "requested_bytes.all.peak"), 31 << 20, "{mode}");
        heap.reset_peak();
        let stats = heap.torch_stats();
        assert_eq!(value(&stats, "requested_bytes.all.peak"), 1 << 20, "{mode}");
        assert_eq!(value(&stats, "allocation.all.peak"), 1, "{mode}");
        // What was added up stays.
        assert_eq!(value(&stats, "requested_bytes.all.allocated"), 31 << 20, "{mode}");
        heap.deallocate(b, S, 0);
    }
}

#[test]
fn other_allocators_tell_what_they_have() {
    let mut heap = heap("ondemand");
    let block = heap.allocate(Request::of(3 * MIB)).expect("fits");
    let stats = heap.torch_stats();
    assert_eq!(value(&stats, "allocated_bytes.all.current"), 4 << 20);
    assert_eq!(value(&stats, "reserved_bytes.all.current"), 4 << 20);
    assert_eq!(value(&stats, "segment.all.peak"), 1);
    assert!(stats.entries().iter().all(|(key, _)| !key.contains("pool")));
    assert!(stats.of(Metric::InactiveSplit).is_none());
    assert!(!stats.summary("memory", false).contains("Non-releasable"));
    heap.deallocate(block, S, 0);
}

/// Count and bytes of what is out, what is asked, what is held, and the free parts of segments; all, large, small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plain([[u64; 3]; 7]);

const PLAIN: [Metric; 7] = [
    Metric::Allocation,
    Metric::AllocatedBytes,
    Metric::RequestedBytes,
    Metric::Segment,
    Metric::ReservedBytes,
    Metric::InactiveSplit,
    Metric::InactiveSplitBytes,
];

/// The obvious way: looks at every block of every segment. Segments of 2 MiB are of the small pool.
fn plain(cache: &Caching) -> Plain {
    let mut counted = Plain::default();
    let chunks = cache.chunks();
    for region in cache.regions() {
        let pool = if region.bytes == 2 * MIB { 2 } else { 1 };
        let own: Vec<_> = chunks
            .iter()
            .filter(|chunk| (region.base..region.base + region.bytes).contains(&chunk.address))
            .collect();
        for at in [0, pool] {
            let mut add = |index: usize, by: u64| counted.0[index][at] += by;
            add(3, 1);
            add(4, region.bytes);
            for chunk in &own {
                if chunk.state == ChunkState::Used {
                    add(0, 1);
                    add(1, chunk.bytes);
                    add(2, chunk.requested);
                } else if own.len() > 1 {
                    add(5, 1);
                    add(6, chunk.bytes);
                }
            }
        }
    }
    counted
}

/// The obvious count over time, from one look after each step.
#[derive(Default)]
struct OverTime {
    before: Plain,
    stats: [[Stat; 3]; 7],
}

impl OverTime {
    fn look(&mut self, cache: &Caching) {
        let now = plain(cache);
        for (index, row) in self.stats.iter_mut().enumerate() {
            for (at, stat) in row.iter_mut().enumerate() {
                let (before, now) = (self.before.0[index][at], now.0[index][at]);
                stat.increase(now.saturating_sub(before));
                stat.decrease(before.saturating_sub(now));
            }
        }
        self.before = now;
    }

    /// Within a step that trims and grows, what is held goes down and up: its totals are not asked there.
    fn check(&self, stats: &TorchStats, what: &str) {
        for (index, metric) in PLAIN.into_iter().enumerate() {
            let counted = stats.of(metric).expect("a caching allocator has all");
            let pools = counted.pools.expect("by pool");
            let told = [counted.all, pools[0], pools[1]];
            for (told, seen) in told.iter().zip(&self.stats[index]) {
                assert_eq!(told.current, seen.current, "{what}: {metric:?}");
                let in_one_step = matches!(metric, Metric::Segment | Metric::ReservedBytes);
                if !in_one_step {
                    assert_eq!(told, seen, "{what}: {metric:?}");
                }
            }
        }
    }
}

#[test]
fn every_figure_is_the_obvious_count_after_every_step() {
    let settings = [
        CachingOptions::of(GIB),
        CachingOptions { max_split: 40 * MIB, ..CachingOptions::of(GIB / 2) },
        CachingOptions { limited: true, gc_threshold: 0.3, ..CachingOptions::of(GIB / 4) },
    ];
    for (number, options) in settings.into_iter().enumerate() {
        let mut fake = Fake::new(GIB / 2);
        let mut cache = Caching::new(options);
        let mut random = Random::new(number as u64 + 7);
        let mut blocks: Vec<Block> = Vec::new();
        let mut seen = OverTime::default();
        for step in 0..1500 {
            if random.below(100) == 0 {
                cache.trim(&mut fake);
            } else if random.below(9) < 5 || blocks.is_empty() {
                let bytes = match random.below(3) {
                    0 => 1 + random.below(900 * KIB),
                    1 => 1 + random.below(9 * MIB),
                    _ => 1 + random.below(70 * MIB),
                };
                blocks.extend(cache.allocate(bytes, S, &mut fake));
            } else {
                let gone = random.below(blocks.len() as u64) as usize;
                cache.deallocate(blocks.swap_remove(gone), S, &mut fake);
            }
            seen.look(&cache);
            let stats = cache.torch_stats().expect("caching");
            seen.check(stats, &format!("settings {number}, step {step}"));
        }
        blocks.into_iter().for_each(|block| cache.deallocate(block, S, &mut fake));
    }
}

#[test]
fn recorded_programs_end_with_the_figures_of_their_snapshots() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/benchmarks/traces");
    if !folder.is_dir() {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "the recorded traces are absent: {}", folder.display());
        eprintln!("skipped: the recorded traces are absent");
        return;
    }
    for name in
        ["small-cnn", "lm-1024-train", "lm-128-forward", "lm-256-step", "lm-512-forward-bf16"]
    {
        let bytes = std::fs::read(folder.join(format!("{name}.pickle"))).expect("readable");
        let device = torch::read(&bytes).expect("a snapshot").remove(0);
        let options = torch::options_of(&device);
        let mut predictor =
            torch::Predictor::new(options, &torch::state_at_start(&device, &options));
        let mut seen = OverTime::default();
        seen.look(predictor.cache());
        for (index, event) in device.events.iter().enumerate() {
            predictor.step(event);
            if name == "small-cnn" {
                seen.look(predictor.cache());
                let stats = predictor.cache().torch_stats().expect("caching");
                seen.check(stats, &format!("{name}, event {index}"));
            }
        }
        let stats = predictor.cache().torch_stats().expect("caching");
        let current = |metric| stats.of(metric).expect("counted").all.current;
        // The snapshot's own account, block by block.
        let segments = device.segments.iter().filter(|segment| segment.bytes > 0);
        let (mut reserved, mut allocated, mut parts, mut part_bytes) = (0, 0, 0, 0);
        for segment in segments {
            reserved += segment.bytes;
            let used = segment.blocks.iter().filter(|block| block.used);
            allocated += used.map(|block| block.bytes).sum::<u64>();
            if segment.blocks.len() > 1 {
                let free: Vec<_> = segment.blocks.iter().filter(|block| !block.used).collect();
                parts += free.len() as u64;
                part_bytes += free.iter().map(|block| block.bytes).sum::<u64>();
            }
        }
        assert_eq!(current(Metric::ReservedBytes), reserved, "{name}");
        assert_eq!(current(Metric::AllocatedBytes), allocated, "{name}");
        assert_eq!(current(Metric::InactiveSplit), parts, "{name}");
        assert_eq!(current(Metric::InactiveSplitBytes), part_bytes, "{name}");
        assert_eq!(current(Metric::Segment), device.segments.len() as u64, "{name}");
    }
}

#[test]
fn the_summary_is_laid_out_as_pytorch_does() {
    let mut heap = heap("caching");
    let a = heap.allocate(Request::of(180 * MIB)).expect("fits");
    let b = heap.allocate(Request::of(72 * KIB)).expect("fits");
    let text = heap.torch_stats().summary("vramlab memory summary", false);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("|{}|", "=".repeat(75)));
    assert!(lines[1].contains("vramlab memory summary"));
    assert_eq!(
        lines[5],
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |"
    );
    assert_eq!(
        lines[7],
        "| Allocated memory      | 184392 KiB | 184392 KiB | 184392 KiB |      0 B   |"
    );
    assert_eq!(
        lines[8],
        "|       from large pool | 184320 KiB | 184320 KiB | 184320 KiB |      0 B   |"
    );
    assert_eq!(
        lines[9],
        "|       from small pool |     72 KiB |     72 KiB |     72 KiB |      0 B   |"
    );
    let allocs = lines.iter().find(|line| line.contains("| Allocations ")).expect("a row");
    assert_eq!(
        *allocs,
        "| Allocations           |       2    |       2    |       2    |       0    |"
    );
    heap.deallocate(a, S, 0);
    heap.deallocate(b, S, 0);
}
