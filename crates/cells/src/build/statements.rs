//! Statements and blocks: what is declared, what ends where.

use super::*;

impl Builder<'_> {
    pub(super) fn statement(&mut self, statement: &Statement) -> Built<()> {
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
    pub(super) fn discard(&mut self, expr: &Expr) -> Built<()> {
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

    pub(super) fn let_statement(
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
    pub(super) fn shadowed(&mut self, pattern: &Pattern) -> Vec<u32> {
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
    pub(super) fn direct_target(&mut self, local: LocalId) -> Option<Slot> {
        Some(self.slot_of(local))
    }

    pub(super) fn declare_names(&mut self, pattern: &Pattern) {
        let mut names = Vec::new();
        pattern_locals(pattern, &mut names);
        for local in names {
            self.declare(local);
        }
    }

    pub(super) fn name_bound(&mut self, local: LocalId) {
        let slot = self.slot_of(local);
        let facts = &self.context.locals[local as usize];
        if self.ty(&facts.ty).is_told() {
            let name: Arc<str> = facts.name.as_str().into();
            self.emit(Inst::Bound { place: Place::slot(slot), name, last: false });
        }
    }

    pub(super) fn block(&mut self, block: &Block, dest: Slot) -> Built<()> {
        let extend = std::mem::take(&mut self.extend);
        if let Some(id) = block.label {
            self.enter_loop(id, Some(dest), None);
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
}
