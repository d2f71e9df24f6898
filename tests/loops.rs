//! What loops and their gradients plan, beside what JAX's CPU compiler plans for the same
//! (`benches/loops_peer.py` prints its figures anew).

use std::sync::Arc;
use vramlab_array::ir::Engine;
use vramlab_array::prelude::*;
use vramlab_array::with_engine;
use vramlab_runtime::{Config, Context, DeviceConfig, ModeSpec};

const BATCH: i32 = 32;
const INPUTS: i32 = 64;
const HIDDEN: i32 = 128;
const SIDE: i32 = 128;

fn context(device: DeviceConfig) -> Arc<Context> {
    let mode = ModeSpec::parse("ondemand").expect("a mode");
    let config = Config { device, mode, threads: Some(2), ..Config::default() };
    Context::new(config).expect("a device")
}

/// On a device that carries shapes only.
fn planned<T>(body: impl FnOnce() -> T) -> T {
    let device = context(DeviceConfig::Dry { capacity: 16 << 30 });
    with_engine(device as Arc<dyn Engine>, body)
}

fn cell([wz, uz, wr, ur, wc, uc, h, x]: [&Array; 8]) -> Array {
    let z = (x.dot(wz) + h.dot(uz)).sigmoid();
    let r = (x.dot(wr) + h.dot(ur)).sigmoid();
    let c = (x.dot(wc) + (r * h).dot(uc)).tanh();
    (1.0 - &z) * h + z * c
}

/// The last state and all of them.
fn gru(
    step: impl Fn([&Array; 8]) -> Array,
    [wz, uz, wr, ur, wc, uc, h, xs]: [&Array; 8],
) -> (Array, Array) {
    let body = |h: Array, x: Array| {
        let h = step([wz, uz, wr, ur, wc, uc, &h, &x]);
        (h.clone(), h)
    };
    scan(body, h.clone(), xs.clone())
}

fn arguments(steps: i32) -> [Array; 8] {
    let (w, u) = ([INPUTS, HIDDEN], [HIDDEN, HIDDEN]);
    let weights = [zeros(w), zeros(u), zeros(w), zeros(u), zeros(w), zeros(u)];
    let [wz, uz, wr, ur, wc, uc] = weights;
    [wz, uz, wr, ur, wc, uc, zeros([BATCH, HIDDEN]), zeros([steps, BATCH, INPUTS])]
}

fn temps<Out: Tree + 'static>(f: &Jit<8, Out>, steps: i32) -> u64 {
    f.memory_analysis_of(arguments(steps).each_ref()).temp_size_in_bytes
}

#[test]
fn a_gru_by_scan_plans_less_than_jax() {
    planned(|| {
        let forward = jit(|all: [&Array; 8]| gru(cell, all));
        let gradient = jit(grad_wrt([0, 1, 2, 3, 4, 5], |all: [&Array; 8]| gru(cell, all).1.sum()));
        let checkpointed = jit(grad_wrt([0, 1, 2, 3, 4, 5], |all: [&Array; 8]| {
            gru(checkpoint(cell), all).1.sum()
        }));
        for (steps, jax) in
            [(64, [90_308, 9_724_356, 1_384_772]), (1000, [90_308, 147_743_172, 16_720_196])]
        {
            let ours =
                [temps(&forward, steps), temps(&gradient, steps), temps(&checkpointed, steps)];
            assert!(
                ours.iter().zip(jax).all(|(ours, jax)| *ours <= jax),
                "{ours:?} beside {jax:?}"
            );
        }
    });
}

/// (A + λB)ⁿ in chunks of steps.
fn power(chunks: i32, steps: i32, keep: bool, [a, b, scale]: [&Array; 3]) -> Array {
    let m = a + scale * b;
    let whole = |p: &Array, m: &Array| fori_loop(0, steps, |_, p: Array| p.dot(m), p.clone());
    let chunk = checkpoint(move |[p, m]| fori_loop(0, steps, |_, p: Array| p.dot(m), p.clone()));
    fori_loop(
        0,
        chunks,
        |_, p: Array| if keep { whole(&p, &m) } else { chunk([&p, &m]) },
        eye(SIDE),
    )
}

#[test]
fn powers_in_chunks_plan_less_than_jax() {
    planned(|| {
        let square = [SIDE, SIDE];
        let arguments = [zeros(square), zeros(square), zeros(())];
        let temps =
            |f: Jit<3, Array>| f.memory_analysis_of(arguments.each_ref()).temp_size_in_bytes;
        let forward = temps(jit(|all| power(1, 1000, true, all)));
        let by_scale = |keep: bool| {
            let [gradient] = [grad_wrt([2], move |all| power(100, 10, keep, all).sum())];
            temps(jit(move |all: [&Array; 3]| {
                let [by] = gradient(all);
                by
            }))
        };
        let ours = [forward, by_scale(true), by_scale(false)];
        let jax = [131_140, 66_650_408, 7_668_072];
        assert!(ours.iter().zip(jax).all(|(ours, jax)| *ours <= jax), "{ours:?} beside {jax:?}");
    });
}

