//! Tier 0: kernel images on the CPU, block by block.
//!
//! An image is decoded once into steps over blocks of 1024 elements that stay in the first-level cache; each step is a
//! vectorised loop chosen for the machine's instruction set ([`lanes`]). It runs at once, for every dtype, and it is
//! the oracle for code generators.

mod access;
mod chain;
mod columns;
mod contest;
mod control;
mod conv;
mod convert;
mod copy;
mod cumulative;
mod decode;
mod dot;
mod emit;
mod epilogue;
mod frame;
mod gemm;
mod lanes;
mod lower;
pub(crate) mod math;
mod number;
mod ops;
mod product;
mod reduce;
#[cfg(target_arch = "x86_64")]
mod registers;
mod rows;
mod scatter;
mod step;
mod transfer;
mod vector;

use super::isa::Isa;
use super::pool::Pool;
use super::space::DevicePtr;
use crate::LaunchError;
use access::Place;
use frame::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use vramlab_ir::Kernel;
use vramlab_ir::kernel::{Access, Body};

/// Work below this many nanoseconds stays on the caller's thread: waking the others would take as long.
const PARALLEL_NS: f64 = 100_000.0;

/// A kernel image that is ready to run.
#[derive(Debug)]
pub(super) struct Prepared {
    name: String,
    buffers: usize,
    body: Decoded,
}

#[derive(Debug)]
enum Decoded {
    Rows(Box<rows::Rows>),
    Columns(Box<columns::Columns>),
    Dot(Box<dot::Dot>),
    Cumulative(cumulative::Cumulative),
    Scatter(scatter::Scatter),
    Transfer(transfer::Transfer),
    Loop(Box<control::Loop>),
    Branch(Box<control::Branch>),
    Conv(Box<conv::Conv>),
}

/// What every body needs for a run.
struct Ready<'r> {
    kernel: &'r str,
    pool: &'r Pool,
    cancel: &'r AtomicBool,
}

impl Prepared {
    pub fn new(kernel: &Kernel, isa: Isa) -> Result<Prepared, LaunchError> {
        let body = match &kernel.body {
            Body::Rows(image) => Decoded::Rows(Box::new(rows::Rows::new(kernel, image, isa)?)),
            Body::Columns(image) => {
                Decoded::Columns(Box::new(columns::Columns::new(kernel, image, isa)?))
            }
            Body::Dot(image) => Decoded::Dot(Box::new(dot::Dot::new(kernel, image, isa)?)),
            Body::Cumulative(image) => {
                Decoded::Cumulative(cumulative::Cumulative::new(kernel, image)?)
            }
            Body::Scatter(image) => Decoded::Scatter(scatter::Scatter::new(kernel, image)?),
            Body::Transfer(image) => Decoded::Transfer(transfer::Transfer(image.clone())),
            Body::Loop(image) => Decoded::Loop(Box::new(control::Loop::new(kernel, image, isa)?)),
            Body::Branch(image) => {
                Decoded::Branch(Box::new(control::Branch::new(kernel, image, isa)?))
            }
            Body::Conv(image) => Decoded::Conv(Box::new(conv::Conv::new(kernel, image)?)),
        };
        Ok(Prepared { name: kernel.name.clone(), buffers: kernel.buffers.len(), body })
    }

    pub fn run(
        &self,
        buffers: &[DevicePtr],
        pool: &Pool,
        cancel: &AtomicBool,
    ) -> Result<(), LaunchError> {
        if buffers.len() != self.buffers {
            let what = format!("{} buffers where the image names {}", buffers.len(), self.buffers);
            return Err(LaunchError::Malformed { kernel: self.name.clone(), what });
        }
        let ready = Ready { kernel: &self.name, pool, cancel };
        match &self.body {
            Decoded::Rows(rows) => rows.run(&ready, buffers),
            Decoded::Columns(columns) => columns.run(&ready, buffers),
            Decoded::Dot(dot) => dot.run(&ready, buffers),
            Decoded::Cumulative(body) => body.run(&ready, buffers),
            Decoded::Scatter(body) => body.run(&ready, buffers),
            Decoded::Transfer(body) => body.run(&ready, buffers),
            Decoded::Loop(body) => body.run(&ready, buffers),
            Decoded::Branch(body) => body.run(&ready, buffers),
            Decoded::Conv(conv) => conv.run(&ready, buffers),
        }
    }

