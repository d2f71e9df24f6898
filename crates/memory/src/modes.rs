//! The table of allocation modes: names, options, defaults and what each is called in JAX.
//!
//! Adding a mode is an entry here, its name in [`ModeName`] and its stack in [`crate::stack::build`]; parsing, help,
//! completion and messages follow from the entry.

use crate::caching::Divisions;
use crate::text::{format_bytes, nearest, parse_bytes};
use std::collections::BTreeMap;
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

/// One option of a mode.
#[derive(Debug)]
pub struct OptionEntry {
    /// How it is written.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// Its value where none is given, as a user would write it.
    pub default: &'static str,
    /// What values it takes.
    pub kind: OptionKind,
}

/// What values an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// A number above 0, at most 1.
    Fraction,
    /// On or off, in any of the usual spellings.
    Switch,
    /// A size, or `unlimited`.
    Bytes,
    /// A number from 0, which is off, to below 1.
    Threshold,
    /// Steps that a power of two is divided into, for all sizes or by size.
    Divisions,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionValue {
    /// Of [`OptionKind::Fraction`].
    Fraction(f64),
    /// Of [`OptionKind::Switch`].
    Switch(bool),
    /// Of [`OptionKind::Bytes`]; `None` is unlimited.
    Bytes(Option<u64>),
    /// Of [`OptionKind::Threshold`].
    Threshold(f64),
    /// Of [`OptionKind::Divisions`].
    Divisions(Divisions),
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
                doc: "What is mapped at once; a multiple of 64KiB.",
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

/// A mode with the value of each of its options.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeSpec {
    mode: ModeName,
    values: Vec<OptionValue>,
}

/// What is wrong with the text of a mode. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModeError {
    /// No mode was named.
    Missing,
    /// There is no such mode.
    UnknownMode {
        /// What was written.
        given: String,
    },
    /// The mode has no such option.
    UnknownOption {
        /// The mode.
        mode: ModeName,
        /// What was written.
        given: String,
    },
    /// An option was given twice.
    Twice {
        /// The option.
        option: &'static str,
    },
    /// The value is not one of those that the option takes.
    Value {
        /// The option, or the variable that was read.
        option: String,
        /// What was written.
        given: String,
        /// What it takes, in words.
        valid: String,
    },
    /// Two settings contradict each other.
    Contradiction {
        /// Which, and why.
        reason: String,
    },
}

impl fmt::Display for ModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModeError::Missing => write!(f, "no mode is named; the modes are {}", mode_names()),
            ModeError::UnknownMode { given } => {
                write!(f, "no mode `{given}`; the modes are {}", mode_names())?;
                suggest(f, nearest(given, MODES.iter().map(|entry| entry.name)))
            }
            ModeError::UnknownOption { mode, given } => {
                let names: Vec<&str> = mode.entry().options.iter().map(|o| o.name).collect();
                if names.is_empty() {
                    return write!(f, "mode {mode} has no options, so no `{given}`");
                }
                write!(f, "mode {mode} has no option `{given}`; it has {}", names.join(", "))?;
                suggest(f, nearest(given, names))
            }
            ModeError::Twice { option } => write!(f, "option {option} is given twice"),
            ModeError::Value { option, given, valid } => {
                write!(f, "{option} = `{given}` is not understood; it takes {valid}")
            }
            ModeError::Contradiction { reason } => f.write_str(reason),
        }
    }
}

fn suggest(f: &mut fmt::Formatter<'_>, near: Option<&str>) -> fmt::Result {
    match near {
        Some(name) => write!(f, " (did you mean `{name}`?)"),
        None => Ok(()),
    }
}

