//! Convolutions: sums of matrix products over taps, read where the operand lies. Nothing is copied
//! into patches or padded: the taps that would read outside are left out.
//!
//! A result's element is a sum over taps and channels; results lie along examples and space. Which of
//! these are the rows and the depth of the products is chosen by their extents ([`Roles`]): a usual
//! convolution has rows along space and channels for depth, the gradient of filters has few results
//! and many taps, so rows are its "examples" and the last axis of taps is the depth.

use super::access::{self, Place};
use super::gemm::{Matrix, multiply};
use super::number::Number;
use super::{Ready, bind_all, cancelled};
use crate::LaunchError;
use crate::cpu::space::DevicePtr;
use std::sync::atomic::Ordering;
use vramlab_ir::kernel::{Access, Conv as Image, Space};
use vramlab_ir::{DType, Kernel};

/// A decoded convolution.
#[derive(Debug)]
pub(super) struct Conv {
    image: Image,
    x: Place,
    w: Place,
    write: Place,
    roles: Roles,
    /// For each index along the last axis that is not in the products, what the products run over.
    runs: Vec<Vec<Run>>,
    /// Strides of the result, in elements.
    strides: Vec<isize>,
}

/// What rows and depth of the products are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roles {
    /// Rows along the last axis of space, depth along channels.
    SpaceChannels,
    /// Rows along examples, depth along channels.
    ExamplesChannels,
    /// Rows along examples, depth along the last axis of taps.
    ExamplesTaps,
}

/// Results (or taps) of the last axis that are met by elements of x, evenly spaced. `other` is the tap
/// (or the result) that they meet under.
#[derive(Clone, Copy, Debug)]
struct Run {
    other: usize,
    first: usize,
    step: usize,
    count: usize,
    element: usize,
    element_step: isize,
}

impl Conv {
    pub fn new(kernel: &Kernel, image: &Image) -> Result<Conv, LaunchError> {
        let malformed = |what: &str| LaunchError::Malformed {
            kernel: kernel.name.clone(),
            what: what.to_owned(),
        };
        let accesses = [&image.x, &image.w, &image.write];
        super::check_ranks(kernel, accesses.into_iter(), image.space.len() + 2)?;
        if image.space.is_empty() {
            return Err(malformed("a convolution has no space"));
        }
        if accesses.iter().any(|access| access.dtype != image.dtype) {
            return Err(malformed("the arrays of a convolution differ in dtype"));
        }
        if matches!(image.dtype, DType::F16 | DType::BF16 | DType::Bool) {
            let what = format!("a convolution of {}", image.dtype);
            return Err(LaunchError::Unsupported { kernel: kernel.name.clone(), what });
        }
        let extents = |first: Option<usize>, of: fn(&Space) -> usize, last: &[usize]| {
            first
                .into_iter()
                .chain(image.space.iter().map(of))
                .chain(last.iter().copied())
                .collect()
        };
        let over = |access: &Access, extents: Vec<usize>| {
            let keep = vec![true; extents.len()];
            access::simplify(&extents, &[access], &keep, false).1.swap_remove(0)
        };
        let x = over(&image.x, extents(Some(image.examples), |s| s.x, &[image.channels]));
        let w = over(&image.w, extents(None, |s| s.taps, &[image.channels, image.results]));
        let dims: Vec<usize> = extents(Some(image.examples), |s| s.results, &[image.results]);
        let write = over(&image.write, dims.clone());
        let mut dense = 1;
        for (axis, &extent) in dims.iter().enumerate().rev() {
            if extent > 1 && image.write.strides[axis] != dense {
                return Err(malformed("the result of a convolution is not dense"));
            }
            dense *= extent as isize;
        }
        let roles = roles(image);
        let strides = image.write.strides.clone();
        Ok(Conv { image: image.clone(), x, w, write, roles, runs: runs(image, roles), strides })
    }

    pub fn code_bytes(&self) -> usize {
        let runs: usize = self.runs.iter().map(|runs| runs.len() * size_of::<Run>()).sum();
        size_of::<Conv>() + runs
    }

    /// One packed panel of each side, as estimated.
    pub fn scratch_bytes(&self) -> usize {
        let Image { examples, channels, results, dtype, .. } = self.image;
        let last = self.last();
        let (rows, depth) = match self.roles {
            Roles::SpaceChannels => (last.results, channels),
            Roles::ExamplesChannels => (examples, channels),
            Roles::ExamplesTaps => (examples, last.taps),
        };
        match dtype {
            DType::F32 | DType::F64 => (rows + results) * depth.min(512) * dtype.size(),
            _ => 0,
        }
    }

