//! Gradients against what they mean: central differences of the interpreter in f64.

mod differences;
mod programs;
mod support;
