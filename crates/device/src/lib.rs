//! `device`: the machines that hold bytes and run kernel images.
//!
//! Place in the flow: `compiler` emits [`vramlab_ir::Kernel`] images as plain data, `memory` decides at which
//! addresses their buffers lie, `runtime` brings both here. What comes in: images, addresses and host bytes. What goes
//! out: a leaf driver for the allocators ([`vramlab_memory::Driver`]), and prepared launches that read and write
//! device memory.
//!
//! What it must not know: allocators and modes, programs as a whole, arrays, ops by name, text. It reads no
//! environment variable and prints nothing. It is the only home of raw memory, of threads that compute and, later, of
//! `extern "C"`.
//!
//! Two devices are here, behind one trait ([`Device`]): [`cpu`], a real device with a finite capacity on the host's
//! own memory, and [`dry`], which has addresses and no data.

pub mod cpu;
pub mod dry;
mod host;
pub mod shared;

pub use host::{HostBlock, HostExhausted, HostFigures, HostRange};

use std::fmt;
use std::sync::atomic::AtomicBool;
use vramlab_ir::Kernel;

/// A range of device memory as the allocators name it: plain figures, checked by the device at each use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceRange {
    /// Where it begins; any value when it has no bytes.
    pub address: u64,
    /// How long it is.
    pub bytes: u64,
}

impl DeviceRange {
    /// `bytes` from `address` on.
    pub fn new(address: u64, bytes: u64) -> DeviceRange {
        DeviceRange { address, bytes }
    }
}

/// What a launch reads or writes in place of one of an image's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Device memory.
    Memory(DeviceRange),
    /// Memory of the host, for kernels that copy from or to it; others refuse it.
    Host(HostRange),
    /// One element by value: the word whose first bytes in memory are the element's. Only ever read; it has no address
    /// and costs no device memory.
    Scalar(u64),
}

/// A device: copies to, from and within its memory, and kernel images made ready to run.
pub trait Device: Send + Sync {
    /// What it is, in a few words: `cpu, 2 threads, AVX-512`.
    fn name(&self) -> String;

    /// Whether there is data behind the addresses. Where there is none, a download fails with
    /// [`LaunchError::NoData`] and everything that writes does nothing.
    fn carries_data(&self) -> bool;

    /// Decodes an image once, for any number of launches on buffers of the image's shapes.
    fn prepare(&self, kernel: &Kernel) -> Result<Box<dyn Launch>, LaunchError>;

    /// Copies host bytes to the device; both lengths are equal.
    fn upload(&self, to: DeviceRange, bytes: &[u8]) -> Result<(), LaunchError>;

    /// Copies device bytes to the host; both lengths are equal.
    fn download(&self, from: DeviceRange, bytes: &mut [u8]) -> Result<(), LaunchError>;

    /// Copies within the device; both lengths are equal, and the ranges do not overlap.
    fn copy(&self, from: DeviceRange, to: DeviceRange) -> Result<(), LaunchError>;

    /// Sets every byte of the range.
    fn fill(&self, to: DeviceRange, byte: u8) -> Result<(), LaunchError>;

    /// `bytes` of host memory that launches copy from and to. It takes none of the device's bytes, and
    /// goes back when the block is dropped.
    ///
    /// # Errors
    /// When the host has not so much.
    fn host_memory(&self, bytes: u64) -> Result<HostBlock, HostExhausted>;

    /// How much host memory the device holds.
    fn host_figures(&self) -> HostFigures;

    /// Copies out of host memory of the device; both lengths are equal.
    fn read_host(&self, from: HostRange, bytes: &mut [u8]) -> Result<(), LaunchError>;
}

/// A kernel that is ready to run.
pub trait Launch: Send + Sync {
    /// Runs it to its end on `buffers`, which stand for the image's `buffers` in the same order. A set `cancel` stops
    /// it within milliseconds; what it wrote until then stays.
    fn run(&self, buffers: &[DeviceRange], cancel: &AtomicBool) -> Result<(), LaunchError>;

    /// As [`Launch::run`], with elements by value beside the buffers.
    fn run_on(&self, operands: &[Operand], cancel: &AtomicBool) -> Result<(), LaunchError>;

    /// Bytes that the decoded form takes on the host.
    fn code_bytes(&self) -> u64;

    /// Bytes of host memory beside the device that one run needs (packing, partial results), as estimated.
    fn host_scratch_bytes(&self) -> u64;
}

/// Why a kernel or a copy did not run. All but `Interrupted` and `NoData` are faults of the program above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// `cancel` was set.
    Interrupted,
    /// The device has no data to give.
    NoData,
    /// The image asks for what this device cannot do.
    Unsupported { kernel: String, what: String },
    /// The image does not hold together.
    Malformed { kernel: String, what: String },
    /// An access leaves its buffer: elements `first..=last` of a buffer of `elements`.
    OutOfBounds { kernel: String, buffer: u32, first: i64, last: i64, elements: u64 },
    /// A range that does not lie in memory of this device.
    Outside { address: u64, bytes: u64 },
    /// Two lengths that should be equal.
    Lengths { device: u64, host: u64 },
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Interrupted => f.write_str("interrupted"),
            LaunchError::NoData => {
                f.write_str("this device carries shapes and no data: nothing can be read from it")
            }
            LaunchError::Unsupported { kernel, what } => {
                write!(f, "kernel {kernel}: the device cannot run {what}")
            }
            LaunchError::Malformed { kernel, what } => write!(f, "kernel {kernel}: {what}"),
            LaunchError::OutOfBounds { kernel, buffer, first, last, elements } => write!(
                f,
                "kernel {kernel}: elements {first}..={last} of buffer {buffer}, which holds {elements}"
            ),
            LaunchError::Outside { address, bytes } => {
                write!(f, "{bytes} bytes at {address:#x} do not lie in memory of this device")
            }
            LaunchError::Lengths { device, host } => {
                write!(f, "{device} bytes on one side and {host} on the other")
            }
        }
    }
}

impl std::error::Error for LaunchError {}
