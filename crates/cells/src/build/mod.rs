//! Typed tree → code. Evaluation order, temporaries (which live to the end of their statement),
//! scopes and their drops are decided here, as Rust has them.

mod calls;
mod closures;
mod control;
mod operators;
mod patterns;
mod places;
mod restores;
mod statements;
mod structs;
mod values;

use self::patterns::pattern_locals;
use self::places::{is_place, is_unsized};
use self::restores::restores;
use self::structs::is_plain_place;
use self::values::{is_quiet, is_still};
use crate::code::{
    Code, Draft, Entry, FnCell, GLOBAL, Held, Inst, Meta, Num, Operand, Place, Restore, Slot,
    SlotFacts, Step, Test,
};
use crate::diagnostic::Diagnostic;
use crate::exhaustive;
use crate::flow;
use crate::hir::{
    Arm, BinaryOp, Binding, Block, BodyId, Callee, Closure, Expr, Format, Kind, Local, LocalId,
    LoopId, Pattern, PatternKind, Piece, Statement, Tree,
};
use crate::ir::Span;
use crate::library::{self, Candidate};
use crate::signature::{Bound, Signature};
use crate::ty::{ClosureFacts, ClosureKind, Infer, Ty};
use crate::value::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

type Built<T> = Result<T, Box<Diagnostic>>;

/// What the builder must know beside the tree.
pub struct Context<'a> {
    pub infer: &'a Infer,
    pub locals: &'a [Local],
    pub cell: u32,
    /// Per global: what flow left behind.
    pub held: &'a dyn Fn(u32) -> Held,
    /// A redefined variable of an earlier cell, by name.
    pub earlier: &'a dyn Fn(&str) -> Option<u32>,
    /// Some variable of the session or the cell holds references.
    pub references: bool,
    /// Variables that borrow others, by their places.
    pub borrowers: &'a [(Slot, SlotFacts)],
    /// Closures that must capture nothing.
    pub pointers: &'a [(u64, Span, String)],
}

/// What building a cell yields.
pub struct BuiltCell {
    pub code: Arc<Code>,
    /// What flow says about the globals at the end.
    pub held: Vec<(u32, Held)>,
    /// The first free global place.
    pub next_global: u32,
    pub value_ty: Ty,
}

/// Builds and flow-checks the whole cell.
///
/// # Errors
/// A fault of flow (moves, borrows, initialisation, mutability), or a match that is not exhaustive.
pub fn build_cell(tree: &Tree, context: &Context<'_>, next_global: u32) -> Built<BuiltCell> {
    let mut next_global = next_global;
    for function in &tree.functions {
        let mut builder = Builder::new(context, function.body_id, &function.cell.name);
        builder.next_global = next_global;
        builder.ret = context.infer.resolve(&function.cell.sig.ret);
        builder.lends_first = function.cell.lends_first;
        builder.function(&function.params, &function.body)?;
        next_global = builder.next_global;
        let draft = builder.finish();
        flow::check(&draft, context.cell)?;
        let _ = function.cell.code.set(Arc::new(seal(draft, context.cell)));
    }
    let mut builder = Builder::new(context, 0, "cell");
    builder.next_global = next_global;
    let value_ty = builder.cell(&tree.body, tree.tail_variable)?;
    let next_global = builder.next_global;
    builder.watch_borrowers();
    let draft = builder.finish();
    let outcome = flow::check(&draft, context.cell)?;
    let code = Arc::new(seal(draft, context.cell));
    Ok(BuiltCell { code, held: outcome, next_global, value_ty })
}

