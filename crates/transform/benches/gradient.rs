//! How long a gradient takes before it runs: `cargo bench -p vramlab-transform`. A program of 64
//! layers is written op by op as a trace would, differentiated, and compiled; the fastest and the median of 50.

use std::sync::Arc;
use std::time::{Duration, Instant};
use vramlab_compiler::{Options, compile};
use vramlab_ir::{DType, Func, FuncBuilder, Param, Params, Type, Value};
use vramlab_ops::{DOT, SUM, TANH};
use vramlab_transform::value_and_grad;

fn dot(builder: &mut FuncBuilder, x: Value, w: Value) -> Value {
    let ints = |axes: &[i64]| Param::Ints(axes.to_vec());
    let params = Params::new()
        .with("lhs_batch", ints(&[]))
        .with("rhs_batch", ints(&[]))
        .with("lhs_contract", ints(&[1]))
        .with("rhs_contract", ints(&[0]));
    builder.push(&DOT, params, &[x, w], None).expect("shapes fit")[0]
}

fn mlp(layers: usize) -> Func {
    let mut builder = FuncBuilder::new("mlp");
    let x = builder.param(Type::new(DType::F32, [4096, 512]));
    let square = Type::new(DType::F32, [512, 512]);
    let ws: Vec<Value> = (0..layers).map(|_| builder.param(square.clone())).collect();
    let last = ws.into_iter().fold(x, |h, w| {
        let product = dot(&mut builder, h, w);
        builder.push(&TANH, Params::new(), &[product], None).expect("a float")[0]
    });
    let sum = Params::new().with("axes", Param::Ints(vec![0, 1])).with("keep", Param::Bool(false));
    let result = builder.push(&SUM, sum, &[last], None).expect("axes fit")[0];
    builder.finish(vec![result])
}

/// Milliseconds of the fastest and of the median.
fn figures(mut times: Vec<Duration>) -> [f64; 2] {
    times.sort();
    [times[0], times[times.len() / 2]].map(|time| time.as_secs_f64() * 1e3)
}

fn main() {
    for layers in [8, 64] {
        let wrt: Vec<usize> = (1..=layers).collect();
        let (mut traced, mut turned, mut compiled) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..50 {
            let begin = Instant::now();
            let func = mlp(layers);
            traced.push(begin.elapsed());
            let begin = Instant::now();
            let joint = value_and_grad(&func, &wrt).expect("tanh and dot have gradients");
            turned.push(begin.elapsed());
            let (func, donate) = (Arc::new(joint.func), vec![false; layers + 1]);
            let options = Options { explain: false, ..Options::default() };
            let begin = Instant::now();
            let program = compile(&func, &donate, &options).expect("it compiles");
            compiled.push(begin.elapsed());
            assert!(program.kernels.len() > 3 * layers - 2);
        }
        for (name, times) in [("written", traced), ("gradient", turned), ("compiled", compiled)] {
            let [fastest, median] = figures(times);
            println!("{layers} layers, {name}: {fastest:.2} / {median:.2} ms");
        }
    }
}
