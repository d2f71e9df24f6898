//! The device as a cell sees it: figures, scopes, caches.

use crate::ambient::{current, lock};
use crate::array::{self, Array};
use crate::operand::Operand;
use crate::raise::or_raise;
use crate::surface::Dyn;
use std::fmt;
use std::sync::Arc;
use vramlab_ir::{Engine, Fault, MemoryFigures};

/// Device memory at one moment, under JAX's names where it has them. Bytes.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MemoryStats {
    /// Granted to live blocks, slack included.
    pub bytes_in_use: u64,
    pub peak_bytes_in_use: u64,
    pub bytes_limit: u64,
    pub largest_free_block_bytes: u64,
    /// Held from the device.
    pub pool_bytes: u64,
    pub num_allocs: u64,
    pub num_frees: u64,
    /// Asked for by live arrays.
    pub requested_bytes: u64,
    /// (free in the pool - largest free block) / free in the pool.
    pub fragmentation: f64,
    pub driver_allocs: u64,
    pub driver_frees: u64,
    pub device_bytes: u64,
    pub live_arrays: u64,
}

impl From<MemoryFigures> for MemoryStats {
    fn from(figures: MemoryFigures) -> MemoryStats {
        MemoryStats {
            bytes_in_use: figures.bytes_in_use,
            peak_bytes_in_use: figures.peak_bytes_in_use,
            bytes_limit: figures.bytes_limit,
            largest_free_block_bytes: figures.largest_free_block_bytes,
            pool_bytes: figures.pool_bytes,
            num_allocs: figures.num_allocs,
            num_frees: figures.num_frees,
            requested_bytes: figures.requested_bytes,
            fragmentation: figures.fragmentation,
            driver_allocs: figures.driver_allocs,
            driver_frees: figures.driver_frees,
            device_bytes: figures.device_bytes,
            live_arrays: figures.live_arrays,
        }
    }
}

impl MemoryStats {
    /// The fields by name, in order.
    pub(crate) fn fields(&self) -> Vec<(&'static str, Dyn)> {
        let bytes = |value: u64| Dyn::Int(value as i128);
        vec![
            ("bytes_in_use", bytes(self.bytes_in_use)),
            ("peak_bytes_in_use", bytes(self.peak_bytes_in_use)),
            ("bytes_limit", bytes(self.bytes_limit)),
            ("largest_free_block_bytes", bytes(self.largest_free_block_bytes)),
            ("pool_bytes", bytes(self.pool_bytes)),
            ("num_allocs", bytes(self.num_allocs)),
            ("num_frees", bytes(self.num_frees)),
            ("requested_bytes", bytes(self.requested_bytes)),
            ("fragmentation", Dyn::Float(self.fragmentation)),
            ("driver_allocs", bytes(self.driver_allocs)),
            ("driver_frees", bytes(self.driver_frees)),
            ("device_bytes", bytes(self.device_bytes)),
            ("live_arrays", bytes(self.live_arrays)),
        ]
    }
}

/// A line for each field.
impl fmt::Display for MemoryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.fields().into_iter().enumerate() {
            let end = if at == 0 { "" } else { "\n" };
            match value {
                Dyn::Float(value) => write!(f, "{end}{name:<25} {value:.4}")?,
                Dyn::Int(value) => write!(f, "{end}{name:<25} {value}")?,
                _ => {}
            }
        }
        Ok(())
    }
}

pub(crate) fn engine() -> Result<Arc<dyn Engine>, Fault> {
    Ok(Arc::clone(&current()?.engine))
}

/// Device memory now.
#[track_caller]
pub fn memory_stats() -> MemoryStats {
    or_raise(engine()).memory().into()
}

/// Sets the peak to what is in use now.
#[track_caller]
pub fn reset_peak() {
    or_raise(engine()).reset_peak();
}

/// Every array that is alive, oldest first.
#[track_caller]
pub fn live_arrays() -> Vec<Array> {
    or_raise(array::live_arrays())
}

/// Drops every compiled program; arrays stay.
#[track_caller]
pub fn clear_caches() {
    or_raise(clear());
}

pub(crate) fn clear() -> Result<(u64, u64), Fault> {
    let context = current()?;
    lock(&context.state.front).clear();
    Ok(context.engine.clear_caches())
}

/// Starts the sequence of random numbers again from `value`.
#[track_caller]
pub fn seed(value: u64) {
    or_raise(crate::random::set_seed(value));
}

/// Waits until everything that was started has run.
#[track_caller]
pub fn block_until_ready(x: impl Operand) {
    let _waited_for = x.input();
    or_raise(engine()).synchronize();
}

impl Array {
    /// Waits until everything that was started has run.
    #[track_caller]
    pub fn block_until_ready(&self) {
        block_until_ready(self);
    }
}

/// Runs `body` as a named scope: its peak, and what it allocated and freed, show in the table.
#[track_caller]
pub fn scope<R>(name: &str, body: impl FnOnce() -> R) -> R {
    let engine = or_raise(engine());
    let _scope = Scope::begin(engine, name);
    body()
}

/// An open scope; it ends when dropped, also by a fault.
pub(crate) struct Scope(Arc<dyn Engine>);

impl Scope {
    pub(crate) fn begin(engine: Arc<dyn Engine>, name: &str) -> Scope {
        engine.scope_begin(name);
        Scope(engine)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.0.scope_end();
    }
}
