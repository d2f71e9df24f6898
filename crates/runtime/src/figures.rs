//! Plain reports: what is held, by whom, and what a cell did. Bytes and counts; no layout.

use crate::buffers::Storage;
use crate::cache::{CompileCounts, CompileTally, Compiled};
use crate::context::{Context, State};
use crate::owners;
use std::collections::HashMap;
use vramlab_device::HostFigures;
use vramlab_ir::{
    BufferId, Engine, Explanation, MemoryFigures, Origin, Program, ScopeFigures, Type,
};
use vramlab_memory::{
    ChunkState, ModeSpec, RegionFigures, Stats, Trimmed, ledger::Live,
    ledger::ScopeFigures as LedgerScope,
};

/// What kernels did. The traffic is by the operands' sizes, each operand of a kernel once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    pub executions: u64,
    pub kernels: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub flops: u64,
}

impl Work {
    pub(crate) fn count(&mut self, compiled: &Compiled) {
        self.executions += 1;
        self.kernels += compiled.program.kernels.len() as u64;
        self.bytes_read += compiled.bytes_read;
        self.bytes_written += compiled.bytes_written;
        self.flops += compiled.flops;
    }

    /// What was done since an earlier reading.
    pub fn since(self, before: Work) -> Work {
        Work {
            executions: self.executions - before.executions,
            kernels: self.kernels - before.kernels,
            bytes_read: self.bytes_read - before.bytes_read,
            bytes_written: self.bytes_written - before.bytes_written,
            flops: self.flops - before.flops,
        }
    }
}

impl CompileTally {
    /// What was counted since an earlier reading.
    pub fn since(self, before: CompileTally) -> CompileTally {
        CompileTally {
            hits: self.hits - before.hits,
            misses: self.misses - before.misses,
            compile_ns: self.compile_ns - before.compile_ns,
        }
    }
}

/// The device at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// As `%mode` would set it: `ondemand gc=on`.
    pub mode: String,
    pub device: String,
    pub figures: MemoryFigures,
    /// Held beyond what live blocks asked for.
    pub slack_bytes: u64,
    /// Regions of all pools, in the order of their making.
    pub regions: Vec<RegionFigures>,
    /// Pools that no longer answer and still hold blocks: mode and bytes.
    pub older_pools: Vec<(String, u64)>,
    pub compile: CompileCounts,
    pub work: Work,
    /// Calls that passed after the ladder freed something.
    pub retries: u64,
    /// Largest first.
    pub owners: Vec<OwnerReport>,
    /// The allocator stack in one line.
    pub allocator: String,
}

/// Bytes under one owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerReport {
    pub owner: String,
    /// Granted bytes.
    pub bytes: u64,
    pub requested: u64,
    pub blocks: u64,
    /// The line that made the largest of them; 0 when unknown.
    pub cell: u32,
    pub line: u32,
}

/// One live array.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferReport {
    pub buffer: BufferId,
    /// Which allocation of the heap its bytes are: unlike an address it is never used again.
    pub allocation: u64,
    pub owner: String,
    /// Everybody who holds the bytes, this owner included.
    pub holders: Vec<String>,
    pub ty: Type,
    pub requested: u64,
    pub granted: u64,
    pub address: u64,
    /// Which region of [`Report::regions`]; `None` for arrays without elements.
    pub region: Option<usize>,
    pub origin: Origin,
}

/// One chunk of a pool, used or free.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkReport {
    pub address: u64,
    pub bytes: u64,
    pub requested: u64,
    pub state: ChunkState,
    /// Who holds it; `None` where it is free.
    pub owner: Option<String>,
    /// The cell and the line that made it; 0 where that is unknown.
    pub cell: u32,
    pub line: u32,
    /// Which region of [`Report::regions`].
    pub region: Option<usize>,
}

/// What a trim gave back and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrimReport {
    pub released_bytes: u64,
    pub released_regions: u64,
    pub kept_bytes: u64,
    pub kept: Vec<KeptRegion>,
}

