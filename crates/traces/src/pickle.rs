//! A pickle as a stream of instructions, and which of its kept values it ever uses again.
//!
//! A pickle numbers every container and text that it builds, in case they occur again, and almost none do. One pass
//! over the instructions alone finds those that do ([`Fetched`]), so that a second one need keep no others: without it
//! a reader holds every event of a file of gigabytes.

use crate::reading::{LineEnd, Reading};
use std::io;
use vramlab_memory::trace::pickle::PickleError;

/// Of a text longer than this the beginning is kept.
const LONGEST_TEXT: usize = 1 << 14;

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// The value on top is the file.
    Stop,
    /// A protocol or frame mark.
    Nothing,
    /// `None`, a float, bytes: values that no trace needs.
    Blank,
    Int(i64),
    Big(u64),
    /// A text of so many bytes, appended to the reader's arena.
    Text(usize),
    Mark,
    Pop,
    PopMark,
    Duplicate,
    EmptyList,
    EmptyDict,
    /// A list, tuple or set of what lies above the mark.
    ListOfMarked,
    /// A tuple of the topmost values.
    Tuple(usize),
    DictOfMarked,
    Append,
    AppendMarked,
    SetItem,
    SetMarked,
    /// Keeps the top under the next number, or under this one.
    Keep(Option<u32>),
    /// Fetches what was kept.
    Fetch(u32),
    /// Asks to run code.
    Code(u8),
}

/// Why no instruction follows.
#[derive(Debug)]
pub(crate) enum Stop {
    Io(io::Error),
    Pickle(PickleError),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}

/// Reads instructions.
pub(crate) struct Instructions {
    reading: Reading,
    line: Vec<u8>,
}

impl Instructions {
    pub(crate) fn new(reading: Reading) -> Instructions {
        Instructions { reading, line: Vec::new() }
    }

    pub(crate) fn position(&self) -> u64 {
        self.reading.position()
    }

    pub(crate) fn malformed(&self, what: &'static str) -> Stop {
        let at = self.position().saturating_sub(1) as usize;
        Stop::Pickle(PickleError::Malformed { at, what })
    }

