//! Elements added at indices. Every element gets its terms in the order of the indices, whatever
//! the number of threads: tasks are cut across the other axes.

use super::number::Number;
use super::{Ready, cancelled, each, whole};
use crate::LaunchError;
use crate::cpu::space::DevicePtr;
use vramlab_ir::half::{bf16_from_f32, bf16_to_f32, f16_from_f32, f16_to_f32};
use vramlab_ir::kernel::Scatter as Image;
use vramlab_ir::{DType, Kernel};

/// Neighbouring elements that one task adds for every index.
const WIDE: usize = 4096;
/// Rough nanoseconds an element.
const COST: f64 = 1.0;

/// A decoded scatter.
#[derive(Debug)]
pub(super) struct Scatter {
    image: Image,
    add: Add,
}

/// Adds `count` elements to as many.
type Add = unsafe fn(*mut u8, *const u8, usize);

impl Scatter {
    pub fn new(kernel: &Kernel, image: &Image) -> Result<Scatter, LaunchError> {
        let add: Add = match image.dtype {
            DType::U8 => add::<u8>,
            DType::U32 => add::<u32>,
            DType::I32 => add::<i32>,
            DType::I64 => add::<i64>,
            DType::F32 => add::<f32>,
            DType::F64 => add::<f64>,
            DType::F16 => add_f16,
            DType::BF16 => add_bf16,
            DType::Bool => {
                let what = "a sum of bool".to_owned();
                return Err(LaunchError::Unsupported { kernel: kernel.name.clone(), what });
            }
        };
        Ok(Scatter { image: image.clone(), add })
    }

    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let Image { dtype, outer, extent, count, inner, .. } = self.image;
        let size = dtype.size();
        let of = |buffer, elements, size| whole(ready.kernel, buffers, buffer, elements, size);
        let indices = of(self.image.indices, count, size_of::<i32>())?;
        let updates = of(self.image.updates, outer * count * inner, size)?;
        let write = of(self.image.write, outer * extent * inner, size)?;
        if extent == 0 {
            return Ok(());
        }
        let blocks = inner.div_ceil(WIDE);
        let parallel = (outer * count * inner) as f64 * COST > super::PARALLEL_NS;
        each(
            ready,
            parallel,
            outer * blocks,
            || (),
            |(), task| {
                let (o, first) = (task / blocks, task % blocks * WIDE);
                let wide = (inner - first).min(WIDE);
                for j in 0..count {
                    // SAFETY: the buffer holds `count` indices (checked by `whole`), which are aligned.
                    let index = unsafe { indices.as_ptr().cast::<i32>().add(j).read() };
                    // Negative ones count from the end.
                    let index =
                        if index < 0 { index as isize + extent as isize } else { index as isize };
                    let index = (index.max(0) as usize).min(extent - 1);
                    let to = ((o * extent + index) * inner + first) * size;
                    let from = ((o * count + j) * inner + first) * size;
                    let (to, from) =
                        (write.as_ptr().wrapping_add(to), updates.as_ptr().wrapping_add(from));
                    // SAFETY: both ranges lie in their buffers (checked by `whole`, with the index
                    // clamped), and tasks add to different elements.
                    unsafe { (self.add)(to, from, wide) };
                }
            },
        );
        cancelled(ready.cancel)
    }
}

/// # Safety
/// Both ranges are live memory of `count` elements, aligned to `T`.
unsafe fn add<T: Number>(to: *mut u8, from: *const u8, count: usize) {
    let (to, from) = (to.cast::<T>(), from.cast::<T>());
    for i in 0..count {
        // SAFETY: as the caller says.
        unsafe { to.add(i).write(to.add(i).read().add(from.add(i).read())) };
    }
}

/// # Safety
/// As [`add`].
unsafe fn add_f16(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: as the caller says.
    unsafe { add_half(to, from, count, f16_to_f32, f16_from_f32) };
}

/// # Safety
/// As [`add`].
unsafe fn add_bf16(to: *mut u8, from: *const u8, count: usize) {
    // SAFETY: as the caller says.
    unsafe { add_half(to, from, count, bf16_to_f32, bf16_from_f32) };
}

/// # Safety
/// As [`add`].
unsafe fn add_half(
    to: *mut u8,
    from: *const u8,
    count: usize,
    widen: fn(u16) -> f32,
    narrow: fn(f32) -> u16,
) {
    let (to, from) = (to.cast::<u16>(), from.cast::<u16>());
    for i in 0..count {
        // SAFETY: as the caller says.
        unsafe { to.add(i).write(narrow(widen(to.add(i).read()) + widen(from.add(i).read()))) };
    }
}
