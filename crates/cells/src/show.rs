//! Values as text, by their static type: Rust's `Display` and `Debug`.

use crate::format::{self, Layout};
use crate::hir::{Align, Style};
use crate::interrupt::Fallible;
use crate::structs::Form;
use crate::ty::{FloatKind, IntKind, Ty};
use crate::value::Value;
use crate::vm::Vm;
use vramlab_array::surface::Dyn;

/// Appends the value as the layout asks.
///
/// # Errors
/// A fault of reading an array.
pub fn value(
    vm: &Vm<'_>,
    out: &mut String,
    value: &Value,
    ty: &Ty,
    layout: &Layout,
) -> Fallible<()> {
    if let Ty::Ref(_, to) = ty {
        return self::value(vm, out, value, to, layout);
    }
    let value = vm.peel(value)?;
    let alternate = layout.spec.alternate;
    match (value, ty) {
        (Value::Array(array) | Value::Borrowed(array), _) => {
            let text = match layout.spec.style {
                Style::Debug => format!("{array:?}"),
                _ => array.to_text(layout.precision)?,
            };
            format::pad(out, &text, &Layout { precision: None, ..layout.clone() }, Align::Left);
        }
        (Value::Int(value), Ty::Named("Ordering", _)) => out.push_str(match value {
            -1 => "Less",
            0 => "Equal",
            _ => "Greater",
        }),
        (Value::Int(value), Ty::Int(kind)) => format::integer(out, *value, *kind, layout),
        (Value::Int(value), _) => format::integer(out, *value, IntKind::I128, layout),
        (Value::Float(value), Ty::Float(kind)) => format::float(out, *value, *kind, layout),
        (Value::Float(value), _) => format::float(out, *value, FloatKind::F64, layout),
        (Value::Bool(value), _) => {
            format::pad(out, if *value { "true" } else { "false" }, layout, Align::Left);
        }
        (Value::Char(value), _) if layout.spec.style == Style::Debug => {
            format::pad(out, &format!("{value:?}"), layout, Align::Left);
        }
        (Value::Char(value), _) => format::pad(out, &value.to_string(), layout, Align::Left),
        (Value::Text(text), _) => format::text(out, text, layout),
        (Value::Unit, _) => format::pad(out, "()", layout, Align::Left),
        (Value::DType(dtype), _) => {
            let text = match layout.spec.style {
                Style::Debug => format!("{dtype:?}"),
                _ => dtype.to_string(),
            };
            format::pad(out, &text, layout, Align::Left);
        }
        (Value::List(_) | Value::Slice(_), ty) => {
            let element = element_of(ty);
            let parts = parts(vm, vm.list(value)?, |_| element.clone(), layout)?;
            format::sequence(out, "[", "]", &parts, alternate);
        }
        (Value::Tuple(values), Ty::Named("Result", arguments)) => {
            let parts = parts(vm, values, |_| arguments[1].clone(), layout)?;
            format::sequence(out, "Err(", ")", &parts, alternate);
        }
        (Value::Option(Some(inner)), Ty::Named("Result", arguments)) => {
            let inner = std::slice::from_ref(&**inner);
            let parts = parts(vm, inner, |_| arguments[0].clone(), layout)?;
            format::sequence(out, "Ok(", ")", &parts, alternate);
        }
        // An error of parsing carries its words and its fields as text.
        (Value::Tuple(values), Ty::Named(..)) => {
            let which = usize::from(layout.spec.style == Style::Debug);
            if let Some(Value::Text(text)) = values.get(which) {
                format::pad(out, text, layout, Align::Left);
            }
        }
        (Value::Tuple(values), Ty::Tuple(types)) => {
            let parts = parts(vm, values, |index| types[index].clone(), layout)?;
            let close = if format::is_single(ty) && !alternate { ",)" } else { ")" };
            format::sequence(out, "(", close, &parts, alternate);
        }
        (Value::Struct(names, values), Ty::Struct(def)) => {
            let mut parts = parts(vm, values, |index| def.fields()[index].clone(), layout)?;
            match def.form {
                _ if values.is_empty() => out.push_str(&names.name),
                Form::Named => {
                    for (part, field) in parts.iter_mut().zip(&names.fields) {
                        part.insert_str(0, &format!("{field}: "));
                    }
                    let (open, close) = if alternate { (" {", "}") } else { (" { ", " }") };
                    format::sequence(
                        out,
                        &format!("{}{open}", names.name),
                        close,
                        &parts,
                        alternate,
                    );
                }
                _ => format::sequence(out, &format!("{}(", names.name), ")", &parts, alternate),
            }
        }
        (Value::Option(None), _) => out.push_str("None"),
        (Value::Option(Some(inner)), ty) => {
            let inner_ty = match ty {
                Ty::Named(_, arguments) if !arguments.is_empty() => arguments[0].clone(),
                other => other.clone(),
            };
            let parts = parts(vm, std::slice::from_ref(&**inner), |_| inner_ty.clone(), layout)?;
            format::sequence(out, "Some(", ")", &parts, alternate);
        }
        (Value::Range(range), _) if range.chars => {
            let bound = |bound: Option<i128>| match bound {
                Some(bound) => format!("{:?}", char::from_u32(bound as u32).unwrap_or('?')),
                None => String::new(),
            };
            let dots = if range.inclusive { "..=" } else { ".." };
            out.push_str(&format!("{}{dots}{}", bound(range.start), bound(range.end)));
        }
        (Value::Range(range), _) => out.push_str(&range.to_string()),
        (Value::Record(record), _) => out.push_str(&record_text(vm, record, layout)?),
        (Value::Function(function), _) => out.push_str(&format!("{function:?}")),
        (Value::Closure(_) | Value::Code(_), ty) => out.push_str(&ty.to_string()),
        (Value::Iter(_), ty) => out.push_str(&ty.to_string()),
        (Value::Gone, _) => out.push_str("(moved)"),
        (other, _) => out.push_str(&format!("{other:?}")),
    }
    Ok(())
}

