//! The dry device: any capacity, virtual addresses, no data.
//!
//! Its leaf is the memory crate's device of numbers, so every allocator, plan and verdict is live on it. A launch does
//! nothing, at once.

use crate::host::{HostBlock, HostCounter, HostExhausted, HostFigures, HostRange};
use crate::{Device, DeviceRange, Launch, LaunchError, Operand};
use std::sync::atomic::AtomicBool;
use vramlab_ir::Kernel;
use vramlab_memory::{Driver, Fake, format_bytes};

/// A device of `capacity` bytes: its leaf for the allocators, and the device that runs nothing.
pub fn open(capacity: u64) -> (DryDevice, Box<dyn Driver>) {
    (DryDevice { capacity, host: HostCounter::new(None) }, Box::new(Fake::new(capacity)))
}

/// Runs nothing and holds nothing.
#[derive(Clone, Debug)]
pub struct DryDevice {
    capacity: u64,
    host: HostCounter,
}

impl Device for DryDevice {
    fn name(&self) -> String {
        format!("dry device of {}, no data", format_bytes(self.capacity))
    }

    fn carries_data(&self) -> bool {
        false
    }

    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Launch>, LaunchError> {
        Ok(Box::new(DryLaunch { name: kernel.name.clone(), buffers: kernel.buffers.len() }))
    }

    fn upload(&self, to: DeviceRange, bytes: &[u8]) -> Result<(), LaunchError> {
        equal(to.bytes, bytes.len() as u64)
    }

    fn download(&self, _from: DeviceRange, _bytes: &mut [u8]) -> Result<(), LaunchError> {
        Err(LaunchError::NoData)
    }

    fn copy(&self, from: DeviceRange, to: DeviceRange) -> Result<(), LaunchError> {
        equal(to.bytes, from.bytes)
    }

    fn fill(&self, _to: DeviceRange, _byte: u8) -> Result<(), LaunchError> {
        Ok(())
    }

    /// Counted, and nothing else: there is no data to put there.
    fn host_memory(&self, bytes: u64) -> Result<HostBlock, HostExhausted> {
        Ok(HostBlock::new(0, None, self.host.reserve(bytes)?))
    }

    fn host_figures(&self) -> HostFigures {
        self.host.figures()
    }

    fn read_host(&self, _from: HostRange, _bytes: &mut [u8]) -> Result<(), LaunchError> {
        Err(LaunchError::NoData)
    }
}

fn equal(device: u64, host: u64) -> Result<(), LaunchError> {
    if device == host { Ok(()) } else { Err(LaunchError::Lengths { device, host }) }
}

struct DryLaunch {
    name: String,
    buffers: usize,
}

impl DryLaunch {
    fn check(&self, buffers: usize) -> Result<(), LaunchError> {
        if buffers == self.buffers {
            return Ok(());
        }
        Err(LaunchError::Malformed {
            kernel: self.name.clone(),
            what: format!("{buffers} buffers where the image names {}", self.buffers),
        })
    }
}

impl Launch for DryLaunch {
    fn run(&self, buffers: &[DeviceRange], _cancel: &AtomicBool) -> Result<(), LaunchError> {
        self.check(buffers.len())
    }

    fn run_on(&self, operands: &[Operand], _cancel: &AtomicBool) -> Result<(), LaunchError> {
        self.check(operands.len())
    }

    fn code_bytes(&self) -> u64 {
        0
    }

    fn host_scratch_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramlab_memory::GIB;

    #[test]
    fn a_large_card_is_finite_and_holds_no_data() {
        let (device, mut driver) = open(80 * GIB);
        let region = driver.obtain(60 * GIB).expect("60 of 80 GiB");
        assert!(driver.obtain(30 * GIB).is_err(), "only 20 GiB are left");
        let range = DeviceRange::new(region.base(), 4);
        assert_eq!(device.upload(range, &[1, 2, 3, 4]), Ok(()));
        assert_eq!(device.download(range, &mut [0; 4]), Err(LaunchError::NoData));
        driver.release(region);
        assert_eq!(driver.figures().held, 0);
    }
}
