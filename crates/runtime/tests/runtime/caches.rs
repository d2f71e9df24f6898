//! The compile cache: `cache-200-shapes`, `cache-selective`, counts, budget.

use crate::lab::*;
use std::sync::Arc;
use vramlab_ir::{Argument, CompileKind, CompileRequest, Engine, FaultKind, Func};
use vramlab_runtime::{CacheSelection, Config, Context, DeviceConfig, ModeSpec};

fn double(name: &str, n: usize) -> Arc<Func> {
    func(name, &[f32s(&[n])], |build, all| {
        let tanh = build.unary("tanh", all[0]);
        vec![build.binary("add", tanh, all[0])]
    })
}

#[test]
fn cache_200_shapes() {
    let lab = cpu(16 * MIB, "ondemand");
    let call = |n: usize| {
        let x = lab.upload(&vec![1.0; n], &[n]);
        let y = lab.jit(&double("double", n), &[Argument::Borrowed(x)]).expect("fits")[0];
        lab.drop(x);
        y
    };
    let kept = call(1);
    (2..=200).for_each(|n| lab.drop(call(n)));
    let entries = lab.context.caches();
    assert_eq!(entries.len(), 200);
    assert!(entries.iter().all(|entry| entry.code_bytes < 20 * KIB), "{:?}", entries.last());
    assert!(entries.iter().all(|entry| entry.code_bytes > 500 && entry.compile_ns > 0));
    assert_eq!(entries[4].signature, "(f32[5]) -> f32[5]");
    let bytes: u64 = entries.iter().map(|entry| entry.code_bytes).sum();
    let counts = lab.context.compile_counts();
    assert_eq!((counts.entries, counts.bytes), (200, bytes));
    assert_eq!((counts.jit.misses, counts.jit.hits), (200, 0));
    lab.drop(call(7));
    assert_eq!(lab.context.compile_counts().jit.hits, 1);
    let would = lab.context.would_clear(&CacheSelection::All);
    assert_eq!(lab.context.clear_caches(), (200, bytes));
    assert_eq!((would.entries, would.bytes), (200, bytes));
    let counts = lab.context.compile_counts();
    assert_eq!((counts.entries, counts.bytes), (0, 0));
    assert_eq!(lab.values(kept), [1.0f32.tanh() + 1.0], "arrays are untouched");
    lab.drop(call(7));
    assert_eq!(lab.context.compile_counts().jit.misses, 201, "compiled again");
    lab.check();
}

#[test]
fn cache_selective() {
    let lab = cpu(16 * MIB, "ondemand");
    let call = |name: &str, op: &str, n: usize| {
        let f = func(name, &[f32s(&[n])], |build, all| {
            let once = build.unary(op, all[0]);
            vec![build.unary("exp", once)]
        });
        let x = lab.upload(&vec![1.0; n], &[n]);
        lab.jit(&f, &[Argument::Borrowed(x)]).expect("fits");
    };
    (1..=4).for_each(|n| call("f", "sin", n));
    (1..=3).for_each(|n| call("g", "cos", n));
    let cleared = lab.context.clear(&CacheSelection::Named("f".to_string()));
    assert_eq!((cleared.entries, cleared.names), (4, vec![("f".to_string(), 4)]));
    assert_eq!(lab.context.clear(&CacheSelection::Named("nobody".to_string())).entries, 0);
    std::thread::sleep(std::time::Duration::from_millis(20));
    call("g", "cos", 2);
    let cleared = lab.context.clear(&CacheSelection::OlderThan(10_000_000));
    assert_eq!(cleared.entries, 2, "one of three was used a moment ago");
    (1..=5).for_each(|n| call("h", "tan", n));
    let entries = lab.context.caches();
    let last = entries.iter().map(|entry| entry.code_bytes).max().expect("entries");
    let before: u64 = entries.iter().map(|entry| entry.code_bytes).sum();
    let cleared = lab.context.clear(&CacheSelection::UntilUnder(2 * last));
    let counts = lab.context.compile_counts();
    assert!(counts.bytes <= 2 * last && counts.entries >= 1, "{counts:?}");
    assert_eq!(before - cleared.bytes, counts.bytes);
    let left = lab.context.caches();
    assert!(left.iter().all(|entry| entry.names == ["h"]), "the oldest went first");
}

#[test]
fn names_and_places_do_not_count_and_structure_does() {
    let lab = cpu(MIB, "ondemand");
    let id = |func: &Arc<Func>, donate: bool| lab.compile(func, &[donate], CompileKind::Jit);
    let first = id(&double("f", 8), false);
    assert_eq!(id(&double("g", 8), false), first);
    assert_ne!(id(&double("f", 9), false), first, "another shape");
    assert_ne!(id(&double("f", 8), true), first, "another donation");
    let entries = lab.context.caches();
    assert_eq!(entries[0].names, ["f", "g"]);
    assert_eq!(entries[2].donated, [0]);
    let cleared = lab.context.clear(&CacheSelection::Named("g".to_string()));
    assert_eq!(cleared.entries, 1, "found under its second name");
}

#[test]
fn an_evicted_executable_is_a_fault_of_its_own() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.full(&[8], 1.0);
    let executable = lab.compile(&double("f", 8), &[false], CompileKind::Jit);
    lab.context.clear_caches();
    let again = lab.context.execute(executable, &[Argument::Borrowed(x)], lab.origin());
    assert_eq!(again.expect_err("gone").kind, FaultKind::Evicted);
    assert!(lab.context.explain(executable).is_none());
}

#[test]
fn the_budget_pushes_out_the_least_recently_used() {
    let config = Config {
        device: DeviceConfig::Dry { capacity: GIB },
        mode: ModeSpec::parse("ondemand").expect("a mode"),
        cache_budget: 40 * KIB,
        ..Config::default()
    };
    let context = Context::new(config).expect("a device");
    let mut first = None;
    for n in 1..=100 {
        let request = CompileRequest {
            func: double("f", n),
            donate: vec![false],
            kind: CompileKind::Jit,
            memory_limit: None,
            leaner: Vec::new(),
        };
        let id = context.compile(&request).expect("it compiles");
        first.get_or_insert(id);
        let counts = context.compile_counts();
        assert!(counts.bytes <= 40 * KIB, "{counts:?}");
    }
    let counts = context.compile_counts();
    assert_eq!(counts.entries + counts.evicted, 100);
    assert!(counts.evicted > 0);
    assert!(context.explain(first.expect("compiled")).is_none());
}

#[test]
fn eager_calls_are_counted_apart() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.full(&[8], 1.0);
    (0..5).for_each(|_| {
        lab.op("tanh", &[x]);
    });
    let counts = lab.context.compile_counts();
    assert_eq!((counts.jit.hits, counts.jit.misses), (0, 0));
    assert_eq!((counts.eager.misses, counts.eager.hits), (2, 4));
}
