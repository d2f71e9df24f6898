//! The convolution of arrays with channels last, `[examples, space…, channels]`, by filters `[space…,
//! channels, results]`, as the field has it: filters are not turned round.
//!
//! One op is its own gradient. The operand's is the convolution of the cotangent, spread by the
//! stride, with the filters turned round; the filters' is that of the operand with the cotangent for
//! a filter, where examples and channels change places.

use crate::FLIP;
use crate::application::Application;
use crate::batch::{Batch, Examples, moved};
use crate::domain::Domain;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::Rule;
use crate::rule::{self, Term};
use vramlab_ir::lowering::{ConvAxis, Convolution};
use vramlab_ir::{Fault, Lowering, Param, Params, Shape, Type};

/// The ops of this file.
pub static CONVOLUTION: &[&Entry] = &[&CONV];

/// Filters moved over space.
pub static CONV: Entry = Entry {
    name: "conv",
    doc: "x[n, s…, c] with filters w[k…, c, o] moved over its space, channels last: element [n, p…, o] is \
          the sum over k and c of x at p · stride + k · w_dilation - low. With x_dilation, x counts as \
          spread by zeros between its elements; outside of x there are zeros, and negative padding \
          cuts off.",
    example: "conv2d(ones([1, 4, 4, 2]), ones([3, 3, 2, 5]), 1, 1)",
    operands: Operands::Exactly(2),
    params: &[
        ParamSpec::new("stride", Format::Ints, "The distance of two results, per axis of space."),
        ParamSpec::new("low", Format::Ints, "Zeros before x, per axis of space."),
        ParamSpec::new("high", Format::Ints, "Zeros behind x, per axis of space."),
        ParamSpec::new(
            "x_dilation",
            Format::Ints,
            "The distance of x's elements, per axis of space.",
        ),
        ParamSpec::new(
            "w_dilation",
            Format::Ints,
            "The distance of w's elements, per axis of space.",
        ),
    ],
    meaning: Meaning::Own { infer: infer_conv, lower: |a| Lowering::Conv(convolution(a.params)) },
    gradient: Rule(|r| {
        r.give(0, || of_operand(r));
        r.give(1, || of_filters(r));
    }),
    batch: Batch::Rule(batched),
};

const PER_AXIS: [&str; 5] = ["stride", "low", "high", "x_dilation", "w_dilation"];

fn convolution(params: &Params) -> Convolution {
    let ints = |name: &str| params.ints(name).unwrap_or_default();
    let axes = (0..ints("stride").len()).map(|at| ConvAxis {
        stride: ints("stride")[at],
        low: ints("low")[at],
        high: ints("high")[at],
        x_dilation: ints("x_dilation")[at],
        w_dilation: ints("w_dilation")[at],
    });
    Convolution { axes: axes.collect() }
}

fn params(convolution: &Convolution) -> Params {
    let of = |axis: &ConvAxis, name: &str| match name {
        "stride" => axis.stride,
        "low" => axis.low,
        "high" => axis.high,
        "x_dilation" => axis.x_dilation,
        _ => axis.w_dilation,
    };
    PER_AXIS.iter().fold(Params::new(), |params, name| {
        params
            .with(*name, Param::Ints(convolution.axes.iter().map(|axis| of(axis, name)).collect()))
    })
}

fn infer_conv(a: &Application) -> Result<Vec<Type>, Fault> {
    let dtype = a.want(Domain::Accumulator, 0)?;
    a.want_equal(0, 1)?;
    let (x, w) = (&a.inputs[0].shape, &a.inputs[1].shape);
    if x.rank() != w.rank() || x.rank() < 3 {
        let what =
            "x is [examples, space…, channels], w is [space…, channels, results], of one rank";
        return Err(a.shape_fault(what));
    }
    let space = x.rank() - 2;
    if let Some(name) = PER_AXIS.iter().find(|name| a.ints(name).len() != space) {
        let what = format!("{name} has {} entries for {space} axes of space", a.ints(name).len());
        return Err(a.argument_fault(what));
    }
    let channels = (x[space + 1], w[space]);
    if channels.0 != channels.1 {
        let what = format!("x has {} channels, the filters take {}", channels.0, channels.1);
        return Err(a.shape_fault(what));
    }
    let mut dims = vec![x[0]];
    for (at, axis) in convolution(a.params).axes.iter().enumerate() {
        dims.push(results(a, axis, at, x[at + 1], w[at])?);
    }
    dims.push(w[space + 1]);
    Ok(vec![Type::new(dtype, dims)])
}

