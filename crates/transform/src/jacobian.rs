//! The whole derivative: the way back for every element of the result at once.

use crate::joint::{Joint, Mark, compact};
use crate::split::Split;
use crate::writer::Writer;
use vramlab_ir::{DType, Fault, FaultKind, Func, Param, Params, Shape, Stage, Type, Value};
use vramlab_ops::{CONVERT, EQ, IOTA, RESHAPE, TRANSPOSE};

/// From the `vjp` of a function with one float result by one parameter: the parameters to the
/// Jacobian, whose axes are the result's, then the parameter's. What the forward keeps is kept once;
/// the way back is batched over the result's elements.
///
/// # Errors
/// A result that is no float.
pub fn jacobian(joint: &Joint) -> Result<Func, Fault> {
    let result = joint.func.ty(joint.func.results[0]).clone();
    let parameter = joint.func.ty(joint.func.results[1]).clone();
    if !result.dtype.is_float() {
        let message = format!("the function gives {result}, and derivatives are of floats");
        return Err(Fault::new(FaultKind::DType, "jacobian", message));
    }
    let split = Split::new(joint);
    let mut writer = Writer::new(&format!("jacobian({})", joint.func.name));
    let params: Vec<Value> =
        split.forward.params.iter().map(|&p| writer.param(split.forward.ty(p))).collect();
    let outputs = copy(&mut writer, &split.forward, &params)?;
    writer.mark = Mark { stage: Stage::Backward, of: "jacobian", origin: None };
    let rows = result.shape.elements();
    let mut arguments = outputs[joint.results..].to_vec();
    arguments.push(units(&mut writer, &result)?);
    let mut batched = vec![false; split.kept.len()];
    batched.push(true);
    let all = crate::batch::vmap(&split.backward, &batched, rows)?;
    let stacked = copy(&mut writer, &all, &arguments)?[0];
    let shape = [result.shape.dims(), parameter.shape.dims()].concat();
    let value = reshape(&mut writer, stacked, Shape::new(shape))?;
    Ok(compact(writer.finish(vec![value]).0).0)
}

/// The same in forward mode, from a function with one float result to its Jacobian by the first
/// parameter. The values are computed once; the tangents are batched over the parameter's elements.
///
/// # Errors
/// A result or a parameter that is no float, or an op without gradient on the way.
pub fn jacfwd(func: &Func) -> Result<Func, Fault> {
    let joint = crate::forward::jvp(func, &[0])?.cotangents_only();
    let parameter = func.ty(func.params[0]).clone();
    let result = func.ty(func.results[0]).clone();
    if !result.dtype.is_float() {
        let message = format!("the function gives {result}, and derivatives are of floats");
        return Err(Fault::new(FaultKind::DType, "jacfwd", message));
    }
    let mut writer = Writer::new(&format!("jacfwd({})", func.name));
    let mut arguments: Vec<Value> = func.params.iter().map(|&p| writer.param(func.ty(p))).collect();
    let mut batched = vec![false; arguments.len()];
    batched.push(true);
    arguments.push(units(&mut writer, &parameter)?);
    let columns = parameter.shape.elements();
    let all = crate::batch::vmap(&joint.func, &batched, columns)?;
    let stacked = copy(&mut writer, &all, &arguments)?[0];
    // The tangents stand first, as rows of a matrix: they go last.
    let matrix = Shape::from([columns, result.shape.elements()]);
    let stacked = reshape(&mut writer, stacked, matrix)?;
    let params = Params::new().with("perm", Param::Ints(vec![1, 0]));
    let turned = writer.push(&TRANSPOSE, params, &[stacked], None)?[0];
    let shape = [result.shape.dims(), parameter.shape.dims()].concat();
    let value = reshape(&mut writer, turned, Shape::new(shape))?;
    Ok(compact(writer.finish(vec![value]).0).0)
}

/// One array for each element of the result: 1 there and 0 elsewhere.
fn units(writer: &mut Writer, result: &Type) -> Result<Value, Fault> {
    let rows = result.shape.elements();
    let square = Shape::from([rows, rows]);
    let row = iota(writer, &square, 0)?;
    let column = iota(writer, &square, 1)?;
    let chosen = writer.push(&EQ, Params::new(), &[row, column], None)?[0];
    let to = Params::new().with("dtype", Param::DType(result.dtype));
    let unit = writer.push(&CONVERT, to, &[chosen], None)?[0];
    reshape(writer, unit, Shape::new([&[rows], result.shape.dims()].concat()))
}

fn iota(writer: &mut Writer, shape: &Shape, axis: i64) -> Result<Value, Fault> {
    let params = Params::new()
        .with("dtype", Param::DType(DType::I32))
        .with("shape", Param::Shape(shape.clone()))
        .with("axis", Param::Int(axis));
    Ok(writer.push(&IOTA, params, &[], None)?[0])
}

fn reshape(writer: &mut Writer, value: Value, shape: Shape) -> Result<Value, Fault> {
    let params = Params::new().with("shape", Param::Shape(shape));
    Ok(writer.push(&RESHAPE, params, &[value], None)?[0])
}

/// `func` with its equations as they are.
fn copy(writer: &mut Writer, func: &Func, arguments: &[Value]) -> Result<Vec<Value>, Fault> {
    let mut env: Vec<Option<Value>> = vec![None; func.types.len()];
    for (param, &argument) in func.params.iter().zip(arguments) {
        env[param.index()] = Some(argument);
    }
    let defined = "a program defines values before their use";
    for eqn in &func.eqns {
        let inputs: Vec<Value> =
            eqn.inputs.iter().map(|v| env[v.index()].expect(defined)).collect();
        writer.mark.stage = eqn.stage;
        let outputs = writer.push(eqn.op, eqn.params.clone(), &inputs, eqn.origin)?;
        for (output, value) in eqn.outputs.iter().zip(outputs) {
            env[output.index()] = Some(value);
        }
    }
    Ok(func.results.iter().map(|v| env[v.index()].expect(defined)).collect())
}
