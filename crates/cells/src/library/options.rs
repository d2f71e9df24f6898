//! `Option<T>`.

use super::{Row, default_of, method, take, text};
use crate::interrupt::{Fallible, internal, panic};
use crate::value::Value;
use crate::vm::Vm;

const OPTION: &str = "Option<T>";

fn inside(value: Value) -> Fallible<Option<Value>> {
    match value {
        Value::Option(value) => Ok(value.map(|value| *value)),
        _ => Err(internal("an option")),
    }
}

fn wrapped(value: Option<Value>) -> Value {
    Value::Option(value.map(Box::new))
}

fn is_some(vm: &Vm<'_>, value: &Value) -> Fallible<bool> {
    match vm.peel(value)? {
        Value::Option(value) => Ok(value.is_some()),
        _ => Err(internal("an option")),
    }
}

/// A reference to what the option behind a reference holds.
fn within(vm: &Vm<'_>, value: &Value, mutable: bool) -> Fallible<Value> {
    let Value::Ref(place) = value else {
        return Ok(value.alias());
    };
    Ok(match vm.at(place)? {
        Value::Option(Some(inner)) => {
            let snapshot = !mutable && crate::vm::is_snapshot(inner);
            Value::some(if snapshot { inner.alias() } else { Value::Ref(place.child(0)) })
        }
        inner @ Value::Ref(_) => return within(vm, inner, mutable),
        _ => Value::none(),
    })
}

pub fn rows() -> Vec<Row> {
    let mut rows = plain();
    rows.extend(with_closures());
    rows
}

fn plain() -> Vec<Row> {
    vec![
        method(OPTION, "fn is_some(&self) -> bool", |vm, args, _| {
            Ok(Value::Bool(is_some(vm, &args[0])?))
        }),
        method(OPTION, "fn is_none(&self) -> bool", |vm, args, _| {
            Ok(Value::Bool(!is_some(vm, &args[0])?))
        }),
        method(OPTION, "fn unwrap(self) -> T", |_, args, _| {
            inside(take(args, 0))?
                .ok_or_else(|| panic("called `Option::unwrap()` on a `None` value"))
        }),
        method(OPTION, "fn expect(self, message: &str) -> T", |vm, args, _| {
            let message = text(vm, &args[1])?.to_string();
            inside(take(args, 0))?.ok_or_else(|| panic(message))
        }),
        method(OPTION, "fn unwrap_or(self, other: T) -> T", |_, args, _| {
            Ok(inside(take(args, 0))?.unwrap_or_else(|| take(args, 1)))
        }),
        method(OPTION, "fn unwrap_or_default(self) -> T", |_, args, meta| {
            Ok(inside(take(args, 0))?.unwrap_or_else(|| default_of(&meta.ret)))
        }),
        method(OPTION, "fn or(self, other: Option<T>) -> Option<T>", |_, args, _| {
            Ok(match inside(take(args, 0))? {
                Some(value) => Value::some(value),
                None => take(args, 1),
            })
        }),
        method(OPTION, "fn take(&mut self) -> Option<T>", |vm, args, _| {
            Ok(std::mem::replace(vm.get_mut(&args[0])?, Value::none()))
        }),
        method(OPTION, "fn replace(&mut self, value: T) -> Option<T>", |vm, args, _| {
            let value = Value::some(take(args, 1));
            Ok(std::mem::replace(vm.get_mut(&args[0])?, value))
        }),
        method(OPTION, "fn as_ref(&self) -> Option<&T>", |vm, args, _| within(vm, &args[0], false)),
        method(OPTION, "fn as_mut(&mut self) -> Option<&mut T>", |vm, args, _| {
            within(vm, &args[0], true)
        }),
        method(OPTION, "fn zip<U>(self, other: Option<U>) -> Option<(T, U)>", |_, args, _| {
            let pair = inside(take(args, 0))?.zip(inside(take(args, 1))?);
            Ok(wrapped(pair.map(|(a, b)| Value::Tuple(vec![a, b]))))
        }),
        method("Option<&T>", "fn copied(self) -> Option<T>", |vm, args, _| {
            let value = inside(take(args, 0))?;
            value.map(|value| vm.clone_of(&value)).transpose().map(wrapped)
        }),
        method("Option<&T>", "fn cloned(self) -> Option<T>", |vm, args, _| {
            let value = inside(take(args, 0))?;
            value.map(|value| vm.clone_of(&value)).transpose().map(wrapped)
        }),
    ]
}

fn with_closures() -> Vec<Row> {
    vec![
        method(
            OPTION,
            "fn map<U>(self, function: impl FnOnce(T) -> U) -> Option<U>",
            |vm, args, _| match inside(take(args, 0))? {
                Some(value) => Ok(Value::some(vm.call_function(&args[1], vec![value])?)),
                None => Ok(Value::none()),
            },
        ),
        method(
            OPTION,
            "fn and_then<U>(self, function: impl FnOnce(T) -> Option<U>) -> Option<U>",
            |vm, args, _| match inside(take(args, 0))? {
                Some(value) => vm.call_function(&args[1], vec![value]),
                None => Ok(Value::none()),
            },
        ),
        method(
            OPTION,
            "fn unwrap_or_else(self, function: impl FnOnce() -> T) -> T",
            |vm, args, _| match inside(take(args, 0))? {
                Some(value) => Ok(value),
                None => vm.call_function(&args[1], Vec::new()),
            },
        ),
        method(
            OPTION,
            "fn map_or<U>(self, other: U, function: impl FnOnce(T) -> U) -> U",
            |vm, args, _| match inside(take(args, 0))? {
                Some(value) => vm.call_function(&args[2], vec![value]),
                None => Ok(take(args, 1)),
            },
        ),
        method(
            OPTION,
            "fn is_some_and(self, function: impl FnOnce(T) -> bool) -> bool",
            |vm, args, _| match inside(take(args, 0))? {
                Some(value) => vm.call_function(&args[1], vec![value]),
                None => Ok(Value::Bool(false)),
            },
        ),
        method(
            OPTION,
            "fn filter(self, function: impl FnOnce(&T) -> bool) -> Option<T>",
            |vm, args, _| {
                let Some(value) = inside(take(args, 0))? else { return Ok(Value::none()) };
                let keep = vm.ask(&args[1], &value)?;
                Ok(if keep { Value::some(value) } else { Value::none() })
            },
        ),
        method(
            OPTION,
            "fn or_else(self, function: impl FnOnce() -> Option<T>) -> Option<T>",
            |vm, args, _| match inside(take(args, 0))? {
                Some(value) => Ok(Value::some(value)),
                None => vm.call_function(&args[1], Vec::new()),
            },
        ),
    ]
}
