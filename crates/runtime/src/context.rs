//! The context: one device, its memory, its programs and its live arrays, behind one lock.

use crate::backend::Backend;
use crate::buffers::{Buffers, StorageId};
use crate::cache::{Cache, CacheEntry, CacheSelection, Cleared, CompileCounts, Compiled, key_of};
use crate::config::{Config, DeviceConfig};
use crate::figures::{ScopeReport, Work, explanation};
use crate::oom::{Reclaim, Rung};
use crate::owners;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use vramlab_ir::{
    Argument, BufferId, CompileRequest, Engine, ExecutableId, Explanation, Fault, FaultKind,
    MemoryFigures, Origin, ScopeFigures, Type,
};
use vramlab_memory::{EventKind, Heap, Holder, OwnerId, Site, Stream, Warning, format_bytes};

/// One device and everything that lives on it. All methods may be called from any thread.
pub struct Context {
    pub(crate) state: Mutex<State>,
    pub(crate) backend: Backend,
    pub(crate) device: DeviceConfig,
    pub(crate) capacity: u64,
    pub(crate) reclaim: Mutex<Vec<(Rung, Reclaim)>>,
    interrupt: Arc<AtomicBool>,
    pub(crate) clock: Clock,
}

/// Nanoseconds since the context was made.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub fn now(self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

/// What the lock protects.
pub(crate) struct State {
    pub heap: Heap,
    pub buffers: Buffers,
    pub cache: Cache,
    pub notes: Vec<String>,
    pub last_oom: Option<vramlab_memory::OomReport>,
    pub work: Work,
    /// Scopes that ended in the running cell, in the order of their ends.
    pub scopes: Vec<ScopeReport>,
    pub cell: crate::figures::CellBegin,
    /// Calls that passed after the ladder freed something.
    pub retries: u64,
    /// When the others at a shared device last heard of our arrays.
    pub published_ns: u64,
    made_in: (Origin, OwnerId),
    pub scratch: crate::execute::Scratch,
}

impl Context {
    /// A context on a device. Nothing is asked of the device yet.
    ///
    /// # Errors
    /// In words: a capacity that the machine cannot hold.
    pub fn new(config: Config) -> Result<Arc<Context>, String> {
        Context::stopped_by(config, Arc::default())
    }

