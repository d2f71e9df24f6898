//! Places: which buffer's bytes hold which value, and when.
//!
//! Values whose kernels can work in place share a [`Storage`]; a storage is an argument's buffer, a
//! result's fresh buffer, or a temporary. Temporaries that fit into a result's buffer before it is
//! first written, or into a donated argument's after it was last read, go there; the others are packed
//! into one block.

mod in_place;
mod pack;
mod search;

pub(crate) use in_place::in_place;
pub use pack::{Buffer, Packing, pack};

use crate::emit::Draft;
use crate::{Options, Slots};
use std::cmp::Reverse;
use vramlab_ir::MemorySpace;
use vramlab_ir::kernel::{Donation, Place, ResultSource};

/// Temporaries begin at multiples of this: a cache line, and the widest vector.
const ALIGNMENT: u64 = 64;

#[derive(Debug)]
pub(crate) struct Plan {
    pub places: Vec<Place>,
    /// Per kernel: it copies a value to where it already is, and is left out.
    pub dropped: Vec<bool>,
    pub results: Vec<ResultSource>,
    pub fresh_bytes: Vec<u64>,
    /// The memory of each fresh buffer.
    pub fresh_memory: Vec<MemorySpace>,
    pub temp_bytes: u64,
    pub host_temp_bytes: u64,
    pub donations: Vec<Donation>,
    pub peak_bytes: u64,
}

impl Plan {
    /// Whether another way to fuse might need less: when there are no temporaries and every donated
    /// argument is used, nothing is left to save.
    pub fn could_be_lower(&self) -> bool {
        self.temp_bytes > 0 || self.donations.iter().any(|donation| !donation.used)
    }

    /// Bytes of fresh results on the device.
    pub fn fresh_device_bytes(&self) -> u64 {
        let fresh = self.fresh_bytes.iter().zip(&self.fresh_memory);
        fresh.filter(|(_, memory)| **memory == MemorySpace::Device).map(|(bytes, _)| bytes).sum()
    }
}

/// Where a storage's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Argument(u32),
    /// A fresh buffer for the result.
    Result(u32),
    Temporary,
}

/// Bytes that hold one value after another.
#[derive(Clone, Debug)]
struct Storage {
    home: Home,
    bytes: u64,
    /// The times at which it is in use, inclusive: kernel k runs at time k + 1, arguments are there at
    /// time 0. first > last: never.
    first: usize,
    last: usize,
}

/// When a slot is written and read.
#[derive(Clone, Copy, Debug)]
struct Life {
    first: usize,
    last: usize,
    writers: u32,
}

pub(crate) fn assign(
    drafts: &[Draft],
    slots: &Slots,
    donated: &[bool],
    results: &[u32],
    options: &Options,
) -> Plan {
    let mut planner = Planner::new(drafts, slots, donated, results);
    planner.work_in_place(drafts);
    planner.take_donated();
    planner.finish(options)
}

struct Planner<'a> {
    /// Bytes on the device: slots in host memory have none, and nothing here moves into them.
    bytes: &'a [u64],
    /// Bytes of the slots in host memory.
    host: &'a [Option<u64>],
    donated: &'a [bool],
    results: &'a [u32],
    lives: Vec<Life>,
    /// Per slot: the slot whose storage it moved into, or itself.
    moved: Vec<u32>,
    /// Per slot; that of a slot that moved counts no more.
    storages: Vec<Storage>,
    dropped: Vec<bool>,
}

