//! The session: state between cells, and the road of one cell through it.

use crate::commands::{self, Effect, Refusal};
use crate::config::{Config, Device, Settings};
use crate::event::{
    CellError, CellResult, Completeness, Completions, Content, Event, MemoryReport, Status, Tier,
    Watch,
};
use crate::expect::Expectation;
use crate::failure;
use crate::host::{SessionHost, Surroundings};
use crate::interrupt::Interrupt;
use crate::measure::{self, Around};
use crate::parts::{Magic, Part, PartKind, Parts, cut_word, only_items, split};
use crate::rewrite::{Rewritten, out_name, out_number, rewrite};
use crate::sink::Sink;
use crate::{complete, drops, inspect, jit_trial, report, shell, value};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use vramlab_array::surface::Dyn;
use vramlab_array::{ir, with_engine, with_host};
use vramlab_cells::{Interpreter, Prepared, Shown, Variable};
use vramlab_memory::ModeSpec;
use vramlab_runtime::{CellFigures, Context, DeviceConfig};

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
    pub(crate) context: Arc<Context>,
    pub(crate) interpreter: Interpreter,
    pub(crate) interrupt: Interrupt,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) past: Vec<Past>,
    pub(crate) watch: Watch,
    /// Characters in a line of the face.
    pub(crate) columns: usize,
    pub(crate) keep_outputs: bool,
    /// What `_` stands for.
    pub(crate) last_output: Option<u32>,
    /// The report of the last cell that ran something.
    pub(crate) last_report: MemoryReport,
    pub(crate) last_error: Option<LastError>,
    /// Pool and mode before the last switch, for `%smi`.
    pub(crate) before_switch: Option<(ModeSpec, u64)>,
    /// Text that the next cell should begin with (`%load`).
    pub(crate) next_input: Option<String>,
    pub(crate) exit: bool,
    /// What this process is called before others at the device.
    pub(crate) process: String,
    /// When the session began, in seconds since 1970.
    pub(crate) since: u64,
    /// The cell at hand.
    pub(crate) running: Running,
    surroundings: Arc<Surroundings>,
    input: Option<Input>,
    notes: Vec<String>,
    requested_before: u64,
    last_cell: u32,
}

/// For a face that does not say how wide it is.
const USUAL_COLUMNS: usize = 80;

/// What `%why` explains.
#[derive(Clone, Debug)]
pub(crate) struct LastError {
    pub error: CellError,
    pub is_out_of_memory: bool,
    pub jit_passes: Option<String>,
    /// User code had begun to run.
    pub ran: bool,
}

/// What is known of a cell while it runs.
#[derive(Default)]
pub(crate) struct Running {
    pub cell: u32,
    pub source: String,
    /// Conditions to check when it ends.
    pub expectations: Vec<Expectation>,
    /// The cell has deeds of its own for `%expect` to judge.
    pub has_deeds: bool,
    /// What the table must say beside its figures.
    pub notes: Vec<String>,
    /// What a compiled program would do where the cell ran out of memory.
    pub jit_passes: Option<String>,
    /// Files that `%run` is in the middle of.
    pub files: Vec<std::path::PathBuf>,
}

/// How a cell's parts ended.
#[derive(Default)]
struct Ended {
    error: Option<CellError>,
    /// User code ran, beyond definitions.
    ran: bool,
}

impl Session {
    /// Nothing slow happens here: no memory is taken and no thread started before a cell needs it.
    ///
    /// # Errors
    /// A setting that is not understood, with the valid words; a capacity that the machine lacks.
    pub fn new(config: Config) -> Result<Session, String> {
        let settings = config.resolve()?;
        let context = open(&config, &settings)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let interrupt = Interrupt::of(context.interrupt_flag());
        Ok(Session {
            surroundings: Arc::new(Surroundings::new(interrupt.clone())),
            interrupt,
            context,
            interpreter: Interpreter::new(),
            process: config.process_name().to_string(),
            since,
            env: config.env,
            past: Vec::new(),
            watch: settings.watch,
            columns: USUAL_COLUMNS,
            keep_outputs: true,
            last_output: None,
            last_report: MemoryReport::default(),
            last_error: None,
            before_switch: None,
            next_input: None,
            exit: false,
            running: Running::default(),
            input: None,
            notes: settings.notes,
            requested_before: 0,
            last_cell: 0,
        })
    }

