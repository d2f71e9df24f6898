//! Recorded memory of other programs, read as data.
//!
//! Bytes come in (the caller reads the file), values and steps go out. Nothing that a file says is ever executed.

pub mod own;
pub mod pickle;
pub mod torch;
