//! One run of a program: places for what it makes, the launches, the results. Either all of it happens, or nothing.

use crate::backend::fault_of;
use crate::buffers::StorageId;
use crate::cache::Compiled;
use crate::context::{Context, State, gone};
use crate::oom::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vramlab_device::{DeviceRange, HostBlock, LaunchError, Operand};
use vramlab_ir::kernel::{Place, ResultSource};
use vramlab_ir::{Argument, BufferId, ExecutableId, Fault, FaultKind, MemorySpace, Origin, Type};
use vramlab_memory::{Block, OwnerId, Stream};

/// Vectors that every run needs, kept from run to run.
#[derive(Default)]
pub(crate) struct Scratch {
    arguments: Vec<Resolved>,
    operands: Vec<Operand>,
}

/// An argument, looked up and checked.
#[derive(Clone, Copy)]
struct Resolved {
    source: Source,
    /// The claim that ends when the run succeeds.
    moved: Option<BufferId>,
    /// Index into the run's blocks of the copy that stands for the argument.
    copy: Option<usize>,
    /// The storage that a result made of the copy.
    became: Option<StorageId>,
}

#[derive(Clone, Copy)]
enum Source {
    Storage(StorageId),
    /// The word whose first bytes in memory are the element's.
    Scalar(u64),
}

/// The blocks of one run, by role; on failure all of them go back.
#[derive(Default)]
struct Blocks {
    /// Empty for results in host memory.
    fresh: Vec<Block>,
    fresh_host: Vec<Option<HostBlock>>,
    temporary: Option<Block>,
    /// Where values are that were offloaded.
    host: Option<HostBlock>,
    /// Copies of arguments that a kernel writes into and that somebody else holds.
    copies: Vec<Option<Block>>,
    /// The highest requested bytes so far.
    peak: u64,
    /// A loop without a known end was interrupted after arguments had been written into.
    lost: bool,
}

impl State {
    /// Runs a program once.
    pub fn execute(
        &mut self,
        context: &Context,
        executable: ExecutableId,
        arguments: &[Argument],
        origin: Origin,
        first_try: bool,
    ) -> Result<Vec<BufferId>, Stop> {
        let now_ns = context.clock.now();
        let Some(compiled) = self.cache.call(executable, now_ns, first_try) else {
            let message = "the executable left the compile cache";
            return Err(Stop::Fault(Fault::new(FaultKind::Evicted, "execute", message)));
        };
        let mut resolved = std::mem::take(&mut self.scratch.arguments);
        resolved.clear();
        let run = Run { context, compiled: &compiled, origin, now_ns };
        let result = self.run(&run, arguments, &mut resolved);
        self.scratch.arguments = resolved;
        let (results, peak) = result?;
        self.cache.measured(executable, peak);
        Ok(results)
    }
}

/// The moved arguments that kernels write into, where no copy stands for them.
fn overwritten<'r>(
    run: &'r Run<'_>,
    resolved: &'r [Resolved],
) -> impl Iterator<Item = BufferId> + 'r {
    let written = resolved.iter().zip(&run.compiled.written);
    let whole = |(argument, written): &(&Resolved, &bool)| **written && argument.copy.is_none();
    written.filter(whole).filter_map(|(argument, _)| argument.moved)
}

/// Host memory for a run: in no pool, so no rung of the ladder can help.
fn obtain_host(run: &Run<'_>, bytes: u64) -> Result<HostBlock, Stop> {
    run.context.backend.host_memory(bytes).map_err(|exhausted| {
        let fault = Fault::new(FaultKind::OutOfMemory, &*run.compiled.name, exhausted.to_string());
        Stop::Fault(fault.help("offload fewer values, or let the checkpoint compute them again"))
    })
}

struct Run<'a> {
    context: &'a Context,
    compiled: &'a Arc<Compiled>,
    origin: Origin,
    now_ns: u64,
}

impl State {
    fn run(
        &mut self,
        run: &Run<'_>,
        arguments: &[Argument],
        resolved: &mut Vec<Resolved>,
    ) -> Result<(Vec<BufferId>, u64), Stop> {
        self.resolve(run, arguments, resolved)?;
        self.set_site(run.origin);
        let begin = self.heap.ledger().totals().live_requested;
        let mut blocks = Blocks { peak: begin, ..Blocks::default() };
        let ran = self
            .allocate_all(run, resolved, &mut blocks)
            .and_then(|()| self.launch_all(run, resolved, &mut blocks));
        if let Err(stop) = ran {
            if blocks.lost {
                self.give_up_written(run, resolved);
            }
            self.give_back_all(blocks, run.now_ns);
            return Err(stop);
        }
        // Arguments count by parameter, as in the plan; what the run added was measured.
        let peak = run.compiled.argument_bytes() + (blocks.peak - begin);
        let results = self.make_results(run, resolved, blocks);
        Ok((results, peak))
    }

