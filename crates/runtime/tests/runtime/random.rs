//! Random sequences of everything: after each step contents, figures and touched pages agree with a plain model.

use crate::lab::*;
use std::fs;
use vramlab_ir::{Argument, BufferId, Engine};
use vramlab_runtime::{ModeSpec, Policy};

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }
}

struct Held {
    id: BufferId,
    values: Vec<f32>,
}

const MODES: [&str; 16] = [
    "preallocate",
    "ondemand",
    "ondemand gc=on",
    "platform",
    "ondemand fraction=0.5",
    "caching",
    "vmm",
    "cuda_async",
    "preallocate fraction=0.9",
    "cuda_async release_threshold=0",
    "vmm granule=4MiB keep=0",
    "vmm fraction=0.5 granule=2MiB",
    "caching expandable_segments=on",
    "caching fraction=0.5 garbage_collection_threshold=0.6",
    "caching max_split_size=20MiB",
    "caching roundup_power2_divisions=[1:2,>:4]",
];

struct Game {
    lab: Lab,
    dice: Dice,
    held: Vec<Held>,
}

impl Game {
    fn step(&mut self) {
        match self.dice.below(12) {
            0..=3 => self.upload(),
            4..=5 => self.release(),
            6..=7 => self.add(),
            8 => self.moved(),
            9 => self.share(),
            10 => self.switch(),
            _ => drop(self.lab.context.trim()),
        }
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.held.is_empty()).then(|| self.dice.below(self.held.len()))
    }

    fn upload(&mut self) {
        let elements = match self.dice.below(5) {
            0 => 0,
            1 => 1 + self.dice.below(10),
            2 => 1 + self.dice.below(1000),
            _ => 1 + self.dice.below(60_000),
        };
        let values: Vec<f32> =
            (0..elements).map(|_| self.dice.below(1000) as f32 * 0.125).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let made = self.lab.context.upload(&f32s(&[elements]), &bytes, self.lab.origin());
        if let Ok(id) = made {
            self.held.push(Held { id, values });
        }
    }

    fn release(&mut self) {
        if let Some(at) = self.pick() {
            let held = self.held.swap_remove(at);
            self.lab.drop(held.id);
        }
    }

    fn add(&mut self) {
        let Some(at) = self.pick() else { return };
        let (id, n) = (self.held[at].id, self.held[at].values.len());
        let double =
            func("double", &[f32s(&[n])], |build, all| vec![build.binary("add", all[0], all[0])]);
        if let Ok(made) = self.lab.jit(&double, &[Argument::Borrowed(id)]) {
            let values = self.held[at].values.iter().map(|value| value + value).collect();
            self.held.push(Held { id: made[0], values });
        }
    }

    fn moved(&mut self) {
        let Some(at) = self.pick() else { return };
        let (id, n) = (self.held[at].id, self.held[at].values.len());
        let negate = func("negate", &[f32s(&[n])], |build, all| vec![build.unary("neg", all[0])]);
        if let Ok(made) = self.lab.jit(&negate, &[Argument::Donated(id)]) {
            self.held[at].id = made[0];
            self.held[at].values.iter_mut().for_each(|value| *value = -*value);
        }
    }

    fn share(&mut self) {
        if let Some(at) = self.pick() {
            let id = self.lab.context.share(self.held[at].id);
            let values = self.held[at].values.clone();
            self.held.push(Held { id, values });
        }
    }

    fn switch(&mut self) {
        let mode = ModeSpec::parse(MODES[self.dice.below(MODES.len())]).expect("a mode");
        let policy = Policy::ALL[self.dice.below(3)];
        let before = self.lab.context.mode();
        match self.lab.context.switch(&mode, policy) {
            Ok(_) => assert_eq!(self.lab.context.mode(), mode),
            Err(_) => assert_eq!(self.lab.context.mode(), before),
        }
    }

    fn check(&self) {
        self.lab.check();
        for held in &self.held {
            self.lab.expect(held.id, &held.values);
        }
        let (resident, pool) = (resident(&self.lab), self.lab.context.memory().pool_bytes);
        assert!(resident <= pool + slack(&self.lab), "{resident} bytes touched, pool {pool}");
    }
}

/// Pages touched within the mappings that hold the regions, in bytes.
fn resident(lab: &Lab) -> u64 {
    let regions = lab.context.report().regions;
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut inside = false;
    let mut total = 0;
    for line in smaps.lines() {
        if let Some((low, high)) = line.split(' ').next().and_then(|range| range.split_once('-'))
            && let (Ok(low), Ok(high)) =
                (u64::from_str_radix(low, 16), u64::from_str_radix(high, 16))
        {
            inside = regions.iter().any(|r| r.base < high && low < r.base + r.bytes);
        } else if let Some(rest) = line.strip_prefix("Rss:").filter(|_| inside) {
            let kib: u64 = rest.trim().trim_end_matches(" kB").parse().expect("a figure in kB");
            total += kib * KIB;
        }
    }
    total
}

/// A page is the smallest thing that can be touched: what the last page of each region has beyond its end, and the
/// pages that small blocks share in `platform` mode.
fn slack(lab: &Lab) -> u64 {
    let page = 4 * KIB;
    let regions = lab.context.report().regions;
    regions.iter().map(|region| region.bytes.next_multiple_of(page) - region.bytes + page).sum()
}

