//! The vector registers of x86-64, and chains in them.

use super::chain::{Kind, Micro};
use super::lanes::{CHUNK, Operand};
use std::arch::x86_64::*;
use std::ops::Range;

/// A vector register.
trait Vector: Copy {
    /// Bytes of an element.
    const SIZE: usize;
    /// Vectors of one chunk.
    const CHUNK_VECTORS: usize;
    unsafe fn load(ptr: *const u8) -> Self;
    unsafe fn store(self, ptr: *mut u8);
    unsafe fn splat(ptr: *const u8) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    unsafe fn div(self, other: Self) -> Self;
    /// `self` where it is greater or NaN, else `other`.
    unsafe fn greater(self, other: Self) -> Self;
    unsafe fn lesser(self, other: Self) -> Self;
    unsafe fn neg(self) -> Self;
    unsafe fn abs(self) -> Self;
    unsafe fn sqrt(self) -> Self;
    /// self·a + b
    unsafe fn mul_add(self, a: Self, b: Self) -> Self;
    /// self·a − b
    unsafe fn mul_sub(self, a: Self, b: Self) -> Self;
    /// b − self·a
    unsafe fn neg_mul_add(self, a: Self, b: Self) -> Self;
}

/// Runs a chain over a range of chunks whose vectors are a multiple of `N`.
///
/// # Safety
/// The slots hold the chunks (one where a step is 0) of the vector's elements, and the instruction set is there. `out`
/// may be one of the operands: what is read of a place is read before it is written.
#[inline(always)]
unsafe fn run<V: Vector, const N: usize>(
    out: *mut u8,
    slots: *const Operand,
    micros: &[Micro],
    chunks: Range<usize>,
) {
    let vector = V::SIZE * CHUNK / V::CHUNK_VECTORS;
    let mut at = chunks.start * V::CHUNK_VECTORS;
    while at < chunks.end * V::CHUNK_VECTORS {
        // SAFETY: the caller's promise.
        unsafe {
            let mut x = [V::splat((*slots.add(micros[0].a as usize)).ptr); N];
            for micro in micros {
                let a = operand::<V, N>(&*slots.add(micro.a as usize), at * vector);
                let b = || operand::<V, N>(&*slots.add(micro.b as usize), at * vector);
                match micro.kind {
                    Kind::Load => x = a,
                    Kind::Add => each(&mut x, |i, x| x.add(a[i])),
                    Kind::Sub => each(&mut x, |i, x| x.sub(a[i])),
                    Kind::SubFrom => each(&mut x, |i, x| a[i].sub(x)),
                    Kind::Mul => each(&mut x, |i, x| x.mul(a[i])),
                    Kind::Div => each(&mut x, |i, x| x.div(a[i])),
                    Kind::DivInto => each(&mut x, |i, x| a[i].div(x)),
                    Kind::Max => each(&mut x, |i, x| x.greater(a[i])),
                    Kind::Min => each(&mut x, |i, x| x.lesser(a[i])),
                    Kind::Neg => each(&mut x, |_, x| x.neg()),
                    Kind::Abs => each(&mut x, |_, x| x.abs()),
                    Kind::Sqrt => each(&mut x, |_, x| x.sqrt()),
                    Kind::MulAdd => {
                        let b = b();
                        each(&mut x, |i, x| x.mul_add(a[i], b[i]));
                    }
                    Kind::MulSub => {
                        let b = b();
                        each(&mut x, |i, x| x.mul_sub(a[i], b[i]));
                    }
                    Kind::NegMulAdd => {
                        let b = b();
                        each(&mut x, |i, x| x.neg_mul_add(a[i], b[i]));
                    }
                    Kind::AddMul => {
                        let b = b();
                        each(&mut x, |i, x| a[i].mul_add(b[i], x));
                    }
                    Kind::MulSubThis => {
                        let b = b();
                        each(&mut x, |i, x| a[i].mul_sub(b[i], x));
                    }
                    Kind::SubMul => {
                        let b = b();
                        each(&mut x, |i, x| a[i].neg_mul_add(b[i], x));
                    }
                }
            }
            for (i, x) in x.into_iter().enumerate() {
                x.store(out.add((at + i) * vector));
            }
        }
        at += N;
    }
}

