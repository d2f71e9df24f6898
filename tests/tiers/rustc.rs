//! rustc's side of the comparison. Results are kept under `target/tiers`, by the hash of what made
//! them.

use super::corpus::Source;
use super::program::{self, FAULT_MARK, FILE_MARK};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

/// What one file printed, and the fault that ended it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    pub text: String,
    pub fault: Option<String>,
}

/// The libraries that cargo built for this very test binary.
struct Libraries {
    array: PathBuf,
    runtime: PathBuf,
    dependencies: PathBuf,
    /// Changes with them.
    stamp: u64,
}

static LIBRARIES: LazyLock<Result<Libraries, String>> = LazyLock::new(libraries);

fn libraries() -> Result<Libraries, String> {
    let text = output(
        Command::new(env!("CARGO"))
            .args(["build", "--offline", "--tests", "--message-format=json"])
            .current_dir(env!("CARGO_MANIFEST_DIR")),
    )?;
    let find = |name: &str| -> Result<PathBuf, String> {
        let mut artifacts = text.lines().filter_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let is_library = message["target"]["name"] == name
                && message["profile"]["test"] == false
                && message["reason"] == "compiler-artifact";
            let files = is_library.then(|| message["filenames"].as_array().cloned())??;
            files
                .iter()
                .filter_map(|file| file.as_str())
                .find(|file| file.ends_with(".rlib"))
                .map(PathBuf::from)
        });
        artifacts.next_back().ok_or_else(|| format!("cargo built no {name}"))
    };
    let (array, runtime) = (find("vramlab_array")?, find("vramlab_runtime")?);
    let dependencies = array.parent().expect("a file stands in a folder").to_path_buf();
    let mut hasher = DefaultHasher::new();
    for path in [&array, &runtime] {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        bytes.hash(&mut hasher);
    }
    Ok(Libraries { array, runtime, dependencies, stamp: hasher.finish() })
}

/// Standard output, or what the command wrote to standard error.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}\n{errors}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

fn rustc(libraries: &Libraries) -> Command {
    let mut command = Command::new("rustc");
    let external = |name: &str, path: &Path| format!("{name}={}", path.display());
    command
        .args(["--edition", "2024", "--extern"])
        .arg(external("vramlab_array", &libraries.array))
        .arg("--extern")
        .arg(external("vramlab_runtime", &libraries.runtime))
        .arg("-L")
        .arg(format!("dependency={}", libraries.dependencies.display()))
        .env_remove("RUSTFLAGS");
    command
}

/// The text made from `program` by `make`, which gets the path of the program's file; kept. With
/// `shared`, several tests may ask for it at once.
fn kept(
    name: &str,
    program: &str,
    libraries: &Libraries,
    shared: bool,
    make: impl FnOnce(&Path) -> Result<String, String>,
) -> Result<String, String> {
    // Tests of one process that want the same text make it once, one after the other.
    static MAKING: Mutex<()> = Mutex::new(());
    let _made_alone = shared.then(|| MAKING.lock().unwrap_or_else(PoisonError::into_inner));
    let mut hasher = DefaultHasher::new();
    (program, libraries.stamp).hash(&mut hasher);
    let folder = libraries.dependencies.join("../../tiers");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let path = folder.join(format!("{name}.rs"));
    let result = folder.join(format!("{name}-{:016x}.txt", hasher.finish()));
    if let Ok(text) = std::fs::read_to_string(&result) {
        return Ok(text);
    }
    std::fs::write(&path, program).map_err(|error| error.to_string())?;
    let text = make(&path)?;
    std::fs::write(&result, &text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// Runs every file as one program: what each printed.
pub fn run(name: &str, sources: &[Source]) -> Result<BTreeMap<String, Output>, String> {
    let libraries = LIBRARIES.as_ref()?;
    let text = kept(name, &program::whole(sources)?, libraries, true, |path| {
        let binary = path.with_extension("bin");
        let mut compile = rustc(libraries);
        compile.args(["--crate-name", name, "-C", "debug-assertions=on", "-o"]);
        output(compile.arg(&binary).arg(path))?;
        output(&mut Command::new(&binary))
    })?;
    Ok(text.split(FILE_MARK).skip(1).map(part).collect())
}

fn part(text: &str) -> (String, Output) {
    let (name, text) = text.split_once('\n').unwrap_or((text, ""));
    let output = match text.split_once(FAULT_MARK) {
        Some((text, fault)) => {
            Output { text: text.to_string(), fault: Some(fault.trim_end().to_string()) }
        }
        None => Output { text: text.to_string(), fault: None },
    };
    (name.to_string(), output)
}

/// The codes of the errors that rustc finds in a file; `none` for an error without a code.
pub fn codes(source: &Source) -> Result<BTreeSet<String>, String> {
    let found = check(&source.name, &program::alone(source))?;
    Ok(found.into_iter().map(|(_, code)| code).collect())
}

/// The same of many files at once, whose errors must be of one stage.
pub fn codes_of_all(name: &str, sources: &[Source]) -> Result<Vec<BTreeSet<String>>, String> {
    let (text, starts) = program::together(sources)?;
    let mut codes = vec![BTreeSet::new(); sources.len()];
    for (line, code) in check(name, &text)? {
        let at = starts.partition_point(|start| *start <= line);
        codes[at.checked_sub(1).ok_or("an error before the first file")?].insert(code);
    }
    Ok(codes)
}

/// Line and code of each error.
fn check(name: &str, program: &str) -> Result<Vec<(usize, String)>, String> {
    let libraries = LIBRARIES.as_ref()?;
    let text = kept(name, program, libraries, false, |path| {
        let mut check = rustc(libraries);
        check
            .args(["--crate-type", "lib", "--emit", "metadata", "--error-format", "json"])
            .args(["--crate-name", name, "-o"])
            .arg(path.with_extension("rmeta"))
            .arg(path);
        let output = check.output().map_err(|error| format!("{check:?}: {error}"))?;
        Ok(String::from_utf8_lossy(&output.stderr).lines().filter_map(error).collect())
    })?;
    let pair = |line: &str| {
        let (at, code) = line.split_once(' ')?;
        Some((at.parse().ok()?, code.to_string()))
    };
    Ok(text.lines().filter_map(pair).collect())
}

/// `17 E0382` of a message that is an error.
fn error(line: &str) -> Option<String> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    if message["level"] != "error" {
        return None;
    }
    let words = message["message"].as_str()?;
    if words.starts_with("aborting due to") {
        return None;
    }
    let code = message["code"]["code"].as_str().unwrap_or("none");
    let primary = message["spans"].as_array()?.iter().find(|span| span["is_primary"] == true);
    let at = primary.and_then(|span| span["line_start"].as_u64()).unwrap_or(0);
    Some(format!("{at} {code}\n"))
}
