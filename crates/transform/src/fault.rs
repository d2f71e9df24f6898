//! How transforms refuse: the op, the types, the place, and what to do instead.

use vramlab_ir::{Fault, FaultKind, Origin, Type};

/// `fault` at the place where the user wrote the equation.
pub(crate) fn at(fault: Fault, origin: Option<Origin>) -> Fault {
    match origin {
        Some(origin) => fault.at(origin.cell, origin.span),
        None => fault,
    }
}

pub(crate) fn no_gradient(op: &str, why: &str, types: &[Type], origin: Option<Origin>) -> Fault {
    let types: Vec<String> = types.iter().map(Type::to_string).collect();
    let message = format!("{} has no gradient: {why}", types.join(", "));
    let fault = Fault::new(FaultKind::Argument, op, message)
        .help("stop_gradient(x) makes its operand a constant to gradients");
    at(fault, origin)
}

pub(crate) fn while_loop(origin: Option<Origin>) -> Fault {
    let message = "reverse mode keeps every step's values, and how many steps a while_loop takes \
                   is not known before it runs";
    let fault = Fault::new(FaultKind::Argument, "while_loop", message).help(
        "use fori_loop with numbers as bounds, or scan, whose number of steps is fixed, with select for the \
         condition",
    );
    at(fault, origin)
}
