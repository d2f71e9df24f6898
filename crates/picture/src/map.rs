//! The address space of a pool, to scale: regions side by side, in each its chunks by address.
//!
//! One scale for all regions, so that a chunk is as wide as it is large wherever it lies. Chunks that would be narrower
//! than a pixel are drawn together, as high as they are full; a picture has a few thousand elements at most, however
//! many chunks there are.

use crate::words::{exact, fitting, size, width};
use crate::xml::{Writer, number};
use crate::{Drawing, Paper, WIDTH, colour};
use std::collections::BTreeMap;

/// The regions of a device's pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// Above the picture; empty for none.
    pub title: String,
    /// In the order in which they are drawn.
    pub regions: Vec<Region>,
}

/// A range of addresses held from the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// What it is called: `region 2`.
    pub name: String,
    /// By address. Where one does not begin at the end of the one before, there are addresses without memory.
    pub chunks: Vec<Chunk>,
}

impl Region {
    /// Its memory, in bytes.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes).sum()
    }
}

/// A piece of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where it begins.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// What its owner asked for, in bytes; the rest is slack. 0 where it is free.
    pub requested: u64,
    /// Used, free or pending.
    pub state: ChunkState,
    /// Who holds it; empty where nobody does.
    pub owner: String,
    /// What hovering tells beside the figures: `made in cell 3, line 1`.
    pub note: String,
}

/// What a chunk is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkState {
    /// Handed out.
    Used,
    /// Ready to be handed out.
    Free,
    /// Freed and not yet ready.
    Pending,
}

impl Chunk {
    /// Bytes of a used chunk beyond what was asked for.
    pub fn slack(&self) -> u64 {
        match self.state {
            ChunkState::Used => self.bytes.saturating_sub(self.requested),
            _ => 0,
        }
    }

    fn used(&self) -> u64 {
        self.bytes.min(self.requested) * u64::from(self.state == ChunkState::Used)
    }
}

const BAR: f64 = 26.0;
const ROW: f64 = 50.0;
const GAP: f64 = 6.0;
/// The narrowest bar of a region, and the break for addresses without memory.
const NARROWEST: f64 = 3.0;
const HOLE: f64 = 4.0;
/// Elements that a picture may have, about.
const MOST_SHAPES: f64 = 2000.0;
/// Rows of regions that are still seen at a glance; with more the scale goes down.
const GOOD_ROWS: usize = 8;
/// Rows of regions; more are told in words.
const MOST_ROWS: usize = 24;
const MOST_IN_LEGEND: usize = 12;

impl Drawing for Map {
    fn height(&self) -> f64 {
        Shape::of(self).height
    }

    fn draw(&self, svg: &mut Writer) {
        let shape = Shape::of(self);
        if !self.title.is_empty() {
            text(svg, 0.0, 13.0, &self.title, true);
        }
        for place in &shape.layout.places {
            self.draw_region(place, &shape.layout, shape.top, svg);
        }
        if shape.layout.hidden > 0 {
            let line = format!("{} more regions are not drawn", shape.layout.hidden);
            text(svg, 0.0, shape.legend_top - 6.0, &line, false);
        }
        for ((name, colour, opacity), (x, row)) in shape.legend.iter().zip(&shape.legend_places) {
            let y = shape.legend_top + *row as f64 * LEGEND_ROW;
            swatch(svg, *x, y, colour, *opacity);
            text(svg, x + 15.0, y + 10.0, name, false);
        }
    }

    fn summary(&self) -> String {
        let chunks = || self.regions.iter().flat_map(|region| &region.chunks);
        let used: u64 = chunks().map(Chunk::used).sum();
        let slack: u64 = chunks().map(Chunk::slack).sum();
        let pool: u64 = chunks().map(|chunk| chunk.bytes).sum();
        format!(
            "pool {} in {} region{}: {} used, {} slack, {} free",
            size(pool),
            self.regions.len(),
            if self.regions.len() == 1 { "" } else { "s" },
            size(used),
            size(slack),
            size(pool - used - slack)
        )
    }
}

impl Map {
    /// One `<svg>` element.
    pub fn svg(&self, paper: Paper) -> String {
        crate::sheet(&[self], paper)
    }

