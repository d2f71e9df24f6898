//! Free chunks by size, then by address, made for the question "the smallest that fits".
//!
//! XLA keeps 21 bins of doubling sizes, each ordered by (size, address), and looks from the bin of the request upwards.
//! That is one order over all free chunks, so the bins need not be built to be obeyed. Here a small chunk lies in a
//! class of its exact size, in units of 256 bytes, and a bitmap finds the next class with something in it; larger
//! chunks, few by nature, lie in one ordered set. A class is an ordered set of addresses: mostly a single node.
//!
//! Tried and left: one ordered set for everything (a search touches a dozen nodes), and classes with lazy removal (each
//! stale entry costs a look at its chunk, which lies far away).

use crate::UNIT;
use std::collections::BTreeSet;

/// Sizes below this many units have a class of their own.
const CLASSES: usize = 4096;
const WORDS: usize = CLASSES / 64;

pub(crate) struct FreeList {
    classes: Vec<BTreeSet<(u64, u32)>>,
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
            self.classes.resize_with(CLASSES, BTreeSet::new);
        }
        self.classes[units].insert((address, chunk));
        self.occupied[units / 64] |= 1 << (units % 64);
    }

    pub(crate) fn remove(&mut self, bytes: u64, address: u64, chunk: u32) {
        let units = (bytes / UNIT) as usize;
        let was_there = if units >= CLASSES {
            self.large.remove(&(bytes, address, chunk))
        } else {
            let was_there = self.classes[units].remove(&(address, chunk));
            self.note_if_empty(units);
            was_there
        };
        debug_assert!(was_there, "a free chunk is in the list");
    }

    /// The smallest free chunk of at least `bytes`, lowest address first among equals; it leaves the list.
    pub(crate) fn take_best_fit(&mut self, bytes: u64) -> Option<u32> {
        let units = bytes.div_ceil(UNIT);
        if units < CLASSES as u64
            && let Some(class) = self.next_occupied(units as usize)
        {
            let first = self.classes[class].pop_first();
            self.note_if_empty(class);
            return first.map(|(_, chunk)| chunk);
        }
        let first = self.large.range((bytes, 0, 0)..).next().copied()?;
        self.large.remove(&first);
        Some(first.2)
    }

    /// Size, address and name of the smallest free chunk of at least `bytes`, lowest address first among equals.
    pub(crate) fn best_fit(&self, bytes: u64) -> Option<(u64, u64, u32)> {
        let units = bytes.div_ceil(UNIT);
        if units < CLASSES as u64
            && let Some(class) = self.next_occupied(units as usize)
        {
            let first = self.classes[class].first();
            return first.map(|(address, chunk)| (class as u64 * UNIT, *address, *chunk));
        }
        self.large.range((bytes, 0, 0)..).next().copied()
    }

    /// Every chunk of the list, smallest first.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = u32> {
        let mut from = Some(0);
        let classes = std::iter::from_fn(move || {
            let class = self.next_occupied(from?);
            from = class.map(|class| class + 1).filter(|next| *next < CLASSES);
            class
        });
        let small = classes.flat_map(|class| self.classes[class].iter().map(|(_, chunk)| *chunk));
        small.chain(self.large.iter().map(|(_, _, chunk)| *chunk))
    }

    /// Whether the list holds that chunk.
    pub(crate) fn contains(&self, bytes: u64, address: u64, chunk: u32) -> bool {
        let class = self.classes.get((bytes / UNIT) as usize);
        class.is_some_and(|class| class.contains(&(address, chunk)))
            || self.large.contains(&(bytes, address, chunk))
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

    fn note_if_empty(&mut self, class: usize) {
        if self.classes[class].is_empty() {
            self.occupied[class / 64] &= !(1 << (class % 64));
        }
    }
}