    /// Runs a cell. Events are delivered in order while it runs; a failure is an event too, and is
    /// repeated in the result.
    pub fn execute(&mut self, code: &str, sink: &mut dyn FnMut(Event)) -> CellResult {
        let engine: Arc<dyn ir::Engine> = self.context.clone();
        let surroundings = self.surroundings.clone();
        with_engine(engine, || {
            with_host(surroundings, || self.execute_here(code, &mut Sink::new(sink)))
        })
    }

    fn execute_here(&mut self, code: &str, sink: &mut Sink) -> CellResult {
        let started = Instant::now();
        self.context.clear_interrupt();
        self.last_cell += 1;
        let cell = self.last_cell;
        let parts = self.parts(code);
        let has_rust = parts.has_rust();
        let has_deeds = parts.has_deeds();
        self.running = Running { cell, source: code.into(), has_deeds, ..Running::default() };
        self.context.cell_begin(cell);
        let mut ended = self.run_guarded(&parts, started, sink);
        let figures = self.context.cell_end();
        let tier = if has_rust || ended.ran { Tier::Instant } else { Tier::Command };
        let wall_ns = started.elapsed().as_nanos() as u64;
        let memory = self.memory(&figures, wall_ns, tier);
        self.check_expectations(&memory, &mut ended, sink);
        let status = status_of(ended.error.as_ref());
        self.remember(code, status, &ended, &memory);
        if shows_table(&ended, &memory) {
            sink.send(Event::Memory(Box::new(memory.clone())));
        }
        CellResult {
            cell,
            status,
            tier,
            wall_ns,
            error: ended.error,
            memory,
            next_input: self.next_input.take(),
            exit: self.exit,
        }
    }

    fn parts(&self, code: &str) -> Parts {
        split(code, &|name| self.interpreter.has_variable(name))
    }

    /// What a report says of the cell at hand beside its figures.
    pub(crate) fn around(&self) -> Around {
        Around {
            cell: self.running.cell,
            wall_ns: 0,
            tier: Tier::Command,
            watch: self.watch,
            before: self.requested_before,
        }
    }

    fn memory(&mut self, figures: &CellFigures, wall_ns: u64, tier: Tier) -> MemoryReport {
        let around = Around { wall_ns, tier, ..self.around() };
        let mut memory = measure::memory(&self.context, figures, &around);
        memory.notes.append(&mut self.running.notes);
        self.requested_before = memory.requested_bytes;
        memory
    }

    fn remember(&mut self, code: &str, status: Status, ended: &Ended, memory: &MemoryReport) {
        let cell = self.running.cell;
        self.past.push(Past { cell, source: code.to_string(), status });
        if let Some(error) = &ended.error {
            self.keep_error(error, ended.ran);
        }
        if ended.ran {
            // A later cell that ran is the news.
            if let Some(last) = self.last_error.as_mut().filter(|last| last.error.cell != cell) {
                last.ran = false;
            }
            self.last_report = memory.clone();
        }
    }

    /// For `%why`.
    pub(crate) fn keep_error(&mut self, error: &CellError, ran: bool) {
        let is_out_of_memory = error.kind == ir::FaultKind::OutOfMemory.code();
        let jit_passes = self.running.jit_passes.take();
        let error = error.clone();
        self.last_error = Some(LastError { error, is_out_of_memory, jit_passes, ran });
    }

