//! The address space now: as a picture, as strips of characters, as one line.

use crate::event::{Content, Table};
use crate::report::{mib, mib_short, size};
use crate::table::plain;
use vramlab_picture::{Chunk, ChunkState, Map, Region, strip};
use vramlab_runtime::{ChunkReport, Context};

/// The pool as a map, its regions in the order of their making.
pub fn map(context: &Context) -> Map {
    let now = context.report();
    let title = format!(
        "pool {} of {} MiB · in use {} · {}",
        mib_short(now.figures.pool_bytes),
        mib_short(now.figures.bytes_limit),
        mib(now.figures.bytes_in_use),
        now.mode
    );
    Map { title, regions: regions(context) }
}

fn regions(context: &Context) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    for chunk in context.chunks() {
        let index = chunk.region.unwrap_or(0);
        while regions.len() <= index {
            let name = format!("region {}", regions.len() + 1);
            regions.push(Region { name, chunks: Vec::new() });
        }
        regions[index].chunks.push(drawn(chunk));
    }
    regions
}

fn drawn(chunk: ChunkReport) -> Chunk {
    let note = match chunk.cell {
        0 => String::new(),
        cell => format!("made in cell {cell}, line {}", chunk.line.max(1)),
    };
    Chunk {
        address: chunk.address,
        bytes: chunk.bytes,
        requested: chunk.requested,
        state: match chunk.state {
            vramlab_memory::ChunkState::Used => ChunkState::Used,
            vramlab_memory::ChunkState::Free => ChunkState::Free,
            vramlab_memory::ChunkState::Pending => ChunkState::Pending,
        },
        owner: chunk.owner.unwrap_or_default(),
        note,
    }
}

/// The pool as `width` characters, its regions parted by `│`.
pub fn pool_strip(context: &Context, width: usize) -> String {
    let regions = regions(context);
    let bytes: Vec<u64> = regions.iter().map(Region::bytes).collect();
    let shares = strip::shares(&bytes, width);
    let strips =
        regions.iter().zip(shares).map(|(region, share)| strip::strip(&region.chunks, share));
    strips.collect::<Vec<_>>().join("│")
}

/// `%mem map`.
pub fn map_content(context: &Context, columns: usize) -> Content {
    let map = map(context);
    let text = text(&map, columns);
    super::content(&[&map], text)
}

/// A strip for each region, then the largest chunks with their owners.
fn text(map: &Map, columns: usize) -> String {
    let mut text = format!(" {}\n", map.title);
    if map.regions.is_empty() {
        return format!("{text} the pool is empty: nothing was taken from the device yet");
    }
    let mut table = Table::new(&["region", ">address", ">MiB", ">used", ">slack", strip::LEGEND]);
    let width = columns.saturating_sub(LABELS).clamp(LEAST_STRIP, MOST_STRIP);
    for region in map.regions.iter().take(MOST_REGIONS) {
        let slack: u64 = region.chunks.iter().map(Chunk::slack).sum();
        let held = region.chunks.iter().filter(|chunk| chunk.state == ChunkState::Used);
        let used = held.map(|chunk| chunk.bytes).sum::<u64>() - slack;
        table.row([
            region.name.trim_start_matches("region ").to_string(),
            format!("{:#x}", region.chunks.first().map_or(0, |chunk| chunk.address)),
            mib_short(region.bytes()),
            mib(used),
            mib(slack),
            strip::strip(&region.chunks, width),
        ]);
    }
    let more = map.regions.iter().skip(MOST_REGIONS);
    if map.regions.len() > MOST_REGIONS {
        let bytes: u64 = more.map(Region::bytes).sum();
        let count = map.regions.len() - MOST_REGIONS;
        table.note(format!("{count} more regions, {}", size(bytes)));
    }
    let pending = |chunk: &Chunk| chunk.state == ChunkState::Pending;
    if map.regions.iter().flat_map(|region| &region.chunks).any(pending) {
        table.note(strip::PENDING);
    }
    text.push_str(&plain(&table));
    text.push('\n');
    text.push_str(&plain(&chunks(map)));
    text
}

/// What stands beside the strip of a region.
const LABELS: usize = 48;
const LEAST_STRIP: usize = 24;
const MOST_STRIP: usize = 96;
const MOST_REGIONS: usize = 32;
const MOST_CHUNKS: usize = 40;

/// By address: where there are many, the largest ones.
fn chunks(map: &Map) -> Table {
    let mut all: Vec<(usize, &Chunk)> = Vec::new();
    for (index, region) in map.regions.iter().enumerate() {
        all.extend(region.chunks.iter().map(|chunk| (index, chunk)));
    }
    let count = all.len();
    all.sort_by_key(|(_, chunk)| (std::cmp::Reverse(chunk.bytes), chunk.address));
    all.truncate(MOST_CHUNKS);
    all.sort_by_key(|(index, chunk)| (*index, chunk.address));
    let mut table = Table::new(&[">address", ">MiB", ">slack", ">region", "owner"]);
    for (index, chunk) in all {
        let owner = match chunk.state {
            ChunkState::Used => chunk.owner.clone(),
            ChunkState::Free => "free".into(),
            ChunkState::Pending => "freed, not yet ready".into(),
        };
        table.row([
            format!("{:#x}", chunk.address),
            mib(chunk.bytes),
            mib(chunk.slack()),
            (index + 1).to_string(),
            owner,
        ]);
    }
    if count > MOST_CHUNKS {
        table.note(format!("the {MOST_CHUNKS} largest of {count} chunks"));
    }
    table
}
