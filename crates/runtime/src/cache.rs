//! The compile cache: programs by structure, donation and options, with the figures of each entry.

use crate::fast_hash::{FastHasher, FastMap};
use crate::measure;
use crate::same_program::same_program;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vramlab_device::Launch;
use vramlab_ir::kernel::{Place, ResultSource};
use vramlab_ir::{
    CompileKind, CompileRequest, ExecutableId, Kernel, Leaner, MemoryAnalysis, Program, Type,
};
use vramlab_memory::OwnerId;

/// A program ready to run, with what each run needs worked out once.
pub(crate) struct Compiled {
    pub program: Program,
    /// The kernels, decoded for the device.
    pub launches: Vec<Box<dyn Launch>>,
    pub params: Vec<Type>,
    pub results: Vec<Type>,
    pub name: String,
    /// The ledger's owner of its temporary block.
    pub temporary: OwnerId,
    /// Per parameter: whether a kernel writes into the argument's bytes.
    pub written: Vec<bool>,
    /// Per parameter: whether a result is the argument's bytes.
    pub passed_on: Vec<bool>,
    /// Index of the first kernel that writes into an argument: from there on a run can no longer be undone.
    pub point_of_no_return: usize,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub flops: u64,
}

impl Compiled {
    pub fn new(program: Program, launches: Vec<Box<dyn Launch>>, temporary: OwnerId) -> Compiled {
        let mut written = vec![false; program.func.params.len()];
        let mut point_of_no_return = program.kernels.len();
        for (index, kernel) in program.kernels.iter().enumerate() {
            for argument in arguments_written(&program, kernel) {
                written[argument] = true;
                point_of_no_return = point_of_no_return.min(index);
            }
        }
        let mut passed_on = vec![false; program.func.params.len()];
        for result in &program.results {
            if let ResultSource::Donated { argument } | ResultSource::Shared { argument } = result {
                passed_on[*argument as usize] = true;
            }
        }
        let sum = |of: fn(&Kernel) -> u64| program.kernels.iter().map(of).sum();
        Compiled {
            params: program.func.param_types(),
            results: program.func.result_types(),
            name: program.func.name.clone(),
            temporary,
            written,
            passed_on,
            point_of_no_return,
            bytes_read: sum(|kernel| kernel.bytes_read),
            bytes_written: sum(|kernel| kernel.bytes_written),
            flops: sum(|kernel| kernel.flops),
            program,
            launches,
        }
    }

    /// Bytes on the host for this entry.
    pub fn code_bytes(&self) -> u64 {
        let decoded: u64 = self.launches.iter().map(|launch| launch.code_bytes()).sum();
        decoded
            + measure::whole(&self.program)
            + measure::whole(&self.params)
            + measure::whole(&self.results)
            + (self.name.capacity() + self.written.capacity()) as u64
            + std::mem::size_of::<Entry>() as u64
    }

    pub fn argument_bytes(&self) -> u64 {
        self.params.iter().map(Type::device_bytes).sum()
    }

    /// JAX's figures of the plan.
    pub fn analysis(&self) -> MemoryAnalysis {
        let scratch = self.launches.iter().map(|launch| launch.host_scratch_bytes());
        let aliased = |source: &ResultSource| match *source {
            ResultSource::Donated { argument } => self.params[argument as usize].bytes(),
            _ => 0,
        };
        MemoryAnalysis {
            argument_size_in_bytes: self.argument_bytes(),
            output_size_in_bytes: self.results.iter().map(Type::device_bytes).sum(),
            alias_size_in_bytes: self.program.results.iter().map(aliased).sum(),
            temp_size_in_bytes: self.program.temp_bytes,
            generated_code_size_in_bytes: self.code_bytes(),
            peak_memory_in_bytes: self.program.peak_bytes,
            host_temp_size_in_bytes: self.program.host_temp_bytes,
            host_scratch_bytes: scratch.max().unwrap_or(0),
        }
    }
}

fn arguments_written<'a>(
    program: &'a Program,
    kernel: &'a Kernel,
) -> impl Iterator<Item = usize> + 'a {
    kernel.writes().into_iter().filter_map(|buffer| {
        let slot = kernel.buffers[buffer as usize];
        match program.slots[slot as usize].place {
            Place::Argument { index } => Some(index as usize),
            _ => None,
        }
    })
}

/// An entry as tables show it.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheEntry {
    pub executable: ExecutableId,
    /// The functions that this program was compiled for, the first one first.
    pub names: Vec<String>,
    pub kind: CompileKind,
    /// `(f32[4,3], f32[3]) -> f32[4]`
    pub signature: String,
    /// Parameters whose buffers may be reused.
    pub donated: Vec<u32>,
    /// Calls that found the entry.
    pub hits: u64,
    pub compile_ns: u64,
    pub kernels: usize,
    /// Host bytes of the program.
    pub code_bytes: u64,
    /// Device bytes of the constants that its functions captured.
    pub constant_bytes: u64,
    /// On the context's clock, nanoseconds.
    pub last_use_ns: u64,
    /// How long ago that was, nanoseconds.
    pub idle_ns: u64,
}

