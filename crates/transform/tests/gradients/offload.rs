//! Policies that offload: what is copied where, and what is refused.

use crate::programs::{agrees, func, held};
use vramlab_ir::{DType, Func, MemorySpace, Stage, Tensor, evaluate, verify};
use vramlab_transform::{Policy, residual_table, vjp};

const NAMES: [&str; 2] = ["device", "pinned_host"];

/// Stage and memory of each copy, in order.
fn copies(func: &Func) -> Vec<(Stage, MemorySpace)> {
    let puts = func.eqns.iter().filter(|eqn| eqn.op.name() == "device_put");
    puts.map(|eqn| (eqn.stage, func.ty(eqn.outputs[0]).memory)).collect()
}

#[test]
fn a_product_goes_to_the_host_and_comes_back_for_what_reads_it() {
    let policy = "checkpoint[policy=\"offload_dot_with_no_batch_dims(device, pinned_host)\",";
    let joint = agrees(&held(policy));
    let there_and_back = [
        (Stage::Forward, MemorySpace::PinnedHost),
        // The tanh is computed again from it.
        (Stage::Recompute, MemorySpace::Device),
    ];
    assert_eq!(copies(&joint.func), there_and_back);
}

#[test]
fn a_named_value_has_one_copy_which_gradients_share() {
    let text = "func g(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {
  %2 = checkpoint[policy=\"save_and_offload_only_these_names([], [h], device, pinned_host)\", func={
  func c(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {
    %2 = dot[lhs_batch=(), rhs_batch=(), lhs_contract=(1), rhs_contract=(0)] %0 %1 : f64[3,2]
    %3 = tanh %2 : f64[3,2]
    %4 = checkpoint_name[name=\"h\"] %3 : f64[3,2]
    %5 = mul %4 %4 : f64[3,2]
    return %5
  }
  }] %0 %1 : f64[3,2]
  return %2
}";
    let joint = agrees(text);
    let there_and_back =
        [(Stage::Forward, MemorySpace::PinnedHost), (Stage::Backward, MemorySpace::Device)];
    assert_eq!(copies(&joint.func), there_and_back, "{}", joint.func);
    let table = residual_table(&vjp(&func(text), &[0, 1]).unwrap(), 2, 0);
    assert!(
        table
            .contains("0 B in 0 values, 48 B in 1 value offloaded to pinned_host, and 2 arguments"),
        "{table}"
    );
    assert!(table.contains("f64<host>[3,2]  48 B  checkpoint_name "), "{table}");
    assert!(table.contains("offloaded to pinned_host, for the gradient of mul"), "{table}");
    // The copy back waits for the cotangent of what reads it.
    let back = joint
        .func
        .eqns
        .iter()
        .find(|eqn| eqn.op.name() == "device_put" && eqn.stage == Stage::Backward);
    assert_eq!(back.expect("it comes back").inputs.len(), 2);
}

#[test]
fn policies_that_offload_have_a_text() {
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let name = "save_and_offload_only_these_names";
    let policy = Policy::offloading(name, names(&["a", "b"]), names(&["c d"]), NAMES).unwrap();
    let text = "save_and_offload_only_these_names([a, b], [c d], device, pinned_host)";
    assert_eq!(policy.to_string(), text);
    assert_eq!(Policy::parse(text), Ok(policy));
    let dots = Policy::OffloadDotWithNoBatchDims;
    assert_eq!(Policy::parse(&dots.to_string()), Ok(dots));
}

#[test]
fn what_cannot_be_offloaded_is_refused_in_words() {
    let refused = |saved: &[&str], offloaded: &[&str], kinds| {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let name = "save_and_offload_only_these_names";
        Policy::offloading(name, names(saved), names(offloaded), kinds).unwrap_err().message
    };
    assert_eq!(refused(&[], &["h"], ["device", "disk"]), "there is no memory kind \"disk\"");
    assert_eq!(
        refused(&[], &["h"], ["pinned_host", "device"]),
        "values cannot be offloaded from pinned_host to device"
    );
    assert_eq!(
        refused(&["a", "h"], &["h"], NAMES),
        "\"h\" is both a name to save and a name to offload"
    );
}

#[test]
fn what_a_scan_offloads_is_stacked_in_host_memory() {
    let scan = "func g(%0: f64[2], %1: f64[3,2]) -> (f64[2]) {
  %2 = scan[body={
  func b(%0: f64[2], %1: f64[2]) -> (f64[2]) {
    %2 = checkpoint[policy=\"save_and_offload_only_these_names([], [h], device, pinned_host)\", func={
    func c(%0: f64[2], %1: f64[2]) -> (f64[2]) {
      %2 = sin %0 : f64[2]
      %3 = checkpoint_name[name=\"h\"] %2 : f64[2]
      %4 = mul %3 %1 : f64[2]
      %5 = exp %3 : f64[2]
      %6 = mul %5 %4 : f64[2]
      return %6
    }
    }] %0 %1 : f64[2]
    return %2
  }
  }, length=3, consts=0, carries=1, reverse=false] %0 %1 : f64[2]
  return %2
}";
    let joint = agrees(scan);
    let scans: Vec<_> = joint.func.eqns.iter().filter(|eqn| eqn.op.name() == "scan").collect();
    let [forward, back] = scans[..] else { panic!("{}", joint.func) };
    let stacks = forward.outputs.iter().filter(|v| joint.func.ty(**v).is_host()).count();
    let slices = back.inputs.iter().filter(|v| joint.func.ty(**v).is_host()).count();
    assert_eq!([stacks, slices], [1, 1]);
}

#[test]
fn what_a_branch_offloads_waits_in_host_memory() {
    let branches = "func g(%0: bool[], %1: f64[2]) -> (f64[2]) {
  %2 = cond[on_true={
  func t(%0: f64[2]) -> (f64[2]) {
    %1 = checkpoint[policy=\"save_and_offload_only_these_names([], [h], device, pinned_host)\", func={
    func c(%0: f64[2]) -> (f64[2]) {
      %1 = sin %0 : f64[2]
      %2 = checkpoint_name[name=\"h\"] %1 : f64[2]
      %3 = mul %2 %2 : f64[2]
      return %3
    }
    }] %0 : f64[2]
    return %1
  }
  }, on_false={
  func e(%0: f64[2]) -> (f64[2]) {
    return %0
  }
  }] %0 %1 : f64[2]
  return %2
}";
    let joint = vjp(&func(branches), &[1]).unwrap();
    verify(&joint.func).unwrap_or_else(|e| panic!("{e:?}\n{}", joint.func));
    let of = |taken: bool| {
        let at = Tensor::from_f64(DType::F64, vec![2], &[0.3, 0.4]).unwrap();
        let condition = Tensor::from_f64(DType::Bool, vec![], &[f64::from(taken)]).unwrap();
        let ct = Tensor::from_f64(DType::F64, vec![2], &[1.0, 2.0]).unwrap();
        evaluate(&joint.func, &[condition, at, ct]).unwrap()[1].to_f64()
    };
    assert_eq!(of(false), [1.0, 2.0]);
    let slope = |x: f64| 2.0 * x.sin() * x.cos();
    let wanted = [slope(0.3), 2.0 * slope(0.4)];
    assert!(of(true).iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{:?}", of(true));
    let conds = joint.func.eqns.iter().filter(|eqn| eqn.op.name() == "cond");
    let hosts = conds.flat_map(|eqn| eqn.outputs.iter().chain(&eqn.inputs));
    assert_eq!(hosts.filter(|v| joint.func.ty(**v).is_host()).count(), 2, "{}", joint.func);
}
