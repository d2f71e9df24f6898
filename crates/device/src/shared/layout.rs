//! The ledger file as bytes: a header, the last words on the dead, and a slot for each process. Pure.
//!
//! All numbers are little-endian. What a process reads may have been written by anything: every field is checked or
//! cleaned before it is believed.

/// Processes that may share one device.
pub const SLOTS: usize = 64;
/// The file's whole length in bytes.
pub const FILE_BYTES: usize = SLOTS_AT + SLOTS * SLOT_BYTES;

const MAGIC: [u8; 8] = *b"vramlab\x01";
const VERSION: u32 = 1;
const DEATHS_AT: usize = 256;
const DEATHS: usize = 8;
const DEATH_BYTES: usize = 64;
const SLOTS_AT: usize = 1024;
const SLOT_BYTES: usize = 256;
/// Where a slot keeps what its process holds.
const HELD_AT: usize = 8;
const NAME: std::ops::Range<usize> = 64..112;
const MODE: std::ops::Range<usize> = 112..256;

/// What the file says of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of the device in bytes.
    pub capacity: u64,
    /// Whether it carries shapes without data.
    pub dry: bool,
}

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Ledger(Header),
    /// Nothing was ever written into it.
    Blank,
    /// A ledger of another version of the format.
    OtherVersion(u32),
    /// A ledger once, cut short or overwritten in part.
    Damaged,
    /// Somebody else's file.
    Foreign,
}

/// A process at the device, as its slot has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Never 0, and never the same for two stays.
    pub identity: u64,
    /// Bytes that it holds.
    pub held: u64,
    pub pid: u32,
    /// When the process began, in the system's ticks since boot: with the number it names the process for ever.
    pub started: u64,
    /// When it came, in seconds since 1970.
    pub since: u64,
    /// Bytes of its arrays.
    pub live: u64,
    /// What it is.
    pub name: String,
    /// Its allocation mode.
    pub mode: String,
}

/// A process that ended without leaving, and what came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Death {
    pub pid: u32,
    pub held: u64,
    /// When it was noticed, in seconds since 1970.
    pub noticed: u64,
    pub name: String,
}

/// A whole new file.
pub fn image(header: Header, deaths: &[Death]) -> Vec<u8> {
    let mut bytes = vec![0; FILE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    put32(&mut bytes, 8, VERSION);
    put32(&mut bytes, 12, SLOTS as u32);
    put32(&mut bytes, 16, u32::from(header.dry));
    put64(&mut bytes, 24, header.capacity);
    let sum = checksum(&bytes[..32]);
    put64(&mut bytes, 32, sum);
    for (index, death) in deaths.iter().rev().take(DEATHS).rev().enumerate() {
        let (at, record) = death_record(index, death);
        bytes[at..at + record.len()].copy_from_slice(&record);
    }
    bytes
}

/// Says what the bytes of a file are; they may be fewer or more than [`FILE_BYTES`].
pub fn read(bytes: &[u8]) -> Content {
    if bytes.iter().all(|byte| *byte == 0) {
        return Content::Blank;
    }
    if bytes.len() < MAGIC.len() || bytes[..8] != MAGIC {
        return Content::Foreign;
    }
    if bytes.len() < 40 {
        return Content::Damaged;
    }
    let header = Header { capacity: get64(bytes, 24), dry: get32(bytes, 16) == 1 };
    match get32(bytes, 8) {
        VERSION if get64(bytes, 32) != checksum(&bytes[..32]) => Content::Damaged,
        VERSION if bytes.len() < FILE_BYTES || header.capacity == 0 => Content::Damaged,
        VERSION => Content::Ledger(header),
        other => Content::OtherVersion(other),
    }
}

/// The slots in use, by number.
pub fn slots(bytes: &[u8]) -> impl Iterator<Item = (usize, Slot)> + '_ {
    (0..SLOTS).filter_map(|index| Some((index, slot(bytes, index)?)))
}

/// A slot; `None` where it is empty.
pub fn slot(bytes: &[u8], index: usize) -> Option<Slot> {
    let record = bytes.get(slot_at(index)..slot_at(index + 1))?;
    let identity = get64(record, 0);
    (identity != 0).then(|| Slot {
        identity,
        held: get64(record, HELD_AT),
        pid: get32(record, 16),
        started: get64(record, 24),
        since: get64(record, 32),
        live: get64(record, 40),
        name: text(&record[NAME]),
        mode: text(&record[MODE]),
    })
}

/// Where a slot begins, and its bytes.
pub fn slot_record(index: usize, slot: &Slot) -> (usize, Vec<u8>) {
    let mut record = vec![0; SLOT_BYTES];
    put64(&mut record, 0, slot.identity);
    put64(&mut record, HELD_AT, slot.held);
    put32(&mut record, 16, slot.pid);
    put64(&mut record, 24, slot.started);
    put64(&mut record, 32, slot.since);
    put64(&mut record, 40, slot.live);
    put_text(&mut record[NAME], &slot.name);
    put_text(&mut record[MODE], &slot.mode);
    (slot_at(index), record)
}

/// An empty slot.
pub fn empty_record(index: usize) -> (usize, Vec<u8>) {
    (slot_at(index), vec![0; SLOT_BYTES])
}

/// What a process holds, apart from the rest of its slot.
pub fn held_record(index: usize, held: u64) -> (usize, Vec<u8>) {
    (slot_at(index) + HELD_AT, held.to_le_bytes().to_vec())
}

