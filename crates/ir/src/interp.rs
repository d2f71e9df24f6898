//! The interpreter: what a program means, element by element, in the most obvious way. It is slow
//! and it decides: compiled code is held to it within a stated error.
//!
//! Elementwise arithmetic is done in `f64` or wrapping `i64` and rounded to the element type after
//! every instruction. Sums, products and dots of floats accumulate in `f64` and round once.

mod control;

use crate::dtype::{DType, Literal};
use crate::fault::{Fault, FaultKind};
use crate::func::{Func, Type, Value};
use crate::lowering::{Convolution, DotAxes, Lowering, ReduceKind};
use crate::scalar::{Inst, Reg, ScalarOp, ScalarProgram};
use crate::shape::Shape;
use crate::text::type_list;
use crate::verify::verify;
use std::fmt;

/// A dense array on the host: row-major, little endian.
#[derive(Clone, PartialEq)]
pub struct Tensor {
    pub ty: Type,
    pub bytes: Vec<u8>,
}

impl Tensor {
    /// # Errors
    /// An argument fault when the bytes are not as many as the type has.
    pub fn new(ty: Type, bytes: Vec<u8>) -> Result<Tensor, Fault> {
        if bytes.len() as u64 == ty.bytes() {
            return Ok(Tensor { ty, bytes });
        }
        let message = format!("{} bytes for {ty}, which has {}", bytes.len(), ty.bytes());
        Err(Fault::new(FaultKind::Argument, "", message))
    }

    /// # Errors
    /// Out of memory on the host.
    pub fn fill(ty: Type, mut value: impl FnMut(usize) -> Literal) -> Result<Tensor, Fault> {
        let mut bytes = Vec::new();
        let size = usize::try_from(ty.bytes()).unwrap_or(usize::MAX);
        if bytes.try_reserve_exact(size).is_err() {
            let message = format!("no host memory for {ty}");
            return Err(Fault::new(FaultKind::OutOfMemory, "", message));
        }
        for i in 0..ty.shape.elements() {
            bytes.extend_from_slice(&value(i).to_bytes()[..ty.dtype.size()]);
        }
        Ok(Tensor { ty, bytes })
    }

    /// `values` rounded to `dtype`.
    ///
    /// # Errors
    /// An argument fault when the values do not fill the shape.
    pub fn from_f64(
        dtype: DType,
        shape: impl Into<Shape>,
        values: &[f64],
    ) -> Result<Tensor, Fault> {
        let literal = |&v: &f64| Literal::from_f64(dtype, v).to_bytes();
        let bytes = values.iter().flat_map(|v| literal(v).into_iter().take(dtype.size())).collect();
        Tensor::new(Type::new(dtype, shape), bytes)
    }

    pub fn get(&self, element: usize) -> Literal {
        let size = self.ty.dtype.size();
        Literal::from_bytes(self.ty.dtype, &self.bytes[element * size..][..size])
    }

    pub fn literals(&self) -> impl Iterator<Item = Literal> {
        (0..self.ty.shape.elements()).map(|i| self.get(i))
    }

    pub fn to_f64(&self) -> Vec<f64> {
        self.literals().map(Literal::as_f64).collect()
    }
}

/// `f32[2,2] 1.0 2.0 3.0 4.0`.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ty)?;
        self.literals().try_for_each(|value| write!(f, " {value}"))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Runs a program on host arrays.
///
/// # Errors
/// A fault when the program does not verify, or the arguments do not have its parameters' types.
pub fn evaluate(func: &Func, arguments: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    if let Err(complaints) = verify(func) {
        let words: Vec<String> = complaints.iter().map(ToString::to_string).collect();
        return Err(Fault::new(FaultKind::Argument, "", words.join("; ")));
    }
    let types: Vec<Type> = arguments.iter().map(|a| a.ty.clone()).collect();
    if types != func.param_types() {
        let (wanted, given) = (type_list(&func.param_types()), type_list(&types));
        let message = format!("takes ({wanted}), got ({given})");
        return Err(Fault::new(FaultKind::Argument, func.name.clone(), message));
    }
    run(func, arguments)
}

