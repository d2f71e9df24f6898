//! A device's memory as the runtime holds it: one driver, the stack that answers, the stacks that were, the ledger.
//!
//! Exactly one stack answers new requests. After a switch of mode the older ones stay until their last block is gone.
//! Every event, of blocks and of the driver, goes into the ledger on its way through.

mod guests;
mod tap;

pub use guests::Guest;

use tap::Tap;

use crate::ledger::{Event, EventKind, Ledger, OwnerId};
use crate::modes::{ModeError, ModeSpec};
use crate::resource::{AllocError, Cause, Chunk, MemoryResource, RegionFigures, Trimmed};
use crate::stack;
use crate::{
    Block, BlockId, Broken, Driver, DriverFigures, PoolId, Stats, Stream, TorchStats, format_bytes,
};

/// A request for a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Bytes wanted.
    pub bytes: u64,
    /// Who will hold it.
    pub owner: OwnerId,
    /// The stream it is first used on.
    pub stream: Stream,
    /// The caller's clock, in nanoseconds.
    pub now_ns: u64,
}

impl Request {
    /// A request for `bytes` by nobody, on the default stream, at time 0.
    pub fn of(bytes: u64) -> Request {
        Request { bytes, ..Request::default() }
    }
}

/// What a user should be told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// The driver had less than the mode wanted; the pool is smaller.
    BackedOff {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes the driver gave.
        granted: u64,
        /// Calls until it gave.
        driver_calls: u64,
        /// Bytes that other processes hold.
        others: u64,
    },
}

struct Pool {
    id: PoolId,
    mode: ModeSpec,
    resource: Box<dyn MemoryResource>,
}

/// The memory of one device.
pub struct Heap {
    driver: Box<dyn Driver>,
    current: Pool,
    older: Vec<Pool>,
    ledger: Ledger,
    next_pool: u32,
    warnings: Vec<Warning>,
    fail_in: u64,
    /// Which pool answered before the last switch, and its mode.
    before_switch: Option<(PoolId, ModeSpec)>,
    guests: Vec<Guest>,
    guests_made: u32,
}

/// A block on its way to another pool through the host: its bytes are no longer on the device.
#[derive(Debug)]
#[must_use = "a block in transit is lost unless it lands"]
pub struct InTransit {
    id: BlockId,
    requested: u64,
}

impl InTransit {
    /// The block's name, which it keeps.
    pub fn id(&self) -> BlockId {
        self.id
    }

    /// Bytes to allocate for it.
    pub fn requested(&self) -> u64 {
        self.requested
    }
}

impl Heap {
    /// The memory of a device in a mode. Nothing is asked of the driver yet.
    pub fn new(driver: Box<dyn Driver>, mode: ModeSpec) -> Heap {
        Heap::with_ledger(driver, mode, Ledger::default())
    }

    /// The same with a ledger of another size; nothing may be in it yet.
    pub fn with_ledger(driver: Box<dyn Driver>, mode: ModeSpec, mut ledger: Ledger) -> Heap {
        let resource = stack::build(&mode, driver.figures().total);
        ledger.set_first_mode(&mode.to_string(), PoolId(0));
        Heap {
            driver,
            current: Pool { id: PoolId(0), mode, resource },
            older: Vec::new(),
            ledger,
            next_pool: 1,
            warnings: Vec::new(),
            fail_in: 0,
            before_switch: None,
            guests: Vec::new(),
            guests_made: 0,
        }
    }

    /// A block from the stack that answers. A failure is recorded and changes nothing else.
    pub fn allocate(&mut self, request: Request) -> Result<Block, AllocError> {
        let result = self.attempt(request);
        if result.is_err() {
            self.record_oom(request);
        }
        result
    }

    /// As [`Heap::allocate`], but a failure is not yet called one: the caller has something left to free.
    pub fn attempt(&mut self, request: Request) -> Result<Block, AllocError> {
        let mut block = self.place(request)?;
        if !block.is_empty() {
            block = block.stamped(self.ledger.next_block(), self.current.id);
            self.ledger.alloc(request.now_ns, &block, request.owner, request.stream);
        }
        self.check_in_debug();
        Ok(block)
    }

    /// Records that a request failed for good.
    pub fn record_oom(&mut self, request: Request) {
        self.ledger.record(Event {
            requested: request.bytes,
            owner: request.owner,
            stream: request.stream,
            pool: self.current.id,
            ..Event::of(EventKind::Oom, request.now_ns)
        });
    }

