//! Host memory that a device copies from and to: where offloaded values lie. It is beside the device's
//! own memory, in no pool and under no allocation mode.
//!
//! On the CPU device it is ordinary memory outside of the device's capacity, on the dry device a
//! figure. On a GPU it is pinned, so that the copy engines reach it while kernels run.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vramlab_memory::format_bytes;

/// A range of host memory of a device, checked at each use as a [`crate::DeviceRange`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostRange {
    /// Where it begins; any value when it has no bytes.
    pub address: u64,
    /// How long it is.
    pub bytes: u64,
}

/// How much host memory a device holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostFigures {
    /// Bytes held now.
    pub bytes_in_use: u64,
    /// The most that was held at once.
    pub peak_bytes_in_use: u64,
    /// The most that may be held at once; `u64::MAX` where nobody says.
    pub bytes_limit: u64,
}

/// There is not so much host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostExhausted {
    /// Bytes that were asked for.
    pub asked: u64,
    pub figures: HostFigures,
}

impl fmt::Display for HostExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostFigures { bytes_in_use, bytes_limit, .. } = self.figures;
        write!(f, "{} of host memory cannot be had", format_bytes(self.asked))?;
        if bytes_limit != u64::MAX {
            let (held, limit) = (format_bytes(bytes_in_use), format_bytes(bytes_limit));
            write!(f, ": {held} of the {limit} that this machine has are held already")?;
        }
        Ok(())
    }
}

impl std::error::Error for HostExhausted {}

/// Counts the host memory that a device holds.
#[derive(Clone, Debug)]
pub(crate) struct HostCounter(Arc<Mutex<HostFigures>>);

impl HostCounter {
    pub fn new(limit: Option<u64>) -> HostCounter {
        let bytes_limit = limit.unwrap_or(u64::MAX);
        HostCounter(Arc::new(Mutex::new(HostFigures { bytes_limit, ..HostFigures::default() })))
    }

    pub fn figures(&self) -> HostFigures {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, HostFigures> {
        // The figures are never left half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts `bytes`, until what this gives is dropped.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation, HostExhausted> {
        let mut figures = self.lock();
        let held = figures.bytes_in_use.checked_add(bytes);
        let Some(held) = held.filter(|&held| held <= figures.bytes_limit) else {
            return Err(HostExhausted { asked: bytes, figures: *figures });
        };
        figures.bytes_in_use = held;
        figures.peak_bytes_in_use = figures.peak_bytes_in_use.max(held);
        Ok(Reservation { counter: self.clone(), bytes })
    }
}

/// Bytes that are counted as held.
#[derive(Debug)]
pub(crate) struct Reservation {
    counter: HostCounter,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.counter.lock().bytes_in_use -= self.bytes;
    }
}

/// A block of host memory, which goes back when this is dropped.
pub struct HostBlock {
    range: HostRange,
    /// What holds the memory; dropped before the bytes stop counting.
    _memory: Option<Box<dyn Send + Sync>>,
    _reservation: Reservation,
}

impl HostBlock {
    /// `memory` is there at `address` as long as it lives; `None` where there is none to hold.
    pub(crate) fn new(
        address: u64,
        memory: Option<Box<dyn Send + Sync>>,
        reservation: Reservation,
    ) -> HostBlock {
        let range = HostRange { address, bytes: reservation.bytes };
        HostBlock { range, _memory: memory, _reservation: reservation }
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.range.bytes
    }

    /// `bytes` from `offset` on.
    pub fn part(&self, offset: u64, bytes: u64) -> HostRange {
        HostRange { address: self.range.address + offset, bytes }
    }
}

impl fmt::Debug for HostBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostBlock").field(&self.range).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_they_go_back_and_the_limit_is_hard() {
        let counter = HostCounter::new(Some(1000));
        let first = counter.reserve(600).expect("600 of 1000");
        let refused = counter.reserve(401).expect_err("only 400 are left");
        assert_eq!((refused.asked, refused.figures.bytes_in_use), (401, 600));
        assert_eq!(
            refused.to_string(),
            "401 B of host memory cannot be had: 600 B of the 1000 B that this machine has are held already"
        );
        drop(first);
        let _all = counter.reserve(1000).expect("all is free again");
        assert!(counter.reserve(u64::MAX).is_err(), "a sum that overflows is refused");
        assert_eq!(counter.figures().peak_bytes_in_use, 1000);
    }
}
