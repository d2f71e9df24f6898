//! The `vramlab` program under test, built from the sources at hand.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Path of the program, in the profile that the tests were built in.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        let folder =
            test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "vramlab"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let built = build.status().expect("cargo starts");
        assert!(built.success(), "the program does not build");
        folder.join("vramlab")
    })
}

/// The program with an environment of its own.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(path());
    command.args(arguments).env_clear().env("HOME", "/nonexistent").env("PATH", "/usr/bin:/bin");
    command
}

/// Runs to the end with `input` on standard input.
pub fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a piped standard input");
    let input = input.to_string();
    // A program that ends before it read everything is no failure of the test.
    let writer = std::thread::spawn(move || {
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the writer ends");
    output
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is text")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("errors are text")
}

/// A folder that goes with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A folder of its own, since tests of one process run side by side and each removes its own.
    pub fn new(name: &str) -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("vramlab-{name}-{process}-{count}"));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a temporary file");
        path.to_str().expect("a path of ASCII").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
