//! Methods of the integers and floats.

use super::{Row, free, integer, method, ordering};
use crate::code::Meta;
use crate::interrupt::{Fallible, internal, panic};
use crate::ty::{FloatKind, IntKind, Ty};
use crate::value::Value;
use crate::vm::Vm;
use std::cmp::Ordering;

const INT: &str = "int";
const FLOAT: &str = "float";

pub fn rows() -> Vec<Row> {
    let mut rows = integers();
    rows.extend(checked());
    rows.extend(floats());
    rows.extend(float_pairs());
    rows.extend(conversions());
    rows.extend(both());
    rows
}

fn kind(meta: &Meta) -> IntKind {
    match meta.args.first().map(Ty::peeled) {
        Some(Ty::Int(kind)) => *kind,
        _ => IntKind::I32,
    }
}

fn float_kind(meta: &Meta) -> FloatKind {
    match meta.args.first().map(Ty::peeled) {
        Some(Ty::Float(kind)) => *kind,
        _ => FloatKind::F64,
    }
}

fn float(vm: &Vm<'_>, value: &Value) -> Fallible<f64> {
    match vm.peel(value)? {
        Value::Float(value) => Ok(*value),
        _ => Err(internal("a float")),
    }
}

fn held(value: Option<i128>, kind: IntKind, words: &str) -> Fallible<Value> {
    match value {
        Some(value) if kind.holds(value) => Ok(Value::Int(value)),
        _ => Err(panic(words)),
    }
}

/// A row over one integer that cannot fail.
macro_rules! int {
    ($text:literal, |$value:ident, $kind:ident| $body:expr) => {
        method(INT, $text, |vm, args, meta| {
            let $value = integer(vm, &args[0])?;
            let $kind = kind(meta);
            let _ = $kind;
            Ok($body)
        })
    };
}

/// A row over two integers.
macro_rules! ints {
    ($text:literal, |$a:ident, $b:ident, $kind:ident| $body:expr) => {
        method(INT, $text, |vm, args, meta| {
            let $a = integer(vm, &args[0])?;
            let $b = integer(vm, &args[1])?;
            let $kind = kind(meta);
            let _ = $kind;
            $body
        })
    };
}

fn euclid_division(a: i128, b: i128) -> Option<i128> {
    a.checked_div_euclid(b)
}

fn power(base: i128, exponent: i128) -> Option<i128> {
    base.checked_pow(u32::try_from(exponent).ok()?)
}

