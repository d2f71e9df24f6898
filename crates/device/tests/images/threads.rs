//! Work that is large enough to be shared out: the same bits from any number of threads, and a prompt stop.

use crate::support::{Buffers, Random, launch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vramlab_device::cpu::{self, Isa, Options};
use vramlab_device::{Device, DeviceRange, LaunchError};
use vramlab_ir::kernel::{
    Access, Body, ColumnReduce, Dot, Epilogue, LoopInst, Per, RowLoop, Sink, Stage,
};
use vramlab_ir::{DType, Inst, Kernel, Literal, ReduceKind, Reg, ScalarOp};
use vramlab_memory::MIB;

const F32: DType = DType::F32;

fn access(buffer: u32, dtype: DType, strides: &[isize]) -> Access {
    Access { buffer, dtype, offset: 0, strides: strides.to_vec(), starts: Vec::new() }
}

fn kernel(buffers: u32, body: Body) -> Kernel {
    let buffers = (0..buffers).collect();
    Kernel { name: "shared".into(), buffers, body, bytes_read: 0, bytes_written: 0, flops: 0 }
}

fn op(op: ScalarOp, dtype: DType, args: &[u32]) -> LoopInst {
    let args = args.iter().map(|&reg| Reg(reg)).collect();
    LoopInst::Scalar(Inst::Op { op, dtype, args })
}

fn input(dtype: DType) -> LoopInst {
    LoopInst::Scalar(Inst::Input { input: 0, dtype })
}

fn scalar(slot: u32) -> LoopInst {
    LoopInst::RowScalar { slot, dtype: F32 }
}

fn reduce(kind: ReduceKind, reg: u32, slot: u32) -> Sink {
    Sink::Reduce { kind, reg: Reg(reg), slot }
}

fn softmax(rows: usize, columns: usize) -> Kernel {
    let per = Per::Columns;
    let exp =
        vec![input(F32), scalar(0), op(ScalarOp::Sub, F32, &[0, 1]), op(ScalarOp::Exp, F32, &[2])];
    let kept = LoopInst::Kept { slot: 0, dtype: F32 };
    let quotient = vec![kept, scalar(1), op(ScalarOp::Div, F32, &[0, 1])];
    let stages = vec![
        Stage { per, insts: vec![input(F32)], sinks: vec![reduce(ReduceKind::Max, 0, 0)] },
        Stage {
            per,
            insts: exp,
            sinks: vec![Sink::Keep { slot: 0, reg: Reg(3) }, reduce(ReduceKind::Sum, 3, 1)],
        },
        Stage { per, insts: quotient, sinks: vec![Sink::Store { write: 0, reg: Reg(2) }] },
    ];
    let strides = [columns as isize, 1];
    let body = RowLoop {
        outer: vec![rows],
        columns,
        reads: vec![access(0, F32, &strides)],
        writes: vec![access(1, F32, &strides)],
        stages,
        kept: 1,
        row_scalars: 2,
    };
    kernel(2, Body::Rows(body))
}

fn map(dtype: DType, n: usize, ops: &[ScalarOp]) -> Kernel {
    let mut insts = vec![input(dtype)];
    for &each in ops {
        let last = insts.len() as u32 - 1;
        insts.push(op(each, dtype, &vec![last; each.arity()]));
    }
    let reg = Reg(ops.len() as u32);
    let stage = Stage { per: Per::Columns, insts, sinks: vec![Sink::Store { write: 0, reg }] };
    let body = RowLoop {
        outer: vec![],
        columns: n,
        reads: vec![access(0, dtype, &[1])],
        writes: vec![access(1, dtype, &[1])],
        stages: vec![stage],
        kept: 0,
        row_scalars: 0,
    };
    kernel(2, Body::Rows(body))
}

fn sum_columns(reduced: usize, columns: usize, kind: ReduceKind, result: DType) -> Kernel {
    let body = ColumnReduce {
        outer: vec![],
        reduced,
        columns,
        reads: vec![access(0, F32, &[columns as isize, 1])],
        writes: vec![access(1, result, &[0, 1])],
        insts: vec![input(F32)],
        reduces: vec![(kind, Reg(0), 0)],
    };
    kernel(2, Body::Columns(body))
}

/// Runs with one, two and three threads; gives the common result.
fn agreed(kernel: &Kernel, elements: &[usize], seed: u64) -> (Buffers, Buffers) {
    agreed_of(F32, kernel, elements, seed)
}

fn agreed_of(dtype: DType, kernel: &Kernel, elements: &[usize], seed: u64) -> (Buffers, Buffers) {
    let mut random = Random::new(seed);
    let buffers: Buffers = elements.iter().map(|&n| random.buffer(dtype, n)).collect();
    let first = launch(kernel, &buffers, 1, Isa::best()).expect("one thread");
    for threads in [2, 3] {
        let again = launch(kernel, &buffers, threads, Isa::best()).expect("several threads");
        assert!(first == again, "{threads} threads give other bits");
    }
    (buffers, first)
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(4).map(|bytes| Literal::from_bytes(F32, bytes).as_f64()).collect()
}

fn close(got: f64, want: f64, context: &str) {
    assert!((got - want).abs() <= 2e-5 * (1e-6 + want.abs()), "{context}: {got}, not {want}");
}

#[test]
fn a_long_row_is_shared_between_threads() {
    for (rows, columns) in [(1, 1_500_001), (2, 700_000), (300, 5000)] {
        let n = rows * columns;
        let (buffers, results) = agreed(&softmax(rows, columns), &[n, n], 1);
        let (x, y) = (floats(&buffers[0]), floats(&results[1]));
        for (x, y) in x.chunks(columns).zip(y.chunks(columns)) {
            let total: f64 = x.iter().map(|x| x.exp()).sum();
            for i in [0, columns / 3, columns - 1] {
                close(y[i], x[i].exp() / total, "softmax");
            }
        }
    }
}

#[test]
fn maps_and_column_reductions_are_shared_between_threads() {
    let (buffers, results) =
        agreed(&map(F32, 1 << 20, &[ScalarOp::Sin, ScalarOp::Exp]), &[1 << 20; 2], 2);
    for (x, y) in floats(&buffers[0]).iter().zip(floats(&results[1])).step_by(1009) {
        close(y, x.sin().exp(), "exp(sin(x))");
    }
    for (reduced, columns) in [(3000, 700), (400_000, 3), (77, 20_000)] {
        let n = reduced * columns;
        let kernel = sum_columns(reduced, columns, ReduceKind::Max, F32);
        let (buffers, results) = agreed(&kernel, &[n, columns], 3);
        let (x, y) = (floats(&buffers[0]), floats(&results[1]));
        for column in [0, columns / 2, columns - 1] {
            let greatest = x.iter().skip(column).step_by(columns).copied().fold(f64::MIN, f64::max);
            assert_eq!(y[column], greatest);
        }
        let kernel = sum_columns(reduced, columns, ReduceKind::Sum, F32);
        agreed(&kernel, &[n, columns], 4);
        let kernel = sum_columns(reduced, columns, ReduceKind::ArgMax, DType::I32);
        agreed(&kernel, &[n, columns], 5);
    }
}

#[test]
fn dots_are_shared_between_threads() {
    for (m, n, k) in [(700, 300, 400), (100, 2100, 300), (1, 900, 2000), (900, 1, 2000)] {
        let dense = |buffer, columns: usize| access(buffer, F32, &[columns as isize, 1]);
        let (a, b, c) = (dense(0, k), dense(1, n), dense(2, n));
        let body = Dot { dtype: F32, batch: vec![], m, n, k, a, b, c, epilogue: None };
        let (buffers, results) = agreed(&kernel(3, Body::Dot(body)), &[m * k, k * n, m * n], 6);
        let (a, b, c) = (floats(&buffers[0]), floats(&buffers[1]), floats(&results[2]));
        for (i, j) in [(0, 0), (m / 2, n / 3), (m - 1, n - 1)] {
            let want: f64 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
            assert!((c[i * n + j] - want).abs() < 1e-3, "{m}×{n}×{k}: {} {want}", c[i * n + j]);
        }
    }
}

/// Operands that lie either way or in every second element, depths of several parts, odd ends, and an
/// epilogue that subtracts a tenth of the product from what lies in the result's place (its own buffer) or
/// apart from it.
#[test]
fn large_products_mean_the_same_however_their_operands_lie() {
    let shapes = [(300, 530, 1100), (131, 1030, 523), (1000, 65, 1025), (52, 2000, 700)];
    for (case, (m, n, k)) in shapes.into_iter().enumerate() {
        for turned in 0..5 {
            let apart = if turned == 4 { 2 } else { 1 };
            let dtype = if (case + turned) % 3 == 0 { DType::F64 } else { F32 };
            let lies = |buffer, rows: usize, columns: usize, turned: bool, apart: usize| {
                let strides = if turned { [1, rows] } else { [columns, 1] };
                access(buffer, dtype, &strides.map(|stride| (stride * apart) as isize))
            };
            let (a, b) =
                (lies(0, m, k, turned & 1 > 0, apart), lies(1, k, n, turned & 2 > 0, apart));
            let epilogue = |buffer| {
                let product = LoopInst::Kept { slot: 0, dtype };
                let tenth = LoopInst::Scalar(Inst::Const(Literal::from_f64(dtype, 0.1)));
                let insts = vec![
                    product,
                    tenth,
                    op(ScalarOp::Mul, dtype, &[0, 1]),
                    input(dtype),
                    op(ScalarOp::Sub, dtype, &[3, 2]),
                ];
                Epilogue { reads: vec![lies(buffer, m, n, false, 1)], insts }
            };
            for (old, buffers) in [(2, 3), (3, 4)] {
                let c = lies(2, m, n, false, 1);
                let (a, b, epilogue) = (a.clone(), b.clone(), Some(epilogue(old)));
                let body = Dot { dtype, batch: vec![], m, n, k, a, b, c, epilogue };
                let sizes = [m * k * apart, k * n * apart, m * n, m * n];
                let image = kernel(buffers, Body::Dot(body));
                let (before, after) =
                    agreed_of(dtype, &image, &sizes[..buffers as usize], (case + turned) as u64);
                let floats = |bytes: &[u8]| -> Vec<f64> {
                    let each = bytes.chunks_exact(dtype.size());
                    each.map(|bytes| Literal::from_bytes(dtype, bytes).as_f64()).collect()
                };
                let (a, b) = (floats(&before[0]), floats(&before[1]));
                let was = floats(&before[old as usize]);
                let others = Isa::ALL.into_iter().skip(1).filter(|isa| isa.available());
                let others = others.map(|isa| launch(&image, &before, 2, isa).expect("a product"));
                let all: Vec<_> = others.chain([after]).map(|after| floats(&after[2])).collect();
                let place = |turned, rows, columns, i, j| {
                    apart * if turned { j * rows + i } else { i * columns + j }
                };
                let a = |i: usize, l: usize| a[place(turned & 1 > 0, m, k, i, l)];
                let b = |l: usize, j: usize| b[place(turned & 2 > 0, k, n, l, j)];
                for at in (0..m * n).step_by(997).chain([m * n - 1]) {
                    let (i, j) = (at / n, at % n);
                    let sum: f64 = (0..k).map(|l| a(i, l) * b(l, j)).sum();
                    let want = was[at] - 0.1 * sum;
                    for is in &all {
                        let right = (is[at] - want).abs() < 1e-3;
                        assert!(right, "{dtype} {m}×{n}×{k}, turned {turned}: {} {want}", is[at]);
                    }
                }
            }
        }
    }
}

#[test]
fn a_long_kernel_stops_soon_after_it_is_told_to() {
    let n = 4 << 20;
    let slow = [ScalarOp::Erf, ScalarOp::Pow, ScalarOp::Erf, ScalarOp::Pow, ScalarOp::Erf];
    let (device, mut driver) =
        cpu::open(Options { capacity: Some(128 * MIB), threads: Some(2), isa: None });
    let region = driver.obtain(16 * n as u64).expect("memory");
    let range = |part: u64| DeviceRange::new(region.base() + part * 8 * n as u64, 8 * n as u64);
    let launch = device.prepare(&map(DType::F64, n, &slow)).expect("prepare");
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let outcome = launch.run(&[range(0), range(1)], &cancel);
            (outcome, Instant::now())
        });
        std::thread::sleep(Duration::from_millis(50));
        let told = Instant::now();
        cancel.store(true, Ordering::SeqCst);
        let (outcome, ended) = running.join().expect("no panic");
        assert_eq!(outcome, Err(LaunchError::Interrupted));
        let after = ended.duration_since(told);
        assert!(after < Duration::from_millis(500), "it ran on for {after:?}");
    });
    driver.release(region);
}