/// What a slot says of its process beside what it holds: the arrays' bytes to the end.
pub fn words_record(index: usize, slot: &Slot) -> (usize, Vec<u8>) {
    let (at, record) = slot_record(index, slot);
    (at + 40, record[40..].to_vec())
}

/// The last deaths, oldest first.
pub fn deaths(bytes: &[u8]) -> Vec<Death> {
    let record = |index: usize| {
        let at = DEATHS_AT + index * DEATH_BYTES;
        let record = bytes.get(at..at + DEATH_BYTES)?;
        let pid = get32(record, 0);
        (pid != 0).then(|| Death {
            pid,
            held: get64(record, 8),
            noticed: get64(record, 16),
            name: text(&record[24..DEATH_BYTES]),
        })
    };
    (0..DEATHS).filter_map(record).collect()
}

/// The list of deaths with one more, as bytes and where they go.
pub fn deaths_with(bytes: &[u8], death: Death) -> (usize, Vec<u8>) {
    let mut all = deaths(bytes);
    all.push(death);
    let skipped = all.len().saturating_sub(DEATHS);
    let mut out = vec![0; DEATHS * DEATH_BYTES];
    for (index, death) in all[skipped..].iter().enumerate() {
        let (at, record) = death_record(index, death);
        out[at - DEATHS_AT..at - DEATHS_AT + record.len()].copy_from_slice(&record);
    }
    (DEATHS_AT, out)
}

fn death_record(index: usize, death: &Death) -> (usize, Vec<u8>) {
    let mut record = vec![0; DEATH_BYTES];
    put32(&mut record, 0, death.pid);
    put64(&mut record, 8, death.held);
    put64(&mut record, 16, death.noticed);
    put_text(&mut record[24..], &death.name);
    (DEATHS_AT + index * DEATH_BYTES, record)
}

fn slot_at(index: usize) -> usize {
    SLOTS_AT + index * SLOT_BYTES
}

/// FNV-1a: against accidents, not against malice.
fn checksum(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn get64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Cut to the field at a character's end; the rest of the field is zeros.
fn put_text(field: &mut [u8], text: &str) {
    let mut end = text.len().min(field.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
}

/// A field as text that may be printed: what commands a terminal is left out.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { capacity: 1 << 30, dry: false };

    fn sample() -> Slot {
        Slot {
            identity: 7,
            held: 512 << 20,
            pid: 4711,
            started: 99,
            since: 1_800_000_000,
            live: 3,
            name: "vramlab".into(),
            mode: "ondemand gc=on".into(),
        }
    }

    fn put(bytes: &mut [u8], (at, record): (usize, Vec<u8>)) {
        bytes[at..at + record.len()].copy_from_slice(&record);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = image(HEADER, &[]);
        assert_eq!(read(&bytes), Content::Ledger(HEADER));
        assert_eq!(slots(&bytes).count(), 0);
        put(&mut bytes, slot_record(63, &sample()));
        put(&mut bytes, held_record(63, 5));
        let mut words = sample();
        words.mode = "platform".into();
        put(&mut bytes, words_record(63, &words));
        let read: Vec<(usize, Slot)> = slots(&bytes).collect();
        assert_eq!(read, [(63, Slot { held: 5, ..words })]);
        put(&mut bytes, empty_record(63));
        assert_eq!(slot(&bytes, 63), None);
    }

    #[test]
    fn what_is_no_ledger_is_told_apart() {
        let whole = image(HEADER, &[]);
        assert_eq!(read(&[]), Content::Blank);
        assert_eq!(read(&[0; 500]), Content::Blank);
        assert_eq!(read(b"my notes"), Content::Foreign);
        assert_eq!(read(b"vram"), Content::Foreign);
        for length in [8, 39, 40, 1024, FILE_BYTES - 1] {
            assert_eq!(read(&whole[..length]), Content::Damaged, "{length}");
        }
        let mut changed = whole.clone();
        changed[24] ^= 1;
        assert_eq!(read(&changed), Content::Damaged);
        let mut newer = whole;
        put32(&mut newer, 8, 2);
        assert_eq!(read(&newer), Content::OtherVersion(2));
    }

    #[test]
    fn only_the_last_deaths_are_kept() {
        let mut bytes = image(HEADER, &[]);
        for pid in 1..=20 {
            let death = Death { pid, held: u64::from(pid), noticed: 5, name: "vramlab".into() };
            let record = deaths_with(&bytes, death);
            put(&mut bytes, record);
        }
        let pids: Vec<u32> = deaths(&bytes).iter().map(|death| death.pid).collect();
        assert_eq!(pids, (13..=20).collect::<Vec<u32>>());
        let again = image(HEADER, &deaths(&bytes));
        assert_eq!(deaths(&again), deaths(&bytes));
        assert_eq!(read(&bytes), Content::Ledger(HEADER), "the header is untouched");
    }

    #[test]
    fn text_is_cut_and_cleaned() {
        let mut slot = sample();
        slot.name = "ä".repeat(40);
        slot.mode = "a\u{1b}[31mb".into();
        let mut bytes = image(HEADER, &[]);
        put(&mut bytes, slot_record(0, &slot));
        let read = super::slot(&bytes, 0).expect("in use");
        assert_eq!((read.name, read.mode.as_str()), ("ä".repeat(24), "a[31mb"));
    }
}
