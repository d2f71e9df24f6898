//! Reported cases of device memory with known answers; each test carries the id of its case.

use vramlab_memory::heap::Request;
use vramlab_memory::oom::{LadderFailure, Rung, verdict};
use vramlab_memory::{
    AllocError, Bfc, BfcOptions, Block, Fake, GIB, Heap, KIB, MIB, MemoryResource, ModeSpec, Owner,
    Stream, Verdict, Warning,
};

const S: Stream = Stream(0);

fn heap(capacity: u64, mode: &str) -> Heap {
    heap_beside(capacity, 0, mode)
}

fn heap_beside(capacity: u64, others: u64, mode: &str) -> Heap {
    let mut fake = Fake::new(capacity);
    fake.set_others(others);
    Heap::new(Box::new(fake), ModeSpec::parse(mode).expect("a valid mode"))
}

fn take(heap: &mut Heap, bytes: u64) -> Block {
    heap.allocate(Request::of(bytes)).unwrap_or_else(|error| panic!("{error}"))
}

fn fails(heap: &mut Heap, bytes: u64) -> AllocError {
    heap.allocate(Request::of(bytes)).expect_err("the request fails")
}

fn give(heap: &mut Heap, block: Block) {
    heap.deallocate(block, S, 0);
}

fn region_sizes(heap: &Heap) -> Vec<u64> {
    heap.regions().iter().map(|region| region.bytes / MIB).collect()
}

#[test]
fn bfc_growth() {
    let mut heap = heap(GIB, "ondemand");
    assert_eq!(heap.stats().bytes_limit, 768 * MIB);
    let blocks: Vec<Block> =
        [KIB, 3 * MIB, 10 * MIB, 40 * MIB].map(|bytes| take(&mut heap, bytes)).into();
    assert_eq!(region_sizes(&heap), [2, 4, 16, 64]);
    assert_eq!(heap.stats().bytes_in_use, 88_081_408);
    for block in blocks {
        give(&mut heap, block);
    }
}

#[test]
fn bfc_split() {
    for (chunk, asked, granted) in [(100, 50, 50), (100, 51, 100), (400, 272, 272), (400, 273, 400)]
    {
        let mut fake = Fake::new(GIB);
        let mut bfc = Bfc::new(BfcOptions::preallocate(chunk * MIB));
        let block = bfc.allocate(asked * MIB, S, &mut fake).expect("fits");
        assert_eq!(block.granted(), granted * MIB, "{chunk} asked {asked}");
        bfc.deallocate(block, S, &mut fake);
    }
}

#[test]
fn bfc_checkerboard() {
    for mode in ["preallocate", "ondemand"] {
        let mut heap = heap(GIB, mode);
        let blocks: Vec<Block> = (0..48).map(|_| take(&mut heap, 16 * MIB)).collect();
        let mut kept = Vec::new();
        for (index, block) in blocks.into_iter().enumerate() {
            if index % 2 == 0 {
                kept.push(block);
            } else {
                give(&mut heap, block);
            }
        }
        let error = fails(&mut heap, 32 * MIB);
        assert_eq!(verdict(&error, 0), Verdict::Fragmented);
        let stats = heap.stats();
        assert_eq!(format!("{:.4}", stats.fragmentation()), "0.9583", "{mode}");
        assert_eq!(stats.largest_free_block_bytes, 16 * MIB);
        if mode == "ondemand" {
            assert_eq!(region_sizes(&heap), [16, 16, 32, 64, 128, 256, 256]);
        }
    }
}

fn growing_temps(heap: &mut Heap) {
    for n in (20..=200).step_by(20) {
        let block = take(heap, n * MIB);
        give(heap, block);
    }
}

#[test]
fn bfc_growing_temp() {
    let mut preallocated = heap(GIB, "preallocate");
    growing_temps(&mut preallocated);
    let block = take(&mut preallocated, 400 * MIB);
    give(&mut preallocated, block);

    let mut growing = heap(GIB, "ondemand");
    growing_temps(&mut growing);
    let error = fails(&mut growing, 400 * MIB);
    assert_eq!(verdict(&error, 0), Verdict::Fragmented);
    let stats = growing.stats();
    assert_eq!((stats.bytes_in_use, stats.pool_bytes), (0, 480 * MIB));
    assert_eq!(region_sizes(&growing), [32, 64, 128, 256]);
    assert_eq!(format!("{:.4}", stats.fragmentation()), "0.4667");

    let mut collected = heap(GIB, "ondemand gc=on");
    growing_temps(&mut collected);
    let block = take(&mut collected, 400 * MIB);
    assert_eq!(collected.stats().pool_bytes, 512 * MIB);
    assert_eq!(collected.stats().driver_frees, 4);
    give(&mut collected, block);
}

