//! Failed allocations: what they leave, and what they say.

use crate::lab::*;
use std::sync::{Arc, Mutex};
use vramlab_ir::{Argument, BufferId, Engine, FaultKind};
use vramlab_memory::Verdict;
use vramlab_runtime::Rung;

#[test]
fn oom_repeat_fails_at_the_same_step_again() {
    for mode in ["preallocate", "ondemand", "ondemand gc=on", "platform"] {
        let lab = dry(GIB, mode);
        let mut failed_at = Vec::new();
        for round in 0..3 {
            lab.at(1, 1);
            lab.context.cell_begin(1);
            let mut held = Vec::new();
            for i in 0.. {
                match lab.try_bytes(40 * MIB) {
                    Ok(id) => held.push(id),
                    Err(fault) => {
                        assert_eq!(fault.kind, FaultKind::OutOfMemory);
                        failed_at.push(i);
                        break;
                    }
                }
            }
            held.into_iter().for_each(|id| lab.drop(id));
            let cell = lab.context.cell_end();
            assert_eq!(cell.figures.end_bytes, 0, "round {round}");
            lab.check();
        }
        assert!(failed_at.windows(2).all(|pair| pair[0] == pair[1]), "{mode}: {failed_at:?}");
    }
}

/// The transcript's cell 12: nothing lives, 480 MiB lie in empty regions, and 400 do not fit.
#[test]
fn growing_temporaries_fragment_the_pool() {
    let lab = dry(GIB, "ondemand");
    lab.context.cell_begin(12);
    lab.at(12, 1);
    for n in (20..=200).step_by(20) {
        let array = lab.full(&[n, 1024, 256], 0.0);
        lab.drop(array);
    }
    lab.at(12, 2);
    let fault = lab.try_full(&[400, 1024, 256], 0.0).expect_err("fragmented");
    lab.context.cell_end();
    assert_eq!(fault.kind, FaultKind::OutOfMemory);
    assert_eq!((fault.cell, fault.span.map(|span| span.line)), (12, Some(2)));
    assert!(fault.message.contains("400.0 MiB"), "{}", fault.message);
    assert!(fault.message.contains("FRAGMENTED"), "{}", fault.message);
    let report = lab.context.last_oom().expect("a report");
    assert_eq!(report.verdict, Verdict::Fragmented);
    assert_eq!((report.in_use, report.pool), (0, 480 * MIB));
    assert_eq!(report.empty_regions, [32, 64, 128, 256].map(|n| n * MIB));
    assert_eq!(report.left_under_limit(), 288 * MIB);
    let names: Vec<&str> = report.ladder.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["dead arrays", "caches", "empty regions"]);
    assert_eq!(report.ladder[2].note.as_deref(), Some("kept (gc=off, as XLA)"));
    let passing = report.passing();
    for mode in ["preallocate", "ondemand gc=on", "platform"] {
        assert!(passing.contains(&mode.to_string()), "{passing:?}");
    }
    assert!(report.advice.contains("XLA_PYTHON_CLIENT_PREALLOCATE"), "{}", report.advice);
    // The remedy that the report proves holds when it is followed.
    let gc = vramlab_runtime::ModeSpec::parse("ondemand gc=on").expect("a mode");
    lab.context.switch(&gc, vramlab_runtime::Policy::Migrate).expect("nothing lives");
    lab.full(&[400, 1024, 256], 0.0);
    let figures = lab.context.memory();
    assert_eq!((figures.requested_bytes, figures.bytes_in_use), (400 * MIB, 512 * MIB));
    lab.check();
}

#[test]
fn oom_owners_are_listed_largest_first() {
    let lab = dry(GIB, "preallocate");
    for (cell, (name, size)) in
        [("small", 100), ("w", 400), ("params[1].b", 200)].iter().enumerate()
    {
        lab.at(cell as u32 + 1, 1);
        let id = lab.bytes(size * MIB);
        lab.context.set_owner(id, name);
    }
    lab.at(4, 3);
    lab.try_bytes(100 * MIB).expect_err("700 of 768 are in use");
    let report = lab.context.last_oom().expect("a report");
    assert_eq!(report.verdict, Verdict::Limit);
    let owners: Vec<(&str, u64, u32)> = report
        .owners
        .iter()
        .map(|owner| (&*owner.name, owner.requested / MIB, owner.site.cell))
        .collect();
    assert_eq!(owners, [("w", 400, 2), ("params[1].b", 200, 3), ("small", 100, 1)]);
}

