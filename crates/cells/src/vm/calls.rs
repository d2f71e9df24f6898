//! Calls: of compiled functions, of the surface, and back from the surface into closures.

use super::{CURRENT, Frame, Next, Origins, Vm, truth};
use crate::code::{Code, Operand, Slot};
use crate::interrupt::{Fallible, internal};
use crate::ir::Origin;
use crate::iter::Iter;
use crate::value::{ClosureValue, Ref, Value};
use std::sync::Arc;
use vramlab_array::surface::{Dyn, Item};

impl Vm<'_> {
    /// Pushes a frame; the run goes on in it.
    pub(super) fn enter(
        &mut self,
        code: Arc<Code>,
        dest: Slot,
        args: &[Operand],
        captures: Vec<Value>,
        closure: Option<Ref>,
        (base, origins): (usize, Origins),
    ) -> Fallible<Next> {
        let values = self.take_all(args, base)?;
        let dest = self.address(dest, base);
        let new_base = self.stack.len();
        self.stack.extend(values);
        self.stack.extend(captures);
        self.stack.resize_with(new_base + code.slots as usize, Value::default);
        self.frames.push(Frame { code, at: 0, base: new_base, dest, closure, origins });
        Ok(Next::Enter)
    }

    /// Where moved arguments come from.
    pub(super) fn origins(&self, args: &[Operand], base: usize, code: &Code, at: usize) -> Origins {
        let Some(restores) = code.restores.get(&at) else { return Vec::new() };
        let mut out = Vec::new();
        for restore in restores {
            let argument = args.get(restore.argument);
            let Some(Operand::Move(place)) = argument else { continue };
            if let Ok(value) = self.read(place, base)
                && holds_array(value)
                && let Ok(origin) = self.locate(&restore.place, base)
            {
                out.push((restore.argument, restore.path.clone(), origin));
            }
        }
        out
    }

    pub(super) fn call_value(
        &mut self,
        dest: Slot,
        callee: &Operand,
        args: &[Operand],
        base: usize,
        own: &Code,
        at: usize,
    ) -> Fallible<Next> {
        let origins = self.origins(args, base, own, at);
        let callee = self.take(callee, base)?;
        let (place, callee) = match callee {
            Value::Ref(place) => {
                let mut place = place;
                while let Value::Ref(next) = self.at(&place)? {
                    place = next.clone();
                }
                let shallow = match self.at_mut(&place)? {
                    Value::Closure(closure) => Value::Closure(Box::new(ClosureValue {
                        code: closure.code.clone(),
                        captures: std::mem::take(&mut closure.captures),
                    })),
                    other => other.alias(),
                };
                (Some(place), shallow)
            }
            other => (None, other),
        };
        match callee {
            Value::Closure(closure) => {
                if closure.captures.len() != closure.code.captures as usize {
                    return Err(internal("a closure that is running already"));
                }
                self.enter(closure.code, dest, args, closure.captures, place, (base, origins))
            }
            Value::Code(cell) => {
                let code = cell.code.get().ok_or_else(|| internal("a function's code"))?.clone();
                self.enter(code, dest, args, Vec::new(), None, (base, origins))
            }
            Value::Function(function) => {
                let values = self.take_all(args, base)?;
                let rescued = self.rescue(&values, &origins);
                let values: Fallible<Vec<Dyn>> =
                    values.into_iter().map(|value| self.to_dyn(value)).collect();
                let values = values?;
                let result = self.lend(|| function.call(values));
                let result = self.settle(result, rescued)?;
                self.put(dest, base, Value::from_dyn(result));
                Ok(Next::Go)
            }
            _ => Err(internal("a function")),
        }
    }

    /// Aliases of the arrays that a call takes: a failed call gives them back.
    pub(super) fn rescue(&self, values: &[Value], origins: &Origins) -> Vec<(Ref, Value)> {
        origins
            .iter()
            .filter_map(|(argument, path, origin)| {
                let mut value = values.get(*argument)?;
                for step in path {
                    value = value.child(*step)?;
                }
                Some((origin.clone(), value.alias()))
            })
            .collect()
    }

    pub(super) fn settle(
        &mut self,
        result: Fallible<Dyn>,
        rescued: Vec<(Ref, Value)>,
    ) -> Fallible<Dyn> {
        if result.is_err() {
            self.give_back(rescued);
        }
        result
    }

    pub(super) fn give_back(&mut self, rescued: Vec<(Ref, Value)>) {
        for (place, value) in rescued {
            if let Ok(slot) = self.at_mut(&place)
                && slot.is_gone()
            {
                *slot = value;
            }
        }
    }

    /// Hands this run to callbacks of the prelude while `call` lasts.
    pub(super) fn lend<T>(&mut self, call: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
        struct Restore(*mut Vm<'static>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let origin = Origin { cell: self.cell, span: self.span };
        let before = vramlab_array::set_origin(origin);
        let own: *mut Vm<'_> = self;
        let outcome = {
            let _restore = Restore(CURRENT.replace(own.cast()));
            vramlab_array::catch(call)
        };
        vramlab_array::set_origin(before);
        match outcome {
            Ok(result) => result,
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn surface(
        &mut self,
        item: &Item,
        args: &[Operand],
        base: usize,
        code: &Code,
        at: usize,
    ) -> Fallible<Value> {
        let origins = self.origins(args, base, code, at);
        let values = self.take_all(args, base)?;
        let rescued = self.rescue(&values, &origins);
        let values: Fallible<Vec<Dyn>> =
            values.into_iter().map(|value| self.to_dyn(value)).collect();
        let values = values?;
        let call = item.call;
        let result = self.lend(|| call(values));
        Ok(Value::from_dyn(self.settle(result, rescued)?))
    }

    /// Calls a function value with arguments; for iterators and library functions.
    ///
    /// # Errors
    /// A fault of the body.
    pub fn call_function(&mut self, function: &Value, arguments: Vec<Value>) -> Fallible<Value> {
        match function {
            Value::Ref(place) => {
                let mut place = place.clone();
                while let Value::Ref(next) = self.at(&place)? {
                    place = next.clone();
                }
                let (code, captures) = match self.at_mut(&place)? {
                    Value::Closure(closure) => {
                        (closure.code.clone(), std::mem::take(&mut closure.captures))
                    }
                    other => {
                        let other = other.alias();
                        return self.call_function(&other, arguments);
                    }
                };
                let (result, captures) = self.run_code(&code, arguments, captures)?;
                if let Ok(Value::Closure(closure)) = self.at_mut(&place) {
                    closure.captures = captures;
                }
                Ok(result)
            }
            Value::Closure(closure) => {
                let captures = closure.captures.iter().map(Value::alias).collect();
                Ok(self.run_code(&closure.code, arguments, captures)?.0)
            }
            Value::Code(cell) => {
                let code = cell.code.get().ok_or_else(|| internal("a function's code"))?.clone();
                Ok(self.run_code(&code, arguments, Vec::new())?.0)
            }
            Value::Function(function) => {
                let values: Fallible<Vec<Dyn>> =
                    arguments.into_iter().map(|value| self.to_dyn(value)).collect();
                let values = values?;
                let function = function.clone();
                Ok(Value::from_dyn(self.lend(|| function.call(values))?))
            }
            _ => Err(internal("a function")),
        }
    }

    /// Calls a predicate with a reference to a value.
    pub fn ask(&mut self, function: &Value, value: &Value) -> Fallible<bool> {
        truth(&self.call_with_reference(function, value)?)
    }

    /// The value lies on the stack while the function looks at it.
    pub fn call_with_reference(&mut self, function: &Value, value: &Value) -> Fallible<Value> {
        if is_snapshot(value) {
            return self.call_function(function, vec![value.alias()]);
        }
        let slot = self.stack.len() as u32;
        self.stack.push(value.alias());
        let reference = Value::Ref(Ref { slot, path: None });
        let result = self.call_function(function, vec![reference]);
        self.stack.truncate(slot as usize);
        result
    }

    /// Calls a function with a mutable reference to a state, which lies on the stack meanwhile.
    pub fn call_with_state(
        &mut self,
        function: &Value,
        state: &mut Value,
        value: Value,
    ) -> Fallible<Value> {
        let slot = self.stack.len() as u32;
        self.stack.push(state.take());
        let reference = Value::Ref(Ref { slot, path: None });
        let result = self.call_function(function, vec![reference, value]);
        if let Some(own) = self.stack.get_mut(slot as usize) {
            *state = own.take();
        }
        self.stack.truncate(slot as usize);
        result
    }

    /// What `for` goes through.
    ///
    /// # Errors
    /// The value cannot be iterated, which the check excludes.
    pub fn iterate(&mut self, value: Value) -> Fallible<Iter> {
        Ok(match value {
            Value::List(values) => Iter::owned(values),
            Value::Range(range) => Iter::range(&range),
            Value::Iter(iter) => *iter,
            Value::Option(value) => Iter::owned(value.map(|value| *value)),
            Value::Ref(place) => match self.at(&place)? {
                Value::List(values) => {
                    let end = values.len();
                    Iter::Elements { list: Value::Ref(place), next: 0, end, mutable: true }
                }
                Value::Iter(_) => {
                    let Value::Iter(mut iter) = self.at_mut(&place)?.take() else {
                        return Err(internal("an iterator"));
                    };
                    // `for x in &mut iter`: what is left is taken now.
                    let rest = iter.drain(self)?;
                    *self.at_mut(&place)? = Value::Iter(Box::new(Iter::owned([])));
                    Iter::owned(rest)
                }
                Value::Option(value) => {
                    let some = value.is_some();
                    Iter::owned(some.then(|| Value::Ref(place.child(0))))
                }
                Value::Ref(_) | Value::Slice(_) => {
                    let inner = self.at(&place)?.alias();
                    return self.iterate(inner);
                }
                Value::Range(range) => Iter::range(&range.clone()),
                _ => return Err(internal("something to iterate")),
            },
            Value::Slice(slice) => {
                let end = slice.end - slice.start;
                Iter::Elements { list: Value::Slice(slice), next: 0, end, mutable: true }
            }
            _ => return Err(internal("something to iterate")),
        })
    }
}

/// Small values without identity: a shared reference to one is a copy of it.
pub fn is_snapshot(value: &Value) -> bool {
    matches!(
        value,
        Value::Unit
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Text(_)
            | Value::DType(_)
            | Value::Code(_)
            | Value::Record(_)
            | Value::Range(_)
    )
}

pub(super) fn holds_array(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::List(values) | Value::Tuple(values) => values.iter().any(holds_array),
        Value::Struct(_, fields) => fields.iter().any(holds_array),
        Value::Option(Some(value)) => holds_array(value),
        _ => false,
    }
}
