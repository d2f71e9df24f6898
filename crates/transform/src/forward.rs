//! Forward mode: tangents beside values, equation by equation.
//!
//! The op table has one rule an op, which takes cotangents back. It is linear in them, and the
//! derivative along tangents is the transpose of that linear map: the rule is written for cotangents
//! of zero, and the writing is gone back through from the tangents. What only the zeros needed is
//! dropped with everything that no result reads. Loops and branches carry their tangents with
//! them, so nothing is kept from one iteration to another, and a `while` needs no known end.

use crate::activity::{flow, through};
use crate::fault;
use crate::gradient::differentiable;
use crate::joint::{Joint, Mark};
use crate::reverse::Reverse;
use std::sync::Arc;
use vramlab_ir::lowering::{ScanLoop, WhileLoop};
use vramlab_ir::{
    Eqn, Fault, Func, FuncBuilder, Gradient, Lowering, MemorySpace, Param, Params, Pullback, Stage,
    Type, Value,
};
use vramlab_ops::{CHECKPOINT, COND, CUSTOM_VJP, SCAN, WHILE};

/// `None` is zero.
type Tangent = Option<Value>;

/// `func` and its derivative along tangents: parameters, then one tangent for each of the
/// parameters `wrt`; results, then one tangent for each result.
///
/// # Errors
/// A parameter that is no float, or an op without gradient on the way.
pub fn jvp(func: &Func, wrt: &[usize]) -> Result<Joint, Fault> {
    wrt.iter().try_for_each(|&at| differentiable("jvp", func, at))?;
    let mut forward = Forward::new(&format!("jvp({})", func.name));
    let params = forward.reverse.writer.params_of(func);
    let mut tangents: Vec<Tangent> = vec![None; params.len()];
    for &at in wrt {
        let ty = func.ty(func.params[at]).clone();
        let tangent = forward.reverse.writer.param(&ty);
        tangents[at] = Some(tangent);
    }
    let (mut results, tangents) = forward.apply(func, &params, &tangents)?;
    let own = results.len();
    for (at, tangent) in tangents.into_iter().enumerate() {
        let whole = forward.or_zero(results[at], tangent)?;
        results.push(whole);
    }
    Ok(forward.finish(params.len(), own, results))
}

/// A program as it is written: the transposing of rules is reverse mode's.
struct Forward {
    reverse: Reverse,
}

/// A function with tangents behind its parameters and results, where they are not zero.
struct Along {
    func: Func,
    /// How many parameters and results the function has of its own.
    params: usize,
    results: usize,
}

impl Forward {
    fn new(name: &str) -> Forward {
        Forward { reverse: Reverse::new(name) }
    }

    fn params(&mut self, func: &Func) -> Vec<Value> {
        func.params.iter().map(|&p| self.reverse.writer.param(func.ty(p))).collect()
    }

    /// All of it goes forward, whatever wrote it.
    fn finish(self, params: usize, own: usize, results: Vec<Value>) -> Joint {
        let mut joint = Joint::finish(self.reverse.writer, params, own, results);
        joint.marks.iter_mut().for_each(|mark| mark.stage = Stage::Forward);
        joint.func.eqns.iter_mut().for_each(|eqn| eqn.stage = Stage::Forward);
        joint
    }

    fn or_zero(&mut self, value: Value, tangent: Tangent) -> Result<Value, Fault> {
        match tangent {
            Some(tangent) => Ok(tangent),
            None => {
                let ty = self.reverse.writer.ty(value).clone();
                self.reverse.writer.full(0.0, &ty)
            }
        }
    }