/// A region that a block pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRegion {
    pub base: u64,
    pub bytes: u64,
    pub bytes_in_use: u64,
    /// Who pins it, lowest address first.
    pub owners: Vec<String>,
}

/// A scope that ended within a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopeReport {
    /// 1 for a scope directly in the cell.
    pub depth: u32,
    pub figures: ScopeFigures,
}

/// What one cell did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellFigures {
    pub cell: u32,
    pub figures: ScopeFigures,
    pub start_bytes_in_use: u64,
    pub end_bytes_in_use: u64,
    pub jit: CompileTally,
    pub eager: CompileTally,
    pub work: Work,
    /// In the order of their ends.
    pub scopes: Vec<ScopeReport>,
}

/// The device as `nvidia-smi` would see it, and as we do.
#[derive(Clone, Debug, PartialEq)]
pub struct SmiReport {
    pub pid: u32,
    pub device: String,
    pub total_bytes: u64,
    /// What our pools hold.
    pub held_bytes: u64,
    /// What others hold: other processes, and guests in ours.
    pub other_bytes: u64,
    /// What guests in our process hold; a tool outside counts it as ours.
    pub guest_bytes: u64,
    pub free_bytes: u64,
    pub mode: String,
    pub figures: MemoryFigures,
}

/// The state of the counters when a cell began.
#[derive(Default)]
pub(crate) struct CellBegin {
    cell: u32,
    jit: CompileTally,
    eager: CompileTally,
    work: Work,
}

impl State {
    pub fn figures(&self, device_bytes: u64) -> MemoryFigures {
        let stats: Stats = self.heap.stats();
        MemoryFigures {
            requested_bytes: stats.requested_bytes,
            bytes_in_use: stats.bytes_in_use,
            peak_bytes_in_use: stats.peak_bytes_in_use,
            pool_bytes: stats.pool_bytes,
            bytes_limit: stats.bytes_limit,
            device_bytes,
            largest_free_block_bytes: stats.largest_free_block_bytes,
            fragmentation: stats.fragmentation(),
            num_allocs: stats.num_allocs,
            num_frees: stats.num_frees,
            driver_allocs: stats.driver_allocs,
            driver_frees: stats.driver_frees,
            live_arrays: self.buffers.live() as u64,
        }
    }

    /// Closes the innermost scope within the cell; a cell itself is closed by [`Context::cell_end`].
    pub fn end_scope(&mut self, now_ns: u64) -> ScopeFigures {
        let depth = self.heap.ledger().depth() as u32;
        let ended = self.heap.ledger_mut().end_scope(now_ns);
        let figures = plain(&ended);
        if depth > 1 {
            self.scopes.push(ScopeReport { depth: depth - 1, figures: figures.clone() });
        }
        figures
    }

    fn owners(&self) -> Vec<OwnerReport> {
        let ledger = self.heap.ledger();
        let report = |figures: vramlab_memory::ledger::OwnerFigures| OwnerReport {
            owner: ledger.owner(figures.owner).to_string(),
            bytes: figures.bytes,
            requested: figures.requested,
            blocks: figures.blocks,
            cell: figures.site.cell,
            line: figures.site.line,
        };
        ledger.by_owner().into_iter().map(report).collect()
    }

    fn buffer_report(&self, storage: &Storage, regions: &RegionIndex) -> BufferReport {
        let ids: Vec<BufferId> = storage.claims().collect();
        let id = self.buffers.get(ids[0]).expect("a storage lists live claims").storage;
        let claim = self.buffers.principal(id);
        let named = |other: &&BufferId| {
            self.buffers.get(**other).is_some_and(|other| std::ptr::eq(other, claim))
        };
        BufferReport {
            buffer: ids.iter().find(named).copied().unwrap_or(ids[0]),
            allocation: storage.block.id().sequence(),
            owner: owners::of_claim(claim).to_string(),
            holders: self.holders(id),
            ty: claim.ty.clone(),
            requested: storage.block.requested(),
            granted: storage.block.granted(),
            address: storage.block.address(),
            region: regions.find(storage.block.address()),
            origin: claim.origin,
        }
    }
}

