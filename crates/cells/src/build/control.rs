//! Branches, loops, and the ways out of them.

use super::*;

impl Builder<'_> {
    /// Falls through when it holds; the jumps in `fails` are taken when it does not.
    pub(super) fn condition(&mut self, expr: &Expr, fails: &mut Vec<usize>) -> Built<()> {
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

    pub(super) fn if_expr(
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

    pub(super) fn match_expr(
        &mut self,
        expr: &Expr,
        scrutinee: &Expr,
        arms: &[Arm],
        dest: Slot,
    ) -> Built<()> {
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

    pub(super) fn enter_loop(&mut self, id: LoopId, dest: Option<Slot>, head: Option<u32>) {
        self.loops.push(LoopFrame {
            id,
            dest,
            depth: self.scopes.len(),
            breaks: Vec::new(),
            continues: Vec::new(),
            head,
        });
    }

    pub(super) fn loop_expr(&mut self, id: LoopId, body: &Block, dest: Slot) -> Built<()> {
        let head = self.here();
        self.enter_loop(id, Some(dest), Some(head));
        let unit = self.new_slot(Ty::unit(), None, true, body.span);
        self.open(ScopeKind::Block);
        self.block(body, unit)?;
        self.close();
        self.emit(Inst::Jump(head));
        let own = self.loops.pop().expect("pushed above");
        self.patch(&own.breaks);
        Ok(())
    }

    pub(super) fn while_expr(
        &mut self,
        id: LoopId,
        condition: &Expr,
        body: &Block,
        dest: Slot,
    ) -> Built<()> {
        let head = self.here();
        self.enter_loop(id, None, Some(head));
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

    pub(super) fn for_expr(
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
        self.enter_loop(id, None, Some(head));
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

    pub(super) fn break_expr(&mut self, id: LoopId, value: Option<&Expr>) -> Built<()> {
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

    pub(super) fn continue_expr(&mut self, id: LoopId) {
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

    pub(super) fn loop_index(&self, id: LoopId) -> usize {
        self.loops
            .iter()
            .rposition(|own| own.id == id)
            .expect("the check resolved the loop in this body")
    }

    pub(super) fn return_expr(&mut self, value: Option<&Expr>, span: Span) -> Built<()> {
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

    pub(super) fn question_mark(&mut self, inner: &Expr, dest: Slot) -> Built<()> {
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
}
