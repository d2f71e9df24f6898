//! Arithmetic as a debug build has it: overflow is an error under rustc's words.

use crate::code::Num;
use crate::hir::BinaryOp;
use crate::ty::{FloatKind, IntKind};
use crate::value::Value;
use std::cmp::Ordering;

/// A binary operator on two scalars of one type (but for shifts).
///
/// # Errors
/// The text of the panic.
pub fn binary(op: BinaryOp, num: Num, left: &Value, right: &Value) -> Result<Value, &'static str> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => match num {
            Num::Int(kind) => integer(op, kind, *a, *b),
            _ => integer(op, IntKind::I128, *a, *b),
        },
        (Value::Float(a), Value::Float(b)) => {
            let kind = match num {
                Num::Float(kind) => kind,
                _ => FloatKind::F64,
            };
            Ok(float(op, kind, *a, *b))
        }
        (Value::Bool(a), Value::Bool(b)) => Ok(boolean(op, *a, *b)),
        (Value::Char(a), Value::Char(b)) => Ok(Value::Bool(ordered(op, a.cmp(b)))),
        _ => Err("the operands do not fit the operator"),
    }
}

fn ordered(op: BinaryOp, order: Ordering) -> bool {
    match op {
        BinaryOp::Eq => order.is_eq(),
        BinaryOp::Ne => order.is_ne(),
        BinaryOp::Lt => order.is_lt(),
        BinaryOp::Le => order.is_le(),
        BinaryOp::Gt => order.is_gt(),
        _ => order.is_ge(),
    }
}

fn integer(op: BinaryOp, kind: IntKind, a: i128, b: i128) -> Result<Value, &'static str> {
    let (result, overflow) = match op {
        BinaryOp::Add => (a.checked_add(b), "attempt to add with overflow"),
        BinaryOp::Sub => (a.checked_sub(b), "attempt to subtract with overflow"),
        BinaryOp::Mul => (a.checked_mul(b), "attempt to multiply with overflow"),
        BinaryOp::Div if b == 0 => return Err("attempt to divide by zero"),
        BinaryOp::Rem if b == 0 => {
            return Err("attempt to calculate the remainder with a divisor of zero");
        }
        BinaryOp::Div => (a.checked_div(b), "attempt to divide with overflow"),
        BinaryOp::Rem => {
            if b == -1 && a == kind.min() {
                return Err("attempt to calculate the remainder with overflow");
            }
            (a.checked_rem(b), "attempt to calculate the remainder with overflow")
        }
        BinaryOp::BitAnd => (Some(a & b), ""),
        BinaryOp::BitOr => (Some(a | b), ""),
        BinaryOp::BitXor => (Some(a ^ b), ""),
        BinaryOp::Shl | BinaryOp::Shr => {
            let left = op == BinaryOp::Shl;
            if b < 0 || b >= i128::from(kind.bits()) {
                return Err(if left {
                    "attempt to shift left with overflow"
                } else {
                    "attempt to shift right with overflow"
                });
            }
            let shifted = if left { kind.wrap(a.wrapping_shl(b as u32)) } else { a >> b };
            return Ok(Value::Int(shifted));
        }
        _ => return Ok(Value::Bool(ordered(op, a.cmp(&b)))),
    };
    match result {
        Some(value) if kind.holds(value) => Ok(Value::Int(value)),
        _ => Err(overflow),
    }
}

fn float(op: BinaryOp, kind: FloatKind, a: f64, b: f64) -> Value {
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Rem => a % b,
        BinaryOp::Eq => return Value::Bool(a == b),
        BinaryOp::Ne => return Value::Bool(a != b),
        BinaryOp::Lt => return Value::Bool(a < b),
        BinaryOp::Le => return Value::Bool(a <= b),
        BinaryOp::Gt => return Value::Bool(a > b),
        _ => return Value::Bool(a >= b),
    };
    Value::Float(kind.round(value))
}

fn boolean(op: BinaryOp, a: bool, b: bool) -> Value {
    Value::Bool(match op {
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        other => ordered(other, a.cmp(&b)),
    })
}

/// `-value`.
///
/// # Errors
/// The text of the panic.
pub fn negate(num: Num, value: &Value) -> Result<Value, &'static str> {
    match (value, num) {
        (Value::Int(value), Num::Int(kind)) if kind.holds(-value) => Ok(Value::Int(-value)),
        (Value::Int(_), _) => Err("attempt to negate with overflow"),
        (Value::Float(value), _) => Ok(Value::Float(-value)),
        _ => Err("the operand does not fit the operator"),
    }
}

pub fn not(num: Num, value: &Value) -> Value {
    match (value, num) {
        (Value::Bool(value), _) => Value::Bool(!value),
        (Value::Int(value), Num::Int(kind)) => Value::Int(kind.wrap(!value)),
        (other, _) => other.clone(),
    }
}

/// `value as to`.
pub fn cast(_from: Num, to: Num, value: &Value) -> Value {
    match (value, to) {
        (Value::Int(value), Num::Int(kind)) => Value::Int(kind.wrap(*value)),
        (Value::Int(value), Num::Float(FloatKind::F64)) => Value::Float(*value as f64),
        // One rounding, as rustc does it.
        (Value::Int(value), Num::Float(FloatKind::F32)) => Value::Float(f64::from(*value as f32)),
        (Value::Int(value), Num::Char) => Value::Char(*value as u8 as char),
        (Value::Float(value), Num::Float(kind)) => Value::Float(kind.round(*value)),
        (Value::Float(value), Num::Int(kind)) => Value::Int(saturate(*value, kind)),
        (Value::Bool(value), Num::Int(_)) => Value::Int(i128::from(*value)),
        (Value::Char(value), Num::Int(kind)) => Value::Int(kind.wrap(i128::from(*value as u32))),
        (other, _) => other.clone(),
    }
}

/// Truncates towards zero and stops at the ends; NaN is 0.
fn saturate(value: f64, kind: IntKind) -> i128 {
    (value as i128).clamp(kind.min(), kind.max())
}
