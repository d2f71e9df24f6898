//! Which element types an op takes.

use vramlab_ir::DType;

/// A set of element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// `f16 bf16 f32 f64`; the two halves compute in `f32` and round once.
    Float,
    /// Floats and integers.
    Number,
    /// Numbers but the halves: sums and products of many terms want a wider type, and the caller
    /// says which by converting.
    Accumulator,
    /// Integers.
    Integer,
    /// Integers and `bool`.
    Bits,
    Bool,
    Any,
}

impl Domain {
    pub fn accepts(self, dtype: DType) -> bool {
        match self {
            Domain::Float => dtype.is_float(),
            Domain::Number => dtype != DType::Bool,
            Domain::Accumulator => !matches!(dtype, DType::Bool | DType::F16 | DType::BF16),
            Domain::Integer => dtype.is_integer(),
            Domain::Bits => dtype.is_integer() || dtype == DType::Bool,
            Domain::Bool => dtype == DType::Bool,
            Domain::Any => true,
        }
    }

    /// The type that NumPy's habits convert `dtype` to before the op: integers to `f32` where only
    /// floats will do, `bool` to `i32` where it must count, halves to `f32` where they accumulate.
    pub fn coerce(self, dtype: DType) -> DType {
        match self {
            _ if self.accepts(dtype) => dtype,
            Domain::Float => DType::F32,
            Domain::Accumulator if dtype.is_float() => DType::F32,
            Domain::Bool => DType::Bool,
            _ => DType::I32,
        }
    }

    /// For faults: `takes …`.
    pub const fn words(self) -> &'static str {
        match self {
            Domain::Float => "floats (f16 bf16 f32 f64)",
            Domain::Number => "numbers (every type but bool)",
            Domain::Accumulator => "f32 f64 i32 i64 u32 u8",
            Domain::Integer => "integers (i32 i64 u32 u8)",
            Domain::Bits => "integers and bool",
            Domain::Bool => "bool",
            Domain::Any => "every type",
        }
    }
}
