//! The files of the corpus, cut into cells.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct Source {
    /// The file's stem: what it is about. It is a Rust identifier.
    pub name: String,
    pub cells: Vec<String>,
    /// The codes that rustc has for the last cell; `none`: an error without a code.
    pub expect: BTreeSet<String>,
    /// The last cell fails while it runs.
    pub faults: bool,
}

pub fn right() -> Vec<Source> {
    read("right")
}

pub fn wrong() -> Vec<Source> {
    read("wrong")
}

fn read(folder: &str) -> Vec<Source> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tiers").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder of the corpus");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a readable entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| source(path)).collect()
}

fn source(path: &Path) -> Source {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_string();
    let first = text.lines().next().unwrap_or_default();
    let codes = first.strip_prefix("// expect: ").unwrap_or_default();
    let expect: BTreeSet<String> =
        codes.split(", ").map(|code| code.trim().to_string()).filter(|c| !c.is_empty()).collect();
    let faults = first == "// faults";
    let body = match !expect.is_empty() || faults {
        true => text.split_once('\n').map_or("", |(_, rest)| rest),
        false => &text,
    };
    Source { name, cells: cut(body), expect, faults }
}

/// The text between lines that begin with `// %%`.
fn cut(text: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    for line in text.lines() {
        if line.starts_with("// %%") {
            cells.push(String::new());
        } else {
            let cell = cells.last_mut().expect("there is a cell from the start");
            cell.push_str(line);
            cell.push('\n');
        }
    }
    cells
}
