//! The interpreter: runs checked code on a stack of values. The session's variables lie at the
//! bottom of the stack, so a reference is a slot's number and stays valid across cells.

use crate::arithmetic;
use crate::code::{Code, GLOBAL, Inst, Num, Operand, Place, Slot, Step, Test};
use crate::format::Layout;
use crate::hir::{BinaryOp, Binding, Count, Piece};
use crate::host::Host;
use crate::interrupt::{Fallible, internal, interrupted, panic};
use crate::ir::{Fault, FaultKind, Origin, Span};
use crate::iter::Iter;
use crate::show;
use crate::ty::Ty;
use crate::value::{ClosureValue, RangeValue, Ref, SliceRef, Value};
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;
use vramlab_array::surface::{self, Callable, Dyn, Item, Operator};

/// Calls deeper than this end in an error, as rustc's program would overflow its stack.
const DEEPEST_CALL: usize = 60_000;
/// Calls through the prelude and through iterators recurse on the machine's own stack.
const DEEPEST_NATIVE: usize = 64;

struct Frame {
    code: Arc<Code>,
    at: usize,
    base: usize,
    /// Where the result goes, absolute.
    dest: usize,
    /// The closure whose captured values lie in this frame meanwhile.
    closure: Option<Ref>,
    /// Where the arguments were moved from: a failed call gives them back.
    origins: Origins,
}

/// Which part of which argument came from which place.
type Origins = Vec<(usize, Vec<u32>, Ref)>;

/// A run in progress.
pub struct Vm<'h> {
    pub stack: Vec<Value>,
    frames: Vec<Frame>,
    pub host: &'h mut dyn Host,
    native_depth: usize,
    /// Where the running instruction stands.
    cell: u32,
    span: Span,
}

thread_local! {
    /// The run that is inside a call of the prelude; callbacks go on in it.
    static CURRENT: Cell<*mut Vm<'static>> = const { Cell::new(std::ptr::null_mut()) };
}

/// A host for callbacks that outlive every run.
struct Nobody;

impl Host for Nobody {
    fn stdout(&mut self, _: &str) {}
    fn stderr(&mut self, _: &str) {}
    fn display(&mut self, _: &Dyn) {}
    fn input(&mut self, _: &str) -> Result<String, Fault> {
        Err(Fault::new(FaultKind::Argument, "input", "there is nobody to ask"))
    }
    fn interrupted(&self) -> bool {
        false
    }
    fn bound(&mut self, _: &str, _: &Dyn) {}
}

