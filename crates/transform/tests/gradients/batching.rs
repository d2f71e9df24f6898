//! A batch against its examples one after the other: every entry of the op table by random
//! applications, and what holds functions.

use crate::differences::{application, program};
use crate::support::{Random, floats};
use vramlab_ir::{DType, Func, Tensor, Type, evaluate, parse, verify};
use vramlab_ops::{Batch, Format, entries, lookup};
use vramlab_transform::{value_and_grad, vjp, vmap};

const SIZE: usize = 3;

fn batch_of(random: &mut Random, ty: &Type) -> Tensor {
    let lead = Type::new(ty.dtype, [&[SIZE], ty.shape.dims()].concat());
    random.tensor(&lead, 0.3, 1.4)
}

fn example(batch: &Tensor, at: usize) -> Tensor {
    let ty = Type::new(batch.ty.dtype, batch.ty.shape[1..].to_vec());
    let bytes = ty.bytes() as usize;
    Tensor::new(ty, batch.bytes[at * bytes..(at + 1) * bytes].to_vec()).unwrap()
}

/// The batched program gives what the program gives, example by example.
fn agrees(func: &Func, batched: &[bool], at: &[Tensor]) {
    let whole = vmap(func, batched, SIZE).unwrap_or_else(|fault| panic!("{fault}\n{func}"));
    verify(&whole).unwrap_or_else(|complaints| panic!("{complaints:?}\n{whole}"));
    let results = evaluate(&whole, at).unwrap_or_else(|fault| panic!("{fault}\n{whole}"));
    for one in 0..SIZE {
        let own: Vec<Tensor> = at
            .iter()
            .zip(batched)
            .map(|(tensor, &is)| if is { example(tensor, one) } else { tensor.clone() })
            .collect();
        let wanted = evaluate(func, &own).unwrap_or_else(|fault| panic!("{fault}\n{func}"));
        for (result, wanted) in results.iter().zip(&wanted) {
            let given = example(result, one);
            let ty = wanted.ty.within(given.ty.memory);
            assert_eq!(given.ty, ty, "{func}\n{whole}");
            let close = |(a, b): (&f64, &f64)| {
                (a - b).abs() <= 1e-12 * (1.0 + b.abs()) || a.is_nan() && b.is_nan()
            };
            assert!(
                given.to_f64().iter().zip(&wanted.to_f64()).all(close),
                "example {one}: {given:?}, alone {wanted:?}\n{func}\n{whole}"
            );
        }
    }
}

fn drawn(random: &mut Random, types: &[Type], batched: &[bool]) -> Vec<Tensor> {
    let draw = |(ty, &is): (&Type, &bool)| match is {
        true => batch_of(random, ty),
        false => random.tensor(ty, 0.3, 1.4),
    };
    types.iter().zip(batched).map(draw).collect()
}

/// Every way to choose which of a few arguments examples differ in, but none at all.
fn choices(count: usize) -> impl Iterator<Item = Vec<bool>> {
    (1..1usize << count).map(move |bits| (0..count).map(|k| bits >> k & 1 == 1).collect())
}

#[test]
fn every_entry_of_the_table_is_batched_as_its_examples() {
    let mut random = Random(11);
    for entry in entries() {
        if entry.params.iter().any(|spec| spec.format == Format::Func) {
            assert!(matches!(entry.batch, Batch::Held), "{}", entry.name);
            continue;
        }
        if matches!(entry.batch, Batch::Never(_)) {
            assert_eq!(entry.operands, vramlab_ops::Operands::Exactly(0), "{}", entry.name);
            continue;
        }
        let mut compared = 0;
        for _ in 0..60 {
            let Some(tried) = application(&mut random, entry) else { break };
            let func = program(entry, &tried);
            if tried.inputs.is_empty() {
                continue;
            }
            let mut batched: Vec<bool> =
                tried.inputs.iter().map(|_| random.below(2) == 1).collect();
            let one = random.below(batched.len());
            batched[one] = true;
            let at = drawn(&mut random, &tried.inputs, &batched);
            agrees(&func, &batched, &at);
            compared += 1;
        }
        assert!(compared >= 20, "{}: only {compared} random applications compared", entry.name);
    }
}

