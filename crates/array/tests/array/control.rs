//! Loops and branches: traced, at once, inside each other; and what is refused.

use crate::{assert_values, fault, on};
use vramlab_array::ir::FaultKind;
use vramlab_array::prelude::*;

#[test]
fn a_scan_carries_and_stacks_at_once_and_in_jit() {
    on(|engine| {
        let xs = linspace(1.0, 4.0, 4);
        let (total, sums) = scan(|c, x| (&c + &x, c + x), zeros(()), xs.clone());
        assert_values(&total, &[10.0]);
        assert_values(&sums, &[1.0, 3.0, 6.0, 10.0]);
        let f = jit(|[xs]| scan(|c, x| (&c + &x, c * x), ones(()), xs.clone()));
        let (total, products) = f([&xs]);
        assert_values(&total, &[11.0]);
        assert_values(&products, &[1.0, 4.0, 12.0, 28.0]);
        let (_, back) = scan_reverse(|c, x| (&c + &x, c + x), zeros(()), xs);
        assert_values(&back, &[10.0, 9.0, 7.0, 4.0]);
        assert_eq!(engine.claims(), 5, "what was named is held, and nothing else");
    });
}

#[test]
fn trees_are_carried_and_arrays_from_outside_are_read() {
    on(|_| {
        let w = full([2], 2.0);
        let xs = (linspace(1.0, 6.0, 6).reshape([3, 2]), arange_as(I32, 3));
        let init = (zeros([2]), vec![ones(()), zeros_as(I32, ())]);
        let ((sum, rest), (each, count)) = scan(
            |(sum, rest): (Array, Vec<Array>), (x, i): (Array, Array)| {
                let sum = sum + x * &w;
                let rest = vec![&rest[0] * 2.0, &rest[1] + &i];
                ((sum.clone(), rest), (sum.sum(), i))
            },
            init,
            xs,
        );
        assert_values(&sum, &[18.0, 24.0]);
        assert_values(&rest[0], &[8.0]);
        assert_values(&rest[1], &[3.0]);
        assert_values(&each, &[6.0, 20.0, 42.0]);
        assert_values(&count, &[0.0, 1.0, 2.0]);
    });
}

#[test]
fn loops_count_and_wait() {
    on(|_| {
        let powers = fori_loop(2, 5, |i, x: Array| x * i, ones([2]));
        assert_values(&powers, &[24.0, 24.0]);
        assert_values(&fori_loop(5, 2, |_, x| x, ones([2])), &[1.0, 1.0]);
        let last = array(4);
        assert_values(&fori_loop(1, &last, |i, x: Array| x + i, zeros(())), &[6.0]);
        let f = jit(|[n, x]| fori_loop(0, n, |i, x: Array| x + i, x.clone()));
        assert_values(&f([&array(5), &ones(())]), &[11.0]);
        let doubled = while_loop(|x: Array| x.max().lt(100.0), |x| x * 2.0, linspace(1.0, 3.0, 3));
        assert_values(&doubled, &[64.0, 128.0, 192.0]);
        let (steps, value) = while_loop(
            |(_, x): (Array, Array)| x.gt(1.0),
            |(n, x)| (n + 1, x / 2.0),
            (zeros_as(I32, ()), full((), 9.0)),
        );
        assert_values(&steps, &[4.0]);
        assert_values(&value, &[0.5625]);
    });
}

#[test]
fn a_branch_takes_one_side_and_both_may_read_what_is_outside() {
    on(|_| {
        let (a, b) = (ones([2]), full([2], 3.0));
        for (sign, wanted) in [(1.0, 2.0), (-1.0, -2.0)] {
            let holds = full((), sign).gt(0.0);
            let got = cond(holds, |x: Array| x + &a, |x| x - &b, ones([2]));
            assert_values(&got, &[wanted; 2]);
        }
        let f =
            jit(|[x]| cond(x.sum().gt(0.0), |(x,): (Array,)| (x,), |(x,)| (-x,), (x.clone(),)).0);
        assert_values(&f([&full([2], -1.0)]), &[1.0, 1.0]);
    });
}

