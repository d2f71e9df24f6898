//! Numbers of bytes as people write them.

/// The units there are, each 1024 of the one before; without `i` the same, as drivers count.
const UNITS: [(&str, u64); 9] = [
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("tb", 1 << 40),
];

/// `512MiB`, `1.5 GiB`, `4096`: bytes; binary, whatever the unit's spelling.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..split].trim(), text[split..].to_lowercase());
    let Ok(number) = number.parse::<f64>() else {
        return Err(format!("{text:?} is not a number of bytes"));
    };
    let unit = match unit.as_str() {
        "" => 1,
        unit => match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, bytes)) => *bytes,
            None => return Err(format!("{text:?}: the unit {unit:?} is unknown")),
        },
    };
    let bytes = number * unit as f64;
    if !(1.0..=i64::MAX as f64).contains(&bytes) {
        return Err(format!("{text:?} is out of range"));
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_read_and_everything_else_is_refused() {
        assert_eq!(parse("512MiB"), Ok(512 << 20));
        assert_eq!(parse(" 1.5 GiB "), Ok(3 << 29));
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("2kb"), Ok(2048));
        for wrong in ["", "MiB", "-1MiB", "0", "1 parsec", "NaN", "inf", "1e300", "1,5GiB"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
