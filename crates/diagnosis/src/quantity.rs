//! Printed amounts of memory: a number, its unit, and what its last digit leaves open.

use std::ops::{Add, Range};

/// A figure as it was printed: the nearest byte, and how far the truth may be from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Quantity {
    pub bytes: u64,
    /// Half the last printed digit, rounded up; 0 for a count of bytes.
    pub tolerance: u64,
}

/// Drivers print 2^64 - 1 for "not available". Nothing that exists comes near half of it.
const NOT_AVAILABLE: u128 = 1 << 63;

/// Units, longest first. Programs that print "GB" for device memory mean 2^30, as MPS does.
const UNITS: [(&str, u32); 19] = [
    ("bytes", 0),
    ("byte", 0),
    ("kib", 10),
    ("mib", 20),
    ("gib", 30),
    ("tib", 40),
    ("pib", 50),
    ("eib", 60),
    ("kb", 10),
    ("mb", 20),
    ("gb", 30),
    ("tb", 40),
    ("b", 0),
    ("k", 10),
    ("m", 20),
    ("g", 30),
    ("t", 40),
    ("p", 50),
    ("e", 60),
];

/// How a unit may be written in the text at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// At least two letters: a message that was cut inside its unit has no unit.
    Whole,
    /// Also `0B` and `21.5G`.
    Any,
}

impl Quantity {
    /// An exact count of bytes.
    pub fn exact(bytes: u64) -> Self {
        Quantity { bytes, tolerance: 0 }
    }

    /// `self - other` where that is not negative beyond what rounding explains; then 0.
    pub fn minus(self, other: Self) -> Self {
        Quantity {
            bytes: self.bytes.saturating_sub(other.bytes),
            tolerance: self.tolerance.saturating_add(other.tolerance),
        }
    }

    /// Could the true value be `bytes`?
    pub fn may_be(self, bytes: u64) -> bool {
        self.bytes.abs_diff(bytes) <= self.tolerance
    }

    /// Reads a number and its unit at the start of `text`: the figure and the length of what was read. The figure is
    /// `None` where the program printed its "not available".
    pub fn at_start(text: &str, units: Units) -> Option<(Option<Quantity>, usize)> {
        let whole = digits(text);
        let rest = &text[whole..];
        let decimals = match rest.strip_prefix('.') {
            Some(fraction) => digits(fraction),
            None => 0,
        };
        if whole == 0 {
            return None;
        }
        let number = whole + if decimals > 0 { decimals + 1 } else { 0 };
        let gap = text[number..].len() - text[number..].trim_start_matches([' ', '\t']).len();
        let (unit, shift) = unit(&text[number + gap..], units)?;
        let fraction = if decimals > 0 { &text[whole + 1..number] } else { "" };
        let figure = figure(&text[..whole], fraction, shift);
        Some((figure, number + gap + unit))
    }

    /// Like [`Self::at_start`]; a number without a unit counts bytes.
    pub fn or_bytes(text: &str) -> Option<Quantity> {
        if let Some((figure, _)) = Self::at_start(text, Units::Any) {
            return figure;
        }
        let whole = digits(text);
        if whole == 0 || text[whole..].starts_with('.') {
            return None;
        }
        figure(&text[..whole], "", 0)
    }
}

impl Add for Quantity {
    type Output = Quantity;

    fn add(self, other: Quantity) -> Quantity {
        Quantity {
            bytes: self.bytes.saturating_add(other.bytes),
            tolerance: self.tolerance.saturating_add(other.tolerance),
        }
    }
}

/// A quantity in a text.
pub struct Found {
    pub range: Range<usize>,
    /// `None`: the program printed its "not available".
    pub figure: Option<Quantity>,
}

/// Every number with a whole unit, from left to right.
pub fn scan(text: &str) -> Vec<Found> {
    let bytes = text.as_bytes();
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        match Quantity::at_start(&text[at..], Units::Whole) {
            Some((figure, length)) => {
                found.push(Found { range: at..at + length, figure });
                at += length;
            }
            None => at += digits(&text[at..]),
        }
    }
    found
}

/// The length of the run of digits at the start.
pub fn digits(text: &str) -> usize {
    text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len()
}

/// The number at the start of `text`.
pub fn number(text: &str) -> Option<u64> {
    text[..digits(text)].parse().ok()
}

fn unit(text: &str, units: Units) -> Option<(usize, u32)> {
    let fits = |(name, _): &&(&str, u32)| {
        let head = text.as_bytes().get(..name.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()))
            && (units == Units::Any || name.len() > 1)
            // `5 b` and `5 batches`; a squeezed text runs on behind longer names.
            && (name.len() > 1 || !text[1..].starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    UNITS.iter().find(fits).map(|(name, shift)| (name.len(), *shift))
}

/// `whole.fraction << shift`, rounded to the nearest byte. Digits beyond the 18th of the fraction say nothing.
fn figure(whole: &str, fraction: &str, shift: u32) -> Option<Quantity> {
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10u128.pow(fraction.len() as u32);
    let whole: u128 = if whole.len() > 20 { return None } else { whole.parse().ok()? };
    let parts: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let unit = 1u128 << shift;
    let bytes = whole.checked_mul(unit)?.checked_add((parts * unit + scale / 2) / scale)?;
    let tolerance = if shift == 0 { 0 } else { unit.div_ceil(2 * scale) };
    (bytes < NOT_AVAILABLE).then(|| Quantity {
        bytes: bytes as u64,
        tolerance: u64::try_from(tolerance).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(u64, u64)> {
        let (figure, _) = Quantity::at_start(text, Units::Any)?;
        figure.map(|q| (q.bytes, q.tolerance))
    }

    #[test]
    fn a_printed_figure_carries_half_its_last_digit() {
        assert_eq!(read("23.64 GiB"), Some((25_383_256_719, 5_368_710)));
        assert_eq!(read("1024.00 MiB"), Some((1 << 30, 5_243)));
        assert_eq!(read("0 bytes free"), Some((0, 0)));
        assert_eq!(read("512.0KiB("), Some((512 << 10, 52)));
        assert_eq!(read("24132MiB /"), Some((24_132 << 20, 512 << 10)));
        assert_eq!(read("0B"), Some((0, 0)));
        assert_eq!(read("21.5G of"), Some((23_085_449_216, 53_687_092)));
    }

    #[test]
    fn the_drivers_not_available_is_no_figure() {
        assert_eq!(Quantity::at_start("17179869184.00 GiB", Units::Any), Some((None, 18)));
        assert_eq!(Quantity::at_start("99999999999999999999999 GiB", Units::Any).unwrap().0, None);
    }

    #[test]
    fn a_unit_that_was_cut_is_no_unit() {
        assert!(Quantity::at_start("531.04 M", Units::Whole).is_none());
        assert!(Quantity::at_start("531.04 Mi", Units::Any).is_none());
        assert!(Quantity::at_start("2 batches", Units::Any).is_none());
        assert!(Quantity::at_start("é", Units::Any).is_none());
    }
}
