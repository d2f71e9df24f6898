//! Arrays as text, in NumPy's layout: aligned columns, eight digits, and only the corners of what
//! has more than a thousand elements; only those are read from the device.

use crate::array::{Array, Repr};
use crate::raise::raise;
use std::fmt;
use vramlab_ir::{DType, Fault, FaultKind, Literal};

/// Beyond this many elements only the corners are shown.
const SUMMARY_ABOVE: usize = 1000;
/// How many positions at each end of an axis a summary shows.
const EDGE: usize = 3;
const LINE_WIDTH: usize = 75;
const PRECISION: usize = 8;

impl Array {
    /// The array as `println!("{x}")` shows it; `precision` as in `{x:.3}`.
    ///
    /// # Errors
    /// A fault of reading the device. A traced value and the dry device show the type only.
    pub fn to_text(&self, precision: Option<usize>) -> Result<String, Fault> {
        if let Repr::Traced(traced) = &self.repr {
            return Ok(format!("{} (traced: no data yet)", traced.ty));
        }
        match Shown::read(self) {
            Ok(shown) => Ok(shown.text(precision.unwrap_or(PRECISION), precision.is_some())),
            Err(fault) if fault.kind == FaultKind::NoData => {
                Ok(format!("{} (dry device: no data)", self.ty()))
            }
            Err(fault) => Err(fault),
        }
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_text(f.precision()) {
            Ok(text) => f.write_str(&text),
            Err(fault) => raise(fault),
        }
    }
}

/// The elements that are shown, in row-major order, and where they stand.
struct Shown {
    dtype: DType,
    /// Per axis: how many positions are shown, and whether the middle is left out.
    axes: Vec<(usize, bool)>,
    elements: Vec<Literal>,
}

impl Shown {
    fn read(array: &Array) -> Result<Shown, Fault> {
        let ty = array.ty();
        let summary = ty.shape.elements() > SUMMARY_ABOVE;
        let axes: Vec<(usize, bool)> = ty
            .shape
            .iter()
            .map(|&extent| match summary && extent > 2 * EDGE {
                true => (2 * EDGE, true),
                false => (extent, false),
            })
            .collect();
        let bytes = match summary {
            true => corners(array, &axes)?,
            false => array.bytes("display")?,
        };
        let size = ty.dtype.size();
        let elements =
            bytes.chunks_exact(size).map(|chunk| Literal::from_bytes(ty.dtype, chunk)).collect();
        Ok(Shown { dtype: ty.dtype, axes, elements })
    }

    fn text(&self, precision: usize, fixed: bool) -> String {
        if self.axes.is_empty() {
            return self
                .elements
                .first()
                .map_or(String::new(), |&value| scalar(value, precision, fixed));
        }
        if self.axes.iter().any(|axis| axis.0 == 0) {
            return "[]".to_string();
        }
        let words = words(self.dtype, &self.elements, precision);
        self.nested(&words, 0, " ", LINE_WIDTH)
    }

    /// The block of one position of the axes before `axis`.
    fn nested(&self, words: &[String], axis: usize, indent: &str, width: usize) -> String {
        let (count, cut) = self.axes[axis];
        let inner = words.len() / count;
        let block = |position: usize| &words[position * inner..(position + 1) * inner];
        let mut text = String::new();
        if axis + 1 == self.axes.len() {
            let mut line = indent.to_string();
            for position in 0..count {
                if cut && position == EDGE {
                    extend(&mut text, &mut line, "...", width - 1, indent);
                    line.push(' ');
                }
                extend(&mut text, &mut line, &block(position)[0], width - 1, indent);
                if position + 1 < count {
                    line.push(' ');
                }
            }
            text.push_str(&line);
        } else {
            let separator = "\n".repeat(self.axes.len() - axis - 1);
            let deeper = format!("{indent} ");
            for position in 0..count {
                if cut && position == EDGE {
                    text.push_str(&format!("{indent}...{separator}"));
                }
                text.push_str(indent);
                text.push_str(&self.nested(block(position), axis + 1, &deeper, width - 1));
                if position + 1 < count {
                    text.push_str(&separator);
                }
            }
        }
        format!("[{}]", &text[indent.len()..])
    }
}