    /// Looks the arguments up. Types must agree, for kernels trust them.
    fn resolve(
        &self,
        run: &Run<'_>,
        arguments: &[Argument],
        resolved: &mut Vec<Resolved>,
    ) -> Result<(), Stop> {
        let compiled = run.compiled;
        let wrong = |kind, message| Err(Stop::Fault(Fault::new(kind, &*compiled.name, message)));
        let name = |index: usize| compiled.program.func.arg_name(index);
        if arguments.len() != compiled.params.len() {
            let (given, wanted) = (arguments.len(), compiled.params.len());
            return wrong(
                FaultKind::Argument,
                format!("{given} arguments for {wanted} parameters"),
            );
        }
        for (index, (argument, param)) in arguments.iter().zip(&compiled.params).enumerate() {
            let (source, moved) = match *argument {
                Argument::Scalar(literal) => {
                    if literal.dtype() != param.dtype || param.shape.elements() != 1 {
                        let message =
                            format!("{} is {} and {param} is wanted", name(index), literal.dtype());
                        return wrong(FaultKind::DType, message);
                    }
                    (Source::Scalar(literal.bits().to_le()), None)
                }
                Argument::Borrowed(id) | Argument::Donated(id) => {
                    let Some(claim) = self.buffers.get(id) else {
                        return Err(Stop::Fault(gone(&compiled.name)));
                    };
                    if claim.ty != *param {
                        let message =
                            format!("{} is {} and {param} is wanted", name(index), claim.ty);
                        return wrong(FaultKind::Shape, message);
                    }
                    let moved = matches!(argument, Argument::Donated(_)).then_some(id);
                    if moved.is_some() && resolved.iter().any(|other| other.moved == moved) {
                        let message = format!("{} is moved twice", name(index));
                        return wrong(FaultKind::Donated, message);
                    }
                    (Source::Storage(claim.storage), moved)
                }
            };
            resolved.push(Resolved { source, moved, copy: None, became: None });
        }
        Ok(())
    }

    /// Whether the argument's bytes may be overwritten: it was moved in, and nobody else holds them.
    fn is_sole(&self, resolved: &[Resolved], index: usize) -> bool {
        let Source::Storage(storage) = resolved[index].source else { return false };
        let again = |other: &Resolved| matches!(other.source, Source::Storage(s) if s == storage);
        resolved[index].moved.is_some()
            && !self.buffers.storage(storage).is_shared()
            && resolved.iter().filter(|other| again(other)).count() == 1
    }

    fn allocate_all(
        &mut self,
        run: &Run<'_>,
        resolved: &mut [Resolved],
        blocks: &mut Blocks,
    ) -> Result<(), Stop> {
        let owner = self.made_in(run.origin);
        let program = &run.compiled.program;
        for (&bytes, memory) in program.fresh_bytes.iter().zip(&program.fresh_memory) {
            let (block, host) = match memory {
                MemorySpace::Device => (self.obtain(run, bytes, owner, blocks)?, None),
                MemorySpace::PinnedHost => (Block::empty(), Some(obtain_host(run, bytes)?)),
            };
            blocks.fresh.push(block);
            blocks.fresh_host.push(host);
        }
        for index in 0..resolved.len() {
            let scalar = matches!(resolved[index].source, Source::Scalar(_));
            let needed = run.compiled.written[index] || scalar && run.compiled.passed_on[index];
            if needed && !self.is_sole(resolved, index) {
                let block = self.obtain(run, run.compiled.params[index].bytes(), owner, blocks)?;
                resolved[index].copy = Some(blocks.copies.len());
                blocks.copies.push(Some(block));
            }
        }
        let temp_bytes = program.temp_bytes;
        if temp_bytes > 0 {
            let block = self.obtain(run, temp_bytes, run.compiled.temporary, blocks)?;
            blocks.temporary = Some(block);
        }
        // Last: when the device has no room, no host memory was pinned for nothing.
        if program.host_temp_bytes > 0 {
            blocks.host = Some(obtain_host(run, program.host_temp_bytes)?);
        }
        Ok(())
    }

    fn obtain(
        &mut self,
        run: &Run<'_>,
        bytes: u64,
        owner: OwnerId,
        blocks: &mut Blocks,
    ) -> Result<Block, Stop> {
        let block = self.place(run.context, &run.compiled.name, bytes, owner, run.now_ns)?;
        blocks.peak = blocks.peak.max(self.heap.ledger().totals().live_requested);
        Ok(block)
    }

