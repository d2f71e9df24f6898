//! `Result<T, E>` as far as parsing needs it: `Ok(v)` is kept as an option with a value, `Err(e)` as a
//! tuple of one.

use super::{Row, default_of, method, take, text};
use crate::format::Layout;
use crate::interrupt::{Fallible, internal, panic};
use crate::ty::{FloatKind, IntKind, Ty};
use crate::value::Value;
use crate::vm::Vm;

const RESULT: &str = "Result<T, E>";

/// The two sides.
fn sides(value: Value) -> Fallible<Result<Value, Value>> {
    match value {
        Value::Option(Some(value)) => Ok(Ok(*value)),
        Value::Tuple(mut parts) if parts.len() == 1 => Ok(Err(parts.remove(0))),
        _ => Err(internal("a result")),
    }
}

fn is_ok(vm: &Vm<'_>, value: &Value) -> Fallible<bool> {
    Ok(matches!(vm.peel(value)?, Value::Option(Some(_))))
}

/// The error as `{:?}` prints it.
fn debug(vm: &Vm<'_>, error: &Value, ty: &Ty) -> Fallible<String> {
    let Ty::Named("Result", arguments) = ty else { return Err(internal("a result")) };
    let mut out = String::new();
    crate::show::value(vm, &mut out, error, &arguments[1], &Layout::debug())?;
    Ok(out)
}

pub fn rows() -> Vec<Row> {
    let mut rows = methods();
    for kind in IntKind::ALL {
        let path = crate::signature::intern(&format!("{}::from_str_radix", kind.name()));
        let signature = crate::signature::intern(&format!(
            "fn from_str_radix(text: &str, radix: u32) -> Result<{}, ParseIntError>",
            kind.name()
        ));
        rows.push(super::free(path, "", signature, |vm, args, meta| {
            let radix = super::size(vm, &args[1])? as u32;
            if !(2..=36).contains(&radix) {
                return Err(panic("from_ascii_radix: radix must lie in the range `[2, 36]`"));
            }
            Ok(wrapped(in_radix(text(vm, &args[0])?, radix, &meta.ret)))
        }));
    }
    rows
}

/// The number, held to the range of the type that is asked for.
fn in_radix(text: &str, radix: u32, ty: &Ty) -> Parsed {
    let kind = match ty {
        Ty::Named(_, arguments) => match &arguments[0] {
            Ty::Int(kind) => *kind,
            _ => IntKind::I32,
        },
        _ => IntKind::I32,
    };
    match i128::from_str_radix(text, radix) {
        Ok(value) if kind.holds(value) => Ok(Value::Int(value)),
        // Out of range: the words of the type's own parser.
        Ok(value) => integer(&value.to_string(), kind),
        Err(error) => Err(both(error)),
    }
}

fn wrapped(parsed: Parsed) -> Value {
    match parsed {
        Ok(value) => Value::some(value),
        Err((words, fields)) => {
            let error = Value::Tuple(vec![Value::text(words), Value::text(fields)]);
            Value::Tuple(vec![error])
        }
    }
}

fn methods() -> Vec<Row> {
    vec![
        method("str", "fn parse<F: FromStr<E>, E>(&self) -> Result<F, E>", |vm, args, meta| {
            let text = text(vm, &args[0])?;
            let Ty::Named("Result", arguments) = &meta.ret else {
                return Err(internal("a result"));
            };
            Ok(wrapped(parse(text, &arguments[0])?))
        }),
        method(RESULT, "fn is_ok(&self) -> bool", |vm, args, _| {
            Ok(Value::Bool(is_ok(vm, &args[0])?))
        }),
        method(RESULT, "fn is_err(&self) -> bool", |vm, args, _| {
            Ok(Value::Bool(!is_ok(vm, &args[0])?))
        }),
        method(RESULT, "fn ok(self) -> Option<T>", |_, args, _| {
            Ok(Value::Option(sides(take(args, 0))?.ok().map(Box::new)))
        }),
        method(RESULT, "fn err(self) -> Option<E>", |_, args, _| {
            Ok(Value::Option(sides(take(args, 0))?.err().map(Box::new)))
        }),
        method(RESULT, "fn unwrap(self) -> T", |vm, args, meta| match sides(take(args, 0))? {
            Ok(value) => Ok(value),
            Err(error) => {
                let error = debug(vm, &error, &meta.args[0])?;
                Err(panic(format!("called `Result::unwrap()` on an `Err` value: {error}")))
            }
        }),
        method(RESULT, "fn expect(self, message: &str) -> T", |vm, args, meta| {
            match sides(take(args, 0))? {
                Ok(value) => Ok(value),
                Err(error) => {
                    let error = debug(vm, &error, &meta.args[0])?;
                    Err(panic(format!("{}: {error}", text(vm, &args[1])?)))
                }
            }
        }),
        method(RESULT, "fn unwrap_or(self, other: T) -> T", |_, args, _| {
            Ok(sides(take(args, 0))?.unwrap_or_else(|_| take(args, 1)))
        }),
        method(RESULT, "fn unwrap_or_default(self) -> T", |_, args, meta| {
            Ok(sides(take(args, 0))?.unwrap_or_else(|_| default_of(&meta.ret)))
        }),
        method(
            RESULT,
            "fn unwrap_or_else(self, function: impl FnOnce(E) -> T) -> T",
            |vm, args, _| match sides(take(args, 0))? {
                Ok(value) => Ok(value),
                Err(error) => vm.call_function(&args[1], vec![error]),
            },
        ),
        method(
            RESULT,
            "fn map<U>(self, function: impl FnOnce(T) -> U) -> Result<U, E>",
            |vm, args, _| match sides(take(args, 0))? {
                Ok(value) => Ok(Value::some(vm.call_function(&args[1], vec![value])?)),
                Err(error) => Ok(Value::Tuple(vec![error])),
            },
        ),
    ]
}

/// The value, or the error's words and its `Debug` form.
type Parsed = Result<Value, (String, String)>;

fn parse(text: &str, ty: &Ty) -> Fallible<Parsed> {
    Ok(match ty {
        Ty::Int(kind) => integer(text, *kind),
        Ty::Float(FloatKind::F32) => {
            text.parse::<f32>().map(|value| Value::Float(f64::from(value))).map_err(both)
        }
        Ty::Float(FloatKind::F64) => text.parse::<f64>().map(Value::Float).map_err(both),
        Ty::Bool => text.parse::<bool>().map(Value::Bool).map_err(both),
        Ty::Char => text.parse::<char>().map(Value::Char).map_err(both),
        _ => return Err(internal("a type to parse")),
    })
}

fn both(error: impl std::fmt::Display + std::fmt::Debug) -> (String, String) {
    (error.to_string(), format!("{error:?}"))
}

fn integer(text: &str, kind: IntKind) -> Parsed {
    macro_rules! of {
        ($ty:ty) => {
            text.parse::<$ty>().map(|value| Value::Int(value as i128)).map_err(both)
        };
    }
    match kind {
        IntKind::I8 => of!(i8),
        IntKind::I16 => of!(i16),
        IntKind::I32 => of!(i32),
        IntKind::I64 => of!(i64),
        IntKind::I128 => of!(i128),
        IntKind::Isize => of!(isize),
        IntKind::U8 => of!(u8),
        IntKind::U16 => of!(u16),
        IntKind::U32 => of!(u32),
        IntKind::U64 => of!(u64),
        IntKind::Usize => of!(usize),
    }
}
