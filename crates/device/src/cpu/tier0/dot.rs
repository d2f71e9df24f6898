//! Contractions: the `gemm` crates on panels from our pool for floats, an own loop for integers, and reductions for
//! vectors; then the epilogue on each panel while it is in cache.
//!
//! Panels follow from the shape alone, so results do not depend on the number of threads. `gemm` packs its operands
//! into buffers of its own on the process heap: [`Dot::scratch_bytes`] says how much, as estimated.

use super::access::{self, Place};
use super::columns::Columns;
use super::convert;
use super::copy::Tile;
use super::epilogue::{Epilogue, Panel};
use super::frame::Bound;
use super::gemm::{Matrix, multiply};
use super::lanes::{BLOCK, Block, BlockFn, CHUNK, Fewer, Operand, Versions};
use super::number::Number;
use super::product::Product;
use super::rows::Rows;
use super::{Ready, bind_all, cancelled};
use crate::LaunchError;
use crate::cpu::isa::Isa;
use crate::cpu::space::DevicePtr;
use std::marker::PhantomData;
use vramlab_ir::kernel::{Access, Dot as Image};
use vramlab_ir::{DType, Kernel};

/// A decoded contraction.
#[derive(Debug)]
pub(super) struct Dot {
    batch: Vec<usize>,
    m: usize,
    n: usize,
    k: usize,
    a: Place,
    b: Place,
    c: Place,
    dtype: DType,
    method: Method,
    panels: Panels,
    /// The right operand lies column by column and is turned round in parts.
    turned: bool,
    epilogue: Option<Epilogue>,
    /// The epilogue may read what lies where its result goes, so products are summed elsewhere, in rows
    /// of so many columns.
    apart: Option<usize>,
    isa: Isa,
}

/// How the products are summed.
#[derive(Debug)]
pub(super) enum Method {
    /// One side is a vector and the other is read along its rows.
    Rows(Box<Rows>),
    /// One side is a vector and the other is read across its rows.
    Columns(Box<Columns>),
    /// Large ones of f32 or f64.
    Large(Product),
    /// The `gemm` crate, on f32 or f64.
    Float,
    /// The same on f32 copies of 16-bit floats.
    Half,
    /// Row by row of the result: adds `a · row of b`.
    Axpy(BlockFn),
}

impl Method {
    /// Whether panels of the result are tasks of their own.
    fn in_panels(&self) -> bool {
        matches!(self, Method::Large(_) | Method::Float | Method::Axpy(_))
    }
}

/// Which parts of a result are tasks.
#[derive(Clone, Copy, Debug)]
struct Panels {
    rows: usize,
    columns: usize,
}

impl Dot {
    pub fn new(kernel: &Kernel, image: &Image, isa: Isa) -> Result<Dot, LaunchError> {
        let malformed = |what: &str| LaunchError::Malformed {
            kernel: kernel.name.clone(),
            what: what.to_owned(),
        };
        super::check_ranks(
            kernel,
            [&image.a, &image.b, &image.c].into_iter(),
            image.batch.len() + 2,
        )?;
        if [&image.a, &image.b, &image.c].iter().any(|access| access.dtype != image.dtype) {
            return Err(malformed("the arrays of a dot differ in dtype"));
        }
        let over = |access: &Access, rows: usize, columns: usize| {
            let mut extents = image.batch.clone();
            extents.extend([rows, columns]);
            let keep = vec![true; extents.len()];
            let (_, mut places) = access::simplify(&extents, &[access], &keep, false);
            let mut place = places.swap_remove(0);
            place.column = access.strides[access.strides.len() - 1];
            place
        };
        let c = over(&image.c, image.m, image.n);
        if c.column != 1 && image.n > 1 {
            return Err(malformed("the result of a dot is not dense"));
        }
        let (method, panels) = (method(kernel, image, isa)?, panels(image));
        let columns = match &method {
            Method::Large(product) => product.columns(),
            _ if method.in_panels() => panels.columns.min(image.n),
            _ => image.n,
        };
        let apart = image.may_work_in_place().then_some(columns);
        let epilogue = image.epilogue.as_ref();
        let epilogue = epilogue.map(|epilogue| Epilogue::new(kernel, image, epilogue, isa, apart));
        Ok(Dot {
            batch: image.batch.clone(),
            m: image.m,
            n: image.n,
            k: image.k,
            a: over(&image.a, image.m, image.k),
            b: over(&image.b, image.k, image.n),
            c,
            dtype: image.dtype,
            method,
            panels,
            turned: is_turned(image),
            epilogue: epilogue.transpose()?,
            apart,
            isa,
        })
    }

