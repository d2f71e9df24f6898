//! What a text says, as plain data, with its two renderings: for people and as JSON.

use crate::{Certainty, Quantity, Verdict};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

macro_rules! names {
    ($($name:ident $key:literal $words:literal)*) => {
        /// The figures that a text may hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Name { $(#[doc = $words] $name,)* }

        impl Name {
            /// All of them, in the order in which they are shown.
            pub const ALL: &[Name] = &[$(Name::$name,)*];

            /// The key in JSON.
            pub fn key(self) -> &'static str {
                match self { $(Name::$name => $key,)* }
            }

            /// In words.
            pub fn words(self) -> &'static str {
                match self { $(Name::$name => $words,)* }
            }
        }
    };
}

names! {
    Asked "asked_bytes" "asked of the allocator"
    AskedUnrounded "asked_unrounded_bytes" "asked before rounding"
    Limit "limit_bytes" "limit"
    DeviceTotal "device_total_bytes" "the device has"
    InUse "in_use_bytes" "in use"
    Reserved "reserved_bytes" "reserved"
    IdleReserved "idle_reserved_bytes" "reserved and idle"
    PrivatePoolIdle "private_pool_idle_bytes" "idle in private pools"
    Free "free_bytes" "free"
    LargestFree "largest_free_bytes" "largest free block"
    CanStillGrow "can_still_grow_bytes" "the pool may still grow by"
    Requested "live_requested_bytes_of_ours" "asked for by what is alive"
    OwnProcess "own_process_bytes" "this process holds"
    OtherProcesses "other_process_bytes" "other processes hold"
    OutsidePytorch "outside_pytorch_bytes" "neither free nor PyTorch's"
    OtherAllocations "other_allocations_bytes" "other allocations"
    Total "total_bytes" "the program needs"
    Needed "needed_bytes" "needed at least"
    Argument "argument_bytes" "arguments"
    Output "output_bytes" "outputs"
    Temp "temp_bytes" "temporaries"
    ConstantAndThreadLocal "constant_and_thread_local_bytes" "constants and thread-local"
    Donated "donated_bytes" "donated"
    InternalFragmentation "internal_fragmentation_bytes" "gaps within the temporaries"
    LargestValue "largest_value_bytes" "largest value"
    PeakLive "peak_live_bytes" "alive at the peak"
    PeakInUse "peak_in_use_bytes" "peak in use"
    HostLimit "host_limit_bytes" "limit of host memory"
}

/// The figures that the text holds, or that follow from them by adding and subtracting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures(BTreeMap<Name, Quantity>);

impl Figures {
    pub fn get(&self, name: Name) -> Option<Quantity> {
        self.0.get(&name).copied()
    }

    pub fn bytes(&self, name: Name) -> Option<u64> {
        self.get(name).map(|q| q.bytes)
    }

    /// Keeps the figure where there is one.
    pub fn set(&mut self, name: Name, figure: Option<Quantity>) {
        if let Some(figure) = figure {
            self.0.insert(name, figure);
        }
    }

    /// Keeps the figure unless a better source has given one.
    pub fn complete(&mut self, name: Name, figure: Option<Quantity>) {
        if self.get(name).is_none() {
            self.set(name, figure);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Name, Quantity)> {
        self.0.iter().map(|(name, quantity)| (*name, *quantity))
    }
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    PytorchSentence,
    BfcDump,
    JaxError,
    BufferAssignment,
    LiveRange,
    MemoryReport,
    MemoryProfile,
    DriverTable,
    Counters,
    DeviceError,
    HostError,
    Nothing,
    Unreadable,
}

impl Kind {
    /// The key in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Kind::PytorchSentence => "pytorch_sentence",
            Kind::BfcDump => "bfc_dump",
            Kind::JaxError => "jax_error",
            Kind::BufferAssignment => "xla_buffer_assignment",
            Kind::LiveRange => "xla_live_range",
            Kind::MemoryReport => "xla_memory_report",
            Kind::MemoryProfile => "jax_memory_profile",
            Kind::DriverTable => "nvidia_smi",
            Kind::Counters => "counters",
            Kind::DeviceError => "device_error",
            Kind::HostError => "host_error",
            Kind::Nothing => "nothing",
            Kind::Unreadable => "unreadable",
        }
    }
}

/// Somebody that the text names as holding memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// As the text names it: a value, an operator, a function.
    pub name: String,
    /// What is known beside the name: shape, source line, allocation.
    pub detail: String,
    pub held: Quantity,
}

/// A process on the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u64,
    /// `None` where the driver would not say.
    pub held: Option<Quantity>,
    pub name: Option<String>,
    /// `None`: the text does not tell whose it is.
    pub ours: Option<bool>,
}

/// A text, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    pub kind: Kind,
    /// Which program and which form of its text.
    pub grammar: String,
    pub figures: Figures,
    /// Whole numbers that are not bytes, under their keys.
    pub counts: BTreeMap<&'static str, u64>,
    pub verdict: Verdict,
    /// The verdict, finer: `private_pools`, `regions`, …
    pub sub: Option<&'static str>,
    pub certainty: Certainty,
    /// The figures that prove the verdict, as a sentence.
    pub because: String,
    /// Largest first.
    pub owners: Vec<Owner>,
    pub processes: Vec<Process>,
    /// What the text does not hold.
    pub absent: Vec<String>,
    /// What is easily misread in it.
    pub notes: Vec<String>,
    /// What to try next; the first line is the one to paste.
    pub advice: Vec<String>,
    /// Later failures in the same text.
    pub later: Vec<Diagnosis>,
}

