//! Conditions on types: trait bounds, casts and operators that had to wait, and the defaults.

use super::{Checked, Checker, Pending};
use crate::diagnostic::Diagnostic;
use crate::ir::Span;
use crate::ty::{FloatKind, FnSig, IntKind, Ty, VarKind};
use std::sync::Arc;

/// Whether a type meets a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    /// A variable decides.
    Later,
}

impl Answer {
    fn of(yes: bool) -> Answer {
        if yes { Answer::Yes } else { Answer::No }
    }

    fn and(self, other: Answer) -> Answer {
        match (self, other) {
            (Answer::No, _) | (_, Answer::No) => Answer::No,
            (Answer::Later, _) | (_, Answer::Later) => Answer::Later,
            _ => Answer::Yes,
        }
    }
}

impl Checker<'_> {
    /// Decides what can be decided by now.
    pub(super) fn select(&mut self) -> Checked<()> {
        loop {
            let before = self.pending.len();
            let mut waiting = std::mem::take(&mut self.pending).into_iter();
            while let Some(one) = waiting.next() {
                match self.decide(&one) {
                    Ok(true) => {}
                    Ok(false) => self.pending.push(one),
                    // It stays: some callers only look for types, and the end tells of it.
                    Err(fault) => {
                        self.pending.push(one);
                        self.pending.extend(waiting);
                        return Err(fault);
                    }
                }
            }
            if self.pending.is_empty() || self.pending.len() >= before {
                return Ok(());
            }
        }
    }

    /// The end of the cell: what is still open takes its default, then everything must hold.
    pub(super) fn finish(&mut self) -> Checked<()> {
        self.select()?;
        for _ in 0..8 {
            if self.pending.is_empty() {
                break;
            }
            for one in self.pending.clone() {
                self.default_of(&one);
            }
            self.select()?;
        }
        if let Some(one) = self.pending.first() {
            let span = match one {
                Pending::Binary { span, .. }
                | Pending::Bound { span, .. }
                | Pending::Cast { span, .. }
                | Pending::Negate { span, .. } => *span,
            };
            let code = match one {
                Pending::Bound { name: "Sum" | "Product" | "FromIterator", .. } => "E0283",
                Pending::Bound { name: "FromStr", .. } => "E0284",
                _ => "E0282",
            };
            return Err(
                Diagnostic::check(code, span, "type annotations needed").label("cannot infer type")
            );
        }
        self.default_locals()
    }

    fn default_locals(&mut self) -> Checked<()> {
        for index in 0..self.locals.len() {
            let ty = self.locals[index].ty.clone();
            self.default_inside(&ty);
            let local = &self.locals[index];
            if local.earlier.is_none() && self.infer.is_open(&ty) {
                let code = if open_length(&self.infer.resolve(&ty)) { "E0284" } else { "E0282" };
                return Err(Diagnostic::check(code, local.span, "type annotations needed")
                    .label(format!("consider giving `{}` an explicit type", local.name)));
            }
        }
        Ok(())
    }

    /// Integer variables become `i32`, float ones `f64`.
    pub(super) fn default_inside(&mut self, ty: &Ty) {
        match self.infer.resolve(ty) {
            var @ Ty::Var(_) => {
                self.infer.bind_default(&var);
            }
            Ty::Tuple(parts) | Ty::Named(_, parts) => {
                parts.iter().for_each(|part| self.default_inside(part));
            }
            Ty::Array(element, _) | Ty::Slice(element) | Ty::Ref(_, element) => {
                self.default_inside(&element);
            }
            Ty::Closure(closure) => {
                closure.sig.params.iter().for_each(|param| self.default_inside(param));
                self.default_inside(&closure.sig.ret);
            }
            _ => {}
        }
    }

    fn default_of(&mut self, one: &Pending) {
        match one {
            Pending::Binary { left, right, .. } => {
                self.default_inside(left);
                self.default_inside(right);
            }
            Pending::Bound { ty, arguments, .. } => {
                arguments.iter().for_each(|argument| self.default_inside(argument));
                self.default_inside(ty);
            }
            Pending::Cast { from, to, .. } => {
                self.default_inside(from);
                self.default_inside(to);
            }
            Pending::Negate { ty, .. } => self.default_inside(ty),
        }
    }

    fn decide(&mut self, one: &Pending) -> Checked<bool> {
        match one {
            Pending::Binary { op, left, right, .. }
                if !op.is_comparison()
                    && self.is_literal_var(left)
                    && self.is_literal_var(right) =>
            {
                Ok(false)
            }
            Pending::Binary { op, left, right, out, span, spans } => {
                let decided = self.binary_type(*op, left, right, *span, *spans);
                // What was open when the operator was looked up is a bound that fails.
                let decided = decided.map_err(|mut fault| {
                    if fault.code == "E0308" {
                        fault.code = "E0277";
                    }
                    fault
                });
                match decided? {
                    Some(ty) if self.infer.unify(out, &ty).is_err() => {
                        let (a, b) = (self.infer.text(&ty), self.infer.text(out));
                        let message = format!("type mismatch: this gives `{a}`");
                        Err(Diagnostic::check("E0271", *span, message)
                            .label(format!("expected `{b}`, found `{a}`")))
                    }
                    Some(_) => Ok(true),
                    None => Ok(false),
                }
            }
            Pending::Bound { ty, name, arguments, span } => {
                match self.satisfies(ty, name, arguments) {
                    Answer::Yes => Ok(true),
                    Answer::Later => Ok(false),
                    Answer::No => Err(self.unsatisfied(ty, name, arguments, *span)),
                }
            }
            Pending::Cast { from, to, span } => self.decide_cast(from, to, *span),
            Pending::Negate { ty, span } => match self.infer.shallow(ty) {
                // Known only after the operator was looked up, so it is a bound that fails.
                Ty::Int(kind) if !kind.is_signed() => {
                    let mut fault = self.bad_unary("-", &Ty::Int(kind), *span);
                    fault.code = "E0277";
                    Err(fault)
                }
                Ty::Var(_) => Ok(false),
                _ => Ok(true),
            },
        }
    }

    /// `{integer}` or `{float}`: which operator it is stays open until the default.
    fn is_literal_var(&self, ty: &Ty) -> bool {
        matches!(self.infer.var_kind(&self.infer.resolve(ty)), Some(VarKind::Int | VarKind::Float))
    }

    fn decide_cast(&mut self, from: &Ty, to: &Ty, span: Span) -> Checked<bool> {
        let (from, to) = (self.infer.resolve(from), self.infer.resolve(to));
        let fault =
            |code: &'static str, message: String| Err(Diagnostic::check(code, span, message));
        let (a, b) = (self.infer.text(&from), self.infer.text(&to));
        match (&from, &to) {
            // Casts are looked at last: what is cast may get its type from later uses.
            (Ty::Var(_), _) => Ok(false),
            (_, Ty::Var(_)) => Ok(false),
            (Ty::Never, _) => Ok(true),
            (Ty::Int(_) | Ty::Float(_), Ty::Int(_) | Ty::Float(_)) => Ok(true),
            (Ty::Bool | Ty::Char, Ty::Int(_)) => Ok(true),
            (Ty::Int(IntKind::U8), Ty::Char) => Ok(true),
            (x, y) if x == y => Ok(true),
            (Ty::Int(_), Ty::Char) => {
                fault("E0604", format!("only `u8` can be cast as `char`, not `{a}`"))
            }
            (Ty::Int(_) | Ty::Float(_), Ty::Bool) => {
                fault("E0054", format!("cannot cast `{a}` as `bool`"))
            }
            (Ty::Float(_), Ty::Char) => {
                fault("E0604", format!("only `u8` can be cast as `char`, not `{a}`"))
            }
            (Ty::Ref(..), Ty::Int(_) | Ty::Float(_)) => {
                fault("E0606", format!("casting `{a}` as `{b}` is invalid"))
            }
            (Ty::Bool | Ty::Char | Ty::Float(_), _) if to.is_scalar() => {
                fault("E0606", format!("casting `{a}` as `{b}` is invalid"))
            }
            _ => fault("E0605", format!("non-primitive cast: `{a}` as `{b}`")),
        }
    }

    pub(super) fn require(&mut self, ty: &Ty, name: &'static str, arguments: &[Ty], span: Span) {
        self.pending.push(Pending::Bound {
            ty: ty.clone(),
            name,
            arguments: arguments.to_vec(),
            span,
        });
    }

    fn unsatisfied(&self, ty: &Ty, name: &str, arguments: &[Ty], span: Span) -> Box<Diagnostic> {
        let text = self.infer.text(ty);
        let list: Vec<String> = arguments.iter().map(|ty| self.infer.text(ty)).collect();
        let bound = match list.is_empty() {
            true => name.to_string(),
            false => format!("{name}<{}>", list.join(", ")),
        };
        let message = match name {
            "Display" => format!("`{text}` doesn't implement `std::fmt::Display`"),
            "Debug" => format!("`{text}` doesn't implement `Debug`"),
            "IntoIterator" | "IntoIter" => format!("`{text}` is not an iterator"),
            "FromIterator" => format!(
                "a value of type `{text}` cannot be built from an iterator over elements of type \
                 `{}`",
                list.join(", ")
            ),
            "Sum" => format!(
                "a value of type `{text}` cannot be made by summing an iterator over elements \
                 of type `{}`",
                list.join(", ")
            ),
            "Product" => format!(
                "a value of type `{text}` cannot be made by multiplying all elements of type \
                 `{}` from an iterator",
                list.join(", ")
            ),
            _ => format!("the trait bound `{text}: {bound}` is not satisfied"),
        };
        let label = match name {
            "Display" => format!("`{text}` cannot be formatted with the default formatter"),
            _ => format!("the trait `{bound}` is not implemented for `{text}`"),
        };
        let diagnostic = Diagnostic::check("E0277", span, message).label(label);
        match (name, self.infer.resolve(ty)) {
            ("Tree", Ty::Struct(..)) => diagnostic.help(format!(
                "declare it within `tree! {{ … }}`: `tree! {{ struct {text} {{ … }} }}`; its fields are arrays and \
                 trees, and numbers stand outside"
            )),
            ("Tree", _) => diagnostic.help(
                "a tree is made of arrays: tuples, arrays, `Vec`s and structs of `tree!`; numbers stand outside",
            ),
            _ => diagnostic,
        }
    }

    /// The traits of the prelude and of the library table. A trait that is not listed here holds
    /// for every type: the dynamic entry point then decides.
    fn satisfies(&mut self, ty: &Ty, name: &str, arguments: &[Ty]) -> Answer {
        let ty = self.infer.resolve(ty);
        if let Ty::Var(_) = ty {
            return self.open_satisfies(&ty, name, arguments);
        }
        match name {
            "Operand" => Answer::of(is_operand(&ty)),
            "Into" => self.converts_into(&ty, arguments),
            "IntoShape" => self.is_shape(&ty),
            "Extent" => self.each(&ty, |kind| matches!(kind, IntKind::I32 | IntKind::Usize)),
            "Axes" => self.is_axes(&ty),
            "Padding" => self.is_padding(&ty),
            "Nested" => self.is_nested(&ty),
            "Indices" => self.is_indices(&ty),
            "Arrays" => self.is_arrays(&ty),
            "Starts" => Answer::Yes,
            "Tree" => self.is_tree(&ty),
            "Args" | "Arguments" => self.is_arguments(&ty, arguments.last()),
            "Element" => Answer::of(is_element(&ty)),
            "Display" => Answer::of(is_display(&ty)),
            "Debug" => Answer::of(is_debug(&ty)),
            "Default" => Answer::of(has_default(&ty)),
            "Eq" => Answer::of(is_eq(&ty)),
            "LowerExp" => Answer::of(ty.peeled().is_numeric()),
            "Hex" => Answer::of(matches!(ty.peeled(), Ty::Int(_))),
            "Clone" => self.is_clone(&ty),
            "Copy" => self.is_copy(&ty),
            "PartialEq" => self.is_comparable(&ty, arguments, true),
            "PartialOrd" => self.is_comparable(&ty, arguments, false),
            "Ord" => self.is_ordered(&ty),
            "IntoIter" | "IntoIterator" => match self.item_of(&ty) {
                Some(item) => match arguments.first() {
                    Some(want) => {
                        let want = want.clone();
                        Answer::of(self.infer.unify(&item, &want).is_ok())
                    }
                    None => Answer::Yes,
                },
                None => Answer::No,
            },
            "Extendable" => self.is_extendable(&ty, &arguments[0].clone()),
            "Sum" | "Product" => {
                let item = self.infer.resolve(&arguments[0]);
                let bare = match &item {
                    Ty::Ref(_, to) => (**to).clone(),
                    other => other.clone(),
                };
                let number = ty.is_numeric();
                Answer::of(number && self.infer.unify(&ty, &bare).is_ok())
            }
            "FromIterator" => self.is_collection(&ty, &arguments[0].clone()),
            "Joined" => {
                let out = Ty::string();
                Answer::of(matches!(ty.peeled(), Ty::Str) || *ty.peeled() == out)
            }
            "MadeFrom" => {
                let from = self.infer.resolve(&arguments[0]);
                self.infer.bind_default(&from);
                let from = self.infer.resolve(&from);
                let text = ty.is_named("String")
                    && self.converts_into(&from, &[Ty::string()]) == Answer::Yes;
                Answer::of(text || is_lossless(&from, &ty))
            }
            "FromStr" => {
                let error = match &ty {
                    Ty::Int(_) => "ParseIntError",
                    Ty::Float(_) => "ParseFloatError",
                    Ty::Bool => "ParseBoolError",
                    Ty::Char => "ParseCharError",
                    _ => return Answer::No,
                };
                let own = arguments.first().cloned();
                Answer::of(own.is_none_or(|own| self.infer.unify(&own, &Ty::named(error)).is_ok()))
            }
            "Lossless" => match arguments.first() {
                Some(to) => Answer::of(is_lossless(&ty, to)),
                None => Answer::Yes,
            },
            "Pattern" => Answer::of(
                ty == Ty::Char
                    || matches!(&ty, Ty::Ref(_, to) if **to == Ty::Str || to.is_named("String")),
            ),
            "Numeric" => Answer::of(ty.is_numeric()),
            _ => Answer::Yes,
        }
    }

    /// Whether the type of a field, which is known, has a trait.
    pub(super) fn field_has(&mut self, ty: &Ty, name: &str) -> bool {
        let answer = match name {
            "PartialEq" => Answer::of(super::operator::comparable(ty, true)),
            "PartialOrd" => Answer::of(super::operator::comparable(ty, false)),
            _ => self.satisfies(ty, name, &[]),
        };
        answer != Answer::No
    }

    /// What a bound says about a type that is still open.
    fn open_satisfies(&mut self, ty: &Ty, name: &str, _arguments: &[Ty]) -> Answer {
        match (self.infer.var_kind(ty), name) {
            (Some(VarKind::Int | VarKind::Float), "Operand" | "Into") => {
                self.infer.bind_default(ty);
                Answer::Yes
            }
            (Some(VarKind::Int), "Display" | "Debug" | "Clone" | "LowerExp" | "Hex" | "Copy") => {
                Answer::Yes
            }
            (Some(VarKind::Float), "Display" | "Debug" | "Clone" | "LowerExp" | "Copy") => {
                Answer::Yes
            }
            _ => Answer::Later,
        }
    }

    fn converts_into(&mut self, ty: &Ty, arguments: &[Ty]) -> Answer {
        match arguments.first() {
            Some(Ty::Named("Number", _)) => Answer::of(matches!(
                ty,
                Ty::Float(FloatKind::F64) | Ty::Int(IntKind::I32) | Ty::Bool
            )),
            Some(Ty::Named("String", _)) => Answer::of(
                ty.is_named("String") || *ty == Ty::reference(Ty::Str) || *ty == Ty::Char,
            ),
            _ => Answer::Yes,
        }
    }

    /// An integer type, or a variable that may become one.
    fn each(&mut self, ty: &Ty, fits: impl Fn(IntKind) -> bool) -> Answer {
        match self.infer.shallow(ty) {
            Ty::Int(kind) => Answer::of(fits(kind)),
            ty @ Ty::Var(_) if self.infer.var_kind(&ty) == Some(VarKind::Float) => Answer::No,
            Ty::Var(_) => Answer::Later,
            _ => Answer::No,
        }
    }

    fn is_shape(&mut self, ty: &Ty) -> Answer {
        let extent = |kind: IntKind| matches!(kind, IntKind::I32 | IntKind::Usize);
        match ty {
            Ty::Tuple(parts) => Answer::of(parts.is_empty()),
            Ty::Ref(_, to) => match &**to {
                Ty::Slice(element) => self.each(element, extent),
                other => self.is_shape(other),
            },
            Ty::Array(element, _) | Ty::Slice(element) => self.each(element, extent),
            Ty::Named("Vec", arguments) => self.each(&arguments[0], extent),
            other => self.each(other, extent),
        }
    }

    fn is_axes(&mut self, ty: &Ty) -> Answer {
        let axis = |kind: IntKind| matches!(kind, IntKind::I32);
        match ty {
            Ty::Array(element, _) => self.each(element, axis),
            Ty::Named("Vec", arguments) => self.each(&arguments[0], axis),
            Ty::Ref(_, to) => match &**to {
                Ty::Slice(element) => self.each(element, axis),
                _ => Answer::No,
            },
            _ => Answer::No,
        }
    }

    fn is_padding(&mut self, ty: &Ty) -> Answer {
        let axis = |kind: IntKind| matches!(kind, IntKind::I32);
        let (Ty::Array(element, _), true) = (ty, true) else {
            return Answer::of(matches!(ty, Ty::Named("Vec", _) | Ty::Ref(..)));
        };
        match self.infer.resolve(element) {
            Ty::Tuple(parts) if parts.len() == 2 => {
                self.each(&parts[0], axis).and(self.each(&parts[1], axis))
            }
            Ty::Var(_) => Answer::Later,
            _ => Answer::No,
        }
    }

    fn is_nested(&mut self, ty: &Ty) -> Answer {
        match ty {
            Ty::Array(element, _) | Ty::Slice(element) => {
                let element = self.infer.resolve(element);
                self.is_nested(&element)
            }
            Ty::Named("Vec", arguments) => {
                let element = self.infer.resolve(&arguments[0]);
                self.is_nested(&element)
            }
            Ty::Ref(_, to) => {
                let to = self.infer.resolve(to);
                self.is_nested(&to)
            }
            Ty::Var(_) => match self.infer.var_kind(ty) {
                Some(VarKind::General) => Answer::Later,
                _ => Answer::Later,
            },
            other => Answer::of(is_element(other)),
        }
    }

    fn is_indices(&mut self, ty: &Ty) -> Answer {
        let index = |kind: IntKind| matches!(kind, IntKind::I32 | IntKind::Usize);
        match ty {
            Ty::Tuple(parts) => {
                let parts = parts.clone();
                parts.iter().fold(Answer::Yes, |answer, part| {
                    let part = self.infer.resolve(part);
                    let one = match part {
                        Ty::Tuple(_) => Answer::No,
                        other => self.is_indices(&other),
                    };
                    answer.and(one)
                })
            }
            Ty::Named("RangeFull", _) => Answer::Yes,
            Ty::Named("Range" | "RangeInclusive" | "RangeFrom" | "RangeTo", arguments) => {
                self.each(&arguments[0], index)
            }
            Ty::Named("RangeToInclusive", arguments) => self.each(&arguments[0], index),
            other => self.each(other, index),
        }
    }

    fn is_arrays(&mut self, ty: &Ty) -> Answer {
        match ty {
            Ty::Array(element, _) | Ty::Slice(element) => {
                Answer::of(self.infer.resolve(element).peeled().is_named("Array"))
            }
            Ty::Named("Vec", arguments) => {
                Answer::of(self.infer.resolve(&arguments[0]).peeled().is_named("Array"))
            }
            Ty::Ref(_, to) => {
                let to = self.infer.resolve(to);
                self.is_arrays(&to)
            }
            _ => Answer::No,
        }
    }

    /// What a jitted function may return.
    fn is_tree(&mut self, ty: &Ty) -> Answer {
        match ty {
            Ty::Named("Array", _) => Answer::Yes,
            Ty::Struct(def) => Answer::of(def.is_tree),
            Ty::Named("Vec", arguments) => {
                let element = self.infer.resolve(&arguments[0]);
                self.open_tree(&element)
            }
            Ty::Array(element, _) => {
                let element = self.infer.resolve(element);
                self.open_tree(&element)
            }
            Ty::Tuple(parts) => {
                let parts = parts.clone();
                parts.iter().fold(Answer::Yes, |answer, part| {
                    let part = self.infer.resolve(part);
                    answer.and(self.open_tree(&part))
                })
            }
            _ => Answer::No,
        }
    }

    fn open_tree(&mut self, ty: &Ty) -> Answer {
        match ty {
            Ty::Var(_) => match self.infer.var_kind(ty) {
                Some(VarKind::General) => Answer::Later,
                _ => Answer::No,
            },
            other => self.is_tree(other),
        }
    }

    /// `[&x, &w]`, `(w, &x)`, `vec![…]`, with the length where it is known.
    fn is_arguments(&mut self, ty: &Ty, length: Option<&Ty>) -> Answer {
        let fits = |ty: &Ty| match ty {
            Ty::Ref(false, to) => to.is_named("Array"),
            other => other.is_named("Array"),
        };
        match ty {
            Ty::Array(element, own) => {
                let element = self.infer.resolve(element);
                let own = (**own).clone();
                let same = match length {
                    Some(length) => self.infer.unify(length, &own).is_ok(),
                    None => true,
                };
                Answer::of(fits(&element) && same)
            }
            Ty::Named("Vec", arguments) => {
                let element = self.infer.resolve(&arguments[0]);
                Answer::of(fits(&element))
            }
            Ty::Tuple(parts) => {
                let all = parts.iter().all(|part| fits(&self.infer.resolve(part)));
                let own = Ty::Const(parts.len() as u64);
                let same = match length {
                    Some(length) => self.infer.unify(length, &own).is_ok(),
                    None => true,
                };
                Answer::of(all && same && !parts.is_empty())
            }
            _ => Answer::No,
        }
    }

    fn is_clone(&mut self, ty: &Ty) -> Answer {
        match ty {
            Ty::Ref(true, _) | Ty::DynFn(_) => Answer::No,
            Ty::Struct(def) => Answer::of(def.derives.clone),
            Ty::Ref(false, _) => Answer::Yes,
            Ty::Array(element, _) => {
                let element = self.infer.resolve(element);
                match element {
                    Ty::Var(_) => Answer::Yes,
                    other => self.is_clone(&other),
                }
            }
            Ty::Named("Box", arguments) => {
                let inner = self.infer.resolve(&arguments[0]);
                self.is_clone(&inner)
            }
            Ty::Named("Jit" | "JitTree" | "JitUpdate", _) => Answer::No,
            Ty::Named(_, parts) | Ty::Tuple(parts) => {
                let parts = parts.clone();
                parts.iter().fold(Answer::Yes, |answer, part| {
                    let part = self.infer.resolve(part);
                    answer.and(match part {
                        Ty::Var(_) => Answer::Yes,
                        other => self.is_clone(&other),
                    })
                })
            }
            _ => Answer::Yes,
        }
    }

    fn is_copy(&mut self, ty: &Ty) -> Answer {
        match self.infer.resolve(ty) {
            ty @ Ty::Var(_) => match self.infer.var_kind(&ty) {
                Some(VarKind::General) => Answer::Later,
                _ => Answer::Yes,
            },
            Ty::Tuple(parts) | Ty::Named("Option", parts) => {
                parts.iter().fold(Answer::Yes, |answer, part| answer.and(self.is_copy(part)))
            }
            Ty::Array(element, _) => self.is_copy(&element),
            other => Answer::of(other.is_copy()),
        }
    }

    fn is_comparable(&mut self, ty: &Ty, arguments: &[Ty], equality: bool) -> Answer {
        let other = arguments.first().cloned().unwrap_or_else(|| ty.clone());
        let op = if equality { crate::hir::BinaryOp::Eq } else { crate::hir::BinaryOp::Lt };
        let nowhere = Span::default();
        match self.binary_type(op, ty, &other, nowhere, (nowhere, nowhere)) {
            Ok(Some(_)) => Answer::Yes,
            Ok(None) => Answer::Later,
            Err(_) => Answer::No,
        }
    }

    fn is_ordered(&mut self, ty: &Ty) -> Answer {
        match ty {
            Ty::Int(_) | Ty::Bool | Ty::Char | Ty::Str => Answer::Yes,
            Ty::Named("String", _) => Answer::Yes,
            Ty::Struct(def) => Answer::of(def.derives.ord),
            Ty::Ref(_, to) | Ty::Array(to, _) | Ty::Slice(to) => {
                let to = self.infer.resolve(to);
                self.is_ordered(&to)
            }
            Ty::Named("Vec" | "Option", parts) | Ty::Tuple(parts) => {
                let parts = parts.clone();
                parts.iter().fold(Answer::Yes, |answer, part| {
                    let part = self.infer.resolve(part);
                    answer.and(self.is_ordered(&part))
                })
            }
            Ty::Var(_) => match self.infer.var_kind(ty) {
                Some(VarKind::Int) => Answer::Yes,
                Some(VarKind::Float) => Answer::No,
                _ => Answer::Later,
            },
            _ => Answer::No,
        }
    }

    fn is_extendable(&mut self, ty: &Ty, element: &Ty) -> Answer {
        let Some(item) = self.item_of(ty) else { return Answer::No };
        let item = self.infer.resolve(&item);
        let element = self.infer.resolve(element);
        if let Ty::Ref(_, to) = &item
            && !matches!(element, Ty::Ref(..))
        {
            let copy = self.is_copy(to) != Answer::No;
            return Answer::of(copy && self.infer.unify(to, &element).is_ok());
        }
        Answer::of(self.infer.unify(&item, &element).is_ok())
    }

    fn is_collection(&mut self, ty: &Ty, item: &Ty) -> Answer {
        match ty {
            Ty::Named("Vec", arguments) => {
                let element = arguments[0].clone();
                Answer::of(self.infer.unify(&element, item).is_ok())
            }
            Ty::Named("String", _) => {
                let item = self.infer.resolve(item);
                let text = matches!(item.peeled(), Ty::Char | Ty::Str) || item.is_named("String");
                match item {
                    Ty::Var(_) => Answer::Later,
                    _ => Answer::of(text),
                }
            }
            Ty::Named("Option", arguments) => {
                let item = self.infer.resolve(item);
                match item {
                    Ty::Named("Option", inner) => {
                        let collection = self.infer.resolve(&arguments[0]);
                        match collection {
                            Ty::Var(_) => Answer::Later,
                            other => self.is_collection(&other, &inner[0]),
                        }
                    }
                    _ => Answer::No,
                }
            }
            _ => Answer::No,
        }
    }

    /// What `for` gets from a value of the type.
    pub(super) fn item_of(&mut self, ty: &Ty) -> Option<Ty> {
        let ty = self.infer.shallow(ty);
        match &ty {
            Ty::Named("Vec" | "Iter" | "Option", arguments) => Some(arguments[0].clone()),
            Ty::Named("Range" | "RangeInclusive" | "RangeFrom", arguments) => {
                let steps = matches!(self.infer.shallow(&arguments[0]), Ty::Int(_) | Ty::Char)
                    || self.infer.var_kind(&arguments[0]) == Some(VarKind::Int);
                steps.then(|| arguments[0].clone())
            }
            Ty::Array(element, _) => Some((**element).clone()),
            Ty::Ref(mutable, to) => {
                let to = self.infer.shallow(to);
                let element = match &to {
                    Ty::Named("Vec" | "Option", arguments) => arguments[0].clone(),
                    Ty::Array(element, _) | Ty::Slice(element) => (**element).clone(),
                    Ty::Named("Iter" | "Range" | "RangeInclusive", arguments) if *mutable => {
                        return Some(arguments[0].clone());
                    }
                    _ => return None,
                };
                Some(Ty::Ref(*mutable, Arc::new(element)))
            }
            _ => None,
        }
    }

    /// The signature under which a value can be called, and the least it must be borrowed as.
    pub(super) fn callable_sig(&mut self, ty: &Ty) -> Option<FnSig> {
        match self.infer.shallow(ty) {
            Ty::FnItem(_, sig) | Ty::FnPtr(sig) | Ty::DynFn(sig) => Some((*sig).clone()),
            Ty::Closure(closure) => Some(closure.sig.clone()),
            Ty::Ref(_, to) => self.callable_sig(&to),
            Ty::Named("Box" | "impl Fn" | "impl FnMut" | "impl FnOnce", arguments) => {
                self.callable_sig(&arguments[0])
            }
            Ty::Named("Jit", arguments) => {
                let argument =
                    Ty::Array(Arc::new(Ty::reference(Ty::array())), Arc::new(arguments[0].clone()));
                Some(FnSig { params: vec![argument], ret: arguments[1].clone() })
            }
            Ty::Named(name @ ("JitTree" | "JitUpdate"), arguments) => {
                let arrays =
                    Ty::Array(Arc::new(Ty::reference(Ty::array())), Arc::new(arguments[1].clone()));
                let tree = match name {
                    "JitTree" => Ty::reference(arguments[0].clone()),
                    _ => arguments[0].clone(),
                };
                Some(FnSig { params: vec![tree, arrays], ret: arguments[2].clone() })
            }
            _ => None,
        }
    }
}

