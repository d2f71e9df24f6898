//! Expressions as values: into a slot, or as an operand of an instruction.

use super::*;

impl Builder<'_> {
    /// Evaluates into a slot.
    pub(super) fn into(&mut self, expr: &Expr, dest: Slot) -> Built<()> {
        self.span = expr.span;
        let extend = std::mem::take(&mut self.extend);
        match &expr.kind {
            Kind::Literal(value) => {
                self.literal_in_range(expr, value)?;
                let value = self.typed_literal(expr, value);
                self.set(dest, Operand::Const(value));
            }
            Kind::Function(cell) => self.set(dest, Operand::Const(Value::Code(cell.clone()))),
            Kind::Method(candidate) => {
                let value = self.method_value(*candidate, &self.ty_of(expr));
                self.set(dest, Operand::Const(value));
            }
            Kind::Try(inner) => self.question_mark(inner, dest)?,
            Kind::Constant(item) => {
                self.emit(Inst::CallSurface { dest, item, args: Vec::new() });
            }
            Kind::Member(base, name) => {
                let place = self.place_or_temp(base)?;
                self.span = expr.span;
                self.emit(Inst::Member { dest, place, name });
            }
            Kind::Local(_) | Kind::Field(..) | Kind::Index(..) | Kind::Deref(_) => {
                let operand = self.operand(expr)?;
                self.span = expr.span;
                self.set(dest, operand);
            }
            Kind::Not(inner) => {
                let num = Num::of(&self.ty_of(expr));
                let value = self.scalar(inner)?;
                self.span = expr.span;
                self.emit(Inst::Not { dest, num, value });
            }
            Kind::Negate(inner) => {
                if self.ty_of(inner).peeled().is_named("Array") {
                    let value = self.operand(inner)?;
                    self.span = expr.span;
                    self.emit(Inst::ArrayNegate { dest, value });
                } else {
                    let num = Num::of(&self.ty_of(expr));
                    let value = self.scalar(inner)?;
                    self.span = expr.span;
                    self.emit(Inst::Negate { dest, num, value });
                }
            }
            Kind::Binary(..) => self.binary(expr, dest)?,
            Kind::And(left, right) => self.lazy(left, right, false, dest)?,
            Kind::Or(left, right) => self.lazy(left, right, true, dest)?,
            Kind::Assign(place, value) => {
                self.assign(place, value)?;
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Destructure(pattern, value) => {
                let place = self.scrutinee(value)?;
                self.bind(pattern, place)?;
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Compound(op, place, value) => {
                self.compound(*op, place, value, expr.span)?;
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Borrow(mutable, inner) => {
                self.borrow(*mutable, inner, dest, extend, expr.span)?
            }
            Kind::Tuple(parts) if parts.is_empty() => {
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Tuple(parts) => {
                let parts = self.operands(parts, extend)?;
                self.span = expr.span;
                self.emit(Inst::Tuple { dest, parts });
            }
            Kind::Struct { def, fields, base } => {
                self.struct_value(expr, def, fields, base.as_deref(), dest)?;
            }
            Kind::List(parts) => {
                let parts = self.operands(parts, extend)?;
                self.span = expr.span;
                self.emit(Inst::List { dest, parts });
            }
            Kind::Some(inner) => {
                let value = self.operand(inner)?;
                self.emit(Inst::Some { dest, value });
            }
            Kind::Repeat(value, count) => {
                let parts = [&**value, &**count];
                let mut operands = self.operand_list(&parts, false)?;
                if let Ty::Closure(closure) = self.ty_of(value)
                    && closure.facts.get().is_some_and(|facts| !facts.copy && facts.borrows)
                {
                    return Err(Diagnostic::check(
                        "E0277",
                        value.span,
                        "the closure cannot be cloned: it holds a mutable reference",
                    ));
                }
                let count = operands.pop().expect("two operands");
                let value = operands.pop().expect("two operands");
                self.span = expr.span;
                self.emit(Inst::Repeat { dest, value, count });
            }
            Kind::Range { start, end, inclusive } => {
                if let Ty::Named(_, bounds) = self.ty_of(expr)
                    && bounds.first().is_some_and(|bound| {
                        !matches!(bound, Ty::Int(_) | Ty::Char)
                            && self.context.infer.var_kind(bound) != Some(crate::ty::VarKind::Int)
                    })
                {
                    return Err(Diagnostic::unsupported(
                        expr.span,
                        "ranges of anything but integers",
                    ));
                }
                let start = start.as_deref().map(|start| self.settled(start)).transpose()?;
                let end = end.as_deref().map(|end| self.operand(end)).transpose()?;
                self.emit(Inst::Range { dest, start, end, inclusive: *inclusive });
            }
            Kind::Block(block) => {
                self.extend = extend;
                self.block(block, dest)?;
            }
            Kind::If { condition, then, otherwise } => {
                self.if_expr(condition, then, otherwise.as_deref(), dest)?;
            }
            Kind::Let(..) => {
                let mut fails = Vec::new();
                self.condition(expr, &mut fails)?;
                self.set(dest, Operand::Const(Value::Bool(true)));
                let over = self.emit(Inst::Jump(0));
                self.patch(&fails);
                self.set(dest, Operand::Const(Value::Bool(false)));
                self.patch(&[over]);
            }
            Kind::Match(scrutinee, arms) => self.match_expr(expr, scrutinee, arms, dest)?,
            Kind::Loop { id, body } => self.loop_expr(*id, body, dest)?,
            Kind::While { id, condition, body } => self.while_expr(*id, condition, body, dest)?,
            Kind::For { id, pattern, iterated, body } => {
                self.for_expr(*id, pattern, iterated, body, dest)?;
            }
            Kind::Break(id, value) => self.break_expr(*id, value.as_deref())?,
            Kind::Continue(id) => self.continue_expr(*id),
            Kind::Return(value) => self.return_expr(value.as_deref(), expr.span)?,
            Kind::Closure(closure) => self.closure(closure, &self.ty_of(expr), dest)?,
            Kind::Call(callee, args) => self.call(expr, callee, args, dest)?,
            Kind::Cast(inner) => {
                let (from, to) = (Num::of(&self.ty_of(inner)), Num::of(&self.ty_of(expr)));
                let value = self.operand(inner)?;
                self.span = expr.span;
                self.emit(Inst::Cast { dest, from, to, value });
            }
            Kind::Format(format) => self.format(format, dest)?,
            Kind::Print { format, error, newline } => {
                let text = self.format_text(format, *newline)?;
                self.span = expr.span;
                self.emit(Inst::Print { text, error: *error });
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::Write { target, format } => self.write(target, format, dest, expr.span)?,
            Kind::Panic(format) => {
                let text = self.format_text(format, false)?;
                self.span = expr.span;
                self.emit(Inst::Panic { text });
            }
            Kind::Assert(condition, message, text) => {
                let value = self.scalar(condition)?;
                self.span = expr.span;
                let fails = self.emit(Inst::Unless { condition: value, target: 0 });
                let over = self.emit(Inst::Jump(0));
                self.patch(&[fails]);
                let text = match message {
                    Some(message) => self.format_text(message, false)?,
                    None => Operand::Const(Value::text(text.as_str())),
                };
                self.span = expr.span;
                self.emit(Inst::Panic { text });
                self.patch(&[over]);
                self.set(dest, Operand::Const(Value::Unit));
            }
            Kind::AssertEqual { left, right, equal, message } => {
                self.assert_equal(expr, left, right, *equal, message.as_ref())?;
                self.set(dest, Operand::Const(Value::Unit));
            }
        }
        Ok(())
    }

    pub(super) fn set(&mut self, dest: Slot, value: Operand) {
        self.emit(Inst::Set { place: Place::slot(dest), value });
    }

    pub(super) fn typed_literal(&self, expr: &Expr, value: &Value) -> Value {
        match (value, self.ty_of(expr)) {
            (Value::Float(value), Ty::Float(kind)) => Value::Float(kind.round(*value)),
            (value, _) => value.clone(),
        }
    }

    /// rustc's lint `overflowing_literals`, which is an error.
    pub(super) fn literal_in_range(&self, expr: &Expr, value: &Value) -> Built<()> {
        let (Value::Int(value), Ty::Int(kind)) = (value, self.ty_of(expr)) else { return Ok(()) };
        if kind.holds(*value) {
            return Ok(());
        }
        let words = format!("literal out of range for `{}`", kind.name());
        Err(Diagnostic::check("overflowing_literals", expr.span, words).note(format!(
            "the literal `{value}` does not fit into the type `{}` whose range is `{}..={}`",
            kind.name(),
            kind.min(),
            kind.max()
        )))
    }

    /// The value as an operand: a place is copied or moved from, anything else is a temporary.
    pub(super) fn operand(&mut self, expr: &Expr) -> Built<Operand> {
        self.span = expr.span;
        match &expr.kind {
            Kind::Literal(value) => {
                self.literal_in_range(expr, value)?;
                Ok(Operand::Const(self.typed_literal(expr, value)))
            }
            Kind::Tuple(parts) if parts.is_empty() => Ok(Operand::Const(Value::Unit)),
            Kind::Local(_) | Kind::Field(..) | Kind::Deref(_) | Kind::Index(..) => {
                let ty = self.ty_of(expr);
                let place = self.place(expr)?;
                if ty.is_copy() {
                    return Ok(Operand::Copy(place));
                }
                self.movable(expr)?;
                Ok(Operand::Move(place))
            }
            _ => {
                let ty = self.ty_of(expr);
                let dest = self.temp(ty, false);
                self.into(expr, dest)?;
                Ok(Operand::Move(Place::slot(dest)))
            }
        }
    }

    /// A scalar, through any references to it.
    pub(super) fn scalar(&mut self, expr: &Expr) -> Built<Operand> {
        let mut ty = self.ty_of(expr);
        if !matches!(ty, Ty::Ref(..)) {
            return self.operand(expr);
        }
        let mut place = self.place_or_temp(expr)?;
        while let Ty::Ref(_, to) = &ty {
            place = place.step(Step::Deref);
            ty = (**to).clone();
        }
        Ok(Operand::Copy(place))
    }

    /// Evaluated now, whatever comes after it.
    pub(super) fn settled(&mut self, expr: &Expr) -> Built<Operand> {
        let operand = self.operand(expr)?;
        match operand {
            Operand::Const(_) => Ok(operand),
            Operand::Move(place) if place.steps.is_empty() && self.is_temp(place.slot) => {
                Ok(Operand::Move(place))
            }
            _ => {
                let dest = self.temp(self.ty_of(expr), false);
                self.set(dest, operand);
                Ok(Operand::Move(Place::slot(dest)))
            }
        }
    }

    pub(super) fn is_temp(&self, slot: Slot) -> bool {
        slot & GLOBAL == 0 && self.slots[slot as usize].name.is_none()
    }

    pub(super) fn operands(&mut self, parts: &[Expr], extend: bool) -> Built<Vec<Operand>> {
        let parts: Vec<&Expr> = parts.iter().collect();
        self.operand_list(&parts, extend)
    }

    /// Left to right. A place is read late only when nothing after it can change it.
    pub(super) fn operand_list(&mut self, parts: &[&Expr], extend: bool) -> Built<Vec<Operand>> {
        // From the back: whether everything after an operand is quiet, and still.
        let mut after = vec![(true, true); parts.len()];
        for index in (1..parts.len()).rev() {
            let (quiet, still) = after[index];
            after[index - 1] = (quiet && is_quiet(parts[index]), still && is_still(parts[index]));
        }
        let mut out = Vec::with_capacity(parts.len());
        for (part, (quiet, still)) in parts.iter().zip(after) {
            let quiet = still || (quiet && self.ty_of(part).is_copy());
            if extend && matches!(part.kind, Kind::Borrow(..) | Kind::Tuple(_) | Kind::List(_)) {
                let dest = self.temp(self.ty_of(part), true);
                self.extend = true;
                self.into(part, dest)?;
                self.extend = false;
                out.push(Operand::Move(Place::slot(dest)));
                continue;
            }
            out.push(if quiet { self.operand(part)? } else { self.settled(part)? });
        }
        Ok(out)
    }

    pub(super) fn format(&mut self, format: &Format, dest: Slot) -> Built<()> {
        let span = self.span;
        let values = self.operands(&format.arguments, false)?;
        let args: Vec<Ty> = format.arguments.iter().map(|arg| self.ty_of(arg)).collect();
        self.span = span;
        self.emit(Inst::Format {
            dest,
            pieces: format.pieces.clone().into(),
            args: args.into(),
            values,
        });
        Ok(())
    }

    pub(super) fn format_text(&mut self, format: &Format, newline: bool) -> Built<Operand> {
        let end = if newline { "\n" } else { "" };
        match format.pieces.as_slice() {
            [] => return Ok(Operand::Const(Value::text(end))),
            [Piece::Text(text)] => {
                return Ok(Operand::Const(Value::text(format!("{text}{end}"))));
            }
            _ => {}
        }
        let dest = self.temp(Ty::string(), false);
        let span = self.span;
        let values = self.operands(&format.arguments, false)?;
        let args: Vec<Ty> = format.arguments.iter().map(|arg| self.ty_of(arg)).collect();
        let mut pieces = format.pieces.clone();
        if newline {
            pieces.push(Piece::Text("\n".into()));
        }
        self.span = span;
        self.emit(Inst::Format { dest, pieces: pieces.into(), args: args.into(), values });
        Ok(Operand::Move(Place::slot(dest)))
    }

    /// What is written is looked at first, then the text is borrowed and grows.
    fn write(&mut self, target: &Expr, format: &Format, dest: Slot, span: Span) -> Built<()> {
        let place = self.place_or_temp(target)?;
        let values = self.operands(&format.arguments, false)?;
        let args: Vec<Ty> = format.arguments.iter().map(|arg| self.ty_of(arg)).collect();
        self.span = span;
        let reference = self.temp(Ty::Ref(true, Arc::new(Ty::string())), false);
        self.emit(Inst::Ref { dest: reference, place, mutable: true });
        let text = self.temp(Ty::string(), false);
        self.emit(Inst::Format {
            dest: text,
            pieces: format.pieces.clone().into(),
            args: args.into(),
            values,
        });
        let behind = Place::slot(reference).step(Step::Deref);
        let grown = self.temp(Ty::string(), false);
        self.emit(Inst::Binary {
            dest: grown,
            op: BinaryOp::Add,
            num: Num::Other,
            left: Operand::Move(behind.clone()),
            right: Operand::Move(Place::slot(text)),
        });
        self.emit(Inst::Set { place: behind, value: Operand::Move(Place::slot(grown)) });
        self.set(dest, Operand::Const(Value::some(Value::Unit)));
        Ok(())
    }

    pub(super) fn assert_equal(
        &mut self,
        expr: &Expr,
        left: &Expr,
        right: &Expr,
        equal: bool,
        message: Option<&Format>,
    ) -> Built<()> {
        let types = Arc::new((self.ty_of(left), self.ty_of(right)));
        let left = self.settled(left)?;
        let right = self.settled(right)?;
        let same = self.temp(Ty::Bool, false);
        self.span = expr.span;
        let op = if equal { BinaryOp::Eq } else { BinaryOp::Ne };
        let again = |operand: &Operand| match operand {
            Operand::Move(place) => Operand::Copy(place.clone()),
            other => other.clone(),
        };
        self.emit(Inst::Binary {
            dest: same,
            op,
            num: Num::Other,
            left: again(&left),
            right: again(&right),
        });
        let condition = Operand::Copy(Place::slot(same));
        let fails = self.emit(Inst::Unless { condition, target: 0 });
        let over = self.emit(Inst::Jump(0));
        self.patch(&[fails]);
        let text = match message {
            Some(message) => Some(self.format_text(message, false)?),
            None => None,
        };
        self.span = expr.span;
        self.emit(Inst::Unequal { left: again(&left), right: again(&right), types, equal, text });
        self.patch(&[over]);
        Ok(())
    }
}

/// Evaluating it changes nothing and reads no place late.
pub(super) fn is_quiet(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_)
        | Kind::Local(_)
        | Kind::Function(_)
        | Kind::Method(_)
        | Kind::Constant(_) => true,
        Kind::Borrow(_, inner) | Kind::Deref(inner) | Kind::Field(inner, _) => is_quiet(inner),
        Kind::Tuple(parts) | Kind::List(parts) => parts.iter().all(is_quiet),
        Kind::Struct { fields, base, .. } => {
            fields.iter().all(|(_, field)| is_quiet(field)) && base.as_deref().is_none_or(is_quiet)
        }
        Kind::Range { start, end, .. } => {
            start.as_deref().is_none_or(is_quiet) && end.as_deref().is_none_or(is_quiet)
        }
        _ => false,
    }
}

/// Evaluating it names no place at all.
pub(super) fn is_still(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) | Kind::Function(_) | Kind::Method(_) | Kind::Constant(_) => true,
        Kind::Tuple(parts) | Kind::List(parts) => parts.iter().all(is_still),
        Kind::Struct { fields, base, .. } => {
            base.is_none() && fields.iter().all(|(_, field)| is_still(field))
        }
        Kind::Range { start, end, .. } => {
            start.as_deref().is_none_or(is_still) && end.as_deref().is_none_or(is_still)
        }
        _ => false,
    }
}
