//! Typed tree → code. Evaluation order, temporaries (which live to the end of their statement),
//! scopes and their drops are decided here, as Rust has them.

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

/// Where the values that calls take were moved from, through temporaries: a failed call gives
/// arrays back to their variables.
fn restores(insts: &[Inst]) -> HashMap<usize, Vec<Restore>> {
    let mut sources = Sources::new();
    let mut out = HashMap::new();
    for (at, inst) in insts.iter().enumerate() {
        match inst {
            Inst::Set { place: to, value: Operand::Move(from) } if to.steps.is_empty() => {
                let known = origin(from, &sources);
                sources.insert(to.slot, known);
            }
            Inst::Tuple { dest, parts } | Inst::List { dest, parts } => {
                let mut known = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    let Operand::Move(from) = part else { continue };
                    for (path, place) in origin(from, &sources) {
                        let path = std::iter::once(index as u32).chain(path).collect();
                        known.push((path, place));
                    }
                }
                sources.insert(*dest, known);
            }
            Inst::Call { args, .. }
            | Inst::CallValue { args, .. }
            | Inst::CallLibrary { args, .. }
            | Inst::CallSurface { args, .. } => {
                let args: Vec<&Operand> = args.iter().collect();
                remember(at, &args, &sources, &mut out);
            }
            Inst::ArrayBinary { left, right, .. } => {
                remember(at, &[left, right], &sources, &mut out);
            }
            _ => {}
        }
    }
    out
}

/// The parts of a slot's value, each with the place that it was moved from.
type Sources = HashMap<Slot, Vec<(Vec<u32>, Place)>>;

fn origin(place: &Place, sources: &Sources) -> Vec<(Vec<u32>, Place)> {
    match sources.get(&place.slot) {
        Some(known) if place.steps.is_empty() => known.clone(),
        _ => vec![(Vec::new(), place.clone())],
    }
}

