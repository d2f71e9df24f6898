//! `vramlab`: the terminal. Evaluates nothing: it hands cells to the session and shows what comes
//! back.
//!
//! Place in the flow: command line → [`options`] → a session → the prompt ([`terminal`]) or a batch
//! of cells ([`batch`]) → events → [`face`] or [`json`]. `check` holds a batch against a kept run; `why`,
//! `replay` and `view` read files and need no session.

mod batch;
mod check;
mod editor;
mod face;
mod json;
mod lines;
mod options;
mod paint;
mod recordings;
mod signals;
mod source;
mod terminal;
mod terminal_size;
mod why;

use batch::Batch;
use options::Task;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use vramlab_session::Session;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(why) => {
            // With standard error closed there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "vramlab: {why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, String> {
    let text = |argument: std::ffi::OsString| argument.to_string_lossy().into_owned();
    let options = options::parse(std::env::args_os().skip(1).map(text))?;
    match &options.task {
        Task::Help => print(&options::help()),
        Task::Version => print(concat!("vramlab ", env!("CARGO_PKG_VERSION"), "\n")),
        Task::Why(files) => Ok(why::run(files, options.json)),
        Task::Check(file) => check::run(file, &options),
        Task::Replay(files) => recordings::replay(files, &options),
        Task::View(files) => recordings::view(files, &options),
        Task::Interactive if !options.exports.is_empty() && std::io::stdin().is_terminal() => {
            Err("--export goes with run or -c; at the prompt write %export FORMAT FILE".into())
        }
        Task::Interactive if !options.json && std::io::stdin().is_terminal() => {
            terminal::run(Session::new(options.config.clone())?, &options)
        }
        task => {
            let batch = Batch::new(Session::new(options.config.clone())?, &options);
            match task {
                Task::Files(paths) => batch.files(paths),
                Task::Cell(cell) => Ok(batch.cell(cell)),
                _ => batch.standard_input(),
            }
        }
    }
}

fn print(text: &str) -> Result<ExitCode, String> {
    // A closed pipe wants no more help.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}
