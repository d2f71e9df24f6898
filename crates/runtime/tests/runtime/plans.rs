//! Planned and measured peaks: `plan-chain`, `jit-worse`, `plan-adam`, `plan-unrolled`, `plan-measured`, `const-once`.

use crate::lab::*;
use std::sync::Arc;
use vramlab_ir::{Argument, BufferId, CompileKind, Engine, Func, Value};

/// The true sizes on the dry device, and a thousandth of them where values are computed.
fn labs() -> [(Lab, u64); 2] {
    [(dry(4 * GIB, "ondemand"), MIB), (cpu(16 * MIB, "ondemand"), KIB)]
}

#[test]
fn plan_chain_eager_as_free_functions_peaks_at_three() {
    for (lab, unit) in labs() {
        let x = lab.bytes(64 * unit);
        let before = lab.context.work();
        let peak = lab.peak(|| {
            let first = lab.op(SEVEN[0], &[x]);
            SEVEN[1..].iter().fold(first, |x, name| lab.take(name, x));
        });
        assert_eq!(peak, 192 * unit);
        let work = lab.context.work().since(before);
        assert_eq!((work.kernels, work.bytes_read + work.bytes_written), (7, 896 * unit));
    }
}

#[test]
fn plan_chain_eager_as_methods_peaks_at_eight() {
    for (lab, unit) in labs() {
        let x = lab.bytes(64 * unit);
        let peak = lab.peak(|| {
            let mut temporaries = vec![x];
            for name in SEVEN {
                temporaries.push(lab.op(name, &[*temporaries.last().expect("x")]));
            }
        });
        assert_eq!(peak, 512 * unit);
    }
}

#[test]
fn plan_chain_jitted_peaks_at_two_and_moved_at_one() {
    for (lab, unit) in labs() {
        let dims = [64 * unit as usize / 4];
        let x = lab.bytes(64 * unit);
        let before = lab.context.work();
        let peak = lab.peak(|| {
            lab.jit(&chain(&dims), &[Argument::Borrowed(x)]).map(|y| lab.drop(y[0])).expect("fits");
        });
        assert_eq!(peak, 128 * unit);
        let work = lab.context.work().since(before);
        assert_eq!((work.kernels, work.bytes_read + work.bytes_written), (1, 128 * unit));
        let executable = lab.compile(&chain(&dims), &[false], CompileKind::Jit);
        let explanation = lab.context.explain(executable).expect("an entry");
        assert_eq!(explanation.analysis.temp_size_in_bytes, 0);
        assert_eq!(explanation.analysis.peak_memory_in_bytes, 128 * unit);
        assert_eq!(explanation.measured_peak_bytes, Some(128 * unit));
        assert_eq!((explanation.ops, explanation.kernels), (7, 1));
        let peak = lab.peak(|| {
            lab.jit(&chain(&dims), &[Argument::Donated(x)]).expect("fits");
        });
        assert_eq!(peak, 64 * unit);
        lab.check();
    }
}

/// Traffic is what a kernel writes, not what its operand holds.
#[test]
fn a_broadcast_scalar_counts_the_whole_result() {
    let lab = dry(GIB, "platform");
    let scalar = vramlab_ir::Type::new(vramlab_ir::DType::F32, []);
    let shape = vramlab_ir::Param::Shape([2560, 1024].into());
    let filled = func("full", &[scalar], |build, all| {
        vec![build.op("broadcast", vramlab_ir::Params::new().with("shape", shape), all)]
    });
    let value = vramlab_ir::Literal::from_f64(vramlab_ir::DType::F32, 1.0);
    lab.jit(&filled, &[Argument::Scalar(value)]).expect("it fits");
    assert_eq!(lab.context.work().bytes_written, 10 * MIB);
}

#[test]
fn jit_worse_outputs_live_together() {
    for (lab, unit) in labs() {
        let ty = f32s(&[16 * unit as usize / 4]);
        let many = |_: usize| lab.bytes(16 * unit);
        let (params, grads): (Vec<_>, Vec<_>) =
            ((0..8).map(many).collect(), (0..8).map(many).collect());
        // Leaf by leaf, each old parameter dropped when its new one stands.
        let mut params: Vec<BufferId> = params;
        let peak = lab.peak(|| {
            for (p, &g) in params.iter_mut().zip(&grads) {
                let new = lab.op("sub", &[*p, g]);
                lab.drop(std::mem::replace(p, new));
            }
        });
        assert_eq!(peak, 272 * unit);
        let step = func("step", &vec![ty; 16], |build, all| {
            (0..8).map(|i| build.binary("sub", all[i], all[i + 8])).collect()
        });
        let borrowed = params.iter().chain(&grads).map(|&id| Argument::Borrowed(id));
        let borrowed: Vec<Argument> = borrowed.collect();
        let peak = lab.peak(|| {
            for result in lab.jit(&step, &borrowed).expect("fits") {
                lab.drop(result);
            }
        });
        assert_eq!(peak, 384 * unit);
        let donated = params.iter().map(|&id| Argument::Donated(id));
        let donated: Vec<Argument> =
            donated.chain(grads.iter().map(|&id| Argument::Borrowed(id))).collect();
        let peak = lab.peak(|| {
            lab.jit(&step, &donated).expect("fits");
        });
        assert_eq!(peak, 256 * unit);
        lab.check();
    }
}