/// How many results there are along an axis of space.
fn results(
    a: &Application,
    axis: &ConvAxis,
    at: usize,
    x: usize,
    w: usize,
) -> Result<usize, Fault> {
    for (name, value) in
        [("stride", axis.stride), ("x_dilation", axis.x_dilation), ("w_dilation", axis.w_dilation)]
    {
        if value < 1 {
            return Err(a.argument_fault(format!("{name} {value} at axis {at} is below 1")));
        }
    }
    if x == 0 || w == 0 {
        return Err(a.shape_fault(format!("axis {at} of space has no elements")));
    }
    match axis.results(x, w) {
        Some(results) if results > 0 => Ok(results),
        Some(_) => Err(a.shape_fault(format!(
            "axis {at} of space: filters of {w} do not fit in {x} elements, padded by {} and {}",
            axis.low, axis.high
        ))),
        None => Err(a.argument_fault(format!("axis {at} of space is longer than can be counted"))),
    }
}

fn extents(shape: &Shape, first: usize) -> Vec<i64> {
    shape[first..].iter().map(|&extent| extent as i64).collect()
}

/// The cotangent, spread by the stride, under the filters turned round.
fn of_operand<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    let (x, w) = (r.x(0).shape(), r.x(1).shape());
    let rank = x.rank();
    let (inside, taps, given) = (extents(&x, 1), extents(&w, 0), extents(&r.ct.shape(), 1));
    let axes = convolution(r.params).axes.into_iter().enumerate().map(|(at, axis)| {
        let reach = (taps[at] - 1) * axis.w_dilation;
        ConvAxis {
            stride: axis.x_dilation,
            low: reach - axis.low,
            high: (inside[at] - 1) * axis.x_dilation + axis.low - (given[at] - 1) * axis.stride,
            x_dilation: axis.stride,
            w_dilation: axis.w_dilation,
        }
    });
    let space: Vec<i64> = (0..rank as i64 - 2).collect();
    let turned = r.op(&FLIP, Params::new().with("axes", Param::Ints(space)), &[r.x(1)]);
    let filters = moved(turned, rank - 1, rank - 2);
    r.op(&CONV, params(&Convolution { axes: axes.collect() }), &[r.ct, filters])
}

/// Examples are summed over as channels are elsewhere, and a channel is an example.
fn of_filters<'r>(r: &rule::Rule<'r>) -> Term<'r> {
    let (x, w) = (r.x(0).shape(), r.x(1).shape());
    let rank = x.rank();
    let (inside, taps, given) = (extents(&x, 1), extents(&w, 0), extents(&r.ct.shape(), 1));
    let axes = convolution(r.params).axes.into_iter().enumerate().map(|(at, axis)| ConvAxis {
        stride: axis.w_dilation,
        low: axis.low,
        high: (taps[at] - 1) * axis.w_dilation + (given[at] - 1) * axis.stride
            - (inside[at] - 1) * axis.x_dilation
            - axis.low,
        x_dilation: axis.x_dilation,
        w_dilation: axis.stride,
    });
    let mut exchanged: Vec<usize> = (0..rank).collect();
    exchanged.swap(0, rank - 1);
    let channels = r.x(0).transpose(&exchanged);
    let cotangent = moved(r.ct, 0, rank - 2);
    let convolution = Convolution { axes: axes.collect() };
    let product = r.op(&CONV, params(&convolution), &[channels, cotangent]);
    moved(product, 0, rank - 2)
}

/// Examples of examples are examples; filters that differ are more filters.
fn batched<'r>(b: &Examples<'r>) -> Term<'r> {
    let joined = |shape: &Shape, at: usize| {
        Shape::new([&shape[..at], &[shape[at] * shape[at + 1]], &shape[at + 2..]].concat())
    };
    let split = |shape: &Shape, at: usize, into: [usize; 2]| {
        Shape::new([&shape[..at], &into, &shape[at + 1..]].concat())
    };
    match (b.batched(0), b.batched(1)) {
        (true, true) => b.one_by_one(),
        (true, false) => {
            let x = b.x(0).reshape(&joined(&b.x(0).shape(), 0));
            let all = b.apply(b.params.clone(), &[x, b.x(1)]);
            all.reshape(&split(&all.shape(), 0, [b.size, b.shape(0)[0]]))
        }
        (false, _) => {
            let last = b.shape(1).rank() - 1;
            let filters = moved(b.x(1), 0, last);
            let filters = filters.reshape(&joined(&filters.shape(), last));
            let all = b.apply(b.params.clone(), &[b.x(0), filters]);
            let apart = all.reshape(&split(&all.shape(), last, [b.size, b.shape(1)[last]]));
            moved(apart, last, 0)
        }
    }
}
