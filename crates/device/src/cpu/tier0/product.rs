//! Large products, over the innermost kernels of the `gemm` crates. What lies around them is ours, for three
//! reasons: threads share one packed right operand, an operand that lies across its rows is turned round while
//! it is packed, and the epilogue runs on a few rows that are still in the second-level cache.
//!
//! The right operand is packed in strips as wide as a kernel, for all of the depth and as many columns as fit
//! [`SLAB`]. A task then packs some rows of the left operand and walks the strips. Each element is summed in
//! the order of the depth by fused multiply-adds, in parts that the shape decides: neither tasks nor threads
//! change a bit.

use super::Ready;
use super::copy::{Tile, copy_in};
use super::epilogue::Panel;
use super::gemm::Matrix;
use crate::cpu::isa::Isa;
use gemm_common::microkernel::MicroKernelFn;
use std::ops::Range;
use vramlab_ir::DType;

/// Bytes of packed right operand, about: each task reads all of it from the last-level cache.
const SLAB: usize = 4 << 20;

/// Rows of a task, about: a part of their depth stays in the second-level cache.
const TASK_ROWS: usize = 48;

/// Bytes of a part of the depth in one row: of the rows of a kernel it stays in the first-level cache.
const DEPTH_BYTES: usize = 4096;

/// Bytes of a column that are turned round at a time: a line of memory (two are slower by 10 %).
const TURNED: usize = 64;

/// Beyond this depth a slab of few columns would be too large.
const DEEPEST: usize = 8192;

/// Products of fewer operations are not worth two rounds of the threads.
const LARGE: f64 = 1e8;

/// A product that is large enough, its shape known.
#[derive(Debug)]
pub(super) struct Product {
    m: usize,
    n: usize,
    k: usize,
    /// Columns of a slab: whole strips.
    slab: usize,
    dtype: DType,
    isa: Isa,
}

/// The innermost kernels for a dtype and an instruction set. In their words our columns are rows.
struct Micro<T: 'static> {
    /// Elements of a vector.
    lanes: usize,
    /// Columns of a strip.
    columns: usize,
    /// Rows that a kernel takes at once.
    rows: usize,
    /// The kernel for so many vectors and rows.
    pick: fn(usize, usize) -> MicroKernelFn<T>,
}

#[cfg(target_arch = "x86_64")]
macro_rules! micro {
    ($kernels:path, $lanes:expr) => {{
        use $kernels as of;
        Some(Micro {
            lanes: $lanes,
            columns: of::MR_DIV_N * $lanes,
            rows: of::NR,
            pick: |vectors, rows| of::UKR[vectors - 1][rows - 1],
        })
    }};
}

trait Float: Copy + 'static {
    const ZERO: Self;
    const ONE: Self;

    /// None where the crate's own driver does as well or better.
    fn micro(isa: Isa) -> Option<Micro<Self>>;
}

impl Float for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    fn micro(isa: Isa) -> Option<Micro<f32>> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => micro!(gemm_f32::microkernel::avx512f::f32, 16),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => micro!(gemm_f32::microkernel::fma::f32, 8),
            _ => None,
        }
    }
}

impl Float for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    fn micro(isa: Isa) -> Option<Micro<f64>> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => micro!(gemm_f64::microkernel::avx512f::f64, 8),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => micro!(gemm_f64::microkernel::fma::f64, 4),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Memory that is written before it is read, so nothing is cleared.
struct Room(Vec<Line>);

impl Room {
    fn of<T>(elements: usize) -> Room {
        Room(Vec::with_capacity((elements * size_of::<T>()).div_ceil(64)))
    }

    fn start<T>(&mut self) -> Shared<T> {
        Shared(self.0.as_mut_ptr().cast())
    }
}

/// A place that tasks write in parts, or only read.
struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: who hands it to tasks sees to it that none writes what another one touches.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn at(&self, offset: isize) -> Shared<T> {
        Shared(self.0.wrapping_offset(offset))
    }
}

/// A matrix and its strides, in elements.
struct Strided<T> {
    origin: Shared<T>,
    rows: isize,
    columns: isize,
}

impl<T> Strided<T> {
    fn new(matrix: Matrix) -> Strided<T> {
        let Matrix { origin, rows, columns } = matrix;
        Strided { origin: Shared(origin.cast()), rows, columns }
    }

    fn at(&self, row: usize, column: usize) -> *mut T {
        self.origin.at(row as isize * self.rows + column as isize * self.columns).0
    }
}

