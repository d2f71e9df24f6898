//! Loops and branches, one kernel after the other.

use super::{Memory, Order, Places, Span, run_kernels};
use vramlab_ir::DType;
use vramlab_ir::kernel::{Branch, Feed, Loop, ResultSource, Routine, Trips};

pub fn looped(memory: &mut Memory, buffers: &[Span], body: &Loop, order: Order) {
    let at = |&buffer: &u32| buffers[buffer as usize];
    let mut storages: Vec<Span> = body.storages.iter().map(at).collect();
    let scratch = [&body.scratch, &body.host_scratch].map(|number| number.as_ref().map(at));
    // All are read before one is written: an init may lie where another carry begins.
    let first: Vec<Vec<u8>> =
        body.inits.iter().map(at).map(|init| memory.bytes(init).to_vec()).collect();
    for (first, &storage) in first.iter().zip(&storages) {
        memory.bytes(storage).copy_from_slice(first);
    }
    let carries = body.inits.len();
    let mut done = 0;
    loop {
        let counter = match &body.trips {
            Trips::Counted { length, .. } if done == *length => break,
            Trips::Counted { length, reverse: true } => length - 1 - done,
            Trips::Counted { .. } => done,
            Trips::While { condition, arguments, holds } => {
                let fresh = [at(holds)];
                let arguments = feed(memory, arguments, buffers, &storages, 0);
                routine(memory, condition, &arguments, &fresh, scratch, order);
                let result = match condition.results[0] {
                    ResultSource::Fresh { .. } => fresh[0],
                    ResultSource::Shared { argument } => arguments[argument as usize],
                    source => panic!("a condition gives {source:?}"),
                };
                if memory.get(result, DType::Bool, 0).bits() == 0 {
                    break;
                }
                0
            }
        };
        let arguments = feed(memory, &body.arguments, buffers, &storages, counter);
        routine(memory, &body.body, &arguments, &storages[carries..], scratch, order);
        storages = body.next.iter().map(|&from| storages[from as usize]).collect();
        done += 1;
    }
    let ends: Vec<Span> = body.results.iter().map(at).collect();
    if let Trips::Counted { .. } = body.trips {
        assert_eq!(storages[..carries], ends, "a counted loop ends where its results are");
    }
    let last: Vec<Vec<u8>> =
        storages[..carries].iter().map(|&s| memory.bytes(s).to_vec()).collect();
    for (last, end) in last.iter().zip(ends) {
        memory.bytes(end).copy_from_slice(last);
    }
}

fn feed(
    memory: &mut Memory,
    feeds: &[Feed],
    buffers: &[Span],
    storages: &[Span],
    counter: usize,
) -> Vec<Span> {
    let feed = |feed: &Feed| match *feed {
        Feed::Buffer(buffer) => buffers[buffer as usize],
        Feed::Carry(carry) => storages[carry as usize],
        Feed::Counter => memory.add((counter as i32).to_le_bytes().to_vec()),
    };
    feeds.iter().map(feed).collect()
}

fn routine(
    memory: &mut Memory,
    routine: &Routine,
    arguments: &[Span],
    fresh: &[Span],
    [temporary, host]: [Option<Span>; 2],
    order: Order,
) {
    let places = Places { arguments, fresh, temporary, host };
    run_kernels(memory, &routine.kernels, &routine.slots, &places, order);
}

pub fn branch(memory: &mut Memory, buffers: &[Span], body: &Branch, order: Order) {
    let at = |&buffer: &u32| buffers[buffer as usize];
    let holds = memory.get(at(&body.condition), DType::Bool, 0).bits() != 0;
    let taken = if holds { &body.on_true } else { &body.on_false };
    let arguments: Vec<Span> = body.arguments.iter().map(at).collect();
    let results: Vec<Span> = body.results.iter().map(at).collect();
    let mut fresh = vec![None; taken.fresh_bytes.len()];
    for (source, &result) in taken.results.iter().zip(&results) {
        if let ResultSource::Fresh { index } = *source {
            fresh[index as usize] = Some(result);
        }
    }
    let fresh: Vec<Span> =
        fresh.into_iter().map(|span| span.expect("a fresh buffer is a result's")).collect();
    let scratch = [&body.scratch, &body.host_scratch].map(|number| number.as_ref().map(at));
    routine(memory, taken, &arguments, &fresh, scratch, order);
    for (source, &result) in taken.results.iter().zip(&results) {
        match *source {
            ResultSource::Fresh { .. } => {}
            ResultSource::Donated { argument } | ResultSource::Shared { argument } => {
                memory.copy(arguments[argument as usize], result);
            }
            ResultSource::Same { result: other } => memory.copy(results[other as usize], result),
        }
    }
}
