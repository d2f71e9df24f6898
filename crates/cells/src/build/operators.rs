//! Operators, lazy ones and assigning ones.

use super::*;

impl Builder<'_> {
    pub(super) fn lazy(&mut self, left: &Expr, right: &Expr, or: bool, dest: Slot) -> Built<()> {
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
    pub(super) fn binary(&mut self, expr: &Expr, dest: Slot) -> Built<()> {
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

    pub(super) fn binary_node(
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
    pub(super) fn looked(&mut self, expr: &Expr) -> Built<Operand> {
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

    pub(super) fn compound(
        &mut self,
        op: BinaryOp,
        place: &Expr,
        value: &Expr,
        span: Span,
    ) -> Built<()> {
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
    pub(super) fn compound_array(
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
}

fn has_let(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Let(..) => true,
        Kind::And(left, right) => has_let(left) || has_let(right),
        _ => false,
    }
}
