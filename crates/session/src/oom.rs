//! A failed allocation, as a user reads it: what was asked, why not, what was tried, what would pass.

use crate::report::{mib, mib_short};
use vramlab_memory::OomReport;

/// Heading and the lines under it.
pub fn render(report: &OomReport, jit: Option<&str>, op: &str, call: &str, place: &str) -> String {
    let what = if call.is_empty() { op } else { call };
    let mut out = format!("error[OOM]: {what} asked {}", mib(report.asked));
    if !place.is_empty() {
        out.push_str(&format!("      {place}"));
    }
    for (label, text) in lines(report, jit) {
        for (index, row) in wrapped(&text).iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            out.push_str(&format!("\n {label:<8} {row}"));
        }
    }
    out
}

/// Words in lines that fit a terminal beside the labels.
pub fn wrapped(text: &str) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in text.split(' ') {
        let row = rows.last_mut().expect("there is a first row");
        if row.is_empty() {
            row.push_str(word);
        } else if row.chars().count() + 1 + word.chars().count() > WIDEST {
            rows.push(word.to_string());
        } else {
            row.push(' ');
            row.push_str(word);
        }
    }
    rows
}

const WIDEST: usize = 70;

fn lines(report: &OomReport, jit: Option<&str>) -> Vec<(&'static str, String)> {
    let mut lines = vec![("verdict", report.verdict_text()), ("ladder", ladder(report))];
    if !report.owners.is_empty() {
        lines.push(("owners", owners(report, SHOWN_OWNERS)));
    }
    if report.driver_says.is_none() {
        lines.push(("passes", passes(report, jit)));
    }
    if !report.advice.is_empty() {
        lines.push((program(report), report.advice.clone()));
    }
    lines
}

/// Whose line it is that is to be pasted.
fn program(report: &OomReport) -> &'static str {
    if report.advice.starts_with("PYTORCH") { "PyTorch" } else { "in JAX" }
}

/// The replay meets the others with what they hold now.
fn passes(report: &OomReport, jit: Option<&str>) -> String {
    let mut passing = report.passing();
    passing.extend(jit.map(String::from));
    let beside = if report.other_processes > 0 { " beside what others hold" } else { "" };
    match passing.is_empty() {
        true => format!("in no other mode (replayed{beside})"),
        false => format!("{}  (replayed{beside})", passing.join(" · ")),
    }
}

const SHOWN_OWNERS: usize = 4;

fn ladder(report: &OomReport) -> String {
    let step = |step: &vramlab_memory::oom::LadderStep| match &step.note {
        Some(note) => format!("{} {note}", step.name),
        None => format!("{} {}", step.name, mib_short(step.freed)),
    };
    let mut text = report.ladder.iter().map(step).collect::<Vec<_>>().join(" · ");
    if text.is_empty() {
        text.push_str("nothing to climb: it can never fit");
    }
    match report.retries {
        0 => {}
        1 => text.push_str(" · 1 retry"),
        retries => text.push_str(&format!(" · {retries} retries")),
    }
    text
}

/// The largest owners with bytes and the line that made them.
pub fn owners(report: &OomReport, most: usize) -> String {
    let shown = report.owners.iter().take(most);
    let mut list: Vec<String> = shown
        .map(|owner| {
            let place = match (owner.site.cell, owner.name.starts_with("made in cell")) {
                (0, _) | (_, true) => String::new(),
                (cell, false) => format!(" (cell {cell}, line {})", owner.site.line.max(1)),
            };
            format!("{} {}{place}", owner.name, mib(owner.bytes))
        })
        .collect();
    let rest = report.owners.len().saturating_sub(most);
    if rest > 0 {
        let bytes: u64 = report.owners[most..].iter().map(|owner| owner.bytes).sum();
        list.push(format!("{rest} more {}", mib(bytes)));
    }
    list.join(" · ")
}

/// The long form, for `%why`: every region and every remedy with its figures.
pub fn explain(report: &OomReport, jit: Option<&str>) -> String {
    let sizes = |regions: &[u64]| {
        let text: Vec<String> = regions.iter().map(|bytes| mib_short(*bytes)).collect();
        if text.is_empty() { "none".into() } else { text.join(", ") }
    };
    let mut out = format!(
        "asked {}   in use {}   pool {}   limit {}   device {}   largest free {}   fragmentation {:.4}",
        mib(report.asked),
        mib(report.in_use),
        mib(report.pool),
        mib(report.limit),
        mib(report.device),
        mib(report.largest_free),
        report.fragmentation
    );
    out.push_str(&format!("\nverdict {}", report.verdict_text()));
    out.push_str(&format!("\nladder  {}", ladder(report)));
    out.push_str(&format!(
        "\nregions empty {}; holding blocks {}",
        sizes(&report.empty_regions),
        sizes(&report.pinned_regions)
    ));
    if !report.owners.is_empty() {
        out.push_str(&format!("\nowners  {}", owners(report, usize::MAX)));
    }
    for remedy in &report.remedies {
        let result = if remedy.passes { "passes" } else { "fails" };
        out.push_str(&format!(
            "\n{result:<7} in {}: peak in use {}, pool {}",
            remedy.mode,
            mib(remedy.peak_in_use),
            mib(remedy.pool)
        ));
    }
    if let Some(jit) = jit {
        out.push_str(&format!("\npasses  as {jit}"));
    }
    if !report.advice.is_empty() {
        out.push_str(&format!("\n{:<7} {}", program(report), report.advice));
    }
    out
}
