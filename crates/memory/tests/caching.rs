//! PyTorch's rules: sizes, the reported cases, and every address of recordings from real GPUs.

use std::path::{Path, PathBuf};
use vramlab_memory::heap::Request;
use vramlab_memory::oom::verdict;
use vramlab_memory::replay::{Device, run};
use vramlab_memory::trace::torch;
use vramlab_memory::{
    Block, Caching, CachingOptions, Fake, GIB, Heap, MIB, MemoryResource, ModeSpec, Owner, Stream,
    Verdict,
};

const S: Stream = Stream(0);

fn heap(capacity: u64, mode: &str) -> Heap {
    Heap::new(Box::new(Fake::new(capacity)), ModeSpec::parse(mode).expect("a valid mode"))
}

fn take(heap: &mut Heap, bytes: u64) -> Block {
    heap.allocate(Request::of(bytes)).unwrap_or_else(|error| panic!("{error}"))
}

fn give(heap: &mut Heap, block: Block) {
    heap.deallocate(block, S, 0);
}

#[test]
fn caching_sizes() {
    for (asked, reserved, granted) in [
        (1, 2 * MIB, 512),
        (MIB, 2 * MIB, MIB),
        (3 * MIB, 20 * MIB, 3 * MIB),
        (11 * MIB, 12 * MIB, 12 * MIB),
        (25 * MIB, 26 * MIB, 26 * MIB),
    ] {
        let mut heap = heap(GIB, "caching");
        let block = take(&mut heap, asked);
        let stats = heap.stats();
        assert_eq!((stats.pool_bytes, stats.bytes_in_use), (reserved, granted), "{asked}");
        give(&mut heap, block);
    }
}

/// 1000 MiB once, then 40 blocks of 10 MiB of which every fifth stays.
fn before_the_large_one(heap: &mut Heap) -> Vec<Block> {
    let large = take(heap, 1000 * MIB);
    give(heap, large);
    let mut kept = Vec::new();
    for index in 0..40 {
        kept.push((index, take(heap, 10 * MIB)));
    }
    let (stay, go): (Vec<_>, Vec<_>) = kept.into_iter().partition(|(index, _)| index % 5 == 0);
    go.into_iter().for_each(|(_, block)| give(heap, block));
    stay.into_iter().map(|(_, block)| block).collect()
}

#[test]
fn caching_max_split() {
    let mut heap = self::heap(GIB + GIB / 2, "caching");
    let kept = before_the_large_one(&mut heap);
    let error = heap.allocate(Request::of(1000 * MIB)).expect_err("the segment is pinned");
    assert_eq!(verdict(&error, 0), Verdict::Fragmented);
    let stats = heap.stats();
    assert_eq!(stats.bytes_in_use, 80 * MIB);
    assert_eq!(stats.free_bytes(), 920 * MIB);
    kept.into_iter().for_each(|block| give(&mut heap, block));

    let mut heap = self::heap(GIB + GIB / 2, "caching max_split_size=100MiB");
    let kept = before_the_large_one(&mut heap);
    let block = take(&mut heap, 1000 * MIB);
    assert_eq!(heap.stats().pool_bytes, 1400 * MIB);
    give(&mut heap, block);
    kept.into_iter().for_each(|block| give(&mut heap, block));
}

#[test]
fn caching_pinned_segment() {
    let mut heap = heap(16 * GIB, "caching");
    let big = take(&mut heap, 11_643_387_904);
    give(&mut heap, big);
    let sizes = [16_515_072, 11_400_192, 18_191_360];
    let mut blocks = Vec::new();
    for index in 0..30 {
        let owner = heap.ledger_mut().intern(Owner::Variable(format!("acts[{index}]")));
        let request = Request { owner, ..Request::of(sizes[index % 3]) };
        blocks.push(heap.allocate(request).expect("fits"));
    }
    for index in (0..30).rev().filter(|index| index % 6 == 0) {
        let block = blocks.remove(index);
        give(&mut heap, block);
    }
    let failure = heap.allocate_with(Request::of(11_643_387_904), &mut []).expect_err("pinned");
    assert_eq!(verdict(&failure.error, 0), Verdict::Fragmented);
    let report = heap.explain(&failure, 0);
    assert_eq!(report.pinned_regions, [11_643_387_904u64.next_multiple_of(2 * MIB)]);
    assert!(report.passing().contains(&"caching max_split_size=128MiB".to_string()));
    // Which variables pin it: one segment, each of the 25 that stay by name.
    let trimmed = heap.trim(0);
    assert_eq!((trimmed.kept.len(), trimmed.kept[0].blocks.len()), (1, 25));
    let first = heap.ledger().find(trimmed.kept[0].blocks[0]).expect("live");
    assert_eq!(heap.ledger().owner(first.owner).to_string(), "acts[1]");
    blocks.into_iter().for_each(|block| give(&mut heap, block));
}

