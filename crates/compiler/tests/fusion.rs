//! What becomes one kernel, what does not and why; each program also runs and is compared with the
//! interpreter.

mod support;

use std::sync::Arc;
use support::{Order, check_plan, close, execute, tolerance};
use vramlab_compiler::{Options, compile};
use vramlab_ir::interp::Tensor;
use vramlab_ir::kernel::{Body, Kernel, Place};
use vramlab_ir::{Func, Literal, Program, evaluate, parse};

fn arguments(func: &Func) -> Vec<Tensor> {
    let fill = |(seed, ty): (usize, vramlab_ir::Type)| {
        Tensor::fill(ty.clone(), |i| {
            Literal::from_f64(ty.dtype, ((i * 7 + seed * 5) % 11) as f64 * 0.5 - 2.0)
        })
        .unwrap()
    };
    func.param_types().into_iter().enumerate().map(fill).collect()
}

fn check_with(text: &str, donate: &[bool], options: &Options) -> Program {
    let func = Arc::new(parse(text, &vramlab_ops::lookup).unwrap());
    let program = compile(&func, donate, options).unwrap();
    check_plan(&program);
    let inputs = arguments(&func);
    let wanted = evaluate(&func, &inputs).unwrap();
    for whole_rows in [false, true] {
        let got = execute(&program, &inputs, Order { whole_rows, rows_backwards: whole_rows });
        for (got, wanted) in got.iter().zip(&wanted) {
            assert!(close(got, wanted, tolerance(&func)), "{:#?}", program.kernels);
        }
    }
    program
}

fn check(text: &str) -> Program {
    let donate = [false; 8];
    let params = text.split('(').nth(1).unwrap().matches(':').count();
    check_with(text, &donate[..params], &Options::default())
}

fn kernels(program: &Program, count: usize) {
    let names: Vec<&str> = program.kernels.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names.len(), count, "{names:?} {:#?}", program.notes);
}

#[test]
fn softmax() {
    let program = check(
        "func f(%0: f32[40,50]) -> (f32[40,50]) {
           %1 = max[axes=(1), keep=true] %0 : f32[40,1]
           %2 = sub %0 %1 : f32[40,50]
           %3 = exp %2 : f32[40,50]
           %4 = sum[axes=(1), keep=true] %3 : f32[40,1]
           %5 = div %3 %4 : f32[40,50]
           return %5
         }",
    );
    kernels(&program, 1);
    let Body::Rows(rows) = &program.kernels[0].body else { panic!("rows") };
    assert_eq!(rows.kept, 1, "the exponentials are kept, not computed twice");
}

#[test]
fn log_softmax() {
    let program = check(
        "func f(%0: f32[40,50]) -> (f32[40,50]) {
           %1 = max[axes=(1), keep=true] %0 : f32[40,1]
           %2 = sub %0 %1 : f32[40,50]
           %3 = exp %2 : f32[40,50]
           %4 = sum[axes=(1), keep=true] %3 : f32[40,1]
           %5 = log %4 : f32[40,1]
           %6 = sub %2 %5 : f32[40,50]
           return %6
         }",
    );
    kernels(&program, 1);
}

const LAYER_NORM: &str = "func f(%0: f32[6,40,64], %1: f32[64], %2: f32[64]) -> (f32[6,40,64]) {
   %3 = sum[axes=(2), keep=true] %0 : f32[6,40,1]
   %4 = full[value=64.0:f32, shape=[]] : f32[]
   %5 = div %3 %4 : f32[6,40,1]
   %6 = sub %0 %5 : f32[6,40,64]
   %7 = square %6 : f32[6,40,64]
   %8 = sum[axes=(2), keep=true] %7 : f32[6,40,1]
   %9 = div %8 %4 : f32[6,40,1]
   %10 = full[value=0.00001:f32, shape=[]] : f32[]
   %11 = add %9 %10 : f32[6,40,1]
   %12 = rsqrt %11 : f32[6,40,1]
   %13 = mul %6 %12 : f32[6,40,64]
   %14 = mul %13 %1 : f32[6,40,64]
   %15 = add %14 %2 : f32[6,40,64]
   return %15
 }";

#[test]
fn layer_norm() {
    kernels(&check(LAYER_NORM), 1);
}

#[test]
fn layer_norm_of_rows_too_long_to_keep() {
    let options = Options { max_kept_row_bytes: 128, ..Options::default() };
    let program = check_with(LAYER_NORM, &[false; 3], &options);
    assert!(program.kernels.len() > 1);
    assert!(
        program.notes.iter().any(|n| n.contains("longer than the 128 bytes")),
        "{:#?}",
        program.notes
    );
}

