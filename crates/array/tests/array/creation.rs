use crate::{assert_values, fault, on};
use vramlab_array::ir::FaultKind;
use vramlab_array::prelude::*;

#[test]
fn fills_have_the_shape_and_type_asked_for() {
    on(|_| {
        let x = zeros([2, 3]);
        assert_eq!((x.shape(), x.dtype(), x.len(), x.nbytes()), (vec![2, 3], F32, 6, 24));
        assert_values(&x, &[0.0; 6]);
        assert_values(&full([2], 7), &[7.0, 7.0]);
        assert_values(&full_as(BF16, 3, 1.5), &[1.5; 3]);
        assert_eq!(zeros_as(U8, [4]).nbytes(), 4);
        assert_eq!(ones(()).item(), 1.0);
        assert_eq!(ones_as(I32, ()).item_as::<i32>(), 1);
        assert_eq!(zeros([2usize, 2]).shape(), zeros(vec![2, 2]).shape());
        assert_eq!(zeros(zeros([3, 1]).shape()).rank(), 2);
    });
}

#[test]
fn one_program_fills_with_any_value() {
    on(|engine| {
        let _ = (full([4], 1.0), full([4], 2.0), full([4], 3.5));
        assert_eq!(engine.compiles().len(), 1);
    });
}

#[test]
fn a_negative_or_uncountable_extent_is_a_fault() {
    on(|_| {
        let negative = fault(|| zeros([2, -3]));
        assert_eq!((negative.kind, negative.op.as_str()), (FaultKind::Shape, "zeros"));
        assert!(negative.message.contains("-3") && negative.message.contains("[2, -3]"));
        let huge = fault(|| zeros([usize::MAX, 2]));
        assert_eq!(huge.kind, FaultKind::Shape);
        assert_eq!(fault(|| linspace(0.0, 1.0, -1)).kind, FaultKind::Shape);
        assert_eq!(fault(|| eye(-1)).kind, FaultKind::Shape);
        assert_eq!(fault(|| arange_step(0.0, 1.0, 0.0)).kind, FaultKind::Argument);
    });
}

#[test]
fn arrays_without_elements_work() {
    on(|_| {
        let x = zeros([0, 3]);
        assert_values(&(&x * 2.0 + 1.0), &[]);
        assert_values(&x.sum_axis(0), &[0.0; 3]);
        assert_eq!(x.sum().item(), 0.0);
        assert_eq!(x.dot(zeros([3, 4])).shape(), vec![0, 4]);
        assert_values(&zeros([4, 0]).dot(zeros([0, 2])), &[0.0; 8]);
        assert_eq!(linspace(0.0, 1.0, 0).len(), 0);
        assert_eq!(arange(0).len(), 0);
        assert_eq!(randn([0]).len(), 0);
        assert_eq!(format!("{x}"), "[]");
    });
}

#[test]
fn ranges_count_as_numpy_does() {
    on(|_| {
        assert_values(&arange(4), &[0.0, 1.0, 2.0, 3.0]);
        assert_eq!(arange(4).dtype(), F32);
        assert_eq!(arange_as(I32, 2..5).to_vec::<i32>(), vec![2, 3, 4]);
        assert_values(&arange(1..=3), &[1.0, 2.0, 3.0]);
        assert_values(&arange_step(0.0, 1.0, 0.25), &[0.0, 0.25, 0.5, 0.75]);
        assert_values(&arange_step(3.0, 0.0, -1.0), &[3.0, 2.0, 1.0]);
        assert_values(&linspace(-1.0, 1.0, 5), &[-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_values(&linspace(2.0, 3.0, 1), &[2.0]);
        assert_values(&eye(2), &[1.0, 0.0, 0.0, 1.0]);
        assert_values(&iota_as(I32, [2, 2], -1), &[0.0, 1.0, 0.0, 1.0]);
    });
}

#[test]
fn literals_become_arrays() {
    on(|_| {
        let x = array([[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!((x.shape(), x.dtype()), (vec![2, 2], F32));
        assert_eq!(array([1, 2, 3]).dtype(), I32);
        assert_eq!(array([true, false]).dtype(), BOOL);
        assert_eq!(array(2.5).rank(), 0);
        assert_eq!(array_as(F64, vec![1, 2]).dtype(), F64);
        assert_eq!(from_vec(vec![1u8, 2, 3, 4], [2, 2]).dtype(), U8);
        assert_eq!(from_vec(vec![0.5, 1.5], 2).dtype(), F32);
        let ragged = fault(|| array(vec![vec![1.0], vec![1.0, 2.0]]));
        assert_eq!(ragged.kind, FaultKind::Shape);
        assert_eq!(fault(|| from_vec(vec![1.0; 3], [2, 2])).kind, FaultKind::Shape);
    });
}

#[test]
fn elements_are_read_with_the_meaning_of_as() {
    on(|_| {
        let x = array([1.9, -1.9, 300.0]);
        assert_eq!(x.to_vec::<i32>(), vec![1, -1, 300]);
        assert_eq!(x.to_vec::<u8>(), vec![1, 0, 255]);
        assert_eq!(x.at(0).item_as::<i64>(), 1);
        assert_eq!(fault(|| x.item()).op, "item");
        assert_values(&zeros_like(array([1, 2])), &[0.0, 0.0]);
        assert_eq!(array([1, 2]).full_like(2.7).to_vec::<i32>(), vec![2, 2]);
    });
}
