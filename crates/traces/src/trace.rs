//! A recording of one device, ready to be read any number of times.

use crate::owners::Owners;
use crate::record::Record;
use crate::spool::Spool;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use vramlab_memory::trace::torch::TorchSegment;

/// What kind of file it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// vramlab's own.
    Own,
    /// A PyTorch memory snapshot.
    Torch,
    /// A log of RMM's logging adaptor.
    Rmm,
}

impl Format {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Format::Own => "vramlab trace",
            Format::Torch => "PyTorch memory snapshot",
            Format::Rmm => "RMM log",
        }
    }

    /// As a word of JSON.
    pub fn key(self) -> &'static str {
        match self {
            Format::Own => "vramlab",
            Format::Torch => "pytorch",
            Format::Rmm => "rmm",
        }
    }
}

/// Events in order, shared by all who read them.
#[derive(Clone, Debug)]
pub struct Events {
    pub(crate) spool: Arc<Spool>,
    pub(crate) range: Range<u64>,
}

impl Events {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Hands out the events in order, each with its number from 0, until `take` says no.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn each(&self, mut take: impl FnMut(u64, &Record) -> bool) -> io::Result<()> {
        let first = self.range.start;
        self.spool.each(self.range.clone(), |index, record| take(index - first, record))
    }

    /// Hands out the events from the last to the first.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn each_back(&self, mut take: impl FnMut(u64, &Record)) -> io::Result<()> {
        let first = self.range.start;
        self.spool.each_back(self.range.clone(), |index, record| take(index - first, record))
    }
}

/// A range of addresses that the allocator held from the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins.
    pub base: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A recording of one device.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The file, as it was named.
    pub file: String,
    /// What kind it was.
    pub format: Format,
    /// The number of the device within the file.
    pub device: u64,
    /// The device in words, where the file says more than a number.
    pub device_name: Option<String>,
    /// Its size in bytes, where the file says so.
    pub capacity: Option<u64>,
    /// The settings that the recording program ran with, as far as the file says.
    pub settings: Option<String>,
    /// The blocks that were out when the recording began.
    pub start: Vec<Record>,
    /// The segments that were held then.
    pub start_segments: Vec<Segment>,
    /// The state at the end, as a PyTorch snapshot has it.
    pub end: Vec<TorchSegment>,
    /// Whether the file breaks off, so that its end is not known.
    pub cut: bool,
    /// The events.
    pub events: Events,
    /// Who the owners are.
    pub owners: Arc<Owners>,
    /// How many events came before the first one here.
    pub skipped: u64,
    /// The most bytes asked for at once.
    pub peak_requested: u64,
    /// What the reader has to say: where a file ends early, lines that are no events, times out of order.
    pub notes: Vec<String>,
}
