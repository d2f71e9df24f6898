//! Batching: a program of one example becomes a program of all of them, with one more leading axis
//! where examples differ. What is the same for all is computed once.

use crate::writer::Writer;
use std::sync::Arc;
use vramlab_ir::{
    Batching, Eqn, Fault, FaultKind, Func, Gradient, Lowering, Origin, Param, Params, Shape, Type,
    Value,
};
use vramlab_ops::{
    ANY, BROADCAST, CALL, CHECKPOINT, COND, CUSTOM_VJP, RESHAPE, SCAN, SELECT, SUM, TRANSPOSE,
    WHILE,
};

/// A value of the batched program, and whether examples differ in it.
type Lane = (Value, bool);

/// `func` for `size` examples: parameters that are `batched` have a leading axis of that extent, and
/// every result has.
///
/// # Errors
/// The fault of a shape rule, and when `batched` is of another length than the parameters.
pub fn vmap(func: &Func, batched: &[bool], size: usize) -> Result<Func, Fault> {
    if batched.len() != func.params.len() {
        let (given, wanted) = (batched.len(), func.params.len());
        let message = format!("{given} arguments for a function of {wanted}");
        return Err(Fault::new(FaultKind::Argument, "vmap", message));
    }
    let forced = vec![true; func.results.len()];
    Batcher { size }.func(func, batched, &forced).map(|(func, _)| func)
}

struct Batcher {
    size: usize,
}

const DEFINED: &str = "a program defines values before their use";

impl Batcher {
    fn lead(&self, ty: &Type) -> Type {
        Type::new(ty.dtype, [&[self.size], ty.shape.dims()].concat())
    }

    /// `func` as a program of its own, with the results that are `forced` batched anyway; which of
    /// them are.
    fn func(
        &self,
        func: &Func,
        batched: &[bool],
        forced: &[bool],
    ) -> Result<(Func, Vec<bool>), Fault> {
        let mut writer = Writer::new(&format!("vmap({})", func.name));
        writer.builder.name_params(func.arg_names.clone());
        let arguments: Vec<Lane> = func
            .params
            .iter()
            .zip(batched)
            .map(|(&param, &is)| {
                let ty = func.ty(param);
                (writer.param(&if is { self.lead(ty) } else { ty.clone() }), is)
            })
            .collect();
        let results = self.write(&mut writer, func, &arguments)?;
        let mut values = Vec::with_capacity(results.len());
        for (&lane, &force) in results.iter().zip(forced) {
            values.push(if force { self.front(&mut writer, lane, None)? } else { lane.0 });
        }
        let which = results.iter().zip(forced).map(|((_, is), force)| *is || *force).collect();
        Ok((writer.finish(values).0, which))
    }

    /// Writes `func` applied to `arguments`; its results.
    fn write(
        &self,
        writer: &mut Writer,
        func: &Func,
        arguments: &[Lane],
    ) -> Result<Vec<Lane>, Fault> {
        let mut env: Vec<Option<Lane>> = vec![None; func.types.len()];
        for (param, &argument) in func.params.iter().zip(arguments) {
            env[param.index()] = Some(argument);
        }
        for eqn in &func.eqns {
            let inputs: Vec<Lane> =
                eqn.inputs.iter().map(|v| env[v.index()].expect(DEFINED)).collect();
            let outputs = self.equation(writer, func, eqn, &inputs)?;
            for (output, lane) in eqn.outputs.iter().zip(outputs) {
                env[output.index()] = Some(lane);
            }
        }
        Ok(func.results.iter().map(|v| env[v.index()].expect(DEFINED)).collect())
    }