    /// Room in the pool that answers: of a new block, and of one that moves in a switch.
    fn place(&mut self, request: Request) -> Result<Block, AllocError> {
        let fails = self.fail_in == 1;
        self.fail_in = self.fail_in.saturating_sub(1);
        if fails {
            let stats = self.current.resource.stats();
            return Err(self.error(request.bytes, &stats, Cause::Injected));
        }
        let (guests, id) = (self.guest_bytes(), self.current.id);
        let mut tap = Tap::new(&mut *self.driver, &mut self.ledger, request.now_ns, id, guests);
        let result = self.current.resource.allocate(request.bytes, request.stream, &mut tap);
        let (wanted, refused, granted) = (tap.wanted, tap.refused, tap.granted);
        if refused > 0 && granted > 0 && granted < wanted {
            let others = self.device().others;
            let driver_calls = refused + 1;
            self.warnings.push(Warning::BackedOff { wanted, granted, driver_calls, others });
            self.ledger.record(Event {
                requested: wanted,
                granted,
                pool: self.current.id,
                ..Event::of(EventKind::BackOff, request.now_ns)
            });
        }
        result
    }

    /// Takes a block back into the pool it came from.
    pub fn deallocate(&mut self, block: Block, stream: Stream, now_ns: u64) {
        if block.is_empty() {
            return;
        }
        self.ledger.free(now_ns, &block, stream);
        self.give_back(block, stream, now_ns);
        self.check_in_debug();
    }

    fn give_back(&mut self, block: Block, stream: Stream, now_ns: u64) {
        let (guests, id) = (self.guest_bytes(), block.pool());
        let pool = pool_mut(&mut self.current, &mut self.older, id);
        let mut tap = Tap::new(&mut *self.driver, &mut self.ledger, now_ns, id, guests);
        pool.resource.deallocate(block, stream, &mut tap);
        if id != self.current.id {
            self.close_empty(now_ns);
        }
    }

    /// An older pool goes once its last block is gone.
    fn close_empty(&mut self, now_ns: u64) {
        let guests = self.guest_bytes();
        for pool in &mut self.older {
            if pool.resource.stats().live_blocks() == 0 {
                let mut tap =
                    Tap::new(&mut *self.driver, &mut self.ledger, now_ns, pool.id, guests);
                pool.resource.trim(&mut tap);
            }
        }
        self.older.retain(|pool| pool.resource.stats().pool_bytes > 0);
    }

    /// The work on all streams is done; a mode with an order of streams or a release threshold acts on it.
    pub fn synchronize(&mut self, now_ns: u64) {
        let guests = self.guest_bytes();
        for pool in self.older.iter_mut().chain([&mut self.current]) {
            let mut tap = Tap::new(&mut *self.driver, &mut self.ledger, now_ns, pool.id, guests);
            pool.resource.synchronize(&mut tap);
        }
        self.check_in_debug();
    }

    /// Whether the device can do what a mode needs, and is large enough for it.
    pub fn supports(&mut self, mode: &ModeSpec) -> Result<(), ModeError> {
        let total = self.driver.figures().total;
        let (limit, least) = (stack::limit(mode, total), stack::least(mode));
        if limit < least {
            let reason = format!(
                "{mode} takes {} from the device at once, and may hold {} of these {}: a larger capacity, or another mode",
                format_bytes(least),
                format_bytes(limit),
                format_bytes(total)
            );
            return Err(ModeError::Contradiction { reason });
        }
        if mode.needs_virtual_memory() && self.driver.virtual_memory().is_none() {
            let device = self.driver.describe();
            let reason =
                format!("{mode} maps memory behind reserved addresses, which {device} cannot");
            return Err(ModeError::Contradiction { reason });
        }
        Ok(())
    }

    /// Returns what holds no block to the driver, in every pool, and names what pins the rest.
    pub fn trim(&mut self, now_ns: u64) -> Trimmed {
        let guests = self.guest_bytes();
        let mut all = Trimmed::default();
        for pool in self.older.iter_mut().chain([&mut self.current]) {
            let mut tap = Tap::new(&mut *self.driver, &mut self.ledger, now_ns, pool.id, guests);
            let trimmed = pool.resource.trim(&mut tap);
            all.released_bytes += trimmed.released_bytes;
            all.released_regions += trimmed.released_regions;
            all.kept.extend(trimmed.kept);
        }
        let by_address: std::collections::HashMap<u64, BlockId> =
            self.ledger.live().iter().map(|live| (live.address, live.block)).collect();
        for kept in &mut all.kept {
            let names = kept.pinned_by.iter().filter_map(|address| by_address.get(address));
            kept.blocks = names.copied().collect();
        }
        self.ledger.note(EventKind::Reclaim, now_ns, "empty regions", all.released_bytes);
        self.check_in_debug();
        all
    }

