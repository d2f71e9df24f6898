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

/// What a body does to a captured variable.
#[derive(Clone, Copy, Default)]
struct Uses {
    moved: bool,
    mutated: bool,
    /// Only through the reference that the variable is.
    only_behind: bool,
    any: bool,
}
