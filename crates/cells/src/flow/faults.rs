//! Conflicts in rustc's words.

use super::*;

impl Flow<'_> {
    pub(super) fn place_text(&self, place: &Place) -> String {
        let facts = self.facts[self.var(place.slot)];
        let Some(name) = &facts.name else { return "a temporary value".into() };
        let mut text = name.clone();
        let mut steps = place.steps.as_slice();
        if matches!(facts.entry, Entry::Capture { by_reference: true }) {
            steps = steps.get(1..).unwrap_or(&[]);
        }
        let mut ty = match (steps.len() < place.steps.len(), &facts.ty) {
            (true, Ty::Ref(_, to)) => Some((**to).clone()),
            (_, ty) => Some(ty.clone()),
        };
        for step in steps {
            text = match (step, &ty) {
                // A field is reached through references without a word.
                (Step::Deref, Some(Ty::Ref(_, to))) if matches!(**to, Ty::Struct(_)) => text,
                (Step::Deref, _) => format!("*{text}"),
                (Step::Child(index), Some(Ty::Struct(def))) => {
                    format!("{text}.{}", def.names.fields[*index as usize])
                }
                (Step::Child(index), _) => format!("{text}.{index}"),
                _ => format!("{text}[..]"),
            };
            ty = ty.and_then(|ty| step_ty(&ty, *step));
        }
        format!("`{text}`")
    }

    pub(super) fn loan_fault(
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

    pub(super) fn conflict_words(
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
    pub(super) fn dead_fault(
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

    pub(super) fn is_returned(&self, slot: Slot) -> bool {
        self.draft.insts.iter().any(|inst| {
            matches!(inst, Inst::Return(Operand::Move(place) | Operand::Copy(place))
                if place.slot == slot)
        })
    }

    /// The loan is a closure's capture.
    pub(super) fn is_capture(&self, point: usize) -> bool {
        let Inst::Ref { dest, .. } = &self.draft.insts[point] else { return false };
        self.draft.insts[point..].iter().any(|inst| {
            matches!(inst, Inst::Closure { captures, .. } if captures.iter().any(|capture| {
                matches!(capture, Operand::Move(place) if place.slot == *dest)
            }))
        })
    }

    pub(super) fn later_use(&self, at: usize, holders: &HashSet<usize>) -> Option<usize> {
        (at + 1..self.draft.insts.len()).find(|later| {
            let mut used = false;
            visit_places(&self.draft.insts[*later], &mut |place, access| {
                let reads = !matches!(access, Access::Write | Access::Drop | Access::Look);
                used |= reads && holders.contains(&self.var(place.slot));
            });
            used
        })
    }
}