fn adam(dims: &[usize]) -> Arc<Func> {
    func("adam", &vec![f32s(dims); 4], |build, all| {
        let (p, m, v, g) = (all[0], all[1], all[2], all[3]);
        let times = |build: &mut Build, factor: f64, x: Value| {
            let factor = build.full(&[], factor);
            build.binary("mul", x, factor)
        };
        let old = times(build, 0.9, m);
        let new = times(build, 0.1, g);
        let m = build.binary("add", old, new);
        let squared = build.binary("mul", g, g);
        let old = times(build, 0.999, v);
        let new = times(build, 0.001, squared);
        let v = build.binary("add", old, new);
        let root = build.unary("sqrt", v);
        let step = build.binary("div", m, root);
        let step = times(build, 0.01, step);
        vec![build.binary("sub", p, step), m, v]
    })
}

#[test]
fn plan_adam_needs_no_temporaries() {
    for (lab, unit) in labs() {
        let dims = [4 * unit as usize / 4];
        let all: Vec<BufferId> = (0..4).map(|_| lab.full(&dims, 0.5)).collect();
        let arguments: Vec<Argument> = vec![
            Argument::Donated(all[0]),
            Argument::Donated(all[1]),
            Argument::Donated(all[2]),
            Argument::Borrowed(all[3]),
        ];
        let peak = lab.peak(|| {
            lab.jit(&adam(&dims), &arguments).expect("fits");
        });
        assert_eq!(peak, 16 * unit);
        let executable = lab.compile(&adam(&dims), &[true, true, true, false], CompileKind::Jit);
        let analysis = lab.context.explain(executable).expect("an entry").analysis;
        assert_eq!(analysis.temp_size_in_bytes, 0);
        assert_eq!(analysis.alias_size_in_bytes, 12 * unit);
        assert_eq!(analysis.argument_size_in_bytes, 16 * unit);
    }
}

#[test]
fn plan_measured_equals_planned() {
    for (lab, _) in labs() {
        measured_equals_planned(&lab);
    }
}

fn measured_equals_planned(lab: &Lab) {
    let n = 16 * KIB as usize;
    let matmul = func("mlp", &[f32s(&[32, 64]), f32s(&[64, 48]), f32s(&[48, 16])], |build, all| {
        let dot = |build: &mut Build, a: Value, b: Value| {
            let ints = |axes: &[i64]| vramlab_ir::Param::Ints(axes.to_vec());
            let params = vramlab_ir::Params::new()
                .with("lhs_batch", ints(&[]))
                .with("rhs_batch", ints(&[]))
                .with("lhs_contract", ints(&[1]))
                .with("rhs_contract", ints(&[0]));
            build.op("dot", params, &[a, b])
        };
        let hidden = dot(build, all[0], all[1]);
        let hidden = build.unary("tanh", hidden);
        vec![dot(build, hidden, all[2])]
    });
    let softmax = func("softmax", &[f32s(&[64, 256])], |build, all| {
        let over = || {
            vramlab_ir::Params::new()
                .with("axes", vramlab_ir::Param::Ints(vec![1]))
                .with("keep", vramlab_ir::Param::Bool(true))
        };
        let max = build.op("max", over(), &[all[0]]);
        let shifted = build.binary("sub", all[0], max);
        let exp = build.unary("exp", shifted);
        let sum = build.op("sum", over(), &[exp]);
        vec![build.binary("div", exp, sum)]
    });
    let both = func("both", &[f32s(&[n])], |build, all| {
        let sin = build.unary("sin", all[0]);
        vec![sin, build.unary("exp", sin), all[0]]
    });
    for func in [matmul, softmax, both, adam(&[n]), chain(&[n])] {
        for donated in [false, true] {
            let arguments: Vec<BufferId> =
                func.param_types().iter().map(|ty| lab.full(&ty.shape, 0.5)).collect();
            let give = |&id: &BufferId| match donated {
                true => Argument::Donated(id),
                false => Argument::Borrowed(id),
            };
            let arguments: Vec<Argument> = arguments.iter().map(give).collect();
            let peak = lab.peak(|| {
                lab.jit(&func, &arguments).expect("fits").into_iter().for_each(|id| lab.drop(id));
            });
            let others = lab.requested();
            let executable = lab.compile(&func, &vec![donated; arguments.len()], CompileKind::Jit);
            let explanation = lab.context.explain(executable).expect("an entry");
            let planned = explanation.analysis.peak_memory_in_bytes;
            assert_eq!(explanation.measured_peak_bytes, Some(planned), "{}", func.name);
            let argument_bytes = explanation.analysis.argument_size_in_bytes;
            let beside = if donated { others } else { others - argument_bytes };
            assert_eq!(peak - beside, planned, "{} as a scope sees it", func.name);
        }
    }
    lab.check();
}