/// Finds the region of an address without a search through all of them. A region of mapped memory may have holes, so
/// it reaches to wherever the next one begins.
struct RegionIndex(Vec<(u64, usize)>);

impl RegionIndex {
    fn of(regions: &[RegionFigures]) -> RegionIndex {
        let mut bases: Vec<(u64, usize)> =
            regions.iter().enumerate().map(|(index, region)| (region.base, index)).collect();
        bases.sort_unstable();
        RegionIndex(bases)
    }

    /// `None` below every region, where arrays without elements stand.
    fn find(&self, address: u64) -> Option<usize> {
        let above = self.0.partition_point(|(base, _)| *base <= address);
        Some(self.0[above.checked_sub(1)?].1)
    }
}

fn plain(scope: &LedgerScope) -> ScopeFigures {
    ScopeFigures {
        name: scope.name.to_string(),
        start_bytes: scope.requested_at_begin,
        end_bytes: scope.requested,
        peak_bytes: scope.peak_requested,
        allocated_bytes: scope.allocated_requested,
        freed_bytes: scope.freed_requested,
        peak_bytes_in_use: scope.peak,
        num_allocs: scope.num_allocs,
        num_frees: scope.num_frees,
        driver_allocs: scope.driver_allocs,
        driver_frees: scope.driver_frees,
    }
}

impl Context {
    /// Everything a table needs, from one moment.
    pub fn report(&self) -> Report {
        let state = self.lock();
        let stats = state.heap.stats();
        let older = state.heap.older_pools().into_iter();
        Report {
            mode: state.heap.mode().to_string(),
            device: self.device_name(),
            figures: state.figures(self.capacity),
            slack_bytes: stats.slack_bytes(),
            regions: state.heap.regions(),
            older_pools: older
                .map(|(_, mode, stats)| (mode.to_string(), stats.pool_bytes))
                .collect(),
            compile: state.cache.counts(),
            work: state.work,
            retries: state.retries,
            owners: state.owners(),
            allocator: state.heap.describe(),
        }
    }

    /// A cell begins: its number, and line 1 as the place that runs.
    pub fn cell_begin(&self, cell: u32) {
        let now_ns = self.clock.now();
        let mut state = self.lock();
        let counts = state.cache.counts();
        state.scopes.clear();
        state.cell = CellBegin { cell, jit: counts.jit, eager: counts.eager, work: state.work };
        state.heap.ledger_mut().begin_cell(now_ns, cell);
    }

    /// The cell ends, and with it whatever scopes an error left open.
    pub fn cell_end(&self) -> CellFigures {
        let now_ns = self.clock.now();
        let mut state = self.lock();
        while state.heap.ledger().depth() > 1 {
            state.end_scope(now_ns);
        }
        let ended = state.heap.ledger_mut().end_cell(now_ns);
        state.publish(self);
        let counts = state.cache.counts();
        let begin = std::mem::take(&mut state.cell);
        CellFigures {
            cell: begin.cell,
            figures: plain(&ended),
            start_bytes_in_use: ended.live_at_begin,
            end_bytes_in_use: ended.live,
            jit: counts.jit.since(begin.jit),
            eager: counts.eager.since(begin.eager),
            work: state.work.since(begin.work),
            scopes: std::mem::take(&mut state.scopes),
        }
    }

    /// The figures so far of the innermost open scope, or of the whole session.
    pub fn scope_now(&self) -> ScopeFigures {
        let now_ns = self.clock.now();
        plain(&self.lock().heap.ledger().scope(now_ns))
    }

    /// What kernels did so far.
    pub fn work(&self) -> Work {
        self.lock().work
    }

    /// Bytes by owner, largest first.
    pub fn owners(&self) -> Vec<OwnerReport> {
        self.lock().owners()
    }

    /// Host memory that the device holds for offloaded values, beside all of the ledger.
    pub fn host_memory(&self) -> HostFigures {
        self.backend.host_figures()
    }

