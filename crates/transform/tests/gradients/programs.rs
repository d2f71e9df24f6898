//! Programs of several ops: what autodiff itself does, beside the rules.

use crate::support::{Random, check};
use vramlab_ir::{Func, Tensor, evaluate, parse, verify};
use vramlab_ops::lookup;
use vramlab_transform::{Residual, Stage, residuals, value_and_grad, vjp};

pub fn func(text: &str) -> Func {
    let func = parse(text, &lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&func).unwrap_or_else(|e| panic!("{e:?}"));
    func
}

fn arguments(random: &mut Random, func: &Func) -> Vec<Tensor> {
    func.param_types().iter().map(|ty| random.tensor(ty, 0.3, 1.4)).collect()
}

/// The gradient agrees with central differences, and the program verifies.
pub fn agrees(text: &str) -> vramlab_transform::Joint {
    let mut random = Random(5);
    let func = func(text);
    let at = arguments(&mut random, &func);
    let joint = check(&mut random, &func, &at).expect("finite");
    verify(&joint.func).unwrap_or_else(|e| panic!("{e:?}\n{}", joint.func));
    joint
}

const CHAIN: &str = "func f(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {
  %2 = dot[lhs_batch=(), rhs_batch=(), lhs_contract=(1), rhs_contract=(0)] %0 %1 : f64[3,2]
  %3 = tanh %2 : f64[3,2]
  %4 = mul %3 %3 : f64[3,2]
  %5 = sub %4 %2 : f64[3,2]
  return %5
}";

/// [`CHAIN`] inside an op that holds a function.
pub fn held(op: &str) -> String {
    let inner = CHAIN.replace("\n", "\n  ");
    format!(
        "func g(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {{\n  %2 = sin %0 : f64[3,4]\n  \
         %3 = {op} func={{\n  {inner}\n  }}] %2 %1 : f64[3,2]\n  %4 = exp %3 : f64[3,2]\n  return %4\n}}"
    )
}

#[test]
fn a_value_that_is_used_twice_adds_up_its_cotangents() {
    agrees(CHAIN);
}

#[test]
fn gradients_go_through_calls() {
    agrees(&held("call[kind=\"jit\","));
}

#[test]
fn a_checkpoint_changes_no_value() {
    let plain = agrees(&held("call[kind=\"jit\","));
    for policy in ["nothing_saveable", "everything_saveable", "dots_saveable"] {
        let joint = agrees(&held(&format!("checkpoint[policy=\"{policy}\",")));
        let mut random = Random(8);
        let at: Vec<Tensor> =
            plain.func.param_types().iter().map(|ty| random.tensor(ty, 0.3, 1.4)).collect();
        assert_eq!(evaluate(&plain.func, &at), evaluate(&joint.func, &at), "{policy}");
    }
}

fn flops(joint: &vramlab_transform::Joint) -> [u64; 3] {
    [Stage::Forward, Stage::Recompute, Stage::Backward].map(|stage| joint.flops(stage))
}

#[test]
fn a_policy_decides_what_is_computed_again() {
    let dot = 2 * 3 * 2 * 4;
    let plain = flops(&agrees(&held("call[kind=\"jit\",")));
    let nothing = flops(&agrees(&held("checkpoint[policy=\"nothing_saveable\",")));
    let dots = flops(&agrees(&held("checkpoint[policy=\"dots_saveable\",")));
    let all = flops(&agrees(&held("checkpoint[policy=\"everything_saveable\",")));
    assert_eq!(plain[1], 0);
    assert_eq!(nothing[1], dot + 6, "the product and the tanh");
    assert_eq!(dots[1], 6, "the tanh alone");
    assert_eq!(all[1], 0);
    assert_eq!([nothing[0], nothing[2]], [plain[0], plain[2]]);
}

#[test]
fn a_name_saves_the_value_that_it_names() {
    let named = |policy: &str| {
        let text = CHAIN.replace(
            "%4 = mul %3 %3 : f64[3,2]\n  %5 = sub %4 %2",
            "%4 = checkpoint_name[name=\"h\"] %3 : f64[3,2]\n  %5 = mul %4 %3 : f64[3,2]\n  \
             %6 = sub %5 %2",
        );
        let text = text.replace("return %5", "return %6").replace("\n", "\n  ");
        let outer = format!(
            "func g(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {{\n  %2 = \
             checkpoint[policy=\"{policy}\", func={{\n  {text}\n  }}] %0 %1 : f64[3,2]\n  return %2\n}}"
        );
        flops(&agrees(&outer))[1]
    };
    assert_eq!(named("save_only_these_names(h)"), 0, "tanh's gradient reads its result only");
    assert_eq!(named("save_only_these_names(other)"), 2 * 3 * 2 * 4 + 6);
    assert_eq!(named("save_anything_except_these_names(h)"), 6);
    assert_eq!(named("save_any_names_but_these(h)"), 2 * 3 * 2 * 4 + 6);
    assert_eq!(named("save_any_names_but_these(other)"), 0);
    let offload = |names: &str| {
        named(&format!("save_and_offload_only_these_names({names}, device, pinned_host)"))
    };
    assert_eq!(offload("[], [h]"), 0, "what waits in host memory is not computed again");
    assert_eq!(offload("[h], []"), 0);
    assert_eq!(offload("[], [other]"), 2 * 3 * 2 * 4 + 6);
}

