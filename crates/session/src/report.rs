//! The memory report as a table. One value in, several widths and forms out; faces only choose.

use crate::event::{Content, MemoryReport, Table, Tier, Watch};
use crate::pictures;
use vramlab_picture::strip;

const MIB: f64 = (1u64 << 20) as f64;

/// MiB with one decimal; what would round to 0.0 keeps its figure in bytes or KiB.
pub fn mib(bytes: u64) -> String {
    match bytes {
        0 => "0.0".into(),
        1..=1023 => format!("{bytes} B"),
        1024..=52428 => format!("{:.1} K", bytes as f64 / 1024.0),
        _ => format!("{:.1}", bytes as f64 / MIB),
    }
}

/// A size by itself, with its unit, for prose.
pub fn size(bytes: u64) -> String {
    vramlab_memory::format_bytes(bytes)
}

/// MiB, without decimals where there are none: for pools and limits.
pub fn mib_short(bytes: u64) -> String {
    match bytes % (1 << 20) {
        0 => (bytes >> 20).to_string(),
        _ => mib(bytes),
    }
}

/// A difference with its sign.
pub fn signed(bytes: i64) -> String {
    let sign = if bytes < 0 { '-' } else { '+' };
    format!("{sign}{}", mib(bytes.unsigned_abs()))
}

pub fn percent(fraction: f64) -> String {
    format!("{:.0} %", fraction * 100.0)
}

/// A time in the unit that leaves one to three digits.
pub fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..=999 => return format!("{ns} ns"),
        1_000..=999_999 => (ns as f64 / 1e3, "µs"),
        1_000_000..=999_999_999 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    match value < 9.95 {
        true => format!("{value:.1} {unit}"),
        false => format!("{value:.0} {unit}"),
    }
}

fn counts(up: u64, down: u64) -> String {
    match (up, down) {
        (0, 0) => "0".into(),
        (up, 0) => format!("+{up}"),
        (0, down) => format!("-{down}"),
        (up, down) => format!("+{up} -{down}"),
    }
}

fn compile(report: &MemoryReport) -> String {
    let (hits, misses) = (report.compile_hits_cell, report.compile_misses_cell);
    let plural = |count: u64, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    match (hits, misses) {
        (0, 0) => "-".into(),
        (hits, 0) => plural(hits, "hit", "hits"),
        (0, misses) => plural(misses, "miss", "misses"),
        (hits, misses) => {
            format!("{}, {}", plural(hits, "hit", "hits"), plural(misses, "miss", "misses"))
        }
    }
}

/// How much a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The eight columns that fit in 80 characters.
    Narrow,
    /// Every column of the brief table.
    Wide,
}

/// The brief table: a heading and one row, with lines for scopes and notes.
pub fn brief(report: &MemoryReport, layout: Layout, slack: bool) -> Table {
    let wide = layout == Layout::Wide;
    let mut columns: Vec<(&str, String)> = Vec::new();
    let arrays = format!("{} ({})", mib(report.requested_bytes), signed(report.delta_bytes));
    columns.push(("arrays", arrays));
    let mut in_use = mib(report.bytes_in_use);
    if slack && report.slack_bytes() > 0 {
        in_use.push_str(&format!(" (slack {})", mib(report.slack_bytes())));
    }
    columns.push(("in use", in_use));
    columns.push(("peak", mib(report.peak_bytes_in_use_cell)));
    let pool = format!("{}/{}", mib_short(report.pool_bytes), mib_short(report.bytes_limit));
    columns.push(("pool/limit", pool));
    columns.push(("largest", mib(report.largest_free_block_bytes)));
    columns.push(("frag", percent(report.fragmentation)));
    if wide {
        columns.push(("allocs", counts(report.num_allocs_cell, report.num_frees_cell)));
        columns.push(("live", report.live_arrays.to_string()));
        columns.push(("compile", compile(report)));
    }
    columns.push(("driver", counts(report.driver_allocs_cell, report.driver_frees_cell)));
    let tier = report.tier.unwrap_or(Tier::Instant).name();
    columns.push(("time", format!("{} {tier}", duration(report.wall_ns))));
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let mut table = Table::new(&names);
    table.row(columns.into_iter().map(|(_, text)| text));
    if !wide && report.compile_misses_cell > 0 {
        let took = duration(report.compile_ns_cell);
        table.note(format!("compile {}, {took}", compile(report)));
    }
    table.footer.extend(scope_lines(report));
    table.footer.extend(report.notes.iter().map(|note| format!("note: {note}")));
    table
}

fn scope_lines(report: &MemoryReport) -> impl Iterator<Item = String> + '_ {
    report.scopes.iter().map(|scope| {
        format!(
            "{}scope {}   peak {}   allocated {}   freed {}",
            "  ".repeat(scope.depth as usize),
            scope.name,
            mib(scope.peak_bytes),
            mib(scope.allocated_bytes),
            mib(scope.freed_bytes)
        )
    })
}

/// The brief table for a face of that many characters. The columns are the same in every cell of a
/// session; only the slack beside what is in use comes and goes.
pub fn fitting(report: &MemoryReport, columns: usize) -> Table {
    let layout = if columns >= WIDE { Layout::Wide } else { Layout::Narrow };
    let with_slack = brief(report, layout, true);
    let text = crate::table::plain(&with_slack);
    let width = text.lines().take(2).map(|line| line.chars().count()).max().unwrap_or(0);
    if width <= columns { with_slack } else { brief(report, layout, false) }
}

