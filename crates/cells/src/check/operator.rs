//! Operators: which types they take, and what comes out.

use super::{Checked, Checker, Pending};
use crate::diagnostic::Diagnostic;
use crate::hir::{BinaryOp, Expr, Kind};
use crate::ir::Span;
use crate::place::{between, span_of};
use crate::ty::{IntKind, Ty, VarKind};

impl Checker<'_> {
    /// A chain of binary operators is walked along its left spine, not down it: chains are long.
    pub(super) fn binary_chain(&mut self, expr: &syn::Expr) -> Checked<Expr> {
        let mut spine = Vec::new();
        let mut first = expr;
        while let syn::Expr::Binary(binary) = first {
            spine.push(binary);
            first = &binary.left;
        }
        let lazy = |op: &syn::BinOp| matches!(op, syn::BinOp::And(_) | syn::BinOp::Or(_));
        let innermost = spine.last().expect("the caller saw a binary expression");
        let mut left = if lazy(&innermost.op) {
            self.expr_of(first, &Ty::Bool)?
        } else {
            self.expr(first, None)?
        };
        for binary in spine.into_iter().rev() {
            left = self.binary_step(left, binary)?;
        }
        Ok(left)
    }

    fn binary_step(&mut self, left: Expr, binary: &syn::ExprBinary) -> Checked<Expr> {
        if matches!(binary.op, syn::BinOp::And(_) | syn::BinOp::Or(_)) {
            let left = self.coerce(left, &Ty::Bool)?;
            let before = self.diverges;
            let right = self.expr_of(&binary.right, &Ty::Bool)?;
            self.diverges = before;
            let span = between(left.span, right.span);
            let kind = match binary.op {
                syn::BinOp::And(_) => Kind::And(Box::new(left), Box::new(right)),
                _ => Kind::Or(Box::new(left), Box::new(right)),
            };
            return Ok(Expr { kind, ty: Ty::Bool, span });
        }
        let op_span = span_of(syn::spanned::Spanned::span(&binary.op));
        let Some((op, compound)) = operator(&binary.op) else {
            return Err(Diagnostic::unsupported(op_span, "this operator"));
        };
        let mut right = self.expr(&binary.right, None)?;
        let span = between(left.span, right.span);
        if compound {
            return self.compound(op, left, right, op_span, span);
        }
        // `String + &String`: the right side is a coercion site.
        if op == BinaryOp::Add && self.infer.shallow(&left.ty).is_named("String") {
            right = self.coerce(right, &Ty::reference(Ty::Str))?;
            return Ok(Expr {
                kind: Kind::Binary(op, Box::new(left), Box::new(right)),
                ty: Ty::string(),
                span,
            });
        }
        let spans = (left.span, right.span);
        let ty = match self.binary_type(op, &left.ty, &right.ty, op_span, spans)? {
            Some(ty) => ty,
            None => {
                let out = if op.is_comparison() { Ty::Bool } else { self.infer.fresh() };
                self.pending.push(Pending::Binary {
                    op,
                    left: left.ty.clone(),
                    right: right.ty.clone(),
                    out: out.clone(),
                    span: op_span,
                    spans,
                });
                out
            }
        };
        Ok(Expr { kind: Kind::Binary(op, Box::new(left), Box::new(right)), ty, span })
    }

    /// `a += b`.
    fn compound(
        &mut self,
        op: BinaryOp,
        left: Expr,
        right: Expr,
        op_span: Span,
        span: Span,
    ) -> Checked<Expr> {
        let ty = self.infer.shallow(&left.ty);
        let right_ty = self.infer.shallow(&right.ty);
        let unit = Ty::unit();
        if ty.is_named("String") && op == BinaryOp::Add {
            self.assignable(&left, op_span, "E0067")?;
            let right = self.coerce(right, &Ty::reference(Ty::Str))?;
            let kind = Kind::Compound(op, Box::new(left), Box::new(right));
            return Ok(Expr { kind, ty: unit, span });
        }
        if ty.is_named("Array") && op.is_arithmetic() {
            self.assignable(&left, op_span, "E0067")?;
            let spans = (left.span, right.span);
            let array = Ty::array();
            if self.binary_type(op, &array, &right_ty, op_span, spans)?.is_none() {
                let (left, out) = (array.clone(), array);
                self.pending.push(Pending::Binary {
                    op,
                    left,
                    right: right_ty,
                    out,
                    span: op_span,
                    spans,
                });
            }
            let kind = Kind::Compound(op, Box::new(left), Box::new(right));
            return Ok(Expr { kind, ty: unit, span });
        }
        let plain = ty.is_scalar() || self.infer.var_kind(&ty).is_some();
        if !plain || ty == Ty::Char {
            let text = self.infer.text(&ty);
            let symbol = op.symbol();
            let fault = Diagnostic::check(
                "E0368",
                between(left.span, right.span),
                format!(
                    "binary assignment operation `{symbol}=` cannot be applied to type `{text}`"
                ),
            )
            .label(format!("cannot use `{symbol}=` on type `{text}`"));
            return Err(match &ty {
                Ty::Ref(true, _) => {
                    fault.help("`+=` can be used on the value behind it: write `*` before it")
                }
                _ => fault,
            });
        }
        if right_ty.peeled().is_named("Array") {
            return Err(Diagnostic::check(
                "E0277",
                op_span,
                format!(
                    "cannot {}-assign `{}` to `{}`",
                    verb(op).0,
                    self.infer.text(&right_ty),
                    self.infer.text(&ty)
                ),
            ));
        }
        let spans = (left.span, right.span);
        match self.binary_type(op, &ty, &right_ty, op_span, spans)? {
            Some(out) => self.equate(&ty, &out, span)?,
            None => {
                self.pending.push(Pending::Binary {
                    op,
                    left: ty.clone(),
                    right: right_ty,
                    out: ty,
                    span: op_span,
                    spans,
                });
            }
        }
        self.assignable(&left, op_span, "E0067")?;
        let kind = Kind::Compound(op, Box::new(left), Box::new(right));
        Ok(Expr { kind, ty: unit, span })
    }

    /// The operator's result; `None` while an operand is open.
    pub(super) fn binary_type(
        &mut self,
        op: BinaryOp,
        left: &Ty,
        right: &Ty,
        span: Span,
        spans: (Span, Span),
    ) -> Checked<Option<Ty>> {
        let left = self.infer.resolve(left);
        let right = self.infer.resolve(right);
        if left.is_never() || right.is_never() {
            let out = if op.is_comparison() { Ty::Bool } else { left };
            return Ok(Some(out));
        }
        if op.is_comparison() {
            return self.comparison(op, &left, &right, span, spans);
        }
        let (bare_left, bare_right) = (once(&left), once(&right));
        let open = |infer: &crate::ty::Infer, ty: &Ty| infer.var_kind(ty) == Some(VarKind::General);
        let is_array = |ty: &Ty| ty.is_named("Array");
        if is_array(bare_left) || is_array(bare_right) {
            let (other, other_bare) =
                if is_array(bare_left) { (&right, bare_right) } else { (&left, bare_left) };
            if open(&self.infer, other) {
                return Ok(None);
            }
            return self.array_operator(op, &left, &right, other, other_bare, span).map(Some);
        }
        if open(&self.infer, bare_left) {
            return Ok(None);
        }
        if op.is_shift() {
            return self.shift(op, &left, &right, span);
        }
        if matches!((bare_left, bare_right), (Ty::Bool, Ty::Bool))
            && matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor)
        {
            return Ok(Some(Ty::Bool));
        }
        let number = |infer: &crate::ty::Infer, ty: &Ty| {
            ty.is_numeric() || matches!(infer.var_kind(ty), Some(VarKind::Int | VarKind::Float))
        };
        let integral = |infer: &crate::ty::Infer, ty: &Ty| {
            matches!(ty, Ty::Int(_)) || infer.var_kind(ty) == Some(VarKind::Int)
        };
        let fits = number(&self.infer, bare_left)
            && (op.is_arithmetic() || integral(&self.infer, bare_left));
        if !fits {
            return Err(self.no_operator(op, &left, &right, span, spans));
        }
        if open(&self.infer, bare_right) {
            return Ok(None);
        }
        let (a, b) = (bare_left.clone(), bare_right.clone());
        if number(&self.infer, &b) && self.infer.unify(&a, &b).is_ok() {
            return Ok(Some(a));
        }
        Err(self.operand_mismatch(op, &left, &right, span, spans))
    }

    fn array_operator(
        &mut self,
        op: BinaryOp,
        left: &Ty,
        right: &Ty,
        other: &Ty,
        other_bare: &Ty,
        span: Span,
    ) -> Checked<Ty> {
        let left_is_array = once(left).is_named("Array");
        if !op.is_arithmetic() {
            let text = self.infer.text(left);
            return Err(Diagnostic::check(
                "E0369",
                span,
                format!(
                    "no implementation for `{text} {} {}`",
                    op.symbol(),
                    self.infer.text(right)
                ),
            ));
        }
        let fits = match other {
            Ty::Float(crate::ty::FloatKind::F64) | Ty::Int(IntKind::I32) => true,
            Ty::Var(_) => self.infer.bind_default(other),
            _ => other_bare.is_named("Array"),
        };
        if fits {
            return Ok(Ty::array());
        }
        if !left_is_array && !left.is_numeric() && !matches!(left, Ty::Ref(..)) {
            let text = self.infer.text(left);
            return Err(Diagnostic::check(
                "E0369",
                span,
                format!(
                    "cannot {} `{}` {} `{text}`",
                    verb(op).0,
                    self.infer.text(right),
                    verb(op).1
                ),
            ));
        }
        Err(self.cannot(op, left, right, span))
    }

    fn shift(&mut self, op: BinaryOp, left: &Ty, right: &Ty, span: Span) -> Checked<Option<Ty>> {
        let (a, b) = (once(left).clone(), once(right).clone());
        let integral = |infer: &crate::ty::Infer, ty: &Ty| {
            matches!(ty, Ty::Int(_)) || infer.var_kind(ty) == Some(VarKind::Int)
        };
        if self.infer.var_kind(&b) == Some(VarKind::General) {
            return Ok(None);
        }
        if integral(&self.infer, &a) && integral(&self.infer, &b) {
            return Ok(Some(a));
        }
        if integral(&self.infer, &a) {
            return Err(self.cannot(op, left, right, span));
        }
        Err(Diagnostic::check(
            "E0369",
            span,
            format!(
                "no implementation for `{} {} {}`",
                self.infer.text(left),
                op.symbol(),
                self.infer.text(right)
            ),
        ))
    }

    fn comparison(
        &mut self,
        op: BinaryOp,
        left: &Ty,
        right: &Ty,
        span: Span,
        spans: (Span, Span),
    ) -> Checked<Option<Ty>> {
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        if self.infer.var_kind(left) == Some(VarKind::General) {
            return Ok(None);
        }
        if !comparable(left, equality) {
            let text = self.infer.text(left);
            let fault = Diagnostic::check(
                "E0369",
                span,
                format!("binary operation `{}` cannot be applied to type `{text}`", op.symbol()),
            )
            .also(spans.0, text.clone());
            return Err(if left.peeled().is_named("Array") {
                fault.help(format!("comparisons of arrays are methods: `x.{}(y)`", op.method()))
            } else {
                fault
            });
        }
        if equality && textual(left, right) {
            return Ok(Some(Ty::Bool));
        }
        if equality && let (Some(a), Some(b)) = (listed(left), listed(right)) {
            let (a, b) = (a.clone(), b.clone());
            if self.infer.unify(&a, &b).is_ok() {
                return Ok(Some(Ty::Bool));
            }
        }
        if self.infer.unify(left, right).is_ok() {
            return Ok(Some(Ty::Bool));
        }
        let scalars =
            |infer: &crate::ty::Infer, ty: &Ty| ty.is_scalar() || infer.var_kind(ty).is_some();
        let both_plain = scalars(&self.infer, left) && scalars(&self.infer, right);
        let literal_mix = self.infer.var_kind(left).is_some() && both_plain;
        if literal_mix
            || matches!((left, right), (Ty::Ref(..), _) | (_, Ty::Ref(..))) && !both_plain
        {
            let (a, b) = (self.infer.text(left), self.infer.text(right));
            return Err(Diagnostic::check(
                "E0277",
                span,
                format!("can't compare `{a}` with `{b}`"),
            )
            .label(format!("no implementation for `{a} {} {b}`", op.symbol())));
        }
        Err(self.mismatch(left, right, spans.1))
    }

    fn no_operator(
        &self,
        op: BinaryOp,
        left: &Ty,
        right: &Ty,
        span: Span,
        spans: (Span, Span),
    ) -> Box<Diagnostic> {
        let (a, b) = (self.infer.text(left), self.infer.text(right));
        let bitwise = matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor);
        if bitwise && matches!(once(left), Ty::Bool) {
            return self.cannot(op, left, right, span);
        }
        if once(left).is_numeric() || self.infer.var_kind(left).is_some() {
            return Diagnostic::check(
                "E0369",
                span,
                format!("no implementation for `{a} {} {b}`", op.symbol()),
            );
        }
        let (verb, joint) = verb(op);
        let message = match op {
            BinaryOp::Add => format!("cannot add `{b}` to `{a}`"),
            BinaryOp::Sub => format!("cannot subtract `{b}` from `{a}`"),
            _ if joint.is_empty() => {
                format!("no implementation for `{a} {} {b}`", op.symbol())
            }
            _ => format!("cannot {verb} `{a}` {joint} `{b}`"),
        };
        let fault = Diagnostic::check("E0369", span, message).also(spans.0, a.clone());
        match (left, op) {
            (Ty::Ref(_, to), BinaryOp::Add) if **to == Ty::Str => fault
                .note("string concatenation requires an owned `String` on the left")
                .help("create an owned `String` from a string reference: `.to_owned()`"),
            _ => fault,
        }
    }

    fn operand_mismatch(
        &self,
        op: BinaryOp,
        left: &Ty,
        right: &Ty,
        span: Span,
        spans: (Span, Span),
    ) -> Box<Diagnostic> {
        let integral =
            |ty: &Ty| matches!(ty, Ty::Int(_)) || self.infer.var_kind(ty) == Some(VarKind::Int);
        let float =
            |ty: &Ty| matches!(ty, Ty::Float(_)) || self.infer.var_kind(ty) == Some(VarKind::Float);
        let same_class = (integral(left) && integral(right)) || (float(left) && float(right));
        if same_class {
            return self.mismatch(left, right, spans.1);
        }
        self.cannot(op, left, right, span)
    }

    fn cannot(&self, op: BinaryOp, left: &Ty, right: &Ty, span: Span) -> Box<Diagnostic> {
        let (a, b) = (self.infer.text(left), self.infer.text(right));
        let word = |text: &str| match text {
            "{integer}" => "an integer".to_string(),
            "{float}" => "a float".to_string(),
            other => format!("`{other}`"),
        };
        let message = match op {
            BinaryOp::Add => format!("cannot add {} to {}", word(&b), word(&a)),
            BinaryOp::Sub => format!("cannot subtract {} from {}", word(&b), word(&a)),
            BinaryOp::Mul => format!("cannot multiply {} by {}", word(&a), word(&b)),
            BinaryOp::Div => format!("cannot divide {} by {}", word(&a), word(&b)),
            BinaryOp::Rem => format!(
                "cannot calculate and assign the remainder of {} divided by {}",
                word(&a),
                word(&b)
            )
            .replace("calculate and assign", "calculate"),
            _ => format!("no implementation for `{a} {} {b}`", op.symbol()),
        };
        let fault = Diagnostic::check("E0277", span, message)
            .label(format!("no implementation for `{a} {} {b}`", op.symbol()));
        let has_array = left.peeled().is_named("Array") || right.peeled().is_named("Array");
        let number = if left.peeled().is_named("Array") { right } else { left };
        if has_array && number.peeled().is_numeric() {
            return fault.help("arrays take `f64` and `i32` beside them: write `as f64`");
        }
        fault
    }
}

