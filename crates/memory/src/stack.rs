//! From a mode to the allocator stack that answers in it. The order of a stack is decided here and nowhere else.

use crate::modes::{ModeName, ModeSpec, OptionValue};
use crate::{Bfc, BfcOptions, Caching, CachingOptions, MemoryResource, Platform, Vmm, VmmOptions};

/// The stack of a mode on a device of `total` bytes. A fraction counts the total, not what is free.
pub fn build(mode: &ModeSpec, total: u64) -> Box<dyn MemoryResource> {
    match mode.mode() {
        ModeName::Preallocate => Box::new(Bfc::new(BfcOptions::preallocate(limit(mode, total)))),
        ModeName::Ondemand => {
            let gc = mode.switch("gc");
            Box::new(Bfc::new(BfcOptions::ondemand(limit(mode, total), gc)))
        }
        ModeName::Platform => Box::new(Platform::new(total)),
        ModeName::CudaAsync => {
            let limit = limit(mode, total);
            let threshold = bytes(mode, "release_threshold").unwrap_or(limit);
            Box::new(Vmm::new(VmmOptions::cuda_async(limit, threshold)))
        }
        ModeName::Vmm => {
            let keep = bytes(mode, "keep").unwrap_or(u64::MAX);
            let granule = bytes(mode, "granule").unwrap_or(2 * crate::MIB);
            let options = VmmOptions { granule, keep, ..VmmOptions::vmm(limit(mode, total)) };
            Box::new(Vmm::new(options))
        }
        ModeName::Caching => Box::new(Caching::new(caching_options(mode, total))),
    }
}

/// The value of an option that is a size; `None` for unlimited.
fn bytes(mode: &ModeSpec, option: &str) -> Option<u64> {
    match mode.value(option) {
        Some(OptionValue::Bytes(bytes)) => bytes,
        _ => None,
    }
}

fn caching_options(mode: &ModeSpec, total: u64) -> CachingOptions {
    let mut options = CachingOptions::of(limit(mode, total));
    options.limited = mode.fraction().is_some_and(|fraction| fraction < 1.0);
    options.expandable_segments = mode.switch("expandable_segments");
    options.max_split = bytes(mode, "max_split_size").unwrap_or(u64::MAX);
    if let Some(OptionValue::Threshold(part)) = mode.value("garbage_collection_threshold") {
        options.gc_threshold = part;
    }
    if let Some(OptionValue::Divisions(divisions)) = mode.value("roundup_power2_divisions") {
        options.divisions = divisions;
    }
    options
}

/// What the pool of a mode may never exceed on a device of `total` bytes.
pub fn limit(mode: &ModeSpec, total: u64) -> u64 {
    match mode.fraction() {
        Some(fraction) => ((fraction * total as f64).floor() as u64).min(total),
        None => total,
    }
}

/// The least that a mode takes from the driver at once, in bytes: under a smaller limit it could never answer.
pub fn least(mode: &ModeSpec) -> u64 {
    match mode.mode() {
        ModeName::Preallocate | ModeName::Ondemand => crate::UNIT,
        ModeName::Platform => 1,
        // A granule that is larger than the limit is made smaller, down to what devices map.
        ModeName::CudaAsync | ModeName::Caching | ModeName::Vmm => 2 * crate::MIB,
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
