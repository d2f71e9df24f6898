//! Keys at the prompt, on a real pseudo-terminal.

use crate::binary::{self, Folder};
use crate::terminal::Terminal;

fn start(options: &[&str]) -> Terminal {
    let mut command = binary::command(options);
    command.arg("--no-history").env("TERM", "xterm");
    let terminal = Terminal::start(command, 100);
    terminal.wait_for_prompt(1);
    terminal
}

fn leave(mut terminal: Terminal) {
    terminal.keys("\x04");
    assert!(terminal.end());
}

#[test]
fn enter_waits_until_the_cell_is_whole() {
    let mut terminal = start(&[]);
    terminal.keys("let mut n = 0;\r");
    terminal.wait_for_prompt(2);
    terminal.keys("for i in 0..4 {\r    n += i;\r}\r");
    terminal.wait_for_prompt(3);
    terminal.keys("n\r");
    terminal.wait_for_prompt(4);
    assert!(terminal.lines().iter().any(|line| line == "6"), "{:#?}", terminal.lines());
    leave(terminal);
}

#[test]
fn a_pasted_cell_is_one_cell() {
    let mut terminal = start(&[]);
    terminal.keys("\x1b[200~let a = 20;\nlet b = 22;\na + b\x1b[201~\r");
    terminal.wait_for_prompt(2);
    assert!(terminal.lines().iter().any(|line| line == "42"), "{:#?}", terminal.lines());
    leave(terminal);
}

#[test]
fn interrupt_clears_the_prompt_and_stops_a_cell() {
    let mut terminal = start(&[]);
    terminal.keys("let x = zeros([4");
    terminal.wait_for_text("zeros([4");
    terminal.keys("\x03");
    terminal.wait_for_prompt(1);
    terminal.keys("let x = ones([4]);\r");
    terminal.wait_for_prompt(2);
    terminal.keys("loop {}\r");
    // The terminal echoes nothing while a cell runs; a moment for the loop to begin.
    std::thread::sleep(std::time::Duration::from_millis(200));
    terminal.keys("\x03");
    terminal.wait_for_text("error[interrupted]");
    terminal.wait_for_prompt(3);
    terminal.keys("x.sum().item()\r");
    terminal.wait_for_prompt(4);
    assert!(terminal.lines().iter().any(|line| line == "4.0"), "{:#?}", terminal.lines());
    leave(terminal);
}

#[test]
fn tab_completes_with_types() {
    let mut terminal = start(&[]);
    terminal.keys("%wat\t");
    terminal.wait_for_text("%watch");
    terminal.keys(" of\t\r");
    terminal.wait_for_prompt(2);
    terminal.wait_for_text("watch off");
    terminal.keys("let x = ones([4]);\r");
    terminal.wait_for_prompt(3);
    terminal.keys("x.argm\t");
    terminal.wait_for_text("argmax");
    terminal.wait_for_text("argmin");
    terminal.wait_for_text("-> Array");
    terminal.keys("\x03");
    terminal.wait_for_prompt(3);
    terminal.keys("%exit\r");
    assert!(terminal.end());
}

#[test]
fn history_is_kept_between_sessions() {
    let home = Folder::new("history");
    let with_home = || {
        let mut command = binary::command(&[]);
        command.env("TERM", "xterm").env("XDG_STATE_HOME", &home.0);
        let terminal = Terminal::start(command, 100);
        terminal.wait_for_prompt(1);
        terminal
    };
    let mut terminal = with_home();
    terminal.keys("println!(\"remembered\");\r");
    terminal.wait_for_prompt(2);
    leave(terminal);
    let mut terminal = with_home();
    terminal.keys("\x1b[A\r");
    terminal.wait_for_prompt(2);
    assert!(terminal.lines().iter().any(|line| line == "remembered"), "{:#?}", terminal.lines());
    leave(terminal);
}

#[test]
fn a_question_of_the_cell_is_answered_by_a_line() {
    let mut terminal = start(&[]);
    terminal.keys("let name = input(\"name? \");\r");
    terminal.wait_for_line("name?");
    terminal.keys("Ada\r");
    terminal.wait_for_prompt(2);
    terminal.keys("name.len()\r");
    terminal.wait_for_prompt(3);
    assert!(terminal.lines().iter().any(|line| line == "3"), "{:#?}", terminal.lines());
    leave(terminal);
}

#[test]
fn a_pipe_and_no_color_get_plain_text() {
    let output = binary::run(&["-c", "%mem"], "");
    assert!(!binary::stdout(&output).contains('\x1b'));
    let output = binary::run(&["-c", "%moed"], "");
    assert!(!binary::stderr(&output).contains('\x1b'));
}