    fn last(&self) -> Space {
        self.image.space[self.image.space.len() - 1]
    }

    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let reads = [self.x.clone(), self.w.clone()];
        let bound = bind_all(&reads, std::slice::from_ref(&self.write), buffers, ready.kernel)?;
        if bound.aliased {
            let what = "a convolution writes over its own operand".to_owned();
            return Err(LaunchError::Malformed { kernel: ready.kernel.to_owned(), what });
        }
        let task = Task {
            conv: self,
            x: bound.reads[0],
            w: bound.reads[1],
            write: bound.writes[0],
            ready,
        };
        let before: usize = self.before().iter().product();
        let tasks = match self.roles {
            Roles::SpaceChannels => self.image.examples * before,
            _ => before * self.last().results,
        };
        if self.write.span.is_none() {
            return Ok(());
        }
        // About 20 flops a nanosecond.
        let parallel = self.flops() / 20.0 > super::PARALLEL_NS;
        super::each(ready, parallel, tasks, || (), |(), at| task.run(at));
        cancelled(ready.cancel)
    }

    /// Extents of the results along space, but for the last axis.
    fn before(&self) -> Vec<usize> {
        let space = &self.image.space;
        space[..space.len() - 1].iter().map(|axis| axis.results).collect()
    }

    fn flops(&self) -> f64 {
        let Image { examples, channels, results, ref space, .. } = self.image;
        let points: f64 = space.iter().map(|axis| (axis.results * axis.taps) as f64).product();
        2.0 * points * (examples * channels * results) as f64
    }
}

/// Products are worth more the more rows and depth they have; both saturate.
fn roles(image: &Image) -> Roles {
    let worth = |rows: usize, depth: usize| {
        rows as f64 / (rows + 12) as f64 * (depth as f64 / (depth + 12) as f64)
    };
    let last = image.space[image.space.len() - 1];
    let all = [
        (Roles::SpaceChannels, worth(last.results, image.channels)),
        (Roles::ExamplesChannels, worth(image.examples, image.channels)),
        (Roles::ExamplesTaps, worth(image.examples, last.taps)),
    ];
    let best = all.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map_or(Roles::SpaceChannels, |(roles, _)| roles)
}

/// For [`Roles::SpaceChannels`], by tap: the results that it meets. Otherwise, by result: the taps.
fn runs(image: &Image, roles: Roles) -> Vec<Vec<Run>> {
    let last = image.space[image.space.len() - 1];
    let met = |result: usize, tap: usize| last.moves.element(result, tap, last.x);
    match roles {
        Roles::SpaceChannels => (0..last.taps)
            .map(|tap| even(tap, (0..last.results).map(|result| met(result, tap))))
            .collect(),
        _ => (0..last.results)
            .map(|result| even(result, (0..last.taps).map(|tap| met(result, tap))))
            .collect(),
    }
}

/// The indices that meet an element, in evenly spaced runs. There is one but where a dilation and a
/// stride have no common step.
fn even(other: usize, elements: impl Iterator<Item = Option<usize>>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, element) in elements.enumerate() {
        let Some(element) = element else { continue };
        if let Some(run) = runs.last_mut() {
            let behind = run.first + (run.count - 1) * run.step;
            let from = run.element as isize + (run.count as isize - 1) * run.element_step;
            let (step, moved) = (index - behind, element as isize - from);
            if run.count == 1 || (run.step == step && run.element_step == moved) {
                (run.step, run.element_step) = (step, moved);
                run.count += 1;
                continue;
            }
        }
        let run = Run { other, first: index, step: 1, count: 1, element, element_step: 0 };
        runs.push(run);
    }
    runs
}

struct Task<'r> {
    conv: &'r Conv,
    x: *mut u8,
    w: *mut u8,
    write: *mut u8,
    ready: &'r Ready<'r>,
}

// SAFETY: tasks write disjoint elements of the result, and only read the operands.
unsafe impl Sync for Task<'_> {}

/// Elements from an array's first one.
#[derive(Clone, Copy)]
struct At {
    x: isize,
    w: isize,
}

