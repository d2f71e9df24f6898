//! Cells out of files: `.rs` in percent format, and notebooks.

use serde_json::Value;
use vramlab_session::percent;

/// The cells of a file, by its name's ending.
///
/// # Errors
/// In words, with the file's name.
pub fn read(path: &str) -> Result<Vec<String>, String> {
    let bytes = match path {
        "-" => {
            let mut bytes = Vec::new();
            let read = std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes);
            read.map_err(|error| format!("standard input: {error}"))?;
            bytes
        }
        _ => std::fs::read(path).map_err(|error| format!("{path}: {error}"))?,
    };
    let text = String::from_utf8(bytes).map_err(|_| format!("{path}: not a text file (UTF-8)"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    match path.ends_with(".ipynb") {
        true => notebook(text).map_err(|why| format!("{path}: not a notebook: {why}")),
        false => Ok(percent::cells(text)),
    }
}

/// The code cells of an `.ipynb`.
///
/// # Errors
/// What a notebook has and this text lacks.
pub fn notebook(text: &str) -> Result<Vec<String>, String> {
    let root: Value = serde_json::from_str(text).map_err(|why| format!("no JSON ({why})"))?;
    let cells = root.get("cells").and_then(Value::as_array).ok_or("it has no list \"cells\"")?;
    let mut sources = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let kind = cell.get("cell_type").and_then(Value::as_str);
        match kind {
            None => return Err(format!("cell {} has no \"cell_type\"", index + 1)),
            Some("code") => {}
            Some(_) => continue,
        }
        let source = match cell.get("source") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
            _ => return Err(format!("cell {} has no \"source\"", index + 1)),
        };
        if !source.trim().is_empty() {
            sources.push(source.trim_end().to_string());
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notebooks() {
        let text = r#"{"cells": [{"cell_type": "markdown", "source": "x"},
            {"cell_type": "code", "source": ["let a = 1;\n", "a"]},
            {"cell_type": "code", "source": " "}], "nbformat": 4}"#;
        assert_eq!(notebook(text).unwrap(), ["let a = 1;\na"]);
        for (wrong, word) in [("[1", "JSON"), ("{}", "cells"), ("{\"cells\":[{}]}", "cell_type")] {
            assert!(notebook(wrong).unwrap_err().contains(word));
        }
    }
}
