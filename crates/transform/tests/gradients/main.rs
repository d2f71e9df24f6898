//! Transforms against what they mean, by the interpreter in f64: gradients against central
//! differences, batches against one example after the other.

mod batching;
mod control;
mod differences;
mod forward;
mod jax;
mod offload;
mod plans;
mod programs;
mod support;
