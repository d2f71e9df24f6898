//! Kernels over whole arrays: running sums and scatter-add, on any number of threads.

use crate::support::{execute, launch};
use vramlab_device::cpu::Isa;
use vramlab_ir::kernel::{Body, Cumulative, Scatter};
use vramlab_ir::{DType, Kernel, Literal, ReduceKind};

pub fn kernel(buffers: u32, body: Body) -> Kernel {
    let buffers = (0..buffers).collect();
    Kernel { name: "whole".into(), buffers, body, bytes_read: 0, bytes_written: 0, flops: 0 }
}

/// Small whole numbers, so that any order of additions gives the same bits.
fn numbers(dtype: DType, count: usize, low: i64, seed: usize) -> Vec<u8> {
    let value = |i: usize| Literal::from_i64(dtype, low + ((i * 7 + seed) % 5) as i64);
    (0..count).flat_map(|i| value(i).to_bytes().into_iter().take(dtype.size())).collect()
}

#[test]
fn running_sums_walk_every_axis() {
    for dtype in [DType::U8, DType::I32, DType::F32, DType::F64] {
        for kind in [ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min] {
            for (outer, length, inner) in [(1, 9, 1), (3, 4, 70), (2, 1, 3), (0, 3, 2), (130, 5, 1)]
            {
                for (reverse, write) in [(false, 1), (true, 1), (true, 0)] {
                    let body =
                        Cumulative { kind, dtype, reverse, outer, length, inner, read: 0, write };
                    let image = kernel(2, Body::Cumulative(body));
                    let count = outer * length * inner;
                    let mut wanted = vec![numbers(dtype, count, 0, 1), numbers(dtype, count, 1, 2)];
                    let got = launch(&image, &wanted, 3, Isa::best()).expect("runs");
                    execute(&image, &mut wanted);
                    assert_eq!(got, wanted, "{image:?}");
                }
            }
        }
    }
}

#[test]
fn a_long_sum_keeps_its_digits() {
    let (outer, length, inner) = (1, 1 << 20, 1);
    let kind = ReduceKind::Sum;
    let body = Cumulative {
        kind,
        dtype: DType::F32,
        reverse: false,
        outer,
        length,
        inner,
        read: 0,
        write: 1,
    };
    let tenth = 0.1f32.to_le_bytes().repeat(length);
    let image = kernel(2, Body::Cumulative(body));
    let got = launch(&image, &vec![tenth.clone(), tenth], 2, Isa::best()).expect("runs");
    let last = f32::from_le_bytes(got[1][4 * (length - 1)..].try_into().expect("four bytes"));
    let exact = 0.1f32 as f64 * length as f64;
    assert!((last as f64 - exact).abs() <= exact * 1e-7, "{last} where {exact} is right");
}

#[test]
fn scatters_add_in_order_and_clamp() {
    for dtype in [DType::U8, DType::I32, DType::F16, DType::BF16, DType::F32, DType::F64] {
        for (outer, extent, count, inner) in
            [(1, 4, 9, 1), (3, 2, 5, 6), (2, 1, 3, 5000), (2, 3, 0, 2), (1, 0, 0, 2)]
        {
            let body =
                Scatter { dtype, outer, extent, count, inner, indices: 0, updates: 1, write: 2 };
            let image = kernel(3, Body::Scatter(body));
            let mut wanted = vec![
                numbers(DType::I32, count, -1, 3),
                numbers(dtype, outer * count * inner, 0, 1),
                numbers(dtype, outer * extent * inner, 0, 2),
            ];
            let got = launch(&image, &wanted, 3, Isa::best()).expect("runs");
            execute(&image, &mut wanted);
            assert_eq!(got, wanted, "{image:?}");
        }
    }
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let body = Scatter {
        dtype: DType::F32,
        outer: 1,
        extent: 4,
        count: 3,
        inner: 2,
        indices: 0,
        updates: 1,
        write: 2,
    };
    let image = kernel(3, Body::Scatter(body));
    for short in 0..3 {
        let mut buffers = vec![vec![0; 12], vec![0; 24], vec![0; 32]];
        buffers[short].truncate(8);
        let error = launch(&image, &buffers, 1, Isa::best()).expect_err("it does not fit");
        assert!(error.to_string().contains(&format!("of buffer {short}")), "{error}");
    }
}
