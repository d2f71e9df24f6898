//! `Vec<T>`, `[T; N]` and slices.

use super::{Row, count, free, grows, method, size, take, text};
use crate::interrupt::{Fallible, panic};
use crate::iter::Iter;
use crate::value::{RangeValue, Value};
use crate::vm::{Vm, slice_bounds, truth};
use std::cmp::Ordering;

const VEC: &str = "Vec<T>";
const SLICE: &str = "[T]";

pub fn rows() -> Vec<Row> {
    let mut rows = vectors();
    rows.extend(slices());
    rows.extend(closures());
    rows
}

/// `index` names an element, or the fault in std's words.
fn inside(what: &str, index: usize, length: usize) -> Fallible<()> {
    match index < length {
        true => Ok(()),
        false => Err(panic(format!("{what} (is {index}) should be < len (is {length})"))),
    }
}

/// `index` names a place between elements, the end included.
fn up_to(what: &str, index: usize, length: usize) -> Fallible<()> {
    match index <= length {
        true => Ok(()),
        false => Err(panic(format!("{what} (is {index}) should be <= len (is {length})"))),
    }
}

fn elements(vm: &Vm<'_>, list: &Value, mutable: bool) -> Fallible<Value> {
    let end = vm.list(list)?.len();
    let list = list.alias();
    Ok(Value::Iter(Box::new(Iter::Elements { list, next: 0, end, mutable })))
}

fn element_at(vm: &Vm<'_>, list: &Value, index: Option<usize>, mutable: bool) -> Fallible<Value> {
    let length = vm.list(list)?.len();
    match index {
        Some(index) if index < length => Ok(Value::some(vm.element(list, index, mutable)?)),
        _ => Ok(Value::none()),
    }
}

