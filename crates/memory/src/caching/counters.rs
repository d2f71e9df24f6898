//! PyTorch's statistics, counted where its allocator counts them.
//!
//! Two of its habits are kept: expandable segments count neither as segments nor towards what a split keeps from going
//! back, and what is free beside a block that comes back is counted once, after it has joined.

use super::{Caching, LARGE_POOL, NONE, Piece, PieceState};
use crate::statistics::{Metric, PoolKind, Stat};

fn kind(pool: usize) -> PoolKind {
    if pool == LARGE_POOL { PoolKind::Large } else { PoolKind::Small }
}

impl Caching {
    fn kind_of(&self, slot: u32) -> PoolKind {
        kind(self.segment_of(slot).pool)
    }

    fn is_expandable(&self, slot: u32) -> bool {
        self.segment_of(slot).region.is_none()
    }

    /// Whether the block is a part of its segment; within an expandable one that is not asked.
    pub(super) fn is_split(&self, slot: u32) -> bool {
        let piece = self.piece(slot);
        (piece.prev != NONE || piece.next != NONE) && !self.is_expandable(slot)
    }

    fn is_oversize(&self, bytes: u64) -> bool {
        bytes >= self.options.max_split
    }

    /// A block was handed out.
    pub(super) fn count_out(&mut self, slot: u32) {
        let (pool, piece) = (self.kind_of(slot), *self.piece(slot));
        for (metric, by) in metrics(&piece) {
            self.torch.increase(metric, pool, by);
        }
        if self.is_oversize(piece.bytes) {
            self.torch.oversize_allocations.iter_mut().for_each(|stat| stat.increase(1));
        }
    }

    /// A free block was cut: `taken` bytes of it go out, `rest` stays.
    pub(super) fn count_cut(&mut self, rest: u32, taken: u64, was_split: bool) {
        if self.is_expandable(rest) {
            return;
        }
        let pool = self.kind_of(rest);
        if was_split {
            self.torch.decrease(Metric::InactiveSplitBytes, pool, taken);
        } else {
            let bytes = self.piece(rest).bytes;
            self.torch.increase(Metric::InactiveSplitBytes, pool, bytes);
            self.torch.increase(Metric::InactiveSplit, pool, 1);
        }
    }

    /// A free part of a segment goes out whole.
    pub(super) fn count_filled(&mut self, slot: u32) {
        let (pool, bytes) = (self.kind_of(slot), self.piece(slot).bytes);
        self.torch.decrease(Metric::InactiveSplitBytes, pool, bytes);
        self.torch.decrease(Metric::InactiveSplit, pool, 1);
    }

    /// How many free neighbours a block has, and their bytes.
    pub(super) fn free_beside(&self, slot: u32) -> (i64, i64) {
        let piece = self.piece(slot);
        let beside = [piece.prev, piece.next].into_iter().filter(|other| *other != NONE);
        let free = beside.map(|other| self.piece(other)).filter(|p| p.state == PieceState::Free);
        free.fold((0, 0), |(count, bytes), piece| (count + 1, bytes + piece.bytes as i64))
    }

    /// A block came back and is now `whole`, with the free neighbours that it `joined`.
    pub(super) fn count_back(&mut self, piece: &Piece, whole: u32, joined: (i64, i64)) {
        let pool = self.kind_of(whole);
        if !self.is_expandable(whole) {
            let split = self.is_split(whole);
            let (count, bytes) = (i64::from(split), self.piece(whole).bytes as i64);
            let bytes = if split { bytes } else { 0 };
            self.torch.add(Metric::InactiveSplit, pool, count - joined.0);
            self.torch.add(Metric::InactiveSplitBytes, pool, bytes - joined.1);
        }
        for (metric, by) in metrics(piece) {
            self.torch.decrease(metric, pool, by);
        }
        if self.is_oversize(piece.bytes) {
            self.torch.oversize_allocations.iter_mut().for_each(|stat| stat.decrease(1));
        }
    }

    /// A segment came from the driver.
    pub(super) fn count_segment(&mut self, pool: usize, bytes: u64) {
        self.torch.increase(Metric::Segment, kind(pool), 1);
        self.torch.increase(Metric::ReservedBytes, kind(pool), bytes);
        self.torch.num_device_alloc += 1;
        self.count_oversize_segment(bytes, |stat| stat.increase(1));
    }

    /// A segment went back to the driver.
    pub(super) fn count_segment_gone(&mut self, pool: usize, bytes: u64) {
        self.torch.decrease(Metric::Segment, kind(pool), 1);
        self.torch.decrease(Metric::ReservedBytes, kind(pool), bytes);
        self.torch.num_device_free += 1;
        self.count_oversize_segment(bytes, |stat| stat.decrease(1));
    }

    fn count_oversize_segment(&mut self, bytes: u64, change: impl Fn(&mut Stat)) {
        if self.is_oversize(bytes) {
            self.torch.oversize_segments.iter_mut().for_each(change);
        }
    }

    /// Memory was mapped behind addresses of an expandable segment.
    pub(super) fn count_mapped(&mut self, slot: u32, bytes: u64) {
        self.torch.increase(Metric::ReservedBytes, self.kind_of(slot), bytes);
        self.torch.num_device_alloc += 1;
    }

    /// Memory was taken from behind them.
    pub(super) fn count_unmapped(&mut self, slot: u32, bytes: u64) {
        self.torch.decrease(Metric::ReservedBytes, self.kind_of(slot), bytes);
        self.torch.num_device_free += 1;
    }

    /// The free parts of segments that were there from the beginning.
    pub(super) fn count_inactive(&mut self) {
        let free = self.pools.iter().flat_map(|pool| pool.free.iter().map(|key| key.3));
        let parts: Vec<u32> = free.filter(|slot| self.is_split(*slot)).collect();
        for slot in parts {
            let (pool, bytes) = (self.kind_of(slot), self.piece(slot).bytes);
            self.torch.increase(Metric::InactiveSplit, pool, 1);
            self.torch.increase(Metric::InactiveSplitBytes, pool, bytes);
        }
    }
}

/// What a block that is out counts for.
fn metrics(piece: &Piece) -> [(Metric, u64); 5] {
    [
        (Metric::Allocation, 1),
        (Metric::Active, 1),
        (Metric::AllocatedBytes, piece.bytes),
        (Metric::ActiveBytes, piece.bytes),
        (Metric::RequestedBytes, piece.requested),
    ]
}
