//! Programs under a limit: what is computed again gives the same values, and costs what is said.

mod support;

use std::sync::Arc;
use support::random::Random;
use support::{Order, check_plan, close, execute, tolerance};
use vramlab_compiler::{Options, compile};
use vramlab_ir::{Fault, FaultKind, Func, Program, evaluate, parse};

/// `layers` times h = tanh(h · w), then back: g = (g · wᵀ) (1 - h²), and hᵀ · g for each layer.
fn gradient(layers: usize, rows: usize, width: usize) -> Arc<Func> {
    let wide = format!("f32[{rows},{width}]");
    let square = format!("f32[{width},{width}]");
    let params: Vec<String> = (0..layers).map(|at| format!("%{}: {square}", at + 1)).collect();
    let outs = vec![square.clone(); layers].join(", ");
    let mut text = format!("func f(%0: {wide}, {}) -> ({outs}) {{\n", params.join(", "));
    let mut next = layers + 1;
    let mut line = |what: String, ty: &str| {
        text.push_str(&format!("  %{next} = {what} : {ty}\n"));
        next += 1;
        next - 1
    };
    let dot = |a: usize, b: usize, left: usize, right: usize| {
        format!(
            "dot[lhs_batch=(), rhs_batch=(), lhs_contract=({left}), rhs_contract=({right})] %{a} %{b}"
        )
    };
    let mut h = vec![0];
    for layer in 0..layers {
        let product = line(dot(h[layer], layer + 1, 1, 0), &wide);
        h.push(line(format!("tanh %{product}"), &wide));
    }
    let one = line("full[value=1.0:f32, shape=[]]".into(), "f32[]");
    let mut g = line(format!("broadcast[shape=[{rows},{width}]] %{one}"), &wide);
    let mut results = vec![0; layers];
    for layer in (0..layers).rev() {
        let squared = line(format!("mul %{0} %{0}", h[layer + 1]), &wide);
        let slope = line(format!("sub %{one} %{squared}"), &wide);
        let before = line(format!("mul %{g} %{slope}"), &wide);
        results[layer] = line(dot(h[layer], before, 0, 0), &square);
        g = line(dot(before, layer + 1, 1, 1), &wide);
    }
    let results: Vec<String> = results.iter().map(|result| format!("%{result}")).collect();
    text.push_str(&format!("  return {}\n}}", results.join(" ")));
    Arc::new(parse(&text, &vramlab_ops::lookup).unwrap_or_else(|e| panic!("{e}\n{text}")))
}

fn under(func: &Arc<Func>, limit: Option<u64>) -> Result<Program, Fault> {
    let options = Options { memory_limit: limit, ..Options::default() };
    let program = compile(func, &[], &options)?;
    check_plan(&program);
    Ok(program)
}

fn flops(program: &Program) -> u64 {
    program.kernels.iter().map(|kernel| kernel.flops).sum()
}

#[test]
fn what_is_computed_again_gives_the_same_values() {
    let func = gradient(9, 40, 3);
    let inputs = support::random::arguments(&func, &mut Random::new(3));
    let wanted = evaluate(&func, &inputs).unwrap();
    let free = under(&func, None).unwrap();
    let mut tried = 0;
    for percent in [90, 75, 60] {
        let limit = free.peak_bytes - free.temp_bytes * (100 - percent) / 100;
        let Ok(program) = under(&func, Some(limit)) else { continue };
        assert!(program.peak_bytes <= limit);
        tried += 1;
        let order = Order { whole_rows: false, rows_backwards: false };
        for (got, wanted) in execute(&program, &inputs, order).iter().zip(&wanted) {
            assert!(close(got, wanted, tolerance(&func)), "{percent} %: {got}\nwanted {wanted}");
        }
    }
    assert!(tried == 3, "only {tried} limits were reached");
}

#[test]
fn half_the_temporaries_cost_a_third_of_the_operations_at_most() {
    let func = gradient(64, 1024, 64);
    let free = under(&func, None).unwrap();
    let limit = free.peak_bytes - free.temp_bytes / 2;
    let program = under(&func, Some(limit)).unwrap();
    let more = flops(&program) as f64 / flops(&free) as f64 - 1.0;
    assert!(program.temp_bytes * 2 <= free.temp_bytes + (limit - program.peak_bytes) * 2);
    assert!(more > 0.0 && more <= 0.34, "{more}");
    let note = &program.notes[0];
    assert!(note.starts_with("memory_limit") && note.contains("computed again"), "{note}");
}

#[test]
fn a_limit_that_is_kept_anyway_changes_nothing() {
    let func = gradient(4, 8, 8);
    let free = under(&func, None).unwrap();
    let same = under(&func, Some(free.peak_bytes)).unwrap();
    assert_eq!(free.kernels, same.kernels);
}

#[test]
fn a_limit_below_the_arguments_says_what_they_are() {
    let fault = under(&gradient(4, 64, 16), Some(1000)).unwrap_err();
    assert!(fault.message.contains("below what the call itself holds"), "{fault}");
    assert!(fault.help.as_ref().is_some_and(|help| help.contains("at least")), "{fault:?}");
}

#[test]
fn a_limit_out_of_reach_names_the_least_peak_and_what_is_held_there() {
    let func = gradient(6, 512, 16);
    let free = under(&func, None).unwrap();
    let outside = free.peak_bytes - free.temp_bytes;
    let fault = under(&func, Some(outside + 1024)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Argument, "no allocation failed, so no report belongs to it");
    assert!(fault.message.contains("is the least peak"), "{fault}");
    assert!(fault.message.contains("f32[512,16]"), "{fault}");
}
