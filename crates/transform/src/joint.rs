//! One program of forward, recomputation and backward.

use crate::writer::Writer;
use vramlab_ir::{Eqn, Func, Origin, Stage, Type, Value};

/// What an equation is there for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    pub stage: Stage,
    /// The op whose gradient wrote the equation, or the forward equation's own.
    pub of: &'static str,
    /// Where the user wrote that op.
    pub origin: Option<Origin>,
}

/// What a checkpoint's gradient keeps and what it need not keep, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub origin: Option<Origin>,
    /// Operands that are values of the program, which live until the recomputation.
    pub kept: u64,
    /// Values computed again or offloaded, which would have been kept on the device.
    pub dropped: u64,
}

/// A program with its gradient. The program's results come first, cotangents behind them.
#[derive(Clone, Debug)]
pub struct Joint {
    pub func: Func,
    /// One an equation.
    pub marks: Vec<Mark>,
    /// How many parameters the differentiated program has; the results' cotangents follow.
    pub params: usize,
    /// How many results are the program's own.
    pub results: usize,
    /// One a checkpoint that was gone back through, the last one first.
    pub exchanges: Vec<Exchange>,
}

impl Joint {
    /// Ends the writing: only what results need is left, numbered in order.
    pub(crate) fn finish(
        mut writer: Writer,
        params: usize,
        own: usize,
        results: Vec<Value>,
    ) -> Joint {
        let exchanges = std::mem::take(&mut writer.exchanges);
        let (func, marks) = writer.finish(results);
        let (func, kept) = compact(func);
        let marks = kept.into_iter().map(|at| marks[at]).collect();
        Joint { func, marks, params, results: own, exchanges }
    }

    /// Without the program's own results, and what only they needed.
    pub fn cotangents_only(self) -> Joint {
        let Joint { mut func, marks, params, results, exchanges } = self;
        func.results.drain(..results);
        let (func, kept) = compact(func);
        let marks = kept.into_iter().map(|at| marks[at]).collect();
        Joint { func, marks, params, results: 0, exchanges }
    }

    /// The floating-point operations of each stage.
    pub fn flops(&self, stage: Stage) -> u64 {
        let of = self.func.eqns.iter().zip(&self.marks).filter(|(_, mark)| mark.stage == stage);
        of.map(|(eqn, _)| flops(&self.func, eqn)).sum()
    }
}

/// Drops equations that no result needs, what no one reads of their loops, and numbers values in order of
/// their definition. Also the positions that the equations left had before.
pub(crate) fn compact(mut func: Func) -> (Func, Vec<usize>) {
    let mut live = vec![false; func.types.len()];
    func.results.iter().for_each(|value| live[value.index()] = true);
    let mut kept: Vec<usize> = Vec::with_capacity(func.eqns.len());
    for (at, eqn) in func.eqns.iter_mut().enumerate().rev() {
        if eqn.outputs.iter().any(|output| live[output.index()]) {
            crate::loops::trim(eqn, &func.types, &live);
            eqn.inputs.iter().for_each(|input| live[input.index()] = true);
            kept.push(at);
        }
    }
    kept.reverse();
    let mut renumber = Renumber { to: vec![None; func.types.len()], types: Vec::new() };
    let Func { name, params, mut eqns, results, types, arg_names } = func;
    let params = params.iter().map(|&p| renumber.define(p, &types)).collect();
    let eqns: Vec<Eqn> = kept
        .iter()
        .map(|&at| {
            let eqn = &mut eqns[at];
            Eqn {
                op: eqn.op,
                params: std::mem::take(&mut eqn.params),
                inputs: eqn.inputs.iter().map(|&v| renumber.get(v)).collect(),
                outputs: eqn.outputs.iter().map(|&v| renumber.define(v, &types)).collect(),
                origin: eqn.origin,
                stage: eqn.stage,
            }
        })
        .collect();
    let results = results.iter().map(|&v| renumber.get(v)).collect();
    (Func { name, params, eqns, results, types: renumber.types, arg_names }, kept)
}

struct Renumber {
    to: Vec<Option<Value>>,
    types: Vec<Type>,
}

impl Renumber {
    fn define(&mut self, value: Value, types: &[Type]) -> Value {
        let fresh = Value(self.types.len() as u32);
        self.types.push(types[value.index()].clone());
        self.to[value.index()] = Some(fresh);
        fresh
    }

    fn get(&self, value: Value) -> Value {
        self.to[value.index()].expect("a value is defined before its use")
    }
}

/// Multiplications, additions and function calls, each counted as one; a product of matrices has
/// two for each term.
pub(crate) fn flops(func: &Func, eqn: &Eqn) -> u64 {
    use vramlab_ir::{Inst, Lowering};
    let types: Vec<Type> = eqn.inputs.iter().map(|&v| func.ty(v).clone()).collect();
    let elements = |ty: &Type| ty.shape.elements() as u64;
    let out = eqn.outputs.first().map_or(0, |&v| elements(func.ty(v)));
    match eqn.op.lower(&types, &eqn.params) {
        Lowering::Elementwise(program) => {
            let ops = program.insts.iter().filter(|inst| matches!(inst, Inst::Op { .. }));
            out * ops.count() as u64
        }
        Lowering::Reduce { .. } => elements(&types[0]),
        Lowering::Dot(axes) => {
            let terms: usize = axes.lhs_contract.iter().map(|&a| types[0].shape[a]).product();
            2 * out * terms as u64
        }
        Lowering::Conv(_) => {
            let (results, filters) = (out, elements(&types[1]));
            let each = types[1].shape.last().copied().unwrap_or(1).max(1) as u64;
            2 * results * (filters / each)
        }
        Lowering::Call(inner) => inner.eqns.iter().map(|eqn| flops(&inner, eqn)).sum(),
        _ => 0,
    }
}