/// Behind one reference.
fn once(ty: &Ty) -> &Ty {
    match ty {
        Ty::Ref(_, to) => to,
        other => other,
    }
}

fn verb(op: BinaryOp) -> (&'static str, &'static str) {
    match op {
        BinaryOp::Add => ("add", "to"),
        BinaryOp::Sub => ("subtract", "from"),
        BinaryOp::Mul => ("multiply", "by"),
        BinaryOp::Div => ("divide", "by"),
        BinaryOp::Rem => ("calculate the remainder of", "divided by"),
        _ => ("apply", ""),
    }
}

/// `&str` beside `String` in the combinations that `PartialEq` has.
fn textual(left: &Ty, right: &Ty) -> bool {
    let is_str = |ty: &Ty| matches!(ty, Ty::Str);
    let is_ref_str = |ty: &Ty| matches!(ty, Ty::Ref(_, to) if is_str(to));
    let is_string = |ty: &Ty| ty.is_named("String");
    let text = |ty: &Ty| is_str(ty) || is_ref_str(ty) || is_string(ty);
    (is_string(left) && text(right))
        || (is_string(right) && text(left))
        || (is_ref_str(left) && is_ref_str(right))
        || (is_str(left) && is_str(right))
}

/// The element type of lists that compare with each other.
fn listed(ty: &Ty) -> Option<&Ty> {
    match once(ty) {
        Ty::Named("Vec", arguments) => Some(&arguments[0]),
        Ty::Array(element, _) | Ty::Slice(element) => Some(element),
        _ => None,
    }
}

