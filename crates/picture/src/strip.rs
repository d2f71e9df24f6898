//! A region as a line of characters.

use crate::{Chunk, ChunkState};

/// What the characters mean, for a heading.
pub const LEGEND: &str = "█ used  ▒ slack  · free  ▁▄▇ partly";

/// What it means when chunks are freed and not yet ready, beside [`LEGEND`].
pub const PENDING: &str = "~ freed, not yet ready";

/// The chunks as `width` characters, each for an equal part of the bytes: `█` used, `▒` mostly slack, `~` mostly
/// pending, `·` free, and between used and free as high as it is used.
pub fn strip(chunks: &[Chunk], width: usize) -> String {
    let total: u64 = chunks.iter().map(|chunk| chunk.bytes).sum();
    if total == 0 {
        return String::new();
    }
    let mut cells = vec![Cell::default(); width];
    let mut at = 0;
    for chunk in chunks {
        let used = chunk.bytes.min(chunk.requested);
        match chunk.state {
            ChunkState::Used => {
                spread(&mut cells, total, at, used, |cell| &mut cell.used);
                spread(&mut cells, total, at + used, chunk.bytes - used, |cell| &mut cell.slack);
            }
            ChunkState::Free => spread(&mut cells, total, at, chunk.bytes, |cell| &mut cell.free),
            ChunkState::Pending => {
                spread(&mut cells, total, at, chunk.bytes, |cell| &mut cell.pending);
            }
        }
        at += chunk.bytes;
    }
    cells.iter().map(Cell::mark).collect()
}

/// Bytes of one character, times the width: so that every part of a byte counts.
#[derive(Clone, Copy, Default)]
struct Cell {
    used: u128,
    slack: u128,
    free: u128,
    pending: u128,
}

impl Cell {
    fn mark(&self) -> char {
        let Cell { used, slack, free, pending } = *self;
        let all = used + slack + free + pending;
        if pending > used + slack && pending >= free {
            return '~';
        }
        if slack > used && slack >= free {
            return '▒';
        }
        let held = used + slack;
        match (held, held * 1000 >= all * 999) {
            (0, _) => '·',
            (_, true) => '█',
            _ => PARTS[(held * 7 / all) as usize],
        }
    }
}

const PARTS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];

/// Counts `bytes` from `start` on in the cells that they lie in.
fn spread(
    cells: &mut [Cell],
    total: u64,
    start: u64,
    bytes: u64,
    part: impl Fn(&mut Cell) -> &mut u128,
) {
    let width = cells.len() as u128;
    let total = u128::from(total);
    let (from, to) = (u128::from(start) * width, u128::from(start + bytes) * width);
    let mut cell = (from / total) as usize;
    while cell < cells.len() && total * (cell as u128) < to {
        let (low, high) = (total * cell as u128, total * (cell as u128 + 1));
        *part(&mut cells[cell]) += to.min(high) - from.max(low);
        cell += 1;
    }
}

/// Characters for each of several regions that share `width`: by their bytes, one at least.
pub fn shares(bytes: &[u64], width: usize) -> Vec<usize> {
    let total: u128 = bytes.iter().map(|bytes| u128::from(*bytes)).sum();
    let share = |bytes: &u64| (u128::from(*bytes) * width as u128 / total.max(1)) as usize;
    bytes.iter().map(|bytes| share(bytes).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: u64, requested: u64, state: ChunkState) -> Chunk {
        Chunk { address: 0, bytes, requested, state, owner: String::new(), note: String::new() }
    }

    #[test]
    fn used_slack_and_free_are_told_apart() {
        use ChunkState::{Free, Pending, Used};
        let chunks = [chunk(100, 50, Used), chunk(100, 0, Free), chunk(100, 0, Pending)];
        assert_eq!(strip(&chunks, 12), "██▒▒····~~~~");
        assert_eq!(strip(&chunks, 6), "█▒··~~");
        assert_eq!(strip(&[chunk(10, 10, Used), chunk(90, 0, Free)], 4), "▃···");
        assert_eq!(strip(&[chunk(10, 10, Used)], 3), "███");
        assert_eq!(strip(&[], 3), "");
        assert_eq!(strip(&[chunk(1, 1, Used)], 0), "");
    }

    #[test]
    fn what_is_used_is_never_hidden() {
        let mut chunks = vec![chunk(1 << 40, 0, ChunkState::Free)];
        chunks.push(chunk(256, 4, ChunkState::Used));
        let drawn = strip(&chunks, 20);
        assert_eq!(drawn, format!("{}▁", "·".repeat(19)));
    }

    #[test]
    fn shares_are_by_bytes() {
        assert_eq!(shares(&[100, 100, 200], 8), [2, 2, 4]);
        assert_eq!(shares(&[1, 1000], 10), [1, 9]);
        assert_eq!(shares(&[], 10), [0; 0]);
    }
}