    fn draw_region(&self, place: &Place, layout: &Layout, top: f64, svg: &mut Writer) {
        let region = &self.regions[place.region];
        let y = top + place.row as f64 * ROW;
        let bytes = region.bytes();
        let labels = [format!("{} · {}", region.name, size(bytes)), size(bytes)];
        if let Some(label) = labels.iter().find(|label| width(label) <= place.width) {
            text(svg, place.x, y + 11.0, label, false);
        }
        let bar = y + 15.0;
        let pieces = pieces(region, place.width, layout.thinnest);
        for piece in &pieces {
            draw_piece(region, piece, place.x, bar, svg);
        }
        let free: u64 = region.chunks.iter().map(|c| c.bytes - c.used() - c.slack()).sum();
        let base = region.chunks.first().map_or(0, |chunk| chunk.address);
        svg.open(
            "rect",
            &[
                ("x", number(place.x)),
                ("y", number(bar)),
                ("width", number(place.width)),
                ("height", number(BAR)),
                ("fill", "none".into()),
                ("stroke", "currentColor".into()),
                ("stroke-opacity", "0.55".into()),
                ("pointer-events", "stroke".into()),
            ],
        );
        let words = format!(
            "{}\n{}\nat {base:#x}, {} free, {} chunks",
            region.name,
            exact(bytes),
            size(free),
            region.chunks.len()
        );
        svg.text("title", &[], &words);
        svg.close();
    }

    /// Marks, then owners by bytes, largest first: name, colour, opacity.
    fn legend(&self) -> Vec<Entry> {
        let mut owners: BTreeMap<&str, u64> = BTreeMap::new();
        let chunks = || self.regions.iter().flat_map(|region| &region.chunks);
        for chunk in chunks().filter(|chunk| chunk.state == ChunkState::Used) {
            *owners.entry(&chunk.owner).or_default() += chunk.bytes;
        }
        let mut owners: Vec<(&str, u64)> = owners.into_iter().collect();
        owners.sort_by_key(|(name, bytes)| (std::cmp::Reverse(*bytes), *name));
        let marks = [("used", 1.0), ("slack", SLACK), ("free", FREE)];
        let mut legend: Vec<Entry> = marks
            .into_iter()
            .map(|(name, opacity)| (name.to_string(), "currentColor".to_string(), opacity))
            .collect();
        if chunks().any(|chunk| chunk.state == ChunkState::Pending) {
            legend.push(("freed, not yet ready".into(), colour::MIXED.into(), PENDING));
        }
        for (owner, bytes) in owners.iter().take(MOST_IN_LEGEND) {
            let name = fitting(owner, 240.0);
            legend.push((format!("{name} {}", size(*bytes)), colour::of(owner), 1.0));
        }
        if owners.len() > MOST_IN_LEGEND {
            let rest = &owners[MOST_IN_LEGEND..];
            let bytes: u64 = rest.iter().map(|(_, bytes)| bytes).sum();
            let name = format!("{} more owners {}", rest.len(), size(bytes));
            legend.push((name, colour::MIXED.into(), 1.0));
        }
        legend
    }
}

/// Where everything stands, from the top down.
struct Shape {
    layout: Layout,
    top: f64,
    legend: Vec<Entry>,
    legend_places: Vec<(f64, usize)>,
    legend_top: f64,
    height: f64,
}

impl Shape {
    fn of(map: &Map) -> Shape {
        let layout = Layout::of(map);
        let legend = map.legend();
        let top = if map.title.is_empty() { 4.0 } else { 22.0 };
        let told = if layout.hidden > 0 { 18.0 } else { 0.0 };
        let legend_top = top + layout.rows as f64 * ROW + told;
        let (legend_places, rows) = places(&legend);
        let height = legend_top + rows as f64 * LEGEND_ROW;
        Shape { layout, top, legend, legend_places, legend_top, height }
    }
}

/// An entry of the legend: name, colour, opacity.
type Entry = (String, String, f64);

const LEGEND_ROW: f64 = 17.0;
const SLACK: f64 = 0.4;
const PENDING: f64 = 0.5;
const FREE: f64 = 0.08;

struct Place {
    region: usize,
    row: usize,
    x: f64,
    width: f64,
}

/// Where the regions stand: one after another, in as many rows as they need.
struct Layout {
    places: Vec<Place>,
    rows: usize,
    hidden: usize,
    /// What a piece measures at least.
    thinnest: f64,
}

impl Layout {
    fn of(map: &Map) -> Layout {
        let largest = map.regions.iter().map(Region::bytes).max().unwrap_or(0).max(1);
        let total: u64 = map.regions.iter().map(Region::bytes).sum();
        let gaps = GAP * map.regions.len().saturating_sub(1) as f64;
        // What fits into one row takes the whole of it; else the largest region does, or a part of it.
        let one_row = total > 0 && total as f64 <= 1.5 * largest as f64 && gaps < WIDTH / 4.0;
        if one_row {
            return Layout::at((WIDTH - gaps) / total as f64, map);
        }
        let scale = |part: f64| WIDTH / largest as f64 / part;
        let parts = [1.0, 2.0, 4.0, 8.0, 16.0].map(scale);
        let fits = |scale: &f64| Layout::at(*scale, map).rows <= GOOD_ROWS;
        let scale = parts.into_iter().find(fits).unwrap_or(parts[4]);
        Layout::at(scale, map)
    }