fn mode_names() -> String {
    MODES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

impl std::error::Error for ModeError {}

impl Default for ModeSpec {
    fn default() -> ModeSpec {
        ModeSpec::new(MODES[0].mode)
    }
}

impl ModeSpec {
    /// A mode with its defaults.
    pub fn new(mode: ModeName) -> ModeSpec {
        let default = |option: &OptionEntry| {
            option.parse(option.default).expect("the defaults in the table are valid")
        };
        ModeSpec { mode, values: mode.entry().options.iter().map(default).collect() }
    }

    /// Reads `ondemand gc=on fraction=0.5`. Spaces or commas part the options.
    pub fn parse(text: &str) -> Result<ModeSpec, ModeError> {
        let mut words = words_of(text);
        let name = words.next().ok_or(ModeError::Missing)?;
        let lower = name.to_ascii_lowercase();
        let Some(entry) = MODES.iter().find(|entry| entry.name == lower) else {
            return Err(ModeError::UnknownMode { given: name.to_string() });
        };
        let mut spec = ModeSpec::new(entry.mode);
        let mut given = Vec::new();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let option = spec.set(name, value)?;
            if given.contains(&option) {
                return Err(ModeError::Twice { option });
            }
            given.push(option);
        }
        spec.makes_sense()?;
        Ok(spec)
    }

    /// Refuses options that contradict each other, with the reason.
    fn makes_sense(&self) -> Result<(), ModeError> {
        let refused = |reason: &str| Err(ModeError::Contradiction { reason: reason.to_string() });
        let granule = match self.value("granule") {
            Some(OptionValue::Bytes(granule)) => granule.unwrap_or(0),
            _ => 64 * crate::KIB,
        };
        if granule == 0 || granule % (64 * crate::KIB) != 0 || granule > crate::GIB {
            return refused("granule must be a multiple of 64KiB, at most 1GiB");
        }
        let max_split = match self.value("max_split_size") {
            Some(OptionValue::Bytes(max_split)) => max_split,
            _ => None,
        };
        if max_split.is_some_and(|bytes| bytes < 20 * crate::MIB) {
            return refused("max_split_size must be at least 20MiB, the size of a segment");
        }
        if max_split.is_some() && self.switch("expandable_segments") {
            return refused(
                "max_split_size says nothing to expandable segments: choose one of them",
            );
        }
        let collects = self.value("garbage_collection_threshold");
        let without_limit = self.fraction() == Some(1.0);
        if without_limit && collects.is_some_and(|value| value != OptionValue::Threshold(0.0)) {
            return refused(
                "garbage_collection_threshold acts only under a limit, as in PyTorch: add a fraction below 1",
            );
        }
        Ok(())
    }

    /// Sets an option by name; gives its name as the table has it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<&'static str, ModeError> {
        let options = self.mode.entry().options;
        let lower = name.to_ascii_lowercase();
        let Some(index) = options.iter().position(|option| option.name == lower) else {
            return Err(ModeError::UnknownOption { mode: self.mode, given: name.to_string() });
        };
        self.values[index] = options[index].parse(value)?;
        Ok(options[index].name)
    }

    /// The mode.
    pub fn mode(&self) -> ModeName {
        self.mode
    }

    /// Each option with its value, in the table's order.
    pub fn options(&self) -> impl Iterator<Item = (&'static OptionEntry, OptionValue)> + '_ {
        self.mode.entry().options.iter().zip(self.values.iter().copied())
    }

    /// The value of an option, where the mode has it.
    pub fn value(&self, name: &str) -> Option<OptionValue> {
        self.options().find(|(option, _)| option.name == name).map(|(_, value)| value)
    }

    /// The part of the device that the pool may hold, where the mode has such a limit.
    pub fn fraction(&self) -> Option<f64> {
        match self.value("fraction") {
            Some(OptionValue::Fraction(fraction)) => Some(fraction),
            _ => None,
        }
    }

    /// Whether a switch is on; one that the mode lacks is off.
    pub fn switch(&self, name: &str) -> bool {
        self.value(name) == Some(OptionValue::Switch(true))
    }

    /// The same with another fraction, where the mode has one.
    pub fn with_fraction(mut self, fraction: f64) -> Result<ModeSpec, ModeError> {
        self.set("fraction", &fraction.to_string())?;
        Ok(self)
    }

    /// Whether the device must be able to map memory behind reserved addresses.
    pub fn needs_virtual_memory(&self) -> bool {
        matches!(self.mode, ModeName::Vmm | ModeName::CudaAsync)
            || self.switch("expandable_segments")
    }

    /// Why this mode keeps empty regions when memory runs out; `None` if they may go back to the driver then.
    pub fn keeps_empty_regions(&self) -> Option<&'static str> {
        match self.mode {
            ModeName::Preallocate => Some("preallocate holds its one region"),
            ModeName::Ondemand if !self.switch("gc") => Some("gc=off, as XLA"),
            ModeName::Ondemand => None,
            ModeName::Platform => Some("platform has none"),
            ModeName::CudaAsync | ModeName::Vmm => Some("unmapped already where needed"),
            ModeName::Caching => Some("given back already when the driver refused"),
        }
    }

    /// Whether JAX has this mode, options included.
    pub fn has_jax_lines(&self) -> bool {
        match self.mode {
            ModeName::Preallocate | ModeName::Platform => true,
            // Collection of empty regions is a setting of the allocator that JAX does not show.
            ModeName::Ondemand => !self.switch("gc"),
            ModeName::CudaAsync | ModeName::Vmm => *self == without_fraction(self),
            ModeName::Caching => false,
        }
    }

    /// The value of `PYTORCH_CUDA_ALLOC_CONF` that brings PyTorch into this mode; `None` where it has no such mode.
    pub fn torch_conf(&self) -> Option<String> {
        if self.mode != ModeName::Caching {
            return None;
        }
        let mut parts = Vec::new();
        for (option, value) in self.options() {
            match value {
                OptionValue::Bytes(Some(bytes)) => {
                    parts.push(format!("max_split_size_mb:{}", bytes / crate::MIB));
                }
                OptionValue::Switch(true) => parts.push(format!("{}:True", option.name)),
                OptionValue::Threshold(part) if part > 0.0 => {
                    parts.push(format!("{}:{part}", option.name));
                }
                OptionValue::Divisions(divisions) if divisions != Divisions::NONE => {
                    parts.push(format!("{}:{divisions}", option.name));
                }
                _ => {}
            }
        }
        Some(parts.join(","))
    }

    /// The variables that bring JAX into this mode; none where it has no such mode or needs none.
    pub fn jax_lines(&self) -> Vec<String> {
        let mut lines = match self.mode {
            ModeName::Preallocate => Vec::new(),
            ModeName::Ondemand => vec!["XLA_PYTHON_CLIENT_PREALLOCATE=false".to_string()],
            ModeName::Platform => vec!["XLA_PYTHON_CLIENT_ALLOCATOR=platform".to_string()],
            ModeName::CudaAsync | ModeName::Vmm => {
                vec![format!("XLA_PYTHON_CLIENT_ALLOCATOR={}", self.mode)]
            }
            ModeName::Caching => return Vec::new(),
        };
        if let Some(fraction) = self.fraction().filter(|fraction| *fraction != 0.75) {
            lines.push(format!("XLA_CLIENT_MEM_FRACTION={fraction}"));
        }
        lines
    }
}

