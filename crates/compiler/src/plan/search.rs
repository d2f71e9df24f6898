//! Exhaustive packing under a height: branch and bound over the order in which buffers are put on
//! top of each other, after the method of MiniMalloc (Moffitt, ASPLOS 2023).
//!
//! Buffers are placed from the bottom up, each as low as those before it allow, at offsets that never
//! fall. Three rules keep the tree small. Dominance: a buffer is not placed where another one would
//! still fit below it. Sections: between two neighbouring ends of lives the buffers that are left must
//! fit above the lowest place that any of them can take. Decomposition: buffers that are left fall
//! into groups with no common time, each solved by itself.

use super::Buffer;
use std::cmp::Reverse;

/// How the buffers are ranked for one try. No ranking suits all instances, so several take turns,
/// and each is cut short and begun anew many times: a tree that begins badly is hardly ever saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ranking {
    /// By crowd (the most bytes alive at one of its times), life and area, in turning order.
    Fixed,
    /// What failed to fit in earlier tries first.
    Blame,
    /// A random mixture of crowd, life, size and blame.
    Mixture,
}

/// The strategies and the steps of their first try.
const STRATEGIES: [(Ranking, u64); 4] = [
    (Ranking::Fixed, 3_000),
    (Ranking::Blame, 300),
    (Ranking::Mixture, 300),
    (Ranking::Blame, 3_000),
];

/// What earlier tries of an instance taught.
pub(super) struct Lessons {
    /// Per strategy and buffer: how often it did not fit.
    blame: Vec<Vec<u32>>,
    /// Tries so far.
    tries: u64,
}

/// The end of a search.
pub(super) enum Outcome {
    Found(Vec<u64>),
    /// The whole tree was seen.
    Impossible,
    OutOfSteps,
}

/// The instance, prepared: times replaced by sections.
pub(super) struct Instance {
    sizes: Vec<u64>,
    /// Sections [first, end) of each buffer.
    spans: Vec<(u32, u32)>,
    overlaps: Vec<Vec<u32>>,
    /// Buffers alive in each section.
    alive: Vec<Vec<u32>>,
    /// Per buffer: the most bytes alive at one of its times.
    crowd: Vec<u64>,
}

impl Instance {
    pub fn new(buffers: &[Buffer]) -> Instance {
        let mut times: Vec<u64> = buffers.iter().flat_map(|b| [b.lower, b.upper]).collect();
        times.sort_unstable();
        times.dedup();
        let section = |time: u64| times.partition_point(|&t| t < time) as u32;
        let spans: Vec<(u32, u32)> =
            buffers.iter().map(|b| (section(b.lower), section(b.upper))).collect();
        let mut alive = vec![Vec::new(); times.len().saturating_sub(1)];
        for (at, &(first, end)) in spans.iter().enumerate() {
            for section in first..end {
                alive[section as usize].push(at as u32);
            }
        }
        let overlap = |a: (u32, u32), b: (u32, u32)| a.0 < b.1 && b.0 < a.1;
        let overlaps = (0..spans.len())
            .map(|a| {
                let meets = |&b: &u32| b as usize != a && overlap(spans[a], spans[b as usize]);
                (0..spans.len() as u32).filter(meets).collect()
            })
            .collect();
        let totals: Vec<u64> =
            alive.iter().map(|a| a.iter().map(|&b| buffers[b as usize].size).sum()).collect();
        let most = |&(first, end): &(u32, u32)| {
            totals[first as usize..end as usize].iter().copied().max().unwrap_or(0)
        };
        let crowd = spans.iter().map(most).collect();
        let sizes = buffers.iter().map(|b| b.size).collect();
        Instance { sizes, spans, overlaps, alive, crowd }
    }

    /// The position of each buffer in the order in which candidates are tried.
    fn ranks(&self, ranking: Ranking, round: u64, blame: &[u32]) -> Vec<u32> {
        let traits = |b: usize| {
            let crowd = self.crowd[b];
            let life = (self.spans[b].1 - self.spans[b].0) as u64;
            (crowd, life, life * self.sizes[b])
        };
        let mut order: Vec<usize> = (0..self.sizes.len()).collect();
        let fixed = |b: usize| {
            let (crowd, life, area) = traits(b);
            match round % 4 {
                0 => [crowd, life, area],
                1 => [crowd, area, life],
                2 => [life, area, crowd],
                _ => [area, life, crowd],
            }
        };
        match ranking {
            Ranking::Fixed => order.sort_by_key(|&b| (Reverse(fixed(b)), b)),
            Ranking::Blame => order.sort_by_key(|&b| (Reverse((blame[b], fixed(b))), b)),
            Ranking::Mixture => {
                let mut noise = Noise::new(round);
                let parts = [4.0, 1.0, 1.0, 1.0].map(|most| most * noise.unit());
                let score: Vec<f64> = (0..self.sizes.len())
                    .map(|b| {
                        let (crowd, life, _) = traits(b);
                        let of = [crowd, life, self.sizes[b], blame[b] as u64 + 1];
                        let sum: f64 =
                            of.iter().zip(parts).map(|(&x, part)| logarithm(x) * part).sum();
                        sum + 0.3 * noise.unit()
                    })
                    .collect();
                order.sort_by(|&a, &b| score[b].total_cmp(&score[a]).then(a.cmp(&b)));
            }
        }
        let mut ranks = vec![0; order.len()];
        for (rank, &b) in order.iter().enumerate() {
            ranks[b] = rank as u32;
        }
        ranks
    }