fn remember(
    at: usize,
    args: &[&Operand],
    sources: &Sources,
    out: &mut HashMap<usize, Vec<Restore>>,
) {
    for (index, arg) in args.iter().enumerate() {
        let Operand::Move(from) = arg else { continue };
        for (path, place) in origin(from, sources) {
            out.entry(at).or_default().push(Restore { argument: index, path, place });
        }
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
    /// The field of it, when the closure names nothing else of the variable.
    field: Option<u32>,
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
            self.upvars.push(Upvar { local, field: None, slot });
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

    fn statement(&mut self, statement: &Statement) -> Built<()> {
        match statement {
            Statement::Expr(expr) => {
                self.open(ScopeKind::Statement);
                self.discard(expr)?;
                self.close();
                Ok(())
            }
            Statement::Let { pattern, value, otherwise, span } => {
                self.span = *span;
                self.let_statement(pattern, value.as_deref(), otherwise.as_deref())
            }
        }
    }

    /// An expression for its effects.
    fn discard(&mut self, expr: &Expr) -> Built<()> {
        self.span = expr.span;
        match &expr.kind {
            // A place that is only named is looked at, not moved.
            Kind::Local(_) | Kind::Field(..) | Kind::Index(..) | Kind::Deref(_) => {
                if matches!(expr.kind, Kind::Index(..)) && is_unsized(&self.ty_of(expr)) {
                    return Ok(());
                }
                if self.ty_of(expr).is_copy() {
                    let place = self.place(expr)?;
                    let dest = self.new_slot(self.ty_of(expr), None, true, expr.span);
                    self.emit(Inst::Set { place: Place::slot(dest), value: Operand::Copy(place) });
                    return Ok(());
                }
                let operand = self.operand(expr)?;
                let dest = self.temp(self.ty_of(expr), false);
                self.emit(Inst::Set { place: Place::slot(dest), value: operand });
                Ok(())
            }
            Kind::Literal(_) => Ok(()),
            _ => {
                let ty = self.ty_of(expr);
                let dest = self.temp(ty, false);
                self.into(expr, dest)
            }
        }
    }

    fn let_statement(
        &mut self,
        pattern: &Pattern,
        value: Option<&Expr>,
        otherwise: Option<&Block>,
    ) -> Built<()> {
        let Some(value) = value else {
            self.declare_names(pattern);
            return Ok(());
        };
        if otherwise.is_none() {
            exhaustive::irrefutable(pattern, self.context.infer, "local binding")?;
        }
        let shadowed = self.shadowed(pattern);
        self.open(ScopeKind::Statement);
        match &pattern.kind {
            PatternKind::Bind { local, by: Binding::Value, inner: None } => {
                let ty = self.ty_of(value);
                if ty.is_never() {
                    self.discard(value)?;
                    self.close();
                    self.declare(*local);
                    return Ok(());
                }
                // The name is not in scope of its own value: evaluate, then declare.
                self.extend = true;
                let direct = self.direct_target(*local);
                match direct {
                    Some(slot) => self.into(value, slot)?,
                    None => {
                        let operand = self.operand(value)?;
                        let slot = self.slot_of(*local);
                        self.emit(Inst::Set { place: Place::slot(slot), value: operand });
                    }
                }
                self.extend = false;
                self.close();
                self.declare(*local);
                self.name_bound(*local);
            }
            PatternKind::Wild => {
                // `let _ = place` leaves the place alone; a value is dropped at once.
                if is_place(value) {
                    let place = self.place(value)?;
                    self.emit(Inst::Look(place));
                } else {
                    self.discard(value)?;
                }
                self.close();
            }
            _ => {
                self.extend = true;
                let place = self.scrutinee(value)?;
                self.extend = false;
                let mut fails = Vec::new();
                self.test(pattern, place.clone(), &mut fails)?;
                self.bind(pattern, place)?;
                let drops = self.close();
                if let Some(otherwise) = otherwise {
                    let over = self.emit(Inst::Jump(0));
                    self.patch(&fails);
                    self.drop_all(&drops);
                    let dest = self.new_slot(Ty::Never, None, true, otherwise.span);
                    self.block(otherwise, dest)?;
                    self.patch(&[over]);
                }
            }
        }
        for global in shadowed {
            self.emit(Inst::Drop(GLOBAL | global));
        }
        Ok(())
    }

    /// Variables of earlier cells that the pattern's names replace; nothing when a reference to
    /// one might still be alive.
    fn shadowed(&mut self, pattern: &Pattern) -> Vec<u32> {
        if self.body != 0 || self.scopes.len() > 1 || self.context.references {
            return Vec::new();
        }
        let mut names = Vec::new();
        pattern_locals(pattern, &mut names);
        let mut out = Vec::new();
        for local in names {
            let facts = &self.context.locals[local as usize];
            if facts.global.is_none() || facts.earlier.is_some() {
                continue;
            }
            if let Some(global) = (self.context.earlier)(&facts.name)
                && self.replaced.insert(global)
            {
                let slot = GLOBAL | global;
                let facts = SlotFacts {
                    ty: Ty::unit(),
                    name: None,
                    mutable: true,
                    span: facts.span,
                    entry: Entry::Earlier { cell: 0, held: Held::default() },
                };
                self.add_global(slot, facts);
                out.push(global);
            }
        }
        out
    }

    /// Where the value may be made in place: the variable's slot, unless the name is used in a
    /// loop, where an earlier pass may still be borrowed.
    fn direct_target(&mut self, local: LocalId) -> Option<Slot> {
        Some(self.slot_of(local))
    }

    fn declare_names(&mut self, pattern: &Pattern) {
        let mut names = Vec::new();
        pattern_locals(pattern, &mut names);
        for local in names {
            self.declare(local);
        }
    }

    fn name_bound(&mut self, local: LocalId) {
        let slot = self.slot_of(local);
        let facts = &self.context.locals[local as usize];
        if self.ty(&facts.ty).is_told() {
            let name: Arc<str> = facts.name.as_str().into();
            self.emit(Inst::Bound { place: Place::slot(slot), name, last: false });
        }
    }

    fn block(&mut self, block: &Block, dest: Slot) -> Built<()> {
        let extend = std::mem::take(&mut self.extend);
        if let Some(id) = block.label {
            self.loops.push(LoopFrame {
                id,
                dest: Some(dest),
                depth: self.scopes.len(),
                breaks: Vec::new(),
                continues: Vec::new(),
                head: None,
            });
        }
        self.open(ScopeKind::Block);
        for statement in &block.statements {
            self.statement(statement)?;
        }
        match &block.tail {
            Some(tail) => {
                // Temporaries of the tail end before the block's variables (edition 2024).
                self.open(ScopeKind::Statement);
                self.extend = extend;
                self.into(tail, dest)?;
                self.extend = false;
                self.close();
            }
            None => {
                self.span = block.span;
                self.emit(Inst::Set {
                    place: Place::slot(dest),
                    value: Operand::Const(Value::Unit),
                });
            }
        }
        self.close();
        if block.label.is_some() {
            let own = self.loops.pop().expect("pushed above");
            self.patch(&own.breaks);
        }
        Ok(())
    }

    /// Evaluates into a slot.
    fn into(&mut self, expr: &Expr, dest: Slot) -> Built<()> {
        self.span = expr.span;
        let extend = std::mem::take(&mut self.extend);
        match &expr.kind {
            Kind::Literal(value) => {
                self.literal_in_range(expr, value)?;
                let value = self.typed_literal(expr, value);
                self.set(dest, Operand::Const(value));
            }
            Kind::Function(cell) => self.set(dest, Operand::Const(Value::Code(cell.clone()))),
            Kind::Method(candidate) => {
                let value = self.method_value(*candidate, &self.ty_of(expr));
                self.set(dest, Operand::Const(value));
            }
            Kind::Try(inner) => self.question_mark(inner, dest)?,
            Kind::Constant(item) => {
                self.emit(Inst::CallSurface { dest, item, args: Vec::new() });
            }
            Kind::Member(base, name) => {
                let place = self.place_or_temp(base)?;
                self.span = expr.span;
                self.emit(Inst::Member { dest, place, name });
            }
            Kind::Local(_) | Kind::Field(..) | Kind::Index(..) | Kind::Deref(_) => {
                let operand = self.operand(expr)?;
                self.span = expr.span;
                self.set(dest, operand);
            }
            Kind::Not(inner) => {
                let num = Num::of(&self.ty_of(expr));
                let value = self.scalar(inner)?;
                self.span = expr.span;
                self.emit(Inst::Not { dest, num, value });
            }
            Kind::Negate(inner) => {
                if self.ty_of(inner).peeled().is_named("Array") {
                    let value = self.operand(inner)?;
                    self.span = expr.span;
                    self.emit(Inst::ArrayNegate { dest, value });
                } else {
                    let num = Num::of(&self.ty_of(expr));
                    let value = self.scalar(inner)?;
                    self.span = expr.span;
                    self.emit(Inst::Negate { dest, num, value });
                }
            }
            Kind::Binary(..) => self.binary(expr, dest)?,
            Kind::And(left, right) => self.lazy(left, right, false, dest)?,
            Kind::Or(left, right) => self.lazy(left, right, true, dest)?,
            Kind::Assign(place, value) => {
                self.assign(place, value)?;
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Destructure(pattern, value) => {
                let place = self.scrutinee(value)?;
                self.bind(pattern, place)?;
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Compound(op, place, value) => {
                self.compound(*op, place, value, expr.span)?;
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Borrow(mutable, inner) => {
                self.borrow(*mutable, inner, dest, extend, expr.span)?
            }
            Kind::Tuple(parts) if parts.is_empty() => {
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Tuple(parts) => {
                let parts = self.operands(parts, extend)?;
                self.span = expr.span;
                self.emit(Inst::Tuple { dest, parts });
            }
            Kind::List(parts) => {
                let parts = self.operands(parts, extend)?;
                self.span = expr.span;
                self.emit(Inst::List { dest, parts });
            }
            Kind::Some(inner) => {
                let value = self.operand(inner)?;
                self.emit(Inst::Some { dest, value });
            }
            Kind::Repeat(value, count) => {
                let parts = [&**value, &**count];
                let mut operands = self.operand_list(&parts, false)?;
                if let Ty::Closure(closure) = self.ty_of(value)
                    && closure.facts.get().is_some_and(|facts| !facts.copy && facts.borrows)
                {
                    return Err(Diagnostic::check(
                        "E0277",
                        value.span,
                        "the closure cannot be cloned: it holds a mutable reference",
                    ));
                }
                let count = operands.pop().expect("two operands");
                let value = operands.pop().expect("two operands");
                self.span = expr.span;
                self.emit(Inst::Repeat { dest, value, count });
            }
            Kind::Range { start, end, inclusive } => {
                if let Ty::Named(_, bounds) = self.ty_of(expr)
                    && bounds.first().is_some_and(|bound| {
                        !matches!(bound, Ty::Int(_) | Ty::Char)
                            && self.context.infer.var_kind(bound) != Some(crate::ty::VarKind::Int)
                    })
                {
                    return Err(Diagnostic::unsupported(
                        expr.span,
                        "ranges of anything but integers",
                    ));
                }
                let start = start.as_deref().map(|start| self.settled(start)).transpose()?;
                let end = end.as_deref().map(|end| self.operand(end)).transpose()?;
                self.emit(Inst::Range { dest, start, end, inclusive: *inclusive });
            }
            Kind::Block(block) => {
                self.extend = extend;
                self.block(block, dest)?;
            }
            Kind::If { condition, then, otherwise } => {
                self.if_expr(condition, then, otherwise.as_deref(), dest)?;
            }
            Kind::Let(..) => {
                let mut fails = Vec::new();
                self.condition(expr, &mut fails)?;
                self.set(dest, Operand::Const(Value::Bool(true)));
                let over = self.emit(Inst::Jump(0));
                self.patch(&fails);
                self.set(dest, Operand::Const(Value::Bool(false)));
                self.patch(&[over]);
            }
            Kind::Match(scrutinee, arms) => self.match_expr(expr, scrutinee, arms, dest)?,
            Kind::Loop { id, body } => self.loop_expr(*id, body, dest)?,
            Kind::While { id, condition, body } => self.while_expr(*id, condition, body, dest)?,
            Kind::For { id, pattern, iterated, body } => {
                self.for_expr(*id, pattern, iterated, body, dest)?;
            }
            Kind::Break(id, value) => self.break_expr(*id, value.as_deref())?,
            Kind::Continue(id) => self.continue_expr(*id),
            Kind::Return(value) => self.return_expr(value.as_deref(), expr.span)?,
            Kind::Closure(closure) => self.closure(closure, &self.ty_of(expr), dest)?,
            Kind::Call(callee, args) => self.call(expr, callee, args, dest)?,
            Kind::Cast(inner) => {
                let (from, to) = (Num::of(&self.ty_of(inner)), Num::of(&self.ty_of(expr)));
                let value = self.operand(inner)?;
                self.span = expr.span;
                self.emit(Inst::Cast { dest, from, to, value });
            }
            Kind::Format(format) => self.format(format, dest)?,
            Kind::Print { format, error, newline } => {
                let text = self.format_text(format, *newline)?;
                self.span = expr.span;
                self.emit(Inst::Print { text, error: *error });
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Panic(format) => {
                let text = self.format_text(format, false)?;
                self.span = expr.span;
                self.emit(Inst::Panic { text });
            }
            Kind::Assert(condition, message, text) => {
                let value = self.scalar(condition)?;
                self.span = expr.span;
                let fails = self.emit(Inst::Unless { condition: value, target: 0 });
                let over = self.emit(Inst::Jump(0));
                self.patch(&[fails]);
                let text = match message {
                    Some(message) => self.format_text(message, false)?,
                    None => Operand::Const(Value::text(text.as_str())),
                };
                self.span = expr.span;
                self.emit(Inst::Panic { text });
                self.patch(&[over]);
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::AssertEqual { left, right, equal, message } => {
                self.assert_equal(expr, left, right, *equal, message.as_ref())?;
                self.set(dest, Operand::Const(Value::Unit));
            }
        }
        Ok(())
    }

    fn set(&mut self, dest: Slot, value: Operand) {
        self.emit(Inst::Set { place: Place::slot(dest), value });
    }

    fn typed_literal(&self, expr: &Expr, value: &Value) -> Value {
        match (value, self.ty_of(expr)) {
            (Value::Float(value), Ty::Float(kind)) => Value::Float(kind.round(*value)),
            (value, _) => value.clone(),
        }
    }

    /// rustc's lint `overflowing_literals`, which is an error.
    fn literal_in_range(&self, expr: &Expr, value: &Value) -> Built<()> {
        let (Value::Int(value), Ty::Int(kind)) = (value, self.ty_of(expr)) else { return Ok(()) };
        if kind.holds(*value) {
            return Ok(());
        }
        let words = format!("literal out of range for `{}`", kind.name());
        Err(Diagnostic::check("overflowing_literals", expr.span, words).note(format!(
            "the literal `{value}` does not fit into the type `{}` whose range is `{}..={}`",
            kind.name(),
            kind.min(),
            kind.max()
        )))
    }

    /// The value as an operand: a place is copied or moved from, anything else is a temporary.
    fn operand(&mut self, expr: &Expr) -> Built<Operand> {
        self.span = expr.span;
        match &expr.kind {
            Kind::Literal(value) => {
                self.literal_in_range(expr, value)?;
                Ok(Operand::Const(self.typed_literal(expr, value)))
            }
            Kind::Tuple(parts) if parts.is_empty() => Ok(Operand::Const(Value::Unit)),
            Kind::Local(_) | Kind::Field(..) | Kind::Deref(_) | Kind::Index(..) => {
                let ty = self.ty_of(expr);
                let place = self.place(expr)?;
                if ty.is_copy() {
                    return Ok(Operand::Copy(place));
                }
                self.movable(expr)?;
                Ok(Operand::Move(place))
            }
            _ => {
                let ty = self.ty_of(expr);
                let dest = self.temp(ty, false);
                self.into(expr, dest)?;
                Ok(Operand::Move(Place::slot(dest)))
            }
        }
    }

    /// A scalar, through any references to it.
    fn scalar(&mut self, expr: &Expr) -> Built<Operand> {
        let mut ty = self.ty_of(expr);
        if !matches!(ty, Ty::Ref(..)) {
            return self.operand(expr);
        }
        let mut place = self.place_or_temp(expr)?;
        while let Ty::Ref(_, to) = &ty {
            place = place.step(Step::Deref);
            ty = (**to).clone();
        }
        Ok(Operand::Copy(place))
    }

    /// Evaluated now, whatever comes after it.
    fn settled(&mut self, expr: &Expr) -> Built<Operand> {
        let operand = self.operand(expr)?;
        match operand {
            Operand::Const(_) => Ok(operand),
            Operand::Move(place) if place.steps.is_empty() && self.is_temp(place.slot) => {
                Ok(Operand::Move(place))
            }
            _ => {
                let dest = self.temp(self.ty_of(expr), false);
                self.set(dest, operand);
                Ok(Operand::Move(Place::slot(dest)))
            }
        }
    }

    fn is_temp(&self, slot: Slot) -> bool {
        slot & GLOBAL == 0 && self.slots[slot as usize].name.is_none()
    }

    fn operands(&mut self, parts: &[Expr], extend: bool) -> Built<Vec<Operand>> {
        let parts: Vec<&Expr> = parts.iter().collect();
        self.operand_list(&parts, extend)
    }

    /// Left to right. A place is read late only when nothing after it can change it.
    fn operand_list(&mut self, parts: &[&Expr], extend: bool) -> Built<Vec<Operand>> {
        // From the back: whether everything after an operand is quiet, and still.
        let mut after = vec![(true, true); parts.len()];
        for index in (1..parts.len()).rev() {
            let (quiet, still) = after[index];
            after[index - 1] = (quiet && is_quiet(parts[index]), still && is_still(parts[index]));
        }
        let mut out = Vec::with_capacity(parts.len());
        for (part, (quiet, still)) in parts.iter().zip(after) {
            let quiet = still || (quiet && self.ty_of(part).is_copy());
            if extend && matches!(part.kind, Kind::Borrow(..) | Kind::Tuple(_) | Kind::List(_)) {
                let dest = self.temp(self.ty_of(part), true);
                self.extend = true;
                self.into(part, dest)?;
                self.extend = false;
                out.push(Operand::Move(Place::slot(dest)));
                continue;
            }
            out.push(if quiet { self.operand(part)? } else { self.settled(part)? });
        }
        Ok(out)
    }

    /// Moving out of what is only borrowed or indexed is refused.
    fn movable(&self, expr: &Expr) -> Built<()> {
        match &expr.kind {
            Kind::Deref(inner) => {
                let how = match self.ty_of(inner) {
                    Ty::Ref(true, _) => "mutable",
                    _ => "shared",
                };
                let name = self.describe(expr);
                Err(Diagnostic::check(
                    "E0507",
                    expr.span,
                    format!("cannot move out of {name} which is behind a {how} reference"),
                )
                .label("move occurs because the value does not implement the `Copy` trait")
                .help("borrow it (`&`), or clone it (`.clone()` shares an array's buffer)"))
            }
            Kind::Index(base, _) => {
                let ty = self.ty_of(base);
                let text = ty.to_string();
                if matches!(ty, Ty::Array(..) | Ty::Slice(_)) {
                    return Err(Diagnostic::check(
                        "E0508",
                        expr.span,
                        format!("cannot move out of type `{text}`, a non-copy array").replace(
                            "non-copy array",
                            match ty {
                                Ty::Slice(_) => "non-copy slice",
                                _ => "non-copy array",
                            },
                        ),
                    )
                    .label("cannot move out of here")
                    .help("consider borrowing here: `&`"));
                }
                Err(Diagnostic::check(
                    "E0507",
                    expr.span,
                    format!("cannot move out of index of `{text}`"),
                )
                .label("move occurs because the value does not implement the `Copy` trait")
                .help("consider borrowing here: `&`"))
            }
            Kind::Field(inner, _) => self.movable(inner),
            _ => Ok(()),
        }
    }

    /// A place as rustc names it in messages.
    fn describe(&self, expr: &Expr) -> String {
        fn text(builder: &Builder<'_>, expr: &Expr) -> Option<String> {
            match &expr.kind {
                Kind::Local(id) => Some(builder.context.locals[*id as usize].name.clone()),
                Kind::Deref(inner) => Some(format!("*{}", text(builder, inner)?)),
                Kind::Field(inner, u32::MAX) => text(builder, inner),
                Kind::Field(inner, index) => Some(format!("{}.{index}", text(builder, inner)?)),
                Kind::Index(inner, _) => Some(format!("{}[..]", text(builder, inner)?)),
                _ => None,
            }
        }
        match text(self, expr) {
            Some(text) => format!("`{text}`"),
            None => "a value".into(),
        }
    }

    /// The place that the expression names; a value is put into a temporary first.
    fn place(&mut self, expr: &Expr) -> Built<Place> {
        match &expr.kind {
            Kind::Local(local) => Ok(Place::slot(self.slot_of(*local))),
            Kind::Field(base, u32::MAX) => self.place(base),
            Kind::Field(base, index) => Ok(self.place(base)?.step(Step::Child(*index))),
            Kind::Deref(inner) => {
                if matches!(self.ty_of(inner), Ty::Ref(..)) {
                    return Ok(self.place_or_temp(inner)?.step(Step::Deref));
                }
                self.place(inner)
            }
            Kind::Index(base, at) if !is_unsized(&self.ty_of(expr)) => {
                let place = self.place_or_temp(base)?;
                if let Kind::Literal(Value::Int(at)) = &at.kind
                    && let Ok(at) = u32::try_from(*at)
                {
                    return Ok(place.step(Step::At(at)));
                }
                let index = self.temp(Ty::usize(), false);
                self.into(at, index)?;
                self.span = expr.span;
                Ok(place.step(Step::Index(index)))
            }
            Kind::Index(..) => {
                // A slice as a place: the reference to it, looked through.
                let dest = self.temp(Ty::reference(self.ty_of(expr)), false);
                self.slice(false, expr, dest)?;
                Ok(Place::slot(dest).step(Step::Deref))
            }
            Kind::Member(base, name) => {
                let place = self.place_or_temp(base)?;
                let dest = self.temp(self.ty_of(expr), false);
                self.emit(Inst::Member { dest, place, name });
                Ok(Place::slot(dest))
            }
            _ => self.place_or_temp(expr),
        }
    }

    fn place_or_temp(&mut self, expr: &Expr) -> Built<Place> {
        if is_place(expr) {
            return self.place(expr);
        }
        let extend = std::mem::take(&mut self.extend);
        let dest = self.temp(self.ty_of(expr), extend);
        self.into(expr, dest)?;
        Ok(Place::slot(dest))
    }

    /// What a pattern is matched against.
    fn scrutinee(&mut self, expr: &Expr) -> Built<Place> {
        if is_place(expr) {
            return self.place(expr);
        }
        let extend = self.extend;
        let dest = self.temp(self.ty_of(expr), false);
        self.extend = extend;
        self.into(expr, dest)?;
        self.extend = false;
        Ok(Place::slot(dest))
    }

    fn borrow(
        &mut self,
        mutable: bool,
        inner: &Expr,
        dest: Slot,
        extend: bool,
        span: Span,
    ) -> Built<()> {
        if let Kind::Index(..) = inner.kind
            && is_unsized(&self.ty_of(inner))
        {
            return self.slice(mutable, inner, dest);
        }
        let place = if is_place(inner) {
            self.place(inner)?
        } else {
            let slot = if is_promoted(inner) {
                self.new_slot(self.ty_of(inner), None, false, span)
            } else {
                self.temp(self.ty_of(inner), extend)
            };
            self.extend = extend;
            self.into(inner, slot)?;
            self.extend = false;
            Place::slot(slot)
        };
        self.span = span;
        self.emit(Inst::Ref { dest, place, mutable });
        Ok(())
    }

    /// `&v[a..b]`.
    fn slice(&mut self, mutable: bool, expr: &Expr, dest: Slot) -> Built<()> {
        let Kind::Index(base, range) = &expr.kind else { unreachable!("the caller saw an index") };
        let place = self.place_or_temp(base)?;
        let range = self.operand(range)?;
        self.span = expr.span;
        self.emit(Inst::SliceOf { dest, place, range, mutable });
        Ok(())
    }

    fn lazy(&mut self, left: &Expr, right: &Expr, or: bool, dest: Slot) -> Built<()> {
        if has_let(left) || has_let(right) {
            let mut fails = Vec::new();
            self.condition(left, &mut fails)?;
            self.condition(right, &mut fails)?;
            self.set(dest, Operand::Const(Value::Bool(true)));
            let over = self.emit(Inst::Jump(0));
            self.patch(&fails);
            self.set(dest, Operand::Const(Value::Bool(false)));
            self.patch(&[over]);
            return Ok(());
        }
        let result = dest;
        let dest = self.new_slot(Ty::Bool, None, true, left.span);
        self.into(left, dest)?;
        let condition = Operand::Copy(Place::slot(dest));
        let skip = self.emit(Inst::Unless { condition, target: 0 });
        if or {
            let over = self.emit(Inst::Jump(0));
            self.patch(&[skip]);
            self.open(ScopeKind::Statement);
            self.into(right, dest)?;
            self.close();
            self.patch(&[over]);
        } else {
            self.open(ScopeKind::Statement);
            self.into(right, dest)?;
            self.close();
            self.patch(&[skip]);
        }
        self.set(result, Operand::Copy(Place::slot(dest)));
        Ok(())
    }

    /// A chain of operators goes down its left spine without recursion.
    fn binary(&mut self, expr: &Expr, dest: Slot) -> Built<()> {
        let mut spine = Vec::new();
        let mut first = expr;
        while let Kind::Binary(_, left, _) = &first.kind {
            spine.push(first);
            first = left;
        }
        let mut left: Option<(Operand, Ty)> = None;
        for (index, node) in spine.iter().enumerate().rev() {
            let Kind::Binary(op, first, right) = &node.kind else {
                unreachable!("the spine holds binary nodes")
            };
            let last = index == 0;
            let target = if last { dest } else { self.temp(self.ty_of(node), false) };
            self.binary_node(node, *op, left.take(), first, right, target)?;
            left = Some((Operand::Move(Place::slot(target)), self.ty_of(node)));
        }
        Ok(())
    }

    fn binary_node(
        &mut self,
        node: &Expr,
        op: BinaryOp,
        done: Option<(Operand, Ty)>,
        first: &Expr,
        right: &Expr,
        dest: Slot,
    ) -> Built<()> {
        let left_ty = match &done {
            Some((_, ty)) => ty.clone(),
            None => self.ty_of(first),
        };
        let right_ty = self.ty_of(right);
        let arrays = left_ty.peeled().is_named("Array") || right_ty.peeled().is_named("Array");
        if arrays && !op.is_comparison() {
            let left = match done {
                Some((operand, _)) => operand,
                None if is_still(right) || (left_ty.is_copy() && is_quiet(right)) => {
                    self.operand(first)?
                }
                None => self.settled(first)?,
            };
            let right = self.operand(right)?;
            self.span = node.span;
            self.emit(Inst::ArrayBinary { dest, op, left, right });
            return Ok(());
        }
        let num = Num::of(&left_ty);
        if op == BinaryOp::Add && num == Num::Other {
            let left = match done {
                Some((operand, _)) => operand,
                None => self.settled(first)?,
            };
            let right = self.operand(right)?;
            self.span = node.span;
            self.emit(Inst::Binary { dest, op, num, left, right });
            return Ok(());
        }
        if num == Num::Other {
            let left = match done {
                Some((operand, _)) => operand,
                None => self.looked(first)?,
            };
            let right = self.looked(right)?;
            self.span = node.span;
            self.emit(Inst::Binary { dest, op, num, left, right });
            return Ok(());
        }
        let left = match done {
            Some((operand, _)) => operand,
            None if is_quiet(right) => self.scalar(first)?,
            None => {
                let operand = self.scalar(first)?;
                let slot = self.temp(left_ty.peeled().clone(), false);
                self.set(slot, operand);
                Operand::Move(Place::slot(slot))
            }
        };
        let right = self.scalar(right)?;
        self.span = node.span;
        self.emit(Inst::Binary { dest, op, num, left, right });
        Ok(())
    }

    /// A reference to the value, for comparisons.
    fn looked(&mut self, expr: &Expr) -> Built<Operand> {
        let ty = self.ty_of(expr);
        if is_place(expr) && !ty.is_copy() {
            let place = self.place(expr)?;
            let dest = self.temp(Ty::reference(ty), false);
            self.span = expr.span;
            self.emit(Inst::Ref { dest, place, mutable: false });
            return Ok(Operand::Copy(Place::slot(dest)));
        }
        self.settled(expr)
    }

    fn assign(&mut self, place: &Expr, value: &Expr) -> Built<()> {
        let span = place.span;
        let operand = self.operand(value)?;
        let target = self.place(place)?;
        self.span = span;
        self.emit(Inst::Set { place: target.clone(), value: operand });
        self.name_place(place, target);
        Ok(())
    }

    /// After an assignment: the tables name the array by its path.
    fn name_place(&mut self, expr: &Expr, place: Place) {
        if !self.ty_of(expr).holds_arrays() {
            return;
        }
        if let Some(name) = self.base_name(place.slot) {
            self.emit(Inst::Bound { place, name, last: false });
        }
    }

    fn base_name(&self, slot: Slot) -> Option<Arc<str>> {
        let facts = if slot & GLOBAL != 0 {
            &self.globals[*self.known.get(&slot)?].1
        } else {
            &self.slots[slot as usize]
        };
        facts.name.as_deref().map(Arc::from)
    }

    fn compound(&mut self, op: BinaryOp, place: &Expr, value: &Expr, span: Span) -> Built<()> {
        let num = Num::of(&self.ty_of(place));
        if self.ty_of(place).is_named("Array") {
            return self.compound_array(op, place, value, span);
        }
        let right = if num == Num::Other { self.operand(value)? } else { self.scalar(value)? };
        let target = self.place(place)?;
        let captured = self.upvars.iter().any(|upvar| upvar.slot == target.slot);
        if target.steps.is_empty() && num != Num::Other && !captured {
            self.span = span;
            self.emit(Inst::Binary {
                dest: target.slot,
                op,
                num,
                left: Operand::Copy(target),
                right,
            });
            return Ok(());
        }
        let ty = self.ty_of(place);
        let result = self.temp(ty.clone(), false);
        self.span = span;
        let left = if ty.is_copy() {
            Operand::Copy(target.clone())
        } else {
            Operand::Move(target.clone())
        };
        self.emit(Inst::Binary { dest: result, op, num, left, right });
        self.emit(Inst::Set { place: target, value: Operand::Move(Place::slot(result)) });
        Ok(())
    }

    /// `x += y` of arrays: a new array, then the old one ends.
    fn compound_array(
        &mut self,
        op: BinaryOp,
        place: &Expr,
        value: &Expr,
        span: Span,
    ) -> Built<()> {
        let right = self.settled(value)?;
        let target = self.place(place)?;
        let reference = self.temp(Ty::Ref(true, Arc::new(Ty::array())), false);
        self.span = span;
        self.emit(Inst::Ref { dest: reference, place: target.clone(), mutable: true });
        let result = self.temp(Ty::array(), false);
        let left = Operand::Copy(Place::slot(reference));
        self.emit(Inst::ArrayBinary { dest: result, op, left, right });
        self.emit(Inst::Set {
            place: Place::slot(reference).step(Step::Deref),
            value: Operand::Move(Place::slot(result)),
        });
        self.name_place(place, target);
        Ok(())
    }

    /// Falls through when it holds; the jumps in `fails` are taken when it does not.
    fn condition(&mut self, expr: &Expr, fails: &mut Vec<usize>) -> Built<()> {
        match &expr.kind {
            Kind::And(left, right) => {
                self.condition(left, fails)?;
                self.condition(right, fails)
            }
            Kind::Let(pattern, value) => {
                let place = self.scrutinee(value)?;
                self.span = expr.span;
                self.test(pattern, place.clone(), fails)?;
                self.bind(pattern, place)
            }
            _ => {
                let kept = self.new_slot(Ty::Bool, None, true, expr.span);
                self.open(ScopeKind::Statement);
                if matches!(self.ty_of(expr), Ty::Ref(..)) {
                    let condition = self.scalar(expr)?;
                    self.set(kept, condition);
                } else {
                    self.into(expr, kept)?;
                }
                self.close();
                let condition = Operand::Copy(Place::slot(kept));
                self.span = expr.span;
                fails.push(self.emit(Inst::Unless { condition, target: 0 }));
                Ok(())
            }
        }
    }

    fn if_expr(
        &mut self,
        condition: &Expr,
        then: &Block,
        otherwise: Option<&Expr>,
        dest: Slot,
    ) -> Built<()> {
        let mut fails = Vec::new();
        self.open(ScopeKind::Block);
        self.condition(condition, &mut fails)?;
        self.block(then, dest)?;
        let drops = self.close();
        let over = self.emit(Inst::Jump(0));
        self.patch(&fails);
        self.drop_all(&drops);
        match otherwise {
            Some(otherwise) => self.into(otherwise, dest)?,
            None => self.set(dest, Operand::Const(Value::Unit)),
        }
        self.patch(&[over]);
        Ok(())
    }

    fn match_expr(&mut self, expr: &Expr, scrutinee: &Expr, arms: &[Arm], dest: Slot) -> Built<()> {
        let ty = self.ty_of(scrutinee);
        exhaustive::check_match(&ty, arms, self.context.infer, scrutinee.span)?;
        let place = self.scrutinee(scrutinee)?;
        self.span = scrutinee.span;
        self.emit(Inst::Look(place.clone()));
        let mut ends = Vec::new();
        for arm in arms {
            let mut fails = Vec::new();
            self.span = arm.pattern.span;
            self.test(&arm.pattern, place.clone(), &mut fails)?;
            self.open(ScopeKind::Block);
            let moves = arm.guard.is_some() && self.binds_by_move(&arm.pattern);
            // A guard only looks at what the arm will move.
            self.peek = moves;
            self.bind(&arm.pattern, place.clone())?;
            self.peek = false;
            let mut guard_fails = Vec::new();
            if let Some(guard) = &arm.guard {
                self.condition(guard, &mut guard_fails)?;
            }
            if moves {
                let mut names = Vec::new();
                pattern_locals(&arm.pattern, &mut names);
                for name in names {
                    let slot = self.slot_of(name);
                    self.emit(Inst::Drop(slot));
                }
                self.span = arm.pattern.span;
                self.bind(&arm.pattern, place.clone())?;
            }
            self.open(ScopeKind::Statement);
            self.into(&arm.body, dest)?;
            self.close();
            let drops = self.close();
            ends.push(self.emit(Inst::Jump(0)));
            if !guard_fails.is_empty() {
                self.patch(&guard_fails);
                self.drop_all(&drops);
                let next = self.emit(Inst::Jump(0));
                fails.push(next);
            }
            self.patch(&fails);
        }
        self.span = expr.span;
        self.emit(Inst::Panic {
            text: Operand::Const(Value::text("internal error: entered unreachable code")),
        });
        self.patch(&ends);
        Ok(())
    }

    fn binds_by_move(&self, pattern: &Pattern) -> bool {
        match &pattern.kind {
            PatternKind::Bind { local, by, inner } => {
                let ty = self.ty(&self.context.locals[*local as usize].ty);
                (*by == Binding::Value && !ty.is_copy())
                    || inner.as_ref().is_some_and(|inner| self.binds_by_move(inner))
            }
            PatternKind::Tuple(parts) | PatternKind::Or(parts) => {
                parts.iter().any(|part| self.binds_by_move(part))
            }
            PatternKind::Slice { before, rest, after } => {
                before.iter().chain(after).any(|part| self.binds_by_move(part))
                    || matches!(rest, Some(Some(rest)) if self.binds_by_move(rest))
            }
            PatternKind::Some(inner)
            | PatternKind::Outcome(_, inner)
            | PatternKind::Deref(inner) => self.binds_by_move(inner),
            _ => false,
        }
    }

    /// Whether the place matches; the names are bound afterwards.
    fn test(&mut self, pattern: &Pattern, place: Place, fails: &mut Vec<usize>) -> Built<()> {
        match &pattern.kind {
            PatternKind::Wild | PatternKind::Assign(_) => {}
            PatternKind::Bind { inner, .. } => {
                if let Some(inner) = inner {
                    self.test(inner, place, fails)?;
                }
            }
            PatternKind::Literal(value) => {
                let value = match (value, self.ty(&pattern.ty)) {
                    (Value::Float(value), Ty::Float(kind)) => Value::Float(kind.round(*value)),
                    (value, _) => value.clone(),
                };
                let test = Test::Equals(value);
                fails.push(self.emit(Inst::Test { place, test, otherwise: 0 }));
            }
            PatternKind::Range { low, high, inclusive } => {
                let test =
                    Test::Between { low: low.clone(), high: high.clone(), inclusive: *inclusive };
                fails.push(self.emit(Inst::Test { place, test, otherwise: 0 }));
            }
            PatternKind::Tuple(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    self.test(part, place.clone().step(Step::Child(index as u32)), fails)?;
                }
            }
            PatternKind::Slice { before, rest, after } => {
                if !matches!(self.ty(&pattern.ty), Ty::Array(..)) {
                    let count = before.len() + after.len();
                    let test = Test::Length { count, at_least: rest.is_some() };
                    let place = place.clone();
                    fails.push(self.emit(Inst::Test { place, test, otherwise: 0 }));
                }
                for (index, part) in before.iter().enumerate() {
                    self.test(part, place.clone().step(Step::Child(index as u32)), fails)?;
                }
                for (index, part) in after.iter().enumerate() {
                    let step = Step::FromEnd((after.len() - index) as u32);
                    self.test(part, place.clone().step(step), fails)?;
                }
            }
            PatternKind::Some(inner) => {
                let test = Test::Some;
                fails.push(self.emit(Inst::Test { place: place.clone(), test, otherwise: 0 }));
                self.test(inner, place.step(Step::Child(0)), fails)?;
            }
            PatternKind::Outcome(ok, inner) => {
                let test = if *ok { Test::Ok } else { Test::Err };
                fails.push(self.emit(Inst::Test { place: place.clone(), test, otherwise: 0 }));
                self.test(inner, place.step(Step::Child(0)), fails)?;
            }
            PatternKind::None => {
                let test = Test::None;
                fails.push(self.emit(Inst::Test { place, test, otherwise: 0 }));
            }
            PatternKind::Deref(inner) => self.test(inner, place.step(Step::Deref), fails)?,
            PatternKind::Or(cases) => {
                let mut matched = Vec::new();
                for (index, case) in cases.iter().enumerate() {
                    let mut own = Vec::new();
                    self.test(case, place.clone(), &mut own)?;
                    if index + 1 == cases.len() {
                        fails.extend(own);
                    } else {
                        matched.push(self.emit(Inst::Jump(0)));
                        self.patch(&own);
                    }
                }
                self.patch(&matched);
            }
        }
        Ok(())
    }

    /// Gives the pattern's names their values; the pattern matches.
    fn bind(&mut self, pattern: &Pattern, place: Place) -> Built<()> {
        match &pattern.kind {
            PatternKind::Bind { local, by, inner } => {
                self.bind_name(pattern, *local, *by, place.clone())?;
                if let Some(inner) = inner {
                    self.bind(inner, place)?;
                }
            }
            PatternKind::Assign(target) => {
                let ty = self.ty_of(target);
                let value = if ty.is_copy() { Operand::Copy(place) } else { Operand::Move(place) };
                let to = self.place(target)?;
                self.span = pattern.span;
                self.emit(Inst::Set { place: to.clone(), value });
                self.name_place(target, to);
            }
            PatternKind::Tuple(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    self.bind(part, place.clone().step(Step::Child(index as u32)))?;
                }
            }
            PatternKind::Slice { before, rest, after } => {
                for (index, part) in before.iter().enumerate() {
                    self.bind(part, place.clone().step(Step::Child(index as u32)))?;
                }
                if let Some(Some(rest)) = rest {
                    self.bind_rest(rest, place.clone(), before.len(), after.len())?;
                }
                for (index, part) in after.iter().enumerate() {
                    let step = Step::FromEnd((after.len() - index) as u32);
                    self.bind(part, place.clone().step(step))?;
                }
            }
            PatternKind::Some(inner) | PatternKind::Outcome(_, inner) => {
                self.bind(inner, place.step(Step::Child(0)))?;
            }
            PatternKind::Deref(inner) => self.bind(inner, place.step(Step::Deref))?,
            PatternKind::Or(cases) => self.bind_or(cases, place)?,
            PatternKind::Wild
            | PatternKind::Literal(_)
            | PatternKind::Range { .. }
            | PatternKind::None => {}
        }
        Ok(())
    }

    fn bind_name(
        &mut self,
        pattern: &Pattern,
        local: LocalId,
        by: Binding,
        place: Place,
    ) -> Built<()> {
        self.span = pattern.span;
        let slot = self.declare(local);
        let ty = self.ty(&pattern.ty);
        match by {
            Binding::Value if ty.is_copy() || self.peek => self.set(slot, Operand::Copy(place)),
            Binding::Value => {
                if place.steps.contains(&Step::Deref) {
                    return Err(Diagnostic::check(
                        "E0507",
                        pattern.span,
                        "cannot move out of a reference in a pattern".to_string(),
                    )
                    .label("data moved here"));
                }
                self.set(slot, Operand::Move(place));
            }
            Binding::Ref => {
                self.emit(Inst::Ref { dest: slot, place, mutable: false });
            }
            Binding::Mut => {
                self.emit(Inst::Ref { dest: slot, place, mutable: true });
            }
        }
        self.name_bound(local);
        Ok(())
    }

    fn bind_rest(&mut self, rest: &Pattern, place: Place, skip: usize, leave: usize) -> Built<()> {
        let PatternKind::Bind { local, by, .. } = &rest.kind else { return Ok(()) };
        self.span = rest.span;
        let slot = self.declare(*local);
        self.emit(Inst::Rest {
            dest: slot,
            place,
            skip: skip as u32,
            leave: leave as u32,
            by: *by,
        });
        self.name_bound(*local);
        Ok(())
    }

    /// Tests again which case it was: the same names are bound in each.
    fn bind_or(&mut self, cases: &[Pattern], place: Place) -> Built<()> {
        let mut names = Vec::new();
        cases.iter().for_each(|case| pattern_locals(case, &mut names));
        if names.is_empty() {
            return Ok(());
        }
        let mut ends = Vec::new();
        for (index, case) in cases.iter().enumerate() {
            let mut fails = Vec::new();
            if index + 1 < cases.len() {
                self.test(case, place.clone(), &mut fails)?;
            }
            self.bind(case, place.clone())?;
            ends.push(self.emit(Inst::Jump(0)));
            self.patch(&fails);
        }
        self.patch(&ends);
        Ok(())
    }

    fn loop_expr(&mut self, id: LoopId, body: &Block, dest: Slot) -> Built<()> {
        let head = self.here();
        self.loops.push(LoopFrame {
            id,
            dest: Some(dest),
            depth: self.scopes.len(),
            breaks: Vec::new(),
            continues: Vec::new(),
            head: Some(head),
        });
        let unit = self.new_slot(Ty::unit(), None, true, body.span);
        self.open(ScopeKind::Block);
        self.block(body, unit)?;
        self.close();
        self.emit(Inst::Jump(head));
        let own = self.loops.pop().expect("pushed above");
        self.patch(&own.breaks);
        Ok(())
    }

    fn while_expr(&mut self, id: LoopId, condition: &Expr, body: &Block, dest: Slot) -> Built<()> {
        let head = self.here();
        self.loops.push(LoopFrame {
            id,
            dest: None,
            depth: self.scopes.len(),
            breaks: Vec::new(),
            continues: Vec::new(),
            head: Some(head),
        });
        let unit = self.new_slot(Ty::unit(), None, true, body.span);
        let mut fails = Vec::new();
        self.open(ScopeKind::Block);
        self.condition(condition, &mut fails)?;
        self.block(body, unit)?;
        let drops = self.close();
        self.emit(Inst::Jump(head));
        self.patch(&fails);
        self.drop_all(&drops);
        let own = self.loops.pop().expect("pushed above");
        self.patch(&own.breaks);
        self.set(dest, Operand::Const(Value::Unit));
        Ok(())
    }

    fn for_expr(
        &mut self,
        id: LoopId,
        pattern: &Pattern,
        iterated: &Expr,
        body: &Block,
        dest: Slot,
    ) -> Built<()> {
        exhaustive::irrefutable(pattern, self.context.infer, "`for` loop binding")?;
        let iterated_ty = self.ty_of(iterated);
        self.open(ScopeKind::Statement);
        let value = self.operand(iterated)?;
        let item = self.ty(&pattern.ty);
        let holder = if iterated_ty.holds_references() {
            Ty::generic("Iter", Ty::reference(item.clone()))
        } else {
            Ty::generic("Vec", item.clone())
        };
        let iter = self.temp(holder, false);
        self.span = iterated.span;
        self.emit(Inst::Iterate { dest: iter, value });
        let head = self.here();
        self.loops.push(LoopFrame {
            id,
            dest: None,
            depth: self.scopes.len(),
            breaks: Vec::new(),
            continues: Vec::new(),
            head: Some(head),
        });
        let unit = self.new_slot(Ty::unit(), None, true, body.span);
        self.open(ScopeKind::Block);
        let slot = match &pattern.kind {
            PatternKind::Bind { local, by: Binding::Value, inner: None } => self.declare(*local),
            _ => self.temp(item, false),
        };
        let next = self.emit(Inst::Next { iter, dest: slot, exit: 0 });
        match &pattern.kind {
            PatternKind::Bind { local, by: Binding::Value, inner: None } => {
                self.name_bound(*local);
            }
            _ => self.bind(pattern, Place::slot(slot))?,
        }
        self.block(body, unit)?;
        self.close();
        self.emit(Inst::Jump(head));
        let own = self.loops.pop().expect("pushed above");
        self.patch(&[next]);
        // At its end the iterator gave no value.
        self.emit(Inst::Drop(slot));
        self.patch(&own.breaks);
        self.close();
        self.set(dest, Operand::Const(Value::Unit));
        Ok(())
    }

    fn break_expr(&mut self, id: LoopId, value: Option<&Expr>) -> Built<()> {
        let index = self.loop_index(id);
        if let Some(dest) = self.loops[index].dest {
            match value {
                Some(value) => self.into(value, dest)?,
                None => self.set(dest, Operand::Const(Value::Unit)),
            }
        }
        let depth = self.loops[index].depth;
        self.leave(depth);
        let jump = self.emit(Inst::Jump(0));
        self.loops[index].breaks.push(jump);
        Ok(())
    }

    fn continue_expr(&mut self, id: LoopId) {
        let index = self.loop_index(id);
        let depth = self.loops[index].depth;
        self.leave(depth);
        match self.loops[index].head {
            Some(head) => {
                self.emit(Inst::Jump(head));
            }
            None => {
                let jump = self.emit(Inst::Jump(0));
                self.loops[index].continues.push(jump);
            }
        }
    }

    fn loop_index(&self, id: LoopId) -> usize {
        self.loops
            .iter()
            .rposition(|own| own.id == id)
            .expect("the check resolved the loop in this body")
    }

    fn return_expr(&mut self, value: Option<&Expr>, span: Span) -> Built<()> {
        let ret = self.ret.clone();
        let dest = self.new_slot(ret, None, true, span);
        match value {
            Some(value) => self.into(value, dest)?,
            None => self.set(dest, Operand::Const(Value::Unit)),
        }
        self.leave(0);
        self.span = span;
        self.emit(Inst::Return(Operand::Move(Place::slot(dest))));
        Ok(())
    }

    /// `f64::max` as a function of its own.
    fn method_value(&self, candidate: Candidate, ty: &Ty) -> Value {
        let (id, sig) = match ty {
            Ty::FnItem(id, sig) => (*id, sig),
            Ty::FnPtr(sig) => (0, sig),
            _ => unreachable!("methods as values are functions"),
        };
        let count = sig.params.len() as u32;
        let args: Vec<Operand> = (0..count).map(|slot| Operand::Move(Place::slot(slot))).collect();
        let call = match candidate {
            Candidate::Item(item) => Inst::CallSurface { dest: count, item, args },
            Candidate::Row(row) => {
                let meta = Meta { args: sig.params.clone(), ret: sig.ret.clone() };
                Inst::CallLibrary { dest: count, row, args, meta: Arc::new(meta) }
            }
        };
        let insts = vec![call, Inst::Return(Operand::Move(Place::slot(count)))];
        let spans = vec![self.span; insts.len()];
        let code = Code {
            name: candidate.name().into(),
            cell: self.context.cell,
            slots: count + 1,
            args: count,
            captures: 0,
            insts,
            spans,
            restores: HashMap::new(),
        };
        let cell = FnCell {
            id,
            name: candidate.name().into(),
            sig: sig.clone(),
            code: std::sync::OnceLock::from(Arc::new(code)),
            source: String::new(),
        };
        Value::Code(Arc::new(cell))
    }

    fn question_mark(&mut self, inner: &Expr, dest: Slot) -> Built<()> {
        let span = self.span;
        let ty = self.ty_of(inner);
        let place = self.scrutinee(inner)?;
        self.span = span;
        let none = self.emit(Inst::Test { place: place.clone(), test: Test::Some, otherwise: 0 });
        let content = place.step(Step::Child(0));
        let copy = matches!(&ty, Ty::Named(_, arguments) if arguments[0].is_copy());
        let value = if copy { Operand::Copy(content) } else { Operand::Move(content) };
        self.set(dest, value);
        let over = self.emit(Inst::Jump(0));
        self.patch(&[none]);
        let ret = self.ret.clone();
        let result = self.new_slot(ret, None, true, span);
        self.set(result, Operand::Const(Value::none()));
        self.leave(0);
        self.emit(Inst::Return(Operand::Move(Place::slot(result))));
        self.patch(&[over]);
        Ok(())
    }

    fn closure(&mut self, closure: &Closure, ty: &Ty, dest: Slot) -> Built<()> {
        let Ty::Closure(closure_ty) = ty else { unreachable!("closures have closure types") };
        let mut inner = Builder::new(self.context, closure.body_id, "closure");
        inner.next_global = self.next_global;
        inner.is_closure = true;
        inner.wanted = closure.wanted;
        inner.ret = self.ty(&closure_ty.sig.ret);
        inner.function(&closure.params, &closure.body)?;
        self.next_global = inner.next_global;
        capture_parts(&mut inner);
        let modes = capture_modes(&inner, closure.by_move);
        let kind = closure_kind(&inner);
        // `seal` wants captures right behind the arguments.
        place_captures(&mut inner, &modes);
        let mut facts = ClosureFacts { kind, borrows: false, copy: true, drops: false };
        let mut captures = Vec::new();
        for (upvar, mode) in inner.upvars.iter().zip(&modes) {
            let slot = self.slot_of(upvar.local);
            let mut ty = self.ty(&self.context.locals[upvar.local as usize].ty);
            let mut place = Place::slot(slot);
            if let (Some(field), Ty::Tuple(parts)) = (upvar.field, &ty) {
                place = place.step(Step::Child(field));
                ty = parts[field as usize].clone();
            }
            self.span = closure.head;
            match mode {
                Capture::Value => {
                    facts.borrows |= ty.holds_references();
                    facts.copy &= ty.is_copy();
                    facts.drops |= ty.needs_drop();
                    captures.push(if ty.is_copy() {
                        Operand::Copy(place)
                    } else {
                        Operand::Move(place)
                    });
                }
                Capture::Ref | Capture::Mut => {
                    let mutable = *mode == Capture::Mut;
                    facts.borrows = true;
                    facts.copy &= !mutable;
                    let temp = self.temp(Ty::Ref(mutable, Arc::new(ty)), false);
                    self.emit(Inst::Ref { dest: temp, place, mutable });
                    captures.push(Operand::Move(Place::slot(temp)));
                }
                Capture::Reborrow => {
                    facts.borrows = true;
                    facts.copy = false;
                    let temp = self.temp(ty, false);
                    self.emit(Inst::Ref {
                        dest: temp,
                        place: place.step(Step::Deref),
                        mutable: true,
                    });
                    captures.push(Operand::Move(Place::slot(temp)));
                }
            }
        }
        let pointer = self.context.pointers.iter().find(|(id, ..)| *id == closure_ty.id);
        if let Some((_, span, words)) = pointer
            && !inner.upvars.is_empty()
        {
            return Err(Diagnostic::check("E0308", *span, "mismatched types")
                .label(words.clone())
                .note("closures can only be coerced to `fn` types if they do not capture any variables"));
        }
        let _ = closure_ty.facts.set(facts);
        if let Some(wanted) = closure.wanted
            && kind > wanted
        {
            return Err(wrong_kind(&inner, wanted, self.context.locals));
        }
        let draft = inner.finish();
        flow::check(&draft, self.context.cell)?;
        let code = Arc::new(seal(draft, self.context.cell));
        self.span = closure.head;
        self.emit(Inst::Closure { dest, code, captures });
        Ok(())
    }

    fn call(&mut self, expr: &Expr, callee: &Callee, args: &[Expr], dest: Slot) -> Built<()> {
        match callee {
            Callee::Function(cell) => {
                let operands = self.operands(args, false)?;
                for (arg, param) in args.iter().zip(&cell.sig.params) {
                    if matches!(param, Ty::Named(name, _) if name.starts_with("impl ")) {
                        closure_fits(&self.ty_of(arg), crate::check::kind_of(param), arg.span)?;
                    }
                }
                self.span = expr.span;
                self.emit(Inst::Call { dest, function: cell.clone(), args: operands });
            }
            Callee::Value(callee) => self.call_value(expr, callee, args, dest)?,
            Callee::Surface(item, types) => {
                let sig = Candidate::Item(item).signature();
                let mut operands = self.arguments(sig, args)?;
                self.check_bounds(sig, args, &operands)?;
                let at = usize::from(sig.receiver.is_some());
                for (index, ty) in types.iter().enumerate() {
                    let value = library::element_value(&self.ty(ty));
                    operands.insert(at + index, Operand::Const(value));
                }
                self.span = expr.span;
                if let [function, given] = args
                    && let Ty::Named("Jit", arguments) = self.ty_of(function).peeled()
                    && let Ty::Const(want) = arguments[0]
                    && self.ty_of(given).is_named("Vec")
                    && let Some(Operand::Move(list) | Operand::Copy(list)) = operands.get(1)
                {
                    self.emit(Inst::Count { list: list.clone(), want: want as usize });
                }
                self.emit(Inst::CallSurface { dest, item, args: operands });
            }
            Callee::Library(row) => {
                let sig = Candidate::Row(row).signature();
                let operands = self.arguments(sig, args)?;
                self.check_bounds(sig, args, &operands)?;
                let meta = Meta {
                    args: args.iter().map(|arg| self.ty_of(arg)).collect(),
                    ret: self.ty_of(expr),
                };
                self.span = expr.span;
                self.emit(Inst::CallLibrary { dest, row, args: operands, meta: Arc::new(meta) });
                self.name_grown(row, args);
            }
        }
        Ok(())
    }

    /// `params.push(w)`: the tables name the element by its path.
    fn name_grown(&mut self, row: &library::Row, args: &[Expr]) {
        if !row.grows {
            return;
        }
        if let Some(Expr { kind: Kind::Borrow(true, inner), .. }) = args.first()
            && self.ty_of(inner).holds_arrays()
            && let Kind::Local(local) = &inner.kind
        {
            let place = Place::slot(self.slot_of(*local));
            if let Some(name) = self.base_name(place.slot) {
                self.emit(Inst::Bound { place, name, last: row.name() == "push" });
            }
        }
    }

    /// A method's receiver that is borrowed mutably is borrowed last (two-phase borrows).
    fn arguments(&mut self, sig: &Signature, args: &[Expr]) -> Built<Vec<Operand>> {
        if let Some((first, rest)) = args.split_first()
            && sig.receiver.is_some()
            && let Kind::Borrow(true, inner) = &first.kind
            && is_place(inner)
            && !rest.is_empty()
            && !(matches!(inner.kind, Kind::Index(..)) && is_unsized(&self.ty_of(inner)))
        {
            let place = self.place(inner)?;
            let reserved = self.reserve(&place, self.ty_of(first), first.span, rest);
            let mut operands = self.operands(rest, false)?;
            for (operand, arg) in operands.iter_mut().zip(rest) {
                if let Operand::Copy(own) | Operand::Move(own) = operand
                    && own.slot == place.slot
                {
                    let kept = self.temp(self.ty_of(arg), false);
                    self.set(kept, operand.clone());
                    *operand = Operand::Move(Place::slot(kept));
                }
            }
            let slot = self.temp(self.ty_of(first), false);
            self.span = first.span;
            if let Some(reserved) = reserved {
                self.emit(Inst::Look(Place::slot(reserved)));
            }
            self.emit(Inst::Ref { dest: slot, place, mutable: true });
            operands.insert(0, Operand::Move(Place::slot(slot)));
            return Ok(operands);
        }
        self.operands(args, false)
    }

    /// From here to its activation the place may be read and not changed. Nothing runs for it.
    fn reserve(&mut self, place: &Place, ty: Ty, span: Span, rest: &[Expr]) -> Option<Slot> {
        if rest.iter().all(|part| matches!(part.kind, Kind::Literal(_) | Kind::Local(_))) {
            return None;
        }
        let slot = self.new_slot(ty, None, true, span);
        self.span = span;
        self.emit(Inst::Ref { dest: slot, place: place.clone(), mutable: false });
        Some(slot)
    }

    /// What `'static` and the closure traits ask of the arguments.
    fn check_bounds(&mut self, sig: &Signature, args: &[Expr], operands: &[Operand]) -> Built<()> {
        let offset = usize::from(sig.receiver.is_some());
        for (index, (_, param)) in sig.params.iter().enumerate() {
            let Ty::Param(generic) = param else { continue };
            let Some(arg) = args.get(index + offset) else { continue };
            let ty = self.ty_of(arg);
            for bound in &sig.generics[*generic as usize].bounds {
                match bound {
                    Bound::Static => {
                        if let Some(Operand::Move(place) | Operand::Copy(place)) =
                            operands.get(index + offset)
                        {
                            let closure = matches!(ty, Ty::Closure(_));
                            self.span = arg.span;
                            self.emit(Inst::Static { slot: place.slot, closure });
                        }
                    }
                    Bound::Callable(wanted, _) => {
                        closure_fits(&ty, *wanted, arg.span)?;
                    }
                    Bound::Trait(..) => {}
                }
            }
        }
        Ok(())
    }

    fn call_value(&mut self, expr: &Expr, callee: &Expr, args: &[Expr], dest: Slot) -> Built<()> {
        let ty = self.ty_of(callee);
        let kind = match &ty {
            Ty::Closure(closure) => closure.facts.get().map_or(ClosureKind::Fn, |facts| facts.kind),
            Ty::Named(name, _) if name.starts_with("impl ") => crate::check::kind_of(&ty),
            _ => ClosureKind::Fn,
        };
        let direct = matches!(ty, Ty::Ref(..) | Ty::FnItem(..) | Ty::FnPtr(_));
        if direct || kind == ClosureKind::FnOnce {
            let parts: Vec<&Expr> = std::iter::once(callee).chain(args).collect();
            let mut operands = self.operand_list(&parts, false)?;
            let callee = operands.remove(0);
            self.span = expr.span;
            self.emit(Inst::CallValue { dest, callee, args: operands });
            return Ok(());
        }
        let place = self.place_or_temp(callee)?;
        let args = self.operands(args, false)?;
        let mutable = kind == ClosureKind::FnMut;
        let slot = self.temp(Ty::Ref(mutable, Arc::new(ty)), false);
        self.span = callee.span;
        self.emit(Inst::Ref { dest: slot, place, mutable });
        self.span = expr.span;
        let callee = Operand::Move(Place::slot(slot));
        self.emit(Inst::CallValue { dest, callee, args });
        Ok(())
    }

    fn format(&mut self, format: &Format, dest: Slot) -> Built<()> {
        let span = self.span;
        let values = self.operands(&format.arguments, false)?;
        let args: Vec<Ty> = format.arguments.iter().map(|arg| self.ty_of(arg)).collect();
        self.span = span;
        self.emit(Inst::Format {
            dest,
            pieces: format.pieces.clone().into(),
            args: args.into(),
            values,
        });
        Ok(())
    }

    fn format_text(&mut self, format: &Format, newline: bool) -> Built<Operand> {
        let end = if newline { "\n" } else { "" };
        match format.pieces.as_slice() {
            [] => return Ok(Operand::Const(Value::text(end))),
            [Piece::Text(text)] => {
                return Ok(Operand::Const(Value::text(format!("{text}{end}"))));
            }
            _ => {}
        }
        let dest = self.temp(Ty::string(), false);
        let span = self.span;
        let values = self.operands(&format.arguments, false)?;
        let args: Vec<Ty> = format.arguments.iter().map(|arg| self.ty_of(arg)).collect();
        let mut pieces = format.pieces.clone();
        if newline {
            pieces.push(Piece::Text("\n".into()));
        }
        self.span = span;
        self.emit(Inst::Format { dest, pieces: pieces.into(), args: args.into(), values });
        Ok(Operand::Move(Place::slot(dest)))
    }

    fn assert_equal(
        &mut self,
        expr: &Expr,
        left: &Expr,
        right: &Expr,
        equal: bool,
        message: Option<&Format>,
    ) -> Built<()> {
        let types = Arc::new((self.ty_of(left), self.ty_of(right)));
        let left = self.settled(left)?;
        let right = self.settled(right)?;
        let same = self.temp(Ty::Bool, false);
        self.span = expr.span;
        let op = if equal { BinaryOp::Eq } else { BinaryOp::Ne };
        let again = |operand: &Operand| match operand {
            Operand::Move(place) => Operand::Copy(place.clone()),
            other => other.clone(),
        };
        self.emit(Inst::Binary {
            dest: same,
            op,
            num: Num::Other,
            left: again(&left),
            right: again(&right),
        });
        let condition = Operand::Copy(Place::slot(same));
        let fails = self.emit(Inst::Unless { condition, target: 0 });
        let over = self.emit(Inst::Jump(0));
        self.patch(&[fails]);
        let text = match message {
            Some(message) => Some(self.format_text(message, false)?),
            None => None,
        };
        self.span = expr.span;
        self.emit(Inst::Unequal { left: again(&left), right: again(&right), types, equal, text });
        self.patch(&[over]);
        Ok(())
    }
}

/// A closure passed where a trait is wanted must be callable that way.
fn closure_fits(ty: &Ty, wanted: ClosureKind, span: Span) -> Built<()> {
    if let Ty::Closure(closure) = ty
        && let Some(facts) = closure.facts.get()
        && facts.kind > wanted
    {
        return Err(Diagnostic::check(
            "E0525",
            span,
            format!(
                "expected a closure that implements the `{}` trait, but this closure only \
                 implements `{}`",
                wanted.name(),
                facts.kind.name()
            ),
        ));
    }
    Ok(())
}

/// Slices and strings are only handled behind references.
fn is_unsized(ty: &Ty) -> bool {
    matches!(ty, Ty::Slice(_) | Ty::Str)
}

fn is_place(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Local(_) | Kind::Deref(_) => true,
        Kind::Index(base, _) => is_place(base) || !matches!(base.kind, Kind::Literal(_)),
        Kind::Field(base, _) => is_place(base) || matches!(base.kind, Kind::Call(..)),
        _ => false,
    }
}

/// Evaluating it changes nothing and reads no place late.
fn is_quiet(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_)
        | Kind::Local(_)
        | Kind::Function(_)
        | Kind::Method(_)
        | Kind::Constant(_) => true,
        Kind::Borrow(_, inner) | Kind::Deref(inner) | Kind::Field(inner, _) => is_quiet(inner),
        Kind::Tuple(parts) | Kind::List(parts) => parts.iter().all(is_quiet),
        Kind::Range { start, end, .. } => {
            start.as_deref().is_none_or(is_quiet) && end.as_deref().is_none_or(is_quiet)
        }
        _ => false,
    }
}

/// `&5` is a reference to a constant, which lives for ever.
fn is_promoted(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) => true,
        Kind::Negate(inner) => is_promoted(inner),
        Kind::Tuple(parts) => parts.iter().all(is_promoted),
        Kind::List(parts) => matches!(expr.ty, Ty::Array(..)) && parts.iter().all(is_promoted),
        Kind::Borrow(false, inner) => is_promoted(inner),
        _ => false,
    }
}

