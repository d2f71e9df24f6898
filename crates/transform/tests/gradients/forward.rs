//! Forward mode: along loops without a known end, under and over the other transforms, and what it
//! keeps (nothing).

use crate::support::{Random, check, floats, inner};
use std::fmt::Write;
use std::sync::Arc;
use vramlab_compiler::{Options, compile};
use vramlab_ir::{Func, Tensor, Type, evaluate, parse, verify};
use vramlab_ops::lookup;
use vramlab_transform::{jvp, value_and_grad, vjp, vmap};

fn func(text: &str) -> Func {
    let func = parse(text, &lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&func).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    func
}

fn shifted(x: &Tensor, along: &Tensor, by: f64) -> Tensor {
    let values: Vec<f64> = x.to_f64().iter().zip(along.to_f64()).map(|(x, d)| x + by * d).collect();
    Tensor::from_f64(x.ty.dtype, x.ty.shape.clone(), &values).unwrap()
}

/// The derivative along random tangents agrees with central differences; the program of the
/// derivative. `None` where no slope can be measured.
fn along(random: &mut Random, func: &Func, at: &[Tensor]) -> Option<Func> {
    let wrt = floats(&func.param_types());
    let joint = jvp(func, &wrt).unwrap_or_else(|fault| panic!("{fault}\n{func}"));
    verify(&joint.func).unwrap_or_else(|e| panic!("{e:?}\n{}", joint.func));
    let tangents: Vec<Tensor> = wrt.iter().map(|&k| random.tensor(&at[k].ty, -1.0, 1.0)).collect();
    let outs = floats(&func.result_types());
    let weights: Vec<Tensor> =
        outs.iter().map(|&k| random.tensor(&func.result_types()[k], -1.0, 1.0)).collect();
    let moved = |by: f64| {
        let mut arguments = at.to_vec();
        for (&k, tangent) in wrt.iter().zip(&tangents) {
            arguments[k] = shifted(&at[k], tangent, by);
        }
        let all = evaluate(func, &arguments).unwrap();
        let chosen: Vec<Tensor> = outs.iter().map(|&k| all[k].clone()).collect();
        inner(&weights, &chosen)
    };
    let slope = |step: f64| (moved(step) - moved(-step)) / (2.0 * step);
    let (wide, numeric) = (slope(2e-5), slope(1e-5));
    if !numeric.is_finite() || (wide - numeric).abs() > 1e-7 * (1.0 + numeric.abs()) {
        return None;
    }
    let arguments: Vec<Tensor> = at.iter().chain(&tangents).cloned().collect();
    let all = evaluate(&joint.func, &arguments).unwrap_or_else(|f| panic!("{f}\n{}", joint.func));
    let own = func.results.len();
    let found: Vec<Tensor> = outs.iter().map(|&k| all[own + k].clone()).collect();
    let analytic = inner(&weights, &found);
    assert!(
        (numeric - analytic).abs() <= 1e-6 * (1.0 + numeric.abs()),
        "numeric {numeric}, forward {analytic}\n{func}\n{}\nat {at:?}",
        joint.func
    );
    Some(joint.func)
}

fn arguments(random: &mut Random, func: &Func) -> Vec<Tensor> {
    func.param_types().iter().map(|ty| random.tensor(ty, 0.3, 1.2)).collect()
}

/// Forward, forward over forward, and, where reverse mode can go through it, reverse over forward.
fn agrees(text: &str, reverse: bool) {
    let mut random = Random(3);
    let func = func(text);
    let at = arguments(&mut random, &func);
    let first = along(&mut random, &func, &at).expect("smooth");
    let at = arguments(&mut random, &first);
    along(&mut random, &first, &at).expect("smooth");
    if reverse {
        check(&mut random, &first, &at).expect("smooth");
    }
}

