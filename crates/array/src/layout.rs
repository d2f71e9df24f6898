//! Ops that place elements: shapes, windows, joins, positions that are data.

use crate::array::Array;
use crate::create::array_of;
use crate::decode::Held;
use crate::eager::apply;
use crate::elementwise::convert;
use crate::operand::{Input, Number, Operand, common};
use crate::shape_arguments::{self, Index, list};
use crate::trace;
use vramlab_ir::{DType, Fault, FaultKind, Op, Param, Params, Shape};
use vramlab_ops::{Domain, Entry};

/// Applies an op that takes one array in its own element type.
fn place(name: &'static str, op: Op, params: Params, x: Input) -> Result<Array, Fault> {
    apply(name, op, params, &[x], &[x.dtype()])
}

fn shaped(name: &'static str, entry: &'static Entry, x: Input, to: Shape) -> Result<Array, Fault> {
    place(name, entry, Params::new().with("shape", Param::Shape(to)), x)
}

pub(crate) fn broadcast(x: Input, shape: &Shape) -> Result<Array, Fault> {
    shaped("broadcast_to", &vramlab_ops::BROADCAST, x, shape.clone())
}

pub(crate) fn broadcast_to(x: Input, extents: &[i64]) -> Result<Array, Fault> {
    broadcast(array_of(x)?.input(), &shape_arguments::shape("broadcast_to", extents)?)
}

/// One extent may be -1: what is left of the elements.
pub(crate) fn reshape(x: Input, extents: &[i64]) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let extents = inferred(&x, extents).map_err(|fault| trace::naming(fault, &[x.input()]))?;
    let shape = shape_arguments::shape("reshape", &extents)?;
    shaped("reshape", &vramlab_ops::RESHAPE, x.input(), shape)
}

fn inferred(x: &Array, extents: &[i64]) -> Result<Vec<i64>, Fault> {
    let fault = |what: &str| {
        let message = format!("{}: {what} in {}", x.ty(), list(extents));
        Err(Fault::new(FaultKind::Shape, "reshape", message))
    };
    let unknown = extents.iter().filter(|&&extent| extent == -1).count();
    match unknown {
        0 => return Ok(extents.to_vec()),
        1 => {}
        _ => return fault("only one extent can be -1"),
    }
    let mut known = extents.iter().filter(|&&extent| extent != -1);
    let known = known.try_fold(1i64, |product, &extent| product.checked_mul(extent));
    let elements = x.len() as i64;
    match known {
        Some(known) if known > 0 && elements % known == 0 => {
            let rest = elements / known;
            Ok(extents.iter().map(|&extent| if extent == -1 { rest } else { extent }).collect())
        }
        _ => fault(&format!("no extent for -1 fits {elements} elements")),
    }
}

/// The same elements under `shape`, which is known to hold as many; always a claim of its own.
fn as_shape(x: &Array, shape: Vec<usize>) -> Result<Array, Fault> {
    match x.ty().shape[..] == shape[..] {
        true => Ok(x.clone()),
        false => shaped("reshape", &vramlab_ops::RESHAPE, x.input(), shape.into()),
    }
}

pub(crate) fn ravel(x: Input) -> Result<Array, Fault> {
    reshape(x, &[-1])
}

/// Without axes of extent 1 that a reduction kept.
pub(crate) fn without_axes(x: &Array, axes: &[i64]) -> Result<Array, Fault> {
    let kept = x.ty().shape.iter().enumerate();
    let kept = kept.filter(|(axis, _)| !axes.contains(&(*axis as i64))).map(|(_, &e)| e);
    as_shape(x, kept.collect())
}

pub(crate) fn squeeze(x: Input) -> Result<Array, Fault> {
    let x = array_of(x)?;
    as_shape(&x, x.ty().shape.iter().copied().filter(|&extent| extent != 1).collect())
}

pub(crate) fn squeeze_axis(x: Input, axis: i64) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let axis = vramlab_ops::axis("squeeze_axis", x.ty(), axis)?;
    match x.ty().shape[axis as usize] {
        1 => without_axes(&x, &[axis]),
        extent => {
            let message = format!("axis {axis} of {} has extent {extent}, not 1", x.ty());
            Err(Fault::new(FaultKind::Shape, "squeeze_axis", message))
        }
    }
}

pub(crate) fn expand_dims(x: Input, axis: i64) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let rank = x.rank() as i64;
    let at = if axis < 0 { axis + rank + 1 } else { axis };
    if !(0..=rank).contains(&at) {
        let message = format!("axis {axis} for {}; valid are {}..={rank}", x.ty(), -rank - 1);
        return Err(Fault::new(FaultKind::Argument, "expand_dims", message));
    }
    let mut dims = x.shape();
    dims.insert(at as usize, 1);
    as_shape(&x, dims)
}

/// Axis i of the result is axis `perm[i]` of `x`.
pub(crate) fn permute(x: Input, perm: &[i64]) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let perm: Result<Vec<i64>, Fault> =
        perm.iter().map(|&axis| vramlab_ops::axis("permute", x.ty(), axis)).collect();
    let params = Params::new().with("perm", Param::Ints(perm?));
    place("permute", &vramlab_ops::TRANSPOSE, params, x.input())
}

