//! What every [`MemoryResource`] and every [`Driver`] must do, as tests that each implementation runs in one line.
//!
//! ```
//! vramlab_memory::conformance!(bfc, || {
//!     let options = vramlab_memory::BfcOptions::ondemand(64 << 20, false);
//!     let resource = vramlab_memory::Bfc::new(options);
//!     (Box::new(resource), Box::new(vramlab_memory::Fake::new(80 << 20)))
//! });
//! ```

use crate::{Block, Driver, KIB, MIB, MemoryResource, Stats, Stream};
use std::collections::BTreeMap;

/// A resource and the driver below it, fresh.
pub type Pair = (Box<dyn MemoryResource>, Box<dyn Driver>);

/// Every test of the suite for one way to make a resource, in a module of the given name.
#[macro_export]
macro_rules! conformance {
    ($name:ident, $make:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn make() -> $crate::conformance::Pair {
                let make: fn() -> $crate::conformance::Pair = $make;
                make()
            }

            #[test]
            fn blocks_are_aligned_and_apart() {
                $crate::conformance::blocks_are_aligned_and_apart(make());
            }
            #[test]
            fn zero_bytes_are_an_empty_block() {
                $crate::conformance::zero_bytes_are_an_empty_block(make());
            }
            #[test]
            fn every_byte_comes_back() {
                $crate::conformance::every_byte_comes_back(make());
            }
            #[test]
            fn a_failure_changes_nothing() {
                $crate::conformance::a_failure_changes_nothing(make());
            }
            #[test]
            fn absurd_sizes_are_refused() {
                $crate::conformance::absurd_sizes_are_refused(make());
            }
            #[test]
            fn chunks_tile_the_regions() {
                $crate::conformance::chunks_tile_the_regions(make());
            }
            #[test]
            fn peaks_are_reset() {
                $crate::conformance::peaks_are_reset(make());
            }
            #[test]
            fn a_million_random_events() {
                $crate::conformance::random_events(make(), 1_000_000, 7);
            }
        }
    };
}

/// A small generator (xorshift64*), so that a run can be repeated from its seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator; every seed will do.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// A size whose magnitude is spread evenly, from 1 to about `most`.
    pub fn size(&mut self, most: u64) -> u64 {
        let magnitude = self.below(u64::from(most.max(2).ilog2()) + 1);
        1 + self.below(1 << magnitude)
    }
}

const SIZES: [u64; 8] = [1, 255, 256, 257, 4 * KIB, 100_000, MIB, 3 * MIB + 1];

fn sound(resource: &dyn MemoryResource) {
    assert_eq!(resource.check(), Ok(()), "{}", resource.describe());
}

fn fill((resource, driver): &mut Pair, sizes: &[u64]) -> Vec<Block> {
    let allocate = |bytes: &u64| {
        resource.allocate(*bytes, Stream(0), &mut **driver).expect("a small request passes")
    };
    sizes.iter().map(allocate).collect()
}

/// Blocks are aligned to 256, hold what was asked, and never overlap.
pub fn blocks_are_aligned_and_apart(mut pair: Pair) {
    let blocks = fill(&mut pair, &SIZES);
    let mut ranges: Vec<(u64, u64)> = blocks.iter().map(|b| (b.address(), b.granted())).collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{ranges:?}");
    }
    for (block, bytes) in blocks.iter().zip(SIZES) {
        assert!(block.address().is_multiple_of(256), "{block:?}");
        assert!(block.requested() == bytes && block.granted() >= bytes, "{block:?}");
    }
    sound(&*pair.0);
    give_back(&mut pair, blocks);
}

fn give_back((resource, driver): &mut Pair, blocks: Vec<Block>) {
    for block in blocks {
        resource.deallocate(block, Stream(0), &mut **driver);
        sound(&**resource);
    }
}

/// Zero bytes give an empty block that no figure counts.
pub fn zero_bytes_are_an_empty_block((mut resource, mut driver): Pair) {
    let before = resource.stats();
    let block = resource.allocate(0, Stream(0), &mut *driver).expect("zero bytes always fit");
    assert!(block.is_empty());
    resource.deallocate(block, Stream(0), &mut *driver);
    assert_eq!(resource.stats(), before);
}

/// After the last block and a trim, nothing is held.
pub fn every_byte_comes_back(mut pair: Pair) {
    let held_before = pair.1.figures().held;
    let mut blocks = fill(&mut pair, &SIZES);
    // Neither in order nor in reverse.
    blocks.rotate_left(3);
    blocks.swap(0, 5);
    give_back(&mut pair, blocks);
    let (mut resource, mut driver) = pair;
    let stats = resource.stats();
    assert_eq!((stats.bytes_in_use, stats.requested_bytes, stats.live_blocks()), (0, 0, 0));
    let trimmed = resource.trim(&mut *driver);
    assert_eq!(trimmed.kept, Vec::new());
    assert_eq!((resource.stats().pool_bytes, driver.figures().held), (0, held_before));
    sound(&*resource);
}

/// A request that cannot be met leaves every figure but the count of refusals as it was, and the next one passes.
pub fn a_failure_changes_nothing(mut pair: Pair) {
    let blocks = fill(&mut pair, &SIZES);
    let before = without_refusals(pair.0.stats());
    let chunks = pair.0.chunks();
    let too_much = pair.1.figures().total + 1;
    let error = pair.0.allocate(too_much, Stream(0), &mut *pair.1).expect_err("more than there is");
    assert_eq!(error.asked, too_much);
    assert_eq!(without_refusals(pair.0.stats()), before);
    assert_eq!(pair.0.chunks(), chunks);
    sound(&*pair.0);
    let small = fill(&mut pair, &[1000]);
    give_back(&mut pair, small);
    give_back(&mut pair, blocks);
}

