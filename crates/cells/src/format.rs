//! Format strings: their syntax, and how values of each type print.

use crate::hir::{Align, Count, Piece, Spec, Style};
use crate::ty::{FloatKind, IntKind, Ty};
use std::fmt::Write as _;

/// A format string taken apart.
pub struct Parsed {
    pub pieces: Vec<Piece>,
    /// Names taken from the scope, to be appended to the arguments.
    pub captured: Vec<String>,
    /// Which of the given arguments were used.
    pub used: Vec<bool>,
}

struct Parser<'n> {
    names: &'n [Option<String>],
    captured: Vec<String>,
    used: Vec<bool>,
    next: usize,
    /// Positional arguments that the string asks for.
    wanted: usize,
}

/// Takes a format string apart; `names` are the names of the given arguments.
///
/// # Errors
/// What is wrong, in words.
pub fn parse_format(text: &str, names: &[Option<String>]) -> Result<Parsed, String> {
    let mut parser =
        Parser { names, captured: Vec::new(), used: vec![false; names.len()], next: 0, wanted: 0 };
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.next_if_eq(&'{').is_some() => literal.push('{'),
            '}' if chars.next_if_eq(&'}').is_some() => literal.push('}'),
            '{' => {
                let mut inside = String::new();
                loop {
                    match chars.next() {
                        Some('}') => break,
                        Some(c) => inside.push(c),
                        None => {
                            return Err("invalid format string: expected `}` but string was \
                                        terminated"
                                .into());
                        }
                    }
                }
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                }
                pieces.push(parser.piece(&inside)?);
            }
            '}' => return Err("invalid format string: unmatched `}` found".into()),
            c => literal.push(c),
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    let given = names.iter().filter(|name| name.is_none()).count();
    if parser.wanted > given {
        let (plural, verb, noun) = (
            if parser.wanted == 1 { "" } else { "s" },
            if given == 1 { "is" } else { "are" },
            if given == 1 { "argument" } else { "arguments" },
        );
        let count = if given == 0 { "no".to_string() } else { given.to_string() };
        return Err(format!(
            "{} positional argument{plural} in format string, but there {verb} {count} {noun}",
            parser.wanted
        ));
    }
    Ok(Parsed { pieces, captured: parser.captured, used: parser.used })
}

