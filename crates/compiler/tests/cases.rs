//! The cases that fix planned bytes, each under its name.

mod support;

use std::sync::Arc;
use support::check_plan;
use vramlab_compiler::{Options, compile};
use vramlab_ir::kernel::ResultSource;
use vramlab_ir::{DType, FuncBuilder, Param, Params, Program, Type, Value};

const MIB: u64 = 1 << 20;

/// A program under construction, with less to write.
struct Build(FuncBuilder);

impl Build {
    fn new() -> Build {
        Build(FuncBuilder::new("f"))
    }

    fn param(&mut self, dims: &[usize]) -> Value {
        self.0.param(Type::new(DType::F32, dims))
    }

    fn op(&mut self, name: &str, inputs: &[Value]) -> Value {
        self.with(name, Params::new(), inputs)
    }

    fn with(&mut self, name: &str, params: Params, inputs: &[Value]) -> Value {
        let op = vramlab_ops::lookup(name).expect("a known op");
        self.0.push(op, params, inputs, None).expect("types that fit")[0]
    }

    fn literal(&mut self, value: f64) -> Value {
        let literal = vramlab_ir::Literal::from_f64(DType::F32, value);
        let params = Params::new()
            .with("value", Param::Literal(literal))
            .with("shape", Param::Shape(vramlab_ir::Shape::scalar()));
        self.with("full", params, &[])
    }

    fn sum(&mut self, x: Value, axes: &[i64], keep: bool) -> Value {
        self.reduce("sum", x, axes, keep)
    }

    fn reduce(&mut self, name: &str, x: Value, axes: &[i64], keep: bool) -> Value {
        let params =
            Params::new().with("axes", Param::Ints(axes.to_vec())).with("keep", Param::Bool(keep));
        self.with(name, params, &[x])
    }

    fn dot(&mut self, x: Value, y: Value) -> Value {
        let params = Params::new()
            .with("lhs_batch", Param::Ints(vec![]))
            .with("rhs_batch", Param::Ints(vec![]))
            .with("lhs_contract", Param::Ints(vec![1]))
            .with("rhs_contract", Param::Ints(vec![0]));
        self.with("dot", params, &[x, y])
    }

    fn compile(self, results: &[Value], donate: &[bool]) -> Program {
        self.compile_with(results, donate, &Options::default())
    }

    fn compile_with(self, results: &[Value], donate: &[bool], options: &Options) -> Program {
        let func = Arc::new(self.0.finish(results.to_vec()));
        let program = compile(&func, donate, options).expect("compiles");
        check_plan(&program);
        program
    }
}

fn seven(donate: bool) -> Program {
    let mut b = Build::new();
    let mut x = b.param(&[16, 1024, 1024]);
    for op in ["abs", "sqrt", "cos", "abs", "sin", "exp", "tanh"] {
        x = b.op(op, &[x]);
    }
    b.compile(&[x], &[donate])
}

#[test]
fn plan_chain() {
    let program = seven(false);
    assert_eq!(program.peak_bytes, 128 * MIB);
    assert_eq!(program.temp_bytes, 0);
    assert_eq!(program.kernels.len(), 1);
    assert_eq!(program.fused_bytes, 384 * MIB);
    let donated = seven(true);
    assert_eq!(donated.peak_bytes, 64 * MIB);
    assert_eq!(donated.results, [ResultSource::Donated { argument: 0 }]);
    assert_eq!(donated.donations[0].reason, "aliases result 0");
}

#[test]
fn jit_worse() {
    let build = |donate: bool| {
        let mut b = Build::new();
        let params: Vec<Value> = (0..8).map(|_| b.param(&[4, 1024, 1024])).collect();
        let grads: Vec<Value> = (0..8).map(|_| b.param(&[4, 1024, 1024])).collect();
        let new: Vec<Value> =
            params.iter().zip(&grads).map(|(&p, &g)| b.op("sub", &[p, g])).collect();
        let mask: Vec<bool> = (0..16).map(|i| donate && i < 8).collect();
        b.compile(&new, &mask)
    };
    assert_eq!(build(false).peak_bytes, 384 * MIB);
    assert_eq!(build(true).peak_bytes, 256 * MIB);
}

