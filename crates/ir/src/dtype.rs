//! Element types and typed scalars.

use crate::half;
use std::fmt;

/// The type of an array's elements. The order is the promotion order within a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    Bool,
    U8,
    U32,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
}

impl DType {
    /// Every element type, in declaration order.
    pub const ALL: [DType; 9] = [
        DType::Bool,
        DType::U8,
        DType::U32,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// Bytes of one element in device memory.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 => 1,
            DType::F16 | DType::BF16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// The name in the text form and in tables: `f32`, `bool`, …
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::U32 => "u32",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// The element type of that name, if there is one.
    pub fn parse(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    pub const fn is_integer(self) -> bool {
        matches!(self, DType::U8 | DType::U32 | DType::I32 | DType::I64)
    }

    /// The type both operands convert to before a binary op: JAX's lattice, where a float always
    /// wins over an integer, `f16` with `bf16` gives `f32`, and `u32` with `i32` gives `i64`.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        let (low, high) = if self <= other { (self, other) } else { (other, self) };
        match (low, high) {
            (U32, I32) => I64,
            (F16, BF16) => F32,
            _ => high,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One typed scalar, kept as the bit pattern it has in device memory (zero-extended to 64 bits), so
/// that literals hash and compare exactly, NaNs included.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Literal {
    dtype: DType,
    bits: u64,
}

impl Literal {
    /// `value` rounded (floats) or truncated and saturated (integers, as Rust's `as`) to `dtype`.
    pub fn from_f64(dtype: DType, value: f64) -> Literal {
        let bits = match dtype {
            DType::Bool => (value != 0.0) as u64,
            DType::U8 => value as u8 as u64,
            DType::U32 => value as u32 as u64,
            DType::I32 => value as i32 as u32 as u64,
            DType::I64 => value as i64 as u64,
            DType::F16 => half::f16_from_f32(value as f32) as u64,
            DType::BF16 => half::bf16_from_f32(value as f32) as u64,
            DType::F32 => (value as f32).to_bits() as u64,
            DType::F64 => value.to_bits(),
        };
        Literal { dtype, bits }
    }

    /// `value` in `dtype`; integers wrap as Rust's `as` does.
    pub fn from_i64(dtype: DType, value: i64) -> Literal {
        let bits = match dtype {
            DType::Bool => (value != 0) as u64,
            DType::U8 => value as u8 as u64,
            DType::U32 => value as u32 as u64,
            DType::I32 => value as i32 as u32 as u64,
            DType::I64 => value as u64,
            // Straight to f32: through f64 a large integer would be rounded twice.
            DType::F32 => (value as f32).to_bits() as u64,
            _ => return Literal::from_f64(dtype, value as f64),
        };
        Literal { dtype, bits }
    }

    /// The literal whose device bytes are the low `dtype.size()` bytes of `bits`; a bool is 0 or 1,
    /// so any other byte reads as true.
    pub fn from_bits(dtype: DType, bits: u64) -> Literal {
        if dtype == DType::Bool {
            return Literal { dtype, bits: (bits & 0xff != 0) as u64 };
        }
        let mask = if dtype.size() == 8 { u64::MAX } else { (1 << (8 * dtype.size())) - 1 };
        Literal { dtype, bits: bits & mask }
    }

    /// The literal in the first `dtype.size()` bytes (little endian).
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Literal {
        let mut word = [0u8; 8];
        word[..dtype.size()].copy_from_slice(&bytes[..dtype.size()]);
        Literal::from_bits(dtype, u64::from_le_bytes(word))
    }

    pub fn dtype(self) -> DType {
        self.dtype
    }

    pub fn bits(self) -> u64 {
        self.bits
    }

    /// The device bytes, little endian; the first `dtype().size()` count.
    pub fn to_bytes(self) -> [u8; 8] {
        self.bits.to_le_bytes()
    }

    /// The nearest `f64`.
    pub fn as_f64(self) -> f64 {
        match self.dtype {
            DType::Bool | DType::U8 | DType::U32 => self.bits as f64,
            DType::I32 => self.bits as u32 as i32 as f64,
            DType::I64 => self.bits as i64 as f64,
            DType::F16 => half::f16_to_f32(self.bits as u16) as f64,
            DType::BF16 => half::bf16_to_f32(self.bits as u16) as f64,
            DType::F32 => f32::from_bits(self.bits as u32) as f64,
            DType::F64 => f64::from_bits(self.bits),
        }
    }

    /// The value as `i64`: exact for integers, truncated and saturated for floats.
    pub fn as_i64(self) -> i64 {
        match self.dtype {
            DType::Bool | DType::U8 | DType::U32 => self.bits as i64,
            DType::I32 => self.bits as u32 as i32 as i64,
            DType::I64 => self.bits as i64,
            _ => self.as_f64() as i64,
        }
    }

    /// This value in another element type (`as` semantics).
    pub fn convert(self, dtype: DType) -> Literal {
        if self.dtype.is_float() {
            Literal::from_f64(dtype, self.as_f64())
        } else {
            Literal::from_i64(dtype, self.as_i64())
        }
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}:{}", self.dtype)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dtype {
            DType::Bool => write!(f, "{}", self.bits != 0),
            DType::F32 => write!(f, "{:?}", f32::from_bits(self.bits as u32)),
            d if d.is_float() => write!(f, "{:?}", self.as_f64()),
            _ => write!(f, "{}", self.as_i64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DType::*;
    use super::*;

    #[test]
    fn promotion_is_symmetric_and_no_narrower_than_either() {
        for a in DType::ALL {
            assert_eq!(a.promote(a), a);
            for b in DType::ALL {
                assert_eq!(a.promote(b), b.promote(a));
                assert_eq!(a.promote(b).is_float(), a.is_float() || b.is_float());
            }
        }
        assert_eq!(I64.promote(F16), F16);
        assert_eq!(U32.promote(I32), I64);
        assert_eq!(F16.promote(BF16), F32);
        assert_eq!(Bool.promote(U8), U8);
    }

    #[test]
    fn names_parse_back() {
        for dtype in DType::ALL {
            assert_eq!(DType::parse(dtype.name()), Some(dtype));
        }
        assert_eq!(DType::parse("f8"), None);
    }

    #[test]
    fn floats_truncate_and_saturate_on_their_way_to_integers() {
        let to = |dtype, value| Literal::from_f64(F64, value).convert(dtype).as_i64();
        assert_eq!(to(I32, -2.9), -2);
        assert_eq!(to(I32, 1e10), i32::MAX as i64);
        assert_eq!(to(U8, -1.0), 0);
        assert_eq!(to(U8, 300.0), 255);
        assert_eq!(to(I64, f64::NAN), 0);
        assert_eq!(to(Bool, f64::NAN), 1);
        assert_eq!(to(Bool, -0.0), 0);
    }

    #[test]
    fn integers_wrap_on_their_way_to_narrower_ones() {
        let to = |dtype, value| Literal::from_i64(I64, value).convert(dtype).as_i64();
        assert_eq!(to(U8, 300), 44);
        assert_eq!(to(I32, 1 << 31), i32::MIN as i64);
        assert_eq!(to(U32, -1), u32::MAX as i64);
        assert_eq!(to(Bool, 256), 1);
    }

    #[test]
    fn a_large_integer_rounds_once_to_f32() {
        // Halfway between two f32 but for its last bit, which f64 would have dropped first.
        let value = (1i64 << 60) + (1 << 36) + 1;
        assert_eq!(Literal::from_i64(F32, value).as_f64(), value as f32 as f64);
    }

    #[test]
    fn bytes_and_bits_survive() {
        for dtype in DType::ALL {
            for bits in [0u64, 1, 0x7fc1_2345, u64::MAX] {
                let literal = Literal::from_bits(dtype, bits);
                assert_eq!(Literal::from_bytes(dtype, &literal.to_bytes()), literal);
                assert_eq!(literal.convert(dtype).as_f64().is_nan(), literal.as_f64().is_nan());
            }
        }
        assert_eq!(Literal::from_bits(Bool, 2).bits(), 1);
    }

    #[test]
    fn equal_bits_are_equal_literals_nan_or_not() {
        let nan = Literal::from_f64(F32, f64::NAN);
        assert_eq!(nan, nan);
        assert_ne!(Literal::from_f64(F32, 0.0), Literal::from_f64(F32, -0.0));
    }

    #[test]
    fn literals_print_as_rust_prints_them() {
        let show = |dtype, value| format!("{:?}", Literal::from_f64(dtype, value));
        assert_eq!(show(F32, 0.1), "0.1:f32");
        assert_eq!(show(F64, 2.0), "2.0:f64");
        assert_eq!(show(F32, f64::NEG_INFINITY), "-inf:f32");
        assert_eq!(show(I32, -3.0), "-3:i32");
        assert_eq!(show(Bool, 1.0), "true:bool");
    }
}
