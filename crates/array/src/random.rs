//! Random arrays: counter-based, so that the seed and the number of draws decide every value.

use crate::ambient::{current, lock};
use crate::array::Array;
use crate::eager::{apply, program};
use crate::elementwise::{binary, convert, select, unary};
use crate::operand::{Input, Number, Operand};
use crate::shape_arguments::shape;
use vramlab_ir::{DType, Fault, FaultKind, Literal, Param, Params, Shape};
use vramlab_ops::{ADD, LOG, LT, MUL, NEG, REM, SHIFT_RIGHT, SQRT, SUB};

/// What the next draw depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    seed: u64,
    draws: u64,
}

/// Starts the sequence of random numbers again from `value`.
pub(crate) fn set_seed(value: u64) -> Result<(), Fault> {
    let context = current()?;
    *lock(&context.state.random) = Stream { seed: value, draws: 0 };
    Ok(())
}

/// Runs `trial`; afterwards the stream of random numbers stands where it stood.
pub fn keeping_draws<R>(trial: impl FnOnce() -> R) -> R {
    let Ok(context) = current() else { return trial() };
    let before = lock(&context.state.random).clone();
    let result = trial();
    *lock(&context.state.random) = before;
    result
}

/// The key of one draw: two words, mixed so that neither neighbouring seeds nor neighbouring draws
/// give keys that differ in a few bits only.
pub(crate) fn next_key() -> Result<[Literal; 2], Fault> {
    let context = current()?;
    let mut stream = lock(&context.state.random);
    let draw = stream.draws;
    stream.draws += 1;
    let key = mixed(mixed(stream.seed) ^ draw);
    Ok([key >> 32, key & 0xffff_ffff].map(|word| Literal::from_bits(DType::U32, word)))
}

/// The finaliser of SplitMix64: a bijection of 64 bits (Steele, Lea and Flood, 2014).
fn mixed(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Words of one draw; `body` makes the array of them. One kernel, and one program for every draw.
fn draw(
    name: &'static str,
    shape: Shape,
    scalars: &[Literal],
    body: impl FnOnce(Array, &[Array]) -> Result<Array, Fault>,
) -> Result<Array, Fault> {
    let params = Params::new().with("shape", Param::Shape(shape));
    let mut given = next_key()?.to_vec();
    given.extend_from_slice(scalars);
    program(name, params.clone(), &given, |given| {
        let key = [given[0].input(), given[1].input()];
        let dtypes = [DType::U32, DType::U32];
        let bits = apply(name, &vramlab_ops::RANDOM_BITS, params, &key, &dtypes)?;
        body(bits, &given[2..])
    })
}

/// The top 23 bits of each word, as `f32`.
fn top_bits(bits: &Array) -> Result<Array, Fault> {
    let kept = binary(&SHIFT_RIGHT, bits.input(), Input::Number(Number::Int(9)))?;
    convert(kept.input(), DType::F32)
}

/// Uniform on [0, 1): multiples of 2⁻²³.
pub(crate) fn uniform(extents: &[i64]) -> Result<Array, Fault> {
    draw("uniform", shape("uniform", extents)?, &[], |bits, _| {
        binary(&MUL, top_bits(&bits)?.input(), float(2f64.powi(-23)))
    })
}

/// Integers from `low` up to and without `high`, `i32`.
pub(crate) fn randint(extents: &[i64], low: i64, high: i64) -> Result<Array, Fault> {
    if high <= low {
        let message = format!("there is no integer from {low} up to {high}");
        return Err(Fault::new(FaultKind::Argument, "randint", message));
    }
    let span = Literal::from_i64(DType::U32, high - low);
    let low = Literal::from_i64(DType::I32, low);
    draw("randint", shape("randint", extents)?, &[span, low], |bits, given| {
        let rest = binary(&REM, bits.input(), given[0].input())?;
        let steps = convert(rest.input(), DType::I32)?;
        binary(&ADD, steps.input(), given[1].input())
    })
}

/// The standard normal distribution, by the inverse of its distribution function: √2 · erf⁻¹(u)
/// with u uniform on the odd multiples of 2⁻²³ inside (-1, 1), which `f32` holds exactly.
pub(crate) fn randn(extents: &[i64]) -> Result<Array, Fault> {
    draw("randn", shape("randn", extents)?, &[], |bits, _| {
        let top = top_bits(&bits)?;
        let scaled = binary(&MUL, top.input(), float(2f64.powi(-22)))?;
        let u = binary(&ADD, scaled.input(), float(2f64.powi(-23) - 1.0))?;
        let z = inverse_erf(&u)?;
        binary(&MUL, z.input(), float(std::f64::consts::SQRT_2))
    })
}

/// erf⁻¹ in single precision: M. Giles, "Approximating the erfinv function", 2010. Two polynomials
/// in w = -log(1 - u²), for the centre and for the tails.
fn inverse_erf(u: &Array) -> Result<Array, Fault> {
    const CENTRE: [f64; 9] = [
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ];
    const TAIL: [f64; 9] = [
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ];
    let below = binary(&SUB, float(1.0), u.input())?;
    let above = binary(&ADD, float(1.0), u.input())?;
    // (1 - u)(1 + u) keeps its digits near |u| = 1, where 1 - u² loses them.
    let gap = binary(&MUL, below.input(), above.input())?;
    let w = unary(&NEG, unary(&LOG, gap.input())?.input())?;
    let central = binary(&LT, w.input(), float(5.0))?;
    let near = polynomial(&CENTRE, &binary(&SUB, w.input(), float(2.5))?)?;
    let root = unary(&SQRT, w.input())?;
    let far = polynomial(&TAIL, &binary(&SUB, root.input(), float(3.0))?)?;
    let factor = select(central.input(), near.input(), far.input())?;
    binary(&MUL, factor.input(), u.input())
}

/// By Horner, highest power first.
fn polynomial(coefficients: &[f64], x: &Array) -> Result<Array, Fault> {
    let (first, rest) = coefficients.split_first().expect("a polynomial has a coefficient");
    let mut value = binary(&MUL, x.input(), float(*first))?;
    let (last, middle) = rest.split_last().expect("and it is not constant");
    for coefficient in middle {
        let sum = binary(&ADD, value.input(), float(*coefficient))?;
        value = binary(&MUL, sum.input(), x.input())?;
    }
    binary(&ADD, value.input(), float(*last))
}

fn float(value: f64) -> Input<'static> {
    Input::Number(Number::Float(value))
}