#[test]
fn bfc_full_pool() {
    let mut heap = heap(GIB, "preallocate");
    let block = take(&mut heap, 768 * MIB);
    assert_eq!(heap.stats().fragmentation(), 0.0);
    give(&mut heap, block);
}

#[test]
fn mode_one_add() {
    let mut heap = heap(GIB, "ondemand");
    let blocks: Vec<Block> = (0..3).map(|_| take(&mut heap, 4)).collect();
    assert_eq!(heap.stats().pool_bytes, 2 * MIB);
    for block in blocks {
        give(&mut heap, block);
    }
}

#[test]
fn mode_off_spellings() {
    for off in ["off", "no", "0", "false", "False", "OFF"] {
        let spec = ModeSpec::parse(&format!("ondemand gc={off}")).expect("a word for off");
        assert!(!spec.switch("gc"), "{off}");
    }
    for on in ["on", "yes", "1", "true", "True"] {
        let spec = ModeSpec::parse(&format!("ondemand gc={on}")).expect("a word for on");
        assert!(spec.switch("gc"), "{on}");
    }
    let wrong = ModeSpec::parse("ondemand gc=maybe").expect_err("neither on nor off").to_string();
    assert!(wrong.contains("maybe") && wrong.contains("on, yes, 1, true or off, no, 0, false"));
}

#[test]
fn mode_fraction_of_total() {
    let sixteen = 16 * GIB;
    let limit = (0.15 * sixteen as f64).floor() as u64;
    let mut others = 0;
    for _ in 0..6 {
        let mut heap = heap_beside(sixteen, others, "ondemand fraction=0.15");
        assert_eq!(heap.stats().bytes_limit, limit);
        let block = take(&mut heap, limit / 256 * 256);
        others += heap.stats().pool_bytes;
        give(&mut heap, block);
    }
    assert!(others > 14 * GIB);
}

#[test]
fn mode_backoff() {
    let mut heap = heap_beside(GIB, 512 * MIB, "preallocate fraction=0.75");
    let block = take(&mut heap, MIB);
    let stats = heap.stats();
    assert_eq!(stats.pool_bytes, 528_361_728);
    assert_eq!((stats.driver_allocs, stats.driver_refusals), (1, 4));
    let warning = Warning::BackedOff {
        wanted: 768 * MIB,
        granted: 528_361_728,
        driver_calls: 5,
        others: 512 * MIB,
    };
    assert_eq!(heap.take_warnings(), [warning]);
    assert_eq!(heap.take_warnings(), []);
    give(&mut heap, block);
}

#[test]
fn mode_two_sessions() {
    let pools = |fractions: [&str; 2]| {
        let mut others = 0;
        fractions.map(|fraction| {
            let mut heap =
                heap_beside(16 * GIB, others, &format!("preallocate fraction={fraction}"));
            let block = take(&mut heap, MIB);
            let pool = heap.stats().pool_bytes;
            give(&mut heap, block);
            others += pool;
            pool as f64 / GIB as f64
        })
    };
    let [first, second] = pools(["0.75", "0.75"]);
    assert_eq!(first, 12.0);
    assert_eq!(format!("{second:.2}"), "3.77");
    let both = pools(["0.45", "0.45"]);
    assert_eq!(both.map(|pool| format!("{pool:.1}")), ["7.2", "7.2"]);
}

#[test]
fn mode_limit_named() {
    let mut heap = heap(GIB, "preallocate fraction=.10");
    let error = fails(&mut heap, 200 * MIB);
    assert_eq!(verdict(&error, 0), Verdict::Limit);
    assert_eq!(error.limit, (0.1 * GIB as f64) as u64);
}

