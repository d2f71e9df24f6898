//! Scopes, owners, notes: what reports say.

use crate::lab::*;
use vramlab_ir::Engine;

#[test]
fn scopes_nest_and_a_cell_is_one() {
    let lab = dry(GIB, "ondemand");
    let before = lab.bytes(MIB);
    lab.context.cell_begin(7);
    let a = lab.bytes(4 * MIB);
    lab.context.scope_begin("layer1");
    let b = lab.bytes(8 * MIB);
    lab.context.scope_begin("inner");
    let c = lab.bytes(2 * MIB);
    lab.drop(c);
    let inner = lab.context.scope_end();
    lab.drop(b);
    let outer = lab.context.scope_end();
    lab.drop(before);
    let cell = lab.context.cell_end();
    assert_eq!(
        (inner.peak_bytes, inner.allocated_bytes, inner.freed_bytes),
        (15 * MIB, 2 * MIB, 2 * MIB)
    );
    assert_eq!((outer.peak_bytes, outer.end_bytes), (15 * MIB, 5 * MIB));
    assert_eq!((cell.figures.start_bytes, cell.figures.end_bytes), (MIB, 4 * MIB));
    assert_eq!((cell.figures.num_allocs, cell.figures.num_frees), (3, 3));
    let names: Vec<(&str, u32)> =
        cell.scopes.iter().map(|scope| (&*scope.figures.name, scope.depth)).collect();
    assert_eq!(names, [("inner", 2), ("layer1", 1)]);
    assert_eq!(cell.cell, 7);
    lab.drop(a);
}

#[test]
fn a_cell_closes_scopes_that_an_error_left_open() {
    let lab = dry(GIB, "ondemand");
    lab.context.cell_begin(1);
    lab.context.scope_begin("broken");
    let cell = lab.context.cell_end();
    assert_eq!(cell.scopes.len(), 1);
    lab.context.cell_begin(2);
    assert!(lab.context.cell_end().scopes.is_empty());
}

#[test]
fn peak_in_a_cell_is_never_below_its_ends() {
    let lab = dry(GIB, "platform");
    let a = lab.bytes(8 * MIB);
    lab.context.cell_begin(1);
    lab.drop(a);
    lab.context.reset_peak();
    let b = lab.bytes(2 * MIB);
    assert_eq!(lab.context.memory().peak_bytes_in_use, 2 * MIB, "since the reset");
    let cell = lab.context.cell_end();
    assert_eq!(cell.figures.peak_bytes, 8 * MIB, "of the whole cell");
    assert_eq!(cell.figures.peak_bytes_in_use, 8 * MIB);
    lab.drop(b);
}

#[test]
fn owners_follow_the_claims() {
    let lab = dry(GIB, "ondemand");
    lab.at(3, 2);
    let x = lab.bytes(MIB);
    let first = |lab: &Lab| lab.context.owners()[0].clone();
    assert_eq!(first(&lab).owner, "made in cell 3, line 2");
    assert_eq!((first(&lab).cell, first(&lab).line), (3, 2));
    lab.context.set_owner(x, "x");
    assert_eq!(first(&lab).owner, "x");
    let clone = lab.context.share(x);
    lab.context.set_owner(clone, "Out[3]");
    assert_eq!(lab.context.holders(x), ["x", "Out[3]"]);
    assert_eq!(first(&lab).owner, "x", "listed once, under the first name");
    assert_eq!(lab.context.other_holders(x), ["Out[3]"]);
    lab.drop(x);
    assert_eq!(first(&lab).owner, "Out[3]");
    lab.context.set_owner(clone, "");
    assert_eq!(first(&lab).owner, "made in cell 3, line 2");
    lab.drop(clone);
    assert!(lab.context.owners().is_empty());
}

#[test]
fn a_share_of_a_dead_array_is_dead() {
    let lab = dry(GIB, "ondemand");
    let x = lab.bytes(MIB);
    lab.drop(x);
    let dead = lab.context.share(x);
    lab.context.set_owner(dead, "ghost");
    lab.drop(dead);
    assert!(lab.context.holders(dead).is_empty());
    lab.check();
}

#[test]
fn regions_stand_in_the_order_of_their_making() {
    let lab = dry(GIB, "ondemand");
    for size in [KIB, 3 * MIB, 10 * MIB, 40 * MIB] {
        lab.bytes(size);
    }
    let regions: Vec<u64> = lab.context.report().regions.iter().map(|r| r.bytes / MIB).collect();
    assert_eq!(regions, [2, 4, 16, 64]);
    assert_eq!(lab.context.memory().bytes_in_use, 88_081_408);
    let map = lab.context.chunks();
    assert_eq!(map.iter().map(|chunk| chunk.bytes).sum::<u64>(), 86 * MIB);
    let arrays = lab.context.buffers();
    assert_eq!(arrays.iter().map(|array| array.region).collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
}

/// A context may be used from several threads at once.
#[test]
fn threads_share_a_context() {
    let lab = cpu(64 * MIB, "ondemand");
    let context = lab.context.clone();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let context = context.clone();
            scope.spawn(move || {
                for i in 0..200u32 {
                    let value = (thread * 1000 + i) as f32;
                    let bytes: Vec<u8> = [value; 64].iter().flat_map(|v| v.to_le_bytes()).collect();
                    let id =
                        context.upload(&f32s(&[64]), &bytes, Default::default()).expect("it fits");
                    let clone = context.share(id);
                    context.release(id);
                    assert_eq!(context.download(clone), Ok(bytes));
                    context.release(clone);
                }
            });
        }
    });
    assert_eq!(lab.context.memory().live_arrays, 0);
    lab.check();
}
