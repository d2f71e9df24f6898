//! Tier 0 on the expressions that the project measures itself by: minimum and median of many runs, in milliseconds.
//!
//! `cargo bench -p vramlab-device -- [threads] [name…]`; one thread unless said otherwise.

use std::sync::atomic::AtomicBool;
use std::time::Instant;
use vramlab_device::cpu::{self, CpuDevice, Options};
use vramlab_device::{Device, DeviceRange};
use vramlab_ir::kernel::{Access, Body, ColumnReduce, Dot, LoopInst, Per, RowLoop, Sink, Stage};
use vramlab_ir::{DType, Inst, Kernel, Literal, ReduceKind, Reg, ScalarOp};
use vramlab_memory::{Driver, GIB};

const F32: DType = DType::F32;
const M16: usize = 16 << 20;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let threads = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(1);
    let names: Vec<&String> = arguments.iter().filter(|a| a.parse::<usize>().is_err()).collect();
    let options = Options { capacity: Some(3 * GIB), threads: Some(threads), isa: None };
    let (device, mut driver) = cpu::open(options);
    println!("{}", device.name());
    for (name, kernel, elements) in cases() {
        if names.is_empty() || names.iter().any(|wanted| name.contains(wanted.as_str())) {
            measure(&device, driver.as_mut(), name, &kernel, &elements);
        }
    }
}

fn measure(
    device: &CpuDevice,
    driver: &mut dyn Driver,
    name: &str,
    kernel: &Kernel,
    elements: &[usize],
) {
    let mut regions = Vec::new();
    let mut ranges = Vec::new();
    for (i, &count) in elements.iter().enumerate() {
        let region = driver.obtain(4 * count as u64).expect("memory");
        let range = DeviceRange::new(region.base(), 4 * count as u64);
        let values = (0..count).map(|at| ((at * 37 + i * 11) % 1009) as f32 / 504.0 - 1.0);
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        device.upload(range, &bytes).expect("upload");
        regions.push(region);
        ranges.push(range);
    }
    let mut prepared = f64::INFINITY;
    for _ in 0..20 {
        let begun = Instant::now();
        drop(device.prepare(kernel).expect("prepare"));
        prepared = prepared.min(begun.elapsed().as_secs_f64());
    }
    let launch = device.prepare(kernel).expect("prepare");
    let cancel = AtomicBool::new(false);
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 7 || (start.elapsed().as_secs_f64() < 1.0 && times.len() < 400) {
        let begun = Instant::now();
        launch.run(&ranges, &cancel).expect("run");
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "{name:28} min {:9.4} ms   median {:9.4} ms   prepare {:6.1} µs",
        times[0],
        times[times.len() / 2],
        prepared * 1e6
    );
    for region in regions {
        driver.release(region);
    }
}