    /// The function applied to values and their tangents.
    fn apply(
        &mut self,
        func: &Func,
        arguments: &[Value],
        tangents: &[Tangent],
    ) -> Result<(Vec<Value>, Vec<Tangent>), Fault> {
        let mut env: Vec<Option<(Value, Tangent)>> = vec![None; func.types.len()];
        for ((param, &argument), &tangent) in func.params.iter().zip(arguments).zip(tangents) {
            env[param.index()] = Some((argument, tangent));
        }
        let known = "a program defines values before their use";
        for eqn in &func.eqns {
            let (inputs, tangents): (Vec<Value>, Vec<Tangent>) =
                eqn.inputs.iter().map(|v| env[v.index()].expect(known)).unzip();
            self.reverse.writer.mark =
                Mark { stage: Stage::Forward, of: eqn.op.name(), origin: eqn.origin };
            let (values, tangents) = self.equation(eqn, &inputs, &tangents)?;
            for ((output, value), tangent) in eqn.outputs.iter().zip(values).zip(tangents) {
                env[output.index()] = Some((value, tangent));
            }
        }
        Ok(func.results.iter().map(|v| env[v.index()].expect(known)).unzip())
    }

    fn equation(
        &mut self,
        eqn: &Eqn,
        inputs: &[Value],
        tangents: &[Tangent],
    ) -> Result<(Vec<Value>, Vec<Tangent>), Fault> {
        let types = self.reverse.types(inputs);
        let lowering = match eqn.op.gradient() {
            Gradient::Held => Some(eqn.op.lower(&types, &eqn.params)),
            _ => None,
        };
        if let Some(Lowering::Call(inner)) = &lowering
            && eqn.op.name() == "call"
        {
            return self.apply(inner, inputs, tangents);
        }
        let active: Vec<bool> = tangents.iter().map(Option::is_some).collect();
        if !active.contains(&true) {
            let outputs = self.push(eqn, eqn.params.clone(), inputs)?;
            let none = vec![None; outputs.len()];
            return Ok((outputs, none));
        }
        let along = match (eqn.op.gradient(), lowering) {
            (Gradient::Held, Some(Lowering::Scan(scan))) => {
                self.scan(eqn, &scan, inputs, tangents, &active)
            }
            (Gradient::Held, Some(Lowering::While(body))) => {
                self.while_loop(eqn, &body, inputs, tangents, &active)
            }
            (Gradient::Held, Some(Lowering::Cond { on_true, on_false })) => {
                self.cond(eqn, [&on_true, &on_false], inputs, tangents, &active)
            }
            (Gradient::Held, Some(Lowering::Call(inner))) if eqn.op.name() == CHECKPOINT.name => {
                self.checkpoint(eqn, &inner, inputs, tangents, &active)
            }
            _ => self.transposed(eqn, &types, inputs, tangents, &active),
        };
        along.map_err(|fault| fault::at(fault, eqn.origin))
    }

    fn push(&mut self, eqn: &Eqn, params: Params, inputs: &[Value]) -> Result<Vec<Value>, Fault> {
        self.reverse.writer.push(eqn.op, params, inputs, eqn.origin)
    }

    /// An equation with a rule: the rule is transposed.
    fn transposed(
        &mut self,
        eqn: &Eqn,
        types: &[Type],
        inputs: &[Value],
        tangents: &[Tangent],
        active: &[bool],
    ) -> Result<(Vec<Value>, Vec<Tangent>), Fault> {
        if let Gradient::None(why) = eqn.op.gradient() {
            return Err(fault::no_gradient(eqn.op.name(), why, types, eqn.origin));
        }
        let (outputs, linear, constants) = match eqn.op.name() {
            name if name == CUSTOM_VJP.name => self.custom(eqn, inputs)?,
            _ => {
                let outputs = self.push(eqn, eqn.params.clone(), inputs)?;
                let given = self.reverse.types(&outputs);
                let flowing = through(eqn, types, &given, active);
                if !flowing.contains(&true) {
                    let none = vec![None; outputs.len()];
                    return Ok((outputs, none));
                }
                let linear = pullback(eqn, types, &given, active)?;
                let constants = [inputs, &outputs].concat();
                (outputs, linear, constants)
            }
        };
        let mut arguments = constants;
        let mut seeds = Vec::with_capacity(outputs.len());
        for &output in &outputs {
            let ty = self.reverse.writer.ty(output).clone();
            let zero = self.reverse.writer.full(0.0, &ty)?;
            if ty.dtype.is_float() {
                self.reverse.activate(zero);
            }
            seeds.push(zero);
        }
        arguments.extend(&seeds);
        let mut tape = Vec::new();
        let cotangents = self.reverse.forward(&linear, &arguments, &mut tape)?;
        for (cotangent, &tangent) in cotangents.into_iter().zip(tangents) {
            if let Some(tangent) = tangent.filter(|_| self.reverse.is_active(cotangent)) {
                self.reverse.accumulate(cotangent, tangent)?;
            }
        }
        self.reverse.backward(tape)?;
        let tangents = seeds.into_iter().map(|seed| self.reverse.cotangent(seed)).collect();
        Ok((outputs, tangents))
    }

