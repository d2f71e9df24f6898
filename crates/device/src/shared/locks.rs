//! Locks that the system takes away with their holder: open-file-description locks on byte ranges.
//!
//! The ranges lie far behind the file's end, where no data is. Between threads of one process such a lock orders
//! nothing; whoever shares a descriptor brings a lock of its own.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const BASE: i64 = 1 << 32;
/// How long the order of changes is waited for. It is held for microseconds: longer means a stopped process.
const PATIENCE: Duration = Duration::from_secs(5);

/// The range of the lock that orders changes.
const ORDER: (i64, i64) = (BASE, 1);

/// The range of a slot's lock of life.
fn life(slot: usize) -> (i64, i64) {
    (BASE + 1 + slot as i64, 1)
}

/// Whether somebody else, by another descriptor, holds the life of any of `slots` slots.
pub fn anybody_lives(file: &File, slots: usize) -> io::Result<bool> {
    is_held(file, (BASE + 1, slots as i64))
}

/// Whether somebody else lives in that slot.
pub fn lives(file: &File, slot: usize) -> io::Result<bool> {
    is_held(file, life(slot))
}

/// Takes the life of a slot for as long as `file` is open; false when somebody has it.
pub fn begin_life(file: &File, slot: usize) -> io::Result<bool> {
    take(file, life(slot))
}

/// Gives the life of a slot back.
pub fn end_life(file: &File, slot: usize) {
    give(file, life(slot));
}

/// The right to change the sum; given back when dropped.
#[must_use = "the order of changes holds as long as this value"]
pub struct Order<'a>(&'a File);

impl Drop for Order<'_> {
    fn drop(&mut self) {
        give(self.0, ORDER);
    }
}

/// Waits for the right to change the sum; `None` when somebody has kept it for seconds.
pub fn order(file: &File) -> io::Result<Option<Order<'_>>> {
    let begin = Instant::now();
    let mut tries = 0u32;
    loop {
        if take(file, ORDER)? {
            return Ok(Some(Order(file)));
        }
        tries += 1;
        match tries {
            0..64 => std::thread::yield_now(),
            _ if begin.elapsed() > PATIENCE => return Ok(None),
            _ => std::thread::sleep(Duration::from_micros(u64::from(tries.min(1000)))),
        }
    }
}

fn range(kind: libc::c_int, (start, bytes): (i64, i64)) -> libc::flock {
    // SAFETY: `flock` is a plain structure of integers, for which zeros are a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start;
    lock.l_len = bytes;
    lock
}

fn control(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the structure lives through the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn take(file: &File, at: (i64, i64)) -> io::Result<bool> {
    match control(file, libc::F_OFD_SETLK, &mut range(libc::F_WRLCK as libc::c_int, at)) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn give(file: &File, at: (i64, i64)) {
    let given = control(file, libc::F_OFD_SETLK, &mut range(libc::F_UNLCK as libc::c_int, at));
    debug_assert!(given.is_ok(), "a lock of our own can be given back: {given:?}");
}

fn is_held(file: &File, at: (i64, i64)) -> io::Result<bool> {
    let mut lock = range(libc::F_WRLCK as libc::c_int, at);
    control(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}
