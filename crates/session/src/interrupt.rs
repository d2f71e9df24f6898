//! How another thread, or a signal handler, stops a cell.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Raised by a face, read by the interpreter and by running kernels; cleared when a cell begins.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks the running cell to stop. Does one atomic store, so a signal handler may call it.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// The flag that lower layers poll.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }

    /// Shares a flag that a lower layer made.
    pub fn of(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }
}
