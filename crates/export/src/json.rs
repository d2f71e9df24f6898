//! Text as JSON has it.

use std::fmt;

/// A text that prints as a JSON string, quotes included.
pub(crate) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for sign in self.0.chars() {
            match sign {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                sign if u32::from(sign) < 0x20 => write!(f, "\\u{:04x}", u32::from(sign))?,
                sign => write!(f, "{sign}")?,
            }
        }
        f.write_str("\"")
    }
}

/// Nanoseconds that print as microseconds, exactly.
pub(crate) struct Micros(pub u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_reads_back() {
        for text in ["", "a \"b\" \\ c", "line\nline\ttab\u{1}", "µ·日本"] {
            let read: String = serde_json::from_str(&Quoted(text).to_string()).expect("JSON");
            assert_eq!(read, text);
        }
        assert_eq!(Micros(1_234_005).to_string(), "1234.005");
    }
}
