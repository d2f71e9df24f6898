//! Copies to and from host memory: where they stand, where their bytes are, and what leaves them alone.

mod support;

use std::sync::Arc;
use support::{Order, check_plan, close, execute};
use vramlab_compiler::{Options, compile};
use vramlab_ir::kernel::{Body, Place};
use vramlab_ir::{MemorySpace, Program, Tensor, Type, evaluate, parse, verify};
use vramlab_ops::lookup;

/// The program of a text, which gives what the interpreter says.
fn compiled(text: &str) -> Program {
    let func = Arc::new(parse(text, &lookup).unwrap_or_else(|e| panic!("{e}\n{text}")));
    verify(&func).unwrap_or_else(|e| panic!("{e:?}"));
    let argument = |ty: &Type| {
        let values: Vec<f64> = (0..ty.shape.elements()).map(|at| (at % 7) as f64 - 3.0).collect();
        let tensor = Tensor::from_f64(ty.dtype, ty.shape.clone(), &values).expect("as many values");
        Tensor { ty: ty.clone(), ..tensor }
    };
    let arguments: Vec<Tensor> = func.param_types().iter().map(argument).collect();
    let program =
        compile(&func, &vec![false; arguments.len()], &Options::default()).expect("it compiles");
    check_plan(&program);
    let wanted = evaluate(&func, &arguments).expect("it runs");
    for whole_rows in [false, true] {
        let order = Order { whole_rows, rows_backwards: whole_rows };
        let found = execute(&program, &arguments, order);
        assert!(found.iter().zip(&wanted).all(|(a, b)| close(a, b, 1e-6)), "{text}");
    }
    program
}

/// The kernels in order: where a copy goes to, `None` for what computes.
fn order(program: &Program) -> Vec<Option<MemorySpace>> {
    let kind = |body: &Body| match body {
        Body::Transfer(transfer) => Some(transfer.to),
        _ => None,
    };
    program.kernels.iter().map(|kernel| kind(&kernel.body)).collect()
}

const HOST: Option<MemorySpace> = Some(MemorySpace::PinnedHost);
const BACK: Option<MemorySpace> = Some(MemorySpace::Device);

/// A value of 4 KiB that is made early and read late, with two others in between.
fn waiting(put: &str, back: &str) -> String {
    format!(
        "func f(%0: f32[1024]) -> (f32[1024]) {{
  %1 = cumsum[axis=0, reverse=false] %0 : f32[1024]
  {put}
  %10 = cumsum[axis=0, reverse=true] %1 : f32[1024]
  %11 = cumsum[axis=0, reverse=false] %10 : f32[1024]
  %12 = sub %10 %11 : f32[1024]
  %13 = cumsum[axis=0, reverse=true] %12 : f32[1024]
  {back}
  %21 = sub %13 %20 : f32[1024]
  return %21
}}"
    )
}

#[test]
fn a_copy_leaves_at_once_and_comes_back_late() {
    let program = compiled(&waiting(
        "%2 = device_put[memory_kind=\"pinned_host\"] %1 : f32<host>[1024]",
        "%20 = device_put[memory_kind=\"device\"] %2 : f32[1024]",
    ));
    assert_eq!(order(&program), [None, HOST, None, None, None, None, BACK, None]);
    assert_eq!(program.host_temp_bytes, 4096);
    let kept = compiled(&waiting("%2 = neg %1 : f32[1024]", "%20 = neg %2 : f32[1024]"));
    assert_eq!([program.peak_bytes, kept.peak_bytes], [3 * 4096, 4 * 4096]);
    assert_eq!((kept.host_temp_bytes, order(&kept).contains(&HOST)), (0, false));
}

