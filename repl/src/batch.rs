//! Cells without a prompt: from files, from `-c`, from standard input.

use crate::face::{self, Face};
use crate::json::{self, Outputs};
use crate::options::Options;
use crate::{lines, signals, source};
use std::io::Write;
use std::process::ExitCode;
use vramlab_session::{Completeness, Session, Status, percent};

/// Runs cells one after another and remembers whether any failed.
pub struct Batch<'a> {
    session: Session,
    options: &'a Options,
    face: Face,
    failed: bool,
    /// Show each cell before its output.
    echo: bool,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Next {
    Go,
    Stop,
}

impl<'a> Batch<'a> {
    pub fn new(mut session: Session, options: &'a Options) -> Batch<'a> {
        signals::catch(session.interrupt_handle());
        session.set_input(Box::new(|prompt| {
            let mut out = std::io::stdout().lock();
            // Whoever reads the prompt may be gone; the answer still counts.
            let _ = out.write_all(prompt.as_bytes()).and_then(|()| out.flush());
            let line = lines::next().ok()?;
            (!line.is_empty()).then(|| line.trim_end_matches(['\n', '\r']).to_string())
        }));
        let mut face = Face::new();
        for note in session.notes() {
            face.warn(&format!("note: {note}"));
        }
        Batch { session, options, face, failed: false, echo: false }
    }

    /// # Errors
    /// A file that cannot be read, or is not what its name says; no cell has run then.
    pub fn files(mut self, paths: &[String]) -> Result<ExitCode, String> {
        let read = |path: &String| source::read(path);
        let cells = paths.iter().map(read).collect::<Result<Vec<_>, String>>()?;
        self.echo = true;
        for cell in cells.iter().flatten() {
            if self.run(cell) == Next::Stop {
                break;
            }
        }
        Ok(self.end())
    }

    pub fn cell(mut self, cell: &str) -> ExitCode {
        self.run(cell);
        self.end()
    }

    /// Cells as they would be typed, each run as soon as it is whole and the next line begins another
    /// or none comes for a moment; behind a `// %%` line, cells in percent format.
    ///
    /// # Errors
    /// When standard input cannot be read, or is no text.
    pub fn standard_input(mut self) -> Result<ExitCode, String> {
        let mut gathered = String::new();
        let mut percent = false;
        loop {
            let line = signals::while_waiting(lines::next)
                .map_err(|error| format!("standard input: {error}"))?;
            let at_end = line.is_empty();
            let is_marker = percent::marker(&line).is_some();
            let whole = at_end || is_marker || (!percent && self.is_whole(&gathered, &line));
            if whole && self.run_all(&std::mem::take(&mut gathered)) == Next::Stop {
                return Ok(self.end());
            }
            percent |= is_marker;
            gathered.push_str(&line);
            // Whoever sends nothing more for a moment waits for an answer.
            let waited_for = !percent && !at_end && self.is_whole(&gathered, "");
            if waited_for
                && signals::while_waiting(lines::is_idle)
                && self.run_all(&std::mem::take(&mut gathered)) == Next::Stop
            {
                return Ok(self.end());
            }
            if at_end {
                return Ok(self.end());
            }
        }
    }

    fn run_all(&mut self, gathered: &str) -> Next {
        let go_on = percent::cells(gathered).iter().all(|cell| self.run(cell) == Next::Go);
        if go_on { Next::Go } else { Next::Stop }
    }

    /// Whether what was gathered is a cell of its own, seen from the line that follows.
    fn is_whole(&self, gathered: &str, next: &str) -> bool {
        let next = next.trim_start();
        let goes_on = next.starts_with("else") || next.starts_with('.') || next.starts_with('}');
        !gathered.trim().is_empty()
            && !goes_on
            && !gathered.trim_start().starts_with("%%")
            && !matches!(self.session.completeness(gathered), Completeness::Incomplete { .. })
    }

    fn run(&mut self, cell: &str) -> Next {
        let result = match self.options.json {
            true => self.run_json(cell),
            false => self.run_shown(cell),
        };
        self.failed |= result.status != Status::Ok;
        let stops = result.status != Status::Ok && !self.options.keep_going;
        if stops || result.exit || result.status == Status::Interrupted {
            return Next::Stop;
        }
        Next::Go
    }

    fn run_shown(&mut self, cell: &str) -> vramlab_session::CellResult {
        let face = &mut self.face;
        if self.echo {
            face.echo(&format!("[{}] ", self.session.next_cell()), cell);
        }
        self.session.set_columns(face::width() - 1);
        let result = self.session.execute(cell, &mut |event| face.show(event));
        face.end_line();
        result
    }

    fn run_json(&mut self, cell: &str) -> vramlab_session::CellResult {
        let mut outputs = Outputs::default();
        let result = self.session.execute(cell, &mut |event| outputs.add(&event));
        self.face.line(&json::line(cell, outputs, &result));
        result
    }

    fn end(mut self) -> ExitCode {
        for (format, path) in &self.options.exports {
            // Standard output may be JSON, so what was written is told beside it.
            match self.session.export(format, path) {
                Ok(written) => self.face.warn(&format!("export {format}: {written}")),
                Err(why) => {
                    self.face.warn(&format!("export {format}: {why}"));
                    self.failed = true;
                }
            }
        }
        if self.failed { ExitCode::from(1) } else { ExitCode::SUCCESS }
    }
}
