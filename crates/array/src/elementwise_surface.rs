//! The elementwise ops of the table as methods and functions: every name here comes from `ops`.

use crate::elementwise::{binary, unary};

macro_rules! unary_family {
    ([] $($name:ident $entry:ident $doc:literal $example:literal;)*) => {
        mod unary_cores {
            use crate::{Array, operand::Input};
            use vramlab_ir::Fault;
            $(pub(crate) fn $name(x: Input) -> Result<Array, Fault> {
                super::unary(&vramlab_ops::$entry, x)
            })*
        }

        /// Elementwise ops of one operand.
        pub mod one {
            crate::declare::methods! { ITEMS: $($name() = crate::elementwise_surface::unary_cores::$name, $doc, $example;)* }
        }
    };
}

macro_rules! binary_family {
    ([$module:ident $cores:ident] $($name:ident $entry:ident $doc:literal $example:literal;)*) => {
        mod $cores {
            use crate::{Array, operand::Input};
            use vramlab_ir::Fault;
            $(pub(crate) fn $name(a: Input, b: Input) -> Result<Array, Fault> {
                super::binary(&vramlab_ops::$entry, a, b)
            })*
        }

        /// Elementwise ops of two operands.
        pub mod $module {
            crate::declare::methods! { ITEMS: $($name(other: Operand) = crate::elementwise_surface::$cores::$name, $doc, $example;)* }
        }
    };
}

vramlab_ops::with_unary! { unary_family }
vramlab_ops::with_arithmetic! { binary_family, arithmetic arithmetic_cores }
vramlab_ops::with_binary! { binary_family, two two_cores }
vramlab_ops::with_bitwise! { binary_family, bits bits_cores }
vramlab_ops::with_comparison! { binary_family, comparison comparison_cores }

/// Ops whose operands differ in kind.
pub mod others {
    crate::declare::methods! { ITEMS:
        select(a: Operand, b: Operand) = crate::elementwise::select,
            "a where the condition holds, b elsewhere; the three shapes broadcast.",
            "let x = linspace(-1.0, 1.0, 5);\nselect(x.gt(0.0), &x, 0.0)";
        clip(low: Operand, high: Operand) = crate::elementwise::clip,
            "The elements, those outside low..=high moved to the nearer end.",
            "linspace(-2.0, 2.0, 5).clip(-1.0, 1.0)";
        convert(dtype: DType) = crate::elementwise::convert,
            "The elements in another type, as Rust's `as`: floats to integers truncate and saturate.",
            "linspace(0.0, 2.0, 5).convert(I32)";
        astype(dtype: DType) = crate::elementwise::convert,
            "The same as convert, under NumPy's name.",
            "linspace(0.0, 2.0, 5).astype(I32)";
        copy() = crate::elementwise::copy,
            "A buffer of its own with the same elements; clone would share the buffer.",
            "ones([3]).copy()";
    }
}
