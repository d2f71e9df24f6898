//! Reverse mode: a program is written forward with a tape beside it, then the tape is gone back.

use crate::activity::through;
use crate::fault;
use crate::joint::{Exchange, Mark};
use crate::offload::{Offloaded, Offloading};
use crate::policy::Policy;
use crate::spread::{Spread, stand_in};
use crate::writer::Writer;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vramlab_ir::{
    Eqn, Fault, Func, Gradient, Lowering, Origin, Params, Pullback, Stage, Type, Value,
};
use vramlab_ops::{BARRIER, CHECKPOINT, CUSTOM_VJP, DEVICE_PUT};

/// A joint program as it is written. The vectors are indexed by value and grow with the program.
pub(crate) struct Reverse {
    pub writer: Writer,
    /// Which values a gradient can flow through.
    active: Vec<bool>,
    cotangents: Vec<Option<Value>>,
    pub(crate) offloaded: Offloaded,
    /// Saved values by what is computed again and not read.
    stand_ins: HashMap<Value, Value>,
}

/// What there is to go back through, in order.
pub(crate) enum Record {
    /// The equation at a position of the builder.
    Eqn(usize),
    /// An equation of a checkpoint whose results the policy saved: it is not written again.
    Saved(Box<Eqn>),
    Region(Box<Region>),
    Custom(Custom),
}

/// A checkpoint: its function was inlined and can be written again.
pub(crate) struct Region {
    func: Func,
    inputs: Vec<Value>,
    /// What the policy saved in loops and branches, which the function takes behind its inputs.
    stacks: Vec<Value>,
    outputs: Vec<Value>,
    /// Values of the function that the policy saved: what they were in the forward.
    saved: Vec<Option<Value>>,
    /// Values of the function that the policy offloaded: what they were, and their copies.
    offloaded: Vec<Option<(Value, Value)>>,
    origin: Option<Origin>,
}

/// A function with a gradient of its own.
pub(crate) struct Custom {
    backward: Arc<Func>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    kept: Vec<Value>,
    origin: Option<Origin>,
}

/// What stands for each value of a function while it is inlined.
type Env = Vec<Option<Value>>;

const DEFINED: &str = "a program defines values before their use";

impl Reverse {
    pub fn new(name: &str) -> Reverse {
        Reverse {
            writer: Writer::new(name),
            active: Vec::new(),
            cotangents: Vec::new(),
            offloaded: Offloaded::default(),
            stand_ins: HashMap::new(),
        }
    }

    pub fn is_active(&self, value: Value) -> bool {
        self.active.get(value.index()).copied().unwrap_or(false)
    }

    pub fn activate(&mut self, value: Value) {
        if self.active.len() <= value.index() {
            self.active.resize(value.index() + 1, false);
        }
        self.active[value.index()] = true;
    }

    /// What is known of a value's cotangent, which is then forgotten.
    fn take_cotangent(&mut self, value: Value) -> Option<Value> {
        self.cotangents.get_mut(value.index()).and_then(Option::take)
    }

    pub fn cotangent(&self, value: Value) -> Option<Value> {
        self.cotangents.get(value.index()).copied().flatten()
    }

    /// Adds to what is known of a value's cotangent.
    ///
    /// # Errors
    /// The fault of the sum's shape rule.
    pub fn accumulate(&mut self, value: Value, cotangent: Value) -> Result<(), Fault> {
        let sum = match self.cotangent(value) {
            Some(known) => self.writer.add_up(known, cotangent)?,
            None => cotangent,
        };
        self.set_cotangent(value, sum);
        Ok(())
    }

    fn set_cotangent(&mut self, value: Value, sum: Value) {
        if self.cotangents.len() <= value.index() {
            self.cotangents.resize(value.index() + 1, None);
        }
        self.cotangents[value.index()] = Some(sum);
    }

    /// Writes `func` applied to `arguments`, calls inlined, and appends what there is to go back
    /// through; its results.
    ///
    /// # Errors
    /// The fault of a shape rule.
    pub fn forward(
        &mut self,
        func: &Func,
        arguments: &[Value],
        tape: &mut Vec<Record>,
    ) -> Result<Vec<Value>, Fault> {
        let saved = vec![None; func.types.len()];
        self.inline(func, arguments, &saved, Some(tape)).map(|(results, _)| results)
    }

