//! Ops that compute each element by itself: one scalar program per op, written once for all types.

use crate::batch::Batch;
use crate::domain::Domain;
use crate::entry::{Entry, Meaning, Operands};
use crate::rule::Derivative::{Rule, Zero};
use crate::rule::Term;
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
        doc: $doc:literal, example: $example:literal, domain: $domain:ident, lower: $lower:expr,
        gradient: $gradient:expr
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
                gradient: $gradient,
                batch: Batch::Elementwise,
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
        domain: Number, lower: |b| b.apply(ScalarOp::Neg),
        gradient: Rule(|r| r.give(0, || -r.ct)) }
    abs: ABS { doc: "Absolute value, elementwise.",
        example: "abs(linspace(-1.0, 1.0, 5))",
        domain: Number, lower: |b| b.apply(ScalarOp::Abs),
        gradient: Rule(|r| r.give(0, || r.ct * r.x(0).apply(&SIGN))) }
    sign: SIGN { doc: "-1, 0 or 1 by the sign of each element; NaN stays NaN.",
        example: "sign(linspace(-1.0, 1.0, 5))",
        domain: Number, lower: |b| b.apply(ScalarOp::Sign),
        gradient: Zero("it is constant between its steps") }
    floor: FLOOR { doc: "The largest whole number that is not above each element.",
        example: "floor(linspace(-1.5, 1.5, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Floor),
        gradient: Zero("it is constant between its steps") }
    ceil: CEIL { doc: "The smallest whole number that is not below each element.",
        example: "ceil(linspace(-1.5, 1.5, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Ceil),
        gradient: Zero("it is constant between its steps") }
    round: ROUND { doc: "The nearest whole number, ties to even as in NumPy.",
        example: "round(linspace(-1.5, 1.5, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Round),
        gradient: Zero("it is constant between its steps") }
    sqrt: SQRT { doc: "Square root, elementwise; NaN below zero.",
        example: "sqrt(linspace(0.0, 4.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Sqrt),
        gradient: Rule(|r| r.give(0, || r.ct * (0.5 / r.out))) }
    rsqrt: RSQRT { doc: "One over the square root, elementwise.",
        example: "rsqrt(linspace(1.0, 4.0, 4))",
        domain: Float, lower: |b| b.apply(ScalarOp::Rsqrt),
        gradient: Rule(|r| r.give(0, || r.ct * (-0.5 * (r.out / r.x(0))))) }
    exp: EXP { doc: "e to the power of each element.",
        example: "exp(linspace(-1.0, 1.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Exp),
        gradient: Rule(|r| r.give(0, || r.ct * r.out)) }
    expm1: EXPM1 { doc: "exp(x) - 1, exact near zero.",
        example: "expm1(linspace(-0.001, 0.001, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Expm1),
        gradient: Rule(|r| r.give(0, || r.ct * (r.out + 1.0))) }
    log: LOG { doc: "Natural logarithm, elementwise; NaN below zero.",
        example: "log(linspace(1.0, 3.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Log),
        gradient: Rule(|r| r.give(0, || r.ct / r.x(0))) }
    log1p: LOG1P { doc: "log(1 + x), exact near zero.",
        example: "log1p(linspace(-0.001, 0.001, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Log1p),
        gradient: Rule(|r| r.give(0, || r.ct / (r.x(0) + 1.0))) }
    sin: SIN { doc: "Sine of each element, in radians.",
        example: "sin(linspace(0.0, 3.14159, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Sin),
        gradient: Rule(|r| r.give(0, || r.ct * r.x(0).apply(&COS))) }
    cos: COS { doc: "Cosine of each element, in radians.",
        example: "cos(linspace(0.0, 3.14159, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Cos),
        gradient: Rule(|r| r.give(0, || -(r.ct * r.x(0).apply(&SIN)))) }
    tan: TAN { doc: "Tangent of each element, in radians.",
        example: "tan(linspace(-1.0, 1.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Tan),
        gradient: Rule(|r| r.give(0, || r.ct * (1.0 + r.out * r.out))) }
    tanh: TANH { doc: "Hyperbolic tangent, elementwise.",
        example: "tanh(linspace(-1.0, 1.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Tanh),
        gradient: Rule(|r| r.give(0, || r.ct * ((1.0 - r.out) * (1.0 + r.out)))) }
    erf: ERF { doc: "The error function, elementwise.",
        example: "erf(linspace(-1.0, 1.0, 5))",
        domain: Float, lower: |b| b.apply(ScalarOp::Erf),
        gradient: Rule(|r| r.give(0, || {
            let slope = (-r.x(0).apply(&SQUARE)).apply(&EXP);
            r.ct * (slope * std::f64::consts::FRAC_2_SQRT_PI)
        })) }
    square: SQUARE { doc: "x · x, elementwise.",
        example: "square(linspace(-1.0, 1.0, 5))",
        domain: Number, lower: |b| { let x = b.input(0); b.op(ScalarOp::Mul, &[x, x]) },
        gradient: Rule(|r| r.give(0, || r.ct * (r.x(0) * 2.0))) }
    reciprocal: RECIPROCAL { doc: "1 / x, elementwise.",
        example: "reciprocal(linspace(1.0, 2.0, 5))",
        domain: Float,
        lower: |b| { let x = b.input(0); let one = b.constant(1.0); b.op(ScalarOp::Div, &[one, x]) },
        gradient: Rule(|r| r.give(0, || -(r.ct * (r.out * r.out)))) }
    logical_not: LOGICAL_NOT { doc: "True where the element is false.",
        example: "logical_not(linspace(-1.0, 1.0, 5).gt(0.0))",
        domain: Bool, lower: |b| b.apply(ScalarOp::Not),
        gradient: Zero("a bool has no slope") }
    bitwise_not: BITWISE_NOT { doc: "Every bit flipped; logical not on bool.",
        example: "bitwise_not(full_as(I32, [2], 6.0))",
        domain: Bits, lower: |b| b.apply(ScalarOp::Not),
        gradient: Zero("bits have no slope") }
    isfinite: ISFINITE { doc: "True where the element is neither infinite nor NaN.",
        example: "isfinite(reciprocal(linspace(-1.0, 1.0, 5)))",
        domain: Float, lower: |b| b.apply(ScalarOp::IsFinite),
        gradient: Zero("a bool has no slope") }
    isnan: ISNAN { doc: "True where the element is NaN.",
        example: "isnan(sqrt(linspace(-1.0, 1.0, 5)))",
        domain: Float, lower: |b| { let x = b.input(0); b.op(ScalarOp::Ne, &[x, x]) },
        gradient: Zero("a bool has no slope") }
    isinf: ISINF { doc: "True where the element is infinite.",
        example: "isinf(reciprocal(linspace(-1.0, 1.0, 5)))",
        domain: Float,
        lower: |b| {
            let x = b.apply(ScalarOp::Abs);
            let infinity = b.constant(f64::INFINITY);
            b.op(ScalarOp::Eq, &[x, infinity])
        },
        gradient: Zero("a bool has no slope") }
}