/// Runs a program that verified on arguments that fit.
fn run(func: &Func, arguments: &[Tensor]) -> Result<Vec<Tensor>, Fault> {
    let mut values: Vec<Option<Tensor>> = vec![None; func.types.len()];
    for (param, argument) in func.params.iter().zip(arguments) {
        values[param.index()] = Some(argument.clone());
    }
    let defined = "the verifier saw every value defined before its use";
    for eqn in &func.eqns {
        let value = |v: &Value| values[v.index()].as_ref().expect(defined);
        let inputs: Vec<&Tensor> = eqn.inputs.iter().map(value).collect();
        let types: Vec<Type> = inputs.iter().map(|t| t.ty.clone()).collect();
        let results: Vec<Type> = eqn.outputs.iter().map(|&v| func.ty(v).clone()).collect();
        let lowering = eqn.op.lower(&types, &eqn.params);
        let computed = evaluate_lowering(&lowering, &inputs, &results)?;
        for (output, tensor) in eqn.outputs.iter().zip(computed) {
            values[output.index()] = Some(tensor);
        }
    }
    Ok(func.results.iter().map(|r| values[r.index()].clone().expect(defined)).collect())
}

/// One lowering applied to arrays; `results` are the types that `infer` gave.
///
/// # Errors
/// Out of memory on the host, or a fault inside a called function.
pub fn evaluate_lowering(
    lowering: &Lowering,
    inputs: &[&Tensor],
    results: &[Type],
) -> Result<Vec<Tensor>, Fault> {
    match lowering {
        Lowering::Call(func) => return run(func, &owned(inputs)),
        Lowering::Scan(scan) => return control::scan(scan, inputs, results),
        Lowering::While(looped) => return control::repeat(looped, inputs),
        Lowering::Cond { on_true, on_false } => {
            let taken = if inputs[0].get(0).bits() != 0 { on_true } else { on_false };
            return run(taken, &owned(&inputs[1..]));
        }
        _ => {}
    }
    let out = results[0].clone();
    let tensor = match lowering {
        Lowering::Elementwise(program) => elementwise(program, inputs, out),
        Lowering::Reduce { kind, axes } => reduce(*kind, axes, inputs[0], out),
        Lowering::View { offset, strides } => view(*offset, strides, inputs[0], out),
        Lowering::Reshape | Lowering::Identity | Lowering::Barrier | Lowering::Transfer => {
            Ok(Tensor { ty: out, bytes: inputs[0].bytes.clone() })
        }
        Lowering::Concatenate { axis } => concatenate(*axis, inputs, out),
        Lowering::Pad { low } => pad(low, inputs, out),
        Lowering::DynamicSlice => dynamic_slice(inputs, out),
        Lowering::DynamicUpdateSlice => dynamic_update_slice(inputs, out),
        Lowering::Dot(axes) => dot(axes, inputs, out),
        Lowering::Conv(convolution) => conv(convolution, inputs, out),
        Lowering::Cumulative { kind, axis, reverse } => {
            cumulative(*kind, *axis, *reverse, inputs[0], out)
        }
        Lowering::ScatterAdd { axis } => scatter_add(*axis, inputs, out),
        Lowering::Call(_) | Lowering::Scan(_) | Lowering::While(_) | Lowering::Cond { .. } => {
            unreachable!("taken above")
        }
    };
    Ok(vec![tensor?])
}

fn owned(tensors: &[&Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|&t| t.clone()).collect()
}

/// The coordinates of row-major position `position`.
fn coordinates(shape: &Shape, mut position: usize) -> Vec<usize> {
    let mut at = vec![0; shape.rank()];
    for axis in (0..shape.rank()).rev() {
        at[axis] = position % shape[axis];
        position /= shape[axis];
    }
    at
}

fn position(shape: &Shape, at: &[usize]) -> usize {
    shape.strides().iter().zip(at).map(|(stride, at)| stride * at).sum()
}

fn elementwise(program: &ScalarProgram, inputs: &[&Tensor], out: Type) -> Result<Tensor, Fault> {
    let shape = out.shape.clone();
    Tensor::fill(out, |i| element(program, inputs, &coordinates(&shape, i), i))
}