/// Name, image and elements of each buffer (all f32).
fn cases() -> Vec<(&'static str, Kernel, Vec<usize>)> {
    vec![
        ("copy 16M", map(1, M16, |code| code[0]), vec![M16; 2]),
        ("fill 16M", fill(M16), vec![M16]),
        ("take 16384 rows of 1024", take(16384, 1024), vec![M16, 16384, M16]),
        ("add 16M", map(2, M16, |code| code.op(ScalarOp::Add, &[0, 1])), vec![M16; 3]),
        ("tanh(a*b+c)*2 16M", tanh(M16), vec![M16; 4]),
        ("tanh(a*b+c)*2 64K", tanh(1 << 16), vec![1 << 16; 4]),
        ("polynomial of 20 ops 64K", polynomial(1 << 16, 10), vec![1 << 16; 2]),
        ("polynomial of 20 ops 16M", polynomial(M16, 10), vec![M16; 2]),
        ("chain of 100 ops 1M", polynomial(1 << 20, 50), vec![1 << 20; 2]),
        ("exp 1M", one(ScalarOp::Exp), vec![1 << 20; 2]),
        ("sin 1M", one(ScalarOp::Sin), vec![1 << 20; 2]),
        ("tanh 1M", one(ScalarOp::Tanh), vec![1 << 20; 2]),
        ("erf 1M", one(ScalarOp::Erf), vec![1 << 20; 2]),
        ("softmax 4096x4096", softmax(4096, 4096), vec![M16; 2]),
        ("softmax 16x4096", softmax(16, 4096), vec![1 << 16; 2]),
        ("softmax 100000x10", softmax(100_000, 10), vec![1_000_000; 2]),
        ("layer norm 64x1024", layer_norm(64, 1024), vec![1 << 16, 1024, 1024, 1 << 16]),
        ("layer norm 4096x1024", layer_norm(4096, 1024), vec![4 << 20, 1024, 1024, 4 << 20]),
        ("sum of 16M", sum_rows(1, M16), vec![M16, 1]),
        ("sum of 64K", sum_rows(1, 1 << 16), vec![1 << 16, 1]),
        ("sum over axis 0 of 64M", sum_columns(8192, 8192), vec![64 << 20, 8192]),
        ("sum over axis 0, 1000000x10", sum_columns(1_000_000, 10), vec![10_000_000, 10]),
        ("argmax 4096x4096", arg_max(4096, 4096), vec![M16, 4096]),
        ("transpose 4096x4096", transpose(4096), vec![M16; 2]),
        ("sum of columns 4096x4096", sum_across(4096), vec![M16, 4096]),
        ("dot 1024", dot(1024, 1024, 1024), vec![1 << 20; 3]),
        ("dot 4096x784x512", dot(4096, 512, 784), vec![4096 * 784, 784 * 512, 4096 * 512]),
        ("dot 128", dot(128, 128, 128), vec![1 << 14; 3]),
        ("dot 4096x784x10", dot(4096, 10, 784), vec![4096 * 784, 7840, 40960]),
        ("dot 784x4096x10", dot(784, 10, 4096), vec![4096 * 784, 40960, 7840]),
        ("dot 16x4096x4096", dot(16, 4096, 4096), vec![16 * 4096, M16, 16 * 4096]),
        ("dot transposed 1024", dot_transposed(1024), vec![1 << 20; 3]),
        ("matrix-vector 4096", dot(4096, 1, 4096), vec![M16, 4096, 4096]),
        ("vector-matrix 4096", dot(1, 4096, 4096), vec![4096, M16, 4096]),
        ("add of 10", map(2, 10, |code| code.op(ScalarOp::Add, &[0, 1])), vec![10; 3]),
    ]
}

struct Code(Vec<LoopInst>);

impl std::ops::Index<usize> for Code {
    type Output = u32;
    fn index(&self, index: usize) -> &u32 {
        const NUMBERS: [u32; 4] = [0, 1, 2, 3];
        &NUMBERS[index]
    }
}

impl Code {
    fn push(&mut self, inst: LoopInst) -> u32 {
        self.0.push(inst);
        self.0.len() as u32 - 1
    }

    fn read(&mut self, input: u32) -> u32 {
        self.push(LoopInst::Scalar(Inst::Input { input, dtype: F32 }))
    }

    fn op(&mut self, op: ScalarOp, args: &[u32]) -> u32 {
        let args = args.iter().map(|&reg| Reg(reg)).collect();
        self.push(LoopInst::Scalar(Inst::Op { op, dtype: F32, args }))
    }

    fn number(&mut self, value: f64) -> u32 {
        self.push(LoopInst::Scalar(Inst::Const(Literal::from_f64(F32, value))))
    }
}

fn access(buffer: u32, strides: &[isize]) -> Access {
    Access { buffer, dtype: F32, offset: 0, strides: strides.to_vec(), starts: Vec::new() }
}

fn kernel(buffers: u32, body: Body) -> Kernel {
    let buffers = (0..buffers).collect();
    Kernel { name: "bench".to_owned(), buffers, body, bytes_read: 0, bytes_written: 0, flops: 0 }
}

fn map(inputs: u32, n: usize, body: impl Fn(&mut Code) -> u32) -> Kernel {
    let mut code = Code(Vec::new());
    for input in 0..inputs {
        code.read(input);
    }
    let reg = Reg(body(&mut code));
    let stage =
        Stage { per: Per::Columns, insts: code.0, sinks: vec![Sink::Store { write: 0, reg }] };
    let reads = (0..inputs).map(|buffer| access(buffer, &[1])).collect();
    rows(vec![], n, reads, vec![access(inputs, &[1])], vec![stage])
}

fn rows(
    outer: Vec<usize>,
    columns: usize,
    reads: Vec<Access>,
    writes: Vec<Access>,
    stages: Vec<Stage>,
) -> Kernel {
    let buffers = (reads.len() + writes.len()) as u32;
    kernel(
        buffers,
        Body::Rows(RowLoop { outer, columns, reads, writes, stages, kept: 1, row_scalars: 4 }),
    )
}

fn fill(n: usize) -> Kernel {
    map(0, n, |code| code.number(1.5))
}