family! { $ ARITHMETIC with_arithmetic "Arithmetic of two operands, which Rust has operators for." operands 2;
    add: ADD { doc: "a + b, elementwise; shapes broadcast.",
        example: "add(ones([3]), full([3], 2.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Add),
        gradient: Rule(|r| {
            r.give(0, || r.ct);
            r.give(1, || r.ct);
        }) }
    sub: SUB { doc: "a - b, elementwise; shapes broadcast.",
        example: "sub(ones([3]), full([3], 2.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Sub),
        gradient: Rule(|r| {
            r.give(0, || r.ct);
            r.give(1, || -r.ct);
        }) }
    mul: MUL { doc: "a · b, elementwise; shapes broadcast.",
        example: "mul(full([3], 3.0), full([3], 2.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Mul),
        gradient: Rule(|r| {
            r.give(0, || r.ct * r.x(1));
            r.give(1, || r.ct * r.x(0));
        }) }
    div: DIV { doc: "a / b, elementwise; integers truncate, and by zero give -1 (all ones), as in XLA.",
        example: "div(ones([3]), full([3], 2.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Div),
        gradient: Rule(|r| {
            r.give(0, || r.ct / r.x(1));
            r.give(1, || -(r.ct * (r.out / r.x(1))));
        }) }
    rem: REM { doc: "What is left of a / b, with the sign of a, as Rust's %.",
        example: "rem(full([3], 7.0), full([3], 4.0))",
        domain: Number, lower: |b| b.apply(ScalarOp::Rem),
        gradient: Rule(|r| {
            r.give(0, || r.ct);
            r.give(1, || {
                let ratio = r.x(0) / r.x(1);
                -(r.ct * (ratio.apply(&SIGN) * ratio.apply(&ABS).apply(&FLOOR)))
            });
        }) }
}

