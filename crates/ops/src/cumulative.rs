//! Running sums and their like: element i of the result combines the elements up to i along one axis.

use crate::application::Application;
use crate::batch::Batch;
use crate::domain::Domain;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::{None, Rule};
use crate::rule::{self, Term};
use vramlab_ir::{Fault, Lowering, Param, Params, ReduceKind, Type};

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
        gradient: None("it would divide by elements that may be 0; exp of a cumsum of log has one") }
    cummax: CUMMAX { doc: "The largest of the elements up to each along an axis; NaN wins.",
        example: "cummax(linspace(1.0, 4.0, 4), 0)", kind: Max,
        gradient: None("the table has no op that says which element was the largest; a scan of maximum has one") }
    cummin: CUMMIN { doc: "The smallest of the elements up to each along an axis; NaN wins.",
        example: "cummin(linspace(1.0, 4.0, 4), 0)", kind: Min,
        gradient: None("the table has no op that says which element was the smallest; a scan of minimum has one") }
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
