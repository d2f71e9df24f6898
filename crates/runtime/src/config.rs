//! What a context is made of.

use vramlab_memory::{MIB, ModeSpec};

/// Which device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceConfig {
    /// The CPU as a device with a finite memory of its own; `None`: as much as the machine holds, 4 GiB at most.
    Cpu { capacity: Option<u64> },
    /// Shapes without data: every allocator, plan and verdict is live, nothing is computed.
    Dry { capacity: u64 },
    /// A CPU or a dry device that processes of this user share.
    Shared(SharedDevice),
}

/// A device with a name, made by the first process that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDevice {
    /// As [`check_device_name`](crate::check_device_name) allows it.
    pub name: String,
    /// Whether it carries shapes without data.
    pub dry: bool,
    /// The size asked for; `None`: as it is, or for the first process as large as such a device usually is.
    pub capacity: Option<u64>,
    /// Where its ledger may lie, best first.
    pub folders: Vec<std::path::PathBuf>,
    /// What this process is called before the others.
    pub process: String,
}

/// The size of a dry device that nobody asked a size for: the card of many a lesson.
pub const USUAL_DRY_CAPACITY: u64 = 80 << 30;

/// The settings of a [`Context`](crate::Context).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub device: DeviceConfig,
    pub mode: ModeSpec,
    /// Threads that run kernels; `None`: one a core.
    pub threads: Option<usize>,
    /// Bytes that the compile cache may hold before its least recently used entries go.
    pub cache_budget: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            device: DeviceConfig::Cpu { capacity: None },
            mode: ModeSpec::default(),
            threads: None,
            cache_budget: 64 * MIB,
        }
    }
}
