//! Whether patterns cover every value of a type, and what they leave out.

use crate::diagnostic::Diagnostic;
use crate::hir::{Arm, Pattern, PatternKind};
use crate::ir::Span;
use crate::structs::{Form, StructDef};
use crate::ty::{Infer, Ty};
use crate::value::Value;

/// A pattern as constructors over smaller patterns.
#[derive(Clone, Debug)]
enum Shape {
    Wild,
    /// Inclusive; characters by their number, `bool` as 0 and 1.
    Between(i128, i128),
    Some(Box<Shape>),
    None,
    /// A tuple, a reference, an array: the only constructor of its type.
    Fields(Vec<Shape>),
    List {
        before: Vec<Shape>,
        open: bool,
        after: Vec<Shape>,
    },
    /// A literal of a type that cannot be enumerated.
    Opaque,
    Or(Vec<Shape>),
}

/// A `match` must have an arm for every value.
///
/// # Errors
/// E0004 with the patterns that are missing.
pub fn check_match(
    ty: &Ty,
    arms: &[Arm],
    infer: &Infer,
    span: Span,
) -> Result<(), Box<Diagnostic>> {
    let rows: Vec<Vec<Shape>> = arms
        .iter()
        .filter(|arm| arm.guard.is_none())
        .map(|arm| vec![shape(&arm.pattern, infer)])
        .collect();
    let Some(missing) = uncovered(&rows, std::slice::from_ref(ty)) else { return Ok(()) };
    let missing = missing.join(", ");
    Err(Diagnostic::check(
        "E0004",
        span,
        format!("non-exhaustive patterns: `{missing}` not covered"),
    )
    .label(format!("pattern `{missing}` not covered"))
    .note(format!("the matched value is of type `{ty}`"))
    .help(format!("add an arm for the rest: `{missing} => …` or `_ => …`")))
}

/// A pattern of a `let`, a `for` or a parameter must always match.
///
/// # Errors
/// E0005 with a value that does not.
pub fn irrefutable(pattern: &Pattern, infer: &Infer, place: &str) -> Result<(), Box<Diagnostic>> {
    if matches!(pattern.kind, PatternKind::Bind { inner: None, .. } | PatternKind::Wild) {
        return Ok(());
    }
    let ty = infer.resolve(&pattern.ty);
    let rows = [vec![shape(pattern, infer)]];
    let Some(missing) = uncovered(&rows, &[ty]) else { return Ok(()) };
    let missing = missing.join(", ");
    Err(Diagnostic::check("E0005", pattern.span, format!("refutable pattern in {place}"))
        .label(format!("pattern `{missing}` not covered"))
        .help("use `if let`, `match` or `let … else` for a pattern that may not match"))
}

fn shape(pattern: &Pattern, infer: &Infer) -> Shape {
    let all = |parts: &[Pattern]| parts.iter().map(|part| shape(part, infer)).collect();
    match &pattern.kind {
        PatternKind::Wild | PatternKind::Assign(_) => Shape::Wild,
        PatternKind::Bind { inner, .. } => match inner {
            Some(inner) => shape(inner, infer),
            None => Shape::Wild,
        },
        PatternKind::Literal(value) => match number(value) {
            Some(number) => Shape::Between(number, number),
            None => Shape::Opaque,
        },
        PatternKind::Range { low, high, inclusive } => {
            let low = low.as_ref().map(number);
            let high = high.as_ref().map(number);
            match (low, high) {
                (Some(None), _) | (_, Some(None)) => Shape::Opaque,
                (low, high) => {
                    let low = low.flatten().unwrap_or(i128::MIN);
                    let high = high
                        .flatten()
                        .map_or(i128::MAX, |high| if *inclusive { high } else { high - 1 });
                    Shape::Between(low, high)
                }
            }
        }
        PatternKind::Tuple(parts) => Shape::Fields(all(parts)),
        PatternKind::Slice { before, rest, after } => match infer.resolve(&pattern.ty) {
            Ty::Array(_, length) => {
                let length = match *length {
                    Ty::Const(length) => length as usize,
                    _ => before.len() + after.len(),
                };
                let mut parts: Vec<Shape> = all(before);
                let middle = length.saturating_sub(before.len() + after.len());
                parts.extend(std::iter::repeat_n(Shape::Wild, middle));
                parts.extend(all(after));
                Shape::Fields(parts)
            }
            _ => Shape::List { before: all(before), open: rest.is_some(), after: all(after) },
        },
        PatternKind::Some(inner) => Shape::Some(Box::new(shape(inner, infer))),
        PatternKind::None => Shape::None,
        PatternKind::Outcome(true, inner) => Shape::Some(Box::new(shape(inner, infer))),
        PatternKind::Outcome(false, inner) => match shape(inner, infer) {
            Shape::Wild => Shape::None,
            _ => Shape::Opaque,
        },
        PatternKind::Deref(inner) => Shape::Fields(vec![shape(inner, infer)]),
        PatternKind::Or(cases) => Shape::Or(all(cases)),
    }
}

