//! The device from outside: obtain, upload, launch, download.

use std::sync::atomic::AtomicBool;
use vramlab_device::cpu::{self, Isa, Options};
use vramlab_device::{Device, DeviceRange, LaunchError};
use vramlab_ir::kernel::{Access, Body, LoopInst, Per, RowLoop, Sink, Stage};
use vramlab_ir::{DType, Inst, Kernel, Literal, Reg, ScalarOp};
use vramlab_memory::MIB;

fn dense(buffer: u32, columns: usize) -> Access {
    let strides = vec![columns as isize, 1];
    Access { buffer, dtype: DType::F32, offset: 0, strides, starts: Vec::new() }
}

fn op(op: ScalarOp, args: &[u32]) -> LoopInst {
    let args = args.iter().map(|&reg| Reg(reg)).collect();
    LoopInst::Scalar(Inst::Op { op, dtype: DType::F32, args })
}

fn input(input: u32) -> LoopInst {
    LoopInst::Scalar(Inst::Input { input, dtype: DType::F32 })
}

/// tanh(a·b + c) · 2 over `rows` × `columns`.
fn kernel(rows: usize, columns: usize) -> Kernel {
    let insts = vec![
        input(0),
        input(1),
        input(2),
        op(ScalarOp::Mul, &[0, 1]),
        op(ScalarOp::Add, &[3, 2]),
        op(ScalarOp::Tanh, &[4]),
        LoopInst::Scalar(Inst::Const(Literal::from_f64(DType::F32, 2.0))),
        op(ScalarOp::Mul, &[5, 6]),
    ];
    let stage =
        Stage { per: Per::Columns, insts, sinks: vec![Sink::Store { write: 0, reg: Reg(7) }] };
    let body = Body::Rows(RowLoop {
        outer: vec![rows],
        columns,
        reads: (0..3).map(|buffer| dense(buffer, columns)).collect(),
        writes: vec![dense(3, columns)],
        stages: vec![stage],
        kept: 0,
        row_scalars: 0,
    });
    let name = "mul_add_tanh_mul".to_owned();
    Kernel { name, buffers: vec![0, 1, 2, 3], body, bytes_read: 0, bytes_written: 0, flops: 0 }
}

#[test]
fn a_map_runs_on_memory_of_the_leaf_with_every_instruction_set() {
    for isa in Isa::ALL {
        let options = Options { capacity: Some(64 * MIB), threads: Some(2), isa: Some(isa) };
        let (device, mut driver) = cpu::open(options);
        for (rows, columns) in [(1, 1), (1, 64), (3, 1000), (7, 5), (1, 300_001), (0, 4), (4, 0)] {
            let n = rows * columns;
            let values = |k: usize| -> Vec<f32> {
                (0..n).map(|i| ((i * 7 + k * 13) % 101) as f32 / 50.0 - 1.0).collect()
            };
            let regions: Vec<_> =
                (0..4).map(|_| driver.obtain(4 * n.max(1) as u64).expect("memory")).collect();
            let range = |i: usize| DeviceRange::new(regions[i].base(), 4 * n as u64);
            let inputs: Vec<Vec<f32>> = (0..3).map(values).collect();
            for (i, input) in inputs.iter().enumerate() {
                let bytes: Vec<u8> = input.iter().flat_map(|x| x.to_le_bytes()).collect();
                device.upload(range(i), &bytes).expect("upload");
            }
            let launch = device.prepare(&kernel(rows, columns)).expect("prepare");
            let buffers: Vec<DeviceRange> = (0..4).map(range).collect();
            launch.run(&buffers, &AtomicBool::new(false)).expect("run");
            let mut bytes = vec![0; 4 * n];
            device.download(range(3), &mut bytes).expect("download");
            for (i, got) in bytes.chunks_exact(4).enumerate() {
                let got = f32::from_le_bytes([got[0], got[1], got[2], got[3]]) as f64;
                let [a, b, c] = [0, 1, 2].map(|k| inputs[k][i] as f64);
                let want = (a * b + c).tanh() * 2.0;
                assert!((got - want).abs() < 1e-6, "{isa:?} {rows}×{columns} at {i}: {got} {want}");
            }
            for region in regions {
                driver.release(region);
            }
        }
    }
}

#[test]
fn a_buffer_that_is_too_short_is_an_error_and_not_a_crash() {
    let (device, mut driver) = cpu::open(Options { capacity: Some(MIB), ..Options::default() });
    let region = driver.obtain(4096).expect("memory");
    let launch = device.prepare(&kernel(8, 128)).expect("prepare");
    let cancel = AtomicBool::new(false);
    let whole = DeviceRange::new(region.base(), 4096);
    let short = DeviceRange::new(region.base(), 4092);
    launch.run(&[whole; 4], &cancel).expect("in place over one buffer");
    let fault = launch.run(&[whole, whole, short, whole], &cancel);
    assert!(
        matches!(fault, Err(LaunchError::OutOfBounds { buffer: 2, last: 1023, .. })),
        "{fault:?}"
    );
    let outside = DeviceRange::new(region.base() + (1 << 40), 4096);
    let fault = launch.run(&[whole, whole, outside, whole], &cancel);
    assert!(matches!(fault, Err(LaunchError::Outside { .. })), "{fault:?}");
    let fault = launch.run(&[whole; 3], &cancel);
    assert!(matches!(fault, Err(LaunchError::Malformed { .. })), "{fault:?}");
    cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(launch.run(&[whole; 4], &cancel), Err(LaunchError::Interrupted));
    driver.release(region);
}

/// An array read through an index by several stages is still no longer than its index allows.
#[test]
fn gathers_of_one_array_in_several_stages_stay_inside() {
    let gather = |reg: u32| {
        vec![
            LoopInst::Scalar(Inst::Index { axis: 1 }),
            LoopInst::Gather { read: 0, index: Reg(0), limit: 15, stride: 1 },
            op(ScalarOp::Add, &[1, reg]),
        ]
    };
    let stage = |write| Stage {
        per: Per::Columns,
        insts: gather(1),
        sinks: vec![Sink::Store { write, reg: Reg(2) }],
    };
    let still = Access { strides: vec![0, 0], ..dense(0, 16) };
    let body = Body::Rows(RowLoop {
        outer: vec![1],
        columns: 16,
        reads: vec![still],
        writes: vec![dense(1, 16), dense(2, 16)],
        stages: vec![stage(0), stage(1)],
        kept: 0,
        row_scalars: 0,
    });
    let name = "gather_add".to_owned();
    let kernel =
        Kernel { name, buffers: vec![0, 1, 2], body, bytes_read: 0, bytes_written: 0, flops: 0 };
    let (device, mut driver) = cpu::open(Options { capacity: Some(MIB), ..Options::default() });
    let region = driver.obtain(4096).expect("memory");
    let ranges = [0, 64, 128].map(|at| DeviceRange::new(region.base() + at, 64));
    let launch = device.prepare(&kernel).expect("prepare");
    launch.run(&ranges, &AtomicBool::new(false)).expect("every element lies inside");
    driver.release(region);
}