impl Parser<'_> {
    fn piece(&mut self, inside: &str) -> Result<Piece, String> {
        let (name, spec) = match inside.split_once(':') {
            Some((name, spec)) => (name.trim(), spec.trim_end()),
            None => (inside.trim(), ""),
        };
        let (mut spec, starred) = self.spec(spec)?;
        if starred {
            // `.*` takes its precision first.
            let index = self.positional();
            spec.precision = Some(Count::Argument(index));
        }
        let argument = match name {
            "" => self.positional(),
            name => self.named(name)?,
        };
        Ok(Piece::Value { argument, spec })
    }

    fn positional(&mut self) -> usize {
        let index = self.next;
        self.next += 1;
        self.at(index)
    }

    fn at(&mut self, index: usize) -> usize {
        self.wanted = self.wanted.max(index + 1);
        if let Some(used) = self.used.get_mut(index) {
            *used = true;
        }
        index
    }

    fn named(&mut self, name: &str) -> Result<usize, String> {
        if let Ok(index) = name.parse::<usize>() {
            if index >= self.names.len() {
                let given = self.names.len();
                return Err(format!(
                    "invalid reference to positional argument {index} (there {} {given} \
                     argument{})",
                    if given == 1 { "is" } else { "are" },
                    if given == 1 { "" } else { "s" }
                ));
            }
            if let Some(used) = self.used.get_mut(index) {
                *used = true;
            }
            return Ok(index);
        }
        let valid = name.chars().next().is_some_and(|c| c == '_' || c.is_alphabetic())
            && name.chars().all(|c| c == '_' || c.is_alphanumeric());
        if !valid {
            return Err(format!(
                "invalid format string: `{name}` is no name; only names stand in a format string, \
                 pass other expressions as arguments"
            ));
        }
        if let Some(index) = self.names.iter().position(|own| own.as_deref() == Some(name)) {
            self.used[index] = true;
            return Ok(index);
        }
        let index = match self.captured.iter().position(|own| own == name) {
            Some(index) => index,
            None => {
                self.captured.push(name.into());
                self.captured.len() - 1
            }
        };
        Ok(self.names.len() + index)
    }

    /// `[[fill]align][sign]['#']['0'][width]['.' precision][type]`; whether the precision is `*`.
    fn spec(&mut self, text: &str) -> Result<(Spec, bool), String> {
        let mut spec = Spec::default();
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let align = |c: Option<&char>| match c {
            Some('<') => Some(Align::Left),
            Some('^') => Some(Align::Center),
            Some('>') => Some(Align::Right),
            _ => None,
        };
        if let Some(found) = align(chars.get(1)) {
            spec.fill = chars[0];
            spec.align = Some(found);
            at = 2;
        } else if let Some(found) = align(chars.first()) {
            spec.align = Some(found);
            at = 1;
        }
        if chars.get(at) == Some(&'+') {
            spec.plus = true;
            at += 1;
        }
        if chars.get(at) == Some(&'#') {
            spec.alternate = true;
            at += 1;
        }
        if chars.get(at) == Some(&'0') && chars.get(at + 1) != Some(&'$') {
            spec.zero = true;
            at += 1;
        }
        let (width, after) = self.count(&chars, at)?;
        spec.width = width;
        at = after;
        let mut starred = false;
        if chars.get(at) == Some(&'.') {
            at += 1;
            if chars.get(at) == Some(&'*') {
                starred = true;
                at += 1;
            } else {
                let (precision, after) = self.count(&chars, at)?;
                spec.precision = precision;
                at = after;
            }
        }
        let rest: String = chars[at..].iter().collect();
        spec.style = match rest.as_str() {
            "" => Style::Display,
            "?" => Style::Debug,
            "x" => Style::LowerHex,
            "X" => Style::UpperHex,
            "b" => Style::Binary,
            "o" => Style::Octal,
            "e" => Style::LowerExp,
            "E" => Style::UpperExp,
            other => return Err(format!("unknown format trait `{other}`")),
        };
        Ok((spec, starred))
    }

    fn count(&mut self, chars: &[char], at: usize) -> Result<(Option<Count>, usize), String> {
        let mut end = at;
        while chars.get(end).is_some_and(char::is_ascii_digit) {
            end += 1;
        }
        if end > at {
            let digits: String = chars[at..end].iter().collect();
            let Ok(value) = digits.parse::<usize>() else {
                return Err(format!("the width or precision {digits} is too large"));
            };
            if chars.get(end) == Some(&'$') {
                return Ok((Some(Count::Argument(self.named(&digits)?)), end + 1));
            }
            if value > u16::MAX as usize {
                return Err(format!("the width or precision {digits} is larger than 65535"));
            }
            return Ok((Some(Count::Literal(value)), end));
        }
        let mut end = at;
        while chars.get(end).is_some_and(|c| *c == '_' || c.is_alphanumeric()) {
            end += 1;
        }
        if end > at && chars.get(end) == Some(&'$') {
            let name: String = chars[at..end].iter().collect();
            return Ok((Some(Count::Argument(self.named(&name)?)), end + 1));
        }
        Ok((None, at))
    }
}

/// The spec with its counts looked up.
#[derive(Clone, Debug)]
pub struct Layout {
    pub spec: Spec,
    pub width: Option<usize>,
    pub precision: Option<usize>,
}

impl Layout {
    pub fn plain() -> Layout {
        Layout { spec: Spec::default(), width: None, precision: None }
    }

    pub fn debug() -> Layout {
        let spec = Spec { style: Style::Debug, ..Spec::default() };
        Layout { spec, width: None, precision: None }
    }
}

/// Text padded to the width; numbers stand right, text stands left.
pub fn pad(out: &mut String, text: &str, layout: &Layout, default: Align) {
    let length = text.chars().count();
    let Some(fill) = layout.width.and_then(|width| width.checked_sub(length)) else {
        out.push_str(text);
        return;
    };
    let (before, after) = match layout.spec.align.unwrap_or(default) {
        Align::Left => (0, fill),
        Align::Right => (fill, 0),
        Align::Center => (fill / 2, fill - fill / 2),
    };
    out.extend(std::iter::repeat_n(layout.spec.fill, before));
    out.push_str(text);
    out.extend(std::iter::repeat_n(layout.spec.fill, after));
}