    fn give_back_all(&mut self, blocks: Blocks, now_ns: u64) {
        let copies = blocks.copies.into_iter().flatten();
        for block in blocks.fresh.into_iter().chain(blocks.temporary).chain(copies) {
            self.heap.deallocate(block, Stream(0), now_ns);
        }
    }

    fn launch_all(
        &mut self,
        run: &Run<'_>,
        resolved: &[Resolved],
        blocks: &mut Blocks,
    ) -> Result<(), Stop> {
        if run.context.interrupt().load(Ordering::Relaxed) {
            return Err(Stop::Fault(fault_of(&run.compiled.name, &LaunchError::Interrupted)));
        }
        let compiled = run.compiled;
        self.work.count(compiled);
        if run.context.is_dry() {
            return Ok(());
        }
        self.copy_shared(run, resolved, blocks);
        let mut operands = std::mem::take(&mut self.scratch.operands);
        let mut result = Ok(());
        // Once an argument is being overwritten, only the end of the run leaves a whole array behind. A loop whose
        // end is not known must be left all the same.
        let (never, flag) = (AtomicBool::new(false), run.context.interrupt());
        let kernels = compiled.program.kernels.iter().zip(&compiled.launches);
        for (index, (kernel, launch)) in kernels.enumerate() {
            let slots = kernel.buffers.iter().map(|&slot| &compiled.program.slots[slot as usize]);
            operands.clear();
            operands.extend(slots.map(|slot| self.locate(slot.place, &slot.ty, resolved, blocks)));
            let whole = index < compiled.point_of_no_return;
            let cancel = if whole || !kernel.is_bounded() { flag } else { &never };
            result = launch.run_on(&operands, cancel);
            if result.is_err() {
                blocks.lost = !kernel.is_bounded() && index >= compiled.point_of_no_return;
                break;
            }
        }
        self.scratch.operands = operands;
        result.map_err(|error| Stop::Fault(self.fault_of_run(run, resolved, blocks, &error)))
    }

    fn fault_of_run(
        &self,
        run: &Run<'_>,
        resolved: &[Resolved],
        blocks: &Blocks,
        error: &LaunchError,
    ) -> Fault {
        let lost: Vec<String> = match blocks.lost {
            true => overwritten(run, resolved).flat_map(|moved| self.owners_of(moved)).collect(),
            false => Vec::new(),
        };
        if lost.is_empty() {
            return fault_of(&run.compiled.name, error);
        }
        let message = format!(
            "interrupted in a loop whose end is not known, while it wrote over what was moved into it: {} \
             ended with it",
            lost.join(", ")
        );
        Fault::new(FaultKind::Interrupted, run.compiled.name.clone(), message)
            .help("pass it as `&x`, and it stays as it is")
    }

    fn owners_of(&self, moved: BufferId) -> Option<String> {
        let claim = self.buffers.get(moved)?;
        Some(crate::owners::of_claim(claim).to_string())
    }

    /// Ends the claims on arguments that were partly overwritten.
    fn give_up_written(&mut self, run: &Run<'_>, resolved: &[Resolved]) {
        for moved in overwritten(run, resolved).collect::<Vec<_>>() {
            self.release(moved, run.now_ns);
        }
    }

    fn copy_shared(&self, run: &Run<'_>, resolved: &[Resolved], blocks: &Blocks) {
        for (argument, ty) in resolved.iter().zip(&run.compiled.params) {
            let Some(copy) = argument.copy.and_then(|index| blocks.copies[index].as_ref()) else {
                continue;
            };
            match &argument.source {
                Source::Storage(storage) => {
                    let from = &self.buffers.storage(*storage).block;
                    run.context.backend.copy(from, copy, ty.bytes());
                }
                Source::Scalar(word) => {
                    run.context.backend.write(copy, &word.to_ne_bytes()[..ty.dtype.size()]);
                }
            }
        }
    }

    fn locate(&self, place: Place, ty: &Type, resolved: &[Resolved], blocks: &Blocks) -> Operand {
        let at = |block: &Block, offset: u64| {
            Operand::Memory(DeviceRange::new(block.address() + offset, ty.bytes()))
        };
        match place {
            Place::Result { index } => match &blocks.fresh_host[index as usize] {
                Some(host) => Operand::Host(host.part(0, ty.bytes())),
                None => at(&blocks.fresh[index as usize], 0),
            },
            Place::Host { offset } => {
                let host = blocks.host.as_ref();
                let host = host.expect("a program that offloads has a block of host memory");
                Operand::Host(host.part(offset, ty.bytes()))
            }
            Place::Temporary { offset } => {
                let block = blocks.temporary.as_ref();
                at(block.expect("a program with temporaries has a temporary block"), offset)
            }
            Place::Argument { index } => {
                let argument = &resolved[index as usize];
                match (argument.copy, argument.source) {
                    (Some(copy), _) => {
                        at(blocks.copies[copy].as_ref().expect("copies live through the run"), 0)
                    }
                    (None, Source::Storage(storage)) => {
                        let storage = self.buffers.storage(storage);
                        match &storage.host {
                            Some(host) => Operand::Host(host.part(0, ty.bytes())),
                            None => at(&storage.block, 0),
                        }
                    }
                    (None, Source::Scalar(word)) => Operand::Scalar(word),
                }
            }
        }
    }

