//! Shapes: dense, row-major, NumPy's broadcasting.

use std::fmt;
use std::ops::Deref;

/// The extent of every dimension, outermost first; `[]` is a scalar.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Shape(Vec<usize>);

impl Shape {
    pub fn new(dims: impl Into<Vec<usize>>) -> Shape {
        Shape(dims.into())
    }

    /// The shape of a scalar, `[]`.
    pub fn scalar() -> Shape {
        Shape(Vec::new())
    }

    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of elements, or `None` when it does not fit in `usize`.
    pub fn checked_elements(&self) -> Option<usize> {
        if self.0.contains(&0) {
            return Some(0);
        }
        self.0.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
    }

    /// The number of elements; a shape that made it into a verified `Func` always fits.
    pub fn elements(&self) -> usize {
        self.checked_elements().unwrap_or(usize::MAX)
    }

    /// Row-major strides in elements; they saturate for shapes that no `Func` may hold.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1usize; self.rank()];
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis].saturating_mul(self.0[axis]);
        }
        strides
    }

    /// NumPy's broadcast of two shapes, or `None` when a pair of extents neither agrees nor holds a 1.
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        let rank = self.rank().max(other.rank());
        let extent =
            |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(1, |axis| s.0[axis]);
        let dims: Option<Vec<usize>> = (0..rank)
            .map(|i| match (extent(self, i), extent(other, i)) {
                (a, b) if a == b => Some(a),
                (1, b) => Some(b),
                (a, 1) => Some(a),
                _ => None,
            })
            .collect();
        dims.map(Shape)
    }

    /// `axis` counted from the front; negative axes count from the back. `None` when out of range.
    pub fn axis(&self, axis: i64) -> Option<usize> {
        let rank = self.rank() as i64;
        let axis = if axis < 0 { axis + rank } else { axis };
        (0..rank).contains(&axis).then_some(axis as usize)
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Shape {
        Shape(dims)
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Shape {
        Shape(dims.to_vec())
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Shape {
        Shape(dims.to_vec())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
        let (a, b) = (Shape::from(a), Shape::from(b));
        let both = a.broadcast(&b);
        assert_eq!(both, b.broadcast(&a), "broadcasting has no left and right");
        both.map(|shape| shape.to_vec())
    }

    #[test]
    fn shapes_broadcast_from_the_back() {
        assert_eq!(broadcast(&[4, 3], &[3]), Some(vec![4, 3]));
        assert_eq!(broadcast(&[4, 1], &[1, 5]), Some(vec![4, 5]));
        assert_eq!(broadcast(&[], &[2, 2]), Some(vec![2, 2]));
        assert_eq!(broadcast(&[4, 3], &[4, 5]), None);
        assert_eq!(broadcast(&[4, 3], &[4]), None);
    }

    #[test]
    fn an_extent_of_one_becomes_zero() {
        assert_eq!(broadcast(&[1, 3], &[0, 3]), Some(vec![0, 3]));
        assert_eq!(broadcast(&[2, 3], &[0, 3]), None);
    }

    #[test]
    fn elements_are_counted_or_said_not_to_fit() {
        assert_eq!(Shape::scalar().checked_elements(), Some(1));
        assert_eq!(Shape::from([4, 0, usize::MAX, 2]).checked_elements(), Some(0));
        assert_eq!(Shape::from([usize::MAX, 2]).checked_elements(), None);
        assert_eq!(Shape::from([usize::MAX, 2]).elements(), usize::MAX);
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(Shape::from([4, 3, 2]).strides(), [6, 2, 1]);
        assert_eq!(Shape::scalar().strides(), [0usize; 0]);
        assert_eq!(Shape::from([0, usize::MAX, usize::MAX]).strides()[0], usize::MAX);
    }

    #[test]
    fn negative_axes_count_from_the_back() {
        let shape = Shape::from([4, 3]);
        assert_eq!([-2, -1, 0, 1].map(|axis| shape.axis(axis)), [0, 1, 0, 1].map(Some));
        assert_eq!([-3, 2, i64::MIN, i64::MAX].map(|axis| shape.axis(axis)), [None; 4]);
        assert_eq!(Shape::scalar().axis(0), None);
    }

    #[test]
    fn shapes_print_as_in_the_text_form() {
        assert_eq!(Shape::from([4, 3]).to_string(), "[4,3]");
        assert_eq!(Shape::scalar().to_string(), "[]");
    }
}
