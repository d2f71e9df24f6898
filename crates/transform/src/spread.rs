//! Policies inside loops and branches. What a policy saves of a body leaves the loop stacked beside its
//! results; the loop that is computed again takes the stacks in, and each saved value stands for what was
//! computed. So a policy means the same whether layers are written out or scanned.

use crate::condition::{self, fresh, slot, zeros};
use crate::loops;
use crate::offload::{fetch, put};
use crate::policy::Policy;
use crate::reverse::inline;
use crate::split::repeatable;
use std::sync::Arc;
use vramlab_ir::lowering::ScanLoop;
use vramlab_ir::{
    Eqn, Fault, Func, FuncBuilder, Lowering, Origin, Param, Params, Shape, Stage, Type, Value,
};
use vramlab_ops::{CHECKPOINT_NAME, COND, CUSTOM_VJP, RESHAPE, SCAN};

/// A function and what a policy saves within it. The values of both forms are those of the function, then
/// their own.
pub(crate) struct Spread {
    /// As it runs first: behind its results is what is saved.
    pub forward: Func,
    /// As it is computed again: behind its parameters is what was saved.
    pub again: Func,
    /// Of what is saved.
    types: Vec<Type>,
    /// What the loops and branches give in which something is saved: they are gone through again.
    pub gone_through: Vec<Value>,
}

impl Spread {
    /// What `policy` saves in the loops and branches of `func`, which holds no calls. What it saves of
    /// the function itself is the caller's.
    ///
    /// # Errors
    /// The fault of a shape rule.
    pub fn within(policy: &Policy, func: &Func) -> Result<Spread, Fault> {
        Spread::of(policy, func, false)
    }

    /// With `leaves` also what it saves of the function itself.
    fn of(policy: &Policy, func: &Func, leaves: bool) -> Result<Spread, Fault> {
        let (forward, again) = (func.clone(), func.clone());
        let mut spread = Spread { forward, again, types: Vec::new(), gone_through: Vec::new() };
        if matches!(policy, Policy::Nothing | Policy::Everything) {
            return Ok(spread);
        }
        spread.forward.eqns.clear();
        spread.again.eqns.clear();
        let kept = policy.saveable(func);
        let mut linked = vec![false; func.types.len()];
        for eqn in &func.eqns {
            let types: Vec<Type> = eqn.inputs.iter().map(|&v| func.ty(v).clone()).collect();
            let saved = eqn.outputs.iter().all(|output| kept[output.index()]);
            // Where all of a loop is kept, all that its gradient reads is.
            let enters = !saved || policy.excepts(eqn);
            let entered = match eqn.op.lower(&types, &eqn.params) {
                Lowering::Scan(scan) if enters => spread.scan(policy, eqn, &scan)?,
                Lowering::Cond { on_true, on_false } if enters => {
                    spread.cond(policy, eqn, [&on_true, &on_false])?
                }
                _ => false,
            };
            if entered {
                spread.gone_through.extend(&eqn.outputs);
            } else if !(leaves && spread.leaf(policy, func, eqn, saved, &mut linked)?) {
                spread.forward.eqns.push(eqn.clone());
                spread.again.eqns.push(eqn.clone());
            }
        }
        Ok(spread)
    }

    /// A value that leaves the forward; the parameter that brings it back.
    fn save(&mut self, value: Value) -> Value {
        let ty = self.forward.ty(value).clone();
        self.forward.results.push(value);
        let param = fresh(&mut self.again, &ty);
        self.again.params.push(param);
        self.types.push(ty);
        param
    }

    /// An equation that applies no function; whether its results are saved.
    fn leaf(
        &mut self,
        policy: &Policy,
        func: &Func,
        eqn: &Eqn,
        saved: bool,
        linked: &mut [bool],
    ) -> Result<bool, Fault> {
        let offloaded = !saved && eqn.outputs.len() == 1 && policy.offloads(func, eqn);
        let named = eqn.op.name() == CHECKPOINT_NAME.name;
        // A name is of its operand as well, and views are made of what they show.
        let there = if named { linked[eqn.inputs[0].index()] } else { repeatable(func, eqn) };
        if there || !(saved || offloaded) {
            return Ok(false);
        }
        self.forward.eqns.push(eqn.clone());
        let mut computed = eqn.clone();
        for output in &mut computed.outputs {
            *output = fresh(&mut self.again, func.ty(*output));
        }
        let again = computed.outputs.clone();
        self.again.eqns.push(computed);
        for (&output, computed) in eqn.outputs.iter().zip(again) {
            linked[output.index()] = true;
            let mut leaves = output;
            if offloaded {
                let (put, copy) = put(&mut self.forward.types, output, eqn.origin);
                self.forward.eqns.push(put);
                leaves = copy;
            }
            let mut back = self.save(leaves);
            if offloaded {
                let (fetch, copy) = fetch(&mut self.again.types, back, eqn.origin);
                self.again.eqns.push(fetch);
                back = copy;
            }
            let params = link(func.ty(output))?;
            self.again.eqns.push(equation(
                &CUSTOM_VJP,
                params,
                vec![computed, back],
                vec![output],
                eqn.origin,
            ));
        }
        Ok(true)
    }

