//! The settings of the cache, and how a request is rounded under them.

use super::MIN_BLOCK;
use crate::{MIB, round_up};
use std::fmt;

/// The settings of a [`super::Caching`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachingOptions {
    /// What the cache may never hold more of, in bytes.
    pub limit: u64,
    /// Whether that limit was set, and so is checked before the driver is asked (a fraction per process).
    pub limited: bool,
    /// Blocks of at least this size are never split, and small requests never come from them.
    pub max_split: u64,
    /// Into how many steps each power of two is divided for rounding.
    pub divisions: Divisions,
    /// The part of the limit above which old cached blocks go before new segments are made; 0 for never.
    pub gc_threshold: f64,
    /// Whether segments grow in place, by mapping memory behind reserved addresses.
    pub expandable_segments: bool,
}

impl CachingOptions {
    /// PyTorch's defaults on a device of `total` bytes.
    pub fn of(total: u64) -> CachingOptions {
        CachingOptions {
            limit: total,
            limited: false,
            max_split: u64::MAX,
            divisions: Divisions::NONE,
            gc_threshold: 0.0,
            expandable_segments: false,
        }
    }

    /// The maximum split size, where there is one.
    pub(super) fn max_split_bytes(&self) -> Option<u64> {
        (self.max_split != u64::MAX).then_some(self.max_split)
    }

    /// Whether old cached blocks are collected; as in PyTorch, only under a limit that was set.
    pub(super) fn collects(&self) -> bool {
        self.limited && self.gc_threshold > 0.0
    }

    /// What a request holds before the block is chosen.
    pub fn rounded(&self, bytes: u64) -> u64 {
        if bytes < MIN_BLOCK {
            return MIN_BLOCK;
        }
        match self.divisions.at(bytes) {
            divisions if divisions > 1 && bytes > MIN_BLOCK * divisions => {
                round_to_division(bytes, divisions)
            }
            _ => round_up(bytes, MIN_BLOCK),
        }
    }
}

/// The next step, where each power of two is divided into `divisions`.
fn round_to_division(bytes: u64, divisions: u64) -> u64 {
    if bytes.is_power_of_two() {
        return bytes;
    }
    let floor = 1u64 << bytes.ilog2();
    match floor >> divisions.ilog2() {
        0 => floor.saturating_mul(2),
        step => round_up(bytes, step),
    }
}

/// Divisions by magnitude: the first entry up to 2 MiB, then one for each power of two, the last from 32 GiB up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisions(pub [u8; 16]);

impl Divisions {
    /// No rounding by divisions.
    pub const NONE: Divisions = Divisions([0; 16]);

    fn at(&self, bytes: u64) -> u64 {
        let magnitude = bytes.ilog2().saturating_sub(MIB.ilog2()) as usize;
        u64::from(self.0[magnitude.min(15)])
    }

    /// Reads `4` or `[256:1,512:2,1024:4,>:8]` (sizes in MiB), as `PYTORCH_CUDA_ALLOC_CONF` has it.
    pub fn parse(text: &str) -> Option<Divisions> {
        let text = text.trim();
        let Some(list) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
            return Some(Divisions([parse_division(text)?; 16]));
        };
        let mut all = [0; 16];
        let mut last = None;
        for entry in list.split(',') {
            let (size, division) = entry.split_once(':')?;
            let division = parse_division(division)?;
            if size.trim() == ">" {
                all[last.unwrap_or(0)..].fill(division);
                continue;
            }
            let mib: u64 = size.trim().parse().ok().filter(|mib: &u64| mib.is_power_of_two())?;
            let index = (mib.ilog2() as usize).min(15);
            if last.is_none() {
                all[..index].fill(division);
            }
            all[index] = division;
            last = Some(index);
        }
        Some(Divisions(all))
    }
}

fn parse_division(text: &str) -> Option<u8> {
    let value: u8 = text.trim().parse().ok()?;
    (value == 0 || value.is_power_of_two()).then_some(value)
}

/// As it is read.
impl fmt::Display for Divisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.0;
        if all.iter().all(|division| *division == all[0]) {
            return write!(f, "{}", all[0]);
        }
        write!(f, "[")?;
        for (index, division) in all.iter().enumerate() {
            write!(f, "{}{}:{division}", if index == 0 { "" } else { "," }, 1u64 << index)?;
        }
        write!(f, "]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_by_divisions() {
        let with = |text| CachingOptions {
            divisions: Divisions::parse(text).expect("valid"),
            ..CachingOptions::of(1 << 40)
        };
        // 1200 between 1024 and 2048 in four steps: 1280.
        assert_eq!(with("4").rounded(1200 * MIB), 1280 * MIB);
        assert_eq!(with("4").rounded(1024 * MIB), 1024 * MIB);
        assert_eq!(with("4").rounded(1500), 1536);
        // `>` begins at the last size named, so 512 to 1024 is in eight steps here, as in PyTorch.
        assert_eq!(with("[256:1,512:2,>:8]").rounded(600 * MIB), 640 * MIB);
        assert_eq!(with("[256:1,512:2]").rounded(600 * MIB), 768 * MIB);
        assert_eq!(with("[256:1,512:2,>:8]").rounded(300 * MIB + 1), 300 * MIB + 512);
        assert_eq!(with("0").rounded(u64::MAX), u64::MAX / 512 * 512);
    }

    #[test]
    fn divisions_read_back() {
        for text in ["0", "8", "[256:1,512:2,1024:4,>:8]"] {
            let read = Divisions::parse(text).expect("valid");
            assert_eq!(Divisions::parse(&read.to_string()), Some(read));
        }
        for wrong in ["3", "-1", "[256]", "[300:2]", "x", "[", "256", ""] {
            assert_eq!(Divisions::parse(wrong), None, "{wrong}");
        }
    }
}
