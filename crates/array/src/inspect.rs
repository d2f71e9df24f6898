//! Reading an array: its type, its elements.

use crate::array::Array;
use crate::composite;
use crate::element::{self, Element, Nested};
use crate::layout;
use crate::operand::Operand;
use crate::raise::or_raise;
use crate::shape_arguments::{Extent, IntoShape};
use vramlab_ir::DType;

impl Array {
    /// The extent of every axis.
    pub fn shape(&self) -> Vec<usize> {
        self.ty().shape.to_vec()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.ty().shape.elements()
    }

    /// The number of axes.
    pub fn ndim(&self) -> usize {
        self.ty().shape.rank()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.ty().shape.rank()
    }

    /// The bytes of the elements.
    pub fn nbytes(&self) -> usize {
        self.ty().bytes() as usize
    }

    /// The one element of an array that has one.
    #[track_caller]
    pub fn item(&self) -> f64 {
        or_raise(element::item(self)).as_f64()
    }

    /// The one element, converted as by `as`.
    #[track_caller]
    pub fn item_as<T: Element>(&self) -> T {
        T::from_literal(or_raise(element::item(self)))
    }

    /// The elements in row-major order, converted as by `as`.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Vec<T> {
        or_raise(element::elements(self, "to_vec", T::from_literal))
    }
}

impl Array {
    /// Equal parts along an axis.
    #[track_caller]
    pub fn split(&self, parts: impl Extent, axis: i32) -> Vec<Array> {
        or_raise(layout::split(self.input(), parts.extent(), axis as i64))
    }
}

/// Equal parts along an axis.
#[track_caller]
pub fn split(x: impl Operand, parts: impl Extent, axis: i32) -> Vec<Array> {
    or_raise(layout::split(x.input(), parts.extent(), axis as i64))
}

/// Whether two arrays of one shape differ nowhere by more than 1e-8 + 1e-5 · |b|; NaN differs.
#[track_caller]
pub fn allclose(a: impl Operand, b: impl Operand) -> bool {
    or_raise(composite::allclose(a.input(), b.input()))
}

/// An array from nested literals: `array([[1.0, 2.0], [3.0, 4.0]])`. Floats become `f32`, integers
/// `i32`.
#[track_caller]
pub fn array(values: impl Nested) -> Array {
    or_raise(element::nested(&values, None))
}

/// An array of `dtype` from nested literals.
#[track_caller]
pub fn array_as(dtype: DType, values: impl Nested) -> Array {
    or_raise(element::nested(&values, Some(dtype)))
}

/// An array of `shape` from its elements in row-major order; `f64` becomes `f32`.
#[track_caller]
pub fn from_vec<T: Element>(values: Vec<T>, shape: impl IntoShape) -> Array {
    let literals = values.into_iter().map(Element::literal);
    let ty = element::target(&shape.extents(), element::stored(T::DTYPE));
    or_raise(ty.and_then(|ty| element::from_literals(literals, ty)))
}