#[test]
fn loops_have_gradients() {
    on(|_| {
        let f = |[x]: [&Array; 1]| fori_loop(0, 3, |_, y: Array| &y * &y, x.clone()).sum();
        let g = grad(f);
        assert_values(&g([&full([2], 1.1)]), &[8.0 * 1.1f64.powi(7); 2]);
        let g = jit(move |[x]| g([x]));
        assert_values(&g([&full([2], 1.1)]), &[8.0 * 1.1f64.powi(7); 2]);
    });
}

#[test]
fn running_sums_and_scatters() {
    on(|_| {
        let x = array([[1.0, 2.0], [3.0, 4.0]]);
        assert_values(&x.cumsum(0), &[1.0, 2.0, 4.0, 6.0]);
        assert_values(&x.cumsum_reverse(-1), &[3.0, 2.0, 7.0, 4.0]);
        assert_values(&cumprod(&x, 1), &[1.0, 2.0, 3.0, 12.0]);
        assert_values(&(-&x).cummax(0), &[-1.0, -2.0, -1.0, -2.0]);
        assert_values(&x.cummin(1), &[1.0, 1.0, 3.0, 3.0]);
        assert_eq!(x.gt(1.0).cumsum(0).dtype(), I32);
        assert_eq!(x.convert(F16).cumsum(0).dtype(), F16);
        let at = array([1, 0, 1]);
        let updates = array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        assert_values(&x.scatter_add(&at, updates, 1), &[3.0, 6.0, 8.0, 14.0]);
        assert_values(&zeros([3]).scatter_add(array([7, -1]), 2, 0), &[0.0, 0.0, 4.0]);
        assert_values(&zeros([3]).scatter_add(array([-2, -7]), 2, 0), &[2.0, 2.0, 0.0]);
    });
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    on(|_| {
        let wrong = fault(|| scan(|c: Array, x: Array| (c, x), zeros(()), ones(())));
        assert_eq!(wrong.kind, FaultKind::Shape);
        assert!(wrong.message.contains("xs is f32[]"), "{wrong}");
        let wrong = fault(|| scan(|c: Array, _: ()| (c, ()), zeros(()), ()));
        assert!(wrong.message.contains("no arrays"), "{wrong}");
        let wrong = fault(|| {
            let xs = (ones([3]), ones([4]));
            scan(|c: Array, (x, _): (Array, Array)| (c, x), zeros(()), xs)
        });
        assert!(wrong.message.contains("xs.0 has 3 slices"), "{wrong}");
        let wrong = fault(|| scan(|c: Array, x: Array| (c + x, ()), zeros_as(I32, ()), ones([3])));
        assert_eq!(wrong.kind, FaultKind::DType);
        assert!(
            wrong.message.contains("enters the body as i32[] and leaves it as f32[]"),
            "{wrong}"
        );
        let wrong = fault(|| {
            let body = |c: Vec<Array>, _: Array| (vec![c[0].clone(), c[0].clone()], ());
            scan(body, vec![ones(())], ones([3]))
        });
        assert!(wrong.message.contains("carry has 1 element"), "{wrong}");
        let wrong = fault(|| while_loop(|x: Array| x, |x| x, ones(())));
        assert!(wrong.message.contains("one bool[] is wanted"), "{wrong}");
        let wrong = fault(|| cond(1.0, |x: Array| x, |x| x, ones(())));
        assert!(wrong.message.contains("one bool[]"), "{wrong}");
        let wrong = fault(|| fori_loop(0, 2.5, |_, x| x, ones(())));
        assert_eq!(wrong.kind, FaultKind::DType);
        let wrong = fault(|| ones([3]).scatter_add(array([1, 2]), ones([3]), 0));
        assert!(wrong.message.contains("want the shape [2]"), "{wrong}");
        let f = jit(|[x]| {
            if scan(|c, x| (&c + &x, c), zeros(()), x.clone()).0.item() > 0.0 {
                x.clone()
            } else {
                -x
            }
        });
        assert_eq!(fault(|| f([&ones([2])])).kind, FaultKind::Trace);
    });
}
