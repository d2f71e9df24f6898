//! Copies between device memory and the host's.

use super::{Prepared, Ready, cancelled};
use crate::LaunchError;
use crate::cpu::space::DevicePtr;
use vramlab_ir::kernel::Transfer as Image;

/// Bytes that are copied between two looks at the interrupt: about a millisecond.
const PIECE: u64 = 4 << 20;

#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer(pub Image);

impl Transfer {
    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let Image { bytes, read, write, .. } = self.0;
        let of = |buffer: u32| super::whole(ready.kernel, buffers, buffer, bytes as usize, 1);
        let (from, to) = (of(read)?, of(write)?);
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

impl Prepared {
    /// Whether it, or what it holds, copies to or from the host: no other kernel touches its memory.
    pub fn touches_host(&self) -> bool {
        use super::Decoded;
        matches!(self.body, Decoded::Transfer(_) | Decoded::Loop(_) | Decoded::Branch(_))
    }
}