fn integers() -> Vec<Row> {
    vec![
        ints!("fn pow(self, exponent: u32) -> Own", |a, b, kind| {
            held(power(a, b), kind, "attempt to multiply with overflow")
        }),
        method(INT, "fn abs(self) -> Own", |vm, args, meta| {
            held(
                integer(vm, &args[0])?.checked_abs(),
                kind(meta),
                "attempt to negate with overflow",
            )
        }),
        int!("fn signum(self) -> Own", |value, _kind| Value::Int(value.signum())),
        int!("fn is_positive(self) -> bool", |value, _kind| Value::Bool(value > 0)),
        int!("fn is_negative(self) -> bool", |value, _kind| Value::Bool(value < 0)),
        int!("fn count_ones(self) -> u32", |value, kind| Value::Int(
            bits(value, kind).count_ones().into()
        )),
        int!("fn count_zeros(self) -> u32", |value, kind| {
            Value::Int((kind.bits() - bits(value, kind).count_ones()).into())
        }),
        int!("fn leading_zeros(self) -> u32", |value, kind| {
            Value::Int((bits(value, kind).leading_zeros() - (128 - kind.bits())).into())
        }),
        int!("fn trailing_zeros(self) -> u32", |value, kind| {
            Value::Int(bits(value, kind).trailing_zeros().min(kind.bits()).into())
        }),
        int!("fn is_power_of_two(self) -> bool", |value, kind| {
            Value::Bool(bits(value, kind).is_power_of_two())
        }),
        method(INT, "fn next_power_of_two(self) -> Own", |vm, args, meta| {
            let value = integer(vm, &args[0])?.max(0) as u128;
            let next = value.checked_next_power_of_two().and_then(|next| i128::try_from(next).ok());
            held(next, kind(meta), "attempt to add with overflow")
        }),
        method(INT, "fn isqrt(self) -> Own", |vm, args, _| {
            let value = integer(vm, &args[0])?;
            if value < 0 {
                return Err(panic("argument of integer square root cannot be negative"));
            }
            Ok(Value::Int(value.isqrt()))
        }),
        method(INT, "fn ilog2(self) -> u32", |vm, args, _| {
            match integer(vm, &args[0])?.checked_ilog2() {
                Some(log) => Ok(Value::Int(log.into())),
                None => Err(panic("argument of integer logarithm must be positive")),
            }
        }),
        method(INT, "fn ilog10(self) -> u32", |vm, args, _| {
            match integer(vm, &args[0])?.checked_ilog10() {
                Some(log) => Ok(Value::Int(log.into())),
                None => Err(panic("argument of integer logarithm must be positive")),
            }
        }),
        ints!("fn rem_euclid(self, other: Own) -> Own", |a, b, kind| {
            if b == 0 {
                return Err(panic("attempt to calculate the remainder with a divisor of zero"));
            }
            held(a.checked_rem_euclid(b), kind, "attempt to calculate the remainder with overflow")
        }),
        ints!("fn div_euclid(self, other: Own) -> Own", |a, b, kind| {
            if b == 0 {
                return Err(panic("attempt to divide by zero"));
            }
            held(euclid_division(a, b), kind, "attempt to divide with overflow")
        }),
        ints!("fn div_ceil(self, other: Own) -> Own", |a, b, kind| {
            if b == 0 {
                return Err(panic("attempt to divide by zero"));
            }
            let up = a / b + i128::from(a % b != 0 && (a < 0) == (b < 0));
            held(Some(up), kind, "attempt to divide with overflow")
        }),
        ints!("fn next_multiple_of(self, other: Own) -> Own", |a, b, kind| {
            if b == 0 {
                return Err(panic("attempt to calculate the remainder with a divisor of zero"));
            }
            let rest = a.rem_euclid(b);
            let next = if rest == 0 { Some(a) } else { a.checked_add(b - rest) };
            held(next, kind, "attempt to add with overflow")
        }),
        ints!("fn abs_diff(self, other: Own) -> Own", |a, b, _kind| {
            Ok(Value::Int((a - b).abs()))
        }),
        ints!("fn min(self, other: Own) -> Own", |a, b, _kind| Ok(Value::Int(a.min(b)))),
        ints!("fn max(self, other: Own) -> Own", |a, b, _kind| Ok(Value::Int(a.max(b)))),
        method(INT, "fn rotate_left(self, by: u32) -> Own", |vm, args, meta| {
            let (value, by) = (integer(vm, &args[0])?, integer(vm, &args[1])?);
            Ok(Value::Int(rotated(value, by, kind(meta))))
        }),
        method(INT, "fn rotate_right(self, by: u32) -> Own", |vm, args, meta| {
            let (value, by) = (integer(vm, &args[0])?, integer(vm, &args[1])?);
            Ok(Value::Int(rotated(value, -by, kind(meta))))
        }),
        method(INT, "fn clamp(self, low: Own, high: Own) -> Own", clamp),
        free("&min", "", "fn min<T>(a: T, b: T) -> T", |vm, args, _| {
            Ok(Value::Int(integer(vm, &args[0])?.min(integer(vm, &args[1])?)))
        }),
        free("&max", "", "fn max<T>(a: T, b: T) -> T", |vm, args, _| {
            Ok(Value::Int(integer(vm, &args[0])?.max(integer(vm, &args[1])?)))
        }),
        free("&clamp", "", "fn clamp<T>(value: T, low: T, high: T) -> T", clamp),
        free("std::cmp::min", "", "fn min<T: Ord>(a: T, b: T) -> T", |vm, args, _| {
            let less = vm.compare(&args[1], &args[0])? == Some(Ordering::Less);
            Ok(super::take(args, usize::from(less)))
        }),
        free("std::cmp::max", "", "fn max<T: Ord>(a: T, b: T) -> T", |vm, args, _| {
            let less = vm.compare(&args[1], &args[0])? == Some(Ordering::Less);
            Ok(super::take(args, usize::from(!less)))
        }),
    ]
}

