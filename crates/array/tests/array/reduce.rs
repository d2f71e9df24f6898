use crate::{assert_values, fault, on};
use vramlab_array::ir::FaultKind;
use vramlab_array::prelude::*;

#[test]
fn axes_may_be_one_several_or_all_and_kept() {
    on(|_| {
        let x = arange(6).reshape([2, 3]);
        assert_eq!(x.sum().item(), 15.0);
        assert_values(&x.sum_axis(-1), &[3.0, 12.0]);
        assert_values(&x.sum_axes([0, 1]), &[15.0]);
        assert_eq!(x.sum_axes([1, 0]).shape(), Vec::<usize>::new());
        assert_eq!(x.sum_axis_keep(0).shape(), vec![1, 3]);
        assert_eq!(x.max_axes_keep([0, -1]).shape(), vec![1, 1]);
        assert_eq!(x.sum_keep().shape(), vec![1, 1]);
        assert_values(&x.prod_axis(0), &[0.0, 4.0, 10.0]);
        assert_values(&x.min_axis(1), &[0.0, 3.0]);
        assert_values(&x.argmax_axis(1), &[2.0, 2.0]);
        assert_eq!(x.argmax().item_as::<i32>(), 5);
        assert_eq!(x.argmin_axis_keep(0).shape(), vec![1, 3]);
        assert!(x.gt(4.0).any().item_as::<bool>());
        assert_values(&x.all_axis(1), &[0.0, 1.0]);
    });
}

#[test]
fn means_count_the_reduced_elements() {
    on(|_| {
        let x = arange(6).reshape([2, 3]);
        assert_eq!(x.mean().item(), 2.5);
        assert_values(&x.mean_axis(0), &[1.5, 2.5, 3.5]);
        assert_values(&x.var_axis(1), &[2.0 / 3.0, 2.0 / 3.0]);
        assert_values(&x.std(), &[(35.0f64 / 12.0).sqrt()]);
        assert_eq!(array([3.0, 4.0]).norm().item(), 5.0);
        assert_eq!(array([1, 2]).mean().item(), 1.5);
        assert!(zeros([0]).mean().item().is_nan());
    });
}

#[test]
fn small_types_accumulate_wide() {
    on(|_| {
        assert_eq!(full_as(U8, [300], 200).sum().item(), 60000.0);
        assert_eq!(array([true, true, false]).sum().item(), 2.0);
        let half = ones_as(F16, [4096]).sum();
        assert_eq!((half.dtype(), half.item()), (F16, 4096.0));
        assert_eq!(ones_as(BF16, [2, 2]).matmul(ones_as(BF16, [2, 2])).dtype(), BF16);
    });
}

#[test]
fn a_bad_axis_names_what_is_valid() {
    on(|_| {
        let bad = fault(|| zeros([2, 3]).sum_axis(2));
        assert_eq!((bad.kind, bad.op.as_str()), (FaultKind::Argument, "sum"));
        assert!(bad.message.contains("axis 2 of f32[2,3]") && bad.message.contains("-2..=1"));
        for refused in [
            fault(|| zeros([2]).mean_axis(1)),
            fault(|| zeros([2]).std_axis(1)),
            fault(|| zeros([2]).logsumexp_axis(1)),
            fault(|| zeros([2]).softmax(1)),
            fault(|| zeros([2]).log_softmax(1)),
            fault(|| zeros([2]).layer_norm(1)),
        ] {
            assert!(refused.message.contains("axis 1 of f32[2]"), "{refused}");
            let names = ["mean", "std", "logsumexp", "softmax", "log_softmax", "layer_norm"];
            assert!(names.contains(&refused.op.as_str()), "{refused}");
        }
        assert!(fault(|| zeros([2, 3]).sum_axes([0, -2])).message.contains("twice"));
        assert_eq!(fault(|| zeros([0, 3]).max()).kind, FaultKind::Shape);
        assert_eq!(fault(|| zeros([0]).argmax()).kind, FaultKind::Shape);
    });
}