/// Rows of an array by an array of (f32) row numbers.
fn take(n: usize, columns: usize) -> Kernel {
    let mut code = Code(Vec::new());
    let number = code.read(1);
    let convert = Inst::Convert { from: F32, to: DType::I32, arg: Reg(number) };
    let index = Reg(code.push(LoopInst::Scalar(convert)));
    let (limit, stride) = (n as i64 - 1, columns as isize);
    let reg = Reg(code.push(LoopInst::Gather { read: 0, index, limit, stride }));
    let stage = stage(Per::Columns, code, vec![Sink::Store { write: 0, reg }]);
    let reads = vec![access(0, &[0, 1]), access(1, &[1, 0])];
    rows(vec![n], columns, reads, vec![access(2, &[stride, 1])], vec![stage])
}

fn one(op: ScalarOp) -> Kernel {
    map(1, 1 << 20, |code| code.op(op, &[0]))
}

fn tanh(n: usize) -> Kernel {
    map(3, n, |code| {
        let product = code.op(ScalarOp::Mul, &[0, 1]);
        let sum = code.op(ScalarOp::Add, &[product, 2]);
        let tanh = code.op(ScalarOp::Tanh, &[sum]);
        let two = code.number(2.0);
        code.op(ScalarOp::Mul, &[tanh, two])
    })
}

/// Horner's rule: two ops a step.
fn polynomial(n: usize, steps: usize) -> Kernel {
    map(1, n, |code| {
        let mut sum = code.number(0.5);
        for step in 0..steps {
            let product = code.op(ScalarOp::Mul, &[sum, 0]);
            let coefficient = code.number(1.0 / (step + 2) as f64);
            sum = code.op(ScalarOp::Add, &[product, coefficient]);
        }
        sum
    })
}

fn scalar(code: &mut Code, slot: u32) -> u32 {
    code.push(LoopInst::RowScalar { slot, dtype: F32 })
}

fn kept(code: &mut Code) -> u32 {
    code.push(LoopInst::Kept { slot: 0, dtype: F32 })
}

fn stage(per: Per, code: Code, sinks: Vec<Sink>) -> Stage {
    Stage { per, insts: code.0, sinks }
}

fn softmax(n: usize, columns: usize) -> Kernel {
    let dense = |buffer| access(buffer, &[columns as isize, 1]);
    let mut first = Code(Vec::new());
    let x = first.read(0);
    let reduce = |kind, reg, slot| Sink::Reduce { kind, reg: Reg(reg), slot };
    let first = stage(Per::Columns, first, vec![reduce(ReduceKind::Max, x, 0)]);
    let mut second = Code(Vec::new());
    let (x, max) = (second.read(0), scalar(&mut second, 0));
    let shifted = second.op(ScalarOp::Sub, &[x, max]);
    let exp = second.op(ScalarOp::Exp, &[shifted]);
    let keep = Sink::Keep { slot: 0, reg: Reg(exp) };
    let second = stage(Per::Columns, second, vec![keep, reduce(ReduceKind::Sum, exp, 1)]);
    let mut third = Code(Vec::new());
    let (exp, sum) = (kept(&mut third), scalar(&mut third, 1));
    let reg = Reg(third.op(ScalarOp::Div, &[exp, sum]));
    let third = stage(Per::Columns, third, vec![Sink::Store { write: 0, reg }]);
    rows(vec![n], columns, vec![dense(0)], vec![dense(1)], vec![first, second, third])
}