/// The mode at its defaults, but for the fraction.
fn without_fraction(spec: &ModeSpec) -> ModeSpec {
    let plain = ModeSpec::new(spec.mode);
    match spec.fraction() {
        Some(fraction) => plain.clone().with_fraction(fraction).unwrap_or(plain),
        None => plain,
    }
}

/// The name, and the options that are not at their defaults.
impl fmt::Display for ModeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mode)?;
        for (option, value) in self.options() {
            if option.parse(option.default) != Ok(value) {
                write!(f, " {}={value}", option.name)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Fraction(fraction) => write!(f, "{fraction}"),
            OptionValue::Switch(true) => write!(f, "on"),
            OptionValue::Switch(false) => write!(f, "off"),
            OptionValue::Bytes(Some(bytes)) if bytes % crate::MIB == 0 => {
                write!(f, "{}MiB", bytes / crate::MIB)
            }
            OptionValue::Bytes(Some(bytes)) => write!(f, "{bytes}"),
            OptionValue::Bytes(None) => write!(f, "unlimited"),
            OptionValue::Threshold(part) => write!(f, "{part}"),
            OptionValue::Divisions(divisions) => write!(f, "{divisions}"),
        }
    }
}

impl OptionEntry {
    /// Reads a value.
    pub fn parse(&self, text: &str) -> Result<OptionValue, ModeError> {
        let value = match self.kind {
            OptionKind::Fraction => parse_fraction(text).map(OptionValue::Fraction),
            OptionKind::Switch => parse_switch(text).map(OptionValue::Switch),
            OptionKind::Bytes if text.eq_ignore_ascii_case("unlimited") => {
                Some(OptionValue::Bytes(None))
            }
            OptionKind::Bytes => parse_bytes(text).ok().map(|b| OptionValue::Bytes(Some(b))),
            OptionKind::Threshold => parse_threshold(text).map(OptionValue::Threshold),
            OptionKind::Divisions => Divisions::parse(text).map(OptionValue::Divisions),
        };
        value.ok_or_else(|| ModeError::Value {
            option: self.name.to_string(),
            given: text.to_string(),
            valid: self.kind.valid(),
        })
    }
}

impl OptionKind {
    /// What it takes, in words.
    pub fn valid(self) -> String {
        match self {
            OptionKind::Fraction => "a number above 0 and at most 1, such as 0.75".to_string(),
            OptionKind::Switch => SWITCH_WORDS.to_string(),
            OptionKind::Bytes => "a size such as 100MiB, or unlimited".to_string(),
            OptionKind::Threshold => "a number from 0 (off) to below 1, such as 0.8".to_string(),
            OptionKind::Divisions => {
                "0, a power of two, or a list by size in MiB such as [256:1,512:2,>:4]".to_string()
            }
        }
    }