#[test]
fn mean_and_variance_of_rows() {
    let program = check(
        "func f(%0: f32[40,64]) -> (f32[40], f32[40]) {
           %1 = sum[axes=(1), keep=true] %0 : f32[40,1]
           %2 = full[value=64.0:f32, shape=[]] : f32[]
           %3 = div %1 %2 : f32[40,1]
           %4 = sub %0 %3 : f32[40,64]
           %5 = square %4 : f32[40,64]
           %6 = sum[axes=(1), keep=false] %5 : f32[40]
           %7 = div %6 %2 : f32[40]
           %8 = reshape[shape=[40]] %3 : f32[40]
           return %8 %7
         }",
    );
    kernels(&program, 1);
    assert_eq!(program.temp_bytes, 0);
}

#[test]
fn a_loss_with_a_bias_stores_no_intermediate() {
    let program = check(
        "func f(%0: f32[100,32], %1: f32[32], %2: f32[100,32]) -> (f32[]) {
           %3 = add %0 %1 : f32[100,32]
           %4 = sub %3 %2 : f32[100,32]
           %5 = square %4 : f32[100,32]
           %6 = sum[axes=(0, 1), keep=false] %5 : f32[]
           return %6
         }",
    );
    assert!(program.temp_bytes <= 400, "{} bytes", program.temp_bytes);
}

#[test]
fn reductions_of_one_array_share_its_reading() {
    let program = check(
        "func f(%0: f32[100,32]) -> (f32[100], f32[100]) {
           %1 = sum[axes=(1), keep=false] %0 : f32[100]
           %2 = max[axes=(1), keep=false] %0 : f32[100]
           return %1 %2
         }",
    );
    kernels(&program, 1);
    let program = check(
        "func f(%0: f32[100,32]) -> (f32[32], f32[32]) {
           %1 = sum[axes=(0), keep=false] %0 : f32[32]
           %2 = square %0 : f32[100,32]
           %3 = sum[axes=(0), keep=false] %2 : f32[32]
           return %1 %3
         }",
    );
    kernels(&program, 1);
    let program = check(
        "func f(%0: f32[100,32], %1: f32[32]) -> (f32[100,32], f32[100,32]) {
           %2 = add %0 %1 : f32[100,32]
           %3 = exp %0 : f32[100,32]
           return %2 %3
         }",
    );
    kernels(&program, 1);
}

#[test]
fn siblings_that_depend_on_each_other_stay_apart() {
    let program = check(
        "func f(%0: f32[100,32]) -> (f32[100,32], f32[100,32]) {
           %1 = exp %0 : f32[100,32]
           %2 = sum[axes=(0), keep=true] %1 : f32[1,32]
           %3 = div %0 %2 : f32[100,32]
           return %1 %3
         }",
    );
    assert!(program.kernels.len() >= 2);
}

#[test]
fn a_product_takes_bias_and_activation() {
    let program = check(
        "func f(%0: f32[4,5], %1: f32[3,5], %2: f32[3]) -> (f32[4,3]) {
           %3 = dot[lhs_batch=(), rhs_batch=(), lhs_contract=(1), rhs_contract=(1)] %0 %1 : f32[4,3]
           %4 = add %3 %2 : f32[4,3]
           %5 = tanh %4 : f32[4,3]
           return %5
         }",
    );
    kernels(&program, 1);
}

#[test]
fn attention_reads_through_its_transposes() {
    let program = check(
        "func f(%0: f32[2,6,3,4], %1: f32[2,6,3,4]) -> (f32[2,3,6,6]) {
           %2 = transpose[perm=(0, 2, 1, 3)] %0 : f32[2,3,6,4]
           %3 = transpose[perm=(0, 2, 1, 3)] %1 : f32[2,3,6,4]
           %4 = dot[lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3), rhs_contract=(3)] %2 %3 : f32[2,3,6,6]
           return %4
         }",
    );
    kernels(&program, 1);
}

#[test]
fn an_epilogue_of_several_batches() {
    let program = check(
        "func f(%0: f32[2,3,4], %1: f32[2,4,5], %2: f32[2,1,5]) -> (f32[2,3,5]) {
           %3 = dot[lhs_batch=(0), rhs_batch=(0), lhs_contract=(2), rhs_contract=(1)] %0 %1 : f32[2,3,5]
           %4 = add %3 %2 : f32[2,3,5]
           %5 = iota[dtype=f32, shape=[2,3,5], axis=2] : f32[2,3,5]
           %6 = mul %4 %5 : f32[2,3,5]
           return %6
         }",
    );
    kernels(&program, 1);
}