pub(crate) fn transpose(x: Input) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let perm: Vec<i64> = (0..x.rank() as i64).rev().collect();
    permute(x.input(), &perm)
}

pub(crate) fn swapaxes(x: Input, a: i64, b: i64) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let a = vramlab_ops::axis("swapaxes", x.ty(), a)?;
    let b = vramlab_ops::axis("swapaxes", x.ty(), b)?;
    let mut perm: Vec<i64> = (0..x.rank() as i64).collect();
    perm.swap(a as usize, b as usize);
    permute(x.input(), &perm)
}

pub(crate) fn flip(x: Input, axis: i64) -> Result<Array, Fault> {
    flip_axes(x, &[axis])
}

pub(crate) fn flip_axes(x: Input, axes: &[i64]) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let axes = vramlab_ops::axes("flip", x.ty(), axes)?;
    let params = Params::new().with("axes", Param::Ints(axes));
    place("flip", &vramlab_ops::FLIP, params, x.input())
}

/// A window; axes that no index names stay whole, axes with one position go away.
pub(crate) fn slice(x: Input, indices: &[Index]) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let rank = x.rank();
    if indices.len() > rank {
        let message = format!("{} indices for {} of rank {rank}", indices.len(), x.ty());
        return Err(Fault::new(FaultKind::Argument, "slice", message));
    }
    let whole = Index::Range { start: None, end: None, inclusive: false };
    let mut starts = Vec::with_capacity(rank);
    let mut stops = Vec::with_capacity(rank);
    let mut gone = Vec::new();
    for axis in 0..rank {
        let index = indices.get(axis).copied().unwrap_or(whole);
        let (start, stop, single) = shape_arguments::window("slice", &x.ty().shape, axis, index)?;
        starts.push(start);
        stops.push(stop);
        if single {
            gone.push(axis as i64);
        }
    }
    let window = windowed("slice", &x, starts, stops)?;
    without_axes(&window, &gone)
}

fn windowed(
    name: &'static str,
    x: &Array,
    starts: Vec<i64>,
    stops: Vec<i64>,
) -> Result<Array, Fault> {
    let steps = vec![1; starts.len()];
    let params = Params::new()
        .with("start", Param::Ints(starts))
        .with("stop", Param::Ints(stops))
        .with("step", Param::Ints(steps));
    place(name, &vramlab_ops::SLICE, params, x.input())
}

/// Position `index` of axis 0, which goes away.
pub(crate) fn at(x: Input, index: i64) -> Result<Array, Fault> {
    let x = array_of(x)?;
    if x.rank() == 0 {
        let message = format!("{} has no axis to index", x.ty());
        return Err(Fault::new(FaultKind::Argument, "at", message));
    }
    slice(x.input(), &[Index::At(index)])
}

/// Equal parts along an axis.
pub(crate) fn split(x: Input, parts: i64, axis: i64) -> Result<Vec<Array>, Fault> {
    let x = array_of(x)?;
    let axis = vramlab_ops::axis("split", x.ty(), axis)? as usize;
    let extent = x.ty().shape[axis] as i64;
    if parts < 1 || extent % parts != 0 {
        let message =
            format!("extent {extent} of axis {axis} of {} is not {parts} equal parts", x.ty());
        return Err(Fault::new(FaultKind::Argument, "split", message));
    }
    let length = extent / parts;
    let part = |part: i64| {
        let mut starts = vec![0; x.rank()];
        let mut stops: Vec<i64> = x.ty().shape.iter().map(|&extent| extent as i64).collect();
        starts[axis] = part * length;
        stops[axis] = (part + 1) * length;
        windowed("split", &x, starts, stops)
    };
    (0..parts).map(part).collect()
}

pub(crate) fn concatenate(arrays: &[Array], axis: i64) -> Result<Array, Fault> {
    join("concatenate", arrays, axis)
}

fn join(name: &'static str, arrays: &[Array], axis: i64) -> Result<Array, Fault> {
    let Some(first) = arrays.first() else {
        return Err(Fault::new(FaultKind::Argument, name, "takes at least one array, got none"));
    };
    let axis = vramlab_ops::axis(name, first.ty(), axis)?;
    let inputs: Vec<Input> = arrays.iter().map(Input::Array).collect();
    let dtypes = vec![common(&inputs); inputs.len()];
    let params = Params::new().with("axis", Param::Int(axis));
    apply(name, &vramlab_ops::CONCATENATE, params, &inputs, &dtypes)
}

