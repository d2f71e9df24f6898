//! Affine index arithmetic: how the elements of one array are met as a loop runs.
//!
//! A [`Form`] gives the flat (row-major) position in an array as an affine function of the loop's
//! coordinates. A reshape leaves it as it is, and any form can be read from a stored array. To go
//! through a view or a broadcast the flat position must be taken apart into coordinates, which
//! [`locate`] does; when one loop dimension runs over several axes it asks for a split of that
//! dimension, so loops begin with as few dimensions as possible and get more only on demand.

use crate::graph::NodeId;

/// The flat position in an array, as a function of the loop's coordinates.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Form {
    pub offset: isize,
    /// Elements per step along each loop dimension.
    pub strides: Vec<isize>,
    pub starts: Vec<RunStart>,
}

/// `clamp(scalar, 0, limit) · stride`, known only at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunStart {
    pub source: StartSource,
    pub limit: i64,
    pub stride: isize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartSource {
    /// An i32 scalar of the program.
    Node(NodeId),
    /// The index register of a gather.
    Index,
}

/// Why a flat position does not come apart into coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It would, if loop dimension `dim` were split so that its inner part has extent `inner`.
    Split {
        dim: usize,
        inner: usize,
    },
    NotAffine,
}

impl Form {
    /// The form that walks a dense array of extents `dims` in order.
    pub fn dense(dims: &[usize]) -> Form {
        Form { offset: 0, strides: dense_strides(dims), starts: Vec::new() }
    }

    /// The form that stays on element 0.
    pub fn constant(rank: usize) -> Form {
        Form { offset: 0, strides: vec![0; rank], starts: Vec::new() }
    }

    /// Splits loop dimension `dim` into an outer part and an inner one of extent `inner`.
    pub fn split(&mut self, dim: usize, inner: usize) {
        let stride = self.strides[dim];
        self.strides[dim] = stride * inner as isize;
        self.strides.insert(dim + 1, stride);
    }

    /// Whether every element of an array of `elements` is met exactly once by the loop, in any
    /// order, not counting the loop dimensions in `ignored`.
    pub fn covers(&self, dims: &[usize], ignored: usize, elements: usize) -> bool {
        if self.offset != 0 || !self.starts.is_empty() {
            return false;
        }
        let kept = dims.len() - ignored;
        if self.strides[kept..].iter().zip(&dims[kept..]).any(|(&s, &d)| d > 1 && s != 0) {
            return false;
        }
        let mut steps: Vec<(isize, usize)> =
            self.strides[..kept].iter().copied().zip(dims.iter().copied()).collect();
        steps.retain(|&(_, d)| d > 1);
        steps.sort_unstable();
        let mut next = 1isize;
        for (stride, extent) in steps {
            if stride != next {
                return false;
            }
            next *= extent as isize;
        }
        next == elements as isize
    }

    /// Whether the form walks a dense array in order.
    pub fn is_dense(&self, dims: &[usize]) -> bool {
        let mut next = 1isize;
        for (&stride, &extent) in self.strides.iter().zip(dims).rev() {
            if extent > 1 && stride != next {
                return false;
            }
            next *= extent as isize;
        }
        self.offset == 0 && self.starts.is_empty()
    }

    /// The same positions times `factor`.
    pub fn scaled(&self, factor: isize) -> Form {
        let mut form = self.clone();
        form.offset *= factor;
        form.strides.iter_mut().for_each(|s| *s *= factor);
        form.starts.iter_mut().for_each(|s| s.stride *= factor);
        form
    }
}

/// Row-major strides of an array of extents `dims`.
pub(crate) fn dense_strides(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1isize; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as isize;
    }
    strides
}

/// Strides of a broadcast operand along the axes of the result.
pub(crate) fn broadcast_strides(operand: &[usize], result: &[usize]) -> Vec<isize> {
    let weights = dense_strides(operand);
    let missing = result.len() - operand.len();
    (0..result.len())
        .map(|axis| match axis.checked_sub(missing) {
            Some(own) if operand[own] == result[axis] => weights[own],
            _ => 0,
        })
        .collect()
}

/// The axes of a dense array and the strides that some operands have along them, with axes of
/// extent 1 dropped and neighbours joined wherever every operand allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axes {
    pub extents: Vec<usize>,
    /// Per operand, per axis.
    pub strides: Vec<Vec<isize>>,
}

impl Axes {
    pub fn joined(shape: &[usize], operands: &[Vec<isize>]) -> Axes {
        let mut extents: Vec<usize> = Vec::new();
        let mut strides: Vec<Vec<isize>> = vec![Vec::new(); operands.len()];
        for (axis, &extent) in shape.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            let joins = !extents.is_empty()
                && operands.iter().zip(&strides).all(|(operand, kept)| {
                    kept.last().copied() == Some(operand[axis] * extent as isize)
                });
            if joins {
                *extents.last_mut().expect("just seen to hold one") *= extent;
                for (operand, kept) in operands.iter().zip(&mut strides) {
                    *kept.last_mut().expect("as many as extents") = operand[axis];
                }
            } else {
                extents.push(extent);
                for (operand, kept) in operands.iter().zip(&mut strides) {
                    kept.push(operand[axis]);
                }
            }
        }
        Axes { extents, strides }
    }
}

