//! Ops by name, looked up once.

use std::sync::OnceLock;
use vramlab_ir::{Fault, FaultKind, Op};

/// The op of that name.
pub(crate) fn op(name: &str) -> Result<Op, Fault> {
    vramlab_ops::lookup(name)
        .ok_or_else(|| Fault::new(FaultKind::Argument, name, "there is no such op"))
}

macro_rules! known {
    ($($name:ident = $text:literal;)*) => {$(
        pub(crate) fn $name() -> Op {
            static OP: OnceLock<Op> = OnceLock::new();
            *OP.get_or_init(|| {
                vramlab_ops::lookup($text).expect(concat!("the op table holds ", $text))
            })
        }
    )*};
}

known! {
    full = "full";
    convert = "convert";
}