    /// As [`Context::new`], with a flag of somebody else's that stops running kernels.
    pub(crate) fn stopped_by(
        config: Config,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Arc<Context>, String> {
        let (backend, driver) = Backend::open(&config)?;
        let capacity = driver.figures().total;
        let mut heap = Heap::new(driver, config.mode);
        let mode = heap.mode().clone();
        heap.supports(&mode).map_err(|error| error.to_string())?;
        let state = State {
            heap,
            buffers: Buffers::default(),
            cache: Cache::new(config.cache_budget),
            notes: Vec::new(),
            last_oom: None,
            work: Work::default(),
            scopes: Vec::new(),
            cell: Default::default(),
            retries: 0,
            published_ns: 0,
            made_in: (Origin::default(), OwnerId(0)),
            scratch: Default::default(),
        };
        let context = Context {
            state: Mutex::new(state),
            backend,
            device: config.device,
            capacity,
            reclaim: Mutex::new(Vec::new()),
            interrupt,
            clock: Clock(Instant::now()),
        };
        context.lock().publish(&context);
        Ok(Arc::new(context))
    }

    /// The state. A panic of ours while it was held left no half-made block behind that a later call would trust.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device in words, for a greeting: `a CPU device of 1024 MiB, not a GPU`.
    pub fn device_description(&self) -> String {
        let mib = self.capacity as f64 / vramlab_memory::MIB as f64;
        let shared = if self.is_shared() { ", shared" } else { "" };
        match self.is_dry() {
            false => format!("a CPU device of {mib} MiB, not a GPU{shared}"),
            true => {
                let size = format_bytes(self.capacity);
                format!("a dry device of {size}: shapes without data{shared}")
            }
        }
    }

    /// The device's name as it would be given: `cpu`, `cpu:lab`, `dry:80GiB`.
    pub fn device_name(&self) -> String {
        match &self.device {
            DeviceConfig::Cpu { .. } => "cpu".to_string(),
            DeviceConfig::Shared(device) if device.dry => {
                format!("dry:{}:{}", self.exact_size(), device.name)
            }
            DeviceConfig::Shared(device) => format!("cpu:{}", device.name),
            DeviceConfig::Dry { .. } => format!("dry:{}", self.exact_size()),
        }
    }

    /// The device's size as it may be written again, without loss.
    fn exact_size(&self) -> String {
        let exact = |unit: u64| self.capacity.is_multiple_of(unit).then_some(self.capacity / unit);
        match (exact(vramlab_memory::GIB), exact(vramlab_memory::MIB)) {
            (Some(gib), _) => format!("{gib}GiB"),
            (_, Some(mib)) => format!("{mib}MiB"),
            _ => self.capacity.to_string(),
        }
    }

    /// What the user should know about the device: why it is smaller than the usual 4 GiB, where the ledger of a shared
    /// one lies if not where it should.
    pub fn device_remarks(&self) -> &[String] {
        &self.backend.remarks
    }

    /// The processor that computes, with threads and instruction set.
    pub fn processor(&self) -> String {
        self.backend.name()
    }

    /// Bytes of the device.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Whether arrays have no data here.
    pub fn is_dry(&self) -> bool {
        !self.backend.carries_data()
    }

    /// Threads that run kernels.
    pub fn threads(&self) -> usize {
        self.backend.threads()
    }

    /// The flag that stops running kernels. It stays up until [`Context::clear_interrupt`].
    pub fn interrupt_flag(&self) -> Arc<AtomicBool> {
        self.interrupt.clone()
    }

    pub fn clear_interrupt(&self) {
        self.interrupt.store(false, Ordering::Relaxed);
    }

    pub(crate) fn interrupt(&self) -> &AtomicBool {
        &self.interrupt
    }

    /// Hands in what frees memory when an allocation fails, for one rung of the ladder. It is called without any
    /// lock held, and what it freed is measured, not believed.
    pub fn set_reclaim(&self, rung: Rung, reclaim: Reclaim) {
        let mut hooks = self.reclaim.lock().unwrap_or_else(PoisonError::into_inner);
        hooks.retain(|(other, _)| *other != rung);
        hooks.push((rung, reclaim));
    }

    /// What the user must be told, since the last call: a copied donation and its holder, a backed-off pool.
    pub fn take_notes(&self) -> Vec<String> {
        let news = self.news();
        let mut state = self.lock();
        state.drain_warnings(|| self.neighbours());
        state.notes.extend(news);
        std::mem::take(&mut state.notes)
    }

    /// The last failed allocation.
    pub fn last_oom(&self) -> Option<vramlab_memory::OomReport> {
        self.lock().last_oom.clone()
    }

    /// Runs `with` on the memory of the device: its ledger, regions and chunks, as they are at one moment.
    pub fn with_heap<R>(&self, with: impl FnOnce(&Heap) -> R) -> R {
        with(&self.lock().heap)
    }

    /// The type under which a claim sees its bytes; `None` for a stale id.
    pub fn type_of(&self, buffer: BufferId) -> Option<Type> {
        self.lock().buffers.get(buffer).map(|claim| claim.ty.clone())
    }

    /// Nanoseconds on the ledger's clock.
    pub fn clock_ns(&self) -> u64 {
        self.clock.now()
    }

    /// Whether the ledger keeps its events; figures and live blocks are right either way. Off, the course of memory, the
    /// what-if and the exports have nothing to go by: it is for measuring what keeping them costs.
    pub fn set_recording(&self, recording: bool) {
        self.lock().heap.ledger_mut().set_recording(recording);
    }

    /// Adds an event of the session's own to the ledger.
    pub fn record(&self, kind: EventKind, name: &str, bytes: u64) {
        let now_ns = self.clock.now();
        self.lock().heap.ledger_mut().note(kind, now_ns, name, bytes);
    }

    /// The compile cache, entry by entry.
    pub fn caches(&self) -> Vec<CacheEntry> {
        let now_ns = self.clock.now();
        let state = self.lock();
        state.cache.list(now_ns, |name| state.captured_bytes(name))
    }

    /// What clearing would free.
    pub fn would_clear(&self, selection: &CacheSelection) -> Cleared {
        self.lock().cache.would_clear(selection, self.clock.now())
    }

    /// Clears entries of the compile cache; arrays stay.
    pub fn clear(&self, selection: &CacheSelection) -> Cleared {
        let now_ns = self.clock.now();
        let mut state = self.lock();
        let cleared = state.cache.clear(selection, now_ns);
        for (name, entries) in &cleared.names {
            let text = format!("{name} ({entries})");
            state.heap.ledger_mut().note(EventKind::CacheEvict, now_ns, &text, 0);
        }
        cleared
    }

    pub fn compile_counts(&self) -> CompileCounts {
        self.lock().cache.counts()
    }
}

impl State {
    /// The ledger's number for "made in cell …"; the last one is remembered, since a line makes many arrays.
    pub fn made_in(&mut self, origin: Origin) -> OwnerId {
        let (last, id) = self.made_in;
        if last.cell == origin.cell && last.span.line == origin.span.line {
            return id;
        }
        let id = self.heap.ledger_mut().intern(owners::made_in(origin));
        self.made_in = (origin, id);
        id
    }

