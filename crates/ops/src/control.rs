//! Control flow: loops and branches over traced functions. Operands and results stand in JAX's order.

use crate::application::{Application, list};
use crate::batch::Batch;
use crate::entry::{Entry, Format, Meaning, Operands, ParamSpec};
use crate::rule::Derivative;
use vramlab_ir::lowering::{ScanLoop, WhileLoop};
use vramlab_ir::{DType, Fault, FaultKind, Func, Lowering, Type};

/// The ops of this file.
pub static CONTROL: &[&Entry] = &[&SCAN, &WHILE, &COND];

/// A loop over slices with carried values.
pub static SCAN: Entry = Entry {
    name: "scan",
    doc: "A loop of known length: the body takes constants, carried values and slice i of each array, \
          and gives the next carried values and slices that are stacked.",
    example: "scan(|c, x| (&c + &x, c * x), zeros(()), linspace(1.0, 4.0, 4))",
    operands: Operands::AtLeast(0),
    params: &[
        ParamSpec::new("body", Format::Func, "consts, carries, slices to carries, slices."),
        ParamSpec::new("length", Format::Int, "Iterations: the leading extent of every array."),
        ParamSpec::new("consts", Format::Int, "Leading operands that every iteration reads."),
        ParamSpec::new("carries", Format::Int, "Operands behind them that are carried."),
        ParamSpec::new("reverse", Format::Bool, "Whether the last slice comes first."),
    ],
    meaning: Meaning::Own { infer: infer_scan, lower: lower_scan },
    gradient: Derivative::Held,
    batch: Batch::Held,
};

fn infer_scan(a: &Application) -> Result<Vec<Type>, Fault> {
    let length = a.int("length");
    if i32::try_from(length).is_err() || length < 0 {
        return Err(refuse(a, format!("{length} iterations are not counted by an i32")));
    }
    let [consts, carries] = [count(a, "consts")?, count(a, "carries")?];
    let sliced = consts.saturating_add(carries);
    let Some(xs) = a.inputs.get(sliced..) else {
        let given = a.inputs.len();
        return Err(refuse(
            a,
            format!("{consts} constants and {carries} carries of {given} operands"),
        ));
    };
    let mut wanted = a.inputs[..sliced].to_vec();
    for ty in xs {
        wanted.push(slice(a, ty, length as usize)?);
    }
    let body = a.func("body");
    takes(a, "the body", body, &wanted)?;
    let results = body.result_types();
    let carried = carried(a, &results, &a.inputs[consts..sliced])?;
    let stack = |ty: &Type| {
        Type::new(ty.dtype, [&[length as usize], ty.shape.dims()].concat()).within(ty.memory)
    };
    Ok(carried.iter().cloned().chain(results[carries..].iter().map(stack)).collect())
}

/// What an iteration gets of an array.
fn slice(a: &Application, ty: &Type, length: usize) -> Result<Type, Fault> {
    match ty.shape.dims() {
        [first, rest @ ..] if *first == length => Ok(Type::new(ty.dtype, rest).within(ty.memory)),
        _ => {
            let what = format!("{ty} does not have {length} slices along its leading axis");
            Err(Fault::new(FaultKind::Shape, a.name, what))
        }
    }
}

fn lower_scan(a: &Application) -> Lowering {
    Lowering::Scan(ScanLoop {
        body: a.func("body").clone(),
        length: a.int("length") as usize,
        consts: a.int("consts") as usize,
        carries: a.int("carries") as usize,
        reverse: a.flag("reverse"),
    })
}

/// A loop that goes on while a condition holds.
pub static WHILE: Entry = Entry {
    name: "while",
    doc: "A loop that goes on while a condition on the carried values holds.",
    example: "while_loop(|x: Array| x.lt(100.0), |x| x * 2.0, ones(()))",
    operands: Operands::AtLeast(0),
    params: &[
        ParamSpec::new("cond", Format::Func, "cond consts, carries to a bool scalar."),
        ParamSpec::new("body", Format::Func, "body consts, carries to the next carries."),
        ParamSpec::new("cond_consts", Format::Int, "Leading operands that the condition reads."),
        ParamSpec::new("body_consts", Format::Int, "Operands behind them that the body reads."),
    ],
    meaning: Meaning::Own { infer: infer_while, lower: lower_while },
    gradient: Derivative::Held,
    batch: Batch::Held,
};

