//! Device memory as arithmetic: who holds which bytes, and what would happen if.
//!
//! Place in the flow: below `device` and `runtime`, above nothing. What comes in: requests for bytes (with an owner, a
//! stream and a time that the caller read from its clock) and a [`Driver`], the leaf that hands out regions of a
//! device. What goes out: [`Block`]s, events in a [`Ledger`], figures under JAX's names ([`Stats`]), and answers to
//! "what if" that come from running the same code again on a [`Fake`].
//!
//! The flow, top down: [`ModeSpec`] (what the user asked for) → [`stack::build`] (the allocator stack) →
//! [`MemoryResource`] (blocks out of regions) → [`Driver`] (regions out of a device). A [`Heap`] owns one driver, the
//! stack that answers new requests, the older stacks that still hold blocks, and the ledger.
//!
//! What it must not know: CUDA, arrays, programs, files, clocks, environments, locks. Nothing here prints. Live use and
//! replay are the same code, so a replayed figure is a measured figure.
//!
//! The driver is handed to each call instead of being owned by the stack: two stacks share one device during a switch
//! of mode, and a borrow does that without a lock or a shared handle.

pub mod adaptors;
mod bfc;
mod block;
pub mod caching;
pub mod conformance;
mod driver;
mod fake;
mod freelist;
pub mod heap;
pub mod ledger;
pub mod modes;
pub mod names;
pub mod oom;
mod platform;
pub mod replay;
mod resource;
pub mod stack;
pub mod statistics;
mod stats;
pub mod switch;
mod text;
pub mod trace;
mod vmm;

pub use bfc::{Bfc, BfcOptions};
pub use block::{Block, BlockId, PoolId, Stream};
pub use caching::{Caching, CachingOptions};
pub use driver::{Driver, DriverFigures, Holder, Refusal, RefusalCause, Region, VirtualMemory};
pub use fake::{Fake, FakeOptions};
pub use heap::{Guest, Heap, Request, Warning};
pub use ledger::{Event, EventKind, Ledger, Owner, OwnerId, Site};
pub use modes::{ModeError, ModeName, ModeSpec};
pub use oom::{OomReport, Verdict};
pub use platform::Platform;
pub use resource::{
    AllocError, Cause, Chunk, ChunkState, Kept, MemoryResource, RegionFigures, Trimmed,
};
pub use statistics::{Metric, TorchStats};
pub use stats::{Broken, Stats};
pub use switch::{Policy, Road, SwitchPlan};
pub use text::{format_bytes, nearest, parse_bytes};
pub use vmm::{Vmm, VmmOptions};

/// One kibibyte, in bytes.
pub const KIB: u64 = 1 << 10;
/// One mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;
/// One gibibyte, in bytes.
pub const GIB: u64 = 1 << 30;
/// What every allocator here rounds to and aligns at, in bytes (XLA's `kMinAllocationSize`).
pub const UNIT: u64 = 256;

/// `bytes` rounded up to a multiple of `unit`; saturates at the largest multiple instead of wrapping.
pub fn round_up(bytes: u64, unit: u64) -> u64 {
    debug_assert!(unit > 0, "rounding to a unit of no bytes");
    match bytes.checked_add(unit - 1) {
        Some(above) => above / unit * unit,
        None => u64::MAX / unit * unit,
    }
}
