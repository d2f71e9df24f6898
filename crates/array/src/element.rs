//! Rust's number types as elements: what arrays are made from and read into.

use crate::array::{Array, upload};
use vramlab_ir::{DType, Fault, FaultKind, Literal, Type};

/// A Rust type that elements are read into or made from.
pub trait Element: Copy + 'static {
    const DTYPE: DType;

    /// `as` semantics.
    fn from_literal(literal: Literal) -> Self;
    fn literal(self) -> Literal;
}

macro_rules! elements {
    ($($rust:ident $dtype:ident $from:expr, $to:expr;)*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;

            fn from_literal(literal: Literal) -> $rust {
                let from: fn(Literal) -> $rust = $from;
                from(literal)
            }

            fn literal(self) -> Literal {
                let to: fn($rust) -> Literal = $to;
                to(self)
            }
        }
    )*};
}

elements! {
    f32 F32 |l| l.convert(DType::F32).as_f64() as f32, |v| Literal::from_f64(DType::F32, v as f64);
    f64 F64 |l| l.as_f64(), |v| Literal::from_f64(DType::F64, v);
    i32 I32 |l| l.convert(DType::I32).as_i64() as i32, |v| Literal::from_i64(DType::I32, v as i64);
    i64 I64 |l| l.convert(DType::I64).as_i64(), |v| Literal::from_i64(DType::I64, v);
    u8 U8 |l| l.convert(DType::U8).as_i64() as u8, |v| Literal::from_i64(DType::U8, v as i64);
    u32 U32 |l| l.convert(DType::U32).as_i64() as u32, |v| Literal::from_i64(DType::U32, v as i64);
    bool Bool |l| l.convert(DType::Bool).as_i64() != 0, |v| Literal::from_i64(DType::Bool, v as i64);
}

/// The element type that numbers of a cell become: Rust's default float is this crate's `f32`.
pub(crate) fn stored(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F32,
        other => other,
    }
}

/// Nested literals: `[1.0, 2.0]`, `[[1, 2], [3, 4]]`, `vec![…]`, a number alone. `f64` becomes
/// `f32`.
pub trait Nested {
    /// The element type of the literal.
    fn dtype(&self) -> DType;

    /// Sets `extents[depth..]`, or finds that they differ from what an earlier row had.
    ///
    /// # Errors
    /// A shape fault when rows differ in length.
    fn measure(&self, depth: usize, extents: &mut Vec<usize>) -> Result<(), Fault>;

    fn append(&self, literals: &mut Vec<Literal>);
}

macro_rules! leaves {
    ($($rust:ident)*) => {$(
        impl Nested for $rust {
            fn dtype(&self) -> DType {
                stored(<$rust as Element>::DTYPE)
            }

            fn measure(&self, _: usize, _: &mut Vec<usize>) -> Result<(), Fault> {
                Ok(())
            }

            fn append(&self, literals: &mut Vec<Literal>) {
                literals.push(Element::literal(*self));
            }
        }
    )*};
}

leaves!(f64 f32 i32 bool);

impl<T: Nested> Nested for [T] {
    fn dtype(&self) -> DType {
        self.first().map_or(DType::F32, Nested::dtype)
    }

    fn measure(&self, depth: usize, extents: &mut Vec<usize>) -> Result<(), Fault> {
        measure_row(depth, self.len(), extents)?;
        self.iter().try_for_each(|row| row.measure(depth + 1, extents))
    }

    fn append(&self, literals: &mut Vec<Literal>) {
        self.iter().for_each(|row| row.append(literals));
    }
}

/// Compares a row's length with the rows before it.
pub(crate) fn measure_row(
    depth: usize,
    length: usize,
    extents: &mut Vec<usize>,
) -> Result<(), Fault> {
    match extents.get(depth) {
        None => extents.push(length),
        Some(&known) if known == length => {}
        Some(&known) => {
            let message = format!("rows of {known} and of {length} elements at axis {depth}");
            return Err(Fault::new(FaultKind::Shape, "array", message));
        }
    }
    Ok(())
}

macro_rules! rows {
    ($([$($generics:tt)*] $rows:ty;)*) => {$(
        impl<T: Nested, $($generics)*> Nested for $rows {
            fn dtype(&self) -> DType {
                self[..].dtype()
            }

            fn measure(&self, depth: usize, extents: &mut Vec<usize>) -> Result<(), Fault> {
                self[..].measure(depth, extents)
            }

            fn append(&self, literals: &mut Vec<Literal>) {
                self[..].append(literals);
            }
        }
    )*};
}

rows! {
    [const N: usize] [T; N];
    [] Vec<T>;
    [] &[T];
    [const N: usize] &[T; N];
    [] &Vec<T>;
}

/// The array of a nested literal, in `dtype` or in the literal's own.
pub(crate) fn nested(values: &dyn Nested, dtype: Option<DType>) -> Result<Array, Fault> {
    let mut extents = Vec::new();
    values.measure(0, &mut extents)?;
    let mut literals = Vec::new();
    values.append(&mut literals);
    from_literals(literals.into_iter(), Type::new(dtype.unwrap_or(values.dtype()), extents))
}

/// A new array from host values, each converted to the array's element type.
pub(crate) fn from_literals(
    literals: impl ExactSizeIterator<Item = Literal>,
    ty: Type,
) -> Result<Array, Fault> {
    if ty.shape.checked_elements() != Some(literals.len()) {
        let message = format!("{} values do not fill {}", literals.len(), ty.shape);
        return Err(Fault::new(FaultKind::Shape, "from_vec", message));
    }
    let size = ty.dtype.size();
    let mut bytes = Vec::with_capacity(literals.len() * size);
    for literal in literals {
        bytes.extend_from_slice(&literal.convert(ty.dtype).to_bytes()[..size]);
    }
    upload(ty, &bytes)
}

/// The elements in row-major order, each through `read`.
pub(crate) fn elements<T>(
    array: &Array,
    op: &str,
    read: impl Fn(Literal) -> T,
) -> Result<Vec<T>, Fault> {
    let dtype = array.ty().dtype;
    let bytes = array.bytes(op)?;
    let chunks = bytes.chunks_exact(dtype.size());
    Ok(chunks.map(|chunk| read(Literal::from_bytes(dtype, chunk))).collect())
}

/// The one element of an array that has one.
pub(crate) fn item(array: &Array) -> Result<Literal, Fault> {
    if array.ty().shape.elements() != 1 {
        let message = format!("{} holds {} elements", array.ty(), array.ty().shape.elements());
        return Err(crate::ambient::placed(
            Fault::new(FaultKind::Shape, "item", message)
                .help("item() reads an array of one element; to_vec() reads all"),
        ));
    }
    let bytes = array.bytes("item")?;
    Ok(Literal::from_bytes(array.ty().dtype, &bytes))
}

/// The shape that `values` are to fill.
pub(crate) fn target(extents: &[i64], dtype: DType) -> Result<Type, Fault> {
    Ok(Type::new(dtype, crate::shape_arguments::shape("from_vec", extents)?))
}
