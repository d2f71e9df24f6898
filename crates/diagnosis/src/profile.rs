//! A JAX device memory profile: pprof's protobuf (profile.proto), read by hand, for the few fields that it takes.
//!
//! Field numbers are those of profile.proto: sample_type 1, sample 2, location 4, function 5, string_table 6. A profile
//! that was cut gives what came before the cut.

use crate::{Diagnosis, Kind, Name, Owner, Quantity, Verdict, show};
use std::collections::{BTreeMap, HashMap};

/// What a profile says.
#[derive(Debug, Default)]
pub struct Profile {
    in_use: u64,
    buffers: u64,
    executables: u64,
    other_samples: u64,
    by_function: BTreeMap<String, u64>,
    cut: bool,
}

/// One field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, up to its end or to the first byte that is none.
struct Fields<'a> {
    rest: &'a [u8],
    broken: bool,
}

impl<'a> Fields<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Fields { rest: bytes, broken: false }
    }

    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let key = varint(&mut self.rest)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut self.rest)?),
            1 => Field::Bytes(take(&mut self.rest, 8)?),
            2 => {
                let length = varint(&mut self.rest)?;
                Field::Bytes(take(&mut self.rest, usize::try_from(length).ok()?)?)
            }
            5 => Field::Bytes(take(&mut self.rest, 4)?),
            _ => return None,
        };
        (key >> 3 != 0).then_some((key >> 3, field))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Field<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() || self.broken {
            return None;
        }
        let field = self.field();
        self.broken = field.is_none();
        field
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f).checked_shl(shift).unwrap_or(0);
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// A repeated number: packed or one at a time.
fn numbers(field: Field<'_>, into: &mut Vec<u64>) {
    match field {
        Field::Number(number) => into.push(number),
        Field::Bytes(mut packed) => {
            while let Some(number) = varint(&mut packed) {
                into.push(number);
            }
        }
    }
}

#[derive(Default)]
struct Sample {
    locations: Vec<u64>,
    values: Vec<u64>,
    /// Key and string value, as indices.
    labels: Vec<(u64, u64)>,
}

#[derive(Default)]
struct Raw<'a> {
    /// Type and unit, as indices.
    types: Vec<(u64, u64)>,
    samples: Vec<Sample>,
    /// Location → function ids, innermost first.
    locations: HashMap<u64, Vec<u64>>,
    /// Function → name and file, as indices.
    functions: HashMap<u64, (u64, u64)>,
    strings: Vec<&'a [u8]>,
    cut: bool,
}

/// Reads a profile; `None` where the bytes are none.
pub fn read(bytes: &[u8]) -> Option<Profile> {
    let raw = Raw::read(bytes);
    let kind = |(kind, _): &(u64, u64)| raw.string(*kind);
    let space = raw.types.iter().position(|t| matches!(kind(t).as_str(), "space" | "inuse_space"));
    let count =
        raw.types.iter().position(|t| matches!(kind(t).as_str(), "allocations" | "inuse_objects"));
    // The names of the types stand at the end: without them this is some other file, or too little of one.
    let space = space?;
    let mut profile = Profile { cut: raw.cut, ..Profile::default() };
    for sample in &raw.samples {
        let value = |at: usize| sample.values.get(at).copied().unwrap_or(0);
        let (bytes, count) = (value(space), count.map_or(1, value));
        profile.in_use = profile.in_use.saturating_add(bytes);
        let kind = sample.labels.iter().find(|(key, _)| raw.string(*key) == "kind");
        let kind = kind.map(|(_, value)| raw.string(*value));
        let counter = match kind.as_deref() {
            Some("buffer") => &mut profile.buffers,
            Some("executable") => &mut profile.executables,
            _ => &mut profile.other_samples,
        };
        *counter = counter.saturating_add(count);
        if bytes > 0 {
            let held = profile.by_function.entry(raw.function_of(sample)).or_default();
            *held = held.saturating_add(bytes);
        }
    }
    Some(profile)
}

