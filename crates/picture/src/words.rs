//! How figures are written in a picture.

use vramlab_memory::format_bytes;

/// A size in its largest unit: `512 MiB`, `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    format_bytes(bytes).replacen(".0 ", " ", 1)
}

/// A size and, where that is rounded, its bytes: `1.5 GiB (1610612737 bytes)`.
pub fn exact(bytes: u64) -> String {
    match bytes {
        0..1024 => size(bytes),
        _ => format!("{} ({bytes} bytes)", size(bytes)),
    }
}

/// Parts of a million as a percentage: `46.67 %`.
pub fn share(millionths: u64) -> String {
    let text = format!("{:.2}", millionths as f64 / 10_000.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A time: `1.5 ms`.
pub fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..=999 => (ns as f64, "ns"),
        1_000..=999_999 => (ns as f64 / 1e3, "µs"),
        1_000_000..=999_999_999 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{} {unit}", format!("{value:.1}").trim_end_matches(".0"))
}

/// What a line of that many characters measures in a picture, in pixels.
pub(crate) fn width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

/// The characters of a text that fit into so many pixels, with `…` where some do not.
pub(crate) fn fitting(text: &str, pixels: f64) -> String {
    let room = (pixels / CHARACTER).floor().max(0.0) as usize;
    if text.chars().count() <= room {
        return text.to_string();
    }
    match room {
        0 => String::new(),
        room => text.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// The width of a character of [`FONT`] in [`FONT_SIZE`].
const CHARACTER: f64 = 6.7;
pub(crate) const FONT_SIZE: &str = "11px";
pub(crate) const FONT: &str = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_exact() {
        assert_eq!(size(512 << 20), "512 MiB");
        assert_eq!(exact(1536), "1.5 KiB (1536 bytes)");
        assert_eq!(exact(17), "17 B");
        assert_eq!(share(466_667), "46.67 %");
        assert_eq!(share(1_000_000), "100 %");
        assert_eq!(duration(1_500_000), "1.5 ms");
        assert_eq!(fitting("abcdef", 30.0), "abc…");
    }
}
