//! Random programs over every loop class, compiled under random options, run from their images and
//! compared with the interpreter; and the plan checked.

mod support;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use support::random::{Generator, Random, arguments};
use support::{Order, check_plan, close, execute, tolerance};
use vramlab_compiler::{Options, compile};
use vramlab_ir::evaluate;

fn one(seed: u64, size: usize) {
    let (func, donate) = Generator::new(seed).program(size);
    let mut random = Random::new(seed ^ 0x5555);
    let inputs = arguments(&func, &mut random);
    let func = Arc::new(func);
    let wanted = match evaluate(&func, &inputs) {
        Ok(wanted) => wanted,
        Err(fault) => panic!("seed {seed}: {fault}\n{func}"),
    };
    let options = Options {
        fuse: !random.one_in(4),
        max_kept_row_bytes: if random.one_in(3) { 16 } else { 256 << 10 },
        ..Options::default()
    };
    let program =
        std::panic::catch_unwind(AssertUnwindSafe(|| compile(&func, &donate, &options).unwrap()))
            .unwrap_or_else(|_| panic!("seed {seed} does not compile\n{func}"));
    let again = compile(&func, &donate, &options).unwrap();
    assert!(program == again, "seed {seed}: the same input gave another program");
    let checked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        check_plan(&program);
        for whole_rows in [false, true] {
            let order = Order { whole_rows, rows_backwards: random_bit(seed, whole_rows) };
            let got = execute(&program, &inputs, order);
            for (at, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
                assert!(
                    close(got, wanted, tolerance(&func)),
                    "result {at}: got {got}\nwanted {wanted}"
                );
            }
        }
    }));
    if checked.is_err() {
        panic!(
            "seed {seed}, donate {donate:?}, {options:?}\n{func}\n{:?}\n{:?}\n{:#?}",
            program.results, program.slots, program.kernels
        );
    }
}

fn random_bit(seed: u64, other: bool) -> bool {
    seed.is_multiple_of(2) != other
}

/// The first `count` seeds, or those that FUZZ=FROM:COUNT names.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("FUZZ") else { return 0..count };
    let (from, count) = text.split_once(':').expect("FUZZ=FROM:COUNT");
    let from: u64 = from.parse().expect("a number");
    from..from + count.parse::<u64>().expect("a number")
}

#[test]
fn random_programs_mean_what_the_interpreter_says() {
    for seed in seeds(3000) {
        one(seed, 1 + (seed % 23) as usize);
    }
}

/// The first programs hold every kind of loop, so what holds for all of them holds for these.
#[test]
fn random_programs_hold_loops() {
    let ops = ["scan", "while", "cond", "cumsum", "scatter_add"];
    let mut found = [0; 5];
    for seed in 0..1000 {
        let (func, _) = Generator::new(seed).program(1 + (seed % 23) as usize);
        for (found, op) in found.iter_mut().zip(ops) {
            *found += func.eqns.iter().any(|eqn| eqn.op.name() == op) as u32;
        }
    }
    assert!(found.iter().all(|&count| count >= 20), "{ops:?}: {found:?}");
}

/// Programs over arrays of many bytes, compiled only: the plan keeps its rules, and fusion does not
/// raise the peak by more than it may.
#[test]
fn fusion_does_not_raise_the_peak() {
    for seed in seeds(2000) {
        let (func, donate) = Generator::scaled(seed, 16).program(1 + (seed % 23) as usize);
        let func = Arc::new(func);
        let peak = |fuse| {
            let options = Options { fuse, ..Options::default() };
            let program = compile(&func, &donate, &options).unwrap();
            check_plan(&program);
            program.peak_bytes
        };
        let (fused, unfused) = (peak(true), peak(false));
        assert!(
            fused <= unfused + unfused / 200 + 4096,
            "seed {seed}, donate {donate:?}: from {unfused} to {fused}\n{func}"
        );
    }
}
