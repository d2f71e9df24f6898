//! `%mem timeline` and `%mem fragmentation`: lines for a page, sparklines for a terminal.

pub use super::course::Scale;

use super::course::{Cell, Course, Lines, UNITS, fold};
use crate::event::Content;
use crate::report::{duration, mib, mib_short};
use crate::session::Past;
use vramlab_memory::ledger::Ledger;
use vramlab_picture::{
    Mark, MarkKind, Samples, Series, Style, Timeline, Unit, colour, spark, words,
};
use vramlab_runtime::Context;

/// What is asked of the course of memory.
pub struct Asked<'a> {
    pub context: &'a Context,
    /// The session's cells, for their text.
    pub past: &'a [Past],
    pub columns: usize,
}

/// Arrays, in use, pool and peak over the cells and within one of them; fragmentation below.
///
/// # Errors
/// A cell that changed no memory, or whose events are no longer kept.
pub fn timeline(asked: &Asked, cell: Option<u32>, scale: Scale) -> Result<Content, String> {
    let course = asked.course(cell, scale);
    if course.cells.is_empty() {
        return Ok(Content::of_text(" nothing has touched the device's memory yet"));
    }
    let Some((chosen, lines)) = &course.within else {
        return Err(no_cell(cell.unwrap_or(0), &course));
    };
    let over = asked.over_cells(&course);
    let within = asked.within(chosen, lines, scale);
    let fragmentation = fragmentation_line(&course);
    let text = [
        overview_text(&over.title, &course.over_cells, &course, asked.columns),
        within_text(&within.title, chosen, lines, scale, asked.columns),
    ]
    .join("\n");
    Ok(super::content(&[&over, &within, &fragmentation], text))
}

/// Fragmentation over the cells, and what is free now.
pub fn fragmentation(asked: &Asked) -> Content {
    let course = asked.course(None, Scale::Events);
    if course.cells.is_empty() {
        return Content::of_text(" nothing has touched the device's memory yet");
    }
    let picture = fragmentation_line(&course);
    let now = asked.context.report().figures;
    let free = now.pool_bytes - now.bytes_in_use;
    let row = Row::of("frag", &course.over_cells.fragmentation, Unit::Share, &over_cells(&course));
    let text = format!(
        " {}\n{}\n{}\n free {} of pool {}, largest {}: {} of it lies elsewhere",
        picture.title,
        row.text(asked.columns),
        ruler(&course, asked.columns),
        mib(free),
        mib_short(now.pool_bytes),
        mib(now.largest_free_block_bytes),
        mib(free.saturating_sub(now.largest_free_block_bytes))
    );
    super::content(&[&picture], text)
}

fn no_cell(number: u32, course: &Course) -> String {
    let known: Vec<String> =
        course.cells.iter().rev().take(8).rev().map(|cell| cell.number.to_string()).collect();
    let earlier = match course.dropped {
        0 => String::new(),
        dropped => format!("; {dropped} events from before are no longer kept"),
    };
    format!("cell {number} changed no memory; the last that did are {}{earlier}", known.join(", "))
}

impl Asked<'_> {
    fn course(&self, cell: Option<u32>, scale: Scale) -> Course {
        let total = self.context.capacity();
        self.context.with_heap(|heap| {
            let ledger: &Ledger = heap.ledger();
            fold(ledger, total, cell, scale)
        })
    }

    fn over_cells(&self, course: &Course) -> Timeline {
        let (first, last) = (&course.cells[0], &course.cells[course.cells.len() - 1]);
        let title = match first.number == last.number {
            true => format!("cell {}", last.number),
            false => format!("cells {} to {} that changed memory", first.number, last.number),
        };
        let mut timeline = Timeline {
            title,
            series: series(&course.over_cells),
            marks: course.over_cells.marks.clone(),
            peak: Some((IN_USE, "peak".into())),
            ..Timeline::default()
        };
        for (slot, cell) in course.cells.iter().enumerate() {
            let x = slot as u64 * UNITS;
            let begins = |mark: &&mut Mark| mark.x == x && mark.kind == MarkKind::Cell;
            let mark = timeline.marks.iter_mut().find(begins);
            if let Some(mark) = mark {
                mark.note = self.note(cell);
            }
        }
        timeline
    }

    fn note(&self, cell: &Cell) -> String {
        let source = self.past.iter().find(|past| past.cell == cell.number);
        let line = source.and_then(|past| past.source.lines().find(|line| !line.trim().is_empty()));
        let short: String = line.unwrap_or("").chars().take(80).collect();
        format!(
            "cell {}: arrays {} → {} MiB, peak {}, pool {}\n{} allocations, {} frees\n{short}",
            cell.number,
            mib(cell.begin.requested),
            mib(cell.end.requested),
            mib(cell.peak.requested),
            mib(cell.end.pool),
            cell.allocs,
            cell.frees
        )
    }

    fn within(&self, cell: &Cell, lines: &Lines, scale: Scale) -> Timeline {
        let by = if scale == Scale::Time { "over time" } else { "event by event" };
        Timeline {
            title: format!("within cell {}, {by} ({} events)", cell.number, cell.events),
            series: series(lines),
            marks: lines.marks.clone(),
            in_time: scale == Scale::Time,
            peak: Some((IN_USE, "peak".into())),
            ..Timeline::default()
        }
    }
}

