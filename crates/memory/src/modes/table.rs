//! The table of modes.

use super::option::{OptionEntry, OptionKind};
use std::fmt;

/// Which mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModeName {
    /// One region, taken at the first allocation.
    Preallocate,
    /// Regions that grow.
    Ondemand,
    /// A driver call a block.
    Platform,
    /// The driver's stream-ordered pool.
    CudaAsync,
    /// Memory mapped behind reserved addresses.
    Vmm,
    /// PyTorch's rules.
    Caching,
}

/// One row of the table.
#[derive(Debug)]
pub struct ModeEntry {
    /// Which mode.
    pub mode: ModeName,
    /// How it is written.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub doc: &'static str,
    /// Whether a what-if shows it unasked.
    pub compared: bool,
    /// Its options, in the order in which they print.
    pub options: &'static [OptionEntry],
}

const FRACTION: OptionEntry = OptionEntry {
    name: "fraction",
    doc: "The part of the whole device that the pool may hold, whatever is free.",
    default: "0.75",
    kind: OptionKind::Fraction,
};

/// All modes that work, in the order in which they are listed. The first is the default.
pub static MODES: &[ModeEntry] = &[
    ModeEntry {
        mode: ModeName::Preallocate,
        name: "preallocate",
        doc: "One region of fraction × total, taken at the first allocation (JAX's default).",
        compared: true,
        options: &[FRACTION],
    },
    ModeEntry {
        mode: ModeName::Ondemand,
        name: "ondemand",
        doc: "A pool that grows: 2 MiB first, doubling, up to fraction × total.",
        compared: true,
        options: &[
            FRACTION,
            OptionEntry {
                name: "gc",
                doc: "Whether empty regions go back to the driver when the limit is reached.",
                default: "off",
                kind: OptionKind::Switch,
            },
        ],
    },
    ModeEntry {
        mode: ModeName::Platform,
        name: "platform",
        doc: "A driver call for each block; every byte returns at once; limited by the device alone.",
        compared: true,
        options: &[],
    },
    ModeEntry {
        mode: ModeName::CudaAsync,
        name: "cuda_async",
        doc: "The driver's stream-ordered pool; what is free above a threshold returns at a synchronisation.",
        compared: false,
        options: &[
            FRACTION,
            OptionEntry {
                name: "release_threshold",
                doc: "Free bytes that stay with the pool at a synchronisation (XLA keeps all).",
                default: "unlimited",
                kind: OptionKind::Bytes,
            },
        ],
    },
    ModeEntry {
        mode: ModeName::Vmm,
        name: "vmm",
        doc: "Memory mapped granule by granule behind reserved addresses: free pieces always join.",
        compared: false,
        options: &[
            FRACTION,
            OptionEntry {
                name: "granule",
                doc: "What is mapped at once; a multiple of 2MiB.",
                default: "2MiB",
                kind: OptionKind::Bytes,
            },
            OptionEntry {
                name: "keep",
                doc: "Free bytes that stay mapped after a free.",
                default: "unlimited",
                kind: OptionKind::Bytes,
            },
        ],
    },
    ModeEntry {
        mode: ModeName::Caching,
        name: "caching",
        doc: "PyTorch's allocator: segments of 2 and 20 MiB, cached until the driver refuses.",
        compared: true,
        options: &[
            OptionEntry { default: "1", ..FRACTION },
            OptionEntry {
                name: "max_split_size",
                doc: "Blocks of at least this size are never split.",
                default: "unlimited",
                kind: OptionKind::Bytes,
            },
            OptionEntry {
                name: "roundup_power2_divisions",
                doc: "Steps that each power of two is divided into for rounding; by size in MiB: [256:1,>:4].",
                default: "0",
                kind: OptionKind::Divisions,
            },
            OptionEntry {
                name: "garbage_collection_threshold",
                doc: "The part of the limit above which old cached segments go first; needs a fraction below 1.",
                default: "0",
                kind: OptionKind::Threshold,
            },
            OptionEntry {
                name: "expandable_segments",
                doc: "Whether segments grow in place, by mapping memory behind reserved addresses.",
                default: "off",
                kind: OptionKind::Switch,
            },
        ],
    },
];

impl ModeName {
    /// The row of the table.
    pub fn entry(self) -> &'static ModeEntry {
        let row = MODES.iter().find(|entry| entry.mode == self);
        row.expect("every mode has a row")
    }

    /// How it is written.
    pub fn name(self) -> &'static str {
        self.entry().name
    }
}

impl fmt::Display for ModeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
