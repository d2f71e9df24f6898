//! Through a cond: the branch that is taken also gives what its way back needs, and a second cond
//! goes back through the same branch.

use crate::fault;
use crate::joint::{Joint, Mark};
use crate::reverse::Reverse;
use crate::split::{Cut, part};
use std::sync::Arc;
use vramlab_ir::{
    Eqn, Fault, Func, Literal, MemorySpace, Param, Params, Shape, Stage, Type, Value,
};
use vramlab_ops::{BROADCAST, COND, FULL};

/// One branch with its gradient.
struct Branch {
    joint: Joint,
    cut: Cut,
    /// Per value that the way back reads: the operand it is, or the slot it travels in.
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
enum Place {
    Operand(usize),
    Slot(usize),
}

/// Which outputs of a cond are active when these operands, the condition first, are.
pub(crate) fn active_outputs(on_true: &Func, on_false: &Func, inputs: &[bool]) -> Vec<bool> {
    let [yes, no] = [on_true, on_false].map(|func| crate::activity::flow(func, &inputs[1..]));
    yes.into_iter().zip(no).map(|(yes, no)| yes || no).collect()
}

impl Branch {
    /// `wrt` are operands, `seeded` are results with a cotangent. Values that are no operands go
    /// into `slots`, which the branches share where types agree: only one branch is taken.
    fn new(
        func: &Func,
        wrt: &[usize],
        seeded: &[usize],
        slots: &mut Vec<Type>,
    ) -> Result<Branch, Fault> {
        let mut reverse = Reverse::new(&func.name);
        let params: Vec<Value> =
            func.params.iter().map(|&p| reverse.writer.param(func.ty(p))).collect();
        wrt.iter().for_each(|&at| reverse.activate(params[at]));
        let mut tape = Vec::new();
        let results = reverse.forward(func, &params, &mut tape)?;
        reverse.writer.mark = Mark { stage: Stage::Backward, of: COND.name, origin: None };
        for &at in seeded {
            // Cotangents are in device memory, wherever the results are.
            let ty = reverse.writer.ty(results[at]).within(MemorySpace::Device);
            let seed = reverse.writer.param(&ty);
            if reverse.is_active(results[at]) {
                reverse.accumulate(results[at], seed)?;
            }
        }
        reverse.backward(tape)?;
        reverse.writer.mark = Mark { stage: Stage::Backward, of: COND.name, origin: None };
        let mut all = results.clone();
        for &at in wrt {
            all.push(reverse.cotangent_or_zero(params[at])?);
        }
        let joint = Joint::finish(reverse.writer, params.len(), results.len(), all);
        let cut = Cut::new(&joint);
        let mut taken = vec![false; slots.len()];
        let places = cut
            .kept
            .iter()
            .map(|value| {
                let func = &joint.func;
                match func.params.iter().position(|param| param == value) {
                    Some(at) => Place::Operand(at),
                    None => Place::Slot(slot(slots, &mut taken, func.ty(*value))),
                }
            })
            .collect();
        Ok(Branch { joint, cut, places })
    }

    /// The branch with the slots behind its results; those that it has no value for hold zeros.
    fn forward(&self, slots: &[Type]) -> Func {
        let joint = &self.joint;
        let mut filled: Vec<Option<Value>> = vec![None; slots.len()];
        for (value, place) in self.cut.kept.iter().zip(&self.places) {
            if let Place::Slot(at) = place {
                filled[*at] = Some(*value);
            }
        }
        let mut extended = Joint { func: joint.func.clone(), ..joint.clone() };
        let mut chosen = self.cut.before.clone();
        let mut results = joint.func.results[..joint.results].to_vec();
        for (value, ty) in filled.into_iter().zip(slots) {
            results.push(value.unwrap_or_else(|| zeros(&mut extended.func, &mut chosen, ty)));
        }
        part(&extended, "branch", &joint.func.params[..joint.params], &results, &chosen)
    }

