//! The engine from outside: programs built from the op table, run on the CPU device and on the dry one.

mod caches;
mod donation;
mod figures;
mod lab;
mod loops;
mod milestone;
mod modes;
mod oom;
mod plans;
mod random;