/// Appends a word, on a new line when it does not fit.
fn extend(text: &mut String, line: &mut String, word: &str, width: usize, indent: &str) {
    if line.len() + word.len() > width && line.len() > indent.len() {
        text.push_str(line.trim_end());
        text.push('\n');
        *line = indent.to_string();
    }
    line.push_str(word);
}

/// The bytes of the shown elements, read run by run.
fn corners(array: &Array, axes: &[(usize, bool)]) -> Result<Vec<u8>, Fault> {
    let handle = array.handle("display")?;
    let shape = &array.ty().shape;
    let size = array.ty().dtype.size();
    let strides = shape.strides();
    // Offsets of every shown position of the axes before the last.
    let mut offsets = vec![0usize];
    for axis in 0..axes.len() - 1 {
        let (shown, stride) = (positions(shape[axis], axes[axis]), strides[axis]);
        offsets = offsets
            .iter()
            .flat_map(|&base| shown.iter().map(move |&at| base + at * stride))
            .collect();
    }
    let (count, cut) = axes[axes.len() - 1];
    let extent = shape[axes.len() - 1];
    let runs = match cut {
        true => vec![(0, EDGE), (extent - EDGE, EDGE)],
        false => vec![(0, count)],
    };
    let mut bytes = Vec::new();
    for base in offsets {
        for &(start, length) in &runs {
            let (from, length) = ((base + start) * size, length * size);
            let run = handle.engine.download_range(handle.buffer, from as u64, length as u64)?;
            bytes.extend_from_slice(&run);
        }
    }
    Ok(bytes)
}

fn positions(extent: usize, (count, cut): (usize, bool)) -> Vec<usize> {
    match cut {
        true => (0..EDGE).chain(extent - EDGE..extent).collect(),
        false => (0..count).collect(),
    }
}

/// One element by itself.
fn scalar(value: Literal, precision: usize, fixed: bool) -> String {
    match value.dtype() {
        dtype if dtype.is_float() && fixed => format!("{:.precision$}", value.as_f64()),
        dtype if dtype.is_float() => single(value),
        DType::Bool => (value.as_i64() != 0).to_string(),
        _ => value.as_i64().to_string(),
    }
}

