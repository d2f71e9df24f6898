//! The memory report of a cell, out of the runtime's plain figures.

use crate::event::{CompileCounts, MemoryReport, ScopeReport, Tier, Watch};
use crate::{pictures, report};
use vramlab_picture::Paper;
use vramlab_runtime::{CellFigures, Context, Report};

/// What the session knows of a cell beside the runtime.
pub struct Around {
    pub cell: u32,
    pub wall_ns: u64,
    pub tier: Tier,
    pub watch: Watch,
    /// Requested bytes when the cell before ended.
    pub before: u64,
}

pub fn memory(context: &Context, cell: &CellFigures, around: &Around) -> MemoryReport {
    let now = context.report();
    let full = around.watch == Watch::Full;
    let live = around.watch == Watch::Live;
    let (figures, did) = (&now.figures, &cell.figures);
    let peak = did.peak_bytes_in_use.max(cell.start_bytes_in_use).max(figures.bytes_in_use);
    MemoryReport {
        cell: around.cell,
        mode: now.mode.clone(),
        device: now.device.clone(),
        requested_bytes: figures.requested_bytes,
        bytes_in_use: figures.bytes_in_use,
        delta_bytes: figures.requested_bytes as i64 - around.before as i64,
        peak_requested_bytes_cell: did.peak_bytes.max(figures.requested_bytes),
        peak_bytes_in_use_cell: peak,
        pool_bytes: figures.pool_bytes,
        bytes_limit: figures.bytes_limit,
        device_bytes: figures.device_bytes,
        largest_free_block_bytes: figures.largest_free_block_bytes,
        fragmentation: figures.fragmentation,
        num_allocs_cell: did.num_allocs,
        num_frees_cell: did.num_frees,
        driver_allocs_cell: did.driver_allocs,
        driver_frees_cell: did.driver_frees,
        live_arrays: figures.live_arrays,
        regions: now.regions.iter().map(|region| region.bytes).collect(),
        compile: counts(&now),
        compile_hits_cell: cell.jit.hits,
        compile_misses_cell: cell.jit.misses,
        compile_ns_cell: cell.jit.compile_ns,
        scopes: cell.scopes.iter().map(scope).collect(),
        variables: owners(&now),
        strip: if full || live { pictures::pool_strip(context, STRIP) } else { String::new() },
        caches: if full { caches(context) } else { Vec::new() },
        picture: if live { pictures::map(context).svg(Paper::Page) } else { String::new() },
        wall_ns: around.wall_ns,
        tier: Some(around.tier),
        notes: context.take_notes(),
        watch: around.watch,
    }
}

fn counts(now: &Report) -> CompileCounts {
    CompileCounts {
        hits: now.compile.jit.hits,
        misses: now.compile.jit.misses,
        entries: now.compile.entries,
        bytes: now.compile.bytes,
    }
}

fn scope(scope: &vramlab_runtime::ScopeReport) -> ScopeReport {
    ScopeReport {
        name: scope.figures.name.clone(),
        depth: scope.depth.saturating_sub(1),
        peak_bytes: scope.figures.peak_bytes,
        allocated_bytes: scope.figures.allocated_bytes,
        freed_bytes: scope.figures.freed_bytes,
    }
}

fn owners(now: &Report) -> Vec<(String, u64)> {
    now.owners.iter().map(|owner| (owner.owner.clone(), owner.requested)).collect()
}

fn caches(context: &Context) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = context
        .caches()
        .into_iter()
        .map(|entry| (entry.names.join(", "), entry.code_bytes + entry.constant_bytes))
        .collect();
    all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    all
}

/// Characters of the strip of a whole pool.
const STRIP: usize = 64;

/// `arrays 10.0   in use 16.0 (slack 6.0)   pool 16/768`: the state after a command that changed it.
pub fn state_line(context: &Context) -> String {
    let now = context.report();
    let figures = &now.figures;
    let slack = match now.slack_bytes {
        0 => String::new(),
        slack => format!(" (slack {})", report::mib(slack)),
    };
    format!(
        "arrays {}   in use {}{slack}   pool {}/{}",
        report::mib(figures.requested_bytes),
        report::mib(figures.bytes_in_use),
        report::mib_short(figures.pool_bytes),
        report::mib_short(figures.bytes_limit)
    )
}
