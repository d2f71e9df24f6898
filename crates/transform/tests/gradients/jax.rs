//! Gradients against JAX's, which `tests/goldens/jax_gradients.py` wrote down: f32, within 1e-6 of
//! the largest of each result.

use std::collections::HashSet;
use vramlab_ir::{DType, Gradient, Primitive, Tensor, evaluate, parse};
use vramlab_ops::{entries, lookup};
use vramlab_transform::vjp;

struct Case<'a> {
    name: &'a str,
    program: String,
    at: Vec<Tensor>,
    value: Vec<f64>,
    cotangent: Vec<f64>,
    gradients: Vec<(usize, Vec<f64>)>,
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

/// `f32[2,3] 1.0 …`.
fn tensor(text: &str) -> Tensor {
    let (ty, values) = text.split_once(' ').unwrap_or((text, ""));
    let (dtype, shape) = ty.trim_end_matches(']').split_once('[').expect("a type");
    let dtype = match dtype {
        "f32" => DType::F32,
        "i32" => DType::I32,
        _ => DType::Bool,
    };
    let extents = shape.split(',').filter(|e| !e.is_empty());
    let shape: Vec<usize> = extents.map(|e| e.parse().expect("an extent")).collect();
    Tensor::from_f64(dtype, shape, &numbers(values)).expect("as many values as the shape has")
}

fn case(text: &str) -> Case<'_> {
    let mut lines = text.lines();
    let name = lines.next().and_then(|line| line.strip_prefix("case ")).expect("a name");
    let mut case = Case {
        name,
        program: String::new(),
        at: Vec::new(),
        value: Vec::new(),
        cotangent: Vec::new(),
        gradients: Vec::new(),
    };
    for line in lines {
        match line.split_once(' ') {
            Some(("at", rest)) => case.at.push(tensor(rest)),
            Some(("value", rest)) => case.value = numbers(rest),
            Some(("ct", rest)) => case.cotangent = numbers(rest),
            Some(("grad", rest)) => {
                let (position, values) = rest.split_once(' ').expect("a position");
                let position = position.parse().expect("a position");
                case.gradients.push((position, numbers(values)));
            }
            _ => case.program.push_str(&format!("{line}\n")),
        }
    }
    case
}

fn near(what: &str, found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let scale = wanted.iter().fold(1e-30f64, |scale, v| scale.max(v.abs()));
    for (a, b) in found.iter().zip(wanted) {
        let same = (a - b).abs() <= 1e-6 * scale || (a.is_nan() && b.is_nan());
        assert!(same, "{what}: {a}, JAX has {b}\n{found:?}\n{wanted:?}");
    }
}

#[test]
fn every_case_agrees_with_jax() {
    let text = include_str!("jax.txt");
    let (_, cases) = text.split_once('\n').expect("a first line");
    let mut seen = HashSet::new();
    for case in cases.split("\n\n").map(case) {
        let func = parse(&case.program, &lookup).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let wrt: Vec<usize> = case.gradients.iter().map(|(at, _)| *at).collect();
        let joint = vjp(&func, &wrt).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let result = func.result_types().remove(0);
        let cotangent = Tensor::from_f64(result.dtype, result.shape, &case.cotangent).unwrap();
        let arguments: Vec<Tensor> = case.at.iter().cloned().chain([cotangent]).collect();
        let all = evaluate(&joint.func, &arguments).unwrap();
        near(&format!("{}, value", case.name), &all[0].to_f64(), &case.value);
        for ((at, wanted), found) in case.gradients.iter().zip(&all[1..]) {
            near(&format!("{}, gradient {at}", case.name), &found.to_f64(), wanted);
        }
        seen.extend(func.eqns.iter().map(|eqn| eqn.op.name()));
    }
    // What is one with its operand has nothing to compare.
    let beside = ["barrier", "checkpoint_name", "convert", "device_put", "identity"];
    let rules = entries().filter(|entry| entry.gradient() == Gradient::Rule);
    let missing: Vec<&str> =
        rules.map(|e| e.name).filter(|n| !seen.contains(n) && !beside.contains(n)).collect();
    assert!(missing.is_empty(), "JAX was not asked about {missing:?}");
}