#[test]
fn mode_limit_named_not_the_device() {
    let lab = dry(GIB, "preallocate fraction=0.10");
    let fault = lab.try_bytes(200 * MIB).expect_err("the limit is 102.4 MiB");
    assert_eq!(lab.context.last_oom().map(|report| report.verdict), Some(Verdict::Limit));
    assert!(fault.message.contains("limit 102.4"), "{}", fault.message);
}

#[test]
fn more_than_the_device_fails_before_the_pool_is_touched() {
    for mode in ["preallocate", "ondemand", "platform"] {
        let lab = cpu(64 * MIB, mode);
        for elements in [20 << 20, 1 << 40, usize::MAX / 8] {
            let fault = lab.try_full(&[elements], 0.0).expect_err("too big");
            assert_eq!(fault.kind, FaultKind::OutOfMemory);
        }
        let report = lab.context.last_oom().expect("a report");
        assert_eq!(report.verdict, Verdict::TooBig);
        assert!(report.ladder.is_empty());
        let figures = lab.context.memory();
        assert_eq!((figures.pool_bytes, figures.driver_allocs), (0, 0));
        lab.check();
    }
}

/// Every allocation of a run fails in turn: results, the copy of a shared argument, the temporary block.
#[test]
fn a_run_that_fails_at_any_allocation_leaves_nothing() {
    let lab = cpu(4 * MIB, "preallocate");
    let dims = [5000];
    let wide = func("wide", &[f32s(&dims)], |build, params| {
        let sorted = build.op(
            "flip",
            vramlab_ir::Params::new().with("axes", vramlab_ir::Param::Ints(vec![0])),
            params,
        );
        let tanh = build.unary("tanh", params[0]);
        vec![build.binary("add", sorted, tanh), build.unary("exp", params[0]), tanh]
    });
    let values: Vec<f32> = (0..5000).map(|i| i as f32 * 0.001).collect();
    let x = lab.upload(&values, &dims);
    let holder = lab.context.share(x);
    let before = lab.context.memory();
    let mut failures = 0;
    loop {
        lab.context.fail_nth_allocation(failures + 1);
        let Err(fault) = lab.jit(&wide, &[Argument::Donated(x)]) else { break };
        assert_eq!(fault.kind, FaultKind::OutOfMemory);
        failures += 1;
        let after = lab.context.memory();
        assert_eq!(after.requested_bytes, before.requested_bytes, "failure {failures}");
        assert_eq!(after.live_arrays, before.live_arrays);
        assert_eq!(lab.context.holders(x).len(), 2, "the claim came back");
        lab.expect(x, &values);
        lab.check();
    }
    assert!(failures >= 2, "{failures} allocations");
    lab.context.fail_nth_allocation(0);
    lab.expect(holder, &values);
    lab.check();
}

#[test]
fn dead_arrays_are_collected_and_the_call_passes() {
    let lab = dry(GIB, "platform");
    let dead: Arc<Mutex<Vec<BufferId>>> = Arc::default();
    dead.lock().expect("unpoisoned").push(lab.bytes(600 * MIB));
    let (context, pile) = (Arc::downgrade(&lab.context), dead.clone());
    let collect = move || {
        let Some(context) = context.upgrade() else { return };
        pile.lock().expect("unpoisoned").drain(..).for_each(|id| context.release(id));
    };
    lab.context.set_reclaim(Rung::DeadArrays, Arc::new(collect));
    let hits = lab.context.compile_counts().eager;
    let x = lab.try_bytes(700 * MIB).expect("600 of them were dead");
    let after = lab.context.compile_counts().eager;
    assert_eq!(
        (after.misses - hits.misses, after.hits - hits.hits),
        (1, 0),
        "one call, counted once"
    );
    let notes = lab.context.take_notes();
    assert!(notes.iter().any(|note| note.contains("dead arrays gave 600.0 MiB")), "{notes:?}");
    assert_eq!(lab.context.report().retries, 1);
    lab.drop(x);
    lab.check();
}

#[test]
fn trim_says_what_it_kept_and_why() {
    let lab = dry(2 * GIB, "ondemand");
    let big = lab.bytes(512 * MIB);
    let small = lab.bytes(KIB);
    lab.context.set_owner(small, "small");
    lab.drop(big);
    let regions = lab.context.report().regions.len();
    let empty = lab.context.trimmable_bytes();
    let report = lab.context.trim();
    assert_eq!(report.released_bytes, empty);
    assert_eq!(report.kept.len() + report.released_regions as usize, regions);
    assert_eq!(report.kept_bytes, lab.context.memory().pool_bytes);
    assert!(report.kept.iter().all(|region| region.owners == ["small"]), "{report:?}");
    lab.drop(small);
    let report = lab.context.trim();
    assert_eq!((report.kept_bytes, lab.context.memory().pool_bytes), (0, 0));
    lab.check();
}
