//! Images of loops and branches: kernels over places of their own, inside one launch.

use super::{Kernel, Place, ResultSource, Slot};

/// The inside of a loop or of a branch, compiled like a program: `Place::Argument` is one of its
/// arguments, `Place::Result` a buffer that the image around it names, `Place::Temporary` bytes of
/// the scratch that it names, `Place::Host` bytes of its scratch on the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Routine {
    pub name: String,
    pub slots: Vec<Slot>,
    pub kernels: Vec<Kernel>,
    pub results: Vec<ResultSource>,
    pub fresh_bytes: Vec<u64>,
    pub temp_bytes: u64,
    pub host_temp_bytes: u64,
}

/// A loop. The carried values lie in `storages`, of which the body's iterations take turns: before
/// the first one `inits` are copied to the first storages (nothing is done where an init lies there
/// already), and behind each one the storages change places as `next` says, so no value is moved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    pub trips: Trips,
    pub body: Routine,
    /// One for each argument of the body.
    pub arguments: Vec<Feed>,
    /// The launch's buffer with the first value of each carry.
    pub inits: Vec<u32>,
    /// The launch's buffers: one for each carry, then one for each fresh result of the body.
    pub storages: Vec<u32>,
    /// After an iteration, place i of `storages` holds what place `next[i]` held.
    pub next: Vec<u32>,
    /// The launch's buffer in which each carry must be found at the end. Where the number of
    /// iterations is known it lies there; where not, it is moved.
    pub results: Vec<u32>,
    /// The launch's buffer with `temp_bytes` of body and condition.
    pub scratch: Option<u32>,
    /// The launch's buffer with `host_temp_bytes` of body and condition, in host memory.
    pub host_scratch: Option<u32>,
}

/// How often a loop runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trips {
    /// The counter runs from 0 to `length − 1`, or back.
    Counted { length: usize, reverse: bool },
    /// As long as the one result of `condition`, a bool, holds.
    While {
        condition: Routine,
        arguments: Vec<Feed>,
        /// The launch's buffer for the result, where it is a fresh one.
        holds: u32,
    },
}

/// What an argument of a loop's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feed {
    /// A buffer of the launch, the same in every iteration.
    Buffer(u32),
    /// A carry, where it lies now.
    Carry(u32),
    /// The counter: an i32 scalar by value, only ever read.
    Counter,
}

/// One of two routines over the same arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Branch {
    /// The launch's buffer with the condition, a bool scalar.
    pub condition: u32,
    pub on_true: Routine,
    pub on_false: Routine,
    /// The launch's buffers.
    pub arguments: Vec<u32>,
    /// The launch's buffers of the results. What a routine leaves elsewhere is copied there.
    pub results: Vec<u32>,
    pub scratch: Option<u32>,
    pub host_scratch: Option<u32>,
}

impl Routine {
    /// Whether every kernel in it ends after a number of steps that is known beforehand.
    pub fn is_bounded(&self) -> bool {
        self.kernels.iter().all(Kernel::is_bounded)
    }

    /// Which arguments its kernels write into.
    pub fn arguments_written(&self) -> Vec<usize> {
        let mut written = Vec::new();
        for kernel in &self.kernels {
            for buffer in kernel.writes() {
                let slot = kernel.buffers[buffer as usize];
                if let Place::Argument { index } = self.slots[slot as usize].place {
                    written.push(index as usize);
                }
            }
        }
        written.sort_unstable();
        written.dedup();
        written
    }
}

impl Loop {
    pub(super) fn is_bounded(&self) -> bool {
        matches!(self.trips, Trips::Counted { .. }) && self.body.is_bounded()
    }

    pub(super) fn writes(&self) -> Vec<u32> {
        let written = self.body.arguments_written().into_iter();
        let fixed = written.filter_map(|argument| match self.arguments[argument] {
            Feed::Buffer(buffer) => Some(buffer),
            Feed::Carry(_) | Feed::Counter => None,
        });
        let holds = match &self.trips {
            Trips::While { holds, .. } => Some(*holds),
            Trips::Counted { .. } => None,
        };
        let scratch = self.scratch.into_iter().chain(self.host_scratch);
        fixed.chain(self.storages.iter().copied()).chain(scratch).chain(holds).collect()
    }
}

impl Branch {
    pub(super) fn writes(&self) -> Vec<u32> {
        let branches = [&self.on_true, &self.on_false];
        let arguments = branches.iter().flat_map(|routine| routine.arguments_written());
        let arguments = arguments.map(|argument| self.arguments[argument]);
        let scratch = self.scratch.into_iter().chain(self.host_scratch);
        arguments.chain(self.results.iter().copied()).chain(scratch).collect()
    }
}
