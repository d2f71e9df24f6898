//! Loops and branches: kernels that were decoded once, run again and again.
//!
//! An iteration allocates nothing for itself: pointers are put into vectors that last as long as the
//! loop. Every kernel checks its accesses against its buffers each time, so no iteration leaves them.

use super::{Prepared, Ready, cancelled};
use crate::LaunchError;
use crate::cpu::isa::Isa;
use crate::cpu::space::DevicePtr;
use std::sync::atomic::{AtomicU64, Ordering};
use vramlab_ir::Kernel;
use vramlab_ir::kernel::{
    Branch as BranchImage, Feed, Loop as LoopImage, Place, ResultSource, Routine as Image, Trips,
};

/// A decoded loop.
#[derive(Debug)]
pub(super) struct Loop {
    trips: DecodedTrips,
    body: Routine,
    arguments: Vec<Feed>,
    inits: Vec<u32>,
    storages: Vec<u32>,
    next: Vec<u32>,
    results: Vec<u32>,
    scratch: Scratch<u32>,
}

/// Where a routine works in: device memory, and the host's for what it offloads.
#[derive(Clone, Copy, Debug)]
struct Scratch<T> {
    device: Option<T>,
    host: Option<T>,
}

impl Scratch<u32> {
    fn pointers(
        self,
        ready: &Ready,
        buffers: &[DevicePtr],
    ) -> Result<Scratch<DevicePtr>, LaunchError> {
        let of = |number: Option<u32>| number.map(|n| one(ready, buffers, n)).transpose();
        Ok(Scratch { device: of(self.device)?, host: of(self.host)? })
    }
}

#[derive(Debug)]
enum DecodedTrips {
    Counted { length: usize, reverse: bool },
    While { condition: Routine, arguments: Vec<Feed>, holds: u32 },
}

/// A decoded inside.
#[derive(Debug)]
struct Routine {
    steps: Vec<Step>,
    results: Vec<ResultSource>,
    fresh: usize,
}

#[derive(Debug)]
struct Step {
    kernel: Prepared,
    /// Where each of its buffers is.
    operands: Vec<(Place, u64)>,
}

/// Where the places of a routine are in one iteration.
struct Places<'a> {
    arguments: &'a [DevicePtr],
    fresh: &'a [DevicePtr],
    scratch: Scratch<DevicePtr>,
}

impl Routine {
    fn new(image: &Image, isa: Isa) -> Result<Routine, LaunchError> {
        let step = |kernel: &Kernel| {
            let operand = |&slot: &u32| {
                let slot = image.slots.get(slot as usize)?;
                Some((slot.place, slot.ty.bytes()))
            };
            let operands: Option<Vec<_>> = kernel.buffers.iter().map(operand).collect();
            Ok(Step {
                kernel: Prepared::new(kernel, isa)?,
                operands: operands.ok_or_else(|| {
                    malformed(&kernel.name, "a buffer is no slot of the routine around it")
                })?,
            })
        };
        Ok(Routine {
            steps: image.kernels.iter().map(step).collect::<Result<_, _>>()?,
            results: image.results.clone(),
            fresh: image.fresh_bytes.len(),
        })
    }

    /// Runs the kernels in order; `pointers` is only there to be used again.
    fn run(
        &self,
        ready: &Ready,
        places: &Places,
        pointers: &mut Vec<DevicePtr>,
    ) -> Result<(), LaunchError> {
        for step in &self.steps {
            pointers.clear();
            for &(place, bytes) in &step.operands {
                let pointer = places.pointer(place, bytes);
                pointers.push(pointer.ok_or_else(|| {
                    malformed(ready.kernel, "a place lies outside of its buffer")
                })?);
            }
            step.kernel.run(pointers, ready.pool, ready.cancel)?;
        }
        Ok(())
    }

    fn code_bytes(&self) -> usize {
        let step = |step: &Step| {
            step.kernel.code_bytes() as usize + step.operands.len() * size_of::<(Place, u64)>()
        };
        self.steps.iter().map(step).sum()
    }

