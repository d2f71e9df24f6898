//! The closed set of loop classes that an op may mean. Passes match on these, never on op names.

use crate::dtype::Literal;
use crate::func::Func;
use crate::scalar::ScalarProgram;
use std::sync::Arc;

/// How elements along reduced axes combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceKind {
    Sum,
    Prod,
    /// Propagates NaN.
    Max,
    /// Propagates NaN.
    Min,
    Any,
    All,
    /// Position (i32) of the first maximum; the first NaN wins. Exactly one axis.
    ArgMax,
    /// Position (i32) of the first minimum; the first NaN wins. Exactly one axis.
    ArgMin,
}

/// What an op means as loops over dense row-major arrays. `out` is the result's type from `infer`.
#[derive(Clone, Debug, PartialEq)]
pub enum Lowering {
    /// `out[i] = program(inputs broadcast to out, at i)`. `Inst::Input(k)` is operand k at i;
    /// `Inst::Gather` may index an operand; `Inst::Index(axis)` is the coordinate of i. Fill, iota
    /// and random bits are programs without inputs.
    Elementwise(ScalarProgram),
    /// `out = reduce(input 0 over axes)`; axes ascending. Whether the result keeps the axes as
    /// extent 1 is seen from the result's type only: the data is the same.
    Reduce {
        kind: ReduceKind,
        axes: Vec<usize>,
    },
    /// `out[i] = input0[offset + Σ i_axis · strides[axis]]` in elements of the dense input: reads
    /// only. Transpose, broadcast, slice (with steps) and flip.
    View {
        offset: usize,
        strides: Vec<isize>,
    },
    /// Same elements in the same order, another shape: never moves data.
    Reshape,
    /// Inputs one behind the other along `axis`.
    Concatenate {
        axis: usize,
    },
    /// Input 0 surrounded by input 1 (a scalar): `low[axis]` elements before; the result's type
    /// says how many behind.
    Pad {
        low: Vec<usize>,
    },
    /// `out[i] = input0[start + i]`; inputs 1.. are the i32 scalar starts per axis, clamped so
    /// that the window stays inside.
    DynamicSlice,
    /// Input 0 with input 1 written at the i32 scalar starts (inputs 2..), clamped likewise.
    DynamicUpdateSlice,
    /// Batched contraction; the result's axes are batch, then lhs free, then rhs free axes.
    Dot(DotAxes),
    /// Filters (input 1) moved over the space of input 0: `[n, s…, c]`, `[k…, c, o]` → `[n, p…, o]`.
    Conv(Convolution),
    /// Inlined by the compiler: the inputs are the function's arguments.
    Call(Arc<Func>),
    /// The value itself under a name that passes keep (identity barrier).
    Identity,
    /// Input 0 itself, no sooner than the other inputs are computed. What reads it is not what
    /// reads input 0: no pass merges the two.
    Barrier,
    /// Input 0 copied to the memory that the result's type names, no sooner than the other inputs are
    /// computed. The one lowering that touches host memory.
    Transfer,
    /// `out[i] = reduce(input 0 from its axis's beginning to i)`, or from i to its end. Never the
    /// kinds that give positions.
    Cumulative {
        kind: ReduceKind,
        axis: usize,
        reverse: bool,
    },
    /// Input 0 with the elements of input 2 added along `axis` at the i32 indices of input 1, of which
    /// negative ones count from the end and all are clamped to the axis: the transpose of a gather, whose
    /// indices look the same. Indices that are equal add up.
    ScatterAdd {
        axis: usize,
    },
    Scan(ScanLoop),
    While(WhileLoop),
    /// `on_true(inputs 1..)` when input 0, a bool scalar, holds, else `on_false` of the same; both
    /// give the same types.
    Cond {
        on_true: Arc<Func>,
        on_false: Arc<Func>,
    },
}

/// A loop whose number of iterations is known. Inputs: `consts` values that every iteration reads,
/// the first values of `carries`, then arrays of which iteration i gets slice i of the leading axis.
/// The body takes the same (slices for arrays) and gives the next carries, then slices of the
/// results. Results: the last carries, then the slices stacked along a new leading axis.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanLoop {
    pub body: Arc<Func>,
    pub length: usize,
    pub consts: usize,
    pub carries: usize,
    /// Whether the last slice is taken first. Stacked results stand where their slices stood.
    pub reverse: bool,
}

/// A loop that goes on while `cond` holds. Inputs: what `cond` reads beside the carries, what `body`
/// reads beside them, the first carries. `cond(cond consts…, carries…)` gives a bool scalar,
/// `body(body consts…, carries…)` the next carries. Results: the last carries.
#[derive(Clone, Debug, PartialEq)]
pub struct WhileLoop {
    pub cond: Arc<Func>,
    pub body: Arc<Func>,
    pub cond_consts: usize,
    pub body_consts: usize,
}

/// The axes of space of a convolution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    pub axes: Vec<ConvAxis>,
}

/// How filters move along one axis of space. Result p reads, under tap k, the element of the spread
/// operand at `p · stride + k · w_dilation - low`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvAxis {
    /// At least 1, as the dilations.
    pub stride: i64,
    /// Zeros before the operand; below 0, elements cut off.
    pub low: i64,
    pub high: i64,
    /// The distance of the operand's elements, zeros between them.
    pub x_dilation: i64,
    pub w_dilation: i64,
}

impl ConvAxis {
    /// How many results `w` taps have on `x` elements: below 1 when they do not fit, `None` when
    /// that cannot be counted.
    pub fn results(&self, x: usize, w: usize) -> Option<usize> {
        let (x, w) = (i64::try_from(x).ok()?, i64::try_from(w).ok()?);
        // So that no position on the way to an element overflows.
        for value in [self.stride, self.low, self.high, self.x_dilation, self.w_dilation] {
            i32::try_from(value).ok()?;
        }
        let spread = x.checked_sub(1)?.checked_mul(self.x_dilation)?.checked_add(1)?;
        let padded = spread.checked_add(self.low)?.checked_add(self.high)?;
        let reach = w.checked_sub(1)?.checked_mul(self.w_dilation)?.checked_add(1)?;
        let room = padded.checked_sub(reach)?;
        if room < 0 {
            return Some(0);
        }
        usize::try_from(room / self.stride + 1).ok()
    }

    /// The element that result `p` reads under tap `k`, of `x` elements; `None` is a zero.
    pub fn element(&self, p: usize, k: usize, x: usize) -> Option<usize> {
        let at = p as i64 * self.stride + k as i64 * self.w_dilation - self.low;
        let whole = at >= 0 && at % self.x_dilation == 0;
        whole.then(|| (at / self.x_dilation) as usize).filter(|&element| element < x)
    }
}

/// Which axes of the two operands of a dot belong together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct DotAxes {
    pub lhs_batch: Vec<usize>,
    pub rhs_batch: Vec<usize>,
    pub lhs_contract: Vec<usize>,
    pub rhs_contract: Vec<usize>,
}

impl Lowering {
    /// A constant everywhere.
    pub fn fill(value: Literal) -> Lowering {
        Lowering::Elementwise(ScalarProgram::constant(value))
    }
}
