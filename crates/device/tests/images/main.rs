//! Kernel images on the CPU device, held to their meaning.

mod chains;
mod ops;
mod random;
mod smoke;
mod support;
mod threads;
mod transfers;
mod whole;