    /// A panic of ours costs the cell, not the session: what it had made is dropped on the way, and
    /// the layers below keep no half-made state behind their locks.
    fn run_guarded(&mut self, parts: &Parts, started: Instant, sink: &mut Sink) -> Ended {
        let run = AssertUnwindSafe(|| self.run_magics(parts, started, sink));
        match catch_unwind(run) {
            Ok(ended) => ended,
            Err(payload) => {
                let words = payload.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| payload.downcast_ref::<&str>().copied());
                let message = format!("a fault of vramlab: {}", words.unwrap_or("no words"));
                let refusal = Refusal { kind: "internal", ..Refusal::new(message) }
                    .help("the session goes on; the cell that did this is worth a report");
                Ended { ran: true, ..self.ended_by(refusal, sink) }
            }
        }
    }

    /// `%%time` and `%%capture` around the rest of the cell.
    fn run_magics(&mut self, parts: &Parts, started: Instant, sink: &mut Sink) -> Ended {
        for magic in &parts.magics {
            if let Err(refusal) = known_magic(magic) {
                return self.ended_by(refusal, sink);
            }
        }
        let capture = parts.magics.iter().find(|magic| magic.name == "capture");
        let ended = match capture {
            Some(magic) => self.run_captured(parts, &magic.arguments, sink),
            None => self.run_parts(parts, sink),
        };
        if parts.magics.iter().any(|magic| magic.name == "time") {
            sink.say(format!("wall {}", report::duration(started.elapsed().as_nanos() as u64)));
        }
        ended
    }

    /// Outputs are kept from the face, errors are not; a name gets them as a `String`.
    fn run_captured(&mut self, parts: &Parts, name: &str, sink: &mut Sink) -> Ended {
        let mut text = String::new();
        let mut errors = Vec::new();
        let mut keep = |event: Event| match event {
            Event::Stdout(piece) | Event::Stderr(piece) => text.push_str(&piece),
            Event::Value { content, .. } | Event::Display { content, .. } => {
                text.push_str(&content.text);
                text.push('\n');
            }
            Event::Error(error) => errors.push(error),
            _ => {}
        };
        let ended = self.run_parts(parts, &mut Sink::new(&mut keep));
        for error in errors {
            sink.send(Event::Error(error));
        }
        if !name.is_empty() {
            let cell = self.running.cell;
            let kept = self.interpreter.insert(name, "String", Dyn::Text(text.into()), cell);
            kept.expect("String is a type of every cell");
        }
        ended
    }

    fn run_parts(&mut self, parts: &Parts, sink: &mut Sink) -> Ended {
        match self.run_in_order(parts, sink) {
            Ok(effect) => Ended { error: None, ran: effect == Effect::Ran },
            Err(Failed { error, ran }) => {
                sink.send(Event::Error(Box::new(error.clone())));
                Ended { error: Some(error), ran }
            }
        }
    }

    /// Nothing runs unless every command is known and the Rust of the whole cell is right.
    fn check_before(&self, parts: &Parts) -> Result<(), CellError> {
        let mut changes_names = false;
        for part in parts.parts.iter().filter(|part| part.kind == PartKind::Command) {
            let (name, arguments) = cut_word(&part.text);
            let command = commands::lookup(name).map_err(|r| self.refused(&r, Some(part)))?;
            changes_names |= command.changes_names;
            if let Some(check) = command.check {
                check(arguments).map_err(|refusal| self.refused(&refusal, Some(part)))?;
            }
        }
        let rust = parts.parts.iter().filter(|part| part.kind == PartKind::Rust);
        if changes_names || rust.clone().count() < 2 {
            return Ok(());
        }
        let mut whole = String::new();
        for part in rust {
            pad_lines(&mut whole, part.line);
            whole.push_str(&part.text);
        }
        self.prepare(&whole, 1).map(|_| ())
    }

    fn run_part(&mut self, part: &Part, sink: &mut Sink) -> Result<Effect, Failed> {
        match part.kind {
            PartKind::Rust => self.run_rust(&part.text, part.line, sink),
            PartKind::Command => {
                let (name, arguments) = cut_word(&part.text);
                let done = commands::lookup(name)
                    .and_then(|command| (command.action)(self, arguments, sink));
                done.map_err(|refusal| self.failed(refusal, part))
            }
            PartKind::Shell => {
                let ran = shell::run(&part.text, &self.env, &self.interrupt, sink);
                match ran.map_err(|why| self.failed(Refusal::new(why), part))? {
                    _ if self.interrupt.is_raised() => {
                        Err(self.failed(Refusal::interrupted("the shell line was stopped"), part))
                    }
                    Some(status) => {
                        sink.send(Event::Stderr(format!(" {status}\n")));
                        Ok(Effect::Told)
                    }
                    None => Ok(Effect::Told),
                }
            }
            PartKind::Question => match inspect::name(self, &part.text) {
                Some(content) => {
                    sink.show(content);
                    Ok(Effect::Told)
                }
                None => {
                    let refusal = Refusal::new(inspect::unknown_name(self, &part.text));
                    Err(self.failed(refusal, part))
                }
            },
        }
    }

    /// Statements of the cell at hand, from its line `line` on.
    pub(crate) fn run_rust(
        &mut self,
        text: &str,
        line: u32,
        sink: &mut Sink,
    ) -> Result<Effect, Failed> {
        let (prepared, _) = self.prepare(text, line).map_err(Failed::before)?;
        let only_items = only_items(text);
        let watched = drops::watch(&self.context, text);
        let shown = self.run_prepared(prepared, sink).map_err(Failed::within)?;
        self.running.notes.extend(drops::notes(&self.context, watched));
        if let Some(shown) = shown {
            self.show(shown, sink);
        }
        Ok(if only_items { Effect::Told } else { Effect::Ran })
    }

    /// A cell of a file, within the cell at hand.
    pub(crate) fn run_nested(&mut self, code: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
        let outer = std::mem::replace(&mut self.running.source, code.to_string());
        let had_deeds = self.running.has_deeds;
        let parts = self.parts(code);
        self.running.has_deeds |= parts.has_deeds();
        let ran = self.run_in_order(&parts, sink);
        self.running.source = outer;
        self.running.has_deeds = had_deeds;
        ran.map_err(Refusal::from)
    }

    fn run_in_order(&mut self, parts: &Parts, sink: &mut Sink) -> Result<Effect, Failed> {
        if let Some(magic) = parts.magics.first().filter(|_| !self.running.files.is_empty()) {
            let text = format!("a cell with %%{} runs only by itself", magic.name);
            return Err(Failed::before(self.refused(&Refusal::new(text), None)));
        }
        self.check_before(parts).map_err(Failed::before)?;
        let mut effect = Effect::Told;
        for part in &parts.parts {
            match self.run_part(part, sink) {
                Ok(Effect::Ran) => effect = Effect::Ran,
                Ok(Effect::Told) => {}
                Err(failed) => {
                    return Err(Failed { ran: failed.ran || effect == Effect::Ran, ..failed });
                }
            }
        }
        Ok(effect)
    }

    /// Checks statements without running them.
    pub(crate) fn prepare(
        &self,
        text: &str,
        line: u32,
    ) -> Result<(Prepared, Rewritten), CellError> {
        let mut padded = String::new();
        pad_lines(&mut padded, line);
        padded.push_str(text);
        let rewritten = rewrite(&padded, self.last_output);
        let missing = rewritten.used.iter().find(|number| !self.has_output(**number));
        if let Some(number) = missing {
            return Err(self.missing_output(*number));
        }
        match self.interpreter.prepare(&rewritten.text, self.running.cell) {
            Ok(prepared) => Ok((prepared, rewritten)),
            Err(diagnostic) => {
                let cell = self.running.cell;
                Err(failure::of_diagnostic(*diagnostic, &rewritten, &padded, cell))
            }
        }
    }

    /// Blanks for what stands before a command's code in the line that was typed, so that errors point
    /// where the code is.
    pub(crate) fn typed_before(&self, code: &str) -> String {
        let source = &self.running.source;
        let before = source.find(code).map_or("", |at| &source[..at]);
        let line = before.rsplit('\n').next().unwrap_or("");
        " ".repeat(line.chars().count())
    }

    fn has_output(&self, number: u32) -> bool {
        self.interpreter.has_variable(&out_name(number))
    }

    fn missing_output(&self, number: u32) -> CellError {
        let kept: Vec<String> =
            self.outputs().iter().map(|(number, _)| format!("Out[{number}]")).collect();
        let message = match kept.is_empty() {
            true => format!("there is no Out[{number}]; no output is kept"),
            false => format!("there is no Out[{number}]; kept are {}", kept.join(", ")),
        };
        self.refused(&Refusal { kind: "E0425", ..Refusal::new(message) }, None)
    }

    /// Runs what was checked; the value, if it has one.
    pub(crate) fn run_prepared(
        &mut self,
        prepared: Prepared,
        sink: &mut Sink,
    ) -> Result<Option<Shown>, CellError> {
        let mut host = SessionHost { sink, input: &mut self.input, interrupt: &self.interrupt };
        let outcome = self.interpreter.run(prepared, &mut host);
        self.surroundings.take().into_iter().for_each(|event| sink.send(event));
        match outcome.error {
            None => Ok(outcome.value),
            Some(fault) => {
                let calling = outcome.failed_at;
                if let (ir::FaultKind::OutOfMemory, Some(span)) = (fault.kind, calling) {
                    self.running.jit_passes = jit_trial::passing(self, failure::of_span(span));
                }
                Err(failure::of_fault(&fault, calling, &self.context, &self.running))
            }
        }
    }

    /// Shows a value and keeps it as `Out[n]`.
    fn show(&mut self, shown: Shown, sink: &mut Sink) {
        if matches!(shown.value, Dyn::Unit) {
            return;
        }
        let keeps = self.keep_outputs && !shown.is_variable;
        let number = keeps.then_some(self.running.cell);
        let readable = value::readable(&shown.value);
        let text = readable.as_deref().unwrap_or(&shown.text);
        sink.send(Event::Value { number, content: value::content(&shown.value, text) });
        let Some(number) = number else { return };
        if !shown.ty.starts_with('&') {
            value::own(&format!("Out[{number}]"), &shown.value);
        }
        // A type without a name (a closure's) cannot be kept; it was shown all the same.
        if self.interpreter.keep_output(&out_name(number), shown, number).is_ok() {
            self.last_output = Some(number);
        }
    }

    fn check_expectations(&mut self, memory: &MemoryReport, ended: &mut Ended, sink: &mut Sink) {
        for expectation in std::mem::take(&mut self.running.expectations) {
            if ended.error.is_some() {
                return;
            }
            match expectation.check(memory) {
                Ok(line) => sink.say(line),
                Err(why) => {
                    let refusal = Refusal { kind: "expect", ..Refusal::new(why) };
                    *ended = Ended { ran: ended.ran, ..self.ended_by(refusal, sink) };
                }
            }
        }
    }

    fn ended_by(&self, refusal: Refusal, sink: &mut Sink) -> Ended {
        let error = self.refused(&refusal, None);
        sink.send(Event::Error(Box::new(error.clone())));
        Ended { error: Some(error), ran: false }
    }

    fn failed(&self, refusal: Refusal, part: &Part) -> Failed {
        match refusal.from_code {
            Some(failed) => *failed,
            None => Failed::before(self.refused(&refusal, Some(part))),
        }
    }

    fn refused(&self, refusal: &Refusal, part: Option<&Part>) -> CellError {
        failure::of_refusal(refusal, part, &self.running)
    }

    /// What may stand at `position` (bytes) of `code`.
    pub fn complete(&self, code: &str, position: usize) -> Completions {
        complete::at(self, code, position)
    }

    /// What is known of the name at `position` (bytes) of `code`.
    pub fn inspect(&self, code: &str, position: usize) -> Option<Content> {
        inspect::at(self, code, position)
    }

    /// Whether `code` is a whole cell.
    pub fn completeness(&self, code: &str) -> Completeness {
        let parts = self.parts(code);
        let rust: String = match parts.parts.last() {
            Some(part) if part.kind == PartKind::Rust => part.text.clone(),
            _ => return Completeness::Complete,
        };
        match vramlab_cells::completeness(&rust) {
            vramlab_cells::Completeness::Complete => Completeness::Complete,
            vramlab_cells::Completeness::Incomplete { indent } => {
                Completeness::Incomplete { indent }
            }
            vramlab_cells::Completeness::Invalid => Completeness::Invalid,
        }
    }

    /// What stops a running cell from elsewhere.
    pub fn interrupt_handle(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// How many characters a line of the face holds: for strips and sparklines.
    pub fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// What leaves the device for a process that ends without dropping its session.
    pub fn parting(&self) -> Parting {
        Parting(self.context.clone())
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

    /// Writes the device's memory and its events into a file, for another tool; says what was written.
    ///
    /// # Errors
    /// An unknown format, with the valid ones; a file that cannot be written.
    pub fn export(&self, format: &str, path: &str) -> Result<String, String> {
        let format = vramlab_export::find(format)?;
        crate::export::to_file(&self.context, format, path, &self.interrupt)
    }

    /// The greeting: version, device, mode, and what the environment asked for.
    pub fn banner(&self) -> String {
        let version = env!("CARGO_PKG_VERSION").rsplit_once('.').map_or("", |(short, _)| short);
        let mode = self.context.mode();
        let limit = vramlab_memory::stack::limit(&mode, self.context.capacity());
        let mut text = format!(
            "vramlab {version} · {} ({}) · {mode}, limit {}\nCells are Rust. %tour teaches, %help lists, Ctrl-D leaves.",
            self.context.device_name(),
            self.context.device_description(),
            report::mib_short(limit)
        );
        if let Some(line) = commands::company_line(self) {
            text.push_str(&format!("\n{line}"));
        }
        for note in self.notes() {
            text.push_str(&format!("\nnote: {note}"));
        }
        text
    }

    /// What the user should know before the first cell: a smaller device, a variable read otherwise
    /// than JAX would.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.context.device_remarks().iter().chain(&self.notes).map(String::as_str)
    }

    /// Session variables, outputs not among them.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        let mut all = self.interpreter.variables();
        all.retain(|variable| out_number(&variable.name).is_none());
        all
    }

    /// Kept outputs by number.
    pub(crate) fn outputs(&self) -> Vec<(u32, Variable)> {
        let all = self.interpreter.variables().into_iter();
        let mut outputs: Vec<(u32, Variable)> = all
            .filter(|variable| variable.moved.is_none())
            .filter_map(|variable| Some((out_number(&variable.name)?, variable)))
            .collect();
        outputs.sort_by_key(|(number, _)| *number);
        outputs
    }
}

