//! What the next cell must know about the variables.

use super::*;

impl Flow<'_> {
    /// What the next cell must know about the globals.
    pub(super) fn outcome(&self) -> Vec<(u32, Held)> {
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

    pub(super) fn last_move(&self, slot: Slot) -> Option<Span> {
        (0..self.draft.insts.len()).rev().find_map(|at| {
            let mut found = false;
            visit_places(&self.draft.insts[at], &mut |place, access| {
                found |= place.slot == slot && matches!(access, Access::Move);
            });
            found.then(|| self.draft.spans[at])
        })
    }

    pub(super) fn last_write(&self, slot: Slot) -> bool {
        self.draft.insts.iter().any(|inst| {
            let mut found = false;
            visit_places(inst, &mut |place, access| {
                found |= place.slot == slot && place.steps.is_empty() && access == Access::Write;
            });
            found
        })
    }
}
