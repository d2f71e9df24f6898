//! `traces`: recordings of device memory, from files of any size.
//!
//! Place in the flow: below `session`, above `memory` and `picture`. A path comes in; [`open`] reads vramlab's own trace, a PyTorch
//! memory snapshot or an RMM log, each also gzipped, and gives [`Trace`]s; [`replay`] runs one through modes, [`view`]
//! says what was in it. What goes out is plain data that prints itself, in words or as JSON.
//!
//! A file is read once, as a stream, into records of one size ([`Record`]) in an unnamed temporary file ([`Spool`]).
//! All later passes (the state at the start by undoing, the peak, each mode, each size of device) read those, forward
//! or backward, so that memory is bounded by the blocks that are live and by the distinct owners, never by the file.
//!
//! What it must not know: allocators' rules (they are `memory`'s, and the same ones that run live), arrays, sessions,
//! terminals. Nothing that a file says is ever executed.

mod held;
mod live;
mod open;
mod own;
mod owners;
mod page;
mod pickle;
mod reading;
mod record;
mod replay;
mod rmm;
mod snapshot;
mod spool;
mod text;
mod trace;
mod values;
mod view;

pub use open::{Failed, open};
pub use owners::{Frame, Owners};
pub use page::page;
pub use record::{Kind, Record};
pub use replay::{Ask, Failure, LARGEST_DEVICE, Replayed, Row, SizeFrom, replay};
pub use spool::{Spool, SpoolWriter};
pub use trace::{Events, Format, Segment, Trace};
pub use view::{Moment, Owned, Placed, SegmentView, View, view};