    /// A function with a gradient of its own: its results, and the gradient as a linear map.
    fn custom(
        &mut self,
        eqn: &Eqn,
        inputs: &[Value],
    ) -> Result<(Vec<Value>, Func, Vec<Value>), Fault> {
        let held = |name: &str| eqn.params.func(name).expect("the entry checked its params");
        let mut outputs = self.reverse.plain(held("forward"), inputs)?;
        let kept = outputs.split_off(held("func").results.len());
        Ok((outputs, held("backward").as_ref().clone(), kept))
    }

    fn checkpoint(
        &mut self,
        eqn: &Eqn,
        inner: &Func,
        inputs: &[Value],
        tangents: &[Tangent],
        active: &[bool],
    ) -> Result<(Vec<Value>, Vec<Tangent>), Fault> {
        let wanted = flow(inner, active);
        let along = Along::new(inner, active, &wanted)?;
        let own = along.results;
        let policy = eqn.params.get("policy").expect("the entry checked its params").clone();
        let params =
            Params::new().with("policy", policy).with("func", Param::Func(Arc::new(along.func)));
        let operands = with_tangents(inputs, tangents);
        let outputs = self.push(eqn, params, &operands)?;
        Ok(apart(&outputs, own, &wanted))
    }

    /// The tangents of carries are carried, those of slices taken and stacked beside them.
    fn scan(
        &mut self,
        eqn: &Eqn,
        scan: &ScanLoop,
        inputs: &[Value],
        tangents: &[Tangent],
        active: &[bool],
    ) -> Result<(Vec<Value>, Vec<Tangent>), Fault> {
        let wanted = crate::loops::active_outputs(scan, active);
        let (consts, carries) = (scan.consts, scan.consts + scan.carries);
        let mut taken = active.to_vec();
        taken[consts..carries].copy_from_slice(&wanted[..scan.carries]);
        let tangents = self.begun(inputs, tangents, &taken)?;
        let Along { mut func, params, results } = Along::new(&scan.body, &taken, &wanted)?;
        // Behind each kind of parameter stand its tangents, as the loop wants them.
        let kinds = [0..consts, consts..carries, carries..params];
        let (own, along) = func.params.split_at(params);
        func.params = interleaved(own, along, &kinds, &taken);
        let (own, along) = func.results.split_at(results);
        let of_results = [0..scan.carries, scan.carries..results];
        func.results = interleaved(own, along, &of_results, &wanted);
        let given: Vec<Value> = tangents.iter().flatten().copied().collect();
        let operands = interleaved(inputs, &given, &kinds, &taken);
        let more = |range: std::ops::Range<usize>, flags: &[bool]| {
            range.len() + flags[range].iter().filter(|is| **is).count()
        };
        let (consts, carries) = (more(0..consts, &taken), more(consts..carries, &taken));
        let params = crate::loops::params(func, scan.length, consts, carries, scan.reverse);
        let outputs = self.reverse.writer.push(&SCAN, params, &operands, eqn.origin)?;
        let (mut own, mut along) = (Vec::new(), Vec::new());
        let mut outputs = outputs.into_iter();
        for range in of_results {
            own.extend(outputs.by_ref().take(range.len()));
            for &is in &wanted[range] {
                along.push(if is { outputs.next() } else { None });
            }
        }
        Ok((own, along))
    }

