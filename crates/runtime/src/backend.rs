//! The device of a context: opened once, and asked in terms of blocks.

use crate::config::{Config, DeviceConfig, SharedDevice, USUAL_DRY_CAPACITY};
use std::sync::Arc;
use vramlab_compiler::Options;
use vramlab_device::shared::{self, Joining, Seat, SharedDriver};
use vramlab_device::{
    Device, DeviceRange, HostBlock, HostExhausted, HostFigures, Launch, LaunchError, cpu, dry,
};
use vramlab_ir::{CompileRequest, Fault, FaultKind, Func, Leaner, Program};
use vramlab_memory::{Block, Driver, UNIT, format_bytes};

/// A device and the compiler's options for it.
pub(crate) struct Backend {
    device: Box<dyn Device>,
    threads: usize,
    options: Options,
    /// What the user should know about the device: why it is smaller than the usual one, where its ledger lies.
    pub remarks: Vec<String>,
    /// Our place at a device that other processes share.
    pub seat: Option<Seat>,
}

impl Backend {
    /// Opens the device and its leaf for the allocators.
    ///
    /// # Errors
    /// In words: a capacity that holds no block, or a shared device that cannot be joined.
    pub fn open(config: &Config) -> Result<(Backend, Box<dyn Driver>), String> {
        match &config.device {
            DeviceConfig::Dry { capacity } => {
                refuse_below_a_block(Some(*capacity))?;
                Ok(Backend::open_dry(*capacity))
            }
            DeviceConfig::Cpu { capacity } => {
                let (asked, usual) = (*capacity, cpu::capacity());
                refuse_below_a_block(asked)?;
                refuse_beyond(asked, cpu::most())?;
                let bytes = asked.unwrap_or(usual.bytes);
                let (mut backend, driver) = Backend::open_cpu(bytes, config.threads);
                backend.remarks.extend(usual.reason.filter(|_| asked.is_none()));
                Ok((backend, driver))
            }
            DeviceConfig::Shared(device) => Backend::open_shared(device, config.threads),
        }
    }

    fn open_dry(capacity: u64) -> (Backend, Box<dyn Driver>) {
        let (device, driver) = dry::open(capacity);
        (Backend::of(Box::new(device), 0), driver)
    }

    fn open_cpu(capacity: u64, threads: Option<usize>) -> (Backend, Box<dyn Driver>) {
        let options = cpu::Options { capacity: Some(capacity), threads, isa: None };
        let (device, driver) = cpu::open(options);
        let threads = device.threads();
        (Backend::of(Box::new(device), threads), driver)
    }

    /// A device of this process alone in all but its bytes, which a seat counts for everybody.
    fn open_shared(
        device: &SharedDevice,
        threads: Option<usize>,
    ) -> Result<(Backend, Box<dyn Driver>), String> {
        refuse_below_a_block(device.capacity)?;
        if !device.dry {
            refuse_beyond(device.capacity, cpu::most())?;
        }
        let usual = if device.dry { USUAL_DRY_CAPACITY } else { cpu::capacity().bytes };
        let joining = Joining {
            name: device.name.clone(),
            dry: device.dry,
            capacity: device.capacity,
            usual_capacity: usual,
            folders: device.folders.clone(),
            process: device.process.clone(),
        };
        let joined = shared::join(&joining).map_err(|error| error.to_string())?;
        let seat = joined.seat;
        let capacity = seat.capacity();
        let (mut backend, leaf) = match device.dry {
            true => Backend::open_dry(capacity),
            false => Backend::open_cpu(capacity, threads),
        };
        backend.remarks = joined.notes;
        backend.seat = Some(seat.clone());
        Ok((backend, Box::new(SharedDriver::new(leaf, seat))))
    }

    fn of(device: Box<dyn Device>, threads: usize) -> Backend {
        // Texts for explanations are written when somebody asks: most programs are never explained.
        let options = Options { explain: false, ..Options::default() };
        Backend { device, threads, options, remarks: Vec::new(), seat: None }
    }

    /// Threads that run kernels; 0 where nothing is computed.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The processor and its instruction set, in words.
    pub fn name(&self) -> String {
        self.device.name()
    }

    pub fn carries_data(&self) -> bool {
        self.device.carries_data()
    }

