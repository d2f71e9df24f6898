//! The answer in a word, and how sure it is.

use std::fmt;
use vramlab_memory::Verdict as Live;

/// Why it failed, or why that cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A failure with the verdict that a live session would have drawn.
    Failure(Live),
    /// It failed; the text lacks the figures that would tell why.
    CannotTell,
    /// A plan or a snapshot: nothing failed.
    NoFailure,
    /// No memory failure at all.
    NotOom,
    /// The host's memory ran out, not the device's.
    HostMemory,
    /// Not a text that can be read.
    Unreadable,
}

impl Verdict {
    /// The word in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Verdict::Failure(Live::TooBig) => "too_big",
            Verdict::Failure(Live::Limit) => "limit",
            Verdict::Failure(Live::Fragmented) => "fragmented",
            Verdict::Failure(Live::OtherProcess) => "other_process",
            Verdict::Failure(Live::Cached) => "cached",
            Verdict::CannotTell => "cannot_tell",
            Verdict::NoFailure => "no_failure",
            Verdict::NotOom => "not_oom",
            Verdict::HostMemory => "host_memory",
            Verdict::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Failure(live) => live.fmt(f),
            Verdict::CannotTell => f.write_str("cannot tell"),
            Verdict::NoFailure => f.write_str("no failure"),
            Verdict::NotOom => f.write_str("not out of memory"),
            Verdict::HostMemory => f.write_str("host memory"),
            Verdict::Unreadable => f.write_str("unreadable"),
        }
    }
}

/// How the verdict was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The printed figures show it.
    Shown,
    /// It follows from figures under an assumption that the text does not state.
    Inferred,
    /// The text lacks what it would take.
    Open,
}

impl Certainty {
    /// The word in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Certainty::Shown => "shown",
            Certainty::Inferred => "inferred",
            Certainty::Open => "open",
        }
    }
}