/// What is open is the length of an array, which a const generic would give.
fn open_length(ty: &Ty) -> bool {
    match ty {
        Ty::Array(_, length) => matches!(**length, Ty::Var(_)),
        Ty::Ref(_, to) => open_length(to),
        Ty::Named("Jit", arguments) => matches!(arguments[0], Ty::Var(_)),
        Ty::Named("JitTree" | "JitUpdate", arguments) => matches!(arguments[1], Ty::Var(_)),
        _ => false,
    }
}

fn is_operand(ty: &Ty) -> bool {
    match ty {
        Ty::Float(FloatKind::F64) | Ty::Int(IntKind::I32) => true,
        Ty::Ref(false, to) => to.is_named("Array"),
        other => other.is_named("Array"),
    }
}

/// `From` between numbers.
fn is_lossless(from: &Ty, to: &Ty) -> bool {
    match (from, to) {
        (from, to) if from == to => true,
        (Ty::Int(from), Ty::Int(to)) => {
            let pointer = |kind: IntKind| matches!(kind, IntKind::Isize | IntKind::Usize);
            let fits = to.holds(from.min()) && to.holds(from.max());
            let small = matches!(from, IntKind::U8)
                || (matches!(from, IntKind::I16) && *to == IntKind::Isize)
                || (matches!(from, IntKind::U16) && *to == IntKind::Usize);
            fits && !pointer(*from) && (!pointer(*to) || small)
        }
        (Ty::Int(from), Ty::Float(to)) => match to {
            FloatKind::F32 => from.bits() <= 16,
            FloatKind::F64 => from.bits() <= 32,
        },
        (Ty::Float(FloatKind::F32), Ty::Float(FloatKind::F64)) => true,
        (Ty::Bool, Ty::Int(_) | Ty::Float(_)) => true,
        (Ty::Char, Ty::Int(IntKind::U32 | IntKind::U64)) => true,
        _ => false,
    }
}