    pub fn lessons(&self) -> Lessons {
        Lessons { blame: vec![vec![0; self.sizes.len()]; STRATEGIES.len()], tries: 0 }
    }

    /// Looks for offsets under `height`; `steps` is lowered by what was used.
    pub fn solve(&self, height: u64, steps: &mut u64, lessons: &mut Lessons) -> Outcome {
        while *steps > 0 {
            let strategy = (lessons.tries % STRATEGIES.len() as u64) as usize;
            let round = lessons.tries / STRATEGIES.len() as u64;
            let (ranking, share) = STRATEGIES[strategy];
            let blame = &mut lessons.blame[strategy];
            let allowed = (share * luby(round + 1)).min(*steps);
            let ranks = self.ranks(ranking, round, blame);
            let mut search = Search::new(self, height, ranks, allowed, blame);
            let found = search.run();
            *steps -= allowed - search.steps;
            if found {
                return Outcome::Found(search.floor);
            }
            if search.steps > 0 {
                return Outcome::Impossible;
            }
            lessons.tries += 1;
        }
        Outcome::OutOfSteps
    }
}

/// 1 1 2 1 1 2 4 …: restarts whose lengths suit any tree, when good luck is rare.
fn luby(i: u64) -> u64 {
    let mut k = 1;
    while (1 << k) - 1 < i {
        k += 1;
    }
    if (1 << k) - 1 == i { 1 << (k - 1) } else { luby(i - (1 << (k - 1)) + 1) }
}

/// The base-2 logarithm with its fraction taken linearly: exact arithmetic, so alike everywhere.
fn logarithm(x: u64) -> f64 {
    let whole = x.max(1).ilog2();
    whole as f64 + (x.max(1) as f64 / (1u64 << whole) as f64 - 1.0)
}

/// xorshift64*, so that every machine packs alike.
struct Noise(u64);

impl Noise {
    fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// In [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f64 / (1u64 << 24) as f64
    }
}

struct Search<'a> {
    instance: &'a Instance,
    height: u64,
    ranks: Vec<u32>,
    /// The lowest place of each buffer that is left; the place of each that is placed.
    floor: Vec<u64>,
    placed: Vec<bool>,
    /// Bytes left to place, per section.
    left: Vec<u64>,
    steps: u64,
    /// What to take back: (buffer, its floor before).
    trail: Vec<(u32, u64)>,
    /// Per buffer: how often it did not fit.
    blame: &'a mut [u32],
    base: Vec<u64>,
}

