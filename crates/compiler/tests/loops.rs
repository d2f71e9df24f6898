//! Loops and branches: what their images do, and the bytes that they plan.

mod support;

use std::sync::Arc;
use support::random::Random;
use support::{Order, check_plan, close, execute, tolerance};
use vramlab_compiler::{Options, compile};
use vramlab_ir::kernel::{Body, Loop};
use vramlab_ir::{Func, Program, evaluate, parse};

const MIB: u64 = 1 << 20;

fn func(text: &str) -> Arc<Func> {
    Arc::new(parse(text, &vramlab_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}")))
}

fn compiled(text: &str, donate: &[bool]) -> Program {
    let program = compile(&func(text), donate, &Options::default()).expect("compiles");
    check_plan(&program);
    program
}

/// Compiles with every mask of donations, and runs each against the interpreter.
fn agrees(text: &str) -> Program {
    let func = func(text);
    let mut random = Random::new(3);
    let inputs = support::random::arguments(&func, &mut random);
    let wanted = evaluate(&func, &inputs).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for fuse in [false, true] {
        for mask in 0..1u32 << func.params.len() {
            let donate: Vec<bool> = (0..func.params.len()).map(|i| mask >> i & 1 == 1).collect();
            let options = Options { fuse, ..Options::default() };
            let program = compile(&func, &donate, &options).expect("compiles");
            check_plan(&program);
            for whole_rows in [false, true] {
                let order = Order { whole_rows, rows_backwards: whole_rows };
                let got = execute(&program, &inputs, order);
                for (at, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
                    assert!(
                        close(got, wanted, tolerance(&func)),
                        "result {at} with {donate:?}: got {got}\nwanted {wanted}\n{program:#?}"
                    );
                }
            }
        }
    }
    compile(&func, &[], &Options::default()).expect("compiles")
}

fn the_loop(program: &Program) -> &Loop {
    let found = program.kernels.iter().find_map(|kernel| match &kernel.body {
        Body::Loop(body) => Some(body),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no loop in {program:#?}"))
}

fn scan(body: &str, length: usize, consts: usize, carries: usize, rest: &str) -> String {
    format!(
        "scan[body={{ {body} }}, length={length}, consts={consts}, carries={carries}, \
         reverse=false] {rest}"
    )
}

#[test]
fn a_scan_carries_and_stacks() {
    let body = "func b(%0: f32[], %1: f32[3], %2: f32[3]) -> (f32[3], f32[3], f32[]) {
        %3 = mul %1 %0 : f32[3]
        %4 = add %3 %2 : f32[3]
        %5 = sum[axes=(0), keep=false] %4 : f32[]
        return %4 %3 %5
    }";
    for length in [0, 1, 2, 5] {
        let looped =
            scan(body, length, 1, 1, &format!("%0 %1 %2 : f32[3], f32[{length},3], f32[{length}]"));
        agrees(&format!(
            "func f(%0: f32[], %1: f32[3], %2: f32[{length},3]) -> (f32[3], f32[{length},3], \
             f32[{length}]) {{ %3 %4 %5 = {looped} return %3 %4 %5 }}"
        ));
    }
}

#[test]
fn carries_that_change_places_are_not_moved() {
    let body = "func b(%0: f32[3], %1: f32[3], %2: f32[3]) -> (f32[3], f32[3], f32[3]) {
        %3 = sin %2 : f32[3]
        return %1 %3 %0
    }";
    for length in 2..6 {
        let looped = scan(body, length, 0, 3, "%0 %1 %2 : f32[3], f32[3], f32[3]");
        let program = agrees(&format!(
            "func f(%0: f32[3], %1: f32[3], %2: f32[3]) -> (f32[3], f32[3], f32[3]) {{
             %3 %4 %5 = {looped} return %3 %4 %5 }}"
        ));
        let body = the_loop(&program);
        assert_eq!(body.body.kernels.len(), 1, "{program:#?}");
        assert_eq!(program.temp_bytes, 0, "{program:#?}");
    }
}

#[test]
fn values_returned_twice_and_constants_returned_are_copied() {
    let body = "func b(%0: f32[3], %1: f32[3], %2: f32[3], %3: f32[3]) \
                -> (f32[3], f32[3], f32[3], f32[3]) {
        %4 = tanh %1 : f32[3]
        %5 = add %4 %3 : f32[3]
        return %4 %4 %0 %5
    }";
    let looped = scan(body, 4, 1, 3, "%0 %1 %2 %3 : f32[3], f32[3], f32[3], f32[4,3]");
    let program = agrees(&format!(
        "func f(%0: f32[3], %1: f32[3], %2: f32[3], %3: f32[3]) \
         -> (f32[3], f32[3], f32[3], f32[4,3]) {{ %4 %5 %6 %7 = {looped} return %4 %5 %6 %7 }}"
    ));
    let copies = program.notes.iter().filter(|n| n.contains("copied in every iteration")).count();
    assert_eq!(copies, 2, "{:?}", program.notes);
}

