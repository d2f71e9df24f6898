//! Shapes, axes and indices as a cell writes them.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use vramlab_ir::{Fault, FaultKind, Shape};

/// The integers of shapes and indices. What `i64` cannot hold is too large for any axis.
trait Whole: Copy {
    fn wide(self) -> i64;
}

impl Whole for i32 {
    fn wide(self) -> i64 {
        self as i64
    }
}

impl Whole for usize {
    fn wide(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

/// A shape: `[n, m]` of `i32` or of `usize`, one integer, or `()` for a scalar.
pub trait IntoShape {
    /// The extents as written, which may be negative.
    fn extents(&self) -> Vec<i64>;
}

macro_rules! integer_shapes {
    ($($int:ty)*) => {$(
        impl IntoShape for $int {
            fn extents(&self) -> Vec<i64> {
                vec![self.wide()]
            }
        }
        impl<const N: usize> IntoShape for [$int; N] {
            fn extents(&self) -> Vec<i64> {
                self.iter().map(|extent| extent.wide()).collect()
            }
        }
        impl IntoShape for Vec<$int> {
            fn extents(&self) -> Vec<i64> {
                self.iter().map(|extent| extent.wide()).collect()
            }
        }
        impl IntoShape for &[$int] {
            fn extents(&self) -> Vec<i64> {
                self.iter().map(|extent| extent.wide()).collect()
            }
        }
        impl Extent for $int {
            fn extent(&self) -> i64 {
                self.wide()
            }
        }
    )*};
}

integer_shapes!(i32 usize);

impl IntoShape for () {
    fn extents(&self) -> Vec<i64> {
        Vec::new()
    }
}

/// What `shape()` gives.
impl<T: IntoShape> IntoShape for &T {
    fn extents(&self) -> Vec<i64> {
        (*self).extents()
    }
}

/// One extent or count, `i32` or `usize`.
pub trait Extent {
    fn extent(&self) -> i64;
}

/// Axes: `[0, 1]`, negative ones count from the back.
pub trait Axes {
    fn axes(&self) -> Vec<i64>;
}

impl<const N: usize> Axes for [i32; N] {
    fn axes(&self) -> Vec<i64> {
        self.iter().map(|&axis| axis as i64).collect()
    }
}

impl Axes for Vec<i32> {
    fn axes(&self) -> Vec<i64> {
        self.iter().map(|&axis| axis as i64).collect()
    }
}

impl Axes for &[i32] {
    fn axes(&self) -> Vec<i64> {
        self.iter().map(|&axis| axis as i64).collect()
    }
}

/// Elements before and behind, per axis: `[(1, 2), (0, 0)]`.
pub trait Padding {
    fn pairs(&self) -> Vec<(i64, i64)>;
}

impl<const N: usize> Padding for [(i32, i32); N] {
    fn pairs(&self) -> Vec<(i64, i64)> {
        self.iter().map(|&(low, high)| (low as i64, high as i64)).collect()
    }
}

impl Padding for Vec<(i32, i32)> {
    fn pairs(&self) -> Vec<(i64, i64)> {
        self.iter().map(|&(low, high)| (low as i64, high as i64)).collect()
    }
}

/// The shape of those extents.
pub(crate) fn shape(op: &str, extents: &[i64]) -> Result<Shape, Fault> {
    if let Some(negative) = extents.iter().find(|&&extent| extent < 0) {
        let message = format!("the extent {negative} in {} is negative", list(extents));
        return Err(Fault::new(FaultKind::Shape, op, message));
    }
    let shape = Shape::new(extents.iter().map(|&extent| extent as usize).collect::<Vec<_>>());
    // Sixteen bytes an element leave room for any element type.
    match shape.checked_elements().and_then(|n| n.checked_mul(16)) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(shape),
        _ => {
            let message = format!("{} has more elements than can be counted", list(extents));
            Err(Fault::new(FaultKind::Shape, op, message))
        }
    }
}

pub(crate) fn list(values: &[i64]) -> String {
    let words: Vec<String> = values.iter().map(i64::to_string).collect();
    format!("[{}]", words.join(", "))
}

/// What a slice takes of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Index {
    /// One position; the axis goes away.
    At(i64),
    /// From `start` (else the beginning) up to `end` (else the end).
    Range { start: Option<i64>, end: Option<i64>, inclusive: bool },
}