    pub fn code_bytes(&self) -> usize {
        let own = match &self.method {
            Method::Rows(rows) => rows.code_bytes(),
            Method::Columns(columns) => columns.code_bytes(),
            _ => 0,
        };
        own + self.epilogue.as_ref().map_or(0, Epilogue::code_bytes) + size_of::<Dot>()
    }

    /// For `gemm`: one packed panel of each side; for the 16-bit floats: f32 copies of one batch. A
    /// product that is summed apart: one panel, or all of it.
    pub fn scratch_bytes(&self) -> usize {
        let (m, n, k) = (self.m, self.n, self.k);
        let packed = |size: usize| {
            let depth = k.min(512);
            (self.panels.rows.min(m) + self.panels.columns.min(n)) * depth * size
        };
        let apart = match self.apart {
            Some(columns) if self.method.in_panels() => self.panels.rows.min(m) * columns,
            Some(_) => self.batches() * m * n,
            None => 0,
        };
        if let Method::Large(product) = &self.method {
            return product.scratch_bytes() + self.apart.map_or(0, |_| product.apart_bytes());
        }
        let packed = match &self.method {
            Method::Rows(rows) => rows.scratch_bytes(),
            Method::Columns(columns) => columns.scratch_bytes(),
            Method::Float if self.turned => {
                packed(self.dtype.size())
                    + TURNED_DEPTH.min(k) * self.panels.columns.min(n) * self.dtype.size()
            }
            Method::Float => packed(self.dtype.size()),
            Method::Half => packed(4) + (m * k + k * n + m * n) * 4,
            Method::Large(_) => 0,
            Method::Axpy(_) if self.b.column != 1 => k * n * self.dtype.size(),
            Method::Axpy(_) => 0,
        };
        packed + apart * self.dtype.size()
    }

    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let elements = match self.apart {
            Some(_) if !self.method.in_panels() => self.batches() * self.m * self.n,
            _ => 0,
        };
        let mut product = vec![0u64; (elements * self.dtype.size()).div_ceil(8)];
        let epilogue = self.epilogue.as_ref().map(|epilogue| epilogue.bind(buffers, ready.kernel));
        let epilogue = epilogue.transpose()?;
        let mut replaced;
        let mut buffers = buffers;
        if elements > 0 {
            replaced = buffers.to_vec();
            replaced[self.c.buffer] = DevicePtr::to_words(&mut product);
            buffers = &replaced;
        }
        let reads = [self.a.clone(), self.b.clone()];
        let bound = bind_all(&reads, std::slice::from_ref(&self.c), buffers, ready.kernel)?;
        if bound.aliased {
            let what = "a dot writes over its own operand".to_owned();
            return Err(LaunchError::Malformed { kernel: ready.kernel.to_owned(), what });
        }
        let run = Run { dot: self, bound, epilogue };
        match &self.method {
            Method::Rows(rows) => {
                rows.run(ready, buffers)?;
                run.finish_all(ready);
            }
            Method::Columns(columns) => {
                columns.run(ready, buffers)?;
                run.finish_all(ready);
            }
            _ if self.m == 0 || self.n == 0 => {}
            Method::Large(product) => run.large(ready, product),
            Method::Float => run.float(ready),
            Method::Half => run.half(ready)?,
            Method::Axpy(f) => run.axpy(ready, *f),
        }
        cancelled(ready.cancel)
    }

    fn batches(&self) -> usize {
        self.batch.iter().product()
    }

    fn flops(&self) -> f64 {
        2.0 * self.batches() as f64 * self.m as f64 * self.n as f64 * self.k as f64
    }
}

/// Rows that `gemm`'s kernels take at once on most processors: panels of whole ones have no odd ends.
const ROWS: usize = 6;

