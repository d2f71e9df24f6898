//! One test binary for what crosses crates.

mod filetests;
mod programs;
mod tidy;
mod tiers;