fn number(value: &Value) -> Option<i128> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Bool(value) => Some(i128::from(*value)),
        Value::Char(value) => Some(i128::from(*value as u32)),
        _ => None,
    }
}

/// Rows with alternatives at their head, spread out.
fn spread(rows: &[Vec<Shape>]) -> Vec<Vec<Shape>> {
    let mut out = Vec::new();
    for row in rows {
        match &row[0] {
            Shape::Or(cases) => {
                let expanded: Vec<Vec<Shape>> = cases
                    .iter()
                    .map(|case| {
                        std::iter::once(case.clone()).chain(row[1..].iter().cloned()).collect()
                    })
                    .collect();
                out.extend(spread(&expanded));
            }
            _ => out.push(row.clone()),
        }
    }
    out
}

/// A value that no row matches, as one pattern a column.
fn uncovered(rows: &[Vec<Shape>], types: &[Ty]) -> Option<Vec<String>> {
    let Some((first, rest)) = types.split_first() else {
        return if rows.is_empty() { Some(Vec::new()) } else { None };
    };
    let rows = spread(rows);
    match first {
        Ty::Never => None,
        Ty::Bool => numbers(&rows, rest, 0, 1, &|low, _| {
            (if low == 0 { "false" } else { "true" }).to_string()
        }),
        Ty::Int(kind) => {
            let (least, most) = (kind.min(), kind.max());
            let name = kind.name();
            numbers(&rows, rest, least, most, &|low, high| {
                let bound = |value: i128| {
                    if value == least {
                        format!("{name}::MIN")
                    } else if value == most {
                        format!("{name}::MAX")
                    } else {
                        format!("{value}_{name}")
                    }
                };
                if (low, high) == (least, most) {
                    return "_".to_string();
                }
                if low == high { bound(low) } else { format!("{}..={}", bound(low), bound(high)) }
            })
        }
        Ty::Char => numbers(&rows, rest, 0, 0x10_FFFF, &|_, _| "_".to_string()),
        Ty::Tuple(parts) => fields(&rows, parts, rest, &|parts| format!("({})", parts.join(", "))),
        Ty::Struct(def) => fields(&rows, def.fields(), rest, &|parts| struct_text(def, parts)),
        Ty::Ref(_, to) => fields(&rows, &[(**to).clone()], rest, &|parts| format!("&{}", parts[0])),
        Ty::Array(element, length) => {
            let count = match **length {
                Ty::Const(length) => length as usize,
                _ => 0,
            };
            // `[]` of an array without elements has no parts, and takes it all the same.
            if !rows.iter().any(|row| matches!(&row[0], Shape::Fields(_))) {
                return default_rows(&rows, rest, "_");
            }
            let parts = vec![(**element).clone(); count];
            fields(&rows, &parts, rest, &|parts| format!("[{}]", parts.join(", ")))
        }
        Ty::Named("Option", arguments) => option(&rows, &arguments[0], rest, ("Some", "None")),
        Ty::Named("Result", arguments) => option(&rows, &arguments[0], rest, ("Ok", "Err(_)")),
        Ty::Slice(element) => lists(&rows, element, rest),
        _ => default_rows(&rows, rest, "_"),
    }
}

/// A struct as a pattern.
fn struct_text(def: &StructDef, parts: &[String]) -> String {
    let name = def.name();
    match def.form {
        Form::Unit => name.to_string(),
        Form::Tuple => format!("{name}({})", parts.join(", ")),
        Form::Named => {
            let fields = def.names.fields.iter().zip(parts);
            let fields: Vec<String> =
                fields.map(|(field, part)| format!("{field}: {part}")).collect();
            format!("{name} {{ {} }}", fields.join(", "))
        }
    }
}

/// Only rows that take everything count.
fn default_rows(rows: &[Vec<Shape>], rest: &[Ty], text: &str) -> Option<Vec<String>> {
    let kept: Vec<Vec<Shape>> = rows
        .iter()
        .filter(|row| matches!(row[0], Shape::Wild))
        .map(|row| row[1..].to_vec())
        .collect();
    let missing = uncovered(&kept, rest)?;
    Some(std::iter::once(text.to_string()).chain(missing).collect())
}

