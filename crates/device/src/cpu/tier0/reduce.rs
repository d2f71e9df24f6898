//! Reductions: accumulators of one chunk's lanes, joined in trees of fixed shape.
//!
//! A row is cut into pieces of [`PIECE`] elements. Within a piece element i goes to lane i mod 64, a block by itself first,
//! since the longer a chain of sums, the more it rounds away; the lanes then join pairwise, and the pieces too. The shape depends on the length alone, so a result never depends on the threads.

use super::contest::{First, by_position};
use super::lanes::{BLOCK, Block, BlockFn, CHUNK, Operand, Versions};
use super::number::Number;
use crate::cpu::isa::Isa;
use std::marker::PhantomData;
use vramlab_ir::{DType, ReduceKind};

/// Elements of a row that one set of lanes takes.
pub(super) const PIECE: usize = 32 * 1024;
/// Chunks that are joined before they meet the others of a piece: a block's.
const TOGETHER: usize = BLOCK / CHUNK;
/// Bytes of one set of lanes: 64 values of up to 8 bytes, then 64 positions.
pub(super) const LANES_BYTES: usize = CHUNK * 8 + CHUNK * 4;
pub(super) const POSITIONS: usize = CHUNK * 8;

/// What one reduction is made of: the functions of its kind and dtype.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reducer {
    /// Of the values: f32 where the array's is a 16-bit float.
    pub dtype: DType,
    /// Gives positions instead of values.
    pub arg: bool,
    /// The value that changes nothing, as bits: it pads rows and is the result of an empty one.
    pub identity: u64,
    /// Puts the identity into a set of lanes.
    pub start: unsafe fn(*mut u8),
    /// Takes blocks into a set of lanes. Operand 0 is the block; the position of its first element is the i32 at
    /// operand 1.
    pub lanes: BlockFn,
    /// Joins the lanes.
    pub finish: unsafe fn(*const u8) -> Partial,
    /// Joins two results, the first of which covers earlier elements.
    pub join: fn(Partial, Partial) -> Partial,
    /// Reduces short rows that lie one behind the other: as many rows as "chunks", of operand 0's `step` elements.
    pub rows: BlockFn,
    /// Joins blocks element by element into accumulators. For positions operand 1 is where the accumulators' positions
    /// lie and operand 2 the block's.
    pub fold: BlockFn,
    /// As `fold`, several rows at once: operand 1's `step` is the distance of rows in bytes, operand 2's their number.
    /// Not for positions.
    pub fold_rows: Option<BlockFn>,
    /// Joins accumulators that lie one behind the other into the first: as many as "chunks", of operand 0's `step`
    /// elements. Positions at operand 1.
    pub segments: BlockFn,
}

/// The result over a part of the elements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partial {
    pub bits: u64,
    /// Of the element that won; −1 where there was none.
    pub position: i32,
}

/// Joins the results over consecutive pieces in a balanced tree: every `step`-th partial, `count` of them.
pub(super) fn tree(reducer: &Reducer, partials: &[Partial], step: usize, count: usize) -> Partial {
    match count {
        0 => Partial { bits: reducer.identity, position: -1 },
        1 => partials[0],
        _ => {
            let half = count.div_ceil(2);
            let left = tree(reducer, partials, step, half);
            let right = tree(reducer, &partials[half * step..], step, count - half);
            (reducer.join)(left, right)
        }
    }
}

impl Reducer {
    /// The functions for `kind` over elements of `dtype`, or `None` where that has no meaning here.
    pub fn new(kind: ReduceKind, dtype: DType, isa: Isa) -> Option<Reducer> {
        match dtype {
            DType::Bool => boolean(kind, isa),
            DType::F16 | DType::BF16 | DType::F32 => of::<f32>(kind, DType::F32, isa),
            DType::F64 => of::<f64>(kind, dtype, isa),
            DType::I32 => of::<i32>(kind, dtype, isa),
            DType::I64 => of::<i64>(kind, dtype, isa),
            DType::U32 => of::<u32>(kind, dtype, isa),
            DType::U8 => of::<u8>(kind, dtype, isa),
        }
    }
}

fn of<T: Number + Bits>(kind: ReduceKind, dtype: DType, isa: Isa) -> Option<Reducer> {
    Some(match kind {
        ReduceKind::Sum => by_value::<Sum<T>>(dtype, isa),
        ReduceKind::Prod => by_value::<Product<T>>(dtype, isa),
        ReduceKind::Max => by_value::<Greatest<T>>(dtype, isa),
        ReduceKind::Min => by_value::<Least<T>>(dtype, isa),
        ReduceKind::ArgMax => by_position::<First<T, true>>(dtype, isa),
        ReduceKind::ArgMin => by_position::<First<T, false>>(dtype, isa),
        ReduceKind::Any | ReduceKind::All => return None,
    })
}

