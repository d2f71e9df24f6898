//! The seam between arrays and whatever runs them. `runtime` implements it in-process; a socket
//! client for compiled cells can implement it too, so every call is plain data.

use crate::dtype::Literal;
use crate::fault::{Fault, Origin};
use crate::func::{Func, Type};
use crate::kernel::Donation;
use std::sync::Arc;

/// One holder's claim on a device buffer. Several ids may share the bytes (reshape).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u64);

/// An entry of the compile cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutableId(pub u64);

/// How executable calls are counted: eager ops apart from jitted calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompileKind {
    Eager,
    Jit,
}

#[derive(Clone, Debug)]
pub struct CompileRequest {
    pub func: Arc<Func>,
    /// Per parameter: its buffer may be reused.
    pub donate: Vec<bool>,
    pub kind: CompileKind,
    /// The most bytes at the peak, arguments and results included.
    pub memory_limit: Option<u64>,
    /// What to compile instead when `func` does not fit the limit, in this order.
    pub leaner: Vec<Leaner>,
}

/// The same function, keeping less for its gradient.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Leaner {
    /// How, for notes: `loop bodies computed again`.
    pub how: &'static str,
    /// Parameters and results are those of the function that it stands for.
    pub func: Arc<Func>,
}

// A program holds literals by their bits, so it equals itself.
impl Eq for Leaner {}

/// One argument of an execution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// Borrowed: stays as it is.
    Borrowed(BufferId),
    /// Moved: this holder's claim ends when the call succeeds, and comes back when it fails. The
    /// engine reuses the bytes only when no other holder shares them, else copies.
    Donated(BufferId),
    /// A scalar by value (weak literals in eager ops): no device buffer, no compile per value.
    Scalar(Literal),
}

/// Device memory at one moment, under JAX's names where it has them. Bytes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MemoryFigures {
    pub requested_bytes: u64,
    pub bytes_in_use: u64,
    pub peak_bytes_in_use: u64,
    pub pool_bytes: u64,
    pub bytes_limit: u64,
    pub device_bytes: u64,
    pub largest_free_block_bytes: u64,
    pub fragmentation: f64,
    pub num_allocs: u64,
    pub num_frees: u64,
    pub driver_allocs: u64,
    pub driver_frees: u64,
    pub live_arrays: u64,
}

/// What happened inside one scope. Requested bytes unless said otherwise.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ScopeFigures {
    pub name: String,
    pub start_bytes: u64,
    pub end_bytes: u64,
    pub peak_bytes: u64,
    pub allocated_bytes: u64,
    pub freed_bytes: u64,
    /// Granted bytes at the scope's peak.
    pub peak_bytes_in_use: u64,
    pub num_allocs: u64,
    pub num_frees: u64,
    pub driver_allocs: u64,
    pub driver_frees: u64,
}

/// JAX's `memory_analysis()` fields, bytes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MemoryAnalysis {
    pub argument_size_in_bytes: u64,
    pub output_size_in_bytes: u64,
    pub alias_size_in_bytes: u64,
    pub temp_size_in_bytes: u64,
    pub generated_code_size_in_bytes: u64,
    pub peak_memory_in_bytes: u64,
    /// Host memory that holds offloaded values during a run, beside the device's peak.
    pub host_temp_size_in_bytes: u64,
    /// Packing buffers of matrix products, on the process heap and not on the device.
    pub host_scratch_bytes: u64,
}

/// The compile pipeline of one executable, as text.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Explanation {
    pub name: String,
    /// (stage, text): trace, simplify, fuse, schedule, plan.
    pub stages: Vec<(String, String)>,
    pub analysis: MemoryAnalysis,
    /// Measured in the last run: peak of requested bytes over the run, arguments included.
    pub measured_peak_bytes: Option<u64>,
    pub ops: usize,
    pub kernels: usize,
    pub fused_bytes: u64,
    pub notes: Vec<String>,
    /// Arguments that were offered for donation: used, or why not.
    pub donations: Vec<Donation>,
    /// What the arguments are called; see [`Func::arg_names`].
    pub arg_names: Vec<String>,
}

impl Explanation {
    /// `params.layers[3].w`, or `argument 3` where it has no name.
    pub fn arg_name(&self, argument: u32) -> String {
        crate::func::arg_name(&self.arg_names, argument as usize)
    }
}

/// About ten calls that carry everything arrays need. All methods may be called from any thread.
pub trait Engine: Send + Sync {
    /// Finds or makes the executable.
    ///
    /// # Errors
    /// A fault that names the op when the program cannot be compiled for the device.
    fn compile(&self, request: &CompileRequest) -> Result<ExecutableId, Fault>;

    /// Runs an executable. Results are owned by the caller, one [`Engine::release`] each.
    ///
    /// # Errors
    /// Out of memory, interruption, a donated buffer; every argument is as it was. `Evicted` when
    /// the executable left the compile cache: the caller compiles again and retries.
    fn execute(
        &self,
        executable: ExecutableId,
        arguments: &[Argument],
        origin: Origin,
    ) -> Result<Vec<BufferId>, Fault>;

    /// A new array from host bytes (dense, row-major, little endian).
    fn upload(&self, ty: &Type, bytes: &[u8], origin: Origin) -> Result<BufferId, Fault>;

    /// The array's bytes.
    ///
    /// # Errors
    /// `NoData` on the dry device.
    fn download(&self, buffer: BufferId) -> Result<Vec<u8>, Fault>;

    /// `bytes` bytes from byte `offset` of the array: what printing a large array needs.
    ///
    /// # Errors
    /// `NoData` on the dry device.
    fn download_range(&self, buffer: BufferId, offset: u64, bytes: u64) -> Result<Vec<u8>, Fault>;

    /// A second claim on the same bytes, with an owner of its own: what `clone` does.
    fn share(&self, buffer: BufferId) -> BufferId;

    /// Ends one holder's claim; the last one frees the memory.
    fn release(&self, buffer: BufferId);

    /// Names the holder for tables: a variable path such as `params[3].w`, `Out[3]`,
    /// `captured by f`. Empty: made where its origin says.
    fn set_owner(&self, buffer: BufferId, owner: &str);

    /// The owners of every claim on the same bytes, this one included.
    fn holders(&self, buffer: BufferId) -> Vec<String>;

    fn memory(&self) -> MemoryFigures;

    /// Sets the peak to what is in use now.
    fn reset_peak(&self);

    /// Opens a nested scope; a cell is one.
    fn scope_begin(&self, name: &str);

    /// Closes the innermost scope.
    fn scope_end(&self) -> ScopeFigures;

    /// Waits until everything enqueued has run.
    fn synchronize(&self);

    /// Drops every entry of the compile cache: (entries, bytes).
    fn clear_caches(&self) -> (u64, u64);

    fn explain(&self, executable: ExecutableId) -> Option<Explanation>;
}
