//! One test binary for what crosses crates.

mod bad_input;
mod binary;
mod check;
mod engine;
mod filetests;
mod keys;
mod programs;
mod run_json;
mod sharing;
mod terminal;
mod tidy;
mod tiers;
mod transcripts;
mod why;
