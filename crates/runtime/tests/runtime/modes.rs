//! Switches of mode: what moves, what is refused, what stays.

use crate::lab::*;
use vramlab_ir::{BufferId, Engine};
use vramlab_runtime::{ModeSpec, Policy, Road};

fn mode(text: &str) -> ModeSpec {
    ModeSpec::parse(text).expect("a mode")
}

#[test]
fn mode_one_add_takes_two_mebibytes() {
    let lab = cpu(GIB, "ondemand");
    let x = lab.full(&[1], 1.0);
    lab.op("add", &[x, x]);
    assert_eq!(lab.context.memory().pool_bytes, 2 * MIB);
}

/// The transcript's cells 1 to 4, with its figures.
#[test]
fn the_transcript_of_switches() {
    for lab in [cpu(GIB, "preallocate"), dry(GIB, "preallocate")] {
        let a = lab.full(&[2560, 1024], 0.0);
        lab.context.set_owner(a, "a");
        assert_eq!(lab.context.memory().pool_bytes, 768 * MIB);
        let plan = lab.context.plan_switch(&mode("ondemand"), Policy::Migrate);
        assert_eq!((plan.old_pool, plan.new_pool, plan.peak), (768 * MIB, 16 * MIB, 784 * MIB));
        let report = lab.context.switch(&mode("ondemand"), Policy::Migrate).expect("it fits");
        assert_eq!(report.plan.road, Road::SideBySide);
        assert_eq!((report.moved_arrays, report.moved_bytes), (1, 10 * MIB));
        assert_eq!((report.peak_pool, report.pool_after), (784 * MIB, 16 * MIB));
        assert_eq!(report.older_pool_bytes, 0);
        let figures = lab.context.memory();
        assert_eq!((figures.bytes_in_use, figures.pool_bytes), (16 * MIB, 16 * MIB));
        let report = lab.context.switch(&mode("platform"), Policy::Migrate).expect("it fits");
        assert_eq!(report.peak_pool, 26 * MIB);
        let figures = lab.context.memory();
        assert_eq!((figures.bytes_in_use, figures.pool_bytes), (10 * MIB, 10 * MIB));
        assert_eq!(lab.context.smi().held_bytes, 10 * MIB);
        assert_eq!(lab.context.smi().total_bytes, GIB);
        assert_eq!(lab.context.owners()[0].owner, "a", "the name moved along");
        lab.check();
    }
}

fn patterned(lab: &Lab, seed: u32, elements: usize) -> (BufferId, Vec<f32>) {
    let mut word = seed.wrapping_mul(2_654_435_761) | 1;
    let values: Vec<f32> = (0..elements)
        .map(|_| {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Any bit pattern but NaN, which does not compare.
            f32::from_bits(word & 0x7F7F_FFFF)
        })
        .collect();
    (lab.upload(&values, &[elements]), values)
}

#[test]
fn contents_survive_every_switch_bit_for_bit() {
    let mut all: Vec<&str> = vramlab_memory::modes::MODES.iter().map(|entry| entry.name).collect();
    all.extend(["ondemand gc=on", "preallocate fraction=0.5"]);
    for &from in &all {
        for &to in &all {
            let lab = cpu(64 * MIB, from);
            let arrays: Vec<_> =
                (0..20).map(|i| patterned(&lab, i, 1 + (i as usize * 977) % 9000)).collect();
            // Holes, so that blocks do not lie as they were made.
            arrays.iter().step_by(3).for_each(|(id, _)| lab.drop(*id));
            let kept = || arrays.iter().enumerate().filter(|(i, _)| i % 3 != 0);
            let requested = lab.requested();
            lab.context.switch(&mode(to), Policy::Migrate).expect("it fits");
            assert_eq!(lab.context.mode(), mode(to));
            for (_, (id, values)) in kept() {
                lab.expect(*id, values);
            }
            assert_eq!(lab.requested(), requested);
            assert!(lab.context.report().older_pools.is_empty(), "the old pool is gone");
            lab.check();
        }
    }
}

#[test]
fn what_does_not_fit_side_by_side_goes_through_the_host() {
    let lab = cpu(4 * MIB, "preallocate fraction=0.9");
    let arrays: Vec<_> = (0..3).map(|i| patterned(&lab, i, 200_000)).collect();
    let plan = lab.context.plan_switch(&mode("platform"), Policy::Migrate);
    assert!(plan.staged_through_host(), "{plan:?}");
    let report = lab.context.switch(&mode("platform"), Policy::Migrate).expect("staged");
    assert_eq!(report.plan.road, Road::ThroughHost);
    assert_eq!(report.moved_arrays, 3);
    assert!(report.peak_pool <= 4 * MIB);
    for (id, values) in &arrays {
        lab.expect(*id, values);
    }
    assert_eq!(lab.context.memory().pool_bytes, 3 * 800_000);
    lab.check();
}

