//! Colours that stay with a name, and are read on white and on black.

/// In arrays, in use, held from the device, the limit, fragmentation, a peak or a failure.
pub const ARRAYS: &str = "#3f88d8";
/// In use: arrays and slack.
pub const IN_USE: &str = "#d98f2b";
/// Held from the device.
pub const POOL: &str = "#8a93a0";
/// What may not be exceeded, and what failed.
pub const LIMIT: &str = "#d9534f";
/// The share of the free bytes outside the largest free chunk.
pub const FRAGMENTATION: &str = "#9a6fd0";
/// Chunks that are freed and not yet ready, and runs of many owners.
pub const MIXED: &str = "#8a93a0";

/// The colour of an owner: `#rrggbb`. The same name has the same colour in every picture of every session; the paths
/// into one container (`params[0]`, `params[1].w`) share its hue.
pub fn of(owner: &str) -> String {
    let root = owner.split(['[', '.']).next().unwrap_or(owner);
    // Steps of the golden angle part neighbours; hashes of similar names differ in all bits.
    let hue = (hash(root) % 997) as f64 * 137.507_764 % 360.0;
    let shade = hash(owner) >> 17;
    let saturation = 0.50 + (shade / 4 % 3) as f64 * 0.12;
    of_luminance(hue, saturation, 0.17 + (shade % 4) as f64 * 0.05)
}

/// The lightness is what the eye makes of it: yellow and blue of one luminance are seen alike on either paper.
fn of_luminance(hue: f64, saturation: f64, wanted: f64) -> String {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..12 {
        let middle = (low + high) / 2.0;
        match luminance(channels(hue, saturation, middle)) < wanted {
            true => low = middle,
            false => high = middle,
        }
    }
    hex(channels(hue, saturation, low))
}

/// Relative luminance (WCAG 2.2) of red, green and blue from 0 to 1.
fn luminance(channels: [f64; 3]) -> f64 {
    let linear = |value: f64| match value <= 0.04045 {
        true => value / 12.92,
        false => ((value + 0.055) / 1.055).powf(2.4),
    };
    let [red, green, blue] = channels.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    hash ^ hash >> 29
}

fn channels(hue: f64, saturation: f64, lightness: f64) -> [f64; 3] {
    let reach = saturation * lightness.min(1.0 - lightness);
    [0.0, 8.0, 4.0].map(|n| {
        let k = (n + hue / 30.0) % 12.0;
        lightness - reach * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0)
    })
}

fn hex(channels: [f64; 3]) -> String {
    let [red, green, blue] = channels.map(|value| (value * 255.0).round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0)
    }

    #[test]
    fn every_colour_is_seen_on_white_and_on_black() {
        let names = (0..500).map(|n| of(&format!("v{n}")));
        let fixed = [ARRAYS, IN_USE, POOL, LIMIT, FRAGMENTATION, MIXED].map(str::to_string);
        for colour in names.chain(fixed) {
            let light = luminance(read(&colour));
            let on_white = 1.05 / (light + 0.05);
            let on_black = (light + 0.05) / 0.05;
            assert!(on_white > 2.5 && on_black > 4.0, "{colour}: {on_white:.2}, {on_black:.2}");
        }
    }

    #[test]
    fn a_name_keeps_its_colour_and_neighbours_differ() {
        assert_eq!(of("x"), of("x"));
        let mut all: Vec<String> = ["x", "y", "w1", "w2", "Out[1]", "loss"].map(of).to_vec();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn hues_are_as_in_css() {
        assert_eq!(hex(channels(0.0, 1.0, 0.5)), "#ff0000");
        assert_eq!(hex(channels(120.0, 1.0, 0.25)), "#008000");
        assert_eq!(hex(channels(240.0, 0.5, 0.5)), "#4040bf");
    }
}