    /// Another mode answers from here on. Blocks stay where they are; see [`Heap::duplicate`] and [`Heap::lift`].
    pub fn begin_switch(&mut self, mode: ModeSpec, now_ns: u64) {
        let resource = stack::build(&mode, self.driver.figures().total);
        let pool = Pool { id: PoolId(self.next_pool), mode, resource };
        self.next_pool += 1;
        let before = std::mem::replace(&mut self.current, pool);
        self.before_switch = Some((before.id, before.mode.clone()));
        self.older.push(before);
        let name = self.current.mode.to_string();
        self.ledger.switch(now_ns, &name, self.current.id);
        self.close_empty(now_ns);
    }

    /// Room for the same block in the pool that answers. The old block stays valid until [`Heap::retire`].
    pub fn duplicate(&mut self, block: &Block, now_ns: u64) -> Result<Block, AllocError> {
        let copy =
            self.place(Request { bytes: block.requested(), now_ns, ..Request::default() })?;
        let copy = copy.stamped(block.id(), self.current.id);
        if !copy.is_empty() {
            self.ledger.migrate(now_ns, &copy);
        }
        Ok(copy)
    }

    /// Takes back the new copy instead: the block stays where it was, and so does its entry in the ledger.
    pub fn undo_duplicate(&mut self, old: &Block, copy: Block, now_ns: u64) {
        if !copy.is_empty() {
            self.ledger.migrate(now_ns, old);
            self.give_back(copy, Stream(0), now_ns);
        }
    }

    /// The pool that answered before [`Heap::begin_switch`] answers again; for a switch whose copies were all undone.
    /// Says whether there was one.
    pub fn abort_switch(&mut self, now_ns: u64) -> bool {
        let Some((id, mode)) = self.before_switch.take() else { return false };
        // All blocks may live in still older pools; then the one that answered held nothing, and is closed already.
        let before = match self.older.iter().position(|pool| pool.id == id) {
            Some(at) => self.older.remove(at),
            None => {
                let resource = stack::build(&mode, self.driver.figures().total);
                self.next_pool += 1;
                Pool { id: PoolId(self.next_pool - 1), mode, resource }
            }
        };
        let failed = std::mem::replace(&mut self.current, before);
        self.older.push(failed);
        let name = self.current.mode.to_string();
        self.ledger.switch(now_ns, &name, self.current.id);
        self.close_empty(now_ns);
        true
    }

    /// The `nth` request from now on fails once, counted from 1: to test what a failure leaves behind.
    pub fn fail_nth(&mut self, nth: u64) {
        self.fail_in = nth;
    }

    /// Takes back the old copy of a block that was moved by [`Heap::duplicate`].
    pub fn retire(&mut self, old: Block, now_ns: u64) {
        if !old.is_empty() {
            self.give_back(old, Stream(0), now_ns);
        }
        self.check_in_debug();
    }

    /// Takes a block off the device while the host holds its bytes.
    pub fn lift(&mut self, block: Block, now_ns: u64) -> InTransit {
        let transit = InTransit { id: block.id(), requested: block.requested() };
        if !block.is_empty() {
            self.give_back(block, Stream(0), now_ns);
        }
        transit
    }

    /// Room on the device for a block that was lifted. On failure it stays in transit.
    pub fn land(
        &mut self,
        transit: InTransit,
        now_ns: u64,
    ) -> Result<Block, (InTransit, AllocError)> {
        let request = Request { bytes: transit.requested, now_ns, ..Request::default() };
        match self.place(request) {
            Ok(block) => {
                let block = block.stamped(transit.id, self.current.id);
                if !block.is_empty() {
                    self.ledger.migrate(now_ns, &block);
                }
                Ok(block)
            }
            Err(error) => Err((transit, error)),
        }
    }