#[test]
fn one_value_may_begin_two_carries() {
    let body = "func b(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3]) {
        %2 = sin %0 : f32[3]
        %3 = add %1 %2 : f32[3]
        return %2 %3
    }";
    let looped = scan(body, 3, 0, 2, "%0 %0 : f32[3], f32[3]");
    agrees(&format!("func f(%0: f32[3]) -> (f32[3], f32[3]) {{ %1 %2 = {looped} return %1 %2 }}"));
}

#[test]
fn ranges_are_computed_in_the_body() {
    let body = "func b(%0: f32[2], %1: i32[], %2: f32[2]) -> (f32[2], i32[]) {
        %3 = convert[dtype=f32] %1 : f32[]
        %4 = mul %0 %3 : f32[2]
        %5 = add %4 %2 : f32[2]
        return %5 %1
    }";
    let looped = scan(body, 4, 0, 1, "%0 %1 %2 : f32[2], i32[4]");
    let program = agrees(&format!(
        "func f(%0: f32[2]) -> (f32[2], i32[4]) {{
         %1 = iota[dtype=i32, shape=[4], axis=0] : i32[4]
         %2 = iota[dtype=f32, shape=[4,2], axis=1] : f32[4,2]
         %3 %4 = {looped}
         return %3 %4 }}"
    ));
    assert_eq!(program.kernels.len(), 1, "{program:#?}");
}

#[test]
fn loops_hold_loops_and_branches() {
    let inner = "func i(%0: f32[2], %1: f32[2], %2: f32[2]) -> (f32[2], f32[]) {
        %3 = mul %1 %2 : f32[2]
        %4 = add %3 %0 : f32[2]
        %5 = sum[axes=(0), keep=false] %4 : f32[]
        return %4 %5
    }";
    let inner = scan(inner, 3, 1, 1, "%0 %1 %2 : f32[2], f32[3]");
    let outer = format!(
        "func o(%0: f32[2], %1: f32[2], %2: f32[3,2]) -> (f32[2], f32[3]) {{
        %3 %4 = {inner}
        %5 = full[value=0.0:f32, shape=[]] : f32[]
        %6 = sum[axes=(0), keep=false] %3 : f32[]
        %7 = gt %6 %5 : bool[]
        %8 = cond[on_true={{ func t(%0: f32[2], %1: f32[2]) -> (f32[2]) {{
            %2 = sub %0 %1 : f32[2] return %2 }} }},
            on_false={{ func e(%0: f32[2], %1: f32[2]) -> (f32[2]) {{ return %0 }} }}]
            %7 %3 %0 : f32[2]
        return %8 %4 }}"
    );
    let looped = scan(&outer, 4, 1, 1, "%0 %1 %2 : f32[2], f32[4,3]");
    agrees(&format!(
        "func f(%0: f32[2], %1: f32[2], %2: f32[4,3,2]) -> (f32[2], f32[4,3]) {{
         %3 %4 = {looped} return %3 %4 }}"
    ));
}

#[test]
fn a_while_loop_ends_in_its_results() {
    for (a, b) in [("%1", "%3"), ("%3", "%1"), ("%3", "%4")] {
        agrees(&format!(
            "func f(%0: f32[3], %1: f32[3], %2: i32[]) -> (f32[3], f32[3], i32[]) {{
             %3 = full[value=5:i32, shape=[]] : i32[]
             %4 %5 %6 = while[cond={{ func c(%0: i32[], %1: f32[3], %2: f32[3], %3: i32[]) \
             -> (bool[]) {{ %4 = lt %3 %0 : bool[] return %4 }} }},
             body={{ func b(%0: f32[3], %1: f32[3], %2: i32[]) -> (f32[3], f32[3], i32[]) {{
               %3 = sin %0 : f32[3]
               %4 = cos %1 : f32[3]
               %5 = full[value=1:i32, shape=[]] : i32[]
               %6 = add %2 %5 : i32[]
               return {a} {b} %6 }} }}, cond_consts=1, body_consts=0] %3 %0 %1 %2 \
             : f32[3], f32[3], i32[]
             return %4 %5 %6 }}"
        ));
    }
}

#[test]
fn a_branch_works_in_the_buffer_that_ends_there() {
    let text = |n: usize| {
        format!(
            "func f(%0: bool[], %1: f32[{n}]) -> (f32[{n}]) {{
             %2 = exp %1 : f32[{n}]
             %3 = cond[on_true={{ func t(%0: f32[{n}]) -> (f32[{n}]) {{
                %1 = sin %0 : f32[{n}] return %1 }} }},
                on_false={{ func e(%0: f32[{n}]) -> (f32[{n}]) {{ return %0 }} }}] %0 %2 : f32[{n}]
             return %3 }}"
        )
    };
    agrees(&text(3));
    let program = compiled(&text(1 << 20), &[false, true]);
    assert_eq!(program.temp_bytes, 0, "{:#?}", program.slots);
    assert_eq!(program.peak_bytes, 1 + 4 * MIB);
}