fn boolean(kind: ReduceKind, isa: Isa) -> Option<Reducer> {
    Some(match kind {
        ReduceKind::Any | ReduceKind::Sum | ReduceKind::Max => by_value::<Any>(DType::Bool, isa),
        ReduceKind::All | ReduceKind::Prod | ReduceKind::Min => by_value::<All>(DType::Bool, isa),
        ReduceKind::ArgMax => by_position::<First<u8, true>>(DType::Bool, isa),
        ReduceKind::ArgMin => by_position::<First<u8, false>>(DType::Bool, isa),
    })
}

/// Values as bit patterns.
pub(super) trait Bits: Copy {
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! bits {
    ($($t:ty: $to:expr, $from:expr;)*) => {$(
        impl Bits for $t {
            #[inline(always)]
            fn bits(self) -> u64 {
                $to(self)
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> $t {
                $from(bits)
            }
        }
    )*};
}

bits! {
    f32: |x: f32| x.to_bits() as u64, |bits| f32::from_bits(bits as u32);
    f64: f64::to_bits, f64::from_bits;
    i32: |x| x as u32 as u64, |bits| bits as i32;
    i64: |x| x as u64, |bits| bits as i64;
    u32: |x| x as u64, |bits| bits as u32;
    u8: |x| x as u64, |bits| bits as u8;
}

/// An associative way to join two values.
trait Join: 'static {
    type T: Number + Bits;
    const IDENTITY: Self::T;
    fn join(a: Self::T, b: Self::T) -> Self::T;
}

macro_rules! joins {
    ($($name:ident: $identity:expr, $join:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: Number + Bits> Join for $name<T> {
            type T = T;
            const IDENTITY: T = $identity;
            #[inline(always)]
            fn join(a: T, b: T) -> T {
                $join(a, b)
            }
        }
    )*};
}

joins! {
    Sum: T::ZERO, T::add;
    Product: T::ONE, T::mul;
    Greatest: T::LOWEST, T::greater;
    Least: T::HIGHEST, T::lesser;
}

struct Any;
impl Join for Any {
    type T = u8;
    const IDENTITY: u8 = 0;
    #[inline(always)]
    fn join(a: u8, b: u8) -> u8 {
        a | b
    }
}

struct All;
impl Join for All {
    type T = u8;
    const IDENTITY: u8 = 1;
    #[inline(always)]
    fn join(a: u8, b: u8) -> u8 {
        a & b
    }
}

fn by_value<J: Join>(dtype: DType, isa: Isa) -> Reducer {
    Reducer {
        dtype,
        arg: false,
        identity: J::IDENTITY.bits(),
        start: start::<J>,
        lanes: <J::T as Number>::Arithmetic::pick::<Lanes<J>>(isa),
        finish: finish::<J>,
        join: |a, b| {
            let bits = J::join(J::T::from_bits(a.bits), J::T::from_bits(b.bits)).bits();
            Partial { bits, position: -1 }
        },
        rows: <J::T as Number>::Arithmetic::pick::<Rows<J>>(isa),
        fold: <J::T as Number>::Arithmetic::pick::<Fold<J>>(isa),
        fold_rows: Some(<J::T as Number>::Arithmetic::pick::<FoldRows<J>>(isa)),
        segments: <J::T as Number>::Arithmetic::pick::<Segments<J>>(isa),
    }
}

/// # Safety
/// A set of lanes is writable at `lanes`.
unsafe fn start<J: Join>(lanes: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { *lanes.cast::<[J::T; CHUNK]>() = [J::IDENTITY; CHUNK] };
}

/// # Safety
/// A set of lanes of `J` is readable at `lanes`.
unsafe fn finish<J: Join>(lanes: *const u8) -> Partial {
    // SAFETY: the caller's promise.
    let mut lanes = unsafe { *lanes.cast::<[J::T; CHUNK]>() };
    halve::<J>(&mut lanes);
    Partial { bits: lanes[0].bits(), position: -1 }
}

/// Joins a power of two of values pairwise into the first.
#[inline(always)]
fn halve<J: Join>(values: &mut [J::T]) {
    let mut width = values.len() / 2;
    while width > 0 {
        for i in 0..width {
            values[i] = J::join(values[i], values[i + width]);
        }
        width /= 2;
    }
}

struct Lanes<J>(PhantomData<J>);
impl<J: Join> Block for Lanes<J> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        // SAFETY: `out` is a set of lanes of `J` and operand 0 has `chunks` chunks, apart from each other.
        unsafe {
            let lanes = out.cast::<[J::T; CHUNK]>();
            let mut sums = *lanes;
            for first in (0..chunks).step_by(TOGETHER) {
                let mut few = *args[0].chunk(first);
                for i in first + 1..chunks.min(first + TOGETHER) {
                    accumulate::<J>(&mut few, args[0].chunk(i));
                }
                accumulate::<J>(&mut sums, &few);
            }
            *lanes = sums;
        }
    }
}

