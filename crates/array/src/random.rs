//! Random arrays: counter-based, so that the seed and the number of draws decide every value.

use crate::ambient::{current, lock};
use vramlab_ir::{DType, Fault, Literal};

/// What the next draw depends on.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    seed: u64,
    draws: u64,
}

/// Starts the sequence of random numbers again from `value`.
pub(crate) fn set_seed(value: i64) -> Result<(), Fault> {
    let context = current()?;
    *lock(&context.state.random) = Stream { seed: value as u64, draws: 0 };
    Ok(())
}

/// The key of one draw: two words, mixed so that neither neighbouring seeds nor neighbouring draws
/// give keys that differ in a few bits only.
pub(crate) fn next_key() -> Result<[Literal; 2], Fault> {
    let context = current()?;
    let mut stream = lock(&context.state.random);
    let draw = stream.draws;
    stream.draws += 1;
    let key = mixed(mixed(stream.seed) ^ draw);
    Ok([key >> 32, key & 0xffff_ffff].map(|word| Literal::from_bits(DType::U32, word)))
}

/// The finaliser of SplitMix64: a bijection of 64 bits (Steele, Lea and Flood, 2014).
fn mixed(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
