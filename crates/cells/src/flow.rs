//! The flow check: initialisation, moves, mutability and borrows on every path of a body. Borrows
//! are non-lexical: a loan lasts while something that may hold its reference is used later.

use crate::code::{
    Draft, Entry, GLOBAL, Held, Inst, Invalid, Operand, Place, Slot, SlotFacts, Step,
};
use crate::diagnostic::Diagnostic;
use crate::hir::Binding;
use crate::ir::Span;
use crate::ty::Ty;
use std::collections::{HashMap, HashSet};

/// What an instruction does to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Copy,
    Move,
    Write,
    Borrow,
    BorrowMut,
    Drop,
    /// Named, but neither read nor moved.
    Look,
}

/// Every place of an instruction, reads before writes.
pub fn visit_places(inst: &Inst, see: &mut dyn FnMut(&Place, Access)) {
    let operand = |operand: &Operand, see: &mut dyn FnMut(&Place, Access)| match operand {
        Operand::Copy(place) => see(place, Access::Copy),
        Operand::Move(place) => see(place, Access::Move),
        Operand::Const(_) => {}
    };
    let all = |operands: &[Operand], see: &mut dyn FnMut(&Place, Access)| {
        for one in operands {
            operand(one, see);
        }
    };
    let borrow = |mutable: bool| if mutable { Access::BorrowMut } else { Access::Borrow };
    let mut dest = None;
    match inst {
        Inst::Nop | Inst::Jump(_) | Inst::Static { .. } => {}
        Inst::Set { place, value } => {
            operand(value, see);
            see(place, Access::Write);
        }
        Inst::Ref { dest: to, place, mutable } => {
            see(place, borrow(*mutable));
            dest = Some(*to);
        }
        Inst::SliceOf { dest: to, place, range, mutable } => {
            operand(range, see);
            see(place, borrow(*mutable));
            dest = Some(*to);
        }
        Inst::Rest { dest: to, place, by, .. } => {
            see(
                place,
                match by {
                    Binding::Value => Access::Copy,
                    Binding::Ref => Access::Borrow,
                    Binding::Mut => Access::BorrowMut,
                },
            );
            dest = Some(*to);
        }
        Inst::Binary { dest: to, left, right, .. }
        | Inst::ArrayBinary { dest: to, left, right, .. } => {
            operand(left, see);
            operand(right, see);
            dest = Some(*to);
        }
        Inst::Not { dest: to, value, .. }
        | Inst::Negate { dest: to, value, .. }
        | Inst::Cast { dest: to, value, .. }
        | Inst::Some { dest: to, value }
        | Inst::ArrayNegate { dest: to, value }
        | Inst::Iterate { dest: to, value } => {
            operand(value, see);
            dest = Some(*to);
        }
        Inst::Tuple { dest: to, parts } | Inst::List { dest: to, parts } => {
            all(parts, see);
            dest = Some(*to);
        }
        Inst::Range { dest: to, start, end, .. } => {
            start.iter().chain(end).for_each(|one| operand(one, see));
            dest = Some(*to);
        }
        Inst::Repeat { dest: to, value, count } => {
            operand(value, see);
            operand(count, see);
            dest = Some(*to);
        }
        Inst::Closure { dest: to, captures, .. } => {
            all(captures, see);
            dest = Some(*to);
        }
        Inst::Member { dest: to, place, .. } => {
            see(place, Access::Copy);
            dest = Some(*to);
        }
        Inst::Call { dest: to, args, .. }
        | Inst::CallLibrary { dest: to, args, .. }
        | Inst::CallSurface { dest: to, args, .. } => {
            all(args, see);
            dest = Some(*to);
        }
        Inst::CallValue { dest: to, callee, args } => {
            operand(callee, see);
            all(args, see);
            dest = Some(*to);
        }
        Inst::Next { iter, dest: to, .. } => {
            see(&Place::slot(*iter), Access::Copy);
            dest = Some(*to);
        }
        Inst::Unless { condition, .. } => operand(condition, see),
        Inst::Test { place, .. } => see(place, Access::Copy),
        Inst::Format { dest: to, values, .. } => {
            all(values, see);
            dest = Some(*to);
        }
        Inst::Print { text, .. } | Inst::Panic { text } => operand(text, see),
        Inst::Unequal { left, right, text, .. } => {
            operand(left, see);
            operand(right, see);
            text.iter().for_each(|one| operand(one, see));
        }
        Inst::Drop(slot) => see(&Place::slot(*slot), Access::Drop),
        Inst::Bound { place, .. } | Inst::Look(place) | Inst::Count { list: place, .. } => {
            see(place, Access::Look);
        }
        Inst::Return(value) => operand(value, see),
    }
    if let Some(dest) = dest {
        see(&Place::slot(dest), Access::Write);
    }
}

/// Renumbers the frame's slots; places of slots marked `behind` are looked through first.
pub fn rename(inst: &mut Inst, renumber: &[Slot], behind: &[bool]) {
    let slot = |slot: &mut Slot| {
        if *slot & GLOBAL == 0 {
            *slot = renumber[*slot as usize];
        }
    };
    let place = |place: &mut Place| {
        let through = place.slot & GLOBAL == 0 && behind[place.slot as usize];
        slot(&mut place.slot);
        for step in &mut place.steps {
            if let Step::Index(index) = step {
                slot(index);
            }
        }
        if through {
            place.steps.insert(0, Step::Deref);
        }
    };
    parts_mut(inst, &place, &slot);
}

/// Every place of the instruction, to be changed.
pub fn places_mut(inst: &mut Inst, change: &mut dyn FnMut(&mut Place)) {
    let change = std::cell::RefCell::new(change);
    parts_mut(inst, &|place| (change.borrow_mut())(place), &|_| {});
}

