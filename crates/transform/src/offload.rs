//! Values of a checkpoint that wait in host memory: copied there where they are made, and back where
//! the gradient reads them.

use crate::policy::Policy;
use crate::reverse::Reverse;
use std::collections::HashMap;
use vramlab_ir::{
    Eqn, Fault, Func, Gradient, MemorySpace, Origin, Param, Params, Stage, Type, Value,
};
use vramlab_ops::{CHECKPOINT_NAME, DEVICE_PUT};

/// A checkpoint's function with the copies to the host.
pub(crate) struct Offloading {
    /// As it runs forward: a copy stands right behind what makes its value. Its values are those of the
    /// checkpoint's function, then the copies.
    pub forward: Func,
    /// Per value of the checkpoint's function: its copy among the values of `forward`.
    pub copies: Vec<Option<Value>>,
}

impl Offloading {
    /// What `policy` offloads of `func`, which holds no calls, beside what it keeps on the device.
    pub fn of(policy: &Policy, func: &Func, kept: &[bool]) -> Offloading {
        let mut forward = func.clone();
        let mut copies: Vec<Option<Value>> = vec![None; func.types.len()];
        let by = crate::split::definitions(func);
        forward.eqns = Vec::with_capacity(func.eqns.len());
        for eqn in &func.eqns {
            forward.eqns.push(eqn.clone());
            let &[output] = &eqn.outputs[..] else { continue };
            if kept[output.index()] || !policy.offloads(func, eqn) {
                continue;
            }
            // A name is of its operand as well: both are one value, with one copy.
            let named = eqn.op.name() == CHECKPOINT_NAME.name;
            let operand = eqn.inputs.first().copied().filter(|_| named);
            let known = operand.and_then(|operand| copies[operand.index()]);
            let copy = known.unwrap_or_else(|| {
                let (put, copy) = put(&mut forward.types, output, eqn.origin);
                forward.eqns.push(put);
                copy
            });
            copies[output.index()] = Some(copy);
            // What loops and branches give is no residual of theirs alone: they are gone through again.
            let ruled = |operand: &Value| {
                let made = by[operand.index()].map(|at| func.eqns[at].op.gradient());
                made == Some(Gradient::Rule)
            };
            if let Some(operand) = operand.filter(ruled) {
                copies[operand.index()] = Some(copy);
            }
        }
        Offloading { forward, copies }
    }
}

/// The copy of a value to the host.
pub(crate) fn put(types: &mut Vec<Type>, value: Value, origin: Option<Origin>) -> (Eqn, Value) {
    copy(types, value, MemorySpace::PinnedHost, origin)
}

/// The copy of a value back to the device.
pub(crate) fn fetch(types: &mut Vec<Type>, value: Value, origin: Option<Origin>) -> (Eqn, Value) {
    copy(types, value, MemorySpace::Device, origin)
}

fn copy(
    types: &mut Vec<Type>,
    value: Value,
    memory: MemorySpace,
    origin: Option<Origin>,
) -> (Eqn, Value) {
    types.push(types[value.index()].within(memory));
    let copy = Value(types.len() as u32 - 1);
    let params = to(memory);
    let (inputs, outputs) = (vec![value], vec![copy]);
    let stage = Stage::Forward;
    (Eqn { op: &DEVICE_PUT, params, inputs, outputs, origin, stage }, copy)
}

fn to(memory: MemorySpace) -> Params {
    Params::new().with("memory_kind", Param::Text(memory.name().to_string()))
}

/// What is in host memory.
#[derive(Default)]
pub(crate) struct Offloaded {
    /// The copy of each value that stands for what was offloaded.
    hosts: HashMap<Value, Value>,
    /// Each copy on the device again, for what is gone back through.
    back: HashMap<Value, Value>,
}

impl Offloaded {
    /// Gradients that read `value` fetch `host`.
    pub fn stands_for(&mut self, value: Value, host: Value) {
        self.hosts.insert(value, host);
    }
}

impl Reverse {
    /// `value`, or where it waits in host memory the copy back that the gradients of its readers share.
    /// The first of them, which has the cotangents `after`, decides when it comes.
    pub(crate) fn fetched(
        &mut self,
        value: Value,
        after: &[Value],
        origin: Option<Origin>,
    ) -> Result<Value, Fault> {
        let Some(&host) = self.offloaded.hosts.get(&value) else { return Ok(value) };
        if let Some(&back) = self.offloaded.back.get(&host) {
            return Ok(back);
        }
        let back = self.copy_back(host, after, origin)?;
        self.offloaded.back.insert(host, back);
        Ok(back)
    }

    /// `host` on the device again, no sooner than the values `after`.
    pub(crate) fn copy_back(
        &mut self,
        host: Value,
        after: &[Value],
        origin: Option<Origin>,
    ) -> Result<Value, Fault> {
        let operands: Vec<Value> = std::iter::once(host).chain(after.iter().copied()).collect();
        Ok(self.writer.push(&DEVICE_PUT, to(MemorySpace::Device), &operands, origin)?[0])
    }
}
