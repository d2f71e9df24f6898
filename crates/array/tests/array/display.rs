use crate::on;
use vramlab_array::prelude::*;

#[test]
fn arrays_print_as_numpy_prints_them() {
    on(|_| {
        assert_eq!(array([1.0, 2.0, 3.0]).to_string(), "[1. 2. 3.]");
        assert_eq!(array([1.5, -2.25, 10.0]).to_string(), "[ 1.5  -2.25 10.  ]");
        assert_eq!(array([0.1, 0.2]).to_string(), "[0.1 0.2]");
        assert_eq!(array([1.0 / 3.0]).to_string(), "[0.33333334]");
        assert_eq!(array([1e-5, 1.5]).to_string(), "[1.0e-05 1.5e+00]");
        assert_eq!(array([1e10]).to_string(), "[1.e+10]");
        assert_eq!(array([1.0, f64::NAN]).to_string(), "[ 1. nan]");
        assert_eq!(array([f64::INFINITY, -f64::INFINITY]).to_string(), "[ inf -inf]");
        assert_eq!(array([1, -20, 300]).to_string(), "[  1 -20 300]");
        assert_eq!(array([true, false]).to_string(), "[ true false]");
        assert_eq!(array([[1.0, 2.0], [3.0, 4.0]]).to_string(), "[[1. 2.]\n [3. 4.]]");
        assert_eq!(
            arange_as(I32, 8).reshape([2, 2, 2]).to_string(),
            "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"
        );
        assert_eq!(array(2.0).to_string(), "2.0");
        assert_eq!(array(1e20).to_string(), "1e+20");
        assert_eq!(array(7).to_string(), "7");
        assert_eq!(full_as(F16, [1], 0.1).to_string(), "[0.1]");
        assert_eq!(format!("{:.2}", array([1.0 / 3.0, 2.0])), "[0.33 2.  ]");
        assert_eq!(format!("{:?}", zeros([2])), "Array(f32[2])");
    });
}

#[test]
fn long_rows_wrap_at_75_columns() {
    on(|_| {
        let text = arange_as(I32, 30).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23",
                " 24 25 26 27 28 29]"
            ]
        );
    });
}

#[test]
fn large_arrays_show_their_corners() {
    on(|_| {
        assert_eq!(arange_as(I32, 2000).to_string(), "[   0    1    2 ... 1997 1998 1999]");
        let text = arange_as(I32, 10_000).reshape([100, 100]).to_string();
        assert_eq!(
            text,
            "[[   0    1    2 ...   97   98   99]\n [ 100  101  102 ...  197  198  199]\n \
             [ 200  201  202 ...  297  298  299]\n ...\n [9700 9701 9702 ... 9797 9798 9799]\n \
             [9800 9801 9802 ... 9897 9898 9899]\n [9900 9901 9902 ... 9997 9998 9999]]"
        );
        let rows = arange(4000).reshape([1000, 4]).to_string();
        assert!(rows.starts_with("[[0.000e+00 1.000e+00 2.000e+00 3.000e+00]\n"), "{rows}");
    });
}

#[test]
fn exponents_begin_where_a_type_runs_out_of_digits() {
    on(|_| {
        assert_eq!(array([999999.0, 1e4]).to_string(), "[999999.  10000.]");
        assert_eq!(array([1e6, 1e4]).to_string(), "[1.e+06 1.e+04]");
        assert_eq!(array_as(F64, [1e6, 1e4]).to_string(), "[1000000.   10000.]");
        assert_eq!(full_as(F16, [1], 1000).to_string(), "[1.e+03]");
        assert_eq!(
            (array(1e6).to_string(), array(1e5).to_string()),
            ("1e+06".into(), "100000.0".into())
        );
    });
}
