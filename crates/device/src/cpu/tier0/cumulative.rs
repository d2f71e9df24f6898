//! Running sums and their like over dense arrays. Sums and products of f32 run in f64: that costs
//! nothing here, where each step waits for the one before, and a long sum keeps its digits.

use super::number::Number;
use super::{Ready, cancelled, each, whole};
use crate::LaunchError;
use crate::cpu::space::DevicePtr;
use std::sync::atomic::{AtomicBool, Ordering};
use vramlab_ir::kernel::Cumulative as Image;
use vramlab_ir::{DType, Kernel, ReduceKind};

/// Lines that lie side by side and are walked together.
const WIDE: usize = 64;
/// Elements of one task.
const TASK: usize = 64 * 1024;
/// Rough nanoseconds an element.
const COST: f64 = 1.0;

/// A decoded running sum.
#[derive(Debug)]
pub(super) struct Cumulative {
    image: Image,
    walk: Walk,
}

/// Walks `lines` neighbouring lines.
type Walk = unsafe fn(&Lines);

/// Lines that begin side by side.
struct Lines<'a> {
    read: *const u8,
    write: *mut u8,
    /// Elements from line to line's next element.
    stride: usize,
    length: usize,
    count: usize,
    reverse: bool,
    cancel: &'a AtomicBool,
}

impl Cumulative {
    pub fn new(kernel: &Kernel, image: &Image) -> Result<Cumulative, LaunchError> {
        let walk = match image.dtype {
            DType::U8 => integers::<u8>(image.kind),
            DType::U32 => integers::<u32>(image.kind),
            DType::I32 => integers::<i32>(image.kind),
            DType::I64 => integers::<i64>(image.kind),
            DType::F32 => singles(image.kind),
            DType::F64 => integers::<f64>(image.kind),
            DType::Bool | DType::F16 | DType::BF16 => None,
        };
        let what = || format!("a running {:?} of {}", image.kind, image.dtype);
        let walk = walk.ok_or_else(|| LaunchError::Unsupported {
            kernel: kernel.name.clone(),
            what: what(),
        })?;
        Ok(Cumulative { image: image.clone(), walk })
    }

    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let Image { outer, length, inner, reverse, dtype, .. } = self.image;
        let (elements, size) = (outer * length * inner, dtype.size());
        let read = whole(ready.kernel, buffers, self.image.read, elements, size)?;
        let write = whole(ready.kernel, buffers, self.image.write, elements, size)?;
        if elements == 0 {
            return Ok(());
        }
        let blocks = inner.div_ceil(WIDE);
        let grouped = (TASK / (length * inner.min(WIDE))).max(1);
        let total = outer * blocks;
        let parallel = elements as f64 * COST > super::PARALLEL_NS;
        each(
            ready,
            parallel,
            total.div_ceil(grouped),
            || (),
            |(), task| {
                for block in task * grouped..((task + 1) * grouped).min(total) {
                    let (o, first) = (block / blocks, block % blocks * WIDE);
                    let offset = (o * length * inner + first) * size;
                    let lines = Lines {
                        read: read.as_ptr().wrapping_add(offset),
                        write: write.as_ptr().wrapping_add(offset),
                        stride: inner,
                        length,
                        count: (inner - first).min(WIDE),
                        reverse,
                        cancel: ready.cancel,
                    };
                    // SAFETY: both buffers hold every element of the array (checked by `whole`), tasks
                    // walk different lines, and each element is read before it is written.
                    unsafe { (self.walk)(&lines) };
                }
            },
        );
        cancelled(ready.cancel)
    }
}

fn integers<T: Number>(kind: ReduceKind) -> Option<Walk> {
    Some(match kind {
        ReduceKind::Sum => walk::<T, T, Sum>,
        ReduceKind::Prod => walk::<T, T, Product>,
        ReduceKind::Max => walk::<T, T, Greatest>,
        ReduceKind::Min => walk::<T, T, Least>,
        _ => return None,
    })
}

fn singles(kind: ReduceKind) -> Option<Walk> {
    Some(match kind {
        ReduceKind::Sum => walk::<f32, f64, Sum>,
        ReduceKind::Prod => walk::<f32, f64, Product>,
        _ => return integers::<f32>(kind),
    })
}

/// How two values become one, in the type that they are combined in.
trait Combine {
    fn start<A: Number>() -> A;
    fn combine<A: Number>(a: A, b: A) -> A;
}

macro_rules! combinations {
    ($($name:ident $start:ident $combine:ident)*) => {$(
        struct $name;
        impl Combine for $name {
            #[inline(always)]
            fn start<A: Number>() -> A {
                A::$start
            }
            #[inline(always)]
            fn combine<A: Number>(a: A, b: A) -> A {
                a.$combine(b)
            }
        }
    )*};
}

combinations! {
    Sum ZERO add
    Product ONE mul
    Greatest LOWEST greater
    Least HIGHEST lesser
}

/// A type whose values are combined in another.
trait Within<A>: Copy {
    fn widen(self) -> A;
    fn narrow(value: A) -> Self;
}

impl<T: Number> Within<T> for T {
    #[inline(always)]
    fn widen(self) -> T {
        self
    }
    #[inline(always)]
    fn narrow(value: T) -> T {
        value
    }
}

impl Within<f64> for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self as f64
    }
    #[inline(always)]
    fn narrow(value: f64) -> f32 {
        value as f32
    }
}

/// # Safety
/// Every element of the lines is live memory, aligned to `T`, that nobody else writes.
unsafe fn walk<T: Within<A>, A: Number, C: Combine>(lines: &Lines) {
    let mut running = [C::start::<A>(); WIDE];
    let (read, write) = (lines.read.cast::<T>(), lines.write.cast::<T>());
    for step in 0..lines.length {
        if step % TASK == TASK - 1 && lines.cancel.load(Ordering::Relaxed) {
            return;
        }
        let at = if lines.reverse { lines.length - 1 - step } else { step };
        let row = at * lines.stride;
        for (line, running) in running[..lines.count].iter_mut().enumerate() {
            // SAFETY: as the caller says.
            let value = unsafe { read.add(row + line).read() };
            *running = C::combine(*running, value.widen());
            // SAFETY: as above.
            unsafe { write.add(row + line).write(T::narrow(*running)) };
        }
    }
}