#[test]
fn limit_trim_retry() {
    let mut fake = Fake::new(GIB);
    let mut cache = Caching::new(CachingOptions::of(GIB));
    let first = cache.allocate(512 * MIB, S, &mut fake).expect("fits");
    cache.deallocate(first, S, &mut fake);
    let second = cache.allocate(768 * MIB, S, &mut fake).expect("fits after a trim");
    assert_eq!((cache.retries(), cache.stats().pool_bytes), (1, 768 * MIB));
    cache.deallocate(second, S, &mut fake);
}

#[test]
fn limit_thirds() {
    let mut heap = heap(10 * GIB, "caching");
    let first = take(&mut heap, 3 * GIB);
    let second = take(&mut heap, 3 * GIB);
    give(&mut heap, second);
    let third = take(&mut heap, 6 * GIB);
    assert_eq!(heap.stats().pool_bytes, 9 * GIB);
    give(&mut heap, first);
    give(&mut heap, third);
}

#[test]
fn loop_steady() {
    let bytes = 32 * 4 * 84 * 84 * 4;
    let mut heap = heap(GIB, "caching");
    for _ in 0..10_000 {
        let block = take(&mut heap, bytes);
        give(&mut heap, block);
    }
    assert_eq!(heap.stats().peak_pool_bytes, 20 * MIB);
}

#[test]
fn blocks_of_one_stream_are_not_reused_by_another() {
    let mut fake = Fake::new(GIB);
    let mut cache = Caching::new(CachingOptions::of(GIB));
    let first = cache.allocate(3 * MIB, Stream(0), &mut fake).expect("fits");
    cache.deallocate(first, Stream(0), &mut fake);
    let other = cache.allocate(3 * MIB, Stream(1), &mut fake).expect("fits");
    assert_eq!(cache.stats().pool_bytes, 40 * MIB);
    cache.deallocate(other, Stream(1), &mut fake);
}

#[test]
fn expandable_segments_join_what_separate_ones_cannot() {
    let growing = |heap: &mut Heap| {
        for n in (20..=200).step_by(20) {
            let block = take(heap, n * MIB);
            give(heap, block);
        }
    };
    let mut expandable = heap(GIB, "caching expandable_segments=on");
    growing(&mut expandable);
    // One segment that grew to the largest request; separate ones would hold 20 + 40 + … + 200.
    assert_eq!(expandable.stats().pool_bytes, 200 * MIB);
    assert_eq!(expandable.regions().len(), 1);
    let mut separate = heap(2 * GIB, "caching");
    growing(&mut separate);
    assert_eq!(separate.stats().pool_bytes, 1100 * MIB);
    assert_eq!(expandable.trim(0).released_bytes, 200 * MIB);
    assert_eq!(expandable.device().held, 0);
}

fn traces() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/benchmarks/traces");
    if folder.is_dir() {
        return Some(folder);
    }
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "the recorded traces are absent: {}", folder.display());
    eprintln!("skipped: the recorded traces are absent");
    None
}

#[test]
fn caching_real_traces() {
    let Some(folder) = traces() else { return };
    let mut predicted = 0;
    for (name, allocs, segments) in [
        ("small-cnn", 1_935, 7),
        ("lm-1024-train", 7_591, 0),
        ("lm-128-forward", 2_058, 289),
        ("lm-256-step", 6_769, 791),
        ("lm-512-forward-bf16", 2_702, 638),
    ] {
        let file = folder.join(format!("{name}.pickle"));
        let bytes = std::fs::read(&file).expect("a recorded trace is readable");
        let devices = torch::read(&bytes).expect("a snapshot");
        assert_eq!(devices.len(), 1, "{name}");
        let found = torch::predict(&devices[0], torch::options_of(&devices[0]));
        assert_eq!(found.first_wrong, None, "{name}: {found:?}");
        assert_eq!((found.allocs, found.right), (allocs, allocs), "{name}");
        assert_eq!((found.segments, found.segments_right), (segments, segments), "{name}");
        assert_eq!(found.strays, 0, "{name}");
        predicted += found.right;
        let outcome = run(&torch::trace(&devices[0]), &ModeSpec::default(), Device::of(160 * GIB));
        assert!(outcome.passes() && outcome.strays == 0, "{name}: {outcome:?}");
    }
    assert_eq!(predicted, 21_055);
}
