//! Reductions to a position: the first maximum or minimum, and the first NaN before all.

use super::lanes::{Block, CHUNK, Operand, Versions};
use super::number::Number;
use super::reduce::{Bits, POSITIONS, Partial, Reducer};
use crate::cpu::isa::Isa;
use std::marker::PhantomData;
use vramlab_ir::DType;

/// Which of two values wins, and so its position.
pub(super) trait Contest: 'static {
    type T: Number + Bits;
    /// Loses against all others.
    const WORST: Self::T;
    /// Whether `a` wins whatever the positions.
    fn beats(a: Self::T, b: Self::T) -> bool;
}

/// The first maximum or minimum; NaN before all else.
pub(super) struct First<T, const MAX: bool>(PhantomData<T>);
impl<T: Number + Bits, const MAX: bool> Contest for First<T, MAX> {
    type T = T;
    const WORST: T = if MAX { T::LOWEST } else { T::HIGHEST };
    #[inline(always)]
    fn beats(a: T, b: T) -> bool {
        let beyond = if MAX { a > b } else { a < b };
        beyond || (a.is_nan() && !b.is_nan())
    }
}

/// Whether (b, at) takes the place of (a, held). A position of −1 holds nothing.
#[inline(always)]
fn takes<C: Contest>(a: C::T, held: i32, b: C::T, at: i32) -> bool {
    let earlier = !C::beats(a, b) && at < held;
    held < 0 || (at >= 0 && (C::beats(b, a) || earlier))
}

pub(super) fn by_position<C: Contest>(dtype: DType, isa: Isa) -> Reducer {
    Reducer {
        dtype,
        arg: true,
        identity: C::WORST.bits(),
        start: start_contest::<C>,
        lanes: <C::T as Number>::Arithmetic::pick::<LanesContest<C>>(isa),
        finish: finish_contest::<C>,
        join: join_contest::<C>,
        rows: <C::T as Number>::Arithmetic::pick::<RowsContest<C>>(isa),
        fold: <C::T as Number>::Arithmetic::pick::<FoldContest<C>>(isa),
        fold_rows: None,
        segments: <C::T as Number>::Arithmetic::pick::<SegmentsContest<C>>(isa),
    }
}

fn join_contest<C: Contest>(a: Partial, b: Partial) -> Partial {
    let (x, y) = (C::T::from_bits(a.bits), C::T::from_bits(b.bits));
    if takes::<C>(x, a.position, y, b.position) { b } else { a }
}

/// # Safety
/// A set of lanes is writable at `lanes`.
unsafe fn start_contest<C: Contest>(lanes: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        *lanes.cast::<[C::T; CHUNK]>() = [C::WORST; CHUNK];
        *lanes.add(POSITIONS).cast::<[i32; CHUNK]>() = [-1; CHUNK];
    }
}

/// # Safety
/// A set of lanes of `C` is readable at `lanes`.
unsafe fn finish_contest<C: Contest>(lanes: *const u8) -> Partial {
    // SAFETY: the caller's promise.
    let (values, positions) =
        unsafe { (*lanes.cast::<[C::T; CHUNK]>(), *lanes.add(POSITIONS).cast::<[i32; CHUNK]>()) };
    let all = values.into_iter().zip(positions);
    let partials = all.map(|(value, position)| Partial { bits: value.bits(), position });
    partials.reduce(join_contest::<C>).unwrap_or_default()
}

struct LanesContest<C>(PhantomData<C>);
impl<C: Contest> Block for LanesContest<C> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        // SAFETY: `out` is a set of lanes of `C`, operand 0 has `chunks` chunks, operand 1 an i32.
        unsafe {
            let values = &mut *out.cast::<[C::T; CHUNK]>();
            let positions = &mut *out.add(POSITIONS).cast::<[i32; CHUNK]>();
            let first = *args[1].ptr.cast::<i32>();
            for i in 0..chunks {
                let at = first.wrapping_add((i * CHUNK) as i32);
                contend::<C>(values, positions, args[0].chunk(i), at);
            }
        }
    }
}

#[inline(always)]
fn contend<C: Contest>(
    values: &mut [C::T; CHUNK],
    positions: &mut [i32; CHUNK],
    block: &[C::T; CHUNK],
    at: i32,
) {
    for i in 0..CHUNK {
        // Positions only grow within a lane, so an equal value never takes the place.
        let take = C::beats(block[i], values[i]) | (positions[i] < 0);
        values[i] = if take { block[i] } else { values[i] };
        positions[i] = if take { at.wrapping_add(i as i32) } else { positions[i] };
    }
}

struct RowsContest<C>(PhantomData<C>);
impl<C: Contest> Block for RowsContest<C> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let columns = args[0].step;
        for row in 0..chunks {
            // SAFETY: operand 0 holds `chunks` rows of `columns` values, `out` as many positions.
            unsafe {
                let start = args[0].ptr.cast::<C::T>().add(row * columns);
                let values = std::slice::from_raw_parts(start, columns);
                let mut best = 0;
                for (i, &value) in values.iter().enumerate() {
                    if C::beats(value, values[best]) {
                        best = i;
                    }
                }
                *out.cast::<i32>().add(row) = if columns == 0 { -1 } else { best as i32 };
            }
        }
    }
}

struct FoldContest<C>(PhantomData<C>);
impl<C: Contest> Block for FoldContest<C> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        for i in 0..chunks {
            // SAFETY: `out`, its positions at operand 1, and operands 0 and 2 have `chunks` chunks, all apart.
            unsafe {
                let values = &mut *out.cast::<[C::T; CHUNK]>().add(i);
                let positions = &mut *args[1].ptr.cast_mut().cast::<[i32; CHUNK]>().add(i);
                fold_contest::<C>(values, positions, args[0].chunk(i), args[2].chunk(i));
            }
        }
    }
}

#[inline(always)]
fn fold_contest<C: Contest>(
    values: &mut [C::T; CHUNK],
    positions: &mut [i32; CHUNK],
    block: &[C::T; CHUNK],
    at: &[i32; CHUNK],
) {
    for i in 0..CHUNK {
        let take = takes::<C>(values[i], positions[i], block[i], at[i]);
        values[i] = if take { block[i] } else { values[i] };
        positions[i] = if take { at[i] } else { positions[i] };
    }
}

struct SegmentsContest<C>(PhantomData<C>);
impl<C: Contest> Block for SegmentsContest<C> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let columns = args[0].step;
        // SAFETY: `out` holds `chunks` segments of `columns` values, operand 1 their positions.
        let (values, positions) = unsafe {
            let positions = args[1].ptr.cast_mut().cast::<i32>();
            (
                std::slice::from_raw_parts_mut(out.cast::<C::T>(), chunks * columns),
                std::slice::from_raw_parts_mut(positions, chunks * columns),
            )
        };
        for at in columns..chunks * columns {
            let to = at % columns;
            if takes::<C>(values[to], positions[to], values[at], positions[at]) {
                (values[to], positions[to]) = (values[at], positions[at]);
            }
        }
    }
}