    fn scratch_bytes(&self) -> usize {
        self.steps.iter().map(|step| step.kernel.host_scratch_bytes()).max().unwrap_or(0) as usize
    }
}

impl Places<'_> {
    fn pointer(&self, place: Place, bytes: u64) -> Option<DevicePtr> {
        match place {
            Place::Argument { index } => self.arguments.get(index as usize)?.part(0, bytes),
            Place::Result { index } => self.fresh.get(index as usize)?.part(0, bytes),
            Place::Temporary { offset } => self.scratch.device?.part(offset, bytes),
            Place::Host { offset } => self.scratch.host?.part(offset, bytes),
        }
    }
}

fn malformed(kernel: &str, what: &str) -> LaunchError {
    LaunchError::Malformed { kernel: kernel.to_owned(), what: what.to_owned() }
}

/// The launch's buffers by their numbers.
fn all(
    ready: &Ready,
    buffers: &[DevicePtr],
    numbers: &[u32],
) -> Result<Vec<DevicePtr>, LaunchError> {
    numbers.iter().map(|&number| one(ready, buffers, number)).collect()
}

fn one(ready: &Ready, buffers: &[DevicePtr], number: u32) -> Result<DevicePtr, LaunchError> {
    let found = buffers.get(number as usize).copied();
    found.ok_or_else(|| malformed(ready.kernel, "there is no buffer of that number"))
}

/// The arguments of a routine: those that stay, and which of them change between iterations.
struct Arguments {
    pointers: Vec<DevicePtr>,
    /// (argument, carry)
    carries: Vec<(usize, usize)>,
}

impl Arguments {
    fn new(
        ready: &Ready,
        feeds: &[Feed],
        buffers: &[DevicePtr],
        storages: &[DevicePtr],
        counter: &AtomicU64,
    ) -> Result<Arguments, LaunchError> {
        let mut arguments = Arguments { pointers: Vec::new(), carries: Vec::new() };
        for (argument, feed) in feeds.iter().enumerate() {
            arguments.pointers.push(match *feed {
                Feed::Buffer(buffer) => one(ready, buffers, buffer)?,
                Feed::Carry(carry) => {
                    arguments.carries.push((argument, carry as usize));
                    one(ready, storages, carry)?
                }
                Feed::Counter => DevicePtr::to_counter(counter),
            });
        }
        Ok(arguments)
    }

    fn follow(&mut self, storages: &[DevicePtr]) {
        for &(argument, carry) in &self.carries {
            self.pointers[argument] = storages[carry];
        }
    }
}

impl Loop {
    pub fn new(kernel: &Kernel, image: &LoopImage, isa: Isa) -> Result<Loop, LaunchError> {
        let LoopImage { trips, body, arguments, inits, storages, next, results, .. } = image;
        let trips = match trips {
            Trips::Counted { length, reverse } => {
                DecodedTrips::Counted { length: *length, reverse: *reverse }
            }
            Trips::While { condition, arguments, holds } => DecodedTrips::While {
                condition: Routine::new(condition, isa)?,
                arguments: arguments.clone(),
                holds: *holds,
            },
        };
        let places = storages.len();
        let sound = inits.len() <= places
            && inits.len() == results.len()
            && next.len() == places
            && next.iter().all(|&from| (from as usize) < places)
            && body.fresh_bytes.len() == places - inits.len();
        if !sound {
            return Err(malformed(&kernel.name, "its carries and their buffers do not match"));
        }
        Ok(Loop {
            trips,
            body: Routine::new(body, isa)?,
            arguments: arguments.clone(),
            inits: inits.clone(),
            storages: storages.clone(),
            next: next.clone(),
            results: results.clone(),
            scratch: Scratch { device: image.scratch, host: image.host_scratch },
        })
    }