fn play(seed: u64, steps: usize, capacity: u64) {
    // Modes that take 2 MiB at once are refused on less.
    let mode = if capacity < 4 * MIB { "ondemand" } else { MODES[seed as usize % MODES.len()] };
    let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut game = Game { lab: cpu(capacity, mode), dice, held: Vec::new() };
    for _ in 0..steps {
        game.step();
        game.check();
    }
    for held in std::mem::take(&mut game.held) {
        game.lab.drop(held.id);
    }
    assert_eq!(game.lab.context.memory().bytes_in_use, 0);
    game.check();
}

#[test]
fn random_sequences_keep_contents_and_figures() {
    for seed in 1..=10 {
        play(seed, 100, if seed % 2 == 0 { 4 * MIB } else { 40 * MIB });
    }
}

/// So little room that most steps fail.
#[test]
fn random_sequences_near_the_limit() {
    for seed in 11..=16 {
        play(seed, 100, 600 * KIB);
    }
}

/// How many steps the long game takes: the figure in `VRAMLAB_RANDOM_STEPS`, else few enough for every run of the tests.
fn long_steps() -> usize {
    let asked = std::env::var("VRAMLAB_RANDOM_STEPS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(20_000)
}

/// What the long game came across; each must have happened, or it proved little.
#[derive(Default, Debug)]
struct Tally {
    switched: usize,
    staged: usize,
    refused: usize,
    broken: usize,
    out_of_memory: usize,
}

/// Switches and cells at random lose nothing: after every switch each array is compared with the model, after every other
/// step one of them.
#[test]
fn switches_and_cells_at_random_lose_nothing() {
    let mut tally = Tally::default();
    let (steps, games) = (long_steps(), 20);
    for seed in 0..games {
        long_game(seed, steps / games as usize, &mut tally);
    }
    println!("{steps} steps: {tally:?}");
    let all = [tally.switched, tally.staged, tally.refused, tally.broken, tally.out_of_memory];
    assert!(all.iter().all(|count| *count > 0), "{tally:?}");
}

fn long_game(seed: u64, steps: usize, tally: &mut Tally) {
    let capacity = [6 * MIB, 24 * MIB, 48 * MIB, 96 * MIB][seed as usize % 4];
    let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let lab = cpu(capacity, MODES[seed as usize % MODES.len()]);
    let mut game = Game { lab, dice, held: Vec::new() };
    for step in 0..steps {
        match game.dice.below(16) {
            0..=4 if game.held.len() < 40 => {
                let before = game.held.len();
                game.upload();
                tally.out_of_memory += usize::from(game.held.len() == before);
            }
            5..=6 if game.held.len() < 40 => game.add(),
            7..=8 => game.moved(),
            9 if game.held.len() < 40 => game.share(),
            10..=11 => game.any_switch(tally),
            12 => drop(game.lab.context.trim()),
            _ => game.release(),
        }
        if let Some(at) = game.pick() {
            game.lab.expect(game.held[at].id, &game.held[at].values);
        }
        if step % 50 == 0 {
            game.lab.check();
        }
    }
    for held in std::mem::take(&mut game.held) {
        game.lab.expect(held.id, &held.values);
        game.lab.drop(held.id);
    }
    assert_eq!(game.lab.context.memory().bytes_in_use, 0);
    game.lab.check();
}

impl Game {
    /// A switch to any mode under any policy, one in eight with an allocation that fails in its middle.
    fn any_switch(&mut self, tally: &mut Tally) {
        let mode = ModeSpec::parse(MODES[self.dice.below(MODES.len())]).expect("a mode");
        let policy = Policy::ALL[self.dice.below(3)];
        let before = self.lab.context.mode();
        let breaks = self.dice.below(8) == 0;
        if breaks {
            self.lab.context.fail_nth_allocation(1 + self.dice.below(6) as u64);
        }
        let plan = self.lab.context.plan_switch(&mode, policy);
        match self.lab.context.switch(&mode, policy) {
            Ok(report) => {
                assert_eq!(self.lab.context.mode(), mode);
                tally.switched += usize::from(!report.unchanged);
                tally.staged += usize::from(plan.staged_through_host());
                let old_and_new = report.peak_pool <= self.lab.context.capacity();
                assert!(old_and_new, "{} of the device held on the way", report.peak_pool);
            }
            Err(why) => {
                let now = self.lab.context.mode();
                // Where the old mode cannot place them anew either, each array has a region of its own.
                assert!(
                    now == before || breaks && now.to_string() == "platform",
                    "{before} → {mode} {policy:?}, now {now}, breaks {breaks}: {why}"
                );
                tally.refused += usize::from(!plan.fits());
                tally.broken += usize::from(breaks && plan.fits());
            }
        }
        self.lab.context.fail_nth_allocation(0);
        for held in &self.held {
            self.lab.expect(held.id, &held.values);
        }
    }
}

#[test]
fn touched_pages_never_exceed_the_pool() {
    for mode in ["preallocate", "ondemand", "platform"] {
        let lab = cpu(64 * MIB, mode);
        let mut held = Vec::new();
        for pages in [9usize, 40, 100, 600, 1500] {
            held.push(lab.upload(&vec![1.0; pages * 1024], &[pages * 1024]));
            assert!(resident(&lab) <= lab.context.memory().pool_bytes, "{mode}");
        }
        for id in held {
            lab.drop(id);
            assert!(resident(&lab) <= lab.context.memory().pool_bytes, "{mode}");
        }
    }
}