    fn make_results(
        &mut self,
        run: &Run<'_>,
        resolved: &mut [Resolved],
        mut blocks: Blocks,
    ) -> Vec<BufferId> {
        if let Some(block) = blocks.temporary.take() {
            self.heap.deallocate(block, Stream(0), run.now_ns);
        }
        self.note_copies(run, resolved);
        let mut fresh: Vec<Option<Block>> = blocks.fresh.into_iter().map(Some).collect();
        let mut results: Vec<BufferId> = Vec::with_capacity(run.compiled.results.len());
        for (source, ty) in run.compiled.program.results.iter().zip(&run.compiled.results) {
            let ty = ty.clone();
            let id = match *source {
                ResultSource::Fresh { index } => {
                    let index = index as usize;
                    let block = fresh[index].take().expect("a fresh buffer is one result's");
                    match blocks.fresh_host[index].take() {
                        Some(host) => self.buffers.insert_host(host, ty, run.origin),
                        None => self.buffers.insert(block, ty, run.origin),
                    }
                }
                ResultSource::Same { result } => {
                    let first = self.buffers.get(results[result as usize]);
                    let storage = first.expect("an earlier result is live").storage;
                    self.buffers.share(storage, ty, run.origin)
                }
                ResultSource::Donated { argument } | ResultSource::Shared { argument } => {
                    self.pass_on(run, resolved, &mut blocks.copies, argument as usize, ty)
                }
            };
            results.push(id);
        }
        for block in blocks.copies.into_iter().flatten() {
            self.heap.deallocate(block, Stream(0), run.now_ns);
        }
        for argument in resolved.iter() {
            if let Some(moved) = argument.moved {
                self.release(moved, run.now_ns);
            }
        }
        results
    }

    /// A result that is an argument's bytes: the copy, when one stood for it, or one more claim.
    fn pass_on(
        &mut self,
        run: &Run<'_>,
        resolved: &mut [Resolved],
        copies: &mut [Option<Block>],
        argument: usize,
        ty: Type,
    ) -> BufferId {
        let argument = &mut resolved[argument];
        if let Some(block) = argument.copy.and_then(|index| copies[index].take()) {
            let id = self.buffers.insert(block, ty, run.origin);
            argument.became = self.buffers.get(id).map(|claim| claim.storage);
            return id;
        }
        match (argument.became, argument.source) {
            // A moved argument's own claim ends after this one begins: the buffer changes hands.
            (Some(storage), _) | (None, Source::Storage(storage)) => {
                self.buffers.share(storage, ty, run.origin)
            }
            (None, Source::Scalar(_)) => unreachable!("scalars that are passed on have a copy"),
        }
    }

    /// A moved argument whose bytes had to be copied: the user would not expect the memory, so say who holds them.
    fn note_copies(&mut self, run: &Run<'_>, resolved: &[Resolved]) {
        for argument in resolved {
            let (Some(moved), Some(_)) = (argument.moved, argument.copy) else { continue };
            let Source::Storage(storage) = argument.source else { continue };
            let claims: Vec<BufferId> = self.buffers.storage(storage).claims().collect();
            let others = claims.into_iter().filter(|&id| id != moved);
            let others: Vec<String> = others
                .filter_map(|id| self.buffers.get(id))
                .map(|claim| crate::owners::of_claim(claim).to_string())
                .collect();
            let bytes = self.buffers.storage(storage).block.requested();
            let held = match others.len() {
                0 => "another argument of the call".to_string(),
                _ => others.join(", "),
            };
            self.notes.push(format!(
                "{}: a moved argument of {} was copied, because {held} also holds it",
                run.compiled.name,
                vramlab_memory::format_bytes(bytes)
            ));
        }
    }

    /// A new array from host bytes.
    pub fn upload(
        &mut self,
        context: &Context,
        ty: &Type,
        bytes: &[u8],
        origin: Origin,
    ) -> Result<BufferId, Stop> {
        let now_ns = context.clock.now();
        self.set_site(origin);
        let owner = self.made_in(origin);
        let block = self.place(context, "upload", ty.bytes(), owner, now_ns)?;
        if !context.is_dry() {
            context.backend.write(&block, bytes);
        }
        Ok(self.buffers.insert(block, ty.clone(), origin))
    }
}
