//! Programs of ten thousand equations compile in a moment: a pass that is quadratic takes minutes.

use std::sync::Arc;
use std::time::{Duration, Instant};
use vramlab_compiler::{Options, compile};
use vramlab_ir::{DType, Func, FuncBuilder, Params, Type, Value};

const EQUATIONS: usize = 10_000;
/// About twenty times what a slow machine needs without optimisation.
const MOST: Duration = Duration::from_secs(60);

fn push(builder: &mut FuncBuilder, op: &str, inputs: &[Value]) -> Value {
    let op = vramlab_ops::lookup(op).unwrap();
    builder.push(op, Params::new(), inputs, None).unwrap()[0]
}

fn compiled(func: Func) -> usize {
    let start = Instant::now();
    let donate = vec![true; func.params.len()];
    let program = compile(&Arc::new(func), &donate, &Options::default()).unwrap();
    assert!(start.elapsed() < MOST, "{:?}", start.elapsed());
    program.kernels.len()
}

#[test]
fn a_long_chain() {
    let mut builder = FuncBuilder::new("f");
    let mut x = builder.param(Type::new(DType::F32, [64, 32]));
    for at in 0..EQUATIONS {
        x = push(&mut builder, ["tanh", "neg"][at % 2], &[x]);
    }
    let kernels = compiled(builder.finish(vec![x]));
    assert!(kernels < 100, "{kernels} kernels");
}

#[test]
fn many_values_that_are_used_again() {
    let mut builder = FuncBuilder::new("f");
    let mut values = vec![builder.param(Type::new(DType::F32, [64, 32]))];
    for at in 0..EQUATIONS / 2 {
        let sum = push(&mut builder, "add", &[values[at], values[at * 7 % (at + 1)]]);
        let value = push(&mut builder, "exp", &[sum]);
        values.push(value);
    }
    let last = values[EQUATIONS / 2];
    assert!(compiled(builder.finish(vec![last])) > 0);
}

#[test]
fn many_arguments_and_results() {
    let mut builder = FuncBuilder::new("f");
    let params: Vec<Value> =
        (0..2000).map(|_| builder.param(Type::new(DType::F32, [64]))).collect();
    let results: Vec<Value> = params.iter().map(|&p| push(&mut builder, "exp", &[p])).collect();
    assert_eq!(compiled(builder.finish(results)), 2000);
}
