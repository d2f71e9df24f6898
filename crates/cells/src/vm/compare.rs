//! Operators and comparisons of values.

use super::Vm;
use crate::arithmetic;
use crate::code::{Code, Num, Operand, Test};
use crate::hir::BinaryOp;
use crate::interrupt::{Fallible, internal, panic};
use crate::value::Value;
use std::sync::Arc;
use vramlab_array::surface;
use vramlab_array::surface::Operator;

impl Vm<'_> {
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        num: Num,
        left: &Operand,
        right: &Operand,
        base: usize,
    ) -> Fallible<Value> {
        if num == Num::Other {
            return self.general_binary(op, left, right, base);
        }
        let a = match left {
            Operand::Const(value) => value,
            Operand::Copy(place) | Operand::Move(place) => self.read(place, base)?,
        };
        let b = match right {
            Operand::Const(value) => value,
            Operand::Copy(place) | Operand::Move(place) => self.read(place, base)?,
        };
        arithmetic::binary(op, num, a, b).map_err(panic)
    }

    pub(super) fn general_binary(
        &mut self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
        base: usize,
    ) -> Fallible<Value> {
        let left = self.take(left, base)?;
        let right = self.take(right, base)?;
        if op == BinaryOp::Add {
            let (Value::Text(mut left), Value::Text(right)) = (left, self.peel(&right)?) else {
                return Err(internal("a text"));
            };
            Arc::make_mut(&mut left).push_str(right);
            return Ok(Value::Text(left));
        }
        let holds = match op {
            BinaryOp::Eq => self.compare(&left, &right)? == Some(std::cmp::Ordering::Equal),
            BinaryOp::Ne => self.compare(&left, &right)? != Some(std::cmp::Ordering::Equal),
            BinaryOp::Lt => self.compare(&left, &right)?.is_some_and(|order| order.is_lt()),
            BinaryOp::Le => self.compare(&left, &right)?.is_some_and(|order| order.is_le()),
            BinaryOp::Gt => self.compare(&left, &right)?.is_some_and(|order| order.is_gt()),
            _ => self.compare(&left, &right)?.is_some_and(|order| order.is_ge()),
        };
        Ok(Value::Bool(holds))
    }

    /// Rust's `partial_cmp`, through references.
    pub fn compare(&self, a: &Value, b: &Value) -> Fallible<Option<std::cmp::Ordering>> {
        use std::cmp::Ordering;
        let (a, b) = (self.peel(a)?, self.peel(b)?);
        Ok(match (a, b) {
            (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Char(a), Value::Char(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Unit, Value::Unit) => Some(Ordering::Equal),
            (Value::DType(a), Value::DType(b)) => Some(a.cmp(b)),
            (Value::Option(a), Value::Option(b)) => match (a, b) {
                (None, None) => Some(Ordering::Equal),
                (None, Some(_)) => Some(Ordering::Less),
                (Some(_), None) => Some(Ordering::Greater),
                (Some(a), Some(b)) => self.compare(a, b)?,
            },
            (Value::Range(a), Value::Range(b)) => {
                let same = (a.start, a.end, a.inclusive) == (b.start, b.end, b.inclusive);
                Some(if same { Ordering::Equal } else { Ordering::Less })
            }
            (Value::Tuple(a), Value::Tuple(b)) => self.compare_lists(a, b)?,
            (Value::Struct(_, a), Value::Struct(_, b)) => self.compare_lists(a, b)?,
            (Value::List(_) | Value::Slice(_), Value::List(_) | Value::Slice(_)) => {
                self.compare_lists(self.list(a)?, self.list(b)?)?
            }
            _ => return Err(internal("a comparison")),
        })
    }

    pub(super) fn compare_lists(
        &self,
        a: &[Value],
        b: &[Value],
    ) -> Fallible<Option<std::cmp::Ordering>> {
        for (a, b) in a.iter().zip(b) {
            match self.compare(a, b)? {
                Some(std::cmp::Ordering::Equal) => {}
                other => return Ok(other),
            }
        }
        Ok(Some(a.len().cmp(&b.len())))
    }

    pub(super) fn test(&self, value: &Value, test: &Test) -> Fallible<bool> {
        use std::cmp::Ordering;
        Ok(match test {
            Test::Equals(want) => self.compare(value, want)? == Some(Ordering::Equal),
            Test::Between { low, high, inclusive } => {
                let above = match low {
                    Some(low) => self.compare(value, low)?.is_some_and(Ordering::is_ge),
                    None => true,
                };
                let below = match high {
                    Some(high) => self.compare(value, high)?.is_some_and(|order| {
                        if *inclusive { order.is_le() } else { order.is_lt() }
                    }),
                    None => true,
                };
                above && below
            }
            Test::Some | Test::Ok => matches!(value, Value::Option(Some(_))),
            Test::Err => matches!(value, Value::Tuple(_)),
            Test::None => matches!(value, Value::Option(None)),
            Test::Length { count, at_least } => {
                let length = self.list(value)?.len();
                if *at_least { length >= *count } else { length == *count }
            }
        })
    }

    pub(super) fn array_binary(
        &mut self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
        base: usize,
        code: &Code,
        at: usize,
    ) -> Fallible<Value> {
        let operator = match op {
            BinaryOp::Add => Operator::Add,
            BinaryOp::Sub => Operator::Sub,
            BinaryOp::Mul => Operator::Mul,
            BinaryOp::Div => Operator::Div,
            _ => Operator::Rem,
        };
        let args = [left.clone(), right.clone()];
        let origins = self.origins(&args, base, code, at);
        let values = self.take_all(&args, base)?;
        let rescued = self.rescue(&values, &origins);
        let mut values = values.into_iter();
        let left = self.to_dyn(values.next().unwrap_or_default())?;
        let right = self.to_dyn(values.next().unwrap_or_default())?;
        let result = self.lend(|| surface::operator(operator, &left, &right));
        Ok(Value::from_dyn(self.settle(result, rescued)?))
    }
}

pub fn truth(value: &Value) -> Fallible<bool> {
    match value {
        Value::Bool(value) => Ok(*value),
        _ => Err(internal("a condition")),
    }
}
