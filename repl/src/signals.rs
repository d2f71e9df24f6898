//! Ctrl-C while a cell runs: the signal raises the session's flag and does nothing else.

use std::sync::OnceLock;
use vramlab_session::Interrupt;

static TARGET: OnceLock<Interrupt> = OnceLock::new();

/// From now on an interrupt signal stops the running cell instead of the process. A second session
/// in one process keeps the first one's flag: there is one terminal.
pub fn catch(interrupt: Interrupt) {
    if TARGET.set(interrupt).is_err() {
        return;
    }
    // SAFETY: `sigaction` reads a whole, zeroed structure with an empty mask; the handler does one
    // atomic store, which is safe in a signal handler. The flag was made above and is never moved.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_interrupt as *const () as usize;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn on_interrupt(_signal: libc::c_int) {
    if let Some(interrupt) = TARGET.get() {
        interrupt.raise();
    }
}
