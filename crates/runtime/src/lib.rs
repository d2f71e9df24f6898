//! The lower half put together: programs in, device memory and figures out.
//!
//! Place in the flow: between `array`, which reaches it through `Engine`, and the compiler, the memory and the
//! device below. What comes in: [`Func`](vramlab_ir::Func)s to compile and [`BufferId`](vramlab_ir::BufferId)s to run them on,
//! through [`Engine`](vramlab_ir::Engine); modes to switch to; caches to clear. What goes out: buffers, notes, and
//! plain reports (figures, owners, cache entries, plans of a switch, the account of a failed allocation).
//!
//! The flow, top down: [`Context`] → compile cache → compiler's `Program` → blocks from the memory crate's `Heap` →
//! launches on a device → results in the table of buffers. One lock protects all of it, because every step moves
//! memory that the next report must agree with.
//!
//! What it must not know: cells and their text, how a table looks, Jupyter, terminals, the environment. Whoever
//! is above hands in closures where a low layer needs a high one (dead arrays to collect when memory is short).

mod backend;
mod beside;
mod buffers;
mod cache;
mod config;
mod context;
mod execute;
mod fast_hash;
mod figures;
mod measure;
mod oom;
mod owners;
mod plans;
mod same_program;
mod sharing;
mod switch;

pub use cache::{CacheEntry, CacheSelection, Cleared, CompileCounts, CompileTally};
pub use config::{Config, DeviceConfig, SharedDevice, USUAL_DRY_CAPACITY};
pub use context::Context;
pub use figures::{
    BufferReport, CellFigures, ChunkReport, KeptRegion, OwnerReport, Report, ScopeReport,
    SmiReport, TrimReport, Work,
};
pub use oom::{Reclaim, Rung};
pub use plans::{MovedPlan, PlannedRun};
pub use sharing::{GuestAnswer, GuestRow, check_device_name, death_text};
pub use switch::{ModeOption, ModeRow, SwitchReport};
pub use vramlab_device::shared::{Company, Death, Peer, usual_folders};
pub use vramlab_memory::{
    ModeSpec,
    switch::{Policy, Road, SwitchPlan},
};