    fn inline(
        &mut self,
        func: &Func,
        arguments: &[Value],
        saved: &[Option<Value>],
        mut tape: Option<&mut Vec<Record>>,
    ) -> Result<(Vec<Value>, Env), Fault> {
        let mut env: Env = vec![None; func.types.len()];
        for (param, &argument) in func.params.iter().zip(arguments) {
            env[param.index()] = Some(argument);
        }
        for eqn in &func.eqns {
            let inputs: Vec<Value> =
                eqn.inputs.iter().map(|v| env[v.index()].expect(DEFINED)).collect();
            let kept: Option<Vec<Value>> =
                eqn.outputs.iter().map(|output| saved[output.index()]).collect();
            let outputs = match (kept, tape.as_deref_mut()) {
                (Some(outputs), Some(tape)) => {
                    tape.push(Record::Saved(Box::new(Eqn {
                        op: eqn.op,
                        params: eqn.params.clone(),
                        inputs,
                        outputs: outputs.clone(),
                        origin: eqn.origin,
                        stage: Stage::Recompute,
                    })));
                    outputs
                }
                (_, tape) => self.equation(eqn, inputs, tape)?,
            };
            for (output, value) in eqn.outputs.iter().zip(outputs) {
                env[output.index()] = Some(value);
            }
        }
        let results = func.results.iter().map(|v| env[v.index()].expect(DEFINED)).collect();
        Ok((results, env))
    }

    /// One equation of an inlined function; its outputs.
    fn equation(
        &mut self,
        eqn: &Eqn,
        inputs: Vec<Value>,
        tape: Option<&mut Vec<Record>>,
    ) -> Result<Vec<Value>, Fault> {
        if self.writer.mark.stage != Stage::Backward {
            self.writer.mark = Mark { of: eqn.op.name(), origin: eqn.origin, ..self.writer.mark };
        }
        if eqn.op.gradient() == Gradient::Held {
            let types = self.types(&inputs);
            if let Lowering::Call(inner) = eqn.op.lower(&types, &eqn.params) {
                return self.applied(eqn, inner, inputs, tape);
            }
        }
        let outputs = self.writer.push(eqn.op, eqn.params.clone(), &inputs, eqn.origin)?;
        let active: Vec<bool> = inputs.iter().map(|&v| self.is_active(v)).collect();
        if active.contains(&true) {
            let (from, to) = (self.types(&inputs), self.types(&outputs));
            let flowing = through(eqn, &from, &to, &active);
            for (&output, _) in outputs.iter().zip(&flowing).filter(|(_, flows)| **flows) {
                self.activate(output);
            }
            if let Some(tape) = tape.filter(|_| flowing.contains(&true)) {
                tape.push(Record::Eqn(self.writer.builder.eqns().len() - 1));
            }
        }
        Ok(outputs)
    }

