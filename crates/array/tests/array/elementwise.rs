use crate::{assert_values, fault, on};
use vramlab_array::ir::{FaultKind, Origin, Span};
use vramlab_array::prelude::*;
use vramlab_array::set_origin;

#[test]
fn operators_take_arrays_and_numbers_in_every_combination() {
    on(|_| {
        let x = || array([1.0, 2.0]);
        let y = x();
        for sum in [x() + x(), x() + &y, &y + x(), &y + &y] {
            assert_values(&sum, &[2.0, 4.0]);
        }
        assert_values(&(x() - 1.0), &[0.0, 1.0]);
        assert_values(&(1.0 - &y), &[0.0, -1.0]);
        assert_values(&(2 * x()), &[2.0, 4.0]);
        assert_values(&(&y / 2), &[0.5, 1.0]);
        assert_values(&(5.0 % &y), &[0.0, 1.0]);
        assert_values(&-&y, &[-1.0, -2.0]);
        let mut z = x();
        z += 1.0;
        z *= &y;
        z -= x();
        z /= 2;
        assert_values(&z, &[0.5, 2.0]);
        assert_values(&(x() * 2.0).tanh(), &[2f64.tanh(), 4f64.tanh()]);
    });
}

#[test]
fn numbers_are_weak() {
    on(|engine| {
        assert_eq!((zeros_as(F16, [2]) * 2.0).dtype(), F16);
        assert_eq!((zeros_as(F64, [2]) * 2).dtype(), F64);
        assert_eq!((zeros_as(U8, [2]) + 1).dtype(), U8);
        assert_eq!((array([3]) * 0.5).to_vec::<f64>(), vec![1.5]);
        assert_eq!((array([3]) * 0.5).dtype(), F32);
        assert_eq!((array([true]) + 1).dtype(), I32);
        assert_eq!(maximum(array([-1.0, 1.0]), 0).dtype(), F32);
        let before = engine.compiles().len();
        let x = ones([3]);
        let _ = (&x * 7.0, &x * 8.0, &x * 9.0);
        assert_eq!(engine.compiles().len() - before, 2, "ones and one multiplication");
    });
}

#[test]
fn arrays_of_two_types_meet_by_promotion_in_one_kernel() {
    on(|engine| {
        let (a, b) = (array([1, 2]), array([0.5, 0.5]));
        let before = engine.runs().len();
        let sum = &a + &b;
        assert_eq!(engine.runs().len() - before, 1);
        assert_eq!(sum.dtype(), F32);
        assert_values(&sum, &[1.5, 2.5]);
        assert_eq!((zeros_as(U32, [1]) + zeros_as(I32, [1])).dtype(), I64);
        assert_eq!((zeros_as(F16, [1]) + zeros_as(BF16, [1])).dtype(), F32);
    });
}

#[test]
fn ops_on_floats_take_integers() {
    on(|_| {
        assert_values(&exp(array([0, 1])), &[1.0, std::f64::consts::E]);
        assert_values(&sqrt(array([4])), &[2.0]);
        assert_eq!((array([7]) / 2).to_vec::<i32>(), vec![3]);
        assert_eq!(abs(array([true])).dtype(), I32);
    });
}

#[test]
fn shapes_broadcast_and_clashes_name_both() {
    on(|_| {
        let sum = array([[1.0], [2.0]]) + array([10.0, 20.0]);
        assert_values(&sum, &[11.0, 21.0, 12.0, 22.0]);
        let place =
            Origin { cell: 7, span: Span { line: 2, column: 1, end_line: 2, end_column: 6 } };
        let before = set_origin(place);
        let clash = fault(|| zeros([2, 3]) + zeros([4]));
        set_origin(before);
        assert_eq!((clash.kind, clash.op.as_str()), (FaultKind::Shape, "add"));
        assert!(clash.message.contains("f32[2,3]") && clash.message.contains("f32[4]"));
        assert_eq!((clash.cell, clash.span), (7, Some(place.span)));
    });
}

#[test]
fn nan_and_infinity_flow() {
    on(|_| {
        let x = array([f64::NAN, f64::INFINITY, -f64::INFINITY, 0.0]);
        assert_values(&(&x + 1.0), &[f64::NAN, f64::INFINITY, -f64::INFINITY, 1.0]);
        assert_values(&exp(&x), &[f64::NAN, f64::INFINITY, 0.0, 1.0]);
        assert_values(&maximum(&x, 1.0), &[f64::NAN, f64::INFINITY, 1.0, 1.0]);
        assert!(x.max().item().is_nan() && x.sum().item().is_nan());
        assert_values(&isnan(&x), &[1.0, 0.0, 0.0, 0.0]);
        assert_values(&x.eq(&x), &[0.0, 1.0, 1.0, 1.0]);
        assert_eq!(x.argmax().item(), 0.0);
        assert_values(&(1.0 / array([0.0])), &[f64::INFINITY]);
    });
}

#[test]
fn choices_and_conversions() {
    on(|_| {
        let x = linspace(-2.0, 2.0, 5);
        assert_values(&select(x.gt(0.0), &x, 0.0), &[0.0, 0.0, 0.0, 1.0, 2.0]);
        assert_values(&x.clip(-1.0, 1), &[-1.0, -1.0, 0.0, 1.0, 1.0]);
        assert_eq!(x.convert(I32).dtype(), I32);
        assert_eq!(x.gt(0).dtype(), BOOL);
        assert_values(&x.pow(2), &[4.0, 1.0, 0.0, 1.0, 4.0]);
        assert_values(&x.gt(0.0).logical_and(x.lt(2.0)), &[0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(fault(|| array([1.0]).bitwise_and(array([1.0]))).kind, FaultKind::DType);
    });
}

#[test]
fn composites_have_their_values() {
    on(|_| {
        let x = array([[0.0, 1.0, 2.0], [1000.0, 1000.0, 1000.0]]);
        let third = 1.0 / 3.0;
        assert_values(&x.softmax(-1), &[0.09003057, 0.24472848, 0.66524094, third, third, third]);
        assert_values(&x.log_softmax(1).exp(), &x.softmax(1).to_vec::<f64>());
        assert_values(&x.logsumexp_axis(1), &[2.407606, 1001.0986]);
        assert_values(&array([-1e4, 0.0, 1e4]).sigmoid(), &[0.0, 0.5, 1.0]);
        assert_values(&array([-1.0, 2.0]).relu(), &[0.0, 2.0]);
        assert_values(&array([-1.0, 2.0]).gelu(), &[-0.15880801, 1.9545977]);
        assert_values(&array([-1.0, 2.0]).gelu_exact(), &[-0.15865526, 1.9544997]);
        assert_values(&array([-1.0, 2.0]).silu(), &[-0.26894143, 1.7615942]);
        assert_values(&array([-200.0, 0.0, 200.0]).softplus(), &[0.0, 2f64.ln(), 200.0]);
        let normal = array([[1.0, 2.0, 3.0]]).layer_norm(-1);
        assert_values(&normal, &[-1.2247356, 0.0, 1.2247356]);
        assert_values(&array([0, 2]).one_hot(3), &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_values(&ones([2, 3]).tril(), &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
        assert_values(&ones([2, 3]).triu(), &[1.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
        assert_eq!(fault(|| ones([3]).tril()).kind, FaultKind::Shape);
        assert_eq!(fault(|| ones([3]).one_hot(3)).kind, FaultKind::DType);
    });
}
