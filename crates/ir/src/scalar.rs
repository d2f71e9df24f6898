//! The scalar language inside loops: straight-line SSA over typed registers.

use crate::dtype::{DType, Literal};

/// A register of a [`ScalarProgram`]: the index of the instruction that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// The closed arithmetic that loops are made of. Operands have equal dtypes unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarOp {
    // One operand.
    Neg,
    Abs,
    /// −1, 0 or 1 (NaN for NaN; keeps the sign of zero).
    Sign,
    Floor,
    Ceil,
    /// Half to even, as NumPy.
    Round,
    Sqrt,
    Rsqrt,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sin,
    Cos,
    Tan,
    Tanh,
    Erf,
    /// Logical not on bool, bitwise on integers.
    Not,
    /// bool result.
    IsFinite,
    // Two operands.
    Add,
    Sub,
    Mul,
    /// Floats: IEEE. Integers: truncated; by zero gives −1 (all ones), as XLA.
    Div,
    /// Sign of the dividend, as Rust's `%`. Integers by zero: the dividend, as XLA.
    Rem,
    /// Integers: by squaring, negative exponents give 0 (±1 for bases ±1).
    Pow,
    Atan2,
    /// Propagates NaN.
    Max,
    /// Propagates NaN.
    Min,
    And,
    Or,
    Xor,
    /// Integers; shifts of the width or more give 0.
    ShiftLeft,
    /// Logical shift; of the width or more gives 0.
    ShiftRight,
    /// Comparisons give bool; NaN compares unequal to all.
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    // Three operands.
    /// `select(bool, a, b)`.
    Select,
    /// `threefry2x32(key = (a, b), counter = (0, c))`, first word; all u32.
    Threefry,
}

impl ScalarOp {
    pub const fn arity(self) -> usize {
        use ScalarOp::*;
        match self {
            Neg | Abs | Sign | Floor | Ceil | Round | Sqrt | Rsqrt | Exp | Expm1 | Log | Log1p
            | Sin | Cos | Tan | Tanh | Erf | Not | IsFinite => 1,
            Select | Threefry => 3,
            _ => 2,
        }
    }

    /// The result's dtype when the operands that carry the value have `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        use ScalarOp::*;
        match self {
            Eq | Ne | Lt | Le | Gt | Ge | IsFinite => DType::Bool,
            _ => dtype,
        }
    }
}

/// One instruction; its register is its position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Inst {
    /// Operand `input` at the current element, in its own dtype.
    Input {
        input: u32,
        dtype: DType,
    },
    /// Operand `input` with the coordinate along its `axis` replaced by `index` (an i32 register),
    /// clamped to the axis. The other coordinates: operand axes before `axis` are the loop's first
    /// axes, operand axes after it are the loop's last axes (so `take` along one axis).
    Gather {
        input: u32,
        dtype: DType,
        axis: u32,
        index: Reg,
    },
    /// The current element's coordinate along `axis` of the loop, i32.
    Index {
        axis: u32,
    },
    /// The current element's row-major position, u32 (wrapping).
    Position,
    Const(Literal),
    /// `op(args)`; `dtype` is the operands' (for `Select`: of the two values).
    Op {
        op: ScalarOp,
        dtype: DType,
        args: Vec<Reg>,
    },
    /// `as` conversion: floats to integers truncate and saturate, NaN gives 0; to bool is `!= 0`.
    Convert {
        from: DType,
        to: DType,
        arg: Reg,
    },
}

/// Straight-line code with one result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ScalarProgram {
    pub insts: Vec<Inst>,
    /// The register that holds the result.
    pub result: u32,
}

impl ScalarProgram {
    pub fn push(&mut self, inst: Inst) -> Reg {
        self.insts.push(inst);
        self.result = self.insts.len() as u32 - 1;
        Reg(self.result)
    }

    pub fn input(&mut self, input: u32, dtype: DType) -> Reg {
        self.push(Inst::Input { input, dtype })
    }

    pub fn op(&mut self, op: ScalarOp, dtype: DType, args: &[Reg]) -> Reg {
        self.push(Inst::Op { op, dtype, args: args.to_vec() })
    }

    pub fn literal(&mut self, value: Literal) -> Reg {
        self.push(Inst::Const(value))
    }

    pub fn convert(&mut self, from: DType, to: DType, arg: Reg) -> Reg {
        if from == to { arg } else { self.push(Inst::Convert { from, to, arg }) }
    }

    pub fn constant(value: Literal) -> ScalarProgram {
        let mut program = ScalarProgram::default();
        program.literal(value);
        program
    }

    /// `op` applied to inputs 0..arity, all of `dtype`.
    pub fn apply(op: ScalarOp, dtype: DType) -> ScalarProgram {
        let mut program = ScalarProgram::default();
        let args: Vec<Reg> = (0..op.arity() as u32).map(|i| program.input(i, dtype)).collect();
        program.op(op, dtype, &args);
        program
    }

    /// The dtype of a register.
    pub fn dtype(&self, reg: Reg) -> DType {
        match &self.insts[reg.0 as usize] {
            Inst::Input { dtype, .. } | Inst::Gather { dtype, .. } => *dtype,
            Inst::Index { .. } => DType::I32,
            Inst::Position => DType::U32,
            Inst::Const(value) => value.dtype(),
            Inst::Op { op, dtype, .. } => op.result(*dtype),
            Inst::Convert { to, .. } => *to,
        }
    }
}
