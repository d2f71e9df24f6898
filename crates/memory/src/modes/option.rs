//! Options: what values they take and how these are read.

use super::ModeError;
use crate::caching::Divisions;
use crate::text::parse_bytes;
use std::fmt;

/// One option of a mode.
#[derive(Debug)]
pub struct OptionEntry {
    /// How it is written.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// Its value where none is given, as a user would write it.
    pub default: &'static str,
    /// What values it takes.
    pub kind: OptionKind,
}

/// What values an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// A number above 0, at most 1.
    Fraction,
    /// On or off, in any of the usual spellings.
    Switch,
    /// A size, or `unlimited`.
    Bytes,
    /// A number from 0, which is off, to below 1.
    Threshold,
    /// Steps that a power of two is divided into, for all sizes or by size.
    Divisions,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionValue {
    /// Of [`OptionKind::Fraction`].
    Fraction(f64),
    /// Of [`OptionKind::Switch`].
    Switch(bool),
    /// Of [`OptionKind::Bytes`]; `None` is unlimited.
    Bytes(Option<u64>),
    /// Of [`OptionKind::Threshold`].
    Threshold(f64),
    /// Of [`OptionKind::Divisions`].
    Divisions(Divisions),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Fraction(fraction) => write!(f, "{fraction}"),
            OptionValue::Switch(true) => write!(f, "on"),
            OptionValue::Switch(false) => write!(f, "off"),
            OptionValue::Bytes(Some(bytes)) if bytes % crate::MIB == 0 => {
                write!(f, "{}MiB", bytes / crate::MIB)
            }
            OptionValue::Bytes(Some(bytes)) => write!(f, "{bytes}"),
            OptionValue::Bytes(None) => write!(f, "unlimited"),
            OptionValue::Threshold(part) => write!(f, "{part}"),
            OptionValue::Divisions(divisions) => write!(f, "{divisions}"),
        }
    }
}

impl OptionEntry {
    /// Reads a value.
    pub fn parse(&self, text: &str) -> Result<OptionValue, ModeError> {
        let value = match self.kind {
            OptionKind::Fraction => parse_fraction(text).map(OptionValue::Fraction),
            OptionKind::Switch => parse_switch(text).map(OptionValue::Switch),
            OptionKind::Bytes if text.eq_ignore_ascii_case("unlimited") => {
                Some(OptionValue::Bytes(None))
            }
            OptionKind::Bytes => parse_bytes(text).ok().map(|b| OptionValue::Bytes(Some(b))),
            OptionKind::Threshold => parse_threshold(text).map(OptionValue::Threshold),
            OptionKind::Divisions => Divisions::parse(text).map(OptionValue::Divisions),
        };
        value.ok_or_else(|| ModeError::Value {
            option: self.name.to_string(),
            given: text.to_string(),
            valid: self.kind.valid(),
        })
    }
}

impl OptionKind {
    /// What it takes, in words.
    pub fn valid(self) -> String {
        match self {
            OptionKind::Fraction => "a number above 0 and at most 1, such as 0.75".to_string(),
            OptionKind::Switch => SWITCH_WORDS.to_string(),
            OptionKind::Bytes => "a size such as 100MiB, or unlimited".to_string(),
            OptionKind::Threshold => "a number from 0 (off) to below 1, such as 0.8".to_string(),
            OptionKind::Divisions => {
                "0, a power of two, or a list by size in MiB such as [256:1,512:2,>:4]".to_string()
            }
        }
    }

    /// Values to offer for completion.
    pub fn examples(self) -> &'static [&'static str] {
        match self {
            OptionKind::Fraction => &["0.25", "0.5", "0.75", "0.9"],
            OptionKind::Switch => &["on", "off"],
            OptionKind::Bytes => &["20MiB", "100MiB", "unlimited"],
            OptionKind::Threshold => &["0", "0.8"],
            OptionKind::Divisions => &["0", "4", "[256:1,512:2,>:4]"],
        }
    }
}

pub(super) const SWITCH_WORDS: &str = "on, yes, 1, true or off, no, 0, false";

/// Reads on or off in any of the usual spellings.
pub fn parse_switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "on" | "yes" | "1" | "true" => Some(true),
        "off" | "no" | "0" | "false" => Some(false),
        _ => None,
    }
}

pub(super) fn parse_fraction(text: &str) -> Option<f64> {
    // Refuses NaN too, which compares as nothing.
    text.trim().parse::<f64>().ok().filter(|fraction| *fraction > 0.0 && *fraction <= 1.0)
}

fn parse_threshold(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|part| (0.0..1.0).contains(part))
}

/// Words between spaces or commas; those within brackets part nothing.
pub(super) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = text.split(move |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth <= 0 && (c.is_whitespace() || c == ',')
    });
    parts.filter(|word| !word.is_empty())
}