#[test]
fn an_update_of_a_donated_array_works_in_place() {
    let text = "func f(%0: f32[10,4], %1: i32[]) -> (f32[10,4]) {
           %2 = full[value=0:i32, shape=[]] : i32[]
           %3 = dynamic_slice[sizes=[2,4]] %0 %1 %2 : f32[2,4]
           %4 = exp %3 : f32[2,4]
           %5 = dynamic_update_slice %0 %4 %1 %2 : f32[10,4]
           return %5
         }";
    let donated = check_with(text, &[true, false], &Options::default());
    kernels(&donated, 1);
    assert_eq!(donated.temp_bytes, 0);
    assert!(donated.donations[0].used);
    let borrowed = check_with(text, &[false, false], &Options::default());
    kernels(&borrowed, 2);
}

#[test]
fn a_chain_of_updates_copies_once() {
    let program = check(
        "func f(%0: f32[10], %1: f32[2], %2: i32[], %3: i32[]) -> (f32[10]) {
           %4 = dynamic_update_slice %0 %1 %2 : f32[10]
           %5 = dynamic_update_slice %4 %1 %3 : f32[10]
           return %5
         }",
    );
    kernels(&program, 3);
    assert_eq!(program.temp_bytes, 0);
}

#[test]
fn an_update_whose_operand_is_read_later_copies() {
    let program = check_with(
        "func f(%0: f32[10], %1: f32[2], %2: i32[]) -> (f32[10], f32[]) {
           %3 = exp %0 : f32[10]
           %4 = dynamic_update_slice %3 %1 %2 : f32[10]
           %5 = sum[axes=(0), keep=false] %4 : f32[]
           %6 = mul %3 %5 : f32[10]
           return %6 %5
         }",
        &[false; 3],
        &Options { fuse: false, ..Options::default() },
    );
    assert!(program.kernels.len() >= 4);
}

#[test]
fn parts_are_computed_where_they_belong() {
    let program = check(
        "func f(%0: f32[4,3], %1: f32[2,3]) -> (f32[6,3]) {
           %2 = exp %0 : f32[4,3]
           %3 = neg %1 : f32[2,3]
           %4 = concatenate[axis=0] %2 %3 : f32[6,3]
           return %4
         }",
    );
    kernels(&program, 2);
    assert_eq!(program.temp_bytes, 0);
}

#[test]
fn rows_of_few_columns_are_walked_the_long_way() {
    let program = check(
        "func f(%0: f32[6000,3], %1: f32[3]) -> (f32[6000,3]) {
           %2 = add %0 %1 : f32[6000,3]
           %3 = iota[dtype=f32, shape=[6000,3], axis=0] : f32[6000,3]
           %4 = mul %2 %3 : f32[6000,3]
           return %4
         }",
    );
    let Body::Rows(rows) = &program.kernels[0].body else { panic!("rows") };
    assert!(rows.columns >= 256, "{} columns", rows.columns);
}

#[test]
fn a_copy_is_a_copy() {
    let program = check(
        "func f(%0: f32[8]) -> (f32[8], f32[8]) {
           %1 = identity %0 : f32[8]
           %2 = tanh %0 : f32[8]
           return %1 %2
         }",
    );
    assert_eq!(program.fresh_bytes, [32, 32]);
}

#[test]
fn what_stands_behind_a_barrier_is_computed_again() {
    let tanhs = |kernels: &[Kernel]| format!("{kernels:?}").matches("op: Tanh").count();
    let same = check(
        "func f(%0: f32[8]) -> (f32[8]) {
           %1 = tanh %0 : f32[8]
           %2 = tanh %0 : f32[8]
           %3 = sub %1 %2 : f32[8]
           return %3
         }",
    );
    assert_eq!(tanhs(&same.kernels), 1);
    let program = check_with(
        "func f(%0: f32[8]) -> (f32[8]) {
           %1 = tanh %0 : f32[8]
           %2 = identity %0 : f32[8]
           %3 = tanh %2 : f32[8]
           %4 = sub %1 %3 : f32[8]
           return %4
         }",
        &[false],
        &Options { fuse: false, ..Options::default() },
    );
    assert_eq!(tanhs(&program.kernels), 2);
}

#[test]
fn constants_fold_and_neutral_arithmetic_vanishes() {
    let program = check(
        "func f(%0: f32[8]) -> (f32[8]) {
           %1 = full[value=2.0:f32, shape=[]] : f32[]
           %2 = full[value=0.5:f32, shape=[]] : f32[]
           %3 = mul %1 %2 : f32[]
           %4 = mul %0 %3 : f32[8]
           %5 = transpose[perm=(0)] %4 : f32[8]
           return %5
         }",
    );
    kernels(&program, 0);
}