#[test]
fn a_checkpoint_inside_a_checkpoint_is_computed_again_twice() {
    let inner = CHAIN.replace("\n", "\n    ");
    let middle = format!(
        "func m(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {{\n    %2 = cos %0 : f64[3,4]\n    %3 = \
         checkpoint[policy=\"nothing_saveable\", func={{\n    {inner}\n    }}] %2 %1 : \
         f64[3,2]\n    %4 = exp %3 : f64[3,2]\n    return %4\n  }}"
    );
    let joint = agrees(&format!(
        "func g(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {{\n  %2 = \
         checkpoint[policy=\"nothing_saveable\", func={{\n  {middle}\n  }}] %0 %1 : f64[3,2]\n  \
         return %2\n}}"
    ));
    let dots = |stage: Stage| {
        let eqns = joint.func.eqns.iter().zip(&joint.marks);
        eqns.filter(|(eqn, mark)| eqn.op.name() == "dot" && mark.stage == stage).count()
    };
    assert_eq!(dots(Stage::Forward), 1);
    assert_eq!(dots(Stage::Recompute), 2);
}

#[test]
fn a_policy_that_saves_everything_goes_into_the_functions_inside() {
    let inner = CHAIN.replace("\n", "\n    ");
    for policy in ["everything_saveable", "dots_saveable", "save_anything_except_these_names(h)"] {
        agrees(&format!(
            "func g(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {{\n  %2 = checkpoint[policy=\"{policy}\", \
             func={{\n  func m(%0: f64[3,4], %1: f64[4,2]) -> (f64[3,2]) {{\n    %2 = cos %0 : f64[3,4]\n    \
             %3 = checkpoint[policy=\"nothing_saveable\", func={{\n    {inner}\n    }}] %2 %1 : f64[3,2]\n    \
             %4 = exp %3 : f64[3,2]\n    return %4\n  }}\n  }}] %0 %1 : f64[3,2]\n  return %2\n}}"
        ));
    }
}

#[test]
fn a_rule_of_its_own_is_what_the_gradient_says() {
    let joint = |scale: &str| {
        let text = format!(
            "func g(%0: f64[3]) -> (f64[3]) {{
  %1 = custom_vjp[func={{
    func f(%0: f64[3]) -> (f64[3]) {{
      %1 = sin %0 : f64[3]
      return %1
    }}
  }}, forward={{
    func f(%0: f64[3]) -> (f64[3], f64[3]) {{
      %1 = sin %0 : f64[3]
      return %1 %0
    }}
  }}, backward={{
    func b(%0: f64[3], %1: f64[3]) -> (f64[3]) {{
      %2 = cos %0 : f64[3]
      %3 = mul %2 %1 : f64[3]
      %4 = full[value={scale}:f64, shape=[]] : f64[]
      %5 = mul %3 %4 : f64[3]
      return %5
    }}
  }}, given=1] %0 : f64[3]
  return %1
}}"
        );
        func(&text)
    };
    let x = Tensor::from_f64(vramlab_ir::DType::F64, [3], &[0.1, 0.2, 0.3]).unwrap();
    let ct = Tensor::from_f64(vramlab_ir::DType::F64, [3], &[1.0, 1.0, 2.0]).unwrap();
    for (text, scale) in [("1.0", 1.0), ("7.0", 7.0)] {
        let given = vjp(&joint(text), &[0]).unwrap();
        let all = evaluate(&given.func, &[x.clone(), ct.clone()]).unwrap();
        let wanted: Vec<f64> =
            x.to_f64().iter().zip(ct.to_f64()).map(|(x, ct)| x.cos() * ct * scale).collect();
        assert_eq!(all[1].to_f64(), wanted);
    }
}

fn list(text: &str) -> Vec<Residual> {
    residuals(&vjp(&func(text), &[0, 1]).unwrap())
}

#[test]
fn grad_residuals_are_listed_with_who_wants_them() {
    let found = list(CHAIN);
    let words: Vec<(String, &str, Vec<&str>)> = found
        .iter()
        .map(|r| (r.ty.to_string(), r.op, r.wanted_by.iter().map(|(op, _)| *op).collect()))
        .collect();
    assert_eq!(
        words,
        [
            ("f64[3,4]".into(), "argument", vec!["dot"]),
            ("f64[4,2]".into(), "argument", vec!["dot"]),
            ("f64[3,2]".into(), "tanh", vec!["mul", "tanh"]),
        ]
    );
    assert_eq!(found[0].param, Some(0));
    assert_eq!(found[2].ty.bytes(), 48);
}

#[test]
fn a_checkpoint_keeps_its_operands_only() {
    let found = list(&held("checkpoint[policy=\"nothing_saveable\","));
    let ops: Vec<&str> = found.iter().map(|r| r.op).collect();
    // sin's gradient reads its operand, exp's its result, the checkpoint its operands.
    assert_eq!(ops, ["argument", "argument", "sin", "exp"]);
}

#[test]
fn what_has_no_gradient_is_refused_in_words() {
    let refused = |text: &str, wrt: &[usize]| value_and_grad(&func(text), wrt).unwrap_err();
    let fault = refused(CHAIN, &[0]);
    assert_eq!(
        fault.to_string(),
        "grad: the function gives f64[3,2], and a gradient is of a scalar"
    );
    let scalar = "func f(%0: i32[3]) -> (f64[]) {
  %1 = convert[dtype=f64] %0 : f64[3]
  %2 = sum[axes=(0), keep=false] %1 : f64[]
  return %2
}";
    assert_eq!(
        refused(scalar, &[0]).to_string(),
        "grad: argument 0 is i32[3], and integers have no gradient"
    );
    assert_eq!(
        refused(scalar, &[1]).to_string(),
        "grad: there is no argument 1; the function takes 1"
    );
    let integer = "func f(%0: f64[3]) -> (i32[]) {
  %1 = convert[dtype=i32] %0 : i32[3]
  %2 = sum[axes=(0), keep=false] %1 : i32[]
  return %2
}";
    assert_eq!(
        refused(integer, &[0]).to_string(),
        "grad: the function gives i32[], and a gradient is of a float"
    );
}
