//! Loans: who may hold them, how long they last, what conflicts.

use super::*;

impl Flow<'_> {
    pub(super) fn check_loans(&mut self) -> Result<(), Box<Diagnostic>> {
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

    pub(super) fn find_loans(&mut self) {
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
    pub(super) fn holder_graph(&self) -> Vec<Vec<usize>> {
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
            let lenders = self.lenders(inst);
            let lends = |from: &usize| lenders.as_ref().is_none_or(|own| own.contains(from));
            for from in sources.iter().filter(|from| lends(from)) {
                for to in &dests {
                    if self.only_computes(inst, *from) && !keeps_closures(&self.facts[*to].ty) {
                        continue;
                    }
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
                    // `iter.find(|x| …)`: an iterator keeps no closure that it is only shown.
                    if inner.is_named("Iter") && self.only_computes(inst, *from) {
                        continue;
                    }
                    for owner in reach(&owners, *to) {
                        edge(*from, owner);
                    }
                }
            }
        }
        graph
    }

    /// A closure that gives no references: what it captured cannot get into what a library function
    /// finds with it.
    fn only_computes(&self, inst: &Inst, var: usize) -> bool {
        matches!(inst, Inst::CallLibrary { .. })
            && matches!(self.facts[var].ty.peeled(), Ty::Closure(closure)
                if !closure.sig.ret.holds_references())
    }

    /// The arguments that a call's result may borrow from, where the signature says which.
    fn lenders(&self, inst: &Inst) -> Option<Vec<usize>> {
        let Inst::Call { function, args, .. } = inst else { return None };
        let lends = function.lends.as_ref()?;
        let of = |at: &usize| match args.get(*at) {
            Some(Operand::Copy(place) | Operand::Move(place)) => Some(self.var(place.slot)),
            _ => None,
        };
        Some(lends.iter().filter_map(of).collect())
    }

    /// A method's result that borrows must borrow from its receiver, unless lifetimes say more.
    pub(super) fn check_returned(&self) -> Result<(), Box<Diagnostic>> {
        if !self.draft.lends_first {
            return Ok(());
        }
        // What went through a closure or an iterator may have stayed there.
        let mut graph = self.holder_graph();
        for (var, next) in graph.iter_mut().enumerate() {
            if keeps_closures(&self.facts[var].ty) {
                next.clear();
            }
        }
        for (at, inst) in self.draft.insts.iter().enumerate() {
            let Inst::Return(Operand::Move(place) | Operand::Copy(place)) = inst else { continue };
            let returned = self.var(place.slot);
            for var in 1..self.draft.args as usize {
                if self.facts[var].ty.holds_references() && reach(&graph, var).contains(&returned) {
                    let span = self.draft.spans[at];
                    return Err(Diagnostic::check("", span, "lifetime may not live long enough")
                        .label("what is returned must borrow from `self`")
                        .help("name the lifetimes, or return a value of its own"));
                }
            }
        }
        Ok(())
    }

    /// Which variables each reference may refer to.
    pub(super) fn referents(&self) -> Vec<Vec<usize>> {
        let mut referents = self.owners();
        for inst in &self.draft.insts {
            if let Inst::Ref { dest, place, .. } | Inst::SliceOf { dest, place, .. } = inst {
                referents[self.var(*dest)].push(self.var(place.slot));
            }
        }
        referents
    }

    /// Which variables each mutable reference may refer to.
    pub(super) fn owners(&self) -> Vec<Vec<usize>> {
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

    pub(super) fn check_statics(&self, graph: &[Vec<usize>]) -> Result<(), Box<Diagnostic>> {
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

    pub(super) fn check_loan(
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
    pub(super) fn conflict(&self, at: usize, loan: &Loan) -> Option<Access> {
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
    pub(super) fn behind_shared(&self, loan: &Place, access: &Place) -> bool {
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

    /// A two-phase borrow before its activation.
    pub(super) fn is_reserved(&self, loan: &Loan) -> bool {
        !loan.mutable
            && loan.point.is_some()
            && matches!(self.facts[loan.holder].ty, Ty::Ref(true, _))
    }

    /// A session variable keeps a reference that no longer holds: a later use is refused.
    pub(super) fn note_invalid(&mut self, number: usize, holders: &HashSet<usize>) {
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
}

/// Values of the type may hold closures, and with them what those captured.
fn keeps_closures(ty: &Ty) -> bool {
    match ty.peeled() {
        Ty::Closure(_) | Ty::DynFn(_) => true,
        Ty::Named(name, parts) => {
            *name == "Iter" || name.starts_with("impl ") || parts.iter().any(keeps_closures)
        }
        Ty::Tuple(parts) => parts.iter().any(keeps_closures),
        Ty::Array(element, _) | Ty::Slice(element) => keeps_closures(element),
        _ => false,
    }
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
