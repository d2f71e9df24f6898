//! Residuals in host memory: the gradient of a multi-layer perceptron whose named activations are
//! saved, computed again, or offloaded.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vramlab_array::ir::{Engine, Fault};
use vramlab_array::prelude::*;
use vramlab_array::with_engine;
use vramlab_runtime::{Config, Context, DeviceConfig, ModeSpec};

const LAYERS: usize = 8;
const BATCH: i32 = 512;
const HIDDEN: i32 = 64;
/// One activation.
const H: u64 = (BATCH * HIDDEN * 4) as u64;

fn context(device: DeviceConfig) -> Arc<Context> {
    let mode = ModeSpec::parse("platform").expect("a mode");
    let config = Config { device, mode, threads: Some(2), ..Config::default() };
    Context::new(config).expect("a device")
}

fn on<T>(context: &Arc<Context>, body: impl FnOnce() -> T) -> T {
    with_engine(Arc::clone(context) as Arc<dyn Engine>, body)
}

fn cpu() -> Arc<Context> {
    context(DeviceConfig::Cpu { capacity: Some(256 << 20) })
}

fn dry() -> Arc<Context> {
    context(DeviceConfig::Dry { capacity: 1 << 30 })
}

/// The last argument is the input.
fn loss(all: [&Array; LAYERS + 1]) -> Array {
    let mut h = all[LAYERS].clone();
    for w in &all[..LAYERS] {
        h = checkpoint_name(h.dot(*w).tanh(), "h");
    }
    (&h * &h).sum()
}

type Gradient = Transformed<{ LAYERS + 1 }, [Array; LAYERS]>;

fn gradient(policy: Option<Policy>) -> Gradient {
    let wrt = [0, 1, 2, 3, 4, 5, 6, 7];
    match policy {
        Some(policy) => grad_wrt(wrt, checkpoint_with(policy, loss)),
        None => grad_wrt(wrt, loss),
    }
}

fn offloading() -> Policy {
    save_and_offload_only_these_names([], ["h"], "device", "pinned_host")
}

fn arguments() -> [Array; LAYERS + 1] {
    std::array::from_fn(|at| match at {
        LAYERS => linspace(-1.0, 0.5, BATCH * HIDDEN).reshape([BATCH, HIDDEN]),
        _ => linspace(-0.1, 0.11, HIDDEN * HIDDEN).reshape([HIDDEN, HIDDEN]),
    })
}

/// What one call gives, its peak on the device as it was planned and measured, and on the host.
struct Run {
    values: Vec<Vec<f32>>,
    planned: [u64; 2],
    measured: [u64; 2],
}

fn run(context: &Arc<Context>, policy: Option<Policy>) -> Run {
    on(context, || {
        let given = arguments();
        let f = jit(gradient(policy));
        let before = context.host_memory().peak_bytes_in_use;
        assert_eq!((before, context.host_memory().bytes_in_use), (0, 0));
        context.scope_begin("run");
        let results = f(given.each_ref());
        let figures = context.scope_end();
        let analysis = f.memory_analysis();
        let dry = context.is_dry();
        let values = |array: &Array| if dry { Vec::new() } else { array.to_vec::<f32>() };
        let host = context.host_memory();
        assert_eq!(host.bytes_in_use, 0, "it went back behind the call");
        Run {
            values: results.iter().map(values).collect(),
            planned: [analysis.peak_memory_in_bytes, analysis.host_temp_size_in_bytes],
            measured: [figures.peak_bytes, host.peak_bytes_in_use],
        }
    })
}

#[test]
fn offloaded_activations_leave_the_device_and_change_no_bit() {
    let saved = run(&cpu(), Some(save_only_these_names(["h"])));
    let offloaded = run(&cpu(), Some(offloading()));
    let plain = run(&cpu(), None);
    for run in [&saved, &offloaded, &plain] {
        assert_eq!(run.planned, run.measured);
        assert!(run.values == saved.values, "the same values, bit by bit");
        assert!(run.values[0].iter().any(|v| *v != 0.0));
    }
    assert_eq!([saved.planned[1], plain.planned[1]], [0, 0]);
    // All but what is just being made or read wait in host memory.
    let [device, host] = offloaded.planned;
    assert_eq!(host, LAYERS as u64 * H);
    let less = saved.planned[0] - device;
    assert!(less >= (LAYERS as u64 - 4) * H, "{less} less, an activation has {H}");
}

