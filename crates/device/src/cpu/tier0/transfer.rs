//! Copies between device memory and the host's.

use super::{Prepared, Ready, cancelled};
use crate::LaunchError;
use crate::cpu::space::DevicePtr;
use vramlab_ir::kernel::{Transfer as Image, TransferEnd};

/// Bytes that are copied between two looks at the interrupt: about a millisecond.
const PIECE: u64 = 4 << 20;

#[derive(Clone, Debug)]
pub(super) struct Transfer(pub Image);

impl Transfer {
    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let Image { bytes, ref read, ref write, .. } = self.0;
        let (from, to) = (end(ready, buffers, read, bytes)?, end(ready, buffers, write, bytes)?);
        for offset in (0..bytes).step_by(PIECE as usize) {
            cancelled(ready.cancel)?;
            let piece = PIECE.min(bytes - offset);
            let part = |whole: DevicePtr| {
                whole
                    .part(offset, piece)
                    .ok_or(LaunchError::Lengths { device: bytes, host: offset })
            };
            part(to)?.copy_from(part(from)?)?;
        }
        Ok(())
    }
}

/// The bytes of one side.
fn end(
    ready: &Ready,
    buffers: &[DevicePtr],
    end: &TransferEnd,
    bytes: u64,
) -> Result<DevicePtr, LaunchError> {
    let mut first = 0;
    if let Some(start) = &end.start {
        let at = super::whole(ready.kernel, buffers, start.buffer, 1, size_of::<i32>())?;
        // SAFETY: the buffer holds an i32 at its beginning and is aligned to it.
        let at = unsafe { at.as_ptr().cast::<i32>().read() };
        first = i64::from(at).clamp(0, start.limit) as usize * start.stride.unsigned_abs();
    }
    let whole = super::whole(ready.kernel, buffers, end.buffer, first + bytes as usize, 1)?;
    whole.part(first as u64, bytes).ok_or(LaunchError::Lengths { device: bytes, host: 0 })
}

impl Prepared {
    /// Whether it, or what it holds, copies to or from the host: no other kernel touches its memory.
    pub fn touches_host(&self) -> bool {
        use super::Decoded;
        matches!(self.body, Decoded::Transfer(_) | Decoded::Loop(_) | Decoded::Branch(_))
    }
}
