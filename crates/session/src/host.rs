//! The session's side of a running cell.

use crate::event::{Content, Event};
use crate::interrupt::Interrupt;
use crate::rewrite::restore_text;
use crate::session::Input;
use crate::sink::Sink;
use crate::value;
use std::sync::Mutex;
use vramlab_array::ir::{Fault, FaultKind};
use vramlab_array::surface::Dyn;
use vramlab_cells::Host;

pub struct SessionHost<'a, 'b> {
    pub sink: &'a mut Sink<'b>,
    pub input: &'a mut Option<Input>,
    pub interrupt: &'a Interrupt,
}

impl Host for SessionHost<'_, '_> {
    fn stdout(&mut self, text: &str) {
        self.sink.send(Event::Stdout(text.to_string()));
    }

    fn stderr(&mut self, text: &str) {
        self.sink.send(Event::Stderr(text.to_string()));
    }

    fn display(&mut self, shown: &Dyn) {
        match shown {
            // As `{}` writes it.
            Dyn::Text(text) => {
                self.sink.show(Content { text: text.to_string(), ..Content::default() });
            }
            shown => self.sink.show(value::shown(shown)),
        }
    }

    fn input(&mut self, prompt: &str) -> Result<String, Fault> {
        let answer = self.input.as_mut().and_then(|ask| ask(prompt));
        if self.interrupt.is_raised() {
            return Err(Fault::new(FaultKind::Interrupted, "input", "stopped while it waited"));
        }
        answer.ok_or_else(|| {
            Fault::new(FaultKind::Argument, "input", "there is nobody to answer here")
                .help("run the cell where a line can be typed: in a terminal or a notebook")
        })
    }

    fn interrupted(&self) -> bool {
        self.interrupt.is_raised()
    }

    fn bound(&mut self, path: &str, held: &Dyn) {
        value::own(&restore_text(path), held);
    }

    fn note(&mut self, text: &str) {
        self.sink.say(text);
    }
}

/// The surroundings of functions of the prelude that are called as plain Rust: `sleep` asks here
/// whether to stop. What they say is gathered and shown when the call is over.
#[derive(Default)]
pub struct Surroundings {
    interrupt: Interrupt,
    said: Mutex<Vec<Event>>,
}

impl Surroundings {
    pub fn new(interrupt: Interrupt) -> Surroundings {
        Surroundings { interrupt, said: Mutex::default() }
    }

    /// What was said since the last call.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn say(&self, event: Event) {
        self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(event);
    }
}

impl vramlab_array::Host for Surroundings {
    fn stdout(&self, text: &str) {
        self.say(Event::Stdout(text.to_string()));
    }

    fn display(&self, text: &str) {
        self.say(Event::Stdout(format!("{text}\n")));
    }

    fn input(&self, _: &str) -> Result<String, Fault> {
        Err(Fault::new(FaultKind::Argument, "input", "only a cell itself can ask for a line"))
    }

    fn interrupted(&self) -> bool {
        self.interrupt.is_raised()
    }
}