/// Evaluating it names no place at all.
fn is_still(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) | Kind::Function(_) | Kind::Method(_) | Kind::Constant(_) => true,
        Kind::Tuple(parts) | Kind::List(parts) => parts.iter().all(is_still),
        Kind::Range { start, end, .. } => {
            start.as_deref().is_none_or(is_still) && end.as_deref().is_none_or(is_still)
        }
        _ => false,
    }
}

fn has_let(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Let(..) => true,
        Kind::And(left, right) => has_let(left) || has_let(right),
        _ => false,
    }
}

/// The variables that a pattern binds.
pub fn pattern_locals(pattern: &Pattern, out: &mut Vec<LocalId>) {
    match &pattern.kind {
        PatternKind::Bind { local, inner, .. } => {
            if !out.contains(local) {
                out.push(*local);
            }
            if let Some(inner) = inner {
                pattern_locals(inner, out);
            }
        }
        PatternKind::Tuple(parts) | PatternKind::Or(parts) => {
            parts.iter().for_each(|part| pattern_locals(part, out));
        }
        PatternKind::Slice { before, rest, after } => {
            before.iter().chain(after).for_each(|part| pattern_locals(part, out));
            if let Some(Some(rest)) = rest {
                pattern_locals(rest, out);
            }
        }
        PatternKind::Some(inner) | PatternKind::Outcome(_, inner) | PatternKind::Deref(inner) => {
            pattern_locals(inner, out);
        }
        _ => {}
    }
}