    /// A function held by an equation: inlined, and what is special of it kept on the tape.
    fn applied(
        &mut self,
        eqn: &Eqn,
        inner: Arc<Func>,
        inputs: Vec<Value>,
        tape: Option<&mut Vec<Record>>,
    ) -> Result<Vec<Value>, Fault> {
        let fresh = |func: &Func| vec![None; func.types.len()];
        let any = inputs.iter().any(|&v| self.is_active(v));
        if let Some((_, saved)) = stand_in(&inner, &inputs).filter(|_| !any) {
            return Ok(vec![saved]);
        }
        let Some(tape) = tape.filter(|_| any) else {
            return Ok(self.inline(&inner, &inputs, &fresh(&inner), None)?.0);
        };
        match eqn.op.name() {
            name if name == CHECKPOINT.name => {
                let policy = Policy::parse(eqn.params.text("policy").unwrap_or_default())?;
                let func = inline(&inner)?;
                let Spread { forward, again, gone_through, .. } = Spread::within(&policy, &func)?;
                let mut kept = policy.saveable(&forward);
                gone_through.iter().for_each(|value| kept[value.index()] = false);
                let Offloading { forward, copies } = Offloading::of(&policy, &forward, &kept);
                let (mut outputs, env) = self.inline(&forward, &inputs, &fresh(&forward), None)?;
                let stacks = outputs.split_off(func.results.len());
                let copied = |(at, copy): (usize, Option<Value>)| {
                    Some((env[at].expect(DEFINED), env[copy?.index()].expect(DEFINED)))
                };
                let own = func.types.len();
                let offloaded = copies.into_iter().enumerate().map(copied).take(own);
                let saved = env.iter().zip(kept).map(|(v, keep)| v.filter(|_| keep)).take(own);
                let mut region = Region {
                    inputs,
                    stacks,
                    outputs,
                    saved: saved.collect(),
                    offloaded: offloaded.collect(),
                    origin: eqn.origin,
                    func: again,
                };
                region.saved.resize(region.func.types.len(), None);
                let results = region.outputs.clone();
                tape.push(Record::Region(Box::new(region)));
                Ok(results)
            }
            name if name == CUSTOM_VJP.name => {
                let forward = eqn.params.func("forward").expect("the entry checked its params");
                let backward = eqn.params.func("backward").expect("the entry checked its params");
                let (mut outputs, _) = self.inline(forward, &inputs, &fresh(forward), None)?;
                if let Some((computed, _)) = stand_in(&inner, &inputs) {
                    self.stand_ins.insert(computed, outputs[0]);
                }
                let kept = outputs.split_off(inner.results.len());
                for &output in &outputs {
                    if self.writer.ty(output).dtype.is_float() {
                        self.activate(output);
                    }
                }
                let (backward, results) = (Arc::clone(backward), outputs.clone());
                let origin = eqn.origin;
                tape.push(Record::Custom(Custom { backward, inputs, outputs, kept, origin }));
                Ok(results)
            }
            _ => Ok(self.inline(&inner, &inputs, &fresh(&inner), Some(tape))?.0),
        }
    }

