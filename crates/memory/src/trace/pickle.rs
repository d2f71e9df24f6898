//! Pickles as data (protocols 0 to 5): numbers, text, bytes, lists, tuples, sets, dictionaries.
//!
//! A pickle is a program for a small machine, and some of its instructions import and call code. Those are refused by
//! name; the rest only builds values. Values lie in one table and refer to each other by number, so that neither
//! depth nor sharing nor a container within itself can exhaust the stack or the memory beyond what the file's own
//! length allows.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// Names a value in a [`Pickle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueId(u32);

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer within 64 bits.
    Int(i64),
    /// An unsigned integer that needs the 64th bit.
    Big(u64),
    /// A float.
    Float(f64),
    /// A text: where its UTF-8 bytes lie in the file.
    Text(Range<usize>),
    /// Bytes: where they lie in the file.
    Bytes(Range<usize>),
    /// A list, a tuple or a set.
    Sequence(Vec<ValueId>),
    /// A dictionary: keys and values in the order of insertion.
    Dict(Vec<(ValueId, ValueId)>),
}

/// Why a file is not a pickle of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickleError {
    /// The file ends in the middle of an instruction.
    Truncated {
        /// Where.
        at: usize,
    },
    /// It asks to import or call code.
    Code {
        /// Where.
        at: usize,
        /// What it asks for, as far as it is named.
        name: String,
    },
    /// There is no such instruction, or not in this place.
    Malformed {
        /// Where.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The protocol is newer than 5.
    Protocol(u8),
    /// An integer beyond 64 bits.
    TooLarge {
        /// Where.
        at: usize,
    },
}

impl fmt::Display for PickleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PickleError::Truncated { at } => {
                write!(f, "the file ends at byte {at}, before its end mark")
            }
            PickleError::Code { at, name } => {
                write!(f, "it asks to run code at byte {at} ({name}); only data is read")
            }
            PickleError::Malformed { at, what } => write!(f, "not a pickle at byte {at}: {what}"),
            PickleError::Protocol(protocol) => {
                write!(f, "pickle protocol {protocol} is not known; 0 to 5 are")
            }
            PickleError::TooLarge { at } => write!(f, "an integer beyond 64 bits at byte {at}"),
        }
    }
}

impl std::error::Error for PickleError {}

/// The values of a pickle. It keeps the file's bytes, because texts point into them.
#[derive(Debug)]
pub struct Pickle<'a> {
    bytes: &'a [u8],
    values: Vec<Value>,
    root: ValueId,
}

impl<'a> Pickle<'a> {
    /// Reads a whole file.
    pub fn read(bytes: &'a [u8]) -> Result<Pickle<'a>, PickleError> {
        Machine::new(bytes).run()
    }

    /// The value that the file is.
    pub fn root(&self) -> ValueId {
        self.root
    }

    /// The value of that name.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// A text, if it is one.
    pub fn text(&self, id: ValueId) -> Option<&'a str> {
        match self.value(id) {
            Value::Text(range) => std::str::from_utf8(&self.bytes[range.clone()]).ok(),
            _ => None,
        }
    }

    /// Bytes, if it is such.
    pub fn bytes(&self, id: ValueId) -> Option<&'a [u8]> {
        match self.value(id) {
            Value::Bytes(range) => Some(&self.bytes[range.clone()]),
            _ => None,
        }
    }

    /// An unsigned integer, if it is one.
    pub fn unsigned(&self, id: ValueId) -> Option<u64> {
        match self.value(id) {
            Value::Int(value) => u64::try_from(*value).ok(),
            Value::Big(value) => Some(*value),
            Value::Bool(value) => Some(u64::from(*value)),
            _ => None,
        }
    }

    /// The items of a list, tuple or set; none for anything else.
    pub fn items(&self, id: ValueId) -> &[ValueId] {
        match self.value(id) {
            Value::Sequence(items) => items,
            _ => &[],
        }
    }

    /// The entries of a dictionary; none for anything else.
    pub fn entries(&self, id: ValueId) -> &[(ValueId, ValueId)] {
        match self.value(id) {
            Value::Dict(entries) => entries,
            _ => &[],
        }
    }

    /// The value under a text key of a dictionary; of equal keys the last counts.
    pub fn get(&self, id: ValueId, key: &str) -> Option<ValueId> {
        let entries = self.entries(id).iter().rev();
        entries.into_iter().find(|(name, _)| self.text(*name) == Some(key)).map(|(_, value)| *value)
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value>,
    stack: Vec<ValueId>,
    marks: Vec<usize>,
    memo: HashMap<u32, ValueId>,
}

