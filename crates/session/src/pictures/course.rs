//! The ledger as lines over cells and within one cell.

use std::collections::BTreeMap;
use vramlab_memory::ledger::{Event, EventKind, Ledger, Moment, history};
use vramlab_memory::{ModeSpec, stack};
use vramlab_picture::{Mark, MarkKind, Samples};

/// The figures of a time, as lines over one axis.
#[derive(Default)]
pub struct Lines {
    pub arrays: Samples,
    pub in_use: Samples,
    pub pool: Samples,
    /// Millionths.
    pub fragmentation: Samples,
    pub limit: Samples,
    pub marks: Vec<Mark>,
}

impl Lines {
    fn push(&mut self, x: u64, moment: &Moment) {
        self.arrays.push(x, moment.requested);
        self.in_use.push(x, moment.in_use);
        self.pool.push(x, moment.pool);
        self.fragmentation.push(x, moment.fragmentation());
    }

    fn extend_to(&mut self, x: u64) {
        let lines = [&mut self.arrays, &mut self.in_use, &mut self.pool, &mut self.fragmentation];
        lines.into_iter().chain([&mut self.limit]).for_each(|line| line.extend_to(x));
    }
}

/// A cell that changed memory.
#[derive(Clone, Debug)]
pub struct Cell {
    pub number: u32,
    /// Events that changed memory.
    pub events: u64,
    pub begin: Moment,
    pub end: Moment,
    /// The highest of each figure.
    pub peak: Moment,
    pub allocs: u64,
    pub frees: u64,
    begin_ns: u64,
}

/// The whole of the kept events.
pub struct Course {
    pub cells: Vec<Cell>,
    /// Each cell is as wide as any other: `UNITS` on the axis.
    pub over_cells: Lines,
    /// Within the cell that was asked for.
    pub within: Option<(Cell, Lines)>,
    /// How many events were no longer kept.
    pub dropped: u64,
}

/// What a cell measures on the axis over cells.
pub const UNITS: u64 = 1000;

/// Marks of lines within a cell, about.
const MOST_MARKS: u64 = 200;

/// What the axis within a cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    Events,
    Time,
}

/// Folds the ledger. Within which cell: `None` for the last one that changed memory. `total`: bytes of the device.
pub fn fold(ledger: &Ledger, total: u64, within: Option<u32>, scale: Scale) -> Course {
    let cells = cells(ledger);
    let chosen = match within {
        Some(number) => cells.iter().position(|cell| cell.number == number),
        None => cells.len().checked_sub(1),
    };
    let mut fold = Fold {
        slots: cells.iter().enumerate().map(|(slot, cell)| (cell.number, slot)).collect(),
        cells,
        over_cells: Lines::default(),
        inner: Lines::default(),
        chosen,
        scale,
        total,
        current: 0,
        done: 0,
        started: false,
        before: Moment::default(),
        line: 0,
        next_mark: 0,
    };
    fold.begin(ledger);
    history::walk(ledger, |event, moment| fold.see(ledger, event, moment));
    fold.finish(ledger.dropped())
}

/// The cells by their events, without figures yet. Events before the first kept cell belong to cell 0.
fn cells(ledger: &Ledger) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut number = 0;
    for event in ledger.events() {
        if event.kind == EventKind::CellBegin {
            number = number_of(ledger, event);
        }
        if !history::changes_memory(event.kind) && event.kind != EventKind::Oom {
            continue;
        }
        if cells.last().is_none_or(|cell| cell.number != number) {
            let moment = Moment::default();
            cells.push(Cell {
                number,
                events: 0,
                begin: moment,
                end: moment,
                peak: moment,
                allocs: 0,
                frees: 0,
                begin_ns: event.time_ns,
            });
        }
        let cell = cells.last_mut().expect("one was just made");
        cell.events += u64::from(history::changes_memory(event.kind));
    }
    cells
}

fn number_of(ledger: &Ledger, event: &Event) -> u32 {
    ledger.text_of(event.text).parse().unwrap_or(0)
}

struct Fold {
    cells: Vec<Cell>,
    slots: BTreeMap<u32, usize>,
    over_cells: Lines,
    inner: Lines,
    chosen: Option<usize>,
    scale: Scale,
    total: u64,
    /// The cell at hand, and how many of its events were seen.
    current: u32,
    done: u64,
    started: bool,
    before: Moment,
    /// The line that was marked last, and how many events of the cell must pass before the next one is.
    line: u32,
    next_mark: u64,
}

impl Fold {
    fn begin(&mut self, ledger: &Ledger) {
        let begin = history::begin(ledger);
        self.before = begin;
        if self.cells.is_empty() {
            return;
        }
        self.over_cells.push(0, &begin);
        let mode = ledger.text_of(ledger.held_at_begin().mode().0);
        if let Some(limit) = self.limit_of(mode) {
            self.over_cells.limit.push(0, limit);
            self.inner.limit.push(0, limit);
        }
    }

    fn limit_of(&self, mode: &str) -> Option<u64> {
        ModeSpec::parse(mode).ok().map(|mode| stack::limit(&mode, self.total))
    }

