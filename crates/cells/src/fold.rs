//! Constant expressions: arithmetic on literals and other constants.

use crate::arithmetic;
use crate::code::Num;
use crate::diagnostic::Diagnostic;
use crate::hir::{BinaryOp, Expr, Kind};
use crate::ty::{Infer, Ty, VarKind};
use crate::value::Value;

/// The value, when it is constant.
///
/// # Errors
/// E0080: the evaluation overflows or divides by zero.
pub fn fold(expr: &Expr, infer: &Infer) -> Result<Option<Value>, Box<Diagnostic>> {
    let num = |expr: &Expr| match infer.var_kind(&expr.ty) {
        Some(VarKind::Int) => Num::of(&Ty::i32()),
        Some(VarKind::Float) => Num::of(&Ty::f64()),
        _ => Num::of(&infer.resolve(&expr.ty)),
    };
    let fault = |message: String| Diagnostic::check("E0080", expr.span, message);
    Ok(match &expr.kind {
        Kind::Literal(value) => {
            if let (Value::Int(value), Num::Int(kind)) = (value, num(expr))
                && !kind.holds(*value)
            {
                return Err(Diagnostic::check(
                    "overflowing_literals",
                    expr.span,
                    format!("literal out of range for `{}`", kind.name()),
                ));
            }
            Some(value.clone())
        }
        Kind::Negate(inner) => match fold(inner, infer)? {
            Some(value) => Some(
                arithmetic::negate(num(expr), &value).map_err(|message| fault(message.into()))?,
            ),
            None => None,
        },
        Kind::Not(inner) => fold(inner, infer)?.map(|value| arithmetic::not(num(expr), &value)),
        Kind::Binary(op, left, right) => match (fold(left, infer)?, fold(right, infer)?) {
            (Some(a), Some(b)) => Some(
                arithmetic::binary(*op, num(left), &a, &b)
                    .map_err(|message| fault(message.into()))?,
            ),
            _ => None,
        },
        Kind::And(left, right) | Kind::Or(left, right) => {
            let op = match &expr.kind {
                Kind::And(..) => BinaryOp::BitAnd,
                _ => BinaryOp::BitOr,
            };
            match (fold(left, infer)?, fold(right, infer)?) {
                (Some(a), Some(b)) => Some(
                    arithmetic::binary(op, Num::Bool, &a, &b)
                        .map_err(|message| fault(message.into()))?,
                ),
                _ => None,
            }
        }
        Kind::Cast(inner) => {
            fold(inner, infer)?.map(|value| arithmetic::cast(num(inner), num(expr), &value))
        }
        Kind::Tuple(parts) if parts.is_empty() => Some(Value::Unit),
        Kind::Tuple(parts) => fold_all(parts, infer)?.map(Value::Tuple),
        Kind::List(parts) => fold_all(parts, infer)?.map(Value::List),
        Kind::Struct { def, fields, base: None } => {
            let mut parts = vec![Value::Gone; fields.len()];
            for (at, field) in fields {
                match fold(field, infer)? {
                    Some(value) => parts[*at as usize] = value,
                    None => return Ok(None),
                }
            }
            Some(Value::Struct(def.names.clone(), parts.into()))
        }
        Kind::Repeat(value, count) => match (fold(value, infer)?, fold(count, infer)?) {
            (Some(value), Some(Value::Int(count))) if (0..1 << 20).contains(&count) => {
                Some(Value::List(vec![value; count as usize]))
            }
            _ => None,
        },
        _ => None,
    })
}

fn fold_all(parts: &[Expr], infer: &Infer) -> Result<Option<Vec<Value>>, Box<Diagnostic>> {
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        match fold(part, infer)? {
            Some(value) => out.push(value),
            None => return Ok(None),
        }
    }
    Ok(Some(out))
}
