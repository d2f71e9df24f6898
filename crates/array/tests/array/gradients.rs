use crate::{assert_values, fault, on};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vramlab_array::ir::FaultKind;
use vramlab_array::prelude::*;

fn near(x: &Array, wanted: &[f64]) {
    let found = x.to_vec::<f64>();
    assert_eq!(found.len(), wanted.len(), "{found:?}");
    for (a, b) in found.iter().zip(wanted) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{found:?}, wanted {wanted:?}");
    }
}

#[test]
fn a_gradient_is_of_the_first_argument() {
    on(|_| {
        let g = grad(|[x, w]| (x * x * w).sum());
        near(&g([&array([1.0, 2.0, 3.0]), &full([3], 2.0)]), &[4.0, 8.0, 12.0]);
    });
}

#[test]
fn value_and_gradients_come_together() {
    on(|_| {
        let f = |[w, x]: [&Array; 2]| x.dot(w).tanh().sum();
        let (w, x) = (full([3], 0.1), ones([2, 3]));
        let (l, dw) = value_and_grad(f)([&w, &x]);
        near(&l, &[2.0 * 0.3f64.tanh()]);
        let slope = 1.0 - 0.3f64.tanh().powi(2);
        near(&dw, &[2.0 * slope; 3]);
        let [dx, dw] = grad_wrt([-1, 0], f)([&w, &x]);
        assert_eq!(dx.shape(), [2, 3]);
        near(&dw, &[2.0 * slope; 3]);
        let (l, [dx]) = value_and_grad_wrt([1], f)([&w, &x]);
        near(&l, &[2.0 * 0.3f64.tanh()]);
        near(&dx, &[0.1 * slope; 6]);
    });
}

#[test]
fn gradients_nest_any_way() {
    on(|_| {
        let x = array([0.5, 1.0]);
        let third = grad(|[x]| {
            let second = grad(|[x]| grad(|[x]| (x * x * x * x).sum())([x]).sum());
            second([x]).sum()
        });
        near(&third([&x]), &[12.0, 24.0]);
        let inside = jit(move |[x]| third([x]));
        near(&inside([&x]), &[12.0, 24.0]);
        let f = jit(|[x]| x.sin().sum());
        let outside = grad(move |a: [&Array; 1]| f(a));
        near(&outside([&x]), &[0.5f64.cos(), 1f64.cos()]);
        let both = jit(grad(checkpoint(|[x]| x.tanh().sin().sum())));
        let eager = grad(|[x]| x.tanh().sin().sum());
        assert_eq!(both([&x]).to_vec::<f32>(), eager([&x]).to_vec::<f32>());
    });
}

#[test]
fn captured_arrays_take_part() {
    on(|_| {
        let w = full([3], 3.0);
        let kept = w.clone();
        let g = grad(move |[x]| (x * &w).sum());
        near(&g([&ones([3])]), &[3.0; 3]);
        // What a gradient captures of the trace around it has a gradient there.
        let outer = grad(move |[w]: [&Array; 1]| {
            let w = w.clone();
            let inner = grad(move |[x]| (x * x * &w).sum());
            inner([&full([3], 2.0)]).sum()
        });
        near(&outer([&kept]), &[4.0; 3]);
    });
}

#[test]
fn vjp_and_jvp_are_the_two_sides_of_the_jacobian() {
    on(|_| {
        let f = |[x]: [&Array; 1]| x.sin() * 2.0;
        let x = array([0.1, 0.7]);
        let (y, back) = vjp(f, [&x]);
        near(&y, &[2.0 * 0.1f64.sin(), 2.0 * 0.7f64.sin()]);
        for _ in 0..2 {
            let [dx] = back([&array([1.0, 3.0])]);
            near(&dx, &[2.0 * 0.1f64.cos(), 6.0 * 0.7f64.cos()]);
        }
        let (y, dy) = jvp(f, [&x], [&array([1.0, 3.0])]);
        near(&y, &[2.0 * 0.1f64.sin(), 2.0 * 0.7f64.sin()]);
        near(&dy, &[2.0 * 0.1f64.cos(), 6.0 * 0.7f64.cos()]);
        let j = jacobian(f);
        near(&j([&x]), &[2.0 * 0.1f64.cos(), 0.0, 0.0, 2.0 * 0.7f64.cos()]);
        let h = hessian(|[x]| (x * x * x).sum());
        near(&h([&x]), &[0.6, 0.0, 0.0, 4.2]);
    });
}

#[test]
fn captured_arrays_stand_before_tangents() {
    on(|_| {
        let w = full([2], 5.0);
        let (_, dy) = jvp(|[x]| x * &w, [&ones([2])], [&array([1.0, 2.0])]);
        near(&dy, &[5.0, 10.0]);
    });
}

#[test]
fn a_rule_of_its_own_replaces_the_gradient() {
    on(|_| {
        let scale = full((), 10.0);
        let f = custom_vjp(
            |[x, y]| x * y,
            |[x, y]| (x * y, [x.clone()]),
            move |[x, ct]| [ct * &scale, ct * x],
        );
        let g = grad_wrt([0, 1], move |a: [&Array; 2]| f(a).sum());
        let [dx, dy] = g([&full([2], 2.0), &full([2], 3.0)]);
        near(&dx, &[10.0; 2]);
        near(&dy, &[2.0; 2]);
    });
}