    /// The running line of source, for the ledger.
    pub fn set_site(&mut self, origin: Origin) {
        let site = Site { cell: origin.cell, line: origin.span.line };
        if origin.cell != 0 {
            self.heap.ledger_mut().set_site(site);
        }
    }

    /// Tells the ledger under whose name the bytes stand now.
    pub fn update_owner(&mut self, storage: StorageId, now_ns: u64) {
        let owner = owners::of_claim(self.buffers.principal(storage));
        let block = self.buffers.storage(storage).block.id();
        let ledger = self.heap.ledger_mut();
        let owner = ledger.intern(owner);
        ledger.change_owner(now_ns, block, owner);
    }

    /// Ends a claim; frees the block when it was the last one. A stale id does nothing.
    pub fn release(&mut self, buffer: BufferId, now_ns: u64) {
        match self.buffers.release(buffer) {
            Some((_, Some(block))) => self.heap.deallocate(block, Stream(0), now_ns),
            Some((storage, None)) => self.update_owner(storage, now_ns),
            None => {}
        }
    }

    /// The holders of the same bytes, in the order of their claims.
    pub fn holders(&self, storage: StorageId) -> Vec<String> {
        let claims = self.buffers.storage(storage).claims();
        let claims = claims.filter_map(|id| self.buffers.get(id));
        claims.map(|claim| owners::of_claim(claim).to_string()).collect()
    }

    /// Device bytes of the constants that functions of that name captured.
    pub fn captured_bytes(&self, function: &str) -> u64 {
        let name = format!("captured by {function}");
        let captured = |storage: &&crate::buffers::Storage| {
            let mut claims = storage.claims().filter_map(|id| self.buffers.get(id));
            claims.any(|claim| claim.owner.as_deref() == Some(&*name))
        };
        let storages = self.buffers.storages().map(|(_, storage)| storage);
        storages.filter(captured).map(|storage| storage.block.requested()).sum()
    }

    /// Turns the heap's warnings into notes; `holders` are the others at the device.
    pub fn drain_warnings(&mut self, holders: impl Fn() -> Vec<Holder>) {
        for warning in self.heap.take_warnings() {
            let Warning::BackedOff { wanted, granted, driver_calls, others } = warning;
            let mut who: Vec<String> =
                self.heap.guests().iter().map(|guest| guest.name()).collect();
            who.extend(holders().iter().filter(|holder| holder.held > 0).map(|h| h.to_string()));
            let who = if who.is_empty() { String::new() } else { format!(" ({})", who.join(", ")) };
            self.notes.push(format!(
                "the pool wanted {} and got {} after {driver_calls} driver calls: others hold {} of the device{who}",
                format_bytes(wanted),
                format_bytes(granted),
                format_bytes(others)
            ));
        }
    }
}

impl Engine for Context {
    fn compile(&self, request: &CompileRequest) -> Result<ExecutableId, Fault> {
        let key = key_of(request);
        if let Some(found) = self.lock().cache.find(key, request) {
            return Ok(found);
        }
        let begin_ns = self.clock.now();
        let (program, launches) = self.backend.compile(request)?;
        let now_ns = self.clock.now();
        let mut state = self.lock();
        // Another thread may have been faster.
        if let Some(found) = state.cache.find(key, request) {
            return Ok(found);
        }
        let name = request.func.name.clone();
        let ledger = state.heap.ledger_mut();
        let temporary = ledger.intern(vramlab_memory::Owner::Temporary(name.clone()));
        let compiled = Compiled::new(program, launches, temporary);
        let bytes = compiled.code_bytes();
        ledger.note(EventKind::Compile, now_ns, &name, bytes);
        let (id, evicted) = state.cache.insert(key, request, compiled, now_ns - begin_ns, now_ns);
        let ledger = state.heap.ledger_mut();
        ledger.note(EventKind::CacheInsert, now_ns, &name, bytes);
        for (name, bytes) in evicted {
            ledger.note(EventKind::CacheEvict, now_ns, &name, bytes);
        }
        Ok(id)
    }

    fn execute(
        &self,
        executable: ExecutableId,
        arguments: &[Argument],
        origin: Origin,
    ) -> Result<Vec<BufferId>, Fault> {
        self.with_ladder(origin, |state, first_try| {
            state.execute(self, executable, arguments, origin, first_try)
        })
    }