/// Arrays of one shape side by side along a new axis.
pub(crate) fn stack(arrays: &[Array], axis: i64) -> Result<Array, Fault> {
    let raised: Result<Vec<Array>, Fault> =
        arrays.iter().map(|array| expand_dims(array.input(), axis)).collect();
    let differs = arrays.windows(2).find(|pair| pair[0].ty().shape != pair[1].ty().shape);
    if let Some([a, b]) = differs {
        let message = format!("shapes {} and {} differ", a.ty().shape, b.ty().shape);
        let fault = Fault::new(FaultKind::Shape, "stack", message);
        return Err(trace::naming(fault, &[a.input(), b.input()]));
    }
    join("stack", &raised?, axis)
}

pub(crate) fn pad(x: Input, pairs: &[(i64, i64)], value: Number) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let params = Params::new()
        .with("low", Param::Ints(pairs.iter().map(|pair| pair.0).collect()))
        .with("high", Param::Ints(pairs.iter().map(|pair| pair.1).collect()));
    let dtype = x.dtype();
    let inputs = [x.input(), Input::Number(value)];
    apply("pad", &vramlab_ops::PAD, params, &inputs, &[dtype, dtype])
}

/// Positions as `i32`: other integers are converted, floats are refused.
pub(crate) fn positions(op: &str, given: Input) -> Result<Array, Fault> {
    let given = array_of(given)?;
    match given.dtype() {
        DType::I32 => Ok(given),
        dtype if dtype.is_integer() => convert(given.input(), DType::I32),
        dtype => {
            let message = format!("positions are integers, not {dtype}");
            let help = "arange_as(I32, n), array([0, 1]) and x.convert(I32) make integers";
            Err(Fault::new(FaultKind::DType, op, message).help(help))
        }
    }
}

/// Elements at positions along an axis, negative ones from its end, clamped to it.
pub(crate) fn take(x: Input, indices: Input, axis: i64) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let axis = vramlab_ops::axis("take", x.ty(), axis)?;
    let indices = positions("take", indices)?;
    let behind = x.rank() - axis as usize - 1;
    let dims: Vec<usize> =
        indices.shape().into_iter().chain(std::iter::repeat_n(1, behind)).collect();
    let indices = as_shape(&indices, dims)?;
    let params = Params::new().with("axis", Param::Int(axis));
    let inputs = [x.input(), indices.input()];
    apply("take", &vramlab_ops::GATHER, params, &inputs, &[x.dtype(), DType::I32])
}

/// `x` with updates added at positions along an axis, taken as [`take`] takes them; equal positions add up. The
/// updates have the shape that `take` gives there.
pub(crate) fn scatter_add(
    x: Input,
    indices: Input,
    updates: Input,
    axis: i64,
) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let axis = vramlab_ops::axis("scatter_add", x.ty(), axis)?;
    let indices = positions("scatter_add", indices)?;
    let (before, behind) = x.ty().shape.split_at(axis as usize);
    let behind = &behind[1..];
    let own = indices.ty().shape.to_vec();
    let updates = array_of(updates)?;
    let whole = Shape::new([before, &own, behind].concat());
    let updates = match updates.rank() {
        0 => broadcast(updates.input(), &whole)?,
        _ => updates,
    };
    let dims = [own, vec![1; behind.len()]].concat();
    let indices = as_shape(&indices, dims)?;
    let dtype = Domain::Number.coerce(common(&[x.input(), updates.input()]));
    let params = Params::new().with("axis", Param::Int(axis));
    let inputs = [x.input(), indices.input(), updates.input()];
    apply("scatter_add", &vramlab_ops::SCATTER_ADD, params, &inputs, &[dtype, DType::I32, dtype])
}

/// Starts as `i32` scalars; numbers stay numbers.
fn starts(op: &str, given: &[Held]) -> Result<Vec<Held>, Fault> {
    given
        .iter()
        .map(|start| match start {
            Held::Number(number) => Ok(Held::Number(*number)),
            Held::Array(array) => positions(op, array.input()).map(Held::Array),
        })
        .collect()
}

pub(crate) fn dynamic_slice(x: Input, given: &[Held], sizes: &[i64]) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let starts = starts("dynamic_slice", given)?;
    let sizes = shape_arguments::shape("dynamic_slice", sizes)?;
    let inputs: Vec<Input> =
        std::iter::once(x.input()).chain(starts.iter().map(Operand::input)).collect();
    let mut dtypes = vec![DType::I32; inputs.len()];
    dtypes[0] = x.dtype();
    let params = Params::new().with("sizes", Param::Shape(sizes));
    apply("dynamic_slice", &vramlab_ops::DYNAMIC_SLICE, params, &inputs, &dtypes)
}

pub(crate) fn dynamic_update_slice(
    x: Input,
    update: Input,
    given: &[Held],
) -> Result<Array, Fault> {
    let x = array_of(x)?;
    let starts = starts("dynamic_update_slice", given)?;
    let inputs: Vec<Input> =
        [x.input(), update].into_iter().chain(starts.iter().map(Operand::input)).collect();
    let mut dtypes = vec![DType::I32; inputs.len()];
    dtypes[..2].fill(x.dtype());
    let name = "dynamic_update_slice";
    apply(name, &vramlab_ops::DYNAMIC_UPDATE_SLICE, Params::new(), &inputs, &dtypes)
}