pub(super) fn comparable(ty: &Ty, equality: bool) -> bool {
    match ty {
        Ty::Struct(def) if equality => def.derives.partial_eq,
        Ty::Struct(def) => def.derives.partial_ord,
        Ty::Tuple(parts) => parts.iter().all(|part| comparable(part, equality)),
        Ty::Array(element, _) | Ty::Slice(element) => comparable(element, equality),
        Ty::Ref(_, to) => comparable(to, equality),
        Ty::Named("Vec" | "Option" | "Box", arguments) => {
            arguments.iter().all(|part| comparable(part, equality))
        }
        Ty::Named("String", _) => true,
        Ty::Named("DType", _) => true,
        Ty::Named("Range" | "RangeInclusive", _) => equality,
        Ty::Named(..) | Ty::Closure(_) | Ty::DynFn(_) | Ty::FnItem(..) => false,
        _ => true,
    }
}

/// The operator, and whether it assigns.
fn operator(op: &syn::BinOp) -> Option<(BinaryOp, bool)> {
    Some(match op {
        syn::BinOp::Add(_) => (BinaryOp::Add, false),
        syn::BinOp::Sub(_) => (BinaryOp::Sub, false),
        syn::BinOp::Mul(_) => (BinaryOp::Mul, false),
        syn::BinOp::Div(_) => (BinaryOp::Div, false),
        syn::BinOp::Rem(_) => (BinaryOp::Rem, false),
        syn::BinOp::BitAnd(_) => (BinaryOp::BitAnd, false),
        syn::BinOp::BitOr(_) => (BinaryOp::BitOr, false),
        syn::BinOp::BitXor(_) => (BinaryOp::BitXor, false),
        syn::BinOp::Shl(_) => (BinaryOp::Shl, false),
        syn::BinOp::Shr(_) => (BinaryOp::Shr, false),
        syn::BinOp::Eq(_) => (BinaryOp::Eq, false),
        syn::BinOp::Ne(_) => (BinaryOp::Ne, false),
        syn::BinOp::Lt(_) => (BinaryOp::Lt, false),
        syn::BinOp::Le(_) => (BinaryOp::Le, false),
        syn::BinOp::Gt(_) => (BinaryOp::Gt, false),
        syn::BinOp::Ge(_) => (BinaryOp::Ge, false),
        syn::BinOp::AddAssign(_) => (BinaryOp::Add, true),
        syn::BinOp::SubAssign(_) => (BinaryOp::Sub, true),
        syn::BinOp::MulAssign(_) => (BinaryOp::Mul, true),
        syn::BinOp::DivAssign(_) => (BinaryOp::Div, true),
        syn::BinOp::RemAssign(_) => (BinaryOp::Rem, true),
        syn::BinOp::BitAndAssign(_) => (BinaryOp::BitAnd, true),
        syn::BinOp::BitOrAssign(_) => (BinaryOp::BitOr, true),
        syn::BinOp::BitXorAssign(_) => (BinaryOp::BitXor, true),
        syn::BinOp::ShlAssign(_) => (BinaryOp::Shl, true),
        syn::BinOp::ShrAssign(_) => (BinaryOp::Shr, true),
        _ => return None,
    })
}
