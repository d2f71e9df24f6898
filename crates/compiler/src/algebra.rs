//! Algebra on one scalar instruction, exact in every dtype: what it gives is bit for bit what
//! running it would give (NaN stays NaN).

use vramlab_ir::{DType, Inst, Literal, Reg, ScalarOp};

/// What is known of an operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known<'a> {
    Literal(Literal),
    Inst(&'a Inst),
    Nothing,
}

/// An operand that the instruction is equal to, or the instruction in its simplest form.
pub(crate) fn simplify<'a>(inst: Inst, known: &dyn Fn(Reg) -> Known<'a>) -> Result<Reg, Inst> {
    match &inst {
        Inst::Convert { from, to, arg } => {
            if from == to {
                return Ok(*arg);
            }
            match known(*arg) {
                Known::Literal(value) => return Err(Inst::Const(value.convert(*to))),
                Known::Inst(Inst::Convert { from: first, to: wide, arg: inner })
                    if first == to && holds(*wide, *first) =>
                {
                    return Ok(*inner);
                }
                _ => {}
            }
        }
        Inst::Op { op, dtype, args } => {
            let literal = |at: usize| match known(args[at]) {
                Known::Literal(value) => Some(value),
                _ => None,
            };
            if let Some(reg) = neutral(*op, *dtype, args, &literal, known) {
                return Ok(reg);
            }
            if let Some(inst) = cheaper(*op, *dtype, args, &literal) {
                return Err(inst);
            }
            let values: Option<Vec<Literal>> = (0..args.len()).map(literal).collect();
            if let Some(value) = values.and_then(|values| fold(*op, *dtype, &values)) {
                return Err(Inst::Const(value));
            }
        }
        _ => {}
    }
    Err(inst)
}

/// Whether every value of `narrow` survives the way to `wide` and back.
fn holds(wide: DType, narrow: DType) -> bool {
    use DType::*;
    match narrow {
        Bool => true,
        U8 => matches!(wide, U32 | I32 | I64 | F32 | F64),
        F16 | BF16 => matches!(wide, F32 | F64),
        U32 | I32 => matches!(wide, I64 | F64),
        F32 => wide == F64,
        I64 | F64 => false,
    }
}

/// The same value by a cheaper instruction: `x²` as `x·x`.
fn cheaper(
    op: ScalarOp,
    dtype: DType,
    args: &[Reg],
    literal: &dyn Fn(usize) -> Option<Literal>,
) -> Option<Inst> {
    if !matches!(dtype, DType::F32 | DType::F64) || literal(0).is_some() {
        return None;
    }
    let square = op == ScalarOp::Pow && literal(1)?.as_f64() == 2.0;
    square.then(|| Inst::Op { op: ScalarOp::Mul, dtype, args: vec![args[0], args[0]] })
}

/// `x·1`, `x+(−0)`, `x−0`, `x/1`, `select(const, …)`, `−(−x)` and their like.
fn neutral<'a>(
    op: ScalarOp,
    dtype: DType,
    args: &[Reg],
    literal: &dyn Fn(usize) -> Option<Literal>,
    known: &dyn Fn(Reg) -> Known<'a>,
) -> Option<Reg> {
    use ScalarOp::*;
    let is = |at: usize, value: Literal| literal(at) == Some(value);
    let one = Literal::from_i64(dtype, 1);
    let zero = Literal::from_i64(dtype, 0);
    // x + 0 turns −0 into 0, x + (−0) changes nothing.
    let nothing = if dtype.is_float() { Literal::from_f64(dtype, -0.0) } else { zero };
    match op {
        Mul if is(1, one) => Some(args[0]),
        Mul if is(0, one) => Some(args[1]),
        Add if is(1, nothing) => Some(args[0]),
        Add if is(0, nothing) => Some(args[1]),
        Sub if is(1, zero) => Some(args[0]),
        Div if is(1, one) => Some(args[0]),
        Or | Xor | ShiftLeft | ShiftRight if is(1, zero) => Some(args[0]),
        Select if args[1] == args[2] => Some(args[1]),
        Select => literal(0).map(|c| if c.bits() != 0 { args[1] } else { args[2] }),
        Max | Min | And | Or if args[0] == args[1] => Some(args[0]),
        Neg | Not => match known(args[0]) {
            Known::Inst(Inst::Op { op: inner, args: inner_args, .. }) if *inner == op => {
                Some(inner_args[0])
            }
            _ => None,
        },
        _ => None,
    }
}

/// The value of an op on literals, for the ops whose result IEEE 754 or integer arithmetic fixes.
pub(crate) fn fold(op: ScalarOp, dtype: DType, args: &[Literal]) -> Option<Literal> {
    use ScalarOp::*;
    if op == Select {
        return Some(if args[0].bits() != 0 { args[1] } else { args[2] });
    }
    match dtype {
        DType::F32 | DType::F64 => fold_float(op, dtype, args),
        DType::I32 | DType::I64 => fold_integer(op, dtype, args),
        DType::Bool => {
            let truth = |at: usize| args[at].bits() != 0;
            let value = match op {
                Not => !truth(0),
                And => truth(0) && truth(1),
                Or => truth(0) || truth(1),
                Xor | Ne => truth(0) != truth(1),
                Eq => truth(0) == truth(1),
                _ => return None,
            };
            Some(Literal::from_i64(DType::Bool, value as i64))
        }
        _ => None,
    }
}

fn fold_float(op: ScalarOp, dtype: DType, args: &[Literal]) -> Option<Literal> {
    use ScalarOp::*;
    let x = args[0].as_f64();
    let y = args.get(1).map_or(0.0, |a| a.as_f64());
    // A sum, product, quotient or root of two f32 is the f64 one rounded: f64 has more than twice
    // the digits.
    let value = match op {
        Neg => -x,
        Abs => x.abs(),
        Floor => x.floor(),
        Ceil => x.ceil(),
        Sqrt => x.sqrt(),
        Add => x + y,
        Sub => x - y,
        Mul => x * y,
        Div => x / y,
        _ => {
            let truth = match op {
                Eq => x == y,
                Ne => x != y,
                Lt => x < y,
                Le => x <= y,
                Gt => x > y,
                Ge => x >= y,
                IsFinite => x.is_finite(),
                _ => return None,
            };
            return Some(Literal::from_i64(DType::Bool, truth as i64));
        }
    };
    (!value.is_nan()).then(|| Literal::from_f64(dtype, value))
}

fn fold_integer(op: ScalarOp, dtype: DType, args: &[Literal]) -> Option<Literal> {
    use ScalarOp::*;
    let x = args[0].as_i64();
    let y = args.get(1).map_or(0, |a| a.as_i64());
    let value = match op {
        Neg => x.wrapping_neg(),
        Add => x.wrapping_add(y),
        Sub => x.wrapping_sub(y),
        Mul => x.wrapping_mul(y),
        Max => x.max(y),
        Min => x.min(y),
        _ => {
            let truth = match op {
                Eq => x == y,
                Ne => x != y,
                Lt => x < y,
                Le => x <= y,
                Gt => x > y,
                Ge => x >= y,
                _ => return None,
            };
            return Some(Literal::from_i64(DType::Bool, truth as i64));
        }
    };
    Some(Literal::from_i64(dtype, value))
}
