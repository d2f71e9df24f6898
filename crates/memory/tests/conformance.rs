//! The suite of the trait, run on every allocator, on stacks of adaptors, and on the drivers of this crate.

use vramlab_memory::adaptors::{FailNth, Limit, Poison, Reclaim};
use vramlab_memory::caching::Divisions;
use vramlab_memory::conformance::Pair;
use vramlab_memory::{
    Bfc, BfcOptions, Caching, CachingOptions, Fake, FakeOptions, MIB, MemoryResource, Platform,
    conformance,
};
use vramlab_memory::{Vmm, VmmOptions};

fn on(capacity: u64, resource: impl MemoryResource + 'static) -> Pair {
    (Box::new(resource), Box::new(Fake::new(capacity)))
}

conformance!(preallocate, || on(128 * MIB, Bfc::new(BfcOptions::preallocate(96 * MIB))));
conformance!(ondemand, || on(128 * MIB, Bfc::new(BfcOptions::ondemand(96 * MIB, false))));
conformance!(ondemand_gc, || on(128 * MIB, Bfc::new(BfcOptions::ondemand(96 * MIB, true))));
conformance!(ondemand_refused, || on(64 * MIB, Bfc::new(BfcOptions::ondemand(96 * MIB, true))));
conformance!(platform, || on(96 * MIB, Platform::new(96 * MIB)));
conformance!(coalescing, || {
    let options = BfcOptions { coalesce: true, ..BfcOptions::ondemand(96 * MIB, false) };
    let fake = FakeOptions { gap: 0, ..FakeOptions::of(128 * MIB) };
    (Box::new(Bfc::new(options)), Box::new(Fake::with_options(fake)))
});
conformance!(odd_limit, || on(128 * MIB, Bfc::new(BfcOptions::preallocate(96 * MIB + 77))));
conformance!(caching, || on(96 * MIB, Caching::new(CachingOptions::of(96 * MIB))));
conformance!(caching_max_split, || {
    let options = CachingOptions { max_split: 21 * MIB, ..CachingOptions::of(96 * MIB) };
    on(96 * MIB, Caching::new(options))
});
conformance!(caching_collected, || {
    let options =
        CachingOptions { limited: true, gc_threshold: 0.5, ..CachingOptions::of(80 * MIB) };
    on(96 * MIB, Caching::new(options))
});
conformance!(caching_divisions, || {
    let divisions = Divisions::parse("[1:4,2:8,>:2]").expect("valid");
    on(96 * MIB, Caching::new(CachingOptions { divisions, ..CachingOptions::of(96 * MIB) }))
});
conformance!(caching_expandable, || {
    let options = CachingOptions { expandable_segments: true, ..CachingOptions::of(96 * MIB) };
    on(96 * MIB, Caching::new(options))
});
conformance!(vmm, || on(128 * MIB, Vmm::new(VmmOptions::vmm(96 * MIB))));
conformance!(vmm_refused, || on(64 * MIB, Vmm::new(VmmOptions::vmm(96 * MIB))));
conformance!(vmm_keeps_little, || {
    let options = VmmOptions { keep: 4 * MIB, granule: MIB, ..VmmOptions::vmm(96 * MIB + 77) };
    let fake = FakeOptions { granularity: 64 << 10, ..FakeOptions::of(128 * MIB) };
    (Box::new(Vmm::new(options)), Box::new(Fake::with_options(fake)))
});
conformance!(cuda_async, || on(128 * MIB, Vmm::new(VmmOptions::cuda_async(96 * MIB, u64::MAX))));
conformance!(adaptors_together, || {
    let bfc = Bfc::new(BfcOptions::ondemand(96 * MIB, false));
    let stack = Poison::new(Reclaim::new(Limit::new(bfc, 80 * MIB), Box::new(|_| Vec::new())));
    on(128 * MIB, FailNth::new(stack, 0))
});

#[test]
fn the_fake_is_a_driver() {
    conformance::driver(Box::new(Fake::new(64 * MIB)));
    let pages = FakeOptions { granularity: 64 << 10, ..FakeOptions::of(64 * MIB) };
    conformance::driver(Box::new(Fake::with_options(pages)));
    let mut beside = Fake::new(64 * MIB);
    beside.set_others(32 * MIB);
    conformance::driver(Box::new(beside));
}
