//! Why did it run out of memory? Read from the text that is left.
//!
//! Place in the flow: bytes of a file in (an error message as it was pasted, an allocator's dump, a compiler's plan, a
//! memory profile, a table of a driver tool), a [`Diagnosis`] out: the figures that the text contains, the verdict in the
//! words that a live session uses ([`vramlab_memory::Verdict`]), the owners where the text names them, what the text
//! cannot tell, and the next line to try.
//!
//! The road: bytes → [`clean`] (compression, encodings, colours, escapes, prefixes) → one reader per kind of text
//! ([`torch`], [`bfc`], [`jax`], [`plan`], [`profile`], [`table`], [`bare`]) → figures with the precision of what was
//! printed ([`Quantity`]) → verdict.
//!
//! What it must not know: files, devices, clocks, sessions. It never guesses a figure: what a text does not hold is not in
//! [`Diagnosis::figures`]. It never fails either: a text that nobody can read has the verdict *unreadable*.

pub mod bare;
pub mod bfc;
pub mod clean;
mod counters;
mod diagnosis;
pub mod jax;
pub mod plan;
pub mod profile;
mod quantity;
mod summary;
pub mod table;
pub mod torch;
mod torch_advice;
mod verdict;

pub use diagnosis::{Diagnosis, Figures, Kind, Name, Owner, Process, show};
pub use quantity::Quantity;
pub use verdict::{Certainty, Verdict};

use clean::Input;

/// Reads `bytes`, whatever they are.
pub fn diagnose(bytes: &[u8]) -> Diagnosis {
    match clean::input(bytes) {
        Input::Text(text) => text_diagnosis(&text),
        Input::Binary(bytes) => match profile::read(&bytes) {
            Some(profile) => profile.diagnosis(),
            None => unreadable("neither a text nor a memory profile"),
        },
        Input::Broken(why) => unreadable(why),
    }
}

/// Reads a text. The readers stand in the order of how much they can say.
fn text_diagnosis(raw: &str) -> Diagnosis {
    let text = clean::Text::new(raw);
    let table = table::read(&text);
    let summary = summary::read(&text);
    let mut diagnosis = torch::read(&text, &table)
        .or_else(|| bfc::read(&text))
        .or_else(|| jax::read(&text))
        .or_else(|| plan::read(&text))
        .or_else(|| counters::read(&text))
        .or_else(|| bare::read(&text))
        .or_else(|| Some(summary.as_ref()?.diagnosis()))
        .or_else(|| table.diagnosis())
        .unwrap_or_else(|| bare::nothing(&text));
    table.beside(&mut diagnosis);
    if let Some(summary) = &summary {
        summary.beside(&mut diagnosis);
    }
    if let Some(line) = failing_line(&text) {
        diagnosis.notes.push(line);
    }
    diagnosis
}

/// The innermost frame of a Python traceback that is not in a package: the line that asked.
fn failing_line(text: &clean::Text) -> Option<String> {
    let mut frames = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("File \"")?;
        let (file, rest) = rest.split_once("\", line ")?;
        let line = quantity::number(rest)?;
        let package = ["site-packages", "dist-packages", "lib/python", "<frozen"];
        let own = !package.iter().any(|p| file.contains(p));
        own.then(|| format!("the traceback leads to {file}:{line}"))
    });
    frames.next_back()
}

fn unreadable(why: &str) -> Diagnosis {
    let mut diagnosis = Diagnosis::new(Kind::Unreadable, "bytes", Verdict::Unreadable);
    diagnosis.because = format!("The file is {why}.");
    diagnosis.absent = vec!["everything".into()];
    diagnosis.advice =
        vec!["Save the message itself as text: python train.py 2>&1 | tee run.log".into()];
    diagnosis
}