/// A float by itself: `2.0`, `1e+20`.
fn single(value: Literal) -> String {
    let number = value.as_f64();
    if !number.is_finite() {
        return special(number);
    }
    let largest = match value.dtype() {
        DType::F64 => 1e16,
        dtype => large(dtype),
    };
    if number != 0.0 && !(1e-4..largest).contains(&number.abs()) {
        return scientific(value, None);
    }
    let text = shortest(value);
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// From where on digits before the point say more than the type holds.
fn large(dtype: DType) -> f64 {
    match dtype {
        DType::F16 | DType::BF16 => 1e3,
        DType::F32 => 1e6,
        _ => 1e8,
    }
}

fn special(number: f64) -> String {
    match number {
        n if n.is_nan() => "nan",
        n if n > 0.0 => "inf",
        _ => "-inf",
    }
    .to_string()
}

/// The fewest decimal digits that read back as the value, without an exponent.
fn shortest(value: Literal) -> String {
    match value.dtype() {
        DType::F64 => format!("{}", value.as_f64()),
        DType::F32 => format!("{}", value.as_f64() as f32),
        dtype => format!("{}", nearest(value, dtype)),
    }
}

/// The decimal of fewest digits that rounds to a half, as `f64`.
fn nearest(value: Literal, dtype: DType) -> f64 {
    let exact = value.as_f64();
    let candidates = (0..8).filter_map(|digits| format!("{exact:.digits$e}").parse::<f64>().ok());
    candidates
        .into_iter()
        .find(|&candidate| Literal::from_f64(dtype, candidate) == value)
        .unwrap_or(exact)
}

/// `1.5e-05`: at least two digits of exponent and, when given, that many behind the point.
fn scientific(value: Literal, digits: Option<usize>) -> String {
    let text = match (digits, value.dtype()) {
        (Some(digits), _) => format!("{:.digits$e}", value.as_f64()),
        (None, DType::F64) => format!("{:e}", value.as_f64()),
        (None, DType::F32) => format!("{:e}", value.as_f64() as f32),
        (None, dtype) => format!("{:e}", nearest(value, dtype)),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// The elements as words of one width.
fn words(dtype: DType, elements: &[Literal], precision: usize) -> Vec<String> {
    let words: Vec<String> = match dtype {
        dtype if dtype.is_float() => return float_words(elements, precision),
        _ => elements.iter().map(|&value| scalar(value, precision, false)).collect(),
    };
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

fn float_words(elements: &[Literal], precision: usize) -> Vec<String> {
    let finite: Vec<Literal> =
        elements.iter().copied().filter(|value| value.as_f64().is_finite()).collect();
    let sizes = finite.iter().map(|value| value.as_f64().abs()).filter(|&size| size != 0.0);
    let largest = sizes.clone().fold(0.0, f64::max);
    let smallest = sizes.fold(f64::INFINITY, f64::min);
    let limit = finite.first().map_or(1e8, |value| large(value.dtype()));
    let exponents =
        largest != 0.0 && (largest >= limit || smallest < 1e-4 || largest / smallest > 1000.0);
    match exponents {
        true => exponent_words(elements, &finite, precision),
        false => point_words(elements, &finite, precision),
    }
}

/// Digits before and behind the point, which is always there.
fn split(value: Literal, precision: usize) -> (String, String) {
    let mut text = shortest(value);
    let long = text.split_once('.').is_some_and(|(_, digits)| digits.len() > precision);
    if long {
        text = format!("{:.precision$}", value.as_f64());
    }
    let (whole, digits) = text.split_once('.').unwrap_or((&text, ""));
    (whole.to_string(), digits.trim_end_matches('0').to_string())
}

fn point_words(elements: &[Literal], finite: &[Literal], precision: usize) -> Vec<String> {
    let parts: Vec<(String, String)> =
        finite.iter().map(|&value| split(value, precision)).collect();
    let right = parts.iter().map(|part| part.1.len()).max().unwrap_or(0);
    let left = parts.iter().map(|part| part.0.len()).max().unwrap_or(0);
    let left = left.max(special_width(elements).saturating_sub(right + 1));
    let mut parts = parts.into_iter();
    let mut word = |value: &Literal| match value.as_f64().is_finite() {
        true => parts
            .next()
            .map_or(String::new(), |(whole, digits)| format!("{whole:>left$}.{digits:<right$}")),
        false => format!("{:>width$}", special(value.as_f64()), width = left + right + 1),
    };
    elements.iter().map(&mut word).collect()
}

fn exponent_words(elements: &[Literal], finite: &[Literal], precision: usize) -> Vec<String> {
    let digits = |value: &Literal| {
        let text = scientific(*value, None);
        let mantissa = text.split('e').next().unwrap_or_default();
        mantissa.split_once('.').map_or(0, |(_, digits)| digits.len())
    };
    let digits = finite.iter().map(digits).max().unwrap_or(0).min(precision);
    let word = |value: &Literal| match value.as_f64().is_finite() {
        true => {
            let text = scientific(*value, Some(digits));
            // A mantissa keeps its point, as in `1.e+10`.
            if digits == 0 { text.replacen('e', ".e", 1) } else { text }
        }
        false => special(value.as_f64()),
    };
    let words: Vec<String> = elements.iter().map(word).collect();
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

fn special_width(elements: &[Literal]) -> usize {
    let special = elements.iter().map(|value| value.as_f64()).filter(|value| !value.is_finite());
    special.map(|value| self::special(value).len()).max().unwrap_or(0)
}