/// Panels large enough that `gemm` packs each operand a few times at most, and small enough to share out.
fn panels(image: &Image) -> Panels {
    let (m, n) = (image.m.max(1), image.n.max(1));
    let flops = 2.0 * m as f64 * n as f64 * image.k as f64;
    let part = |extent: usize, unit: usize| {
        if extent >= 2048 {
            return 512usize.next_multiple_of(unit);
        }
        extent.div_ceil(4).next_multiple_of(unit).max(128)
    };
    match () {
        _ if flops < 2e7 => Panels { rows: m, columns: n },
        // Each panel turns its own columns round, once.
        _ if n > 2 * m || is_turned(image) => Panels { rows: m, columns: part(n, 64) },
        _ => Panels { rows: part(m, ROWS), columns: n },
    }
}

/// Depth of what is turned round at a time: with a panel's columns it stays in the second-level cache.
const TURNED_DEPTH: usize = 256;

/// Whether the right operand lies column by column, as a transposed weight does. `gemm` packs that
/// element by element from far apart, which takes longer than turning it round here.
fn is_turned(image: &Image) -> bool {
    let [.., along, across] = image.b.strides[..] else { return false };
    along == 1 && across.abs() > 1 && image.n > 1 && image.m.min(image.k) >= 32
}

fn method(kernel: &Kernel, image: &Image, isa: Isa) -> Result<Method, LaunchError> {
    if image.k > 0 && (image.m == 1 || image.n == 1) {
        return super::vector::vector(kernel, image, isa);
    }
    Ok(match image.dtype {
        DType::F32 | DType::F64 => {
            let one = image.batch.iter().all(|&extent| extent == 1);
            let shape = [image.m, image.n, image.k];
            match Product::new(image.dtype, shape, isa).filter(|_| one) {
                Some(product) => Method::Large(product),
                None => Method::Float,
            }
        }
        DType::F16 | DType::BF16 => Method::Half,
        DType::I32 => Method::Axpy(Fewer::pick::<Axpy<i32>>(isa)),
        DType::I64 => Method::Axpy(Fewer::pick::<Axpy<i64>>(isa)),
        DType::U32 => Method::Axpy(Fewer::pick::<Axpy<u32>>(isa)),
        DType::U8 => Method::Axpy(Fewer::pick::<Axpy<u8>>(isa)),
        DType::Bool => Method::Axpy(Fewer::pick::<AxpyBool>(isa)),
    })
}

/// `row of c += a · row of b`: operand 0 is b's row, operand 1 the one `a`, "chunks" the number of elements.
struct Axpy<T>(PhantomData<T>);
impl<T: Number> Block for Axpy<T> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        // SAFETY: `out` and operand 0 hold as many elements, apart from each other.
        let (row, b, a) = unsafe {
            (
                std::slice::from_raw_parts_mut(out.cast::<T>(), chunks),
                std::slice::from_raw_parts(args[0].ptr.cast::<T>(), chunks),
                *args[1].ptr.cast::<T>(),
            )
        };
        for (sum, &b) in row.iter_mut().zip(b) {
            *sum = sum.add(a.mul(b));
        }
    }
}

/// The same with or and and.
struct AxpyBool;
impl Block for AxpyBool {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        // SAFETY: `out` and operand 0 hold as many elements, apart from each other.
        let (row, b, a) = unsafe {
            (
                std::slice::from_raw_parts_mut(out, chunks),
                std::slice::from_raw_parts(args[0].ptr, chunks),
                *args[1].ptr,
            )
        };
        for (sum, &b) in row.iter_mut().zip(b) {
            *sum |= a & b;
        }
    }
}

struct Run<'r> {
    dot: &'r Dot,
    bound: Bound,
    epilogue: Option<(&'r Epilogue, Bound)>,
}

/// The first elements of one batch's matrices.
#[derive(Clone, Copy)]
struct Matrices {
    a: *mut u8,
    b: *mut u8,
    c: *mut u8,
}

// SAFETY: tasks write disjoint panels of `c` and only read the rest.
unsafe impl Sync for Matrices {}