/// The cotangent of operand `k` where it wins over the other; a tie is shared evenly, as in JAX.
fn share<'r>(r: &crate::rule::Rule<'r>, wins: &'static Entry, k: usize, other: usize) -> Term<'r> {
    let (own, other) = (r.x(k), r.x(other));
    let tie = own.with(&EQ, other).select(r.ct * 0.5, r.ct.like(0.0));
    own.with(wins, other).select(r.ct, tie)
}

family! { $ BINARY with_binary "Elementwise functions of two operands." operands 2;
    pow: POW { doc: "a to the power of b, elementwise.",
        example: "pow(full([3], 2.0), linspace(0.0, 2.0, 3))",
        domain: Number, lower: |b| b.apply(ScalarOp::Pow),
        gradient: Rule(|r| {
            let (a, b) = (r.x(0), r.x(1));
            // 0 to the power of -1 and the logarithm of 0 are not asked for where the factor beside
            // them is 0.
            r.give(0, || {
                let zero = b.with(&EQ, b.like(0.0));
                let less = zero.select(b.like(1.0), b - 1.0);
                r.ct * zero.select(b.like(0.0), b * a.with(&POW, less))
            });
            r.give(1, || {
                let zero = a.with(&EQ, a.like(0.0));
                r.ct * (zero.select(a.like(1.0), a).apply(&LOG) * r.out)
            });
        }) }
    atan2: ATAN2 { doc: "The angle of the point (x = b, y = a), in radians.",
        example: "atan2(ones([3]), linspace(-1.0, 1.0, 3))",
        domain: Float, lower: |b| b.apply(ScalarOp::Atan2),
        gradient: Rule(|r| {
            let (y, x) = (r.x(0), r.x(1));
            r.give(0, || r.ct * (x / (x * x + y * y)));
            r.give(1, || -(r.ct * (y / (x * x + y * y))));
        }) }
    maximum: MAXIMUM { doc: "The larger of a and b, elementwise; NaN wins.",
        example: "maximum(linspace(-1.0, 1.0, 5), zeros([5]))",
        domain: Number, lower: |b| b.apply(ScalarOp::Max),
        gradient: Rule(|r| {
            let half = |k: usize, other: usize| move || share(r, &GT, k, other);
            r.give(0, half(0, 1));
            r.give(1, half(1, 0));
        }) }
    minimum: MINIMUM { doc: "The smaller of a and b, elementwise; NaN wins.",
        example: "minimum(linspace(-1.0, 1.0, 5), zeros([5]))",
        domain: Number, lower: |b| b.apply(ScalarOp::Min),
        gradient: Rule(|r| {
            let half = |k: usize, other: usize| move || share(r, &LT, k, other);
            r.give(0, half(0, 1));
            r.give(1, half(1, 0));
        }) }
}

