//! `%expect peak<=128MiB`: conditions on what a cell did.

use crate::config::unknown;
use crate::event::MemoryReport;
use crate::report;
use vramlab_memory::parse_bytes;

#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    figure: &'static Figure,
    relation: Relation,
    bound: Bound,
    /// As it was written.
    text: String,
}

/// What a figure is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Count,
    Fraction,
    Time,
}

/// Exact: a figure of 2^60 bytes is not rounded before it is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    Whole(i128),
    Fraction(f64),
}

#[derive(Debug)]
struct Figure {
    name: &'static str,
    aliases: &'static [&'static str],
    unit: Unit,
    value: fn(&MemoryReport) -> f64,
    whole: fn(&MemoryReport) -> i128,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Figure) -> bool {
        self.name == other.name
    }
}

macro_rules! figure {
    ($name:literal $aliases:expr, $unit:ident, $value:expr) => {
        Figure {
            name: $name,
            aliases: &$aliases,
            unit: Unit::$unit,
            value: |report| ($value)(report) as f64,
            whole: |report| ($value)(report) as i128,
        }
    };
}

static FIGURES: &[Figure] = &[
    figure!("peak"["peak_bytes_in_use_cell"], Bytes, |r: &MemoryReport| r.peak_bytes_in_use_cell),
    figure!("in_use"["bytes_in_use"], Bytes, |r: &MemoryReport| r.bytes_in_use),
    figure!("arrays"["requested_bytes"], Bytes, |r: &MemoryReport| r.requested_bytes),
    figure!("delta"["delta_bytes"], Bytes, |r: &MemoryReport| r.delta_bytes),
    figure!("pool"["pool_bytes"], Bytes, |r: &MemoryReport| r.pool_bytes),
    figure!("largest"["largest_free_block_bytes"], Bytes, |r: &MemoryReport| {
        r.largest_free_block_bytes
    }),
    figure!("fragmentation"["frag"], Fraction, |r: &MemoryReport| r.fragmentation),
    figure!("allocs"["num_allocs_cell"], Count, |r: &MemoryReport| r.num_allocs_cell),
    figure!("frees"["num_frees_cell"], Count, |r: &MemoryReport| r.num_frees_cell),
    figure!("driver_allocs" ["driver_allocs_cell", "driver"], Count, |r: &MemoryReport| {
        r.driver_allocs_cell
    }),
    figure!("driver_frees"["driver_frees_cell"], Count, |r: &MemoryReport| r.driver_frees_cell),
    figure!("live_arrays"["live"], Count, |r: &MemoryReport| r.live_arrays),
    figure!("regions" [], Count, |r: &MemoryReport| r.regions.len()),
    figure!("hits" [], Count, |r: &MemoryReport| r.compile_hits_cell),
    figure!("misses" [], Count, |r: &MemoryReport| r.compile_misses_cell),
    figure!("time"["wall"], Time, |r: &MemoryReport| r.wall_ns),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    AtMost,
    AtLeast,
    Below,
    Above,
    Equal,
    Unequal,
}

/// Longer signs first.
const RELATIONS: [(&str, Relation); 7] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("==", Relation::Equal),
    ("!=", Relation::Unequal),
    ("<", Relation::Below),
    (">", Relation::Above),
    ("=", Relation::Equal),
];

/// Names for completion and help.
pub fn figure_names() -> impl Iterator<Item = &'static str> + Clone {
    FIGURES.iter().map(|figure| figure.name)
}

/// Conditions parted by commas or `and`.
///
/// # Errors
/// What is not understood, with what is.
pub fn parse(text: &str) -> Result<Vec<Expectation>, String> {
    let conditions: Vec<&str> = text
        .split([',', '&'])
        .flat_map(|part| part.split(" and "))
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    if conditions.is_empty() {
        let names: Vec<&str> = figure_names().collect();
        return Err(format!(
            "expect what? for example peak<=128MiB; the figures are {}",
            names.join(", ")
        ));
    }
    conditions.into_iter().map(parse_one).collect()
}

fn parse_one(text: &str) -> Result<Expectation, String> {
    let found = text.char_indices().find_map(|(at, _)| {
        let (sign, relation) = RELATIONS.iter().find(|(sign, _)| text[at..].starts_with(sign))?;
        Some((at, *sign, *relation))
    });
    let Some((at, sign, relation)) = found else {
        return Err(format!("`{text}` compares nothing: write for example peak<=128MiB"));
    };
    let (name, value) = (text[..at].trim(), text[at + sign.len()..].trim());
    let figure = FIGURES.iter().find(|f| f.name == name || f.aliases.contains(&name));
    let Some(figure) = figure else {
        return Err(unknown("figure", name, figure_names()));
    };
    let bound = bound(figure.unit, value).map_err(|why| format!("{name}: {why}"))?;
    Ok(Expectation { figure, relation, bound, text: text.to_string() })
}