#[test]
fn guest_starved() {
    // A guest asks the driver beside a pool that holds nearly everything and uses nothing.
    let mut heap = heap(GIB, "preallocate fraction=0.98");
    let block = take(&mut heap, MIB);
    give(&mut heap, block);
    let refused = heap.invite(64 * MIB, 0).expect_err("the guest fails");
    let (device, stats) = (heap.device(), heap.stats());
    assert_eq!((device.free / MIB, device.held / MIB), (20, 1003));
    assert_eq!(stats.bytes_in_use, 0);
    let report = heap.explain_guest(64 * MIB);
    assert_eq!(refused.refusal.as_ref().map(|refusal| refusal.free / MIB), Some(20));
    assert_eq!(report.modest.as_ref().and_then(ModeSpec::fraction), Some(0.9));
    assert_eq!(report.trimmable, device.held);
    assert_eq!((report.driver_free / MIB, report.held / MIB, report.live), (20, 1003, 0));
    let passing: Vec<String> = report.passing.iter().map(ToString::to_string).collect();
    let expected =
        ["ondemand fraction=0.98", "ondemand fraction=0.98 gc=on", "platform", "caching"];
    assert_eq!(passing, expected);
    // And so it is: the same session in such a mode leaves room.
    let mut modest = self::heap(GIB, "platform");
    let block = take(&mut modest, MIB);
    give(&mut modest, block);
    let guest = modest.invite(64 * MIB, 0).expect("the guest passes");
    assert_eq!((modest.device().others, modest.device().held), (64 * MIB, 0));
    assert_eq!(modest.dismiss(Some(guest + 1)), (0, 0));
    assert_eq!(modest.dismiss(Some(guest)), (1, 64 * MIB));
    // The other order: the guest is there first, and the pool backs off.
    let mut heap = self::heap(GIB, "preallocate fraction=0.98");
    heap.invite(64 * MIB, 0).expect("all is free");
    let block = take(&mut heap, MIB);
    assert_eq!(heap.stats().pool_bytes, 947_040_256);
    let warnings = heap.take_warnings();
    assert!(matches!(warnings[..], [Warning::BackedOff { others, .. }] if others == 64 * MIB));
    let error = fails(&mut heap, 940 * MIB);
    assert_eq!(error.others, 64 * MIB);
    // The pool that backed off and the rest of the device would do if they could join; alone it would have passed.
    let report = heap.explain(&LadderFailure { error, steps: Vec::new(), retries: 0 }, 0);
    assert_eq!((report.verdict, report.passes_alone), (Verdict::OtherProcess, true));
    let text = report.verdict_text();
    assert!(text.contains("guest 1 in this process 64.0") && text.contains("replayed"), "{text}");
    give(&mut heap, block);
    assert_eq!(heap.dismiss(None), (1, 64 * MIB));
    assert_eq!(heap.device().others, 0);
}

#[test]
fn guest_verdict() {
    for mode in
        ["preallocate", "ondemand", "ondemand gc=on", "platform", "caching", "vmm", "cuda_async"]
    {
        let mut heap = heap_beside(24 * GIB, 24 * GIB - 64 * MIB, mode);
        let mut blocks = Vec::new();
        let error = loop {
            match heap.allocate(Request::of(6_291_456)) {
                Ok(block) => blocks.push(block),
                Err(error) => break error,
            }
        };
        assert_eq!(verdict(&error, 0), Verdict::OtherProcess, "{mode}");
        // With holes in the pool it is still the other process.
        let hole = blocks.remove(1);
        give(&mut heap, hole);
        let error = fails(&mut heap, 16 * MIB);
        assert_eq!(verdict(&error, 0), Verdict::OtherProcess, "{mode}");
        for block in blocks {
            give(&mut heap, block);
        }
    }
}

#[test]
fn trim_says() {
    let mut heap = heap(GIB, "ondemand");
    let owner = heap.ledger_mut().intern(Owner::Variable("small".into()));
    let small = heap.allocate(Request { owner, ..Request::of(KIB) }).expect("fits");
    let large = take(&mut heap, 512 * MIB);
    let pool = heap.stats().pool_bytes;
    give(&mut heap, large);
    let trimmed = heap.trim(0);
    assert_eq!(trimmed.released_bytes, pool - 2 * MIB);
    assert_eq!(trimmed.released_regions, 1);
    assert_eq!(trimmed.kept_bytes(), 2 * MIB);
    let pinned = heap.ledger().find(trimmed.kept[0].blocks[0]).expect("the pinning block is live");
    assert_eq!(heap.ledger().owner(pinned.owner).to_string(), "small");
    assert_eq!(heap.stats().pool_bytes, 2 * MIB);
    give(&mut heap, small);
}

#[test]
fn limit_thirds() {
    for mode in ["platform", "preallocate fraction=1", "ondemand fraction=1 gc=on"] {
        let mut heap = heap(10 * GIB, mode);
        let first = take(&mut heap, 3 * GIB);
        let second = take(&mut heap, 3 * GIB);
        give(&mut heap, second);
        let third = take(&mut heap, 6 * GIB);
        assert_eq!(heap.stats().requested_bytes, 9 * GIB, "{mode}");
        give(&mut heap, first);
        give(&mut heap, third);
    }
}

