//! The ranges of addresses that an allocator holds from the driver.

use crate::record::{Kind, Record};
use crate::trace::Segment;
use std::collections::BTreeMap;

/// Segments by address, followed event by event, forward or backward.
#[derive(Clone, Debug, Default)]
pub struct Held {
    segments: BTreeMap<u64, u64>,
    bytes: u128,
}

impl Held {
    /// Follows an event.
    pub fn take(&mut self, record: &Record) {
        match record.kind {
            Kind::Grow => self.add(record.address, record.bytes),
            Kind::Release => self.remove(record.address),
            Kind::Map => self.map(record.address, record.bytes),
            Kind::Unmap => self.unmap(record.address, record.bytes),
            _ => {}
        }
    }

    /// Undoes an event.
    pub fn undo(&mut self, record: &Record) {
        match record.kind {
            Kind::Grow => self.remove(record.address),
            Kind::Release => self.add(record.address, record.bytes),
            Kind::Map => self.unmap(record.address, record.bytes),
            Kind::Unmap => self.map(record.address, record.bytes),
            _ => {}
        }
    }

    /// A segment of its own.
    pub fn add(&mut self, base: u64, bytes: u64) {
        let bytes = bytes.min(u64::MAX - base);
        self.bytes += u128::from(bytes);
        self.bytes -= u128::from(self.segments.insert(base, bytes).unwrap_or(0));
    }

    fn remove(&mut self, base: u64) {
        self.bytes -= u128::from(self.segments.remove(&base).unwrap_or(0));
    }

    /// Memory that joins what lies beside it.
    fn map(&mut self, base: u64, bytes: u64) {
        let bytes = bytes.min(u64::MAX - base);
        self.unmap(base, bytes);
        let (mut from, mut to) = (base, base + bytes);
        let before = self.segments.range(..from).next_back();
        if let Some((at, size)) = before.filter(|(at, size)| *at + **size == from) {
            (from, _) = (*at, *size);
        }
        if let Some(size) = self.segments.remove(&to) {
            self.bytes -= u128::from(size);
            to += size;
        }
        self.add(from, to - from);
    }

    /// Takes a range out of whatever lies there.
    fn unmap(&mut self, base: u64, bytes: u64) {
        let end = base.saturating_add(bytes);
        let first = self.segments.range(..=base).next_back().map_or(base, |(at, _)| *at);
        let touched: Vec<(u64, u64)> =
            self.segments.range(first..end.max(first)).map(|(at, size)| (*at, *size)).collect();
        for (at, size) in touched.into_iter().filter(|(at, size)| at + size > base) {
            self.remove(at);
            if at < base {
                self.add(at, base - at);
            }
            if at + size > end {
                self.add(end, at + size - end);
            }
        }
    }

    /// Bytes held, at most what 64 bits hold.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(u64::MAX)
    }

    /// The segments, by address.
    pub fn segments(&self) -> Vec<Segment> {
        self.segments.iter().map(|(base, bytes)| Segment { base: *base, bytes: *bytes }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_ranges_join_and_part() {
        let mut held = Held::default();
        let event = |kind, address, bytes| Record { address, bytes, ..Record::of(kind, 0) };
        held.take(&event(Kind::Grow, 1000, 100));
        held.take(&event(Kind::Map, 0, 10));
        held.take(&event(Kind::Map, 20, 10));
        held.take(&event(Kind::Map, 10, 10));
        let of = |held: &Held| {
            held.segments().iter().map(|s| (s.base, s.bytes)).collect::<Vec<(u64, u64)>>()
        };
        assert_eq!(of(&held), [(0, 30), (1000, 100)]);
        held.take(&event(Kind::Unmap, 5, 10));
        assert_eq!((of(&held), held.bytes()), (vec![(0, 5), (15, 15), (1000, 100)], 120));
        held.undo(&event(Kind::Unmap, 5, 10));
        held.undo(&event(Kind::Grow, 1000, 100));
        assert_eq!((of(&held), held.bytes()), (vec![(0, 30)], 30));
    }
}