#[test]
fn positive_zero_is_not_neutral() {
    let program = check(
        "func f(%0: f32[8]) -> (f32[8]) {
           %1 = full[value=0.0:f32, shape=[]] : f32[]
           %2 = add %0 %1 : f32[8]
           return %2
         }",
    );
    kernels(&program, 1);
}

#[test]
fn a_costly_broadcast_is_computed_once() {
    let program = check(
        "func f(%0: f32[64], %1: f32[100,64]) -> (f32[100,64]) {
           %2 = exp %0 : f32[64]
           %3 = mul %1 %2 : f32[100,64]
           return %3
         }",
    );
    kernels(&program, 2);
    assert!(program.notes.iter().any(|n| n.contains("100 times over")), "{:?}", program.notes);
    assert!(matches!(program.slots.last().unwrap().place, Place::Result { .. }));
}

#[test]
fn arrays_of_many_axes_compile() {
    let shape = |dims: &[usize]| format!("{dims:?}").replace(' ', "");
    let dims = [2; 16];
    let reversed: Vec<String> = (0..16).rev().map(|a| a.to_string()).collect();
    let mut row = [1; 16];
    row.iter_mut().step_by(2).for_each(|d| *d = 2);
    let (s, r, perm) = (shape(&dims), shape(&row), reversed.join(", "));
    let text = format!(
        "func f(%0: f32{s}, %1: f32{r}) -> (f32{s}) {{
           %2 = transpose[perm=({perm})] %0 : f32{s}
           %3 = exp %2 : f32{s}
           %4 = add %3 %1 : f32{s}
           return %4
         }}"
    );
    let func = Arc::new(parse(&text, &vramlab_ops::lookup).unwrap());
    let program = compile(&func, &[false; 2], &Options::default()).unwrap();
    let inputs = arguments(&func);
    let wanted = evaluate(&func, &inputs).unwrap();
    let order = Order { whole_rows: false, rows_backwards: false };
    assert!(close(&execute(&program, &inputs, order)[0], &wanted[0], 1e-4));
}

#[test]
fn cross_entropy_is_one_kernel_and_a_sum() {
    let program = check(
        "func f(%0: f32[100,32], %1: i32[100,1]) -> (f32[]) {
           %2 = max[axes=(1), keep=true] %0 : f32[100,1]
           %3 = sub %0 %2 : f32[100,32]
           %4 = exp %3 : f32[100,32]
           %5 = sum[axes=(1), keep=true] %4 : f32[100,1]
           %6 = log %5 : f32[100,1]
           %7 = sub %3 %6 : f32[100,32]
           %8 = iota[dtype=i32, shape=[100,32], axis=1] : i32[100,32]
           %9 = eq %8 %1 : bool[100,32]
           %10 = convert[dtype=f32] %9 : f32[100,32]
           %11 = mul %7 %10 : f32[100,32]
           %12 = sum[axes=(0, 1), keep=false] %11 : f32[]
           %13 = neg %12 : f32[]
           return %13
         }",
    );
    kernels(&program, 2);
    assert!(program.temp_bytes <= 400);
}

#[test]
fn batch_norm_reads_its_input_three_times() {
    let program = check(
        "func f(%0: f32[96,32]) -> (f32[96,32]) {
           %1 = sum[axes=(0), keep=true] %0 : f32[1,32]
           %2 = full[value=96.0:f32, shape=[]] : f32[]
           %3 = div %1 %2 : f32[1,32]
           %4 = sub %0 %3 : f32[96,32]
           %5 = square %4 : f32[96,32]
           %6 = sum[axes=(0), keep=true] %5 : f32[1,32]
           %7 = div %6 %2 : f32[1,32]
           %8 = rsqrt %7 : f32[1,32]
           %9 = mul %4 %8 : f32[96,32]
           return %9
         }",
    );
    kernels(&program, 5);
    assert!(program.temp_bytes <= 4 * 128);
}

#[test]
fn reductions_of_transposed_arrays_walk_memory_in_order() {
    let program = check(
        "func f(%0: f32[40,60]) -> (f32[60], f32[40]) {
           %1 = transpose[perm=(1, 0)] %0 : f32[60,40]
           %2 = sum[axes=(1), keep=false] %1 : f32[60]
           %3 = sum[axes=(0), keep=false] %1 : f32[40]
           return %2 %3
         }",
    );
    let unit = |access: &vramlab_ir::kernel::Access| access.strides.last() == Some(&1);
    for kernel in &program.kernels {
        match &kernel.body {
            Body::Rows(rows) => assert!(rows.reads.iter().all(unit)),
            Body::Columns(columns) => assert!(columns.reads.iter().all(unit)),
            _ => unreachable!(),
        }
    }
}