#[test]
fn what_nobody_reads_is_not_computed() {
    let body = "func b(%0: f32[3], %1: f32[3], %2: f32[3], %3: f32[3]) \
                -> (f32[3], f32[3], f32[3], f32[3]) {
        %4 = sin %0 : f32[3]
        %5 = add %1 %3 : f32[3]
        %6 = cos %5 : f32[3]
        return %4 %5 %2 %6
    }";
    let looped = scan(body, 4, 0, 3, "%0 %1 %2 %3 : f32[3], f32[3], f32[3], f32[4,3]");
    let program = agrees(&format!(
        "func f(%0: f32[3], %1: f32[3], %2: f32[3], %3: f32[4,3]) -> (f32[3], f32[3]) {{
         %4 %5 %6 %7 = {looped} return %4 %6 }}"
    ));
    let body = the_loop(&program);
    assert_eq!((body.inits.len(), body.arguments.len()), (1, 1), "{program:#?}");
}

/// A donated argument through exp, a loop and a product: all of it in one buffer.
#[test]
fn plan_donated_exp() {
    let n = 1 << 22;
    let body = format!(
        "func b(%0: f32[{n}]) -> (f32[{n}]) {{
        %1 = full[value=0.5:f32, shape=[]] : f32[]
        %2 = mul %0 %1 : f32[{n}]
        return %2 }}"
    );
    let looped = scan(&body, 10, 0, 1, &format!("%1 : f32[{n}]"));
    let program = compiled(
        &format!(
            "func f(%0: f32[{n}]) -> (f32[{n}]) {{
             %1 = exp %0 : f32[{n}]
             %2 = {looped}
             %3 = full[value=2.0:f32, shape=[]] : f32[]
             %4 = mul %2 %3 : f32[{n}]
             return %4 }}"
        ),
        &[true],
    );
    assert_eq!(program.temp_bytes, 0, "{:#?}", program.slots);
    assert_eq!(program.peak_bytes, 16 * MIB);
    assert!(program.donations[0].used);
    assert_eq!(program.kernels.len(), 3);
}

/// The same with a loop that reads the array as a constant and carries a number.
#[test]
fn plan_donated_exp_read_by_a_loop() {
    let n = 1 << 22;
    let body = format!(
        "func b(%0: f32[{n}], %1: f32[]) -> (f32[]) {{
        %2 = sum[axes=(0), keep=false] %0 : f32[]
        %3 = add %1 %2 : f32[]
        return %3 }}"
    );
    let looped = scan(&body, 10, 1, 1, "%1 %2 : f32[]");
    let program = compiled(
        &format!(
            "func f(%0: f32[{n}]) -> (f32[{n}], f32[]) {{
             %1 = exp %0 : f32[{n}]
             %2 = full[value=0.0:f32, shape=[]] : f32[]
             %3 = {looped}
             %4 = full[value=2.0:f32, shape=[]] : f32[]
             %5 = mul %1 %4 : f32[{n}]
             return %5 %3 }}"
        ),
        &[true],
    );
    assert!(program.temp_bytes <= 64, "{:#?}", program.slots);
    assert_eq!(program.peak_bytes, 16 * MIB + 4 + program.temp_bytes);
}

#[test]
fn running_sums_and_scatters_work_in_place() {
    let text = |n: usize| {
        format!(
            "func f(%0: f32[{n}], %1: i32[5]) -> (f32[{n}], f32[5]) {{
             %2 = exp %0 : f32[{n}]
             %3 = cumsum[axis=0, reverse=true] %2 : f32[{n}]
             %4 = gather[axis=0] %3 %1 : f32[5]
             %5 = scatter_add[axis=0] %3 %1 %4 : f32[{n}]
             return %5 %4 }}"
        )
    };
    agrees(&text(6));
    let program = compiled(&text(1 << 20), &[true, false]);
    assert_eq!(program.temp_bytes, 0, "{:#?}", program.slots);
    assert_eq!(program.peak_bytes, 4 * MIB + 20 + 20);
    agrees(
        "func f(%0: i32[2,3,2], %1: i32[2,1], %2: i32[2,2,2]) -> (i32[2,3,2], i32[2,3,2]) {
         %3 = full[value=0:i32, shape=[]] : i32[]
         %4 = broadcast[shape=[2,3,2]] %3 : i32[2,3,2]
         %5 = scatter_add[axis=1] %4 %1 %2 : i32[2,3,2]
         %6 = cummax[axis=1, reverse=false] %0 : i32[2,3,2]
         return %5 %6 }",
    );
}

#[test]
fn a_loop_whose_condition_nothing_changes_is_not_left_out() {
    let text = "func f(%0: f32[]) -> (f32[]) {
  %1 = while[cond={
    func c(%0: f32[]) -> (bool[]) {
      %1 = full[value=10.0:f32, shape=[]] : f32[]
      %2 = lt %0 %1 : bool[]
      return %2
    }
  }, body={
    func b(%0: f32[]) -> (f32[]) {
      %1 = full[value=1.0:f32, shape=[]] : f32[]
      %2 = mul %0 %1 : f32[]
      return %2
    }
  }, cond_consts=0, body_consts=0] %0 : f32[]
  return %1
}";
    // It runs for ever or not at all: its first value may not stand for its last.
    the_loop(&compiled(text, &[false]));
}