/// Runs `body` in the run that called the prelude, or in a fresh one.
fn in_current<T>(body: impl FnOnce(&mut Vm<'_>) -> T) -> T {
    let current = CURRENT.replace(std::ptr::null_mut());
    if current.is_null() {
        let mut host = Nobody;
        return body(&mut Vm::new(Vec::new(), &mut host));
    }
    struct Restore(*mut Vm<'static>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let restore = Restore(current);
    // SAFETY: the pointer was made from the `&mut Vm` that is suspended in `lend` below on this
    // thread, which does not touch the machine until the callback has returned; `CURRENT` is null
    // while the borrow lasts, so there is no second one.
    let vm = unsafe { &mut *restore.0 };
    body(vm)
}

/// A closure or `fn` item as the prelude calls it.
#[derive(Debug)]
pub struct Routine {
    code: Arc<Code>,
    captures: Vec<Value>,
}

impl Callable for Routine {
    fn call(&self, arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
        in_current(|vm| {
            let arguments = arguments.into_iter().map(Value::from_dyn).collect();
            let captures = self.captures.iter().map(Value::alias).collect();
            let (result, _) = vm.run_code(&self.code, arguments, captures)?;
            vm.to_dyn(result)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<'h> Vm<'h> {
    pub fn new(stack: Vec<Value>, host: &'h mut dyn Host) -> Vm<'h> {
        Vm { stack, frames: Vec::new(), host, native_depth: 0, cell: 0, span: Span::default() }
    }

    /// Runs a body to its end: its result, and its captured values as they are now.
    ///
    /// # Errors
    /// The fault that ended it, with its place.
    pub fn run_code(
        &mut self,
        code: &Arc<Code>,
        arguments: Vec<Value>,
        captures: Vec<Value>,
    ) -> Fallible<(Value, Vec<Value>)> {
        if self.native_depth >= DEEPEST_NATIVE {
            return Err(panic("stack overflow: calls nest too deeply"));
        }
        self.native_depth += 1;
        let (cell, span) = (self.cell, self.span);
        let dest = self.stack.len();
        self.stack.push(Value::Gone);
        let base = self.stack.len();
        self.stack.extend(arguments);
        self.stack.extend(captures);
        self.stack.resize_with(base + code.slots as usize, Value::default);
        let floor = self.frames.len();
        self.frames.push(Frame {
            code: code.clone(),
            at: 0,
            base,
            dest,
            closure: None,
            origins: Vec::new(),
        });
        let outcome = self.run(floor);
        if outcome.is_err() {
            self.unwind(floor);
        }
        let args = code.args as usize;
        let kept = (0..code.captures as usize)
            .map(|index| self.stack.get_mut(base + args + index).map_or(Value::Gone, Value::take))
            .collect();
        self.stack.truncate(base);
        let result = self.stack.pop().unwrap_or_default();
        self.native_depth -= 1;
        (self.cell, self.span) = (cell, span);
        outcome.map(|()| (result, kept))
    }

    /// Ends the frames above the floor: captured values and moved arguments go back.
    fn unwind(&mut self, floor: usize) {
        while self.frames.len() > floor {
            let frame = self.frames.pop().expect("longer than the floor");
            self.restore_captures(&frame);
            let arguments: Vec<Value> = (0..frame.code.args as usize)
                .map(|index| self.stack[frame.base + index].take())
                .collect();
            let rescued = self.rescue(&arguments, &frame.origins);
            self.give_back(rescued);
            if self.frames.len() > floor {
                self.stack.truncate(frame.base);
            }
        }
    }

    fn restore_captures(&mut self, frame: &Frame) {
        let Some(closure) = &frame.closure else { return };
        let first = frame.base + frame.code.args as usize;
        let captures: Vec<Value> = (0..frame.code.captures as usize)
            .map(|index| self.stack[first + index].take())
            .collect();
        if let Ok(Value::Closure(closure)) = self.at_mut(closure) {
            closure.captures = captures;
        }
    }

    fn run(&mut self, floor: usize) -> Fallible<()> {
        let mut code = self.frames.last().expect("a frame was pushed").code.clone();
        let mut base = self.frames.last().expect("a frame was pushed").base;
        let mut at = 0;
        loop {
            let inst = &code.insts[at];
            let step = self.step(inst, base, &code, at);
            let step = match step {
                Ok(step) => step,
                Err(fault) => {
                    return Err(fault.at(code.cell, code.spans[at]));
                }
            };
            match step {
                Next::Go => at += 1,
                Next::Jump(target) => {
                    if target as usize <= at {
                        self.check_interrupt()
                            .map_err(|fault| fault.at(code.cell, code.spans[at]))?;
                    }
                    at = target as usize;
                }
                Next::Enter => {
                    if self.frames.len() > DEEPEST_CALL {
                        return Err(panic("stack overflow: the calls nest too deeply")
                            .at(code.cell, code.spans[at]));
                    }
                    self.check_interrupt().map_err(|fault| fault.at(code.cell, code.spans[at]))?;
                    let count = self.frames.len();
                    self.frames[count - 2].at = at + 1;
                    let frame = &self.frames[count - 1];
                    code = frame.code.clone();
                    base = frame.base;
                    at = 0;
                }
                Next::Leave(value) => {
                    let frame = self.frames.pop().expect("this frame");
                    self.restore_captures(&frame);
                    if self.frames.len() > floor {
                        self.stack.truncate(frame.base);
                        self.stack[frame.dest] = value;
                        let frame = self.frames.last().expect("above the floor");
                        code = frame.code.clone();
                        base = frame.base;
                        at = frame.at;
                    } else {
                        self.stack[frame.dest] = value;
                        return Ok(());
                    }
                }
            }
        }
    }

    pub fn check_interrupt(&self) -> Fallible<()> {
        if self.host.interrupted() { Err(interrupted()) } else { Ok(()) }
    }

    #[inline]
    fn address(&self, slot: Slot, base: usize) -> usize {
        if slot & GLOBAL != 0 { (slot & !GLOBAL) as usize } else { base + slot as usize }
    }

    #[inline]
    fn put(&mut self, slot: Slot, base: usize, value: Value) {
        let address = self.address(slot, base);
        self.stack[address] = value;
    }

    fn step(&mut self, inst: &Inst, base: usize, code: &Arc<Code>, at: usize) -> Fallible<Next> {
        match inst {
            Inst::Nop | Inst::Static { .. } | Inst::Look(_) => {}
            Inst::Set { place, value } => {
                let value = self.take(value, base)?;
                if place.steps.is_empty() {
                    self.put(place.slot, base, value);
                } else {
                    let place = self.locate(place, base)?;
                    *self.at_mut(&place)? = value;
                }
            }
            Inst::Binary { dest, op, num, left, right } => {
                let value = self.binary(*op, *num, left, right, base)?;
                self.put(*dest, base, value);
            }
            Inst::Jump(target) => return Ok(Next::Jump(*target)),
            Inst::Unless { condition, target } => {
                let holds = match condition {
                    Operand::Const(value) => truth(value)?,
                    Operand::Copy(place) | Operand::Move(place) => truth(self.read(place, base)?)?,
                };
                if !holds {
                    return Ok(Next::Jump(*target));
                }
            }
            Inst::Next { iter, dest, exit } => return self.next(*iter, *dest, *exit, base),
            Inst::Drop(slot) => {
                let address = self.address(*slot, base);
                self.stack[address] = Value::Gone;
            }
            Inst::Ref { dest, place, mutable } => {
                let value = self.reference(place, *mutable, base)?;
                self.put(*dest, base, value);
            }
            Inst::Not { dest, num, value } => {
                let value = arithmetic::not(*num, &self.take(value, base)?);
                self.put(*dest, base, value);
            }
            Inst::Negate { dest, num, value } => {
                let value = self.take(value, base)?;
                let value = arithmetic::negate(*num, &value).map_err(panic)?;
                self.put(*dest, base, value);
            }
            Inst::Cast { dest, from, to, value } => {
                let value = self.take(value, base)?;
                self.put(*dest, base, arithmetic::cast(*from, *to, &value));
            }
            Inst::Tuple { dest, parts } => {
                let parts = self.take_all(parts, base)?;
                self.put(*dest, base, Value::Tuple(parts));
            }
            Inst::List { dest, parts } => {
                let parts = self.take_all(parts, base)?;
                self.put(*dest, base, Value::List(parts));
            }
            Inst::Some { dest, value } => {
                let value = self.take(value, base)?;
                self.put(*dest, base, Value::some(value));
            }
            Inst::Range { dest, start, end, inclusive } => {
                let (start, a) = self.bound(start.as_ref(), base)?;
                let (end, b) = self.bound(end.as_ref(), base)?;
                let range = RangeValue { start, end, inclusive: *inclusive, chars: a || b };
                self.put(*dest, base, Value::Range(Box::new(range)));
            }
            Inst::Repeat { dest, value, count } => {
                let value = self.take(value, base)?;
                let count = self.count(count, base)?;
                let list = self.repeat(value, count)?;
                self.put(*dest, base, list);
            }
            Inst::Closure { dest, code, captures } => {
                let captures = self.take_all(captures, base)?;
                let closure = ClosureValue { code: code.clone(), captures };
                self.put(*dest, base, Value::Closure(Box::new(closure)));
            }
            Inst::Rest { dest, place, skip, leave, by } => {
                let value = self.rest(place, *skip, *leave, *by, base)?;
                self.put(*dest, base, value);
            }
            Inst::SliceOf { dest, place, range, mutable } => {
                let value = self.slice(place, range, *mutable, base)?;
                self.put(*dest, base, value);
            }
            Inst::Member { dest, place, name } => {
                let value = self.read(place, base)?;
                if let Value::Range(range) = value {
                    let bound = if *name == "start" { range.start } else { range.end };
                    let bound = bound.ok_or_else(|| internal("a range's bound"))?;
                    let value = crate::iter::number(bound, range.chars);
                    self.put(*dest, base, value);
                    return Ok(Next::Go);
                }
                let Value::Record(record) = value else { return Err(internal("a record")) };
                let field = record.fields.iter().find(|(own, _)| own == name);
                let value = field.ok_or_else(|| internal("a field"))?.1.alias();
                self.put(*dest, base, value);
            }
            Inst::Call { dest, function, args } => {
                let own = code;
                let code =
                    function.code.get().ok_or_else(|| internal("a function's code"))?.clone();
                let origins = self.origins(args, base, own, at);
                return self.enter(code, *dest, args, Vec::new(), None, (base, origins));
            }
            Inst::CallValue { dest, callee, args } => {
                self.place_of(code, at);
                return self.call_value(*dest, callee, args, base, code, at);
            }
            Inst::CallLibrary { dest, row, args, meta } => {
                self.place_of(code, at);
                let mut values = self.take_all(args, base)?;
                let value = (row.run)(self, &mut values, meta)?;
                self.put(*dest, base, value);
            }
            Inst::CallSurface { dest, item, args } => {
                self.place_of(code, at);
                let value = self.surface(item, args, base, code, at)?;
                self.put(*dest, base, value);
            }
            Inst::ArrayBinary { dest, op, left, right } => {
                self.place_of(code, at);
                let value = self.array_binary(*op, left, right, base, code, at)?;
                self.put(*dest, base, value);
            }
            Inst::ArrayNegate { dest, value } => {
                self.place_of(code, at);
                let value = self.take(value, base)?;
                let value = self.to_dyn(value)?;
                let value = surface::negate(&value)?;
                self.put(*dest, base, Value::from_dyn(value));
            }
            Inst::Iterate { dest, value } => {
                let value = self.take(value, base)?;
                let iter = self.iterate(value)?;
                self.put(*dest, base, Value::Iter(Box::new(iter)));
            }
            Inst::Test { place, test, otherwise } => {
                let value = self.read(place, base)?;
                if !self.test(value, test)? {
                    return Ok(Next::Jump(*otherwise));
                }
            }
            Inst::Format { dest, pieces, args, values } => {
                let values = self.take_all(values, base)?;
                let text = self.format(pieces, args, &values)?;
                self.put(*dest, base, Value::text(text));
            }
            Inst::Print { text, error } => {
                let Value::Text(text) = self.take(text, base)? else {
                    return Err(internal("a text"));
                };
                if *error {
                    self.host.stderr(&text);
                } else {
                    self.host.stdout(&text);
                }
            }
            Inst::Panic { text } => {
                let Value::Text(text) = self.take(text, base)? else {
                    return Err(internal("a text"));
                };
                return Err(panic(text.as_str()));
            }
            Inst::Unequal { left, right, types, equal, text } => {
                return Err(self.unequal(left, right, types, *equal, text.as_ref(), base)?);
            }
            Inst::Count { list, want } => {
                let given = self.list(self.read(list, base)?)?.len();
                if given != *want {
                    let plural = if *want == 1 { "" } else { "s" };
                    let message =
                        format!("the function takes {want} array{plural}, and {given} were given");
                    return Err(Fault::new(FaultKind::Argument, "call", message));
                }
            }
            Inst::Bound { place, name, last } => self.name(place, name, *last, base)?,
            Inst::Return(value) => {
                let value = self.take(value, base)?;
                return Ok(Next::Leave(value));
            }
        }
        Ok(Next::Go)
    }

    fn place_of(&mut self, code: &Code, at: usize) {
        self.cell = code.cell;
        self.span = code.spans[at];
    }

    fn next(&mut self, iter: Slot, dest: Slot, exit: u32, base: usize) -> Fallible<Next> {
        let address = self.address(iter, base);
        // The common case needs no detour.
        if let Value::Iter(own) = &mut self.stack[address]
            && let Iter::Range { next, last, chars: false } = &mut **own
        {
            if *next > *last {
                return Ok(Next::Jump(exit));
            }
            let value = Value::Int(*next);
            *next += 1;
            self.put(dest, base, value);
            return Ok(Next::Go);
        }
        let Value::Iter(mut own) = self.stack[address].take() else {
            return Err(internal("an iterator"));
        };
        let value = own.next(self);
        self.stack[address] = Value::Iter(own);
        match value? {
            Some(value) => {
                self.put(dest, base, value);
                Ok(Next::Go)
            }
            None => Ok(Next::Jump(exit)),
        }
    }

    /// An operand's value: copied out of its place, or moved.
    fn take(&mut self, operand: &Operand, base: usize) -> Fallible<Value> {
        match operand {
            Operand::Const(value) => Ok(value.alias()),
            Operand::Copy(place) => Ok(self.read(place, base)?.alias()),
            Operand::Move(place) if place.steps.is_empty() => {
                let address = self.address(place.slot, base);
                Ok(self.stack[address].take())
            }
            Operand::Move(place) => {
                let place = self.locate(place, base)?;
                Ok(self.at_mut(&place)?.take())
            }
        }
    }

    fn take_all(&mut self, operands: &[Operand], base: usize) -> Fallible<Vec<Value>> {
        operands.iter().map(|operand| self.take(operand, base)).collect()
    }

    /// A range's bound as a number, and whether it is a character.
    fn bound(&mut self, operand: Option<&Operand>, base: usize) -> Fallible<(Option<i128>, bool)> {
        match operand {
            None => Ok((None, false)),
            Some(operand) => match self.take(operand, base)? {
                Value::Int(value) => Ok((Some(value), false)),
                Value::Char(value) => Ok((Some(i128::from(value as u32)), true)),
                _ => Err(internal("a range's bound")),
            },
        }
    }

    fn count(&mut self, operand: &Operand, base: usize) -> Fallible<usize> {
        match self.take(operand, base)? {
            Value::Int(value) => usize::try_from(value).map_err(|_| internal("a count")),
            _ => Err(internal("a count")),
        }
    }

    /// The place's value.
    fn read(&self, place: &Place, base: usize) -> Fallible<&Value> {
        let mut value = &self.stack[self.address(place.slot, base)];
        for step in &place.steps {
            value = match step {
                Step::Deref => self.follow(value)?,
                Step::Child(index) => self
                    .whole(value)
                    .and_then(|(list, start)| list.child(start as u32 + *index))
                    .ok_or_else(|| internal("a part of a value"))?,
                Step::FromEnd(back) => {
                    let list = self.list(value)?;
                    list.len()
                        .checked_sub(*back as usize)
                        .and_then(|index| list.get(index))
                        .ok_or_else(|| internal("an element"))?
                }
                Step::At(index) => self.indexed(value, *index as usize)?,
                Step::Index(slot) => {
                    let index = self.index_at(*slot, base)?;
                    self.indexed(value, index)?
                }
            };
        }
        Ok(value)
    }

    fn index_at(&self, slot: Slot, base: usize) -> Fallible<usize> {
        match &self.stack[self.address(slot, base)] {
            Value::Int(value) => usize::try_from(*value).map_err(|_| internal("an index")),
            _ => Err(internal("an index")),
        }
    }

    fn indexed<'v>(&'v self, value: &'v Value, index: usize) -> Fallible<&'v Value> {
        // The list may lie behind a slice's own reference.
        let (list, start, end) = match value {
            Value::List(list) => {
                return list.get(index).ok_or_else(|| out_of_bounds(list.len(), index));
            }
            Value::Slice(slice) => {
                let Value::List(list) = self.follow(&slice.list)? else {
                    return Err(internal("a list"));
                };
                (list, slice.start, slice.end)
            }
            _ => return Err(internal("a list")),
        };
        if index >= end - start {
            return Err(out_of_bounds(end - start, index));
        }
        list.get(start + index).ok_or_else(|| internal("an element"))
    }

    /// A list and where its part begins.
    fn whole<'v>(&'v self, value: &'v Value) -> Option<(&'v Value, usize)> {
        match value {
            Value::Slice(slice) => Some((self.follow(&slice.list).ok()?, slice.start)),
            other => Some((other, 0)),
        }
    }

    /// Through a reference; a snapshot is what it stands for.
    pub fn follow<'v>(&'v self, value: &'v Value) -> Fallible<&'v Value> {
        match value {
            Value::Ref(place) => self.at(place),
            other => Ok(other),
        }
    }

    /// Through all references.
    pub fn peel<'v>(&'v self, value: &'v Value) -> Fallible<&'v Value> {
        let mut value = value;
        while let Value::Ref(place) = value {
            value = self.at(place)?;
        }
        Ok(value)
    }

    pub fn at(&self, place: &Ref) -> Fallible<&Value> {
        let mut value =
            self.stack.get(place.slot as usize).ok_or_else(|| internal("a reference"))?;
        for index in place.steps() {
            value = value.child(*index).ok_or_else(|| internal("a reference"))?;
        }
        Ok(value)
    }

    pub fn at_mut(&mut self, place: &Ref) -> Fallible<&mut Value> {
        let mut value =
            self.stack.get_mut(place.slot as usize).ok_or_else(|| internal("a reference"))?;
        for index in place.steps() {
            value = value.child_mut(*index).ok_or_else(|| internal("a reference"))?;
        }
        Ok(value)
    }

    /// The place as a slot and the way from it, through references and slices.
    fn locate(&self, place: &Place, base: usize) -> Fallible<Ref> {
        let mut here = Ref { slot: self.address(place.slot, base) as u32, path: None };
        for step in &place.steps {
            match step {
                Step::Deref => {
                    if let Value::Ref(to) = self.at(&here)? {
                        here = to.clone();
                    }
                }
                Step::Child(index) => here = self.part(&here, *index as usize)?,
                Step::FromEnd(back) => {
                    let length = self.list(self.at(&here)?)?.len();
                    let index =
                        length.checked_sub(*back as usize).ok_or_else(|| internal("an element"))?;
                    here = self.part(&here, index)?;
                }
                Step::At(index) => here = self.element_place(&here, *index as usize)?,
                Step::Index(slot) => {
                    let index = self.index_at(*slot, base)?;
                    here = self.element_place(&here, index)?;
                }
            }
        }
        Ok(here)
    }

    fn element_place(&self, list: &Ref, index: usize) -> Fallible<Ref> {
        self.indexed(self.at(list)?, index)?;
        self.part(list, index)
    }

    fn part(&self, place: &Ref, index: usize) -> Fallible<Ref> {
        match self.at(place)? {
            Value::Slice(slice) => match &slice.list {
                Value::Ref(list) => Ok(list.child((slice.start + index) as u32)),
                _ => Err(internal("a slice")),
            },
            _ => Ok(place.child(index as u32)),
        }
    }

    fn reference(&self, place: &Place, mutable: bool, base: usize) -> Fallible<Value> {
        if !mutable {
            let value = self.read(place, base)?;
            if is_snapshot(value) {
                return Ok(value.alias());
            }
            if let (Value::Borrowed(_) | Value::Slice(_), Some(Step::Deref)) =
                (value, place.steps.last())
            {
                return Ok(value.alias());
            }
        } else if let Ok(Value::Slice(_)) = self.read(place, base)
            && place.steps.last() == Some(&Step::Deref)
        {
            return Ok(self.read(place, base)?.alias());
        }
        let place = self.locate(place, base)?;
        if self.at(&place)?.is_gone() {
            return Err(internal("a borrowed value"));
        }
        Ok(Value::Ref(place))
    }

    fn repeat(&mut self, value: Value, count: usize) -> Fallible<Value> {
        const MOST: usize = 1 << 28;
        if count > MOST {
            return Err(panic(format!("a list of {count} elements is beyond the instant tier")));
        }
        let mut list = Vec::with_capacity(count);
        for _ in 1..count {
            list.push(value.cloned());
        }
        if count > 0 {
            list.push(value);
        }
        Ok(Value::List(list))
    }

    fn rest(
        &mut self,
        place: &Place,
        skip: u32,
        leave: u32,
        by: Binding,
        base: usize,
    ) -> Fallible<Value> {
        let length = self.list(self.read(place, base)?)?.len();
        let (start, end) = (skip as usize, length.saturating_sub(leave as usize));
        if by == Binding::Value {
            let list = self.list(self.read(place, base)?)?;
            return Ok(Value::List(list[start..end].iter().map(Value::alias).collect()));
        }
        let here = self.locate(place, base)?;
        self.slice_of(&Value::Ref(here), start, end)
    }

    fn slice(
        &mut self,
        place: &Place,
        range: &Operand,
        _mutable: bool,
        base: usize,
    ) -> Fallible<Value> {
        let Value::Range(range) = self.take(range, base)? else {
            return Err(internal("a range"));
        };
        if let Value::Text(text) = self.peel(self.read(place, base)?)? {
            return text_slice(text, &range);
        }
        let length = self.list(self.read(place, base)?)?.len();
        let (start, end) = slice_bounds(&range, length)?;
        match self.read(place, base)? {
            Value::Slice(slice) => {
                let list = slice.list.alias();
                let offset = slice.start;
                self.slice_of(&list, offset + start, offset + end)
            }
            _ => {
                let here = self.locate(place, base)?;
                self.slice_of(&Value::Ref(here), start, end)
            }
        }
    }

    /// A slice of the list behind a reference.
    pub fn slice_of(&self, list: &Value, start: usize, end: usize) -> Fallible<Value> {
        match list {
            Value::Ref(place) => {
                if let Value::Slice(slice) = self.at(place)? {
                    return self.slice_of(&slice.list, slice.start + start, slice.start + end);
                }
                Ok(Value::Slice(Box::new(SliceRef { list: list.alias(), start, end })))
            }
            Value::Slice(slice) => {
                self.slice_of(&slice.list, slice.start + start, slice.start + end)
            }
            _ => Err(internal("a list")),
        }
    }

    /// The elements of a list, an array or a slice.
    pub fn list<'v>(&'v self, value: &'v Value) -> Fallible<&'v [Value]> {
        match self.peel(value)? {
            Value::List(list) => Ok(list),
            Value::Slice(slice) => match self.peel(&slice.list)? {
                Value::List(list) => {
                    list.get(slice.start..slice.end).ok_or_else(|| internal("a slice"))
                }
                _ => Err(internal("a slice")),
            },
            _ => Err(internal("a list")),
        }
    }

    /// The same, to be changed in place.
    pub fn list_mut(&mut self, value: &Value) -> Fallible<&mut [Value]> {
        match value {
            Value::Slice(slice) => {
                let (start, end) = (slice.start, slice.end);
                let list = slice.list.alias();
                let whole = self.vec_mut(&list)?;
                whole.get_mut(start..end).ok_or_else(|| internal("a slice"))
            }
            Value::Ref(place) => {
                if let Value::Slice(_) | Value::Ref(_) = self.at(place)? {
                    let inner = self.at(place)?.alias();
                    return self.list_mut(&inner);
                }
                Ok(self.vec_mut(value)?.as_mut_slice())
            }
            _ => Err(internal("a list")),
        }
    }

    /// The vector behind a mutable reference.
    pub fn vec_mut(&mut self, value: &Value) -> Fallible<&mut Vec<Value>> {
        match self.get_mut(value)? {
            Value::List(list) => Ok(list),
            _ => Err(internal("a vector")),
        }
    }

    /// What a mutable reference refers to.
    pub fn get_mut(&mut self, value: &Value) -> Fallible<&mut Value> {
        let Value::Ref(place) = value else { return Err(internal("a mutable reference")) };
        let mut place = place.clone();
        while let Value::Ref(next) = self.at(&place)? {
            place = next.clone();
        }
        self.at_mut(&place)
    }

    /// A reference to an element of a list.
    pub fn element(&self, list: &Value, index: usize, mutable: bool) -> Fallible<Value> {
        match list {
            Value::Slice(slice) => self.element(&slice.list, slice.start + index, mutable),
            Value::Ref(place) => match self.at(place)? {
                inner @ (Value::Slice(_) | Value::Ref(_)) => self.element(inner, index, mutable),
                whole => {
                    let value = whole.child(index as u32).ok_or_else(|| internal("an element"))?;
                    if !mutable && is_snapshot(value) {
                        return Ok(value.alias());
                    }
                    Ok(Value::Ref(place.child(index as u32)))
                }
            },
            Value::List(values) => {
                Ok(values.get(index).ok_or_else(|| internal("an element"))?.alias())
            }
            _ => Err(internal("a list")),
        }
    }

    /// Rust's `clone()` of what the value refers to.
    pub fn clone_of(&self, value: &Value) -> Fallible<Value> {
        Ok(match self.follow(value)? {
            Value::Borrowed(array) => Value::Array(array.clone()),
            Value::Slice(_) => Value::List(self.list(value)?.iter().map(Value::cloned).collect()),
            other => other.cloned(),
        })
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        num: Num,
        left: &Operand,
        right: &Operand,
        base: usize,
    ) -> Fallible<Value> {
        if num == Num::Other {
            return self.general_binary(op, left, right, base);
        }
        let a = match left {
            Operand::Const(value) => value,
            Operand::Copy(place) | Operand::Move(place) => self.read(place, base)?,
        };
        let b = match right {
            Operand::Const(value) => value,
            Operand::Copy(place) | Operand::Move(place) => self.read(place, base)?,
        };
        arithmetic::binary(op, num, a, b).map_err(panic)
    }

    fn general_binary(
        &mut self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
        base: usize,
    ) -> Fallible<Value> {
        let left = self.take(left, base)?;
        let right = self.take(right, base)?;
        if op == BinaryOp::Add {
            let (Value::Text(mut left), Value::Text(right)) = (left, self.peel(&right)?) else {
                return Err(internal("a text"));
            };
            Arc::make_mut(&mut left).push_str(right);
            return Ok(Value::Text(left));
        }
        let holds = match op {
            BinaryOp::Eq => self.compare(&left, &right)? == Some(std::cmp::Ordering::Equal),
            BinaryOp::Ne => self.compare(&left, &right)? != Some(std::cmp::Ordering::Equal),
            BinaryOp::Lt => self.compare(&left, &right)?.is_some_and(|order| order.is_lt()),
            BinaryOp::Le => self.compare(&left, &right)?.is_some_and(|order| order.is_le()),
            BinaryOp::Gt => self.compare(&left, &right)?.is_some_and(|order| order.is_gt()),
            _ => self.compare(&left, &right)?.is_some_and(|order| order.is_ge()),
        };
        Ok(Value::Bool(holds))
    }

    /// Rust's `partial_cmp`, through references.
    pub fn compare(&self, a: &Value, b: &Value) -> Fallible<Option<std::cmp::Ordering>> {
        use std::cmp::Ordering;
        let (a, b) = (self.peel(a)?, self.peel(b)?);
        Ok(match (a, b) {
            (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Char(a), Value::Char(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Unit, Value::Unit) => Some(Ordering::Equal),
            (Value::DType(a), Value::DType(b)) => Some(a.cmp(b)),
            (Value::Option(a), Value::Option(b)) => match (a, b) {
                (None, None) => Some(Ordering::Equal),
                (None, Some(_)) => Some(Ordering::Less),
                (Some(_), None) => Some(Ordering::Greater),
                (Some(a), Some(b)) => self.compare(a, b)?,
            },
            (Value::Range(a), Value::Range(b)) => {
                let same = (a.start, a.end, a.inclusive) == (b.start, b.end, b.inclusive);
                Some(if same { Ordering::Equal } else { Ordering::Less })
            }
            (Value::Tuple(a), Value::Tuple(b)) => self.compare_lists(a, b)?,
            (Value::List(_) | Value::Slice(_), Value::List(_) | Value::Slice(_)) => {
                self.compare_lists(self.list(a)?, self.list(b)?)?
            }
            _ => return Err(internal("a comparison")),
        })
    }

    fn compare_lists(&self, a: &[Value], b: &[Value]) -> Fallible<Option<std::cmp::Ordering>> {
        for (a, b) in a.iter().zip(b) {
            match self.compare(a, b)? {
                Some(std::cmp::Ordering::Equal) => {}
                other => return Ok(other),
            }
        }
        Ok(Some(a.len().cmp(&b.len())))
    }

    fn test(&self, value: &Value, test: &Test) -> Fallible<bool> {
        use std::cmp::Ordering;
        Ok(match test {
            Test::Equals(want) => self.compare(value, want)? == Some(Ordering::Equal),
            Test::Between { low, high, inclusive } => {
                let above = match low {
                    Some(low) => self.compare(value, low)?.is_some_and(Ordering::is_ge),
                    None => true,
                };
                let below = match high {
                    Some(high) => self.compare(value, high)?.is_some_and(|order| {
                        if *inclusive { order.is_le() } else { order.is_lt() }
                    }),
                    None => true,
                };
                above && below
            }
            Test::Some | Test::Ok => matches!(value, Value::Option(Some(_))),
            Test::Err => matches!(value, Value::Tuple(_)),
            Test::None => matches!(value, Value::Option(None)),
            Test::Length { count, at_least } => {
                let length = self.list(value)?.len();
                if *at_least { length >= *count } else { length == *count }
            }
        })
    }

    /// Pushes a frame; the run goes on in it.
    fn enter(
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
    fn origins(&self, args: &[Operand], base: usize, code: &Code, at: usize) -> Origins {
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

    fn call_value(
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
    fn rescue(&self, values: &[Value], origins: &Origins) -> Vec<(Ref, Value)> {
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

    fn settle(&mut self, result: Fallible<Dyn>, rescued: Vec<(Ref, Value)>) -> Fallible<Dyn> {
        if result.is_err() {
            self.give_back(rescued);
        }
        result
    }

    fn give_back(&mut self, rescued: Vec<(Ref, Value)>) {
        for (place, value) in rescued {
            if let Ok(slot) = self.at_mut(&place)
                && slot.is_gone()
            {
                *slot = value;
            }
        }
    }

    /// Hands this run to callbacks of the prelude while `call` lasts.
    fn lend<T>(&mut self, call: impl FnOnce() -> Fallible<T>) -> Fallible<T> {
        struct Restore(*mut Vm<'static>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let origin = Origin { cell: self.cell, span: self.span };
        let before = vramlab_array::set_origin(origin);
        let own: *mut Vm<'h> = self;
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

    fn surface(
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

    fn array_binary(
        &mut self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
        base: usize,
        code: &Code,
        at: usize,
    ) -> Fallible<Value> {
        let operator = match op {
            BinaryOp::Add => Operator::Add,
            BinaryOp::Sub => Operator::Sub,
            BinaryOp::Mul => Operator::Mul,
            BinaryOp::Div => Operator::Div,
            _ => Operator::Rem,
        };
        let args = [left.clone(), right.clone()];
        let origins = self.origins(&args, base, code, at);
        let values = self.take_all(&args, base)?;
        let rescued = self.rescue(&values, &origins);
        let mut values = values.into_iter();
        let left = self.to_dyn(values.next().unwrap_or_default())?;
        let right = self.to_dyn(values.next().unwrap_or_default())?;
        let result = self.lend(|| surface::operator(operator, &left, &right));
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

    /// A value in the prelude's currency. References become borrows for the call.
    ///
    /// # Errors
    /// A value that the prelude has no form for.
    pub fn to_dyn(&self, value: Value) -> Fallible<Dyn> {
        Ok(match value {
            Value::Array(array) => Dyn::Array(array),
            Value::List(values) => Dyn::List(self.all_to_dyn(values)?),
            Value::Tuple(values) => Dyn::Tuple(self.all_to_dyn(values)?),
            Value::Option(value) => Dyn::Option(match value {
                Some(value) => Some(Box::new(self.to_dyn(*value)?)),
                None => None,
            }),
            Value::Closure(closure) => {
                Dyn::Function(Arc::new(Routine { code: closure.code, captures: closure.captures }))
            }
            Value::Function(function) => Dyn::Function(function),
            other => self.borrowed_dyn(&other)?,
        })
    }

    fn all_to_dyn(&self, values: Vec<Value>) -> Fallible<Vec<Dyn>> {
        values.into_iter().map(|value| self.to_dyn(value)).collect()
    }

    /// A value as the prelude borrows it.
    ///
    /// # Errors
    /// A value that the prelude has no form for.
    pub fn borrowed_dyn(&self, value: &Value) -> Fallible<Dyn> {
        let all = |values: &[Value]| -> Fallible<Vec<Dyn>> {
            values.iter().map(|value| self.borrowed_dyn(value)).collect()
        };
        Ok(match self.peel(value)? {
            Value::Gone => return Err(internal("a value")),
            Value::Unit => Dyn::Unit,
            Value::Bool(value) => Dyn::Bool(*value),
            Value::Int(value) => Dyn::Int(*value),
            Value::Float(value) => Dyn::Float(*value),
            Value::Char(value) => Dyn::Char(*value),
            Value::Text(text) => Dyn::Text(Arc::from(text.as_str())),
            Value::DType(dtype) => Dyn::DType(*dtype),
            Value::Array(array) | Value::Borrowed(array) => Dyn::Borrowed(array.alias()),
            Value::List(values) => Dyn::List(all(values)?),
            slice @ Value::Slice(_) => Dyn::List(all(self.list(slice)?)?),
            Value::Tuple(values) => Dyn::Tuple(all(values)?),
            Value::Option(value) => Dyn::Option(match value {
                Some(value) => Some(Box::new(self.borrowed_dyn(value)?)),
                None => None,
            }),
            Value::Range(range) => {
                Dyn::Range { start: range.start, end: range.end, inclusive: range.inclusive }
            }
            Value::Closure(closure) => Dyn::Function(Arc::new(Routine {
                code: closure.code.clone(),
                captures: closure.captures.iter().map(Value::alias).collect(),
            })),
            Value::Code(cell) => Dyn::Function(Arc::new(Routine {
                code: cell.code.get().ok_or_else(|| internal("a function's code"))?.clone(),
                captures: Vec::new(),
            })),
            Value::Function(function) => Dyn::Function(function.clone()),
            Value::Record(record) => Dyn::Record {
                name: record.name,
                fields: record
                    .fields
                    .iter()
                    .map(|(name, value)| Ok((*name, self.borrowed_dyn(value)?)))
                    .collect::<Fallible<_>>()?,
            },
            Value::Iter(_) => Dyn::Unit,
            Value::Ref(_) => return Err(internal("a reference")),
        })
    }

    fn format(&self, pieces: &[Piece], types: &[Ty], values: &[Value]) -> Fallible<String> {
        let mut out = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Value { argument, spec } => {
                    let count = |count: Option<Count>| -> Fallible<Option<usize>> {
                        Ok(match count {
                            None => None,
                            Some(Count::Literal(count)) => Some(count),
                            Some(Count::Argument(index)) => match self.peel(&values[index])? {
                                Value::Int(count) => usize::try_from(*count).ok(),
                                _ => return Err(internal("a width")),
                            },
                        })
                    };
                    let layout = Layout {
                        width: count(spec.width)?,
                        precision: count(spec.precision)?,
                        spec: spec.clone(),
                    };
                    show::value(self, &mut out, &values[*argument], &types[*argument], &layout)?;
                }
            }
        }
        Ok(out)
    }

    fn unequal(
        &mut self,
        left: &Operand,
        right: &Operand,
        types: &(Ty, Ty),
        equal: bool,
        text: Option<&Operand>,
        base: usize,
    ) -> Fallible<Fault> {
        let left = self.take(left, base)?;
        let right = self.take(right, base)?;
        let op = if equal { "==" } else { "!=" };
        let mut message = format!("assertion `left {op} right` failed");
        if let Some(text) = text
            && let Value::Text(text) = self.take(text, base)?
        {
            message.push_str(": ");
            message.push_str(&text);
        }
        let layout = Layout::debug();
        message.push_str("\n  left: ");
        show::value(self, &mut message, &left, &types.0, &layout)?;
        message.push_str("\n right: ");
        show::value(self, &mut message, &right, &types.1, &layout)?;
        Ok(panic(message))
    }

    /// Tells the session under which path each array of the place is held.
    fn name(&mut self, place: &Place, name: &str, last: bool, base: usize) -> Fallible<()> {
        let mut path = name.to_string();
        let mut here = Place::slot(place.slot);
        for step in &place.steps {
            let list = matches!(self.read(&here, base)?, Value::List(_) | Value::Slice(_));
            match step {
                Step::Deref => {}
                Step::Child(index) if !list => path.push_str(&format!(".{index}")),
                Step::Child(index) | Step::At(index) => path.push_str(&format!("[{index}]")),
                Step::Index(slot) => {
                    path.push_str(&format!("[{}]", self.index_at(*slot, base)?));
                }
                Step::FromEnd(_) => return Ok(()),
            }
            here = here.step(*step);
        }
        let mut found = Vec::new();
        let value = self.read(place, base)?;
        match value {
            Value::List(values) if last => {
                if let Some(value) = values.last() {
                    name_arrays(value, format!("{path}[{}]", values.len() - 1), &mut found);
                }
            }
            value => name_arrays(value, path, &mut found),
        }
        for (path, value) in found {
            self.host.bound(&path, &value);
        }
        Ok(())
    }
}

fn name_arrays(value: &Value, path: String, out: &mut Vec<(String, Dyn)>) {
    match value {
        Value::Array(array) if !array.is_traced() => {
            out.push((path, Dyn::Borrowed(array.alias())));
        }
        Value::List(values) => {
            for (index, value) in values.iter().enumerate() {
                name_arrays(value, format!("{path}[{index}]"), out);
            }
        }
        Value::Tuple(values) => {
            for (index, value) in values.iter().enumerate() {
                name_arrays(value, format!("{path}.{index}"), out);
            }
        }
        Value::Option(Some(value)) => name_arrays(value, path, out),
        Value::Function(function) => out.push((path, Dyn::Function(function.clone()))),
        _ => {}
    }
}

/// Where the run goes next.
enum Next {
    Go,
    Jump(u32),
    /// A frame was pushed.
    Enter,
    Leave(Value),
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

fn holds_array(value: &Value) -> bool {
    match value {
        Value::Array(_) => true,
        Value::List(values) | Value::Tuple(values) => values.iter().any(holds_array),
        Value::Option(Some(value)) => holds_array(value),
        _ => false,
    }
}

pub fn truth(value: &Value) -> Fallible<bool> {
    match value {
        Value::Bool(value) => Ok(*value),
        _ => Err(internal("a condition")),
    }
}

pub fn out_of_bounds(length: usize, index: usize) -> Fault {
    panic(format!("index out of bounds: the len is {length} but the index is {index}"))
}

/// The bounds of a slice, under rustc's words when they do not fit.
pub fn slice_bounds(range: &RangeValue, length: usize) -> Fallible<(usize, usize)> {
    let start = range.start.unwrap_or(0) as usize;
    let end = match range.end {
        Some(end) if range.inclusive => end as usize + 1,
        Some(end) => end as usize,
        None => length,
    };
    if end > length {
        return Err(panic(format!(
            "range end index {end} out of range for slice of length {length}"
        )));
    }
    if start > end {
        let message = match range.end {
            None => format!("range start index {start} out of range for slice of length {length}"),
            Some(_) => format!("slice index starts at {start} but ends at {end}"),
        };
        return Err(panic(message));
    }
    Ok((start, end))
}

fn text_slice(text: &Arc<String>, range: &RangeValue) -> Fallible<Value> {
    let start = range.start.unwrap_or(0) as usize;
    let end = match range.end {
        Some(end) if range.inclusive => end as usize + 1,
        Some(end) => end as usize,
        None => text.len(),
    };
    match text.get(start..end) {
        Some(part) => Ok(Value::text(part)),
        None => Err(panic(format!(
            "byte range {start}..{end} does not fit the text `{text}` of {} bytes",
            text.len()
        ))),
    }
}
