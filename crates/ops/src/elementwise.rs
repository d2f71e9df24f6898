//! Ops that compute each element by itself: one scalar program per op, written once for all types.

use crate::domain::Domain;
use crate::entry::{Entry, Meaning, Operands};
use vramlab_ir::{DType, Literal, Reg, ScalarOp, ScalarProgram};

/// Writes a scalar program over operands of one type. The halves are widened to `f32` on the way in
/// and rounded once on the way out.
pub struct Body {
    program: ScalarProgram,
    operand: DType,
    compute: DType,
}

impl Body {
    pub fn build(operand: DType, write: fn(&mut Body) -> Reg) -> ScalarProgram {
        let half = matches!(operand, DType::F16 | DType::BF16);
        let compute = if half { DType::F32 } else { operand };
        let mut body = Body { program: ScalarProgram::default(), operand, compute };
        let result = write(&mut body);
        let narrowed = match body.program.dtype(result) {
            dtype if dtype == compute => body.program.convert(compute, operand, result),
            _ => result,
        };
        body.program.result = narrowed.0;
        body.program
    }

    /// Operand `k` at the current element.
    pub fn input(&mut self, k: u32) -> Reg {
        let reg = self.program.input(k, self.operand);
        self.program.convert(self.operand, self.compute, reg)
    }

    pub fn constant(&mut self, value: f64) -> Reg {
        self.program.literal(Literal::from_f64(self.compute, value))
    }

    pub fn op(&mut self, op: ScalarOp, args: &[Reg]) -> Reg {
        self.program.op(op, self.compute, args)
    }

    /// `op` of all operands in order.
    pub fn apply(&mut self, op: ScalarOp) -> Reg {
        let args: Vec<Reg> = (0..op.arity() as u32).map(|k| self.input(k)).collect();
        self.op(op, &args)
    }
}

/// Makes the statics of a family, their list, and the exported macro that hands the family's names
/// and words to a caller's macro. `$d` is a dollar sign for the inner macro.
macro_rules! family {
    ($d:tt $list:ident $with:ident $words:literal operands $operands:literal;
     $($name:ident: $entry:ident {
        doc: $doc:literal, example: $example:literal, domain: $domain:ident, lower: $lower:expr
     })*) => {
        $(
            #[doc = $doc]
            pub static $entry: Entry = Entry {
                name: stringify!($name),
                doc: $doc,
                example: $example,
                operands: Operands::Exactly($operands),
                params: &[],
                meaning: Meaning::Elementwise { domain: Domain::$domain, program: $lower },
            };
        )*

        #[doc = $words]
        pub static $list: &[&Entry] = &[$(&$entry),*];

        #[doc = $words]
        ///
        /// Calls `callback! { [extra] name ENTRY "doc" "example"; … }`; see the crate's words.
        #[macro_export]
        macro_rules! $with {
            ($d callback:ident $d(, $d($d extra:tt)*)?) => {
                $d callback! { [$d($d($d extra)*)?] $($name $entry $doc $example;)* }
            };
        }
    };
}