family! { $ BITWISE with_bitwise "Logic and bits of two operands." operands 2;
    logical_and: LOGICAL_AND { doc: "True where both are true.",
        example: "logical_and(linspace(-1.0, 1.0, 5).gt(-0.5), linspace(-1.0, 1.0, 5).lt(0.5))",
        domain: Bool, lower: |b| b.apply(ScalarOp::And),
        gradient: Zero("a bool has no slope") }
    logical_or: LOGICAL_OR { doc: "True where at least one is true.",
        example: "logical_or(linspace(-1.0, 1.0, 5).lt(-0.5), linspace(-1.0, 1.0, 5).gt(0.5))",
        domain: Bool, lower: |b| b.apply(ScalarOp::Or),
        gradient: Zero("a bool has no slope") }
    logical_xor: LOGICAL_XOR { doc: "True where exactly one is true.",
        example: "logical_xor(linspace(-1.0, 1.0, 5).gt(-0.5), linspace(-1.0, 1.0, 5).lt(0.5))",
        domain: Bool, lower: |b| b.apply(ScalarOp::Xor),
        gradient: Zero("a bool has no slope") }
    bitwise_and: BITWISE_AND { doc: "Bits that both have; logical and on bool.",
        example: "bitwise_and(full_as(I32, [2], 6.0), full_as(I32, [2], 3.0))",
        domain: Bits, lower: |b| b.apply(ScalarOp::And),
        gradient: Zero("bits have no slope") }
    bitwise_or: BITWISE_OR { doc: "Bits that at least one has; logical or on bool.",
        example: "bitwise_or(full_as(I32, [2], 6.0), full_as(I32, [2], 3.0))",
        domain: Bits, lower: |b| b.apply(ScalarOp::Or),
        gradient: Zero("bits have no slope") }
    bitwise_xor: BITWISE_XOR { doc: "Bits that exactly one has; logical exclusive or on bool.",
        example: "bitwise_xor(full_as(I32, [2], 6.0), full_as(I32, [2], 3.0))",
        domain: Bits, lower: |b| b.apply(ScalarOp::Xor),
        gradient: Zero("bits have no slope") }
    shift_left: SHIFT_LEFT { doc: "a shifted up by b bits; 0 once b reaches the width.",
        example: "shift_left(full_as(U32, [2], 3.0), full_as(U32, [2], 2.0))",
        domain: Integer, lower: |b| b.apply(ScalarOp::ShiftLeft),
        gradient: Zero("bits have no slope") }
    shift_right: SHIFT_RIGHT { doc: "a shifted down by b bits, zeros from above; 0 once b reaches the width.",
        example: "shift_right(full_as(U32, [2], 12.0), full_as(U32, [2], 2.0))",
        domain: Integer, lower: |b| b.apply(ScalarOp::ShiftRight),
        gradient: Zero("bits have no slope") }
}

family! { $ COMPARISON with_comparison "Comparisons of two operands; the result is bool." operands 2;
    eq: EQ { doc: "True where a equals b; NaN equals nothing.",
        example: "eq(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Eq),
        gradient: Zero("a bool has no slope") }
    ne: NE { doc: "True where a differs from b.",
        example: "ne(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Ne),
        gradient: Zero("a bool has no slope") }
    lt: LT { doc: "True where a is below b.",
        example: "lt(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Lt),
        gradient: Zero("a bool has no slope") }
    le: LE { doc: "True where a is not above b.",
        example: "le(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Le),
        gradient: Zero("a bool has no slope") }
    gt: GT { doc: "True where a is above b.",
        example: "gt(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Gt),
        gradient: Zero("a bool has no slope") }
    ge: GE { doc: "True where a is not below b.",
        example: "ge(linspace(0.0, 2.0, 3), ones([3]))",
        domain: Any, lower: |b| b.apply(ScalarOp::Ge),
        gradient: Zero("a bool has no slope") }
}