fn layer_norm(n: usize, columns: usize) -> Kernel {
    let dense = |buffer| access(buffer, &[columns as isize, 1]);
    let repeated = |buffer| access(buffer, &[0, 1]);
    let reduce = |reg, slot| Sink::Reduce { kind: ReduceKind::Sum, reg: Reg(reg), slot };
    let set = |reg, slot| Sink::SetRow { slot, reg: Reg(reg) };
    let mut code = Code(Vec::new());
    let x = code.read(0);
    let sum = stage(Per::Columns, code, vec![reduce(x, 0)]);
    let mut code = Code(Vec::new());
    let (total, share) = (scalar(&mut code, 0), code.number(1.0 / columns as f64));
    let mean = code.op(ScalarOp::Mul, &[total, share]);
    let mean = stage(Per::Row, code, vec![set(mean, 1)]);
    let mut code = Code(Vec::new());
    let (x, m) = (code.read(0), scalar(&mut code, 1));
    let centred = code.op(ScalarOp::Sub, &[x, m]);
    let square = code.op(ScalarOp::Mul, &[centred, centred]);
    let keep = Sink::Keep { slot: 0, reg: Reg(centred) };
    let squares = stage(Per::Columns, code, vec![keep, reduce(square, 2)]);
    let mut code = Code(Vec::new());
    let (total, share) = (scalar(&mut code, 2), code.number(1.0 / columns as f64));
    let variance = code.op(ScalarOp::Mul, &[total, share]);
    let small = code.number(1e-5);
    let bounded = code.op(ScalarOp::Add, &[variance, small]);
    let scale = code.op(ScalarOp::Rsqrt, &[bounded]);
    let scale = stage(Per::Row, code, vec![set(scale, 3)]);
    let mut code = Code(Vec::new());
    let (centred, scaled) = (kept(&mut code), scalar(&mut code, 3));
    let (weight, bias) = (code.read(1), code.read(2));
    let normal = code.op(ScalarOp::Mul, &[centred, scaled]);
    let weighted = code.op(ScalarOp::Mul, &[normal, weight]);
    let reg = Reg(code.op(ScalarOp::Add, &[weighted, bias]));
    let last = stage(Per::Columns, code, vec![Sink::Store { write: 0, reg }]);
    let reads = vec![dense(0), repeated(1), repeated(2)];
    rows(vec![n], columns, reads, vec![dense(3)], vec![sum, mean, squares, scale, last])
}

fn reduce_rows(n: usize, columns: usize, kind: ReduceKind, dtype: DType) -> Kernel {
    let mut code = Code(Vec::new());
    let x = Reg(code.read(0));
    let first = stage(Per::Columns, code, vec![Sink::Reduce { kind, reg: x, slot: 0 }]);
    let result = LoopInst::RowScalar { slot: 0, dtype };
    let sinks = vec![Sink::Store { write: 0, reg: Reg(0) }];
    let second = stage(Per::Row, Code(vec![result]), sinks);
    let mut write = access(1, &[1, 0]);
    write.dtype = dtype;
    let read = access(0, &[columns as isize, 1]);
    rows(vec![n], columns, vec![read], vec![write], vec![first, second])
}

fn sum_rows(n: usize, columns: usize) -> Kernel {
    reduce_rows(n, columns, ReduceKind::Sum, F32)
}

fn arg_max(n: usize, columns: usize) -> Kernel {
    reduce_rows(n, columns, ReduceKind::ArgMax, DType::I32)
}

fn sum_columns(reduced: usize, columns: usize) -> Kernel {
    let mut code = Code(Vec::new());
    let x = Reg(code.read(0));
    let image = ColumnReduce {
        outer: vec![],
        reduced,
        columns,
        reads: vec![access(0, &[columns as isize, 1])],
        writes: vec![access(1, &[0, 1])],
        insts: code.0,
        reduces: vec![(ReduceKind::Sum, x, 0)],
    };
    kernel(2, Body::Columns(image))
}

fn transpose(n: usize) -> Kernel {
    let mut code = Code(Vec::new());
    let reg = Reg(code.read(0));
    let stage = stage(Per::Columns, code, vec![Sink::Store { write: 0, reg }]);
    let n_stride = n as isize;
    rows(vec![n], n, vec![access(0, &[1, n_stride])], vec![access(1, &[n_stride, 1])], vec![stage])
}

/// The rows of a transposed matrix.
fn sum_across(n: usize) -> Kernel {
    let mut kernel = sum_rows(n, n);
    if let Body::Rows(image) = &mut kernel.body {
        image.reads[0].strides = vec![1, n as isize];
    }
    kernel
}

fn dot_transposed(n: usize) -> Kernel {
    let n_stride = n as isize;
    let (a, b, c) =
        (access(0, &[1, n_stride]), access(1, &[1, n_stride]), access(2, &[n_stride, 1]));
    let batch = Vec::new();
    kernel(3, Body::Dot(Dot { dtype: F32, batch, m: n, n, k: n, a, b, c, epilogue: None }))
}

fn dot(m: usize, n: usize, k: usize) -> Kernel {
    let dense = |buffer, columns: usize| access(buffer, &[columns as isize, 1]);
    let (a, b, c) = (dense(0, k), dense(1, n), dense(2, n));
    let batch = Vec::new();
    kernel(3, Body::Dot(Dot { dtype: F32, batch, m, n, k, a, b, c, epilogue: None }))
}
