//! Iterators: every iterator of the tier has the one type `Iter<T>`.

use super::lists::to_ordering;
use super::{Row, count, method, ordering, size, take};
use crate::arithmetic;
use crate::code::Num;
use crate::hir::BinaryOp;
use crate::interrupt::{Fallible, internal, panic};
use crate::iter::Iter;
use crate::ty::Ty;
use crate::value::Value;
use crate::vm::{Vm, truth};
use std::cmp::Ordering;

const ITER: &str = "Iter<T>";

pub fn rows() -> Vec<Row> {
    let mut rows = adaptors();
    rows.extend(ends());
    rows.extend(searches());
    rows.extend(ranges());
    rows
}

/// The receiver as an iterator; ranges are iterators themselves.
fn own(value: Value, vm: &mut Vm<'_>) -> Fallible<Box<Iter>> {
    match value {
        Value::Iter(iter) => Ok(iter),
        other => Ok(Box::new(vm.iterate(other)?)),
    }
}

fn iter(iter: Iter) -> Fallible<Value> {
    Ok(Value::Iter(Box::new(iter)))
}

/// Runs with the iterator behind a mutable reference, which keeps what is left.
fn behind<T>(
    vm: &mut Vm<'_>,
    place: &Value,
    run: impl FnOnce(&mut Vm<'_>, &mut Iter) -> Fallible<T>,
) -> Fallible<T> {
    let value = vm.get_mut(place)?.take();
    let mut iter = match value {
        Value::Iter(iter) => iter,
        Value::Range(range) => {
            let mut iter = Iter::range(&range);
            let out = run(vm, &mut iter);
            let Iter::Range { next, .. } = iter else { return Err(internal("a range")) };
            let rest = crate::value::RangeValue { start: Some(next), ..*range };
            *vm.get_mut(place)? = Value::Range(Box::new(rest));
            return out;
        }
        _ => return Err(internal("an iterator")),
    };
    let out = run(vm, &mut iter);
    *vm.get_mut(place)? = Value::Iter(iter);
    out
}

fn adaptors() -> Vec<Row> {
    vec![
        method(ITER, "fn into_iter(self) -> Iter<T>", |vm, args, _| {
            Ok(Value::Iter(own(take(args, 0), vm)?))
        }),
        method(ITER, "fn iter(&self) -> Iter<T>", |vm, args, _| {
            let value = vm.peel(&args[0])?.alias();
            Ok(Value::Iter(own(value, vm)?))
        }),
        method(ITER, "fn map<U>(self, function: impl FnMut(T) -> U) -> Iter<U>", |vm, args, _| {
            iter(Iter::Map(own(take(args, 0), vm)?, take(args, 1)))
        }),
        method(ITER, "fn filter(self, keep: impl FnMut(&T) -> bool) -> Iter<T>", |vm, args, _| {
            iter(Iter::Filter(own(take(args, 0), vm)?, take(args, 1)))
        }),
        method(
            ITER,
            "fn filter_map<U>(self, function: impl FnMut(T) -> Option<U>) -> Iter<U>",
            |vm, args, _| iter(Iter::FilterMap(own(take(args, 0), vm)?, take(args, 1))),
        ),
        method(
            ITER,
            "fn flat_map<U, I: IntoIter<U>>(self, function: impl FnMut(T) -> I) -> Iter<U>",
            |vm, args, _| {
                let (outer, function) = (own(take(args, 0), vm)?, take(args, 1));
                iter(Iter::FlatMap { outer, function, inner: None })
            },
        ),
        method(ITER, "fn flatten<U>(self) -> Iter<U> where T: IntoIter<U>", |vm, args, _| {
            let outer = own(take(args, 0), vm)?;
            // Without a function every value is gone through as it is.
            iter(Iter::FlatMap { outer, function: Value::Unit, inner: None })
        }),
        method(
            ITER,
            "fn scan<S, U>(self, start: S, function: impl FnMut(&mut S, T) -> Option<U>) -> Iter<U>",
            |vm, args, _| {
                let inner = own(take(args, 0), vm)?;
                let (state, function) = (take(args, 1), take(args, 2));
                iter(Iter::Scan { inner, state, function, done: false })
            },
        ),
        method(ITER, "fn inspect(self, function: impl FnMut(&T)) -> Iter<T>", |vm, args, _| {
            iter(Iter::Inspect(own(take(args, 0), vm)?, take(args, 1)))
        }),
        method(ITER, "fn enumerate(self) -> Iter<(usize, T)>", |vm, args, _| {
            iter(Iter::Enumerate(own(take(args, 0), vm)?, 0))
        }),
        method(ITER, "fn zip<U, I: IntoIter<U>>(self, other: I) -> Iter<(T, U)>", |vm, args, _| {
            let first = own(take(args, 0), vm)?;
            let second = take(args, 1);
            iter(Iter::Zip(first, Box::new(vm.iterate(second)?)))
        }),
        method(ITER, "fn chain<I: IntoIter<T>>(self, other: I) -> Iter<T>", |vm, args, _| {
            let first = own(take(args, 0), vm)?;
            let second = take(args, 1);
            iter(Iter::Chain(first, Box::new(vm.iterate(second)?)))
        }),
        method(ITER, "fn rev(self) -> Iter<T>", |vm, args, _| {
            iter(Iter::Rev(own(take(args, 0), vm)?))
        }),
        method(ITER, "fn step_by(self, step: usize) -> Iter<T>", |vm, args, _| {
            let step = size(vm, &args[1])?;
            if step == 0 {
                return Err(panic("assertion failed: step != 0"));
            }
            iter(Iter::StepBy { inner: own(take(args, 0), vm)?, step, started: false })
        }),
        method(ITER, "fn take(self, count: usize) -> Iter<T>", |vm, args, _| {
            let count = size(vm, &args[1])?;
            iter(Iter::Take(own(take(args, 0), vm)?, count))
        }),
        method(ITER, "fn skip(self, count: usize) -> Iter<T>", |vm, args, _| {
            let count = size(vm, &args[1])?;
            iter(Iter::Skip(own(take(args, 0), vm)?, count))
        }),
        method(
            ITER,
            "fn take_while(self, keep: impl FnMut(&T) -> bool) -> Iter<T>",
            |vm, args, _| iter(Iter::TakeWhile(own(take(args, 0), vm)?, Some(take(args, 1)))),
        ),
        method(
            ITER,
            "fn skip_while(self, skip: impl FnMut(&T) -> bool) -> Iter<T>",
            |vm, args, _| iter(Iter::SkipWhile(own(take(args, 0), vm)?, Some(take(args, 1)))),
        ),
        method("Iter<&T>", "fn cloned(self) -> Iter<T>", |vm, args, _| {
            iter(Iter::Cloned(own(take(args, 0), vm)?))
        }),
        method("Iter<&T>", "fn copied(self) -> Iter<T>", |vm, args, _| {
            iter(Iter::Cloned(own(take(args, 0), vm)?))
        }),
    ]
}

fn ends() -> Vec<Row> {
    vec![
        method(ITER, "fn next(&mut self) -> Option<T>", |vm, args, _| {
            let next = behind(vm, &args[0], |vm, iter| iter.next(vm))?;
            Ok(Value::Option(next.map(Box::new)))
        }),
        method(ITER, "fn nth(&mut self, at: usize) -> Option<T>", |vm, args, _| {
            let at = size(vm, &args[1])?;
            let found = behind(vm, &args[0], |vm, iter| {
                for _ in 0..at {
                    if iter.next(vm)?.is_none() {
                        return Ok(None);
                    }
                }
                iter.next(vm)
            })?;
            Ok(Value::Option(found.map(Box::new)))
        }),
        method(ITER, "fn count(self) -> usize", |vm, args, _| {
            let mut iter = own(take(args, 0), vm)?;
            Ok(count(iter.drain(vm)?.len()))
        }),
        method(ITER, "fn len(&self) -> usize", |vm, args, _| {
            let copy = vm.peel(&args[0])?.alias();
            let mut iter = own(copy, vm)?;
            Ok(count(iter.drain(vm)?.len()))
        }),
        method(ITER, "fn last(self) -> Option<T>", |vm, args, _| {
            let mut iter = own(take(args, 0), vm)?;
            Ok(Value::Option(iter.drain(vm)?.pop().map(Box::new)))
        }),
        method(ITER, "fn sum<S: Sum<T>>(self) -> S", |vm, args, meta| {
            total(vm, args, &meta.ret, BinaryOp::Add)
        }),
        method(ITER, "fn product<S: Product<T>>(self) -> S", |vm, args, meta| {
            total(vm, args, &meta.ret, BinaryOp::Mul)
        }),
        method(ITER, "fn collect<B: FromIterator<T>>(self) -> B", |vm, args, meta| {
            let mut iter = own(take(args, 0), vm)?;
            let values = iter.drain(vm)?;
            collect(vm, values, &meta.ret)
        }),
        method(
            ITER,
            "fn partition<B: FromIterator<T>>(self, test: impl FnMut(&T) -> bool) -> (B, B)",
            |vm, args, meta| {
                let mut iter = own(take(args, 0), vm)?;
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                while let Some(value) = iter.next(vm)? {
                    if vm.ask(&args[1], &value)? {
                        yes.push(value);
                    } else {
                        no.push(value);
                    }
                }
                let Ty::Tuple(parts) = &meta.ret else { return Err(internal("a pair")) };
                Ok(Value::Tuple(vec![collect(vm, yes, &parts[0])?, collect(vm, no, &parts[1])?]))
            },
        ),
        method(ITER, "fn for_each(self, function: impl FnMut(T))", |vm, args, _| {
            let mut iter = own(take(args, 0), vm)?;
            while let Some(value) = iter.next(vm)? {
                vm.check_interrupt()?;
                vm.call_function(&args[1], vec![value])?;
            }
            Ok(Value::Unit)
        }),
        method(
            ITER,
            "fn fold<B>(self, start: B, function: impl FnMut(B, T) -> B) -> B",
            |vm, args, _| {
                let mut iter = own(take(args, 0), vm)?;
                let mut state = take(args, 1);
                while let Some(value) = iter.next(vm)? {
                    vm.check_interrupt()?;
                    state = vm.call_function(&args[2], vec![state, value])?;
                }
                Ok(state)
            },
        ),
        method(
            ITER,
            "fn reduce(self, function: impl FnMut(T, T) -> T) -> Option<T>",
            |vm, args, _| {
                let mut iter = own(take(args, 0), vm)?;
                let Some(mut state) = iter.next(vm)? else { return Ok(Value::none()) };
                while let Some(value) = iter.next(vm)? {
                    vm.check_interrupt()?;
                    state = vm.call_function(&args[1], vec![state, value])?;
                }
                Ok(Value::some(state))
            },
        ),
    ]
}

/// Sums and products, checked as the loop over `+` would be.
fn total(vm: &mut Vm<'_>, args: &mut [Value], ty: &Ty, op: BinaryOp) -> Fallible<Value> {
    let num = Num::of(ty);
    let mut iter = own(take(args, 0), vm)?;
    let start = i32::from(op == BinaryOp::Mul);
    let mut state = match num {
        // An empty sum of floats is -0.0.
        Num::Float(_) if op == BinaryOp::Add => Value::Float(-0.0),
        Num::Float(_) => Value::Float(f64::from(start)),
        _ => Value::Int(i128::from(start)),
    };
    let mut steps = 0u32;
    while let Some(value) = iter.next(vm)? {
        steps += 1;
        if steps.is_multiple_of(1024) {
            vm.check_interrupt()?;
        }
        state = arithmetic::binary(op, num, &state, vm.peel(&value)?).map_err(panic)?;
    }
    Ok(state)
}

fn collect(vm: &Vm<'_>, values: Vec<Value>, ty: &Ty) -> Fallible<Value> {
    match ty {
        Ty::Named("String", _) => {
            let mut out = String::new();
            for value in &values {
                match vm.peel(value)? {
                    Value::Char(c) => out.push(*c),
                    Value::Text(text) => out.push_str(text),
                    _ => return Err(internal("a text")),
                }
            }
            Ok(Value::text(out))
        }
        Ty::Named("Option", inner) => {
            let mut out = Vec::with_capacity(values.len());
            for value in values {
                match value {
                    Value::Option(Some(value)) => out.push(*value),
                    _ => return Ok(Value::none()),
                }
            }
            Ok(Value::some(collect(vm, out, &inner[0])?))
        }
        _ => Ok(Value::List(values)),
    }
}

/// The best element, by `better(candidate, best)`.
fn best(
    vm: &mut Vm<'_>,
    value: Value,
    mut better: impl FnMut(&mut Vm<'_>, &Value, &Value) -> Fallible<bool>,
) -> Fallible<Value> {
    let mut iter = own(value, vm)?;
    let Some(mut best) = iter.next(vm)? else { return Ok(Value::none()) };
    while let Some(value) = iter.next(vm)? {
        if better(vm, &value, &best)? {
            best = value;
        }
    }
    Ok(Value::some(best))
}

fn order(vm: &Vm<'_>, a: &Value, b: &Value) -> Fallible<Ordering> {
    Ok(vm.compare(a, b)?.unwrap_or(Ordering::Equal))
}

fn searches() -> Vec<Row> {
    vec![
        method(ITER, "fn any(&mut self, test: impl FnMut(T) -> bool) -> bool", |vm, args, _| {
            let test = args[1].alias();
            let found = behind(vm, &args[0], |vm, iter| {
                while let Some(value) = iter.next(vm)? {
                    if truth(&vm.call_function(&test, vec![value])?)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            })?;
            Ok(Value::Bool(found))
        }),
        method(ITER, "fn all(&mut self, test: impl FnMut(T) -> bool) -> bool", |vm, args, _| {
            let test = args[1].alias();
            let every = behind(vm, &args[0], |vm, iter| {
                while let Some(value) = iter.next(vm)? {
                    if !truth(&vm.call_function(&test, vec![value])?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            })?;
            Ok(Value::Bool(every))
        }),
        method(
            ITER,
            "fn find(&mut self, test: impl FnMut(&T) -> bool) -> Option<T>",
            |vm, args, _| {
                let test = args[1].alias();
                let found = behind(vm, &args[0], |vm, iter| {
                    while let Some(value) = iter.next(vm)? {
                        if vm.ask(&test, &value)? {
                            return Ok(Some(value));
                        }
                    }
                    Ok(None)
                })?;
                Ok(Value::Option(found.map(Box::new)))
            },
        ),
        method(
            ITER,
            "fn position(&mut self, test: impl FnMut(T) -> bool) -> Option<usize>",
            |vm, args, _| {
                let test = args[1].alias();
                let found = behind(vm, &args[0], |vm, iter| {
                    let mut at = 0;
                    while let Some(value) = iter.next(vm)? {
                        if truth(&vm.call_function(&test, vec![value])?)? {
                            return Ok(Some(at));
                        }
                        at += 1;
                    }
                    Ok(None)
                })?;
                Ok(Value::Option(found.map(|at| Box::new(count(at)))))
            },
        ),
        method(ITER, "fn max(self) -> Option<T> where T: Ord", |vm, args, _| {
            best(vm, take(args, 0), |vm, value, best| Ok(order(vm, value, best)?.is_ge()))
        }),
        method(ITER, "fn min(self) -> Option<T> where T: Ord", |vm, args, _| {
            best(vm, take(args, 0), |vm, value, best| Ok(order(vm, value, best)?.is_lt()))
        }),
        method(
            ITER,
            "fn max_by(self, order: impl FnMut(&T, &T) -> Ordering) -> Option<T>",
            |vm, args, _| {
                let function = args[1].alias();
                best(vm, take(args, 0), |vm, value, best| {
                    let order = vm.call_function(&function, vec![value.alias(), best.alias()])?;
                    Ok(to_ordering(&order).is_ge())
                })
            },
        ),
        method(
            ITER,
            "fn min_by(self, order: impl FnMut(&T, &T) -> Ordering) -> Option<T>",
            |vm, args, _| {
                let function = args[1].alias();
                best(vm, take(args, 0), |vm, value, best| {
                    let order = vm.call_function(&function, vec![value.alias(), best.alias()])?;
                    Ok(to_ordering(&order).is_lt())
                })
            },
        ),
        method(
            ITER,
            "fn max_by_key<K: Ord>(self, key: impl FnMut(&T) -> K) -> Option<T>",
            |vm, args, _| {
                let function = args[1].alias();
                best(vm, take(args, 0), |vm, value, best| {
                    let a = vm.call_with_reference(&function, value)?;
                    let b = vm.call_with_reference(&function, best)?;
                    Ok(order(vm, &a, &b)?.is_ge())
                })
            },
        ),
        method(
            ITER,
            "fn min_by_key<K: Ord>(self, key: impl FnMut(&T) -> K) -> Option<T>",
            |vm, args, _| {
                let function = args[1].alias();
                best(vm, take(args, 0), |vm, value, best| {
                    let a = vm.call_with_reference(&function, value)?;
                    let b = vm.call_with_reference(&function, best)?;
                    Ok(order(vm, &a, &b)?.is_lt())
                })
            },
        ),
    ]
}

fn ranges() -> Vec<Row> {
    vec![
        method("Range<T>", "fn contains(&self, value: &T) -> bool", |vm, args, _| {
            let Value::Range(range) = vm.peel(&args[0])? else { return Err(internal("a range")) };
            let value = match vm.peel(&args[1])? {
                Value::Int(value) => *value,
                Value::Char(c) => i128::from(*c as u32),
                _ => return Err(internal("a number")),
            };
            let above = range.start.is_none_or(|start| start <= value);
            let below = range
                .end
                .is_none_or(|end| if range.inclusive { value <= end } else { value < end });
            Ok(Value::Bool(above && below))
        }),
        method("Range<T>", "fn is_empty(&self) -> bool", |vm, args, _| {
            let Value::Range(range) = vm.peel(&args[0])? else { return Err(internal("a range")) };
            let (start, end) = (range.start.unwrap_or(0), range.end.unwrap_or(i128::MAX));
            Ok(Value::Bool(if range.inclusive { start > end } else { start >= end }))
        }),
        method("Ordering", "fn reverse(self) -> Ordering", |_, args, _| {
            Ok(ordering(to_ordering(&args[0]).reverse()))
        }),
        method("Ordering", "fn then(self, other: Ordering) -> Ordering", |_, args, _| {
            Ok(ordering(to_ordering(&args[0]).then(to_ordering(&args[1]))))
        }),
    ]
}