/// What the wide table needs with large figures in it.
const WIDE: usize = 112;

/// What stands below the brief table in the full one.
pub fn details(report: &MemoryReport) -> Vec<Table> {
    let mut tables = Vec::new();
    tables.extend(pool_line(report));
    let bytes = |title: &str, heading: &str, rows: &[(String, u64)]| {
        let mut table = Table::new(&[heading, ">MiB"]);
        for (name, bytes) in rows.iter().take(MOST_ROWS) {
            table.row([name.clone(), mib(*bytes)]);
        }
        if rows.len() > MOST_ROWS {
            let rest: u64 = rows[MOST_ROWS..].iter().map(|(_, bytes)| bytes).sum();
            table.row([format!("… {} more", rows.len() - MOST_ROWS), mib(rest)]);
        }
        table.titled(title)
    };
    if !report.variables.is_empty() {
        tables.push(bytes("arrays by owner", "owner", &report.variables));
    }
    if !report.caches.is_empty() {
        let title = format!("compile cache: {} entries", report.compile.entries);
        tables.push(bytes(&title, "function", &report.caches));
    }
    tables
}

/// The pool as one line of characters.
fn pool_line(report: &MemoryReport) -> Option<Table> {
    if report.strip.is_empty() {
        return None;
    }
    let mut map = Table::new(&[""]);
    map.row([report.strip.clone()]);
    Some(map.titled(format!("pool   {}  │ next region", strip::LEGEND)))
}

const MOST_ROWS: usize = 12;

/// The tables that the setting of `%watch` asks for, for a face of that many columns.
pub fn tables(report: &MemoryReport, columns: usize) -> Vec<Table> {
    match report.watch {
        Watch::Off => Vec::new(),
        Watch::Brief => vec![fitting(report, columns)],
        // Nothing can be pinned in a terminal: the line of the pool stands where the picture would.
        Watch::Live => [fitting(report, columns)].into_iter().chain(pool_line(report)).collect(),
        Watch::Full => {
            let mut tables = vec![fitting(report, columns)];
            tables.extend(details(report));
            tables
        }
    }
}

/// The same for Jupyter: HTML with every column, and the plain text beside it.
pub fn content(report: &MemoryReport) -> Content {
    let mut wide = report.clone();
    if wide.watch == Watch::Off {
        wide.watch = Watch::Brief;
    }
    let contents: Vec<Content> =
        tables(&wide, usize::MAX).into_iter().map(Content::of_table).collect();
    let text: Vec<&str> = contents.iter().map(|content| content.text.as_str()).collect();
    let html: Vec<&str> = contents.iter().filter_map(|content| content.html.as_deref()).collect();
    let mut html = html.concat();
    if !report.picture.is_empty() {
        html.push_str(&pictures::inline(&report.picture));
    }
    Content { text: text.join("\n"), html: Some(html), ..Content::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::plain;

    const M: u64 = 1 << 20;

    fn sample() -> MemoryReport {
        MemoryReport {
            requested_bytes: 10 * M,
            bytes_in_use: 10 * M,
            delta_bytes: 10 * M as i64,
            peak_bytes_in_use_cell: 10 * M,
            pool_bytes: 768 * M,
            bytes_limit: 768 * M,
            largest_free_block_bytes: 758 * M,
            driver_allocs_cell: 1,
            num_allocs_cell: 1,
            live_arrays: 1,
            wall_ns: 1_900_000,
            tier: Some(Tier::Instant),
            watch: Watch::Brief,
            ..MemoryReport::default()
        }
    }

    #[test]
    fn the_narrow_table_is_the_one_of_the_transcript() {
        assert_eq!(
            plain(&fitting(&sample(), 80)),
            " arrays        in use  peak  pool/limit  largest  frag  driver  time\n 10.0 (+10.0)  10.0    10.0  768/768     758.0    0 %   +1      1.9 ms instant"
        );
    }

    #[test]
    fn a_wide_face_gets_every_column() {
        let text = plain(&fitting(&sample(), 200));
        assert!(text.contains("live") && text.contains("compile"), "{text}");
    }

    #[test]
    fn slack_is_named_where_it_fits() {
        let mut report = sample();
        report.bytes_in_use = 16 * M;
        assert!(plain(&fitting(&report, 100)).contains("16.0 (slack 6.0)"));
        report.notes.push("backed off".into());
        assert!(plain(&fitting(&report, 80)).ends_with(" note: backed off"));
    }

    #[test]
    fn figures_keep_what_is_small() {
        assert_eq!(mib(0), "0.0");
        assert_eq!(mib(4), "4 B");
        assert_eq!(mib(2048), "2.0 K");
        assert_eq!(mib(M / 2), "0.5");
        assert_eq!(mib_short(16 * M), "16");
        assert_eq!(mib_short(528_361_728), "503.9");
        assert_eq!(signed(-(54 * M as i64)), "-54.0");
        assert_eq!(duration(58_400_000), "58 ms");
        assert_eq!(duration(300_000), "300 µs");
    }

    #[test]
    fn html_escapes_the_names_of_variables() {
        let mut report = sample();
        report.watch = Watch::Full;
        report.variables.push(("<b>".into(), M));
        let html = content(&report).html.unwrap();
        assert!(html.contains("&lt;b&gt;") && !html.contains("<b>"), "{html}");
    }
}
