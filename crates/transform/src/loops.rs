//! Through a scan: forward once more with what the way back needs stacked beside the results, then a
//! scan in the other direction that carries cotangents.

use crate::fault;
use crate::joint::{Joint, Mark};
use crate::reverse::Reverse;
use crate::split::{Cut, definitions, part};
use std::sync::Arc;
use vramlab_ir::lowering::ScanLoop;
use vramlab_ir::{Eqn, Fault, Func, Lowering, MemorySpace, Param, Params, Stage, Type, Value};
use vramlab_ops::SCAN;

/// What a value of the body is to the way back.
enum Kept {
    /// Operand `k` of the scan, the same in every iteration.
    Constant(usize),
    /// Array `k` that the scan goes along.
    Slice(usize),
    /// Computed from constants alone: once, outside.
    Invariant(Value),
    /// A slice of the results that there are anyway: output `k` of the scan.
    Result(usize),
    /// Stacked for the way back.
    Stacked,
}

/// Which parameters and carried results of a scan's body a gradient flows through.
struct Flow {
    consts: Vec<bool>,
    carries: Vec<bool>,
    slices: Vec<bool>,
}

/// Which outputs of a scan are active when these inputs are.
pub(crate) fn active_outputs(scan: &ScanLoop, inputs: &[bool]) -> Vec<bool> {
    let flow = Flow::new(scan, inputs);
    let mut outputs = crate::activity::flow(&scan.body, &flow.params());
    for (output, carried) in outputs.iter_mut().zip(&flow.carries) {
        *output = *carried;
    }
    outputs
}

impl Flow {
    /// A carry is active when it is at first, or when an iteration makes it so.
    fn new(scan: &ScanLoop, inputs: &[bool]) -> Flow {
        let (consts, rest) = inputs.split_at(scan.consts);
        let (carries, slices) = rest.split_at(scan.carries);
        let mut flow =
            Flow { consts: consts.to_vec(), carries: carries.to_vec(), slices: slices.to_vec() };
        loop {
            let results = crate::activity::flow(&scan.body, &flow.params());
            let mut grown = false;
            for (carry, result) in flow.carries.iter_mut().zip(results) {
                grown |= result && !*carry;
                *carry |= result;
            }
            if !grown {
                return flow;
            }
        }
    }

    fn params(&self) -> Vec<bool> {
        [self.consts.as_slice(), &self.carries, &self.slices].concat()
    }
}

/// The body with its gradient: its parameters, then the cotangents of carries and slices that have
/// some, then what has been added up for constants; its results, then the same for its parameters.
struct Body {
    joint: Joint,
    /// Positions of constants, carries and slices with a gradient.
    consts: Vec<usize>,
    carries: Vec<usize>,
    slices: Vec<usize>,
    /// Positions of stacked results with a cotangent.
    ys: Vec<usize>,
}

fn chosen(flags: &[bool]) -> Vec<usize> {
    (0..flags.len()).filter(|&at| flags[at]).collect()
}