fn rotated(value: i128, by: i128, kind: IntKind) -> i128 {
    let width = kind.bits();
    let by = by.rem_euclid(i128::from(width)) as u32;
    let own = bits(value, kind);
    if by == 0 {
        return value;
    }
    kind.wrap(((own << by) | (own >> (width - by))) as i128)
}

fn clamp(vm: &mut Vm<'_>, args: &mut [Value], _: &Meta) -> Fallible<Value> {
    let (value, low, high) =
        (integer(vm, &args[0])?, integer(vm, &args[1])?, integer(vm, &args[2])?);
    if low > high {
        return Err(panic("assertion failed: min <= max"));
    }
    Ok(Value::Int(value.clamp(low, high)))
}

fn bits(value: i128, kind: IntKind) -> u128 {
    if kind.bits() == 128 {
        return value as u128;
    }
    (value as u128) & ((1u128 << kind.bits()) - 1)
}

fn option(value: Option<i128>, kind: IntKind) -> Fallible<Value> {
    let value = value.filter(|value| kind.holds(*value));
    Ok(Value::Option(value.map(|value| Box::new(Value::Int(value)))))
}

fn saturated(value: Option<i128>, kind: IntKind, negative: bool) -> Fallible<Value> {
    let end = if negative { kind.min() } else { kind.max() };
    Ok(Value::Int(value.map_or(end, |value| value.clamp(kind.min(), kind.max()))))
}

fn checked() -> Vec<Row> {
    vec![
        ints!("fn checked_add(self, other: Own) -> Option<Own>", |a, b, kind| {
            option(a.checked_add(b), kind)
        }),
        ints!("fn checked_sub(self, other: Own) -> Option<Own>", |a, b, kind| {
            option(a.checked_sub(b), kind)
        }),
        ints!("fn checked_mul(self, other: Own) -> Option<Own>", |a, b, kind| {
            option(a.checked_mul(b), kind)
        }),
        ints!("fn checked_div(self, other: Own) -> Option<Own>", |a, b, kind| {
            option(a.checked_div(b), kind)
        }),
        ints!("fn checked_rem(self, other: Own) -> Option<Own>", |a, b, kind| {
            option(a.checked_rem(b), kind)
        }),
        ints!("fn checked_pow(self, exponent: u32) -> Option<Own>", |a, b, kind| {
            option(power(a, b), kind)
        }),
        ints!("fn wrapping_add(self, other: Own) -> Own", |a, b, kind| {
            Ok(Value::Int(kind.wrap(a.wrapping_add(b))))
        }),
        ints!("fn wrapping_sub(self, other: Own) -> Own", |a, b, kind| {
            Ok(Value::Int(kind.wrap(a.wrapping_sub(b))))
        }),
        ints!("fn wrapping_mul(self, other: Own) -> Own", |a, b, kind| {
            Ok(Value::Int(kind.wrap(a.wrapping_mul(b))))
        }),
        ints!("fn saturating_add(self, other: Own) -> Own", |a, b, kind| {
            saturated(a.checked_add(b), kind, a < 0)
        }),
        ints!("fn saturating_sub(self, other: Own) -> Own", |a, b, kind| {
            saturated(a.checked_sub(b), kind, a < 0)
        }),
        ints!("fn saturating_mul(self, other: Own) -> Own", |a, b, kind| {
            saturated(a.checked_mul(b), kind, (a < 0) != (b < 0))
        }),
    ]
}

/// Rows over one float whose result is a float of the same type.
macro_rules! unary {
    ($($name:ident),* $(,)?) => {
        vec![$(method(
            FLOAT,
            concat!("fn ", stringify!($name), "(self) -> Own"),
            |vm, args, meta| {
                let value = float(vm, &args[0])?;
                Ok(Value::Float(match float_kind(meta) {
                    // The functions of f32 are not those of f64 rounded.
                    FloatKind::F32 => f64::from((value as f32).$name()),
                    FloatKind::F64 => value.$name(),
                }))
            },
        )),*]
    };
}