/// Where a panel's product goes: its first element, and elements from row to row.
#[derive(Clone, Copy)]
struct Target {
    origin: *mut u8,
    row: usize,
}

impl Run<'_> {
    fn matrices(&self, batch: usize) -> Matrices {
        let dot = self.dot;
        let at = |origin: *mut u8, place: &Place| {
            let mut rest = batch;
            let mut offset = 0;
            for (&extent, &stride) in dot.batch.iter().zip(&place.outer).rev() {
                offset += (rest % extent) as isize * stride;
                rest /= extent;
            }
            origin.wrapping_offset(offset * place.size as isize)
        };
        Matrices {
            a: at(self.bound.reads[0], &dot.a),
            b: at(self.bound.reads[1], &dot.b),
            c: at(self.bound.writes[0], &dot.c),
        }
    }

    /// Runs `work` on every panel of every batch.
    fn panels(&self, ready: &Ready, work: impl Fn(Panel, Target) + Sync) {
        let Dot { m, n, panels, apart, .. } = *self.dot;
        let size = self.dot.dtype.size();
        let words = apart.map_or(0, |columns| (panels.rows.min(m) * columns * size).div_ceil(8));
        let (down, across) = (m.div_ceil(panels.rows), n.div_ceil(panels.columns));
        let tasks = self.dot.batches() * down * across;
        // About 20 flops a nanosecond.
        let parallel = self.dot.flops() / 20.0 > super::PARALLEL_NS;
        super::each(
            ready,
            parallel,
            tasks,
            || Vec::<u64>::with_capacity(words),
            |product, task| {
                let (row, column) =
                    (task / across % down * panels.rows, task % across * panels.columns);
                let panel = Panel {
                    batch: task / (down * across),
                    row,
                    rows: (m - row).min(panels.rows),
                    column,
                    columns: (n - column).min(panels.columns),
                };
                // A panel's product is written before the epilogue reads it: nothing is cleared.
                let target = match apart {
                    Some(row) => Target { origin: product.as_mut_ptr().cast(), row },
                    None => {
                        let before = (row * n + column) * size;
                        Target { origin: self.matrices(panel.batch).c.wrapping_add(before), row: n }
                    }
                };
                work(panel, target);
                self.finish(panel, target.origin);
            },
        );
    }

    fn large(&self, ready: &Ready, product: &Product) {
        let Matrices { a, b, c } = self.matrices(0);
        let of = |origin, place: &Place| Matrix {
            origin,
            rows: place.row_stride(),
            columns: place.column,
        };
        let to = Matrix { origin: c, rows: self.dot.n as isize, columns: 1 };
        let operands = [of(a, &self.dot.a), of(b, &self.dot.b)];
        let apart = self.dot.apart.is_some();
        // SAFETY: the matrices were found to lie in their buffers, and `c` overlaps neither `a` nor `b`.
        unsafe {
            product.run(ready, operands, to, apart, &|panel, at| self.finish(panel, at));
        }
    }

    fn float(&self, ready: &Ready) {
        let Dot { a, b, .. } = self.dot;
        let (a_strides, b_strides) = ((a.row_stride(), a.column), (b.row_stride(), b.column));
        self.panels(ready, |panel, target| {
            let matrices = self.matrices(panel.batch);
            let size = self.dot.dtype.size() as isize;
            let (row, column) = (panel.row as isize, panel.column as isize);
            let part = Matrices {
                a: matrices.a.wrapping_offset(row * a_strides.0 * size),
                b: matrices.b.wrapping_offset(column * b_strides.1 * size),
                c: target.origin,
            };
            let strides = [a_strides, b_strides, (target.row as isize, 1)];
            match self.dot.turned {
                true => self.turned(ready, part, strides, panel),
                false => self.multiply(self.dot.dtype, part, strides, panel),
            }
        });
    }

    /// A panel from parts of the right operand that are turned round first.
    fn turned(&self, ready: &Ready, part: Matrices, [a, b, c]: [(isize, isize); 3], panel: Panel) {
        let (depth, size) = (self.dot.k, self.dot.dtype.size());
        let columns = panel.columns;
        let mut rows = vec![0u64; (TURNED_DEPTH.min(depth) * columns * size).div_ceil(8)];
        let origin: *mut u8 = rows.as_mut_ptr().cast();
        for first in (0..depth).step_by(TURNED_DEPTH) {
            let here = TURNED_DEPTH.min(depth - first);
            let at = |from: *mut u8, stride: isize| {
                from.wrapping_offset(first as isize * stride * size as isize)
            };
            let tile = Tile { rows: here, columns, first_column: 0 };
            let left = Matrix { origin: at(part.a, a.1), rows: a.0, columns: a.1 };
            let right = Matrix { origin, rows: columns as isize, columns: 1 };
            let to = Matrix { origin: part.c, rows: c.0, columns: c.1 };
            // SAFETY: the matrices were found to lie in their buffers, `rows` holds the tile, and `c`
            // overlaps none of them.
            unsafe {
                super::copy::copy_in(origin, at(part.b, b.0), tile, b, size);
                let shape = [panel.rows, columns, here];
                multiply(self.dot.dtype, shape, to, [left, right], first > 0);
            }
            if ready.cancel.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
        }
    }

    fn multiply(&self, dtype: DType, part: Matrices, [a, b, c]: [(isize, isize); 3], panel: Panel) {
        let of = |origin, (rows, columns)| Matrix { origin, rows, columns };
        let to = of(part.c, c);
        // SAFETY: the matrices were found to lie in their buffers, and `c` overlaps neither `a` nor `b`.
        unsafe {
            multiply(
                dtype,
                [panel.rows, panel.columns, self.dot.k],
                to,
                [of(part.a, a), of(part.b, b)],
                false,
            );
        }
    }

    /// One batch at a time through f32 copies.
    fn half(&self, ready: &Ready) -> Result<(), LaunchError> {
        let Dot { m, n, k, dtype, isa, .. } = *self.dot;
        let widen = convert::conversion(dtype, DType::F32, isa)[0].0;
        let narrow = convert::conversion(DType::F32, dtype, isa)[0].0;
        let mut a = vec![0f32; (m * k).next_multiple_of(CHUNK)];
        let mut b = vec![0f32; (k * n).next_multiple_of(CHUNK)];
        let mut c = vec![0f32; (m * n).next_multiple_of(CHUNK)];
        for batch in 0..self.dot.batches() {
            let matrices = self.matrices(batch);
            convert_in(&mut a, matrices.a, (m, k), &self.dot.a, widen);
            convert_in(&mut b, matrices.b, (k, n), &self.dot.b, widen);
            let copies = Matrices {
                a: a.as_mut_ptr().cast(),
                b: b.as_mut_ptr().cast(),
                c: c.as_mut_ptr().cast(),
            };
            let rows = self.dot.panels.rows;
            super::each(
                ready,
                self.dot.flops() / 20.0 > super::PARALLEL_NS,
                m.div_ceil(rows),
                || (),
                |(), task| {
                    let copies = &copies;
                    let row = task * rows;
                    let panel =
                        Panel { batch, row, rows: (m - row).min(rows), column: 0, columns: n };
                    let part = Matrices {
                        a: copies.a.wrapping_add(row * k * 4),
                        b: copies.b,
                        c: copies.c.wrapping_add(row * n * 4),
                    };
                    let strides = [(k as isize, 1), (n as isize, 1), (n as isize, 1)];
                    self.multiply(DType::F32, part, strides, panel);
                },
            );
            cancelled(ready.cancel)?;
            convert_out(matrices.c, &c, m * n, narrow);
            self.finish(Panel { batch, row: 0, rows: m, column: 0, columns: n }, matrices.c);
        }
        Ok(())
    }

    fn axpy(&self, ready: &Ready, f: BlockFn) {
        let Dot { k, ref a, ref b, .. } = *self.dot;
        let size = self.dot.dtype.size();
        self.panels(ready, |panel, target| {
            let matrices = self.matrices(panel.batch);
            // A matrix that does not lie in rows is copied into rows first.
            let mut rows: Vec<u64> = Vec::new();
            let dense = b.column == 1;
            if !dense {
                rows.resize((k * panel.columns * size).div_ceil(8), 0);
                let from =
                    matrices.b.wrapping_offset(panel.column as isize * b.column * size as isize);
                let tile = Tile { rows: k, columns: panel.columns, first_column: 0 };
                let strides = (b.row_stride(), b.column);
                // SAFETY: `b` was found to lie in its buffer, and `rows` holds it.
                unsafe {
                    super::copy::copy_in(rows.as_mut_ptr().cast(), from, tile, strides, size)
                };
            }
            for row in panel.row..panel.row + panel.rows {
                let c = target.origin.wrapping_add((row - panel.row) * target.row * size);
                // SAFETY: the row lies in the result; all operands were found to lie in their buffers.
                unsafe {
                    c.write_bytes(0, panel.columns * size);
                    for depth in 0..k {
                        let along = depth as isize * a.column + row as isize * a.row_stride();
                        let scalar = matrices.a.wrapping_offset(along * size as isize);
                        let line = if dense {
                            let offset = depth as isize * b.row_stride() + panel.column as isize;
                            matrices.b.wrapping_offset(offset * size as isize).cast_const()
                        } else {
                            rows.as_ptr().cast::<u8>().add(depth * panel.columns * size)
                        };
                        let args = [
                            Operand { ptr: line, step: 0 },
                            Operand { ptr: scalar, step: 0 },
                            Operand::NONE,
                        ];
                        f(c, &args, panel.columns);
                    }
                }
                if ready.cancel.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
    }

    /// The epilogue on one finished panel, whose product begins at `product`.
    fn finish(&self, panel: Panel, product: *mut u8) {
        let Some((epilogue, bound)) = &self.epilogue else { return };
        match self.dot.apart {
            Some(columns) => epilogue.run_apart(bound, self.dot.m, panel, product, columns),
            None => epilogue.run(bound, self.dot.m, panel),
        }
    }

    fn finish_all(&self, ready: &Ready) {
        let Dot { m, n, .. } = *self.dot;
        if self.epilogue.is_none() || cancelled(ready.cancel).is_err() {
            return;
        }
        for batch in 0..self.dot.batches() {
            let panel = Panel { batch, row: 0, rows: m, column: 0, columns: n };
            self.finish(panel, self.matrices(batch).c);
        }
    }
}

/// Copies a strided matrix of 16-bit floats into dense f32.
fn convert_in(
    to: &mut [f32],
    from: *const u8,
    (rows, columns): (usize, usize),
    place: &Place,
    f: BlockFn,
) {
    let mut halves = [0u16; BLOCK];
    let mut wide = [0f32; BLOCK];
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let count = (columns - column).min(BLOCK);
            let offset = row as isize * place.row_stride() + column as isize * place.column;
            let tile = Tile { rows: 1, columns: count, first_column: 0 };
            let source = from.wrapping_offset(offset * 2);
            // SAFETY: the matrix was found to lie in its buffer; both arrays hold a block.
            unsafe {
                super::copy::copy_in(
                    halves.as_mut_ptr().cast(),
                    source,
                    tile,
                    (0, place.column),
                    2,
                );
                let args = [
                    Operand { ptr: halves.as_ptr().cast(), step: 2 * CHUNK },
                    Operand::NONE,
                    Operand::NONE,
                ];
                f(wide.as_mut_ptr().cast(), &args, count.div_ceil(CHUNK));
            }
            let at = row * columns + column;
            to[at..at + count].copy_from_slice(&wide[..count]);
            column += count;
        }
    }
}

/// Rounds dense f32 into a dense matrix of 16-bit floats.
fn convert_out(to: *mut u8, from: &[f32], elements: usize, f: BlockFn) {
    let mut halves = [0u16; BLOCK];
    let mut at = 0;
    while at < elements {
        let count = (elements - at).min(BLOCK);
        let args = [
            Operand { ptr: from[at..].as_ptr().cast(), step: 4 * CHUNK },
            Operand::NONE,
            Operand::NONE,
        ];
        // SAFETY: `from` holds whole chunks, `halves` a block, and `to` all elements.
        unsafe {
            f(halves.as_mut_ptr().cast(), &args, count.div_ceil(CHUNK));
            to.add(at * 2).copy_from_nonoverlapping(halves.as_ptr().cast(), count * 2);
        }
        at += count;
    }
}