fn is_element(ty: &Ty) -> bool {
    matches!(
        ty,
        Ty::Bool | Ty::Float(_) | Ty::Int(IntKind::I32 | IntKind::I64 | IntKind::U8 | IntKind::U32)
    )
}

fn is_display(ty: &Ty) -> bool {
    match ty {
        Ty::Ref(_, to) => is_display(to),
        Ty::Named("Box", arguments) => is_display(&arguments[0]),
        Ty::Named(name, _) => !matches!(
            *name,
            "Vec"
                | "Option"
                | "Iter"
                | "Result"
                | "Range"
                | "RangeInclusive"
                | "RangeFrom"
                | "RangeTo"
                | "RangeToInclusive"
                | "RangeFull"
                | "Jit"
                | "JitTree"
                | "JitUpdate"
        ),
        Ty::Tuple(_) | Ty::Array(..) | Ty::Slice(_) | Ty::Struct(_) => false,
        Ty::Closure(_) | Ty::DynFn(_) | Ty::FnItem(..) | Ty::FnPtr(_) => false,
        _ => true,
    }
}

fn is_debug(ty: &Ty) -> bool {
    match ty {
        Ty::Struct(def) => def.derives.debug,
        Ty::Named("Iter", _) => true,
        Ty::Tuple(parts) | Ty::Named(_, parts) => parts.iter().all(is_debug),
        Ty::Array(element, _) | Ty::Slice(element) | Ty::Ref(_, element) => is_debug(element),
        Ty::Closure(_) | Ty::DynFn(_) | Ty::FnItem(..) => false,
        _ => true,
    }
}

/// `Default`, as Rust's library and derives have it.
fn has_default(ty: &Ty) -> bool {
    match ty {
        Ty::Bool | Ty::Char | Ty::Int(_) | Ty::Float(_) => true,
        Ty::Named("String" | "Vec" | "Option", _) => true,
        Ty::Named("Box", inner) => has_default(&inner[0]),
        Ty::Tuple(parts) => parts.len() <= 12 && parts.iter().all(has_default),
        Ty::Array(element, length) => {
            matches!(**length, Ty::Const(length) if length <= 32) && has_default(element)
        }
        Ty::Struct(def) => def.derives.default,
        _ => false,
    }
}

fn is_eq(ty: &Ty) -> bool {
    match ty {
        Ty::Float(_) => false,
        Ty::Struct(def) => def.derives.eq,
        Ty::Tuple(parts) | Ty::Named("Vec" | "Option" | "Box", parts) => parts.iter().all(is_eq),
        Ty::Array(element, _) | Ty::Slice(element) | Ty::Ref(_, element) => is_eq(element),
        other => super::operator::comparable(other, true),
    }
}
