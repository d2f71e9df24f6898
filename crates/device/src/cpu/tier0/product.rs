//! Large products, over the innermost kernels of the `gemm` crates. What lies around them is ours, for three
//! reasons: threads share one packed right operand, an operand that lies across its rows is turned round while
//! it is packed, and the epilogue runs on a few rows that are still in the second-level cache.
//!
//! The right operand is packed in strips as wide as a kernel, for all of the depth and as many columns as fit
//! [`SLAB`]. A task then takes some rows of the left operand, where they lie or packed if they lie across the
//! depth, and walks the strips. Each element is summed in the order of the depth by fused multiply-adds, in
//! parts that the shape decides: neither tasks nor threads change a bit.

use super::Ready;
use super::copy::{fetch, turn_rows};
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

/// Dense rows of the right operand that a task packs.
const PACKED_ROWS: usize = 32;

/// Steps of the depth that are turned round at a time where the left operand lies across it.
const TURNED_STEPS: usize = 16;

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

impl<T> Micro<T> {
    /// Columns with their padding: whole vectors.
    fn padded(&self, columns: usize) -> usize {
        columns.next_multiple_of(self.lanes)
    }

    /// Elements from one strip to the next. Were it a multiple of a page, a row would be packed into one set
    /// of the cache.
    fn pitch(&self, depth: usize) -> usize {
        self.columns * (depth + 1)
    }
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
        self.slab * (self.k + 1) * self.dtype.size() + 2 * TASK_ROWS * DEPTH_BYTES
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
        let mut packed = Room::of::<T>(slab.div_ceil(micro.columns) * micro.pitch(k));
        let packed = packed.start::<T>();
        let groups = m.div_ceil(micro.rows);
        let threads = ready.pool.threads();
        let parts = m.div_ceil(TASK_ROWS).next_multiple_of(threads).min(groups);
        for first in (0..n).step_by(slab) {
            let columns = slab.min(n - first);
            let strips = columns.div_ceil(micro.columns);
            // Dense rows are read through all strips; what lies across its rows, a strip at a time.
            let dense = right.columns == 1;
            let (aside, deep) = if dense { (1, PACKED_ROWS) } else { (strips, depth_of::<T>()) };
            let deeps = k.div_ceil(deep);
            let slab_here = Slab { micro: &micro, packed, depth: k, columns };
            let pack = Pack { slab: &slab_here, right: &right, first };
            super::each(
                ready,
                true,
                aside * deeps,
                || (),
                |(), task| {
                    let (strip, part) = (task / deeps, task % deeps);
                    let depth = part * deep..((part + 1) * deep).min(k);
                    // SAFETY: this part of the operand is there, and of the slab it is this task's.
                    unsafe {
                        match dense {
                            true => pack.rows(0..strips, depth),
                            false => pack.turned(strip, depth),
                        }
                    };
                },
            );
            let across = if parts < 2 * threads { (2 * threads).div_ceil(parts) } else { 1 };
            let across = across.min(strips);
            let product = if apart { (groups.div_ceil(parts) * micro.rows) * slab } else { 0 };
            let few = match left.columns {
                1 => 0,
                _ => groups.div_ceil(parts) * micro.rows * depth_of::<T>().min(k),
            };
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
                    let task = Task { slab: &slab_here, left: &left };
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

/// Some columns of the right operand, packed strip by strip, a strip in rows of whole vectors.
struct Slab<'t, T: 'static> {
    micro: &'t Micro<T>,
    packed: Shared<T>,
    depth: usize,
    columns: usize,
}

impl<T> Slab<'_, T> {
    /// A strip's first column, its columns, and those with padding.
    fn strip(&self, strip: usize) -> [usize; 3] {
        let column = strip * self.micro.columns;
        let wide = self.micro.columns.min(self.columns - column);
        [column, wide, self.micro.padded(wide)]
    }

    /// Where a row of a strip lies, which has so many columns with padding.
    fn row(&self, strip: usize, row: usize, padded: usize) -> *mut T {
        self.packed.at((strip * self.micro.pitch(self.depth) + row * padded) as isize).0
    }
}

/// How the right operand comes into a slab.
struct Pack<'t, T: 'static> {
    slab: &'t Slab<'t, T>,
    right: &'t Strided<T>,
    /// Of the operand, the slab's first column.
    first: usize,
}

/// # Safety
/// A row of a strip lies there, and nobody else touches its padding.
unsafe fn pad<T: Float>(row: *mut T, wide: usize, padded: usize) {
    for lane in wide..padded {
        // SAFETY: the caller's.
        unsafe { *row.add(lane) = T::ZERO };
    }
}

impl<T: Float> Pack<'_, T> {
    /// Packs dense rows.
    ///
    /// # Safety
    /// The columns are there for the depth, and nobody else touches these rows of the slab.
    unsafe fn rows(&self, strips: Range<usize>, depth: Range<usize>) {
        for row in depth {
            for strip in strips.clone() {
                let [column, wide, padded] = self.slab.strip(strip);
                let to = self.slab.row(strip, row, padded);
                // SAFETY: the caller's.
                unsafe {
                    to.copy_from_nonoverlapping(self.right.at(row, self.first + column), wide);
                    pad(to, wide, padded);
                }
            }
        }
    }

