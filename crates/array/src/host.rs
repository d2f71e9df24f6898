//! Whoever runs the cell: where text goes, where lines come from, whether to stop. The default is
//! the process's own standard streams.

use crate::ambient::placed;
use crate::raise::or_raise;
use std::cell::RefCell;
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vramlab_ir::{Fault, FaultKind};

/// What a cell needs of its surroundings beside the device.
pub trait Host: Send + Sync {
    fn stdout(&self, text: &str);

    /// A value that the cell asked to be shown.
    fn display(&self, text: &str);

    /// # Errors
    /// An argument fault when there is nobody to ask, `Interrupted` when the user stopped.
    fn input(&self, prompt: &str) -> Result<String, Fault>;

    /// Whether the user asked to stop.
    fn interrupted(&self) -> bool;
}

/// The standard streams.
struct Standard;

impl Host for Standard {
    fn stdout(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // A closed pipe is no fault of the cell.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn display(&self, text: &str) {
        self.stdout(&format!("{text}\n"));
    }

    fn input(&self, prompt: &str) -> Result<String, Fault> {
        self.stdout(prompt);
        let mut line = String::new();
        match std::io::stdin().read_line(&mut line) {
            Ok(0) => Err(Fault::new(FaultKind::Argument, "input", "standard input is at its end")),
            Ok(_) => Ok(line.trim_end_matches(['\n', '\r']).to_string()),
            Err(error) => Err(Fault::new(FaultKind::Argument, "input", error.to_string())),
        }
    }

    fn interrupted(&self) -> bool {
        false
    }
}

thread_local! {
    static HOST: RefCell<Option<Arc<dyn Host>>> = const { RefCell::new(None) };
}

/// Runs `body` with `host` as this thread's host.
pub fn with_host<T>(host: Arc<dyn Host>, body: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<dyn Host>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            HOST.set(self.0.take());
        }
    }
    let _restore = Restore(HOST.replace(Some(host)));
    body()
}

pub(crate) fn host() -> Arc<dyn Host> {
    HOST.with_borrow(Clone::clone).unwrap_or_else(|| Arc::new(Standard))
}

/// Shows a value: in a notebook as rich output, in a terminal as text.
pub fn display<T: fmt::Display + ?Sized>(value: &T) {
    host().display(&value.to_string());
}

/// Asks the user for a line.
#[track_caller]
pub fn input(prompt: &str) -> String {
    or_raise(host().input(prompt))
}

/// Waits; an interrupt ends the wait.
#[track_caller]
pub fn sleep(seconds: f64) {
    or_raise(wait(seconds));
}

/// How long an interrupt may go unnoticed.
const STEP: Duration = Duration::from_millis(5);

pub(crate) fn wait(seconds: f64) -> Result<(), Fault> {
    let Ok(length) = Duration::try_from_secs_f64(seconds) else {
        let message = format!("{seconds} is not a time to wait, in seconds");
        return Err(placed(Fault::new(FaultKind::Argument, "sleep", message)));
    };
    let host = host();
    let begun = Instant::now();
    while let Some(rest) = length.checked_sub(begun.elapsed()).filter(|rest| !rest.is_zero()) {
        if host.interrupted() {
            return Err(placed(Fault::new(FaultKind::Interrupted, "sleep", "interrupted")));
        }
        std::thread::sleep(rest.min(STEP));
    }
    Ok(())
}