    fn truncated(&self) -> Stop {
        Stop::Pickle(PickleError::Truncated { at: self.position() as usize })
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        self.reading.byte()?.ok_or_else(|| self.truncated())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.reading.array()?.ok_or_else(|| self.truncated())
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Stop> {
        match self.reading.skip(bytes)? {
            true => Ok(()),
            false => Err(self.truncated()),
        }
    }

    fn wide(&mut self, width: usize) -> Result<u64, Stop> {
        Ok(match width {
            1 => u64::from(self.byte()?),
            4 => u64::from(u32::from_le_bytes(self.array()?)),
            _ => u64::from_le_bytes(self.array()?),
        })
    }

    /// The next instruction; texts are appended to `arena` where there is one.
    #[inline]
    pub(crate) fn next(&mut self, arena: Option<&mut Vec<u8>>) -> Result<Op, Stop> {
        let opcode = self.byte()?;
        Ok(match opcode {
            b'.' => Op::Stop,
            b'h' => Op::Fetch(u32::from(self.byte()?)),
            b'j' => Op::Fetch(u32::from_le_bytes(self.array()?)),
            b'K' => Op::Int(i64::from(self.byte()?)),
            b'M' => Op::Int(i64::from(u16::from_le_bytes(self.array()?))),
            b'J' => Op::Int(i64::from(i32::from_le_bytes(self.array()?))),
            0x94 => Op::Keep(None),
            b'q' => Op::Keep(Some(u32::from(self.byte()?))),
            b'r' => Op::Keep(Some(u32::from_le_bytes(self.array()?))),
            b'(' => Op::Mark,
            b'}' => Op::EmptyDict,
            b'u' => Op::SetMarked,
            b's' => Op::SetItem,
            b']' | b')' | 0x8f => Op::EmptyList,
            b'e' | 0x90 => Op::AppendMarked,
            b'a' => Op::Append,
            b'l' | b't' | 0x91 => Op::ListOfMarked,
            b'd' => Op::DictOfMarked,
            0x85..=0x87 => Op::Tuple(usize::from(opcode - 0x84)),
            b'N' => Op::Blank,
            0x88 => Op::Int(1),
            0x89 => Op::Int(0),
            b'0' => Op::Pop,
            b'1' => Op::PopMark,
            b'2' => Op::Duplicate,
            0x8c | b'U' => self.text(1, arena)?,
            b'X' | b'T' => self.text(4, arena)?,
            0x8d => self.text(8, arena)?,
            0x8a => self.long(1)?,
            0x8b => self.long(4)?,
            0x80 => match self.byte()? {
                0..=5 => Op::Nothing,
                newer => return Err(Stop::Pickle(PickleError::Protocol(newer))),
            },
            0x95 => self.skip(8).map(|()| Op::Nothing)?,
            b'G' => self.skip(8).map(|()| Op::Blank)?,
            b'B' => self.bytes(4)?,
            b'C' => self.bytes(1)?,
            0x8e | 0x96 => self.bytes(8)?,
            b'I' | b'L' | b'F' | b'V' | b'S' | b'p' | b'g' => self.old(opcode, arena)?,
            b'c' | b'i' | b'R' | b'b' | b'o' | b'P' | b'Q' => Op::Code(opcode),
            0x81..=0x84 | 0x92 | 0x93 | 0x97 | 0x98 => Op::Code(opcode),
            _ => return Err(self.malformed("there is no such instruction")),
        })
    }

    fn text(&mut self, width: usize, arena: Option<&mut Vec<u8>>) -> Result<Op, Stop> {
        let length = self.wide(width)?;
        let Some(arena) = arena else { return self.skip(length).map(|()| Op::Text(0)) };
        let before = arena.len();
        match self.reading.append(length, LONGEST_TEXT, arena)? {
            true => Ok(Op::Text(arena.len() - before)),
            false => Err(self.truncated()),
        }
    }

    fn bytes(&mut self, width: usize) -> Result<Op, Stop> {
        let length = self.wide(width)?;
        self.skip(length).map(|()| Op::Blank)
    }

    /// A little-endian two's complement number.
    fn long(&mut self, width: usize) -> Result<Op, Stop> {
        let at = self.position() as usize;
        let length = self.wide(width)?;
        if length > 16 {
            return Err(Stop::Pickle(PickleError::TooLarge { at }));
        }
        self.line.clear();
        if !self.reading.append(length, 16, &mut self.line)? {
            return Err(self.truncated());
        }
        let negative = self.line.last().is_some_and(|last| last & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 16];
        wide[..self.line.len()].copy_from_slice(&self.line);
        let number = i128::from_le_bytes(wide);
        match (i64::try_from(number), u64::try_from(number)) {
            (Ok(small), _) => Ok(Op::Int(small)),
            (_, Ok(large)) => Ok(Op::Big(large)),
            _ => Err(Stop::Pickle(PickleError::TooLarge { at })),
        }
    }

    /// The instructions of protocol 0: arguments are lines.
    fn old(&mut self, opcode: u8, arena: Option<&mut Vec<u8>>) -> Result<Op, Stop> {
        let at = self.position() as usize;
        if self.reading.line(&mut self.line)? != LineEnd::Whole {
            return Err(self.truncated());
        }
        let line = String::from_utf8_lossy(&self.line);
        Ok(match opcode {
            b'F' => Op::Blank,
            b'V' | b'S' => {
                let quoted = opcode == b'S' && line.len() >= 2;
                let text =
                    if quoted { line.get(1..line.len() - 1).unwrap_or(&line) } else { &line };
                let text = &text.as_bytes()[..text.len().min(LONGEST_TEXT)];
                let kept = arena.map_or(0, |arena| {
                    arena.extend_from_slice(text);
                    text.len()
                });
                Op::Text(kept)
            }
            b'p' | b'g' => {
                let number = line.trim().parse().map_err(|_| self.malformed("not a number"))?;
                if opcode == b'p' { Op::Keep(Some(number)) } else { Op::Fetch(number) }
            }
            _ => {
                let digits = line.trim().trim_end_matches('L');
                match (digits.parse(), digits.parse()) {
                    (Ok(small), _) => Op::Int(small),
                    (_, Ok(large)) => Op::Big(large),
                    _ => return Err(Stop::Pickle(PickleError::TooLarge { at })),
                }
            }
        })
    }

    /// What an instruction that asks for code names, as far as the file says it at this place.
    pub(crate) fn named(&mut self, opcode: u8) -> Option<String> {
        if !matches!(opcode, b'c' | b'i') {
            return None;
        }
        let mut names = Vec::new();
        for _ in 0..2 {
            let _ = self.reading.line(&mut self.line);
            names.push(String::from_utf8_lossy(&self.line).into_owned());
        }
        Some(names.join("."))
    }
}

/// Bits of a page of [`Fetched`].
const PAGE: u32 = 1 << 16;

/// The numbers of the kept values that are used again.
#[derive(Default)]
pub(crate) struct Fetched {
    /// By page; a page without a bit has no words.
    pages: Vec<Vec<u64>>,
}

impl Fetched {
    fn insert(&mut self, number: u32) {
        let at = (number / PAGE) as usize;
        if at >= self.pages.len() {
            self.pages.resize(at + 1, Vec::new());
        }
        let page = &mut self.pages[at];
        if page.is_empty() {
            page.resize(PAGE as usize / 64, 0);
        }
        page[(number % PAGE / 64) as usize] |= 1 << (number % 64);
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        let page = self.pages.get((number / PAGE) as usize);
        let word = page.and_then(|page| page.get((number % PAGE / 64) as usize));
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

/// Passes over a pickle once. It ends where the pickle ends or cannot be read on: whoever reads it after this comes to
/// the same place and says what is wrong.
pub(crate) fn fetched(reading: Reading) -> io::Result<Fetched> {
    let mut instructions = Instructions::new(reading);
    let mut fetched = Fetched::default();
    loop {
        match instructions.next(None) {
            // A number beyond what a file of this length can have kept is an error that the next reader reports.
            Ok(Op::Fetch(number)) if u64::from(number) < instructions.position() => {
                fetched.insert(number);
            }
            Ok(Op::Stop | Op::Code(_)) | Err(Stop::Pickle(_)) => return Ok(fetched),
            Ok(_) => {}
            Err(Stop::Io(error)) => return Err(error),
        }
    }
}