impl<'a> Planner<'a> {
    fn new(
        drafts: &[Draft],
        slots: &'a Slots,
        donated: &'a [bool],
        results: &'a [u32],
    ) -> Planner<'a> {
        let (bytes, host) = (slots.bytes.as_slice(), slots.host.as_slice());
        let end = drafts.len() + 1;
        let mut lives = vec![Life { first: usize::MAX, last: 0, writers: 0 }; bytes.len()];
        for (draft, time) in drafts.iter().zip(1..) {
            for &slot in draft.reads.iter().chain(&draft.writes) {
                let life = &mut lives[slot as usize];
                life.first = life.first.min(time);
                life.last = time;
            }
            for &slot in &draft.writes {
                lives[slot as usize].writers += 1;
            }
        }
        for &slot in results {
            lives[slot as usize].last = end;
        }
        for life in &mut lives[..donated.len()] {
            life.first = 0;
        }
        let mut result_of = vec![None; bytes.len()];
        for (result, &slot) in results.iter().enumerate().rev() {
            result_of[slot as usize] = Some(result as u32);
        }
        let storages = lives
            .iter()
            .enumerate()
            .map(|(slot, life)| {
                let home = match result_of[slot] {
                    _ if slot < donated.len() => Home::Argument(slot as u32),
                    Some(result) => Home::Result(result),
                    None => Home::Temporary,
                };
                Storage { home, bytes: bytes[slot], first: life.first, last: life.last }
            })
            .collect();
        let moved = (0..bytes.len() as u32).collect();
        let dropped = vec![false; drafts.len()];
        Planner { bytes, host, donated, results, lives, moved, storages, dropped }
    }

    /// The slot whose storage holds `slot`.
    fn find(&self, slot: u32) -> u32 {
        let mut slot = slot;
        while self.moved[slot as usize] != slot {
            slot = self.moved[slot as usize];
        }
        slot
    }

    fn storage_of(&self, slot: u32) -> &Storage {
        &self.storages[self.find(slot) as usize]
    }

    /// Results that no kernel could write in place take a donated argument of their size that is
    /// read for the last time before they are first written.
    fn take_donated(&mut self) {
        for &slot in self.results {
            let storage = self.storage_of(slot);
            if !matches!(storage.home, Home::Result(_)) || storage.bytes == 0 {
                continue;
            }
            let (first, bytes) = (storage.first, storage.bytes);
            let fits = |at: &usize| {
                let other = self.storage_of(*at as u32);
                self.donated[*at]
                    && other.home == Home::Argument(*at as u32)
                    && other.bytes == bytes
                    && other.last < first
            };
            if let Some(argument) = (0..self.donated.len()).find(fits) {
                self.merge(argument as u32, slot);
            }
        }
    }

    /// Lets everything in the storage of `from` live in the storage of `into`.
    fn merge(&mut self, into: u32, from: u32) {
        let (into, from) = (self.find(into), self.find(from));
        let source = self.storages[from as usize].clone();
        let target = &mut self.storages[into as usize];
        target.first = target.first.min(source.first);
        target.last = target.last.max(source.last);
        if target.home == Home::Temporary {
            target.home = source.home;
        }
        self.storages[from as usize].bytes = 0;
        self.moved[from as usize] = into;
    }

    fn finish(mut self, options: &Options) -> Plan {
        self.lodge();
        let (offsets, temp_bytes) = self.pack_temporaries(options);
        let (host_offsets, host_temp_bytes) = self.pack_host(options);
        let (results, fresh_bytes, fresh_of) = self.result_sources();
        let places: Vec<Place> = (0..self.bytes.len())
            .map(|slot| {
                let storage = self.find(slot as u32) as usize;
                match self.storages[storage].home {
                    Home::Argument(index) => Place::Argument { index },
                    Home::Result(result) => {
                        Place::Result { index: fresh_of[result as usize].unwrap_or(0) }
                    }
                    Home::Temporary if self.host[slot].is_some() => {
                        Place::Host { offset: host_offsets[slot] }
                    }
                    Home::Temporary => Place::Temporary { offset: offsets[storage] },
                }
            })
            .collect();
        let donations = self.donations(&results);
        let arguments: u64 = self.bytes[..self.donated.len()].iter().sum();
        let fresh_memory = self.fresh_memory(&fresh_of);
        let mut plan = Plan {
            places,
            dropped: self.dropped,
            results,
            fresh_bytes,
            fresh_memory,
            temp_bytes,
            host_temp_bytes,
            donations,
            peak_bytes: arguments + temp_bytes,
        };
        plan.peak_bytes += plan.fresh_device_bytes();
        plan
    }

    /// Temporaries move into buffers that exist anyway while these are idle.
    fn lodge(&mut self) {
        let mut guests: Vec<u32> = self.lodgers(|home| home == Home::Temporary);
        if guests.is_empty() || guests.len() > CROWDED {
            return;
        }
        let mut hosts = self.lodgers(|home| match home {
            Home::Argument(index) => self.donated[index as usize],
            Home::Result(_) => true,
            Home::Temporary => false,
        });
        hosts.sort_by_key(|&h| Reverse(self.storages[h as usize].bytes));
        hosts.truncate(HOSTS);
        let mut taken: Vec<Vec<(usize, usize)>> = hosts
            .iter()
            .map(|&h| vec![(self.storages[h as usize].first, self.storages[h as usize].last)])
            .collect();
        let mut crowd = self.crowd(&guests);
        for _ in 0..LODGERS {
            // What is alive at the most crowded time decides the block's size, and of that what is
            // alive longest while it is crowded.
            let most = crowd.iter().copied().max().unwrap_or(0);
            let Some(peak) = crowd.iter().position(|&c| c == most && c > 0) else { return };
            let crowded = |s: u32| {
                let Storage { first, last, .. } = self.storages[s as usize];
                crowd[first..=last].iter().filter(|&&c| c == most).count()
            };
            let fitting = guests
                .iter()
                .copied()
                .filter(|&s| {
                    let storage = &self.storages[s as usize];
                    storage.first <= peak && peak <= storage.last
                })
                .filter_map(|s| Some((s, self.host(s, &hosts, &taken)?)))
                .max_by_key(|&(s, _)| (crowded(s), self.storages[s as usize].bytes, Reverse(s)));
            let Some((guest, host)) = fitting else { return };
            let Storage { bytes, first, last, .. } = self.storages[guest as usize];
            taken[host].push((first, last));
            self.storages[guest as usize].home = self.storages[hosts[host] as usize].home;
            crowd[first..=last].iter_mut().for_each(|c| *c -= bytes);
            guests.retain(|&s| s != guest);
        }
    }

    /// Bytes of temporaries alive at each time.
    fn crowd(&self, temporaries: &[u32]) -> Vec<u64> {
        let end = temporaries.iter().map(|&s| self.storages[s as usize].last).max().unwrap_or(0);
        let mut crowd = vec![0; end + 1];
        for &s in temporaries {
            let Storage { bytes, first, last, .. } = self.storages[s as usize];
            crowd[first..=last].iter_mut().for_each(|c| *c += bytes);
        }
        crowd
    }

    /// The smallest host that is idle while `guest` is in use; hosts stand by decreasing size.
    fn host(&self, guest: u32, hosts: &[u32], taken: &[Vec<(usize, usize)>]) -> Option<usize> {
        let Storage { bytes, first, last, .. } = self.storages[guest as usize];
        (0..hosts.len()).rev().find(|&host| {
            self.storages[hosts[host] as usize].bytes >= bytes
                && taken[host].iter().all(|&(f, l)| last < f || first > l)
        })
    }

    fn lodgers(&self, wanted: impl Fn(Home) -> bool) -> Vec<u32> {
        (0..self.storages.len() as u32)
            .filter(|&s| {
                let storage = &self.storages[s as usize];
                storage.bytes > 0 && wanted(storage.home)
            })
            .collect()
    }

    fn pack_temporaries(&self, options: &Options) -> (Vec<u64>, u64) {
        let mut offsets = vec![0; self.storages.len()];
        let packed = self.lodgers(|home| home == Home::Temporary);
        if packed.is_empty() {
            return (offsets, 0);
        }
        let height = self.pack_into(&mut offsets, &packed, |s| self.storages[s].bytes, options);
        (offsets, height)
    }

    /// Offloaded values share a block of host memory of their own, by slot.
    fn pack_host(&self, options: &Options) -> (Vec<u64>, u64) {
        let mut offsets = vec![0; self.storages.len()];
        let bytes = |slot: usize| self.host[slot].unwrap_or(0);
        let temporary = |slot: &u32| self.storages[*slot as usize].home == Home::Temporary;
        let slots = (0..self.storages.len() as u32).filter(|&slot| bytes(slot as usize) > 0);
        let packed: Vec<u32> = slots.filter(temporary).collect();
        if packed.is_empty() {
            return (offsets, 0);
        }
        let height = self.pack_into(&mut offsets, &packed, bytes, options);
        (offsets, height)
    }

    /// One block for these storages, by when they are in use; its size.
    fn pack_into(
        &self,
        offsets: &mut [u64],
        packed: &[u32],
        bytes: impl Fn(usize) -> u64,
        options: &Options,
    ) -> u64 {
        let buffers: Vec<Buffer> = packed
            .iter()
            .map(|&s| {
                let Storage { first, last, .. } = self.storages[s as usize];
                Buffer { lower: first as u64, upper: last as u64 + 1, size: bytes(s as usize) }
            })
            .collect();
        // A step looks at what is alive together, so many buffers get fewer steps.
        let steps = options.packing_steps / (1 + buffers.len() as u64 / 256);
        let packing = pack(&buffers, ALIGNMENT, steps);
        for (&storage, &offset) in packed.iter().zip(&packing.offsets) {
            offsets[storage as usize] = offset;
        }
        packing.height
    }

    /// The memory of each fresh buffer, by the results that have one.
    fn fresh_memory(&self, fresh_of: &[Option<u32>]) -> Vec<MemorySpace> {
        let own = self.results.iter().zip(fresh_of).filter(|(_, fresh)| fresh.is_some());
        own.map(|(&slot, _)| match self.host[slot as usize] {
            Some(_) => MemorySpace::PinnedHost,
            None => MemorySpace::Device,
        })
        .collect()
    }

    /// How each result comes about, the bytes of fresh buffers, and the fresh buffer of each result
    /// that has one.
    fn result_sources(&self) -> (Vec<ResultSource>, Vec<u64>, Vec<Option<u32>>) {
        let mut sources: Vec<ResultSource> = Vec::with_capacity(self.results.len());
        let mut fresh_bytes = Vec::new();
        let mut fresh_of = vec![None; self.results.len()];
        for (result, &slot) in self.results.iter().enumerate() {
            let earlier = self.results[..result].iter().position(|&r| r == slot);
            let source = match (self.storage_of(slot).home, earlier) {
                (Home::Argument(argument), None) if self.donated[argument as usize] => {
                    ResultSource::Donated { argument }
                }
                (Home::Argument(argument), _) if !self.donated[argument as usize] => {
                    ResultSource::Shared { argument }
                }
                (_, Some(earlier)) => ResultSource::Same { result: earlier as u32 },
                _ => {
                    let slot = slot as usize;
                    fresh_bytes.push(self.host[slot].unwrap_or(self.bytes[slot]));
                    let index = fresh_bytes.len() as u32 - 1;
                    fresh_of[result] = Some(index);
                    ResultSource::Fresh { index }
                }
            };
            sources.push(source);
        }
        (sources, fresh_bytes, fresh_of)
    }

    /// Each argument offered for donation: used, or why not.
    fn donations(&self, results: &[ResultSource]) -> Vec<Donation> {
        (0..self.donated.len())
            .filter(|&at| self.donated[at])
            .map(|at| {
                let argument = at as u32;
                let taken = results.iter().position(
                    |r| matches!(r, ResultSource::Donated { argument: a } if *a == argument),
                );
                let reason = match taken {
                    Some(result) => format!("aliases result {result}"),
                    None => self.unusable(at),
                };
                let used = taken.is_some();
                Donation { argument, used, reason }
            })
            .collect()
    }

    fn unusable(&self, at: usize) -> String {
        let bytes = self.bytes[at];
        let lodges = (0..self.storages.len()).any(|s| {
            let storage = &self.storages[s];
            storage.home == Home::Argument(at as u32) && s != at && storage.bytes > 0
        });
        let sizes: Vec<u64> = self.results.iter().map(|&r| self.bytes[r as usize]).collect();
        let same = sizes.iter().filter(|&&b| b == bytes).count();
        let end = if lodges { "; its bytes hold temporaries" } else { "" };
        if bytes == 0 {
            return "it has no bytes".into();
        }
        if same == 0 {
            let listed: Vec<String> = sizes.iter().take(4).map(u64::to_string).collect();
            return format!(
                "no result has its {bytes} bytes (results: {}){end}",
                listed.join(", ")
            );
        }
        let free = self.results.iter().any(|&r| {
            self.bytes[r as usize] == bytes && matches!(self.storage_of(r).home, Home::Result(_))
        });
        if free {
            format!("it is still read when the result of its size is written{end}")
        } else {
            format!("every result of its {bytes} bytes has a buffer already{end}")
        }
    }
}

/// Among more temporaries than this a lodging would change little.
const CROWDED: usize = 2000;
/// At most this many temporaries get a lodging.
const LODGERS: usize = 256;
/// And only among this many of the largest buffers.
const HOSTS: usize = 256;