fn parts_mut(inst: &mut Inst, place: &dyn Fn(&mut Place), slot: &dyn Fn(&mut Slot)) {
    let operand = |operand: &mut Operand| match operand {
        Operand::Copy(own) | Operand::Move(own) => place(own),
        Operand::Const(_) => {}
    };
    match inst {
        Inst::Nop | Inst::Jump(_) => {}
        Inst::Set { place: own, value } => {
            place(own);
            operand(value);
        }
        Inst::Ref { dest, place: own, .. }
        | Inst::Member { dest, place: own, .. }
        | Inst::Rest { dest, place: own, .. } => {
            slot(dest);
            place(own);
        }
        Inst::SliceOf { dest, place: own, range, .. } => {
            slot(dest);
            place(own);
            operand(range);
        }
        Inst::Binary { dest, left, right, .. } | Inst::ArrayBinary { dest, left, right, .. } => {
            slot(dest);
            operand(left);
            operand(right);
        }
        Inst::Not { dest, value, .. }
        | Inst::Negate { dest, value, .. }
        | Inst::Cast { dest, value, .. }
        | Inst::Some { dest, value }
        | Inst::ArrayNegate { dest, value }
        | Inst::Iterate { dest, value } => {
            slot(dest);
            operand(value);
        }
        Inst::Tuple { dest, parts } | Inst::List { dest, parts } => {
            slot(dest);
            parts.iter_mut().for_each(operand);
        }
        Inst::Range { dest, start, end, .. } => {
            slot(dest);
            start.iter_mut().chain(end).for_each(operand);
        }
        Inst::Repeat { dest, value, count } => {
            slot(dest);
            operand(value);
            operand(count);
        }
        Inst::Closure { dest, captures, .. } => {
            slot(dest);
            captures.iter_mut().for_each(operand);
        }
        Inst::Call { dest, args, .. }
        | Inst::CallLibrary { dest, args, .. }
        | Inst::CallSurface { dest, args, .. } => {
            slot(dest);
            args.iter_mut().for_each(operand);
        }
        Inst::CallValue { dest, callee, args } => {
            slot(dest);
            operand(callee);
            args.iter_mut().for_each(operand);
        }
        Inst::Next { iter, dest, .. } => {
            slot(iter);
            slot(dest);
        }
        Inst::Unless { condition, .. } => operand(condition),
        Inst::Test { place: own, .. } => place(own),
        Inst::Format { dest, values, .. } => {
            slot(dest);
            values.iter_mut().for_each(operand);
        }
        Inst::Print { text, .. } | Inst::Panic { text } => operand(text),
        Inst::Unequal { left, right, text, .. } => {
            operand(left);
            operand(right);
            text.iter_mut().for_each(operand);
        }
        Inst::Drop(own) | Inst::Static { slot: own, .. } => slot(own),
        Inst::Bound { place: own, .. } | Inst::Look(own) | Inst::Count { list: own, .. } => {
            place(own);
        }
        Inst::Return(value) => operand(value),
    }
}

/// More table cells than this are refused: the check must stay quick.
const LARGEST_TABLE: usize = 400_000_000;

/// Checks a body. What comes out is what is known about the globals at its end.
///
/// # Errors
/// The first fault of flow, under rustc's code.
pub fn check(draft: &Draft, cell: u32) -> Result<Vec<(u32, Held)>, Box<Diagnostic>> {
    let mut flow = Flow::new(draft, cell);
    if flow.paths.len() * flow.blocks.len() > LARGEST_TABLE {
        return Err(Diagnostic::unsupported(
            Span::default(),
            "a cell of this size; split it into smaller cells",
        ));
    }
    if let Some(fault) = broken_reference(draft) {
        return Err(fault);
    }
    flow.solve();
    flow.check_states()?;
    flow.check_loans()?;
    Ok(flow.outcome())
}

#[derive(Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Bits {
        Bits(vec![0; count.div_ceil(64)])
    }

    fn get(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    fn put(&mut self, index: usize, value: bool) {
        let bit = 1 << (index % 64);
        if value {
            self.0[index / 64] |= bit;
        } else {
            self.0[index / 64] &= !bit;
        }
    }

    /// Adds the other's bits: whether anything was new.
    fn join(&mut self, other: &Bits) -> bool {
        let mut changed = false;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            changed |= *other & !*own != 0;
            *own |= other;
        }
        changed
    }
}

/// A variable, or a part of one that is moved by itself.
struct Path {
    var: usize,
    children: Vec<u32>,
}

struct BasicBlock {
    start: usize,
    end: usize,
    next: Vec<usize>,
}

struct Loan {
    /// `None`: held since an earlier cell.
    point: Option<usize>,
    place: Place,
    mutable: bool,
    holder: usize,
}

/// The two states before an instruction, per path: it may be gone, it may be there.
#[derive(Clone)]
struct State {
    gone: Bits,
    there: Bits,
    /// It was given a value since its declaration, whatever became of that.
    ever: Bits,
}

struct Flow<'d> {
    draft: &'d Draft,
    cell: u32,
    facts: Vec<&'d SlotFacts>,
    globals: HashMap<Slot, usize>,
    paths: Vec<Path>,
    by_var: Vec<Vec<usize>>,
    path_ids: HashMap<(usize, Vec<u32>), usize>,
    blocks: Vec<BasicBlock>,
    block_of: Vec<usize>,
    entry: Vec<Option<State>>,
    reachable: Vec<bool>,
    at_end: Option<State>,
    loans: Vec<Loan>,
    invalid: HashMap<usize, Invalid>,
}

