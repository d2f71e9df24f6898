//! Ops that combine the elements along axes. Parameters: `axes` ascending, counted from the front;
//! `keep` leaves them in the result with extent 1.

use crate::application::Application;
use crate::batch::Batch;
use crate::domain::Domain;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::{Rule, Zero};
use crate::rule::{self, Term};
use crate::{CONCATENATE, EQ};
use vramlab_ir::{DType, Fault, Lowering, Param, Params, ReduceKind, Shape, Type};

static PARAMS: &[ParamSpec] = &[
    ParamSpec::new("axes", Format::Ints, "The axes to reduce, ascending, counted from the front."),
    ParamSpec::new("keep", Format::Bool, "Keep the reduced axes with extent 1."),
];

macro_rules! reductions {
    ($d:tt $($name:ident: $entry:ident {
        doc: $doc:literal, example: $example:literal, domain: $domain:ident, kind: $kind:ident,
        gradient: $gradient:expr
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
                gradient: $gradient,
                batch: Batch::Rule(|b| b.apply(b.shifted(&["axes"]), &[b.x(0)])),
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
        example: "linspace(1.0, 4.0, 4).sum()", domain: Accumulator, kind: Sum,
        gradient: Rule(|r| r.give(0, || spread(r, r.ct))) }
    prod: PROD { doc: "The product of the elements; of none, 1.",
        example: "linspace(1.0, 4.0, 4).prod()", domain: Accumulator, kind: Prod,
        gradient: Rule(|r| r.give(0, || others(r))) }
    max: MAX { doc: "The largest element; NaN wins.",
        example: "linspace(1.0, 4.0, 4).max()", domain: Accumulator, kind: Max,
        gradient: Rule(|r| r.give(0, || extremes(r))) }
    min: MIN { doc: "The smallest element; NaN wins.",
        example: "linspace(1.0, 4.0, 4).min()", domain: Accumulator, kind: Min,
        gradient: Rule(|r| r.give(0, || extremes(r))) }
    any: ANY { doc: "True when an element is true; of none, false.",
        example: "linspace(1.0, 4.0, 4).gt(3.0).any()", domain: Bool, kind: Any,
        gradient: Zero("a bool has no slope") }
    all: ALL { doc: "True when every element is true; of none, true.",
        example: "linspace(1.0, 4.0, 4).gt(3.0).all()", domain: Bool, kind: All,
        gradient: Zero("a bool has no slope") }
    argmax: ARGMAX { doc: "The position (i32) of the first largest element along one axis; the first NaN wins.",
        example: "linspace(1.0, 4.0, 4).argmax_axis(0)", domain: Accumulator, kind: ArgMax,
        gradient: Zero("positions do not move under small steps") }
    argmin: ARGMIN { doc: "The position (i32) of the first smallest element along one axis; the first NaN wins.",
        example: "linspace(1.0, 4.0, 4).argmin_axis(0)", domain: Accumulator, kind: ArgMin,
        gradient: Zero("positions do not move under small steps") }
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
            Ok(Type::new(dtype, shape))
        }
        ReduceKind::Max | ReduceKind::Min => {
            let empty = input.elements() == 0 && shape.elements() != 0;
            if empty { Err(no_elements(application)) } else { Ok(Type::new(dtype, shape)) }
        }
        ReduceKind::ArgMax | ReduceKind::ArgMin => {
            check_position_axis(application, &axes)?;
            Ok(Type::new(DType::I32, shape))
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

fn axes_of(r: &rule::Rule) -> Vec<usize> {
    r.ints("axes").iter().map(|&axis| axis as usize).collect()
}

/// A value of the result's shape with the reduced axes back, of extent 1.
fn kept<'r>(r: &rule::Rule<'r>, value: Term<'r>) -> Term<'r> {
    let shape = reduced_shape(&r.x(0).shape(), &axes_of(r), true);
    value.reshape(&shape)
}

/// A value of the result's shape for each element that went into it.
fn spread<'r>(r: &rule::Rule<'r>, value: Term<'r>) -> Term<'r> {
    kept(r, value).broadcast(&r.x(0).shape())
}

/// The cotangent goes to the elements that are the extreme; ties share it evenly, as in JAX.
fn extremes<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    let x = r.x(0);
    let mask = x.with(&EQ, kept(r, r.out)).convert(x.dtype());
    let count = mask.sum(&axes_of(r), true);
    kept(r, r.ct) / count * mask
}

/// Each element's cotangent is the product of the others. Division would fail at zeros, and prefix
/// products would need as many steps as elements; here the product is a tree of halves, gone back
/// through, which is right at zeros also for gradients of this gradient.
fn others<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    let x = r.x(0);
    let (shape, axes) = (x.shape(), axes_of(r));
    let free: Vec<usize> = (0..shape.rank()).filter(|axis| !axes.contains(axis)).collect();
    let order: Vec<usize> = free.iter().chain(&axes).copied().collect();
    let extent = |of: &[usize]| of.iter().map(|&axis| shape[axis]).product::<usize>();
    let (rows, terms) = (extent(&free), extent(&axes));
    if terms == 0 || rows == 0 {
        return r.full(0.0, &x.ty());
    }
    let mut level = x.transpose(&order).reshape(&Shape::from([rows, terms]));
    let mut halves = Vec::new();
    while level.shape()[1] > 1 {
        let odd = (level.shape()[1] % 2) as i64;
        let even = level.pad(vec![0, 0], vec![0, odd], 1.0);
        let (left, right) = split(even);
        halves.push((left, right, odd));
        level = left * right;
    }
    let mut ct = r.ct.reshape(&Shape::from([rows, 1]));
    for (left, right, odd) in halves.into_iter().rev() {
        let params = Params::new().with("axis", Param::Int(1));
        let both = r.op(&CONCATENATE, params, &[ct * right, ct * left]);
        let end = both.shape()[1] as i64 - odd;
        ct = both.slice(vec![0, 0], vec![rows as i64, end]);
    }
    let moved: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| back[axis] = at);
    ct.reshape(&Shape::new(moved)).transpose(&back)
}

/// The two halves of `[rows, 2 n]`.
fn split(even: Term) -> (Term, Term) {
    let (rows, extent) = (even.shape()[0] as i64, even.shape()[1] as i64);
    let left = even.slice(vec![0, 0], vec![rows, extent / 2]);
    (left, even.slice(vec![0, extent / 2], vec![rows, extent]))
}
