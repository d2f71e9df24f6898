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

const MODES: [&str; 8] = [
    "preallocate",
    "ondemand",
    "ondemand gc=on",
    "platform",
    "ondemand fraction=0.5",
    "caching",
    "vmm",
    "cuda_async",
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
    let mode = MODES[seed as usize % MODES.len()];
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
