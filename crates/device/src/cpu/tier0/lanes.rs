//! Block functions: one op over whole blocks, compiled once for each instruction set.
//!
//! A block is a multiple of [`CHUNK`] elements. The inner loops run over chunks of fixed length with no tail and no
//! aliasing, which is what the compiler's vectoriser likes best; padding lanes hold whatever they hold. An operand that
//! is the same for every element is one chunk with a step of 0, so constants cost no variants.

use crate::cpu::isa::{BASELINE_FMA, Isa};
use std::marker::PhantomData;

/// Elements that the inner loops take at once.
pub(crate) const CHUNK: usize = 64;
/// Elements of a full block: a few of them fit the first-level cache together.
pub(crate) const BLOCK: usize = 1024;

/// Where a block function reads: `step` bytes from one chunk to the next, 0 for a splat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub ptr: *const u8,
    pub step: usize,
}

impl Operand {
    pub const NONE: Operand = Operand { ptr: std::ptr::null(), step: 0 };

    /// Asks for a chunk's lines of memory, whatever lies there.
    #[inline(always)]
    pub fn fetch(self, chunk: usize) {
        #[cfg(target_arch = "x86_64")]
        for at in (0..self.step).step_by(64) {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            let ptr = self.ptr.wrapping_add(chunk * self.step + at);
            // SAFETY: a prefetch reads nothing that a program can see, and never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(ptr.cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = chunk;
    }

    /// # Safety
    /// `chunk` chunks of `T` are readable at the operand, aligned, and nobody writes them during `'a`.
    #[inline(always)]
    pub unsafe fn chunk<'a, T>(self, chunk: usize) -> &'a [T; CHUNK] {
        // SAFETY: passed on to the caller.
        unsafe { &*self.ptr.add(chunk * self.step).cast() }
    }
}

/// `out`, operands, number of chunks. The output overlaps no operand.
pub(crate) type BlockFn = unsafe fn(*mut u8, &[Operand; 3], usize);

/// What a block function does, before an instruction set is chosen.
pub(crate) trait Block {
    /// # Safety
    /// As many operands as the op reads, and `out`, hold `chunks` chunks (one where a step is 0) of the op's types,
    /// aligned; `out` overlaps none of them.
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx512<B: Block>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
    // SAFETY: the caller's promise is the same.
    unsafe { B::run::<true>(out, args, chunks) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx2<B: Block>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
    // SAFETY: the caller's promise is the same.
    unsafe { B::run::<true>(out, args, chunks) }
}

unsafe fn baseline<B: Block>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
    // SAFETY: the caller's promise is the same.
    unsafe { B::run::<BASELINE_FMA>(out, args, chunks) }
}

/// Which versions of a block function are worth their compile time.
pub(crate) trait Versions: 'static {
    /// The version of `B` for an instruction set that this machine has.
    fn pick<B: Block>(isa: Isa) -> BlockFn;
}

/// One for each instruction set: the common element types.
pub(crate) enum Every {}
impl Versions for Every {
    fn pick<B: Block>(isa: Isa) -> BlockFn {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::<B>,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::<B>,
            _ => baseline::<B>,
        }
    }
}

/// None for AVX-512: rare element types, and work that memory bounds.
pub(crate) enum Fewer {}
impl Versions for Fewer {
    fn pick<B: Block>(isa: Isa) -> BlockFn {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx2 => avx2::<B>,
            _ => baseline::<B>,
        }
    }
}

/// One for all: calls to scalar functions.
pub(crate) enum Single {}
impl Versions for Single {
    fn pick<B: Block>(_isa: Isa) -> BlockFn {
        baseline::<B>
    }
}

/// One operand.
pub(crate) trait Op1 {
    type A: Copy;
    type O: Copy;
    fn lane<const FMA: bool>(a: Self::A) -> Self::O;

    /// A whole chunk; ops with rare slow lanes look at it as a whole.
    #[inline(always)]
    fn chunk<const FMA: bool>(out: &mut [Self::O; CHUNK], a: &[Self::A; CHUNK]) {
        for i in 0..CHUNK {
            out[i] = Self::lane::<FMA>(a[i]);
        }
    }
}

/// Two operands.
pub(crate) trait Op2 {
    type A: Copy;
    type B: Copy;
    type O: Copy;
    fn lane<const FMA: bool>(a: Self::A, b: Self::B) -> Self::O;
}

/// Three operands.
pub(crate) trait Op3 {
    type A: Copy;
    type B: Copy;
    type C: Copy;
    type O: Copy;
    fn lane<const FMA: bool>(a: Self::A, b: Self::B, c: Self::C) -> Self::O;
}

pub(crate) struct One<P>(PhantomData<P>);
pub(crate) struct Two<P>(PhantomData<P>);
pub(crate) struct Three<P>(PhantomData<P>);

/// # Safety
/// `index` chunks lie at `out` before the one that is taken, which nobody else reads or writes.
#[inline(always)]
unsafe fn chunk_mut<'a, T>(out: *mut u8, index: usize) -> &'a mut [T; CHUNK] {
    // SAFETY: passed on to the caller.
    unsafe { &mut *out.cast::<[T; CHUNK]>().add(index) }
}

impl<P: Op1> Block for One<P> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let [a, ..] = *args;
        for i in 0..chunks {
            // SAFETY: the caller gives `chunks` chunks of these types.
            unsafe { P::chunk::<FMA>(chunk_mut(out, i), a.chunk(i)) };
        }
    }
}

/// One operand and much work: asks meanwhile for what lies ahead at operands 1 and 2 (a step of 0: nothing), a few lines
/// a chunk. The processor's own prefetch pauses while a block is worked on.
pub(crate) struct Slow<P>(PhantomData<P>);

impl<P: Op1> Block for Slow<P> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let [a, first, second] = *args;
        for i in 0..chunks {
            first.fetch(i);
            second.fetch(i);
            // SAFETY: the caller gives `chunks` chunks of these types.
            unsafe { P::chunk::<FMA>(chunk_mut(out, i), a.chunk(i)) };
        }
    }
}

impl<P: Op2> Block for Two<P> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let [a, b, _] = *args;
        for i in 0..chunks {
            // SAFETY: the caller gives `chunks` chunks of these types.
            unsafe { zip2::<P, FMA>(chunk_mut(out, i), a.chunk(i), b.chunk(i)) };
        }
    }
}

#[inline(always)]
fn zip2<P: Op2, const FMA: bool>(out: &mut [P::O; CHUNK], a: &[P::A; CHUNK], b: &[P::B; CHUNK]) {
    for i in 0..CHUNK {
        out[i] = P::lane::<FMA>(a[i], b[i]);
    }
}

impl<P: Op3> Block for Three<P> {
    #[inline(always)]
    unsafe fn run<const FMA: bool>(out: *mut u8, args: &[Operand; 3], chunks: usize) {
        let [a, b, c] = *args;
        for i in 0..chunks {
            // SAFETY: the caller gives `chunks` chunks of these types.
            unsafe { zip3::<P, FMA>(chunk_mut(out, i), a.chunk(i), b.chunk(i), c.chunk(i)) };
        }
    }
}

#[inline(always)]
fn zip3<P: Op3, const FMA: bool>(
    out: &mut [P::O; CHUNK],
    a: &[P::A; CHUNK],
    b: &[P::B; CHUNK],
    c: &[P::C; CHUNK],
) {
    for i in 0..CHUNK {
        out[i] = P::lane::<FMA>(a[i], b[i], c[i]);
    }
}
