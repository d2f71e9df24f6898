//! The rules of the house, as tests.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The arrows between crates, from the layer drawing in ARCHITECTURE.md. A new edge is its own
/// change and is written here in the same commit.
const EDGES: &[(&str, &[&str])] = &[
    ("ir", &[]),
    ("memory", &[]),
    ("diagnosis", &["memory"]),
    ("picture", &["memory"]),
    ("export", &["memory"]),
    ("traces", &["memory", "picture"]),
    ("ops", &["ir"]),
    ("compiler", &["ir"]),
    ("device", &["ir", "memory"]),
    ("runtime", &["ir", "ops", "compiler", "device", "memory"]),
    ("transform", &["ir", "ops"]),
    ("array", &["ir", "ops", "transform"]),
    ("cells", &["array"]),
    (
        "session",
        &["cells", "array", "runtime", "memory", "diagnosis", "picture", "export", "traces"],
    ),
    ("repl", &["session"]),
    ("kernel", &["session"]),
];

/// Crates that must build without a registry: the prelude of compiled cells, and the pure heaps.
const STD_ONLY: [&str; 7] = ["ir", "ops", "array", "memory", "compiler", "picture", "transform"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ stands in the root").to_path_buf()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs")
}

/// The name by folder: `crates/ir` is `ir`, `repl` is `repl`.
fn short(package: &Package) -> String {
    let folder = package.manifest_path.parent().expect("a manifest stands in a folder");
    folder.file_name().expect("a folder has a name").to_string()
}

fn normal_dependencies(package: &Package) -> impl Iterator<Item = &str> {
    let normal = package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal);
    normal.map(|d| d.name.as_str())
}

#[test]
fn arrows_between_crates_go_down_as_drawn() {
    let metadata = metadata();
    let members: BTreeMap<String, String> =
        metadata.packages.iter().map(|p| (p.name.to_string(), short(p))).collect();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata.packages.iter().filter(|p| short(p) != "tests") {
        let edges = normal_dependencies(package).filter_map(|d| members.get(d).cloned());
        found.insert(short(package), edges.collect());
    }
    let drawn: BTreeMap<String, BTreeSet<String>> = EDGES
        .iter()
        .map(|(name, below)| (name.to_string(), below.iter().map(|b| b.to_string()).collect()))
        .collect();
    for (name, below) in &found {
        let allowed = drawn.get(name).unwrap_or_else(|| panic!("crate {name} is not drawn"));
        let extra: Vec<_> = below.difference(allowed).collect();
        assert!(extra.is_empty(), "{name} reaches {extra:?}, which is not drawn");
    }
    assert_eq!(found.len(), drawn.len(), "every drawn crate exists");
}

#[test]
fn the_prelude_and_the_pure_crates_take_nothing_from_a_registry() {
    let metadata = metadata();
    let members: BTreeSet<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    for package in metadata.packages.iter().filter(|p| STD_ONLY.contains(&short(p).as_str())) {
        let foreign: Vec<&str> =
            normal_dependencies(package).filter(|d| !members.contains(d)).collect();
        assert!(foreign.is_empty(), "{} depends on {foreign:?}", package.name);
    }
}

#[test]
fn versions_stand_in_the_root_manifest_only() {
    for manifest in files(&root(), "toml").filter(|p| p.ends_with("Cargo.toml")) {
        if manifest == root().join("Cargo.toml") {
            continue;
        }
        let text = std::fs::read_to_string(&manifest).expect("readable");
        let version = |l: &&str| l.contains("version = \"") || l.contains("= \"0.");
        let line = text.lines().find(version);
        assert_eq!(line, None, "{}: a version outside the root manifest", manifest.display());
    }
}

#[test]
fn every_dependency_is_argued_for() {
    let architecture = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("readable");
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("readable");
    let table = manifest.split("[workspace.dependencies]").nth(1).expect("the table of versions");
    let table = table.split("\n[").next().expect("up to the next table");
    let names =
        table.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.trim());
    for name in names.filter(|name| !name.starts_with("vramlab-")) {
        let argued = architecture.lines().any(|l| l.starts_with(&format!("- `{name}`")));
        assert!(argued, "ARCHITECTURE.md has no line `- `{name}`: why`");
    }
}

#[test]
fn every_crate_says_its_place_in_the_flow() {
    for (name, _) in EDGES {
        let folder = root().join(name);
        let folder = if folder.exists() { folder } else { root().join("crates").join(name) };
        let file = ["src/lib.rs", "src/main.rs"].map(|f| folder.join(f));
        let file = file.iter().find(|f| f.exists()).expect("a crate has a root file");
        let text = std::fs::read_to_string(file).expect("readable");
        assert!(text.starts_with("//!"), "{} opens without its place", file.display());
        assert!(text.contains("Place in the flow"), "{}: where does it stand?", file.display());
    }
}

/// Lines of library and program code, without the tests at a file's end.
fn code_lines() -> impl Iterator<Item = (PathBuf, usize, String)> {
    let sources =
        ["crates", "repl", "kernel"].into_iter().flat_map(|f| files(&root().join(f), "rs"));
    // A folder `tests` within `src` is a module of tests.
    let within = |path: &PathBuf, name: &str| path.components().any(|c| c.as_os_str() == name);
    let code = sources.filter(move |path| within(path, "src") && !within(path, "tests"));
    code.flat_map(|path| {
        let text = std::fs::read_to_string(&path).expect("readable");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_string();
        let lines: Vec<String> = code.lines().map(str::to_string).collect();
        lines.into_iter().enumerate().map(move |(n, line)| (path.clone(), n + 1, line))
    })
}

#[test]
fn no_unwrap_and_no_stub_outside_tests() {
    let stub = ["to".to_string() + "do!(", "unimpl".to_string() + "emented!("];
    let wrong: Vec<String> = code_lines()
        .filter(|(path, _, _)| !path.ends_with("tests.rs") && !path.ends_with("conformance.rs"))
        .filter(|(_, _, line)| !line.trim_start().starts_with("//"))
        .filter(|(_, _, line)| {
            line.contains(".unwrap()") || stub.iter().any(|s| line.contains(s.as_str()))
        })
        .map(|(path, n, line)| format!("{}:{n}: {}", path.display(), line.trim()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_pure_crates_touch_no_clock_environment_file_or_output() {
    let banned =
        ["std::time::Instant", "SystemTime", "std::env::", "std::fs", "println!", "std::net"];
    let pure = ["ir", "ops", "compiler", "memory", "picture"]
        .map(|c| root().join("crates").join(c).join("src"));
    let wrong: Vec<String> = code_lines()
        .filter(|(path, _, _)| pure.iter().any(|folder| path.starts_with(folder)))
        .filter(|(_, _, line)| !line.trim_start().starts_with("//"))
        .filter(|(_, _, line)| banned.iter().any(|b| line.contains(b)))
        .map(|(path, n, line)| format!("{}:{n}: {}", path.display(), line.trim()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn files(folder: &Path, extension: &'static str) -> Box<dyn Iterator<Item = PathBuf>> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Box::new(std::iter::empty()) };
    let skipped = ["target", ".venv", ".git", "node_modules"];
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    Box::new(paths.into_iter().flat_map(move |path| -> Box<dyn Iterator<Item = PathBuf>> {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_string();
        if path.is_dir() && !skipped.contains(&name.as_str()) {
            files(&path, extension)
        } else if path.extension().is_some_and(|e| e == extension) {
            Box::new(std::iter::once(path))
        } else {
            Box::new(std::iter::empty())
        }
    }))
}
