use crate::{assert_values, fault, on};
use vramlab_array::ir::FaultKind;
use vramlab_array::prelude::*;

#[test]
fn reshape_infers_one_extent_and_shares_the_buffer() {
    on(|engine| {
        let x = arange(6);
        assert_eq!(x.reshape([2, -1]).shape(), vec![2, 3]);
        assert_eq!(x.reshape([1, 6]).squeeze().shape(), vec![6]);
        assert_eq!(x.expand_dims(-1).shape(), vec![6, 1]);
        assert_eq!(x.expand_dims(0).squeeze_axis(0).shape(), vec![6]);
        assert_eq!(ones([2, 3]).ravel().shape(), vec![6]);
        assert_eq!(engine.live_bytes(), 24);
        assert_eq!(fault(|| x.reshape([4, -1])).kind, FaultKind::Shape);
        assert_eq!(fault(|| x.reshape([-1, -1])).kind, FaultKind::Shape);
        assert_eq!(fault(|| x.reshape([7])).kind, FaultKind::Shape);
        assert_eq!(fault(|| x.squeeze_axis(0)).kind, FaultKind::Shape);
    });
}

#[test]
fn a_result_of_the_same_shape_is_a_holder_of_its_own() {
    on(|engine| {
        let x = arange(6);
        let y = x.squeeze();
        assert_eq!(engine.claims(), 2);
        let f = jit(|[a]| a * 2.0);
        let _ = f.call((y,));
        assert_values(&x, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    });
}

#[test]
fn axes_move() {
    on(|_| {
        let x = arange(6).reshape([2, 3]);
        assert_values(&x.t(), &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(ones([2, 3, 4]).permute([2, 0, 1]).shape(), vec![4, 2, 3]);
        assert_eq!(ones([2, 3, 4]).swapaxes(0, -1).shape(), vec![4, 3, 2]);
        assert_values(&x.flip(1), &[2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
        assert_values(&array([1.0, 2.0]).broadcast_to([2, 2]), &[1.0, 2.0, 1.0, 2.0]);
        assert_eq!(fault(|| x.permute([0, 0])).kind, FaultKind::Argument);
    });
}

#[test]
fn slices_take_ranges_and_positions() {
    on(|_| {
        let x = arange(12).reshape([3, 4]);
        assert_values(&x.slice((1, ..)), &[4.0, 5.0, 6.0, 7.0]);
        assert_values(&x.slice((0..2, -1)), &[3.0, 7.0]);
        assert_values(&x.slice((.., 1..=2)), &[1.0, 2.0, 5.0, 6.0, 9.0, 10.0]);
        assert_eq!(x.slice(1..).shape(), vec![2, 4]);
        assert_eq!(x.slice((..2, ..-1)).shape(), vec![2, 3]);
        assert_eq!(x.slice((0usize, 1usize)).item(), 1.0);
        assert_values(&x.at(-1), &[8.0, 9.0, 10.0, 11.0]);
        let outside = fault(|| x.slice((0..4, ..)));
        assert_eq!(outside.kind, FaultKind::Argument);
        assert!(outside.message.contains("0..4") && outside.message.contains("[3,4]"));
        assert_eq!(fault(|| x.slice(0..usize::MAX)).kind, FaultKind::Argument);
        assert_eq!(fault(|| x.slice(..=usize::MAX)).kind, FaultKind::Argument);
        assert_eq!(fault(|| x.slice(i32::MIN..)).kind, FaultKind::Argument);
        assert_eq!(fault(|| x.at(3)).kind, FaultKind::Argument);
        assert_eq!(fault(|| x.slice((0, 0, 0))).kind, FaultKind::Argument);
    });
}

#[test]
fn arrays_join_and_part() {
    on(|_| {
        let (a, b) = (array([[1.0, 2.0]]), array([[3.0, 4.0]]));
        assert_values(&concatenate([&a, &b], 0), &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(concat(vec![a.clone(), b.clone()], -1).shape(), vec![1, 4]);
        assert_eq!(stack(&[a.clone(), b.clone()], 0).shape(), vec![2, 1, 2]);
        assert_eq!(concat([&array([1]), &array([0.5])], 0).dtype(), F32);
        let parts = arange(6).split(3, 0);
        assert_values(&parts[1], &[2.0, 3.0]);
        assert_eq!(fault(|| arange(6).split(4, 0)).kind, FaultKind::Argument);
        assert_eq!(fault(|| stack([&a, &array([1.0])], 0)).kind, FaultKind::Shape);
        assert_values(&array([1.0]).pad([(1, 2)], 9), &[9.0, 1.0, 9.0, 9.0]);
        assert_eq!(fault(|| a.pad([(0, 1)], 0)).kind, FaultKind::Argument);
    });
}

#[test]
fn positions_may_be_data() {
    on(|_| {
        let x = arange(12).reshape([3, 4]);
        assert_values(&x.take(array([2, 0]), 0).slice((.., 0)), &[8.0, 0.0]);
        assert_eq!(x.take(array([[1, 2], [0, 1]]), 1).shape(), vec![3, 2, 2]);
        assert_values(&x.take(array([9]), 1), &[3.0, 7.0, 11.0]);
        assert_values(&x.take(array([-1]), 1), &[3.0, 7.0, 11.0]);
        assert_values(&x.take(array([-9]), 1), &[0.0, 4.0, 8.0]);
        assert_values(&arange(5).take(1, 0), &[1.0]);
        assert_eq!(fault(|| x.take(array([0.5]), 0)).kind, FaultKind::DType);
        assert_values(&arange(10).dynamic_slice([3], [4]), &[3.0, 4.0, 5.0, 6.0]);
        assert_values(&arange(10).dynamic_slice(&[array(8)], [4]), &[6.0, 7.0, 8.0, 9.0]);
        let updated = zeros([4]).dynamic_update_slice(array([1, 2]), [1]);
        assert_values(&updated, &[0.0, 1.0, 2.0, 0.0]);
        assert_eq!(fault(|| x.dynamic_slice([0], [1, 1])).kind, FaultKind::Argument);
    });
}

#[test]
fn products_follow_numpy() {
    on(|_| {
        let a = arange(6).reshape([2, 3]);
        let b = arange(6).reshape([3, 2]);
        assert_values(&a.dot(&b), &[10.0, 13.0, 28.0, 40.0]);
        assert_values(&a.matmul(&b), &[10.0, 13.0, 28.0, 40.0]);
        assert_values(&array([1.0, 2.0]).dot(array([3.0, 4.0])), &[11.0]);
        assert_values(&a.dot(array([1.0, 1.0, 1.0])), &[3.0, 12.0]);
        assert_values(&a.dot(2.0), &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ones([5, 2, 3]).matmul(&b).shape(), vec![5, 2, 2]);
        assert_eq!(ones([2, 3]).matmul(ones([5, 3, 4])).shape(), vec![5, 2, 4]);
        assert_eq!(ones([4, 1, 2, 3]).matmul(ones([5, 3, 4])).shape(), vec![4, 5, 2, 4]);
        assert_eq!(ones([3]).matmul(ones([5, 3, 4])).shape(), vec![5, 4]);
        assert_eq!(ones([5, 2, 3]).matmul(ones([3])).shape(), vec![5, 2]);
        assert_values(&array([1.0, 2.0]).outer(array([3.0, 4.0])), &[3.0, 4.0, 6.0, 8.0]);
        let clash = fault(|| a.dot(&a));
        assert_eq!((clash.kind, clash.op.as_str()), (FaultKind::Shape, "dot"));
        assert!(clash.message.contains("f32[2,3] and f32[2,3]"));
        assert_eq!(fault(|| ones([2, 2, 2]).matmul(ones([3, 2, 2]))).kind, FaultKind::Shape);
    });
}

#[test]
fn arrays_roll_and_repeat() {
    on(|_| {
        let x = arange(3);
        assert_values(&x.roll(1, 0), &[2.0, 0.0, 1.0]);
        assert_values(&x.roll(-4, -1), &[1.0, 2.0, 0.0]);
        assert_eq!(zeros([0]).roll(1, 0).len(), 0);
        assert_values(&x.tile([2, 1]), &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
        assert_values(&x.tile(2), &[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
        assert_values(&x.repeat(2, 0), &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0]);
        assert_eq!(ones([2, 3]).repeat(0, 1).shape(), vec![2, 0]);
        assert_eq!(fault(|| x.tile([-1])).op, "tile");
        assert!(allclose(&x, &x + 1e-9) && !allclose(&x, 1.0));
        assert!(allclose(array([f64::INFINITY]), f64::INFINITY));
        assert!(!allclose(array([f64::NAN]), f64::NAN));
    });
}