#[test]
fn copies_are_never_joined_and_values_that_wait_in_turn_share_bytes() {
    let program = compiled(
        "func f(%0: f32[1024]) -> (f32[1024]) {
  %1 = exp %0 : f32[1024]
  %2 = device_put[memory_kind=\"pinned_host\"] %1 : f32<host>[1024]
  %3 = device_put[memory_kind=\"device\"] %2 : f32[1024]
  %4 = device_put[memory_kind=\"device\"] %2 : f32[1024]
  %5 = add %3 %4 : f32[1024]
  %6 = device_put[memory_kind=\"pinned_host\"] %5 : f32<host>[1024]
  %7 = device_put[memory_kind=\"device\"] %6 : f32[1024]
  %8 = neg %7 : f32[1024]
  return %8
}",
    );
    assert_eq!(order(&program), [None, HOST, BACK, BACK, None, HOST, BACK, None]);
    assert_eq!(program.host_temp_bytes, 4096, "the one is read before the other is written");
}

#[test]
fn arguments_and_results_may_lie_in_host_memory() {
    let program = compiled(
        "func f(%0: f32<host>[256], %1: f32[256]) -> (f32[256], f32<host>[256]) {
  %2 = device_put[memory_kind=\"device\"] %0 %1 : f32[256]
  %3 = add %2 %1 : f32[256]
  %4 = device_put[memory_kind=\"pinned_host\"] %3 : f32<host>[256]
  return %3 %4
}",
    );
    assert_eq!(program.fresh_memory, [MemorySpace::Device, MemorySpace::PinnedHost]);
    assert_eq!(program.peak_bytes, 2 * 1024, "one argument and one result are on the device");
}

#[test]
fn a_loop_offloads_into_scratch_of_its_own_on_the_host() {
    let program = compiled(
        "func f(%0: f32[1024]) -> (f32[1024]) {
  %1 = scan[body={
  func b(%0: f32[1024]) -> (f32[1024]) {
    %1 = cumsum[axis=0, reverse=false] %0 : f32[1024]
    %2 = device_put[memory_kind=\"pinned_host\"] %1 : f32<host>[1024]
    %3 = cumsum[axis=0, reverse=true] %1 : f32[1024]
    %4 = device_put[memory_kind=\"device\"] %2 %3 : f32[1024]
    %5 = sub %3 %4 : f32[1024]
    return %5
  }
  }, length=3, consts=0, carries=1, reverse=false] %0 : f32[1024]
  return %1
}",
    );
    assert_eq!(program.host_temp_bytes, 4096);
    let in_host = |slot: &&vramlab_ir::kernel::Slot| matches!(slot.place, Place::Host { .. });
    assert_eq!(program.slots.iter().filter(in_host).count(), 1);
}

#[test]
fn slices_of_a_loop_are_stacked_in_host_memory_and_copied_back_one_by_one() {
    let program = compiled(
        "func f(%0: f32[8], %1: f32[5,8]) -> (f32[8], f32[8]) {
  %2 %3 = scan[body={
  func b(%0: f32[8], %1: f32[8]) -> (f32[8], f32<host>[8]) {
    %2 = add %0 %1 : f32[8]
    %3 = device_put[memory_kind=\"pinned_host\"] %2 : f32<host>[8]
    return %2 %3
  }
  }, length=5, consts=0, carries=1, reverse=false] %0 %1 : f32[8], f32<host>[5,8]
  %4 = scan[body={
  func c(%0: f32[8], %1: f32<host>[8]) -> (f32[8]) {
    %2 = device_put[memory_kind=\"device\"] %1 %0 : f32[8]
    %3 = mul %0 %2 : f32[8]
    %4 = sub %3 %2 : f32[8]
    return %4
  }
  }, length=5, consts=0, carries=1, reverse=true] %0 %3 : f32[8]
  return %2 %4
}",
    );
    assert_eq!(program.host_temp_bytes, 5 * 8 * 4, "one stack, and no copy of a slice");
    let copies = |routine: &vramlab_ir::kernel::Routine| {
        let puts = |body: &Body| matches!(body, Body::Transfer(_));
        routine.kernels.iter().filter(|kernel| puts(&kernel.body)).count()
    };
    let loops = program.kernels.iter().filter_map(|kernel| match &kernel.body {
        Body::Loop(looped) => Some(copies(&looped.body)),
        _ => None,
    });
    assert_eq!(loops.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn only_copies_may_read_host_memory() {
    let func = parse(
        "func f(%0: f32<host>[4]) -> (f32<host>[4]) {\n  %1 = neg %0 : f32<host>[4]\n  return %1\n}",
        &lookup,
    )
    .expect("it parses");
    let complaints = verify(&func).expect_err("neg computes on the device");
    assert!(complaints[0].message.contains("only a copy reads host memory"), "{complaints:?}");
    assert_eq!(func.to_string().matches("f32<host>[4]").count(), 3, "it prints as it was read");
}