/// `N` vectors of an operand from byte `at` of its lanes on.
#[inline(always)]
unsafe fn operand<V: Vector, const N: usize>(operand: &Operand, at: usize) -> [V; N] {
    // SAFETY: the caller's promise.
    unsafe {
        if operand.step == 0 {
            return [V::splat(operand.ptr); N];
        }
        let vector = V::SIZE * CHUNK / V::CHUNK_VECTORS;
        let mut vectors = [V::load(operand.ptr.add(at)); N];
        for (i, loaded) in vectors.iter_mut().enumerate().skip(1) {
            *loaded = V::load(operand.ptr.add(at + i * vector));
        }
        vectors
    }
}

#[inline(always)]
fn each<V: Copy, const N: usize>(x: &mut [V; N], f: impl Fn(usize, V) -> V) {
    for (i, x) in x.iter_mut().enumerate() {
        *x = f(i, *x);
    }
}

macro_rules! vector {
    ($t:ty, $element:ty, [$load:ident, $store:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident, $div:ident,
      $sqrt:ident, $fmadd:ident, $fmsub:ident, $fnmadd:ident], $greater:expr, $lesser:expr, $neg:expr, $abs:expr) => {
        // Every method is called only where `function` found the instruction set, on pointers that `run` vouches
        // for.
        impl Vector for $t {
            const SIZE: usize = size_of::<$element>();
            const CHUNK_VECTORS: usize = CHUNK * size_of::<$element>() / size_of::<$t>();
            #[inline(always)]
            unsafe fn load(ptr: *const u8) -> $t {
                // SAFETY: see above.
                unsafe { $load(ptr.cast()) }
            }
            #[inline(always)]
            unsafe fn store(self, ptr: *mut u8) {
                // SAFETY: see above.
                unsafe { $store(ptr.cast(), self) }
            }
            #[inline(always)]
            unsafe fn splat(ptr: *const u8) -> $t {
                // SAFETY: see above.
                unsafe { $splat(*ptr.cast::<$element>()) }
            }
            #[inline(always)]
            unsafe fn add(self, other: $t) -> $t {
                // SAFETY: see above.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            unsafe fn sub(self, other: $t) -> $t {
                // SAFETY: see above.
                unsafe { $sub(self, other) }
            }
            #[inline(always)]
            unsafe fn mul(self, other: $t) -> $t {
                // SAFETY: see above.
                unsafe { $mul(self, other) }
            }
            #[inline(always)]
            unsafe fn div(self, other: $t) -> $t {
                // SAFETY: see above.
                unsafe { $div(self, other) }
            }
            #[inline(always)]
            unsafe fn greater(self, other: $t) -> $t {
                // SAFETY: see above.
                unsafe { $greater(self, other) }
            }
            #[inline(always)]
            unsafe fn lesser(self, other: $t) -> $t {
                // SAFETY: see above.
                unsafe { $lesser(self, other) }
            }
            #[inline(always)]
            unsafe fn neg(self) -> $t {
                // SAFETY: see above.
                unsafe { $neg(self) }
            }
            #[inline(always)]
            unsafe fn abs(self) -> $t {
                // SAFETY: see above.
                unsafe { $abs(self) }
            }
            #[inline(always)]
            unsafe fn sqrt(self) -> $t {
                // SAFETY: see above.
                unsafe { $sqrt(self) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, a: $t, b: $t) -> $t {
                // SAFETY: see above.
                unsafe { $fmadd(self, a, b) }
            }
            #[inline(always)]
            unsafe fn mul_sub(self, a: $t, b: $t) -> $t {
                // SAFETY: see above.
                unsafe { $fmsub(self, a, b) }
            }
            #[inline(always)]
            unsafe fn neg_mul_add(self, a: $t, b: $t) -> $t {
                // SAFETY: see above.
                unsafe { $fnmadd(self, a, b) }
            }
        }
    };
}

// `max(a, b)` gives its second operand where one is NaN; a NaN in the first is put back.
vector!(
    __m512,
    f32,
    [
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_add_ps,
        _mm512_sub_ps,
        _mm512_mul_ps,
        _mm512_div_ps,
        _mm512_sqrt_ps,
        _mm512_fmadd_ps,
        _mm512_fmsub_ps,
        _mm512_fnmadd_ps
    ],
    |x, y| _mm512_mask_mov_ps(_mm512_max_ps(x, y), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), x),
    |x, y| _mm512_mask_mov_ps(_mm512_min_ps(x, y), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), x),
    |x| _mm512_xor_ps(x, _mm512_set1_ps(-0.0)),
    |x| _mm512_andnot_ps(_mm512_set1_ps(-0.0), x)
);
vector!(
    __m512d,
    f64,
    [
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_set1_pd,
        _mm512_add_pd,
        _mm512_sub_pd,
        _mm512_mul_pd,
        _mm512_div_pd,
        _mm512_sqrt_pd,
        _mm512_fmadd_pd,
        _mm512_fmsub_pd,
        _mm512_fnmadd_pd
    ],
    |x, y| _mm512_mask_mov_pd(_mm512_max_pd(x, y), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x), x),
    |x, y| _mm512_mask_mov_pd(_mm512_min_pd(x, y), _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(x, x), x),
    |x| _mm512_xor_pd(x, _mm512_set1_pd(-0.0)),
    |x| _mm512_andnot_pd(_mm512_set1_pd(-0.0), x)
);
vector!(
    __m256,
    f32,
    [
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_add_ps,
        _mm256_sub_ps,
        _mm256_mul_ps,
        _mm256_div_ps,
        _mm256_sqrt_ps,
        _mm256_fmadd_ps,
        _mm256_fmsub_ps,
        _mm256_fnmadd_ps
    ],
    |x, y| _mm256_blendv_ps(_mm256_max_ps(x, y), x, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x)),
    |x, y| _mm256_blendv_ps(_mm256_min_ps(x, y), x, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x)),
    |x| _mm256_xor_ps(x, _mm256_set1_ps(-0.0)),
    |x| _mm256_andnot_ps(_mm256_set1_ps(-0.0), x)
);
vector!(
    __m256d,
    f64,
    [
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_set1_pd,
        _mm256_add_pd,
        _mm256_sub_pd,
        _mm256_mul_pd,
        _mm256_div_pd,
        _mm256_sqrt_pd,
        _mm256_fmadd_pd,
        _mm256_fmsub_pd,
        _mm256_fnmadd_pd
    ],
    |x, y| _mm256_blendv_pd(_mm256_max_pd(x, y), x, _mm256_cmp_pd::<_CMP_UNORD_Q>(x, x)),
    |x, y| _mm256_blendv_pd(_mm256_min_pd(x, y), x, _mm256_cmp_pd::<_CMP_UNORD_Q>(x, x)),
    |x| _mm256_xor_pd(x, _mm256_set1_pd(-0.0)),
    |x| _mm256_andnot_pd(_mm256_set1_pd(-0.0), x)
);

macro_rules! functions {
    ($($name:ident: $features:literal, $t:ty, $many:literal;)*) => {$(
        /// Several vectors at a time; of a last odd chunk, half as many.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(out: *mut u8, slots: *const Operand, micros: &[Micro], chunks: usize) {
            let whole = chunks - chunks * <$t>::CHUNK_VECTORS % $many / <$t>::CHUNK_VECTORS;
            // SAFETY: the caller's promise is that of `run`.
            unsafe {
                run::<$t, $many>(out, slots, micros, 0..whole);
                run::<$t, 4>(out, slots, micros, whole..chunks);
            }
        }
    )*};
}

functions! {
    f32_avx512: "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma", __m512, 8;
    f64_avx512: "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma", __m512d, 8;
    f32_avx2: "avx2,fma", __m256, 4;
    f64_avx2: "avx2,fma", __m256d, 4;
}
