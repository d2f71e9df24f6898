use crate::engine::Reference;
use crate::{assert_values, fault, on};
use std::sync::Arc;
use vramlab_array::ir::{Engine, FaultKind};
use vramlab_array::prelude::*;
use vramlab_array::{catch, set_engine, with_engine};

#[test]
fn a_buffer_lives_as_long_as_a_holder() {
    on(|engine| {
        let x = ones([256]);
        assert_eq!(engine.live_bytes(), 1024);
        let y = x.clone();
        assert_eq!((engine.live_bytes(), engine.claims()), (1024, 2));
        drop(x);
        assert_eq!(engine.live_bytes(), 1024);
        let z = y.copy();
        assert_eq!(engine.live_bytes(), 2048);
        drop((y, z));
        assert_eq!(engine.claims(), 0);
    });
}

#[test]
fn consumed_operands_are_freed_and_borrowed_ones_are_not() {
    on(|engine| {
        let x = ones([256]);
        let y = tanh(exp(sin(&x)));
        assert_eq!(engine.live_bytes(), 2048);
        drop(x + y);
        assert_eq!(engine.live_bytes(), 0);
    });
}

#[test]
fn owners_are_named_by_holder() {
    on(|engine| {
        let x = ones([2]);
        x.set_owner("x");
        let y = x.clone();
        y.set_owner("y");
        assert_eq!(engine.owners(), ["x", "y"]);
        let mut holders = x.holders();
        holders.sort();
        assert_eq!(holders, ["x", "y"]);
        assert_eq!(live_arrays().len(), 2);
        assert_eq!(engine.claims(), 2);
    });
}

#[test]
fn scopes_end_also_by_a_fault() {
    on(|engine| {
        let y = scope("outer", || scope("inner", || ones([2])) * 2.0);
        assert_values(&y, &[2.0; 2]);
        let _ = catch(|| scope("failing", || zeros([2]) + zeros([3])));
        let wanted = ["begin outer", "begin inner", "end", "end", "begin failing", "end"];
        assert_eq!(engine.scopes(), wanted);
    });
}

#[test]
fn figures_come_from_the_engine() {
    on(|engine| {
        let x = ones([4]);
        let stats = memory_stats();
        assert_eq!((stats.requested_bytes, stats.live_arrays), (16, 1));
        assert!(stats.to_string().contains("requested_bytes           16"));
        reset_peak();
        x.block_until_ready();
        assert_eq!(engine.runs().last().map(String::as_str), Some("synchronize"));
    });
}

#[test]
fn the_dry_device_has_shapes_only() {
    let engine = Reference::dry();
    with_engine(engine as Arc<dyn Engine>, || {
        let x = ones([2, 3]).dot(ones([3, 4]));
        assert_eq!(x.shape(), vec![2, 4]);
        assert_eq!(fault(|| x.sum().item()).kind, FaultKind::NoData);
        assert_eq!(format!("{x}"), "f32[2,4] (dry device: no data)");
    });
}

#[test]
fn threads_share_the_process_engine_and_arrays_cross_them() {
    let engine = Reference::new();
    set_engine(Arc::clone(&engine) as Arc<dyn Engine>);
    let x = ones([3]);
    let y = std::thread::spawn(move || x + ones([3])).join().unwrap();
    assert_values(&y, &[2.0; 3]);
    // An op stays on the engine of its operands, whatever is ambient.
    on(|other| {
        assert_values(&(&y * 2.0), &[4.0; 3]);
        assert_eq!(other.runs().len(), 0);
    });
}
