//! What the tests of this crate share: files that go with the test, and pickles as Python writes them.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use vramlab_traces::{Failed, Trace, open};

/// A folder that goes with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("vramlab-traces-{process}-{count}"));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The traces of a file with these bytes.
pub fn read(bytes: impl AsRef<[u8]>) -> Result<Vec<Trace>, Failed> {
    let folder = Folder::new();
    open(&folder.file("trace", bytes))
}

/// The one trace of a file with these bytes.
pub fn one(bytes: impl AsRef<[u8]>) -> Trace {
    let mut all = read(bytes).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// The recorded traces, where they are; with `CI=true` their absence is a failure.
pub fn recorded() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/benchmarks/traces");
    if folder.is_dir() {
        return Some(folder);
    }
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "the recorded traces are absent: {}", folder.display());
    eprintln!("skipped: the recorded traces are absent");
    None
}

/// A value, to be written as a pickle.
#[derive(Clone)]
pub enum Py {
    Int(u64),
    Bool(bool),
    Text(String),
    List(Vec<Py>),
    Dict(Vec<(&'static str, Py)>),
    /// The same object wherever it stands, as Python's memo has it.
    Shared(u32, Box<Py>),
}

pub fn text(text: &str) -> Py {
    Py::Text(text.to_string())
}

/// Writes pickles of protocols 2 to 5, keeping and fetching values as Python does.
pub struct Writer {
    protocol: u8,
    out: Vec<u8>,
    kept: u32,
    texts: std::collections::HashMap<String, u32>,
    shared: std::collections::HashMap<u32, u32>,
}

pub fn pickle(protocol: u8, value: &Py) -> Vec<u8> {
    let (texts, shared) = Default::default();
    let mut writer = Writer { protocol, out: vec![0x80, protocol], kept: 0, texts, shared };
    writer.value(value);
    writer.out.push(b'.');
    writer.out
}

impl Writer {
    fn keep(&mut self) -> u32 {
        let number = self.kept;
        self.kept += 1;
        match number {
            _ if self.protocol >= 4 => self.out.push(0x94),
            0..=255 => self.out.extend([b'q', number as u8]),
            _ => {
                self.out.push(b'r');
                self.out.extend(number.to_le_bytes());
            }
        }
        number
    }

    fn fetch(&mut self, number: u32) {
        match number {
            0..=255 => self.out.extend([b'h', number as u8]),
            _ => {
                self.out.push(b'j');
                self.out.extend(number.to_le_bytes());
            }
        }
    }

    fn value(&mut self, value: &Py) {
        match value {
            Py::Int(number @ 0..=255) => self.out.extend([b'K', *number as u8]),
            Py::Int(number @ 256..=0xffff) => {
                self.out.push(b'M');
                self.out.extend((*number as u16).to_le_bytes());
            }
            Py::Int(number @ 0..=0x7fff_ffff) => {
                self.out.push(b'J');
                self.out.extend((*number as u32).to_le_bytes());
            }
            Py::Int(number) => {
                self.out.extend([0x8a, 9]);
                self.out.extend(number.to_le_bytes());
                self.out.push(0);
            }
            Py::Bool(value) => self.out.push(if *value { 0x88 } else { 0x89 }),
            Py::Text(text) => self.text(text),
            Py::List(items) => {
                self.out.push(b']');
                self.keep();
                for batch in items.chunks(1000) {
                    self.out.push(b'(');
                    batch.iter().for_each(|item| self.value(item));
                    self.out.push(b'e');
                }
            }
            Py::Dict(entries) => {
                self.out.push(b'}');
                self.keep();
                self.out.push(b'(');
                for (key, value) in entries {
                    self.text(key);
                    self.value(value);
                }
                self.out.push(b'u');
            }
            Py::Shared(name, value) => match self.shared.get(name) {
                Some(number) => self.fetch(*number),
                None => {
                    self.shared.insert(*name, self.kept);
                    self.value(value);
                }
            },
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(number) = self.texts.get(text) {
            return self.fetch(*number);
        }
        match text.len() {
            length @ 0..=255 if self.protocol >= 4 => self.out.extend([0x8c, length as u8]),
            length => {
                self.out.push(b'X');
                self.out.extend((length as u32).to_le_bytes());
            }
        }
        self.out.extend(text.as_bytes());
        let number = self.keep();
        self.texts.insert(text.to_string(), number);
    }
}

pub fn frame(file: &str, line: u64, name: &str) -> Py {
    Py::Dict(vec![("name", text(name)), ("filename", text(file)), ("line", Py::Int(line))])
}

pub fn event(action: &str, address: u64, bytes: u64, time: u64, frames: Py) -> Py {
    Py::Dict(vec![
        ("action", text(action)),
        ("addr", Py::Int(address)),
        ("size", Py::Int(bytes)),
        ("stream", Py::Int(0)),
        ("time_us", Py::Int(time)),
        ("compile_context", text("N/A")),
        ("frames", frames),
    ])
}

pub fn block(address: u64, bytes: u64, requested: u64, state: &str, frames: Py) -> Py {
    Py::Dict(vec![
        ("address", Py::Int(address)),
        ("size", Py::Int(bytes)),
        ("requested_size", Py::Int(requested)),
        ("state", text(state)),
        ("frames", frames),
    ])
}

pub fn segment(device: u64, address: u64, bytes: u64, kind: &str, blocks: Vec<Py>) -> Py {
    Py::Dict(vec![
        ("device", Py::Int(device)),
        ("address", Py::Int(address)),
        ("total_size", Py::Int(bytes)),
        ("stream", Py::Int(0)),
        ("segment_type", text(kind)),
        ("segment_pool_id", Py::List(vec![Py::Int(0), Py::Int(0)])),
        ("is_expandable", Py::Bool(false)),
        ("blocks", Py::List(blocks)),
    ])
}

pub fn snapshot(segments: Vec<Py>, traces: Vec<Py>) -> Py {
    Py::Dict(vec![
        ("segments", Py::List(segments)),
        ("device_traces", Py::List(traces)),
        ("allocator_settings", Py::Dict(vec![("PYTORCH_CUDA_ALLOC_CONF", text(""))])),
    ])
}
