//! Static packing: buffers with known lives into one block.

use super::search::{Instance, Outcome};

/// A buffer alive in the half-open interval [lower, upper).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub lower: u64,
    pub upper: u64,
    pub size: u64,
}

/// Offsets, and the height they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    pub offsets: Vec<u64>,
    /// End of the highest buffer.
    pub height: u64,
    /// The most bytes alive at one time: no packing is lower.
    pub lower_bound: u64,
    /// Search steps that were taken.
    pub steps: u64,
}

/// Places every buffer at a multiple of `alignment` so that no two that are alive together overlap.
/// Starts from best fit by decreasing size; when that is above the lower bound it searches on for at
/// most `budget` steps. The same input gives the same packing.
pub fn pack(buffers: &[Buffer], alignment: u64, budget: u64) -> Packing {
    let lower_bound = lower_bound(buffers);
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    order.sort_by_key(|&b| (std::cmp::Reverse(buffers[b].size), buffers[b].lower));
    let offsets = best_fit(buffers, &order, alignment);
    let mut packing = Packing { height: height(buffers, &offsets), offsets, lower_bound, steps: 0 };
    if packing.height > lower_bound && buffers.len() <= SEARCHED {
        search_on(&mut packing, buffers, alignment, budget);
    }
    packing
}

/// More buffers than this are not searched: one step looks at all that are alive together.
const SEARCHED: usize = 4096;

/// Looks for lower packings, in sweeps of growing effort: each tries the lower bound and then halves
/// the distance between what fits and what was not found.
fn search_on(packing: &mut Packing, buffers: &[Buffer], alignment: u64, budget: u64) {
    let rounded: Vec<Buffer> =
        buffers.iter().map(|b| Buffer { size: b.size.next_multiple_of(alignment), ..*b }).collect();
    let instance = Instance::new(&rounded);
    // What fails at the bound is not what fails above it.
    let mut lessons = [instance.lessons(), instance.lessons()];
    let mut impossible = lower_bound(&rounded);
    let mut effort = (budget / 16).clamp(1, FIRST_EFFORT);
    while packing.steps < budget {
        let mut missed = impossible;
        let mut target = impossible;
        while target < packing.height && packing.steps < budget {
            let above = target > impossible;
            let share = if above { effort } else { effort * BOUND_SHARE };
            let allowed = share.min(budget - packing.steps);
            let mut left = allowed;
            let outcome = instance.solve(target, &mut left, &mut lessons[above as usize]);
            packing.steps += allowed - left;
            match outcome {
                Outcome::Found(offsets) => {
                    packing.height = height(buffers, &offsets).min(packing.height);
                    packing.offsets = offsets;
                }
                Outcome::Impossible => (missed, impossible) = (target, target),
                Outcome::OutOfSteps => missed = target,
            }
            let gap = packing.height.saturating_sub(missed);
            if gap <= alignment.max(packing.height / FINE) {
                break;
            }
            target = missed + (gap / 2).next_multiple_of(alignment);
        }
        if packing.height <= impossible + alignment.max(packing.height / FINE) {
            return;
        }
        effort = effort.saturating_mul(2);
    }
}

/// Steps for one target in the first sweep, at most.
const FIRST_EFFORT: u64 = 5_000;
/// The bound itself gets as much as all the targets above it.
const BOUND_SHARE: u64 = 6;
/// Closer to the bound than this part of the height is close enough.
const FINE: u64 = 1024;

fn height(buffers: &[Buffer], offsets: &[u64]) -> u64 {
    buffers.iter().zip(offsets).map(|(b, o)| o + b.size).max().unwrap_or(0)
}

fn lower_bound(buffers: &[Buffer]) -> u64 {
    let mut events: Vec<(u64, bool, u64)> = Vec::with_capacity(2 * buffers.len());
    for buffer in buffers.iter().filter(|b| b.lower < b.upper) {
        events.push((buffer.lower, true, buffer.size));
        events.push((buffer.upper, false, buffer.size));
    }
    // Ends sort before beginnings at the same time.
    events.sort_unstable();
    let (mut live, mut most) = (0u64, 0u64);
    for (_, begins, size) in events {
        live = if begins { live + size } else { live - size };
        most = most.max(live);
    }
    most
}

/// Places buffers in `order`, each into the smallest gap that takes it.
fn best_fit(buffers: &[Buffer], order: &[usize], alignment: u64) -> Vec<u64> {
    let mut offsets: Vec<u64> = vec![0; buffers.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(buffers.len());
    for &at in order {
        let buffer = &buffers[at];
        let mut gap_start = 0u64;
        let mut best: Option<(u64, u64)> = None;
        for &other in &placed {
            let (there, offset) = (&buffers[other], offsets[other]);
            if there.upper <= buffer.lower || buffer.upper <= there.lower {
                continue;
            }
            let gap = offset.saturating_sub(gap_start);
            if gap >= buffer.size && best.is_none_or(|(size, _)| gap < size) {
                best = Some((gap, gap_start));
            }
            gap_start = gap_start.max((offset + there.size).next_multiple_of(alignment));
        }
        offsets[at] = best.map_or(gap_start, |(_, start)| start);
        let position = placed.partition_point(|&p| offsets[p] <= offsets[at]);
        placed.insert(position, at);
    }
    offsets
}
