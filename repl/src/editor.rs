//! The line editor's questions, answered by the session.

use crate::paint::{Ink, Paint};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use vramlab_session::{Completeness, Completion, Session};

pub struct Editor {
    pub session: Rc<RefCell<Session>>,
    pub paint: Paint,
}

impl Helper for Editor {}

impl Hinter for Editor {
    type Hint = String;
}

impl Completer for Editor {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let found = self.session.borrow().complete(line, position);
        let width = found.items.iter().map(|item| item.text.chars().count()).max().unwrap_or(0);
        Ok((found.start, found.items.into_iter().map(|item| candidate(item, width)).collect()))
    }
}

/// The name, and its signature or type beside it.
fn candidate(item: Completion, width: usize) -> Pair {
    let detail: String = item.detail.chars().take(LONGEST_DETAIL).collect();
    let display = match detail.is_empty() {
        true => item.text.clone(),
        false => format!("{:width$}  {detail}", item.text),
    };
    Pair { display, replacement: item.text }
}

const LONGEST_DETAIL: usize = 56;

impl Validator for Editor {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        Ok(match self.session.borrow().completeness(context.input()) {
            Completeness::Incomplete { .. } => ValidationResult::Incomplete,
            // What can never be right is run, so that the error says why.
            Completeness::Complete | Completeness::Invalid => ValidationResult::Valid(None),
        })
    }
}

impl Highlighter for Editor {
    fn highlight<'l>(&self, line: &'l str, _position: usize) -> Cow<'l, str> {
        self.paint.cell(line)
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _default: bool,
    ) -> Cow<'b, str> {
        Cow::Owned(self.paint.text(Ink::Prompt, prompt).into_owned())
    }

    fn highlight_char(&self, _line: &str, _position: usize, _kind: CmdKind) -> bool {
        self.paint.is_on()
    }
}
