//! When memory is short: the ladder of what may help, and the account of why nothing did.
//!
//! The rungs in order: dead arrays, caches, empty regions (where the mode's rules allow it). After each rung that freed
//! something the whole call is tried again from its beginning. Nothing of a failed try is left: its blocks went back.

use crate::context::{Context, State};
use std::sync::{Arc, PoisonError};
use vramlab_ir::{Fault, FaultKind, Origin};
use vramlab_memory::oom::{LadderFailure, LadderStep};
use vramlab_memory::{
    AllocError, Block, Cause, EventKind, OomReport, OwnerId, Request, Stream, format_bytes,
};

/// A rung that somebody above knows how to climb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Arrays that nothing reaches any more.
    DeadArrays,
    /// Device memory that a cache holds and can make again.
    Caches,
}

impl Rung {
    const ALL: [Rung; 2] = [Rung::DeadArrays, Rung::Caches];

    /// Its name in the ladder.
    pub const fn name(self) -> &'static str {
        match self {
            Rung::DeadArrays => "dead arrays",
            Rung::Caches => "caches",
        }
    }
}

/// Frees what it can by ending claims through the engine.
pub type Reclaim = Arc<dyn Fn() + Send + Sync>;

/// Why a call stopped.
pub(crate) enum Stop {
    Fault(Fault),
    NoRoom(Box<Shortage>),
}

/// A block that could not be had.
pub(crate) struct Shortage {
    /// The op or function that asked.
    name: String,
    request: Request,
    error: AllocError,
    /// More than the device has: no rung can help.
    hopeless: bool,
}

impl State {
    /// A block for `name`. More than the device has is refused before the pool hears of it.
    pub fn place(
        &mut self,
        context: &Context,
        name: &str,
        bytes: u64,
        owner: OwnerId,
        now_ns: u64,
    ) -> Result<Block, Stop> {
        let request = Request { bytes, owner, stream: Stream(0), now_ns };
        let hopeless = bytes > context.capacity();
        let error = if hopeless {
            let stats = self.heap.stats();
            self.heap.error(bytes, &stats, Cause::Limit)
        } else {
            match self.heap.attempt(request) {
                Ok(block) => return Ok(block),
                Err(error) => error,
            }
        };
        let shortage = Shortage { name: name.to_string(), request, error, hopeless };
        Err(Stop::NoRoom(Box::new(shortage)))
    }
}

/// What the ladder did for one call.
#[derive(Default)]
struct Climb {
    steps: Vec<LadderStep>,
    retries: u32,
}

impl Context {
    /// Runs `call` under the lock; when memory is short, climbs the ladder and runs it again. `call` is told whether
    /// this is its first try.
    pub(crate) fn with_ladder<T>(
        &self,
        origin: Origin,
        mut call: impl FnMut(&mut State, bool) -> Result<T, Stop>,
    ) -> Result<T, Fault> {
        let mut climb = Climb::default();
        loop {
            let mut state = self.lock();
            match call(&mut state, climb.retries == 0) {
                Ok(value) => {
                    state.note_climb(&climb);
                    state.publish_in_passing(self);
                    return Ok(value);
                }
                Err(Stop::Fault(fault)) => return Err(placed(fault, origin)),
                Err(Stop::NoRoom(shortage)) => {
                    // What a rung calls takes the lock itself.
                    drop(state);
                    if shortage.hopeless || !self.climb(&mut climb) {
                        return Err(placed(self.give_up(*shortage, climb), origin));
                    }
                }
            }
        }
    }

    /// Climbs until a rung frees something; false at the top.
    fn climb(&self, climb: &mut Climb) -> bool {
        loop {
            let step = match climb.steps.len() {
                done if done < Rung::ALL.len() => self.climb_hook(Rung::ALL[done]),
                done if done == Rung::ALL.len() => self.climb_regions(),
                _ => return false,
            };
            let freed = step.freed;
            climb.steps.push(step);
            if freed > 0 {
                climb.retries += 1;
                return true;
            }
        }
    }

    fn climb_hook(&self, rung: Rung) -> LadderStep {
        let hook = {
            let hooks = self.reclaim.lock().unwrap_or_else(PoisonError::into_inner);
            hooks.iter().find(|(other, _)| *other == rung).map(|(_, hook)| hook.clone())
        };
        let requested = || self.lock().heap.stats().requested_bytes;
        let before = requested();
        if let Some(hook) = hook {
            hook();
        }
        let freed = before.saturating_sub(requested());
        self.record(EventKind::Reclaim, rung.name(), freed);
        LadderStep { name: rung.name().to_string(), freed, note: None }
    }

    fn climb_regions(&self) -> LadderStep {
        let now_ns = self.clock.now();
        let mut state = self.lock();
        let name = "empty regions".to_string();
        match state.heap.mode().keeps_empty_regions() {
            Some(why) => LadderStep { name, freed: 0, note: Some(format!("kept ({why})")) },
            None => LadderStep { name, freed: state.heap.trim(now_ns).released_bytes, note: None },
        }
    }

    fn give_up(&self, shortage: Shortage, climb: Climb) -> Fault {
        let mut state = self.lock();
        state.heap.record_oom(shortage.request);
        let failure =
            LadderFailure { error: shortage.error, steps: climb.steps, retries: climb.retries };
        // The rungs emptied what caches hold before it came to this.
        let mut report = state.heap.explain(&failure, 0);
        report.holders.extend(self.neighbours());
        let fault = fault_of(&shortage.name, &report);
        state.last_oom = Some(report);
        fault
    }
}

impl Context {
    /// The `nth` allocation from now on fails once, counted from 1: to see what a failure leaves behind.
    pub fn fail_nth_allocation(&self, nth: u64) {
        self.lock().heap.fail_nth(nth);
    }
}

impl State {
    fn note_climb(&mut self, climb: &Climb) {
        if climb.retries == 0 {
            return;
        }
        self.retries += u64::from(climb.retries);
        for step in climb.steps.iter().filter(|step| step.freed > 0) {
            let freed = format_bytes(step.freed);
            self.notes
                .push(format!("memory was short: {} gave {freed} back, then it fitted", step.name));
        }
    }
}

fn fault_of(name: &str, report: &OomReport) -> Fault {
    let asked = format_bytes(report.asked);
    let message = format!("asked {asked}, and the device refused: {}", report.verdict_text());
    let fault = Fault::new(FaultKind::OutOfMemory, name, message);
    match (report.passing(), &*report.advice) {
        (passing, _) if passing.is_empty() => fault,
        (passing, "") => fault.help(format!("it passes in {}", passing.join(" · "))),
        (passing, advice) => {
            fault.help(format!("it passes in {}; in JAX: {advice}", passing.join(" · ")))
        }
    }
}

fn placed(fault: Fault, origin: Origin) -> Fault {
    match origin.cell {
        0 => fault,
        cell => fault.at(cell, origin.span),
    }
}