    /// Values to offer for completion.
    pub fn examples(self) -> &'static [&'static str] {
        match self {
            OptionKind::Fraction => &["0.25", "0.5", "0.75", "0.9"],
            OptionKind::Switch => &["on", "off"],
            OptionKind::Bytes => &["20MiB", "100MiB", "unlimited"],
            OptionKind::Threshold => &["0", "0.8"],
            OptionKind::Divisions => &["0", "4", "[256:1,512:2,>:4]"],
        }
    }
}

const SWITCH_WORDS: &str = "on, yes, 1, true or off, no, 0, false";

/// Reads on or off in any of the usual spellings.
pub fn parse_switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "on" | "yes" | "1" | "true" => Some(true),
        "off" | "no" | "0" | "false" => Some(false),
        _ => None,
    }
}

fn parse_fraction(text: &str) -> Option<f64> {
    // Refuses NaN too, which compares as nothing.
    text.trim().parse::<f64>().ok().filter(|fraction| *fraction > 0.0 && *fraction <= 1.0)
}

fn parse_threshold(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|part| (0.0..1.0).contains(part))
}

/// Words between spaces or commas; those within brackets part nothing.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = text.split(move |c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth <= 0 && (c.is_whitespace() || c == ',')
    });
    parts.filter(|word| !word.is_empty())
}

/// The `name:value` pairs of a `PYTORCH_CUDA_ALLOC_CONF`; a name without a value has an empty one.
pub fn torch_pairs(conf: &str) -> Vec<(String, String)> {
    let pair = |word: &str| {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        (name.trim().to_string(), value.trim().to_string())
    };
    words_of(conf).map(pair).collect()
}

/// Reads `PYTORCH_CUDA_ALLOC_CONF` in PyTorch's own syntax: `max_split_size_mb:128,expandable_segments:True`. Settings
/// that say nothing about placement are noted.
pub fn from_torch(conf: &str) -> Result<FromJax, ModeError> {
    let mut spec = ModeSpec::new(ModeName::Caching);
    let mut notes = Vec::new();
    let mut words = Vec::new();
    for (name, value) in torch_pairs(conf) {
        match name.as_str() {
            "backend" if value == "native" => {}
            // PyTorch then hands everything to the driver's pool and ignores its own settings.
            "backend" if value == "cudaMallocAsync" => {
                let spec = ModeSpec::new(ModeName::CudaAsync).with_fraction(1.0)?;
                let others = torch_pairs(conf).into_iter().map(|(name, _)| name);
                let ignored = others.filter(|other| other != "backend");
                let note = |name| format!("{name} is ignored by backend:cudaMallocAsync");
                return Ok(FromJax { spec: Some(spec), notes: ignored.map(note).collect() });
            }
            "backend" => {
                let (option, valid) = (name, "native, cudaMallocAsync".to_string());
                return Err(ModeError::Value { option, given: value, valid });
            }
            "max_split_size_mb" => words.push(("max_split_size", format!("{value}MiB"))),
            "roundup_power2_divisions" | "garbage_collection_threshold" | "expandable_segments" => {
                let known = spec.options().map(|(option, _)| option.name);
                words.push((known.into_iter().find(|k| *k == name).unwrap_or("fraction"), value));
            }
            _ if TORCH_ELSEWHERE.contains(&name.as_str()) => {
                notes.push(format!("{name} says nothing about where blocks lie; it has no effect"));
            }
            _ => return Err(ModeError::UnknownOption { mode: ModeName::Caching, given: name }),
        }
    }
    for (name, value) in &words {
        spec.set(name, value)?;
    }
    // PyTorch takes it without a limit and does nothing; the user should know.
    if spec.makes_sense().is_err() && spec.fraction() == Some(1.0) {
        let threshold = spec.value("garbage_collection_threshold");
        spec.set("garbage_collection_threshold", "0")?;
        if threshold != spec.value("garbage_collection_threshold") {
            notes.push("garbage_collection_threshold acts only under a limit (a fraction)".into());
        }
    }
    spec.makes_sense()?;
    Ok(FromJax { spec: Some(spec), notes })
}

const TORCH_ELSEWHERE: [&str; 6] = [
    "release_lock_on_cudamalloc",
    "pinned_use_cuda_host_register",
    "pinned_num_register_threads",
    "pinned_use_background_threads",
    "graph_capture_record_stream_reuse",
    "max_non_split_rounding_mb",
];