impl Diagnosis {
    pub fn new(kind: Kind, grammar: impl Into<String>, verdict: Verdict) -> Self {
        Diagnosis {
            kind,
            grammar: grammar.into(),
            figures: Figures::default(),
            counts: BTreeMap::new(),
            verdict,
            sub: None,
            certainty: match verdict {
                Verdict::CannotTell | Verdict::Unreadable => Certainty::Open,
                _ => Certainty::Shown,
            },
            because: String::new(),
            owners: Vec::new(),
            processes: Vec::new(),
            absent: Vec::new(),
            notes: Vec::new(),
            advice: Vec::new(),
            later: Vec::new(),
        }
    }

    /// Owners in order, and no more of them than somebody reads.
    pub fn keep_largest_owners(&mut self, count: usize) {
        self.owners.sort_by(|a, b| b.held.bytes.cmp(&a.held.bytes).then(a.name.cmp(&b.name)));
        self.owners.truncate(count);
    }

    /// [`Self::json`] on one line, with the file that was read.
    pub fn json_line(&self, file: &str) -> String {
        let mut json = self.json();
        json["file"] = file.into();
        json.to_string()
    }

    /// Every figure under its key, `null` where the text does not hold it.
    pub fn json(&self) -> Value {
        let mut map = Map::new();
        map.insert("kind".into(), json!(self.kind.key()));
        map.insert("grammar".into(), json!(self.grammar));
        map.insert("verdict".into(), json!(self.verdict.key()));
        map.insert("sub".into(), json!(self.sub));
        map.insert("certainty".into(), json!(self.certainty.key()));
        map.insert("because".into(), json!(self.because));
        for name in Name::ALL {
            map.insert(name.key().into(), json!(self.figures.bytes(*name)));
        }
        let widths = self.figures.iter().filter(|(_, q)| q.tolerance > 0);
        let widths: Map<String, Value> =
            widths.map(|(name, q)| (name.key().into(), json!(q.tolerance))).collect();
        map.insert("tolerances".into(), Value::Object(widths));
        for key in ["device_index", "live_buffers", "executables"] {
            map.insert(key.into(), json!(self.counts.get(key)));
        }
        let others = self.processes.iter().filter(|p| p.ours == Some(false));
        map.insert("other_pids".into(), json!(others.map(|p| p.pid).collect::<Vec<_>>()));
        map.insert("processes".into(), self.processes.iter().map(process_json).collect());
        map.insert("owners".into(), self.owners.iter().map(owner_json).collect());
        map.insert("absent".into(), json!(self.absent));
        map.insert("notes".into(), json!(self.notes));
        map.insert("advice".into(), json!(self.advice));
        map.insert("later".into(), self.later.iter().map(Diagnosis::json).collect());
        Value::Object(map)
    }
}

fn process_json(process: &Process) -> Value {
    json!({
        "pid": process.pid,
        "bytes": process.held.map(|q| q.bytes),
        "name": process.name,
        "ours": process.ours,
    })
}

fn owner_json(owner: &Owner) -> Value {
    json!({ "name": owner.name, "detail": owner.detail, "bytes": owner.held.bytes })
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = self.verdict.to_string().to_uppercase();
        write!(f, "verdict  {verdict}")?;
        if let Some(sub) = self.sub {
            write!(f, " ({})", sub.replace('_', " "))?;
        }
        if self.certainty == Certainty::Inferred {
            f.write_str(", inferred")?;
        }
        writeln!(f, ": {}", self.because)?;
        writeln!(f, "text     {}", self.grammar)?;
        let width = self.figures.iter().map(|(name, _)| name.words().len()).max().unwrap_or(0);
        for (name, quantity) in self.figures.iter() {
            writeln!(f, "         {:<width$}  {}", name.words(), show(quantity))?;
        }
        for process in &self.processes {
            writeln!(f, "process  {}", process_line(process))?;
        }
        for owner in &self.owners {
            let detail = if owner.detail.is_empty() { "" } else { "  " };
            writeln!(f, "owner    {}  {}{detail}{}", show(owner.held), owner.name, owner.detail)?;
        }
        for (title, lines) in
            [("note", &self.notes), ("not said", &self.absent), ("try", &self.advice)]
        {
            for line in lines {
                writeln!(f, "{title:<8} {line}")?;
            }
        }
        for later in &self.later {
            write!(f, "\nand later in the same text\n{later}")?;
        }
        Ok(())
    }
}

fn process_line(process: &Process) -> String {
    let mut line = process.pid.to_string();
    // Writing to a string does not fail.
    let _ = match process.held {
        Some(held) => write!(line, "  {}", show(held)),
        None => write!(line, "  not available"),
    };
    if let Some(name) = &process.name {
        let _ = write!(line, "  {name}");
    }
    match process.ours {
        Some(true) => line.push_str("  this process, by its figure"),
        Some(false) => line.push_str("  another process"),
        None => {}
    }
    line
}

/// A quantity for people: `23.64 GiB`, exact counts below 1 KiB as they are.
pub fn show(quantity: Quantity) -> String {
    let bytes = quantity.bytes;
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| bytes >> shift > 0) {
        None => format!("{bytes} B"),
        Some((shift, unit)) if bytes.trailing_zeros() >= *shift => {
            format!("{} {unit}", bytes >> shift)
        }
        Some((shift, unit)) => format!("{:.2} {unit}", bytes as f64 / (1u64 << shift) as f64),
    }
}