impl<'a> Search<'a> {
    fn new(
        instance: &'a Instance,
        height: u64,
        ranks: Vec<u32>,
        steps: u64,
        blame: &'a mut [u32],
    ) -> Search<'a> {
        let total =
            |alive: &Vec<u32>| alive.iter().map(|&b| instance.sizes[b as usize]).sum::<u64>();
        Search {
            instance,
            height,
            ranks,
            floor: vec![0; instance.sizes.len()],
            placed: vec![false; instance.sizes.len()],
            left: instance.alive.iter().map(total).collect(),
            steps,
            trail: Vec::new(),
            base: vec![0; instance.sizes.len()],
            blame,
        }
    }

    fn run(&mut self) -> bool {
        let all: Vec<u32> = (0..self.instance.sizes.len() as u32).collect();
        self.left.iter().all(|&l| l <= self.height)
            && self.components(all).into_iter().all(|part| self.place(&part, 0))
    }

    /// The buffers in groups that share no time with each other, smallest group first.
    fn components(&self, mut buffers: Vec<u32>) -> Vec<Vec<u32>> {
        buffers.sort_unstable_by_key(|&b| self.instance.spans[b as usize]);
        let mut parts: Vec<Vec<u32>> = Vec::new();
        let mut end = 0;
        for buffer in buffers {
            let (first, last) = self.instance.spans[buffer as usize];
            match parts.last_mut().filter(|_| first < end) {
                Some(part) => part.push(buffer),
                None => parts.push(vec![buffer]),
            }
            end = end.max(last);
        }
        parts.sort_by_key(Vec::len);
        parts
    }

    /// Places a group; all of it stays as it was when that fails.
    fn place(&mut self, group: &[u32], lowest: u64) -> bool {
        let top = |b: u32| self.floor[b as usize] + self.instance.sizes[b as usize];
        let Some(reach) = group.iter().map(|&b| top(b)).min() else { return true };
        let mut candidates: Vec<(u64, u32, u32)> = group
            .iter()
            .map(|&b| (self.floor[b as usize], self.ranks[b as usize], b))
            .filter(|&(floor, _, _)| floor < reach && floor >= lowest)
            .collect();
        candidates.sort_unstable();
        for (floor, _, buffer) in candidates {
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            let mark = self.trail.len();
            let bare = self.put(buffer);
            if self.fits(buffer, mark, floor) {
                let rest: Vec<u32> = group.iter().copied().filter(|&b| b != buffer).collect();
                if !bare && !self.rest_fits(&rest, floor) {
                    self.take_back(buffer, mark);
                    continue;
                }
                let parts = self.components(rest);
                let above = if bare { lowest } else { floor };
                let mut done = 0;
                while done < parts.len() && self.place(&parts[done], above) {
                    done += 1;
                }
                if done == parts.len() {
                    return true;
                }
                for part in &parts[..done] {
                    part.iter().rev().for_each(|&b| self.lift(b));
                }
            }
            self.take_back(buffer, mark);
            if bare {
                // Nothing lies above it, so no other place for it helps the others.
                return false;
            }
        }
        false
    }

    /// Puts a buffer on its floor and raises those that must lie above; whether there are none.
    fn put(&mut self, buffer: u32) -> bool {
        let at = buffer as usize;
        let (first, end) = self.instance.spans[at];
        let size = self.instance.sizes[at];
        let top = self.floor[at] + size;
        self.placed[at] = true;
        for section in first..end {
            self.left[section as usize] -= size;
        }
        let mut bare = true;
        for &other in &self.instance.overlaps[at] {
            if self.placed[other as usize] {
                continue;
            }
            bare = false;
            let floor = &mut self.floor[other as usize];
            if *floor < top {
                self.trail.push((other, *floor));
                *floor = top;
            }
        }
        bare
    }

    /// Whether what is left can still fit after `buffer` was put at `lowest`.
    fn fits(&mut self, buffer: u32, mark: usize, lowest: u64) -> bool {
        let at = buffer as usize;
        if self.floor[at] + self.instance.sizes[at] > self.height {
            self.blame[at] += 1;
            return false;
        }
        let (mut first, mut end) = self.instance.spans[at];
        for raised in mark..self.trail.len() {
            let other = self.trail[raised].0 as usize;
            if self.floor[other] + self.instance.sizes[other] > self.height {
                self.blame[other] += 1;
                return false;
            }
            let span = self.instance.spans[other];
            first = first.min(span.0);
            end = end.max(span.1);
        }
        for section in first..end {
            if !self.section_fits(section as usize, lowest) {
                for &b in &self.instance.alive[section as usize] {
                    if !self.placed[b as usize] {
                        self.blame[b as usize] += 1;
                    }
                }
                return false;
            }
        }
        true
    }

    /// Whether every group of sections can still hold what is left when nothing more is placed
    /// below `lowest`.
    fn rest_fits(&mut self, rest: &[u32], lowest: u64) -> bool {
        let (mut first, mut end) = (u32::MAX, 0);
        for &b in rest {
            let at = b as usize;
            let (f, e) = self.instance.spans[at];
            first = first.min(f);
            end = end.max(e);
            if self.floor[at] >= lowest {
                self.base[at] = self.floor[at];
                continue;
            }
            // It will lie on something that is placed from `lowest` on.
            let below = self.instance.overlaps[at]
                .iter()
                .filter(|&&c| !self.placed[c as usize])
                .map(|&c| self.instance.sizes[c as usize])
                .min();
            let Some(below) = below else {
                self.blame[at] += 1;
                return false;
            };
            self.base[at] = lowest + below;
            if self.base[at] + self.instance.sizes[at] > self.height {
                self.blame[at] += 1;
                return false;
            }
        }
        for section in first..end {
            let section = section as usize;
            if self.left[section] == 0 {
                continue;
            }
            let alive = self.instance.alive[section].iter().filter(|&&b| !self.placed[b as usize]);
            let base = alive.clone().map(|&b| self.base[b as usize]).min().unwrap_or(0);
            if base + self.left[section] > self.height {
                for &b in alive {
                    self.blame[b as usize] += 1;
                }
                return false;
            }
        }
        true
    }

    fn section_fits(&self, section: usize, lowest: u64) -> bool {
        let left = self.left[section];
        if left == 0 {
            return true;
        }
        let floors = self.instance.alive[section]
            .iter()
            .filter(|&&b| !self.placed[b as usize])
            .map(|&b| self.floor[b as usize]);
        let base = floors.min().unwrap_or(0).max(lowest);
        base + left <= self.height
    }

    /// Takes the last placed buffer back.
    fn take_back(&mut self, buffer: u32, mark: usize) {
        while self.trail.len() > mark {
            let (other, floor) = self.trail.pop().expect("longer than the mark");
            self.floor[other as usize] = floor;
        }
        self.lift(buffer);
    }

    /// Marks a buffer as left again; floors are restored by the trail.
    fn lift(&mut self, buffer: u32) {
        let at = buffer as usize;
        self.placed[at] = false;
        let (first, end) = self.instance.spans[at];
        for section in first..end {
            self.left[section as usize] += self.instance.sizes[at];
        }
    }
}
