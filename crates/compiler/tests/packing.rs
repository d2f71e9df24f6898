//! Packing: the public instances, and random ones against the rules.

mod support;

use std::path::Path;
use support::random::Random;
use vramlab_compiler::plan::{Buffer, Packing, pack};

/// The height at which each public instance has a placement.
const HEIGHT: u64 = 1_048_576;

fn check(buffers: &[Buffer], packing: &Packing, alignment: u64) {
    for (a, (one, &offset)) in buffers.iter().zip(&packing.offsets).enumerate() {
        assert_eq!(offset % alignment, 0);
        assert!(offset + one.size <= packing.height);
        for (other, &there) in buffers.iter().zip(&packing.offsets).skip(a + 1) {
            let together = one.lower < other.upper && other.lower < one.upper;
            let overlap = offset < there + other.size && there < offset + one.size;
            assert!(!(together && overlap), "{one:?} at {offset} and {other:?} at {there}");
        }
    }
    assert!(packing.height >= packing.lower_bound);
}

fn read(path: &Path) -> Vec<Buffer> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let row = |line: &str| {
        let n: Vec<u64> = line.split(',').map(|w| w.parse().expect("a number")).collect();
        Buffer { lower: n[1], upper: n[2], size: n[3] }
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn plan_packing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = ["../shared", "shared"]
        .map(|shared| root.join(shared).join("benchmarks/packing"))
        .into_iter()
        .find(|folder| folder.is_dir());
    let Some(folder) = folder else {
        let required = std::env::var("CI").is_ok_and(|v| v == "true");
        assert!(!required, "no shared/benchmarks/packing beside the repository");
        println!("no shared/benchmarks/packing beside the repository: skipped");
        return;
    };
    for name in ["A", "B", "C", "D", "E", "F"] {
        let buffers = read(&folder.join(format!("{name}.1048576.csv")));
        let budgets = [1_000_000, 3_000_000];
        let packing = budgets
            .into_iter()
            .map(|budget| {
                let packing = pack(&buffers, 1, budget);
                assert!(packing.steps <= budget, "{name} took {} steps", packing.steps);
                packing
            })
            .find(|packing| packing.height <= HEIGHT);
        let packing = packing.unwrap_or_else(|| panic!("{name} does not fit in {HEIGHT}"));
        check(&buffers, &packing, 1);
    }
}

#[test]
fn random_instances_keep_the_rules() {
    let mut random = Random::new(11);
    for _ in 0..300 {
        let count = 1 + random.below(40);
        let alignment = [1, 64][random.below(2)];
        let buffers: Vec<Buffer> = (0..count)
            .map(|_| {
                let lower = random.below(30) as u64;
                let upper = lower + 1 + random.below(10) as u64;
                Buffer { lower, upper, size: 1 + random.below(500) as u64 }
            })
            .collect();
        let packing = pack(&buffers, alignment, 2_000);
        check(&buffers, &packing, alignment);
        assert_eq!(packing, pack(&buffers, alignment, 2_000), "the same again");
    }
}

#[test]
fn a_search_improves_on_best_fit() {
    let mut random = Random::new(3);
    let improved = (0..200)
        .filter(|_| {
            let buffers: Vec<Buffer> = (0..25)
                .map(|_| {
                    let lower = random.below(30) as u64;
                    let upper = lower + 1 + random.below(12) as u64;
                    Buffer { lower, upper, size: 1 + random.below(50) as u64 }
                })
                .collect();
            let plain = pack(&buffers, 1, 0);
            let searched = pack(&buffers, 1, 5_000);
            assert!(searched.height <= plain.height);
            searched.height < plain.height
        })
        .count();
    assert!(improved >= 20, "{improved} of 200");
}