    pub fn code_bytes(&self) -> u64 {
        let bytes = match &self.body {
            Decoded::Rows(rows) => rows.code_bytes(),
            Decoded::Columns(columns) => columns.code_bytes(),
            Decoded::Dot(dot) => dot.code_bytes(),
            Decoded::Cumulative(_) | Decoded::Scatter(_) | Decoded::Transfer(_) => 0,
            Decoded::Loop(body) => body.code_bytes(),
            Decoded::Branch(body) => body.code_bytes(),
            Decoded::Conv(conv) => conv.code_bytes(),
        };
        (bytes + size_of::<Prepared>()) as u64
    }

    pub fn host_scratch_bytes(&self) -> u64 {
        let bytes = match &self.body {
            Decoded::Rows(rows) => rows.scratch_bytes(),
            Decoded::Columns(columns) => columns.scratch_bytes(),
            Decoded::Dot(dot) => dot.scratch_bytes(),
            Decoded::Cumulative(_) | Decoded::Scatter(_) | Decoded::Transfer(_) => 0,
            Decoded::Loop(body) => body.scratch_bytes(),
            Decoded::Branch(body) => body.scratch_bytes(),
            Decoded::Conv(conv) => conv.scratch_bytes(),
        };
        bytes as u64
    }
}

/// The buffer of a kernel over whole arrays, which holds `elements` of `size` bytes.
fn whole(
    kernel: &str,
    buffers: &[DevicePtr],
    buffer: u32,
    elements: usize,
    size: usize,
) -> Result<DevicePtr, LaunchError> {
    let malformed = |what: String| Err(LaunchError::Malformed { kernel: kernel.to_owned(), what });
    let Some(&found) = buffers.get(buffer as usize) else {
        return malformed(format!("an access names buffer {buffer}"));
    };
    let holds = found.bytes() / size;
    if elements > holds {
        return Err(LaunchError::OutOfBounds {
            kernel: kernel.to_owned(),
            buffer,
            first: 0,
            last: elements as i64 - 1,
            elements: holds as u64,
        });
    }
    if !found.as_ptr().addr().is_multiple_of(size) {
        return malformed(format!("buffer {buffer} is not aligned to its elements"));
    }
    Ok(found)
}

fn check_ranks<'a>(
    kernel: &Kernel,
    accesses: impl Iterator<Item = &'a Access>,
    rank: usize,
) -> Result<(), LaunchError> {
    for access in accesses {
        if access.strides.len() != rank {
            let what = format!("{} strides over {rank} loop dimensions", access.strides.len());
            return Err(LaunchError::Malformed { kernel: kernel.name.clone(), what });
        }
    }
    Ok(())
}

/// Reads of more bytes than this do not stay in a second-level cache.
const FAR: usize = 2 << 20;
/// Results of more bytes than this do not stay in a last-level cache.
const PAST: usize = 32 << 20;

fn bytes(places: &[Place], buffers: &[DevicePtr]) -> usize {
    places.iter().map(|place| buffers[place.buffer].bytes()).sum()
}

/// Pointers to every array of a loop, each found to lie in its buffer.
fn bind_all(
    reads: &[Place],
    writes: &[Place],
    buffers: &[DevicePtr],
    kernel: &str,
) -> Result<Bound, LaunchError> {
    let bind = |place: &Place| access::bind(place, buffers, kernel);
    let bound = Bound {
        reads: reads.iter().map(bind).collect::<Result<_, _>>()?,
        writes: writes.iter().map(bind).collect::<Result<_, _>>()?,
        aliased: reads.iter().any(|read| {
            writes.iter().any(|write| buffers[read.buffer].overlaps(buffers[write.buffer]))
        }),
        far: bytes(reads, buffers) > FAR,
        past: bytes(writes, buffers) > PAST,
    };
    Ok(bound)
}

/// Runs tasks with a frame each: on the pool, or one after the other on one frame.
fn each<F>(
    ready: &Ready,
    parallel: bool,
    tasks: usize,
    frame: impl Fn() -> F + Sync,
    work: impl Fn(&mut F, usize) + Sync,
) {
    if parallel && ready.pool.threads() > 1 && tasks > 1 {
        ready.pool.run(tasks, &|task| {
            if !ready.cancel.load(Ordering::Relaxed) {
                work(&mut frame(), task);
            }
        });
        return;
    }
    let mut frame = frame();
    for task in 0..tasks {
        if ready.cancel.load(Ordering::Relaxed) {
            return;
        }
        work(&mut frame, task);
    }
}

fn cancelled(cancel: &AtomicBool) -> Result<(), LaunchError> {
    if cancel.load(Ordering::Relaxed) { Err(LaunchError::Interrupted) } else { Ok(()) }
}
