//! Lines of a terminal: a series in one row of blocks, or in several rows of braille.

/// Values as blocks, each from 0 to `top`; `·` is nothing.
pub fn blocks(values: &[u64], top: u64) -> String {
    let step = |value: u64| u128::from(value) * 8;
    let block = |value: &u64| match *value {
        0 => '·',
        value => BLOCKS[(step(value).div_ceil(u128::from(top.max(1))).clamp(1, 8) - 1) as usize],
    };
    values.iter().map(block).collect()
}

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values as a line of dots, two values and four levels a character, in `rows` lines from the top down. Two values that
/// follow each other are joined upright, so that a jump is seen as one.
pub fn braille(values: &[u64], top: u64, rows: usize) -> Vec<String> {
    let levels = rows * 4;
    let level = |value: u64| {
        let scaled = u128::from(value.min(top)) * (levels as u128 - 1);
        ((scaled + u128::from(top.max(1)) / 2) / u128::from(top.max(1))) as usize
    };
    if levels == 0 {
        return Vec::new();
    }
    let columns = values.len().div_ceil(2);
    let mut dots = vec![vec![0u32; columns]; rows];
    let mut before = values.first().map_or(0, |value| level(*value));
    for (x, value) in values.iter().enumerate() {
        let now = level(*value);
        for y in before.min(now)..=before.max(now) {
            let from_top = levels - 1 - y;
            dots[from_top / 4][x / 2] |= DOTS[x % 2][from_top % 4];
        }
        before = now;
    }
    let character = |bits: &u32| char::from_u32(0x2800 + bits).expect("a braille pattern");
    dots.iter().map(|row| row.iter().map(character).collect()).collect()
}

/// The bits of a braille pattern, by column and row.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_show_height() {
        assert_eq!(blocks(&[0, 1, 50, 99, 100], 100), "·▁▄██");
        assert_eq!(blocks(&[5, u64::MAX], u64::MAX), "▁█");
        assert_eq!(blocks(&[0, 3], 0), "·█");
    }

    #[test]
    fn braille_shows_jumps() {
        assert_eq!(braille(&[0, 0, 100, 100], 100, 1), ["⣀⡏"]);
        assert_eq!(braille(&[0, 100], 100, 2), ["⢸", "⣸"]);
        assert_eq!(braille(&[], 100, 2), ["", ""]);
        assert!(braille(&[1], 1, 0).is_empty());
    }
}