impl<'a> Raw<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        let mut raw = Raw::default();
        let mut fields = Fields::of(bytes);
        for (number, field) in fields.by_ref() {
            let Field::Bytes(bytes) = field else { continue };
            match number {
                1 => raw.types.push(pair(bytes, 1, 2)),
                2 => raw.samples.push(sample(bytes)),
                4 => {
                    let (id, functions) = location(bytes);
                    raw.locations.insert(id, functions);
                }
                5 => {
                    let (id, _) = pair(bytes, 1, 2);
                    raw.functions.insert(id, pair(bytes, 2, 4));
                }
                6 => raw.strings.push(bytes),
                _ => {}
            }
        }
        raw.cut = fields.broken;
        raw
    }

    fn string(&self, index: u64) -> String {
        let bytes = usize::try_from(index).ok().and_then(|index| self.strings.get(index));
        bytes.map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The innermost function of the user's own code: frames of JAX and of other packages are passed over, and a
    /// comprehension is the function that it stands in.
    fn function_of(&self, sample: &Sample) -> String {
        let frames = sample.locations.iter().filter_map(|l| self.locations.get(l)).flatten();
        let frames = frames.filter_map(|f| self.functions.get(f));
        let mut frames = frames.map(|(name, file)| (self.string(*name), self.string(*file)));
        let own = frames.find(|(name, file)| {
            let packages =
                ["site-packages/", "dist-packages/", "jax/_src/", "lib/python", "<frozen"];
            let inline = ["<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>"];
            !packages.iter().any(|p| file.contains(p)) && !inline.contains(&name.as_str())
        });
        own.map_or("unknown".into(), |(name, _)| name)
    }
}

/// Two number fields of a message, 0 where absent.
fn pair(bytes: &[u8], first: u64, second: u64) -> (u64, u64) {
    let mut pair = (0, 0);
    for (number, field) in Fields::of(bytes) {
        match field {
            Field::Number(value) if number == first => pair.0 = value,
            Field::Number(value) if number == second => pair.1 = value,
            _ => {}
        }
    }
    pair
}

fn sample(bytes: &[u8]) -> Sample {
    let mut sample = Sample::default();
    for (number, field) in Fields::of(bytes) {
        match (number, field) {
            (1, field) => numbers(field, &mut sample.locations),
            (2, field) => numbers(field, &mut sample.values),
            (3, Field::Bytes(label)) => sample.labels.push(pair(label, 1, 2)),
            _ => {}
        }
    }
    sample
}

fn location(bytes: &[u8]) -> (u64, Vec<u64>) {
    let (mut id, mut functions) = (0, Vec::new());
    for (number, field) in Fields::of(bytes) {
        match (number, field) {
            (1, Field::Number(value)) => id = value,
            (4, Field::Bytes(line)) => functions.push(pair(line, 1, 2).0),
            _ => {}
        }
    }
    (id, functions)
}

impl Profile {
    pub fn diagnosis(self) -> Diagnosis {
        let grammar = "JAX device memory profile (pprof)";
        let mut d = Diagnosis::new(Kind::MemoryProfile, grammar, Verdict::NoFailure);
        let in_use = Quantity::exact(self.in_use);
        d.figures.set(Name::InUse, Some(in_use));
        d.counts.insert("live_buffers", self.buffers);
        d.counts.insert("executables", self.executables);
        d.because = format!(
            "a snapshot: {} in {} live buffers; {} executables",
            show(in_use),
            self.buffers,
            self.executables
        );
        let owner = |(name, bytes)| Owner {
            name,
            detail: "innermost function outside packages".into(),
            held: Quantity::exact(bytes),
        };
        d.owners = self.by_function.into_iter().map(owner).collect();
        d.keep_largest_owners(50);
        d.absent = [
            "any failure",
            "the limit",
            "what is free",
            "the peak: it is a snapshot",
            "names, shapes and types of arrays",
            "the gaps between them",
        ]
        .map(String::from)
        .to_vec();
        if self.cut {
            d.notes.push("the profile is cut: the sums are of what is left of it".into());
        }
        d.advice = vec!["pprof -top -sample_index=space FILE".into()];
        d
    }
}
