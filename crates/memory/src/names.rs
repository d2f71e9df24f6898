//! Tables by names: numbers that are mostly counted up, or addresses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by names.
pub type Named<K, V> = HashMap<K, V, BuildHasherDefault<NameHasher>>;

/// Multiplies: that spreads such numbers well and costs one instruction. Numbers that somebody chose to collide would
/// make a table slow, so it is for tables whose numbers this program or an allocator counted.
#[derive(Default)]
pub struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
