//! A terminal for tests: a pseudo-terminal with the program on it, and the screen that a person
//! would see.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<Screen>>,
}

/// How long the slowest cell of a test may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Terminal {
    pub fn start(mut command: Command, columns: u16) -> Terminal {
        let (outer, inner) = open(columns);
        let stdio = || Stdio::from(inner.try_clone().expect("one more descriptor"));
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        controlling(&mut command);
        let child = command.spawn().expect("the program starts");
        drop((command, inner));
        let keyboard = File::from(outer);
        let screen = Arc::new(Mutex::new(Screen::new(columns as usize)));
        let (mut output, seen) =
            (keyboard.try_clone().expect("one more descriptor"), screen.clone());
        std::thread::spawn(move || {
            let mut buffer = [0u8; 4096];
            // Reading fails when the program has closed its side.
            while let Ok(count) = output.read(&mut buffer) {
                if count == 0 {
                    return;
                }
                seen.lock().expect("no test thread panics here").write(&buffer[..count]);
            }
        });
        Terminal { child, keyboard, screen }
    }

    pub fn keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the program reads");
    }

    /// A whole cell; its lines are parted by Alt-Enter.
    pub fn cell(&mut self, cell: &str) {
        self.keys(&cell.replace('\n', "\x1b\r"));
        self.keys("\r");
    }

    /// Lines of the screen, from the first one ever shown.
    pub fn lines(&self) -> Vec<String> {
        self.screen.lock().expect("no test thread panics here").lines()
    }

    /// Waits until the screen's last line begins like this.
    pub fn wait_for_line(&self, start: &str) {
        self.wait(&format!("a last line {start:?}"), |lines| {
            lines.last().is_some_and(|line| line.starts_with(start.trim_end()))
        });
    }

    /// Waits for an empty prompt.
    pub fn wait_for_prompt(&self, cell: usize) {
        let prompt = format!("[{cell}]");
        self.wait(&format!("the prompt {prompt}"), |lines| lines.last() == Some(&prompt));
    }

    pub fn wait_for_text(&self, text: &str) {
        self.wait(&format!("{text:?}"), |lines| lines.iter().any(|line| line.contains(text)));
    }

    fn wait(&self, what: &str, done: impl Fn(&[String]) -> bool) {
        let started = Instant::now();
        loop {
            let lines = self.lines();
            if done(&lines) {
                return;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "waited for {what}; the screen is:\n{}",
                lines.join("\n")
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the program ended well, once it has ended.
    pub fn end(mut self) -> bool {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the program can be waited for") {
                return status.success();
            }
            assert!(started.elapsed() < PATIENCE, "the program does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(columns: u16) -> (OwnedFd, OwnedFd) {
    let (mut outer, mut inner) = (-1, -1);
    let size = libc::winsize { ws_row: 200, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: openpty writes two descriptors through live pointers and reads one window size.
    let done = unsafe {
        libc::openpty(
            &raw mut outer,
            &raw mut inner,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            &raw const size,
        )
    };
    assert_eq!(done, 0, "no pseudo-terminal: {}", std::io::Error::last_os_error());
    // SAFETY: openpty has just made both, and nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(outer), OwnedFd::from_raw_fd(inner)) }
}

/// The pseudo-terminal becomes the child's own, so that Ctrl-C reaches it as a signal.
fn controlling(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let own = || {
        // SAFETY: both are plain system calls, which are allowed between fork and exec.
        let done = unsafe { libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) >= 0 };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(own) };
}

/// What a terminal shows: rows of characters, a cursor, the few sequences that programs here use.
struct Screen {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
    columns: usize,
    /// Bytes of an unfinished sequence or character.
    held: Vec<u8>,
}

impl Screen {
    fn new(columns: usize) -> Screen {
        Screen { rows: vec![Vec::new()], row: 0, column: 0, columns, held: Vec::new() }
    }

    fn lines(&self) -> Vec<String> {
        let text = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_string();
        let mut lines: Vec<String> = self.rows.iter().map(text).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    fn write(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let whole = match std::str::from_utf8(&held) {
            Ok(_) => held.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = std::str::from_utf8(&held[..whole]).expect("cut at a character");
        let mut rest = text;
        while !rest.is_empty() {
            match self.one(rest) {
                Some(length) => rest = &rest[length..],
                None => break,
            }
        }
        self.held = [rest.as_bytes(), &held[whole..]].concat();
    }

    /// Does the first character or sequence and gives its length; `None`: more must come first.
    fn one(&mut self, text: &str) -> Option<usize> {
        if let Some(body) = text.strip_prefix("\x1b[") {
            let end = body.find(|c: char| ('@'..='~').contains(&c))?;
            self.sequence(&body[..end], body[end..].chars().next()?);
            return Some(2 + end + 1);
        }
        if text.starts_with('\x1b') {
            return (text.len() > 1).then_some(2);
        }
        let c = text.chars().next()?;
        match c {
            '\r' => self.column = 0,
            '\n' => self.down(),
            '\x08' => self.column = self.column.saturating_sub(1),
            c if c.is_control() => {}
            c => self.put(c),
        }
        Some(c.len_utf8())
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.rows.len() {
            self.rows.push(Vec::new());
        }
    }

    fn put(&mut self, c: char) {
        if self.column == self.columns {
            self.column = 0;
            self.down();
        }
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = c;
        self.column += 1;
    }

    fn sequence(&mut self, parameters: &str, kind: char) {
        let count = parameters.parse::<usize>().unwrap_or(1).max(1);
        match kind {
            'A' => self.row = self.row.saturating_sub(count),
            'B' => (0..count).for_each(|_| self.down()),
            'C' => self.column = (self.column + count).min(self.columns - 1),
            'D' => self.column = self.column.saturating_sub(count),
            'G' => self.column = count - 1,
            'K' => self.rows[self.row].truncate(self.column),
            'J' => {
                self.rows[self.row].truncate(self.column);
                self.rows.truncate(self.row + 1);
            }
            _ => {}
        }
    }
}