impl Task<'_> {
    fn run(&self, task: usize) {
        let conv = self.conv;
        let last = conv.last();
        let before = conv.before();
        let (example, mut rest, result) = match conv.roles {
            Roles::SpaceChannels => {
                let rows: usize = before.iter().product();
                (task / rows, task % rows, 0)
            }
            _ => (0, task / last.results, task % last.results),
        };
        let mut at = vec![0; before.len()];
        for axis in (0..before.len()).rev() {
            at[axis] = rest % before[axis];
            rest /= before[axis];
        }
        let space: isize = at.iter().zip(&conv.strides[1..]).map(|(&p, s)| p as isize * s).sum();
        let size = conv.image.dtype.size() as isize;
        let to = space
            + example as isize * conv.strides[0]
            + result as isize * conv.strides[before.len() + 1];
        let to = self.write.wrapping_offset(to * size);
        self.clear(to);
        let origin = At { x: example as isize * conv.x.outer[0], w: 0 };
        self.taps(&at, 0, origin, &mut |at| self.products(to, result, at));
    }

    /// Zeros in everything that the task adds to.
    fn clear(&self, to: *mut u8) {
        let conv = self.conv;
        let Image { examples, results, dtype, .. } = conv.image;
        let (count, stride) = match conv.roles {
            Roles::SpaceChannels => (1, 0),
            _ => (examples, conv.strides[0] * dtype.size() as isize),
        };
        let elements = match conv.roles {
            Roles::SpaceChannels => conv.last().results * results,
            _ => results,
        };
        for row in 0..count {
            // SAFETY: the row lies in the result, which was found to lie in its buffer.
            unsafe {
                to.wrapping_offset(row as isize * stride).write_bytes(0, elements * dtype.size());
            }
        }
    }

    /// Every tap of the axes before the last that reads inside of x.
    fn taps(&self, at: &[usize], axis: usize, from: At, each: &mut dyn FnMut(At)) {
        let conv = self.conv;
        let Some(&result) = at.get(axis) else { return each(from) };
        let space = conv.image.space[axis];
        for tap in 0..space.taps {
            if let Some(element) = space.moves.element(result, tap, space.x) {
                let from = At {
                    x: from.x + element as isize * conv.x.outer[axis + 1],
                    w: from.w + tap as isize * conv.w.outer[axis],
                };
                self.taps(at, axis + 1, from, each);
            }
        }
    }

    /// What the last axis adds.
    fn products(&self, to: *mut u8, result: usize, at: At) {
        let conv = self.conv;
        let Image { examples, channels, results, .. } = conv.image;
        let axis = conv.image.space.len() - 1;
        let (x_last, w_last) = (conv.x.outer[axis + 1], conv.w.outer[axis]);
        let (x_channel, w_channel) = (conv.x.column, conv.w.outer[axis + 1]);
        let out = conv.strides[axis + 1];
        if self.ready.cancel.load(Ordering::Relaxed) {
            return;
        }
        match conv.roles {
            Roles::SpaceChannels => {
                for run in conv.runs.iter().flatten() {
                    let to = self.shifted(to, run.first as isize * out);
                    let from = At {
                        x: at.x + run.element as isize * x_last,
                        w: at.w + run.other as isize * w_last,
                    };
                    let row = run.element_step * x_last;
                    let shape = [run.count, results, channels];
                    self.add(
                        shape,
                        (to, run.step as isize * out),
                        from,
                        [row, x_channel, w_channel],
                    );
                }
            }
            Roles::ExamplesChannels => {
                for run in &conv.runs[result] {
                    for index in 0..run.count {
                        let element = run.element as isize + index as isize * run.element_step;
                        let from = At {
                            x: at.x + element * x_last,
                            w: at.w + (run.first + index * run.step) as isize * w_last,
                        };
                        let shape = [examples, results, channels];
                        let strides = [conv.x.outer[0], x_channel, w_channel];
                        self.add(shape, (to, conv.strides[0]), from, strides);
                    }
                }
            }
            Roles::ExamplesTaps => {
                for run in &conv.runs[result] {
                    for channel in 0..channels as isize {
                        let from = At {
                            x: at.x + run.element as isize * x_last + channel * x_channel,
                            w: at.w + run.first as isize * w_last + channel * w_channel,
                        };
                        let shape = [examples, results, run.count];
                        let depth = [run.element_step * x_last, run.step as isize * w_last];
                        let strides = [conv.x.outer[0], depth[0], depth[1]];
                        self.add(shape, (to, conv.strides[0]), from, strides);
                    }
                }
            }
        }
    }

    fn shifted(&self, origin: *mut u8, elements: isize) -> *mut u8 {
        origin.wrapping_offset(elements * self.conv.image.dtype.size() as isize)
    }

    /// Adds a product of `[rows, results, depth]`; strides are those of x along rows and depth, and of
    /// w along depth.
    fn add(
        &self,
        shape: [usize; 3],
        (to, rows): (*mut u8, isize),
        from: At,
        [x_row, x_depth, w_depth]: [isize; 3],
    ) {
        let to = Matrix { origin: to, rows, columns: 1 };
        let left = Matrix { origin: self.shifted(self.x, from.x), rows: x_row, columns: x_depth };
        let right = Matrix {
            origin: self.shifted(self.w, from.w),
            rows: w_depth,
            columns: self.conv.w.column,
        };
        // SAFETY: runs hold results, taps and elements that exist, and all arrays were found to lie in
        // their buffers; the result overlaps neither operand.
        unsafe {
            match self.conv.image.dtype {
                dtype @ (DType::F32 | DType::F64) => {
                    multiply(dtype, shape, to, [left, right], true);
                }
                DType::I32 => add_product::<i32>(shape, to, left, right),
                DType::I64 => add_product::<i64>(shape, to, left, right),
                DType::U32 => add_product::<u32>(shape, to, left, right),
                _ => add_product::<u8>(shape, to, left, right),
            }
        }
    }
}

/// # Safety
/// As [`multiply`], in elements of `T`.
unsafe fn add_product<T: Number>([m, n, k]: [usize; 3], to: Matrix, left: Matrix, right: Matrix) {
    let element = |matrix: Matrix, row: usize, column: usize| {
        let at = row as isize * matrix.rows + column as isize * matrix.columns;
        matrix.origin.cast::<T>().wrapping_offset(at)
    };
    for row in 0..m {
        for depth in 0..k {
            // SAFETY: the caller's.
            let factor = unsafe { *element(left, row, depth) };
            for column in 0..n {
                // SAFETY: the caller's.
                unsafe {
                    let sum = element(to, row, column);
                    *sum = (*sum).add(factor.mul(*element(right, depth, column)));
                }
            }
        }
    }
}
