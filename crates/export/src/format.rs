//! The table of formats.

use crate::recording::Recording;
use crate::{csv, perfetto, pprof, trace, viz};
use std::io::{self, Write};
use vramlab_memory::nearest;

/// One format.
pub struct Format {
    /// As `%export` takes it.
    pub name: &'static str,
    /// What it is and what opens it, in one line.
    pub help: &'static str,
    /// The usual ending of a file of it.
    pub ending: &'static str,
    /// Writes it; gives a few words on what was written.
    pub write: fn(&Recording<'_>, &mut dyn Write) -> io::Result<String>,
}

/// Every format, in the order in which they are listed.
pub static FORMATS: [Format; 5] = [
    Format {
        name: "pprof",
        help: "what is held now, by owner and cell, as JAX's device_memory_profile (opens in pprof)",
        ending: ".pb.gz",
        write: pprof::write,
    },
    Format {
        name: "viz",
        help: "segments and events as a PyTorch memory snapshot (opens in memory_viz)",
        ending: ".pickle",
        write: viz::write,
    },
    Format {
        name: "perfetto",
        help: "cells, counters and incidents over time as a Chrome trace (opens in Perfetto)",
        ending: ".json",
        write: perfetto::write,
    },
    Format {
        name: "csv",
        help: "one row an event, with running totals, for a table or a data frame",
        ending: ".csv",
        write: csv::write,
    },
    Format {
        name: "trace",
        help: "every kept event as vramlab's own trace, for vramlab replay",
        ending: ".trace",
        write: trace::write,
    },
];

/// # Errors
/// An unknown name, with the valid ones and the nearest.
pub fn find(name: &str) -> Result<&'static Format, String> {
    if let Some(format) = FORMATS.iter().find(|format| format.name == name) {
        return Ok(format);
    }
    let names = || FORMATS.iter().map(|format| format.name);
    let list: Vec<&str> = names().collect();
    let mut text = format!("no format `{name}`; there are {}", list.join(", "));
    if let Some(near) = nearest(name, names()) {
        text.push_str(&format!(" (did you mean `{near}`?)"));
    }
    Err(text)
}