    /// The tangents of carries are carried; the condition does not see them.
    fn while_loop(
        &mut self,
        eqn: &Eqn,
        body: &WhileLoop,
        inputs: &[Value],
        tangents: &[Tangent],
        active: &[bool],
    ) -> Result<(Vec<Value>, Vec<Tangent>), Fault> {
        let WhileLoop { cond_consts, body_consts, .. } = *body;
        let carries = carried(body, active);
        let (for_cond, rest) = inputs.split_at(cond_consts);
        let mut taken = active[cond_consts..].to_vec();
        taken[body_consts..].copy_from_slice(&carries);
        let tangents = self.begun(rest, &tangents[cond_consts..], &taken)?;
        let Along { mut func, params, .. } = Along::new(&body.body, &taken, &carries)?;
        let kinds = [0..body_consts, body_consts..params];
        let (own, along) = func.params.split_at(params);
        func.params = interleaved(own, along, &kinds, &taken);
        let given: Vec<Value> = tangents.iter().flatten().copied().collect();
        let operands = [for_cond, &interleaved(rest, &given, &kinds, &taken)].concat();
        let mut cond = body.cond.as_ref().clone();
        for (&init, _) in rest[body_consts..].iter().zip(&carries).filter(|(_, is)| **is) {
            cond.types.push(self.reverse.writer.ty(init).clone());
            cond.params.push(Value(cond.types.len() as u32 - 1));
        }
        let constants = taken[..body_consts].iter().filter(|is| **is).count();
        let params = Params::new()
            .with("cond", Param::Func(Arc::new(cond)))
            .with("body", Param::Func(Arc::new(func)))
            .with("cond_consts", Param::Int(cond_consts as i64))
            .with("body_consts", Param::Int((body_consts + constants) as i64));
        let outputs = self.reverse.writer.push(&WHILE, params, &operands, eqn.origin)?;
        Ok(apart(&outputs, carries.len(), &carries))
    }

    /// Both branches give the same tangents: one that has none gives zeros.
    fn cond(
        &mut self,
        eqn: &Eqn,
        branches: [&Func; 2],
        inputs: &[Value],
        tangents: &[Tangent],
        active: &[bool],
    ) -> Result<(Vec<Value>, Vec<Tangent>), Fault> {
        let [yes, no] = branches;
        let wanted = crate::condition::active_outputs(yes, no, active);
        let along = |func: &Func| Along::new(func, &active[1..], &wanted);
        let (yes, no) = (along(yes)?, along(no)?);
        let own = yes.results;
        let params = Params::new()
            .with("on_true", Param::Func(Arc::new(yes.func)))
            .with("on_false", Param::Func(Arc::new(no.func)));
        let operands = with_tangents(inputs, tangents);
        let outputs = self.reverse.writer.push(&COND, params, &operands, eqn.origin)?;
        Ok(apart(&outputs, own, &wanted))
    }

    /// The tangents that a loop begins with: zeros for carries that get one later.
    fn begun(
        &mut self,
        inputs: &[Value],
        tangents: &[Tangent],
        taken: &[bool],
    ) -> Result<Vec<Tangent>, Fault> {
        let each = inputs.iter().zip(tangents).zip(taken);
        each.map(|((&input, &tangent), &is)| match is {
            true => self.or_zero(input, tangent).map(Some),
            false => Ok(None),
        })
        .collect()
    }
}

