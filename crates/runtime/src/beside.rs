//! A second device beside this one, to try something on without touching anything here: no array, pool, cache or
//! event of this context changes.

use crate::config::{Config, DeviceConfig};
use crate::context::{Context, gone};
use std::sync::Arc;
use vramlab_ir::{BufferId, Fault};
use vramlab_memory::{ModeSpec, format_bytes};

/// What is copied at once through the host, in bytes.
const PIECE: u64 = 16 << 20;

impl Context {
    /// A private device of the same kind, of `capacity` bytes (this one's, where nobody says), in a mode. What stops
    /// kernels here stops them there.
    ///
    /// # Errors
    /// In words: a capacity or a mode that the machine cannot have beside what lives here.
    pub fn beside(&self, capacity: Option<u64>, mode: ModeSpec) -> Result<Arc<Context>, String> {
        let capacity = capacity.unwrap_or(self.capacity);
        let device = match self.is_dry() {
            true => DeviceConfig::Dry { capacity },
            false => {
                self.leaves_room_for(capacity)?;
                DeviceConfig::Cpu { capacity: Some(capacity) }
            }
        };
        let config = Config { device, mode, ..Config::default() };
        Context::stopped_by(config, self.interrupt_flag())
    }

    /// Both devices lie in this machine's memory.
    fn leaves_room_for(&self, capacity: u64) -> Result<(), String> {
        let live = self.lock().heap.stats().bytes_in_use;
        match vramlab_device::cpu::most() {
            Some(most) if live.saturating_add(capacity) > most => Err(format!(
                "a second device of {} does not fit in this machine ({}) beside the {} that live here; a smaller \
                 capacity= does",
                format_bytes(capacity),
                format_bytes(most),
                format_bytes(live)
            )),
            _ => Ok(()),
        }
    }

    /// A copy of an array that lives on another context, with the place that made it.
    ///
    /// # Errors
    /// Out of memory here; an array that is gone there.
    pub fn copy_from(&self, other: &Context, buffer: BufferId) -> Result<BufferId, Fault> {
        let (ty, origin) = {
            let state = other.lock();
            let claim = state.buffers.get(buffer).ok_or_else(|| gone("copy"))?;
            (claim.ty.clone(), claim.origin)
        };
        let bytes = ty.bytes();
        let copy = self.with_ladder(origin, |state, _| {
            let now_ns = self.clock.now();
            state.set_site(origin);
            let owner = state.made_in(origin);
            let block = state.place(self, "copy", bytes, owner, now_ns)?;
            Ok(state.buffers.insert(block, ty.clone(), origin))
        })?;
        if !self.is_dry() && !other.is_dry() {
            self.copy_bytes(copy, other, buffer, bytes)?;
        }
        Ok(copy)
    }

    fn copy_bytes(
        &self,
        copy: BufferId,
        other: &Context,
        buffer: BufferId,
        bytes: u64,
    ) -> Result<(), Fault> {
        for offset in (0..bytes).step_by(PIECE as usize) {
            let piece = PIECE.min(bytes - offset);
            let (to, from) = (self.lock(), other.lock());
            let target = to.buffers.get(copy).ok_or_else(|| gone("copy"))?.storage;
            let source = from.buffers.get(buffer).ok_or_else(|| gone("copy"))?.storage;
            let host = other.backend.read(&from.buffers.storage(source).block, offset, piece);
            self.backend.write_at(&to.buffers.storage(target).block, offset, &host);
        }
        Ok(())
    }

    /// Which allocation of the heap a claim's bytes are; claims that share bytes give the same number.
    pub fn allocation_of(&self, buffer: BufferId) -> Option<u64> {
        let state = self.lock();
        let storage = state.buffers.get(buffer)?.storage;
        Some(state.buffers.storage(storage).block.id().sequence())
    }
}
