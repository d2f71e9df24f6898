//! The memory crate's suite on the leaves of this crate.

use vramlab_device::cpu::{self, Options};
use vramlab_device::dry;
use vramlab_memory::conformance::Pair;
use vramlab_memory::{
    Bfc, BfcOptions, Driver, MIB, MemoryResource, Platform, Vmm, VmmOptions, conformance,
};

fn leaf(capacity: u64) -> Box<dyn Driver> {
    cpu::open(Options { capacity: Some(capacity), ..Options::default() }).1
}

fn on_cpu(resource: impl MemoryResource + 'static) -> Pair {
    (Box::new(resource), leaf(128 * MIB))
}

fn on_dry(resource: impl MemoryResource + 'static) -> Pair {
    (Box::new(resource), dry::open(128 * MIB).1)
}

conformance!(cpu_preallocate, || on_cpu(Bfc::new(BfcOptions::preallocate(96 * MIB))));
conformance!(cpu_ondemand, || on_cpu(Bfc::new(BfcOptions::ondemand(96 * MIB, true))));
conformance!(dry_ondemand, || on_dry(Bfc::new(BfcOptions::ondemand(96 * MIB, false))));
conformance!(dry_platform, || on_dry(Platform::new(128 * MIB)));

/// Each event is a call to the system here, so there are fewer of them.
#[test]
fn platform_and_vmm_on_the_cpu() {
    let platform = || on_cpu(Platform::new(128 * MIB));
    let vmm = || on_cpu(Vmm::new(VmmOptions::vmm(96 * MIB)));
    for make in [&platform as &dyn Fn() -> Pair, &vmm] {
        conformance::blocks_are_aligned_and_apart(make());
        conformance::zero_bytes_are_an_empty_block(make());
        conformance::every_byte_comes_back(make());
        conformance::a_failure_changes_nothing(make());
        conformance::absurd_sizes_are_refused(make());
        conformance::chunks_tile_the_regions(make());
        conformance::peaks_are_reset(make());
        conformance::random_events(make(), 50_000, 11);
    }
}

#[test]
fn the_leaves_are_drivers() {
    conformance::driver(leaf(64 * MIB));
    conformance::driver(dry::open(64 * MIB).1);
}