fn func(text: &str) -> Func {
    let func = parse(text, &lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&func).unwrap_or_else(|e| panic!("{e:?}"));
    func
}

/// In every choice of arguments, the function, and where it can be its gradient.
fn all_choices(text: &str, differentiable: bool) {
    let mut random = Random(2);
    let func = func(text);
    let types = func.param_types();
    for batched in choices(types.len()) {
        let at = drawn(&mut random, &types, &batched);
        agrees(&func, &batched, &at);
        if differentiable {
            let joint = vjp(&func, &floats(&types)).unwrap();
            let types = joint.func.param_types();
            let mut batched = batched.clone();
            batched.resize(types.len(), true);
            let at = drawn(&mut random, &types, &batched);
            agrees(&joint.func, &batched, &at);
        }
    }
}

const INNER: &str = "func f(%0: f64[2,3], %1: f64[3]) -> (f64[2,3]) {
    %2 = mul %0 %1 : f64[2,3]
    %3 = tanh %2 : f64[2,3]
    return %3
  }";

#[test]
fn batches_go_into_calls_and_checkpoints() {
    for op in ["call[kind=\"jit\",", "checkpoint[policy=\"nothing_saveable\","] {
        let text = format!(
            "func g(%0: f64[2,3], %1: f64[3]) -> (f64[2,3]) {{\n  %2 = {op} func={{{INNER}}}] %0 %1 : \
             f64[2,3]\n  %3 = exp %2 : f64[2,3]\n  return %3\n}}"
        );
        all_choices(&text, true);
    }
}

#[test]
fn a_gradient_of_its_own_is_summed_where_examples_share_an_argument() {
    let text = "func g(%0: f64[2], %1: f64[2]) -> (f64[2]) {
  %2 = custom_vjp[func={func a(%0: f64[2], %1: f64[2]) -> (f64[2]) {
    %2 = mul %0 %1 : f64[2]
    return %2
  }}, forward={func b(%0: f64[2], %1: f64[2]) -> (f64[2], f64[2], f64[2]) {
    %2 = mul %0 %1 : f64[2]
    return %2 %0 %1
  }}, backward={func c(%0: f64[2], %1: f64[2], %2: f64[2]) -> (f64[2], f64[2]) {
    %3 = mul %2 %1 : f64[2]
    %4 = mul %2 %0 : f64[2]
    return %3 %4
  }}, given=2] %0 %1 : f64[2]
  return %2
}";
    all_choices(text, true);
    // The shared argument's cotangent is the sum over the examples.
    let mut random = Random(4);
    let product = func(text);
    let whole = vmap(&product, &[true, false], SIZE).unwrap();
    let joint = vjp(&whole, &[0, 1]).unwrap();
    let at = drawn(&mut random, &joint.func.param_types(), &[false; 3]);
    let results = evaluate(&joint.func, &at).unwrap();
    let (x, ct) = (at[0].to_f64(), at[2].to_f64());
    let wanted: Vec<f64> =
        (0..2).map(|k| (0..SIZE).map(|one| x[one * 2 + k] * ct[one * 2 + k]).sum()).collect();
    let given = results[2].to_f64();
    assert!(given.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{given:?} {wanted:?}");
}

