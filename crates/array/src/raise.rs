//! Faults as panics, and back: the typed surface has no `Result`, so that a cell reads as Rust
//! arithmetic does.

use crate::ambient::placed;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use vramlab_ir::{Fault, FaultKind};

thread_local! {
    static CATCHING: Cell<u32> = const { Cell::new(0) };
}

/// Unwinds with `fault` as the payload. Inside [`catch`] nothing is printed, since the fault comes
/// back as a value; outside, the fault is printed as a panic's message would be, because the
/// standard hook cannot read the payload.
#[track_caller]
pub fn raise(fault: Fault) -> ! {
    let fault = placed(fault);
    if CATCHING.get() == 0 {
        eprintln!("error[{}]: {fault} ({})", fault.kind.code(), std::panic::Location::caller());
        if let Some(help) = &fault.help {
            eprintln!("  help: {help}");
        }
    }
    resume_unwind(Box::new(fault))
}

/// The value, or a panic with the fault.
#[track_caller]
pub(crate) fn or_raise<T>(result: Result<T, Fault>) -> T {
    match result {
        Ok(value) => value,
        Err(fault) => raise(fault),
    }
}

/// Runs `body`; a fault that it raised comes back as it is, any other panic as a fault of kind
/// `Panic` with its message.
///
/// # Errors
/// The fault.
pub fn catch<T>(body: impl FnOnce() -> T) -> Result<T, Fault> {
    struct Depth;
    impl Drop for Depth {
        fn drop(&mut self) {
            CATCHING.set(CATCHING.get() - 1);
        }
    }
    CATCHING.set(CATCHING.get() + 1);
    let _depth = Depth;
    catch_unwind(AssertUnwindSafe(body)).map_err(fault_of)
}

fn fault_of(payload: Box<dyn Any + Send>) -> Fault {
    let payload = match payload.downcast::<Fault>() {
        Ok(fault) => return *fault,
        Err(payload) => payload,
    };
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message");
    placed(Fault::new(FaultKind::Panic, "", message))
}
