//! Pickles of plain data, protocol 4, written as a stream.

use std::collections::HashMap;
use std::io::{self, Write};

/// How many items stand between a mark and the instruction that appends them: readers keep them on their stack.
const BATCH: usize = 1000;

pub(crate) struct Pickler<'w> {
    out: &'w mut dyn Write,
    /// Texts that were written, by their number in the reader's memory.
    texts: HashMap<String, u32>,
    kept: u32,
}

/// A list that is being written.
pub(crate) struct Items(usize);

impl<'w> Pickler<'w> {
    pub fn begin(out: &'w mut dyn Write) -> io::Result<Pickler<'w>> {
        out.write_all(&[0x80, 4])?;
        Ok(Pickler { out, texts: HashMap::new(), kept: 0 })
    }

    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b".")
    }

    /// Keeps the value that was written last; [`Pickler::again`] writes it once more.
    pub fn keep(&mut self) -> io::Result<u32> {
        self.out.write_all(&[0x94])?;
        self.kept += 1;
        Ok(self.kept - 1)
    }

    pub fn again(&mut self, kept: u32) -> io::Result<()> {
        match u8::try_from(kept) {
            Ok(small) => self.out.write_all(&[b'h', small]),
            Err(_) => {
                self.out.write_all(b"j")?;
                self.out.write_all(&kept.to_le_bytes())
            }
        }
    }

    /// A text; the second time only its number.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        if let Some(kept) = self.texts.get(text) {
            return self.again(*kept);
        }
        match u8::try_from(text.len()) {
            Ok(short) => self.out.write_all(&[0x8c, short])?,
            Err(_) => {
                self.out.write_all(&[0x8d])?;
                self.out.write_all(&(text.len() as u64).to_le_bytes())?;
            }
        }
        self.out.write_all(text.as_bytes())?;
        let kept = self.keep()?;
        self.texts.insert(text.to_string(), kept);
        Ok(())
    }

    pub fn number(&mut self, value: u64) -> io::Result<()> {
        if let Ok(small) = u8::try_from(value) {
            self.out.write_all(&[b'K', small])
        } else if let Ok(small) = u16::try_from(value) {
            self.out.write_all(b"M")?;
            self.out.write_all(&small.to_le_bytes())
        } else if let Ok(small) = i32::try_from(value) {
            self.out.write_all(b"J")?;
            self.out.write_all(&small.to_le_bytes())
        } else {
            // Two's complement of as many bytes as it needs, the sign's bit 0.
            let bytes = u128::from(value).to_le_bytes();
            let length = 8 - value.leading_zeros() as usize / 8;
            let length = if bytes[length - 1] & 0x80 == 0 { length } else { length + 1 };
            self.out.write_all(&[0x8a, length as u8])?;
            self.out.write_all(&bytes[..length])
        }
    }

    pub fn minus_one(&mut self) -> io::Result<()> {
        self.out.write_all(b"J\xff\xff\xff\xff")
    }

    pub fn float(&mut self, value: f64) -> io::Result<()> {
        self.out.write_all(b"G")?;
        self.out.write_all(&value.to_be_bytes())
    }

    pub fn truth(&mut self, value: bool) -> io::Result<()> {
        self.out.write_all(if value { b"\x88" } else { b"\x89" })
    }

    /// `(0, 0)`.
    pub fn pair_of_zeros(&mut self) -> io::Result<()> {
        self.out.write_all(b"K\0K\0\x86")
    }

    pub fn dict(&mut self) -> io::Result<()> {
        self.out.write_all(b"}(")
    }

    pub fn end_dict(&mut self) -> io::Result<()> {
        self.out.write_all(b"u")
    }

    pub fn list(&mut self) -> io::Result<Items> {
        self.out.write_all(b"](")?;
        Ok(Items(0))
    }

    /// Before each item of a list.
    pub fn item(&mut self, items: &mut Items) -> io::Result<()> {
        if items.0 == BATCH {
            self.out.write_all(b"e(")?;
            items.0 = 0;
        }
        items.0 += 1;
        Ok(())
    }

    pub fn end_list(&mut self, _: Items) -> io::Result<()> {
        self.out.write_all(b"e")
    }

    pub fn entry_number(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.text(key)?;
        self.number(value)
    }

    pub fn entry_text(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.text(key)?;
        self.text(value)
    }

    pub fn entry_truth(&mut self, key: &str, value: bool) -> io::Result<()> {
        self.text(key)?;
        self.truth(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramlab_memory::trace::pickle::{Pickle, Value};

    #[test]
    fn numbers_of_every_size_read_back() {
        for value in
            [0, 1, 255, 256, 65535, 65536, i32::MAX as u64, 1 << 31, 1 << 39, 1 << 63, u64::MAX]
        {
            let mut bytes = Vec::new();
            let mut pickler = Pickler::begin(&mut bytes).unwrap();
            pickler.number(value).unwrap();
            pickler.end().unwrap();
            let pickle = Pickle::read(&bytes).expect("a pickle");
            assert_eq!(pickle.unsigned(pickle.root()), Some(value));
        }
    }

    #[test]
    fn long_lists_and_texts_read_back() {
        let mut bytes = Vec::new();
        let mut pickler = Pickler::begin(&mut bytes).unwrap();
        let mut items = pickler.list().unwrap();
        for n in 0..2500u64 {
            pickler.item(&mut items).unwrap();
            match n % 3 {
                0 => pickler.number(n).unwrap(),
                // 600 different texts, each twice: numbers beyond one byte too.
                _ => pickler.text(&format!("{}{}", "x".repeat(300), n % 600)).unwrap(),
            }
        }
        pickler.end_list(items).unwrap();
        pickler.end().unwrap();
        let pickle = Pickle::read(&bytes).expect("a pickle");
        let items = pickle.items(pickle.root());
        assert_eq!(items.len(), 2500);
        assert_eq!(pickle.value(items[2499]), &Value::Int(2499));
        assert_eq!(pickle.text(items[601]), pickle.text(items[1]));
        assert!(pickle.text(items[2498]).expect("a text").ends_with("xx98"));
    }
}
