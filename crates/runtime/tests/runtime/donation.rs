//! Moved arguments: their bytes become results when nobody else holds them.

use crate::lab::*;
use vramlab_ir::{Argument, BufferId, Engine};

const BYTES: u64 = 64 * KIB;
const DIMS: [usize; 1] = [BYTES as usize / 4];

fn address(lab: &Lab, buffer: BufferId) -> u64 {
    let buffers = lab.context.buffers();
    buffers.iter().find(|report| report.buffer == buffer).expect("live").address
}

#[test]
fn a_moved_argument_becomes_the_result() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.full(&DIMS, 0.5);
    let place = address(&lab, x);
    let y = lab.jit(&chain(&DIMS), &[Argument::Donated(x)]).expect("it fits")[0];
    assert_eq!(address(&lab, y), place);
    assert_eq!(lab.requested(), BYTES);
    assert!(lab.context.holders(x).is_empty(), "the claim ended");
    assert!(lab.context.take_notes().is_empty());
    lab.check();
}

#[test]
fn a_moved_argument_with_another_holder_is_copied_and_the_holder_named() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.full(&DIMS, 0.5);
    let other = lab.context.share(x);
    lab.context.set_owner(other, "backup");
    let y = lab.jit(&chain(&DIMS), &[Argument::Donated(x)]).expect("it fits")[0];
    lab.expect(other, &vec![0.5; DIMS[0]]);
    assert_ne!(lab.values(y)[0], 0.5);
    let notes = lab.context.take_notes();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("backup") && notes[0].contains("64.0 KiB"), "{notes:?}");
    assert_eq!(lab.context.holders(other), ["backup"]);
    assert_eq!(lab.requested(), 2 * BYTES);
    lab.check();
}

#[test]
fn an_argument_given_twice_is_not_overwritten() {
    let lab = cpu(MIB, "ondemand");
    let add = func("add", &[f32s(&DIMS), f32s(&DIMS)], |build, params| {
        let tanh = build.unary("tanh", params[0]);
        vec![build.binary("add", tanh, params[1]), params[1]]
    });
    let x = lab.full(&DIMS, 0.25);
    let arguments = [Argument::Donated(x), Argument::Borrowed(x)];
    let results = lab.jit(&add, &arguments).expect("it fits");
    let sum = lab.values(results[0])[7];
    assert!((sum - (0.25f32.tanh() + 0.25)).abs() < 1e-6, "{sum}");
    assert_eq!(lab.values(results[1])[7], 0.25);
    let x = lab.full(&DIMS, 0.25);
    let twice = [Argument::Donated(x), Argument::Donated(x)];
    assert!(lab.jit(&add, &twice).is_err(), "one claim cannot end twice");
    lab.check();
}

#[test]
fn a_failed_call_gives_its_moved_arguments_back() {
    let lab = cpu(256 * KIB, "platform");
    let x = lab.full(&DIMS, 0.5);
    // Needs three more arrays of 64 KiB beside two results; the device holds four.
    let wide = func("wide", &[f32s(&DIMS)], |build, params| {
        ["exp", "sin", "cos", "tanh", "sqrt"]
            .iter()
            .map(|name| build.unary(name, params[0]))
            .collect()
    });
    let fault = lab.jit(&wide, &[Argument::Donated(x)]).expect_err("no room");
    assert_eq!(fault.kind, vramlab_ir::FaultKind::OutOfMemory);
    assert_eq!(lab.requested(), BYTES, "partial results went back");
    lab.expect(x, &vec![0.5; DIMS[0]]);
    lab.check();
}

#[test]
fn unused_donations_are_freed_after_the_call() {
    let lab = cpu(MIB, "ondemand");
    let sum = func("sum", &[f32s(&DIMS)], |build, params| {
        let axes = vramlab_ir::Param::Ints(vec![0]);
        let keep = vramlab_ir::Param::Bool(false);
        let params_of_sum = vramlab_ir::Params::new().with("axes", axes).with("keep", keep);
        vec![build.op("sum", params_of_sum, params)]
    });
    let x = lab.full(&DIMS, 1.0);
    let y = lab.jit(&sum, &[Argument::Donated(x)]).expect("it fits")[0];
    assert_eq!(lab.values(y), [DIMS[0] as f32]);
    assert_eq!(lab.requested(), 4);
    // donate-unusable: the reason is listed beside the plan.
    let executable = lab.compile(&sum, &[true], vramlab_ir::CompileKind::Jit);
    let explanation = lab.context.explain(executable).expect("an entry");
    assert_eq!(explanation.donations.len(), 1);
    assert!(!explanation.donations[0].used && !explanation.donations[0].reason.is_empty());
    lab.check();
}