    fn see(&mut self, ledger: &Ledger, event: &Event, moment: &Moment) {
        match event.kind {
            EventKind::CellBegin => self.enter(number_of(ledger, event)),
            EventKind::Oom => self.failed(event),
            EventKind::ModeSwitch => self.switched(ledger.text_of(event.text), event),
            kind if history::changes_memory(kind) => self.changed(event, moment),
            _ => {}
        }
        self.before = *moment;
    }

    fn enter(&mut self, number: u32) {
        (self.current, self.done, self.started) = (number, 0, false);
        (self.line, self.next_mark) = (0, 0);
    }

    fn slot(&self) -> Option<usize> {
        self.slots.get(&self.current).copied()
    }

    /// Where the axis over cells stands: the events of a cell spread evenly over its width.
    fn place(&self, slot: usize) -> u64 {
        slot as u64 * UNITS + UNITS * self.done / (self.cells[slot].events + 1)
    }

    fn inner_place(&self, slot: usize, event: &Event) -> u64 {
        match self.scale {
            Scale::Events => self.done,
            Scale::Time => event.time_ns - self.cells[slot].begin_ns.min(event.time_ns),
        }
    }

    fn changed(&mut self, event: &Event, moment: &Moment) {
        let Some(slot) = self.slot() else { return };
        self.start(slot);
        self.done += 1;
        let x = self.place(slot);
        self.over_cells.push(x, moment);
        let cell = &mut self.cells[slot];
        cell.allocs += u64::from(event.kind == EventKind::Alloc);
        cell.frees += u64::from(event.kind == EventKind::Free);
        cell.end = *moment;
        raise(&mut cell.peak, moment);
        if self.chosen == Some(slot) {
            let x = self.inner_place(slot, event);
            self.mark_line(slot, event, x);
            self.inner.push(x, moment);
        }
    }

    /// Where another line of the cell begins to run; a loop over several lines is not marked at every turn.
    fn mark_line(&mut self, slot: usize, event: &Event, x: u64) {
        let is_new = event.site.line != self.line && event.site.cell == self.current;
        if !is_new || self.done < self.next_mark {
            return;
        }
        self.line = event.site.line;
        self.next_mark = self.done + self.cells[slot].events / MOST_MARKS;
        self.inner.marks.push(mark(x, format!("line {}", self.line), MarkKind::Cell));
    }

    /// The first event of a cell: what was before it stands at its left edge.
    fn start(&mut self, slot: usize) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let (number, before) = (self.cells[slot].number, self.before);
        let label = if number == 0 { "earlier".to_string() } else { format!("[{number}]") };
        self.over_cells.marks.push(mark(slot as u64 * UNITS, label, MarkKind::Cell));
        let cell = &mut self.cells[slot];
        (cell.begin, cell.end, cell.peak) = (before, before, before);
        if self.chosen == Some(slot) {
            self.inner.push(0, &before);
        }
    }

    fn failed(&mut self, event: &Event) {
        let Some(slot) = self.slot() else { return };
        self.start(slot);
        let label = format!("OOM {}", crate::report::size(event.requested));
        let x = self.place(slot);
        self.over_cells.marks.push(mark(x, label.clone(), MarkKind::Failure));
        if self.chosen == Some(slot) {
            let x = self.inner_place(slot, event);
            self.inner.marks.push(mark(x, label, MarkKind::Failure));
        }
    }

    fn switched(&mut self, mode: &str, event: &Event) {
        let Some(limit) = self.limit_of(mode) else { return };
        let slot = self.slot();
        // A switch in a cell that moved nothing stands where the next cell begins.
        let next = self.over_cells.pool.end().div_ceil(UNITS) * UNITS;
        let x = slot.map_or(next, |slot| self.place(slot));
        self.over_cells.limit.push(x, limit);
        self.over_cells.marks.push(mark(x, mode.to_string(), MarkKind::Switch));
        if let Some(slot) = slot.filter(|slot| self.chosen == Some(*slot)) {
            let x = self.inner_place(slot, event);
            self.inner.limit.push(x, limit);
            self.inner.marks.push(mark(x, mode.to_string(), MarkKind::Switch));
        } else if self.inner.pool.is_empty() {
            self.inner.limit = [(0, limit)].into_iter().collect();
        }
    }

    fn finish(mut self, dropped: u64) -> Course {
        self.over_cells.extend_to(self.cells.len() as u64 * UNITS);
        self.over_cells.marks.sort_by_key(|mark| mark.x);
        let within = self.chosen.map(|slot| (self.cells[slot].clone(), self.inner));
        Course { cells: self.cells, over_cells: self.over_cells, within, dropped }
    }
}

fn mark(x: u64, label: String, kind: MarkKind) -> Mark {
    Mark { x, label, note: String::new(), kind }
}

fn raise(peak: &mut Moment, moment: &Moment) {
    peak.requested = peak.requested.max(moment.requested);
    peak.in_use = peak.in_use.max(moment.in_use);
    peak.pool = peak.pool.max(moment.pool);
    peak.largest_free = peak.largest_free.max(moment.largest_free);
}
