//! One test binary for what crosses crates.

mod tidy;