fn seal(draft: Draft, cell: u32) -> Code {
    let mut insts = draft.insts;
    let mut referenced = vec![false; draft.slots.len()];
    for inst in &insts {
        if let Inst::Ref { place, .. } | Inst::SliceOf { place, .. } = inst
            && place.slot & GLOBAL == 0
        {
            referenced[place.slot as usize] = true;
        }
    }
    for inst in &mut insts {
        match inst {
            Inst::Drop(slot)
                if *slot & GLOBAL == 0
                    && !referenced[*slot as usize]
                    && !draft.slots[*slot as usize].ty.needs_drop() =>
            {
                *inst = Inst::Nop;
            }
            Inst::Static { .. } | Inst::Look(_) => *inst = Inst::Nop,
            // The reservation of a two-phase borrow.
            Inst::Ref { dest, mutable: false, .. }
                if *dest & GLOBAL == 0
                    && matches!(draft.slots[*dest as usize].ty, Ty::Ref(true, _)) =>
            {
                *inst = Inst::Nop;
            }
            _ => {}
        }
    }
    Code {
        name: draft.name,
        cell,
        slots: draft.slots.len() as u32,
        args: draft.args,
        captures: draft.captures,
        restores: restores(&insts),
        insts,
        spans: draft.spans,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Block,
    Statement,
}

struct ScopeFrame {
    kind: ScopeKind,
    drops: Vec<Slot>,
}

struct LoopFrame {
    id: LoopId,
    dest: Option<Slot>,
    /// Scopes open outside of the loop.
    depth: usize,
    breaks: Vec<usize>,
    continues: Vec<usize>,
    /// Known from the start for `while` and `loop`.
    head: Option<u32>,
}

struct Upvar {
    local: LocalId,
    /// The way to the part that the closure names, when it names nothing else of the variable.
    path: Vec<Step>,
    slot: Slot,
}

/// How a closure holds a captured variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Capture {
    Value,
    Ref,
    Mut,
    /// The referent of a captured `&mut`.
    Reborrow,
}

struct Builder<'c> {
    context: &'c Context<'c>,
    body: BodyId,
    name: String,
    insts: Vec<Inst>,
    spans: Vec<Span>,
    slots: Vec<SlotFacts>,
    globals: Vec<(Slot, SlotFacts)>,
    /// Where each global stands in `globals`.
    known: HashMap<Slot, usize>,
    /// Variables of earlier cells that the cell has ended.
    replaced: HashSet<u32>,
    map: HashMap<LocalId, Slot>,
    scopes: Vec<ScopeFrame>,
    loops: Vec<LoopFrame>,
    upvars: Vec<Upvar>,
    args: u32,
    next_global: u32,
    ret: Ty,
    is_closure: bool,
    lends_first: bool,
    wanted: Option<ClosureKind>,
    /// Bindings look at what they will move: a guard comes first.
    peek: bool,
    /// Temporaries of the expression live as long as the `let` that they initialise.
    extend: bool,
    span: Span,
}