    fn equation(
        &self,
        writer: &mut Writer,
        func: &Func,
        eqn: &Eqn,
        inputs: &[Lane],
    ) -> Result<Vec<Lane>, Fault> {
        writer.mark.stage = eqn.stage;
        let (values, batched): (Vec<Value>, Vec<bool>) = inputs.iter().copied().unzip();
        if !batched.contains(&true) {
            let outputs = writer.push(eqn.op, eqn.params.clone(), &values, eqn.origin)?;
            return Ok(outputs.into_iter().map(|value| (value, false)).collect());
        }
        if eqn.op.gradient() == Gradient::Held {
            return self.held(writer, func, eqn, inputs);
        }
        let outputs = eqn.op.batch(Batching {
            builder: &mut writer.builder,
            inputs: &values,
            params: &eqn.params,
            batched: &batched,
            size: self.size,
            origin: eqn.origin,
        });
        writer.settle();
        let outputs = outputs.map_err(|fault| crate::fault::at(fault, eqn.origin))?;
        Ok(outputs.into_iter().map(|value| (value, true)).collect())
    }

    /// An op that applies functions: these are batched.
    fn held(
        &self,
        writer: &mut Writer,
        func: &Func,
        eqn: &Eqn,
        inputs: &[Lane],
    ) -> Result<Vec<Lane>, Fault> {
        let types: Vec<Type> = eqn.inputs.iter().map(|&v| func.ty(v).clone()).collect();
        match eqn.op.lower(&types, &eqn.params) {
            Lowering::Scan(_) => self.scan(writer, eqn, inputs),
            Lowering::While(_) => self.while_loop(writer, eqn, inputs),
            Lowering::Cond { .. } => self.cond(writer, eqn, inputs),
            Lowering::Call(inner) if eqn.op.name() == CALL.name => {
                self.write(writer, &inner, inputs)
            }
            Lowering::Call(inner) if eqn.op.name() == CHECKPOINT.name => {
                self.checkpoint(writer, eqn, &inner, inputs)
            }
            Lowering::Call(inner) => self.custom(writer, eqn, &inner, inputs),
            _ => unreachable!("{} holds functions in a way batching knows", eqn.op.name()),
        }
    }

    fn checkpoint(
        &self,
        writer: &mut Writer,
        eqn: &Eqn,
        inner: &Func,
        inputs: &[Lane],
    ) -> Result<Vec<Lane>, Fault> {
        let (values, batched): (Vec<Value>, Vec<bool>) = inputs.iter().copied().unzip();
        let (inner, which) = self.func(inner, &batched, &vec![false; inner.results.len()])?;
        let params = replaced(&eqn.params, &[("func", Param::Func(Arc::new(inner)))]);
        let outputs = writer.push(eqn.op, params, &values, eqn.origin)?;
        Ok(outputs.into_iter().zip(which).collect())
    }

    /// The backward gives one cotangent an example; an argument that all share has their sum.
    fn custom(
        &self,
        writer: &mut Writer,
        eqn: &Eqn,
        inner: &Func,
        inputs: &[Lane],
    ) -> Result<Vec<Lane>, Fault> {
        debug_assert_eq!(eqn.op.name(), CUSTOM_VJP.name);
        let (values, batched): (Vec<Value>, Vec<bool>) = inputs.iter().copied().unzip();
        let all = |count: usize| vec![true; count];
        let held = |name: &str| eqn.params.func(name).expect("the entry checked its params");
        let (forward, backward) = (held("forward"), held("backward"));
        let (own, _) = self.func(inner, &batched, &all(inner.results.len()))?;
        let (before, _) = self.func(forward, &batched, &all(forward.results.len()))?;
        let (after, _) =
            self.func(backward, &all(backward.params.len()), &all(backward.results.len()))?;
        let mut sums = Writer::new(&after.name);
        let arguments: Vec<Value> =
            after.params.iter().map(|&param| sums.param(after.ty(param))).collect();
        let after_params = Params::new()
            .with("kind", Param::Text("jit".into()))
            .with("func", Param::Func(Arc::new(after)));
        let mut cotangents = sums.push(&CALL, after_params, &arguments, eqn.origin)?;
        for (cotangent, _) in cotangents.iter_mut().zip(&batched).filter(|(_, is)| !**is) {
            let params =
                Params::new().with("axes", Param::Ints(vec![0])).with("keep", Param::Bool(false));
            *cotangent = sums.push(&SUM, params, &[*cotangent], eqn.origin)?[0];
        }
        let after = sums.finish(cotangents).0;
        let params = replaced(
            &eqn.params,
            &[
                ("func", Param::Func(Arc::new(own))),
                ("forward", Param::Func(Arc::new(before))),
                ("backward", Param::Func(Arc::new(after))),
            ],
        );
        let outputs = writer.push(eqn.op, params, &values, eqn.origin)?;
        Ok(outputs.into_iter().map(|value| (value, true)).collect())
    }