fn fields(
    rows: &[Vec<Shape>],
    parts: &[Ty],
    rest: &[Ty],
    text: &dyn Fn(&[String]) -> String,
) -> Option<Vec<String>> {
    let opened: Vec<Vec<Shape>> = rows
        .iter()
        .filter_map(|row| {
            let head = match &row[0] {
                Shape::Fields(own) if own.len() == parts.len() => own.clone(),
                Shape::Wild => vec![Shape::Wild; parts.len()],
                _ => return None,
            };
            Some(head.into_iter().chain(row[1..].iter().cloned()).collect())
        })
        .collect();
    let types: Vec<Ty> = parts.iter().chain(rest).cloned().collect();
    let missing = uncovered(&opened, &types)?;
    let (own, others) = missing.split_at(parts.len());
    Some(std::iter::once(text(own)).chain(others.iter().cloned()).collect())
}

fn option(
    rows: &[Vec<Shape>],
    inner: &Ty,
    rest: &[Ty],
    (some_name, none_name): (&str, &str),
) -> Option<Vec<String>> {
    let none: Vec<Vec<Shape>> = rows
        .iter()
        .filter(|row| matches!(row[0], Shape::None | Shape::Wild))
        .map(|row| row[1..].to_vec())
        .collect();
    if let Some(missing) = uncovered(&none, rest) {
        return Some(std::iter::once(none_name.to_string()).chain(missing).collect());
    }
    let some: Vec<Vec<Shape>> = rows
        .iter()
        .filter_map(|row| {
            let head = match &row[0] {
                Shape::Some(inner) => (**inner).clone(),
                Shape::Wild => Shape::Wild,
                _ => return None,
            };
            Some(std::iter::once(head).chain(row[1..].iter().cloned()).collect())
        })
        .collect();
    let types: Vec<Ty> = std::iter::once(inner).chain(rest).cloned().collect();
    let missing = uncovered(&some, &types)?;
    let head = format!("{some_name}({})", missing[0]);
    Some(std::iter::once(head).chain(missing[1..].iter().cloned()).collect())
}

fn numbers(
    rows: &[Vec<Shape>],
    rest: &[Ty],
    least: i128,
    most: i128,
    text: &dyn Fn(i128, i128) -> String,
) -> Option<Vec<String>> {
    // The ends of every range cut the whole into pieces that each row takes or leaves whole.
    let mut starts = vec![least];
    for row in rows {
        if let Shape::Between(low, high) = row[0] {
            starts.push(low.clamp(least, most));
            if high < most {
                starts.push((high + 1).max(least));
            }
        }
    }
    starts.sort_unstable();
    starts.dedup();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(most, |next| next - 1);
        let kept: Vec<Vec<Shape>> = rows
            .iter()
            .filter(|row| match row[0] {
                Shape::Wild => true,
                Shape::Between(low, high) => low <= *start && end <= high,
                _ => false,
            })
            .map(|row| row[1..].to_vec())
            .collect();
        if let Some(missing) = uncovered(&kept, rest) {
            return Some(std::iter::once(text(*start, end)).chain(missing).collect());
        }
    }
    None
}

/// Slices: every length up to the longest pattern, and one more.
fn lists(rows: &[Vec<Shape>], element: &Ty, rest: &[Ty]) -> Option<Vec<String>> {
    let longest = rows
        .iter()
        .map(|row| match &row[0] {
            Shape::List { before, after, .. } => before.len() + after.len(),
            _ => 0,
        })
        .max()
        .unwrap_or(0);
    for length in 0..=longest + 1 {
        let opened: Vec<Vec<Shape>> = rows
            .iter()
            .filter_map(|row| {
                let head = match &row[0] {
                    Shape::Wild => vec![Shape::Wild; length],
                    Shape::List { before, open, after } => {
                        let fixed = before.len() + after.len();
                        if fixed > length || (fixed < length && !open) {
                            return None;
                        }
                        let mut head = before.clone();
                        head.extend(std::iter::repeat_n(Shape::Wild, length - fixed));
                        head.extend(after.iter().cloned());
                        head
                    }
                    _ => return None,
                };
                Some(head.into_iter().chain(row[1..].iter().cloned()).collect())
            })
            .collect();
        let types: Vec<Ty> = std::iter::repeat_n(element, length).chain(rest).cloned().collect();
        if let Some(missing) = uncovered(&opened, &types) {
            let (own, others) = missing.split_at(length);
            let mut text = own.join(", ");
            if length > longest {
                text.push_str(if text.is_empty() { ".." } else { ", .." });
            }
            let head = format!("[{text}]");
            return Some(std::iter::once(head).chain(others.iter().cloned()).collect());
        }
    }
    None
}