/// What a body does to a captured variable.
#[derive(Clone, Copy, Default)]
struct Uses {
    moved: bool,
    mutated: bool,
    /// Only through the reference that the variable is.
    only_behind: bool,
    any: bool,
}

fn uses_of(builder: &Builder<'_>, slot: Slot) -> Uses {
    let mut uses = Uses { only_behind: true, ..Uses::default() };
    let mut see = |place: &Place, moved: bool, mutated: bool| {
        if place.slot != slot {
            return;
        }
        uses.any = true;
        uses.moved |= moved;
        uses.mutated |= mutated;
        uses.only_behind &= place.steps.first() == Some(&Step::Deref);
    };
    for inst in &builder.insts {
        flow::visit_places(inst, &mut |place, access| {
            let moved = access == flow::Access::Move;
            let mutated = matches!(access, flow::Access::Write | flow::Access::BorrowMut);
            see(place, moved, mutated);
        });
    }
    uses
}

/// A closure that names only fields of a tuple captures those, each by itself.
fn capture_parts(builder: &mut Builder<'_>) {
    let mut upvars = Vec::new();
    for upvar in std::mem::take(&mut builder.upvars) {
        let ty = builder.slots[upvar.slot as usize].ty.clone();
        let Ty::Tuple(parts) = &ty else {
            upvars.push(upvar);
            continue;
        };
        let mut fields: Option<Vec<u32>> = Some(Vec::new());
        for inst in &builder.insts {
            flow::visit_places(inst, &mut |place, _| {
                if place.slot != upvar.slot {
                    return;
                }
                match (place.steps.first(), &mut fields) {
                    (Some(Step::Child(field)), Some(known)) if !known.contains(field) => {
                        known.push(*field);
                    }
                    (Some(Step::Child(_)), _) => {}
                    _ => fields = None,
                }
            });
        }
        let Some(fields) = fields.filter(|fields| !fields.is_empty()) else {
            upvars.push(upvar);
            continue;
        };
        for field in fields {
            let facts = SlotFacts {
                ty: parts[field as usize].clone(),
                ..builder.slots[upvar.slot as usize].clone()
            };
            builder.slots.push(facts);
            let slot = builder.slots.len() as Slot - 1;
            for inst in &mut builder.insts {
                flow::places_mut(inst, &mut |place| {
                    if place.slot == upvar.slot && place.steps.first() == Some(&Step::Child(field))
                    {
                        place.slot = slot;
                        place.steps.remove(0);
                    }
                });
            }
            upvars.push(Upvar { local: upvar.local, field: Some(field), slot });
        }
    }
    builder.upvars = upvars;
}