    fn at(scale: f64, map: &Map) -> Layout {
        let mut layout = Layout { places: Vec::new(), rows: 0, hidden: 0, thinnest: 1.0 };
        let (mut row, mut x) = (0, 0.0);
        for (region, held) in map.regions.iter().enumerate() {
            let holes = breaks(held) as f64 * HOLE;
            let width = (held.bytes() as f64 * scale + holes).clamp(NARROWEST, WIDTH);
            if x > 0.0 && x + width > WIDTH + 0.01 {
                (row, x) = (row + 1, 0.0);
            }
            if row >= MOST_ROWS {
                layout.hidden = map.regions.len() - region;
                break;
            }
            layout.places.push(Place { region, row, x, width });
            x += width + GAP.min(width);
        }
        layout.rows = layout.places.last().map_or(0, |place| place.row + 1);
        let pixels: f64 = layout.places.iter().map(|place| place.width).sum();
        layout.thinnest = (pixels / MOST_SHAPES).max(1.0);
        layout
    }
}

fn breaks(region: &Region) -> usize {
    let joined = |pair: &&[Chunk]| pair[0].address.saturating_add(pair[0].bytes) != pair[1].address;
    region.chunks.windows(2).filter(joined).count()
}

/// Some chunks in a row, drawn as one.
struct Piece {
    first: usize,
    count: usize,
    x: f64,
    width: f64,
    /// Addresses without memory before the chunk at `first`, and no chunk.
    hole: u64,
}

/// What a region is drawn as. Runs of chunks too narrow to be seen are one piece.
fn pieces(region: &Region, width: f64, thinnest: f64) -> Vec<Piece> {
    let holes = (breaks(region) as f64 * HOLE).min(width / 2.0);
    let hole_width = holes / breaks(region).max(1) as f64;
    let scale = (width - holes) / region.bytes().max(1) as f64;
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut x, mut end) = (0.0, None);
    for (first, chunk) in region.chunks.iter().enumerate() {
        let hole = end.map_or(0, |end| chunk.address.saturating_sub(end));
        if hole > 0 {
            pieces.push(Piece { first, count: 0, x, width: hole_width, hole });
            x += hole_width;
        }
        let own = chunk.bytes as f64 * scale;
        match pieces.last_mut() {
            Some(run) if run.count > 0 && own < thinnest && run.width < thinnest => {
                run.count += 1;
                run.width += own;
            }
            _ => pieces.push(Piece { first, count: 1, x, width: own, hole: 0 }),
        }
        x += own;
        end = Some(chunk.address.saturating_add(chunk.bytes));
    }
    pieces
}

fn draw_piece(region: &Region, piece: &Piece, left: f64, y: f64, svg: &mut Writer) {
    let chunks = &region.chunks[piece.first..piece.first + piece.count];
    svg.open("g", &[]);
    let words = match chunks {
        [] => format!("{} of addresses without memory", exact(piece.hole)),
        [chunk] => {
            draw_chunk(chunk, left + piece.x, piece.width, y, svg);
            describe(chunk, &region.name)
        }
        many => {
            draw_run(many, left + piece.x, piece.width, y, svg);
            describe_run(many, &region.name)
        }
    };
    svg.text("title", &[], &words);
    svg.close();
}

fn draw_chunk(chunk: &Chunk, x: f64, width: f64, y: f64, svg: &mut Writer) {
    match chunk.state {
        ChunkState::Free => rect(svg, [x, y, width, BAR], "currentColor", FREE),
        ChunkState::Pending => rect(svg, [x, y, width, BAR], colour::MIXED, PENDING),
        ChunkState::Used => {
            let colour = colour::of(&chunk.owner);
            let used = width * chunk.used() as f64 / chunk.bytes.max(1) as f64;
            // A hair of daylight between neighbours, where there is room for it.
            let hair = if width > 6.0 { 1.0 } else { 0.0 };
            rect(svg, [x, y, used - hair, BAR], &colour, 1.0);
            if chunk.slack() > 0 {
                rect(svg, [x + used, y, width - used - hair, BAR], &colour, SLACK);
            }
        }
    }
}

