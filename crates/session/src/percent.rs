//! The percent format: cells of a `.rs` file between `// %%` lines, as VS Code, Spyder and jupytext
//! have it.

use crate::scan::has_code;

/// What stands behind `// %%`, when a line is such a line.
pub fn marker(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?.trim_start();
    rest.strip_prefix("%%").filter(|rest| !rest.starts_with('%')).map(str::trim)
}

/// The cells that have code; a `[markdown]` cell is prose.
pub fn cells(text: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut prose = false;
    for line in text.split_inclusive('\n') {
        match marker(line) {
            Some(title) => {
                finish(&mut cells, std::mem::take(&mut cell), prose);
                prose = title.contains("[markdown]") || title.contains("[md]");
            }
            // A script's first line for the shell is not Rust.
            None if cells.is_empty() && cell.is_empty() && line.starts_with("#!/") => {}
            None => cell.push_str(line),
        }
    }
    finish(&mut cells, cell, prose);
    cells
}

fn finish(cells: &mut Vec<String>, cell: String, prose: bool) {
    if has_code(&cell) && !prose {
        cells.push(cell.trim_matches('\n').trim_end().to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_lie_between_markers() {
        let text = "#!/usr/bin/env vramlab\n// A title\n\n// %% first\nlet a = 1;\n\n// %% [markdown]\n// words\n//%%\n%mem\n// %%%\na\n";
        assert_eq!(cells(text), ["let a = 1;", "%mem\n// %%%\na"]);
        assert_eq!(cells("let a = 1;\na"), ["let a = 1;\na"]);
        assert!(cells("").is_empty());
    }
}