    /// Operands, slots and cotangents to the operands' cotangents.
    fn backward(&self, operands: &[Type], slots: &[Type]) -> Func {
        let mut extended = self.joint.clone();
        let mut takes: Vec<Option<Value>> = vec![None; operands.len() + slots.len()];
        for (value, place) in self.cut.kept.iter().zip(&self.places) {
            match place {
                Place::Operand(at) => takes[*at] = Some(*value),
                Place::Slot(at) => takes[operands.len() + at] = Some(*value),
            }
        }
        let mut params: Vec<Value> = Vec::new();
        for (value, ty) in takes.into_iter().zip(operands.iter().chain(slots)) {
            params.push(value.unwrap_or_else(|| fresh(&mut extended.func, ty)));
        }
        params.extend(&self.joint.func.params[self.joint.params..]);
        let given = &self.joint.func.results[self.joint.results..];
        part(&extended, "branch.back", &params, given, &self.cut.after)
    }
}

/// A slot of that type which this branch has not taken, made if there is none.
pub(crate) fn slot(slots: &mut Vec<Type>, taken: &mut Vec<bool>, ty: &Type) -> usize {
    let free = (0..slots.len()).find(|&at| !taken[at] && slots[at] == *ty);
    let at = free.unwrap_or_else(|| {
        slots.push(ty.clone());
        taken.push(false);
        slots.len() - 1
    });
    taken[at] = true;
    at
}

pub(crate) fn fresh(func: &mut Func, ty: &Type) -> Value {
    func.types.push(ty.clone());
    Value(func.types.len() as u32 - 1)
}

/// Zeros in equations of their own.
pub(crate) fn zeros(func: &mut Func, chosen: &mut Vec<bool>, ty: &Type) -> Value {
    let mut push = |func: &mut Func, op, params, inputs: Vec<Value>, ty: &Type| {
        let output = fresh(func, ty);
        func.eqns.push(Eqn {
            op,
            params,
            inputs,
            outputs: vec![output],
            origin: None,
            stage: Stage::Forward,
        });
        chosen.push(true);
        output
    };
    if ty.is_host() {
        let made = zeros(func, chosen, &ty.within(MemorySpace::Device));
        let (put, copy) = crate::offload::put(&mut func.types, made, None);
        func.eqns.push(put);
        chosen.push(true);
        return copy;
    }
    let scalar = Type::new(ty.dtype, []);
    let params = Params::new()
        .with("value", Param::Literal(Literal::from_f64(ty.dtype, 0.0)))
        .with("shape", Param::Shape(Shape::scalar()));
    let zero = push(func, &FULL, params, Vec::new(), &scalar);
    if ty.shape.rank() == 0 {
        return zero;
    }
    let params = Params::new().with("shape", Param::Shape(ty.shape.clone()));
    push(func, &BROADCAST, params, vec![zero], ty)
}

pub(crate) fn params(on_true: Func, on_false: Func) -> Params {
    Params::new()
        .with("on_true", Param::Func(Arc::new(on_true)))
        .with("on_false", Param::Func(Arc::new(on_false)))
}

impl Reverse {
    /// `at` is where the cond stands in the program; it is replaced by one that also gives the slots.
    pub(crate) fn cond_backward(
        &mut self,
        at: usize,
        eqn: &Eqn,
        branches: [&Func; 2],
    ) -> Result<(), Fault> {
        let operands = eqn.inputs[1..].to_vec();
        let wrt: Vec<usize> =
            (0..operands.len()).filter(|&k| self.is_active(operands[k])).collect();
        let seeded: Vec<usize> =
            (0..eqn.outputs.len()).filter(|&k| self.cotangent(eqn.outputs[k]).is_some()).collect();
        let mut slots = Vec::new();
        let mut made = Vec::with_capacity(2);
        for func in branches {
            let branch = Branch::new(func, &wrt, &seeded, &mut slots);
            made.push(branch.map_err(|fault| fault::at(fault, eqn.origin))?);
        }
        let [yes, no] = [&made[0], &made[1]];
        let forward = params(yes.forward(&slots), no.forward(&slots));
        let whole = self.writer.builder.eqns()[at].inputs.clone();
        let outputs = self
            .writer
            .builder
            .replace(at, &COND, forward, whole)
            .map_err(|fault| fault::at(fault, eqn.origin))?;
        self.writer.mark = Mark { stage: Stage::Backward, of: COND.name, origin: eqn.origin };
        let mut inputs = eqn.inputs.clone();
        inputs.extend(&outputs[eqn.outputs.len()..]);
        inputs.extend(seeded.iter().filter_map(|&k| self.cotangent(eqn.outputs[k])));
        let types = self.types(&operands);
        let back = params(yes.backward(&types, &slots), no.backward(&types, &slots));
        let given = self.writer.push(&COND, back, &inputs, eqn.origin)?;
        for (&k, cotangent) in wrt.iter().zip(given) {
            self.accumulate(operands[k], cotangent)?;
        }
        Ok(())
    }
}