/// One axis of a slice: a position, or a range of `i32` or of `usize`; negative counts from the end.
pub trait AxisIndex {
    fn index(&self) -> Index;
}

macro_rules! integer_indices {
    ($($int:ty)*) => {$(
        impl AxisIndex for $int {
            fn index(&self) -> Index {
                Index::At(self.wide())
            }
        }
        impl AxisIndex for Range<$int> {
            fn index(&self) -> Index {
                range(Some(self.start.wide()), Some(self.end.wide()), false)
            }
        }
        impl AxisIndex for RangeInclusive<$int> {
            fn index(&self) -> Index {
                range(Some(self.start().wide()), Some(self.end().wide()), true)
            }
        }
        impl AxisIndex for RangeFrom<$int> {
            fn index(&self) -> Index {
                range(Some(self.start.wide()), None, false)
            }
        }
        impl AxisIndex for RangeTo<$int> {
            fn index(&self) -> Index {
                range(None, Some(self.end.wide()), false)
            }
        }
        impl AxisIndex for RangeToInclusive<$int> {
            fn index(&self) -> Index {
                range(None, Some(self.end.wide()), true)
            }
        }
    )*};
}

integer_indices!(i32 usize);

impl AxisIndex for RangeFull {
    fn index(&self) -> Index {
        range(None, None, false)
    }
}

fn range(start: Option<i64>, end: Option<i64>, inclusive: bool) -> Index {
    Index::Range { start, end, inclusive }
}

/// The first axes of a slice: one [`AxisIndex`], or a tuple of up to eight.
pub trait Indices {
    fn indices(&self) -> Vec<Index>;
}

impl<A: AxisIndex> Indices for A {
    fn indices(&self) -> Vec<Index> {
        vec![self.index()]
    }
}

macro_rules! tuple_indices {
    ($($name:ident)*) => {
        impl<$($name: AxisIndex),*> Indices for ($($name,)*) {
            #[allow(non_snake_case)]
            fn indices(&self) -> Vec<Index> {
                let ($($name,)*) = self;
                vec![$($name.index()),*]
            }
        }
    };
}

tuple_indices!(A);
tuple_indices!(A B);
tuple_indices!(A B C);
tuple_indices!(A B C D);
tuple_indices!(A B C D E);
tuple_indices!(A B C D E F);
tuple_indices!(A B C D E F G);
tuple_indices!(A B C D E F G H);

/// The window `start..end` of an axis of `extent`, and whether the axis goes away.
pub(crate) fn window(
    op: &str,
    shape: &Shape,
    axis: usize,
    index: Index,
) -> Result<(i64, i64, bool), Fault> {
    let extent = shape[axis] as i64;
    let outside = |what: String| {
        let message = format!("{what} is out of range for axis {axis} of {shape}");
        Err(Fault::new(FaultKind::Argument, op, message))
    };
    let from_front = |bound: i64| if bound < 0 { bound.saturating_add(extent) } else { bound };
    match index {
        Index::At(position) => match from_front(position) {
            at if (0..extent).contains(&at) => Ok((at, at + 1, true)),
            _ => outside(format!("index {position}")),
        },
        Index::Range { start, end, inclusive } => {
            let first = start.map_or(0, from_front);
            let last = end.map_or(extent, |end| from_front(end).saturating_add(inclusive as i64));
            if first < 0 || last > extent || first > last {
                let bound = |b: Option<i64>| b.map_or(String::new(), |b| b.to_string());
                let dots = if inclusive { "..=" } else { ".." };
                return outside(format!("{}{dots}{}", bound(start), bound(end)));
            }
            Ok((first, last, false))
        }
    }
}