fn capture_modes(builder: &Builder<'_>, by_move: bool) -> Vec<Capture> {
    builder
        .upvars
        .iter()
        .map(|upvar| {
            let uses = uses_of(builder, upvar.slot);
            let ty = &builder.slots[upvar.slot as usize].ty;
            match ty {
                _ if by_move || uses.moved => Capture::Value,
                Ty::Ref(false, _) => Capture::Value,
                Ty::Ref(true, _) if uses.only_behind => Capture::Reborrow,
                _ if uses.mutated => Capture::Mut,
                _ => Capture::Ref,
            }
        })
        .collect()
}

fn closure_kind(builder: &Builder<'_>) -> ClosureKind {
    let mut kind = ClosureKind::Fn;
    for upvar in &builder.upvars {
        let uses = uses_of(builder, upvar.slot);
        let ty = &builder.slots[upvar.slot as usize].ty;
        let own = if uses.moved && !matches!(ty, Ty::Ref(..)) {
            ClosureKind::FnOnce
        } else if uses.mutated && !matches!(ty, Ty::Ref(false, _)) {
            ClosureKind::FnMut
        } else {
            ClosureKind::Fn
        };
        kind = kind.max(own);
    }
    kind
}

/// Moves the captured variables behind the arguments, and looks through those held by reference.
fn place_captures(builder: &mut Builder<'_>, modes: &[Capture]) {
    let args = builder.args;
    let count = builder.upvars.len() as u32;
    if count == 0 {
        return;
    }
    let captured: Vec<Slot> = builder.upvars.iter().map(|upvar| upvar.slot).collect();
    let mut renumber: Vec<Slot> = Vec::with_capacity(builder.slots.len());
    let mut next = args + count;
    for slot in 0..builder.slots.len() as Slot {
        renumber.push(if slot < args {
            slot
        } else if let Some(index) = captured.iter().position(|own| *own == slot) {
            args + index as Slot
        } else {
            next += 1;
            next - 1
        });
    }
    let mut behind = vec![false; builder.slots.len()];
    for (slot, mode) in captured.iter().zip(modes) {
        behind[*slot as usize] = matches!(mode, Capture::Ref | Capture::Mut);
    }
    for inst in &mut builder.insts {
        flow::rename(inst, &renumber, &behind);
    }
    let mut slots: Vec<Option<SlotFacts>> = vec![None; builder.slots.len()];
    for (index, facts) in std::mem::take(&mut builder.slots).into_iter().enumerate() {
        slots[renumber[index] as usize] = Some(facts);
    }
    builder.slots = slots.into_iter().map(|facts| facts.expect("a permutation")).collect();
    for (index, mode) in modes.iter().enumerate() {
        let facts = &mut builder.slots[args as usize + index];
        let by_reference = matches!(mode, Capture::Ref | Capture::Mut);
        facts.entry = Entry::Capture { by_reference };
        if by_reference {
            let mutable = *mode == Capture::Mut;
            facts.ty = Ty::Ref(mutable, Arc::new(facts.ty.clone()));
        }
    }
    for upvar in &mut builder.upvars {
        upvar.slot = renumber[upvar.slot as usize];
    }
}