#[test]
fn products_can_be_offloaded_too() {
    let kept = run(&cpu(), Some(dots_with_no_batch_dims_saveable()));
    let offloaded = run(&cpu(), Some(offload_dot_with_no_batch_dims("device", "pinned_host")));
    assert!(kept.values == offloaded.values);
    // Each activation is computed again when its product is back.
    assert!(kept.planned[0] - offloaded.planned[0] >= (LAYERS as u64 - 3) * H);
    assert_eq!(offloaded.planned, offloaded.measured);
    assert_eq!(offloaded.planned[1], LAYERS as u64 * H);
}

#[test]
fn the_dry_device_counts_the_same() {
    let [dry, cpu] = [dry(), cpu()].map(|context| run(&context, Some(offloading())));
    assert_eq!([dry.planned, dry.measured], [cpu.planned, cpu.measured]);
}

/// The peak of an eager gradient beside what is there, and that of the host.
fn eager(context: &Arc<Context>, policy: Option<Policy>) -> ([u64; 2], Vec<Vec<f32>>) {
    on(context, || {
        let given = arguments();
        let g = gradient(policy);
        context.scope_begin("run");
        let results = g(given.each_ref());
        let peak = context.scope_end().peak_bytes;
        let host = context.host_memory();
        assert_eq!(host.bytes_in_use, 0, "every copy was dropped behind its last use");
        let dry = context.is_dry();
        let values = |array: &Array| if dry { Vec::new() } else { array.to_vec::<f32>() };
        ([peak, host.peak_bytes_in_use], results.iter().map(values).collect())
    })
}

#[test]
fn an_eager_gradient_offloads_as_well() {
    let (saved, values) = eager(&cpu(), Some(save_only_these_names(["h"])));
    let (offloaded, same) = eager(&cpu(), Some(offloading()));
    assert!(values == same);
    assert_eq!([saved[1], offloaded[1]], [0, LAYERS as u64 * H]);
    assert!(offloaded[0] + (LAYERS as u64 - 4) * H <= saved[0], "{offloaded:?} {saved:?}");
    assert_eq!(eager(&dry(), Some(offloading())).0, offloaded);
}

#[test]
fn between_forward_and_backward_of_a_vjp_they_wait_on_the_host() {
    let context = cpu();
    on(&context, || {
        let given = arguments();
        let before = context.memory().requested_bytes;
        let (value, back) = vjp(checkpoint_with(offloading(), loss), given.each_ref());
        assert_eq!(context.host_memory().bytes_in_use, LAYERS as u64 * H);
        assert_eq!(context.memory().requested_bytes, before + 4, "the loss alone");
        let cotangents = back([&ones(())]);
        let (_, plain) = vjp(loss, given.each_ref());
        let same = plain([&ones(())]);
        for (a, b) in cotangents.iter().zip(&same) {
            assert_eq!(a.to_vec::<f32>(), b.to_vec::<f32>());
        }
        drop((value, back));
        assert_eq!(context.host_memory().bytes_in_use, 0);
    });
}

fn fault<T>(body: impl FnOnce() -> T) -> Fault {
    let raised = catch_unwind(AssertUnwindSafe(body)).err().expect("it is refused");
    *raised.downcast::<Fault>().expect("a fault")
}

#[test]
fn what_fails_gives_all_of_it_back() {
    let context = cpu();
    on(&context, || {
        let given = arguments();
        let f = jit(gradient(Some(offloading())));
        let _ = f.memory_analysis_of(given.each_ref());
        let before = context.memory().requested_bytes;
        context.interrupt_flag().store(true, Ordering::Relaxed);
        let stopped = fault(|| f(given.each_ref()));
        context.interrupt_flag().store(false, Ordering::Relaxed);
        assert_eq!(stopped.kind.code(), "interrupted");
        let host = context.host_memory();
        assert_eq!((host.bytes_in_use, host.peak_bytes_in_use), (0, LAYERS as u64 * H));
        assert_eq!(context.memory().requested_bytes, before);
        f(given.each_ref());
    });
    // A device that holds the arguments and little more.
    let arguments_bytes = (LAYERS as i32 * HIDDEN * HIDDEN * 4 + BATCH * HIDDEN * 4) as u64;
    let small = self::context(DeviceConfig::Dry { capacity: arguments_bytes + 2 * H });
    on(&small, || {
        let given: [Array; LAYERS + 1] = std::array::from_fn(|at| match at {
            LAYERS => zeros([BATCH, HIDDEN]),
            _ => zeros([HIDDEN, HIDDEN]),
        });
        let (jitted, eager) = (jit(gradient(Some(offloading()))), gradient(Some(offloading())));
        for stopped in [fault(|| jitted(given.each_ref())), fault(|| eager(given.each_ref()))] {
            assert_eq!(stopped.kind.code(), "OOM");
            assert_eq!(small.host_memory().bytes_in_use, 0);
            assert_eq!(small.memory().requested_bytes, arguments_bytes);
        }
        assert!(small.host_memory().peak_bytes_in_use > 0, "the eager one had begun");
    });
}