fn vectors() -> Vec<Row> {
    vec![
        free("Vec::new", VEC, "fn new() -> Vec<T>", |_, _, _| Ok(Value::List(Vec::new()))),
        free(
            "Vec::with_capacity",
            VEC,
            "fn with_capacity(capacity: usize) -> Vec<T>",
            |_, _, _| Ok(Value::List(Vec::new())),
        ),
        free("Vec::from", VEC, "fn from<const N: usize>(list: [T; N]) -> Vec<T>", |_, args, _| {
            Ok(take(args, 0))
        }),
        free("&into_iter", "", "fn into_iter<T>(list: &[T]) -> Iter<&T>", |vm, args, _| {
            elements(vm, &args[0], false)
        }),
        free(
            "&mut into_iter",
            "",
            "fn into_iter<T>(list: &mut [T]) -> Iter<&mut T>",
            |vm, args, _| elements(vm, &args[0], true),
        ),
        grows(VEC, "fn push(&mut self, value: T)", |vm, args, _| {
            let value = take(args, 1);
            vm.vec_mut(&args[0])?.push(value);
            Ok(Value::Unit)
        }),
        method(VEC, "fn pop(&mut self) -> Option<T>", |vm, args, _| {
            Ok(Value::Option(vm.vec_mut(&args[0])?.pop().map(Box::new)))
        }),
        grows(VEC, "fn insert(&mut self, index: usize, value: T)", |vm, args, _| {
            let index = size(vm, &args[1])?;
            let value = take(args, 2);
            let list = vm.vec_mut(&args[0])?;
            up_to("insertion index", index, list.len())?;
            list.insert(index, value);
            Ok(Value::Unit)
        }),
        grows(VEC, "fn remove(&mut self, index: usize) -> T", |vm, args, _| {
            let index = size(vm, &args[1])?;
            let list = vm.vec_mut(&args[0])?;
            inside("removal index", index, list.len())?;
            Ok(list.remove(index))
        }),
        grows(VEC, "fn swap_remove(&mut self, index: usize) -> T", |vm, args, _| {
            let index = size(vm, &args[1])?;
            let list = vm.vec_mut(&args[0])?;
            inside("swap_remove index", index, list.len())?;
            Ok(list.swap_remove(index))
        }),
        method(VEC, "fn truncate(&mut self, length: usize)", |vm, args, _| {
            let length = size(vm, &args[1])?;
            vm.vec_mut(&args[0])?.truncate(length);
            Ok(Value::Unit)
        }),
        method(VEC, "fn clear(&mut self)", |vm, args, _| {
            vm.vec_mut(&args[0])?.clear();
            Ok(Value::Unit)
        }),
        method(VEC, "fn reserve(&mut self, more: usize)", |_, _, _| Ok(Value::Unit)),
        grows(VEC, "fn append(&mut self, other: &mut Vec<T>)", |vm, args, _| {
            let mut moved = std::mem::take(vm.vec_mut(&args[1])?);
            vm.vec_mut(&args[0])?.append(&mut moved);
            Ok(Value::Unit)
        }),
        grows(VEC, "fn extend<I: Extendable<T>>(&mut self, values: I)", |vm, args, _| {
            let values = take(args, 1);
            let mut iter = vm.iterate(values)?;
            while let Some(value) = iter.next(vm)? {
                let value = match &value {
                    Value::Ref(_) | Value::Borrowed(_) => vm.clone_of(&value)?,
                    _ => value,
                };
                vm.vec_mut(&args[0])?.push(value);
            }
            Ok(Value::Unit)
        }),
        grows(VEC, "fn extend_from_slice(&mut self, values: &[T])", |vm, args, _| {
            let values: Vec<Value> = vm.list(&args[1])?.iter().map(Value::cloned).collect();
            vm.vec_mut(&args[0])?.extend(values);
            Ok(Value::Unit)
        }),
        method(VEC, "fn split_off(&mut self, at: usize) -> Vec<T>", |vm, args, _| {
            let at = size(vm, &args[1])?;
            let list = vm.vec_mut(&args[0])?;
            up_to("`at` split index", at, list.len())?;
            Ok(Value::List(list.split_off(at)))
        }),
        method(VEC, "fn resize(&mut self, length: usize, value: T)", |vm, args, _| {
            let length = size(vm, &args[1])?;
            let value = take(args, 2);
            vm.vec_mut(&args[0])?.resize_with(length, || value.cloned());
            Ok(Value::Unit)
        }),
        method(VEC, "fn dedup(&mut self)", |vm, args, _| {
            let list = std::mem::take(vm.vec_mut(&args[0])?);
            let mut out: Vec<Value> = Vec::new();
            for value in list {
                let same = match out.last() {
                    Some(last) => vm.compare(last, &value)? == Some(Ordering::Equal),
                    None => false,
                };
                if !same {
                    out.push(value);
                }
            }
            *vm.vec_mut(&args[0])? = out;
            Ok(Value::Unit)
        }),
        method(VEC, "fn drain<R>(&mut self, range: R) -> Iter<T>", |vm, args, _| {
            let range = match take(args, 1) {
                Value::Range(range) => *range,
                _ => RangeValue { start: None, end: None, inclusive: false, chars: false },
            };
            let list = vm.vec_mut(&args[0])?;
            let (start, end) = slice_bounds(&range, list.len())?;
            let drained: Vec<Value> = list.drain(start..end).collect();
            Ok(Value::Iter(Box::new(Iter::owned(drained))))
        }),
        method(VEC, "fn into_iter(self) -> Iter<T>", |_, args, _| into_iter(take(args, 0))),
        method("[T; N]", "fn into_iter(self) -> Iter<T>", |_, args, _| into_iter(take(args, 0))),
        method(VEC, "fn as_slice(&self) -> &[T]", |_, args, _| Ok(take(args, 0))),
    ]
}

fn into_iter(value: Value) -> Fallible<Value> {
    match value {
        Value::List(values) => Ok(Value::Iter(Box::new(Iter::owned(values)))),
        _ => Err(crate::interrupt::internal("a list")),
    }
}