    pub fn types(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&v| self.writer.ty(v).clone()).collect()
    }

    /// Goes back through the tape from the cotangents there are.
    ///
    /// # Errors
    /// A fault that names an op without gradient.
    pub fn backward(&mut self, tape: Vec<Record>) -> Result<(), Fault> {
        for record in tape.into_iter().rev() {
            match record {
                Record::Eqn(at) => {
                    let eqn = self.writer.builder.eqns()[at].clone();
                    self.eqn_backward(&eqn, at)?;
                }
                Record::Saved(eqn) => {
                    let eqns = self.writer.builder.eqns();
                    let own = eqns.iter().position(|other| other.outputs == eqn.outputs);
                    self.eqn_backward(&eqn, own.expect("what was saved was written"))?;
                }
                Record::Region(region) => self.region_backward(*region)?,
                Record::Custom(custom) => self.custom_backward(custom)?,
            }
        }
        Ok(())
    }

    /// `at` is where its results are written.
    fn eqn_backward(&mut self, eqn: &Eqn, at: usize) -> Result<(), Fault> {
        if eqn.outputs.iter().all(|&output| self.cotangent(output).is_none()) {
            return Ok(());
        }
        self.writer.mark = Mark { stage: Stage::Backward, of: eqn.op.name(), origin: eqn.origin };
        match eqn.op.gradient() {
            Gradient::Rule => self.rule(eqn),
            Gradient::Zero(_) => Ok(()),
            Gradient::None(why) => {
                Err(fault::no_gradient(eqn.op.name(), why, &self.types(&eqn.inputs), eqn.origin))
            }
            Gradient::Held => self.held_backward(at, eqn),
        }
    }

    fn rule(&mut self, eqn: &Eqn) -> Result<(), Fault> {
        let needed: Vec<bool> = eqn.inputs.iter().map(|&v| self.is_active(v)).collect();
        let cotangents: Vec<Option<Value>> =
            eqn.outputs.iter().map(|&v| self.cotangent(v)).collect();
        let after: Vec<Value> = cotangents.iter().flatten().copied().collect();
        let mut fetched = |values: &[Value]| -> Result<Vec<Value>, Fault> {
            values.iter().map(|&value| self.fetched(value, &after, eqn.origin)).collect()
        };
        let (inputs, outputs) = (fetched(&eqn.inputs)?, fetched(&eqn.outputs)?);
        let outputs: Vec<Value> =
            outputs.iter().map(|value| *self.stand_ins.get(value).unwrap_or(value)).collect();
        let pullback = Pullback {
            builder: &mut self.writer.builder,
            inputs: &inputs,
            outputs: &outputs,
            params: &eqn.params,
            cotangents: &cotangents,
            needed: &needed,
            origin: eqn.origin,
        };
        let given = eqn.op.vjp(pullback).map_err(|fault| fault::at(fault, eqn.origin))?;
        self.writer.settle();
        for (&input, cotangent) in eqn.inputs.iter().zip(given) {
            if let Some(cotangent) = cotangent {
                self.accumulate(input, cotangent)?;
            }
        }
        Ok(())
    }

    fn held_backward(&mut self, at: usize, eqn: &Eqn) -> Result<(), Fault> {
        match eqn.op.lower(&self.types(&eqn.inputs), &eqn.params) {
            Lowering::Scan(scan) => self.scan_backward(at, eqn, &scan),
            Lowering::Cond { on_true, on_false } => {
                self.cond_backward(at, eqn, [&on_true, &on_false])
            }
            _ => Err(fault::while_loop(eqn.origin)),
        }
    }

    /// `func` applied to values, with nothing to go back through.
    pub fn plain(&mut self, func: &Func, arguments: &[Value]) -> Result<Vec<Value>, Fault> {
        let none = vec![None; func.types.len()];
        self.inline(func, arguments, &none, None).map(|(results, _)| results)
    }

    /// The function once more from its arguments, which wait for the cotangents, then back.
    fn region_backward(&mut self, region: Region) -> Result<(), Fault> {
        // Taken: a saved result stands for itself again below.
        let known: Vec<Option<Value>> =
            region.outputs.iter().map(|&v| self.take_cotangent(v)).collect();
        let waiting: Vec<Value> = known.iter().flatten().copied().collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let name = CHECKPOINT.name;
        let from = self.writer.builder.eqns().len();
        let recompute = Mark { stage: Stage::Recompute, of: name, origin: region.origin };
        self.writer.mark = recompute;
        let mut again = Vec::with_capacity(region.inputs.len());
        for &input in &region.inputs {
            let operands: Vec<Value> = std::iter::once(input).chain(waiting.clone()).collect();
            let value = self.writer.push(&BARRIER, Params::new(), &operands, region.origin)?[0];
            if self.is_active(input) {
                self.activate(value);
                // The sum so far goes in, so that parts are added where they belong.
                if let Some(sum) = self.take_cotangent(input) {
                    self.set_cotangent(value, sum);
                }
            }
            again.push(value);
        }
        let inputs = region.inputs.len();
        for &stack in &region.stacks {
            let operands: Vec<Value> = std::iter::once(stack).chain(waiting.clone()).collect();
            // Only copies touch host memory, and these wait in the loop.
            again.push(match self.writer.ty(stack).is_host() {
                true => stack,
                false => self.writer.push(&BARRIER, Params::new(), &operands, region.origin)?[0],
            });
        }
        let saved = self.copies_back(&region, &waiting)?;
        let mut tape = Vec::new();
        let (results, env) = self.inline(&region.func, &again, &saved, Some(&mut tape))?;
        for (value, offloaded) in env.iter().zip(&region.offloaded) {
            if let (Some(value), Some((_, host))) = (value, offloaded) {
                self.offloaded.stands_for(*value, *host);
            }
        }
        for (&result, cotangent) in results.iter().zip(known) {
            if let Some(cotangent) = cotangent.filter(|_| self.is_active(result)) {
                self.accumulate(result, cotangent)?;
            }
        }
        self.backward(tape)?;
        let exchange = self.exchange(&region, from);
        self.writer.exchanges.push(exchange);
        self.writer.mark = Mark { stage: Stage::Backward, ..recompute };
        for (&input, &value) in region.inputs.iter().zip(&again[..inputs]) {
            if let Some(cotangent) = self.cotangent(value) {
                self.accumulate(input, cotangent)?;
            }
        }
        Ok(())
    }

    /// What stands for the values that were kept while the region is computed again; those in host memory
    /// come back for it. Where a name and its operand have one copy, the operand does.
    fn copies_back(
        &mut self,
        region: &Region,
        waiting: &[Value],
    ) -> Result<Vec<Option<Value>>, Fault> {
        let mut saved = region.saved.clone();
        let mut seen: HashSet<Value> = HashSet::new();
        for (at, offloaded) in region.offloaded.iter().enumerate() {
            let Some((original, host)) = offloaded.filter(|(_, host)| seen.insert(*host)) else {
                continue;
            };
            let value = self.copy_back(host, waiting, region.origin)?;
            if self.is_active(original) {
                self.activate(value);
            }
            saved[at] = Some(value);
        }
        Ok(saved)
    }

    /// What the region's way back, written from equation `from` on, keeps and drops.
    fn exchange(&self, region: &Region, from: usize) -> Exchange {
        let builder = &self.writer.builder;
        let bytes = |value: Value| builder.ty(value).bytes();
        let made = region.inputs.iter().filter(|input| !builder.params().contains(input));
        let eqns = builder.eqns()[from..].iter();
        let moves = |eqn: &Eqn| [BARRIER.name, DEVICE_PUT.name].contains(&eqn.op.name());
        let again = |eqn: &&Eqn| eqn.stage == Stage::Recompute && !moves(eqn);
        let computed: HashSet<Value> =
            eqns.clone().filter(again).flat_map(|eqn| eqn.outputs.iter().copied()).collect();
        let back = eqns.filter(|eqn| eqn.stage == Stage::Backward);
        let hosts: HashSet<Value> = back
            .clone()
            .filter(|eqn| eqn.op.name() == DEVICE_PUT.name)
            .map(|eqn| eqn.inputs[0])
            .collect();
        let fetched: u64 = hosts.iter().map(|&host| bytes(host)).sum();
        let read: HashSet<Value> = back.flat_map(|eqn| eqn.inputs.iter().copied()).collect();
        Exchange {
            origin: region.origin,
            kept: made.map(|&value| bytes(value)).sum(),
            dropped: computed.intersection(&read).map(|&value| bytes(value)).sum::<u64>() + fetched,
        }
    }

    fn custom_backward(&mut self, custom: Custom) -> Result<(), Fault> {
        let known: Vec<Option<Value>> = custom.outputs.iter().map(|&v| self.cotangent(v)).collect();
        if known.iter().all(Option::is_none) {
            return Ok(());
        }
        self.writer.mark =
            Mark { stage: Stage::Backward, of: CUSTOM_VJP.name, origin: custom.origin };
        let mut arguments = custom.kept;
        for (&output, cotangent) in custom.outputs.iter().zip(known) {
            let ty = self.writer.ty(output).clone();
            arguments.push(match cotangent {
                Some(cotangent) => cotangent,
                None => self.writer.full(0.0, &ty)?,
            });
        }
        let given = self.plain(&custom.backward, &arguments)?;
        for (&input, cotangent) in custom.inputs.iter().zip(given) {
            if self.is_active(input) {
                self.accumulate(input, cotangent)?;
            }
        }
        Ok(())
    }
}