/// Which of [`series`] is in use.
const IN_USE: usize = 1;

fn series(lines: &Lines) -> Vec<Series> {
    let of = |name: &str, colour: &str, style: Style, samples: &Samples| Series {
        name: name.into(),
        colour: colour.into(),
        style,
        samples: samples.clone(),
    };
    vec![
        of("pool", colour::POOL, Style::Area, &lines.pool),
        of("in use", colour::IN_USE, Style::Area, &lines.in_use),
        of("arrays", colour::ARRAYS, Style::Line, &lines.arrays),
        of("limit", colour::LIMIT, Style::Bound, &lines.limit),
    ]
}

fn fragmentation_line(course: &Course) -> Timeline {
    let samples = course.over_cells.fragmentation.clone();
    let line = Series {
        name: "fragmentation".into(),
        colour: colour::FRAGMENTATION.into(),
        style: Style::Area,
        samples,
    };
    Timeline {
        title: "fragmentation: the part of the free bytes outside the largest free chunk".into(),
        series: vec![line],
        marks: course.over_cells.marks.clone(),
        unit: Unit::Share,
        peak: Some((0, "most".into())),
        ..Timeline::default()
    }
}

/// A sparkline with its figures.
struct Row {
    name: &'static str,
    samples: Samples,
    now: String,
    peak: String,
}

impl Row {
    fn of(name: &'static str, samples: &Samples, unit: Unit, place: &dyn Fn(u64) -> String) -> Row {
        let (x, most) = samples.peak().unwrap_or_default();
        let write = |value: u64| match unit {
            Unit::Bytes => mib(value),
            Unit::Share => words::share(value),
        };
        let peak = format!("{}{}", write(most), place(x));
        Row { name, samples: samples.clone(), now: write(samples.last()), peak }
    }

    fn text(&self, columns: usize) -> String {
        let values = self.samples.columns(spark_width(columns));
        let top = values.iter().copied().max().unwrap_or(0);
        let line = spark::blocks(&values, top);
        format!(" {:<7}{line}  now {:>7}  peak {}", self.name, self.now, self.peak)
    }
}

/// Name before, figures behind.
fn spark_width(columns: usize) -> usize {
    columns.saturating_sub(46).clamp(16, 160)
}

/// ` in [7]`, for a place on the axis over cells.
fn over_cells(course: &Course) -> impl Fn(u64) -> String + '_ {
    |x| {
        let slot = (x / UNITS) as usize;
        let cell = course.cells.get(slot.min(course.cells.len().saturating_sub(1)));
        cell.map_or(String::new(), |cell| format!(" in [{}]", cell.number))
    }
}

fn rows(lines: &Lines, place: &dyn Fn(u64) -> String, columns: usize) -> String {
    let of = |name, samples, unit| Row::of(name, samples, unit, place).text(columns);
    let mut rows = vec![
        of("arrays", &lines.arrays, Unit::Bytes),
        of("in use", &lines.in_use, Unit::Bytes),
        of("pool", &lines.pool, Unit::Bytes),
    ];
    if lines.fragmentation.peak().is_some_and(|(_, most)| most > 0) {
        rows.push(of("frag", &lines.fragmentation, Unit::Share));
    }
    rows.join("\n")
}

fn overview_text(title: &str, lines: &Lines, course: &Course, columns: usize) -> String {
    let limit = lines.limit.last();
    let limit = if limit > 0 { format!(", limit {}", mib_short(limit)) } else { String::new() };
    let dropped = match course.dropped {
        0 => String::new(),
        dropped => format!("\n {dropped} earlier events are no longer kept"),
    };
    format!(
        " {title}   (each line from 0 to its peak; MiB{limit}){dropped}\n{}\n{}",
        rows(lines, &over_cells(course), columns),
        ruler(course, columns)
    )
}

fn within_text(title: &str, cell: &Cell, lines: &Lines, scale: Scale, columns: usize) -> String {
    let failures = lines.marks.iter().filter(|mark| mark.label.starts_with("OOM"));
    let place = |x: u64| match scale {
        Scale::Events => format!(" at event {x}"),
        Scale::Time => format!(" at {}", duration(x)),
    };
    let mut text = format!(" {title}\n{}", rows(lines, &place, columns));
    for failure in failures {
        text.push_str(&format!("\n {} failed{}", failure.label, place(failure.x)));
    }
    text.push_str(&format!("\n {} allocations, {} frees", cell.allocs, cell.frees));
    text
}

/// The cells below the lines, each where it begins, as far as there is room.
fn ruler(course: &Course, columns: usize) -> String {
    let width = spark_width(columns);
    let mut line = String::new();
    for (slot, cell) in course.cells.iter().enumerate() {
        let at = slot * width / course.cells.len();
        let label = match cell.number {
            0 => "…".to_string(),
            number => format!("[{number}]"),
        };
        let have = line.chars().count();
        if (slot == 0 || at > have) && at + label.chars().count() <= width {
            line.push_str(&" ".repeat(at - have));
            line.push_str(&label);
        }
    }
    format!("        {line}")
}