#[test]
fn plan_adam() {
    let mut b = Build::new();
    let [p, m, v, g] = [(); 4].map(|()| b.param(&[1024, 1024]));
    let [b1, c1, b2, c2, lr, eps] =
        [0.9, 0.1, 0.999, 0.001, 1e-3, 1e-8].map(|value| b.literal(value));
    let (old, new) = (b.op("mul", &[m, b1]), b.op("mul", &[g, c1]));
    let m2 = b.op("add", &[old, new]);
    let square = b.op("mul", &[g, g]);
    let (old, new) = (b.op("mul", &[v, b2]), b.op("mul", &[square, c2]));
    let v2 = b.op("add", &[old, new]);
    let root = b.op("sqrt", &[v2]);
    let below = b.op("add", &[root, eps]);
    let step = b.op("div", &[m2, below]);
    let step = b.op("mul", &[step, lr]);
    let p2 = b.op("sub", &[p, step]);
    let program = b.compile(&[p2, m2, v2], &[true, true, true, false]);
    assert_eq!(program.temp_bytes, 0);
    assert_eq!(program.peak_bytes, 16 * MIB);
    assert_eq!(program.kernels.len(), 1, "{:?}", program.notes);
}

/// Sixteen independent values of a million elements, each used once.
fn unrolled(fuse: bool) -> Program {
    const N: usize = 1_000_000;
    let mut b = Build::new();
    let x = b.param(&[4]);
    let y = b.param(&[4, N]);
    let mut parts = Vec::new();
    for i in 0..4 {
        for j in 0..4 {
            let start = |v: i64| Param::Ints(vec![v, 0]);
            let row = Params::new()
                .with("start", start(j))
                .with("stop", Param::Ints(vec![j + 1, N as i64]))
                .with("step", Param::Ints(vec![1, 1]));
            let row = b.with("slice", row, &[y]);
            let scale = Params::new()
                .with("start", Param::Ints(vec![i]))
                .with("stop", Param::Ints(vec![i + 1]))
                .with("step", Param::Ints(vec![1]));
            let scale = b.with("slice", scale, &[x]);
            let product = b.op("mul", &[row, scale]);
            let temporary = b.op("sin", &[product]);
            parts.push(temporary);
        }
    }
    let sums: Vec<Value> = parts.iter().map(|&t| b.sum(t, &[0, 1], false)).collect();
    let total = sums[1..].iter().fold(sums[0], |total, &sum| b.op("add", &[total, sum]));
    let options = Options { fuse, ..Options::default() };
    b.compile_with(&[total], &[false, false], &options)
}

#[test]
fn plan_unrolled() {
    let arguments = 16 + 16_000_000;
    for fuse in [true, false] {
        let program = unrolled(fuse);
        let beside = program.peak_bytes - arguments;
        assert!(beside <= 2 * 4_000_000 + 4096, "fuse {fuse}: {beside}");
    }
}

/// Sixteen products of a million elements, added up: one loop that read them all would keep them
/// all.
#[test]
fn plan_unrolled_sum_of_products() {
    let mut b = Build::new();
    let left: Vec<Value> = (0..16).map(|_| b.param(&[1000, 1])).collect();
    let right = b.param(&[1, 1000]);
    let parts: Vec<Value> = left.iter().map(|&l| b.dot(l, right)).collect();
    let total = parts[1..].iter().fold(parts[0], |total, &part| b.op("add", &[total, part]));
    let program = b.compile(&[total], &[false; 17]);
    let beside = program.peak_bytes - 17 * 4000;
    assert!(beside <= 2 * 4_000_000 + 4096, "{beside}");
}

#[test]
fn donate_unusable() {
    let mut b = Build::new();
    let (x, y, unused) = (b.param(&[1024]), b.param(&[512]), b.param(&[1024]));
    let z = b.op("tanh", &[x]);
    let total = b.sum(y, &[0], false);
    let program = b.compile(&[z, total], &[true, true, true]);
    let donations = &program.donations;
    assert_eq!(donations.len(), 3);
    assert!(donations[0].used);
    assert_eq!(donations[0].reason, "aliases result 0");
    assert!(!donations[1].used);
    assert!(donations[1].reason.contains("no result has its 2048 bytes"), "{donations:?}");
    assert!(!donations[2].used);
    assert!(donations[2].reason.contains("every result of its 4096 bytes"), "{donations:?}");
    let _ = unused;
}

#[test]
fn a_returned_argument_is_shared_or_given_back() {
    let mut b = Build::new();
    let (x, y) = (b.param(&[8]), b.param(&[8]));
    let shape = Params::new().with("shape", Param::Shape(vramlab_ir::Shape::new([2, 4])));
    let reshaped = b.with("reshape", shape, &[x]);
    let program = b.compile(&[reshaped, y, y], &[false, true]);
    assert_eq!(
        program.results,
        [
            ResultSource::Shared { argument: 0 },
            ResultSource::Donated { argument: 1 },
            ResultSource::Same { result: 1 }
        ]
    );
    assert!(program.kernels.is_empty());
}
