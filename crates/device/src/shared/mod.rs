//! A device that several processes of one user hold together: its bytes are counted in one small file.
//!
//! Place in the flow: [`join`] finds or makes the device of a name and gives a [`Seat`]; [`SharedDriver`] stands between
//! the allocators and a leaf of this process and asks the seat before each region. Data is never shared: a peer's
//! regions are its own, only the sum of their bytes is common.
//!
//! How a dead process's share comes back:
//! - The sum is never stored. Each process has a slot with one word, what it holds, which it alone writes. What is free is
//!   the capacity less the words of the living.
//! - A process lives as long as its lock on its slot, an open-file-description lock that the system takes away with the
//!   last descriptor, however the process ends. So there is no stale lock, no heartbeat, and no process number to be
//!   mistaken for a later process of the same number; numbers and start times in a slot are only for people.
//! - One more such lock orders who changes the sum. Whoever is killed while it holds that lock has written its word or
//!   has not; there is nothing between.
//!
//! The file is read and written, not mapped: a full disk is then an error (`ENOSPC`) and not a signal, and a file that
//! somebody cut short reads as short.

mod driver;
mod folder;
mod join;
mod layout;
mod locks;
mod name;
mod seat;
mod usual;

pub use driver::SharedDriver;
pub use join::{JoinError, Joined, Joining, join};
pub use layout::Death;
pub use name::check_name;
pub use seat::{Company, KeptShare, Peer, Seat};
pub use usual::usual_folders;