/// Rows over two floats.
macro_rules! binary {
    ($($name:ident),* $(,)?) => {
        vec![$(method(
            FLOAT,
            concat!("fn ", stringify!($name), "(self, other: Own) -> Own"),
            |vm, args, meta| {
                let (a, b) = (float(vm, &args[0])?, float(vm, &args[1])?);
                Ok(Value::Float(match float_kind(meta) {
                    FloatKind::F32 => f64::from((a as f32).$name(b as f32)),
                    FloatKind::F64 => a.$name(b),
                }))
            },
        )),*]
    };
}

macro_rules! question {
    ($($name:ident),* $(,)?) => {
        vec![$(method(
            FLOAT,
            concat!("fn ", stringify!($name), "(self) -> bool"),
            |vm, args, _| Ok(Value::Bool(float(vm, &args[0])?.$name())),
        )),*]
    };
}

fn floats() -> Vec<Row> {
    let mut rows = unary![
        abs,
        sqrt,
        cbrt,
        exp,
        exp2,
        exp_m1,
        ln,
        ln_1p,
        log2,
        log10,
        sin,
        cos,
        tan,
        asin,
        acos,
        atan,
        sinh,
        cosh,
        tanh,
        asinh,
        acosh,
        atanh,
        floor,
        ceil,
        round,
        trunc,
        fract,
        signum,
        recip,
        to_degrees,
        to_radians,
        round_ties_even,
    ];
    rows.extend(question![is_nan, is_finite, is_infinite, is_sign_negative, is_sign_positive]);
    rows
}

fn float_pairs() -> Vec<Row> {
    let mut rows = binary![powf, atan2, hypot, min, max, log, copysign, rem_euclid, div_euclid];
    rows.push(method(FLOAT, "fn powi(self, exponent: i32) -> Own", |vm, args, meta| {
        let value = float(vm, &args[0])?;
        let exponent = integer(vm, &args[1])? as i32;
        Ok(Value::Float(match float_kind(meta) {
            FloatKind::F32 => f64::from((value as f32).powi(exponent)),
            FloatKind::F64 => value.powi(exponent),
        }))
    }));
    rows.push(method(FLOAT, "fn mul_add(self, a: Own, b: Own) -> Own", |vm, args, meta| {
        let (value, a, b) = (float(vm, &args[0])?, float(vm, &args[1])?, float(vm, &args[2])?);
        Ok(Value::Float(match float_kind(meta) {
            FloatKind::F32 => f64::from((value as f32).mul_add(a as f32, b as f32)),
            FloatKind::F64 => value.mul_add(a, b),
        }))
    }));
    rows.push(method(FLOAT, "fn clamp(self, low: Own, high: Own) -> Own", |vm, args, _| {
        let (value, low, high) = (float(vm, &args[0])?, float(vm, &args[1])?, float(vm, &args[2])?);
        if low > high || low.is_nan() || high.is_nan() {
            return Err(panic(format!(
                "min > max, or either was NaN. min = {low:?}, max = {high:?}"
            )));
        }
        Ok(Value::Float(value.clamp(low, high)))
    }));
    rows.push(method(FLOAT, "fn sin_cos(self) -> (Own, Own)", |vm, args, meta| {
        let value = float(vm, &args[0])?;
        let (sin, cos) = match float_kind(meta) {
            FloatKind::F32 => {
                let (sin, cos) = (value as f32).sin_cos();
                (f64::from(sin), f64::from(cos))
            }
            FloatKind::F64 => value.sin_cos(),
        };
        Ok(Value::Tuple(vec![Value::Float(sin), Value::Float(cos)]))
    }));
    rows.push(method(FLOAT, "fn total_cmp(&self, other: &Own) -> Ordering", |vm, args, _| {
        Ok(ordering(float(vm, &args[0])?.total_cmp(&float(vm, &args[1])?)))
    }));
    rows
}

fn conversions() -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in IntKind::ALL {
        let path = crate::signature::intern(&format!("{}::from", kind.name()));
        let text = crate::signature::intern(&format!(
            "fn from<T: Lossless<{0}>>(value: T) -> {0}",
            kind.name()
        ));
        rows.push(free(path, "", text, |vm, args, _| {
            Ok(match vm.peel(&args[0])? {
                Value::Bool(value) => Value::Int(i128::from(*value)),
                Value::Char(value) => Value::Int(i128::from(*value as u32)),
                other => other.alias(),
            })
        }));
    }
    for name in ["f32", "f64"] {
        let path = crate::signature::intern(&format!("{name}::from"));
        let text =
            crate::signature::intern(&format!("fn from<T: Lossless<{name}>>(value: T) -> {name}"));
        rows.push(free(path, "", text, |vm, args, _| {
            Ok(match vm.peel(&args[0])? {
                Value::Int(value) => Value::Float(*value as f64),
                Value::Bool(value) => Value::Float(f64::from(u8::from(*value))),
                other => other.alias(),
            })
        }));
    }
    rows
}

