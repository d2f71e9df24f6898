//! Packs the public instances and prints height, steps and time.
use std::time::Instant;
use vramlab_compiler::plan::{Buffer, pack};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let budget = arguments.next().map_or(200_000, |b| b.parse().expect("a number"));
    for path in arguments {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let buffers: Vec<Buffer> = text
            .lines()
            .skip(1)
            .map(|line| {
                let n: Vec<u64> = line.split(',').map(|w| w.parse().expect("a number")).collect();
                Buffer { lower: n[1], upper: n[2], size: n[3] }
            })
            .collect();
        let start = Instant::now();
        let packing = pack(&buffers, 1, budget);
        println!(
            "{path}: {} buffers, height {}, bound {}, {} steps, {:?}",
            buffers.len(),
            packing.height,
            packing.lower_bound,
            packing.steps,
            start.elapsed()
        );
    }
}