/// What JAX's variables ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct FromJax {
    /// The mode; `None` where no variable speaks of one.
    pub spec: Option<ModeSpec>,
    /// What a user should know: where JAX would read a value differently, or ignores it.
    pub notes: Vec<String>,
}

/// The names that [`from_jax`] reads.
pub const JAX_VARIABLES: [&str; 4] = [
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_CLIENT_MEM_FRACTION",
    OLD_FRACTION,
    "XLA_PYTHON_CLIENT_ALLOCATOR",
];
const OLD_FRACTION: &str = "XLA_PYTHON_CLIENT_MEM_FRACTION";

/// Reads JAX's variables from a map of the environment. A value that JAX would silently misread is understood and
/// noted, or refused; it is never ignored.
pub fn from_jax(environment: &BTreeMap<String, String>) -> Result<FromJax, ModeError> {
    let [preallocate, fraction, old_fraction, allocator] =
        JAX_VARIABLES.map(|name| environment.get(name).map(|v| v.trim()).filter(|v| !v.is_empty()));
    let mut notes = Vec::new();
    let preallocate = preallocate.map(|text| read_preallocate(text, &mut notes)).transpose()?;
    let fraction = read_fractions(fraction, old_fraction, &mut notes)?;
    if preallocate.is_none() && fraction.is_none() && allocator.is_none() {
        return Ok(FromJax { spec: None, notes });
    }
    let bfc = if preallocate == Some(false) { ModeName::Ondemand } else { ModeName::Preallocate };
    let mode = match allocator.map(str::to_ascii_lowercase).as_deref() {
        None | Some("default" | "bfc") => bfc,
        Some(name) => allocator_mode(name)?,
    };
    let mut spec = ModeSpec::new(mode);
    match fraction {
        Some(text) if spec.fraction().is_some() => {
            spec.set("fraction", text)?;
        }
        Some(text) => notes.push(format!("mode {mode} has no fraction, so {text} has no effect")),
        None => {}
    }
    Ok(FromJax { spec: Some(spec), notes })
}

fn read_preallocate(text: &str, notes: &mut Vec<String>) -> Result<bool, ModeError> {
    let Some(on) = parse_switch(text) else {
        return Err(ModeError::Value {
            option: JAX_VARIABLES[0].to_string(),
            given: text.to_string(),
            valid: SWITCH_WORDS.to_string(),
        });
    };
    // JAX compares with these three words and takes everything else for "on".
    if !on && !["0", "false", "False"].contains(&text) {
        notes.push(format!(
            "{}={text} is read as off here; JAX would preallocate: write false",
            JAX_VARIABLES[0]
        ));
    }
    Ok(on)
}

fn read_fractions<'a>(
    new: Option<&'a str>,
    old: Option<&'a str>,
    notes: &mut Vec<String>,
) -> Result<Option<&'a str>, ModeError> {
    if let (Some(new), Some(old)) = (new, old)
        && new != old
    {
        let reason = format!(
            "{}={new} and {OLD_FRACTION}={old} contradict each other; keep the first",
            JAX_VARIABLES[1]
        );
        return Err(ModeError::Contradiction { reason });
    }
    if old.is_some() && new.is_none() {
        notes.push(format!("{OLD_FRACTION} is the older spelling of {}", JAX_VARIABLES[1]));
    }
    let text = new.or(old);
    if let Some(text) = text
        && parse_fraction(text).is_none()
    {
        return Err(ModeError::Value {
            option: JAX_VARIABLES[if new.is_some() { 1 } else { 2 }].to_string(),
            given: text.to_string(),
            valid: OptionKind::Fraction.valid(),
        });
    }
    Ok(text)
}

fn allocator_mode(name: &str) -> Result<ModeName, ModeError> {
    let of_jax = ["platform", "cuda_async", "vmm"];
    let known = |entry: &&ModeEntry| of_jax.contains(&entry.name);
    let valid: Vec<&str> = MODES.iter().filter(known).map(|entry| entry.name).collect();
    let found = MODES.iter().filter(known).find(|entry| entry.name == name);
    found.map(|entry| entry.mode).ok_or_else(|| ModeError::Value {
        option: JAX_VARIABLES[3].to_string(),
        given: name.to_string(),
        valid: format!("default, bfc, {}", valid.join(", ")),
    })
}

/// Reads a capacity for a device: at least one unit of 256 bytes.
pub fn parse_capacity(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes if bytes < crate::UNIT => {
            Err(format!("a device of {} is smaller than one block of 256 B", format_bytes(bytes)))
        }
        bytes => Ok(bytes),
    }
}
