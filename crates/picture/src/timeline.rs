//! Series over time, over events or over cells: what was in arrays, in use, held; and where the peak was.

use crate::map::{swatch, text};
use crate::words::{duration, share, size, width};
use crate::xml::{Writer, number};
use crate::{Drawing, Paper, Samples, WIDTH, colour};

/// Several series over one axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Above the picture; empty for none.
    pub title: String,
    /// From the back to the front.
    pub series: Vec<Series>,
    /// What is marked on the axis, in order.
    pub marks: Vec<Mark>,
    /// What the values are.
    pub unit: Unit,
    /// Whether places are nanoseconds; otherwise they are counted, and only marks are written below.
    pub in_time: bool,
    /// Whether the highest value of the series at `.0` gets a mark, with words for it: `peak`.
    pub peak: Option<(usize, String)>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// `#rrggbb`.
    pub colour: String,
    /// How it is drawn.
    pub style: Style,
    /// What it is.
    pub samples: Samples,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line over a filled area.
    Area,
    /// A line.
    Line,
    /// A bound: dashed, and no reason to make the picture higher.
    Bound,
}

/// A place on the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where.
    pub x: u64,
    /// What is written at it: `[3]`.
    pub label: String,
    /// What hovering over the part up to the next mark tells; empty for nothing.
    pub note: String,
    /// What it marks.
    pub kind: MarkKind,
}

/// What a mark is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// A cell, or another part of the axis, begins.
    Cell,
    /// Another mode answers from here on.
    Switch,
    /// A request failed.
    Failure,
}

/// What values are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    #[default]
    Bytes,
    /// Millionths of a whole, shown in percent; the axis reaches to 100 %.
    Share,
}

impl Unit {
    /// A value in words.
    pub fn write(self, value: u64) -> String {
        match self {
            Unit::Bytes => size(value),
            Unit::Share => share(value),
        }
    }

    /// The top of an axis that holds `highest`, and the step of its ticks.
    fn axis(self, highest: u64) -> (u64, u64) {
        match self {
            Unit::Share => (1_000_000, 250_000),
            Unit::Bytes => {
                let step = (highest / 5).max(1).checked_next_power_of_two().unwrap_or(1 << 63);
                (highest.max(1).div_ceil(step).saturating_mul(step), step)
            }
        }
    }
}

const HEIGHT: f64 = 220.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 12.0;
const BELOW: f64 = 44.0;
/// Marks nearer than that are not drawn apart, labels nearer than that not written.
const NEAREST_MARK: f64 = 3.0;

/// The plot and its scales.
struct Plot {
    top: f64,
    start: u64,
    end: u64,
    highest: u64,
    step: u64,
}

impl Plot {
    fn x(&self, x: u64) -> f64 {
        let span = (self.end - self.start).max(1) as f64;
        let at = x.clamp(self.start, self.end) - self.start;
        LEFT + at as f64 / span * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: u64) -> f64 {
        let part = (y as f64 / self.highest as f64).min(1.0);
        self.top + (1.0 - part) * HEIGHT
    }

    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }
}

impl Drawing for Timeline {
    fn height(&self) -> f64 {
        self.plot().bottom() + BELOW
    }

    fn draw(&self, svg: &mut Writer) {
        let plot = self.plot();
        if !self.title.is_empty() {
            text(svg, 0.0, 13.0, &self.title, true);
        }
        self.grid(&plot, svg);
        self.draw_marks(&plot, svg);
        for series in &self.series {
            draw_series(series, &plot, svg);
        }
        self.draw_peak(&plot, svg);
        self.hover(&plot, svg);
        self.legend(&plot, svg);
    }

