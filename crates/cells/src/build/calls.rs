//! Calls: arguments in order, two-phase borrows, what bounds ask of closures.

use super::*;

impl Builder<'_> {
    pub(super) fn call(
        &mut self,
        expr: &Expr,
        callee: &Callee,
        args: &[Expr],
        dest: Slot,
    ) -> Built<()> {
        match callee {
            Callee::Function(cell) | Callee::Method(cell) => {
                let is_method = matches!(callee, Callee::Method(_));
                let operands = self.arguments(is_method, args)?;
                for (arg, param) in args.iter().zip(&cell.sig.params) {
                    if matches!(param, Ty::Named(name, _) if name.starts_with("impl ")) {
                        closure_fits(&self.ty_of(arg), crate::check::kind_of(param), arg.span)?;
                    }
                }
                self.span = expr.span;
                self.emit(Inst::Call { dest, function: cell.clone(), args: operands });
                self.name_changed(args);
            }
            Callee::Value(callee) => self.call_value(expr, callee, args, dest)?,
            Callee::Surface(item, types) => {
                let sig = Candidate::Item(item).signature();
                let mut operands = self.arguments(sig.receiver.is_some(), args)?;
                self.check_bounds(sig, args, &operands)?;
                let at = usize::from(sig.receiver.is_some());
                for (index, ty) in types.iter().enumerate() {
                    let value = library::element_value(&self.ty(ty));
                    operands.insert(at + index, Operand::Const(value));
                }
                self.span = expr.span;
                // A `Vec` of arguments has as many as the function takes, which only the run can tell.
                let length = |ty: &Ty| match ty.peeled() {
                    Ty::Named("Jit", arguments) => Some((arguments[0].clone(), 1)),
                    Ty::Named("JitTree" | "JitUpdate", arguments) => {
                        Some((arguments[1].clone(), 2))
                    }
                    _ => None,
                };
                if let Some(function) = args.first()
                    && let Some((Ty::Const(want), at)) = length(&self.ty_of(function))
                    && let Some(given) = args.get(at)
                    && self.ty_of(given).is_named("Vec")
                    && let Some(Operand::Move(list) | Operand::Copy(list)) = operands.get(at)
                {
                    self.emit(Inst::Count { list: list.clone(), want: want as usize });
                }
                self.emit(Inst::CallSurface { dest, item, args: operands });
            }
            Callee::Library(row) => {
                let sig = Candidate::Row(row).signature();
                let operands = self.arguments(sig.receiver.is_some(), args)?;
                self.check_bounds(sig, args, &operands)?;
                let meta = Meta {
                    args: args.iter().map(|arg| self.ty_of(arg)).collect(),
                    ret: self.ty_of(expr),
                };
                self.span = expr.span;
                self.emit(Inst::CallLibrary { dest, row, args: operands, meta: Arc::new(meta) });
                self.name_grown(row, args);
            }
        }
        Ok(())
    }

    /// `params.push(w)`: the tables name the element by its path.
    pub(super) fn name_grown(&mut self, row: &library::Row, args: &[Expr]) {
        if !row.grows {
            return;
        }
        if let Some(Expr { kind: Kind::Borrow(true, inner), .. }) = args.first()
            && self.ty_of(inner).holds_arrays()
            && is_plain_place(inner)
            && let Ok(place) = self.place(inner)
            && let Some(name) = self.base_name(place.slot)
        {
            self.emit(Inst::Bound { place, name, last: row.name() == "push" });
        }
    }

    /// A method's receiver that is borrowed mutably is borrowed last (two-phase borrows).
    pub(super) fn arguments(&mut self, has_receiver: bool, args: &[Expr]) -> Built<Vec<Operand>> {
        if let Some((first, rest)) = args.split_first()
            && has_receiver
            && let Kind::Borrow(true, inner) = &first.kind
            && is_place(inner)
            && !rest.is_empty()
            && !(matches!(inner.kind, Kind::Index(..)) && is_unsized(&self.ty_of(inner)))
        {
            let place = self.place(inner)?;
            let reserved = self.reserve(&place, self.ty_of(first), first.span, rest);
            let mut operands = self.operands(rest, false)?;
            for (operand, arg) in operands.iter_mut().zip(rest) {
                if let Operand::Copy(own) | Operand::Move(own) = operand
                    && own.slot == place.slot
                {
                    let kept = self.temp(self.ty_of(arg), false);
                    self.set(kept, operand.clone());
                    *operand = Operand::Move(Place::slot(kept));
                }
            }
            let slot = self.temp(self.ty_of(first), false);
            self.span = first.span;
            if let Some(reserved) = reserved {
                self.emit(Inst::Look(Place::slot(reserved)));
            }
            self.emit(Inst::Ref { dest: slot, place, mutable: true });
            operands.insert(0, Operand::Move(Place::slot(slot)));
            return Ok(operands);
        }
        self.operands(args, false)
    }

    /// From here to its activation the place may be read and not changed. Nothing runs for it.
    pub(super) fn reserve(
        &mut self,
        place: &Place,
        ty: Ty,
        span: Span,
        rest: &[Expr],
    ) -> Option<Slot> {
        if rest.iter().all(|part| matches!(part.kind, Kind::Literal(_) | Kind::Local(_))) {
            return None;
        }
        let slot = self.new_slot(ty, None, true, span);
        self.span = span;
        self.emit(Inst::Ref { dest: slot, place: place.clone(), mutable: false });
        Some(slot)
    }

    /// What `'static` and the closure traits ask of the arguments.
    pub(super) fn check_bounds(
        &mut self,
        sig: &Signature,
        args: &[Expr],
        operands: &[Operand],
    ) -> Built<()> {
        let offset = usize::from(sig.receiver.is_some());
        for (index, (_, param)) in sig.params.iter().enumerate() {
            let Ty::Param(generic) = param else { continue };
            let Some(arg) = args.get(index + offset) else { continue };
            let ty = self.ty_of(arg);
            for bound in &sig.generics[*generic as usize].bounds {
                match bound {
                    Bound::Static => {
                        if let Some(Operand::Move(place) | Operand::Copy(place)) =
                            operands.get(index + offset)
                        {
                            let closure = matches!(ty, Ty::Closure(_));
                            self.span = arg.span;
                            self.emit(Inst::Static { slot: place.slot, closure });
                        }
                    }
                    Bound::Callable(wanted, _) => {
                        closure_fits(&ty, *wanted, arg.span)?;
                    }
                    Bound::Trait(..) => {}
                }
            }
        }
        Ok(())
    }

    pub(super) fn call_value(
        &mut self,
        expr: &Expr,
        callee: &Expr,
        args: &[Expr],
        dest: Slot,
    ) -> Built<()> {
        let ty = self.ty_of(callee);
        let kind = match &ty {
            Ty::Closure(closure) => closure.facts.get().map_or(ClosureKind::Fn, |facts| facts.kind),
            Ty::Named(name, _) if name.starts_with("impl ") => crate::check::kind_of(&ty),
            _ => ClosureKind::Fn,
        };
        let direct = matches!(ty, Ty::Ref(..) | Ty::FnItem(..) | Ty::FnPtr(_));
        if direct || kind == ClosureKind::FnOnce {
            let parts: Vec<&Expr> = std::iter::once(callee).chain(args).collect();
            let mut operands = self.operand_list(&parts, false)?;
            let callee = operands.remove(0);
            self.span = expr.span;
            self.emit(Inst::CallValue { dest, callee, args: operands });
            return Ok(());
        }
        let place = self.place_or_temp(callee)?;
        let args = self.operands(args, false)?;
        let mutable = kind == ClosureKind::FnMut;
        let slot = self.temp(Ty::Ref(mutable, Arc::new(ty)), false);
        self.span = callee.span;
        self.emit(Inst::Ref { dest: slot, place, mutable });
        self.span = expr.span;
        let callee = Operand::Move(Place::slot(slot));
        self.emit(Inst::CallValue { dest, callee, args });
        Ok(())
    }
}

/// A closure passed where a trait is wanted must be callable that way.
fn closure_fits(ty: &Ty, wanted: ClosureKind, span: Span) -> Built<()> {
    if let Ty::Closure(closure) = ty
        && let Some(facts) = closure.facts.get()
        && facts.kind > wanted
    {
        return Err(Diagnostic::check(
            "E0525",
            span,
            format!(
                "expected a closure that implements the `{}` trait, but this closure only \
                 implements `{}`",
                wanted.name(),
                facts.kind.name()
            ),
        ));
    }
    Ok(())
}
