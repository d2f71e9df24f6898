//! Convolutions: what their images do, where they read through views, and the bytes that they plan.

mod support;

use std::sync::Arc;
use support::random::Random;
use support::{Order, check_plan, close, execute, tolerance};
use vramlab_compiler::{Options, compile};
use vramlab_ir::kernel::Body;
use vramlab_ir::{Func, Program, evaluate, parse};

/// Compiles with and without fusion and runs both against the interpreter.
fn agrees(text: &str) -> Program {
    let func: Arc<Func> =
        Arc::new(parse(text, &vramlab_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}")));
    let inputs = support::random::arguments(&func, &mut Random::new(3));
    let wanted = evaluate(&func, &inputs).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for fuse in [false, true] {
        let options = Options { fuse, ..Options::default() };
        let program = compile(&func, &[], &options).expect("compiles");
        check_plan(&program);
        let order = Order { whole_rows: false, rows_backwards: fuse };
        for (got, wanted) in execute(&program, &inputs, order).iter().zip(&wanted) {
            assert!(close(got, wanted, tolerance(&func)), "{got}\nwanted {wanted}\n{program:#?}");
        }
    }
    compile(&func, &[], &Options::default()).expect("compiles")
}

fn conv(moves: &str, operands: &str, ty: &str) -> String {
    let [stride, low, high, x, w]: [&str; 5] =
        moves.split(' ').collect::<Vec<_>>().try_into().expect("five");
    let each = |value: &str| format!("({value}, {value})");
    format!(
        "conv[stride={}, low={}, high={}, x_dilation={}, w_dilation={}] {operands} : {ty}",
        each(stride),
        each(low),
        each(high),
        each(x),
        each(w)
    )
}

fn kernels(program: &Program) -> Vec<&'static str> {
    let name = |body: &Body| match body {
        Body::Conv(_) => "conv",
        Body::Rows(_) => "rows",
        _ => "other",
    };
    program.kernels.iter().map(|kernel| name(&kernel.body)).collect()
}

#[test]
fn what_comes_before_is_stored_and_what_comes_after_works_in_place() {
    let text = format!(
        "func f(%0: f32[2,6,6,3], %1: f32[3,3,3,4]) -> (f32[2,6,6,4]) {{\n  %2 = exp %0 : \
         f32[2,6,6,3]\n  %3 = {}\n  %4 = tanh %3 : f32[2,6,6,4]\n  return %4\n}}",
        conv("1 1 1 1 1", "%2 %1", "f32[2,6,6,4]")
    );
    let program = agrees(&text);
    assert_eq!(kernels(&program), ["rows", "conv", "rows"]);
    assert_eq!(program.temp_bytes, 2 * 6 * 6 * 3 * 4, "the exponentials alone");
}

#[test]
fn operands_are_read_through_transposes_and_flips() {
    // What the gradient of a convolution is made of.
    let text = format!(
        "func f(%0: f32[2,5,5,3], %1: f32[2,5,5,4], %2: f32[3,3,3,4]) -> (f32[3,3,3,4], \
         f32[2,5,5,3]) {{\n  %3 = transpose[perm=(3, 1, 2, 0)] %0 : f32[3,5,5,2]\n  %4 = \
         transpose[perm=(1, 2, 0, 3)] %1 : f32[5,5,2,4]\n  %5 = {}\n  %6 = transpose[perm=(1, 2, 0, \
         3)] %5 : f32[3,3,3,4]\n  %7 = flip[axes=(0, 1)] %2 : f32[3,3,3,4]\n  %8 = \
         transpose[perm=(0, 1, 3, 2)] %7 : f32[3,3,4,3]\n  %9 = {}\n  return %6 %9\n}}",
        conv("1 1 1 1 1", "%3 %4", "f32[3,3,3,4]"),
        conv("1 1 1 1 1", "%1 %8", "f32[2,5,5,3]")
    );
    let program = agrees(&text);
    // The filters' gradient is turned round once, as its axes are another order; nothing else moves.
    assert_eq!(kernels(&program).iter().filter(|kernel| **kernel == "conv").count(), 2);
    assert_eq!(kernels(&program).len(), 3, "{:?}", kernels(&program));
}

#[test]
fn strides_dilations_and_padding_on_both_sides() {
    for moves in ["2 1 0 1 1", "1 2 2 2 1", "2 -1 0 1 2", "3 0 1 2 1"] {
        for (x, w) in [(7, 2), (5, 1), (9, 3)] {
            let numbers: Vec<i64> = moves.split(' ').map(|n| n.parse().unwrap()).collect();
            let room = (x - 1) * numbers[3] + numbers[1] + numbers[2] - (w - 1) * numbers[4];
            let out = room / numbers[0] + 1;
            if out < 1 {
                continue;
            }
            let ty = format!("f32[2,{out},{out},3]");
            let text = format!(
                "func f(%0: f32[2,{x},{x},1], %1: f32[{w},{w},1,3]) -> ({ty}) {{\n  %2 = {}\n  return \
                 %2\n}}",
                conv(moves, "%0 %1", &ty)
            );
            agrees(&text);
        }
    }
}

#[test]
fn no_channels_give_zeros_and_no_examples_nothing() {
    let empty = |n: usize, c: usize| {
        let ty = format!("f32[{n},3,3,2]");
        format!(
            "func f(%0: f32[{n},3,3,{c}], %1: f32[1,1,{c},2]) -> ({ty}) {{\n  %2 = {}\n  return \
             %2\n}}",
            conv("1 0 0 1 1", "%0 %1", &ty)
        )
    };
    agrees(&empty(2, 0));
    agrees(&empty(0, 2));
}
