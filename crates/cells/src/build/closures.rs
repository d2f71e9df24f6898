//! Closures: their bodies, and how they hold what they capture.

use super::*;

impl Builder<'_> {
    /// `f64::max` as a function of its own.
    pub(super) fn method_value(&self, candidate: Candidate, ty: &Ty) -> Value {
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
            lends: None,
            lends_first: false,
        };
        Value::Code(Arc::new(cell))
    }

    pub(super) fn closure(&mut self, closure: &Closure, ty: &Ty, dest: Slot) -> Built<()> {
        let Ty::Closure(closure_ty) = ty else { unreachable!("closures have closure types") };
        let mut inner = Builder::new(self.context, closure.body_id, "closure");
        inner.next_global = self.next_global;
        inner.is_closure = true;
        inner.wanted = closure.wanted;
        inner.ret = self.ty(&closure_ty.sig.ret);
        inner.function(&closure.params, &closure.body)?;
        self.next_global = inner.next_global;
        capture_parts(&mut inner, closure.by_move);
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
            for step in &upvar.path {
                place = place.step(*step);
                ty = part_ty(&ty, *step).expect("the path was taken from this type");
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

/// A closure that names only parts of a variable captures those, each by itself: fields of tuples
/// and structs, also behind a mutable reference.
fn capture_parts(builder: &mut Builder<'_>, by_move: bool) {
    let mut upvars = Vec::new();
    for upvar in std::mem::take(&mut builder.upvars) {
        let parts = named_parts(builder, upvar.slot, by_move);
        if parts.is_empty() {
            upvars.push(upvar);
            continue;
        }
        for path in parts {
            let facts = part_facts(&builder.slots[upvar.slot as usize], &path);
            let name = facts.name.clone();
            builder.slots.push(facts);
            let slot = builder.slots.len() as Slot - 1;
            let within = |place: &Place| place.slot == upvar.slot && place.steps.starts_with(&path);
            for inst in &mut builder.insts {
                if let Inst::Bound { place, name: told, .. } = inst
                    && within(place)
                    && let Some(name) = &name
                {
                    *told = name.as_str().into();
                }
                flow::places_mut(inst, &mut |place| {
                    if within(place) {
                        place.slot = slot;
                        place.steps.drain(..path.len());
                    }
                });
            }
            upvars.push(Upvar { local: upvar.local, path, slot });
        }
        // Nobody has the whole any more, so nobody names it.
        for inst in &mut builder.insts {
            if matches!(inst, Inst::Bound { place, .. } if place.slot == upvar.slot) {
                *inst = Inst::Nop;
            }
        }
    }
    builder.upvars = upvars;
}

/// The parts of a variable that a body names, none within another; none at all when it names the
/// whole.
fn named_parts(builder: &Builder<'_>, slot: Slot, by_move: bool) -> Vec<Vec<Step>> {
    let ty = &builder.slots[slot as usize].ty;
    let mut paths: Vec<Vec<Step>> = Vec::new();
    for inst in &builder.insts {
        // To tell a name is no use of what it names.
        if matches!(inst, Inst::Bound { .. }) {
            continue;
        }
        flow::visit_places(inst, &mut |place, access| {
            if place.slot == slot {
                let cut = by_move || access == flow::Access::Move;
                paths.push(captured_path(ty, &place.steps, cut));
            }
        });
    }
    let mut parts: Vec<Vec<Step>> = Vec::new();
    for path in &paths {
        let within = |other: &Vec<Step>| path.len() > other.len() && path.starts_with(other);
        if !parts.contains(path) && !paths.iter().any(within) {
            parts.push(path.clone());
        }
    }
    if parts.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    parts
}

/// How far a place is captured by itself: through fields and mutable references, up to the last
/// field. What a shared reference leads to is captured by that reference; with `cut` so is what any
/// leads to.
fn captured_path(ty: &Ty, steps: &[Step], cut: bool) -> Vec<Step> {
    let mut path = Vec::new();
    let mut length = 0;
    let mut ty = ty.clone();
    for step in steps {
        let next = match (&ty, step) {
            (Ty::Ref(mutable, to), Step::Deref) => {
                if !mutable || cut {
                    break;
                }
                (**to).clone()
            }
            _ => match part_ty(&ty, *step) {
                Some(next) => next,
                None => break,
            },
        };
        path.push(*step);
        if matches!(step, Step::Child(_)) {
            length = path.len();
        }
        ty = next;
    }
    path.truncate(length);
    path
}

/// A field of a tuple or struct, or what a reference leads to.
fn part_ty(ty: &Ty, step: Step) -> Option<Ty> {
    match (ty, step) {
        (Ty::Tuple(parts), Step::Child(at)) => parts.get(at as usize).cloned(),
        (Ty::Struct(def), Step::Child(at)) => def.fields().get(at as usize).cloned(),
        (Ty::Ref(_, to), Step::Deref) => Some((**to).clone()),
        _ => None,
    }
}

fn part_facts(whole: &SlotFacts, path: &[Step]) -> SlotFacts {
    let mut facts = whole.clone();
    for step in path {
        if *step == Step::Deref {
            facts.mutable = true;
        }
        if let Step::Child(at) = step {
            let field = match &facts.ty {
                Ty::Struct(def) => def.names.fields[*at as usize].to_string(),
                _ => at.to_string(),
            };
            facts.name = facts.name.map(|name| format!("{name}.{field}"));
        }
        facts.ty = part_ty(&facts.ty, *step).expect("the path was taken from this type");
    }
    facts
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

/// What a body does to a captured variable.
#[derive(Clone, Copy, Default)]
struct Uses {
    moved: bool,
    mutated: bool,
    /// Only through the reference that the variable is.
    only_behind: bool,
    any: bool,
}
