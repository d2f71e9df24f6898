//! The macros that make, from one declaration, a method, a free function and their entries in the
//! surface table, all over one core function. A parameter's kind stands for its Rust type, the text
//! of that type, and how a dynamic call reads it.

/// The Rust type of a parameter.
macro_rules! kind_type {
    (Operand) => { impl $crate::operand::Operand };
    (Axis) => { i32 };
    (Axes) => { impl $crate::shape_arguments::Axes };
    (Shape) => { impl $crate::shape_arguments::IntoShape };
    (Extent) => { impl $crate::shape_arguments::Extent };
    (Indices) => { impl $crate::shape_arguments::Indices };
    (Padding) => { impl $crate::shape_arguments::Padding };
    (Interval) => { impl $crate::create::Interval };
    (Number) => { impl Into<$crate::operand::Number> };
    (Float) => { f64 };
    (Int) => { i32 };
    (DType) => { vramlab_ir::DType };
    (Arrays) => { impl $crate::collections::Arrays };
    (Starts) => { impl $crate::collections::Starts };
}

/// The same as text.
macro_rules! kind_text {
    (Operand) => {
        "impl Operand"
    };
    (Axis) => {
        "i32"
    };
    (Axes) => {
        "impl Axes"
    };
    (Shape) => {
        "impl IntoShape"
    };
    (Extent) => {
        "impl Extent"
    };
    (Indices) => {
        "impl Indices"
    };
    (Padding) => {
        "impl Padding"
    };
    (Number) => {
        "impl Into<Number>"
    };
    (Float) => {
        "f64"
    };
    (Int) => {
        "i32"
    };
    (DType) => {
        "DType"
    };
    (Arrays) => {
        "impl Arrays"
    };
    (Starts) => {
        "impl Starts"
    };
    (Interval) => {
        "impl Interval"
    };
}

/// A typed argument in the form that a dynamic call reads it in.
macro_rules! kind_hold {
    (Operand $p:ident) => {
        $p
    };
    (Axis $p:ident) => {
        $p as i64
    };
    (Axes $p:ident) => {
        $crate::shape_arguments::Axes::axes(&$p)
    };
    (Shape $p:ident) => {
        $crate::shape_arguments::IntoShape::extents(&$p)
    };
    (Extent $p:ident) => {
        $crate::shape_arguments::Extent::extent(&$p)
    };
    (Indices $p:ident) => {
        $crate::shape_arguments::Indices::indices(&$p)
    };
    (Padding $p:ident) => {
        $crate::shape_arguments::Padding::pairs(&$p)
    };
    (Number $p:ident) => {
        $p.into()
    };
    (Float $p:ident) => {
        $p
    };
    (Int $p:ident) => {
        $p as i64
    };
    (DType $p:ident) => {
        $p
    };
    (Arrays $p:ident) => {
        $crate::collections::Arrays::arrays(&$p)
    };
    (Starts $p:ident) => {
        $crate::collections::Starts::starts(&$p)
    };
    (Interval $p:ident) => {
        $crate::create::Interval::bounds(&$p)
    };
}

/// The next dynamic argument.
macro_rules! kind_decode {
    (Operand $d:ident) => {
        $d.operand()?
    };
    (Axis $d:ident) => {
        $d.int()?
    };
    (Axes $d:ident) => {
        $d.integers()?
    };
    (Shape $d:ident) => {
        $d.shape()?
    };
    (Extent $d:ident) => {
        $d.int()?
    };
    (Indices $d:ident) => {
        $d.indices()?
    };
    (Padding $d:ident) => {
        $d.pairs()?
    };
    (Number $d:ident) => {
        $d.number()?
    };
    (Float $d:ident) => {
        $d.float()?
    };
    (Int $d:ident) => {
        $d.int()?
    };
    (DType $d:ident) => {
        $d.dtype()?
    };
    (Arrays $d:ident) => {
        $d.arrays()?
    };
    (Starts $d:ident) => {
        $d.operands()?
    };
    (Interval $d:ident) => {
        $d.interval()?
    };
}

/// A held argument as the core function takes it.
macro_rules! kind_pass {
    (Operand $p:ident) => {
        $crate::operand::Operand::input(&$p)
    };
    (Axes $p:ident) => {
        &$p
    };
    (Shape $p:ident) => {
        &$p
    };
    (Indices $p:ident) => {
        &$p
    };
    (Padding $p:ident) => {
        &$p
    };
    (Arrays $p:ident) => {
        &$p
    };
    (Starts $p:ident) => {
        &$p
    };
    ($kind:ident $p:ident) => {
        $p
    };
}

