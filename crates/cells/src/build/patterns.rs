//! Patterns as tests and bindings.

use super::*;

impl Builder<'_> {
    pub(super) fn binds_by_move(&self, pattern: &Pattern) -> bool {
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
    pub(super) fn test(
        &mut self,
        pattern: &Pattern,
        place: Place,
        fails: &mut Vec<usize>,
    ) -> Built<()> {
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
    pub(super) fn bind(&mut self, pattern: &Pattern, place: Place) -> Built<()> {
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

    pub(super) fn bind_name(
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

    pub(super) fn bind_rest(
        &mut self,
        rest: &Pattern,
        place: Place,
        skip: usize,
        leave: usize,
    ) -> Built<()> {
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
    pub(super) fn bind_or(&mut self, cases: &[Pattern], place: Place) -> Built<()> {
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
}

/// The variables that a pattern binds.
pub(super) fn pattern_locals(pattern: &Pattern, out: &mut Vec<LocalId>) {
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
