//! Iterators of a running cell: lazy, as Rust's are.

use crate::interrupt::Fallible;
use crate::value::{RangeValue, Value};
use crate::vm::Vm;
use std::collections::VecDeque;

#[derive(Debug)]
pub enum Iter {
    /// The next number and the last one, inclusive; of characters when `chars`.
    Range {
        next: i128,
        last: i128,
        chars: bool,
    },
    Owned(VecDeque<Value>),
    /// References to the elements of a list from `next` to `end`.
    Elements {
        list: Value,
        next: usize,
        end: usize,
        mutable: bool,
    },
    Map(Box<Iter>, Value),
    Filter(Box<Iter>, Value),
    FilterMap(Box<Iter>, Value),
    FlatMap {
        outer: Box<Iter>,
        function: Value,
        inner: Option<Box<Iter>>,
    },
    Inspect(Box<Iter>, Value),
    Scan {
        inner: Box<Iter>,
        state: Value,
        function: Value,
        done: bool,
    },
    Enumerate(Box<Iter>, usize),
    Zip(Box<Iter>, Box<Iter>),
    Rev(Box<Iter>),
    StepBy {
        inner: Box<Iter>,
        step: usize,
        started: bool,
    },
    Take(Box<Iter>, usize),
    Skip(Box<Iter>, usize),
    TakeWhile(Box<Iter>, Option<Value>),
    SkipWhile(Box<Iter>, Option<Value>),
    Chain(Box<Iter>, Box<Iter>),
    Cloned(Box<Iter>),
    Windows {
        list: Value,
        next: usize,
        size: usize,
        step: usize,
        length: usize,
        /// `chunks`: the last one may be shorter.
        partial: bool,
    },
}

impl Iter {
    pub fn owned(values: impl IntoIterator<Item = Value>) -> Iter {
        Iter::Owned(values.into_iter().collect())
    }

    pub fn range(range: &RangeValue) -> Iter {
        let last = match (range.end, range.inclusive) {
            (Some(end), true) => end,
            (Some(end), false) => end - 1,
            (None, _) => i128::MAX,
        };
        Iter::Range { next: range.start.unwrap_or(0), last, chars: range.chars }
    }

    pub fn copy_with(&self, copy: &dyn Fn(&Value) -> Value) -> Iter {
        let again = |iter: &Iter| Box::new(iter.copy_with(copy));
        match self {
            Iter::Range { next, last, chars } => {
                Iter::Range { next: *next, last: *last, chars: *chars }
            }
            Iter::Owned(values) => Iter::Owned(values.iter().map(copy).collect()),
            Iter::Elements { list, next, end, mutable } => {
                Iter::Elements { list: list.clone(), next: *next, end: *end, mutable: *mutable }
            }
            Iter::Map(inner, function) => Iter::Map(again(inner), copy(function)),
            Iter::Filter(inner, function) => Iter::Filter(again(inner), copy(function)),
            Iter::FilterMap(inner, function) => Iter::FilterMap(again(inner), copy(function)),
            Iter::FlatMap { outer, function, inner } => Iter::FlatMap {
                outer: again(outer),
                function: copy(function),
                inner: inner.as_deref().map(again),
            },
            Iter::Inspect(inner, function) => Iter::Inspect(again(inner), copy(function)),
            Iter::Scan { inner, state, function, done } => Iter::Scan {
                inner: again(inner),
                state: copy(state),
                function: copy(function),
                done: *done,
            },
            Iter::Enumerate(inner, count) => Iter::Enumerate(again(inner), *count),
            Iter::Zip(a, b) => Iter::Zip(again(a), again(b)),
            Iter::Rev(inner) => Iter::Rev(again(inner)),
            Iter::StepBy { inner, step, started } => {
                Iter::StepBy { inner: again(inner), step: *step, started: *started }
            }
            Iter::Take(inner, count) => Iter::Take(again(inner), *count),
            Iter::Skip(inner, count) => Iter::Skip(again(inner), *count),
            Iter::TakeWhile(inner, function) => {
                Iter::TakeWhile(again(inner), function.as_ref().map(copy))
            }
            Iter::SkipWhile(inner, function) => {
                Iter::SkipWhile(again(inner), function.as_ref().map(copy))
            }
            Iter::Chain(a, b) => Iter::Chain(again(a), again(b)),
            Iter::Cloned(inner) => Iter::Cloned(again(inner)),
            Iter::Windows { list, next, size, step, length, partial } => Iter::Windows {
                list: list.clone(),
                next: *next,
                size: *size,
                step: *step,
                length: *length,
                partial: *partial,
            },
        }
    }

