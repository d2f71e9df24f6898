//! One test binary for what crosses crates.

mod engine;
mod filetests;
mod programs;
mod tidy;
mod tiers;
