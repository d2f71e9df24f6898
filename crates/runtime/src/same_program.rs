//! Whether two programs are the same to the compile cache: structure, types and parameters, not names or places.

use std::sync::Arc;
use vramlab_ir::{Eqn, Func, Param, Params};

pub(crate) fn same_program(a: &Arc<Func>, b: &Arc<Func>) -> bool {
    Arc::ptr_eq(a, b)
        || a.params == b.params
            && a.results == b.results
            // Tables name the arguments, so other names are another entry.
            && a.arg_names == b.arg_names
            && a.types == b.types
            && a.eqns.len() == b.eqns.len()
            && a.eqns.iter().zip(&b.eqns).all(|(a, b)| same_equation(a, b))
}

fn same_equation(a: &Eqn, b: &Eqn) -> bool {
    a.op.name() == b.op.name()
        && a.inputs == b.inputs
        && a.outputs == b.outputs
        && same_params(&a.params, &b.params)
}

fn same_params(a: &Params, b: &Params) -> bool {
    let (mut a, mut b) = (a.iter(), b.iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some((a, x)), Some((b, y))) if a == b && same_param(x, y) => {}
            _ => return false,
        }
    }
}

fn same_param(a: &Param, b: &Param) -> bool {
    match (a, b) {
        (Param::Func(a), Param::Func(b)) => same_program(a, b),
        (a, b) => a == b,
    }
}
