//! Values of structs: fields in the order in which they are written, then what the base gives.

use super::*;
use crate::structs::StructDef;

impl Builder<'_> {
    pub(super) fn struct_value(
        &mut self,
        expr: &Expr,
        def: &Arc<StructDef>,
        fields: &[(u32, Expr)],
        base: Option<&Expr>,
        dest: Slot,
    ) -> Built<()> {
        let written: Vec<&Expr> = fields.iter().map(|(_, field)| field).collect();
        let given = match base {
            Some(base) if !is_quiet(base) => {
                let mut given = Vec::with_capacity(written.len());
                for field in written {
                    given.push(self.settled(field)?);
                }
                given
            }
            _ => self.operand_list(&written, false)?,
        };
        let mut parts: Vec<Option<Operand>> = def.fields().iter().map(|_| None).collect();
        for ((at, _), operand) in fields.iter().zip(given) {
            parts[*at as usize] = Some(operand);
        }
        if let Some(base) = base {
            self.rest_of(base, def, &mut parts)?;
        }
        self.span = expr.span;
        let parts = parts.into_iter().map(|part| part.expect("the check saw every field"));
        self.emit(Inst::Struct { dest, names: def.names.clone(), parts: parts.collect() });
        Ok(())
    }

    /// `..base`: the fields that are not written are copied, or moved out of it one by one.
    fn rest_of(
        &mut self,
        base: &Expr,
        def: &StructDef,
        parts: &mut [Option<Operand>],
    ) -> Built<()> {
        let place = self.scrutinee(base)?;
        for ((at, part), ty) in parts.iter_mut().enumerate().zip(def.fields()) {
            if part.is_some() {
                continue;
            }
            let field = place.clone().step(Step::Child(at as u32));
            if ty.is_copy() {
                *part = Some(Operand::Copy(field));
                continue;
            }
            if is_place(base) {
                self.movable(base)?;
            }
            *part = Some(Operand::Move(field));
        }
        Ok(())
    }

    /// What a call may have put into a variable that it borrowed: the tables name the arrays by
    /// their paths again.
    pub(super) fn name_changed(&mut self, args: &[Expr]) {
        for arg in args {
            let Kind::Borrow(true, inner) = &arg.kind else { continue };
            let Some(local) = self.root(inner) else { continue };
            let ty = self.ty(&self.context.locals[local as usize].ty);
            if matches!(ty, Ty::Ref(..)) || !ty.is_told() {
                continue;
            }
            let place = Place::slot(self.slot_of(local));
            if let Some(name) = self.base_name(place.slot) {
                self.emit(Inst::Bound { place, name, last: false });
            }
        }
    }

    /// The variable that a place is a part of.
    fn root(&self, expr: &Expr) -> Option<LocalId> {
        match &expr.kind {
            Kind::Local(local) => Some(*local),
            Kind::Field(base, _) | Kind::Index(base, _) => self.root(base),
            _ => None,
        }
    }
}

/// The place is a variable or fields of one: to name it evaluates nothing.
pub(super) fn is_plain_place(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Local(_) => true,
        Kind::Field(base, _) => is_plain_place(base),
        _ => false,
    }
}