impl Body {
    fn new(scan: &ScanLoop, flow: &Flow, ys: Vec<usize>) -> Result<Body, Fault> {
        let body = &scan.body;
        let mut reverse = Reverse::new(&body.name);
        let params: Vec<Value> =
            body.params.iter().map(|&p| reverse.writer.param(body.ty(p))).collect();
        for (&param, active) in params.iter().zip(flow.params()) {
            if active && reverse.writer.ty(param).dtype.is_float() {
                reverse.activate(param);
            }
        }
        let active = |values: &[Value], reverse: &Reverse| -> Vec<bool> {
            values.iter().map(|&value| reverse.is_active(value)).collect()
        };
        let (of_consts, rest) = params.split_at(scan.consts);
        let (of_carries, of_slices) = rest.split_at(scan.carries);
        let consts = chosen(&active(of_consts, &reverse));
        let carries = chosen(&active(of_carries, &reverse));
        let slices = chosen(&active(of_slices, &reverse));
        let mut tape = Vec::new();
        let results = reverse.forward(body, &params, &mut tape)?;
        reverse.writer.mark = Mark { stage: Stage::Backward, of: SCAN.name, origin: None };
        for &at in carries.iter().chain(&ys) {
            // Cotangents are in device memory, wherever the results are.
            let ty = reverse.writer.ty(results[at]).within(MemorySpace::Device);
            let seed = reverse.writer.param(&ty);
            if reverse.is_active(results[at]) {
                reverse.accumulate(results[at], seed)?;
            }
        }
        // What is added up over the iterations comes first: parts are added to it where they belong.
        for &at in &consts {
            let ty = reverse.writer.ty(of_consts[at]).clone();
            let sum = reverse.writer.param(&ty);
            reverse.accumulate(of_consts[at], sum)?;
        }
        reverse.backward(tape)?;
        reverse.writer.mark = Mark { stage: Stage::Backward, of: SCAN.name, origin: None };
        let mut all = results.clone();
        for &at in &carries {
            all.push(reverse.cotangent_or_zero(of_carries[at])?);
        }
        for &at in consts.iter() {
            all.push(reverse.cotangent_or_zero(of_consts[at])?);
        }
        for &at in &slices {
            all.push(reverse.cotangent_or_zero(of_slices[at])?);
        }
        let joint = Joint::finish(reverse.writer, params.len(), results.len(), all);
        Ok(Body { joint, consts, carries, slices, ys })
    }

    /// What each value that the way back reads is to it.
    fn kept(&self, scan: &ScanLoop, cut: &Cut) -> Vec<Kept> {
        let func = &self.joint.func;
        let by = definitions(func);
        let invariant = invariant(func, scan.consts);
        let stacked = &func.results[scan.carries..self.joint.results];
        let kind = |value: &Value| match func.params.iter().position(|param| param == value) {
            Some(at) if at < scan.consts => Kept::Constant(at),
            Some(at) if at >= scan.consts + scan.carries => {
                Kept::Slice(at - scan.consts - scan.carries)
            }
            None if by[value.index()].is_some() && invariant[value.index()] => {
                Kept::Invariant(*value)
            }
            _ => match stacked.iter().position(|result| result == value) {
                Some(at) => Kept::Result(scan.carries + at),
                None => Kept::Stacked,
            },
        };
        cut.kept.iter().map(kind).collect()
    }
}

/// Values that depend on the first `consts` parameters alone.
fn invariant(func: &Func, consts: usize) -> Vec<bool> {
    let mut same = vec![false; func.types.len()];
    func.params[..consts].iter().for_each(|param| same[param.index()] = true);
    for eqn in &func.eqns {
        let all = eqn.inputs.iter().all(|input| same[input.index()]);
        eqn.outputs.iter().for_each(|output| same[output.index()] = all);
    }
    same
}

/// The scan's parameters with another body.
pub(crate) fn params(
    body: Func,
    length: usize,
    consts: usize,
    carries: usize,
    reverse: bool,
) -> Params {
    Params::new()
        .with("body", Param::Func(Arc::new(body)))
        .with("length", Param::Int(length as i64))
        .with("consts", Param::Int(consts as i64))
        .with("carries", Param::Int(carries as i64))
        .with("reverse", Param::Bool(reverse))
}

