//! Gradients through loops and branches.

use crate::support::{Random, check, compare, floats};
use vramlab_ir::{DType, Eqn, Func, Tensor, evaluate, parse, verify};
use vramlab_ops::lookup;
use vramlab_transform::{Joint, jvp, vjp};

fn func(text: &str) -> Func {
    let func = parse(text, &lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&func).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    func
}

/// The gradient, the gradient of the gradient and the derivative forward agree with differences.
fn agrees(text: &str) -> Joint {
    agrees_at(text, &[])
}

/// With given values for the first arguments.
fn agrees_at(text: &str, given: &[Tensor]) -> Joint {
    let mut random = Random(11);
    let func = func(text);
    let mut at: Vec<Tensor> =
        func.param_types().iter().map(|ty| random.tensor(ty, 0.3, 1.2)).collect();
    at[..given.len()].clone_from_slice(given);
    let joint = check(&mut random, &func, &at).expect("finite");
    verify(&joint.func).unwrap_or_else(|e| panic!("{e:?}\n{}", joint.func));
    let seeds = func.result_types();
    let cotangents = seeds.iter().map(|ty| random.tensor(ty, -1.0, 1.0));
    let arguments: Vec<Tensor> = at.iter().cloned().chain(cotangents).collect();
    check(&mut random, &joint.func, &arguments).expect("finite");
    let wrt = floats(&func.param_types());
    let forward = jvp(&func, &wrt).unwrap();
    let tangents: Vec<Tensor> = wrt.iter().map(|&k| random.tensor(&at[k].ty, -1.0, 1.0)).collect();
    let arguments: Vec<Tensor> = at.iter().cloned().chain(tangents).collect();
    let all = floats(&forward.func.param_types());
    let again = vjp(&forward.func, &all).unwrap();
    compare(&mut random, &forward.func, &again, &arguments, &all).expect("finite");
    joint
}

/// A recurrent cell: h = tanh(h·w + x), y = h·h; w is constant, `a` too, and exp(a) is the same in
/// every iteration.
fn recurrent(body: &str, reverse: bool) -> String {
    format!(
        "func f(%0: f64[2,2], %1: f64[], %2: f64[2], %3: f64[5,2]) -> (f64[2], f64[5,2]) {{
  %4 %5 = scan[body={{
    func step(%0: f64[2,2], %1: f64[], %2: f64[2], %3: f64[2]) -> (f64[2], f64[2]) {{
      {body}
    }}
  }}, length=5, consts=2, carries=1, reverse={reverse}] %0 %1 %2 %3 : f64[2], f64[5,2]
  return %4 %5
}}"
    )
}

const STEP: &str =
    "%4 = dot[lhs_batch=(), rhs_batch=(), lhs_contract=(0), rhs_contract=(0)] %2 %0 : f64[2]
      %5 = exp %1 : f64[]
      %6 = mul %4 %5 : f64[2]
      %7 = add %6 %3 : f64[2]
      %8 = tanh %7 : f64[2]
      %9 = mul %8 %8 : f64[2]
      return %8 %9";

#[test]
fn a_scan_is_gone_back_through_in_the_other_direction() {
    agrees(&recurrent(STEP, false));
    agrees(&recurrent(STEP, true));
}

/// Output types of each scan of the program.
fn scans(joint: &Joint) -> Vec<Vec<String>> {
    let func = &joint.func;
    let of = |eqn: &vramlab_ir::Eqn| eqn.outputs.iter().map(|&v| func.ty(v).to_string()).collect();
    func.eqns.iter().filter(|eqn| eqn.op.name() == "scan").map(of).collect()
}

#[test]
fn a_scan_stacks_what_the_way_back_reads_and_no_more() {
    let scans = scans(&agrees(&recurrent(STEP, false)));
    // The carry, the squares, and for the way back: the state that entered, the product, tanh.
    assert_eq!(scans[0], ["f64[2]", "f64[5,2]", "f64[5,2]", "f64[5,2]", "f64[5,2]"]);
    // Cotangents of the state, of w and of exp(a)'s operand; stacked those of x.
    assert_eq!(scans[1], ["f64[2]", "f64[2,2]", "f64[]", "f64[5,2]"]);
}

#[test]
fn a_checkpointed_body_stacks_its_carry_only() {
    let inner = STEP.replace("\n", "\n    ");
    let body = format!(
        "%4 %5 = checkpoint[policy=\"nothing_saveable\", func={{
        func c(%0: f64[2,2], %1: f64[], %2: f64[2], %3: f64[2]) -> (f64[2], f64[2]) {{
          {inner}
        }}
      }}] %0 %1 %2 %3 : f64[2], f64[2]
      return %4 %5"
    );
    let scans = scans(&agrees(&recurrent(&body, false)));
    assert_eq!(scans[0], ["f64[2]", "f64[5,2]", "f64[5,2]"], "the carry that entered");
}

