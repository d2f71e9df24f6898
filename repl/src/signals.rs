//! Ctrl-C: while a cell runs the signal raises the session's flag and does nothing else. While
//! cells are awaited from a pipe it ends the process, as everywhere; the prompt reads it as a key.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use vramlab_session::Interrupt;

static TARGET: OnceLock<Interrupt> = OnceLock::new();
static IS_WAITING: AtomicBool = AtomicBool::new(false);

/// From now on an interrupt signal stops the running cell instead of the process. A second session
/// in one process keeps the first one's flag: there is one terminal.
pub fn catch(interrupt: Interrupt) {
    if TARGET.set(interrupt).is_err() {
        return;
    }
    // SAFETY: `sigaction` reads a whole, zeroed structure with an empty mask; the handler stores
    // into atomics and may call `_exit`, all of which is safe in a signal handler. The flag was made
    // above and is never moved.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_interrupt as *const () as usize;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
    }
}

/// Runs `read`, which waits for input that is no key: an interrupt ends the process meanwhile.
pub fn while_waiting<T>(read: impl FnOnce() -> T) -> T {
    IS_WAITING.store(true, Ordering::Relaxed);
    let value = read();
    IS_WAITING.store(false, Ordering::Relaxed);
    value
}

/// What a shell reports of a program that an interrupt ended.
const ENDED_BY_INTERRUPT: libc::c_int = 130;

extern "C" fn on_interrupt(_signal: libc::c_int) {
    if IS_WAITING.load(Ordering::Relaxed) {
        // SAFETY: `_exit` may be called from a signal handler and does not return.
        unsafe { libc::_exit(ENDED_BY_INTERRUPT) };
    }
    if let Some(interrupt) = TARGET.get() {
        interrupt.raise();
    }
}
