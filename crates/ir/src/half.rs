//! Conversions of the two 16-bit float formats, round to nearest even.
//!
//! Kept here rather than taken from a crate so that compiled cells build from std alone.

/// IEEE 754 binary16 bits of `value`.
pub fn f16_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let exponent = ((bits >> 23) & 0xff) as i32;
    let mantissa = bits & 0x7f_ffff;
    if exponent == 0xff {
        let nan = if mantissa != 0 { 0x200 | (mantissa >> 13) as u16 } else { 0 };
        return sign | 0x7c00 | nan;
    }
    let unbiased = exponent - 127;
    if unbiased > 15 {
        return sign | 0x7c00;
    }
    if unbiased >= -14 {
        let half = ((unbiased + 15) as u32) << 10 | mantissa >> 13;
        return sign | round_even(half, mantissa & 0x1fff, 0x1000);
    }
    if unbiased < -25 {
        return sign;
    }
    let full = mantissa | 0x80_0000;
    let shift = (13 - 14 - unbiased) as u32;
    let half = full >> shift;
    sign | round_even(half, full & ((1 << shift) - 1), 1 << (shift - 1))
}

fn round_even(half: u32, rest: u32, midpoint: u32) -> u16 {
    let up = rest > midpoint || (rest == midpoint && half & 1 == 1);
    // A carry out of the mantissa raises the exponent, up to infinity: that is the right result.
    (half + up as u32) as u16
}

/// The `f32` equal to IEEE 754 binary16 `bits`.
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = (bits as u32 & 0x8000) << 16;
    let exponent = (bits >> 10) as u32 & 0x1f;
    let mantissa = bits as u32 & 0x3ff;
    let magnitude = match (exponent, mantissa) {
        (0, 0) => 0,
        // A subnormal: mantissa · 2^-24, exact in f32.
        (0, m) => (m as f32 * f32::from_bits(0x3380_0000)).to_bits(),
        (0x1f, m) => 0x7f80_0000 | m << 13,
        (e, m) => (e + 112) << 23 | m << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// bfloat16 bits of `value`.
pub fn bf16_from_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

/// The `f32` equal to bfloat16 `bits`.
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_survives_the_round_trip() {
        for bits in 0..=u16::MAX {
            let value = f16_to_f32(bits);
            if value.is_nan() {
                assert!(f16_to_f32(f16_from_f32(value)).is_nan());
            } else {
                assert_eq!(f16_from_f32(value), bits);
            }
        }
    }

    #[test]
    fn every_bf16_survives_the_round_trip() {
        for bits in 0..=u16::MAX {
            let value = bf16_to_f32(bits);
            if !value.is_nan() {
                assert_eq!(bf16_from_f32(value), bits);
            }
        }
    }

    #[test]
    fn f16_rounds_to_nearest_even_and_overflows_to_infinity() {
        assert_eq!(f16_from_f32(65504.0), 0x7bff);
        assert_eq!(f16_from_f32(65520.0), 0x7c00);
        assert_eq!(f16_from_f32(1.0 + 1.0 / 2048.0), 0x3c00);
        assert_eq!(f16_from_f32(1.0 + 3.0 / 2048.0), 0x3c02);
        assert_eq!(f16_from_f32(2f32.powi(-25)), 0);
        assert_eq!(f16_from_f32(2f32.powi(-24)), 1);
        assert_eq!(f16_from_f32(1.5 * 2f32.powi(-25)), 1);
    }
}
