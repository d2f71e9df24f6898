//! Values of cells as content.

use crate::event::Content;
use crate::table::escape;
use vramlab_array::surface::Dyn;
use vramlab_array::{Array, DynJit};

/// A value with the text that the interpreter has for it.
pub fn content(value: &Dyn, text: &str) -> Content {
    let html = match value {
        Dyn::Array(array) | Dyn::Borrowed(array) => Some(array_html(array, text)),
        _ => None,
    };
    Content { text: text.to_string(), html, ..Content::default() }
}

/// `display(&x)`.
pub fn shown(value: &Dyn) -> Content {
    content(value, &text(value))
}

/// What is better read than as `{:?}`: text of several lines, and arrays in tuples and lists, whose values a reader
/// wants as much as those of one array.
pub fn readable(value: &Dyn) -> Option<String> {
    match value {
        Dyn::Text(text) => text.trim_end().contains('\n').then(|| text.trim_end().to_string()),
        Dyn::Tuple(_) | Dyn::List(_) => {
            plain_arrays(value).filter(|&count| count > 0).map(|_| text(value))
        }
        _ => None,
    }
}

/// The arrays in a value that is made of arrays and numbers alone.
fn plain_arrays(value: &Dyn) -> Option<usize> {
    match value {
        Dyn::Tuple(values) | Dyn::List(values) => values.iter().map(plain_arrays).sum(),
        Dyn::Unit | Dyn::Bool(_) | Dyn::Int(_) | Dyn::Float(_) => Some(0),
        Dyn::Array(_) | Dyn::Borrowed(_) => Some(1),
        _ => None,
    }
}

fn array_html(array: &Array, text: &str) -> String {
    format!(
        "<div style=\"font-family:monospace\"><b>{}</b><pre style=\"margin:2px 0\">{}</pre></div>",
        escape(&array.ty().to_string()),
        escape(text)
    )
}

/// The value as `{:?}` writes it; arrays as `{}` does.
fn text(value: &Dyn) -> String {
    let list = |values: &[Dyn]| {
        let texts: Vec<String> = values.iter().map(text).collect();
        match texts.iter().any(|text| text.contains('\n')) {
            // Each below the other, its lines below its first.
            true => texts.join(",\n").replace('\n', "\n "),
            false => texts.join(", "),
        }
    };
    match value {
        Dyn::Unit => "()".into(),
        Dyn::Bool(value) => value.to_string(),
        Dyn::Int(value) => value.to_string(),
        Dyn::Float(value) => format!("{value:?}"),
        Dyn::Char(value) => format!("{value:?}"),
        Dyn::Text(value) => format!("{value:?}"),
        Dyn::DType(value) => value.to_string(),
        Dyn::Reference(tree) => text(tree),
        Dyn::Array(array) | Dyn::Borrowed(array) => array.to_string(),
        Dyn::List(values) => format!("[{}]", list(values)),
        Dyn::Tuple(values) if values.len() == 1 => format!("({},)", list(values)),
        Dyn::Tuple(values) => format!("({})", list(values)),
        Dyn::Range { start, end, inclusive } => {
            let bound = |bound: &Option<i128>| bound.map_or(String::new(), |b| b.to_string());
            format!("{}{}{}", bound(start), if *inclusive { "..=" } else { ".." }, bound(end))
        }
        Dyn::Option(None) => "None".into(),
        Dyn::Option(Some(value)) => format!("Some({})", text(value)),
        Dyn::Function(function) => format!("{function:?}"),
        Dyn::Record { name, fields } => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
            format!("{name} {{ {} }}", fields.join(", "))
        }
        Dyn::Struct { names, fields } if fields.is_empty() => names.name.to_string(),
        Dyn::Struct { names, fields } if names.is_tuple() => {
            format!("{}({})", names.name, list(fields))
        }
        Dyn::Struct { names, fields } => {
            let fields = names.fields.iter().zip(fields);
            let fields: Vec<String> =
                fields.map(|(name, value)| format!("{name}: {}", text(value))).collect();
            format!("{} {{ {} }}", names.name, fields.join(", "))
        }
    }
}

/// Every array in a value, with its path from `name`.
pub fn arrays<'a>(name: &str, value: &'a Dyn, found: &mut Vec<(String, &'a Array)>) {
    match value {
        Dyn::Array(array) | Dyn::Borrowed(array) => found.push((name.to_string(), array)),
        Dyn::List(values) => {
            for (index, value) in values.iter().enumerate() {
                arrays(&format!("{name}[{index}]"), value, found);
            }
        }
        Dyn::Tuple(values) => {
            for (index, value) in values.iter().enumerate() {
                arrays(&format!("{name}.{index}"), value, found);
            }
        }
        Dyn::Option(Some(value)) => arrays(name, value, found),
        Dyn::Record { fields, .. } => {
            for (field, value) in fields {
                arrays(&format!("{name}.{field}"), value, found);
            }
        }
        Dyn::Struct { names, fields } => {
            for (field, value) in names.fields.iter().zip(fields) {
                arrays(&format!("{name}.{field}"), value, found);
            }
        }
        _ => {}
    }
}

/// Names `name` as the holder of every array in a value; a jitted function is called by it.
pub fn own(name: &str, value: &Dyn) {
    if let Dyn::Function(function) = value {
        match function.as_any().downcast_ref::<DynJit>() {
            Some(jitted) => jitted.core().set_name(name),
            None => {
                let captured = function.captured();
                captured.iter().for_each(|array| array.set_owner(&format!("captured by {name}")));
            }
        }
    }
    let mut found = Vec::new();
    arrays(name, value, &mut found);
    for (path, array) in found {
        array.set_owner(&path);
    }
}
