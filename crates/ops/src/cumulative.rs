//! Running sums and their like: element i of the result combines the elements up to i along one axis.

use crate::application::Application;
use crate::batch::Batch;
use crate::domain::Domain;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::Rule;
use crate::rule::{self, Term};
use crate::{ADD, CONCATENATE, FLIP, FULL, GT, LT, MUL, SCAN, SELECT};
use std::sync::Arc;
use vramlab_ir::{
    Fault, FuncBuilder, Literal, Lowering, Param, Params, Primitive, ReduceKind, Shape, Type, Value,
};

static PARAMS: &[ParamSpec] = &[
    ParamSpec::new("axis", Format::Int, "The axis, counted from the front."),
    ParamSpec::new("reverse", Format::Bool, "From the end of the axis to its beginning."),
];

macro_rules! cumulative {
    ($($name:ident: $entry:ident { doc: $doc:literal, example: $example:literal, kind: $kind:ident,
        gradient: $gradient:expr })*) => {
        $(
            #[doc = $doc]
            pub static $entry: Entry = Entry {
                name: stringify!($name),
                doc: $doc,
                example: $example,
                operands: Operands::Exactly(1),
                params: PARAMS,
                meaning: Meaning::Own {
                    infer,
                    lower: |a| lower(a, ReduceKind::$kind),
                },
                gradient: $gradient,
                batch: Batch::Rule(|b| b.apply(b.shifted(&["axis"]), &[b.x(0)])),
            };
        )*

        /// The ops of this file.
        pub static CUMULATIVE: &[&Entry] = &[$(&$entry),*];
    };
}

cumulative! {
    cumsum: CUMSUM { doc: "The sum of the elements up to each along an axis.",
        example: "cumsum(linspace(1.0, 4.0, 4), 0)", kind: Sum,
        gradient: Rule(|r| r.give(0, || turned(r))) }
    cumprod: CUMPROD { doc: "The product of the elements up to each along an axis.",
        example: "cumprod(linspace(1.0, 4.0, 4), 0)", kind: Prod,
        gradient: Rule(|r| r.give(0, || prefixes(r))) }
    cummax: CUMMAX { doc: "The largest of the elements up to each along an axis; NaN wins.",
        example: "cummax(linspace(1.0, 4.0, 4), 0)", kind: Max,
        gradient: Rule(|r| r.give(0, || leaders(r, &GT))) }
    cummin: CUMMIN { doc: "The smallest of the elements up to each along an axis; NaN wins.",
        example: "cummin(linspace(1.0, 4.0, 4), 0)", kind: Min,
        gradient: Rule(|r| r.give(0, || leaders(r, &LT))) }
}

fn infer(a: &Application) -> Result<Vec<Type>, Fault> {
    a.want(Domain::Accumulator, 0)?;
    a.front_axis(&a.inputs[0], a.int("axis"))?;
    Ok(a.inputs.to_vec())
}

fn lower(a: &Application, kind: ReduceKind) -> Lowering {
    Lowering::Cumulative { kind, axis: a.int("axis") as usize, reverse: a.flag("reverse") }
}

/// An element is in the sums from its own on: their cotangents, summed from the other end.
fn turned<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    let axis = r.params.int("axis").unwrap_or_default();
    let params = Params::new()
        .with("axis", Param::Int(axis))
        .with("reverse", Param::Bool(!r.params.flag("reverse")));
    r.op(&CUMSUM, params, &[r.ct])
}

/// An array with the axis that is gone along in front, first element first.
fn along<'r>(r: &rule::Rule<'r>, x: Term<'r>) -> Term<'r> {
    let rank = x.shape().rank();
    let axis = r.params.int("axis").unwrap_or_default() as usize;
    let order: Vec<usize> = std::iter::once(axis).chain((0..rank).filter(|&a| a != axis)).collect();
    flipped(r, x.transpose(&order))
}

/// Undoes [`along`].
fn back<'r>(r: &rule::Rule<'r>, x: Term<'r>) -> Term<'r> {
    let rank = x.shape().rank();
    let axis = r.params.int("axis").unwrap_or_default() as usize;
    let order: Vec<usize> = (1..=axis).chain([0]).chain(axis + 1..rank).collect();
    flipped(r, x).transpose(&order)
}