impl Along {
    /// Tangents come for the parameters and go for the results that the flags name.
    fn new(func: &Func, params: &[bool], results: &[bool]) -> Result<Along, Fault> {
        let mut forward = Forward::new(&func.name);
        let arguments = forward.params(func);
        let tangents: Vec<Tangent> = func
            .params
            .iter()
            .zip(params)
            .map(|(&param, &is)| {
                // Tangents are in device memory, wherever the values are.
                let ty = func.ty(param).within(MemorySpace::Device);
                is.then(|| forward.reverse.writer.param(&ty))
            })
            .collect();
        let (mut all, tangents) = forward.apply(func, &arguments, &tangents)?;
        let own = all.len();
        for (at, (tangent, _)) in
            tangents.into_iter().zip(results).enumerate().filter(|(_, (_, is))| **is)
        {
            let whole = forward.or_zero(all[at], tangent)?;
            all.push(whole);
        }
        let func = forward.finish(arguments.len(), own, all).func;
        Ok(Along { func, params: arguments.len(), results: own })
    }
}

/// The rule of one equation as a program: inputs, outputs and the outputs' cotangents to the inputs'
/// cotangents, where there is nothing to flow zeros.
fn pullback(eqn: &Eqn, inputs: &[Type], outputs: &[Type], needed: &[bool]) -> Result<Func, Fault> {
    let mut builder = FuncBuilder::new(eqn.op.name());
    let mut params = |types: &[Type]| -> Vec<Value> {
        types.iter().map(|ty| builder.param(ty.clone())).collect()
    };
    let (of_inputs, of_outputs, seeds) = (params(inputs), params(outputs), params(outputs));
    let cotangents: Vec<Option<Value>> =
        seeds.iter().zip(outputs).map(|(&seed, ty)| ty.dtype.is_float().then_some(seed)).collect();
    let pullback = Pullback {
        builder: &mut builder,
        inputs: &of_inputs,
        outputs: &of_outputs,
        params: &eqn.params,
        cotangents: &cotangents,
        needed,
        origin: eqn.origin,
    };
    let given = eqn.op.vjp(pullback)?;
    // What gets no cotangent gives its own value, through which no seed flows.
    let results = given.into_iter().zip(&of_inputs).map(|(given, &input)| given.unwrap_or(input));
    let results = results.collect();
    Ok(builder.finish(results))
}

/// Which carries of a `while` get a tangent: those that have one, and those that an iteration gives one.
pub(crate) fn carried(body: &WhileLoop, inputs: &[bool]) -> Vec<bool> {
    let own = &inputs[body.cond_consts..];
    let (consts, carries) = own.split_at(body.body_consts);
    let mut carries = carries.to_vec();
    loop {
        let results = flow(&body.body, &[consts, &carries].concat());
        let before = carries.clone();
        carries.iter_mut().zip(results).for_each(|(carry, result)| *carry |= result);
        if carries == before {
            return carries;
        }
    }
}

/// Values, then the tangents that are not zero.
fn with_tangents(values: &[Value], tangents: &[Tangent]) -> Vec<Value> {
    values.iter().copied().chain(tangents.iter().flatten().copied()).collect()
}

/// Results, and behind them the tangents that were wanted.
fn apart(outputs: &[Value], own: usize, wanted: &[bool]) -> (Vec<Value>, Vec<Tangent>) {
    let (own, along) = outputs.split_at(own);
    let mut along = along.iter().copied();
    (own.to_vec(), wanted.iter().map(|&is| if is { along.next() } else { None }).collect())
}

/// Each range of `own`, followed by those of `along` that belong to it; `flags` say which of `own` have one.
fn interleaved(
    own: &[Value],
    along: &[Value],
    ranges: &[std::ops::Range<usize>],
    flags: &[bool],
) -> Vec<Value> {
    let mut along = along.iter().copied();
    let mut all = Vec::with_capacity(own.len() + along.len());
    for range in ranges {
        all.extend(&own[range.clone()]);
        let count = flags[range.clone()].iter().filter(|is| **is).count();
        all.extend(along.by_ref().take(count));
    }
    all
}
