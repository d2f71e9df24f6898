//! Ops that combine the elements along axes. Parameters: `axes` ascending, counted from the front;
//! `keep` leaves them in the result with extent 1.

use crate::application::Application;
use crate::domain::Domain;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use vramlab_ir::{DType, Fault, Lowering, ReduceKind, Shape, Type};

static PARAMS: &[ParamSpec] = &[
    ParamSpec::new("axes", Format::Ints, "The axes to reduce, ascending, counted from the front."),
    ParamSpec::new("keep", Format::Bool, "Keep the reduced axes with extent 1."),
];

macro_rules! reductions {
    ($d:tt $($name:ident: $entry:ident {
        doc: $doc:literal, example: $example:literal, domain: $domain:ident, kind: $kind:ident
     })*) => {
        $(
            #[doc = $doc]
            pub static $entry: Entry = Entry {
                name: stringify!($name),
                doc: $doc,
                example: $example,
                operands: Operands::Exactly(1),
                params: PARAMS,
                meaning: Meaning::Reduce { domain: Domain::$domain, kind: ReduceKind::$kind },
            };
        )*

        /// The reductions.
        pub static REDUCTIONS: &[&Entry] = &[$(&$entry),*];

        /// The reductions. Calls `callback! { [extra] name ENTRY "doc" "example"; … }`; see the
        /// crate's words.
        #[macro_export]
        macro_rules! with_reduce {
            ($d callback:ident $d(, $d($d extra:tt)*)?) => {
                $d callback! { [$d($d($d extra)*)?] $($name $entry $doc $example;)* }
            };
        }
    };
}

reductions! { $
    sum: SUM { doc: "The sum of the elements; of none, 0.",
        example: "linspace(1.0, 4.0, 4).sum()", domain: Accumulator, kind: Sum }
    prod: PROD { doc: "The product of the elements; of none, 1.",
        example: "linspace(1.0, 4.0, 4).prod()", domain: Accumulator, kind: Prod }
    max: MAX { doc: "The largest element; NaN wins.",
        example: "linspace(1.0, 4.0, 4).max()", domain: Accumulator, kind: Max }
    min: MIN { doc: "The smallest element; NaN wins.",
        example: "linspace(1.0, 4.0, 4).min()", domain: Accumulator, kind: Min }
    any: ANY { doc: "True when an element is true; of none, false.",
        example: "linspace(1.0, 4.0, 4).gt(3.0).any()", domain: Bool, kind: Any }
    all: ALL { doc: "True when every element is true; of none, true.",
        example: "linspace(1.0, 4.0, 4).gt(3.0).all()", domain: Bool, kind: All }
    argmax: ARGMAX { doc: "The position (i32) of the first largest element along one axis; the first NaN wins.",
        example: "linspace(1.0, 4.0, 4).argmax_axis(0)", domain: Accumulator, kind: ArgMax }
    argmin: ARGMIN { doc: "The position (i32) of the first smallest element along one axis; the first NaN wins.",
        example: "linspace(1.0, 4.0, 4).argmin_axis(0)", domain: Accumulator, kind: ArgMin }
}

pub(crate) fn infer(
    application: &Application,
    domain: Domain,
    kind: ReduceKind,
) -> Result<Type, Fault> {
    let dtype = application.want(domain, 0)?;
    let axes = application.ascending_axes("axes")?;
    let input = &application.inputs[0].shape;
    let shape = reduced_shape(input, &axes, application.flag("keep"));
    match kind {
        ReduceKind::Sum | ReduceKind::Prod | ReduceKind::Any | ReduceKind::All => {
            Ok(Type { dtype, shape })
        }
        ReduceKind::Max | ReduceKind::Min => {
            let empty = input.elements() == 0 && shape.elements() != 0;
            if empty { Err(no_elements(application)) } else { Ok(Type { dtype, shape }) }
        }
        ReduceKind::ArgMax | ReduceKind::ArgMin => {
            check_position_axis(application, &axes)?;
            Ok(Type { dtype: DType::I32, shape })
        }
    }
}

fn check_position_axis(application: &Application, axes: &[usize]) -> Result<(), Fault> {
    let &[axis] = axes else {
        return Err(application.argument_fault(format!("takes one axis, got {axes:?}")));
    };
    match application.inputs[0].shape[axis] {
        0 => Err(no_elements(application)),
        extent if i32::try_from(extent).is_err() => {
            Err(application.argument_fault(format!("positions up to {extent} do not fit in i32")))
        }
        _ => Ok(()),
    }
}

fn no_elements(application: &Application) -> Fault {
    let axes = application.ints("axes");
    let name = application.name;
    application
        .shape_fault(format!("no elements along axes {axes:?}, and {name} of nothing is undefined"))
}

fn reduced_shape(input: &Shape, axes: &[usize], keep: bool) -> Shape {
    let kept = input.iter().enumerate().filter_map(|(axis, &extent)| match axes.contains(&axis) {
        true => keep.then_some(1),
        false => Some(extent),
    });
    Shape::new(kept.collect::<Vec<usize>>())
}

pub(crate) fn lower(application: &Application, kind: ReduceKind) -> Lowering {
    let axes = application.ints("axes").iter().map(|&axis| axis as usize).collect();
    Lowering::Reduce { kind, axes }
}
