//! One event of any trace, in as many bytes as any other.

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A block was handed out.
    Alloc,
    /// A block came back.
    Free,
    /// Its owner gave it back, and a stream may still use it.
    FreeRequested,
    /// The driver gave a segment.
    Grow,
    /// A segment went back to the driver.
    Release,
    /// Memory was put behind reserved addresses.
    Map,
    /// Memory was taken from behind reserved addresses.
    Unmap,
    /// A request failed.
    Oom,
    /// A block changed hands.
    Give,
    /// A block moved.
    Move,
    /// A cell or scope began or ended; the owner is its name.
    Mark,
    /// Anything else.
    Other,
}

const KINDS: [Kind; 12] = [
    Kind::Alloc,
    Kind::Free,
    Kind::FreeRequested,
    Kind::Grow,
    Kind::Release,
    Kind::Map,
    Kind::Unmap,
    Kind::Oom,
    Kind::Give,
    Kind::Move,
    Kind::Mark,
    Kind::Other,
];

/// One event. What a kind has no use for is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What happened.
    pub kind: Kind,
    /// Its stream, as a number of this trace.
    pub stream: u32,
    /// Whose, as a number in the trace's [`crate::Owners`].
    pub owner: u32,
    /// The block: no two live ones share it.
    pub name: u64,
    /// Where.
    pub address: u64,
    /// Bytes asked for, or of a segment.
    pub bytes: u64,
    /// Bytes held for it, where the trace says so.
    pub granted: u64,
    /// When, in nanoseconds of the trace's own clock.
    pub time_ns: u64,
}

impl Record {
    /// Bytes of a record in a spool.
    pub const SIZE: usize = 52;

    /// A record of a kind with everything else zero.
    pub fn of(kind: Kind, time_ns: u64) -> Record {
        Record { kind, stream: 0, owner: 0, name: 0, address: 0, bytes: 0, granted: 0, time_ns }
    }

    pub(crate) fn encode(&self) -> [u8; Record::SIZE] {
        let mut all = [0; Record::SIZE];
        let numbers = [self.name, self.address, self.bytes, self.granted, self.time_ns];
        for (at, number) in numbers.iter().enumerate() {
            all[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
        }
        all[40..44].copy_from_slice(&self.owner.to_le_bytes());
        all[44..48].copy_from_slice(&self.stream.to_le_bytes());
        all[48] = self.kind as u8;
        all
    }

    pub(crate) fn decode(bytes: &[u8; Record::SIZE]) -> Record {
        let wide = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(number)
        };
        let narrow = |at: usize| {
            let mut number = [0; 4];
            number.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(number)
        };
        Record {
            kind: KINDS.get(usize::from(bytes[48])).copied().unwrap_or(Kind::Other),
            owner: narrow(40),
            stream: narrow(44),
            name: wide(0),
            address: wide(8),
            bytes: wide(16),
            granted: wide(24),
            time_ns: wide(32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back() {
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let record =
                Record { owner: 7, stream: u32::MAX, bytes: 1 << 63, ..Record::of(kind, 9) };
            assert_eq!(Record::decode(&record.encode()), record);
        }
    }
}
