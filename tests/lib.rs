//! Shared pieces of the test binary.
