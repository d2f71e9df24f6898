//! What a context is made of.

use vramlab_memory::{MIB, ModeSpec};

/// Which device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceConfig {
    /// The CPU as a device with a finite memory of its own; `None`: as much as the machine holds, 4 GiB at most.
    Cpu { capacity: Option<u64> },
    /// Shapes without data: every allocator, plan and verdict is live, nothing is computed.
    Dry { capacity: u64 },
}

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