impl<'c> Builder<'c> {
    fn new(context: &'c Context<'c>, body: BodyId, name: &str) -> Builder<'c> {
        Builder {
            context,
            body,
            name: name.into(),
            insts: Vec::new(),
            spans: Vec::new(),
            slots: Vec::new(),
            globals: Vec::new(),
            known: HashMap::new(),
            replaced: HashSet::new(),
            map: HashMap::new(),
            scopes: vec![ScopeFrame { kind: ScopeKind::Block, drops: Vec::new() }],
            loops: Vec::new(),
            upvars: Vec::new(),
            args: 0,
            next_global: 0,
            ret: Ty::unit(),
            is_closure: false,
            lends_first: false,
            wanted: None,
            extend: false,
            peek: false,
            span: Span::default(),
        }
    }

    fn finish(self) -> Draft {
        Draft {
            name: self.name,
            insts: self.insts,
            spans: self.spans,
            slots: self.slots,
            globals: self.globals,
            args: self.args,
            captures: self.upvars.len() as u32,
            is_closure: self.is_closure,
            is_cell: self.body == 0,
            lends_first: self.lends_first,
        }
    }

    fn ty(&self, ty: &Ty) -> Ty {
        self.context.infer.resolve(ty)
    }

    /// The type of an expression, final. What inference left open is an integer or float literal
    /// that nothing looked at.
    fn ty_of(&self, expr: &Expr) -> Ty {
        let ty = self.ty(&expr.ty);
        match self.context.infer.var_kind(&ty) {
            Some(crate::ty::VarKind::Int) => Ty::i32(),
            Some(crate::ty::VarKind::Float) => Ty::f64(),
            _ => ty,
        }
    }

    fn emit(&mut self, inst: Inst) -> usize {
        self.insts.push(inst);
        self.spans.push(self.span);
        self.insts.len() - 1
    }

    fn here(&self) -> u32 {
        self.insts.len() as u32
    }

    /// Jumps at the indices go here.
    fn patch(&mut self, indices: &[usize]) {
        let target = self.here();
        for index in indices {
            match &mut self.insts[*index] {
                Inst::Jump(to) => *to = target,
                Inst::Unless { target: to, .. } => *to = target,
                Inst::Test { otherwise, .. } => *otherwise = target,
                Inst::Next { exit, .. } => *exit = target,
                other => unreachable!("no jump: {other:?}"),
            }
        }
    }

    fn new_slot(&mut self, ty: Ty, name: Option<String>, mutable: bool, span: Span) -> Slot {
        self.slots.push(SlotFacts { ty, name, mutable, span, entry: Entry::No });
        self.slots.len() as Slot - 1
    }

    /// A slot without a name. It ends with the statement, or with the block of its `let`.
    fn temp(&mut self, ty: Ty, extended: bool) -> Slot {
        let at_top = self.body == 0 && self.scopes.len() <= 2;
        if extended && at_top {
            let slot = GLOBAL | self.next_global;
            self.next_global += 1;
            let facts =
                SlotFacts { ty, name: None, mutable: true, span: self.span, entry: Entry::No };
            self.add_global(slot, facts);
            return slot;
        }
        let slot = self.new_slot(ty, None, true, self.span);
        let scope = if extended {
            self.scopes.iter_mut().rfind(|scope| scope.kind == ScopeKind::Block)
        } else {
            self.scopes.last_mut()
        };
        scope.expect("the body's scope is open").drops.push(slot);
        slot
    }

    /// Notes a global that the body touches, once.
    fn add_global(&mut self, slot: Slot, facts: SlotFacts) {
        if let std::collections::hash_map::Entry::Vacant(entry) = self.known.entry(slot) {
            entry.insert(self.globals.len());
            self.globals.push((slot, facts));
        }
    }

    fn open(&mut self, kind: ScopeKind) {
        self.scopes.push(ScopeFrame { kind, drops: Vec::new() });
    }

    fn close(&mut self) -> Vec<Slot> {
        let scope = self.scopes.pop().expect("scopes are opened and closed in pairs");
        self.drop_all(&scope.drops);
        scope.drops
    }

    fn drop_all(&mut self, drops: &[Slot]) {
        for slot in drops.iter().rev() {
            self.emit(Inst::Drop(*slot));
        }
    }

    /// The drops on the way out of every scope above the depth.
    fn leave(&mut self, depth: usize) {
        let drops: Vec<Slot> =
            self.scopes[depth..].iter().flat_map(|scope| scope.drops.iter().copied()).collect();
        self.drop_all(&drops);
    }

    fn slot_of(&mut self, local: LocalId) -> Slot {
        if let Some(slot) = self.map.get(&local) {
            return *slot;
        }
        let facts = &self.context.locals[local as usize];
        let ty = self.ty(&facts.ty);
        if facts.owner == self.body
            && let Some(global) = facts.global
        {
            let slot = GLOBAL | global;
            let entry = match facts.earlier {
                Some(cell) => Entry::Earlier { cell, held: (self.context.held)(global) },
                None => Entry::No,
            };
            let facts = SlotFacts {
                ty,
                name: Some(facts.name.clone()),
                mutable: facts.mutable,
                span: facts.span,
                entry,
            };
            self.add_global(slot, facts);
            self.map.insert(local, slot);
            return slot;
        }
        let slot = self.new_slot(ty, Some(facts.name.clone()), facts.mutable, facts.span);
        if facts.owner != self.body {
            self.upvars.push(Upvar { local, path: Vec::new(), slot });
        }
        self.map.insert(local, slot);
        slot
    }

    /// Declares a variable in the innermost block: its life ends there.
    fn declare(&mut self, local: LocalId) -> Slot {
        // Each pass of a loop declares anew; the slot is the same.
        let slot = self.slot_of(local);
        if slot & GLOBAL == 0 {
            let scope = self
                .scopes
                .iter_mut()
                .rfind(|scope| scope.kind == ScopeKind::Block)
                .expect("the body's scope is open");
            if !scope.drops.contains(&slot) {
                scope.drops.push(slot);
            }
        }
        slot
    }

    fn function(&mut self, params: &[Pattern], body: &Expr) -> Built<()> {
        self.parameters(params)?;
        let ret = self.ret.clone();
        let dest = self.new_slot(ret, None, true, body.span);
        self.open(ScopeKind::Statement);
        self.into(body, dest)?;
        self.close();
        self.leave(0);
        self.emit(Inst::Return(Operand::Move(Place::slot(dest))));
        Ok(())
    }

    /// Arguments arrive in the first slots; patterns take them apart.
    fn parameters(&mut self, params: &[Pattern]) -> Built<()> {
        self.args = params.len() as u32;
        let mut patterns = Vec::new();
        for param in params {
            let ty = self.ty(&param.ty);
            match &param.kind {
                PatternKind::Bind { local, by: Binding::Value, inner: None } => {
                    let facts = &self.context.locals[*local as usize];
                    let name = Some(facts.name.clone());
                    let slot = self.new_slot(ty, name, facts.mutable, param.span);
                    self.slots[slot as usize].entry = Entry::Argument;
                    self.map.insert(*local, slot);
                    self.scopes[0].drops.push(slot);
                }
                _ => {
                    let slot = self.new_slot(ty, None, true, param.span);
                    self.slots[slot as usize].entry = Entry::Argument;
                    self.scopes[0].drops.push(slot);
                    patterns.push((slot, param));
                }
            }
        }
        for (slot, param) in patterns {
            exhaustive::irrefutable(param, self.context.infer, "function argument")?;
            self.span = param.span;
            self.bind(param, Place::slot(slot))?;
        }
        Ok(())
    }

    fn cell(&mut self, body: &Block, tail_variable: bool) -> Built<Ty> {
        for statement in &body.statements {
            self.statement(statement)?;
        }
        let Some(tail) = &body.tail else {
            self.emit(Inst::Return(Operand::Const(Value::Unit)));
            return Ok(Ty::unit());
        };
        let ty = self.ty_of(tail);
        self.span = tail.span;
        if tail_variable {
            // Shown, not moved.
            let place = self.place(tail)?;
            let dest = self.new_slot(Ty::reference(ty.clone()), None, true, tail.span);
            self.emit(Inst::Ref { dest, place, mutable: false });
            self.emit(Inst::Return(Operand::Copy(Place::slot(dest))));
            return Ok(ty);
        }
        let dest = self.new_slot(ty.clone(), None, true, tail.span);
        self.open(ScopeKind::Statement);
        self.into(tail, dest)?;
        self.close();
        self.emit(Inst::Return(Operand::Move(Place::slot(dest))));
        Ok(ty)
    }

    /// What the cell does to a variable may break a reference that another one holds.
    fn watch_borrowers(&mut self) {
        for (slot, facts) in self.context.borrowers {
            let Entry::Earlier { held, .. } = &facts.entry else { continue };
            if held.loans.iter().any(|(place, _)| self.known.contains_key(&place.slot)) {
                self.add_global(*slot, facts.clone());
            }
        }
    }
}