    /// The live arrays, in the order of their making.
    pub fn buffers(&self) -> Vec<BufferReport> {
        let state = self.lock();
        let regions = RegionIndex::of(&state.heap.regions());
        let mut storages: Vec<&Storage> =
            state.buffers.storages().map(|(_, storage)| storage).collect();
        storages.sort_unstable_by_key(|storage| storage.block.id());
        storages.into_iter().map(|storage| state.buffer_report(storage, &regions)).collect()
    }

    /// The map: every chunk of every pool with its owner, by address within each pool.
    pub fn chunks(&self) -> Vec<ChunkReport> {
        let state = self.lock();
        let regions = RegionIndex::of(&state.heap.regions());
        let ledger = state.heap.ledger();
        let live: HashMap<u64, Live> =
            ledger.live().into_iter().map(|live| (live.address, live)).collect();
        let chunks = state.heap.chunks().into_iter().map(|chunk| {
            let held = live.get(&chunk.address).filter(|_| chunk.state == ChunkState::Used);
            let site = held.map_or_else(Default::default, |live| live.site);
            ChunkReport {
                address: chunk.address,
                bytes: chunk.bytes,
                requested: chunk.requested,
                state: chunk.state,
                owner: held.map(|live| ledger.owner(live.owner).to_string()),
                cell: site.cell,
                line: site.line,
                region: regions.find(chunk.address),
            }
        });
        chunks.collect()
    }

    /// What a trim would find now: empty regions in bytes, without touching them.
    pub fn trimmable_bytes(&self) -> u64 {
        let regions = self.lock().heap.regions();
        let empty = regions.iter().filter(|region| region.live_blocks == 0);
        empty.map(|region| region.bytes).sum()
    }

    /// Returns empty regions to the device, whatever the mode's own rules are, and says what pins the rest.
    pub fn trim(&self) -> TrimReport {
        let now_ns = self.clock.now();
        let mut state = self.lock();
        let trimmed: Trimmed = state.heap.trim(now_ns);
        let ledger = state.heap.ledger();
        let owner = |block| {
            let live = ledger.find(block);
            live.map_or_else(String::new, |live| ledger.owner(live.owner).to_string())
        };
        let kept = trimmed.kept.iter().map(|region| KeptRegion {
            base: region.base,
            bytes: region.bytes,
            bytes_in_use: region.bytes_in_use,
            owners: region.blocks.iter().map(|&block| owner(block)).collect(),
        });
        TrimReport {
            released_bytes: trimmed.released_bytes,
            released_regions: trimmed.released_regions,
            kept_bytes: trimmed.kept_bytes(),
            kept: kept.collect(),
        }
    }

    /// The device as a tool outside sees it, and as we do.
    pub fn smi(&self) -> SmiReport {
        let state = self.lock();
        let device = state.heap.device();
        let mode: &ModeSpec = state.heap.mode();
        SmiReport {
            pid: std::process::id(),
            device: self.device_name(),
            total_bytes: device.total,
            held_bytes: device.held,
            other_bytes: device.others,
            guest_bytes: state.heap.guest_bytes(),
            free_bytes: device.free,
            mode: mode.to_string(),
            figures: state.figures(self.capacity),
        }
    }
}

/// The compile pipeline of one executable: what was compiled for running, and the same program with its texts.
pub(crate) fn explanation(
    compiled: &Compiled,
    explained: Program,
    measured: Option<u64>,
) -> Explanation {
    Explanation {
        name: compiled.name.clone(),
        analysis: compiled.analysis(),
        measured_peak_bytes: measured,
        arg_names: explained.func.arg_names.clone(),
        ops: explained.func.eqns.len(),
        kernels: explained.kernels.len(),
        fused_bytes: explained.fused_bytes,
        stages: explained.stages,
        notes: explained.notes,
        donations: explained.donations,
    }
}

impl Context {
    /// The claim's holders and whether it is the only one, for a message about `drop`.
    pub fn other_holders(&self, buffer: BufferId) -> Vec<String> {
        let mut holders = self.holders(buffer);
        let state = self.lock();
        if let Some(claim) = state.buffers.get(buffer) {
            let own = owners::of_claim(claim).to_string();
            if let Some(at) = holders.iter().position(|holder| *holder == own) {
                holders.remove(at);
            }
        }
        holders
    }
}
