//! Which values a gradient can flow through: floats that depend on what is differentiated.

use vramlab_ir::{Eqn, Func, Gradient, Lowering, Type, Value};

/// Which results of `func` are active when these parameters are.
pub(crate) fn flow(func: &Func, params: &[bool]) -> Vec<bool> {
    let mut active = vec![false; func.types.len()];
    for (param, &is) in func.params.iter().zip(params) {
        active[param.index()] = is && func.ty(*param).dtype.is_float();
    }
    for eqn in &func.eqns {
        let inputs: Vec<bool> = eqn.inputs.iter().map(|v| active[v.index()]).collect();
        if inputs.contains(&true) {
            let types: Vec<Type> = eqn.inputs.iter().map(|&v| func.ty(v).clone()).collect();
            let outputs: Vec<Type> = eqn.outputs.iter().map(|&v| func.ty(v).clone()).collect();
            let flowing = through(eqn, &types, &outputs, &inputs);
            for (output, is) in eqn.outputs.iter().zip(flowing) {
                active[output.index()] = is;
            }
        }
    }
    func.results.iter().map(|r: &Value| active[r.index()]).collect()
}

/// Which outputs of an equation are active when these inputs are.
pub(crate) fn through(eqn: &Eqn, inputs: &[Type], outputs: &[Type], active: &[bool]) -> Vec<bool> {
    let any = active.contains(&true);
    let flowing = match eqn.op.gradient() {
        Gradient::Zero(_) => vec![false; outputs.len()],
        Gradient::Rule | Gradient::None(_) => vec![any; outputs.len()],
        Gradient::Held if !any => vec![false; outputs.len()],
        Gradient::Held => held(eqn.op.lower(inputs, &eqn.params), active, outputs.len()),
    };
    flowing.into_iter().zip(outputs).map(|(is, ty)| is && ty.dtype.is_float()).collect()
}

fn held(lowering: Lowering, active: &[bool], outputs: usize) -> Vec<bool> {
    match lowering {
        Lowering::Call(inner) => flow(&inner, active),
        Lowering::Scan(scan) => crate::loops::active_outputs(&scan, active),
        Lowering::Cond { on_true, on_false } => {
            crate::condition::active_outputs(&on_true, &on_false, active)
        }
        Lowering::While(body) => crate::forward::carried(&body, active),
        _ => vec![true; outputs],
    }
}
