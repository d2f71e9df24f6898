//! `export`: a heap and its ledger, written in the formats of other tools.
//!
//! Place in the flow: beside `diagnosis`, above `memory`. What comes in: a [`Recording`], which is the memory of a
//! device at one moment with its events, and a sink for bytes. What goes out: the bytes, and a few words on what they
//! hold. Each writer is one fold over the events; it keeps the live blocks and no list of events, so a full ledger
//! is written in the memory of a short one.
//!
//! What it must not know: files, clocks, environments, sessions, arrays. A format is one entry of [`FORMATS`]; the
//! command, its completion, its help and the option of the command line are derived from there.

mod csv;
mod fold;
mod format;
mod json;
mod perfetto;
mod pickle;
mod pprof;
mod protobuf;
mod recording;
mod trace;
mod viz;

pub use format::{FORMATS, Format, find};
pub use recording::{Executable, Recording};
