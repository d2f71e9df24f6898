//! Events as a terminal shows them: text to standard output, errors to standard error, tables drawn.

use crate::paint::{Ink, Paint};
use std::io::{IsTerminal, Write};
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::peaker::Priority;
use tabled::settings::style::Style;
use tabled::settings::{Alignment, Modify, Padding, Width};
use vramlab_session::{CellError, Content, Event, MemoryReport, Table, Watch, report};

pub struct Face {
    paint: Paint,
    /// A progress line stands on the terminal and must go before anything else is written.
    progress: bool,
    /// The last text ended without a line end.
    open_line: bool,
}

/// For a face that is no terminal: what a terminal of the usual width shows.
const USUAL_WIDTH: usize = 80;

impl Face {
    pub fn new() -> Face {
        Face { paint: Paint::of_stdout(), progress: false, open_line: false }
    }

    pub fn show(&mut self, event: Event) {
        match event {
            Event::Progress { label, fraction } => self.progress(&label, fraction),
            Event::Stdout(text) => self.write(&text),
            Event::Stderr(text) => self.write_error(&text),
            Event::Value { content, .. } | Event::Display { content, .. } => self.content(&content),
            Event::Error(error) => self.error(&error),
            Event::Memory(report) => self.memory(&report),
            Event::ClearOutput { .. } => {}
        }
    }

    /// A line of our own.
    pub fn line(&mut self, text: &str) {
        self.end_line();
        self.write(&format!("{text}\n"));
    }

    /// A line of our own that is no output.
    pub fn warn(&mut self, text: &str) {
        self.end_line();
        self.write_error(&format!("{text}\n"));
    }

    /// The prompt and the cell, as if it had been typed.
    pub fn echo(&mut self, prompt: &str, source: &str) {
        let indent = format!("\n{}", " ".repeat(prompt.chars().count()));
        let painted = self.paint.cell(source).replace('\n', &indent);
        let prompt = self.paint.text(Ink::Prompt, prompt).into_owned();
        self.line(&format!("{prompt}{painted}"));
    }

    /// Before a prompt: whatever is on the line is closed.
    pub fn end_line(&mut self) {
        self.clear_progress();
        if self.open_line {
            self.write("\n");
        }
    }

    /// A reader that went away (`| head`) is no reason to fail: what it does not want is dropped.
    fn write(&mut self, text: &str) {
        self.clear_progress();
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if let Some(last) = text.chars().last() {
            self.open_line = last != '\n';
        }
    }

    fn write_error(&mut self, text: &str) {
        self.clear_progress();
        let mut out = std::io::stderr().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn content(&mut self, content: &Content) {
        let text = match &content.table {
            Some(table) => self.draw(table),
            None => content.text.clone(),
        };
        if !text.is_empty() {
            self.line(text.trim_end_matches('\n'));
        }
    }

    fn error(&mut self, error: &CellError) {
        self.end_line();
        // The terminal has echoed ^C on a line of its own making.
        if error.kind == "interrupted" && std::io::stderr().is_terminal() {
            self.write_error("\n");
        }
        let text = &error.rendered;
        let (heading, rest) = text.split_once('\n').unwrap_or((text, ""));
        let heading = self.paint.text(Ink::Error, heading).into_owned();
        let rest = if rest.is_empty() { String::new() } else { format!("\n{rest}") };
        self.write_error(&format!("{heading}{rest}\n"));
    }

    fn memory(&mut self, memory: &MemoryReport) {
        if memory.watch == Watch::Off {
            return;
        }
        for table in report::tables(memory, width() - 1) {
            let text = self.draw(&table);
            self.line(&text);
        }
    }

    /// A table as `tabled` draws it: no frame, headings faint.
    fn draw(&self, table: &Table) -> String {
        let mut lines = Vec::new();
        lines.extend(table.title.iter().map(|title| format!(" {title}")));
        let has_header = table.header.iter().any(|name| !name.is_empty());
        let body = grid(table, has_header);
        for (index, line) in body.lines().enumerate() {
            let line = line.trim_end();
            lines.push(match index == 0 && has_header {
                true => self.paint.text(Ink::Faint, line).into_owned(),
                false => line.to_string(),
            });
        }
        lines.extend(table.footer.iter().map(|note| format!(" {note}")));
        lines.join("\n")
    }

    fn progress(&mut self, label: &str, fraction: f64) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        self.end_line();
        let mut out = std::io::stderr().lock();
        let _ =
            write!(out, "\r {label} {:.0} %\x1b[K", fraction * 100.0).and_then(|()| out.flush());
        self.progress = true;
    }

    fn clear_progress(&mut self) {
        if std::mem::take(&mut self.progress) {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K").and_then(|()| out.flush());
        }
    }
}

fn grid(table: &Table, has_header: bool) -> String {
    let mut builder = Builder::default();
    if has_header {
        builder.push_record(table.header.clone());
    }
    for row in &table.rows {
        builder.push_record(row.clone());
    }
    let mut drawn = builder.build();
    drawn.with(Style::empty()).with(Padding::new(1, 1, 0, 0)).with(Alignment::left());
    for (column, numeric) in table.numeric.iter().enumerate() {
        if *numeric {
            drawn.with(Modify::new(Columns::one(column)).with(Alignment::right()));
        }
    }
    if let Some(columns) = known_width() {
        let fit = Width::wrap(columns).keep_words(true).priority(Priority::max(true));
        drawn.with(fit);
    }
    drawn.to_string()
}

/// Columns of the terminal; `COLUMNS` wins, as in other programs. `None` for a pipe: there every
/// line is as long as it is.
fn known_width() -> Option<usize> {
    let named = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    named.filter(|columns| *columns > 0).or_else(crate::terminal_size::columns)
}

/// Columns that a line may have.
pub fn width() -> usize {
    known_width().unwrap_or(USUAL_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramlab_session::table::plain;

    #[test]
    fn the_drawn_table_reads_as_the_plain_one() {
        let mut table = Table::new(&["name", ">MiB"]);
        table.row(["x", "1.0"]);
        table.row(["weights", "128.0"]);
        table.note("note: kept");
        let face = Face { paint: Paint::of_stdout(), progress: false, open_line: false };
        assert_eq!(face.draw(&table), plain(&table));
    }
}
