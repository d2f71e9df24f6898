//! Sizes and names as people write them.

use crate::{GIB, KIB, MIB};

/// A size in the largest binary unit that leaves a figure above one: `400.0 MiB`, `2.0 KiB`, `17 B`.
pub fn format_bytes(bytes: u64) -> String {
    let (unit, name) = match bytes {
        _ if bytes >= GIB => (GIB, "GiB"),
        _ if bytes >= MIB => (MIB, "MiB"),
        _ if bytes >= KIB => (KIB, "KiB"),
        _ => return format!("{bytes} B"),
    };
    format!("{:.1} {name}", bytes as f64 / unit as f64)
}

/// Reads `512MiB`, `1.5 GiB`, `4096`, `2G`, `64 mb`. All units are binary, as in JAX's and PyTorch's variables.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number = number.replace('_', "");
    let scale = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        "t" | "tb" | "tib" => GIB * 1024,
        _ => {
            return Err(format!(
                "`{text}` is not a size: write 512MiB, 1.5GiB or a number of bytes"
            ));
        }
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(|| format!("`{text}` is more than 2^64 bytes"));
    }
    match number.parse::<f64>() {
        // The nearest f64 to u64::MAX is 2^64.
        Ok(value) if value * (scale as f64) < u64::MAX as f64 => Ok((value * scale as f64) as u64),
        Ok(_) => Err(format!("`{text}` is more than 2^64 bytes")),
        Err(_) => Err(format!("`{text}` is not a size: write 512MiB, 1.5GiB or a number of bytes")),
    }
}

/// The nearest of `known` to a misspelt `word`, if any is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|name| (distance(&word, name), name))
        .filter(|(distance, name)| *distance <= 1.max(name.len().max(word.len()) / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let substituted = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = substituted.min(above[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_back() {
        for (text, bytes) in [
            ("1GiB", GIB),
            ("1.5 GiB", GIB + GIB / 2),
            ("4096", 4096),
            ("64mb", 64 * MIB),
            ("2k", 2 * KIB),
            ("0", 0),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for wrong in [
            "",
            "MiB",
            "12 parsecs",
            "-1",
            "1e400",
            "99999999999GiB",
            "NaN",
            "1.2.3G",
            "18446744073709551616",
        ] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(format_bytes(400 * MIB), "400.0 MiB");
        assert_eq!(format_bytes(17), "17 B");
    }

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["preallocate", "ondemand", "platform"];
        assert_eq!(nearest("on-demand", known), Some("ondemand"));
        assert_eq!(nearest("plaftorm", known), Some("platform"));
        assert_eq!(nearest("Preallocat", known), Some("preallocate"));
        assert_eq!(nearest("x", known), None);
    }
}
