//! The `gemm` crates, called the way they like it.

use gemm_common::Parallelism;
use vramlab_ir::DType;

/// A matrix in memory: its first element, and elements from one row and one column to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix {
    pub origin: *mut u8,
    pub rows: isize,
    pub columns: isize,
}

/// `to = left · right`, or with `add` what is there and that: `[m, n, k]` are rows and columns of the
/// result, and the depth. The columns of `to` are dense.
///
/// # Safety
/// All three lie in live memory, in elements of `dtype`, f32 or f64; `to` overlaps neither operand.
pub(super) unsafe fn multiply(
    dtype: DType,
    [m, n, k]: [usize; 3],
    to: Matrix,
    [mut left, mut right]: [Matrix; 2],
    add: bool,
) {
    debug_assert!(to.columns == 1 || n <= 1);
    if right.rows < 0 && k > 0 {
        // The crate wants the depth of its first operand to go upwards: both run backwards then.
        let last = (k as isize - 1) * dtype.size() as isize;
        right.origin = right.origin.wrapping_offset(last * right.rows);
        left.origin = left.origin.wrapping_offset(last * left.columns);
        (left.columns, right.rows) = (-left.columns, -right.rows);
    }
    // Its kernels want columns of the result dense: toᵀ = rightᵀ · leftᵀ. What is there is scaled by
    // `alpha`, the product by 1.
    // SAFETY: the caller's.
    unsafe {
        macro_rules! product {
            ($function:expr, $alpha:expr) => {
                $function(
                    n,
                    m,
                    k,
                    to.origin.cast(),
                    to.rows,
                    1,
                    add,
                    right.origin.cast(),
                    right.rows,
                    right.columns,
                    left.origin.cast(),
                    left.rows,
                    left.columns,
                    $alpha,
                    1.0,
                    false,
                    false,
                    false,
                    Parallelism::None,
                )
            };
        }
        match dtype {
            DType::F64 => product!(gemm_f64::gemm::f64::get_gemm_fn(), if add { 1.0 } else { 0.0 }),
            _ => product!(gemm_f32::gemm::f32::get_gemm_fn(), if add { 1.0 } else { 0.0 }),
        }
    }
}
