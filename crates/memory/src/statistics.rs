//! Statistics under the names that PyTorch gives them (`torch.cuda.memory_stats`), and its table of them.
//!
//! The caching allocator counts them as PyTorch's does, pool by pool ([`crate::Caching`]). For every other stack they
//! are read off the ledger ([`TorchStats::of_ledger`]); what has no meaning there (pools, blocks that a split keeps from
//! going back) is left out instead of being zero.

use crate::ledger::{EventKind, Ledger};

/// One figure over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Now.
    pub current: u64,
    /// The most at once since the peaks were reset.
    pub peak: u64,
    /// All that was added.
    pub allocated: u64,
    /// All that was taken away.
    pub freed: u64,
}

impl Stat {
    /// Adds.
    pub fn increase(&mut self, by: u64) {
        self.current += by;
        self.allocated += by;
        self.peak = self.peak.max(self.current);
    }

    /// Takes away.
    pub fn decrease(&mut self, by: u64) {
        self.current -= by;
        self.freed += by;
    }

    fn reset_peak(&mut self) {
        self.peak = self.current;
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Metric {
    /// Bytes of blocks that are out.
    AllocatedBytes,
    /// Bytes of blocks that are out or still used by a stream.
    ActiveBytes,
    /// What was asked for, before rounding.
    RequestedBytes,
    /// Bytes held from the driver.
    ReservedBytes,
    /// Bytes of free blocks in segments that others hold on to.
    InactiveSplitBytes,
    /// Blocks that are out.
    Allocation,
    /// Blocks that are out or still used by a stream.
    Active,
    /// Segments held from the driver.
    Segment,
    /// Free blocks in segments that others hold on to.
    InactiveSplit,
}

/// A metric with its key in `memory_stats`, its row in `memory_summary`, and whether it is bytes.
const METRICS: [(Metric, &str, &str, bool); 9] = [
    (Metric::AllocatedBytes, "allocated_bytes", "Allocated memory", true),
    (Metric::ActiveBytes, "active_bytes", "Active memory", true),
    (Metric::RequestedBytes, "requested_bytes", "Requested memory", true),
    (Metric::ReservedBytes, "reserved_bytes", "GPU reserved memory", true),
    (Metric::InactiveSplitBytes, "inactive_split_bytes", "Non-releasable memory", true),
    (Metric::Allocation, "allocation", "Allocations", false),
    (Metric::Active, "active", "Active allocs", false),
    (Metric::Segment, "segment", "GPU reserved segments", false),
    (Metric::InactiveSplit, "inactive_split", "Non-releasable allocs", false),
];

/// A metric as a whole and, where the allocator has them, by pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// All pools together.
    pub all: Stat,
    /// The large pool, the small one.
    pub pools: Option<[Stat; 2]>,
}

/// One of the two pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum PoolKind {
    /// Blocks above 1 MiB.
    Large,
    /// Blocks of at most 1 MiB.
    Small,
}

const POOLS: [(PoolKind, &str, &str); 2] = [
    (PoolKind::Large, "large_pool", "      from large pool"),
    (PoolKind::Small, "small_pool", "      from small pool"),
];

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TorchStats {
    metrics: [Option<Counted>; 9],
    /// Blocks of at least the maximum split size that are out.
    pub oversize_allocations: Option<Stat>,
    /// Segments of at least the maximum split size.
    pub oversize_segments: Option<Stat>,
    /// The maximum split size; `None` for unlimited, which PyTorch writes as -1.
    pub max_split_size: Option<u64>,
    /// Requests that were tried again after everything cached had gone back.
    pub num_alloc_retries: u64,
    /// Requests that failed for good.
    pub num_ooms: u64,
    /// How often everything cached went back, for which the device is waited for.
    pub num_sync_all_streams: u64,
    /// Calls that brought memory from the driver.
    pub num_device_alloc: u64,
    /// Calls that gave memory back to the driver.
    pub num_device_free: u64,
}

impl TorchStats {
    /// Everything at zero, with pools.
    pub fn by_pool(max_split_size: Option<u64>) -> TorchStats {
        let zero = Counted { all: Stat::default(), pools: Some(Default::default()) };
        TorchStats {
            metrics: [Some(zero); 9],
            oversize_allocations: Some(Stat::default()),
            oversize_segments: Some(Stat::default()),
            max_split_size,
            ..TorchStats::default()
        }
    }

