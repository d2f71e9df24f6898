//! From a path to traces: what kind of file is it, and who reads that kind.

use crate::reading::Reading;
use crate::trace::Trace;
use crate::{own, rmm, snapshot};
use std::fmt;
use std::io;
use std::path::Path;
use vramlab_memory::trace::own::MAGIC;

/// Why a file gives no trace.
#[derive(Debug)]
pub enum Failed {
    /// It cannot be read, or the temporary folder cannot be written.
    Io(io::Error),
    /// It is nothing that is read here.
    Unknown {
        /// What it looks like, and what would be read.
        what: String,
    },
    /// It is of a kind that is read, and damaged beyond use.
    Damaged {
        /// What is wrong, and where.
        what: String,
    },
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Io(error) => write!(f, "{error}"),
            Failed::Unknown { what } | Failed::Damaged { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Failed {}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

/// Reads a file: one trace for each device that has events or memory in it.
///
/// # Errors
/// It cannot be read, is no recording, or is damaged before its first event.
pub fn open(path: &Path) -> Result<Vec<Trace>, Failed> {
    let mut reading = Reading::open(path)?;
    let first = reading.peek(64)?.to_vec();
    let first = first.as_slice();
    let file = path.display().to_string();
    if first.is_empty() && reading.broken().is_none() {
        return Err(Failed::Unknown { what: "the file is empty".into() });
    }
    if first.starts_with(MAGIC.as_bytes()) {
        return own::read(&file, reading).map(|trace| vec![trace]);
    }
    if looks_like_pickle(first) {
        return snapshot::read(&file, path);
    }
    if rmm::looks_like(first) {
        return rmm::read(&file, reading).map(|trace| vec![trace]);
    }
    Err(Failed::Unknown { what: not_a_recording(first, reading.broken()) })
}

fn looks_like_pickle(first: &[u8]) -> bool {
    match first {
        // From protocol 2 on a pickle says so.
        [0x80, ..] => true,
        // Older ones begin with the dictionary that a snapshot is.
        [b'(', b'd' | b'l', ..] | [b'}', b'q' | b'(' | b'.', ..] | [b']', b'q' | b'.', ..] => true,
        // One that runs code is refused by its reader, in words.
        [b'c', rest @ ..] => rest.iter().take(40).filter(|byte| **byte == b'\n').count() >= 2,
        _ => false,
    }
}

fn not_a_recording(first: &[u8], broken: Option<&str>) -> String {
    let looks = match first {
        _ if broken.is_some() => "a damaged gzip",
        [b'P', b'K', ..] => "a zip archive (torch.save?)",
        [b'{', ..] | [b'[', ..] => "JSON",
        _ => "none of these",
    };
    format!(
        "not a recording that is read here ({looks}): a vramlab trace (%export trace FILE), a PyTorch memory \
         snapshot (torch.cuda.memory._dump_snapshot), or an RMM log (Thread,Time,Action,Pointer,Size,Stream)"
    )
}