    fn scan(&self, writer: &mut Writer, eqn: &Eqn, inputs: &[Lane]) -> Result<Vec<Lane>, Fault> {
        let body = eqn.params.func("body").expect("the entry checked its params");
        let [consts, carries] =
            ["consts", "carries"].map(|name| eqn.params.int(name).unwrap_or_default() as usize);
        let mut operands = Vec::with_capacity(inputs.len());
        for (at, &lane) in inputs.iter().enumerate() {
            // Slices are taken along the leading axis, so the batch's goes behind it.
            let swap = lane.1 && at >= consts + carries;
            operands.push(if swap {
                (self.swapped(writer, lane.0, eqn.origin)?, true)
            } else {
                lane
            });
        }
        let mut batched: Vec<bool> = operands.iter().map(|lane| lane.1).collect();
        let (body, which) = self.settled(body, &mut batched, consts, carries)?;
        for (at, lane) in operands.iter_mut().enumerate() {
            if batched[at] && !lane.1 {
                *lane = (self.front(writer, *lane, eqn.origin)?, true);
            }
        }
        let values: Vec<Value> = operands.iter().map(|lane| lane.0).collect();
        let params = replaced(&eqn.params, &[("body", Param::Func(Arc::new(body)))]);
        let outputs = writer.push(&SCAN, params, &values, eqn.origin)?;
        let mut lanes = Vec::with_capacity(outputs.len());
        for (at, (value, is)) in outputs.into_iter().zip(which).enumerate() {
            let stacked = is && at >= carries;
            lanes
                .push((if stacked { self.swapped(writer, value, eqn.origin)? } else { value }, is));
        }
        Ok(lanes)
    }

    /// The body of a loop with as few carries batched as can be: a carry is once the body makes it
    /// so. `batched` is of the body's parameters, and is brought up to what was found.
    fn settled(
        &self,
        body: &Func,
        batched: &mut [bool],
        consts: usize,
        carries: usize,
    ) -> Result<(Func, Vec<bool>), Fault> {
        loop {
            let carried = batched[consts..consts + carries].to_vec();
            let mut forced = vec![false; body.results.len()];
            forced[..carries].copy_from_slice(&carried);
            let (written, which) = self.func(body, batched, &forced)?;
            if which[..carries] == carried {
                return Ok((written, which));
            }
            batched[consts..consts + carries].copy_from_slice(&which[..carries]);
        }
    }