impl Product {
    /// The product of `[m, n, k]`, where it is worth the trouble.
    pub fn new(dtype: DType, [m, n, k]: [usize; 3], isa: Isa) -> Option<Product> {
        let strip = match dtype {
            DType::F32 => f32::micro(isa)?.columns,
            DType::F64 => f64::micro(isa)?.columns,
            _ => return None,
        };
        let large = 2.0 * m as f64 * n as f64 * k as f64 >= LARGE;
        if !large || k > DEEPEST || m < TASK_ROWS / 2 || n < strip {
            return None;
        }
        let fits = (SLAB / (k * dtype.size()) / strip).max(1) * strip;
        Some(Product { m, n, k, slab: fits.min(n.next_multiple_of(strip)), dtype, isa })
    }

    /// Columns of what a task works on at most.
    pub fn columns(&self) -> usize {
        self.slab
    }

    /// The packed operands, the left one for one task.
    pub fn scratch_bytes(&self) -> usize {
        self.slab * self.k * self.dtype.size() + 2 * TASK_ROWS * DEPTH_BYTES
    }

    /// A task's product where it is not summed in the result: one task's.
    pub fn apart_bytes(&self) -> usize {
        2 * TASK_ROWS * self.slab * self.dtype.size()
    }

    /// `to = left · right`; with `apart` each part lies in memory of its own, in rows of
    /// [`Product::columns`]. `finish` gets each finished part and where its product begins.
    ///
    /// # Safety
    /// All three lie in live memory, in elements of the dtype, `to` with dense columns; `to` overlaps
    /// neither operand.
    pub unsafe fn run(
        &self,
        ready: &Ready,
        [left, right]: [Matrix; 2],
        to: Matrix,
        apart: bool,
        finish: &(dyn Fn(Panel, *mut u8) + Sync),
    ) {
        // SAFETY: the caller's.
        unsafe {
            match self.dtype {
                DType::F64 => self.run_of::<f64>(ready, [left, right], to, apart, finish),
                _ => self.run_of::<f32>(ready, [left, right], to, apart, finish),
            }
        }
    }

    /// # Safety
    /// As for `run`.
    unsafe fn run_of<T: Float>(
        &self,
        ready: &Ready,
        [left, right]: [Matrix; 2],
        to: Matrix,
        apart: bool,
        finish: &(dyn Fn(Panel, *mut u8) + Sync),
    ) {
        let Some(micro) = T::micro(self.isa) else { return };
        let [left, right, to] = [left, right, to].map(Strided::<T>::new);
        let Product { m, n, k, slab, .. } = *self;
        let mut packed = Room::of::<T>(slab * k);
        let packed = packed.start::<T>();
        let groups = m.div_ceil(micro.rows);
        let threads = ready.pool.threads();
        let parts = m.div_ceil(TASK_ROWS).next_multiple_of(threads).min(groups);
        for first in (0..n).step_by(slab) {
            let columns = slab.min(n - first);
            let strips = columns.div_ceil(micro.columns);
            let deep = k.div_ceil(depth_of::<T>());
            super::each(
                ready,
                true,
                strips * deep,
                || (),
                |(), task| {
                    let (strip, part) = (task / deep, task % deep);
                    let column = strip * micro.columns;
                    let wide = micro.columns.min(columns - column);
                    let to = packed.at((column * k) as isize);
                    // SAFETY: the strip's part of the operand is there, and of the slab it is this task's.
                    unsafe { pack_strip(to, &right, k, first + column, wide, part, &micro) };
                },
            );
            let across = if parts < 2 * threads { (2 * threads).div_ceil(parts) } else { 1 };
            let across = across.min(strips);
            let product = if apart { (groups.div_ceil(parts) * micro.rows) * slab } else { 0 };
            let few = groups.div_ceil(parts) * micro.rows * depth_of::<T>().min(k);
            super::each(
                ready,
                true,
                parts * across,
                || (Room::of::<T>(few), Room::of::<T>(product)),
                |(rows, product), task| {
                    let (part, side) = (task / across, task % across);
                    let share = |of: usize, at: usize, parts: usize| of * at / parts;
                    let (low, high) = (share(groups, part, parts), share(groups, part + 1, parts));
                    let rows_here = low * micro.rows..(high * micro.rows).min(m);
                    let strips = share(strips, side, across)..share(strips, side + 1, across);
                    let column = strips.start * micro.columns;
                    let end = (strips.end * micro.columns).min(columns);
                    let target = match apart {
                        true => Strided {
                            origin: product.start::<T>(),
                            rows: slab as isize,
                            columns: 1,
                        },
                        false => Strided {
                            origin: Shared(to.at(rows_here.start, first + column)),
                            rows: to.rows,
                            columns: 1,
                        },
                    };
                    let task = Task { micro: &micro, left: &left, packed, k, columns };
                    // SAFETY: the rows are this task's alone, and the slab is packed.
                    unsafe { task.run(&target, rows_here.clone(), strips, rows.start::<T>().0) };
                    let panel = Panel {
                        batch: 0,
                        row: rows_here.start,
                        rows: rows_here.len(),
                        column: first + column,
                        columns: end - column,
                    };
                    finish(panel, target.origin.0.cast());
                },
            );
        }
    }
}

