//! The flow check: initialisation, moves, mutability and borrows on every path of a body. Borrows
//! are non-lexical: a loan lasts while something that may hold its reference is used later.

mod faults;
mod loans;
mod outcome;
mod states;
mod visit;

pub use self::visit::{places_mut, rename, visit_places};
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
    flow.check_returned()?;
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
        (Ty::Struct(def), Step::Child(index)) => def.fields().get(index as usize).cloned(),
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