    /// The next value.
    ///
    /// # Errors
    /// A fault of a closure in the chain.
    pub fn next(&mut self, vm: &mut Vm<'_>) -> Fallible<Option<Value>> {
        Ok(match self {
            Iter::Range { next, last, chars } => {
                if *next > *last {
                    return Ok(None);
                }
                let value = *next;
                *next += 1;
                Some(number(value, *chars))
            }
            Iter::Owned(values) => values.pop_front(),
            Iter::Elements { list, next, end, mutable } => {
                if *next >= *end {
                    return Ok(None);
                }
                *next += 1;
                Some(vm.element(list, *next - 1, *mutable)?)
            }
            Iter::Map(inner, function) => match inner.next(vm)? {
                Some(value) => Some(vm.call_function(function, vec![value])?),
                None => None,
            },
            Iter::Filter(inner, function) => loop {
                let Some(value) = inner.next(vm)? else { return Ok(None) };
                if vm.ask(function, &value)? {
                    break Some(value);
                }
            },
            Iter::FilterMap(inner, function) => loop {
                let Some(value) = inner.next(vm)? else { return Ok(None) };
                if let Value::Option(Some(value)) = vm.call_function(function, vec![value])? {
                    break Some(*value);
                }
            },
            Iter::FlatMap { outer, function, inner } => loop {
                if let Some(own) = inner
                    && let Some(value) = own.next(vm)?
                {
                    break Some(value);
                }
                let Some(value) = outer.next(vm)? else { return Ok(None) };
                let made = match &*function {
                    Value::Unit => value,
                    function => vm.call_function(function, vec![value])?,
                };
                *inner = Some(Box::new(vm.iterate(made)?));
            },
            Iter::Inspect(inner, function) => match inner.next(vm)? {
                Some(value) => {
                    vm.call_with_reference(function, &value)?;
                    Some(value)
                }
                None => None,
            },
            Iter::Scan { inner, state, function, done } => {
                if *done {
                    return Ok(None);
                }
                let Some(value) = inner.next(vm)? else { return Ok(None) };
                match vm.call_with_state(function, state, value)? {
                    Value::Option(Some(value)) => Some(*value),
                    _ => {
                        *done = true;
                        None
                    }
                }
            }
            Iter::Enumerate(inner, count) => match inner.next(vm)? {
                Some(value) => {
                    *count += 1;
                    let index = Value::Int(*count as i128 - 1);
                    Some(Value::Tuple(vec![index, value]))
                }
                None => None,
            },
            Iter::Zip(a, b) => match a.next(vm)? {
                Some(a) => b.next(vm)?.map(|b| Value::Tuple(vec![a, b])),
                None => None,
            },
            Iter::Rev(inner) => inner.next_back(vm)?,
            Iter::StepBy { inner, step, started } => {
                if *started {
                    for _ in 1..*step {
                        if inner.next(vm)?.is_none() {
                            return Ok(None);
                        }
                    }
                }
                *started = true;
                inner.next(vm)?
            }
            Iter::Take(inner, count) => {
                if *count == 0 {
                    return Ok(None);
                }
                *count -= 1;
                inner.next(vm)?
            }
            Iter::Skip(inner, count) => {
                while *count > 0 {
                    *count -= 1;
                    if inner.next(vm)?.is_none() {
                        return Ok(None);
                    }
                }
                inner.next(vm)?
            }
            Iter::TakeWhile(inner, function) => {
                let Some(own) = function else { return Ok(None) };
                let Some(value) = inner.next(vm)? else { return Ok(None) };
                if vm.ask(own, &value)? {
                    Some(value)
                } else {
                    *function = None;
                    None
                }
            }
            Iter::SkipWhile(inner, function) => loop {
                let Some(value) = inner.next(vm)? else { return Ok(None) };
                let skip = match function {
                    Some(own) => vm.ask(own, &value)?,
                    None => false,
                };
                if !skip {
                    *function = None;
                    break Some(value);
                }
            },
            Iter::Chain(a, b) => match a.next(vm)? {
                Some(value) => Some(value),
                None => b.next(vm)?,
            },
            Iter::Cloned(inner) => match inner.next(vm)? {
                Some(value) => Some(vm.clone_of(&value)?),
                None => None,
            },
            Iter::Windows { list, next, size, step, length, partial } => {
                let end = (*next + *size).min(*length);
                let fits = if *partial { *next < *length } else { *next + *size <= *length };
                if !fits {
                    return Ok(None);
                }
                let start = *next;
                *next += *step;
                Some(vm.slice_of(list, start, end)?)
            }
        })
    }

    /// The last value that is left.
    ///
    /// # Errors
    /// A fault of a closure in the chain.
    pub fn next_back(&mut self, vm: &mut Vm<'_>) -> Fallible<Option<Value>> {
        Ok(match self {
            Iter::Range { next, last, chars } => {
                if *next > *last {
                    return Ok(None);
                }
                let value = *last;
                *last -= 1;
                Some(number(value, *chars))
            }
            Iter::Owned(values) => values.pop_back(),
            Iter::Elements { list, next, end, mutable } => {
                if *next >= *end {
                    return Ok(None);
                }
                *end -= 1;
                Some(vm.element(list, *end, *mutable)?)
            }
            Iter::Map(inner, function) => match inner.next_back(vm)? {
                Some(value) => Some(vm.call_function(function, vec![value])?),
                None => None,
            },
            Iter::Filter(inner, function) => loop {
                let Some(value) = inner.next_back(vm)? else { return Ok(None) };
                if vm.ask(function, &value)? {
                    break Some(value);
                }
            },
            Iter::Cloned(inner) => match inner.next_back(vm)? {
                Some(value) => Some(vm.clone_of(&value)?),
                None => None,
            },
            Iter::Rev(inner) => inner.next(vm)?,
            Iter::Chain(a, b) => match b.next_back(vm)? {
                Some(value) => Some(value),
                None => a.next_back(vm)?,
            },
            other => {
                // The rest need to know their length: they are run to their end once.
                let mut all = VecDeque::new();
                while let Some(value) = other.next(vm)? {
                    all.push_back(value);
                }
                let last = all.pop_back();
                *other = Iter::Owned(all);
                last
            }
        })
    }

    /// Everything that is left.
    ///
    /// # Errors
    /// A fault of a closure in the chain, or an interrupt.
    pub fn drain(&mut self, vm: &mut Vm<'_>) -> Fallible<Vec<Value>> {
        let mut out = Vec::new();
        while let Some(value) = self.next(vm)? {
            out.push(value);
            if out.len() % 1024 == 0 {
                vm.check_interrupt()?;
            }
        }
        Ok(out)
    }
}

/// A number of a range, or the character that it stands for.
pub fn number(value: i128, chars: bool) -> Value {
    if chars {
        return Value::Char(char::from_u32(value as u32).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    Value::Int(value)
}
