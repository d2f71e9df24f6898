//! The interpreter: runs checked code on a stack of values. The session's variables lie at the
//! bottom of the stack, so a reference is a slot's number and stays valid across cells.

mod calls;
mod compare;
mod places;
mod shown;

use crate::arithmetic;
use crate::code::{Code, GLOBAL, Inst, Operand, Slot};
use crate::host::Host;
use crate::interrupt::{Fallible, internal, interrupted, panic};
use crate::ir::{Fault, FaultKind, Span};
use crate::iter::Iter;
use crate::value::{ClosureValue, RangeValue, Ref, Value};
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;
use vramlab_array::Array;
use vramlab_array::surface::{self, Callable, Dyn};

pub use calls::is_snapshot;
pub use compare::truth;
pub use places::{out_of_bounds, slice_bounds};

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
    /// Where the outermost body stood when it failed.
    pub failed_at: Option<Span>,
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
    fn note(&mut self, _: &str) {}
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
            let height = vm.stack.len();
            let arguments = arguments.into_iter().map(|argument| vm.argument(argument)).collect();
            let captures = self.captures.iter().map(Value::alias).collect();
            let outcome = vm.run_code(&self.code, arguments, captures);
            let result = outcome.and_then(|(result, _)| vm.to_dyn(result));
            vm.stack.truncate(height);
            result
        })
    }

    fn captured(&self) -> Vec<Array> {
        let mut found = Vec::new();
        self.captures.iter().for_each(|value| value.owned_arrays(&mut found));
        found
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Vm<'_> {
    /// An argument from the prelude. What is referred to lies on the stack while the call runs.
    fn argument(&mut self, argument: Dyn) -> Value {
        let Dyn::Reference(tree) = argument else { return Value::from_dyn(argument) };
        let slot = self.stack.len() as u32;
        self.stack.push(Value::from_dyn(*tree));
        Value::Ref(Ref { slot, path: None })
    }
}

impl<'h> Vm<'h> {
    pub fn new(stack: Vec<Value>, host: &'h mut dyn Host) -> Vm<'h> {
        let (cell, span) = (0, Span::default());
        Vm { stack, frames: Vec::new(), host, native_depth: 0, cell, span, failed_at: None }
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
            let frame = &self.frames[floor];
            self.failed_at =
                frame.at.checked_sub(1).and_then(|at| frame.code.spans.get(at)).copied();
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
                Err(fault) => return Err(self.failed(fault, &code, at)),
            };
            match step {
                Next::Go => at += 1,
                Next::Jump(target) => {
                    if target as usize <= at {
                        let checked = self.check_interrupt();
                        checked.map_err(|fault| self.failed(fault, &code, at))?;
                    }
                    at = target as usize;
                }
                Next::Enter => {
                    let count = self.frames.len();
                    self.frames[count - 2].at = at + 1;
                    if count > DEEPEST_CALL {
                        return Err(panic("stack overflow: the calls nest too deeply")
                            .at(code.cell, code.spans[at]));
                    }
                    self.check_interrupt().map_err(|fault| fault.at(code.cell, code.spans[at]))?;
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

    /// The fault with its place, where the last frame stays.
    fn failed(&mut self, fault: Fault, code: &Code, at: usize) -> Fault {
        if let Some(frame) = self.frames.last_mut() {
            frame.at = at + 1;
        }
        fault.at(code.cell, code.spans[at])
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
            Inst::Struct { dest, names, parts } => {
                let parts = self.take_all(parts, base)?;
                self.put(*dest, base, Value::Struct(names.clone(), parts.into()));
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
}

/// Where the run goes next.
enum Next {
    Go,
    Jump(u32),
    /// A frame was pushed.
    Enter,
    Leave(Value),
}
