//! Compile times: one op, twenty ops, and programs of many equations.

use std::sync::Arc;
use std::time::Instant;
use vramlab_compiler::{Options, compile};
use vramlab_ir::{DType, Func, FuncBuilder, Params, Type, Value};

fn push(builder: &mut FuncBuilder, op: &str, inputs: &[Value]) -> Value {
    let op = vramlab_ops::lookup(op).expect("a known op");
    builder.push(op, Params::new(), inputs, None).expect("types that fit")[0]
}

fn chain(ops: &[&str], count: usize) -> Func {
    let mut builder = FuncBuilder::new("f");
    let mut x = builder.param(Type::new(DType::F32, [64, 32]));
    let y = builder.param(Type::new(DType::F32, [32]));
    for at in 0..count {
        let op = ops[at % ops.len()];
        x = match op {
            "add" | "mul" => push(&mut builder, op, &[x, y]),
            _ => push(&mut builder, op, &[x]),
        };
    }
    builder.finish(vec![x])
}

/// Many values that are all used again later.
fn web(count: usize) -> Func {
    let mut builder = FuncBuilder::new("f");
    let mut values = vec![builder.param(Type::new(DType::F32, [64, 32]))];
    for at in 0..count {
        let (a, b) = (values[at], values[at * 7 % (at + 1)]);
        let sum = push(&mut builder, "add", &[a, b]);
        values.push(if at % 3 == 0 { push(&mut builder, "exp", &[sum]) } else { sum });
    }
    let last = values[count];
    builder.finish(vec![last])
}

fn time(name: &str, func: Func, options: &Options, times: usize) {
    let func = Arc::new(func);
    let donate = vec![false; func.params.len()];
    let mut best = f64::MAX;
    let mut kernels = 0;
    for _ in 0..times {
        let start = Instant::now();
        let program = compile(&func, &donate, options).expect("compiles");
        best = best.min(start.elapsed().as_secs_f64());
        kernels = program.kernels.len();
    }
    println!("{name:40} {:>10.2} µs  {kernels} kernels", best * 1e6);
}

fn main() {
    let eager = Options { explain: false, ..Options::default() };
    let jit = Options::default();
    time("one op, no words", chain(&["tanh"], 1), &eager, 10_000);
    time("one broadcast op, no words", chain(&["add"], 1), &eager, 10_000);
    time("one op", chain(&["tanh"], 1), &jit, 10_000);
    time("twenty ops, no words", chain(&["tanh", "add", "mul"], 20), &eager, 2_000);
    time("twenty ops", chain(&["tanh", "add", "mul"], 20), &jit, 2_000);
    time("chain of 10,000", chain(&["tanh", "add", "mul"], 10_000), &jit, 3);
    time("web of 1,000", web(1_000), &jit, 3);
    time("web of 10,000", web(10_000), &jit, 1);
}
