//! Free chunks by size, then by address, made for the question "the smallest that fits".
//!
//! XLA keeps 21 bins of doubling sizes, each ordered by (size, address), and looks from the bin of the request upwards.
//! That is one order over all free chunks, so the bins need not be built to be obeyed. Here a small chunk lies in a
//! class of its exact size, in units of 256 bytes, and a bitmap finds the next class with something in it; larger
//! chunks, few by nature, lie in one ordered set.
//!
//! A class is a heap of addresses with lazy removal: an entry whose chunk was merged or handed out stays until it
//! surfaces or until stale entries are half of the class. An entry is valid as long as its chunk is free at that address
//! with that size, which the owner's table of chunks tells.

use crate::UNIT;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Sizes below this many units have a class of their own.
const CLASSES: usize = 4096;
const WORDS: usize = CLASSES / 64;

/// What the list asks about an entry: does this chunk lie free at this address with this size?
pub(crate) trait FreeChunks {
    fn is_free_at(&self, chunk: u32, address: u64, bytes: u64) -> bool;
}

#[derive(Default)]
struct Class {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    live: u32,
}

pub(crate) struct FreeList {
    classes: Vec<Class>,
    occupied: [u64; WORDS],
    large: BTreeSet<(u64, u64, u32)>,
}

impl FreeList {
    pub(crate) fn new() -> FreeList {
        FreeList { classes: Vec::new(), occupied: [0; WORDS], large: BTreeSet::new() }
    }

    pub(crate) fn insert(&mut self, bytes: u64, address: u64, chunk: u32) {
        let units = (bytes / UNIT) as usize;
        if units >= CLASSES {
            self.large.insert((bytes, address, chunk));
            return;
        }
        if self.classes.is_empty() {
            self.classes.resize_with(CLASSES, Class::default);
        }
        let class = &mut self.classes[units];
        class.heap.push(Reverse((address, chunk)));
        class.live += 1;
        self.occupied[units / 64] |= 1 << (units % 64);
    }

    /// Forgets a free chunk. Its entry in a class stays until it surfaces or the class is swept.
    pub(crate) fn remove(&mut self, bytes: u64, address: u64, chunk: u32, of: &impl FreeChunks) {
        let units = (bytes / UNIT) as usize;
        if units >= CLASSES {
            let was_there = self.large.remove(&(bytes, address, chunk));
            debug_assert!(was_there, "a free chunk is in the list");
            return;
        }
        self.leave(units);
        let class = &mut self.classes[units];
        if class.heap.len() > 2 * class.live as usize + 16 {
            // The chunk that leaves is still free in the owner's table, so it is named here.
            let mut entries = std::mem::take(&mut class.heap).into_vec();
            entries.retain(|Reverse((at, index))| {
                (*at, *index) != (address, chunk) && of.is_free_at(*index, *at, bytes)
            });
            entries.sort_unstable();
            entries.dedup();
            class.heap = entries.into();
        }
    }

    /// The smallest free chunk of at least `bytes`, lowest address first among equals; it leaves the list.
    pub(crate) fn take_best_fit(&mut self, bytes: u64, of: &impl FreeChunks) -> Option<u32> {
        let units = bytes.div_ceil(UNIT);
        if units < CLASSES as u64
            && let Some(class) = self.next_occupied(units as usize)
        {
            return Some(self.take_lowest(class, of));
        }
        let first = self.large.range((bytes, 0, 0)..).next().copied()?;
        self.large.remove(&first);
        Some(first.2)
    }

    /// Size of the largest free chunk, 0 if there is none.
    pub(crate) fn largest(&self) -> u64 {
        if let Some((bytes, _, _)) = self.large.last() {
            return *bytes;
        }
        let top = self.occupied.iter().rposition(|word| *word != 0);
        top.map_or(0, |word| {
            let bit = 63 - self.occupied[word].leading_zeros() as u64;
            (word as u64 * 64 + bit) * UNIT
        })
    }

    fn next_occupied(&self, from: usize) -> Option<usize> {
        let first = self.occupied[from / 64] & (u64::MAX << (from % 64));
        if first != 0 {
            return Some(from / 64 * 64 + first.trailing_zeros() as usize);
        }
        let later = (from / 64 + 1..WORDS).find(|word| self.occupied[*word] != 0)?;
        Some(later * 64 + self.occupied[later].trailing_zeros() as usize)
    }

    fn take_lowest(&mut self, class: usize, of: &impl FreeChunks) -> u32 {
        let bytes = class as u64 * UNIT;
        loop {
            let Reverse((address, chunk)) =
                self.classes[class].heap.pop().expect("an occupied class has an entry");
            if of.is_free_at(chunk, address, bytes) {
                self.leave(class);
                return chunk;
            }
        }
    }

    fn leave(&mut self, class: usize) {
        let left = &mut self.classes[class].live;
        *left -= 1;
        if *left == 0 {
            self.occupied[class / 64] &= !(1 << (class % 64));
            self.classes[class].heap.clear();
        }
    }
}