    pub fn code_bytes(&self) -> usize {
        let condition = match &self.trips {
            DecodedTrips::While { condition, .. } => condition.code_bytes(),
            DecodedTrips::Counted { .. } => 0,
        };
        self.body.code_bytes() + condition + size_of::<Loop>()
    }

    pub fn scratch_bytes(&self) -> usize {
        let condition = match &self.trips {
            DecodedTrips::While { condition, .. } => condition.scratch_bytes(),
            DecodedTrips::Counted { .. } => 0,
        };
        self.body.scratch_bytes().max(condition)
    }

    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        let counter = AtomicU64::new(0);
        let mut storages = all(ready, buffers, &self.storages)?;
        for (&init, &storage) in self.inits.iter().zip(&storages) {
            // A scalar by value lies in a longer word.
            let init = one(ready, buffers, init)?.part(0, storage.bytes() as u64);
            let init = init.ok_or_else(|| malformed(ready.kernel, "a first value is too short"))?;
            if init != storage {
                storage.copy_from(init)?;
            }
        }
        let scratch = self.scratch.pointers(ready, buffers)?;
        let mut turn = Turn {
            looped: self,
            arguments: Arguments::new(ready, &self.arguments, buffers, &storages, &counter)?,
            spare: storages.clone(),
            pointers: Vec::new(),
            scratch,
        };
        match &self.trips {
            DecodedTrips::Counted { length, reverse } => {
                for done in 0..*length {
                    let at = if *reverse { length - 1 - done } else { done };
                    // The element is the word's first bytes in memory.
                    counter.store(u64::from(at as u32).to_le(), Ordering::Relaxed);
                    turn.iterate(ready, &mut storages)?;
                }
            }
            DecodedTrips::While { condition, arguments, holds } => {
                let holds = one(ready, buffers, *holds)?;
                let mut asked = Arguments::new(ready, arguments, buffers, &storages, &counter)?;
                while self.goes_on(ready, condition, &mut asked, holds, &storages, &mut turn)? {
                    turn.iterate(ready, &mut storages)?;
                }
            }
        }
        self.settle(ready, buffers, &mut storages)
    }

    /// Asks the condition.
    fn goes_on(
        &self,
        ready: &Ready,
        condition: &Routine,
        asked: &mut Arguments,
        holds: DevicePtr,
        storages: &[DevicePtr],
        turn: &mut Turn,
    ) -> Result<bool, LaunchError> {
        cancelled(ready.cancel)?;
        asked.follow(storages);
        let fresh = [holds];
        let places = Places { arguments: &asked.pointers, fresh: &fresh, scratch: turn.scratch };
        condition.run(ready, &places, &mut turn.pointers)?;
        let result = match condition.results[..] {
            [ResultSource::Fresh { .. }] => Some(holds),
            [ResultSource::Shared { argument }] => asked.pointers.get(argument as usize).copied(),
            _ => None,
        };
        let held = result.and_then(DevicePtr::read_bool);
        held.ok_or_else(|| malformed(ready.kernel, "the condition gives no bool"))
    }

    /// Brings every carry to its result's buffer.
    fn settle(
        &self,
        ready: &Ready,
        buffers: &[DevicePtr],
        storages: &mut [DevicePtr],
    ) -> Result<(), LaunchError> {
        for (carry, &result) in self.results.iter().enumerate() {
            let result = one(ready, buffers, result)?;
            if storages[carry] == result {
                continue;
            }
            let there = storages.iter().position(|&storage| storage == result);
            let there = there.ok_or_else(|| {
                malformed(ready.kernel, "a result's buffer is none of the carries'")
            })?;
            match there < self.inits.len() {
                true => result.swap_with(storages[carry])?,
                false => result.copy_from(storages[carry])?,
            }
            storages.swap(carry, there);
        }
        Ok(())
    }
}

/// What iterations use again.
struct Turn<'l> {
    looped: &'l Loop,
    arguments: Arguments,
    spare: Vec<DevicePtr>,
    pointers: Vec<DevicePtr>,
    scratch: Scratch<DevicePtr>,
}

