//! How a run ends early.

use crate::ir::{Fault, FaultKind};

pub type Fallible<T> = Result<T, Fault>;

/// A panic of the user's code.
pub fn panic(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Panic, "", message)
}

/// The user asked to stop.
pub fn interrupted() -> Fault {
    Fault::new(FaultKind::Interrupted, "", "interrupted")
}

/// A state that the check excludes. It is reported, not hidden.
pub fn internal(what: &str) -> Fault {
    Fault::new(FaultKind::Panic, "", format!("the instant tier lost track of {what}"))
        .help("this is a fault of vramlab's interpreter, not of the cell")
}
