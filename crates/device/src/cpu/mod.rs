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

use crate::host::{HostBlock, HostCounter, HostExhausted, HostFigures, HostRange};
use crate::{Device, DeviceRange, Launch, LaunchError, Operand};
use memory::Mapping;
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
    let pool = Arc::new(Pool::new(threads));
    let host = Host { space: AddressSpace::default(), counter: HostCounter::new(most()) };
    (CpuDevice { space, host, pool, isa }, Box::new(driver))
}

/// Runs kernel images on memory of its leaf.
#[derive(Clone, Debug)]
pub struct CpuDevice {
    space: AddressSpace,
    host: Host,
    pool: Arc<Pool>,
    isa: Isa,
}

/// The host's memory beside the device. It has a list of its own, so that no address of the one is
/// taken for one of the other.
#[derive(Clone, Debug)]
struct Host {
    space: AddressSpace,
    counter: HostCounter,
}

impl Host {
    fn obtain(&self, bytes: u64) -> Result<HostBlock, HostExhausted> {
        let reservation = self.counter.reserve(bytes)?;
        if bytes == 0 {
            return Ok(HostBlock::new(0, None, reservation));
        }
        let opened = Mapping::new(bytes).and_then(|mapping| {
            mapping.open(mapping.base, mapping.bytes)?;
            Ok(mapping)
        });
        let Ok(mapping) = opened else {
            return Err(HostExhausted { asked: bytes, figures: self.counter.figures() });
        };
        let base = mapping.base;
        self.space.insert(base, bytes);
        let listed = Listed { space: self.space.clone(), base, _mapping: mapping };
        Ok(HostBlock::new(base, Some(Box::new(listed)), reservation))
    }

    fn pointer(&self, range: HostRange) -> Result<DevicePtr, LaunchError> {
        self.space.pointer(DeviceRange::new(range.address, range.bytes))
    }
}

/// A mapping that launches may use.
struct Listed {
    space: AddressSpace,
    base: u64,
    _mapping: Mapping,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.space.remove(self.base);
    }
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
        let (space, host) = (self.space.clone(), self.host.clone());
        Ok(Box::new(CpuLaunch { prepared, space, host, pool: self.pool.clone() }))
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

    fn host_memory(&self, bytes: u64) -> Result<HostBlock, HostExhausted> {
        self.host.obtain(bytes)
    }

    fn host_figures(&self) -> HostFigures {
        self.host.counter.figures()
    }

    fn read_host(&self, from: HostRange, bytes: &mut [u8]) -> Result<(), LaunchError> {
        self.host.pointer(from)?.read_into(bytes)
    }
}

struct CpuLaunch {
    prepared: tier0::Prepared,
    space: AddressSpace,
    host: Host,
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
                Operand::Host(range) if self.prepared.touches_host() => {
                    self.host.pointer(*range)?
                }
                Operand::Host(HostRange { address, bytes }) => {
                    return Err(LaunchError::Outside { address: *address, bytes: *bytes });
                }
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