/// A number: sign, prefix and digits, padded with zeros behind the sign when asked.
fn pad_number(out: &mut String, negative: bool, prefix: &str, digits: &str, layout: &Layout) {
    let sign = match (negative, layout.spec.plus) {
        (true, _) => "-",
        (false, true) => "+",
        _ => "",
    };
    if layout.spec.zero {
        let length = sign.len() + prefix.len() + digits.chars().count();
        let fill = layout.width.map_or(0, |width| width.saturating_sub(length));
        let _ = write!(out, "{sign}{prefix}{}{digits}", "0".repeat(fill));
        return;
    }
    pad(out, &format!("{sign}{prefix}{digits}"), layout, Align::Right);
}

pub fn integer(out: &mut String, value: i128, kind: IntKind, layout: &Layout) {
    let bits = || {
        if kind.bits() == 128 {
            value as u128
        } else {
            (value as u128) & ((1u128 << kind.bits()) - 1)
        }
    };
    let prefix = |text: &'static str| if layout.spec.alternate { text } else { "" };
    match layout.spec.style {
        Style::LowerHex => pad_number(out, false, prefix("0x"), &format!("{:x}", bits()), layout),
        Style::UpperHex => pad_number(out, false, prefix("0x"), &format!("{:X}", bits()), layout),
        Style::Binary => pad_number(out, false, prefix("0b"), &format!("{:b}", bits()), layout),
        Style::Octal => pad_number(out, false, prefix("0o"), &format!("{:o}", bits()), layout),
        Style::LowerExp | Style::UpperExp => {
            let digits = exponent(&format!("{:e}", value.unsigned_abs()), layout, |precision| {
                format!("{:.*e}", precision, value.unsigned_abs())
            });
            pad_number(out, value < 0, "", &digits, layout);
        }
        _ => pad_number(out, value < 0, "", &value.unsigned_abs().to_string(), layout),
    }
}

fn exponent(plain: &str, layout: &Layout, precise: impl Fn(usize) -> String) -> String {
    let text = match layout.precision {
        Some(precision) => precise(precision),
        None => plain.to_string(),
    };
    if layout.spec.style == Style::UpperExp { text.replace('e', "E") } else { text }
}

pub fn float(out: &mut String, value: f64, kind: FloatKind, layout: &Layout) {
    let negative = value.is_sign_negative() && !value.is_nan();
    let magnitude = value.abs();
    let digits = match (layout.spec.style, layout.precision) {
        (Style::LowerExp | Style::UpperExp, _) => {
            let plain = match kind {
                FloatKind::F32 => format!("{:e}", magnitude as f32),
                FloatKind::F64 => format!("{magnitude:e}"),
            };
            exponent(&plain, layout, |precision| format!("{magnitude:.precision$e}"))
        }
        (_, Some(precision)) => format!("{magnitude:.precision$}"),
        (Style::Debug, None) => match kind {
            FloatKind::F32 => format!("{:?}", magnitude as f32),
            FloatKind::F64 => format!("{magnitude:?}"),
        },
        (_, None) => match kind {
            FloatKind::F32 => format!("{}", magnitude as f32),
            FloatKind::F64 => format!("{magnitude}"),
        },
    };
    if !value.is_finite() {
        // No zeros before `inf` and `NaN`, and no sign on the latter.
        let mut layout = layout.clone();
        layout.spec.zero = false;
        layout.spec.plus &= !value.is_nan();
        pad_number(out, negative, "", &digits, &layout);
        return;
    }
    pad_number(out, negative, "", &digits, layout);
}

pub fn text(out: &mut String, value: &str, layout: &Layout) {
    if layout.spec.style == Style::Debug {
        pad(out, &format!("{value:?}"), layout, Align::Left);
        return;
    }
    match layout.precision {
        Some(precision) => {
            let cut: String = value.chars().take(precision).collect();
            pad(out, &cut, layout, Align::Left);
        }
        None => pad(out, value, layout, Align::Left),
    }
}

/// Pieces of a list, a tuple or the like, in one line or (with `#`) one a line.
pub fn sequence(out: &mut String, open: &str, close: &str, parts: &[String], alternate: bool) {
    out.push_str(open);
    if alternate && !parts.is_empty() {
        out.push('\n');
        for part in parts {
            for line in part.lines() {
                let _ = writeln!(out, "    {line}");
            }
            out.truncate(out.trim_end_matches('\n').len());
            out.push_str(",\n");
        }
    } else {
        out.push_str(&parts.join(", "));
    }
    out.push_str(close);
}

/// Whether a type's tuple form needs the comma of one element.
pub fn is_single(ty: &Ty) -> bool {
    matches!(ty, Ty::Tuple(parts) if parts.len() == 1)
}