fn element(program: &ScalarProgram, inputs: &[&Tensor], at: &[usize], i: usize) -> Literal {
    let mut regs: Vec<Literal> = Vec::with_capacity(program.insts.len());
    for inst in &program.insts {
        let reg = |reg: &Reg| regs[reg.0 as usize];
        let value = match inst {
            Inst::Input { input, .. } => broadcast_read(inputs[*input as usize], at),
            Inst::Gather { input, axis, index, .. } => {
                gather(inputs[*input as usize], *axis as usize, reg(index).as_i64(), at)
            }
            Inst::Index { axis } => Literal::from_i64(DType::I32, at[*axis as usize] as i64),
            Inst::Position => Literal::from_i64(DType::U32, i as i64),
            Inst::Const(value) => *value,
            Inst::Op { op, dtype, args } => {
                let args: Vec<Literal> = args.iter().map(reg).collect();
                op.eval(*dtype, &args)
            }
            Inst::Convert { to, arg, .. } => reg(arg).convert(*to),
        };
        regs.push(value);
    }
    regs[program.result as usize]
}

/// Operand element at the loop's coordinates, aligned at the back; extents of 1 repeat.
fn broadcast_read(input: &Tensor, at: &[usize]) -> Literal {
    let shape = &input.ty.shape;
    let own = &at[at.len() - shape.rank()..];
    let own: Vec<usize> = own
        .iter()
        .zip(shape.iter())
        .map(|(&at, &extent)| if extent == 1 { 0 } else { at })
        .collect();
    input.get(position(shape, &own))
}

fn gather(input: &Tensor, axis: usize, index: i64, at: &[usize]) -> Literal {
    let shape = &input.ty.shape;
    let behind = shape.rank() - axis - 1;
    let mut own = at[..axis].to_vec();
    own.push(index.clamp(0, shape[axis] as i64 - 1) as usize);
    own.extend_from_slice(&at[at.len() - behind..]);
    input.get(position(shape, &own))
}

fn reduce(kind: ReduceKind, axes: &[usize], input: &Tensor, out: Type) -> Result<Tensor, Fault> {
    let shape = &input.ty.shape;
    // Extents of the reduced axes are 1 here, whether or not the result keeps them: the data is the
    // same.
    let mut kept = shape.to_vec();
    axes.iter().for_each(|&axis| kept[axis] = 1);
    let kept = Shape::new(kept);
    let mut accumulators = vec![Accumulator::new(kind, input.ty.dtype); out.shape.elements()];
    for (i, value) in input.literals().enumerate() {
        let mut at = coordinates(shape, i);
        let along = axes.first().map_or(0, |&axis| at[axis]);
        axes.iter().for_each(|&axis| at[axis] = 0);
        accumulators[position(&kept, &at)].take(value, along);
    }
    Tensor::fill(out, |i| accumulators[i].result())
}

/// What has been seen of one result element's operands.
#[derive(Clone)]
struct Accumulator {
    kind: ReduceKind,
    dtype: DType,
    /// Float sums and products.
    wide: f64,
    /// Everything else; `None` before the first element of kinds without a start value.
    best: Option<Literal>,
    position: usize,
}

impl Accumulator {
    fn new(kind: ReduceKind, dtype: DType) -> Accumulator {
        let start = match kind {
            ReduceKind::Sum | ReduceKind::Any => Some(0),
            ReduceKind::Prod | ReduceKind::All => Some(1),
            _ => None,
        };
        let wide = start.unwrap_or(0) as f64;
        let best = start.map(|value| Literal::from_i64(dtype, value));
        Accumulator { kind, dtype, wide, best, position: 0 }
    }

    /// A sum of which one term was seen.
    fn starting_at(value: Literal) -> Accumulator {
        let mut sum = Accumulator::new(ReduceKind::Sum, value.dtype());
        (sum.wide, sum.best) = (value.as_f64(), Some(value));
        sum
    }

    fn take(&mut self, value: Literal, along: usize) {
        let op = match self.kind {
            ReduceKind::Sum => ScalarOp::Add,
            ReduceKind::Prod => ScalarOp::Mul,
            ReduceKind::Max => ScalarOp::Max,
            ReduceKind::Min => ScalarOp::Min,
            ReduceKind::Any => ScalarOp::Or,
            ReduceKind::All => ScalarOp::And,
            ReduceKind::ArgMax => return self.take_position(value, along, ScalarOp::Gt),
            ReduceKind::ArgMin => return self.take_position(value, along, ScalarOp::Lt),
        };
        match op {
            ScalarOp::Add => self.wide += value.as_f64(),
            _ => self.wide *= value.as_f64(),
        }
        self.best = Some(self.best.map_or(value, |best| op.eval(self.dtype, &[best, value])));
    }

