//! The session: state between cells, and the road of one cell through it.

use crate::commands::{self, Effect, Refusal};
use crate::config::{Config, Settings};
use crate::event::{
    CellError, CellResult, Completeness, Completions, Content, Event, MemoryReport, Status, Tier,
    Watch,
};
use crate::interrupt::Interrupt;
use crate::parts::{Part, PartKind, cut_word, split};
use crate::sink::Sink;
use std::time::Instant;

/// Asks the user for a line; `None`: there is no answer to be had.
pub type Input = Box<dyn FnMut(&str) -> Option<String> + Send>;

/// A cell that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    pub cell: u32,
    pub source: String,
    pub status: Status,
}

/// One user at one device.
pub struct Session {
    settings: Settings,
    interrupt: Interrupt,
    input: Option<Input>,
    past: Vec<Past>,
    last_cell: u32,
    pub(crate) watch: Watch,
    pub(crate) keep_outputs: bool,
    pub(crate) exit: bool,
}

/// How a part of a cell ended.
enum Ended {
    Quiet,
    Ran,
    Failed(CellError),
}

impl Session {
    /// Nothing slow happens here: no memory is taken and no thread started before a cell needs it.
    ///
    /// # Errors
    /// A setting that is not understood, with the valid words.
    pub fn new(config: Config) -> Result<Session, String> {
        let settings = config.resolve()?;
        Ok(Session {
            watch: settings.watch,
            settings,
            interrupt: Interrupt::default(),
            input: None,
            past: Vec::new(),
            last_cell: 0,
            keep_outputs: true,
            exit: false,
        })
    }

    /// Runs a cell. Events are delivered in order while it runs; a failure is an event too, and is
    /// repeated in the result.
    pub fn execute(&mut self, code: &str, sink: &mut dyn FnMut(Event)) -> CellResult {
        let started = Instant::now();
        self.interrupt.clear();
        self.last_cell += 1;
        let cell = self.last_cell;
        let mut sink = Sink::new(sink);
        let parts = split(code, &|_| false);
        let mut error = None;
        for part in &parts.parts {
            match self.run_part(part, &mut sink) {
                Ended::Quiet | Ended::Ran => {}
                Ended::Failed(failed) => {
                    sink.send(Event::Error(Box::new(failed.clone())));
                    error = Some(failed);
                    break;
                }
            }
        }
        let status = if error.is_some() { Status::Error } else { Status::Ok };
        self.past.push(Past { cell, source: code.to_string(), status });
        CellResult {
            cell,
            status,
            tier: if parts.has_rust() { Tier::Instant } else { Tier::Command },
            wall_ns: started.elapsed().as_nanos() as u64,
            error,
            memory: MemoryReport { cell, watch: self.watch, ..MemoryReport::default() },
            exit: self.exit,
        }
    }

    fn run_part(&mut self, part: &Part, sink: &mut Sink) -> Ended {
        match part.kind {
            PartKind::Command => self.run_command(part, sink),
            _ => Ended::Failed(self.failed(Refusal::new("only commands run as yet"))),
        }
    }

    fn run_command(&mut self, part: &Part, sink: &mut Sink) -> Ended {
        let (name, arguments) = cut_word(&part.text);
        let done =
            commands::lookup(name).and_then(|command| (command.action)(self, arguments, sink));
        match done {
            Ok(Effect::Told) => Ended::Quiet,
            Ok(Effect::Ran) => Ended::Ran,
            Err(refusal) => Ended::Failed(self.failed(refusal)),
        }
    }

    fn failed(&self, refusal: Refusal) -> CellError {
        let mut rendered = format!("error[{}]: {}", refusal.kind, refusal.message);
        if let Some(help) = &refusal.help {
            rendered.push_str(&format!("\n help: {help}"));
        }
        CellError {
            kind: refusal.kind.to_string(),
            message: refusal.message,
            cell: self.last_cell,
            span: None,
            rendered,
        }
    }

    /// What may stand at `position` (bytes) of `code`.
    pub fn complete(&self, _code: &str, position: usize) -> Completions {
        Completions { start: position, end: position, items: Vec::new() }
    }

    /// What is known of the name at `position` (bytes) of `code`.
    pub fn inspect(&self, _code: &str, _position: usize) -> Option<Content> {
        None
    }

    /// Whether `code` is a whole cell.
    pub fn completeness(&self, _code: &str) -> Completeness {
        Completeness::Complete
    }

    /// What stops a running cell from elsewhere.
    pub fn interrupt_handle(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Who answers `input("…")`.
    pub fn set_input(&mut self, input: Input) {
        self.input = Some(input);
    }

    /// The cells so far, oldest first.
    pub fn history(&self) -> &[Past] {
        &self.past
    }

    /// The number that the next cell will have.
    pub fn next_cell(&self) -> u32 {
        self.last_cell + 1
    }

    /// The greeting: version, device, mode.
    pub fn banner(&self) -> String {
        format!("vramlab {} · {}", env!("CARGO_PKG_VERSION"), self.settings.mode)
    }
}