/// Newton's steps for the root of y, by a while whose body reads y and whose bound is an operand; the
/// second carry starts as a constant and takes up the first, the third counts.
const NEWTON: &str = "func f(%0: f64[], %1: f64[2], %2: i32[]) -> (f64[2], f64[2], i32[]) {
  %3 = full[value=1.0:f64, shape=[2]] : f64[2]
  %4 = full[value=0.0:f64, shape=[2]] : f64[2]
  %5 = full[value=0:i32, shape=[]] : i32[]
  %6 %7 %8 = while[cond={
    func c(%0: i32[], %1: f64[2], %2: f64[2], %3: i32[]) -> (bool[]) {
      %4 = full[value=5:i32, shape=[]] : i32[]
      %5 = lt %3 %4 : bool[]
      return %5
    }
  }, body={
    func b(%0: f64[2], %1: f64[], %2: f64[2], %3: f64[2], %4: i32[]) -> (f64[2], f64[2], i32[]) {
      %5 = div %0 %2 : f64[2]
      %6 = add %2 %5 : f64[2]
      %7 = full[value=0.5:f64, shape=[]] : f64[]
      %8 = mul %6 %7 : f64[2]
      %9 = mul %8 %1 : f64[2]
      %10 = add %3 %9 : f64[2]
      %11 = full[value=1:i32, shape=[]] : i32[]
      %12 = add %4 %11 : i32[]
      return %8 %10 %12
    }
  }, cond_consts=1, body_consts=2] %2 %1 %0 %3 %4 %5 : f64[2], f64[2], i32[]
  return %6 %7 %8
}";

#[test]
fn a_while_loop_carries_its_tangents() {
    agrees(NEWTON, false);
    let joint = jvp(&func(NEWTON), &[0, 1]).unwrap();
    let looped = joint.func.eqns.iter().find(|eqn| eqn.op.name() == "while").unwrap();
    assert_eq!(looped.outputs.len(), 5, "two carries of the three have tangents");
    // The root's derivative by y is 1 / (2 root).
    let number = |values: &[f64]| Tensor::from_f64(vramlab_ir::DType::F64, [2], values).unwrap();
    let scale = Tensor::from_f64(vramlab_ir::DType::F64, [], &[1.0]).unwrap();
    let none = Tensor::from_f64(vramlab_ir::DType::F64, [], &[0.0]).unwrap();
    let count = Tensor::from_f64(vramlab_ir::DType::I32, [], &[0.0]).unwrap();
    let given = [scale, number(&[2.0, 0.5]), count, none, number(&[1.0, 1.0])];
    let all = evaluate(&joint.func, &given).unwrap();
    for (found, y) in all[3].to_f64().iter().zip([2.0f64, 0.5]) {
        assert!((found - 0.5 / y.sqrt()).abs() < 1e-9, "{found}");
    }
}

#[test]
fn a_batch_of_derivatives_along_a_while_loop() {
    let joint = jvp(&func(NEWTON), &[0, 1]).unwrap().func;
    let batched = vmap(&joint, &[true, false, false, true, true], 3).unwrap();
    verify(&batched).unwrap();
    let mut random = Random(9);
    let at = arguments(&mut random, &batched);
    let all = evaluate(&batched, &at).unwrap();
    for example in 0..3 {
        let one: Vec<Tensor> = at
            .iter()
            .zip(joint.param_types())
            .map(|(x, ty)| {
                let each = ty.shape.elements();
                let values = x.to_f64();
                match x.ty == ty {
                    true => x.clone(),
                    false => {
                        let part = &values[example * each..][..each];
                        Tensor::from_f64(ty.dtype, ty.shape.clone(), part).unwrap()
                    }
                }
            })
            .collect();
        for (all, one) in all.iter().zip(evaluate(&joint, &one).unwrap()) {
            let each = one.ty.shape.elements();
            assert_eq!(all.to_f64()[example * each..][..each], one.to_f64());
        }
    }
}

/// A scan over `steps` of h = tanh(h · w + x).
fn recurrent(steps: usize) -> String {
    format!(
        "func f(%0: f32[16,16], %1: f32[16], %2: f32[{steps},16]) -> (f32[]) {{
  %3 = scan[body={{
    func step(%0: f32[16,16], %1: f32[16], %2: f32[16]) -> (f32[16]) {{
      %3 = dot[lhs_batch=(), rhs_batch=(), lhs_contract=(0), rhs_contract=(0)] %1 %0 : f32[16]
      %4 = add %3 %2 : f32[16]
      %5 = tanh %4 : f32[16]
      return %5
    }}
  }}, length={steps}, consts=1, carries=1, reverse=false] %0 %1 %2 : f32[16]
  %4 = sum[axes=(0), keep=false] %3 : f32[]
  return %4
}}"
    )
}