    /// Compiles a program and makes its kernels ready to run.
    pub fn compile(
        &self,
        request: &CompileRequest,
    ) -> Result<(Program, Vec<Box<dyn Launch>>), Fault> {
        let CompileRequest { func, donate, memory_limit, leaner, .. } = request;
        let leaner = leaner.clone();
        let options = Options { memory_limit: *memory_limit, leaner, ..self.options.clone() };
        let program = vramlab_compiler::compile(func, donate, &options)?;
        let mut launches = Vec::with_capacity(program.kernels.len());
        for kernel in &program.kernels {
            let launch = self.device.prepare(kernel);
            launches.push(launch.map_err(|error| fault_of(&func.name, &error))?);
        }
        Ok((program, launches))
    }

    /// The same program with its stages and notes as text: compiling is pure, so it is the one that runs.
    pub fn explain(&self, func: &Arc<Func>, donate: &[bool]) -> Result<Program, Fault> {
        self.explain_under(func, donate, None, &[])
    }

    /// The same under a limit of bytes at the peak, with what may be compiled instead.
    pub fn explain_under(
        &self,
        func: &Arc<Func>,
        donate: &[bool],
        memory_limit: Option<u64>,
        leaner: &[Leaner],
    ) -> Result<Program, Fault> {
        let leaner = leaner.to_vec();
        let options = Options { explain: true, memory_limit, leaner, ..self.options.clone() };
        vramlab_compiler::compile(func, donate, &options)
    }

    /// Host bytes to the block's beginning.
    pub fn write(&self, to: &Block, bytes: &[u8]) {
        self.write_at(to, 0, bytes);
    }

    /// Host bytes to a part of the block.
    pub fn write_at(&self, to: &Block, offset: u64, bytes: &[u8]) {
        if self.carries_data() {
            let range = DeviceRange::new(to.address() + offset, bytes.len() as u64);
            let done = self.device.upload(range, bytes);
            done.expect("a live block lies in device memory");
        }
    }

    /// Host bytes of a part of the block. Where the device has no data they are zeros: callers ask first.
    pub fn read(&self, from: &Block, offset: u64, bytes: u64) -> Vec<u8> {
        let mut host = vec![0; bytes as usize];
        if self.carries_data() {
            let range = DeviceRange::new(from.address() + offset, bytes);
            let done = self.device.download(range, &mut host);
            done.expect("a live block lies in device memory");
        }
        host
    }

    /// Host memory that launches copy from and to.
    pub fn host_memory(&self, bytes: u64) -> Result<HostBlock, HostExhausted> {
        self.device.host_memory(bytes)
    }

    /// How much of it is held.
    pub fn host_figures(&self) -> HostFigures {
        self.device.host_figures()
    }

    /// Bytes of an array in host memory. Where the device has no data they are zeros: callers ask first.
    pub fn read_host(&self, from: &HostBlock, offset: u64, bytes: u64) -> Vec<u8> {
        let mut host = vec![0; bytes as usize];
        if self.carries_data() {
            let done = self.device.read_host(from.part(offset, bytes), &mut host);
            done.expect("a live block lies in host memory");
        }
        host
    }

    /// Device to device, from beginning to beginning.
    pub fn copy(&self, from: &Block, to: &Block, bytes: u64) {
        let range = |block: &Block| DeviceRange::new(block.address(), bytes);
        let done = self.device.copy(range(from), range(to));
        done.expect("live blocks lie in device memory");
    }
}

fn refuse_below_a_block(asked: Option<u64>) -> Result<(), String> {
    match asked.filter(|&bytes| bytes < UNIT) {
        Some(bytes) => {
            let size = format_bytes(bytes);
            Err(format!("a device of {size} is smaller than one block of 256 B"))
        }
        None => Ok(()),
    }
}

/// Pages beyond the machine's memory would end the process when they are touched, so nobody gets such a device.
fn refuse_beyond(asked: Option<u64>, most: Option<u64>) -> Result<(), String> {
    match (asked, most) {
        (Some(asked), Some(most)) if asked > most => Err(format!(
            "a CPU device of {} is more than this machine gives ({}); --device dry:SIZE carries no data and may be \
             larger",
            format_bytes(asked),
            format_bytes(most)
        )),
        _ => Ok(()),
    }
}

/// What a user is told of a launch that did not run. All but the first three are faults of ours.
pub(crate) fn fault_of(name: &str, error: &LaunchError) -> Fault {
    match error {
        LaunchError::Interrupted => {
            Fault::new(FaultKind::Interrupted, name, "interrupted; every array is as it was")
        }
        LaunchError::NoData => Fault::new(FaultKind::NoData, name, error.to_string()),
        LaunchError::Unsupported { .. } => Fault::new(FaultKind::DType, name, error.to_string()),
        _ => Fault::new(FaultKind::Panic, name, format!("a fault of vramlab's own: {error}")),
    }
}