    fn take_position(&mut self, value: Literal, along: usize, beats: ScalarOp) {
        let nan = |value: Literal| self.dtype.is_float() && value.as_f64().is_nan();
        let better = self.best.is_none_or(|best| {
            !nan(best) && (nan(value) || beats.eval(self.dtype, &[value, best]).as_i64() != 0)
        });
        if better {
            (self.best, self.position) = (Some(value), along);
        }
    }

    fn result(&self) -> Literal {
        match self.kind {
            ReduceKind::Sum | ReduceKind::Prod if self.dtype.is_float() => {
                Literal::from_f64(self.dtype, self.wide)
            }
            ReduceKind::ArgMax | ReduceKind::ArgMin => {
                Literal::from_i64(DType::I32, self.position as i64)
            }
            _ => self.best.expect("a maximum of nothing was refused by the shape rule"),
        }
    }
}

fn cumulative(
    kind: ReduceKind,
    axis: usize,
    reverse: bool,
    input: &Tensor,
    out: Type,
) -> Result<Tensor, Fault> {
    let shape = &input.ty.shape;
    let stride = shape.strides()[axis];
    Tensor::fill(out, |i| {
        let at = (i / stride) % shape[axis];
        let first = i - at * stride;
        let mut accumulator = Accumulator::new(kind, input.ty.dtype);
        let mut take = |along: usize| accumulator.take(input.get(first + along * stride), along);
        match reverse {
            false => (0..=at).for_each(&mut take),
            true => (at..shape[axis]).rev().for_each(&mut take),
        }
        accumulator.result()
    })
}

fn scatter_add(axis: usize, inputs: &[&Tensor], out: Type) -> Result<Tensor, Fault> {
    let [operand, indices, updates] = inputs else { unreachable!("the shape rule saw three") };
    let (shape, dims) = (&operand.ty.shape, &updates.ty.shape);
    let behind = shape.rank() - axis - 1;
    let mut sums: Vec<Accumulator> = operand.literals().map(Accumulator::starting_at).collect();
    for (i, value) in updates.literals().enumerate() {
        let at = coordinates(dims, i);
        let (index, extent) = (broadcast_read(indices, &at).as_i64(), shape[axis] as i64);
        let index = if index < 0 { index + extent } else { index }.clamp(0, extent - 1);
        let mut own = at[..axis].to_vec();
        own.push(index as usize);
        own.extend_from_slice(&at[at.len() - behind..]);
        sums[position(shape, &own)].take(value, 0);
    }
    Tensor::fill(out, |i| sums[i].result())
}

fn view(offset: usize, strides: &[isize], input: &Tensor, out: Type) -> Result<Tensor, Fault> {
    let shape = out.shape.clone();
    Tensor::fill(out, |i| {
        let at = coordinates(&shape, i);
        let steps: isize = strides.iter().zip(&at).map(|(stride, &at)| stride * at as isize).sum();
        input.get(offset.wrapping_add_signed(steps))
    })
}

fn concatenate(axis: usize, inputs: &[&Tensor], out: Type) -> Result<Tensor, Fault> {
    let shape = out.shape.clone();
    Tensor::fill(out, |i| {
        let mut at = coordinates(&shape, i);
        let holder = inputs.iter().find(|input| {
            let inside = at[axis] < input.ty.shape[axis];
            at[axis] -= if inside { 0 } else { input.ty.shape[axis] };
            inside
        });
        let holder = holder.expect("the result is as long as its parts together");
        holder.get(position(&holder.ty.shape, &at))
    })
}

fn pad(low: &[usize], inputs: &[&Tensor], out: Type) -> Result<Tensor, Fault> {
    let shape = out.shape.clone();
    let inner = &inputs[0].ty.shape;
    Tensor::fill(out, |i| {
        let at = coordinates(&shape, i);
        let own: Option<Vec<usize>> = (0..low.len())
            .map(|axis| at[axis].checked_sub(low[axis]).filter(|&own| own < inner[axis]))
            .collect();
        own.map_or(inputs[1].get(0), |own| inputs[0].get(position(inner, &own)))
    })
}

/// The starts of a window, clamped so that it stays inside.
fn starts(shape: &Shape, window: &Shape, scalars: &[&Tensor]) -> Vec<usize> {
    let given = scalars.iter().map(|start| start.get(0).as_i64());
    given
        .enumerate()
        .map(|(axis, start)| start.clamp(0, (shape[axis] - window[axis]) as i64) as usize)
        .collect()
}