/// Functions without a receiver: `name(shape: Shape) = core, "doc", "example";`.
macro_rules! functions {
    ($(#[$meta:meta])* $items:ident: $(
        $name:ident ( $($p:ident : $k:ident),* ) = $core:path, $doc:expr, $example:expr;
    )*) => {
        $(
            #[doc = $doc]
            #[track_caller]
            pub fn $name($($p: $crate::declare::kind_type!($k)),*) -> $crate::Array {
                $(let $p = $crate::declare::kind_hold!($k $p);)*
                $crate::raise::or_raise($core($($crate::declare::kind_pass!($k $p)),*))
            }
        )*

        $(#[$meta])*
        pub(crate) static $items: &[$crate::surface::Item] = &[$(
            $crate::surface::Item {
                name: stringify!($name),
                place: $crate::surface::Place::Function,
                signature: $crate::declare::signature!($name: [] $($p: $k),*),
                doc: $doc,
                example: $example,
                call: |arguments| {
                    #[allow(unused_mut)]
                    let mut decoder = $crate::decode::Decoder::new(stringify!($name), arguments);
                    $(let $p = $crate::declare::kind_decode!($k decoder);)*
                    decoder.end()?;
                    $core($($crate::declare::kind_pass!($k $p)),*).map($crate::surface::Dyn::Array)
                },
            }
        ),*];
    };
}

/// Text of a signature; `[&self]` or `[x: impl Operand]` stands in front of the parameters.
macro_rules! signature {
    ($name:ident: [] ) => {
        concat!("fn ", stringify!($name), "() -> Array")
    };
    ($name:ident: [] $p:ident: $k:ident $(, $q:ident: $l:ident)*) => {
        concat!(
            "fn ", stringify!($name), "(", stringify!($p), ": ", $crate::declare::kind_text!($k)
            $(, ", ", stringify!($q), ": ", $crate::declare::kind_text!($l))*, ") -> Array"
        )
    };
    ($name:ident: [$first:literal] $($q:ident: $l:ident),*) => {
        concat!(
            "fn ", stringify!($name), "(", $first
            $(, ", ", stringify!($q), ": ", $crate::declare::kind_text!($l))*, ") -> Array"
        )
    };
}

/// Ops on an array: a method that borrows and a free function that consumes or borrows.
/// `name(axis: Axis) = core, "doc", "example";`, where the core takes the array first.
macro_rules! methods {
    ($items:ident: $(
        $name:ident ( $($p:ident : $k:ident),* ) = $core:path, $doc:expr, $example:expr;
    )*) => {
        impl $crate::Array {$(
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self, $($p: $crate::declare::kind_type!($k)),*) -> $crate::Array {
                $(let $p = $crate::declare::kind_hold!($k $p);)*
                let x = $crate::operand::Input::Array(self);
                $crate::raise::or_raise($core(x, $($crate::declare::kind_pass!($k $p)),*))
            }
        )*}

        /// The same as functions, which consume an array or borrow it.
        pub mod free {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $name(
                    x: impl $crate::operand::Operand,
                    $($p: $crate::declare::kind_type!($k)),*
                ) -> $crate::Array {
                    $(let $p = $crate::declare::kind_hold!($k $p);)*
                    $crate::raise::or_raise(
                        $core(x.input(), $($crate::declare::kind_pass!($k $p)),*)
                    )
                }
            )*
        }

        pub(crate) static $items: &[$crate::surface::Item] = &[$(
            $crate::surface::Item {
                name: stringify!($name),
                place: $crate::surface::Place::Method("Array"),
                signature: $crate::declare::signature!($name: ["&self"] $($p: $k),*),
                doc: $doc,
                example: $example,
                call: $crate::declare::dynamic_method!($name $core; $($p: $k),*),
            },
            $crate::surface::Item {
                name: stringify!($name),
                place: $crate::surface::Place::Function,
                signature: $crate::declare::signature!($name: ["x: impl Operand"] $($p: $k),*),
                doc: $doc,
                example: $example,
                call: $crate::declare::dynamic_method!($name $core; $($p: $k),*),
            },
        )*];
    };
}

macro_rules! dynamic_method {
    ($name:ident $core:path; $($p:ident : $k:ident),*) => {
        |arguments| {
            let mut decoder = $crate::decode::Decoder::new(stringify!($name), arguments);
            let x = decoder.operand()?;
            $(let $p = $crate::declare::kind_decode!($k decoder);)*
            decoder.end()?;
            let x = $crate::operand::Operand::input(&x);
            $core(x, $($crate::declare::kind_pass!($k $p)),*).map($crate::surface::Dyn::Array)
        }
    };
}

pub(crate) use {
    dynamic_method, functions, kind_decode, kind_hold, kind_pass, kind_text, kind_type, methods,
    signature,
};