    fn while_loop(
        &self,
        writer: &mut Writer,
        eqn: &Eqn,
        inputs: &[Lane],
    ) -> Result<Vec<Lane>, Fault> {
        let held = |name: &str| eqn.params.func(name).expect("the entry checked its params");
        let count = |name: &str| eqn.params.int(name).unwrap_or_default() as usize;
        let (cond, body) = (held("cond"), held("body"));
        let (cond_consts, body_consts) = (count("cond_consts"), count("body_consts"));
        let (of_cond, rest) = inputs.split_at(cond_consts);
        let (of_body, init) = rest.split_at(body_consts);
        let flags = |lanes: &[Lane]| lanes.iter().map(|lane| lane.1).collect::<Vec<bool>>();
        let mut given = [flags(of_body), flags(init)].concat();
        let (mut written, _) = self.settled(body, &mut given, body_consts, init.len())?;
        let mut carried = given[body_consts..].to_vec();
        let of_condition = |carried: &[bool]| [flags(of_cond), carried.to_vec()].concat();
        let (mut condition, differs) = self.func(cond, &of_condition(&carried), &[false])?;
        let mut consts: Vec<Lane> = [of_cond, of_body].concat();
        let mut counts = [cond_consts, body_consts];
        if differs[0] {
            // Every example goes on by itself, so all that is carried may differ. The loop ends with
            // the last of them; those that are through keep what they have.
            carried = vec![true; init.len()];
            let condition_each = self.func(cond, &of_condition(&carried), &[true])?.0;
            condition = self.any(&condition_each)?;
            written = self.held_back(body, &flags(of_body), &condition_each, cond_consts)?;
            consts = [of_cond, of_cond, of_body].concat();
            counts = [cond_consts, cond_consts + body_consts];
        }
        let mut operands: Vec<Value> = consts.iter().map(|lane| lane.0).collect();
        for (&lane, &is) in init.iter().zip(&carried) {
            operands.push(if is { self.front(writer, lane, eqn.origin)? } else { lane.0 });
        }
        let params = Params::new()
            .with("cond", Param::Func(Arc::new(condition)))
            .with("body", Param::Func(Arc::new(written)))
            .with("cond_consts", Param::Int(counts[0] as i64))
            .with("body_consts", Param::Int(counts[1] as i64));
        let outputs = writer.push(&WHILE, params, &operands, eqn.origin)?;
        Ok(outputs.into_iter().zip(carried).collect())
    }

    /// Whether any example's condition holds.
    fn any(&self, each: &Func) -> Result<Func, Fault> {
        let mut writer = Writer::new(&format!("any({})", each.name));
        let arguments: Vec<Lane> =
            each.params.iter().map(|&param| (writer.param(each.ty(param)), false)).collect();
        let held = self.write(&mut writer, each, &arguments)?[0].0;
        let params =
            Params::new().with("axes", Param::Ints(vec![0])).with("keep", Param::Bool(false));
        let any = writer.push(&ANY, params, &[held], None)?;
        Ok(writer.finish(any).0)
    }

    /// `body` for the examples whose condition holds; the others keep their carries. Takes the
    /// condition's constants, then the body's, then the carries.
    fn held_back(
        &self,
        body: &Func,
        consts: &[bool],
        each: &Func,
        cond_consts: usize,
    ) -> Result<Func, Fault> {
        let carries = body.results.len();
        let flags = [consts.to_vec(), vec![true; carries]].concat();
        let step = self.func(body, &flags, &vec![true; carries])?.0;
        let mut writer = Writer::new(&step.name);
        let of_cond: Vec<Value> =
            each.params[..cond_consts].iter().map(|&p| writer.param(each.ty(p))).collect();
        let arguments: Vec<Value> =
            step.params.iter().map(|&param| writer.param(step.ty(param))).collect();
        let carried = &arguments[consts.len()..];
        let lanes = |values: &[Value]| values.iter().map(|&v| (v, false)).collect::<Vec<Lane>>();
        let holds = self.write(&mut writer, each, &lanes(&[&of_cond, carried].concat()))?[0].0;
        let next = self.write(&mut writer, &step, &lanes(&arguments))?;
        let mut kept = Vec::with_capacity(carries);
        for (&(new, _), &old) in next.iter().zip(carried) {
            kept.push(self.chosen(&mut writer, holds, new, old, None)?);
        }
        Ok(writer.finish(kept).0)
    }