#[test]
fn loop_steady() {
    let bytes = 32 * 4 * 84 * 84 * 4;
    for mode in
        ["preallocate", "ondemand", "ondemand gc=on", "platform", "caching", "vmm", "cuda_async"]
    {
        let mut heap = heap(GIB, mode);
        for _ in 0..10_000 {
            let block = take(&mut heap, bytes);
            give(&mut heap, block);
        }
        assert!(heap.stats().peak_bytes_in_use <= 2 * Bfc::rounded(bytes) * 2, "{mode}");
        assert_eq!(heap.stats().bytes_in_use, 0);
        let steady = heap.stats().pool_bytes;
        let block = take(&mut heap, bytes);
        assert!(heap.stats().pool_bytes == steady || mode == "platform", "{mode}");
        give(&mut heap, block);
    }
}

fn climb(heap: &mut Heap, bytes: u64, dead: &mut Vec<Block>) -> Result<u32, Box<LadderFailure>> {
    let mut collect = |heap: &mut Heap| {
        let freed = dead.iter().map(Block::granted).sum();
        dead.drain(..).for_each(|block| heap.deallocate(block, S, 0));
        freed
    };
    let mut rungs = [Rung { name: "dead arrays", free: &mut collect }];
    match heap.allocate_with(Request::of(bytes), &mut rungs) {
        Ok(found) => {
            heap.deallocate(found.block, S, 0);
            Ok(found.retries)
        }
        Err(failure) => Err(failure),
    }
}

#[test]
fn limit_trim_retry_through_the_ladder() {
    let mut heap = heap(GIB, "platform");
    let mut dead = vec![take(&mut heap, 512 * MIB)];
    assert_eq!(climb(&mut heap, 768 * MIB, &mut dead), Ok(1));
}

#[test]
fn oom_owners() {
    let mut heap = heap(GIB, "preallocate");
    heap.ledger_mut().begin_cell(0, 3);
    let mut take_as = |name: &str, bytes: u64| {
        let owner = heap.ledger_mut().intern(Owner::Variable(name.into()));
        heap.allocate(Request { owner, ..Request::of(bytes) }).expect("fits")
    };
    let blocks =
        [take_as("w", 100 * MIB), take_as("params[3].w", 300 * MIB), take_as("w", 100 * MIB)];
    let failure = climb(&mut heap, 400 * MIB, &mut Vec::new()).expect_err("268 are left");
    let report = heap.explain(&failure, 0);
    let owners: Vec<_> =
        report.owners.iter().map(|o| (o.name.as_str(), o.bytes / MIB, o.blocks)).collect();
    assert_eq!(owners, [("params[3].w", 300, 1), ("w", 200, 2)]);
    assert_eq!((report.verdict, report.site.cell), (Verdict::Limit, 3));
    // 500 and 400 are more than 768 and less than the device.
    assert!(report.passing().contains(&"platform".to_string()), "{:?}", report.remedies);
    assert!(report.passing().contains(&"preallocate fraction=0.9".to_string()));
    assert!(report.verdict_text().starts_with("LIMIT: 500.0 in use and 400.0 asked"));
    for block in blocks {
        give(&mut heap, block);
    }
}

#[test]
fn oom_repeat() {
    for mode in
        ["preallocate", "ondemand", "ondemand gc=on", "platform", "caching", "vmm", "cuda_async"]
    {
        let mut heap = heap(256 * MIB, mode);
        let mut fails_at = || {
            let mut blocks = Vec::new();
            while let Ok(block) = heap.allocate(Request::of(10 * MIB)) {
                blocks.push(block);
            }
            let count = blocks.len();
            blocks.into_iter().for_each(|block| heap.deallocate(block, S, 0));
            count
        };
        let first = fails_at();
        assert_eq!([fails_at(), fails_at()], [first, first], "{mode}");
    }
}

#[test]
fn too_big_fails_before_the_pool_is_touched() {
    for mode in
        ["preallocate", "ondemand", "ondemand gc=on", "platform", "caching", "vmm", "cuda_async"]
    {
        let mut heap = heap(GIB, mode);
        let error = fails(&mut heap, 2 * GIB);
        assert_eq!(verdict(&error, 0), Verdict::TooBig, "{mode}");
        assert_eq!(heap.stats().pool_bytes, 0, "{mode}");
    }
}

#[test]
fn caches_are_named_when_they_hold_what_is_missing() {
    let mut heap = heap(GIB, "preallocate");
    let cached = take(&mut heap, 500 * MIB);
    let error = fails(&mut heap, 400 * MIB);
    assert_eq!(verdict(&error, cached.granted()), Verdict::Cached);
    assert_eq!(verdict(&error, 0), Verdict::Limit);
    give(&mut heap, cached);
}
