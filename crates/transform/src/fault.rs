//! How transforms refuse: the op, the types, the place, and what to do instead.

use vramlab_ir::{Fault, FaultKind, Span, Type};

/// `fault` at the place where the user wrote the equation; the cell is added by the caller.
pub(crate) fn at(fault: Fault, span: Option<Span>) -> Fault {
    match span {
        Some(span) => fault.at(0, span),
        None => fault,
    }
}

pub(crate) fn no_gradient(op: &str, why: &str, types: &[Type], span: Option<Span>) -> Fault {
    let types: Vec<String> = types.iter().map(Type::to_string).collect();
    let message = format!("{} has no gradient: {why}", types.join(", "));
    let fault = Fault::new(FaultKind::Argument, op, message)
        .help("stop_gradient(x) makes its operand a constant to gradients");
    at(fault, span)
}

pub(crate) fn while_loop(span: Option<Span>) -> Fault {
    let message = "reverse mode keeps every step's values, and how many steps a while_loop takes \
                   is not known before it runs";
    let fault = Fault::new(FaultKind::Argument, "while_loop", message).help(
        "use fori_loop or scan, whose number of steps is fixed, with select for the condition",
    );
    at(fault, span)
}