    /// The figures of all pools together; the largest free chunk is that of the pool that answers.
    pub fn stats(&self) -> Stats {
        let mut all = self.current.resource.stats();
        for pool in &self.older {
            let stats = pool.resource.stats();
            all.requested_bytes += stats.requested_bytes;
            all.bytes_in_use += stats.bytes_in_use;
            all.pool_bytes += stats.pool_bytes;
            // Pools that no longer answer cannot grow: what they hold comes on top of the mode's limit.
            all.bytes_limit += stats.pool_bytes;
            all.largest_alloc_size = all.largest_alloc_size.max(stats.largest_alloc_size);
        }
        let (granted, requested, pool) = self.ledger.peaks();
        let totals = self.ledger.totals();
        Stats {
            peak_bytes_in_use: granted.max(all.bytes_in_use),
            peak_requested_bytes: requested.max(all.requested_bytes),
            peak_pool_bytes: pool.max(all.pool_bytes),
            num_allocs: totals.of(EventKind::Alloc),
            num_frees: totals.of(EventKind::Free),
            driver_allocs: totals.of(EventKind::RegionGrow) + totals.of(EventKind::Map),
            driver_frees: totals.of(EventKind::RegionRelease) + totals.of(EventKind::Unmap),
            driver_refusals: totals.of(EventKind::DriverRefusal),
            ..all
        }
    }

    /// The figures under PyTorch's names: of the stack that answers where it is a caching one, else of the ledger.
    /// Failures are those of the user's requests: a request that a ladder saved is none.
    pub fn torch_stats(&self) -> TorchStats {
        let ledger = TorchStats::of_ledger(&self.ledger);
        match self.current.resource.torch_stats() {
            Some(stats) => {
                let mut stats = stats.clone();
                stats.num_ooms = ledger.num_ooms;
                stats
            }
            None => ledger,
        }
    }

    /// The mode that answers.
    pub fn mode(&self) -> &ModeSpec {
        &self.current.mode
    }

    /// The pool that answers.
    pub fn pool(&self) -> PoolId {
        self.current.id
    }

    /// The modes and figures of the pools that no longer answer and still hold blocks.
    pub fn older_pools(&self) -> Vec<(PoolId, ModeSpec, Stats)> {
        let figures = |pool: &Pool| (pool.id, pool.mode.clone(), pool.resource.stats());
        self.older.iter().map(figures).collect()
    }

    /// The stack that answers.
    pub fn resource(&self) -> &dyn MemoryResource {
        &*self.current.resource
    }

    /// The stack that answers, in one line.
    pub fn describe(&self) -> String {
        stack::describe(&*self.current.resource, &self.driver.describe())
    }

    /// The regions of all pools, in the order of their making within each pool.
    pub fn regions(&self) -> Vec<RegionFigures> {
        let mut all = Vec::new();
        for pool in self.older.iter().chain([&self.current]) {
            let mut regions = pool.resource.regions();
            regions.sort_unstable_by_key(|region| region.ordinal);
            all.extend(regions);
        }
        all
    }

    /// The chunks of all pools, by address within each pool.
    pub fn chunks(&self) -> Vec<Chunk> {
        let pools = self.older.iter().chain([&self.current]);
        pools.flat_map(|pool| pool.resource.chunks()).collect()
    }

    /// The device's figures as the allocators see them: a guest is one of the others.
    pub fn device(&self) -> DriverFigures {
        self.driver.figures().beside(self.guest_bytes())
    }

    /// The facts of a failure that no pool met.
    pub fn error(&self, asked: u64, stats: &Stats, cause: Cause) -> AllocError {
        AllocError::of(asked, stats, &self.device(), cause)
    }

    /// The driver, for what only its owner knows how to do.
    pub fn driver_mut(&mut self) -> &mut dyn Driver {
        &mut *self.driver
    }

    /// The event stream.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The event stream, to begin and end scopes and to name owners.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// What a user should be told, once.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Peaks begin again at the present values.
    pub fn reset_peak(&mut self) {
        self.current.resource.reset_peak();
        self.ledger.reset_peak();
    }

    /// Checks every pool and that the ledger agrees with them, slowly.
    pub fn check(&self) -> Result<(), Broken> {
        for pool in self.older.iter().chain([&self.current]) {
            pool.resource.check()?;
        }
        self.check_figures()
    }

    fn check_figures(&self) -> Result<(), Broken> {
        let stats = self.stats();
        stats.check()?;
        let totals = self.ledger.totals();
        if stats.pool_bytes != totals.pool {
            return Err(Broken(format!("pools hold {}, ledger {}", stats.pool_bytes, totals.pool)));
        }
        Ok(())
    }

    fn check_in_debug(&self) {
        if cfg!(debug_assertions) {
            let sound = self.check_figures();
            assert_eq!(sound, Ok(()));
        }
    }
}

fn pool_mut<'a>(current: &'a mut Pool, older: &'a mut [Pool], id: PoolId) -> &'a mut Pool {
    if current.id == id {
        return current;
    }
    let found = older.iter_mut().find(|pool| pool.id == id);
    found.expect("a pool stays until its last block is gone")
}
