//! Bytes of a file, in order, with where we are: plain or gzipped.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

const BUFFER: usize = 1 << 18;

/// A line longer than this is no line of a log.
pub const LONGEST_LINE: usize = 1 << 16;

/// The bytes of a file, inflated where they are gzipped.
pub struct Reading {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes handed out so far.
    position: u64,
    /// A file that breaks off within its compression: its bytes are used up to there.
    broken: Option<String>,
}

/// What a line was.
#[derive(Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// It ended.
    Whole,
    /// The file ended within it.
    Cut,
    /// There was none.
    None,
}

impl Reading {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> io::Result<Reading> {
        if path.is_dir() {
            return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder, not a file"));
        }
        Reading::of(Box::new(File::open(path)?))
    }

    /// Reads from anything.
    ///
    /// # Errors
    /// Its first bytes cannot be read.
    pub fn of(mut source: Box<dyn Read>) -> io::Result<Reading> {
        let mut first = Vec::new();
        source.by_ref().take(2).read_to_end(&mut first)?;
        let gzipped = first == [0x1f, 0x8b];
        let whole = io::Cursor::new(first).chain(source);
        let source: Box<dyn Read> = match gzipped {
            true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, whole))),
            false => Box::new(whole),
        };
        let buffer = vec![0; BUFFER];
        Ok(Reading { source, buffer, start: 0, end: 0, position: 0, broken: None })
    }

    /// How many bytes were handed out: where we are in the inflated file.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Why the compression breaks off, if it does.
    pub fn broken(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// What lies ahead, at least `wanted` bytes of it unless the file ends before.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        while self.end - self.start < wanted && self.fill()? {}
        Ok(&self.buffer[self.start..self.end])
    }

    /// Reads more behind what is there; says whether there was more.
    fn fill(&mut self) -> io::Result<bool> {
        if self.broken.is_some() {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A damaged or cut gzip: what was inflated before is used, and what is missing is said.
                Err(error)
                    if matches!(error.kind(), ErrorKind::UnexpectedEof)
                        || matches!(
                            error.kind(),
                            ErrorKind::InvalidInput | ErrorKind::InvalidData
                        ) =>
                {
                    self.broken = Some(error.to_string());
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The next byte; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read on.
    #[inline]
    pub fn byte(&mut self) -> io::Result<Option<u8>> {
        if self.start == self.end && !self.fill()? {
            return Ok(None);
        }
        let byte = self.buffer[self.start];
        self.start += 1;
        self.position += 1;
        Ok(Some(byte))
    }

    /// The next `N` bytes; `None` if the file ends before.
    ///
    /// # Errors
    /// The file cannot be read on.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        if self.end - self.start < N && self.peek(N)?.len() < N {
            return Ok(None);
        }
        let mut array = [0; N];
        array.copy_from_slice(&self.buffer[self.start..self.start + N]);
        self.start += N;
        self.position += N as u64;
        Ok(Some(array))
    }

    /// Passes over bytes; says whether there were so many.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn skip(&mut self, bytes: u64) -> io::Result<bool> {
        let mut left = bytes;
        loop {
            let here = left.min((self.end - self.start) as u64);
            self.start += here as usize;
            self.position += here;
            left -= here;
            if left == 0 {
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    /// Appends the next bytes to `into`, at most `keep` of them, and passes over the rest; says whether there were so
    /// many. A length that the file only claims costs nothing.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn append(&mut self, bytes: u64, keep: usize, into: &mut Vec<u8>) -> io::Result<bool> {
        let mut kept = bytes.min(keep as u64) as usize;
        let rest = bytes - kept as u64;
        while kept > 0 {
            if self.start == self.end && !self.fill()? {
                return Ok(false);
            }
            let here = kept.min(self.end - self.start);
            into.extend_from_slice(&self.buffer[self.start..self.start + here]);
            self.start += here;
            self.position += here as u64;
            kept -= here;
        }
        self.skip(rest)
    }

    /// Puts the next line into `line`, without its end. Of a line longer than [`LONGEST_LINE`] that much is kept.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn line(&mut self, line: &mut Vec<u8>) -> io::Result<LineEnd> {
        line.clear();
        let from = self.position;
        loop {
            let here = &self.buffer[self.start..self.end];
            let end = here.iter().position(|byte| *byte == b'\n');
            let part = &here[..end.unwrap_or(here.len())];
            let room = LONGEST_LINE.saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            let taken = part.len() + usize::from(end.is_some());
            self.start += taken;
            self.position += taken as u64;
            if end.is_some() {
                return Ok(LineEnd::Whole);
            }
            if !self.fill()? {
                return Ok(if self.position == from { LineEnd::None } else { LineEnd::Cut });
            }
        }
    }
}
