//! Small programs from text, run from their kernel images and compared with the interpreter.

mod support;

use std::sync::Arc;
use support::{Order, close, execute};
use vramlab_compiler::{Options, compile};
use vramlab_ir::interp::Tensor;
use vramlab_ir::{Literal, Program, evaluate, parse};

fn arguments(program: &vramlab_ir::Func) -> Vec<Tensor> {
    let types = program.param_types();
    let fill = |(seed, ty): (usize, vramlab_ir::Type)| {
        Tensor::fill(ty.clone(), |i| {
            Literal::from_f64(ty.dtype, ((i * 7 + seed * 5) % 11) as f64 * 0.5 - 2.0)
        })
        .unwrap()
    };
    types.into_iter().enumerate().map(fill).collect()
}

fn check(text: &str, donate: &[bool]) -> Program {
    let func = Arc::new(parse(text, &vramlab_ops::lookup).unwrap());
    let program = compile(&func, donate, &Options::default()).unwrap();
    let inputs = arguments(&func);
    let wanted = evaluate(&func, &inputs).unwrap();
    for whole_rows in [false, true] {
        let got = execute(&program, &inputs, Order { whole_rows, rows_backwards: whole_rows });
        for (got, wanted) in got.iter().zip(&wanted) {
            assert!(close(got, wanted), "got {got}\nwanted {wanted}\n{:#?}", program.kernels);
        }
    }
    program
}

#[test]
fn a_chain_is_one_kernel() {
    let program = check(
        "func f(%0: f32[4,3], %1: f32[3]) -> (f32[4,3]) {
           %2 = add %0 %1 : f32[4,3]
           %3 = tanh %2 : f32[4,3]
           %4 = mul %3 %0 : f32[4,3]
           return %4
         }",
        &[true, false],
    );
    assert_eq!(program.kernels.len(), 1);
    assert_eq!(program.temp_bytes, 0);
    assert!(program.donations[0].used);
}

#[test]
fn softmax_is_one_kernel() {
    let program = check(
        "func f(%0: f32[4,5]) -> (f32[4,5]) {
           %1 = max[axes=(1), keep=true] %0 : f32[4,1]
           %2 = sub %0 %1 : f32[4,5]
           %3 = exp %2 : f32[4,5]
           %4 = sum[axes=(1), keep=true] %3 : f32[4,1]
           %5 = div %3 %4 : f32[4,5]
           return %5
         }",
        &[false],
    );
    assert_eq!(program.kernels.len(), 1, "{:#?}", program.notes);
}

#[test]
fn a_product_takes_its_epilogue() {
    let program = check(
        "func f(%0: f32[4,5], %1: f32[3,5], %2: f32[3]) -> (f32[4,3]) {
           %3 = dot[lhs_batch=(), rhs_batch=(), lhs_contract=(1), rhs_contract=(1)] %0 %1 : f32[4,3]
           %4 = add %3 %2 : f32[4,3]
           %5 = tanh %4 : f32[4,3]
           return %5
         }",
        &[false, false, false],
    );
    assert_eq!(program.kernels.len(), 1, "{:#?}", program.notes);
}
