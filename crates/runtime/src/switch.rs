//! Another allocation mode while arrays live: planned first, then done or not done, never half.

use crate::buffers::StorageId;
use crate::context::{Context, State};
use vramlab_memory::heap::InTransit;
use vramlab_memory::modes::{MODES, OptionKind};
use vramlab_memory::switch::{self, Policy, Road, SwitchPlan};
use vramlab_memory::{Block, Heap, ModeName, ModeSpec, format_bytes};

/// One row of the table of modes.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeRow {
    pub name: &'static str,
    pub doc: &'static str,
    /// Option, value (of the mode that answers, else the default), doc, and what it takes.
    pub options: Vec<ModeOption>,
    pub current: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModeOption {
    pub name: &'static str,
    pub value: String,
    pub doc: &'static str,
    pub kind: OptionKind,
}

/// What a switch did.
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchReport {
    /// As it was planned; its figures were computed before anything moved.
    pub plan: SwitchPlan,
    /// The mode was this one already, and nothing happened.
    pub unchanged: bool,
    pub moved_arrays: u64,
    pub moved_bytes: u64,
    /// Held from the device before and after.
    pub pool_before: u64,
    pub pool_after: u64,
    /// The most that was held on the way, measured.
    pub peak_pool: u64,
    /// Bytes that older pools still hold, because arrays live out their time there.
    pub older_pool_bytes: u64,
}

impl Context {
    /// The mode that answers.
    pub fn mode(&self) -> ModeSpec {
        self.lock().heap.mode().clone()
    }

    /// All modes, the current one marked.
    pub fn modes(&self) -> Vec<ModeRow> {
        let now = self.mode();
        let row = |entry: &'static vramlab_memory::modes::ModeEntry| {
            let current = entry.mode == now.mode();
            let spec = if current { now.clone() } else { ModeSpec::new(entry.mode) };
            let option = |(option, value): (&'static vramlab_memory::modes::OptionEntry, _)| {
                let value: vramlab_memory::modes::OptionValue = value;
                ModeOption {
                    name: option.name,
                    value: value.to_string(),
                    doc: option.doc,
                    kind: option.kind,
                }
            };
            let options = spec.options().map(option).collect();
            ModeRow { name: entry.name, doc: entry.doc, options, current }
        };
        MODES.iter().map(row).collect()
    }

    /// What a switch would do. Nothing changes.
    pub fn plan_switch(&self, to: &ModeSpec, policy: Policy) -> SwitchPlan {
        switch::plan(&self.lock().heap, to, policy)
    }

    /// Switches. On an error the mode, the arrays and their contents are as they were.
    ///
    /// # Errors
    /// In words: what does not fit, or who holds arrays.
    pub fn switch(&self, to: &ModeSpec, policy: Policy) -> Result<SwitchReport, String> {
        let now_ns = self.clock.now();
        let mut state = self.lock();
        state.heap.supports(to).map_err(|error| error.to_string())?;
        let plan = switch::plan(&state.heap, to, policy);
        let pool_before = state.heap.stats().pool_bytes;
        if state.heap.mode() == to {
            return Ok(unchanged(plan, pool_before));
        }
        let arrays = state.blocks_in_order();
        let peak_pool = match plan.road {
            Road::Refused => return Err(state.refusal(&plan)),
            Road::Stay => {
                state.heap.begin_switch(to.clone(), now_ns);
                pool_before.max(state.heap.stats().pool_bytes)
            }
            Road::SideBySide => self.move_beside(&mut state, to, &arrays, now_ns)?,
            Road::ThroughHost => self.move_through_host(&mut state, to, &arrays, now_ns)?,
        };
        state.publish(self);
        let moved = matches!(plan.road, Road::SideBySide | Road::ThroughHost);
        let older = state.heap.older_pools();
        Ok(SwitchReport {
            unchanged: false,
            moved_arrays: if moved { plan.arrays } else { 0 },
            moved_bytes: if moved { plan.bytes } else { 0 },
            pool_before,
            pool_after: state.heap.stats().pool_bytes,
            peak_pool,
            older_pool_bytes: older.iter().map(|(_, _, stats)| stats.pool_bytes).sum(),
            plan,
        })
    }

    /// Both pools at once: every array gets its room before any old block goes.
    fn move_beside(
        &self,
        state: &mut State,
        to: &ModeSpec,
        arrays: &[StorageId],
        now_ns: u64,
    ) -> Result<u64, String> {
        state.heap.begin_switch(to.clone(), now_ns);
        let mut copies: Vec<Block> = Vec::with_capacity(arrays.len());
        for &array in arrays {
            match state.heap.duplicate(&state.buffers.storage(array).block, now_ns) {
                Ok(copy) => copies.push(copy),
                Err(error) => {
                    for (&array, copy) in arrays.iter().zip(copies) {
                        let old = &state.buffers.storage(array).block;
                        state.heap.undo_duplicate(old, copy, now_ns);
                    }
                    state.heap.abort_switch(now_ns);
                    return Err(format!("{to} has no room beside the old pool: {error}"));
                }
            }
        }
        let peak = state.heap.stats().pool_bytes;
        for (&array, copy) in arrays.iter().zip(copies) {
            let storage = state.buffers.storage_mut(array);
            self.backend.copy(&storage.block, &copy, copy.requested());
            let old = std::mem::replace(&mut storage.block, copy);
            state.heap.retire(old, now_ns);
        }
        Ok(peak)
    }

    /// The old pool goes before the new one comes; the host holds the contents in between.
    fn move_through_host(
        &self,
        state: &mut State,
        to: &ModeSpec,
        arrays: &[StorageId],
        now_ns: u64,
    ) -> Result<u64, String> {
        let from = state.heap.mode().clone();
        let before = state.heap.stats().pool_bytes;
        // On a shared device nobody may take the room in which the arrays land again.
        let _share = self.keep_share();
        let contents: Vec<Vec<u8>> = arrays
            .iter()
            .map(|&array| &state.buffers.storage(array).block)
            .map(|block| self.backend.read(block, 0, block.requested()))
            .collect();
        let lifted = state.lift_all(arrays, now_ns);
        state.heap.begin_switch(to.clone(), now_ns);
        let result = match land_all(&mut state.heap, lifted, now_ns) {
            Ok(blocks) => {
                state.settle(arrays, blocks);
                Ok(before.max(state.heap.stats().pool_bytes))
            }
            Err(not_landed) => {
                let (lifted, error) = *not_landed;
                state.restore(from, lifted, arrays, now_ns);
                Err(format!("{to} has no room: {error}"))
            }
        };
        for (&array, bytes) in arrays.iter().zip(&contents) {
            self.backend.write(&state.buffers.storage(array).block, bytes);
        }
        result
    }
}