    fn scan(&mut self, policy: &Policy, eqn: &Eqn, scan: &ScanLoop) -> Result<bool, Fault> {
        let body = Spread::of(policy, &inline(&scan.body)?, true)?;
        if body.types.is_empty() {
            return Ok(false);
        }
        let params =
            |body| loops::params(body, scan.length, scan.consts, scan.carries, scan.reverse);
        let (mut outputs, mut inputs) = (eqn.outputs.clone(), eqn.inputs.clone());
        for ty in &body.types {
            let extents: Vec<usize> = [&[scan.length], &ty.shape[..]].concat();
            let stack = Type { shape: Shape::new(extents), ..ty.clone() };
            let stack = fresh(&mut self.forward, &stack);
            outputs.push(stack);
            inputs.push(self.save(stack));
        }
        let forward = params(body.forward);
        let again = params(body.again);
        self.forward.eqns.push(equation(&SCAN, forward, eqn.inputs.clone(), outputs, eqn.origin));
        self.again.eqns.push(equation(&SCAN, again, inputs, eqn.outputs.clone(), eqn.origin));
        Ok(true)
    }

    fn cond(
        &mut self,
        policy: &Policy,
        eqn: &Eqn,
        branches: [&Arc<Func>; 2],
    ) -> Result<bool, Fault> {
        let [mut yes, mut no] = [
            Spread::of(policy, &inline(branches[0])?, true)?,
            Spread::of(policy, &inline(branches[1])?, true)?,
        ];
        // One branch is taken, so both use the same slots.
        let mut slots: Vec<Type> = Vec::new();
        let places: [Vec<usize>; 2] = [&yes, &no].map(|branch| {
            let mut taken = vec![false; slots.len()];
            branch.types.iter().map(|ty| slot(&mut slots, &mut taken, ty)).collect()
        });
        if slots.is_empty() {
            return Ok(false);
        }
        yes.fill(&slots, &places[0]);
        no.fill(&slots, &places[1]);
        let (mut outputs, mut inputs) = (eqn.outputs.clone(), eqn.inputs.clone());
        for ty in &slots {
            let saved = fresh(&mut self.forward, ty);
            outputs.push(saved);
            inputs.push(self.save(saved));
        }
        let forward = condition::params(yes.forward, no.forward);
        let again = condition::params(yes.again, no.again);
        self.forward.eqns.push(equation(&COND, forward, eqn.inputs.clone(), outputs, eqn.origin));
        self.again.eqns.push(equation(&COND, again, inputs, eqn.outputs.clone(), eqn.origin));
        Ok(true)
    }

    /// Brings what a branch saves into `slots`; those that it has no value for hold zeros.
    fn fill(&mut self, slots: &[Type], places: &[usize]) {
        let own = self.forward.results.len() - self.types.len();
        let saved = self.forward.results.split_off(own);
        let own = self.again.params.len() - self.types.len();
        let given = self.again.params.split_off(own);
        for (at, ty) in slots.iter().enumerate() {
            let mine = places.iter().position(|&place| place == at);
            let value = match mine {
                Some(mine) => saved[mine],
                None => zeros(&mut self.forward, &mut Vec::new(), ty),
            };
            self.forward.results.push(value);
            let param = match mine {
                Some(mine) => given[mine],
                None => fresh(&mut self.again, ty),
            };
            self.again.params.push(param);
        }
    }
}

/// The name of what stands for a saved value; no function of a user has it.
const SAVED: &str = "saved value";

/// What is computed again and what was saved of it, where an application of `inner` says that they are one.
pub(crate) fn stand_in(inner: &Func, inputs: &[Value]) -> Option<(Value, Value)> {
    match inputs {
        &[computed, saved] if inner.name == SAVED => Some((computed, saved)),
        _ => None,
    }
}

fn equation(
    op: vramlab_ir::Op,
    params: Params,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    origin: Option<Origin>,
) -> Eqn {
    Eqn { op, params, inputs, outputs, origin, stage: Stage::Forward }
}

/// A function of what is computed and what was saved. It gives the former; its forward gives the latter, whose
/// cotangent goes to the former.
///
/// # Errors
/// The fault of a shape rule.
fn link(ty: &Type) -> Result<Params, Fault> {
    let mut func = FuncBuilder::new(SAVED);
    let computed = func.param(ty.clone());
    func.param(ty.clone());
    let mut forward = FuncBuilder::new(SAVED);
    forward.param(ty.clone());
    let saved = forward.param(ty.clone());
    // A value of its own: cotangents of what was saved itself, in a gradient of this one, are others.
    let shape = Params::new().with("shape", Param::Shape(ty.shape.clone()));
    let saved = forward.push(&RESHAPE, shape, &[saved], None)?;
    let mut back = FuncBuilder::new(SAVED);
    let cotangent = back.param(ty.clone());
    let back = Arc::new(back.finish(vec![cotangent]));
    Ok(Params::new()
        .with("func", Param::Func(Arc::new(func.finish(vec![computed]))))
        .with("forward", Param::Func(Arc::new(forward.finish(saved))))
        .with("backward", Param::Func(back))
        .with("given", Param::Int(1)))
}