/// Which entries go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheSelection {
    All,
    /// Those of one function, by name.
    Named(String),
    /// Those not used for so many nanoseconds.
    OlderThan(u64),
    /// The least recently used, until the rest is within so many bytes.
    UntilUnder(u64),
}

/// What went, or would go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    pub entries: u64,
    pub bytes: u64,
    /// (function, entries of it), in the order of their making.
    pub names: Vec<(String, u64)>,
}

/// Hits and misses of executable calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileTally {
    pub hits: u64,
    pub misses: u64,
    pub compile_ns: u64,
}

/// The compile cache in figures; eager ops are counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileCounts {
    pub jit: CompileTally,
    pub eager: CompileTally,
    pub entries: u64,
    pub bytes: u64,
    /// Entries that the byte budget pushed out.
    pub evicted: u64,
}

pub(crate) struct Entry {
    pub id: ExecutableId,
    pub compiled: Arc<Compiled>,
    pub kind: CompileKind,
    pub donate: Vec<bool>,
    pub memory_limit: Option<u64>,
    pub leaner: Vec<Leaner>,
    key: u64,
    names: Vec<String>,
    pub hits: u64,
    pub compile_ns: u64,
    pub bytes: u64,
    pub last_use_ns: u64,
    /// Compiled and not run yet: its first call was counted as the miss.
    fresh: bool,
    pub measured_peak: Option<u64>,
}

pub(crate) struct Cache {
    entries: FastMap<ExecutableId, Entry>,
    by_key: HashMap<u64, Vec<ExecutableId>, std::hash::BuildHasherDefault<FastHasher>>,
    next: u64,
    bytes: u64,
    budget: u64,
    jit: CompileTally,
    eager: CompileTally,
    evicted: u64,
}

/// The key of a request. The device and its options are those of the context, which owns the cache.
pub(crate) fn key_of(request: &CompileRequest) -> u64 {
    let mut hasher = FastHasher::default();
    request.func.hash(&mut hasher);
    request.donate.hash(&mut hasher);
    request.memory_limit.hash(&mut hasher);
    hasher.finish()
}

impl Cache {
    pub fn new(budget: u64) -> Cache {
        Cache {
            entries: FastMap::default(),
            by_key: HashMap::default(),
            next: 1,
            bytes: 0,
            budget,
            jit: CompileTally::default(),
            eager: CompileTally::default(),
            evicted: 0,
        }
    }

    /// The entry of the same program, if there is one.
    pub fn find(&mut self, key: u64, request: &CompileRequest) -> Option<ExecutableId> {
        let found = self.by_key.get(&key)?.iter().copied().find(|id| {
            let entry = &self.entries[id];
            entry.donate == request.donate
                && entry.memory_limit == request.memory_limit
                && same_program(&entry.compiled.program.func, &request.func)
        })?;
        let entry = self.entries.get_mut(&found).expect("the index lists entries");
        if !entry.names.contains(&request.func.name) {
            entry.names.push(request.func.name.clone());
        }
        // A program first met as one eager op and then jitted is listed as jitted.
        if request.kind == CompileKind::Jit {
            entry.kind = CompileKind::Jit;
        }
        Some(found)
    }

    /// Adds a program that was just compiled and counts the miss. Evicted entries follow: (name, bytes).
    pub fn insert(
        &mut self,
        key: u64,
        request: &CompileRequest,
        compiled: Compiled,
        compile_ns: u64,
        now_ns: u64,
    ) -> (ExecutableId, Vec<(String, u64)>) {
        let id = ExecutableId(self.next);
        self.next += 1;
        let bytes = compiled.code_bytes();
        let entry = Entry {
            id,
            kind: request.kind,
            donate: request.donate.clone(),
            memory_limit: request.memory_limit,
            leaner: request.leaner.clone(),
            key,
            names: vec![request.func.name.clone()],
            hits: 0,
            compile_ns,
            bytes,
            last_use_ns: now_ns,
            fresh: true,
            measured_peak: None,
            compiled: Arc::new(compiled),
        };
        self.entries.insert(id, entry);
        self.by_key.entry(key).or_default().push(id);
        self.bytes += bytes;
        let tally = self.tally(request.kind);
        tally.misses += 1;
        tally.compile_ns += compile_ns;
        let evicted = self.evict(id);
        (id, evicted)
    }

    fn tally(&mut self, kind: CompileKind) -> &mut CompileTally {
        match kind {
            CompileKind::Jit => &mut self.jit,
            CompileKind::Eager => &mut self.eager,
        }
    }

    fn evict(&mut self, keep: ExecutableId) -> Vec<(String, u64)> {
        let mut evicted = Vec::new();
        for id in self.least_used_until(self.budget) {
            if id != keep {
                let entry = self.remove(id);
                evicted.push((entry.compiled.name.clone(), entry.bytes));
            }
        }
        self.evicted += evicted.len() as u64;
        evicted
    }