#[test]
fn what_cannot_be_offloaded_is_refused_where_it_is_said() {
    let refused = |body: &dyn Fn() -> Policy| {
        let fault = fault(body);
        format!("{fault}; {:?}", fault.help)
    };
    let name = "save_and_offload_only_these_names";
    let text =
        refused(&|| save_and_offload_only_these_names(["h"], ["h"], "device", "pinned_host"));
    assert!(text.contains(name) && text.contains("both a name to save and a name to offload"));
    let text = refused(&|| offload_dot_with_no_batch_dims("device", "unpinned_host"));
    assert!(text.contains("there is no memory kind \"unpinned_host\""), "{text}");
    assert!(text.contains("the memory kinds are device and pinned_host"), "{text}");
    let unknown = save_and_offload_only_these_names([], ["no"], "device", "pinned_host");
    let f = gradient(Some(unknown));
    let text = on(&cpu(), || fault(|| f(arguments().each_ref())).to_string());
    assert!(text.contains("no checkpoint_name in the function gives \"no\""), "{text}");
}

const STEPS: i32 = 32;

/// A recurrent network by scan, whose state's tanh is named.
fn recurrent(policy: Option<Policy>) -> Transformed<3, Array> {
    let step = |[h, w, x]: [&Array; 3]| {
        let a = checkpoint_name((h.dot(w) + x).tanh(), "a");
        &a * &a + h
    };
    let step: Transformed<3, Array> = match policy {
        Some(policy) => checkpoint_with(policy, step),
        None => Box::new(step),
    };
    grad(move |[w, h, xs]: [&Array; 3]| {
        let body = |h: Array, x: Array| (step([&h, w, &x]), ());
        let (last, _) = scan(body, h.clone(), xs.clone());
        last.sum()
    })
}

fn sequence() -> [Array; 3] {
    let range = |from: f64, to: f64, n: i32| linspace(from, to, n);
    [
        range(-0.2, 0.1, 32 * 32).reshape([32, 32]),
        range(-0.5, 0.5, 16 * 32).reshape([16, 32]),
        range(-1.0, 1.0, STEPS * 16 * 32).reshape([STEPS, 16, 32]),
    ]
}

#[test]
fn slices_that_a_scan_keeps_are_stacked_on_the_host() {
    let stack = (STEPS * 16 * 32 * 4) as u64;
    let saved = || save_only_these_names(["a"]);
    let offloading = || save_and_offload_only_these_names([], ["a"], "device", "pinned_host");
    let given = |context: &Arc<Context>, policy: Option<Policy>, compiled: bool| {
        on(context, || {
            let [w, h, xs] = sequence();
            let f = recurrent(policy);
            let g = jit(recurrent(Some(offloading())));
            context.scope_begin("run");
            let result = if compiled { g([&w, &h, &xs]) } else { f([&w, &h, &xs]) };
            let peak = context.scope_end().peak_bytes;
            if compiled {
                let analysis = g.memory_analysis();
                assert_eq!(analysis.peak_memory_in_bytes, peak);
                assert_eq!(analysis.host_temp_size_in_bytes, stack);
            }
            let host = context.host_memory();
            assert_eq!(host.bytes_in_use, 0);
            let values = if context.is_dry() { Vec::new() } else { result.to_vec::<f32>() };
            (values, peak, host.peak_bytes_in_use)
        })
    };
    let plain = given(&cpu(), None, false);
    let kept = given(&cpu(), Some(saved()), false);
    let eager = given(&cpu(), Some(offloading()), false);
    let compiled = given(&cpu(), None, true);
    assert!(plain.0 == kept.0 && kept.0 == eager.0);
    assert!(eager.0.iter().zip(&compiled.0).all(|(a, b)| (a - b).abs() <= 1e-4 * (1.0 + a.abs())));
    assert!(plain.0.iter().any(|v| *v != 0.0));
    assert_eq!([plain.2, kept.2, eager.2, compiled.2], [0, 0, stack, stack]);
    assert_eq!(kept.1 - eager.1, stack, "the stack left the device");
    assert_eq!(given(&dry(), None, true).1, compiled.1);
}

