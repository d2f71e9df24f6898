//! Writes the kernel spec where Jupyter looks for it.

use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const KERNEL_NAME: &str = "vramlab";
pub const DISPLAY_NAME: &str = "Rust + GPU memory (vramlab)";

const LOGO: &str = concat!(
    r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64">"##,
    r##"<rect x="4" y="14" width="56" height="36" rx="4" fill="#22313f"/>"##,
    r##"<rect x="10" y="22" width="14" height="20" fill="#e67e22"/>"##,
    r##"<rect x="25" y="22" width="6" height="20" fill="#f5cba7"/>"##,
    r##"<rect x="32" y="22" width="22" height="20" fill="#5d6d7e"/></svg>"##
);

/// Under which tree the spec goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    User,
    SysPrefix,
    Prefix(PathBuf),
}

/// Installs the spec; its folder.
///
/// # Errors
/// A sentence with the folder that could not be written, or the prefix that could not be found.
pub fn install(target: &Target, arguments: &[String]) -> Result<PathBuf, String> {
    let folder = data_folder(target)?.join("kernels").join(KERNEL_NAME);
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    std::fs::create_dir_all(&folder)
        .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    write(&folder, "kernel.json", &spec(&program, arguments))?;
    write(&folder, "logo-svg.svg", LOGO)?;
    Ok(folder)
}

fn spec(program: &Path, arguments: &[String]) -> String {
    let mut argv = vec![program.display().to_string(), "run".into(), "{connection_file}".into()];
    argv.extend_from_slice(arguments);
    let spec = json!({
        "argv": argv,
        "display_name": DISPLAY_NAME,
        "language": "rust",
        "interrupt_mode": "message",
        "metadata": {"debugger": false},
    });
    format!("{spec:#}\n")
}

/// Through a neighbour and a rename, so that a reader never sees half a file.
fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = folder.join(name);
    let part = folder.join(format!(".{name}.{}", std::process::id()));
    std::fs::write(&part, text)
        .and_then(|()| std::fs::rename(&part, &path))
        .map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn data_folder(target: &Target) -> Result<PathBuf, String> {
    match target {
        Target::Prefix(prefix) => Ok(prefix.join("share").join("jupyter")),
        Target::SysPrefix => Ok(python_prefix()?.join("share").join("jupyter")),
        Target::User => user_folder(),
    }
}

fn user_folder() -> Result<PathBuf, String> {
    if let Some(folder) = std::env::var_os("JUPYTER_DATA_DIR") {
        return Ok(folder.into());
    }
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .ok_or("HOME is not set; use --prefix or set JUPYTER_DATA_DIR")?;
    if cfg!(target_os = "macos") {
        return Ok(home.join("Library").join("Jupyter"));
    }
    let data = std::env::var_os("XDG_DATA_HOME")
        .map_or_else(|| home.join(".local").join("share"), PathBuf::from);
    Ok(data.join("jupyter"))
}

/// The prefix of the active environment; else of the `python3` that is found first.
fn python_prefix() -> Result<PathBuf, String> {
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(prefix) = std::env::var_os(name) {
            return Ok(prefix.into());
        }
    }
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.prefix)"])
        .output()
        .map_err(|e| format!("no active environment, and python3 does not run: {e}"))?;
    let prefix = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if prefix.is_empty() { Err("python3 gave no prefix".into()) } else { Ok(prefix.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_gets_a_spec_that_starts_this_program() {
        let prefix = std::env::temp_dir().join(format!("vramlab-spec-{}", std::process::id()));
        let folder =
            install(&Target::Prefix(prefix.clone()), &["--capacity".into(), "1GiB".into()])
                .expect("the temporary folder is writable");
        let text = std::fs::read_to_string(folder.join("kernel.json")).expect("written");
        let spec: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(spec["argv"][1], "run");
        assert_eq!(spec["argv"][4], "1GiB");
        assert_eq!(spec["interrupt_mode"], "message");
        assert!(folder.ends_with("share/jupyter/kernels/vramlab"));
        std::fs::remove_dir_all(prefix).expect("ours to remove");
    }
}