#[test]
fn a_result_that_is_stacked_anyway_is_not_stacked_twice() {
    let step = STEP.replace("return %8 %9", "return %8 %8");
    let scans = scans(&agrees(&recurrent(&step, false)));
    assert_eq!(scans[0], ["f64[2]", "f64[5,2]", "f64[5,2]", "f64[5,2]"]);
}

#[test]
fn a_carry_becomes_active_in_an_iteration() {
    // The second carry starts as a constant and takes up the first.
    agrees(
        "func f(%0: f64[3]) -> (f64[3]) {
  %1 = full[value=0.0:f64, shape=[3]] : f64[3]
  %2 %3 = scan[body={
    func step(%0: f64[3], %1: f64[3]) -> (f64[3], f64[3]) {
      %2 = sin %0 : f64[3]
      %3 = mul %1 %0 : f64[3]
      %4 = add %3 %2 : f64[3]
      return %2 %4
    }
  }, length=4, consts=0, carries=2, reverse=false] %0 %1 : f64[3], f64[3]
  return %3
}",
    );
}

#[test]
fn an_integer_carry_is_carried_along() {
    agrees(
        "func f(%0: f64[3]) -> (f64[3]) {
  %1 = full[value=0:i32, shape=[]] : i32[]
  %2 %3 = scan[body={
    func step(%0: i32[], %1: f64[3]) -> (i32[], f64[3]) {
      %2 = full[value=1:i32, shape=[]] : i32[]
      %3 = add %0 %2 : i32[]
      %4 = convert[dtype=f64] %3 : f64[]
      %5 = mul %1 %4 : f64[3]
      %6 = sin %5 : f64[3]
      return %3 %6
    }
  }, length=3, consts=0, carries=2, reverse=false] %1 %0 : i32[], f64[3]
  return %3
}",
    );
}

#[test]
fn a_scan_inside_a_checkpoint_and_a_scan_inside_a_scan() {
    let inner = recurrent(STEP, false).replace("\n", "\n    ");
    agrees(&format!(
        "func g(%0: f64[2,2], %1: f64[], %2: f64[2], %3: f64[5,2]) -> (f64[2], f64[5,2]) {{
  %4 %5 = checkpoint[policy=\"nothing_saveable\", func={{
    {inner}
  }}] %0 %1 %2 %3 : f64[2], f64[5,2]
  return %4 %5
}}"
    ));
    agrees(&format!(
        "func g(%0: f64[2,2], %1: f64[], %2: f64[2], %3: f64[5,2]) -> (f64[2]) {{
  %4 = scan[body={{
    func outer(%0: f64[2,2], %1: f64[], %2: f64[5,2], %3: f64[2]) -> (f64[2]) {{
      %4 %5 = call[kind=\"jit\", func={{
        {inner}
      }}] %0 %1 %3 %2 : f64[2], f64[5,2]
      return %4
    }}
  }}, length=2, consts=3, carries=1, reverse=false] %0 %1 %3 %2 : f64[2]
  return %4
}}"
    ));
}

/// A policy means the same whether the steps are written out or scanned.
#[test]
fn a_policy_reaches_into_the_loops_of_a_checkpoint() {
    let inner = recurrent(STEP, false).replace('\n', "\n    ");
    let scans_under = |policy: &str| {
        let joint = agrees(&format!(
            "func g(%0: f64[2,2], %1: f64[], %2: f64[2], %3: f64[5,2]) -> (f64[2], f64[5,2]) {{
  %4 %5 = checkpoint[policy=\"{policy}\", func={{
    {inner}
  }}] %0 %1 %2 %3 : f64[2], f64[5,2]
  return %4 %5
}}"
        ));
        let products = |eqn: &&Eqn| {
            let body = eqn.params.func("body").expect("a scan").to_string();
            body.matches("dot[").count()
        };
        let of = joint.func.eqns.iter().filter(|eqn| eqn.op.name() == "scan");
        (scans(&joint), of.map(|eqn| products(&eqn)).collect::<Vec<_>>())
    };
    let (nothing, products) = scans_under("nothing_saveable");
    assert_eq!(nothing[0], ["f64[2]", "f64[5,2]"], "forward: what the scan gives");
    assert_eq!(products, [1, 1, 2], "forward, again, and back by both factors");
    let (dots, products) = scans_under("dots_saveable");
    assert_eq!(dots[0], ["f64[2]", "f64[5,2]", "f64[5,2]"], "and the products");
    assert_eq!(products, [1, 0, 2]);
    let (dots, products) = scans_under("offload_dot_with_no_batch_dims(device, pinned_host)");
    assert_eq!(dots[0], ["f64[2]", "f64[5,2]", "f64<host>[5,2]"]);
    assert_eq!(products, [1, 0, 2]);
    let (all, products) = scans_under("everything_saveable");
    assert_eq!(all.len(), 2, "nothing is computed again");
    assert_eq!(products, [1, 2]);
}

