//! Records in order, read any number of times from either end: in memory while they are few, in an unnamed temporary
//! file above that.

use crate::record::Record;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is kept in memory before it goes to the file, in bytes; a whole number of records.
const HELD: usize = 256 * 1024 * Record::SIZE;

/// How many records are read at once.
const BATCH: u64 = 4096;

/// Takes records one after the other.
#[derive(Default)]
pub struct SpoolWriter {
    held: Vec<u8>,
    file: Option<File>,
    filed: u64,
}

/// Records in order.
#[derive(Debug)]
pub struct Spool {
    held: Vec<u8>,
    file: Option<File>,
    filed: u64,
}

impl SpoolWriter {
    /// Adds a record at the end.
    ///
    /// # Errors
    /// The temporary folder is full or cannot be written to.
    pub fn push(&mut self, record: &Record) -> io::Result<()> {
        if self.held.len() == HELD {
            self.spill()?;
        }
        self.held.extend_from_slice(&record.encode());
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(unnamed().map_err(in_folder)?),
        };
        file.write_all(&self.held).map_err(in_folder)?;
        self.filed += (self.held.len() / Record::SIZE) as u64;
        self.held.clear();
        Ok(())
    }

    /// How many records there are.
    pub fn len(&self) -> u64 {
        self.filed + (self.held.len() / Record::SIZE) as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// No more are added.
    pub fn finish(self) -> Spool {
        Spool { held: self.held, file: self.file, filed: self.filed }
    }
}

/// An error of the temporary folder, with its name: the file that is read is not at fault.
fn in_folder(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let words =
        format!("the temporary folder {}: {error} (TMPDIR chooses another)", folder.display());
    io::Error::new(error.kind(), words)
}

/// A temporary file that is gone when it is closed, however the process ends.
fn unnamed() -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("vramlab-{}-{number}.spool", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

impl Spool {
    /// How many records there are.
    pub fn len(&self) -> u64 {
        self.filed + (self.held.len() / Record::SIZE) as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands out the records of a range in order, each with its index, until `take` says no.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn each(
        &self,
        range: Range<u64>,
        mut take: impl FnMut(u64, &Record) -> bool,
    ) -> io::Result<()> {
        let mut batch = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let until = (at + BATCH).min(range.end);
            self.read(at..until, &mut batch)?;
            for (record, index) in records(&batch).zip(at..) {
                if !take(index, &record) {
                    return Ok(());
                }
            }
            at = until;
        }
        Ok(())
    }

    /// As [`Spool::each`], from the last record of the range to the first.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn each_back(
        &self,
        range: Range<u64>,
        mut take: impl FnMut(u64, &Record),
    ) -> io::Result<()> {
        let mut batch = Vec::new();
        let mut until = range.end;
        while until > range.start {
            let at = until.saturating_sub(BATCH).max(range.start);
            self.read(at..until, &mut batch)?;
            for (record, index) in records(&batch).rev().zip((at..until).rev()) {
                take(index, &record);
            }
            until = at;
        }
        Ok(())
    }

    fn read(&self, range: Range<u64>, batch: &mut Vec<u8>) -> io::Result<()> {
        let size = Record::SIZE as u64;
        let from_file = range.start.min(self.filed)..range.end.min(self.filed);
        batch.resize(((from_file.end - from_file.start) * size) as usize, 0);
        if let Some(file) = &self.file {
            file.read_exact_at(batch, from_file.start * size)?;
        }
        let held = range.start.max(self.filed)..range.end.max(self.filed);
        let from = ((held.start - self.filed) * size) as usize;
        let to = ((held.end - self.filed) * size) as usize;
        batch.extend_from_slice(&self.held[from..to]);
        Ok(())
    }
}

fn records(batch: &[u8]) -> impl DoubleEndedIterator<Item = Record> + ExactSizeIterator {
    let (records, _) = batch.as_chunks::<{ Record::SIZE }>();
    records.iter().map(Record::decode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    #[test]
    fn records_come_back_from_memory_and_from_the_file() {
        let count = HELD as u64 / Record::SIZE as u64 * 2 + 77;
        let mut writer = SpoolWriter::default();
        for name in 0..count {
            writer.push(&Record { name, ..Record::of(Kind::Alloc, 0) }).expect("room");
        }
        let spool = writer.finish();
        assert_eq!(spool.len(), count);
        assert!(spool.file.is_some());
        let mut expected = 5;
        spool
            .each(5..count - 3, |index, record| {
                assert_eq!((index, record.name), (expected, expected));
                expected += 1;
                true
            })
            .expect("readable");
        assert_eq!(expected, count - 3);
        spool
            .each_back(5..count - 3, |index, record| {
                expected -= 1;
                assert_eq!((index, record.name), (expected, expected));
            })
            .expect("readable");
        assert_eq!(expected, 5);
    }
}