fn flipped<'r>(r: &rule::Rule<'r>, x: Term<'r>) -> Term<'r> {
    match r.params.flag("reverse") {
        true => r.op(&FLIP, Params::new().with("axes", Param::Ints(vec![0])), &[x]),
        false => x,
    }
}

/// Element i - 1 at i, and `first` at 0.
fn shifted<'r>(r: &rule::Rule<'r>, x: Term<'r>, first: Term<'r>) -> Term<'r> {
    let shape = x.shape();
    let mut stop: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    stop[0] -= 1;
    let rest = x.slice(vec![0; shape.rank()], stop);
    let one = Shape::new([&[1], &shape[1..]].concat());
    let params = Params::new().with("axis", Param::Int(0));
    r.op(&CONCATENATE, params, &[first.broadcast(&one), rest])
}

/// A scan from the last element to the first over two arrays; `body` gets what is carried and one
/// slice of each, and gives what is carried on and a slice of the result.
fn scan_back<'r>(
    r: &rule::Rule<'r>,
    xs: [Term<'r>; 2],
    body: impl FnOnce(&mut FuncBuilder, [Value; 3]) -> Result<Vec<Value>, Fault>,
) -> Term<'r> {
    let slice = |x: Term| Type::new(x.dtype(), x.shape()[1..].to_vec());
    let mut builder = FuncBuilder::new("step");
    let carried = slice(xs[0]);
    let params = [&carried, &slice(xs[0]), &slice(xs[1])].map(|ty| builder.param(ty.clone()));
    // The types are those of the rule's own terms, so that the body fits them.
    let results = body(&mut builder, params).unwrap_or_else(|_| vec![params[0], params[1]]);
    let scan = Params::new()
        .with("body", Param::Func(Arc::new(builder.finish(results))))
        .with("length", Param::Int(xs[0].shape()[0] as i64))
        .with("consts", Param::Int(0))
        .with("carries", Param::Int(1))
        .with("reverse", Param::Bool(true));
    r.ops(&SCAN, scan, &[r.full(0.0, &carried), xs[0], xs[1]])[1]
}

/// Element j is in the products from its own on: the product before it times the cotangents behind
/// it, each with the elements in between. Nothing is divided, so that zeros are right.
fn prefixes<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    if r.ct.shape().elements() == 0 {
        return r.ct;
    }
    let (x, out, ct) = (along(r, r.x(0)), along(r, r.out), along(r, r.ct));
    let behind = scan_back(r, [ct, x], |b, [carried, ct, x]| {
        let sum = b.push(&ADD, Params::new(), &[ct, carried], None)?[0];
        let on = b.push(&MUL, Params::new(), &[x, sum], None)?[0];
        Ok(vec![on, sum])
    });
    back(r, shifted(r, out, x.like(1.0)) * behind)
}

/// A cotangent goes to the element that was the extreme there; of equal ones to the first.
fn leaders<'r>(r: &rule::Rule<'r>, wins: &'static Entry) -> Term<'r> {
    if r.ct.shape().elements() == 0 {
        return r.ct;
    }
    let (x, out, ct) = (along(r, r.x(0)), along(r, r.out), along(r, r.ct));
    let first = x.dtype();
    let worst = if wins.name() == GT.name { f64::NEG_INFINITY } else { f64::INFINITY };
    let leads = x.with(wins, shifted(r, out, r.number(worst, first)));
    let given = scan_back(r, [ct, leads], |b, [carried, ct, leads]| {
        let scalar = Params::new()
            .with("value", Param::Literal(Literal::from_f64(b.ty(ct).dtype, 0.0)))
            .with("shape", Param::Shape(Shape::scalar()));
        let zero = b.push(&FULL, scalar, &[], None)?[0];
        let sum = b.push(&ADD, Params::new(), &[ct, carried], None)?[0];
        let own = b.push(&SELECT, Params::new(), &[leads, sum, zero], None)?[0];
        let on = b.push(&SELECT, Params::new(), &[leads, zero, sum], None)?[0];
        Ok(vec![on, own])
    });
    back(r, given)
}