    fn least_used_until(&self, budget: u64) -> Vec<ExecutableId> {
        let mut left = self.bytes;
        if left <= budget {
            return Vec::new();
        }
        let mut by_age: Vec<&Entry> = self.entries.values().collect();
        by_age.sort_unstable_by_key(|entry| (entry.last_use_ns, entry.id));
        let goes = by_age.into_iter().take_while(|entry| {
            let goes = left > budget;
            left = left.saturating_sub(entry.bytes);
            goes
        });
        goes.map(|entry| entry.id).collect()
    }

    fn remove(&mut self, id: ExecutableId) -> Entry {
        let entry = self.entries.remove(&id).expect("only an entry is removed");
        if let Some(ids) = self.by_key.get_mut(&entry.key) {
            ids.retain(|&other| other != id);
            if ids.is_empty() {
                self.by_key.remove(&entry.key);
            }
        }
        self.bytes -= entry.bytes;
        entry
    }

    /// The program to run, with the call counted unless it is a second try of the same one.
    pub fn call(
        &mut self,
        id: ExecutableId,
        now_ns: u64,
        first_try: bool,
    ) -> Option<Arc<Compiled>> {
        let entry = self.entries.get_mut(&id)?;
        entry.last_use_ns = now_ns;
        let hit = !std::mem::replace(&mut entry.fresh, false) && first_try;
        entry.hits += u64::from(hit);
        let (compiled, kind) = (entry.compiled.clone(), entry.kind);
        self.tally(kind).hits += u64::from(hit);
        Some(compiled)
    }

    pub fn get(&self, id: ExecutableId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub fn measured(&mut self, id: ExecutableId, peak: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.measured_peak = Some(peak);
        }
    }

    fn select(&self, selection: &CacheSelection, now_ns: u64) -> Vec<ExecutableId> {
        let mut ids: Vec<ExecutableId> = match selection {
            CacheSelection::UntilUnder(budget) => self.least_used_until(*budget),
            _ => {
                let goes = |entry: &&Entry| match selection {
                    CacheSelection::Named(name) => entry.names.contains(name),
                    CacheSelection::OlderThan(ns) => now_ns.saturating_sub(entry.last_use_ns) > *ns,
                    _ => true,
                };
                self.entries.values().filter(goes).map(|entry| entry.id).collect()
            }
        };
        ids.sort_unstable();
        ids
    }

    /// What a clear of that selection would free.
    pub fn would_clear(&self, selection: &CacheSelection, now_ns: u64) -> Cleared {
        let mut cleared = Cleared::default();
        for id in self.select(selection, now_ns) {
            cleared.count(&self.entries[&id]);
        }
        cleared
    }

    pub fn clear(&mut self, selection: &CacheSelection, now_ns: u64) -> Cleared {
        let mut cleared = Cleared::default();
        for id in self.select(selection, now_ns) {
            let entry = self.remove(id);
            cleared.count(&entry);
        }
        cleared
    }

    pub fn counts(&self) -> CompileCounts {
        CompileCounts {
            jit: self.jit,
            eager: self.eager,
            entries: self.entries.len() as u64,
            bytes: self.bytes,
            evicted: self.evicted,
        }
    }

    /// All entries in the order of their making. `constants`: device bytes captured by a function of that name.
    pub fn list(&self, now_ns: u64, constants: impl Fn(&str) -> u64) -> Vec<CacheEntry> {
        let mut all: Vec<CacheEntry> = self
            .entries
            .values()
            .map(|entry| CacheEntry {
                executable: entry.id,
                names: entry.names.clone(),
                kind: entry.kind,
                signature: signature(&entry.compiled),
                donated: positions(&entry.donate),
                hits: entry.hits,
                compile_ns: entry.compile_ns,
                kernels: entry.compiled.program.kernels.len(),
                code_bytes: entry.bytes,
                constant_bytes: entry.names.iter().map(|name| constants(name)).sum(),
                last_use_ns: entry.last_use_ns,
                idle_ns: now_ns.saturating_sub(entry.last_use_ns),
            })
            .collect();
        all.sort_unstable_by_key(|entry| entry.executable);
        all
    }
}

impl Cleared {
    fn count(&mut self, entry: &Entry) {
        self.entries += 1;
        self.bytes += entry.bytes;
        match self.names.iter_mut().find(|(name, _)| *name == entry.compiled.name) {
            Some((_, entries)) => *entries += 1,
            None => self.names.push((entry.compiled.name.clone(), 1)),
        }
    }
}

fn positions(mask: &[bool]) -> Vec<u32> {
    let set = mask.iter().enumerate().filter(|(_, set)| **set);
    set.map(|(index, _)| index as u32).collect()
}

fn signature(compiled: &Compiled) -> String {
    let list = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
    let results = list(&compiled.results);
    match compiled.results.len() {
        1 => format!("({}) -> {results}", list(&compiled.params)),
        _ => format!("({}) -> ({results})", list(&compiled.params)),
    }
}
