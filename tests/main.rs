//! One test binary for what crosses crates.

mod bad_input;
mod binary;
mod check;
mod engine;
mod filetests;
mod keys;
mod loops;
mod offload;
mod programs;
mod recordings;
mod run_json;
mod sharing;
// Random programs with loops, and how near results must be: shared with the compiler's own tests.
#[path = "../crates/compiler/tests/support/mod.rs"]
mod support;
mod terminal;
mod tidy;
mod tiers;
mod transcripts;
mod why;
