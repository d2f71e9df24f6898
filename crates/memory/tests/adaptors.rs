//! Each adaptor's one deed.

use vramlab_memory::adaptors::{FailNth, Limit, Mark, MarkKind, Poison, Reclaim};
use vramlab_memory::{
    Bfc, BfcOptions, Block, Cause, Fake, MIB, MemoryResource, Platform, Stream, stack,
};

const S: Stream = Stream(0);

#[test]
fn limit_counts_slack() {
    let mut fake = Fake::new(64 * MIB);
    let mut stack = Limit::new(Bfc::new(BfcOptions::ondemand(64 * MIB, false)), 3 * MIB);
    let block = stack.allocate(2 * MIB, S, &mut fake).expect("under the limit");
    let error = stack.allocate(2 * MIB, S, &mut fake).expect_err("over the limit");
    assert_eq!((error.limit, error.in_use, error.cause), (3 * MIB, 2 * MIB, Cause::Limit));
    // 1.5 MiB of a region of 4 MiB is split; 1 MiB and a byte of a 2 MiB chunk would bring slack.
    let small = stack.allocate(MIB, S, &mut fake).expect("fits");
    assert_eq!(stack.stats().bytes_in_use, 3 * MIB);
    stack.deallocate(small, S, &mut fake);
    stack.deallocate(block, S, &mut fake);
}

#[test]
fn fail_nth_fails_once() {
    let mut fake = Fake::new(64 * MIB);
    let mut stack = FailNth::new(Platform::new(64 * MIB), 2);
    let first = stack.allocate(1, S, &mut fake).expect("the first passes");
    let before = stack.stats();
    let error = stack.allocate(1, S, &mut fake).expect_err("the second fails");
    assert_eq!(error.cause, Cause::Injected);
    assert_eq!(stack.stats(), before);
    let third = stack.allocate(1, S, &mut fake).expect("the third passes");
    stack.deallocate(first, S, &mut fake);
    stack.deallocate(third, S, &mut fake);
}

#[test]
fn poison_names_each_range_in_order() {
    let mut fake = Fake::new(64 * MIB);
    let mut stack = Poison::new(Bfc::new(BfcOptions::preallocate(8 * MIB)));
    let block = stack.allocate(1000, S, &mut fake).expect("fits");
    let (address, bytes) = (block.address(), block.granted());
    stack.deallocate(block, S, &mut fake);
    let mark = |kind| Mark { address, bytes, kind };
    assert_eq!(stack.take_marks(), [mark(MarkKind::Allocated), mark(MarkKind::Freed)]);
    assert_eq!(stack.take_marks(), []);
}

#[test]
fn reclaim_takes_what_is_given_up_and_retries() {
    let mut fake = Fake::new(4 * MIB);
    let mut platform = Platform::new(4 * MIB);
    let cached = platform.allocate(3 * MIB, S, &mut fake).expect("fits");
    let mut cache: Vec<Block> = vec![cached];
    let give_up = Box::new(move |_wanted| std::mem::take(&mut cache));
    let mut stack = Reclaim::new(platform, give_up);
    let block = stack.allocate(2 * MIB, S, &mut fake).expect("passes once the cache gave up");
    assert_eq!(stack.stats().bytes_in_use, 2 * MIB);
    stack.allocate(3 * MIB, S, &mut fake).expect_err("nothing is left to give up");
    stack.deallocate(block, S, &mut fake);
}

#[test]
fn a_stack_prints_itself_top_first() {
    let stack = Limit::new(Bfc::new(BfcOptions::ondemand(64 * MIB, false)), 3 * MIB);
    assert_eq!(
        stack::describe(&stack, "a device"),
        "limit: 3.0 MiB in use → bfc: regions from 2 MiB, doubling, up to 64.0 MiB → a device"
    );
}
