//! Memory behind reserved addresses: free pieces always join; and the stream-ordered pool on top of it.

use vramlab_memory::heap::Request;
use vramlab_memory::{
    Block, ChunkState, Fake, FakeOptions, GIB, Heap, MIB, MemoryResource, ModeSpec, Stream, Vmm,
    VmmOptions,
};

const S: Stream = Stream(0);

fn heap(mode: &str) -> Heap {
    Heap::new(Box::new(Fake::new(GIB)), ModeSpec::parse(mode).expect("a valid mode"))
}

fn take(heap: &mut Heap, bytes: u64) -> Block {
    heap.allocate(Request::of(bytes)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_growing_temporaries_that_fragment_bfc_pass() {
    let mut heap = heap("vmm");
    for n in (20..=200).step_by(20) {
        let block = take(&mut heap, n * MIB);
        heap.deallocate(block, S, 0);
    }
    // One run of addresses that grew to the largest.
    assert_eq!((heap.stats().pool_bytes, heap.regions().len()), (200 * MIB, 1));
    let big = take(&mut heap, 400 * MIB);
    assert_eq!(heap.stats().pool_bytes, 400 * MIB);
    assert_eq!(heap.stats().slack_bytes(), 0);
    heap.deallocate(big, S, 0);
}

#[test]
fn a_checkerboard_at_the_limit_passes_by_moving_granules() {
    let mut heap = heap("vmm");
    let blocks: Vec<Block> = (0..48).map(|_| take(&mut heap, 16 * MIB)).collect();
    let mut kept = Vec::new();
    for (index, block) in blocks.into_iter().enumerate() {
        if index % 2 == 0 { kept.push(block) } else { heap.deallocate(block, S, 0) }
    }
    // 384 MiB free in holes of 16, the limit reached: preallocate and ondemand fail here.
    let large = take(&mut heap, 384 * MIB);
    assert_eq!((heap.stats().pool_bytes, heap.stats().bytes_in_use), (768 * MIB, 768 * MIB));
    kept.push(large);
    assert_eq!(heap.check(), Ok(()));
    kept.into_iter().for_each(|block| heap.deallocate(block, S, 0));
    assert_eq!(heap.trim(0).kept, []);
    assert_eq!(heap.device().held, 0);
}

#[test]
fn keep_bounds_what_stays_mapped_after_a_free() {
    let mut heap = heap("vmm keep=8MiB");
    let block = take(&mut heap, 100 * MIB);
    heap.deallocate(block, S, 0);
    assert_eq!(heap.stats().pool_bytes, 8 * MIB);
    let mut none = self::heap("vmm keep=0");
    let (a, b) = (take(&mut none, 3 * MIB), take(&mut none, 3 * MIB));
    none.deallocate(a, S, 0);
    // The granule that both blocks touch stays.
    assert_eq!(none.stats().pool_bytes, 4 * MIB);
    none.deallocate(b, S, 0);
    assert_eq!(none.stats().pool_bytes, 0);
}

#[test]
fn a_refusal_on_the_way_leaves_nothing_mapped() {
    let mut fake = Fake::new(64 * MIB);
    let mut vmm = Vmm::new(VmmOptions::vmm(64 * MIB));
    fake.set_others(60 * MIB);
    let error = vmm.allocate(10 * MIB, S, &mut fake).expect_err("4 MiB are free");
    assert_eq!((error.pool, error.others), (0, 60 * MIB));
    assert_eq!(vmm.stats().pool_bytes, 0);
    let small = vmm.allocate(3 * MIB, S, &mut fake).expect("fits");
    assert_eq!(vmm.check(), Ok(()));
    vmm.deallocate(small, S, &mut fake);
}

#[test]
fn a_device_without_virtual_memory_is_said_so() {
    let options = FakeOptions { virtual_memory: false, ..FakeOptions::of(GIB) };
    let mut heap = Heap::new(Box::new(Fake::with_options(options)), ModeSpec::default());
    for mode in ["vmm", "cuda_async", "caching expandable_segments=on"] {
        let mode = ModeSpec::parse(mode).expect("a valid mode");
        let refused = heap.supports(&mode).expect_err("not on this device").to_string();
        assert!(refused.contains("reserved addresses"), "{refused}");
        heap.begin_switch(mode, 0);
        heap.allocate(Request::of(1)).expect_err("nothing to map with");
    }
    assert_eq!(heap.supports(&ModeSpec::default()), Ok(()));
}

#[test]
fn cuda_async_orders_frees_by_stream() {
    let mut heap = heap("cuda_async");
    let block = take(&mut heap, 10 * MIB);
    let first = block.address();
    assert_eq!(heap.stats().pool_bytes, 32 * MIB);
    heap.deallocate(block, Stream(1), 0);
    assert!(heap.chunks().iter().any(|chunk| chunk.state == ChunkState::Pending));
    // Another stream may not have it yet; its own may.
    let other =
        heap.allocate(Request { stream: Stream(2), ..Request::of(10 * MIB) }).expect("fits");
    assert_ne!(other.address(), first);
    let own = heap.allocate(Request { stream: Stream(1), ..Request::of(10 * MIB) }).expect("fits");
    assert_eq!(own.address(), first);
    heap.deallocate(own, Stream(1), 0);
    heap.synchronize(0);
    let again =
        heap.allocate(Request { stream: Stream(2), ..Request::of(10 * MIB) }).expect("fits");
    assert_eq!(again.address(), first);
    heap.deallocate(again, Stream(2), 0);
    heap.deallocate(other, Stream(2), 0);
}

#[test]
fn cuda_async_releases_above_its_threshold_at_a_synchronisation() {
    for (threshold, kept) in [("0", 0), ("64MiB", 64), ("unlimited", 320)] {
        let mut heap = heap(&format!("cuda_async release_threshold={threshold}"));
        let block = take(&mut heap, 300 * MIB);
        heap.deallocate(block, S, 0);
        assert_eq!(heap.stats().pool_bytes, 320 * MIB, "{threshold}");
        heap.synchronize(0);
        assert_eq!(heap.stats().pool_bytes, kept * MIB, "{threshold}");
        heap.trim(0);
        assert_eq!(heap.stats().pool_bytes, 0);
    }
}

#[test]
fn cuda_async_waits_for_other_streams_before_it_gives_up() {
    let mut heap = heap("cuda_async");
    let block = take(&mut heap, 700 * MIB);
    heap.deallocate(block, Stream(1), 0);
    let other = heap.allocate(Request { stream: Stream(2), ..Request::of(600 * MIB) });
    let other = other.expect("passes once stream 1 is waited for");
    heap.deallocate(other, Stream(2), 0);
}