/// Where a loop is in a dense array: each loop dimension moves along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// Start along each axis.
    pub offset: Vec<isize>,
    /// Per loop dimension: the axis it moves along and the step (0: it does not move).
    pub moves: Vec<(usize, isize)>,
    /// Run-time starts, likewise.
    pub starts: Vec<(usize, RunStart)>,
}

impl Location {
    /// The form of an operand that has `strides` along the axes.
    pub fn apply(&self, base: isize, strides: &[isize]) -> Form {
        let offset = self.offset.iter().zip(strides).map(|(o, s)| o * s).sum::<isize>();
        let along =
            |&(axis, step): &(usize, isize)| if step == 0 { 0 } else { step * strides[axis] };
        let starts = self
            .starts
            .iter()
            .map(|&(axis, start)| RunStart { stride: start.stride * strides[axis], ..start })
            .collect();
        Form { offset: base + offset, strides: self.moves.iter().map(along).collect(), starts }
    }
}

/// Takes the flat position `form` in a dense array of `extents` apart.
pub(crate) fn locate(form: &Form, dims: &[usize], extents: &[usize]) -> Result<Location, Misfit> {
    let weights = dense_strides(extents);
    let mut offset = Vec::with_capacity(extents.len());
    let mut rest = form.offset;
    for &weight in &weights {
        offset.push(rest.div_euclid(weight));
        rest = rest.rem_euclid(weight);
    }
    let mut low = offset.clone();
    let mut high = offset.clone();
    let mut moves = Vec::with_capacity(dims.len());
    for (dim, (&stride, &extent)) in form.strides.iter().zip(dims).enumerate() {
        if stride == 0 || extent <= 1 {
            moves.push((0, 0));
            continue;
        }
        let (axis, step) = along(stride, &weights).ok_or(Misfit::NotAffine)?;
        let reach = step * (extent as isize - 1);
        if reach.unsigned_abs() >= extents[axis] {
            let inner = extents[axis] / step.unsigned_abs();
            let splits = inner > 1 && inner < extent && extent.is_multiple_of(inner);
            return Err(if splits { Misfit::Split { dim, inner } } else { Misfit::NotAffine });
        }
        low[axis] += reach.min(0);
        high[axis] += reach.max(0);
        moves.push((axis, step));
    }
    let mut starts = Vec::new();
    for &start in &form.starts {
        if start.stride == 0 || start.limit == 0 {
            continue;
        }
        let (axis, step) = along(start.stride, &weights).ok_or(Misfit::NotAffine)?;
        high[axis] += (step * start.limit as isize).max(0);
        low[axis] += (step * start.limit as isize).min(0);
        starts.push((axis, RunStart { stride: step, ..start }));
    }
    let inside =
        low.iter().zip(&high).zip(extents).all(|((&l, &h), &e)| l >= 0 && (h as usize) < e);
    if inside { Ok(Location { offset, moves, starts }) } else { Err(Misfit::NotAffine) }
}

/// The outermost axis that a stride is a whole number of steps along, when a smaller step than the
/// axis's own weight is not needed.
fn along(stride: isize, weights: &[isize]) -> Option<(usize, isize)> {
    let axis = weights.iter().position(|&w| w <= stride.abs())?;
    (stride % weights[axis] == 0).then(|| (axis, stride / weights[axis]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_walk_over_two_axes_asks_for_a_split() {
        let form = Form::dense(&[24]);
        assert_eq!(locate(&form, &[24], &[4, 6]), Err(Misfit::Split { dim: 0, inner: 6 }));
        let mut split = form;
        split.split(0, 6);
        let location = locate(&split, &[4, 6], &[4, 6]).unwrap();
        assert_eq!(location.apply(0, &[0, 1]).strides, [0, 1]);
    }

    #[test]
    fn a_backward_walk_keeps_its_start() {
        let form = Form { offset: 23, strides: vec![-6, -1], starts: vec![] };
        let location = locate(&form, &[4, 6], &[4, 6]).unwrap();
        assert_eq!(location.offset, [3, 5]);
        assert_eq!(location.moves, [(0, -1), (1, -1)]);
    }

    #[test]
    fn a_diagonal_is_refused() {
        let form = Form { offset: 0, strides: vec![7], starts: vec![] };
        assert_eq!(locate(&form, &[4], &[4, 6]), Err(Misfit::NotAffine));
    }

    #[test]
    fn neighbours_join_when_every_operand_allows_it() {
        let axes = Axes::joined(&[2, 3, 1, 4], &[vec![12, 4, 4, 1], vec![0, 0, 0, 1]]);
        assert_eq!(axes.extents, [6, 4]);
        assert_eq!(axes.strides, [vec![4, 1], vec![0, 1]]);
    }

    #[test]
    fn covers_means_each_element_once() {
        assert!(Form { offset: 0, strides: vec![1, 4], starts: vec![] }.covers(&[4, 6], 0, 24));
        assert!(!Form { offset: 0, strides: vec![1, 0], starts: vec![] }.covers(&[4, 6], 0, 4));
        assert!(Form { offset: 0, strides: vec![1, 0], starts: vec![] }.covers(&[4, 6], 1, 4));
    }
}
