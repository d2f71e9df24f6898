//! vramlab's own trace, which `vramlab replay` reads back; the format stands in `memory::trace::own`.

use crate::recording::Recording;
use std::io::{self, Write};
use vramlab_memory::trace::own::{Header, lines};

pub(crate) fn write(recording: &Recording<'_>, out: &mut dyn Write) -> io::Result<String> {
    let header = Header {
        device: recording.device.to_string(),
        capacity: recording.heap.device().total,
        mode: recording.heap.mode().to_string(),
    };
    for line in lines(recording.ledger(), &header) {
        out.write_all(line.as_bytes())?;
    }
    Ok(format!("{} events", recording.ledger().events().len()))
}
