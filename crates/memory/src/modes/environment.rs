//! Modes as other programs name them: JAX's variables and PyTorch's.

use super::option::{OptionKind, SWITCH_WORDS, parse_fraction, parse_switch};
use super::{MODES, ModeEntry, ModeError, ModeName, ModeSpec};
use crate::text::nearest;
use std::collections::BTreeMap;

/// The `name:value` pairs of a `PYTORCH_CUDA_ALLOC_CONF`; a name without a value has an empty one. As in PyTorch, spaces
/// mean nothing wherever they stand, and a comma may end the text.
pub fn torch_pairs(conf: &str) -> Vec<(String, String)> {
    let conf = conf.trim().replace(' ', "");
    let conf = conf.strip_suffix(',').unwrap_or(&conf);
    let mut depth = 0;
    let parts = conf.split(|c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth <= 0 && c == ','
    });
    let pair = |word: &str| {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        (name.to_string(), value.to_string())
    };
    if conf.is_empty() { Vec::new() } else { parts.map(pair).collect() }
}

/// The variables that [`from_torch`]'s text stands in; the later two are the older names.
pub const TORCH_VARIABLES: [&str; 3] =
    ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"];

/// Reads PyTorch's variables from a map of the environment; no mode where none is set.
pub fn from_torch_variables(environment: &BTreeMap<String, String>) -> Result<FromJax, ModeError> {
    let set = |name: &&str| environment.get(*name).filter(|value| !value.trim().is_empty());
    let given: Vec<(&str, &String)> =
        TORCH_VARIABLES.iter().filter_map(|name| Some((*name, set(name)?))).collect();
    let Some((name, conf)) = given.first() else {
        return Ok(FromJax { spec: None, notes: Vec::new() });
    };
    if let Some((other, _)) =
        given.iter().find(|(_, value)| torch_pairs(value) != torch_pairs(conf))
    {
        let reason = format!("{name} and {other} contradict each other: set one of them");
        return Err(ModeError::Contradiction { reason });
    }
    from_torch(conf)
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
            "max_split_size_mb" => words.push(("max_split_size", whole_mib(&name, &value)?)),
            "per_process_memory_fraction" => words.push(("fraction", value)),
            "roundup_power2_divisions" | "garbage_collection_threshold" | "expandable_segments" => {
                torch_refuses(&name, &value)?;
                let known = spec.options().map(|(option, _)| option.name);
                words.push((known.into_iter().find(|k| *k == name).unwrap_or("fraction"), value));
            }
            _ if TORCH_ELSEWHERE.contains(&name.as_str()) => {
                notes.push(format!("{name} says nothing about where blocks lie; it has no effect"));
            }
            _ => return Err(unknown_to_torch(&name)),
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

fn unknown_to_torch(name: &str) -> ModeError {
    let near =
        nearest(name, TORCH_OPTIONS).map_or(String::new(), |n| format!(" (did you mean `{n}`?)"));
    let what =
        if name.is_empty() { "an empty setting".into() } else { format!("no setting `{name}`") };
    ModeError::Contradiction {
        reason: format!(
            "PyTorch's allocator has {what}; those that act here are {}{near}",
            TORCH_OPTIONS.join(", ")
        ),
    }
}

const TORCH_OPTIONS: [&str; 6] = [
    "max_split_size_mb",
    "roundup_power2_divisions",
    "garbage_collection_threshold",
    "expandable_segments",
    "per_process_memory_fraction",
    "backend",
];

/// PyTorch reads a whole number of MiB.
fn whole_mib(name: &str, value: &str) -> Result<String, ModeError> {
    let whole = value.parse::<u64>().ok().and_then(|mib| mib.checked_mul(crate::MIB));
    let valid = "a whole number of MiB, at least 20".to_string();
    let refused = || ModeError::Value { option: name.into(), given: value.into(), valid };
    whole
        .filter(|bytes| *bytes >= 20 * crate::MIB)
        .map(|bytes| bytes.to_string())
        .ok_or_else(refused)
}

/// What our own options take and PyTorch's text does not: its words for a switch are two, and what is off is not written.
fn torch_refuses(name: &str, value: &str) -> Result<(), ModeError> {
    let (fine, valid) = match name {
        "expandable_segments" => (["True", "False"].contains(&value), "True or False"),
        "garbage_collection_threshold" => (
            value.parse::<f64>().is_ok_and(|part| part != 0.0),
            "a number above 0 and below 1, such as 0.8",
        ),
        _ => (value != "0", "a power of two, or a list by size in MiB such as [256:1,512:2,>:4]"),
    };
    let refused =
        || ModeError::Value { option: name.into(), given: value.into(), valid: valid.into() };
    fine.then_some(()).ok_or_else(refused)
}

const TORCH_ELSEWHERE: [&str; 11] = [
    "release_lock_on_hipmalloc",
    "pinned_use_hip_host_register",
    "pinned_reserve_segment_size_mb",
    "pinned_free_catch_all",
    "throw_on_cudamalloc_oom",
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