#[inline(always)]
fn accumulate<J: Join>(sums: &mut [J::T; CHUNK], values: &[J::T; CHUNK]) {
    for i in 0..CHUNK {
        sums[i] = J::join(sums[i], values[i]);
    }
}

struct Rows<J>(PhantomData<J>);
impl<J: Join> Block for Rows<J> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let columns = args[0].step;
        // SAFETY: operand 0 holds `chunks` rows of `columns` values, `out` as many values, apart from each other.
        let (values, results) = unsafe {
            (
                std::slice::from_raw_parts(args[0].ptr.cast::<J::T>(), chunks * columns),
                std::slice::from_raw_parts_mut(out.cast::<J::T>(), chunks),
            )
        };
        if columns > VERY_SHORT {
            for (row, result) in values.chunks_exact(columns).zip(results) {
                *result = short_row::<J>(row);
            }
            return;
        }
        let mut rows = values.chunks_exact((4 * columns).max(1));
        let mut fours = results.chunks_exact_mut(4);
        for (rows, results) in rows.by_ref().zip(fours.by_ref()) {
            four_rows::<J>(rows, columns, results);
        }
        for (row, result) in
            rows.remainder().chunks_exact(columns.max(1)).zip(fours.into_remainder())
        {
            *result = row.iter().fold(J::IDENTITY, |sum, &value| J::join(sum, value));
        }
    }
}

/// Rows up to this length are taken element by element, four rows side by side.
const VERY_SHORT: usize = 16;

#[inline(always)]
fn four_rows<J: Join>(rows: &[J::T], columns: usize, results: &mut [J::T]) {
    let (a, rest) = rows.split_at(columns);
    let (b, rest) = rest.split_at(columns);
    let (c, d) = rest.split_at(columns);
    let mut sums = [J::IDENTITY; 4];
    for i in 0..columns {
        sums[0] = J::join(sums[0], a[i]);
        sums[1] = J::join(sums[1], b[i]);
        sums[2] = J::join(sums[2], c[i]);
        sums[3] = J::join(sums[3], d[i]);
    }
    results.copy_from_slice(&sums);
}

#[inline(always)]
fn short_row<J: Join>(values: &[J::T]) -> J::T {
    let mut lanes = [J::IDENTITY; 8];
    let eights = values.chunks_exact(8);
    for (lane, &value) in lanes.iter_mut().zip(eights.remainder()) {
        *lane = J::join(*lane, value);
    }
    for eight in eights {
        for i in 0..8 {
            lanes[i] = J::join(lanes[i], eight[i]);
        }
    }
    halve::<J>(&mut lanes);
    lanes[0]
}

struct Fold<J>(PhantomData<J>);
impl<J: Join> Block for Fold<J> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        for i in 0..chunks {
            // SAFETY: `out` and operand 0 have `chunks` chunks, apart from each other.
            unsafe {
                accumulate::<J>(&mut *out.cast::<[J::T; CHUNK]>().add(i), args[0].chunk(i));
            }
        }
    }
}

struct FoldRows<J>(PhantomData<J>);
impl<J: Join> Block for FoldRows<J> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let [first, Operand { step: distance, .. }, Operand { step: rows, .. }] = *args;
        for i in 0..chunks {
            // SAFETY: `out` has `chunks` chunks, and so has each of the rows, apart from `out`.
            unsafe {
                let sums = &mut *out.cast::<[J::T; CHUNK]>().add(i);
                let mut local = *sums;
                for row in 0..rows {
                    let ptr = first.ptr.wrapping_add(row.wrapping_mul(distance));
                    accumulate::<J>(&mut local, Operand { ptr, step: first.step }.chunk(i));
                }
                *sums = local;
            }
        }
    }
}

struct Segments<J>(PhantomData<J>);
impl<J: Join> Block for Segments<J> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let columns = args[0].step;
        // SAFETY: `out` holds `chunks` segments of `columns` values.
        let values =
            unsafe { std::slice::from_raw_parts_mut(out.cast::<J::T>(), chunks * columns) };
        let mut segments = chunks;
        while segments > 1 {
            let half = segments / 2;
            let (low, high) = values.split_at_mut((segments - half) * columns);
            for (a, &b) in low.iter_mut().zip(&high[..half * columns]) {
                *a = J::join(*a, b);
            }
            segments -= half;
        }
    }
}