fn dynamic_slice(inputs: &[&Tensor], out: Type) -> Result<Tensor, Fault> {
    let (shape, window) = (&inputs[0].ty.shape, out.shape.clone());
    let starts = starts(shape, &window, &inputs[1..]);
    Tensor::fill(out, |i| {
        let at = coordinates(&window, i);
        let own: Vec<usize> = at.iter().zip(&starts).map(|(at, start)| at + start).collect();
        inputs[0].get(position(shape, &own))
    })
}

fn dynamic_update_slice(inputs: &[&Tensor], out: Type) -> Result<Tensor, Fault> {
    let (shape, window) = (out.shape.clone(), &inputs[1].ty.shape);
    let starts = starts(&shape, window, &inputs[2..]);
    Tensor::fill(out, |i| {
        let at = coordinates(&shape, i);
        let own: Option<Vec<usize>> = (0..at.len())
            .map(|axis| at[axis].checked_sub(starts[axis]).filter(|&own| own < window[axis]))
            .collect();
        own.map_or(inputs[0].get(i), |own| inputs[1].get(position(window, &own)))
    })
}

fn dot(axes: &DotAxes, inputs: &[&Tensor], out: Type) -> Result<Tensor, Fault> {
    let (lhs, rhs) = (inputs[0], inputs[1]);
    let contracted: Vec<usize> = axes.lhs_contract.iter().map(|&a| lhs.ty.shape[a]).collect();
    let contracted = Shape::new(contracted);
    let free = |ty: &Type, batch: &[usize], contract: &[usize]| -> Vec<usize> {
        (0..ty.shape.rank()).filter(|a| !batch.contains(a) && !contract.contains(a)).collect()
    };
    let lhs_free = free(&lhs.ty, &axes.lhs_batch, &axes.lhs_contract);
    let rhs_free = free(&rhs.ty, &axes.rhs_batch, &axes.rhs_contract);
    let shape = out.shape.clone();
    let dtype = out.dtype;
    Tensor::fill(out, |i| {
        let at = coordinates(&shape, i);
        let (batch, rest) = at.split_at(axes.lhs_batch.len());
        let (left, right) = rest.split_at(lhs_free.len());
        let mut sum = Accumulator::new(ReduceKind::Sum, dtype);
        for k in 0..contracted.elements() {
            let along = coordinates(&contracted, k);
            let read = |t: &Tensor, roles: [(&[usize], &[usize]); 3]| {
                let mut own = vec![0; t.ty.shape.rank()];
                for (axes, at) in roles {
                    axes.iter().zip(at).for_each(|(&axis, &at)| own[axis] = at);
                }
                t.get(position(&t.ty.shape, &own))
            };
            let a = [(&axes.lhs_batch[..], batch), (&lhs_free, left), (&axes.lhs_contract, &along)];
            let b =
                [(&axes.rhs_batch[..], batch), (&rhs_free, right), (&axes.rhs_contract, &along)];
            sum.take_product(read(lhs, a), read(rhs, b));
        }
        sum.result()
    })
}

fn conv(convolution: &Convolution, inputs: &[&Tensor], out: Type) -> Result<Tensor, Fault> {
    let (x, w) = (&inputs[0].ty.shape, &inputs[1].ty.shape);
    let (shape, dtype, space) = (out.shape.clone(), out.dtype, x.rank() - 2);
    let taps = Shape::new(w[..=space].to_vec());
    Tensor::fill(out, |i| {
        let at = coordinates(&shape, i);
        let mut sum = Accumulator::new(ReduceKind::Sum, dtype);
        for tap in 0..taps.elements() {
            let mut tap = coordinates(&taps, tap);
            let read =
                |axis: usize| convolution.axes[axis].element(at[axis + 1], tap[axis], x[axis + 1]);
            let Some(inside) = (0..space).map(read).collect::<Option<Vec<usize>>>() else {
                continue;
            };
            let own = [&at[..1], &inside, &tap[space..]].concat();
            tap.push(at[space + 1]);
            sum.take_product(inputs[0].get(position(x, &own)), inputs[1].get(position(w, &tap)));
        }
        sum.result()
    })
}

impl Accumulator {
    /// Adds a product; that of floats is not rounded.
    fn take_product(&mut self, a: Literal, b: Literal) {
        if self.dtype.is_float() {
            self.wide += a.as_f64() * b.as_f64();
        } else {
            self.take(ScalarOp::Mul.eval(self.dtype, &[a, b]), 0);
        }
    }
}
