//! Uses and writes against what may be gone or there.

use super::*;

impl Flow<'_> {
    /// Every use finds its value there; every write is allowed.
    pub(super) fn check_states(&mut self) -> Result<(), Box<Diagnostic>> {
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

    pub(super) fn judge(
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

    pub(super) fn prefix_gone(&self, place: &Place, state: &State) -> bool {
        let children = leading_children(place);
        let var = self.var(place.slot);
        self.by_var[var]
            .iter()
            .any(|id| children.starts_with(&self.paths[*id].children) && state.gone.get(*id))
    }

    /// The reference that makes the place unwritable, as (its text, it is captured by reference).
    pub(super) fn shared_step(&self, place: &Place) -> Option<String> {
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

    pub(super) fn judge_write(
        &self,
        at: usize,
        place: &Place,
        state: &State,
    ) -> Option<Box<Diagnostic>> {
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
    pub(super) fn steps_through_vec(&self, place: &Place) -> bool {
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

    pub(super) fn judge_borrow(&self, at: usize, place: &Place) -> Option<Box<Diagnostic>> {
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

    pub(super) fn not_mutable(
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

    pub(super) fn note_declared(
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

    /// E0381 or E0382, by what the paths back to the entry hold.
    pub(super) fn use_of_gone(&self, at: usize, place: &Place, access: Access) -> Box<Diagnostic> {
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

    pub(super) fn is_written(&self, slot: Slot) -> bool {
        let mut written = false;
        for inst in &self.draft.insts {
            visit_places(inst, &mut |place, access| {
                written |= place.slot == slot && access == Access::Write;
            });
        }
        written
    }

    pub(super) fn offer_borrow(
        &self,
        fault: Box<Diagnostic>,
        facts: &SlotFacts,
    ) -> Box<Diagnostic> {
        let Some(name) = &facts.name else { return fault };
        if facts.ty.is_named("Array") {
            return fault.help(format!(
                "pass a reference, `&{name}`, to keep the array; `{name}.clone()` shares its buffer"
            ));
        }
        fault.help(format!("consider borrowing instead: `&{name}`, or `{name}.clone()`"))
    }

    /// The nearest move of the place on a path that reaches the instruction.
    pub(super) fn mover(&self, at: usize, place: &Place) -> Option<usize> {
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
}
