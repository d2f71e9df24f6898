//! From a mode to the allocator stack that answers in it. The order of a stack is decided here and nowhere else.

use crate::modes::{ModeName, ModeSpec};
use crate::{Bfc, BfcOptions, MemoryResource, Platform};

/// The stack of a mode on a device of `total` bytes. A fraction counts the total, not what is free.
pub fn build(mode: &ModeSpec, total: u64) -> Box<dyn MemoryResource> {
    match mode.mode() {
        ModeName::Preallocate => Box::new(Bfc::new(BfcOptions::preallocate(limit(mode, total)))),
        ModeName::Ondemand => {
            let gc = mode.switch("gc");
            Box::new(Bfc::new(BfcOptions::ondemand(limit(mode, total), gc)))
        }
        ModeName::Platform => Box::new(Platform::new(total)),
    }
}

/// What the pool of a mode may never exceed on a device of `total` bytes.
pub fn limit(mode: &ModeSpec, total: u64) -> u64 {
    match mode.fraction() {
        Some(fraction) => ((fraction * total as f64).floor() as u64).min(total),
        None => total,
    }
}

/// The stack in one line, top first: `name → name → device`.
pub fn describe(top: &dyn MemoryResource, device: &str) -> String {
    let mut parts = vec![top.describe()];
    let mut below = top.upstream();
    while let Some(resource) = below {
        parts.push(resource.describe());
        below = resource.upstream();
    }
    parts.push(device.to_string());
    parts.join(" → ")
}