    fn summary(&self) -> String {
        let one = |series: &Series| {
            let samples = &series.samples;
            let peak = samples.peak().map_or(0, |(_, peak)| peak);
            let (last, peak) = (self.unit.write(samples.last()), self.unit.write(peak));
            match series.style {
                Style::Bound => format!("{} {last}", series.name),
                _ => format!("{} {last}, at most {peak}", series.name),
            }
        };
        self.series.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

impl Timeline {
    /// One `<svg>` element.
    pub fn svg(&self, paper: Paper) -> String {
        crate::sheet(&[self], paper)
    }

    fn plot(&self) -> Plot {
        let drawn = || self.series.iter().filter(|series| !series.samples.is_empty());
        let places = drawn().flat_map(|series| [series.samples.start(), series.samples.end()]);
        let (start, end) = places.fold((u64::MAX, 0), |(low, high), x| (low.min(x), high.max(x)));
        let reach = |style: fn(Style) -> bool| {
            let series = drawn().filter(|series| style(series.style));
            series.filter_map(|series| series.samples.peak()).map(|(_, y)| y).max().unwrap_or(0)
        };
        let values = reach(|style| style != Style::Bound);
        let bound = reach(|style| style == Style::Bound);
        // A bound far above everything would press the lines to the floor.
        let highest = if bound > 0 && bound / 4 <= values { values.max(bound) } else { values };
        let (highest, step) = self.unit.axis(highest);
        let top = if self.title.is_empty() { 18.0 } else { 34.0 };
        Plot { top, start: start.min(end), end, highest, step }
    }

    fn grid(&self, plot: &Plot, svg: &mut Writer) {
        let mut value = 0;
        loop {
            let y = plot.y(value);
            let opacity = if value == 0 { "0.5" } else { "0.14" };
            line(svg, [LEFT, y, WIDTH - RIGHT, y], "currentColor", opacity, None);
            let label = self.unit.write(value);
            let label = if value == 0 { "0".to_string() } else { label };
            text(svg, LEFT - 8.0 - width(&label), y + 4.0, &label, false);
            value = value.saturating_add(plot.step);
            if value > plot.highest || value == u64::MAX {
                break;
            }
        }
        if self.in_time {
            let span = plot.end - plot.start;
            for part in 1..=4u64 {
                let x = plot.start + (u128::from(span) * u128::from(part) / 4) as u64;
                let label = duration(x - plot.start);
                let at = plot.x(x) - if part == 4 { width(&label) } else { width(&label) / 2.0 };
                text(svg, at, plot.bottom() + 26.0, &label, false);
            }
        }
    }

    fn draw_marks(&self, plot: &Plot, svg: &mut Writer) {
        let (mut drawn, mut written) = (f64::MIN, f64::MIN);
        for mark in &self.marks {
            let x = plot.x(mark.x);
            if mark.kind == MarkKind::Failure {
                line(svg, [x, plot.top, x, plot.bottom()], colour::LIMIT, "0.9", None);
                let at = (x + 4.0).min(WIDTH - RIGHT - width(&mark.label));
                text(svg, at, plot.top - 4.0, &mark.label, true);
                continue;
            }
            if x - drawn >= NEAREST_MARK {
                let dash = (mark.kind == MarkKind::Switch).then_some("2 3");
                let opacity = if mark.kind == MarkKind::Switch { "0.6" } else { "0.22" };
                line(svg, [x, plot.top, x, plot.bottom() + 4.0], "currentColor", opacity, dash);
                drawn = x;
            }
            let at = (x + 1.0).min(WIDTH - width(&mark.label));
            if mark.kind == MarkKind::Cell && at >= written && !mark.label.is_empty() {
                text(svg, at, plot.bottom() + 14.0, &mark.label, false);
                written = at + width(&mark.label) + 6.0;
            }
            if mark.kind == MarkKind::Switch {
                let at = (x + 4.0).min(WIDTH - RIGHT - width(&mark.label));
                text(svg, at, plot.top - 4.0, &mark.label, false);
            }
        }
    }

    fn draw_peak(&self, plot: &Plot, svg: &mut Writer) {
        let Some((index, words)) = &self.peak else { return };
        let series = self.series.get(*index);
        let Some((x, value)) = series.and_then(|series| series.samples.peak()) else { return };
        if value == 0 {
            return;
        }
        let (x, y) = (plot.x(x), plot.y(value));
        let label = format!("{words} {}", self.unit.write(value));
        svg.open(
            "circle",
            &[
                ("cx", number(x)),
                ("cy", number(y)),
                ("r", "4".into()),
                ("fill", colour::LIMIT.into()),
            ],
        );
        svg.text("title", &[], &label);
        svg.close();
        let wide = width(&label);
        let at = if x + 8.0 + wide > WIDTH - RIGHT { x - 8.0 - wide } else { x + 8.0 };
        text(svg, at.max(LEFT), (y - 5.0).max(plot.top + 11.0), &label, true);
    }

    /// Parts of the picture that tell what is between one mark and the next.
    fn hover(&self, plot: &Plot, svg: &mut Writer) {
        for (index, mark) in self.marks.iter().enumerate().filter(|(_, m)| !m.note.is_empty()) {
            let next = self.marks[index + 1..].iter().find(|next| !next.note.is_empty());
            let end = next.map_or(plot.end, |next| next.x);
            let (x, to) = (plot.x(mark.x), plot.x(end));
            if to - x < 1.0 {
                continue;
            }
            svg.open(
                "rect",
                &[
                    ("x", number(x)),
                    ("y", number(plot.top)),
                    ("width", number(to - x)),
                    ("height", number(HEIGHT)),
                    ("fill", "#000".into()),
                    ("fill-opacity", "0".into()),
                ],
            );
            svg.text("title", &[], &mark.note);
            svg.close();
        }
    }

    fn legend(&self, plot: &Plot, svg: &mut Writer) {
        let (mut x, y) = (LEFT, plot.bottom() + BELOW - 15.0);
        for series in self.series.iter().filter(|series| !series.samples.is_empty()) {
            let hidden = series.style == Style::Bound && series.samples.last() > plot.highest;
            let above = if hidden { ", above the picture" } else { "" };
            let value = self.unit.write(series.samples.last());
            let name = format!("{} {value}{above}", series.name);
            swatch(svg, x, y, &series.colour, 1.0);
            text(svg, x + 15.0, y + 10.0, &name, false);
            x += width(&name) + 34.0;
        }
    }
}

/// `ends`: x and y of the beginning, x and y of the end.
fn line(svg: &mut Writer, ends: [f64; 4], stroke: &str, opacity: &str, dash: Option<&str>) {
    let [x1, y1, x2, y2] = ends;
    let mut attributes = vec![
        ("x1", number(x1)),
        ("y1", number(y1)),
        ("x2", number(x2)),
        ("y2", number(y2)),
        ("stroke", stroke.to_string()),
        ("stroke-opacity", opacity.to_string()),
    ];
    if let Some(dash) = dash {
        attributes.push(("stroke-dasharray", dash.into()));
    }
    svg.leaf("line", &attributes);
}

fn draw_series(series: &Series, plot: &Plot, svg: &mut Writer) {
    if series.samples.is_empty() || series.style == Style::Bound && hidden(series, plot) {
        return;
    }
    let path = path(&series.samples, plot);
    if series.style == Style::Area {
        let first = plot.x(series.samples.start());
        let closed = format!("{path}V{}H{}Z", number(plot.bottom()), number(first));
        let fill =
            [("d", closed), ("fill", series.colour.clone()), ("fill-opacity", "0.16".to_string())];
        svg.leaf("path", &fill);
    }
    let mut attributes = vec![
        ("d", path),
        ("fill", "none".to_string()),
        ("stroke", series.colour.clone()),
        ("stroke-width", "1.5".to_string()),
    ];
    if series.style == Style::Bound {
        attributes.push(("stroke-dasharray", "6 4".into()));
    }
    svg.leaf("path", &attributes);
}

fn hidden(series: &Series, plot: &Plot) -> bool {
    series.samples.buckets().iter().all(|bucket| bucket.min > plot.highest)
}

/// Steps: along at the last value, then up and down through all that a bucket reaches.
fn path(samples: &Samples, plot: &Plot) -> String {
    let mut path = String::new();
    let mut at = None;
    for bucket in samples.buckets() {
        let x = plot.x(bucket.x);
        match at {
            None => {
                path = format!("M{} {}", number(x), number(plot.y(bucket.first)));
                at = Some(bucket.first);
            }
            Some(_) => path.push_str(&format!("H{}", number(x))),
        }
        for y in [bucket.first, bucket.min, bucket.max, bucket.last] {
            if at != Some(y) {
                path.push_str(&format!("V{}", number(plot.y(y))));
                at = Some(y);
            }
        }
    }
    path.push_str(&format!("H{}", number(plot.x(plot.end))));
    path
}
