//! The regions held now, as segments that their blocks tile.

use super::Snapshot;
use std::collections::HashMap;
use std::io;
use vramlab_memory::ledger::Live;
use vramlab_memory::{Chunk, ChunkState, MIB, ModeName, RegionFigures};

/// PyTorch's words for the states of a block that is not free.
const ALLOCATED: &str = "active_allocated";
const PENDING: &str = "active_pending_free";

/// A block as a segment lists it.
struct Tile<'l> {
    address: u64,
    bytes: u64,
    requested: u64,
    state: &'static str,
    live: Option<&'l Live>,
}

impl Snapshot<'_, '_> {
    pub(super) fn segments(&mut self) -> io::Result<usize> {
        let heap = self.recording.heap;
        let live = self.recording.ledger().live();
        let live: HashMap<u64, &Live> = live.iter().map(|live| (live.address, live)).collect();
        let mut chunks = heap.chunks();
        chunks.sort_unstable_by_key(|chunk| chunk.address);
        let mut regions = heap.regions();
        regions.sort_unstable_by_key(|region| region.base);
        self.pickle.text("segments")?;
        let mut items = self.pickle.list()?;
        for region in &regions {
            let end = region.base + region.bytes;
            let first = chunks.partition_point(|chunk| chunk.address < region.base);
            let last = chunks.partition_point(|chunk| chunk.address < end);
            self.pickle.item(&mut items)?;
            self.segment(region, &chunks[first..last], &live)?;
        }
        self.pickle.end_list(items)?;
        Ok(regions.len())
    }

    fn segment(
        &mut self,
        region: &RegionFigures,
        chunks: &[Chunk],
        live: &HashMap<u64, &Live>,
    ) -> io::Result<()> {
        let mode = self.recording.heap.mode();
        let tiles: Vec<Tile<'_>> = chunks
            .iter()
            .flat_map(|chunk| self.tiles(chunk, live.get(&chunk.address).copied()))
            .collect();
        let sum = |of: fn(&Tile<'_>) -> u64, states: &[&str]| -> u64 {
            tiles.iter().filter(|tile| states.contains(&tile.state)).map(of).sum()
        };
        let stream = tiles.iter().find_map(|tile| tile.live).map_or(0, |live| live.stream.0);
        let is_small = mode.mode() == ModeName::Caching && region.bytes == 2 * MIB;
        self.pickle.dict()?;
        self.pickle.entry_number("device", 0)?;
        self.pickle.entry_number("address", region.base)?;
        self.pickle.entry_number("total_size", region.bytes)?;
        self.pickle.entry_number("allocated_size", sum(|tile| tile.bytes, &[ALLOCATED]))?;
        self.pickle.entry_number("active_size", sum(|tile| tile.bytes, &[ALLOCATED, PENDING]))?;
        let requested = sum(|tile| tile.requested, &[ALLOCATED, PENDING]);
        self.pickle.entry_number("requested_size", requested)?;
        self.pickle.entry_number("stream", u64::from(stream))?;
        self.pickle.entry_text("segment_type", if is_small { "small" } else { "large" })?;
        self.pickle.text("segment_pool_id")?;
        self.pickle.pair_of_zeros()?;
        self.pickle.entry_truth("is_expandable", self.is_expandable())?;
        self.pickle.text("frames")?;
        let none = self.pickle.list()?;
        self.pickle.end_list(none)?;
        self.pickle.text("blocks")?;
        let mut items = self.pickle.list()?;
        for tile in &tiles {
            self.pickle.item(&mut items)?;
            self.block(tile)?;
        }
        self.pickle.end_list(items)?;
        self.pickle.end_dict()
    }

    /// The blocks that a chunk is. What streams still use may be several blocks of one chunk, since the pool joins
    /// them at once.
    fn tiles<'l>(&self, chunk: &Chunk, live: Option<&'l Live>) -> Vec<Tile<'l>> {
        let Chunk { address, bytes, .. } = *chunk;
        let inactive =
            |address, bytes| Tile { address, bytes, requested: 0, state: "inactive", live: None };
        match chunk.state {
            ChunkState::Used => {
                let requested = live.map_or(chunk.requested, |live| live.requested);
                vec![Tile { address, bytes, requested, state: ALLOCATED, live }]
            }
            ChunkState::Free => vec![inactive(address, bytes)],
            ChunkState::Pending => {
                let (mut tiles, mut at) = (Vec::new(), address);
                let end = address + bytes;
                for (&address, waiting) in self.waiting.range(address..end) {
                    if address > at {
                        tiles.push(inactive(at, address - at));
                    }
                    let (bytes, requested) = (waiting.granted, waiting.requested);
                    tiles.push(Tile { address, bytes, requested, state: PENDING, live: None });
                    at = address + bytes;
                }
                if at < end {
                    tiles.push(inactive(at, end - at));
                }
                tiles
            }
        }
    }

    fn block(&mut self, tile: &Tile<'_>) -> io::Result<()> {
        self.pickle.dict()?;
        self.pickle.entry_number("address", tile.address)?;
        self.pickle.entry_number("size", tile.bytes)?;
        self.pickle.entry_number("requested_size", tile.requested)?;
        self.pickle.entry_text("state", tile.state)?;
        self.pickle.text("frames")?;
        match tile.live {
            Some(live) => self.stack(live.owner, live.site)?,
            None => {
                let none = self.pickle.list()?;
                self.pickle.end_list(none)?;
            }
        }
        self.pickle.end_dict()
    }
}
