//! `session`: a cell in, events out.
//!
//! Place in the flow: `repl` and `kernel` hand in the text of a cell and render the [`Event`]s that
//! come back; `cells` parses, checks and runs the text over `array`; `runtime` holds the device.
//! This crate owns commands (`%mode`, …), history, outputs and the memory report. It knows neither
//! Jupyter nor a terminal: everything it says is plain data.

pub mod commands;
mod config;
pub mod event;
mod interrupt;
mod parts;
pub mod report;
mod rewrite;
pub mod scan;
mod session;
mod sink;
pub mod table;

pub use config::{Config, Device, Settings, parse_watch};
pub use event::*;
pub use interrupt::Interrupt;
pub use session::{Input, Past, Session};
pub use sink::Sink;
pub use vramlab_memory::nearest;