    /// Packs a strip of what lies across its rows.
    ///
    /// # Safety
    /// As for `rows`.
    unsafe fn turned(&self, strip: usize, depth: Range<usize>) {
        let [column, wide, padded] = self.slab.strip(strip);
        let few = TURNED / size_of::<T>();
        for row in depth.clone().step_by(few) {
            let rows = few.min(depth.end - row);
            let to = self.slab.row(strip, row, padded);
            let strides = (self.right.rows, self.right.columns);
            // SAFETY: the caller's.
            unsafe {
                let from = self.right.at(row, self.first + column);
                let layout = (padded * size_of::<T>(), size_of::<T>());
                turn_rows(to.cast(), from.cast(), (rows, wide), strides, layout);
                for row in 0..rows {
                    pad(to.add(row * padded), wide, padded);
                }
            }
        }
    }
}

/// What the tasks of a slab share.
struct Task<'t, T: 'static> {
    slab: &'t Slab<'t, T>,
    left: &'t Strided<T>,
}

impl<T: Float> Task<'_, T> {
    /// Sums some rows over some strips into `to`; `room` holds a part of the depth of the rows.
    ///
    /// # Safety
    /// The strips are packed, `to` and `room` are this task's alone. A left operand that is dense in the depth
    /// needs no room.
    unsafe fn run(&self, to: &Strided<T>, rows: Range<usize>, strips: Range<usize>, room: *mut T) {
        let (micro, k) = (self.slab.micro, self.slab.depth);
        for first in (0..k).step_by(depth_of::<T>()) {
            let deep = depth_of::<T>().min(k - first);
            // Rows that lie dense in the depth are read where they are.
            let in_place = self.left.columns == 1;
            if !in_place {
                // SAFETY: the rows are there, and `room` holds them.
                unsafe { self.pack_left(room, rows.clone(), first..first + deep) };
            }
            for strip in strips.clone() {
                let [_, wide, padded] = self.slab.strip(strip);
                let right = self.slab.row(strip, first, padded);
                let across = (strip - strips.start) * micro.columns;
                for row in rows.clone().step_by(micro.rows) {
                    let few = micro.rows.min(rows.end - row);
                    let kernel = (micro.pick)(padded / micro.lanes, few);
                    let (from, along, aside) = match in_place {
                        true => (self.left.at(row, first), 1, self.left.rows),
                        // SAFETY: `room` holds the rows.
                        false => (unsafe { room.add((row - rows.start) * deep) }, few as isize, 1),
                    };
                    // SAFETY: the kernel is one for this processor, and all it touches is there.
                    unsafe {
                        kernel(
                            wide,
                            few,
                            deep,
                            to.at(row - rows.start, across),
                            right,
                            from,
                            to.rows,
                            1,
                            padded as isize,
                            along,
                            aside,
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

    /// Packs some rows of the left operand for a part of the depth: as many as a kernel takes side by side.
    ///
    /// # Safety
    /// The rows are there for the depth, and `room` holds them.
    unsafe fn pack_left(&self, room: *mut T, rows: Range<usize>, depth: Range<usize>) {
        let (left, deep, side_by_side) = (self.left, depth.len(), self.slab.micro.rows);
        // A few steps of all rows, so that lines of memory that lie across the depth are read once.
        for at in (0..deep).step_by(TURNED_STEPS) {
            let steps = TURNED_STEPS.min(deep - at);
            for group in (0..rows.len()).step_by(side_by_side) {
                let few = side_by_side.min(rows.len() - group);
                let from = left.at(rows.start + group, depth.start + at);
                for step in 0..steps as isize {
                    let from = from.wrapping_offset(step * left.columns);
                    fetch(from.wrapping_offset(TURNED_STEPS as isize * left.columns).cast());
                    // SAFETY: the caller's.
                    unsafe {
                        let to = room.add(group * deep + (at + step as usize) * few);
                        match (few, left.rows) {
                            (6, 1) => *to.cast::<[T; 6]>() = *from.cast(),
                            (4, 1) => *to.cast::<[T; 4]>() = *from.cast(),
                            _ => {
                                for row in 0..few {
                                    *to.add(row) = *from.offset(row as isize * left.rows);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