fn unchanged(plan: SwitchPlan, pool: u64) -> SwitchReport {
    SwitchReport {
        plan,
        unchanged: true,
        moved_arrays: 0,
        moved_bytes: 0,
        pool_before: pool,
        pool_after: pool,
        peak_pool: pool,
        older_pool_bytes: 0,
    }
}

type NotLanded = Box<(Vec<InTransit>, vramlab_memory::AllocError)>;

/// Room for every block, or all of them in transit again.
fn land_all(heap: &mut Heap, lifted: Vec<InTransit>, now_ns: u64) -> Result<Vec<Block>, NotLanded> {
    let mut blocks = Vec::with_capacity(lifted.len());
    let mut waiting = lifted.into_iter();
    while let Some(transit) = waiting.next() {
        match heap.land(transit, now_ns) {
            Ok(block) => blocks.push(block),
            Err((transit, error)) => {
                let landed: Vec<InTransit> =
                    blocks.into_iter().map(|block| heap.lift(block, now_ns)).collect();
                let all = landed.into_iter().chain([transit]).chain(waiting).collect();
                return Err(Box::new((all, error)));
            }
        }
    }
    Ok(blocks)
}

impl State {
    /// The storages that hold a block, in the order of their making: the order in which a plan placed them.
    fn blocks_in_order(&self) -> Vec<StorageId> {
        let live = self.buffers.storages().filter(|(_, storage)| !storage.block.is_empty());
        let mut live: Vec<_> = live.map(|(id, storage)| (storage.block.id(), id)).collect();
        live.sort_unstable();
        live.into_iter().map(|(_, id)| id).collect()
    }

    fn lift_all(&mut self, arrays: &[StorageId], now_ns: u64) -> Vec<InTransit> {
        let lift = |&array: &StorageId| {
            let storage = self.buffers.storage_mut(array);
            let block = std::mem::replace(&mut storage.block, Block::empty());
            self.heap.lift(block, now_ns)
        };
        arrays.iter().map(lift).collect()
    }

    fn settle(&mut self, arrays: &[StorageId], blocks: Vec<Block>) {
        for (&array, block) in arrays.iter().zip(blocks) {
            self.buffers.storage_mut(array).block = block;
        }
    }

    /// Back into the mode that was. A pool of that mode held these arrays a moment ago; should a fresh one place them
    /// worse, each gets a region of its own.
    fn restore(
        &mut self,
        from: ModeSpec,
        lifted: Vec<InTransit>,
        arrays: &[StorageId],
        now_ns: u64,
    ) {
        self.heap.begin_switch(from, now_ns);
        let lifted = match land_all(&mut self.heap, lifted, now_ns) {
            Ok(blocks) => return self.settle(arrays, blocks),
            Err(not_landed) => not_landed.0,
        };
        self.heap.begin_switch(ModeSpec::new(ModeName::Platform), now_ns);
        let landed = land_all(&mut self.heap, lifted, now_ns).map_err(|not_landed| not_landed.1);
        self.settle(arrays, landed.expect("a device that held these arrays holds them one by one"));
    }

    fn refusal(&self, plan: &SwitchPlan) -> String {
        let held = format!("{} arrays of {} are live", plan.arrays, format_bytes(plan.bytes));
        match plan.policy {
            Policy::Refuse => {
                let owners = self.heap.ledger().by_owner();
                let names: Vec<String> = owners
                    .iter()
                    .map(|figures| self.heap.ledger().owner(figures.owner).to_string())
                    .collect();
                format!("refused: {held}: {}", names.join(", "))
            }
            _ => format!(
                "{held}, and {} cannot hold them within its limit of {} on this device of {}",
                plan.to,
                format_bytes(plan.limit),
                format_bytes(plan.capacity)
            ),
        }
    }
}
