//! Gradients of composites against JAX's, which `tests/goldens/jax_gradients.py` wrote down.

use crate::on;
use vramlab_array::prelude::*;

type One = fn(&Array) -> Array;

/// Composites of one array, by the names that the script gives them.
const COMPOSITES: &[(&str, One)] = &[
    ("softmax", |x| x.softmax(-1)),
    ("log_softmax", |x| x.log_softmax(-1)),
    ("sigmoid", |x| x.sigmoid()),
    ("relu", |x| x.relu()),
    ("gelu", |x| x.gelu()),
    ("gelu_exact", |x| x.gelu_exact()),
    ("silu", |x| x.silu()),
    ("softplus", |x| x.softplus()),
    ("layer_norm", |x| x.layer_norm(-1)),
    ("logsumexp", |x| x.logsumexp_axis(1)),
    ("norm", |x| x.norm_axis(1)),
    ("var", |x| x.var_axis(0)),
    ("std", |x| x.std_axis(0)),
    ("mean", |x| x.mean_axis(0)),
    ("cross_entropy", |x| -x.log_softmax(-1).slice((.., 1)).mean()),
];

fn attention([q, k, v]: [&Array; 3]) -> Array {
    (q.dot(k.t()) / 2.0).softmax(-1).dot(v)
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

fn array(text: &str) -> Array {
    let (ty, values) = text.split_once(' ').expect("a type and values");
    let shape = ty.trim_start_matches("f32[").trim_end_matches(']');
    let extents = shape.split(',').filter(|e| !e.is_empty());
    let shape: Vec<i32> = extents.map(|e| e.parse().expect("an extent")).collect();
    from_vec(numbers(values), shape)
}

fn near(what: &str, found: &Array, wanted: &[f64]) {
    let found = found.to_vec::<f64>();
    assert_eq!(found.len(), wanted.len(), "{what}");
    let scale = wanted.iter().fold(1e-30f64, |scale, v| scale.max(v.abs()));
    for (a, b) in found.iter().zip(wanted) {
        assert!((a - b).abs() <= 1e-6 * scale, "{what}: {a}, JAX has {b}\n{found:?}\n{wanted:?}");
    }
}

fn lines<'a>(case: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    case.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(' '))
}

fn check(name: &str, case: &str) {
    let arguments: Vec<Array> = lines(case, "at").map(array).collect();
    let wanted: Vec<Vec<f64>> = lines(case, "grad").map(|l| numbers(&l[2..])).collect();
    let value = numbers(lines(case, "value").next().expect("a value"));
    let cotangent =
        |y: &Array| from_vec(numbers(lines(case, "ct").next().expect("a cotangent")), y.shape());
    match arguments.as_slice() {
        [x] => {
            let found = COMPOSITES.iter().find(|(own, _)| *own == name);
            let (_, f) = found.unwrap_or_else(|| panic!("{name} is not among the composites"));
            let (y, back) = vjp(|[x]| f(x), [x]);
            near(name, &y, &value);
            let [dx] = back([&cotangent(&y)]);
            near(&format!("gradient of {name}"), &dx, &wanted[0]);
        }
        [q, k, v] => {
            let (y, back) = vjp(attention, [q, k, v]);
            near(name, &y, &value);
            for (found, wanted) in back([&cotangent(&y)]).iter().zip(&wanted) {
                near(&format!("gradient of {name}"), found, wanted);
            }
        }
        other => panic!("{} arguments", other.len()),
    }
}

#[test]
fn gradients_of_composites_agree_with_jax() {
    on(|_| {
        let text = include_str!("jax.txt");
        let (_, cases) = text.split_once('\n').expect("a first line");
        let mut count = 0;
        for case in cases.split("\n\n") {
            let name = case.lines().next().and_then(|line| line.strip_prefix("case "));
            check(name.expect("a name"), case);
            count += 1;
        }
        assert_eq!(count, COMPOSITES.len() + 1, "every composite, and attention");
    });
}
