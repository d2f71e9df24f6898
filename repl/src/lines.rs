//! Lines of standard input that is no terminal, and whether another one is there already: who drives
//! a session through a pipe waits for an answer before the next line.

use std::io::{BufRead, Error, ErrorKind, Result};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What was read and not handed out yet. Nothing stays in the buffer of `std`, so that whether more
/// is there can be asked of the system.
static PENDING: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// A writer that sends several lines sends them closer together than this.
const PAUSE: Duration = Duration::from_millis(50);

/// The next line with its end; empty at the end of the input.
///
/// # Errors
/// As reading standard input, and bytes that are no text.
pub fn next() -> Result<String> {
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let length = loop {
        if let Some(at) = pending.iter().position(|byte| *byte == b'\n') {
            break at + 1;
        }
        let mut input = std::io::stdin().lock();
        let bytes = match input.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let count = bytes.len();
        pending.extend_from_slice(bytes);
        input.consume(count);
        if count == 0 {
            break pending.len();
        }
    };
    let line = pending.drain(..length).collect();
    String::from_utf8(line)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// Whether nothing more comes for a moment.
pub fn is_idle() -> bool {
    if !PENDING.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
        return false;
    }
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` reads and writes the one structure that it is given.
    unsafe { libc::poll(&raw mut input, 1, PAUSE.as_millis() as libc::c_int) == 0 }
}