fn without_refusals(stats: Stats) -> Stats {
    Stats { driver_refusals: 0, ..stats }
}

/// Sizes near 2^63 and 2^64 are refused without overflow.
pub fn absurd_sizes_are_refused((mut resource, mut driver): Pair) {
    for bytes in [1 << 62, 1 << 63, (1 << 63) + 1, u64::MAX - 255, u64::MAX - 1, u64::MAX] {
        let result = resource.allocate(bytes, Stream(0), &mut *driver);
        assert!(result.is_err(), "{bytes}");
        sound(&*resource);
    }
}

/// The chunks of a map tile the regions, and the used ones are the blocks.
pub fn chunks_tile_the_regions(mut pair: Pair) {
    let blocks = fill(&mut pair, &SIZES);
    let regions = pair.0.regions();
    let mut chunks = pair.0.chunks().into_iter();
    let mut used = Vec::new();
    for region in &regions {
        let mut at = region.base;
        while at < region.base + region.bytes {
            let chunk = chunks.next().expect("chunks reach the end of each region");
            assert_eq!(chunk.address, at);
            at += chunk.bytes;
            if chunk.state == crate::ChunkState::Used {
                used.push((chunk.address, chunk.bytes, chunk.requested));
            }
        }
    }
    assert_eq!(chunks.next(), None);
    let block = |b: &Block| (b.address(), b.granted(), b.requested());
    let mut expected: Vec<_> = blocks.iter().map(block).collect();
    expected.sort_unstable();
    used.sort_unstable();
    assert_eq!(used, expected);
    give_back(&mut pair, blocks);
}

/// A peak is the most since it was reset.
pub fn peaks_are_reset(mut pair: Pair) {
    let blocks = fill(&mut pair, &[MIB, MIB]);
    give_back(&mut pair, blocks);
    assert!(pair.0.stats().peak_bytes_in_use >= 2 * MIB);
    pair.0.reset_peak();
    assert_eq!(pair.0.stats().peak_bytes_in_use, 0);
    let blocks = fill(&mut pair, &[MIB]);
    assert_eq!(pair.0.stats().peak_bytes_in_use, pair.0.stats().bytes_in_use);
    give_back(&mut pair, blocks);
}

/// Random requests, returns and trims, with the figures checked after every event and the whole state now and then.
pub fn random_events((mut resource, mut driver): Pair, events: u64, seed: u64) {
    let mut random = Random::new(seed);
    let mut live: Vec<Block> = Vec::new();
    let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut requested, mut in_use) = (0, 0);
    for event in 0..events {
        // The number of live blocks swings between few and many.
        let crowded = (event / 5_000) % 2 == 0;
        if random.below(100) < if crowded { 60 } else { 40 } {
            let bytes = random.size(4 * MIB);
            if let Ok(block) = resource.allocate(bytes, Stream(0), &mut *driver) {
                (requested, in_use) = (requested + bytes, in_use + block.granted());
                must_be_apart(&taken, &block);
                taken.insert(block.address(), block.granted());
                live.push(block);
            }
        } else if !live.is_empty() {
            let block = live.swap_remove(random.below(live.len() as u64) as usize);
            (requested, in_use) = (requested - block.requested(), in_use - block.granted());
            taken.remove(&block.address());
            resource.deallocate(block, Stream(0), &mut *driver);
        }
        let stats = resource.stats();
        assert_eq!(stats.check(), Ok(()), "event {event}");
        assert_eq!((stats.requested_bytes, stats.bytes_in_use), (requested, in_use));
        assert_eq!(stats.live_blocks(), live.len() as u64);
        if event % 20_011 == 0 {
            sound(&*resource);
        }
        if event % 100_003 == 0 {
            resource.trim(&mut *driver);
            sound(&*resource);
        }
    }
    let mut pair = (resource, driver);
    for block in live {
        pair.0.deallocate(block, Stream(0), &mut *pair.1);
    }
    pair.0.trim(&mut *pair.1);
    assert_eq!(pair.0.stats().pool_bytes, 0);
    sound(&*pair.0);
}

fn must_be_apart(taken: &BTreeMap<u64, u64>, block: &Block) {
    let end = block.address() + block.granted();
    if let Some((address, bytes)) = taken.range(..end).next_back() {
        assert!(address + bytes <= block.address(), "{block:?} lies over {address:#x}");
    }
}

/// What every driver must do: regions apart and aligned, figures that add up, a refusal that changes nothing.
pub fn driver(mut driver: Box<dyn Driver>) {
    let start = driver.figures();
    assert_eq!(start.free + start.held + start.others, start.total);
    let mut regions: Vec<_> = [2 * MIB, 3 * MIB, MIB]
        .iter()
        .map(|bytes| driver.obtain(*bytes).expect("a few MiB are free"))
        .collect();
    regions.sort_unstable_by_key(|region| region.base());
    for pair in regions.windows(2) {
        assert!(pair[0].base() + pair[0].bytes() <= pair[1].base(), "{regions:?}");
    }
    assert!(regions.iter().all(|region| region.base().is_multiple_of(256)));
    let held = driver.figures();
    assert!(held.held >= start.held + 6 * MIB);
    assert_eq!(held.free + held.held + held.others, held.total);
    let refusal = driver.obtain(held.total + 1).expect_err("more than the device");
    assert_eq!(refusal.asked, held.total + 1);
    assert_eq!(driver.figures().held, held.held);
    assert_eq!(driver.figures().refusals, held.refusals + 1);
    for region in regions {
        driver.release(region);
    }
    let end = driver.figures();
    assert_eq!((end.held, end.frees), (start.held, start.frees + 3));
}