/// Leaves the device of a session from elsewhere; see [`Session::parting`].
#[derive(Clone)]
pub struct Parting(Arc<Context>);

impl Parting {
    /// What the session held is the others' from here on. Only for the end of the process.
    pub fn leave(&self) {
        self.0.leave_device();
    }
}

impl Drop for Session {
    /// Values go before the device they live on; a shared device is left at once, whoever still has a hand on it.
    fn drop(&mut self) {
        self.interpreter = Interpreter::new();
        self.context.leave_device();
    }
}

/// A part that failed, and whether user code had begun to run.
#[derive(Clone, Debug)]
pub struct Failed {
    pub error: CellError,
    pub ran: bool,
}

impl Failed {
    pub(crate) fn before(error: CellError) -> Failed {
        Failed { error, ran: false }
    }

    pub(crate) fn within(error: CellError) -> Failed {
        Failed { error, ran: true }
    }
}

fn open(config: &Config, settings: &Settings) -> Result<Arc<Context>, String> {
    let device = match &settings.device {
        Device::Cpu { capacity } => DeviceConfig::Cpu { capacity: *capacity },
        Device::Dry { capacity } => DeviceConfig::Dry { capacity: *capacity },
        Device::Shared { name, dry, capacity } => {
            DeviceConfig::Shared(config.shared_device(name, *dry, *capacity))
        }
    };
    let mode = settings.mode.clone();
    Context::new(vramlab_runtime::Config { device, mode, ..vramlab_runtime::Config::default() })
}