fn depth_of<T>() -> usize {
    DEPTH_BYTES / size_of::<T>()
}

/// Columns of a strip as the kernels read it: whole vectors.
fn vectors<T>(micro: &Micro<T>, wide: usize) -> usize {
    wide.next_multiple_of(micro.lanes)
}

/// Packs one part of the depth of `wide` columns, from `column` on, into rows of whole vectors.
///
/// # Safety
/// The columns are there for all of the depth `k`, and `to` holds a strip of it that nobody else touches in
/// this part.
unsafe fn pack_strip<T: Float>(
    to: Shared<T>,
    right: &Strided<T>,
    k: usize,
    column: usize,
    wide: usize,
    part: usize,
    micro: &Micro<T>,
) {
    let padded = vectors(micro, wide);
    let depth = part * depth_of::<T>()..((part + 1) * depth_of::<T>()).min(k);
    let few = match () {
        _ if wide < padded => 1,
        _ if right.columns != 1 => TURNED / size_of::<T>(),
        _ => depth.len(),
    };
    for row in depth.clone().step_by(few) {
        let tile = Tile { rows: few.min(depth.end - row), columns: wide, first_column: 0 };
        let strides = (right.rows, right.columns);
        let to = to.at((row * padded) as isize).0;
        // SAFETY: the caller's.
        unsafe {
            copy_in(to.cast(), right.at(row, column).cast(), tile, strides, size_of::<T>());
            for lane in wide..padded {
                *to.add(lane) = T::ZERO;
            }
        }
    }
}

/// What the tasks of a slab share.
struct Task<'t, T: 'static> {
    micro: &'t Micro<T>,
    left: &'t Strided<T>,
    packed: Shared<T>,
    k: usize,
    /// Of the slab.
    columns: usize,
}

impl<T: Float> Task<'_, T> {
    /// Sums some rows over some strips into `to`; `room` holds a part of the depth of the rows.
    ///
    /// # Safety
    /// The strips are packed, `to` and `room` are this task's alone.
    unsafe fn run(&self, to: &Strided<T>, rows: Range<usize>, strips: Range<usize>, room: *mut T) {
        let (micro, k) = (self.micro, self.k);
        let size = size_of::<T>();
        for first in (0..k).step_by(depth_of::<T>()) {
            let deep = depth_of::<T>().min(k - first);
            for row in rows.clone().step_by(micro.rows) {
                let tile =
                    Tile { rows: deep, columns: micro.rows.min(rows.end - row), first_column: 0 };
                let strides = (self.left.columns, self.left.rows);
                // SAFETY: the rows are there, and `room` holds them.
                unsafe {
                    let to = room.add((row - rows.start) * deep);
                    copy_in(to.cast(), self.left.at(row, first).cast(), tile, strides, size);
                }
            }
            for strip in strips.clone() {
                let column = strip * micro.columns;
                let wide = micro.columns.min(self.columns - column);
                let padded = vectors(micro, wide);
                let right = self.packed.at((column * k + first * padded) as isize).0;
                let across = (strip - strips.start) * micro.columns;
                for row in rows.clone().step_by(micro.rows) {
                    let few = micro.rows.min(rows.end - row);
                    let kernel = (micro.pick)(padded / micro.lanes, few);
                    // SAFETY: the kernel is one for this processor, and all it touches is there.
                    unsafe {
                        kernel(
                            wide,
                            few,
                            deep,
                            to.at(row - rows.start, across),
                            right,
                            room.add((row - rows.start) * deep),
                            to.rows,
                            1,
                            padded as isize,
                            few as isize,
                            1,
                            T::ONE,
                            T::ONE,
                            (first > 0).into(),
                            false,
                            false,
                            false,
                            std::ptr::null(),
                        );
                    }
                }
            }
        }
    }
}
