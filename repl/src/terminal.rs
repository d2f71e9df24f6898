//! The prompt: read a cell, run it, show it, again.

use crate::editor::Editor;
use crate::face::{self, Face};
use crate::options::Options;
use crate::paint::Paint;
use crate::signals;
use rustyline::config::{BellStyle, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Cmd, DefaultEditor, KeyCode, KeyEvent, Modifiers};
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use vramlab_session::{Interrupt, Session};

type Lines = rustyline::Editor<Editor, DefaultHistory>;

/// # Errors
/// When the terminal cannot be used.
pub fn run(mut session: Session, options: &Options) -> Result<ExitCode, String> {
    let interrupt = session.interrupt_handle();
    signals::catch(interrupt.clone());
    session.set_input(Box::new(move |prompt| ask(prompt, &interrupt)));
    let mut face = Face::new();
    face.line(&session.banner());
    let session = Rc::new(RefCell::new(session));
    let mut lines = editor(session.clone()).map_err(|error| format!("the terminal: {error}"))?;
    let history = (!options.no_history).then(history_file).flatten();
    if let Some(path) = &history {
        // A first start has none; a damaged one is no reason not to start.
        let _ = lines.load_history(path);
    }
    let mut begun = String::new();
    loop {
        face.end_line();
        let prompt = format!("[{}] ", session.borrow().next_cell());
        match lines.readline_with_initial(&prompt, (&std::mem::take(&mut begun), "")) {
            Ok(cell) if cell.trim().is_empty() => {}
            Ok(cell) => {
                keep(&mut lines, &cell, history.as_ref());
                let mut session = session.borrow_mut();
                session.set_columns(face::width() - 1);
                let result = session.execute(&cell, &mut |event| face.show(event));
                begun = result.next_input.unwrap_or_default();
                if result.exit {
                    return Ok(ExitCode::SUCCESS);
                }
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {}
            Err(ReadlineError::Eof) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(format!("the terminal: {error}")),
        }
    }
}

fn editor(session: Rc<RefCell<Session>>) -> rustyline::Result<Lines> {
    let config = rustyline::Config::builder()
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .tab_stop(4)
        .max_history_size(10_000)?
        .build();
    let mut lines = Lines::with_config(config)?;
    lines.set_helper(Some(Editor { session, paint: Paint::of_stdout() }));
    // A new line within a cell that could already run.
    lines.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    Ok(lines)
}

/// Written after each cell, so that a killed session loses nothing.
fn keep(lines: &mut Lines, cell: &str, history: Option<&PathBuf>) {
    let added = lines.add_history_entry(cell).unwrap_or(false);
    if let Some(path) = history.filter(|_| added) {
        // A full disk or a read-only home costs the history, not the session.
        let _ = lines.append_history(path);
    }
}

/// `$XDG_STATE_HOME/vramlab/history`, or `~/.vramlab_history`.
fn history_file() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(state) = of("XDG_STATE_HOME") {
        let folder = state.join("vramlab");
        std::fs::create_dir_all(&folder).ok()?;
        return Some(folder.join("history"));
    }
    of("HOME").map(|home| home.join(".vramlab_history"))
}

/// `input("…")`: a line of its own editor, so that Ctrl-C ends the wait.
fn ask(prompt: &str, interrupt: &Interrupt) -> Option<String> {
    let answer = DefaultEditor::new().and_then(|mut lines| lines.readline(prompt));
    if matches!(answer, Err(ReadlineError::Interrupted)) {
        interrupt.raise();
    }
    answer.ok()
}