fn infer_while(a: &Application) -> Result<Vec<Type>, Fault> {
    let [cond_consts, body_consts] = [count(a, "cond_consts")?, count(a, "body_consts")?];
    let consts = cond_consts.saturating_add(body_consts);
    let Some(carries) = a.inputs.get(consts..) else {
        return Err(refuse(a, format!("{consts} constants of {} operands", a.inputs.len())));
    };
    let (cond, body) = (a.func("cond"), a.func("body"));
    takes(a, "the condition", cond, &[&a.inputs[..cond_consts], carries].concat())?;
    takes(a, "the body", body, &a.inputs[cond_consts..])?;
    let results = cond.result_types();
    if results != [Type::new(DType::Bool, [])] {
        let given = if results.is_empty() { "nothing".to_string() } else { list(&results) };
        let what = format!("the condition gives {given}, and one bool[] is wanted");
        return Err(Fault::new(FaultKind::DType, a.name, what));
    }
    let results = body.result_types();
    if results.len() != carries.len() {
        let (gives, takes) = (results.len(), carries.len());
        return Err(refuse(a, format!("the body gives {gives} values for {takes} carries")));
    }
    carried(a, &results, carries)?;
    Ok(results)
}

fn lower_while(a: &Application) -> Lowering {
    Lowering::While(WhileLoop {
        cond: a.func("cond").clone(),
        body: a.func("body").clone(),
        cond_consts: a.int("cond_consts") as usize,
        body_consts: a.int("body_consts") as usize,
    })
}

/// One of two functions.
pub static COND: Entry = Entry {
    name: "cond",
    doc: "One of two functions of the operands behind the condition, a bool scalar; only the one that \
          is taken runs.",
    example: "cond(ones(()).gt(0.0), |x: Array| x.exp(), |x| -x, ones(()))",
    operands: Operands::AtLeast(1),
    params: &[
        ParamSpec::new("on_true", Format::Func, "Taken when the condition holds."),
        ParamSpec::new("on_false", Format::Func, "Taken when it does not; gives the same types."),
    ],
    meaning: Meaning::Own {
        infer: infer_cond,
        lower: |a| Lowering::Cond {
            on_true: a.func("on_true").clone(),
            on_false: a.func("on_false").clone(),
        },
    },
    gradient: Derivative::Held,
    batch: Batch::Held,
};

fn infer_cond(a: &Application) -> Result<Vec<Type>, Fault> {
    if a.inputs[0] != Type::new(DType::Bool, []) {
        let what = format!("the condition is one bool[], not {}", a.inputs[0]);
        let help = match (a.inputs[0].dtype, a.inputs[0].shape.rank()) {
            (DType::Bool, _) => "reduce it with any() or all()",
            (_, 0) => "compare it: .ne(0.0), or .gt(0.0)",
            _ => "compare it, as with .gt(0.0), and reduce that with any() or all()",
        };
        return Err(Fault::new(FaultKind::DType, a.name, what).help(help));
    }
    let (on_true, on_false) = (a.func("on_true"), a.func("on_false"));
    takes(a, "the branch for true", on_true, &a.inputs[1..])?;
    takes(a, "the branch for false", on_false, &a.inputs[1..])?;
    let (yes, no) = (on_true.result_types(), on_false.result_types());
    if yes != no {
        let what = format!("the branches give ({}) and ({})", list(&yes), list(&no));
        let help = "both give the same types; convert or reshape one of them";
        return Err(Fault::new(clash(&yes, &no), a.name, what).help(help));
    }
    Ok(yes)
}

/// A parameter that counts operands.
fn count(a: &Application, name: &str) -> Result<usize, Fault> {
    usize::try_from(a.int(name)).map_err(|_| refuse(a, format!("{name} is {}", a.int(name))))
}

fn refuse(a: &Application, what: String) -> Fault {
    Fault::new(FaultKind::Argument, a.name, what)
}

/// Whether `func` takes exactly these types.
fn takes(a: &Application, role: &str, func: &Func, given: &[Type]) -> Result<(), Fault> {
    let wanted = func.param_types();
    if wanted == given {
        return Ok(());
    }
    let what = format!("{role} takes ({}), got ({})", list(&wanted), list(given));
    Err(Fault::new(clash(&wanted, given), a.name, what))
}

fn clash(a: &[Type], b: &[Type]) -> FaultKind {
    match a.len() == b.len() {
        false => FaultKind::Argument,
        true if a.iter().zip(b).any(|(a, b)| a.dtype != b.dtype) => FaultKind::DType,
        true => FaultKind::Shape,
    }
}

/// The carries among the body's results: as they came in.
fn carried<'r>(
    a: &Application,
    results: &'r [Type],
    carries: &[Type],
) -> Result<&'r [Type], Fault> {
    let Some(left) = results.get(..carries.len()) else {
        let (gives, wants) = (results.len(), carries.len());
        return Err(refuse(a, format!("the body gives {gives} values and carries {wants}")));
    };
    match left.iter().zip(carries).position(|(left, entered)| left != entered) {
        None => Ok(left),
        Some(at) => {
            let what = format!(
                "carry {at} enters the body as {} and leaves it as {}",
                carries[at], left[at]
            );
            let help = "a carried value keeps its shape and element type; convert it in the body";
            Err(Fault::new(clash(&left[at..=at], &carries[at..=at]), a.name, what).help(help))
        }
    }
}