fn parts(
    vm: &Vm<'_>,
    values: &[Value],
    ty: impl Fn(usize) -> Ty,
    layout: &Layout,
) -> Fallible<Vec<String>> {
    values
        .iter()
        .enumerate()
        .map(|(index, own)| {
            let mut text = String::new();
            value(vm, &mut text, own, &ty(index), layout)?;
            Ok(text)
        })
        .collect()
}

fn element_of(ty: &Ty) -> Ty {
    match ty {
        Ty::Array(element, _) | Ty::Slice(element) => (**element).clone(),
        Ty::Named(_, arguments) if !arguments.is_empty() => arguments[0].clone(),
        other => other.clone(),
    }
}

/// The prelude's structs have their own `Display`: a line for each field.
fn record_text(
    vm: &Vm<'_>,
    record: &crate::value::RecordValue,
    layout: &Layout,
) -> Fallible<String> {
    let debug = layout.spec.style == Style::Debug;
    let mut lines = Vec::new();
    for (name, field) in &record.fields {
        let field = vm.borrowed_dyn(field)?;
        lines.push(match (field, debug) {
            (Dyn::Float(value), false) => format!("{name:<25} {value:.4}"),
            (Dyn::Int(value), false) => format!("{name:<25} {value}"),
            (Dyn::Float(value), true) => format!("{name}: {value:?}"),
            (Dyn::Int(value), true) => format!("{name}: {value}"),
            (other, _) => format!("{name} {}", other.kind_name()),
        });
    }
    if !debug {
        return Ok(lines.join("\n"));
    }
    if layout.spec.alternate {
        return Ok(format!("{} {{\n    {},\n}}", record.name, lines.join(",\n    ")));
    }
    Ok(format!("{} {{ {} }}", record.name, lines.join(", ")))
}

/// A cell's value as the session shows it: arrays by `{}`, everything else by `{:?}`.
///
/// # Errors
/// A fault of reading an array.
pub fn shown(vm: &Vm<'_>, own: &Value, ty: &Ty) -> Fallible<String> {
    let display = ty.peeled().is_named("Array")
        || matches!(ty.peeled(), Ty::Named("MemoryStats" | "MemoryAnalysis", _));
    let layout = if display { Layout::plain() } else { Layout::debug() };
    let mut out = String::new();
    value(vm, &mut out, own, ty, &layout)?;
    Ok(out)
}