#[test]
fn plan_unrolled_holds_two_of_sixteen() {
    for (lab, n) in [(dry(GIB, "ondemand"), 1_000_000), (cpu(64 * MIB, "ondemand"), 10_000)] {
        unrolled(&lab, n);
    }
}

fn unrolled(lab: &Lab, n: usize) {
    // Sixteen matrix products, each used once by the running sum: products cannot be fused away.
    let func = func("unrolled", &[f32s(&[n, 4]), f32s(&[4, 4])], |build, all| {
        let ints = |axes: &[i64]| vramlab_ir::Param::Ints(axes.to_vec());
        let params = || {
            vramlab_ir::Params::new()
                .with("lhs_batch", ints(&[]))
                .with("rhs_batch", ints(&[]))
                .with("lhs_contract", ints(&[1]))
                .with("rhs_contract", ints(&[0]))
        };
        let mut total = build.full(&[], 0.0);
        for i in 0..16 {
            let factor = build.full(&[], f64::from(i) + 1.0);
            let scaled = build.binary("mul", all[1], factor);
            let product = build.op("dot", params(), &[all[0], scaled]);
            let over = vramlab_ir::Params::new()
                .with("axes", ints(&[0, 1]))
                .with("keep", vramlab_ir::Param::Bool(false));
            let tanh = build.unary("tanh", product);
            let sum = build.op("sum", over, &[tanh]);
            total = build.binary("add", total, sum);
        }
        vec![total]
    });
    let executable = lab.compile(&func, &[false, false], CompileKind::Jit);
    let analysis = lab.context.explain(executable).expect("an entry").analysis;
    let one = n as u64 * 16;
    assert!(analysis.temp_size_in_bytes <= 2 * one + 64 * KIB, "{analysis:?}");
    let arguments = [lab.full(&[n, 4], 0.01), lab.full(&[4, 4], 0.01)].map(Argument::Borrowed);
    let total = lab.jit(&func, &arguments).expect("it fits")[0];
    let measured = lab.context.explain(executable).expect("an entry").measured_peak_bytes;
    assert_eq!(measured, Some(analysis.peak_memory_in_bytes));
    if !lab.context.is_dry() {
        let one = |factor: f64| (0.01 * 0.01 * 4.0 * factor).tanh() * n as f64 * 4.0;
        let expected: f64 = (1..=16).map(|i| one(f64::from(i))).sum();
        let total = f64::from(lab.values(total)[0]);
        assert!((total / expected - 1.0).abs() < 1e-3, "{total} and not {expected}");
    }
}

#[test]
fn const_once_many_functions_hold_one_buffer() {
    let lab = cpu(4 * MIB, "ondemand");
    let constant = lab.bytes(64 * KIB);
    let ty = f32s(&[16 * KIB as usize]);
    let x = lab.bytes(64 * KIB);
    let base = lab.requested();
    for i in 0..16 {
        let claim = lab.context.share(constant);
        lab.context.set_owner(claim, &format!("captured by f{i}"));
        let f = func(&format!("f{i}"), &[ty.clone(), ty.clone()], |build, all| {
            let factor = build.full(&[], f64::from(i));
            let scaled = build.binary("mul", all[0], factor);
            vec![build.binary("add", scaled, all[1])]
        });
        let y = lab.jit(&f, &[Argument::Borrowed(x), Argument::Borrowed(claim)]).expect("fits");
        lab.drop(y[0]);
        assert_eq!(lab.requested(), base, "one more function, no more bytes");
    }
    lab.drop(constant);
    assert_eq!(lab.requested(), base, "the functions still hold it");
    let entries = lab.context.caches();
    let jitted = entries.iter().filter(|entry| entry.kind == CompileKind::Jit);
    assert!(jitted.into_iter().all(|entry| entry.constant_bytes == 64 * KIB), "{entries:?}");
    lab.check();
}