impl<'a> Machine<'a> {
    fn new(bytes: &'a [u8]) -> Machine<'a> {
        Machine {
            bytes,
            at: 0,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
    }

    fn run(mut self) -> Result<Pickle<'a>, PickleError> {
        loop {
            let opcode = self.byte()?;
            if opcode == b'.' {
                let root = self.pop()?;
                return Ok(Pickle { bytes: self.bytes, values: self.values, root });
            }
            self.step(opcode)?;
        }
    }

    fn step(&mut self, opcode: u8) -> Result<(), PickleError> {
        match opcode {
            0x80 => match self.byte()? {
                0..=5 => Ok(()),
                newer => Err(PickleError::Protocol(newer)),
            },
            // FRAME: a hint for readers that buffer.
            0x95 => self.skip(8),
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'0' => match self.stack.len() == self.floor() && !self.marks.is_empty() {
                true => self.marks.pop().map(|_| ()).ok_or_else(|| self.malformed("no mark")),
                false => self.pop().map(|_| ()),
            },
            b'1' => {
                let mark = self.mark()?;
                self.stack.truncate(mark);
                Ok(())
            }
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
                Ok(())
            }
            b'I' | b'L' | b'J' | b'K' | b'M' | 0x8a | 0x8b => self.integer(opcode),
            b'F' | b'G' => self.float(opcode),
            b'V' | b'X' | 0x8c | 0x8d | b'S' | b'T' | b'U' => self.text(opcode),
            b'B' | b'C' | 0x8e | 0x96 => self.binary(opcode),
            b']' | b')' | 0x8f => self.push(Value::Sequence(Vec::new())),
            b'l' | b't' | 0x91 => {
                let items = self.since_mark()?;
                self.push(Value::Sequence(items))
            }
            0x85..=0x87 => self.short_tuple(usize::from(opcode - 0x84)),
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])
            }
            b'e' | 0x90 => {
                let items = self.since_mark()?;
                self.append(&items)
            }
            b'}' => self.push(Value::Dict(Vec::new())),
            b'd' => {
                let items = self.since_mark()?;
                self.push(Value::Dict(Vec::new()))?;
                self.set_items(&items)
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(&[key, value])
            }
            b'u' => {
                let items = self.since_mark()?;
                self.set_items(&items)
            }
            b'p' | b'q' | b'r' | 0x94 | b'g' | b'h' | b'j' => self.memory(opcode),
            b'c'
            | b'i'
            | 0x93
            | b'R'
            | b'b'
            | b'o'
            | 0x81
            | 0x92
            | b'P'
            | b'Q'
            | 0x82..=0x84
            | 0x97
            | 0x98 => Err(self.code(opcode)),
            _ => Err(self.malformed("there is no such instruction")),
        }
    }

    fn integer(&mut self, opcode: u8) -> Result<(), PickleError> {
        let value = match opcode {
            b'J' => Value::Int(i64::from(i32::from_le_bytes(self.array()?))),
            b'K' => Value::Int(i64::from(self.byte()?)),
            b'M' => Value::Int(i64::from(u16::from_le_bytes(self.array()?))),
            0x8a => {
                let length = usize::from(self.byte()?);
                self.long(length)?
            }
            0x8b => {
                let length = self.length(4)?;
                self.long(length)?
            }
            _ => {
                let at = self.at;
                let line = self.line()?;
                match line.trim_end_matches('L') {
                    "00" if opcode == b'I' => Value::Bool(false),
                    "01" if opcode == b'I' => Value::Bool(true),
                    digits => {
                        let small = digits.parse().map(Value::Int);
                        let large = digits.parse().map(Value::Big);
                        small.or(large).map_err(|_| PickleError::TooLarge { at })?
                    }
                }
            }
        };
        self.push(value)
    }

    /// A little-endian two's complement number of any length.
    fn long(&mut self, length: usize) -> Result<Value, PickleError> {
        let at = self.at;
        let range = self.take(length)?;
        let digits = &self.bytes[range];
        let negative = digits.last().is_some_and(|last| last & 0x80 != 0);
        let fill = if negative { 0xff } else { 0 };
        if digits.iter().skip(9).any(|digit| *digit != fill) {
            return Err(PickleError::TooLarge { at });
        }
        let mut wide = [fill; 16];
        let kept = digits.len().min(9);
        wide[..kept].copy_from_slice(&digits[..kept]);
        let number = i128::from_le_bytes(wide);
        match (i64::try_from(number), u64::try_from(number)) {
            (Ok(small), _) => Ok(Value::Int(small)),
            (_, Ok(large)) => Ok(Value::Big(large)),
            _ => Err(PickleError::TooLarge { at }),
        }
    }

    fn float(&mut self, opcode: u8) -> Result<(), PickleError> {
        let value = if opcode == b'G' {
            f64::from_be_bytes(self.array()?)
        } else {
            self.line()?.parse().map_err(|_| self.malformed("not a float"))?
        };
        self.push(Value::Float(value))
    }

    fn text(&mut self, opcode: u8) -> Result<(), PickleError> {
        let range = match opcode {
            b'V' => self.raw_line()?,
            // A quoted string of protocol 0: the quotes go, escapes stay as they are.
            b'S' => {
                let line = self.raw_line()?;
                if line.len() >= 2 { line.start + 1..line.end - 1 } else { line }
            }
            b'X' | b'T' => self.counted(4)?,
            0x8d => self.counted(8)?,
            _ => self.counted(1)?,
        };
        if std::str::from_utf8(&self.bytes[range.clone()]).is_err() {
            return self.push(Value::Bytes(range));
        }
        self.push(Value::Text(range))
    }

    fn binary(&mut self, opcode: u8) -> Result<(), PickleError> {
        let range = match opcode {
            b'B' => self.counted(4)?,
            b'C' => self.counted(1)?,
            _ => self.counted(8)?,
        };
        self.push(Value::Bytes(range))
    }

    fn short_tuple(&mut self, length: usize) -> Result<(), PickleError> {
        if self.stack.len() < self.floor() + length {
            return Err(self.malformed("a tuple of more than there is"));
        }
        let items = self.stack.split_off(self.stack.len() - length);
        self.push(Value::Sequence(items))
    }

    fn append(&mut self, new: &[ValueId]) -> Result<(), PickleError> {
        let list = self.top()?;
        match &mut self.values[list.0 as usize] {
            Value::Sequence(items) => {
                items.extend_from_slice(new);
                Ok(())
            }
            _ => Err(self.malformed("an item for what is no list")),
        }
    }

    fn set_items(&mut self, new: &[ValueId]) -> Result<(), PickleError> {
        let dict = self.top()?;
        match &mut self.values[dict.0 as usize] {
            Value::Dict(entries) if new.len().is_multiple_of(2) => {
                entries.extend(new.chunks_exact(2).map(|pair| (pair[0], pair[1])));
                Ok(())
            }
            _ => Err(self.malformed("an entry for what is no dictionary")),
        }
    }

    fn memory(&mut self, opcode: u8) -> Result<(), PickleError> {
        let index = match opcode {
            0x94 => self.memo.len() as u32,
            b'q' | b'h' => u32::from(self.byte()?),
            b'r' | b'j' => u32::from_le_bytes(self.array()?),
            _ => self.line()?.parse().map_err(|_| self.malformed("not a number"))?,
        };
        if matches!(opcode, b'g' | b'h' | b'j') {
            let missing = self.malformed("a value that was never kept");
            self.stack.push(*self.memo.get(&index).ok_or(missing)?);
        } else {
            let top = self.top()?;
            self.memo.insert(index, top);
        }
        Ok(())
    }

    fn code(&mut self, opcode: u8) -> PickleError {
        let at = self.at - 1;
        let name = match opcode {
            b'c' | b'i' => {
                let module = self.line().unwrap_or("?").to_string();
                format!("{module}.{}", self.line().unwrap_or("?"))
            }
            0x93 => self.imported(),
            b'R' | b'o' | 0x81 | 0x92 => "a call".to_string(),
            b'b' => "an object's state".to_string(),
            _ => "an object outside the file".to_string(),
        };
        PickleError::Code { at, name }
    }

    fn imported(&self) -> String {
        let names =
            self.stack.iter().rev().take(2).rev().map(|id| match &self.values[id.0 as usize] {
                Value::Text(range) => {
                    String::from_utf8_lossy(&self.bytes[range.clone()]).into_owned()
                }
                _ => "?".to_string(),
            });
        names.collect::<Vec<_>>().join(".")
    }

    fn push(&mut self, value: Value) -> Result<(), PickleError> {
        let Ok(index) = u32::try_from(self.values.len()) else {
            return Err(self.malformed("more than 2^32 values"));
        };
        self.values.push(value);
        self.stack.push(ValueId(index));
        Ok(())
    }

    /// What lies below the last mark is out of reach.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<ValueId, PickleError> {
        if self.stack.len() <= self.floor() {
            return Err(self.malformed("nothing is there to take"));
        }
        self.stack.pop().ok_or_else(|| self.malformed("nothing is there to take"))
    }

    fn top(&self) -> Result<ValueId, PickleError> {
        let reachable = self.stack.len() > self.floor();
        let top = self.stack.last().filter(|_| reachable);
        top.copied().ok_or_else(|| self.malformed("nothing is there to use"))
    }

    fn mark(&mut self) -> Result<usize, PickleError> {
        self.marks.pop().ok_or_else(|| self.malformed("no mark"))
    }

    fn since_mark(&mut self) -> Result<Vec<ValueId>, PickleError> {
        let mark = self.mark()?;
        Ok(self.stack.split_off(mark))
    }

    fn malformed(&self, what: &'static str) -> PickleError {
        PickleError::Malformed { at: self.at.saturating_sub(1), what }
    }

    fn take(&mut self, length: usize) -> Result<Range<usize>, PickleError> {
        let left = self.bytes.len() - self.at;
        if length > left {
            return Err(PickleError::Truncated { at: self.bytes.len() });
        }
        let start = self.at;
        self.at += length;
        Ok(start..self.at)
    }

    fn skip(&mut self, length: usize) -> Result<(), PickleError> {
        self.take(length).map(|_| ())
    }

    fn byte(&mut self) -> Result<u8, PickleError> {
        let range = self.take(1)?;
        Ok(self.bytes[range.start])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let range = self.take(N)?;
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[range]);
        Ok(array)
    }

    /// A little-endian length of so many bytes.
    fn length(&mut self, width: usize) -> Result<usize, PickleError> {
        let range = self.take(width)?;
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(&self.bytes[range]);
        usize::try_from(u64::from_le_bytes(wide)).map_err(|_| self.malformed("a length"))
    }

    fn counted(&mut self, width: usize) -> Result<Range<usize>, PickleError> {
        let length = self.length(width)?;
        self.take(length)
    }

    /// A line, without its end.
    fn raw_line(&mut self) -> Result<Range<usize>, PickleError> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(PickleError::Truncated { at: self.bytes.len() });
        };
        let line = self.take(length)?;
        self.skip(1)?;
        Ok(line)
    }

    /// A line of text, without its end.
    fn line(&mut self) -> Result<&'a str, PickleError> {
        let line = self.raw_line()?;
        std::str::from_utf8(&self.bytes[line])
            .map_err(|_| self.malformed("a line that is not text"))
    }
}
