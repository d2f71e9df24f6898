//! The table of allocation modes: names, options, defaults and what each is called in JAX.
//!
//! Adding a mode is an entry here, its name in [`ModeName`] and its stack in [`crate::stack::build`]; parsing, help,
//! completion and messages follow from the entry.

mod environment;
mod option;
mod table;

pub use environment::{
    FromJax, JAX_VARIABLES, TORCH_VARIABLES, from_jax, from_torch, from_torch_variables,
    torch_pairs,
};
pub use option::{OptionEntry, OptionKind, OptionValue, parse_switch};
pub use table::{MODES, ModeEntry, ModeName};

use crate::caching::Divisions;
use crate::text::{format_bytes, nearest, parse_bytes};
use option::words_of;
use std::fmt;

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

    /// Reads `ondemand gc=on fraction=0.5`. Spaces or commas part the options. Those of `caching` may also stand in the
    /// syntax of `PYTORCH_CUDA_ALLOC_CONF`.
    pub fn parse(text: &str) -> Result<ModeSpec, ModeError> {
        decimal_comma(text)?;
        let mut words = words_of(text);
        let name = words.next().ok_or(ModeError::Missing)?;
        let lower = name.to_ascii_lowercase();
        let Some(entry) = MODES.iter().find(|entry| entry.name == lower) else {
            return Err(ModeError::UnknownMode { given: name.to_string() });
        };
        let mut spec = ModeSpec::new(entry.mode);
        let options =
            text.trim_start().get(name.len()..).unwrap_or("").trim_start_matches([' ', ',']);
        if entry.mode == ModeName::Caching && options.contains(':') && !options.contains('=') {
            return from_torch(options).map(|read| read.spec.unwrap_or(spec));
        }
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

    /// Reads several modes, each with its options behind it: `vmm,caching max_split_size=128MiB`, or `all`.
    pub fn parse_list(text: &str) -> Result<Vec<ModeSpec>, ModeError> {
        if text.trim().eq_ignore_ascii_case("all") {
            return Ok(MODES.iter().map(|entry| ModeSpec::new(entry.mode)).collect());
        }
        let mut each: Vec<String> = Vec::new();
        for word in words_of(text) {
            match each.last_mut().filter(|_| word.contains('=')) {
                Some(mode) => *mode = format!("{mode} {word}"),
                None => each.push(word.to_string()),
            }
        }
        if each.is_empty() {
            return Err(ModeError::Missing);
        }
        each.iter().map(|mode| ModeSpec::parse(mode)).collect()
    }

    /// Refuses options that contradict each other, with the reason.
    fn makes_sense(&self) -> Result<(), ModeError> {
        let refused = |reason: &str| Err(ModeError::Contradiction { reason: reason.to_string() });
        let granule = match self.value("granule") {
            Some(OptionValue::Bytes(granule)) => granule.unwrap_or(0),
            _ => 2 * crate::MIB,
        };
        if granule == 0 || granule % (2 * crate::MIB) != 0 || granule > crate::GIB {
            return refused(
                "granule must be a multiple of 2MiB, which is what devices map at once, and at most 1GiB",
            );
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

/// `fraction=0,75`: the comma would part two options, and the message would speak of 0.
fn decimal_comma(text: &str) -> Result<(), ModeError> {
    for (at, _) in text.match_indices(',') {
        let before = text[..at].rsplit(|c: char| c.is_whitespace()).next().unwrap_or("");
        let behind: String = text[at + 1..].chars().take_while(char::is_ascii_digit).collect();
        let Some((option, whole)) = before.split_once('=') else { continue };
        if !behind.is_empty() && !whole.is_empty() && whole.chars().all(|c| c.is_ascii_digit()) {
            return Err(ModeError::Value {
                option: option.to_string(),
                given: format!("{whole},{behind}"),
                valid: format!("decimals with a point: {whole}.{behind}"),
            });
        }
    }
    Ok(())
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
