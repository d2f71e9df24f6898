//! The reductions in their forms: `sum`, `sum_axis`, `sum_axes`, and each with the axes kept.

/// Makes the six forms of each reduction from one function of (x, axes, keep).
macro_rules! forms {
    ($(
        $module:ident: $all:ident $axis:ident $axes:ident $keep:ident $axis_keep:ident
        $axes_keep:ident = $function:expr, $doc:literal;
    )*) => {$(
        #[doc = $doc]
        pub mod $module {
            mod cores {
                use crate::array::Array;
                use crate::operand::Input;
                use vramlab_ir::Fault;

                fn run(x: Input, axes: Option<&[i64]>, keep: bool) -> Result<Array, Fault> {
                    let function: fn(Input, Option<&[i64]>, bool) -> Result<Array, Fault> =
                        $function;
                    function(x, axes, keep)
                }

                pub(crate) fn $all(x: Input) -> Result<Array, Fault> {
                    run(x, None, false)
                }

                pub(crate) fn $axis(x: Input, axis: i64) -> Result<Array, Fault> {
                    run(x, Some(&[axis]), false)
                }

                pub(crate) fn $axes(x: Input, axes: &[i64]) -> Result<Array, Fault> {
                    run(x, Some(axes), false)
                }

                pub(crate) fn $keep(x: Input) -> Result<Array, Fault> {
                    run(x, None, true)
                }

                pub(crate) fn $axis_keep(x: Input, axis: i64) -> Result<Array, Fault> {
                    run(x, Some(&[axis]), true)
                }

                pub(crate) fn $axes_keep(x: Input, axes: &[i64]) -> Result<Array, Fault> {
                    run(x, Some(axes), true)
                }
            }

            crate::declare::methods! { ITEMS:
                $all() = cores::$all,
                    concat!($doc, " Over every axis."),
                    concat!("linspace(1.0, 6.0, 6).reshape([2, 3]).", stringify!($all), "()");
                $axis(axis: Axis) = cores::$axis,
                    concat!($doc, " Along one axis; negative axes count from the back."),
                    concat!("linspace(1.0, 6.0, 6).reshape([2, 3]).", stringify!($axis), "(-1)");
                $axes(axes: Axes) = cores::$axes,
                    concat!($doc, " Along several axes."),
                    concat!("linspace(1.0, 6.0, 6).reshape([2, 3]).", stringify!($axes), "([0, 1])");
                $keep() = cores::$keep,
                    concat!($doc, " Over every axis, each kept with extent 1."),
                    concat!("linspace(1.0, 6.0, 6).reshape([2, 3]).", stringify!($keep), "()");
                $axis_keep(axis: Axis) = cores::$axis_keep,
                    concat!($doc, " Along one axis, which is kept with extent 1."),
                    concat!("linspace(1.0, 6.0, 6).reshape([2, 3]).", stringify!($axis_keep), "(-1)");
                $axes_keep(axes: Axes) = cores::$axes_keep,
                    concat!($doc, " Along several axes, which are kept with extent 1."),
                    concat!("linspace(1.0, 6.0, 6).reshape([2, 3]).", stringify!($axes_keep), "([0])");
            }
        }
    )*};
}

