//! Cells and switches at random, through the front door: whatever was switched, dropped, moved or refused, every array
//! that the model has is in the session with its contents, and nothing else is alive.

use super::{run, session};
use crate::{Session, Status};

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n
    }
}

/// An array whose elements are all `value`; small whole numbers, so that sums are exact.
#[derive(Clone, Debug)]
struct Known {
    name: String,
    rows: usize,
    value: i64,
}

struct Game {
    session: Session,
    dice: Dice,
    known: Vec<Known>,
    next: usize,
    refused: usize,
    out_of_memory: usize,
}

const MODES: [&str; 12] = [
    "preallocate",
    "ondemand",
    "ondemand gc=on",
    "platform",
    "cuda_async",
    "vmm",
    "caching",
    "preallocate fraction=0.5",
    "vmm granule=4MiB keep=0",
    "caching expandable_segments=on",
    "cuda_async release_threshold=0",
    "caching max_split_size_mb:64",
];

const COLUMNS: usize = 256;

impl Game {
    fn name(&mut self) -> String {
        self.next += 1;
        format!("a{}", self.next)
    }

    fn pick(&mut self) -> Option<usize> {
        (!self.known.is_empty()).then(|| self.dice.below(self.known.len()))
    }

    /// Runs a cell; whether it passed. Only memory may be short, and only a switch may be refused.
    fn cell(&mut self, text: &str) -> bool {
        let (_, result) = run(&mut self.session, text);
        let Some(error) = result.error else {
            assert_eq!(result.status, Status::Ok);
            return true;
        };
        match error.kind.as_str() {
            "OOM" => self.out_of_memory += 1,
            "command" if text.contains("%mode") => self.refused += 1,
            kind => panic!("{text}\n{kind}: {}", error.rendered),
        }
        false
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..=3 if self.known.len() < 24 => self.make(),
            4..=5 if self.known.len() < 24 => self.derive(),
            6..=7 => self.consume(),
            8 if self.known.len() < 24 => self.share(),
            9 => self.donate(),
            10 => self.fail_inside(),
            11..=13 => self.switch(),
            14 => drop(self.cell("%clear pool")),
            15 => drop(self.cell("let mut total = 0.0; for n in 1..4 { let t = ones([n, 256]); total += t.sum().item(); } assert!(total == 1536.0);")),
            _ => self.forget(),
        }
    }

    fn make(&mut self) {
        let (name, rows) = (self.name(), 1 + self.dice.below(2000));
        let value = self.dice.below(50) as i64;
        if self.cell(&format!("let {name} = full([{rows}, {COLUMNS}], {value}.0);")) {
            self.known.push(Known { name, rows, value });
        }
    }

    fn derive(&mut self) {
        let Some(at) = self.pick() else { return };
        let Known { name: from, rows, value } = self.known[at].clone();
        let name = self.name();
        let (text, value) = match self.dice.below(4) {
            0 => (format!("&{from} + 1.0"), value + 1),
            1 => (format!("-&{from}"), -value),
            2 => (
                format!("{{ let v = vec![{from}.clone(), {from}.copy()]; &v[0] + &v[1] }}"),
                2 * value,
            ),
            _ => (format!("jit(|[x]| (x * 2.0 - x).abs())([&{from}])"), value.abs()),
        };
        if value.abs() < 1000 && self.cell(&format!("let {name} = {text};")) {
            self.known.push(Known { name, rows, value });
        }
    }

    /// An op by value: the array moves, or is back in its variable when memory was short.
    fn consume(&mut self) {
        let Some(at) = self.pick() else { return };
        let (name, from) = (self.name(), self.known[at].name.clone());
        if self.cell(&format!("let {name} = abs({from});")) {
            self.known[at].name = name;
            self.known[at].value = self.known[at].value.abs();
        }
    }

    fn share(&mut self) {
        let Some(at) = self.pick() else { return };
        let Known { name: from, rows, value } = self.known[at].clone();
        let name = self.name();
        let half = rows.div_ceil(2);
        let (text, rows) = match self.dice.below(3) {
            0 => (format!("{from}.clone()"), rows),
            1 => (format!("{from}.slice((0..{half}, ..))"), half),
            _ => {
                (format!("{from}.reshape([{}]).reshape([{rows}, {COLUMNS}])", rows * COLUMNS), rows)
            }
        };
        if self.cell(&format!("let {name} = {text};")) {
            self.known.push(Known { name, rows, value });
        }
    }

    fn donate(&mut self) {
        let Some(at) = self.pick() else { return };
        let (name, from) = (self.name(), self.known[at].name.clone());
        if self.cell(&format!("let {name} = jit(|[x]| x * 0.0 + 7.0).call(({from},));")) {
            self.known[at].name = name;
            self.known[at].value = 7;
        }
    }

    /// Memory runs out within a closure in a loop, with arrays in a container; what the cell had made goes.
    fn fail_inside(&mut self) {
        let text = "let grow = |n: i32| zeros([n, 1024, 256]); let mut kept = vec![]; for n in 1..100 { kept.push(grow(n)); }";
        let passed = self.cell(text);
        assert!(!passed, "no device has this much");
        self.cell("kept.clear(); drop(kept); drop(grow);");
    }

    fn switch(&mut self) {
        let mode = MODES[self.dice.below(MODES.len())];
        let policy = ["migrate", "migrate", "new-only", "refuse"][self.dice.below(4)];
        match mode.contains(':') {
            true => self.cell(&format!("%mode {mode}")),
            false => self.cell(&format!("%mode {mode} {policy}")),
        };
    }

    fn forget(&mut self) {
        if let Some(at) = self.pick() {
            let known = self.known.swap_remove(at);
            assert!(self.cell(&format!("drop({});", known.name)));
        }
    }

    fn check(&mut self) {
        for known in &self.known {
            let Known { name, rows, value } = known;
            let sum = (*rows * COLUMNS) as i64 * value;
            let text =
                format!("assert!({name}.sum().item() == {sum}.0, \"{{}}\", {name}.sum().item());");
            let (_, result) = run(&mut self.session, &text);
            // The check itself needs a block for the sum.
            let short = |kind: &str| kind == "OOM";
            assert!(
                result.error.as_ref().is_none_or(|error| short(&error.kind)),
                "{known:?}: {}",
                result.error.map_or(String::new(), |error| error.rendered)
            );
        }
    }
}

#[test]
fn cells_and_switches_at_random_lose_nothing() {
    let asked = std::env::var("VRAMLAB_RANDOM_CELLS").ok().and_then(|text| text.parse().ok());
    let cells: usize = asked.unwrap_or(2000);
    let mut tally = (0, 0);
    for (seed, capacity) in [(1u64, "24MiB"), (2, "64MiB"), (3, "10MiB"), (4, "160MiB")] {
        let mut game = Game {
            session: session(&[("capacity", capacity), ("watch", "off")]),
            dice: Dice(0x9E37_79B9_7F4A_7C15u64.wrapping_mul(seed)),
            known: Vec::new(),
            next: 0,
            refused: 0,
            out_of_memory: 0,
        };
        for step in 0..cells / 4 {
            game.step();
            if step % 20 == 0 {
                game.check();
            }
        }
        game.check();
        while !game.known.is_empty() {
            game.forget();
        }
        game.cell("%clear outputs");
        let (_, result) = run(&mut game.session, "%mem");
        assert_eq!(result.memory.requested_bytes, 0, "nothing is left alive");
        tally = (tally.0 + game.refused, tally.1 + game.out_of_memory);
    }
    assert!(tally.0 > 0 && tally.1 > 0, "{tally:?}");
}