#[test]
fn a_scan_carries_a_batch_only_where_examples_differ() {
    let text = "func g(%0: f64[], %1: f64[2], %2: f64[], %3: f64[4,2]) -> (f64[2], f64[], f64[4,2]) {
  %4 %5 %6 = scan[body={func b(%0: f64[], %1: f64[2], %2: f64[], %3: f64[2]) -> (f64[2], f64[], f64[2]) {
    %4 = mul %1 %0 : f64[2]
    %5 = add %4 %3 : f64[2]
    %6 = sin %2 : f64[]
    %7 = mul %5 %3 : f64[2]
    return %5 %6 %7
  }}, length=4, consts=1, carries=2, reverse=false] %0 %1 %2 %3 : f64[2], f64[], f64[4,2]
  return %4 %5 %6
}";
    all_choices(text, false);
    // The second carry depends on nothing that differs: it stays one for all.
    let whole = vmap(&func(text), &[true, false, false, false], SIZE).unwrap().to_string();
    assert!(
        whole.contains("%1: f64[3,2], %2: f64[], %3: f64[2]) -> (f64[3,2], f64[], f64[3,2])"),
        "{whole}"
    );
}

#[test]
fn a_while_loop_ends_with_the_last_example_and_the_others_keep_what_they_have() {
    let text = "func g(%0: f64[], %1: f64[], %2: f64[], %3: i32[]) -> (f64[], i32[]) {
  %4 %5 = while[cond={func c(%0: f64[], %1: f64[], %2: i32[]) -> (bool[]) {
    %3 = lt %1 %0 : bool[]
    return %3
  }}, body={func b(%0: f64[], %1: f64[], %2: i32[]) -> (f64[], i32[]) {
    %3 = add %1 %0 : f64[]
    %4 = full[value=1:i32, shape=[]] : i32[]
    %5 = add %2 %4 : i32[]
    return %3 %5
  }}, cond_consts=1, body_consts=1] %0 %1 %2 %3 : f64[], i32[]
  return %4 %5
}";
    let mut random = Random(6);
    let func = func(text);
    for batched in choices(4) {
        let types = func.param_types();
        let mut at = drawn(&mut random, &types, &batched);
        // The bound lies some steps off.
        let bounds: Vec<f64> = at[0].to_f64().iter().map(|x| x * 4.0).collect();
        at[0] = Tensor::from_f64(DType::F64, at[0].ty.shape.clone(), &bounds).unwrap();
        agrees(&func, &batched, &at);
    }
}

#[test]
fn examples_may_take_different_branches() {
    let text = "func g(%0: bool[], %1: f64[2], %2: f64[2]) -> (f64[2], f64[2]) {
  %3 %4 = cond[on_true={func a(%0: f64[2], %1: f64[2]) -> (f64[2], f64[2]) {
    %2 = sin %0 : f64[2]
    return %2 %1
  }}, on_false={func b(%0: f64[2], %1: f64[2]) -> (f64[2], f64[2]) {
    %2 = mul %0 %0 : f64[2]
    %3 = exp %1 : f64[2]
    return %2 %3
  }}] %0 %1 %2 : f64[2], f64[2]
  return %3 %4
}";
    all_choices(text, false);
}

#[test]
fn a_batch_of_gradients_is_one_gradient_an_example() {
    let loss = func(
        "func loss(%0: f64[3], %1: f64[3]) -> (f64[]) {
  %2 = mul %0 %1 : f64[3]
  %3 = tanh %2 : f64[3]
  %4 = sum[axes=(0), keep=false] %3 : f64[]
  return %4
}",
    );
    let joint = value_and_grad(&loss, &[0]).unwrap();
    let mut random = Random(9);
    for batched in choices(2) {
        let at = drawn(&mut random, &joint.func.param_types(), &batched);
        agrees(&joint.func, &batched, &at);
    }
}

#[test]
fn the_count_of_arguments_is_checked() {
    let identity = func("func f(%0: f64[2]) -> (f64[2]) {\n  return %0\n}");
    let fault = vmap(&identity, &[true, true], SIZE).unwrap_err();
    assert_eq!(
        (fault.op.as_str(), fault.message.contains("2 arguments")),
        ("vmap", true),
        "{fault}"
    );
}