fn slices() -> Vec<Row> {
    vec![
        method(SLICE, "fn len(&self) -> usize", |vm, args, _| Ok(count(vm.list(&args[0])?.len()))),
        method(SLICE, "fn is_empty(&self) -> bool", |vm, args, _| {
            Ok(Value::Bool(vm.list(&args[0])?.is_empty()))
        }),
        method(SLICE, "fn iter(&self) -> Iter<&T>", |vm, args, _| elements(vm, &args[0], false)),
        method(SLICE, "fn iter_mut(&mut self) -> Iter<&mut T>", |vm, args, _| {
            elements(vm, &args[0], true)
        }),
        method(SLICE, "fn first(&self) -> Option<&T>", |vm, args, _| {
            element_at(vm, &args[0], Some(0), false)
        }),
        method(SLICE, "fn first_mut(&mut self) -> Option<&mut T>", |vm, args, _| {
            element_at(vm, &args[0], Some(0), true)
        }),
        method(SLICE, "fn last(&self) -> Option<&T>", |vm, args, _| {
            let last = vm.list(&args[0])?.len().checked_sub(1);
            element_at(vm, &args[0], last, false)
        }),
        method(SLICE, "fn last_mut(&mut self) -> Option<&mut T>", |vm, args, _| {
            let last = vm.list(&args[0])?.len().checked_sub(1);
            element_at(vm, &args[0], last, true)
        }),
        method(SLICE, "fn get(&self, index: usize) -> Option<&T>", |vm, args, _| {
            let index = size(vm, &args[1])?;
            element_at(vm, &args[0], Some(index), false)
        }),
        method(SLICE, "fn get_mut(&mut self, index: usize) -> Option<&mut T>", |vm, args, _| {
            let index = size(vm, &args[1])?;
            element_at(vm, &args[0], Some(index), true)
        }),
        method(SLICE, "fn contains(&self, value: &T) -> bool where T: PartialEq", |vm, args, _| {
            for value in vm.list(&args[0])? {
                if vm.compare(value, &args[1])? == Some(Ordering::Equal) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }),
        method(SLICE, "fn swap(&mut self, a: usize, b: usize)", |vm, args, _| {
            let (a, b) = (size(vm, &args[1])?, size(vm, &args[2])?);
            let list = vm.list_mut(&args[0])?;
            let length = list.len();
            for index in [a, b] {
                if index >= length {
                    return Err(crate::vm::out_of_bounds(length, index));
                }
            }
            list.swap(a, b);
            Ok(Value::Unit)
        }),
        method(SLICE, "fn reverse(&mut self)", |vm, args, _| {
            vm.list_mut(&args[0])?.reverse();
            Ok(Value::Unit)
        }),
        method(SLICE, "fn fill(&mut self, value: T)", |vm, args, _| {
            let value = take(args, 1);
            for slot in vm.list_mut(&args[0])? {
                *slot = value.cloned();
            }
            Ok(Value::Unit)
        }),
        method(SLICE, "fn rotate_left(&mut self, by: usize)", |vm, args, _| {
            let by = size(vm, &args[1])?;
            let list = vm.list_mut(&args[0])?;
            if by > list.len() {
                return Err(panic("assertion failed: mid <= self.len()"));
            }
            list.rotate_left(by);
            Ok(Value::Unit)
        }),
        method(SLICE, "fn rotate_right(&mut self, by: usize)", |vm, args, _| {
            let by = size(vm, &args[1])?;
            let list = vm.list_mut(&args[0])?;
            if by > list.len() {
                return Err(panic("assertion failed: k <= self.len()"));
            }
            list.rotate_right(by);
            Ok(Value::Unit)
        }),
        method(SLICE, "fn to_vec(&self) -> Vec<T>", |vm, args, _| {
            Ok(Value::List(vm.list(&args[0])?.iter().map(Value::cloned).collect()))
        }),
        method(SLICE, "fn windows(&self, size: usize) -> Iter<&[T]>", |vm, args, _| {
            let size = size(vm, &args[1])?;
            if size == 0 {
                return Err(panic("window size must be non-zero"));
            }
            windows(vm, &args[0], size, 1, false)
        }),
        method(SLICE, "fn chunks(&self, size: usize) -> Iter<&[T]>", |vm, args, _| {
            let size = size(vm, &args[1])?;
            if size == 0 {
                return Err(panic("chunk size must be non-zero"));
            }
            windows(vm, &args[0], size, size, true)
        }),
        method(SLICE, "fn split_at(&self, at: usize) -> (&[T], &[T])", |vm, args, _| {
            let at = size(vm, &args[1])?;
            let length = vm.list(&args[0])?.len();
            if at > length {
                return Err(panic("mid > len"));
            }
            let left = vm.slice_of(&args[0], 0, at)?;
            let right = vm.slice_of(&args[0], at, length)?;
            Ok(Value::Tuple(vec![left, right]))
        }),
        method(
            SLICE,
            "fn split_at_mut(&mut self, at: usize) -> (&mut [T], &mut [T])",
            |vm, args, _| {
                let at = size(vm, &args[1])?;
                let length = vm.list(&args[0])?.len();
                if at > length {
                    return Err(panic("mid > len"));
                }
                let left = vm.slice_of(&args[0], 0, at)?;
                let right = vm.slice_of(&args[0], at, length)?;
                Ok(Value::Tuple(vec![left, right]))
            },
        ),
        method(SLICE, "fn concat(&self) -> String where T: Joined", |vm, args, _| {
            let parts: Fallible<Vec<&str>> =
                vm.list(&args[0])?.iter().map(|part| text(vm, part)).collect();
            Ok(Value::text(parts?.concat()))
        }),
        method(SLICE, "fn join(&self, separator: &str) -> String", |vm, args, _| {
            let separator = text(vm, &args[1])?;
            let parts: Fallible<Vec<&str>> =
                vm.list(&args[0])?.iter().map(|part| text(vm, part)).collect();
            Ok(Value::text(parts?.join(separator)))
        }),
        method(SLICE, "fn sort(&mut self) where T: Ord", |vm, args, _| sort(vm, &args[0])),
        method(SLICE, "fn sort_unstable(&mut self) where T: Ord", |vm, args, _| sort(vm, &args[0])),
    ]
}

fn windows(vm: &Vm<'_>, list: &Value, size: usize, step: usize, partial: bool) -> Fallible<Value> {
    let length = vm.list(list)?.len();
    let list = list.alias();
    let iter = Iter::Windows { list, next: 0, size, step, length, partial };
    Ok(Value::Iter(Box::new(iter)))
}

fn sort(vm: &mut Vm<'_>, list: &Value) -> Fallible<Value> {
    let mut values: Vec<Value> = vm.list_mut(list)?.iter_mut().map(Value::take).collect();
    let mut fault = None;
    values.sort_by(|a, b| match vm.compare(a, b) {
        Ok(order) => order.unwrap_or(Ordering::Equal),
        Err(own) => {
            fault.get_or_insert(own);
            Ordering::Equal
        }
    });
    for (slot, value) in vm.list_mut(list)?.iter_mut().zip(values) {
        *slot = value;
    }
    fault.map_or(Ok(Value::Unit), Err)
}

/// Sorts by what a closure says of two elements, which lie on the stack meanwhile.
fn sort_with(
    vm: &mut Vm<'_>,
    list: &Value,
    order: impl Fn(&mut Vm<'_>, &Value, &Value) -> Fallible<Ordering>,
) -> Fallible<Value> {
    let mut values: Vec<Value> = vm.list_mut(list)?.iter_mut().map(Value::take).collect();
    let mut fault = None;
    values.sort_by(|a, b| {
        if fault.is_some() {
            return Ordering::Equal;
        }
        order(vm, a, b).unwrap_or_else(|own| {
            fault.get_or_insert(own);
            Ordering::Equal
        })
    });
    for (slot, value) in vm.list_mut(list)?.iter_mut().zip(values) {
        *slot = value;
    }
    fault.map_or(Ok(Value::Unit), Err)
}

pub fn to_ordering(value: &Value) -> Ordering {
    match value {
        Value::Int(order) => order.cmp(&0),
        _ => Ordering::Equal,
    }
}

fn closures() -> Vec<Row> {
    vec![
        method(VEC, "fn retain(&mut self, keep: impl FnMut(&T) -> bool)", |vm, args, _| {
            let list = std::mem::take(vm.vec_mut(&args[0])?);
            let mut out = Vec::with_capacity(list.len());
            let mut rest = list.into_iter();
            let mut fault = None;
            for value in rest.by_ref() {
                match vm.ask(&args[1], &value) {
                    Ok(true) => out.push(value),
                    Ok(false) => {}
                    Err(own) => {
                        out.push(value);
                        fault = Some(own);
                        break;
                    }
                }
            }
            out.extend(rest);
            *vm.vec_mut(&args[0])? = out;
            fault.map_or(Ok(Value::Unit), Err)
        }),
        method(
            SLICE,
            "fn sort_by(&mut self, order: impl FnMut(&T, &T) -> Ordering)",
            |vm, args, _| {
                let list = args[0].alias();
                let function = args[1].alias();
                sort_with(vm, &list, |vm, a, b| {
                    let order = vm.call_function(&function, vec![a.alias(), b.alias()])?;
                    Ok(to_ordering(&order))
                })
            },
        ),
        method(
            SLICE,
            "fn sort_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K)",
            |vm, args, _| {
                let list = args[0].alias();
                let function = args[1].alias();
                sort_with(vm, &list, |vm, a, b| {
                    let a = vm.call_with_reference(&function, a)?;
                    let b = vm.call_with_reference(&function, b)?;
                    Ok(vm.compare(&a, &b)?.unwrap_or(Ordering::Equal))
                })
            },
        ),
        method(
            "[T; N]",
            "fn map<U>(self, function: impl FnMut(T) -> U) -> [U; N]",
            |vm, args, _| {
                let Value::List(values) = take(args, 0) else {
                    return Err(crate::interrupt::internal("a list"));
                };
                let mut out = Vec::with_capacity(values.len());
                for value in values {
                    out.push(vm.call_function(&args[1], vec![value])?);
                }
                Ok(Value::List(out))
            },
        ),
        free(
            "std::array::from_fn",
            "[T; N]",
            "fn from_fn(function: impl FnMut(usize) -> T) -> [T; N]",
            |vm, args, meta| {
                let crate::ty::Ty::Array(_, length) = &meta.ret else {
                    return Err(crate::interrupt::internal("an array"));
                };
                let crate::ty::Ty::Const(length) = **length else {
                    return Err(crate::interrupt::internal("a length"));
                };
                let mut out = Vec::new();
                for index in 0..length {
                    let index = Value::Int(i128::from(index));
                    out.push(vm.call_function(&args[0], vec![index])?);
                }
                Ok(Value::List(out))
            },
        ),
        method("bool", "fn then<T>(self, make: impl FnOnce() -> T) -> Option<T>", |vm, args, _| {
            if truth(vm.peel(&args[0])?)? {
                let value = vm.call_function(&args[1], Vec::new())?;
                return Ok(Value::some(value));
            }
            Ok(Value::none())
        }),
        method("bool", "fn then_some<T>(self, value: T) -> Option<T>", |vm, args, _| {
            let holds = truth(vm.peel(&args[0])?)?;
            Ok(if holds { Value::some(take(args, 1)) } else { Value::none() })
        }),
    ]
}