/// As high as its chunks are full, in the colour of who holds most of it.
fn draw_run(chunks: &[Chunk], x: f64, width: f64, y: f64, svg: &mut Writer) {
    let total = chunks.iter().map(|chunk| chunk.bytes).sum::<u64>().max(1) as f64;
    let used = chunks.iter().map(Chunk::used).sum::<u64>() as f64 / total * BAR;
    let slack = chunks.iter().map(Chunk::slack).sum::<u64>() as f64 / total * BAR;
    let colour = by_owner(chunks).first().map_or("currentColor".into(), |(o, _)| colour::of(o));
    let width = width.max(0.5);
    rect(svg, [x, y, width, BAR - used - slack], "currentColor", FREE);
    rect(svg, [x, y + BAR - used - slack, width, slack], &colour, SLACK);
    rect(svg, [x, y + BAR - used, width, used], &colour, 1.0);
}

fn by_owner(chunks: &[Chunk]) -> Vec<(&str, u64)> {
    let mut owners: BTreeMap<&str, u64> = BTreeMap::new();
    for chunk in chunks.iter().filter(|chunk| chunk.state == ChunkState::Used) {
        *owners.entry(&chunk.owner).or_default() += chunk.bytes;
    }
    let mut owners: Vec<(&str, u64)> = owners.into_iter().collect();
    owners.sort_by_key(|(name, bytes)| (std::cmp::Reverse(*bytes), *name));
    owners
}

fn describe(chunk: &Chunk, region: &str) -> String {
    let head = match chunk.state {
        ChunkState::Free => "free".to_string(),
        ChunkState::Pending => "freed, not yet ready".to_string(),
        ChunkState::Used => chunk.owner.clone(),
    };
    let mut words = format!("{head}\n{}", exact(chunk.bytes));
    if chunk.slack() > 0 {
        words.push_str(&format!(
            "\nasked {}, slack {}",
            exact(chunk.requested),
            exact(chunk.slack())
        ));
    }
    words.push_str(&format!("\nat {:#x}, {region}", chunk.address));
    if !chunk.note.is_empty() {
        words.push_str(&format!("\n{}", chunk.note));
    }
    words
}

fn describe_run(chunks: &[Chunk], region: &str) -> String {
    let sum = |of: fn(&Chunk) -> u64| chunks.iter().map(of).sum::<u64>();
    let bytes = sum(|chunk| chunk.bytes);
    let (used, slack) = (sum(Chunk::used), sum(Chunk::slack));
    let mut words = format!(
        "{} chunks, {}\nused {}, slack {}, free {}\nfrom {:#x}, {region}",
        chunks.len(),
        exact(bytes),
        size(used),
        size(slack),
        size(bytes - used - slack),
        chunks[0].address
    );
    let owners = by_owner(chunks);
    for (owner, bytes) in owners.iter().take(4) {
        words.push_str(&format!("\n{owner} {}", size(*bytes)));
    }
    if owners.len() > 4 {
        words.push_str(&format!("\n{} more owners", owners.len() - 4));
    }
    words
}

pub(crate) fn text(svg: &mut Writer, x: f64, y: f64, words: &str, strong: bool) {
    let mut attributes =
        vec![("x", number(x)), ("y", number(y)), ("fill", "currentColor".to_string())];
    if strong {
        attributes.push(("font-weight", "bold".into()));
    }
    svg.text("text", &attributes, words);
}

/// `place`: left, top, width, height. What has no extent is not drawn.
pub(crate) fn rect(svg: &mut Writer, place: [f64; 4], fill: &str, opacity: f64) {
    let [x, y, width, height] = place;
    if width < 0.005 || height < 0.005 {
        return;
    }
    let mut attributes = vec![
        ("x", number(x)),
        ("y", number(y)),
        ("width", number(width)),
        ("height", number(height)),
        ("fill", fill.to_string()),
    ];
    if opacity < 1.0 {
        attributes.push(("fill-opacity", number(opacity)));
    }
    svg.leaf("rect", &attributes);
}

pub(crate) fn swatch(svg: &mut Writer, x: f64, y: f64, colour: &str, opacity: f64) {
    rect(svg, [x, y + 1.0, 11.0, 11.0], colour, opacity);
    if opacity < SLACK {
        svg.leaf(
            "rect",
            &[
                ("x", number(x)),
                ("y", number(y + 1.0)),
                ("width", "11".into()),
                ("height", "11".into()),
                ("fill", "none".into()),
                ("stroke", "currentColor".into()),
                ("stroke-opacity", "0.55".into()),
            ],
        );
    }
}

/// Where the entries of a legend stand: x and row of each, and how many rows that makes.
fn places(legend: &[Entry]) -> (Vec<(f64, usize)>, usize) {
    let (mut x, mut row) = (0.0, 0);
    let mut all = Vec::with_capacity(legend.len());
    for (name, _, _) in legend {
        let wide = width(name) + 30.0;
        if x > 0.0 && x + wide > WIDTH {
            (x, row) = (0.0, row + 1);
        }
        all.push((x, row));
        x += wide;
    }
    (all, row + 1)
}
