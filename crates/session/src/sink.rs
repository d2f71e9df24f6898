//! Where events go while a cell runs.

use crate::event::{Content, Event, Table};

/// The face's callback, with words for the common events.
pub struct Sink<'a> {
    send: &'a mut dyn FnMut(Event),
}

impl<'a> Sink<'a> {
    pub fn new(send: &'a mut dyn FnMut(Event)) -> Sink<'a> {
        Sink { send }
    }

    pub fn send(&mut self, event: Event) {
        (self.send)(event);
    }

    /// A line of standard output.
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.send(Event::Stdout(format!("{}\n", text.as_ref())));
    }

    /// Lines of an answer, each indented by one space as in the tables.
    pub fn say(&mut self, text: impl AsRef<str>) {
        let lines: Vec<String> = text.as_ref().lines().map(|line| format!(" {line}")).collect();
        self.line(lines.join("\n").trim_end_matches(' '));
    }

    pub fn table(&mut self, table: Table) {
        self.show(Content::of_table(table));
    }

    pub fn show(&mut self, content: Content) {
        self.send(Event::Display { content, id: None, update: false });
    }
}
