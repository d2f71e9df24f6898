//! Rust programs from files of cells: what rustc makes of them is the authority.

use super::corpus::Source;
use syn::spanned::Spanned;

/// Begins each file's part of the program's output.
pub const FILE_MARK: char = '\u{1}';
/// Stands before the message of a fault that ended a file.
pub const FAULT_MARK: char = '\u{2}';

/// What a session shows of a value: arrays by `Display`, nothing of `()`, the rest by `Debug` (but for
/// containers of arrays, of which it shows the values: they are no tails of these cells). The
/// choice is made at run time by the type's name, since a choice by traits would want the type of
/// `1` before its default is due.
const SHOWING: &str = "
fn vramlab_show<T: std::fmt::Debug>(value: &T) {
    let name = std::any::type_name::<T>().replace(\"vramlab_array::array::\", \"\");
    let place = value as *const T;
    match name.as_str() {
        \"()\" => {}
        // SAFETY: T is Array, by its name.
        \"Array\" => println!(\"{}\", unsafe { &*(place as *const Array) }),
        // SAFETY: T is &Array, by its name.
        \"&Array\" => println!(\"{}\", unsafe { *(place as *const &Array) }),
        _ => println!(\"{value:?}\"),
    }
}
";

const HEAD: &str = "#![allow(warnings, arithmetic_overflow, unconditional_panic)]
use vramlab_array::prelude::*;
";

/// A program that runs each file in a function of its own, with an engine of its own.
pub fn whole(sources: &[Source]) -> Result<String, String> {
    let mut text = String::from(HEAD);
    text.push_str(SHOWING);
    for source in sources {
        text.push_str(&function(source)?);
    }
    text.push_str(
        "
fn guarded(name: &str, body: fn()) {
    println!(\"\\u{1}{name}\");
    let device = vramlab_runtime::DeviceConfig::Cpu { capacity: Some(1 << 30) };
    let config = vramlab_runtime::Config { device, ..Default::default() };
    let engine = vramlab_runtime::Context::new(config).expect(\"a device\");
    if let Err(fault) = vramlab_array::catch(|| vramlab_array::with_engine(engine, body)) {
        println!(\"\\u{2}{fault}\");
    }
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
",
    );
    for Source { name, .. } in sources {
        text.push_str(&format!("    guarded({name:?}, {name});\n"));
    }
    text.push_str("}\n");
    Ok(text)
}

/// A library of the one file, to be checked and not run. What does not even parse stands there as
/// it is.
pub fn alone(source: &Source) -> String {
    let plain = || format!("\nfn {}() {{\n{}\n}}\n", source.name, source.cells.join("\n"));
    let text = function(source).unwrap_or_else(|_| plain());
    format!("{HEAD}{SHOWING}{text}")
}

/// A library of all files, to be checked and not run, and the line on which each file begins.
pub fn together(sources: &[Source]) -> Result<(String, Vec<usize>), String> {
    let mut text = format!("{HEAD}{SHOWING}");
    let mut starts = Vec::new();
    for source in sources {
        starts.push(text.lines().count() + 1);
        text.push_str(&function(source)?);
    }
    Ok((text, starts))
}

/// One file as a function. Each cell opens a block that reaches to the end, so that session
/// variables stay in scope and a `fn` of a later cell takes the place of an earlier one.
fn function(source: &Source) -> Result<String, String> {
    let mut text = format!("\nfn {}() {{\n", source.name);
    for (index, cell) in source.cells.iter().enumerate() {
        text.push_str("{\n");
        text.push_str(
            &statements(cell, index)
                .map_err(|error| format!("{}, cell {}: {error}", source.name, index + 1))?,
        );
    }
    text.push_str(&"}".repeat(source.cells.len() + 1));
    text.push('\n');
    Ok(text)
}

/// The cell with its value shown, if it has one. A variable is shown where it is; any other value
/// is kept, as `Out[n]` keeps it.
fn statements(cell: &str, index: usize) -> Result<String, String> {
    let block: Vec<syn::Stmt> = syn::parse::Parser::parse_str(syn::Block::parse_within, cell)
        .map_err(|error| error.to_string())?;
    let Some(last) = block.last() else { return Ok(cell.to_string()) };
    let variable = match last {
        syn::Stmt::Expr(syn::Expr::Path(path), None) => path.path.get_ident().is_some(),
        syn::Stmt::Expr(_, None) => false,
        syn::Stmt::Macro(inner) if inner.mac.path.is_ident("tree") => return Ok(cell.to_string()),
        syn::Stmt::Macro(inner) if inner.semi_token.is_none() => false,
        _ => return Ok(cell.to_string()),
    };
    let (before, tail) = cell.split_at(last.span().byte_range().start);
    Ok(match variable {
        true => format!("{before}vramlab_show(&{});\n", tail.trim_end()),
        false => {
            let out = format!("out_{}", index + 1);
            format!("{before}let {out} = ({tail});\nvramlab_show(&{out});\n")
        }
    })
}