/// The plan is what runs: also for loops and their gradients, planned peak = measured peak.
#[test]
fn plan_measured_of_a_gru() {
    let device = context(DeviceConfig::Cpu { capacity: Some(256 << 20) });
    let gauge = Arc::clone(&device);
    with_engine(device as Arc<dyn Engine>, || {
        let gradient = jit(grad_wrt([0, 1, 2, 3, 4, 5], |all: [&Array; 8]| gru(cell, all).1.sum()));
        let given = arguments(64);
        let before = gauge.memory().requested_bytes;
        gauge.scope_begin("run");
        let found = gradient(given.each_ref());
        let scope = gauge.scope_end();
        let planned = gradient.memory_analysis();
        assert_eq!(before, planned.argument_size_in_bytes);
        assert_eq!(scope.peak_bytes, planned.peak_memory_in_bytes);
        assert!(found[0].to_vec::<f32>().iter().all(|x| *x == 0.0));
    });
}

fn random(steps: i32) -> [Array; 8] {
    seed(5);
    let (w, u) = ([INPUTS, HIDDEN], [HIDDEN, HIDDEN]);
    let weights = [randn(w), randn(u), randn(w), randn(u), randn(w), randn(u)].map(|w| w * 0.1);
    let [wz, uz, wr, ur, wc, uc] = weights;
    [wz, uz, wr, ur, wc, uc, zeros([BATCH, HIDDEN]), randn([steps, BATCH, INPUTS])]
}

/// Half of the temporaries of a gradient through a loop, and a twelfth: the loop is written so that it
/// keeps less, the note says at what cost, and the plan is what runs.
#[test]
fn a_memory_limit_reaches_into_loops() {
    let device = context(DeviceConfig::Cpu { capacity: Some(512 << 20) });
    let gauge = Arc::clone(&device);
    with_engine(device as Arc<dyn Engine>, || {
        let gradient =
            || jit(grad_wrt([0, 1, 2, 3, 4, 5], |all: [&Array; 8]| gru(cell, all).0.sum()));
        for (steps, parts) in [(64, [2].as_slice()), (1000, &[2, 12])] {
            let given = random(steps);
            let free = gradient();
            let wanted = free(given.each_ref());
            let plan = free.memory_analysis();
            let held = plan.peak_memory_in_bytes - plan.temp_size_in_bytes;
            let words = ["loop bodies computed again", "loops computed again in segments"];
            for (&part, how) in parts.iter().zip(words) {
                let limit = held + plan.temp_size_in_bytes / part;
                let limited = gradient().memory_limit(&limit.to_string());
                gauge.scope_begin("run");
                let found = limited(given.each_ref());
                let measured = gauge.scope_end().peak_bytes;
                // The results of the first run are beside.
                let beside: u64 = wanted.iter().map(|w| w.nbytes() as u64).sum();
                let planned = limited.memory_analysis().peak_memory_in_bytes;
                assert!(planned <= limit, "{planned} of {limit}");
                assert_eq!(measured - beside, planned);
                let notes = limited.explain();
                assert!(notes.contains(how) && notes.contains("FLOPs more (+"), "{notes}");
                for (found, wanted) in found.iter().zip(&wanted) {
                    let scale = wanted.abs().max();
                    let off = ((found - wanted).abs().max() / scale).item();
                    assert!(off < 1e-5, "{steps} steps, a {part}th: off by {off}");
                }
            }
        }
    });
}

#[test]
fn a_limit_that_no_loop_reaches_names_the_least_peak() {
    planned(|| {
        let limit = arguments(64).iter().map(|x| x.nbytes() as u64).sum::<u64>() * 17 / 10;
        let limited = jit(grad_wrt([0, 1, 2, 3, 4, 5], |all: [&Array; 8]| gru(cell, all).0.sum()))
            .memory_limit(&limit.to_string());
        let given = arguments(64);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            limited(given.each_ref());
        }));
        let payload = outcome.expect_err("nothing fits so little");
        let words = match payload.downcast_ref::<String>() {
            Some(words) => words.clone(),
            None => payload
                .downcast_ref::<vramlab_array::ir::Fault>()
                .map(|f| f.to_string())
                .unwrap_or_default(),
        };
        assert!(words.contains("is the least peak"), "{words}");
    });
}