#[test]
fn a_derivative_along_a_scan_keeps_nothing_of_its_steps() {
    let temps = |steps: usize| {
        let joint = jvp(&func(&recurrent(steps)), &[0, 1, 2]).unwrap();
        let donate = vec![false; joint.func.params.len()];
        let program = compile(&Arc::new(joint.func), &donate, &Options::default()).unwrap();
        program.temp_bytes
    };
    assert_eq!(temps(10), temps(1000));
    let back = value_and_grad(&func(&recurrent(1000)), &[0, 1, 2]).unwrap();
    let donate = vec![false; back.func.params.len()];
    let kept = compile(&Arc::new(back.func), &donate, &Options::default()).unwrap().temp_bytes;
    assert!(kept > 1000 * 16 * 4, "reverse mode keeps each state: {kept} bytes");
}

#[test]
fn hessian_times_vector_is_forward_over_reverse() {
    let f = func(&recurrent(5).replace("f32", "f64"));
    let gradient = value_and_grad(&f, &[0, 1]).unwrap().cotangents_only().func;
    let mut random = Random(4);
    let at = arguments(&mut random, &gradient);
    along(&mut random, &gradient, &at).expect("smooth");
}

/// Writes random programs of one array of three and a scalar.
struct Writer<'r> {
    random: &'r mut Random,
    text: String,
    next: usize,
    /// Values of f64[3] so far.
    values: Vec<usize>,
    scalar: usize,
    whiles: bool,
}

impl Writer<'_> {
    fn line(&mut self, what: &str, ty: &str) -> usize {
        writeln!(self.text, "%{} = {what} : {ty}", self.next).unwrap();
        self.next += 1;
        self.next - 1
    }

    fn any(&mut self) -> usize {
        let values = self.values.clone();
        self.random.pick(&values)
    }

    fn step(&mut self, depth: usize) {
        let (a, b) = (self.any(), self.any());
        let scalar = self.scalar;
        let kinds = if depth == 0 { 6 } else { 11 };
        let made = match self.random.below(kinds) {
            0 => self.line(&format!("tanh %{a}"), "f64[3]"),
            1 => {
                let sine = self.line(&format!("sin %{a}"), "f64[3]");
                self.line(&format!("checkpoint_name[name=\"h\"] %{sine}"), "f64[3]")
            }
            2 => self.line(&format!("mul %{a} %{b}"), "f64[3]"),
            3 => self.line(&format!("sub %{a} %{b}"), "f64[3]"),
            4 => self.line(&format!("mul %{a} %{scalar}"), "f64[3]"),
            5 => {
                let part =
                    self.line(&format!("slice[start=(1), stop=(3), step=(1)] %{a}"), "f64[2]");
                let zero = self.line("full[value=0.0:f64, shape=[]]", "f64[]");
                self.line(&format!("pad[low=(0), high=(1)] %{part} %{zero}"), "f64[3]")
            }
            6 => {
                let inner = self.inner(depth);
                self.line(
                    &format!("call[kind=\"jit\", func={{\n{inner}}}] %{a} %{scalar}"),
                    "f64[3]",
                )
            }
            7 => {
                let inner = self.inner(depth);
                let policy = self.random.pick(&[
                    "nothing_saveable",
                    "everything_saveable",
                    "save_only_these_names(h)",
                    "save_anything_except_these_names(h)",
                    "save_and_offload_only_these_names([], [h], device, pinned_host)",
                ]);
                let op = format!("checkpoint[policy=\"{policy}\", func={{\n{inner}}}]");
                self.line(&format!("{op} %{a} %{scalar}"), "f64[3]")
            }
            8 => {
                let (yes, no) = (self.inner(depth), self.inner(depth));
                let half = self.line("full[value=0.7:f64, shape=[]]", "f64[]");
                let chosen = self.line(&format!("lt %{scalar} %{half}"), "bool[]");
                let op = format!("cond[on_true={{\n{yes}}}, on_false={{\n{no}}}]");
                self.line(&format!("{op} %{chosen} %{a} %{scalar}"), "f64[3]")
            }
            9 if self.whiles => self.counted(depth, a),
            _ => {
                let inner = self.inner(depth);
                let body = format!(
                    "func s(%0: f64[], %1: f64[3]) -> (f64[3]) {{
%2 = call[kind=\"jit\", func={{\n{inner}}}] %1 %0 : f64[3]
return %2\n}}\n"
                );
                let op = format!(
                    "scan[body={{\n{body}}}, length=2, consts=1, carries=1, reverse=false]"
                );
                self.line(&format!("{op} %{scalar} %{a}"), "f64[3]")
            }
        };
        self.values.push(made);
    }

    /// A while that goes on three times.
    fn counted(&mut self, depth: usize, a: usize) -> usize {
        let inner = self.inner(depth);
        let zero = self.line("full[value=0:i32, shape=[]]", "i32[]");
        let scalar = self.scalar;
        let body = format!(
            "func b(%0: f64[], %1: f64[3], %2: i32[]) -> (f64[3], i32[]) {{
%3 = call[kind=\"jit\", func={{\n{inner}}}] %1 %0 : f64[3]
%4 = full[value=1:i32, shape=[]] : i32[]
%5 = add %2 %4 : i32[]
return %3 %5\n}}\n"
        );
        let cond = "func c(%0: f64[3], %1: i32[]) -> (bool[]) {
