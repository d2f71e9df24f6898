//! An out-of-memory text from elsewhere, explained. No session is needed: the text is all there is.

use std::fmt;
use std::io::Read;
use vramlab_diagnosis::{Diagnosis, diagnose};

/// What a text says; printing it gives the explanation for people.
#[derive(Clone, Debug)]
pub struct Explanation(Diagnosis);

/// Explains the bytes of a file: a log, a dump, a plan, a memory profile, as they are.
pub fn why_text(bytes: &[u8]) -> Explanation {
    Explanation(diagnose(bytes))
}

/// A log of this size is not what a failure left; the part around it is.
const LARGEST: u64 = 256 << 20;

/// The bytes of a file, `-` for standard input.
///
/// # Errors
/// Why it cannot be read; what is larger than 256 MiB is refused.
pub fn read(path: &str) -> Result<Vec<u8>, String> {
    match path {
        "-" => bounded(std::io::stdin()),
        path => std::fs::File::open(path).map_err(|why| why.to_string()).and_then(bounded),
    }
}

/// As [`read`], where nobody may be kept waiting: a device or a pipe is refused.
///
/// # Errors
/// Why it cannot be read.
pub fn read_file(path: &str) -> Result<Vec<u8>, String> {
    let metadata = std::fs::metadata(path).map_err(|why| why.to_string())?;
    match metadata.is_file() {
        true => read(path),
        false => Err("not a regular file".into()),
    }
}

fn bounded(from: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|why| why.to_string())?;
    match bytes.len() as u64 > LARGEST {
        true => Err("more than 256 MiB; give the part around the failure".into()),
        false => Ok(bytes),
    }
}

impl Explanation {
    /// Everything on one line of JSON, with the name of the file.
    pub fn json_line(&self, file: &str) -> String {
        self.0.json_line(file)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