impl Turn<'_> {
    /// Runs the body once; its carries then lie where `storages` says.
    fn iterate(&mut self, ready: &Ready, storages: &mut Vec<DevicePtr>) -> Result<(), LaunchError> {
        cancelled(ready.cancel)?;
        self.arguments.follow(storages);
        let places = Places {
            arguments: &self.arguments.pointers,
            fresh: &storages[self.looped.inits.len()..],
            scratch: self.scratch,
        };
        self.looped.body.run(ready, &places, &mut self.pointers)?;
        for (to, &from) in self.spare.iter_mut().zip(&self.looped.next) {
            *to = storages[from as usize];
        }
        std::mem::swap(storages, &mut self.spare);
        Ok(())
    }
}

/// A decoded branch.
#[derive(Debug)]
pub(super) struct Branch {
    condition: u32,
    on_true: Routine,
    on_false: Routine,
    arguments: Vec<u32>,
    results: Vec<u32>,
    scratch: Scratch<u32>,
}

impl Branch {
    pub fn new(kernel: &Kernel, image: &BranchImage, isa: Isa) -> Result<Branch, LaunchError> {
        let results = image.results.len();
        if [&image.on_true, &image.on_false].iter().any(|routine| routine.results.len() != results)
        {
            return Err(malformed(&kernel.name, "its branches do not give its results"));
        }
        Ok(Branch {
            condition: image.condition,
            on_true: Routine::new(&image.on_true, isa)?,
            on_false: Routine::new(&image.on_false, isa)?,
            arguments: image.arguments.clone(),
            results: image.results.clone(),
            scratch: Scratch { device: image.scratch, host: image.host_scratch },
        })
    }

    pub fn code_bytes(&self) -> usize {
        self.on_true.code_bytes() + self.on_false.code_bytes() + size_of::<Branch>()
    }

    pub fn scratch_bytes(&self) -> usize {
        self.on_true.scratch_bytes().max(self.on_false.scratch_bytes())
    }

    pub fn run(&self, ready: &Ready, buffers: &[DevicePtr]) -> Result<(), LaunchError> {
        cancelled(ready.cancel)?;
        let holds = one(ready, buffers, self.condition)?.read_bool();
        let holds = holds.ok_or_else(|| malformed(ready.kernel, "the condition is no bool"))?;
        let taken = if holds { &self.on_true } else { &self.on_false };
        let arguments = all(ready, buffers, &self.arguments)?;
        let results = all(ready, buffers, &self.results)?;
        let mut fresh: Vec<Option<DevicePtr>> = vec![None; taken.fresh];
        for (source, &result) in taken.results.iter().zip(&results) {
            if let ResultSource::Fresh { index } = *source
                && let Some(fresh) = fresh.get_mut(index as usize)
            {
                *fresh = Some(result);
            }
        }
        let fresh: Option<Vec<DevicePtr>> = fresh.into_iter().collect();
        let unused = || malformed(ready.kernel, "a fresh buffer is no result's");
        let fresh = fresh.ok_or_else(unused)?;
        let scratch = self.scratch.pointers(ready, buffers)?;
        let places = Places { arguments: &arguments, fresh: &fresh, scratch };
        taken.run(ready, &places, &mut Vec::new())?;
        for (source, &result) in taken.results.iter().zip(&results) {
            let from = match *source {
                ResultSource::Fresh { .. } => continue,
                ResultSource::Donated { argument } | ResultSource::Shared { argument } => {
                    arguments.get(argument as usize)
                }
                ResultSource::Same { result } => results.get(result as usize),
            };
            let from = from.copied().and_then(|from| from.part(0, result.bytes() as u64));
            let from =
                from.ok_or_else(|| malformed(ready.kernel, "a result comes from nowhere"))?;
            if from != result {
                result.copy_from(from)?;
            }
        }
        Ok(())
    }
}