/// The body does to a captured variable what a closure of the wanted kind may not.
fn wrong_kind(builder: &Builder<'_>, wanted: ClosureKind, locals: &[Local]) -> Box<Diagnostic> {
    let names: HashMap<Slot, &str> = builder
        .upvars
        .iter()
        .map(|upvar| (upvar.slot, locals[upvar.local as usize].name.as_str()))
        .collect();
    let mut found = None;
    for (inst, span) in builder.insts.iter().zip(&builder.spans) {
        flow::visit_places(inst, &mut |place, access| {
            if found.is_some() {
                return;
            }
            let Some(name) = names.get(&place.slot) else { return };
            let kind = wanted.name();
            found = match access {
                flow::Access::Move => Some(Diagnostic::check(
                    "E0507",
                    *span,
                    format!("cannot move out of `{name}`, a captured variable in an `{kind}` closure"),
                )
                .label("move occurs because the value does not implement the `Copy` trait")
                .help(format!("use it by reference: `&{name}`, or clone it: `{name}.clone()`"))),
                flow::Access::Write if wanted == ClosureKind::Fn => Some(Diagnostic::check(
                    "E0594",
                    *span,
                    format!("cannot assign to `{name}`, as it is a captured variable in a `Fn` closure"),
                )
                .label("cannot assign")),
                flow::Access::BorrowMut if wanted == ClosureKind::Fn => Some(Diagnostic::check(
                    "E0596",
                    *span,
                    format!(
                        "cannot borrow `{name}` as mutable, as it is a captured variable in a `Fn` \
                         closure"
                    ),
                )
                .label("cannot borrow as mutable")),
                _ => None,
            };
        });
    }
    found.unwrap_or_else(|| {
        Diagnostic::check("E0525", builder.span, "this closure cannot be called more than once")
    })
}
