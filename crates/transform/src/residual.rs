//! What a gradient keeps from its forward, and why.

use crate::joint::{Joint, Stage};
use crate::split::{Cut, definitions};
use vramlab_ir::{Span, Type, Value};

/// One value that lives from forward to backward.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The value in the joint program.
    pub value: Value,
    pub ty: Type,
    /// Position among the program's parameters, when it is one.
    pub param: Option<usize>,
    /// The op that made it; `argument` for parameters.
    pub op: &'static str,
    /// Where the user wrote that op.
    pub span: Option<Span>,
    /// Whose gradients read it: the op and its place, each once.
    pub wanted_by: Vec<(&'static str, Option<Span>)>,
}

/// In order of their making, parameters first.
pub fn residuals(joint: &Joint) -> Vec<Residual> {
    let func = &joint.func;
    let cut = Cut::new(joint);
    let by = definitions(func);
    let mut kept = cut.kept.clone();
    kept.sort_by_key(|value| (by[value.index()], *value));
    kept.into_iter()
        .map(|value| {
            let made = by[value.index()].map(|at| &func.eqns[at]);
            Residual {
                value,
                ty: func.ty(value).clone(),
                param: func.params.iter().position(|&param| param == value),
                op: made.map_or("argument", |eqn| eqn.op.name()),
                span: made.and_then(|eqn| eqn.span),
                wanted_by: wanted_by(joint, &cut, value),
            }
        })
        .collect()
}

/// Through what the backward repeats of the forward, such as views.
fn wanted_by(joint: &Joint, cut: &Cut, value: Value) -> Vec<(&'static str, Option<Span>)> {
    let func = &joint.func;
    let mut same = vec![false; func.types.len()];
    same[value.index()] = true;
    let mut wanted: Vec<(&'static str, Option<Span>)> = Vec::new();
    for (at, eqn) in func.eqns.iter().enumerate().filter(|(at, _)| cut.after[*at]) {
        if !eqn.inputs.iter().any(|input| same[input.index()]) {
            continue;
        }
        let mark = joint.marks[at];
        if mark.stage == Stage::Forward {
            eqn.outputs.iter().for_each(|output| same[output.index()] = true);
        } else if !wanted.contains(&(mark.of, mark.span)) {
            wanted.push((mark.of, mark.span));
        }
    }
    if wanted.is_empty() {
        wanted.push(("result", None));
    }
    wanted
}