    fn cond(&self, writer: &mut Writer, eqn: &Eqn, inputs: &[Lane]) -> Result<Vec<Lane>, Fault> {
        let held = |name: &str| eqn.params.func(name).expect("the entry checked its params");
        let branches = [held("on_true"), held("on_false")];
        let (predicate, operands) = inputs.split_first().expect("the entry checked its operands");
        if predicate.1 {
            return self.both(writer, eqn, *predicate, branches, operands);
        }
        let batched: Vec<bool> = operands.iter().map(|lane| lane.1).collect();
        let open = vec![false; branches[0].results.len()];
        let yes = self.func(branches[0], &batched, &open)?.1;
        let no = self.func(branches[1], &batched, &open)?.1;
        let either: Vec<bool> = yes.iter().zip(&no).map(|(a, b)| *a || *b).collect();
        let yes = self.func(branches[0], &batched, &either)?.0;
        let no = self.func(branches[1], &batched, &either)?.0;
        let params = Params::new()
            .with("on_true", Param::Func(Arc::new(yes)))
            .with("on_false", Param::Func(Arc::new(no)));
        let values: Vec<Value> = inputs.iter().map(|lane| lane.0).collect();
        let outputs = writer.push(&COND, params, &values, eqn.origin)?;
        Ok(outputs.into_iter().zip(either).collect())
    }

    /// Examples that go different ways: both branches run, and each example takes its own.
    fn both(
        &self,
        writer: &mut Writer,
        eqn: &Eqn,
        predicate: Lane,
        branches: [&Arc<Func>; 2],
        operands: &[Lane],
    ) -> Result<Vec<Lane>, Fault> {
        let yes = self.write(writer, branches[0], operands)?;
        let no = self.write(writer, branches[1], operands)?;
        let mut lanes = Vec::with_capacity(yes.len());
        for (a, b) in yes.into_iter().zip(no) {
            let (a, b) = (self.front(writer, a, eqn.origin)?, self.front(writer, b, eqn.origin)?);
            lanes.push((self.chosen(writer, predicate.0, a, b, eqn.origin)?, true));
        }
        Ok(lanes)
    }

    /// By example, `a` where the condition holds, else `b`.
    fn chosen(
        &self,
        writer: &mut Writer,
        condition: Value,
        a: Value,
        b: Value,
        origin: Option<Origin>,
    ) -> Result<Value, Fault> {
        let rank = writer.ty(a).shape.rank();
        let column = [&[self.size], vec![1; rank - 1].as_slice()].concat();
        let condition = reshaped(writer, condition, Shape::new(column), origin)?;
        Ok(writer.push(&SELECT, Params::new(), &[condition, a, b], origin)?[0])
    }

    /// A value with the batch's axis in front, repeated if it had none.
    fn front(
        &self,
        writer: &mut Writer,
        (value, batched): Lane,
        origin: Option<Origin>,
    ) -> Result<Value, Fault> {
        if batched {
            return Ok(value);
        }
        let shape = self.lead(writer.ty(value)).shape;
        let params = Params::new().with("shape", Param::Shape(shape));
        Ok(writer.push(&BROADCAST, params, &[value], origin)?[0])
    }

    /// The first two axes exchanged.
    fn swapped(
        &self,
        writer: &mut Writer,
        value: Value,
        origin: Option<Origin>,
    ) -> Result<Value, Fault> {
        let mut perm: Vec<i64> = (0..writer.ty(value).shape.rank() as i64).collect();
        perm.swap(0, 1);
        let params = Params::new().with("perm", Param::Ints(perm));
        Ok(writer.push(&TRANSPOSE, params, &[value], origin)?[0])
    }
}

fn reshaped(
    writer: &mut Writer,
    value: Value,
    shape: Shape,
    origin: Option<Origin>,
) -> Result<Value, Fault> {
    if writer.ty(value).shape == shape {
        return Ok(value);
    }
    let params = Params::new().with("shape", Param::Shape(shape));
    Ok(writer.push(&RESHAPE, params, &[value], origin)?[0])
}

/// Parameters with some of them replaced, in their order.
fn replaced(params: &Params, by: &[(&str, Param)]) -> Params {
    params.iter().fold(Params::new(), |all, (name, param)| {
        let other = by.iter().find(|(own, _)| *own == name).map(|(_, param)| param);
        all.with(name, other.unwrap_or(param).clone())
    })
}
