//! The few wire forms of protobuf that a profile needs.

/// A message under construction.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; 0 is what an absent field says.
    pub fn number(&mut self, field: u64, value: u64) -> &mut Message {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    pub fn text(&mut self, field: u64, text: &str) -> &mut Message {
        self.delimited(field, text.as_bytes())
    }

    pub fn message(&mut self, field: u64, message: &Message) -> &mut Message {
        self.delimited(field, message.bytes())
    }

    /// Repeated numbers, packed.
    pub fn packed(&mut self, field: u64, values: &[u64]) -> &mut Message {
        let mut packed = Message::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.message(field, &packed)
    }

    fn delimited(&mut self, field: u64, bytes: &[u8]) -> &mut Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }
}