#[test]
fn a_limit_computes_again_what_is_on_the_device_and_leaves_copies_alone() {
    let context = cpu();
    on(&context, || {
        let policy = || save_and_offload_only_these_names([], ["a"], "device", "pinned_host");
        let [w, h, xs] = sequence();
        let free = jit(recurrent(Some(policy())));
        let result = free([&w, &h, &xs]);
        let result_bytes = 32 * 32 * 4;
        let analysis = free.memory_analysis();
        let limit = 128 << 10;
        assert!(analysis.peak_memory_in_bytes > limit, "{analysis:?}");
        let limited = jit(recurrent(Some(policy()))).memory_limit("128KiB");
        context.scope_begin("run");
        let found = limited([&w, &h, &xs]);
        let peak = context.scope_end().peak_bytes - result_bytes;
        assert!(allclose(&found, &result));
        let analysis = limited.memory_analysis();
        assert_eq!(analysis.peak_memory_in_bytes, peak);
        assert!(peak <= limit && analysis.host_temp_size_in_bytes > 0, "{analysis:?}");
    });
}

#[test]
fn gradients_of_gradients_and_batches_go_through_copies() {
    on(&cpu(), || {
        let f = |[x]: [&Array; 1]| checkpoint_name(x.sin(), "h").exp().sum();
        let policy = || save_and_offload_only_these_names([], ["h"], "device", "pinned_host");
        let x = linspace(0.1, 0.9, 5);
        let offloaded = hessian(checkpoint_with(policy(), f))([&x]);
        assert_eq!(offloaded.to_vec::<f32>(), hessian(f)([&x]).to_vec::<f32>());
        let twice = |g: Transformed<1, Array>| grad(move |[x]: [&Array; 1]| g([x]).sum())([&x]);
        let [a, b] = [twice(grad(checkpoint_with(policy(), f))), twice(grad(f))];
        assert_eq!(a.to_vec::<f32>(), b.to_vec::<f32>());
        let rows = linspace(-1.0, 1.0, 15).reshape([3, 5]);
        let [a, b] = [vmap(grad(checkpoint_with(policy(), f))), vmap(grad(f))];
        assert_eq!(a([&rows]).to_vec::<f32>(), b([&rows]).to_vec::<f32>());
        let [w, h, xs] = sequence();
        let second = |g: Transformed<3, Array>| {
            grad(move |[w, h, xs]: [&Array; 3]| g([w, h, xs]).sum())([&w, &h, &xs])
        };
        let name = || save_and_offload_only_these_names([], ["a"], "device", "pinned_host");
        let [a, b] = [second(recurrent(Some(name()))), second(recurrent(None))];
        assert!(allclose(&a, &b));
        let either = |policy: Option<Policy>, taken: f64| {
            let f: Transformed<1, Array> = match policy {
                Some(policy) => checkpoint_with(policy, f),
                None => Box::new(f),
            };
            let g = jit(grad(move |[x, t]: [&Array; 2]| {
                cond(t.gt(0.0), |x: Array| f([&x]), |x: Array| x.sum(), x.clone())
            }));
            g([&x, &full((), taken)])
        };
        for taken in [-1.0, 1.0] {
            assert!(allclose(either(Some(policy()), taken), either(None, taken)));
        }
        // Each step takes a gradient of its own, which offloads and fetches within the step.
        let steps = |g: Transformed<1, Array>| {
            let body = |x: Array, _: Array| (&x - &(g([&x]) * 0.1), ());
            scan(body, x.clone(), zeros([4])).0
        };
        let [a, b] = [steps(grad(checkpoint_with(policy(), f))), steps(grad(f))];
        assert!(allclose(&a, &b));
    });
}