/// Drops stacks of a scan that are not live, and operands that its body does not read.
pub(crate) fn trim(eqn: &mut Eqn, types: &[Type], live: &[bool]) {
    if eqn.op.name() != SCAN.name {
        return;
    }
    let inputs: Vec<Type> = eqn.inputs.iter().map(|&v| types[v.index()].clone()).collect();
    let Lowering::Scan(scan) = eqn.op.lower(&inputs, &eqn.params) else { return };
    let ScanLoop { ref body, length, consts, carries, reverse } = scan;
    let stays: Vec<bool> =
        (0..eqn.outputs.len()).map(|at| at < carries || live[eqn.outputs[at].index()]).collect();
    let reads = |func: &Func| -> Vec<bool> {
        let mut read = vec![false; func.types.len()];
        let values = func.eqns.iter().flat_map(|eqn| &eqn.inputs).chain(&func.results);
        values.for_each(|value| read[value.index()] = true);
        let carried = consts..consts + carries;
        let params = func.params.iter().enumerate();
        params.map(|(at, param)| carried.contains(&at) || read[param.index()]).collect()
    };
    if stays.iter().all(|&stays| stays) && reads(body).iter().all(|&read| read) {
        return;
    }
    let results = chosen(&stays).into_iter().map(|at| body.results[at]).collect();
    let mut body = crate::joint::compact(Func { results, ..Func::clone(body) }).0;
    let read = reads(&body);
    let kept = |values: &[Value], keep: &[bool]| -> Vec<Value> {
        chosen(keep).into_iter().map(|at| values[at]).collect()
    };
    body.params = kept(&body.params, &read);
    body.arg_names.clear();
    eqn.inputs = kept(&eqn.inputs, &read);
    eqn.outputs = kept(&eqn.outputs, &stays);
    let consts = chosen(&read[..consts]).len();
    eqn.params = params(body, length, consts, carries, reverse);
}

impl Reverse {
    /// `at` is where the scan stands in the program; it is replaced by one that also stacks what
    /// the way back needs.
    pub(crate) fn scan_backward(
        &mut self,
        at: usize,
        eqn: &Eqn,
        scan: &ScanLoop,
    ) -> Result<(), Fault> {
        let active: Vec<bool> = eqn.inputs.iter().map(|&v| self.is_active(v)).collect();
        let flow = Flow::new(scan, &active);
        let ys: Vec<usize> = (scan.carries..eqn.outputs.len())
            .filter(|&k| self.cotangent(eqn.outputs[k]).is_some())
            .collect();
        let body = Body::new(scan, &flow, ys).map_err(|fault| fault::at(fault, eqn.origin))?;
        let cut = Cut::new(&body.joint);
        let kept = body.kept(scan, &cut);
        let stacked = self.forward_again(at, eqn, scan, &body, &cut, &kept)?;
        let mark = Mark { stage: Stage::Backward, of: SCAN.name, origin: eqn.origin };
        self.writer.mark = mark;
        let given = self.turned(eqn, scan, &body, &cut, &kept, &stacked)?;
        self.writer.mark = mark;
        let (consts, carries) = (body.consts.iter(), body.carries.iter());
        let places = carries
            .map(|&k| scan.consts + k)
            .chain(consts.copied())
            .chain(body.slices.iter().map(|&k| scan.consts + scan.carries + k));
        for (place, cotangent) in places.zip(given) {
            let input = eqn.inputs[place];
            if self.is_active(input) {
                self.accumulate(input, cotangent)?;
            }
        }
        Ok(())
    }

    /// All outputs of the scan that takes the old one's place.
    fn forward_again(
        &mut self,
        at: usize,
        eqn: &Eqn,
        scan: &ScanLoop,
        body: &Body,
        cut: &Cut,
        kept: &[Kept],
    ) -> Result<Vec<Value>, Fault> {
        let joint = &body.joint;
        let mut results = joint.func.results[..joint.results].to_vec();
        let more = cut.kept.iter().zip(kept).filter(|(_, kept)| matches!(kept, Kept::Stacked));
        results.extend(more.map(|(value, _)| *value));
        if results.len() == joint.results {
            return Ok(eqn.outputs.clone());
        }
        let takes = &joint.func.params[..joint.params];
        let func = part(joint, &scan.body.name, takes, &results, &cut.before);
        let params = params(func, scan.length, scan.consts, scan.carries, scan.reverse);
        // Where a checkpoint saved the scan, the record names operands that are written later.
        let operands = self.writer.builder.eqns()[at].inputs.clone();
        self.writer
            .builder
            .replace(at, &SCAN, params, operands)
            .map_err(|fault| fault::at(fault, eqn.origin))
    }