impl<'d> Flow<'d> {
    fn new(draft: &'d Draft, cell: u32) -> Flow<'d> {
        let mut facts: Vec<&SlotFacts> = draft.slots.iter().collect();
        let mut globals = HashMap::new();
        for (slot, own) in &draft.globals {
            globals.insert(*slot, facts.len());
            facts.push(own);
        }
        let mut flow = Flow {
            draft,
            cell,
            facts,
            globals,
            paths: Vec::new(),
            by_var: Vec::new(),
            path_ids: HashMap::new(),
            blocks: Vec::new(),
            block_of: Vec::new(),
            entry: Vec::new(),
            reachable: Vec::new(),
            at_end: None,
            loans: Vec::new(),
            invalid: HashMap::new(),
        };
        flow.by_var = vec![Vec::new(); flow.facts.len()];
        for var in 0..flow.facts.len() {
            flow.path(var, Vec::new());
        }
        for inst in &draft.insts {
            visit_places(inst, &mut |place, access| {
                if matches!(access, Access::Move | Access::Write)
                    && !place.steps.is_empty()
                    && let Some(children) = whole_children(place)
                {
                    let var = flow.var(place.slot);
                    flow.path(var, children);
                }
            });
        }
        flow.find_blocks();
        flow
    }

    fn var(&self, slot: Slot) -> usize {
        if slot & GLOBAL != 0 { self.globals[&slot] } else { slot as usize }
    }

    fn path(&mut self, var: usize, children: Vec<u32>) -> usize {
        if let Some(id) = self.path_ids.get(&(var, children.clone())) {
            return *id;
        }
        let id = self.paths.len();
        self.paths.push(Path { var, children: children.clone() });
        self.by_var[var].push(id);
        self.path_ids.insert((var, children), id);
        id
    }

    fn successors(&self, at: usize) -> Vec<usize> {
        match &self.draft.insts[at] {
            Inst::Jump(target) => vec![*target as usize],
            Inst::Unless { target, .. } => vec![at + 1, *target as usize],
            Inst::Test { otherwise, .. } => vec![at + 1, *otherwise as usize],
            Inst::Next { exit, .. } => vec![at + 1, *exit as usize],
            Inst::Return(_) | Inst::Panic { .. } | Inst::Unequal { .. } => Vec::new(),
            _ => vec![at + 1],
        }
    }

    fn find_blocks(&mut self) {
        let count = self.draft.insts.len();
        let mut leader = vec![false; count + 1];
        leader[0] = true;
        for at in 0..count {
            let next = self.successors(at);
            if next.len() != 1 || next[0] != at + 1 {
                leader[at + 1] = true;
                for target in next {
                    leader[target.min(count)] = true;
                }
            }
        }
        let mut start = 0;
        for (at, leads) in leader.iter().enumerate().skip(1) {
            if *leads || at == count {
                self.blocks.push(BasicBlock { start, end: at, next: Vec::new() });
                start = at;
            }
        }
        self.block_of = vec![0; count + 1];
        for (index, block) in self.blocks.iter().enumerate() {
            self.block_of[block.start..block.end].fill(index);
        }
        for index in 0..self.blocks.len() {
            let last = self.blocks[index].end - 1;
            let next = self.successors(last);
            self.blocks[index].next =
                next.into_iter().filter(|at| *at < count).map(|at| self.block_of[at]).collect();
        }
    }

    fn start_state(&self) -> State {
        let count = self.paths.len();
        let (gone, there, ever) = (Bits::new(count), Bits::new(count), Bits::new(count));
        let mut state = State { gone, there, ever };
        for (id, path) in self.paths.iter().enumerate() {
            let there = match &self.facts[path.var].entry {
                Entry::No => false,
                Entry::Argument | Entry::Capture { .. } => true,
                Entry::Earlier { held, .. } => held.moved.is_none(),
            };
            state.gone.put(id, !there);
            state.there.put(id, there);
            state.ever.put(id, !matches!(self.facts[path.var].entry, Entry::No));
        }
        state
    }

    fn solve(&mut self) {
        let count = self.blocks.len();
        self.entry = vec![None; count];
        if count == 0 {
            return;
        }
        self.entry[0] = Some(self.start_state());
        let mut work = vec![0];
        while let Some(block) = work.pop() {
            let Some(mut state) = self.entry[block].clone() else { continue };
            for at in self.blocks[block].start..self.blocks[block].end {
                self.step(&self.draft.insts[at], &mut state);
            }
            for next in self.blocks[block].next.clone() {
                let changed = match &mut self.entry[next] {
                    Some(known) => {
                        let gone = known.gone.join(&state.gone);
                        let ever = known.ever.join(&state.ever);
                        known.there.join(&state.there) || gone || ever
                    }
                    slot => {
                        *slot = Some(state.clone());
                        true
                    }
                };
                if changed {
                    work.push(next);
                }
            }
        }
        self.reachable = self.entry.iter().map(Option::is_some).collect();
    }

    /// The state after the instruction.
    fn step(&self, inst: &Inst, state: &mut State) {
        visit_places(inst, &mut |place, access| match access {
            Access::Move => {
                if let Some(children) = whole_children(place) {
                    self.mark(place.slot, &children, state, true);
                }
            }
            Access::Write => {
                if let Some(children) = whole_children(place) {
                    self.mark(place.slot, &children, state, false);
                    self.mark_ever(place.slot, state, true);
                }
            }
            Access::Drop => {
                self.mark(place.slot, &[], state, true);
                self.mark_ever(place.slot, state, false);
            }
            _ => {}
        });
    }

    fn mark_ever(&self, slot: Slot, state: &mut State, ever: bool) {
        let id = self.path_ids[&(self.var(slot), Vec::new())];
        state.ever.put(id, ever);
    }

    fn mark(&self, slot: Slot, children: &[u32], state: &mut State, gone: bool) {
        let var = self.var(slot);
        for id in &self.by_var[var] {
            if self.paths[*id].children.starts_with(children) {
                state.gone.put(*id, gone);
                state.there.put(*id, !gone);
            }
        }
    }

    fn gone(&self, place: &Place, state: &State) -> bool {
        let children = leading_children(place);
        let var = self.var(place.slot);
        self.by_var[var].iter().any(|id| {
            let own = &self.paths[*id].children;
            (own.starts_with(&children) || children.starts_with(own)) && state.gone.get(*id)
        })
    }

    /// Every use finds its value there; every write is allowed.
    fn check_states(&mut self) -> Result<(), Box<Diagnostic>> {
        for block in 0..self.blocks.len() {
            let Some(mut state) = self.entry[block].clone() else { continue };
            for at in self.blocks[block].start..self.blocks[block].end {
                let inst = &self.draft.insts[at];
                let mut fault = None;
                // Operands of one instruction are used one after the other.
                let mut moved: Vec<Place> = Vec::new();
                visit_places(inst, &mut |place, access| {
                    if fault.is_some() {
                        return;
                    }
                    let again = moved
                        .iter()
                        .any(|own| own.slot == place.slot && overlap(&own.steps, &place.steps));
                    fault = if again && !matches!(access, Access::Write | Access::Drop) {
                        Some(self.use_of_gone(at, place, access))
                    } else {
                        self.judge(at, place, access, &state)
                    };
                    if access == Access::Move && whole_children(place).is_some() {
                        moved.push(place.clone());
                    }
                });
                if let Some(fault) = fault {
                    return Err(fault);
                }
                if matches!(inst, Inst::Return(_)) {
                    match &mut self.at_end {
                        Some(end) => {
                            end.gone.join(&state.gone);
                            end.there.join(&state.there);
                        }
                        slot => *slot = Some(state.clone()),
                    }
                }
                self.step(inst, &mut state);
            }
        }
        Ok(())
    }

    fn judge(
        &self,
        at: usize,
        place: &Place,
        access: Access,
        state: &State,
    ) -> Option<Box<Diagnostic>> {
        for step in &place.steps {
            if let Step::Index(slot) = step
                && self.gone(&Place::slot(*slot), state)
            {
                return Some(self.use_of_gone(at, &Place::slot(*slot), Access::Copy));
            }
        }
        match access {
            Access::Drop => None,
            Access::Look => {
                if matches!(self.draft.insts[at], Inst::Bound { .. }) {
                    return None;
                }
                self.gone(place, state).then(|| self.use_of_gone(at, place, access))
            }
            Access::Write => {
                if !place.steps.is_empty() {
                    // A part can only be written where the whole is.
                    let mut base = place.clone();
                    if whole_children(place).is_some() {
                        base.steps.pop();
                    }
                    let missing = match whole_children(place) {
                        Some(_) => self.prefix_gone(&base, state),
                        None => self.gone(place, state),
                    };
                    if missing {
                        return Some(self.use_of_gone(at, place, Access::Write));
                    }
                }
                self.judge_write(at, place, state)
            }
            Access::Copy | Access::Move | Access::Borrow | Access::BorrowMut => {
                if self.gone(place, state) {
                    return Some(self.use_of_gone(at, place, access));
                }
                if access == Access::BorrowMut {
                    return self.judge_borrow(at, place);
                }
                None
            }
        }
    }

    fn prefix_gone(&self, place: &Place, state: &State) -> bool {
        let children = leading_children(place);
        let var = self.var(place.slot);
        self.by_var[var]
            .iter()
            .any(|id| children.starts_with(&self.paths[*id].children) && state.gone.get(*id))
    }

    /// The reference that makes the place unwritable, as (its text, it is captured by reference).
    fn shared_step(&self, place: &Place) -> Option<String> {
        let facts = self.facts[self.var(place.slot)];
        let mut ty = facts.ty.clone();
        let mut text = facts.name.clone().unwrap_or_else(|| "value".into());
        for step in &place.steps {
            match step {
                Step::Deref => {
                    let Ty::Ref(mutable, to) = &ty else { return None };
                    if !mutable {
                        return Some(text);
                    }
                    ty = (**to).clone();
                    text = format!("*{text}");
                }
                other => ty = step_ty(&ty, *other)?,
            }
        }
        None
    }

    fn judge_write(&self, at: usize, place: &Place, state: &State) -> Option<Box<Diagnostic>> {
        let var = self.var(place.slot);
        let facts = self.facts[var];
        let span = self.draft.spans[at];
        if let Some(reference) = self.shared_step(place) {
            if self.steps_through_vec(place) {
                return self.judge_borrow(at, place);
            }
            let name = self.place_text(place);
            return Some(
                Diagnostic::check(
                    "E0594",
                    span,
                    format!("cannot assign to {name}, which is behind a `&` reference"),
                )
                .label(format!(
                    "`{reference}` is a `&` reference, so the data it refers to cannot be written"
                )),
            );
        }
        let behind_mut = place.steps.contains(&Step::Deref);
        let name = facts.name.as_ref()?;
        match &facts.entry {
            Entry::Capture { by_reference } => {
                let own = !by_reference && behind_mut;
                if facts.mutable || own {
                    return None;
                }
                return Some(self.not_mutable("E0594", span, name, "assign to", facts));
            }
            _ if facts.mutable || behind_mut => return None,
            _ => {}
        }
        if place.steps.is_empty() {
            let id = self.path_ids[&(var, Vec::new())];
            if !state.ever.get(id) {
                return None;
            }
            let what = match facts.entry {
                Entry::Argument => "cannot assign to immutable argument",
                _ => "cannot assign twice to immutable variable",
            };
            return Some(
                self.note_declared(
                    Diagnostic::check("E0384", span, format!("{what} `{name}`"))
                        .label(what.to_string())
                        .help(format!("consider making this binding mutable: `mut {name}`")),
                    facts,
                    "first assignment here",
                ),
            );
        }
        let indexed = place.steps.iter().any(|step| matches!(step, Step::Index(_) | Step::At(_)));
        if indexed && self.steps_through_vec(place) {
            return Some(self.not_mutable("E0596", span, name, "borrow", facts));
        }
        Some(self.not_mutable("E0594", span, name, "assign to", facts))
    }

    /// Indexing a `Vec` borrows it; indexing an array does not.
    fn steps_through_vec(&self, place: &Place) -> bool {
        let mut ty = self.facts[self.var(place.slot)].ty.clone();
        for step in &place.steps {
            if matches!(step, Step::Index(_) | Step::At(_)) && ty.is_named("Vec") {
                return true;
            }
            let Some(next) = step_ty(&ty, *step) else { return false };
            ty = next;
        }
        false
    }

    fn judge_borrow(&self, at: usize, place: &Place) -> Option<Box<Diagnostic>> {
        let facts = self.facts[self.var(place.slot)];
        let span = self.draft.spans[at];
        if let Some(reference) = self.shared_step(place) {
            let name = self.place_text(place);
            return Some(
                Diagnostic::check(
                    "E0596",
                    span,
                    format!("cannot borrow {name} as mutable, as it is behind a `&` reference"),
                )
                .label(format!(
                    "`{reference}` is a `&` reference, so the data it refers to cannot be \
                     borrowed as mutable"
                )),
            );
        }
        let name = facts.name.as_ref()?;
        let behind_mut = place.steps.contains(&Step::Deref);
        let allowed = match &facts.entry {
            Entry::Capture { by_reference: true } => facts.mutable,
            _ => facts.mutable || behind_mut,
        };
        if allowed {
            return None;
        }
        Some(self.not_mutable("E0596", span, name, "borrow", facts))
    }

    fn not_mutable(
        &self,
        code: &'static str,
        span: Span,
        name: &str,
        verb: &str,
        facts: &SlotFacts,
    ) -> Box<Diagnostic> {
        let message = match verb {
            "borrow" => {
                format!("cannot borrow `{name}` as mutable, as it is not declared as mutable")
            }
            _ => format!("cannot {verb} `{name}`, as it is not declared as mutable"),
        };
        let label = match verb {
            "borrow" => "cannot borrow as mutable",
            _ => "cannot assign",
        };
        let help = format!("consider changing this to be mutable: `mut {name}`");
        self.note_declared(
            Diagnostic::check(code, span, message).label(label).help(help),
            facts,
            "",
        )
    }

    fn note_declared(
        &self,
        fault: Box<Diagnostic>,
        facts: &SlotFacts,
        words: &str,
    ) -> Box<Diagnostic> {
        match &facts.entry {
            Entry::Earlier { cell, .. } => fault.note(format!(
                "`{}` was declared in cell {cell}",
                facts.name.as_deref().unwrap_or("it")
            )),
            _ if facts.span.line == 0 || words.is_empty() => fault,
            _ => fault.also(facts.span, words),
        }
    }

    fn place_text(&self, place: &Place) -> String {
        let facts = self.facts[self.var(place.slot)];
        let Some(name) = &facts.name else { return "a temporary value".into() };
        let mut text = name.clone();
        let mut steps = place.steps.as_slice();
        if matches!(facts.entry, Entry::Capture { by_reference: true }) {
            steps = steps.get(1..).unwrap_or(&[]);
        }
        for step in steps {
            text = match step {
                Step::Deref => format!("*{text}"),
                Step::Child(index) => format!("{text}.{index}"),
                _ => format!("{text}[..]"),
            };
        }
        format!("`{text}`")
    }

    /// E0381 or E0382, by what the paths back to the entry hold.
    fn use_of_gone(&self, at: usize, place: &Place, access: Access) -> Box<Diagnostic> {
        let span = self.draft.spans[at];
        let facts = self.facts[self.var(place.slot)];
        let name = self.place_text(place);
        let (verb, done) = match access {
            Access::Borrow | Access::BorrowMut => ("borrow", "borrowed"),
            Access::Write => ("assign to part", "assigned"),
            _ => ("use", "used"),
        };
        let what = match &self.draft.insts[at] {
            Inst::Closure { .. } if access != Access::Move => ("borrow", "borrowed"),
            _ => (verb, done),
        };
        // What never had a value was not moved.
        let uninitialised = matches!(facts.entry, Entry::No) && !self.is_written(place.slot);
        match self.mover(at, place).filter(|_| !uninitialised) {
            Some(mover) => {
                let moved_at = self.draft.spans[mover];
                let again = mover == at;
                let fault =
                    Diagnostic::check("E0382", span, format!("{} of moved value: {name}", what.0));
                let fault = if again {
                    fault.label("value moved here, in previous iteration of loop")
                } else {
                    fault
                        .label(format!("value {} here after move", what.1))
                        .also(moved_at, "value moved here")
                };
                self.offer_borrow(fault, facts)
            }
            None => match &facts.entry {
                Entry::Earlier { held: Held { moved: Some((cell, moved_at)), .. }, .. } => {
                    let fault = Diagnostic::check(
                        "E0382",
                        span,
                        format!("{} of moved value: {name}", what.0),
                    )
                    .label(format!("value {} here after move", what.1))
                    .also_in(
                        Some(*cell),
                        *moved_at,
                        format!("{name} was moved in cell {cell}"),
                    );
                    self.offer_borrow(fault, facts)
                }
                _ => Diagnostic::check(
                    "E0381",
                    span,
                    format!("used binding {name} isn't initialized"),
                )
                .label(format!("{name} {} here but it isn't initialized", what.1))
                .also(facts.span, "binding declared here but left uninitialized"),
            },
        }
    }

    fn is_written(&self, slot: Slot) -> bool {
        let mut written = false;
        for inst in &self.draft.insts {
            visit_places(inst, &mut |place, access| {
                written |= place.slot == slot && access == Access::Write;
            });
        }
        written
    }

    fn offer_borrow(&self, fault: Box<Diagnostic>, facts: &SlotFacts) -> Box<Diagnostic> {
        let Some(name) = &facts.name else { return fault };
        if facts.ty.is_named("Array") {
            return fault.help(format!(
                "pass a reference, `&{name}`, to keep the array; `{name}.clone()` shares its buffer"
            ));
        }
        fault.help(format!("consider borrowing instead: `&{name}`, or `{name}.clone()`"))
    }

    fn predecessors(&self) -> Vec<Vec<usize>> {
        let count = self.draft.insts.len();
        let mut out = vec![Vec::new(); count];
        for at in 0..count {
            for next in self.successors(at) {
                if next < count {
                    out[next].push(at);
                }
            }
        }
        out
    }

    /// The nearest move of the place on a path that reaches the instruction.
    fn mover(&self, at: usize, place: &Place) -> Option<usize> {
        // A variable may be moved twice by one instruction.
        let mut moves_here = 0;
        visit_places(&self.draft.insts[at], &mut |own, access| {
            if access == Access::Move && own.slot == place.slot {
                moves_here += 1;
            }
        });
        if moves_here > 1 {
            return Some(at);
        }
        let children = leading_children(place);
        let before = self.predecessors();
        let mut seen = HashSet::new();
        let mut work: std::collections::VecDeque<usize> = before[at].iter().copied().collect();
        while let Some(here) = work.pop_front() {
            if !seen.insert(here) {
                continue;
            }
            let mut stop = false;
            let mut found = false;
            visit_places(&self.draft.insts[here], &mut |own, access| {
                if own.slot != place.slot {
                    return;
                }
                let Some(theirs) = whole_children(own) else { return };
                let overlap = theirs.starts_with(&children) || children.starts_with(&theirs);
                match access {
                    Access::Move if overlap => found = true,
                    Access::Drop => stop = true,
                    Access::Write if children.starts_with(&theirs) => {
                        stop = true;
                        found = false;
                    }
                    _ => {}
                }
            });
            if found {
                return Some(here);
            }
            if !stop {
                work.extend(before[here].iter().copied());
            }
        }
        None
    }

    fn check_loans(&mut self) -> Result<(), Box<Diagnostic>> {
        self.find_loans();
        let statics = self.draft.insts.iter().any(|inst| matches!(inst, Inst::Static { .. }));
        let argument_references = self
            .facts
            .iter()
            .any(|facts| facts.entry == Entry::Argument && facts.ty.holds_references());
        if self.loans.is_empty() && !(statics && argument_references) {
            return Ok(());
        }
        let graph = self.holder_graph();
        self.check_statics(&graph)?;
        let index = UseIndex::new(self);
        let mut live: HashMap<usize, HashSet<usize>> = HashMap::new();
        for number in 0..self.loans.len() {
            let holders = reach(&graph, self.loans[number].holder);
            let mut points: HashSet<usize> = HashSet::new();
            for holder in &holders {
                let own = live.entry(*holder).or_insert_with(|| index.live_points(self, *holder));
                points.extend(own.iter().copied());
            }
            self.check_loan(number, &holders, &points)?;
            self.note_invalid(number, &holders);
        }
        Ok(())
    }

    fn find_loans(&mut self) {
        for (var, facts) in self.facts.iter().enumerate() {
            if let Entry::Earlier { held, .. } = &facts.entry {
                for (place, mutable) in &held.loans {
                    if self.globals.contains_key(&place.slot) {
                        self.loans.push(Loan {
                            point: None,
                            place: place.clone(),
                            mutable: *mutable,
                            holder: var,
                        });
                    }
                }
            }
        }
        for (at, inst) in self.draft.insts.iter().enumerate() {
            if !self.reachable[self.block_of[at]] {
                continue;
            }
            let (dest, place, mutable) = match inst {
                Inst::Ref { dest, place, mutable } | Inst::SliceOf { dest, place, mutable, .. } => {
                    (dest, place, *mutable)
                }
                Inst::Rest { dest, place, by: Binding::Ref, .. } => (dest, place, false),
                Inst::Rest { dest, place, by: Binding::Mut, .. } => (dest, place, true),
                _ => continue,
            };
            self.loans.push(Loan {
                point: Some(at),
                place: place.clone(),
                mutable,
                holder: self.var(*dest),
            });
        }
    }

    /// To which variables references flow from each one.
    fn holder_graph(&self) -> Vec<Vec<usize>> {
        let owners = self.owners();
        let mut graph = vec![Vec::new(); self.facts.len()];
        let holds = |var: usize| self.facts[var].ty.holds_references();
        let mut edge = |from: usize, to: usize| {
            if from != to && holds(from) && holds(to) && !graph[from].contains(&to) {
                graph[from].push(to);
            }
        };
        let referents = self.referents();
        for inst in &self.draft.insts {
            let mut sources = Vec::new();
            let mut dests = Vec::new();
            visit_places(inst, &mut |place, access| {
                let var = self.var(place.slot);
                match access {
                    Access::Write => {
                        dests.push(var);
                        if place.steps.contains(&Step::Deref) {
                            dests.extend(reach(&owners, var));
                        }
                    }
                    Access::Copy | Access::Move | Access::Borrow | Access::BorrowMut => {
                        sources.push(var);
                    }
                    _ => {}
                }
            });
            let by_content = gives_content(inst);
            for from in &sources {
                for to in &dests {
                    if by_content && matches!(self.facts[*from].ty, Ty::Ref(..)) {
                        // What comes out was inside: it does not borrow the container.
                        for inner in reach(&referents, *from) {
                            if inner != *from {
                                edge(inner, *to);
                            }
                        }
                    } else {
                        edge(*from, *to);
                    }
                }
            }
            let calls = matches!(
                inst,
                Inst::CallLibrary { .. } | Inst::Call { .. } | Inst::CallValue { .. }
            );
            if !calls {
                continue;
            }
            // Through a mutable reference, what is passed beside it may stay behind it.
            for to in &sources {
                let Ty::Ref(true, inner) = &self.facts[*to].ty else { continue };
                if !inner.holds_references() || matches!(**inner, Ty::Closure(_)) {
                    continue;
                }
                for from in sources.iter().filter(|from| *from != to) {
                    for owner in reach(&owners, *to) {
                        edge(*from, owner);
                    }
                }
            }
        }
        graph
    }

    /// Which variables each reference may refer to.
    fn referents(&self) -> Vec<Vec<usize>> {
        let mut referents = self.owners();
        for inst in &self.draft.insts {
            if let Inst::Ref { dest, place, .. } | Inst::SliceOf { dest, place, .. } = inst {
                referents[self.var(*dest)].push(self.var(place.slot));
            }
        }
        referents
    }

    /// Which variables each mutable reference may refer to.
    fn owners(&self) -> Vec<Vec<usize>> {
        let mut owners = vec![Vec::new(); self.facts.len()];
        for inst in &self.draft.insts {
            match inst {
                Inst::Ref { dest, place, mutable: true }
                | Inst::SliceOf { dest, place, mutable: true, .. } => {
                    owners[self.var(*dest)].push(self.var(place.slot));
                }
                Inst::Set { place, value: Operand::Move(from) }
                    if matches!(self.facts[self.var(from.slot)].ty, Ty::Ref(true, _)) =>
                {
                    owners[self.var(place.slot)].push(self.var(from.slot));
                }
                _ => {}
            }
        }
        owners
    }

    fn check_statics(&self, graph: &[Vec<usize>]) -> Result<(), Box<Diagnostic>> {
        for (at, inst) in self.draft.insts.iter().enumerate() {
            let Inst::Static { slot, closure } = inst else { continue };
            let var = self.var(*slot);
            if !self.facts[var].ty.holds_references() {
                continue;
            }
            let span = self.draft.spans[at];
            for loan in &self.loans {
                if !reach(graph, loan.holder).contains(&var)
                    || loan.place.steps.contains(&Step::Deref)
                {
                    continue;
                }
                let name = self.place_text(&loan.place);
                let taken = loan.point.map_or(span, |point| self.draft.spans[point]);
                if *closure {
                    return Err(Diagnostic::check(
                        "E0373",
                        taken,
                        format!(
                            "closure may outlive the current function, but it borrows {name}, \
                             which is owned by the current function"
                        ),
                    )
                    .label(format!("may outlive borrowed value {name}"))
                    .help(
                        "to force the closure to take ownership of it, use the `move` keyword: \
                         `move |…|`",
                    ));
                }
                return Err(Diagnostic::check(
                    "E0597",
                    taken,
                    format!("{name} does not live long enough"),
                )
                .label("borrowed value does not live long enough")
                .note("the argument must be `'static`"));
            }
            for (source, facts) in self.facts.iter().enumerate() {
                let outside = matches!(facts.entry, Entry::Argument | Entry::Capture { .. });
                if outside && facts.ty.holds_references() && reach(graph, source).contains(&var) {
                    let what = if self.draft.is_closure { "closure" } else { "function" };
                    return Err(Diagnostic::check(
                        "E0521",
                        span,
                        format!("borrowed data escapes outside of {what}"),
                    )
                    .label("the argument must be `'static`, and this one holds a reference"));
                }
            }
        }
        Ok(())
    }

    fn check_loan(
        &self,
        number: usize,
        holders: &HashSet<usize>,
        live: &HashSet<usize>,
    ) -> Result<(), Box<Diagnostic>> {
        let loan = &self.loans[number];
        let mut work = match loan.point {
            Some(point) => self.successors(point),
            None => vec![0],
        };
        let mut seen = HashSet::new();
        let mut faults: Vec<(usize, Box<Diagnostic>)> = Vec::new();
        while let Some(at) = work.pop() {
            if at >= self.draft.insts.len() || !live.contains(&at) || !seen.insert(at) {
                continue;
            }
            if let Some(access) = self.conflict(at, loan) {
                faults.push((at, self.loan_fault(at, access, loan, holders)));
                continue;
            }
            work.extend(self.successors(at));
        }
        faults.sort_by_key(|(at, _)| *at);
        match faults.into_iter().next() {
            Some((_, fault)) => Err(fault),
            None => Ok(()),
        }
    }

    /// What the instruction does against the loan.
    fn conflict(&self, at: usize, loan: &Loan) -> Option<Access> {
        let mut found = None;
        visit_places(&self.draft.insts[at], &mut |place, access| {
            if found.is_some() || place.slot != loan.place.slot {
                return;
            }
            if !overlap(&place.steps, &loan.place.steps) {
                return;
            }
            let harmful = match access {
                Access::Copy | Access::Borrow => loan.mutable,
                Access::Look => false,
                Access::Write | Access::Drop => !shields(place, &loan.place),
                Access::Move => true,
                Access::BorrowMut => true,
            };
            // A shared reference that is copied or reborrowed leaves what is behind it alone.
            let through_shared = self.behind_shared(&loan.place, place);
            if harmful && !through_shared {
                let indexed = access == Access::Write && self.steps_through_vec(place);
                // The first half of a two-phase borrow is told as what it is going to be.
                let reserves = matches!(&self.draft.insts[at], Inst::Ref { dest, mutable: false, .. }
                    if matches!(self.facts[self.var(*dest)].ty, Ty::Ref(true, _)));
                found = Some(if indexed || reserves { Access::BorrowMut } else { access });
            }
        });
        found
    }

    /// The loan is of something behind a shared reference that the access only holds.
    fn behind_shared(&self, loan: &Place, access: &Place) -> bool {
        let mut ty = self.facts[self.var(loan.slot)].ty.clone();
        for (index, step) in loan.steps.iter().enumerate() {
            if *step == Step::Deref {
                if matches!(ty, Ty::Ref(false, _)) && index >= access.steps.len() {
                    return true;
                }
                match ty {
                    Ty::Ref(_, to) => ty = (*to).clone(),
                    _ => return false,
                }
                continue;
            }
            let Some(next) = step_ty(&ty, *step) else { return false };
            ty = next;
        }
        false
    }

    fn loan_fault(
        &self,
        at: usize,
        access: Access,
        loan: &Loan,
        holders: &HashSet<usize>,
    ) -> Box<Diagnostic> {
        let span = self.draft.spans[at];
        let name = self.place_text(&loan.place);
        let (code, message, label) = self.conflict_words(access, loan, &name);
        if access == Access::Drop {
            return self.dead_fault(at, loan, holders, &name);
        }
        let mut fault = Diagnostic::check(code, span, message).label(label);
        match loan.point {
            Some(point) => {
                let kind = if loan.mutable { "mutable borrow" } else { "borrow" };
                fault =
                    fault.also(self.draft.spans[point], format!("{kind} of {name} occurs here"));
            }
            None => fault = fault.note(format!("{name} was borrowed in an earlier cell")),
        }
        if let Some(later) = self.later_use(at, holders) {
            fault = fault.also(self.draft.spans[later], "borrow later used here");
        }
        fault
    }

    /// A two-phase borrow before its activation.
    fn is_reserved(&self, loan: &Loan) -> bool {
        !loan.mutable
            && loan.point.is_some()
            && matches!(self.facts[loan.holder].ty, Ty::Ref(true, _))
    }

    fn conflict_words(
        &self,
        access: Access,
        loan: &Loan,
        name: &str,
    ) -> (&'static str, String, &'static str) {
        match access {
            Access::Move => (
                "E0505",
                format!("cannot move out of {name} because it is borrowed"),
                "move out occurs here",
            ),
            Access::Write => (
                "E0506",
                format!("cannot assign to {name} because it is borrowed"),
                "assigned to here but it was already borrowed",
            ),
            Access::BorrowMut if loan.mutable || self.is_reserved(loan) => (
                "E0499",
                format!("cannot borrow {name} as mutable more than once at a time"),
                "second mutable borrow occurs here",
            ),
            Access::BorrowMut => (
                "E0502",
                format!("cannot borrow {name} as mutable because it is also borrowed as immutable"),
                "mutable borrow occurs here",
            ),
            Access::Borrow => (
                "E0502",
                format!("cannot borrow {name} as immutable because it is also borrowed as mutable"),
                "immutable borrow occurs here",
            ),
            Access::Drop => (
                "E0597",
                format!("{name} does not live long enough"),
                "borrowed value does not live long enough",
            ),
            _ => (
                "E0503",
                format!("cannot use {name} because it was mutably borrowed"),
                "use of borrowed value",
            ),
        }
    }

    /// The borrowed place ends before the reference does.
    fn dead_fault(
        &self,
        at: usize,
        loan: &Loan,
        holders: &HashSet<usize>,
        name: &str,
    ) -> Box<Diagnostic> {
        let facts = self.facts[self.var(loan.place.slot)];
        let taken = loan.point.map_or(self.draft.spans[at], |point| self.draft.spans[point]);
        let returned = self.draft.insts[at..]
            .iter()
            .take_while(|inst| matches!(inst, Inst::Drop(_) | Inst::Return(_) | Inst::Nop));
        let mut leaves = false;
        for inst in returned {
            if let Inst::Return(Operand::Move(place) | Operand::Copy(place)) = inst {
                leaves = holders.contains(&self.var(place.slot));
            }
        }
        if leaves {
            let captured = loan.point.is_some_and(|point| self.is_capture(point));
            if captured {
                return Diagnostic::check(
                    "E0373",
                    taken,
                    format!(
                        "closure may outlive the current function, but it borrows {name}, which \
                         is owned by the current function"
                    ),
                )
                .label(format!("may outlive borrowed value {name}"))
                .help("use the `move` keyword: `move |…|`");
            }
            let what = match facts.name {
                Some(_) => format!("cannot return reference to local variable {name}"),
                None => "cannot return reference to temporary value".to_string(),
            };
            let what = match &self.draft.insts[loan.point.unwrap_or(at)] {
                Inst::Ref { dest, .. } if self.is_returned(*dest) => what,
                _ => match facts.name {
                    Some(_) => format!("cannot return value referencing local variable {name}"),
                    None => "cannot return value referencing temporary value".to_string(),
                },
            };
            return Diagnostic::check("E0515", taken, what)
                .label("returns a value referencing data owned by the current function");
        }
        let fault = match facts.name {
            Some(_) => {
                Diagnostic::check("E0597", taken, format!("{name} does not live long enough"))
                    .label("borrowed value does not live long enough")
            }
            None => Diagnostic::check("E0716", taken, "temporary value dropped while borrowed")
                .label("creates a temporary value which is freed while still in use")
                .help("consider using a `let` binding to create a longer lived value"),
        };
        match self.later_use(at, holders) {
            Some(later) => fault.also(self.draft.spans[later], "borrow later used here"),
            None => fault,
        }
    }

    fn is_returned(&self, slot: Slot) -> bool {
        self.draft.insts.iter().any(|inst| {
            matches!(inst, Inst::Return(Operand::Move(place) | Operand::Copy(place))
                if place.slot == slot)
        })
    }

    /// The loan is a closure's capture.
    fn is_capture(&self, point: usize) -> bool {
        let Inst::Ref { dest, .. } = &self.draft.insts[point] else { return false };
        self.draft.insts[point..].iter().any(|inst| {
            matches!(inst, Inst::Closure { captures, .. } if captures.iter().any(|capture| {
                matches!(capture, Operand::Move(place) if place.slot == *dest)
            }))
        })
    }

    fn later_use(&self, at: usize, holders: &HashSet<usize>) -> Option<usize> {
        (at + 1..self.draft.insts.len()).find(|later| {
            let mut used = false;
            visit_places(&self.draft.insts[*later], &mut |place, access| {
                let reads = !matches!(access, Access::Write | Access::Drop | Access::Look);
                used |= reads && holders.contains(&self.var(place.slot));
            });
            used
        })
    }

    /// A session variable keeps a reference that no longer holds: a later use is refused.
    fn note_invalid(&mut self, number: usize, holders: &HashSet<usize>) {
        if !self.draft.is_cell {
            return;
        }
        let kept: Vec<usize> = holders
            .iter()
            .copied()
            .filter(|var| *var >= self.draft.slots.len() && self.facts[*var].name.is_some())
            .collect();
        if kept.is_empty() {
            return;
        }
        let loan = &self.loans[number];
        let mut work = match loan.point {
            Some(point) => self.successors(point),
            None => vec![0],
        };
        let mut seen = HashSet::new();
        let mut found = None;
        while let Some(at) = work.pop() {
            if at >= self.draft.insts.len() || !seen.insert(at) {
                continue;
            }
            if let Some(access) = self.conflict(at, loan)
                && !matches!(access, Access::Copy | Access::Borrow)
            {
                let name = self.place_text(&loan.place);
                let (code, message, _) = self.conflict_words(access, loan, &name);
                found =
                    Some(Invalid { code, message, cell: self.cell, span: self.draft.spans[at] });
                break;
            }
            work.extend(self.successors(at));
        }
        if let Some(invalid) = found {
            for var in kept {
                self.invalid.insert(var, invalid.clone());
            }
        }
    }

    /// What the next cell must know about the globals.
    fn outcome(&self) -> Vec<(u32, Held)> {
        if !self.draft.is_cell {
            return Vec::new();
        }
        let graph = if self.loans.is_empty() { Vec::new() } else { self.holder_graph() };
        let mut out = Vec::new();
        for (slot, facts) in &self.draft.globals {
            let var = self.globals[slot];
            let mut held = match &facts.entry {
                Entry::Earlier { held, .. } => held.clone(),
                _ => Held::default(),
            };
            let id = self.path_ids[&(var, Vec::new())];
            let end = self.at_end.as_ref();
            let gone =
                end.is_some_and(|end| self.by_var[var].iter().any(|path| end.gone.get(*path)));
            let _ = id;
            if !gone {
                held.moved = None;
            } else if held.moved.is_none() {
                let span = self.last_move(*slot).unwrap_or(facts.span);
                held.moved = Some((self.cell, span));
            }
            if facts.ty.holds_references() {
                if self.last_write(*slot) {
                    held = Held { moved: held.moved, ..Held::default() };
                }
                for loan in &self.loans {
                    if loan.place.slot & GLOBAL != 0
                        && reach(&graph, loan.holder).contains(&var)
                        && !held.loans.contains(&(loan.place.clone(), loan.mutable))
                    {
                        held.loans.push((loan.place.clone(), loan.mutable));
                    }
                }
                if let Some(invalid) = self.invalid.get(&var) {
                    held.invalid = Some(invalid.clone());
                }
            }
            out.push((*slot & !GLOBAL, held));
        }
        out
    }

    fn last_move(&self, slot: Slot) -> Option<Span> {
        (0..self.draft.insts.len()).rev().find_map(|at| {
            let mut found = false;
            visit_places(&self.draft.insts[at], &mut |place, access| {
                found |= place.slot == slot && matches!(access, Access::Move);
            });
            found.then(|| self.draft.spans[at])
        })
    }

    fn last_write(&self, slot: Slot) -> bool {
        self.draft.insts.iter().any(|inst| {
            let mut found = false;
            visit_places(inst, &mut |place, access| {
                found |= place.slot == slot && place.steps.is_empty() && access == Access::Write;
            });
            found
        })
    }
}

/// Where each variable is used and set.
struct UseIndex {
    uses: Vec<Vec<usize>>,
    sets: Vec<HashSet<usize>>,
    before: Vec<Vec<usize>>,
}

impl UseIndex {
    fn new(flow: &Flow<'_>) -> UseIndex {
        let count = flow.facts.len();
        let mut uses = vec![Vec::new(); count];
        let mut sets = vec![HashSet::new(); count];
        for (at, inst) in flow.draft.insts.iter().enumerate() {
            visit_places(inst, &mut |place, access| {
                let var = flow.var(place.slot);
                match access {
                    Access::Write if place.steps.is_empty() => {
                        sets[var].insert(at);
                    }
                    Access::Drop => {
                        sets[var].insert(at);
                    }
                    Access::Look if matches!(inst, Inst::Bound { .. }) => {}
                    _ => uses[var].push(at),
                }
            });
            if let Inst::Static { slot, .. } = inst {
                uses[flow.var(*slot)].push(at);
            }
        }
        UseIndex { uses, sets, before: flow.predecessors() }
    }