forms! {
    sum_forms: sum sum_axis sum_axes sum_keep sum_axis_keep sum_axes_keep =
        |x, axes, keep| crate::reduce::reduce(&vramlab_ops::SUM, x, axes, keep),
        "The sum of the elements; of none, 0.";
    prod_forms: prod prod_axis prod_axes prod_keep prod_axis_keep prod_axes_keep =
        |x, axes, keep| crate::reduce::reduce(&vramlab_ops::PROD, x, axes, keep),
        "The product of the elements; of none, 1.";
    max_forms: max max_axis max_axes max_keep max_axis_keep max_axes_keep =
        |x, axes, keep| crate::reduce::reduce(&vramlab_ops::MAX, x, axes, keep),
        "The largest element; NaN wins.";
    min_forms: min min_axis min_axes min_keep min_axis_keep min_axes_keep =
        |x, axes, keep| crate::reduce::reduce(&vramlab_ops::MIN, x, axes, keep),
        "The smallest element; NaN wins.";
    any_forms: any any_axis any_axes any_keep any_axis_keep any_axes_keep =
        |x, axes, keep| crate::reduce::reduce(&vramlab_ops::ANY, x, axes, keep),
        "True when an element is true (not zero); of none, false.";
    all_forms: all all_axis all_axes all_keep all_axis_keep all_axes_keep =
        |x, axes, keep| crate::reduce::reduce(&vramlab_ops::ALL, x, axes, keep),
        "True when every element is true (not zero); of none, true.";
    mean_forms: mean mean_axis mean_axes mean_keep mean_axis_keep mean_axes_keep =
        crate::reduce::mean,
        "The mean of the elements.";
    var_forms: var var_axis var_axes var_keep var_axis_keep var_axes_keep =
        crate::reduce::var,
        "The variance of the elements (divided by their number).";
    std_forms: std std_axis std_axes std_keep std_axis_keep std_axes_keep =
        crate::reduce::std,
        "The standard deviation of the elements (divided by their number).";
    norm_forms: norm norm_axis norm_axes norm_keep norm_axis_keep norm_axes_keep =
        crate::reduce::norm,
        "The Euclidean length: the root of the sum of squares.";
    logsumexp_forms: logsumexp logsumexp_axis logsumexp_axes logsumexp_keep logsumexp_axis_keep
        logsumexp_axes_keep = crate::reduce::logsumexp,
        "log(sum(exp(x))) without overflow.";
}

/// Positions of extreme elements.
pub mod positions {
    mod cores {
        use crate::array::Array;
        use crate::operand::Input;
        use crate::reduce::position;
        use vramlab_ir::Fault;
        use vramlab_ops::{ARGMAX, ARGMIN};

        pub(crate) fn argmax(x: Input) -> Result<Array, Fault> {
            position(&ARGMAX, x, None, false)
        }

        pub(crate) fn argmax_axis(x: Input, axis: i64) -> Result<Array, Fault> {
            position(&ARGMAX, x, Some(axis), false)
        }

        pub(crate) fn argmax_axis_keep(x: Input, axis: i64) -> Result<Array, Fault> {
            position(&ARGMAX, x, Some(axis), true)
        }

        pub(crate) fn argmin(x: Input) -> Result<Array, Fault> {
            position(&ARGMIN, x, None, false)
        }

        pub(crate) fn argmin_axis(x: Input, axis: i64) -> Result<Array, Fault> {
            position(&ARGMIN, x, Some(axis), false)
        }

        pub(crate) fn argmin_axis_keep(x: Input, axis: i64) -> Result<Array, Fault> {
            position(&ARGMIN, x, Some(axis), true)
        }
    }

    crate::declare::methods! { ITEMS:
        argmax() = cores::argmax,
            "The position (i32) of the first largest element in row-major order; the first NaN wins.",
            "array([1.0, 5.0, 2.0]).argmax()";
        argmax_axis(axis: Axis) = cores::argmax_axis,
            "The position (i32) of the first largest element along one axis; the first NaN wins.",
            "array([[1.0, 5.0], [7.0, 2.0]]).argmax_axis(-1)";
        argmax_axis_keep(axis: Axis) = cores::argmax_axis_keep,
            "As argmax_axis, with the axis kept with extent 1.",
            "array([[1.0, 5.0], [7.0, 2.0]]).argmax_axis_keep(-1)";
        argmin() = cores::argmin,
            "The position (i32) of the first smallest element in row-major order; the first NaN wins.",
            "array([4.0, 1.0, 2.0]).argmin()";
        argmin_axis(axis: Axis) = cores::argmin_axis,
            "The position (i32) of the first smallest element along one axis; the first NaN wins.",
            "array([[1.0, 5.0], [7.0, 2.0]]).argmin_axis(-1)";
        argmin_axis_keep(axis: Axis) = cores::argmin_axis_keep,
            "As argmin_axis, with the axis kept with extent 1.",
            "array([[1.0, 5.0], [7.0, 2.0]]).argmin_axis_keep(-1)";
    }
}
