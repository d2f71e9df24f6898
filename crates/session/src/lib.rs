//! `session`: a cell in, events out.
//!
//! Place in the flow: `repl` and `kernel` hand in the text of a cell and render the [`Event`]s that
//! come back; `cells` parses, checks and runs the text over `array`; `runtime` holds the device.
//! This crate owns commands (`%mode`, …), history, outputs and the memory report. It knows neither
//! Jupyter nor a terminal: everything it says is plain data.

pub mod commands;
mod complete;
mod config;
mod drops;
pub mod event;
mod expect;
mod export;
mod failure;
mod host;
mod inspect;
mod interrupt;
mod jit_trial;
mod measure;
mod oom;
mod parts;
pub mod percent;
mod pictures;
mod reasons;
pub mod report;
mod rewrite;
pub mod scan;
mod session;
mod shell;
mod sink;
pub mod table;
#[cfg(test)]
mod tests;
mod trial;
mod value;
pub mod why;

pub use config::{Config, Device, SETTINGS, Setting, Settings, parse_watch};
pub use event::*;
pub use interrupt::Interrupt;
pub use session::{Input, Parting, Past, Session};
pub use sink::Sink;
pub use vramlab_export::find as export_format;
pub use vramlab_memory::modes::parse_capacity;
pub use vramlab_memory::{ModeSpec, nearest, parse_bytes};
pub use vramlab_traces as traces;