/// `func` without calls: each function is in the place of its call. Checkpoints and functions with
/// gradients of their own stay.
///
/// # Errors
/// The fault of a shape rule.
pub fn inline(func: &Func) -> Result<Func, Fault> {
    let mut writer = Writer::new(&func.name);
    let arguments: Vec<Value> = func.params.iter().map(|&p| writer.param(func.ty(p))).collect();
    let results = flatten(&mut writer, func, &arguments)?;
    Ok(writer.finish(results).0)
}

fn flatten(writer: &mut Writer, func: &Func, arguments: &[Value]) -> Result<Vec<Value>, Fault> {
    let mut env: Env = vec![None; func.types.len()];
    for (param, &argument) in func.params.iter().zip(arguments) {
        env[param.index()] = Some(argument);
    }
    for eqn in &func.eqns {
        let inputs: Vec<Value> =
            eqn.inputs.iter().map(|v| env[v.index()].expect(DEFINED)).collect();
        let outputs = match eqn.params.func("func").filter(|_| eqn.op.name() == "call") {
            Some(inner) => flatten(writer, inner, &inputs)?,
            None => {
                writer.mark.stage = eqn.stage;
                writer.push(eqn.op, eqn.params.clone(), &inputs, eqn.origin)?
            }
        };
        for (output, value) in eqn.outputs.iter().zip(outputs) {
            env[output.index()] = Some(value);
        }
    }
    Ok(func.results.iter().map(|v| env[v.index()].expect(DEFINED)).collect())
}
