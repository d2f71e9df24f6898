//! An out-of-memory text from elsewhere, explained. No session is needed: the text is all there is.

use std::fmt;
use vramlab_diagnosis::{Diagnosis, diagnose};

/// What a text says; printing it gives the explanation for people.
#[derive(Clone, Debug)]
pub struct Explanation(Diagnosis);

/// Explains the bytes of a file: a log, a dump, a plan, a memory profile, as they are.
pub fn why_text(bytes: &[u8]) -> Explanation {
    Explanation(diagnose(bytes))
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