family! { $ UNARY with_unary "Elementwise ops of one operand." operands 1;
    neg: NEG { doc: "Negation, elementwise; unsigned integers wrap.",
        example: "neg(linspace(-1.0, 1.0, 5))",
        domain: Number, lower: |b| b.apply(ScalarOp::Neg) }
    abs: ABS { doc: "Absolute value, elementwise.",
        example: "abs(linspace(-1.0, 1.0, 5))",
        domain: Number, lower: |b| b.apply(ScalarOp::Abs) }
    sign: SIGN { doc: "-1, 0 or 1 by the sign of each element; NaN stays NaN.",
        example: "sign(linspace(-1.0, 1.0, 5))",
        domain: Number, lower: |b| b.apply(ScalarOp::Sign) }
    floor: FLOOR { doc: "The largest whole number that is not above each element.",
        example: "floor(linspace(-1.5, 1.5, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Floor) }
    ceil: CEIL { doc: "The smallest whole number that is not below each element.",
        example: "ceil(linspace(-1.5, 1.5, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Ceil) }
    round: ROUND { doc: "The nearest whole number, ties to even as in NumPy.",
        example: "round(linspace(-1.5, 1.5, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Round) }
    sqrt: SQRT { doc: "Square root, elementwise; NaN below zero.",
        example: "sqrt(linspace(0.0, 4.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Sqrt) }
    rsqrt: RSQRT { doc: "One over the square root, elementwise.",
        example: "rsqrt(linspace(1.0, 4.0, 4))",
        domain: Float, lower: |b| b.apply(ScalarOp::Rsqrt) }
    exp: EXP { doc: "e to the power of each element.",
        example: "exp(linspace(-1.0, 1.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Exp) }
    expm1: EXPM1 { doc: "exp(x) - 1, exact near zero.",
        example: "expm1(linspace(-0.001, 0.001, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Expm1) }
    log: LOG { doc: "Natural logarithm, elementwise; NaN below zero.",
        example: "log(linspace(1.0, 3.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Log) }
    log1p: LOG1P { doc: "log(1 + x), exact near zero.",
        example: "log1p(linspace(-0.001, 0.001, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Log1p) }
    sin: SIN { doc: "Sine of each element, in radians.",
        example: "sin(linspace(0.0, 3.14159, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Sin) }
    cos: COS { doc: "Cosine of each element, in radians.",
        example: "cos(linspace(0.0, 3.14159, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Cos) }
    tan: TAN { doc: "Tangent of each element, in radians.",
        example: "tan(linspace(-1.0, 1.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Tan) }
    tanh: TANH { doc: "Hyperbolic tangent, elementwise.",
        example: "tanh(linspace(-1.0, 1.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Tanh) }
    erf: ERF { doc: "The error function, elementwise.",
        example: "erf(linspace(-1.0, 1.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Erf) }
    square: SQUARE { doc: "x · x, elementwise.",
        example: "square(linspace(-1.0, 1.0, 5))",
        domain: Number, lower: |b| { let x = b.input(0); b.op(ScalarOp::Mul, &[x, x]) } }
    reciprocal: RECIPROCAL { doc: "1 / x, elementwise.",
        example: "reciprocal(linspace(1.0, 2.0, 5))",
        domain: Float,
        lower: |b| { let x = b.input(0); let one = b.constant(1.0); b.op(ScalarOp::Div, &[one, x]) } }
    logical_not: LOGICAL_NOT { doc: "True where the element is false.",
        example: "logical_not(linspace(-1.0, 1.0, 5).gt(0.0))",
        domain: Bool, lower: |b| b.apply(ScalarOp::Not) }
    bitwise_not: BITWISE_NOT { doc: "Every bit flipped; logical not on bool.",
        example: "bitwise_not(full_as(I32, [2], 6.0))",
        domain: Bits, lower: |b| b.apply(ScalarOp::Not) }
    isfinite: ISFINITE { doc: "True where the element is neither infinite nor NaN.",
        example: "isfinite(reciprocal(linspace(-1.0, 1.0, 5)))",
        domain: Float, lower: |b| b.apply(ScalarOp::IsFinite) }
    isnan: ISNAN { doc: "True where the element is NaN.",
        example: "isnan(sqrt(linspace(-1.0, 1.0, 5)))",
        domain: Float, lower: |b| { let x = b.input(0); b.op(ScalarOp::Ne, &[x, x]) } }
    isinf: ISINF { doc: "True where the element is infinite.",
        example: "isinf(reciprocal(linspace(-1.0, 1.0, 5)))",
        domain: Float,
        lower: |b| {
            let x = b.apply(ScalarOp::Abs);
            let infinity = b.constant(f64::INFINITY);
            b.op(ScalarOp::Eq, &[x, infinity])
        } }
}

family! { $ ARITHMETIC with_arithmetic "Arithmetic of two operands, which Rust has operators for." operands 2;
    add: ADD { doc: "a + b, elementwise; shapes broadcast.",
        example: "add(ones([3]), full([3], 2.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Add) }
    sub: SUB { doc: "a - b, elementwise; shapes broadcast.",
        example: "sub(ones([3]), full([3], 2.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Sub) }
    mul: MUL { doc: "a · b, elementwise; shapes broadcast.",
        example: "mul(full([3], 3.0), full([3], 2.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Mul) }
    div: DIV { doc: "a / b, elementwise; integers truncate, and by zero give -1 (all ones), as in XLA.",
        example: "div(ones([3]), full([3], 2.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Div) }
    rem: REM { doc: "What is left of a / b, with the sign of a, as Rust's %.",
        example: "rem(full([3], 7.0), full([3], 4.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Rem) }
}

family! { $ BINARY with_binary "Elementwise functions of two operands." operands 2;
    pow: POW { doc: "a to the power of b, elementwise.",
        example: "pow(full([3], 2.0), linspace(0.0, 2.0, 3))",
        domain: Number, lower: |b| b.apply(ScalarOp::Pow) }
    atan2: ATAN2 { doc: "The angle of the point (x = b, y = a), in radians.",
        example: "atan2(ones([3]), linspace(-1.0, 1.0, 3))",
        domain: Float, lower: |b| b.apply(ScalarOp::Atan2) }
    maximum: MAXIMUM { doc: "The larger of a and b, elementwise; NaN wins.",
        example: "maximum(linspace(-1.0, 1.0, 5), zeros([5]))",
        domain: Number, lower: |b| b.apply(ScalarOp::Max) }
    minimum: MINIMUM { doc: "The smaller of a and b, elementwise; NaN wins.",
        example: "minimum(linspace(-1.0, 1.0, 5), zeros([5]))",
        domain: Number, lower: |b| b.apply(ScalarOp::Min) }
}

family! { $ BITWISE with_bitwise "Logic and bits of two operands." operands 2;
    logical_and: LOGICAL_AND { doc: "True where both are true.",
        example: "logical_and(linspace(-1.0, 1.0, 5).gt(-0.5), linspace(-1.0, 1.0, 5).lt(0.5))",
        domain: Bool, lower: |b| b.apply(ScalarOp::And) }
    logical_or: LOGICAL_OR { doc: "True where at least one is true.",
        example: "logical_or(linspace(-1.0, 1.0, 5).lt(-0.5), linspace(-1.0, 1.0, 5).gt(0.5))",
        domain: Bool, lower: |b| b.apply(ScalarOp::Or) }
    logical_xor: LOGICAL_XOR { doc: "True where exactly one is true.",
        example: "logical_xor(linspace(-1.0, 1.0, 5).gt(-0.5), linspace(-1.0, 1.0, 5).lt(0.5))",
        domain: Bool, lower: |b| b.apply(ScalarOp::Xor) }
    bitwise_and: BITWISE_AND { doc: "Bits that both have; logical and on bool.",
        example: "bitwise_and(full_as(I32, [2], 6.0), full_as(I32, [2], 3.0))",
        domain: Bits, lower: |b| b.apply(ScalarOp::And) }
    bitwise_or: BITWISE_OR { doc: "Bits that at least one has; logical or on bool.",
        example: "bitwise_or(full_as(I32, [2], 6.0), full_as(I32, [2], 3.0))",
        domain: Bits, lower: |b| b.apply(ScalarOp::Or) }
    bitwise_xor: BITWISE_XOR { doc: "Bits that exactly one has; logical exclusive or on bool.",
        example: "bitwise_xor(full_as(I32, [2], 6.0), full_as(I32, [2], 3.0))",
        domain: Bits, lower: |b| b.apply(ScalarOp::Xor) }
    shift_left: SHIFT_LEFT { doc: "a shifted up by b bits; 0 once b reaches the width.",
        example: "shift_left(full_as(U32, [2], 3.0), full_as(U32, [2], 2.0))",
        domain: Integer, lower: |b| b.apply(ScalarOp::ShiftLeft) }
    shift_right: SHIFT_RIGHT { doc: "a shifted down by b bits, zeros from above; 0 once b reaches the width.",
        example: "shift_right(full_as(U32, [2], 12.0), full_as(U32, [2], 2.0))",
        domain: Integer, lower: |b| b.apply(ScalarOp::ShiftRight) }
}

family! { $ COMPARISON with_comparison "Comparisons of two operands; the result is bool." operands 2;
    eq: EQ { doc: "True where a equals b; NaN equals nothing.",
        example: "eq(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Eq) }
    ne: NE { doc: "True where a differs from b.",
        example: "ne(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Ne) }
    lt: LT { doc: "True where a is below b.",
        example: "lt(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Lt) }
    le: LE { doc: "True where a is not above b.",
        example: "le(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Le) }
    gt: GT { doc: "True where a is above b.",
        example: "gt(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Gt) }
    ge: GE { doc: "True where a is not below b.",
        example: "ge(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Ge) }
}