fn bound(unit: Unit, text: &str) -> Result<Bound, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits.trim()),
        None => (false, text),
    };
    let signed = |value: u64| if negative { -i128::from(value) } else { i128::from(value) };
    match unit {
        Unit::Bytes => parse_bytes(digits).map(|bytes| Bound::Whole(signed(bytes))),
        Unit::Count => {
            let count = digits.parse::<u64>();
            count.map(|n| Bound::Whole(signed(n))).map_err(|_| format!("`{text}` is no count"))
        }
        Unit::Fraction => {
            let (digits, scale) = match digits.strip_suffix('%') {
                Some(digits) => (digits.trim(), 100.0),
                None => (digits, 1.0),
            };
            match digits.parse::<f64>() {
                Ok(value) if value.is_finite() && !negative => Ok(Bound::Fraction(value / scale)),
                _ => Err(format!("`{text}` is no fraction such as 0.5 or 50%")),
            }
        }
        Unit::Time => time(digits)
            .filter(|_| !negative)
            .map(Bound::Whole)
            .ok_or_else(|| format!("`{text}` is no time such as 5ms")),
    }
}

fn time(text: &str) -> Option<i128> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (digits, scale) =
        units.iter().find_map(|(name, scale)| Some((text.strip_suffix(name)?, scale)))?;
    let value: f64 = digits.trim().parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some((value * scale) as i128)
}

impl Expectation {
    /// The line that says so, or why not.
    ///
    /// # Errors
    /// When the cell did otherwise.
    pub fn check(&self, report: &MemoryReport) -> Result<String, String> {
        let measured = self.measured(report);
        match self.holds(report) {
            true => Ok(format!("expected {}: {measured}, as it should be", self.text)),
            false => Err(format!("expected {}, and it was {measured}", self.text)),
        }
    }

    fn holds(&self, report: &MemoryReport) -> bool {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let order = match self.bound {
            Bound::Whole(bound) => (self.figure.whole)(report).cmp(&bound),
            Bound::Fraction(bound) => (self.figure.value)(report).total_cmp(&bound),
        };
        match self.relation {
            Relation::AtMost => order != Greater,
            Relation::AtLeast => order != Less,
            Relation::Below => order == Less,
            Relation::Above => order == Greater,
            Relation::Equal => order == Equal,
            Relation::Unequal => order != Equal,
        }
    }

    fn measured(&self, report: &MemoryReport) -> String {
        let whole = (self.figure.whole)(report);
        match self.figure.unit {
            Unit::Bytes => {
                let sign = if whole < 0 { "-" } else { "" };
                let bytes = whole.unsigned_abs() as u64;
                format!("{sign}{} ({sign}{bytes} bytes)", report::size(bytes))
            }
            Unit::Count => whole.to_string(),
            Unit::Fraction => format!("{:.4}", (self.figure.value)(report)),
            Unit::Time => report::duration(whole as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> MemoryReport {
        MemoryReport {
            peak_bytes_in_use_cell: 128 << 20,
            delta_bytes: -(10 << 20),
            num_allocs_cell: 3,
            fragmentation: 0.5,
            wall_ns: 2_000_000,
            ..MemoryReport::default()
        }
    }

    #[test]
    fn conditions_hold_or_say_what_was() {
        for holds in [
            "peak<=128MiB",
            "peak == 134217728",
            "peak = 128MiB, allocs=3",
            "delta=-10MiB",
            "frag<=50%",
            "time<5ms and allocs>2",
            "in_use!=1",
        ] {
            for condition in parse(holds).expect(holds) {
                condition.check(&report()).expect(holds);
            }
        }
        let condition = &parse("peak<128MiB").unwrap()[0];
        let why = condition.check(&report()).unwrap_err();
        assert_eq!(why, "expected peak<128MiB, and it was 128.0 MiB (134217728 bytes)");
    }

    #[test]
    fn wrong_conditions_are_refused() {
        assert!(parse("peek<=1").unwrap_err().contains("did you mean `peak`"));
        assert!(parse("peak").unwrap_err().contains("compares nothing"));
        assert!(parse("").unwrap_err().contains("peak<=128MiB"));
        assert!(parse("peak<=lots").unwrap_err().contains("not a size"));
        assert!(parse("allocs<=many").is_err());
        assert!(parse("time<5").is_err());
    }
}
