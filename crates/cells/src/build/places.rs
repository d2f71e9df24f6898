//! Expressions as places: what is borrowed, assigned and moved out of.

use super::*;

impl Builder<'_> {
    /// Moving out of what is only borrowed or indexed is refused.
    pub(super) fn movable(&self, expr: &Expr) -> Built<()> {
        match &expr.kind {
            Kind::Deref(inner) => {
                let how = match self.ty_of(inner) {
                    Ty::Ref(true, _) => "mutable",
                    _ => "shared",
                };
                let name = self.describe(expr);
                Err(Diagnostic::check(
                    "E0507",
                    expr.span,
                    format!("cannot move out of {name} which is behind a {how} reference"),
                )
                .label("move occurs because the value does not implement the `Copy` trait")
                .help("borrow it (`&`), or clone it (`.clone()` shares an array's buffer)"))
            }
            Kind::Index(base, _) => {
                let ty = self.ty_of(base);
                let text = ty.to_string();
                if matches!(ty, Ty::Array(..) | Ty::Slice(_)) {
                    return Err(Diagnostic::check(
                        "E0508",
                        expr.span,
                        format!("cannot move out of type `{text}`, a non-copy array").replace(
                            "non-copy array",
                            match ty {
                                Ty::Slice(_) => "non-copy slice",
                                _ => "non-copy array",
                            },
                        ),
                    )
                    .label("cannot move out of here")
                    .help("consider borrowing here: `&`"));
                }
                Err(Diagnostic::check(
                    "E0507",
                    expr.span,
                    format!("cannot move out of index of `{text}`"),
                )
                .label("move occurs because the value does not implement the `Copy` trait")
                .help("consider borrowing here: `&`"))
            }
            Kind::Field(inner, _) => self.movable(inner),
            _ => Ok(()),
        }
    }

    /// A place as rustc names it in messages.
    pub(super) fn describe(&self, expr: &Expr) -> String {
        fn text(builder: &Builder<'_>, expr: &Expr) -> Option<String> {
            match &expr.kind {
                Kind::Local(id) => Some(builder.context.locals[*id as usize].name.clone()),
                Kind::Deref(inner) => Some(format!("*{}", text(builder, inner)?)),
                Kind::Field(inner, u32::MAX) => text(builder, inner),
                Kind::Field(inner, index) => {
                    let base = text(builder, inner)?;
                    match builder.ty_of(inner) {
                        Ty::Struct(def) => Some(format!(
                            "{}.{}",
                            base.trim_start_matches('*'),
                            def.names.fields[*index as usize]
                        )),
                        _ => Some(format!("{base}.{index}")),
                    }
                }
                Kind::Index(inner, _) => Some(format!("{}[..]", text(builder, inner)?)),
                _ => None,
            }
        }
        match text(self, expr) {
            Some(text) => format!("`{text}`"),
            None => "a value".into(),
        }
    }

    /// The place that the expression names; a value is put into a temporary first.
    pub(super) fn place(&mut self, expr: &Expr) -> Built<Place> {
        match &expr.kind {
            Kind::Local(local) => Ok(Place::slot(self.slot_of(*local))),
            Kind::Field(base, u32::MAX) => self.place(base),
            Kind::Field(base, index) => Ok(self.place(base)?.step(Step::Child(*index))),
            Kind::Deref(inner) => {
                if matches!(self.ty_of(inner), Ty::Ref(..)) {
                    return Ok(self.place_or_temp(inner)?.step(Step::Deref));
                }
                self.place(inner)
            }
            Kind::Index(base, at) if !is_unsized(&self.ty_of(expr)) => {
                let place = self.place_or_temp(base)?;
                if let Kind::Literal(Value::Int(at)) = &at.kind
                    && let Ok(at) = u32::try_from(*at)
                {
                    return Ok(place.step(Step::At(at)));
                }
                let index = self.temp(Ty::usize(), false);
                self.into(at, index)?;
                self.span = expr.span;
                Ok(place.step(Step::Index(index)))
            }
            Kind::Index(..) => {
                // A slice as a place: the reference to it, looked through.
                let dest = self.temp(Ty::reference(self.ty_of(expr)), false);
                self.slice(false, expr, dest)?;
                Ok(Place::slot(dest).step(Step::Deref))
            }
            Kind::Member(base, name) => {
                let place = self.place_or_temp(base)?;
                let dest = self.temp(self.ty_of(expr), false);
                self.emit(Inst::Member { dest, place, name });
                Ok(Place::slot(dest))
            }
            _ => self.place_or_temp(expr),
        }
    }

    pub(super) fn place_or_temp(&mut self, expr: &Expr) -> Built<Place> {
        if is_place(expr) {
            return self.place(expr);
        }
        let extend = std::mem::take(&mut self.extend);
        let dest = self.temp(self.ty_of(expr), extend);
        self.into(expr, dest)?;
        Ok(Place::slot(dest))
    }

    /// What a pattern is matched against.
    pub(super) fn scrutinee(&mut self, expr: &Expr) -> Built<Place> {
        if is_place(expr) {
            return self.place(expr);
        }
        let extend = self.extend;
        let dest = self.temp(self.ty_of(expr), false);
        self.extend = extend;
        self.into(expr, dest)?;
        self.extend = false;
        Ok(Place::slot(dest))
    }

    pub(super) fn borrow(
        &mut self,
        mutable: bool,
        inner: &Expr,
        dest: Slot,
        extend: bool,
        span: Span,
    ) -> Built<()> {
        if let Kind::Index(..) = inner.kind
            && is_unsized(&self.ty_of(inner))
        {
            return self.slice(mutable, inner, dest);
        }
        let place = if is_place(inner) {
            self.place(inner)?
        } else {
            let slot = if is_promoted(inner) {
                self.new_slot(self.ty_of(inner), None, false, span)
            } else {
                self.temp(self.ty_of(inner), extend)
            };
            self.extend = extend;
            self.into(inner, slot)?;
            self.extend = false;
            Place::slot(slot)
        };
        self.span = span;
        self.emit(Inst::Ref { dest, place, mutable });
        Ok(())
    }

    /// `&v[a..b]`.
    pub(super) fn slice(&mut self, mutable: bool, expr: &Expr, dest: Slot) -> Built<()> {
        let Kind::Index(base, range) = &expr.kind else { unreachable!("the caller saw an index") };
        let place = self.place_or_temp(base)?;
        let range = self.operand(range)?;
        self.span = expr.span;
        self.emit(Inst::SliceOf { dest, place, range, mutable });
        Ok(())
    }

    pub(super) fn assign(&mut self, place: &Expr, value: &Expr) -> Built<()> {
        let span = place.span;
        let operand = self.operand(value)?;
        let target = self.place(place)?;
        self.span = span;
        self.emit(Inst::Set { place: target.clone(), value: operand });
        self.name_place(place, target);
        Ok(())
    }

    /// After an assignment: the tables name the array by its path.
    pub(super) fn name_place(&mut self, expr: &Expr, place: Place) {
        if !self.ty_of(expr).holds_arrays() {
            return;
        }
        if let Some(name) = self.base_name(place.slot) {
            self.emit(Inst::Bound { place, name, last: false });
        }
    }

    pub(super) fn base_name(&self, slot: Slot) -> Option<Arc<str>> {
        let facts = if slot & GLOBAL != 0 {
            &self.globals[*self.known.get(&slot)?].1
        } else {
            &self.slots[slot as usize]
        };
        facts.name.as_deref().map(Arc::from)
    }
}

/// Slices and strings are only handled behind references.
pub(super) fn is_unsized(ty: &Ty) -> bool {
    matches!(ty, Ty::Slice(_) | Ty::Str)
}

pub(super) fn is_place(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Local(_) | Kind::Deref(_) => true,
        Kind::Index(base, _) => is_place(base) || !matches!(base.kind, Kind::Literal(_)),
        Kind::Field(base, _) => is_place(base) || matches!(base.kind, Kind::Call(..)),
        _ => false,
    }
}

/// `&5` is a reference to a constant, which lives for ever.
fn is_promoted(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) => !matches!(expr.ty, Ty::Struct(_)) || !expr.ty.needs_drop(),
        Kind::Struct { fields, base: None, .. } => {
            fields.iter().all(|(_, field)| is_promoted(field))
        }
        Kind::Negate(inner) => is_promoted(inner),
        Kind::Tuple(parts) => parts.iter().all(is_promoted),
        Kind::List(parts) => matches!(expr.ty, Ty::Array(..)) && parts.iter().all(is_promoted),
        Kind::Borrow(false, inner) => is_promoted(inner),
        _ => false,
    }
}
