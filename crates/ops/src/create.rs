//! Ops that make arrays from parameters.

use crate::application::Application;
use crate::batch::Batch;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative::Zero;
use vramlab_ir::{DType, Fault, FaultKind, Inst, Lowering, Reg, ScalarOp, ScalarProgram, Type};

/// The ops of this file.
pub static CREATION: &[&Entry] = &[&FULL, &IOTA, &RANDOM_BITS];

/// One value everywhere.
pub static FULL: Entry = Entry {
    name: "full",
    doc: "An array with one value everywhere.",
    example: "full([2, 3], 7.0)",
    operands: Operands::Exactly(0),
    params: &[
        ParamSpec::new("value", Format::Literal, "The value; its type is the result's."),
        ParamSpec::new("shape", Format::Shape, "The result's shape."),
    ],
    meaning: Meaning::Own {
        infer: |a| Ok(vec![Type::new(a.literal("value").dtype(), a.shape("shape").clone())]),
        lower: |a| Lowering::fill(a.literal("value")),
    },
    gradient: Zero("it has no operands"),
    batch: Batch::Never("it has no operands"),
};

/// Coordinates along an axis.
pub static IOTA: Entry = Entry {
    name: "iota",
    doc: "Each element's coordinate along one axis, counted from 0.",
    example: "arange(5)",
    operands: Operands::Exactly(0),
    params: &[
        ParamSpec::new("dtype", Format::DType, "The result's element type."),
        ParamSpec::new("shape", Format::Shape, "The result's shape."),
        ParamSpec::new("axis", Format::Int, "The axis to count along, from the front."),
    ],
    meaning: Meaning::Own { infer: infer_iota, lower: lower_iota },
    gradient: Zero("it has no operands"),
    batch: Batch::Never("it has no operands"),
};

fn infer_iota(a: &Application) -> Result<Vec<Type>, Fault> {
    let ty = Type::new(a.dtype("dtype"), a.shape("shape").clone());
    if ty.dtype == DType::Bool {
        let message = format!("{ty}: counts in numbers, not bool");
        return Err(Fault::new(FaultKind::DType, a.name, message));
    }
    let axis = a.front_axis(&ty, a.int("axis"))?;
    if i32::try_from(ty.shape[axis]).is_err() {
        return Err(a.argument_fault(format!("coordinates of {ty} do not fit in i32")));
    }
    Ok(vec![ty])
}

fn lower_iota(a: &Application) -> Lowering {
    let mut program = ScalarProgram::default();
    let index = program.push(Inst::Index { axis: a.int("axis") as u32 });
    program.convert(DType::I32, a.dtype("dtype"), index);
    Lowering::Elementwise(program)
}

/// Random words from a counter.
pub static RANDOM_BITS: Entry = Entry {
    name: "random_bits",
    doc: "Random u32 words: threefry2x32 of a key (two u32 scalars) and each element's position.",
    example: "seed(0);\nuniform([4])",
    operands: Operands::Exactly(2),
    params: &[ParamSpec::new("shape", Format::Shape, "The result's shape.")],
    meaning: Meaning::Own { infer: infer_random_bits, lower: lower_random_bits },
    gradient: Zero("bits have no slope"),
    batch: Batch::Rule(|b| b.one_by_one()),
};

fn infer_random_bits(a: &Application) -> Result<Vec<Type>, Fault> {
    let scalar = Type::new(DType::U32, []);
    if a.inputs.iter().any(|ty| *ty != scalar) {
        return Err(a.fault(FaultKind::DType, format!("the key is two scalars {scalar}")));
    }
    Ok(vec![Type::new(DType::U32, a.shape("shape").clone())])
}

fn lower_random_bits(_: &Application) -> Lowering {
    let mut program = ScalarProgram::default();
    let key: [Reg; 2] = [program.input(0, DType::U32), program.input(1, DType::U32)];
    let position = program.push(Inst::Position);
    program.op(ScalarOp::Threefry, DType::U32, &[key[0], key[1], position]);
    Lowering::Elementwise(program)
}
