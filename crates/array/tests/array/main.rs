//! The prelude on the reference engine.

mod control;
mod creation;
mod display;
mod elementwise;
mod engine;
mod gradients;
mod jax;
mod jit;
mod layout;
mod memory;
mod random;
mod reduce;
mod surface;
mod training;
mod trees;

use engine::Reference;
use std::sync::Arc;
use vramlab_array::ir::{Engine, Fault};
use vramlab_array::prelude::*;
use vramlab_array::{catch, with_engine};

/// Runs `body` on an engine of its own.
fn on(body: impl FnOnce(&Arc<Reference>)) {
    let engine = Reference::new();
    with_engine(Arc::clone(&engine) as Arc<dyn Engine>, || body(&engine));
}

#[track_caller]
fn assert_values(x: &Array, wanted: &[f64]) {
    let found: Vec<f64> = x.to_vec();
    let close = |(a, b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    };
    assert_eq!(found.len(), wanted.len(), "{found:?} is not {wanted:?}");
    assert!(found.iter().zip(wanted).all(close), "{found:?} is not {wanted:?}");
}

#[track_caller]
fn fault<T: std::fmt::Debug>(body: impl FnOnce() -> T) -> Fault {
    catch(body).expect_err("a fault")
}