    /// The scan in the other direction; cotangents of carries, constants and slices.
    fn turned(
        &mut self,
        eqn: &Eqn,
        scan: &ScanLoop,
        body: &Body,
        cut: &Cut,
        kept: &[Kept],
        outputs: &[Value],
    ) -> Result<Vec<Value>, Fault> {
        let joint = &body.joint;
        let (mut consts, mut slices) = (Vec::new(), Vec::new());
        let (mut of_consts, mut of_slices) = (Vec::new(), Vec::new());
        let hoisted: Vec<Value> = kept
            .iter()
            .filter_map(|kept| match kept {
                Kept::Invariant(value) => Some(*value),
                _ => None,
            })
            .collect();
        let mut hoisted = self.hoist(eqn, scan, body, cut, &hoisted)?.into_iter();
        let mut fresh = outputs[joint.results..].iter();
        let first = scan.consts + scan.carries;
        for (value, kept) in cut.kept.iter().zip(kept) {
            match kept {
                Kept::Constant(k) => (consts.push(eqn.inputs[*k]), of_consts.push(*value)).0,
                Kept::Invariant(_) => {
                    consts.push(hoisted.next().expect("one a value that was hoisted"));
                    of_consts.push(*value);
                }
                Kept::Slice(k) => (slices.push(eqn.inputs[first + k]), of_slices.push(*value)).0,
                Kept::Result(k) => (slices.push(outputs[*k]), of_slices.push(*value)).0,
                Kept::Stacked => {
                    slices.push(*fresh.next().expect("one an output that was stacked"));
                    of_slices.push(*value);
                }
            }
        }
        let seeds = &joint.func.params[joint.params..];
        let (of_carries, seeds) = seeds.split_at(body.carries.len());
        let (of_ys, of_sums) = seeds.split_at(body.ys.len());
        let mut carried = Vec::new();
        for &k in &body.carries {
            carried.push(self.cotangent_or_zero(eqn.outputs[k])?);
        }
        for &k in &body.consts {
            let ty = self.writer.ty(eqn.inputs[k]).clone();
            carried.push(self.writer.full(0.0, &ty)?);
        }
        for &k in &body.ys {
            slices.push(self.cotangent(eqn.outputs[k]).expect("chosen by its cotangent"));
        }
        let takes = [&of_consts, of_carries, of_sums, &of_slices, of_ys].concat();
        let given = &joint.func.results[joint.results..];
        let func = part(joint, &format!("{}.back", scan.body.name), &takes, given, &cut.after);
        let inputs = [consts.as_slice(), &carried, &slices].concat();
        let carries = carried.len();
        let params = params(func, scan.length, consts.len(), carries, !scan.reverse);
        self.writer.push(&SCAN, params, &inputs, eqn.origin)
    }

    /// What depends on constants alone, computed once outside.
    fn hoist(
        &mut self,
        eqn: &Eqn,
        scan: &ScanLoop,
        body: &Body,
        cut: &Cut,
        values: &[Value],
    ) -> Result<Vec<Value>, Fault> {
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let takes = &body.joint.func.params[..scan.consts];
        let func = part(&body.joint, "invariant", takes, values, &cut.before);
        self.plain(&func, &eqn.inputs[..scan.consts])
    }

    pub(crate) fn cotangent_or_zero(&mut self, value: Value) -> Result<Value, Fault> {
        match self.cotangent(value) {
            Some(cotangent) => Ok(cotangent),
            None => {
                let ty: Type = self.writer.ty(value).clone();
                self.writer.full(0.0, &ty)
            }
        }
    }
}
