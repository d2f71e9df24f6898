//! The CPU as a device: finite, private to its session, and computing on the host's own memory.
//!
//! [`open`] gives the leaf for the allocators and the device that runs kernel images on what the leaf handed out. The
//! two share the list of live regions ([`AddressSpace`]): that is the one door between addresses, which are plain
//! numbers everywhere else, and pointers.

mod capacity;
mod isa;
mod memory;
mod pool;
mod space;
mod tier0;

pub use capacity::{Capacity, capacity, most};
pub use isa::Isa;
pub use memory::CpuDriver;
pub use pool::Pool;
pub use space::{AddressSpace, DevicePtr};

use crate::{Device, DeviceRange, Launch, LaunchError, Operand};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vramlab_ir::Kernel;
use vramlab_memory::Driver;

/// How the device is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Size of the device in bytes; by default [`capacity`]'s answer.
    pub capacity: Option<u64>,
    /// Threads that compute, the caller's included; by default one for each processor.
    pub threads: Option<usize>,
    /// The instruction set to use; by default the best one of this machine.
    pub isa: Option<Isa>,
}

/// The device and the leaf for its allocators.
pub fn open(options: Options) -> (CpuDevice, Box<dyn Driver>) {
    let space = AddressSpace::default();
    let bytes = options.capacity.unwrap_or_else(|| capacity().bytes);
    let driver = CpuDriver::new(bytes, space.clone());
    let threads = options.threads.unwrap_or_else(pool::processors);
    let isa = options.isa.filter(|isa| isa.available()).unwrap_or_else(Isa::best);
    (CpuDevice { space, pool: Arc::new(Pool::new(threads)), isa }, Box::new(driver))
}

/// Runs kernel images on memory of its leaf.
#[derive(Clone, Debug)]
pub struct CpuDevice {
    space: AddressSpace,
    pool: Arc<Pool>,
    isa: Isa,
}

impl CpuDevice {
    /// Threads that compute, the caller's included.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }
}

impl Device for CpuDevice {
    fn name(&self) -> String {
        let threads = self.pool.threads();
        let plural = if threads == 1 { "" } else { "s" };
        format!("cpu, {threads} thread{plural}, {}", self.isa.name())
    }

    fn carries_data(&self) -> bool {
        true
    }

    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Launch>, LaunchError> {
        let prepared = tier0::Prepared::new(kernel, self.isa)?;
        Ok(Box::new(CpuLaunch { prepared, space: self.space.clone(), pool: self.pool.clone() }))
    }

    fn upload(&self, to: DeviceRange, bytes: &[u8]) -> Result<(), LaunchError> {
        let to = self.space.pointer(to)?;
        to.write_from(bytes)
    }

    fn download(&self, from: DeviceRange, bytes: &mut [u8]) -> Result<(), LaunchError> {
        let from = self.space.pointer(from)?;
        from.read_into(bytes)
    }

    fn copy(&self, from: DeviceRange, to: DeviceRange) -> Result<(), LaunchError> {
        let (from, to) = (self.space.pointer(from)?, self.space.pointer(to)?);
        to.copy_from(from)
    }

    fn fill(&self, to: DeviceRange, byte: u8) -> Result<(), LaunchError> {
        self.space.pointer(to)?.fill(byte);
        Ok(())
    }
}

struct CpuLaunch {
    prepared: tier0::Prepared,
    space: AddressSpace,
    pool: Arc<Pool>,
}

impl Launch for CpuLaunch {
    fn run(&self, buffers: &[DeviceRange], cancel: &AtomicBool) -> Result<(), LaunchError> {
        let mut pointers = Vec::with_capacity(buffers.len());
        for &range in buffers {
            pointers.push(self.space.pointer(range)?);
        }
        self.prepared.run(&pointers, &self.pool, cancel)
    }

    fn run_on(&self, operands: &[Operand], cancel: &AtomicBool) -> Result<(), LaunchError> {
        let mut pointers = Vec::with_capacity(operands.len());
        for operand in operands {
            pointers.push(match operand {
                Operand::Memory(range) => self.space.pointer(*range)?,
                Operand::Scalar(word) => DevicePtr::to_scalar(word),
            });
        }
        self.prepared.run(&pointers, &self.pool, cancel)
    }

    fn code_bytes(&self) -> u64 {
        self.prepared.code_bytes()
    }

    fn host_scratch_bytes(&self) -> u64 {
        self.prepared.host_scratch_bytes()
    }
}
