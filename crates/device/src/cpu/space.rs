//! From addresses to pointers: the one door.

use crate::{DeviceRange, LaunchError};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, RwLock};

/// The live regions of a CPU device, shared by its leaf (which adds and removes them) and its launches.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Base to end of each live mapping. A guard page lies between two of them, except between granules of one
    /// reserved range: those join.
    live: Arc<RwLock<BTreeMap<u64, u64>>>,
}

impl AddressSpace {
    pub(super) fn insert(&self, base: u64, bytes: u64) {
        self.write().insert(base, base + bytes);
    }

    pub(super) fn remove(&self, base: u64) {
        self.write().remove(&base);
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<u64, u64>> {
        // The map is never left half changed, so a panic elsewhere does not spoil it.
        self.live.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The pointer behind a range that lies in live mappings without a hole.
    pub fn pointer(&self, range: DeviceRange) -> Result<DevicePtr, LaunchError> {
        let DeviceRange { address, bytes } = range;
        if bytes == 0 {
            return Ok(DevicePtr { address: 256, bytes: 0 });
        }
        let live = self.live.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let outside = Err(LaunchError::Outside { address, bytes });
        let first = live.range(..=address).next_back().map(|(_, &end)| end);
        let (Some(mut end), Some(last)) = (first, address.checked_add(bytes)) else {
            return outside;
        };
        while end < last {
            match live.get(&end) {
                Some(&next) => end = next,
                None => return outside,
            }
        }
        Ok(DevicePtr { address: address as usize, bytes: bytes as usize })
    }
}

/// A checked range of live device memory. The allocator above keeps it alive while a launch uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePtr {
    address: usize,
    bytes: usize,
}

impl DevicePtr {
    /// The memory of an element that came by value; it outlives the launch, which only reads it.
    pub(super) fn to_scalar(word: &u64) -> DevicePtr {
        let address = std::ptr::from_ref(word).expose_provenance();
        DevicePtr { address, bytes: size_of::<u64>() }
    }

    /// Host memory in a buffer's place; it outlives the launch, which writes it through this alone.
    pub(super) fn to_words(words: &mut [u64]) -> DevicePtr {
        let address = words.as_mut_ptr().expose_provenance();
        DevicePtr { address, bytes: size_of_val(words) }
    }

    /// The memory of a loop's counter, which changes between the kernels that read it.
    pub(super) fn to_counter(counter: &AtomicU64) -> DevicePtr {
        let address = counter.as_ptr().expose_provenance();
        DevicePtr { address, bytes: size_of::<u64>() }
    }

    /// `bytes` from `offset` on, where the range has as many.
    pub(super) fn part(self, offset: u64, bytes: u64) -> Option<DevicePtr> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes as u64)
            .then_some(DevicePtr { address: self.address + offset as usize, bytes: bytes as usize })
    }

    /// The bool in the first byte, where there is one.
    pub(super) fn read_bool(self) -> Option<bool> {
        // SAFETY: the range is live device memory of at least one byte.
        (self.bytes > 0).then(|| unsafe { self.as_ptr().read() != 0 })
    }

    /// Exchanges the bytes of two ranges of one length.
    pub(super) fn swap_with(self, other: DevicePtr) -> Result<(), LaunchError> {
        self.same_length(other.bytes)?;
        if self.overlaps(other) {
            return Err(LaunchError::Outside { address: other.address as u64, bytes: 0 });
        }
        // SAFETY: both ranges are live device memory of the same length, and they do not overlap.
        unsafe { std::ptr::swap_nonoverlapping(self.as_ptr(), other.as_ptr(), self.bytes) };
        Ok(())
    }

    /// The first byte.
    pub fn as_ptr(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    /// Its length in bytes.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    pub(super) fn overlaps(self, other: DevicePtr) -> bool {
        self.address < other.address + other.bytes && other.address < self.address + self.bytes
    }

    pub(super) fn write_from(self, bytes: &[u8]) -> Result<(), LaunchError> {
        self.same_length(bytes.len())?;
        // SAFETY: the range is live device memory of `bytes.len()` bytes (checked by `AddressSpace::pointer`), and
        // host slices never lie in device memory.
        unsafe { self.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    pub(super) fn read_into(self, bytes: &mut [u8]) -> Result<(), LaunchError> {
        self.same_length(bytes.len())?;
        // SAFETY: as in `write_from`; device memory is always initialised, since its pages start as zeros.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(self.as_ptr(), bytes.len()) };
        Ok(())
    }

    pub(super) fn copy_from(self, from: DevicePtr) -> Result<(), LaunchError> {
        self.same_length(from.bytes)?;
        // SAFETY: both ranges are live device memory of the same length; `copy` allows overlap.
        unsafe { self.as_ptr().copy_from(from.as_ptr(), self.bytes) };
        Ok(())
    }

    pub(super) fn fill(self, byte: u8) {
        // SAFETY: the range is live device memory.
        unsafe { self.as_ptr().write_bytes(byte, self.bytes) };
    }

    fn same_length(self, host: usize) -> Result<(), LaunchError> {
        if self.bytes == host {
            return Ok(());
        }
        Err(LaunchError::Lengths { device: self.bytes as u64, host: host as u64 })
    }
}