#[test]
fn a_policy_reaches_into_the_branches_and_inner_loops_of_a_checkpoint() {
    let names = "save_only_these_names(h)";
    for policy in ["save_anything_except_these_names(h)", names, "nothing_saveable"] {
        let joint = agrees(&format!(
            "func g(%0: f64[3], %1: f64[4,3]) -> (f64[3]) {{
  %2 = checkpoint[policy=\"{policy}\", func={{
  func c(%0: f64[3], %1: f64[4,3]) -> (f64[3]) {{
    %2 = scan[body={{
    func outer(%0: f64[4,3], %1: f64[3]) -> (f64[3]) {{
      %2 = scan[body={{
      func inner(%0: f64[3], %1: f64[3]) -> (f64[3]) {{
        %2 = mul %0 %1 : f64[3]
        %3 = sin %2 : f64[3]
        %4 = checkpoint_name[name=\"h\"] %3 : f64[3]
        %5 = exp %4 : f64[3]
        %6 = sum[axes=(0), keep=false] %5 : f64[]
        %7 = full[value=4.0:f64, shape=[]] : f64[]
        %8 = lt %6 %7 : bool[]
        %9 = cond[on_true={{
        func yes(%0: f64[3]) -> (f64[3]) {{
          %1 = cos %0 : f64[3]
          %2 = checkpoint_name[name=\"h\"] %1 : f64[3]
          %3 = mul %2 %2 : f64[3]
          return %3
        }}
        }}, on_false={{
        func no(%0: f64[3]) -> (f64[3]) {{
          %1 = tanh %0 : f64[3]
          %2 = mul %1 %1 : f64[3]
          %3 = checkpoint_name[name=\"h\"] %2 : f64[3]
          %4 = sin %3 : f64[3]
          return %4
        }}
        }}] %8 %5 : f64[3]
        return %9
      }}
      }}, length=4, consts=0, carries=1, reverse=true] %1 %0 : f64[3]
      return %2
    }}
    }}, length=2, consts=1, carries=1, reverse=false] %1 %0 : f64[3]
    return %2
  }}
  }}] %0 %1 : f64[3]
  return %2
}}"
        ));
        let stacks = scans(&joint)[0].iter().filter(|ty| *ty == "f64[2,4,3]").count();
        assert_eq!(stacks > 0, policy != "nothing_saveable", "{policy}: {}", joint.func);
        if policy == names {
            // The name in the loop, and one place for that of the branch that is taken.
            assert_eq!(stacks, 2, "{}", joint.func);
        }
    }
}

const BRANCHES: &str = "func f(%0: bool[], %1: f64[3], %2: f64[3]) -> (f64[3], f64[]) {
  %3 %4 = cond[on_true={
    func yes(%0: f64[3], %1: f64[3]) -> (f64[3], f64[]) {
      %2 = tanh %0 : f64[3]
      %3 = mul %2 %1 : f64[3]
      %4 = sum[axes=(0), keep=false] %3 : f64[]
      return %2 %4
    }
  }, on_false={
    func no(%0: f64[3], %1: f64[3]) -> (f64[3], f64[]) {
      %2 = sin %1 : f64[3]
      %3 = exp %2 : f64[3]
      %4 = full[value=2.0:f64, shape=[]] : f64[]
      return %3 %4
    }
  }] %0 %1 %2 : f64[3], f64[]
  return %3 %4
}";

#[test]
fn a_cond_is_gone_back_through_in_the_branch_that_was_taken() {
    for taken in [0.0, 1.0] {
        let pred = Tensor::from_f64(DType::Bool, [], &[taken]).unwrap();
        let joint = agrees_at(BRANCHES, &[pred]);
        let cond = joint.func.eqns.iter().find(|eqn| eqn.op.name() == "cond").unwrap();
        assert_eq!(cond.outputs.len(), 3, "both branches keep one value, in one slot");
    }
}

#[test]
fn a_while_loop_is_refused_with_the_remedy() {
    let text = "func f(%0: f64[]) -> (f64[]) {
  %1 = while[cond={
    func c(%0: f64[]) -> (bool[]) {
      %1 = full[value=9.0:f64, shape=[]] : f64[]
      %2 = lt %0 %1 : bool[]
      return %2
    }
  }, body={
    func b(%0: f64[]) -> (f64[]) {
      %1 = add %0 %0 : f64[]
      return %1
    }
  }, cond_consts=0, body_consts=0] %0 : f64[]
  return %1
}";
    let fault = vjp(&func(text), &[0]).unwrap_err();
    assert_eq!(fault.op, "while_loop");
    assert!(fault.message.contains("how many steps"), "{fault}");
    assert!(fault.help.unwrap().contains("fori_loop with numbers"));
    let none = vjp(&func(text), &[]).unwrap();
    let x = Tensor::from_f64(DType::F64, [], &[1.0]).unwrap();
    assert_eq!(evaluate(&none.func, &[x.clone(), x]).unwrap()[0].to_f64(), [16.0]);
}

#[test]
fn a_scan_of_no_iterations_passes_the_carry() {
    let text = recurrent(STEP, false).replace("length=5", "length=0").replace("[5,2]", "[0,2]");
    agrees(&text);
}