    /// What a ledger tells of any allocator.
    pub fn of_ledger(ledger: &Ledger) -> TorchStats {
        let (totals, peaks) = (ledger.totals(), ledger.peak_figures());
        let count = |kind| totals.of(kind);
        let came = count(EventKind::RegionGrow) + count(EventKind::Map);
        let went = count(EventKind::RegionRelease) + count(EventKind::Unmap);
        let whole = |current, peak, allocated, freed| {
            Some(Counted { all: Stat { current, peak, allocated, freed }, pools: None })
        };
        let bytes = whole(
            totals.live_granted,
            peaks.granted,
            totals.allocated_granted,
            totals.freed_granted,
        );
        let requested = whole(
            totals.live_requested,
            peaks.requested,
            totals.allocated_requested,
            totals.freed_requested,
        );
        let (allocs, frees) = (count(EventKind::Alloc), count(EventKind::Free));
        let blocks = whole(allocs - frees, peaks.blocks, allocs, frees);
        let mut stats = TorchStats {
            num_ooms: count(EventKind::Oom),
            num_device_alloc: came,
            num_device_free: went,
            ..TorchStats::default()
        };
        let reserved = whole(totals.pool, peaks.pool, totals.pool_grown, totals.pool_released);
        for (metric, counted) in [
            (Metric::AllocatedBytes, bytes),
            (Metric::ActiveBytes, bytes),
            (Metric::RequestedBytes, requested),
            (Metric::ReservedBytes, reserved),
            (Metric::Allocation, blocks),
            (Metric::Active, blocks),
            (Metric::Segment, whole(came - went, peaks.regions, came, went)),
        ] {
            stats.metrics[metric as usize] = counted;
        }
        stats
    }

    /// A metric; `None` where the allocator does not know it.
    pub fn of(&self, metric: Metric) -> Option<&Counted> {
        self.metrics[metric as usize].as_ref()
    }

    fn change(&mut self, metric: Metric, pool: PoolKind, change: impl Fn(&mut Stat)) {
        let Some(counted) = &mut self.metrics[metric as usize] else { return };
        change(&mut counted.all);
        if let Some(pools) = &mut counted.pools {
            change(&mut pools[pool as usize]);
        }
    }

    pub(crate) fn increase(&mut self, metric: Metric, pool: PoolKind, by: u64) {
        self.change(metric, pool, |stat| stat.increase(by));
    }

    pub(crate) fn decrease(&mut self, metric: Metric, pool: PoolKind, by: u64) {
        self.change(metric, pool, |stat| stat.decrease(by));
    }

    /// Adds a signed change.
    pub(crate) fn add(&mut self, metric: Metric, pool: PoolKind, by: i64) {
        match by {
            0 => {}
            1.. => self.increase(metric, pool, by as u64),
            _ => self.decrease(metric, pool, by.unsigned_abs()),
        }
    }

    /// Peaks begin again at the present values.
    pub fn reset_peak(&mut self) {
        for counted in self.metrics.iter_mut().flatten() {
            counted.all.reset_peak();
            counted.pools.iter_mut().flatten().for_each(Stat::reset_peak);
        }
        let oversize = [&mut self.oversize_allocations, &mut self.oversize_segments];
        oversize.into_iter().flatten().for_each(Stat::reset_peak);
    }

    /// Keys and values as `memory_stats()` has them, in its order.
    pub fn entries(&self) -> Vec<(String, i64)> {
        let mut all = Vec::new();
        let mut add = |prefix: &str, stat: &Stat| {
            let parts = [
                ("allocated", stat.allocated),
                ("current", stat.current),
                ("freed", stat.freed),
                ("peak", stat.peak),
            ];
            for (part, value) in parts {
                all.push((format!("{prefix}.{part}"), value as i64));
            }
        };
        for (metric, key, ..) in METRICS {
            let Some(counted) = self.of(metric) else { continue };
            add(&format!("{key}.all"), &counted.all);
            for (stat, (_, pool, _)) in counted.pools.iter().flatten().zip(POOLS) {
                add(&format!("{key}.{pool}"), stat);
            }
        }
        let oversize = [
            ("oversize_allocations", &self.oversize_allocations),
            ("oversize_segments", &self.oversize_segments),
        ];
        for (key, stat) in oversize {
            stat.iter().for_each(|stat| add(key, stat));
        }
        if self.oversize_allocations.is_some() {
            let split = self.max_split_size.map_or(-1, |bytes| bytes as i64);
            all.push(("max_split_size".into(), split));
            all.push(("num_sync_all_streams".into(), self.num_sync_all_streams as i64));
        }
        for (key, value) in [
            ("num_alloc_retries", self.num_alloc_retries),
            ("num_device_alloc", self.num_device_alloc),
            ("num_device_free", self.num_device_free),
            ("num_ooms", self.num_ooms),
        ] {
            all.push((key.into(), value as i64));
        }
        all.sort();
        all
    }