fn both() -> Vec<Row> {
    let mut rows = Vec::new();
    for class in [INT, FLOAT, "char", "bool", "String", "&str"] {
        rows.push(method(class, "fn into<U: MadeFrom<Self>>(self) -> U", |vm, args, meta| {
            let value = vm.peel(&args[0])?.alias();
            Ok(match (value, &meta.ret) {
                (Value::Int(value), Ty::Float(_)) => Value::Float(value as f64),
                (Value::Bool(value), Ty::Float(_)) => Value::Float(f64::from(u8::from(value))),
                (Value::Bool(value), Ty::Int(_)) => Value::Int(i128::from(value)),
                (Value::Char(value), Ty::Int(_)) => Value::Int(i128::from(value as u32)),
                (Value::Char(value), Ty::Named("String", _)) => Value::text(value.to_string()),
                (value, _) => value,
            })
        }));
    }
    for class in [INT, "char", "bool", "str", "[T]"] {
        rows.push(method(class, "fn cmp(&self, other: &Self) -> Ordering", |vm, args, _| {
            let order = vm.compare(&args[0], &args[1])?;
            Ok(ordering(order.unwrap_or(Ordering::Equal)))
        }));
    }
    for class in [INT, FLOAT, "char", "bool", "str"] {
        rows.push(method(
            class,
            "fn partial_cmp(&self, other: &Self) -> Option<Ordering>",
            |vm, args, _| {
                let order = vm.compare(&args[0], &args[1])?;
                Ok(Value::Option(order.map(|order| Box::new(ordering(order)))))
            },
        ));
    }
    rows
}

/// `std::f64::consts`.
pub fn float_constant(name: &str) -> Option<f64> {
    use std::f64::consts;
    Some(match name {
        "PI" => consts::PI,
        "TAU" => consts::TAU,
        "E" => consts::E,
        "SQRT_2" => consts::SQRT_2,
        "LN_2" => consts::LN_2,
        "LN_10" => consts::LN_10,
        "LOG2_E" => consts::LOG2_E,
        "LOG10_E" => consts::LOG10_E,
        "FRAC_PI_2" => consts::FRAC_PI_2,
        "FRAC_PI_3" => consts::FRAC_PI_3,
        "FRAC_PI_4" => consts::FRAC_PI_4,
        "FRAC_PI_6" => consts::FRAC_PI_6,
        "FRAC_1_PI" => consts::FRAC_1_PI,
        "FRAC_2_PI" => consts::FRAC_2_PI,
        "FRAC_1_SQRT_2" => consts::FRAC_1_SQRT_2,
        "FRAC_2_SQRT_PI" => consts::FRAC_2_SQRT_PI,
        _ => return None,
    })
}

/// `f64::MAX` and its like.
pub fn float_limit(kind: FloatKind, name: &str) -> Option<f64> {
    Some(match (kind, name) {
        (_, "INFINITY") => f64::INFINITY,
        (_, "NEG_INFINITY") => f64::NEG_INFINITY,
        (_, "NAN") => f64::NAN,
        (FloatKind::F64, "MAX") => f64::MAX,
        (FloatKind::F64, "MIN") => f64::MIN,
        (FloatKind::F64, "EPSILON") => f64::EPSILON,
        (FloatKind::F64, "MIN_POSITIVE") => f64::MIN_POSITIVE,
        (FloatKind::F32, "MAX") => f64::from(f32::MAX),
        (FloatKind::F32, "MIN") => f64::from(f32::MIN),
        (FloatKind::F32, "EPSILON") => f64::from(f32::EPSILON),
        (FloatKind::F32, "MIN_POSITIVE") => f64::from(f32::MIN_POSITIVE),
        _ => return None,
    })
}