    fn upload(&self, ty: &Type, bytes: &[u8], origin: Origin) -> Result<BufferId, Fault> {
        if bytes.len() as u64 != ty.bytes() {
            let message =
                format!("{} bytes do not fill {ty}, which takes {}", bytes.len(), ty.bytes());
            return Err(Fault::new(FaultKind::Argument, "upload", message));
        }
        self.with_ladder(origin, |state, _| state.upload(self, ty, bytes, origin))
    }

    fn download(&self, buffer: BufferId) -> Result<Vec<u8>, Fault> {
        self.read(buffer, None)
    }

    fn download_range(&self, buffer: BufferId, offset: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
        self.read(buffer, Some((offset, bytes)))
    }

    fn share(&self, buffer: BufferId) -> BufferId {
        let mut state = self.lock();
        let Some(claim) = state.buffers.get(buffer) else { return DEAD };
        let (storage, ty, origin) = (claim.storage, claim.ty.clone(), claim.origin);
        state.buffers.share(storage, ty, origin)
    }

    fn release(&self, buffer: BufferId) {
        let now_ns = self.clock.now();
        self.lock().release(buffer, now_ns);
    }

    fn set_owner(&self, buffer: BufferId, owner: &str) {
        let now_ns = self.clock.now();
        let mut state = self.lock();
        let Some(claim) = state.buffers.get_mut(buffer) else { return };
        claim.owner = (!owner.is_empty()).then(|| owner.into());
        let storage = claim.storage;
        state.update_owner(storage, now_ns);
    }

    fn holders(&self, buffer: BufferId) -> Vec<String> {
        let state = self.lock();
        let claim = state.buffers.get(buffer);
        claim.map_or_else(Vec::new, |claim| state.holders(claim.storage))
    }

    fn memory(&self) -> MemoryFigures {
        self.lock().figures(self.capacity)
    }

    fn reset_peak(&self) {
        self.lock().heap.reset_peak();
    }

    fn scope_begin(&self, name: &str) {
        let now_ns = self.clock.now();
        self.lock().heap.ledger_mut().begin_scope(now_ns, name);
    }

    fn scope_end(&self) -> ScopeFigures {
        let now_ns = self.clock.now();
        self.lock().end_scope(now_ns)
    }

    fn synchronize(&self) {
        // Kernels have run when their call returns; whoever holds the lock is the one that still runs. A pool that
        // orders by streams may now reuse what was freed.
        let now_ns = self.clock.now();
        self.lock().heap.synchronize(now_ns);
    }

    fn clear_caches(&self) -> (u64, u64) {
        let cleared = self.clear(&CacheSelection::All);
        (cleared.entries, cleared.bytes)
    }

    fn explain(&self, executable: ExecutableId) -> Option<Explanation> {
        let (compiled, donate, limit, leaner, measured) = {
            let state = self.lock();
            let entry = state.cache.get(executable)?;
            let (limit, leaner) = (entry.memory_limit, entry.leaner.clone());
            (entry.compiled.clone(), entry.donate.clone(), limit, leaner, entry.measured_peak)
        };
        let explained = self.backend.explain_under(&compiled.program.func, &donate, limit, &leaner);
        let explained = explained.expect("a program that compiled once compiles again");
        Some(explanation(&compiled, explained, measured))
    }
}

/// An id that names no buffer: ids of buffers have a generation above 0.
const DEAD: BufferId = BufferId(0);

impl Context {
    fn read(&self, buffer: BufferId, range: Option<(u64, u64)>) -> Result<Vec<u8>, Fault> {
        let state = self.lock();
        let Some(claim) = state.buffers.get(buffer) else { return Err(gone("download")) };
        if self.is_dry() {
            let message = format!("{} carries no data on the dry device", claim.ty);
            return Err(Fault::new(FaultKind::NoData, "download", message)
                .help("start with --device cpu to compute values"));
        }
        let total = claim.ty.bytes();
        let (offset, bytes) = range.unwrap_or((0, total));
        if offset.checked_add(bytes).is_none_or(|end| end > total) {
            let message = format!("bytes {offset}.. +{bytes} lie outside {}", claim.ty);
            return Err(Fault::new(FaultKind::Argument, "download", message));
        }
        let storage = state.buffers.storage(claim.storage);
        Ok(match &storage.host {
            Some(host) => self.backend.read_host(host, offset, bytes),
            None => self.backend.read(&storage.block, offset, bytes),
        })
    }
}

/// The fault of an id whose claim has ended.
pub(crate) fn gone(op: &str) -> Fault {
    Fault::new(FaultKind::Donated, op, "the array was moved into an earlier call or dropped")
}