#[test]
fn mode_after_arrays_that_do_not_fit_is_refused_and_nothing_changes() {
    let lab = cpu(4 * MIB, "platform");
    let (id, values) = patterned(&lab, 1, 800_000);
    let before = lab.context.report();
    let error = lab.context.switch(&mode("preallocate"), Policy::Migrate).expect_err("3.05 of 3.0");
    assert!(error.contains("3.0 MiB") && error.contains("preallocate"), "{error}");
    let after = lab.context.report();
    assert_eq!((before.mode, before.figures), (after.mode, after.figures));
    lab.expect(id, &values);
    lab.check();
}

#[test]
fn mode_after_arrays_refuse_lists_the_holders() {
    let lab = cpu(4 * MIB, "ondemand");
    let id = lab.full(&[100], 0.0);
    lab.context.set_owner(id, "weights[2]");
    let error = lab.context.switch(&mode("platform"), Policy::Refuse).expect_err("an array lives");
    assert!(error.contains("weights[2]"), "{error}");
    assert_eq!(lab.context.mode(), mode("ondemand"));
    lab.drop(id);
    lab.context.switch(&mode("platform"), Policy::Refuse).expect("nothing lives");
    assert_eq!(lab.context.mode(), mode("platform"));
    lab.check();
}

#[test]
fn mode_after_arrays_new_only_leaves_the_old_ones_to_die_out() {
    let lab = cpu(8 * MIB, "ondemand");
    let (old, values) = patterned(&lab, 5, 5000);
    let report = lab.context.switch(&mode("platform"), Policy::NewOnly).expect("nothing moves");
    assert_eq!((report.moved_arrays, report.older_pool_bytes), (0, 2 * MIB));
    let new = lab.full(&[250], 1.0);
    let pools = lab.context.report().older_pools;
    assert_eq!(pools, [("ondemand".to_string(), 2 * MIB)]);
    assert_eq!(lab.context.memory().pool_bytes, 2 * MIB + 1000);
    lab.expect(old, &values);
    lab.drop(old);
    assert!(lab.context.report().older_pools.is_empty(), "the last block took its pool along");
    assert_eq!(lab.context.memory().pool_bytes, 1000);
    lab.drop(new);
    lab.check();
}

#[test]
fn the_same_mode_again_is_no_switch() {
    let lab = cpu(8 * MIB, "ondemand");
    lab.full(&[10], 0.0);
    let report = lab.context.switch(&mode("ondemand"), Policy::Migrate).expect("nothing to do");
    assert!(report.unchanged);
    let report = lab.context.switch(&mode("ondemand gc=on"), Policy::Migrate).expect("it fits");
    assert!(!report.unchanged);
}

#[test]
fn shared_claims_move_once() {
    let lab = cpu(8 * MIB, "ondemand");
    let (id, values) = patterned(&lab, 3, 1000);
    let clone = lab.context.share(id);
    let report = lab.context.switch(&mode("platform"), Policy::Migrate).expect("it fits");
    assert_eq!(report.moved_arrays, 1);
    lab.drop(id);
    lab.expect(clone, &values);
    lab.check();
}

#[test]
fn rows_mark_the_current_mode() {
    let lab = cpu(8 * MIB, "ondemand gc=on");
    let rows = lab.context.modes();
    let current: Vec<_> = rows.iter().filter(|row| row.current).collect();
    assert_eq!(current.len(), 1);
    assert_eq!(current[0].name, "ondemand");
    let gc = current[0].options.iter().find(|option| option.name == "gc").expect("an option");
    assert_eq!(gc.value, "on");
}

#[test]
fn limit_thirds_pass() {
    for mode in ["preallocate fraction=1.0", "platform"] {
        limit_thirds(&dry(10 * GIB, mode));
    }
}

/// `limit-trim-retry`: the pool gives its cache back by itself and the call passes.
#[test]
fn limit_trim_retry_passes_in_caching() {
    let lab = dry(GIB, "caching");
    let array = lab.bytes(512 * MIB);
    lab.drop(array);
    lab.bytes(768 * MIB);
    assert_eq!(lab.requested(), 768 * MIB);
    lab.check();
}

fn limit_thirds(lab: &Lab) {
    let _a = lab.bytes(3 * GIB);
    let b = lab.bytes(3 * GIB);
    lab.drop(b);
    lab.bytes(6 * GIB);
    assert_eq!(lab.requested(), 9 * GIB);
    lab.check();
}

#[test]
fn loop_steady_never_holds_more_than_two_arrays() {
    for name in ["ondemand", "platform", "ondemand gc=on"] {
        let lab = dry(GIB, name);
        let array = 32 * 4 * 84 * 84 * 4u64;
        let mut held = None;
        let mut most = 0;
        for _ in 0..10_000 {
            let new = lab.full(&[32, 4, 84, 84], 0.0);
            held.replace(new).into_iter().for_each(|old| lab.drop(old));
            most = most.max(lab.context.memory().pool_bytes);
        }
        // BFC's regions double: 4 MiB for the first, 8 more where the second does not fit beside it.
        assert!(most <= (2 * array).next_power_of_two(), "{name}: {most}");
    }
}