    /// The points before which the variable's value is still wanted.
    fn live_points(&self, _flow: &Flow<'_>, var: usize) -> HashSet<usize> {
        let mut live = HashSet::new();
        let mut work: Vec<usize> = self.uses[var].clone();
        while let Some(at) = work.pop() {
            if !live.insert(at) {
                continue;
            }
            for before in &self.before[at] {
                if !self.sets[var].contains(before) {
                    work.push(*before);
                }
            }
        }
        live
    }
}

fn reach(graph: &[Vec<usize>], from: usize) -> HashSet<usize> {
    let mut seen = HashSet::from([from]);
    let mut work = vec![from];
    while let Some(var) = work.pop() {
        for next in graph.get(var).into_iter().flatten() {
            if seen.insert(*next) {
                work.push(*next);
            }
        }
    }
    seen
}

/// The call's result holds what was inside of its arguments, not references to them.
fn gives_content(inst: &Inst) -> bool {
    let Inst::CallLibrary { row, .. } = inst else { return false };
    fn refers(ty: &Ty) -> bool {
        match ty {
            Ty::Ref(..) => true,
            Ty::Named("Iter", _) => true,
            Ty::Named(_, parts) | Ty::Tuple(parts) => parts.iter().any(refers),
            _ => false,
        }
    }
    !refers(&row.signature().ret)
}

/// The fields up to the first step that leaves the variable itself.
fn leading_children(place: &Place) -> Vec<u32> {
    place
        .steps
        .iter()
        .map_while(|step| match step {
            Step::Child(index) => Some(*index),
            _ => None,
        })
        .collect()
}

/// The fields, when the place is nothing but fields.
fn whole_children(place: &Place) -> Option<Vec<u32>> {
    let children = leading_children(place);
    (children.len() == place.steps.len()).then_some(children)
}

fn overlap(a: &[Step], b: &[Step]) -> bool {
    for (a, b) in a.iter().zip(b) {
        match (a, b) {
            (Step::Child(a), Step::Child(b)) if a != b => return false,
            (Step::Deref, Step::Deref) => {}
            (Step::Deref, _) | (_, Step::Deref) => return false,
            _ => {}
        }
    }
    true
}

/// Writing or ending the place leaves the loan alone: the loan lies behind a reference in it.
fn shields(place: &Place, loan: &Place) -> bool {
    loan.steps.len() > place.steps.len() && loan.steps[place.steps.len()..].contains(&Step::Deref)
}

/// The type one step further.
fn step_ty(ty: &Ty, step: Step) -> Option<Ty> {
    match (ty, step) {
        (Ty::Ref(_, to), Step::Deref) => Some((**to).clone()),
        (other, Step::Deref) => Some(other.clone()),
        (Ty::Named("Box", arguments), _) => step_ty(&arguments[0], step),
        (Ty::Tuple(parts), Step::Child(index)) => parts.get(index as usize).cloned(),
        (Ty::Named("Option" | "Result", arguments), Step::Child(0)) => Some(arguments[0].clone()),
        (Ty::Named("Vec", arguments), _) => Some(arguments[0].clone()),
        (Ty::Array(element, _) | Ty::Slice(element), _) => Some((**element).clone()),
        _ => None,
    }
}

/// The use of a session variable whose borrow was broken by an earlier cell.
fn broken_reference(draft: &Draft) -> Option<Box<Diagnostic>> {
    for (at, inst) in draft.insts.iter().enumerate() {
        let mut fault = None;
        visit_places(inst, &mut |place, access| {
            let reads = !matches!(access, Access::Write | Access::Drop | Access::Look);
            if fault.is_some() || !reads {
                return;
            }
            let Some((_, facts)) = draft.globals.iter().find(|(slot, _)| *slot == place.slot)
            else {
                return;
            };
            if let Entry::Earlier { held: Held { invalid: Some(invalid), .. }, .. } = &facts.entry {
                fault = Some(
                    Diagnostic::check(invalid.code, draft.spans[at], invalid.message.clone())
                        .label("borrow later used here")
                        .also_in(
                            Some(invalid.cell),
                            invalid.span,
                            "what it borrows was changed or moved here".to_string(),
                        ),
                );
            }
        });
        if fault.is_some() {
            return fault;
        }
    }
    None
}
