//! Code tried on a device of its own: copies of the variables that it names, and nothing else. The session's arrays,
//! pool, caches, figures and events stay as they are.

use crate::host::{SessionHost, Surroundings};
use crate::interrupt::Interrupt;
use crate::rewrite::rewrite;
use crate::session::Session;
use crate::sink::Sink;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vramlab_array::ir::{Engine, Fault, FaultKind};
use vramlab_array::{Array, with_engine, with_host};
use vramlab_cells::{Interpreter, NoCopy};
use vramlab_memory::ModeSpec;
use vramlab_runtime::Context;

/// A device with copies of some variables.
pub(crate) struct Trial {
    pub context: Arc<Context>,
    interpreter: Interpreter,
    interrupt: Interrupt,
    /// What `_` stands for, and the cell that runs.
    last_output: Option<u32>,
    cell: u32,
}

/// Why there is no trial.
pub(crate) enum NoTrial {
    /// In words: a capacity, a mode, a variable.
    Refused(String),
    /// The inputs alone do not fit.
    InputsDoNotFit,
    Interrupted,
}

/// Why code did not come to its end.
pub(crate) enum Stopped {
    /// The check refused it; nothing ran.
    Check(String),
    Fault(Fault),
}

impl Trial {
    /// # Errors
    /// A device that cannot be had, a variable that cannot be copied, or no room for the copies.
    pub fn open(
        session: &Session,
        names: &[String],
        mode: ModeSpec,
        capacity: Option<u64>,
    ) -> Result<Trial, NoTrial> {
        let context = session.context.beside(capacity, mode).map_err(NoTrial::Refused)?;
        let interpreter = copies(session, names, &context)?;
        Ok(Trial {
            context,
            interpreter,
            interrupt: session.interrupt.clone(),
            last_output: session.last_output,
            cell: session.running.cell,
        })
    }

    /// Checks and runs code; what it prints is dropped. Only the run is timed.
    ///
    /// # Errors
    /// What the check refused, or the fault that ended it.
    pub fn run(&mut self, code: &str) -> Result<Duration, Stopped> {
        let code = rewrite(code, self.last_output).text;
        let prepared = self.interpreter.prepare(&code, self.cell);
        let prepared = prepared.map_err(|diagnostic| Stopped::Check(diagnostic.message))?;
        let engine: Arc<dyn Engine> = self.context.clone();
        // What functions of the prelude say while they are tried goes nowhere.
        let surroundings = Arc::new(Surroundings::new(self.interrupt.clone()));
        let mut drop_event = |_| {};
        let mut sink = Sink::new(&mut drop_event);
        let mut nobody = None;
        let mut host =
            SessionHost { sink: &mut sink, input: &mut nobody, interrupt: &self.interrupt };
        let started = Instant::now();
        let outcome = with_engine(engine, || {
            with_host(surroundings, || self.interpreter.run(prepared, &mut host))
        });
        let took = started.elapsed();
        match outcome.error {
            Some(fault) => Err(Stopped::Fault(fault)),
            None => Ok(took),
        }
    }
}

/// The variables again, their arrays copied to another device. Variables that share bytes share them there too.
fn copies(
    session: &Session,
    names: &[String],
    context: &Arc<Context>,
) -> Result<Interpreter, NoTrial> {
    let mut known: HashMap<u64, Array> = HashMap::new();
    let engine: Arc<dyn Engine> = context.clone();
    let mut replace = |array: &Array| {
        let gone = || Fault::new(FaultKind::Donated, "copy", "the array was moved or dropped");
        let buffer = array.buffer().ok_or_else(gone)?;
        let allocation = session.context.allocation_of(buffer).ok_or_else(gone)?;
        if let Some(copy) = known.get(&allocation).filter(|copy| copy.ty() == array.ty()) {
            return Ok(copy.clone());
        }
        let copy = context.copy_from(&session.context, buffer)?;
        let copy = Array::of_claim(engine.clone(), copy, array.ty().clone());
        if let Some(owner) = array.holders().first() {
            copy.set_owner(owner);
        }
        known.insert(allocation, copy.alias());
        Ok(copy)
    };
    let copied = session.interpreter.transplant(names, &mut replace);
    copied.map_err(|(name, why)| match why {
        NoCopy::Function => NoTrial::Refused(format!(
            "`{name}` is a compiled or transformed function, made for this session's device; write the expression that \
             it computes instead"
        )),
        NoCopy::Iterator => NoTrial::Refused(format!("`{name}` is an iterator, which has no copy")),
        NoCopy::Fault(fault) if fault.kind == FaultKind::OutOfMemory => NoTrial::InputsDoNotFit,
        NoCopy::Fault(fault) if fault.kind == FaultKind::Interrupted => NoTrial::Interrupted,
        NoCopy::Fault(fault) => NoTrial::Refused(format!("`{name}`: {fault}")),
    })
}