#[test]
fn policies_change_no_value() {
    on(|_| {
        let layer = |[h, w]: [&Array; 2]| {
            let h = checkpoint_name(h.dot(w), "product");
            h.tanh().sum()
        };
        let (h, w) = (full([2, 3], 0.3), full([3, 3], 0.2));
        let plain = grad(layer)([&h, &w]).to_vec::<f32>();
        let policies = [
            nothing_saveable(),
            everything_saveable(),
            dots_saveable(),
            dots_with_no_batch_dims_saveable(),
            save_only_these_names(["product"]),
            save_anything_except_these_names(["product"]),
            save_any_names_but_these(["product"]),
        ];
        for policy in policies {
            let words = policy.to_string();
            let given = grad(checkpoint_with(policy, layer))([&h, &w]);
            assert_eq!(given.to_vec::<f32>(), plain, "{words}");
        }
        let f = grad(checkpoint_with(save_only_these_names(["no"]), layer));
        let found = fault(|| f([&h, &w]));
        assert_eq!(
            found.to_string(),
            "checkpoint: save_only_these_names(no): no checkpoint_name in the function gives \"no\""
        );
        assert_eq!(found.help.as_deref(), Some("the names there are: product"));
    });
}

#[test]
fn segments_take_their_functions_in_turn_whatever_their_shapes() {
    on(|_| {
        let net = |k: i32| {
            grad(move |[x]: [&Array; 1]| {
                let layers: Vec<Transformed<1, Array>> = vec![
                    Box::new(|[h]| h.tanh()),
                    Box::new(|[h]| h.reshape([2, 2])),
                    Box::new(|[h]| h.dot(h)),
                    Box::new(|[h]| h.sum_axis(0).sin()),
                ];
                checkpoint_segments(k, layers)([x]).sum()
            })
        };
        let x = array([0.1, 0.2, 0.3, 0.4]);
        let wanted = net(4)([&x]).to_vec::<f32>();
        for k in [1, 2, 3, 9] {
            assert_eq!(net(k)([&x]).to_vec::<f32>(), wanted);
        }
        let found = fault(|| net(0)([&x]));
        assert_eq!(found.to_string(), "checkpoint_segments: a segment of 0 functions");
    });
}

#[test]
fn stop_gradient_is_a_constant() {
    on(|_| {
        let g = grad(|[x]| (x * x.stop_gradient()).sum());
        near(&g([&array([2.0, 5.0])]), &[2.0, 5.0]);
    });
}

#[test]
fn what_an_eager_gradient_keeps_is_seen_and_goes() {
    on(|engine| {
        let x = ones([4]);
        let before = engine.live_bytes();
        let seen = Arc::new(AtomicBool::new(false));
        let g = grad(|[x]| x.tanh().sin().sum());
        let runs = engine.runs().len();
        let dx = g([&x]);
        assert!(engine.runs().len() > runs + 5, "op by op");
        assert_eq!(engine.live_bytes(), before + dx.nbytes() as u64);
        let (_y, back) = vjp(|[x]| x.tanh().sin(), [&x]);
        seen.store(engine.owners().iter().any(|o| o == "residual tanh"), Ordering::Relaxed);
        assert!(seen.load(Ordering::Relaxed), "{:?}", engine.owners());
        drop(back);
        assert!(!engine.owners().iter().any(|o| o.starts_with("residual")));
    });
}

#[test]
fn grad_residuals_are_a_table() {
    on(|_| {
        let f = |[x, w]: [&Array; 2]| x.dot(w).tanh().sum();
        let text = residuals(f, [&ones([2, 3]), &ones([3, 4])]);
        assert_eq!(
            text,
            "kept for the backward pass: 32 B in 1 value, and 2 arguments, which are there anyway\n  \
             f32[2,3]  24 B  argument 0  for the gradient of dot\n  \
             f32[3,4]  48 B  argument 1  for the gradient of dot\n  \
             f32[2,4]  32 B  tanh        for the gradient of tanh\n"
        );
    });
}

#[test]
fn what_cannot_be_differentiated_is_said() {
    on(|_| {
        let x = ones([3]);
        let said = |f: &dyn Fn() -> Array| fault(f).to_string();
        let vector = grad(|[x]| x * 2.0);
        assert_eq!(
            said(&|| vector([&x])),
            "grad: the function gives f32[3], and a gradient is of a scalar"
        );
        let integer = grad(|[x]| x.sum());
        assert_eq!(
            said(&|| integer([&full_as(DType::I32, [3], 1.0)])),
            "grad: argument 0 is i32[3], and integers have no gradient"
        );
        let far = grad_wrt([2], |[x]| x.sum());
        assert_eq!(
            fault(|| far([&x])).to_string(),
            "grad_wrt: there is no argument 2; the function takes 1"
        );
        let read = grad(|[x]| x * x.sum().item());
        assert_eq!(fault(|| read([&x])).kind, FaultKind::Trace);
        let (_, back) = vjp(|[x]| x * 2.0, [&x]);
        assert_eq!(
            fault(|| back([&ones([2])])).to_string(),
            "vjp: the cotangent is f32[2], and the result is f32[3]"
        );
    });
}

#[test]
fn a_gradient_that_does_not_fit_leaves_nothing_behind() {
    on(|engine| {
        let g = grad(|[x]| x.tanh().sum());
        let x = ones([4]);
        let before = engine.live_bytes();
        engine.refuse(true);
        assert_eq!(fault(|| g([&x])).kind, FaultKind::OutOfMemory);
        engine.refuse(false);
        assert_eq!(engine.live_bytes(), before);
        assert_values(&g([&zeros([2])]), &[1.0, 1.0]);
    });
}
