//! A joint program in two: what runs forward, and what goes back from what was kept of it.

use crate::joint::{Joint, compact};
use vramlab_ir::{Eqn, Func, Lowering, Stage, Type, Value};

/// The two halves of a [`Joint`].
#[derive(Clone, Debug)]
pub struct Split {
    /// The program's parameters to its results, then what is kept.
    pub forward: Func,
    /// What was kept, then the results' cotangents, to the cotangents.
    pub backward: Func,
    /// Values of the joint program that are kept, in order.
    pub kept: Vec<Value>,
}

impl Split {
    pub fn new(joint: &Joint) -> Split {
        let cut = Cut::new(joint);
        let (params, cotangents) = joint.func.params.split_at(joint.params);
        let (own, given) = joint.func.results.split_at(joint.results);
        let kept = cut.kept.clone();
        let forward = part(joint, "forward", params, &[own, &kept].concat(), &cut.before);
        let backward = part(joint, "backward", &[&kept, cotangents].concat(), given, &cut.after);
        Split { forward, backward, kept }
    }
}

/// Where the joint program falls apart.
pub(crate) struct Cut {
    /// Equations of the forward.
    pub before: Vec<bool>,
    /// Equations of the backward, those of the forward that it repeats included.
    pub after: Vec<bool>,
    /// Values of the forward, or parameters, that the backward reads.
    pub kept: Vec<Value>,
}

/// Which equation defines each value.
pub(crate) fn definitions(func: &Func) -> Vec<Option<usize>> {
    let mut by = vec![None; func.types.len()];
    for (at, eqn) in func.eqns.iter().enumerate() {
        eqn.outputs.iter().for_each(|output| by[output.index()] = Some(at));
    }
    by
}

impl Cut {
    pub fn new(joint: &Joint) -> Cut {
        let func = &joint.func;
        let before: Vec<bool> =
            joint.marks.iter().map(|mark| mark.stage == Stage::Forward).collect();
        let mut cut =
            Cut { after: before.iter().map(|is| !is).collect(), before, kept: Vec::new() };
        let by = definitions(func);
        let mut seen = vec![false; func.types.len()];
        func.params[joint.params..].iter().for_each(|param| seen[param.index()] = true);
        let back = (0..func.eqns.len()).filter(|&at| !cut.before[at]);
        let reads: Vec<Value> = back
            .flat_map(|at| func.eqns[at].inputs.iter().copied())
            .chain(func.results[joint.results..].iter().copied())
            .collect();
        for value in reads {
            cut.reach(func, &by, &mut seen, value);
        }
        cut
    }

    /// Keeps a value that the backward reads, unless it is cheaper to have what it is made from:
    /// constants and views are written again.
    fn reach(&mut self, func: &Func, by: &[Option<usize>], seen: &mut [bool], value: Value) {
        if std::mem::replace(&mut seen[value.index()], true) {
            return;
        }
        match by[value.index()] {
            Some(at) if !self.before[at] => {}
            Some(at) if repeatable(func, &func.eqns[at]) => {
                self.after[at] = true;
                for &input in &func.eqns[at].inputs {
                    self.reach(func, by, seen, input);
                }
            }
            _ => self.kept.push(value),
        }
    }
}

/// Whether an equation costs nothing and holds on to nothing larger than its result.
pub(crate) fn repeatable(func: &Func, eqn: &Eqn) -> bool {
    let Some(&output) = eqn.outputs.first() else { return false };
    let types: Vec<Type> = eqn.inputs.iter().map(|&v| func.ty(v).clone()).collect();
    let views = || match eqn.op.lower(&types, &eqn.params) {
        Lowering::View { .. } | Lowering::Reshape => types[0].bytes() <= func.ty(output).bytes(),
        _ => false,
    };
    eqn.inputs.is_empty() || views()
}

/// Some of a program's equations as a program.
pub(crate) fn part(
    joint: &Joint,
    name: &str,
    params: &[Value],
    results: &[Value],
    chosen: &[bool],
) -> Func {
    let func = &joint.func;
    let eqns = func.eqns.iter().zip(chosen).filter(|(_, is)| **is).map(|(eqn, _)| eqn.clone());
    let whole = Func {
        name: format!("{}.{name}", func.name),
        params: params.to_vec(),
        eqns: eqns.collect(),
        results: results.to_vec(),
        types: func.types.clone(),
        arg_names: Vec::new(),
    };
    compact(whole).0
}
