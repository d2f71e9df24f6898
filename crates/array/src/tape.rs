//! Runs a program on arrays: inside a trace its equations join that trace; outside they run one by
//! one, each as an eager op, and every value is dropped at its last use. So what a gradient keeps
//! from its forward shows up among the live arrays, under the name of what made it.

use crate::ambient::{origin, set_origin};
use crate::array::Array;
use crate::eager;
use crate::operand::{Input, Number};
use crate::trace;
use std::collections::HashMap;
use vramlab_ir::{DType, Eqn, Fault, Func, Literal, Origin, Param, Params, Value};
use vramlab_ops::{BARRIER, DEVICE_PUT, FULL};
use vramlab_transform::{Joint, Stage};

/// The owners' names of values that live longer than their own stage.
pub(crate) type Names = HashMap<Value, String>;

/// What a value is while the program runs. Scalars that the program itself holds never become
/// arrays: they travel by value, as a cell's numbers do.
enum Slot {
    Array(Array),
    Number(Literal),
}

/// The results of `func` for these arguments, captured arrays behind those that were given.
///
/// # Errors
/// A fault of an op; what ran before it is dropped.
pub(crate) fn run(func: &Func, arguments: &[Array], names: &Names) -> Result<Vec<Array>, Fault> {
    if trace::active() {
        return trace::inline(func, arguments);
    }
    let mut tape = Tape::new(func, arguments);
    for eqn in &func.eqns {
        tape.equation(func, eqn, names)?;
    }
    tape.results(func)
}

struct Tape {
    slots: Vec<Option<Slot>>,
    /// Uses that are still to come.
    uses: Vec<u32>,
}

const ALIVE: &str = "a value lives until its last use";

impl Tape {
    fn new(func: &Func, arguments: &[Array]) -> Tape {
        let mut uses = vec![0; func.types.len()];
        let read = func.eqns.iter().flat_map(|eqn| &eqn.inputs).chain(&func.results);
        read.for_each(|value| uses[value.index()] += 1);
        let mut slots: Vec<Option<Slot>> = Vec::new();
        slots.resize_with(func.types.len(), || None);
        for (param, argument) in func.params.iter().zip(arguments) {
            slots[param.index()] = Some(Slot::Array(argument.alias()));
        }
        Tape { slots, uses }
    }

    fn equation(&mut self, func: &Func, eqn: &Eqn, names: &Names) -> Result<(), Fault> {
        let made = self.made(func, eqn)?;
        for (&output, slot) in eqn.outputs.iter().zip(made) {
            if let (Slot::Array(array), Some(name)) = (&slot, names.get(&output)) {
                array.set_owner(name);
            }
            if self.uses[output.index()] > 0 {
                self.slots[output.index()] = Some(slot);
            }
        }
        eqn.inputs.iter().for_each(|&input| self.used(input));
        Ok(())
    }

    fn made(&self, func: &Func, eqn: &Eqn) -> Result<Vec<Slot>, Fault> {
        let scalar = func.ty(eqn.outputs[0]).shape.rank() == 0;
        match (eqn.op.name(), eqn.params.literal("value")) {
            (name, Some(value)) if name == FULL.name && scalar => {
                return Ok(vec![Slot::Number(value)]);
            }
            (name, _) if name == BARRIER.name => return Ok(vec![self.again(eqn.inputs[0])]),
            _ => {}
        }
        // Equations run in order, so a copy needs none of what it waits for.
        let copies = eqn.op.name() == DEVICE_PUT.name;
        let read = if copies { &eqn.inputs[..1] } else { &eqn.inputs[..] };
        let slots: Vec<&Slot> =
            read.iter().map(|v| self.slots[v.index()].as_ref().expect(ALIVE)).collect();
        let dtypes: Vec<DType> = read.iter().map(|&v| func.ty(v).dtype).collect();
        let inputs: Vec<Input> = slots.into_iter().map(input).collect();
        let arrays =
            at(eqn.origin, || eager::equation(eqn.op, eqn.params.clone(), &inputs, &dtypes))?;
        Ok(arrays.into_iter().map(Slot::Array).collect())
    }

    /// The same bytes under another value.
    fn again(&self, value: Value) -> Slot {
        match self.slots[value.index()].as_ref().expect(ALIVE) {
            Slot::Array(array) => Slot::Array(array.alias()),
            Slot::Number(literal) => Slot::Number(*literal),
        }
    }

    fn used(&mut self, value: Value) {
        let left = &mut self.uses[value.index()];
        *left -= 1;
        if *left == 0 {
            self.slots[value.index()] = None;
        }
    }

    /// Each result as a holder of its own.
    fn results(mut self, func: &Func) -> Result<Vec<Array>, Fault> {
        let mut results = Vec::with_capacity(func.results.len());
        for &value in &func.results {
            let own = self.uses[value.index()] == 1 && !func.params.contains(&value);
            let array = match self.slots[value.index()].as_ref().expect(ALIVE) {
                Slot::Array(array) if own => array.alias(),
                Slot::Array(array) => array.clone(),
                Slot::Number(literal) => filled(*literal)?,
            };
            array.set_owner("");
            results.push(array);
            self.used(value);
        }
        Ok(results)
    }
}

fn input(slot: &Slot) -> Input<'_> {
    match slot {
        Slot::Array(array) => Input::Array(array),
        Slot::Number(literal) => Input::Number(match literal.dtype() {
            DType::Bool => Number::Bool(literal.as_i64() != 0),
            dtype if dtype.is_float() => Number::Float(literal.as_f64()),
            _ => Number::Int(literal.as_i64()),
        }),
    }
}

/// A scalar as an array.
fn filled(literal: Literal) -> Result<Array, Fault> {
    let params = Params::new()
        .with("value", Param::Literal(literal))
        .with("shape", Param::Shape(vramlab_ir::Shape::scalar()));
    Ok(eager::equation(&FULL, params, &[], &[])?.remove(0))
}

/// Runs `body` with the place where the equation was written as the current one.
fn at<T>(written: Option<Origin>, body: impl FnOnce() -> T) -> T {
    let Some(written) = written else { return body() };
    struct Restore(Origin);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_origin(self.0);
        }
    }
    let _restore = Restore(set_origin(written));
    body()
}

/// The owners of what a joint program keeps from its forward: `residual tanh, line 2`.
pub(crate) fn residual_names(joint: &Joint) -> Names {
    let func = &joint.func;
    let mut later = vec![false; func.types.len()];
    for (eqn, mark) in func.eqns.iter().zip(&joint.marks) {
        if mark.stage != Stage::Forward {
            eqn.inputs.iter().for_each(|input| later[input.index()] = true);
        }
    }
    let mut names = Names::new();
    for (eqn, mark) in func.eqns.iter().zip(&joint.marks) {
        if mark.stage == Stage::Forward {
            for output in eqn.outputs.iter().filter(|output| later[output.index()]) {
                names.insert(*output, residual_name(eqn.op.name(), eqn.origin));
            }
        }
    }
    names
}

pub(crate) fn residual_name(op: &str, written: Option<Origin>) -> String {
    match written {
        Some(written) => format!("residual {op}, {}", written.seen_from(origin().cell)),
        None => format!("residual {op}"),
    }
}