fn known_magic(magic: &Magic) -> Result<(), Refusal> {
    match magic.name.as_str() {
        "time" | "capture" => Ok(()),
        name => {
            let text = crate::config::unknown("cell magic", name, ["time", "capture"]);
            Err(Refusal::new(text).help("a command for one line begins with a single %"))
        }
    }
}

/// Empty lines up to `line`, so that spans count from the cell's first line.
fn pad_lines(text: &mut String, line: u32) {
    let have = text.matches('\n').count() as u32 + 1;
    if !text.is_empty() && !text.ends_with('\n') && have < line {
        text.push('\n');
    }
    for _ in text.matches('\n').count() as u32 + 1..line {
        text.push('\n');
    }
}

fn status_of(error: Option<&CellError>) -> Status {
    match error {
        None => Status::Ok,
        Some(error) if error.kind == ir::FaultKind::Interrupted.code() => Status::Interrupted,
        Some(_) => Status::Error,
    }
}

/// A table follows what ran. The account of a failed allocation has all figures itself.
fn shows_table(ended: &Ended, memory: &MemoryReport) -> bool {
    let is_oom = ended.error.as_ref().is_some_and(|e| e.kind == ir::FaultKind::OutOfMemory.code());
    memory.watch != Watch::Off && ended.ran && !is_oom
}