    /// The table that `memory_summary()` prints, under a title of ours. `abbreviated`: without the pools.
    pub fn summary(&self, title: &str, abbreviated: bool) -> String {
        let mut lines = vec![rule('='), centred(title), rule('-'), self.failures(), rule('=')];
        let heads = ["Cur Usage ", "Peak Usage", "Tot Alloc ", "Tot Freed "];
        lines.push(row("       Metric", heads.map(str::to_string)));
        for (metric, _, name, is_bytes) in METRICS {
            let Some(counted) = self.of(metric) else { continue };
            lines.push(rule('-'));
            lines.push(stat_row(name, &counted.all, &counted.all, is_bytes));
            if abbreviated {
                continue;
            }
            for (stat, (_, _, name)) in counted.pools.iter().flatten().zip(POOLS) {
                lines.push(stat_row(name, stat, &counted.all, is_bytes));
            }
        }
        let oversize = [
            ("Oversize allocations", &self.oversize_allocations),
            ("Oversize GPU segments", &self.oversize_segments),
        ];
        for (name, stat) in oversize {
            let Some(stat) = stat else { continue };
            lines.push(rule('-'));
            lines.push(stat_row(name, stat, stat, false));
        }
        lines.push(rule('='));
        lines.iter().map(|line| format!("|{line}|\n")).collect()
    }

    fn failures(&self) -> String {
        let ooms = format!("OOMs: {}", self.num_ooms);
        let retries = format!("driver retries: {}", self.num_alloc_retries);
        format!("{ooms:^36}|{retries:^38}")
    }
}

const WIDTH: usize = 75;

fn rule(of: char) -> String {
    of.to_string().repeat(WIDTH)
}

fn centred(title: &str) -> String {
    let title: String = title.chars().take(WIDTH - 2).collect();
    format!("{title:^WIDTH$}")
}

fn row(name: &str, cells: [String; 4]) -> String {
    format!(" {name:<21} | {} ", cells.join(" | "))
}

/// A row in the units that its metric as a whole asks for, figure by figure.
fn stat_row(name: &str, stat: &Stat, whole: &Stat, is_bytes: bool) -> String {
    let write = if is_bytes { bytes } else { count };
    row(
        name,
        [
            write(stat.current, whole.current),
            write(stat.peak, whole.peak),
            write(stat.allocated, whole.allocated),
            write(stat.freed, whole.freed),
        ],
    )
}

/// A size in the unit that leaves `whole` below 768 K of it; rounded down.
fn bytes(value: u64, whole: u64) -> String {
    scaled(value, whole, 1024, 768 * 1024, &["B  ", "KiB", "MiB", "GiB", "TiB", "PiB"], 6)
}

/// A count in the unit that leaves `whole` below 750 K of it; rounded down.
fn count(value: u64, whole: u64) -> String {
    scaled(value, whole, 1000, 750 * 1000, &["  ", "K ", "M "], 7)
}

fn scaled(value: u64, whole: u64, step: u64, most: u64, units: &[&str], width: usize) -> String {
    let (mut value, mut whole, mut unit) = (value, whole as f64, units[0]);
    for next in &units[1..] {
        if whole < most as f64 {
            break;
        }
        unit = next;
        value /= step;
        whole /= step as f64;
    }
    format!("{value:>width$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_whole() {
        assert_eq!(bytes(512, 512), "   512 B  ");
        assert_eq!(bytes(184_648 << 10, 184_648 << 10), "184648 KiB");
        assert_eq!(bytes(25_828 << 20, 25_828 << 20), " 25828 MiB");
        // A part is written in the unit of its whole.
        assert_eq!(bytes(72 << 10, 184_648 << 10), "    72 KiB");
        assert_eq!(bytes(1 << 20, 14_324 << 20), "     1 MiB");
        assert_eq!(bytes(786_431, 786_431), "786431 B  ");
        assert_eq!(bytes(786_432, 786_432), "   768 KiB");
        assert_eq!(count(4499, 4499), "   4499   ");
        assert_eq!(count(15_606_123, 15_606_123), "  15606 K ");
    }

    #[test]
    fn every_line_is_as_wide_as_in_pytorch() {
        let stats = TorchStats::by_pool(None);
        for text in [stats.summary("memory", false), stats.summary("memory", true)] {
            assert!(text.lines().all(|line| line.chars().count() == WIDTH + 2), "{text}");
        }
        let lines = stats.summary("memory", false).lines().count();
        assert_eq!(lines, 6 + 9 * 4 + 2 * 2 + 1);
    }
}