%2 = full[value=3:i32, shape=[]] : i32[]
%3 = lt %1 %2 : bool[]
return %3\n}\n";
        let op =
            format!("while[cond={{\n{cond}}}, body={{\n{body}}}, cond_consts=0, body_consts=1]");
        let first = self.next;
        writeln!(
            self.text,
            "%{first} %{} = {op} %{scalar} %{a} %{zero} : f64[3], i32[]",
            first + 1
        )
        .unwrap();
        self.next += 2;
        first
    }

    fn inner(&mut self, depth: usize) -> String {
        program(self.random, depth - 1, self.whiles)
    }
}

fn program(random: &mut Random, depth: usize, whiles: bool) -> String {
    let mut writer =
        Writer { random, text: String::new(), next: 2, values: vec![0], scalar: 1, whiles };
    for _ in 0..3 + writer.random.below(3) {
        writer.step(depth);
    }
    let last = *writer.values.last().unwrap();
    let text = writer.text;
    format!("func g(%0: f64[3], %1: f64[]) -> (f64[3]) {{\n{text}return %{last}\n}}\n")
}

/// Random programs under random transforms of one another, each derivative held to differences.
#[test]
fn transforms_nest_in_any_way() {
    let mut random = Random(2026);
    let (mut compared, mut gone_back) = (0, 0);
    for _ in 0..200 {
        let whiles = random.below(2) == 0;
        let mut func = func(&program(&mut random, 2, whiles));
        let mut named = String::new();
        for _ in 0..random.below(3) {
            let wrt = floats(&func.param_types());
            func = match random.below(3) {
                0 if !whiles => vjp(&func, &wrt).unwrap().func,
                1 => {
                    let batched: Vec<bool> =
                        func.params.iter().map(|_| random.below(2) == 0).collect();
                    vmap(&func, &batched, 2).unwrap()
                }
                _ => jvp(&func, &wrt).unwrap().func,
            };
            named += &format!("{} ", func.name);
            verify(&func).unwrap_or_else(|e| panic!("{named}{e:?}\n{func}"));
        }
        if func.eqns.len() > 1500 {
            continue;
        }
        let types: Vec<Type> = func.param_types();
        let at: Vec<Tensor> = types.iter().map(|ty| random.tensor(ty, 0.2, 0.9)).collect();
        compared += along(&mut random, &func, &at).is_some() as usize;
        if !whiles {
            gone_back += check(&mut random, &func, &at).is_some() as usize;
        }
    }
    assert!(compared > 130 && gone_back > 30, "{compared} compared, {gone_back} gone back through");
}
