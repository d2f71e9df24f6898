//! `vramlab replay TRACE…` and `vramlab view SNAPSHOT…`: recordings from files, through `traces`.

use crate::options::Options;
use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use vramlab_session::traces::{self, Ask, Trace, View};
use vramlab_session::{ModeSpec, parse_capacity};

/// Replays each file through the modes asked for, a table a device.
///
/// # Errors
/// An option that is not understood.
pub fn replay(files: &[String], options: &Options) -> Result<ExitCode, String> {
    let modes = options.config.mode.as_deref().unwrap_or("all");
    let capacity = options.config.capacity.as_deref().map(capacity).transpose();
    let ask = Ask {
        modes: ModeSpec::parse_list(modes).map_err(|why| format!("--mode: {why}"))?,
        capacity: capacity.map_err(|why| format!("--capacity: {why}"))?,
        exact: options.exact,
    };
    let mut printer = Printer::new(options.json);
    each_trace(files, |trace| {
        let replayed = traces::replay(&trace, &ask).map_err(|why| why.to_string())?;
        printer.print(&replayed, || replayed.json_line());
        Ok(())
    })
}

fn capacity(text: &str) -> Result<u64, String> {
    match parse_capacity(text)? {
        bytes if bytes > traces::LARGEST_DEVICE => Err("no device is larger than 4 PiB".into()),
        bytes => Ok(bytes),
    }
}

/// Prints what is in each file, and writes a page of all of them where one is asked for.
///
/// # Errors
/// The page cannot be written.
pub fn view(files: &[String], options: &Options) -> Result<ExitCode, String> {
    let mut seen: Vec<(Trace, View)> = Vec::new();
    let mut printer = Printer::new(options.json);
    let code = each_trace(files, |trace| {
        let view = traces::view(&trace).map_err(|why| why.to_string())?;
        printer.print(&view, || view.json_line());
        if options.html.is_some() {
            seen.push((trace, view));
        }
        Ok(())
    })?;
    if let Some(path) = options.html.as_ref().filter(|_| !seen.is_empty()) {
        let page = traces::page(&seen);
        std::fs::write(path, page).map_err(|why| format!("--html {path}: {why}"))?;
        if !options.json {
            printer.line(&format!("\npage           {path}\n"));
        }
    }
    Ok(code)
}

/// Hands out the traces of each file; a file that gives none is named on standard error, and the others go on.
fn each_trace(
    files: &[String],
    mut take: impl FnMut(Trace) -> Result<(), String>,
) -> Result<ExitCode, String> {
    let mut code = ExitCode::SUCCESS;
    for file in files {
        let taken = traces::open(Path::new(file)).map_err(|why| why.to_string());
        let taken = taken.and_then(|all| all.into_iter().try_for_each(&mut take));
        if let Err(why) = taken {
            let _ = writeln!(std::io::stderr(), "vramlab: {file}: {why}");
            code = ExitCode::from(1);
        }
    }
    Ok(code)
}

/// Reports on standard output, with an empty line between them.
struct Printer {
    json: bool,
    first: bool,
}

impl Printer {
    fn new(json: bool) -> Printer {
        Printer { json, first: true }
    }

    fn print(&mut self, report: &impl Display, json_line: impl FnOnce() -> String) {
        let gap = if self.first { "" } else { "\n" };
        self.first = false;
        match self.json {
            true => self.line(&(json_line() + "\n")),
            false => self.line(&format!("{gap}{report}")),
        }
    }

    fn line(&self, text: &str) {
        // With standard output closed there is nobody left to read.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
}
