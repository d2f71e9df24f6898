//! A device of numbers: finite capacity, virtual addresses, no bytes behind them.
//!
//! It serves replay, the dry run of a switch, the tests, and the dry device.

use crate::{Driver, DriverFigures, MIB, Refusal, RefusalCause, Region, VirtualMemory, round_up};
use std::collections::BTreeMap;

/// How a [`Fake`] behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FakeOptions {
    /// Size of the device in bytes.
    pub capacity: u64,
    /// What a region is charged as a multiple of, in bytes.
    pub granularity: u64,
    /// Hole left after each region, so that regions are never adjacent; 0 only to imitate host pools.
    pub gap: u64,
    /// Address of the first region.
    pub first_address: u64,
    /// Whether addresses and memory can be had apart.
    pub virtual_memory: bool,
}

impl FakeOptions {
    /// A device of `capacity` bytes with no rounding and a hole of 2 MiB after each region.
    pub fn of(capacity: u64) -> FakeOptions {
        FakeOptions {
            capacity,
            granularity: 1,
            gap: 2 * MIB,
            first_address: 1 << 40,
            virtual_memory: true,
        }
    }
}

/// The driver of a device that holds no data.
#[derive(Debug)]
pub struct Fake {
    options: FakeOptions,
    next_address: u64,
    next_token: u64,
    held: u64,
    others: u64,
    allocs: u64,
    frees: u64,
    refusals: u64,
    fail_at: Vec<u64>,
    /// Mapped ranges by address, to catch a mapping that overlaps or an unmapping of nothing.
    mapped: BTreeMap<u64, u64>,
}

impl Fake {
    /// A device of `capacity` bytes.
    pub fn new(capacity: u64) -> Fake {
        Fake::with_options(FakeOptions::of(capacity))
    }

    /// A device with every setting named.
    pub fn with_options(options: FakeOptions) -> Fake {
        Fake {
            options,
            next_address: options.first_address,
            next_token: 0,
            held: 0,
            others: 0,
            allocs: 0,
            frees: 0,
            refusals: 0,
            fail_at: Vec::new(),
            mapped: BTreeMap::new(),
        }
    }

    /// Another process now holds `bytes` of the device, capped at what we do not hold.
    pub fn set_others(&mut self, bytes: u64) {
        self.others = bytes.min(self.options.capacity - self.held);
    }

    /// The `nth` request from now on (the next is 1) is refused once, whatever is free.
    pub fn fail_nth(&mut self, nth: u64) {
        self.fail_at.push(self.allocs + self.refusals + nth);
    }

    fn free(&self) -> u64 {
        self.options.capacity - self.held - self.others
    }

    fn charge(&mut self, bytes: u64) -> Result<u64, Refusal> {
        let call = self.allocs + self.refusals + 1;
        let charged = round_up(bytes, self.options.granularity);
        let cause = if self.fail_at.contains(&call) {
            Some(RefusalCause::Injected)
        } else if charged > self.free() || charged < bytes {
            Some(RefusalCause::Exhausted)
        } else {
            None
        };
        if let Some(cause) = cause {
            self.refusals += 1;
            return Err(Refusal { asked: bytes, free: self.free(), cause });
        }
        self.held += charged;
        self.allocs += 1;
        Ok(charged)
    }

    fn take_addresses(&mut self, bytes: u64) -> u64 {
        let base = self.next_address;
        // A dry device may run for ever: past the end of the address space it begins again.
        let after = base.checked_add(bytes).and_then(|end| end.checked_add(self.options.gap));
        self.next_address = after.map_or(self.options.first_address, |end| round_up(end, 256));
        base
    }
}

impl Driver for Fake {
    fn obtain(&mut self, bytes: u64) -> Result<Region, Refusal> {
        let charged = self.charge(bytes)?;
        self.next_token += 1;
        Ok(Region::new(self.take_addresses(charged), bytes, self.next_token))
    }

    fn release(&mut self, region: Region) {
        self.held -= round_up(region.bytes(), self.options.granularity);
        self.frees += 1;
    }

    fn figures(&self) -> DriverFigures {
        DriverFigures {
            total: self.options.capacity,
            free: self.free(),
            held: self.held,
            others: self.others,
            granularity: self.options.granularity,
            allocs: self.allocs,
            frees: self.frees,
            refusals: self.refusals,
        }
    }

    fn describe(&self) -> String {
        format!("a device of {} without data", crate::format_bytes(self.options.capacity))
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        if self.options.virtual_memory { Some(self) } else { None }
    }
}

impl VirtualMemory for Fake {
    fn granule(&mut self) -> u64 {
        2 * MIB
    }

    fn reserve(&mut self, bytes: u64) -> Result<u64, Refusal> {
        Ok(self.take_addresses(round_up(bytes, 2 * MIB)))
    }

    fn map(&mut self, address: u64, bytes: u64) -> Result<(), Refusal> {
        let before = self.mapped.range(..address + bytes).next_back();
        let overlaps = before.is_some_and(|(base, size)| base + size > address);
        assert!(!overlaps, "{bytes} bytes mapped at {address:#x} over an earlier mapping");
        self.charge(bytes)?;
        self.mapped.insert(address, bytes);
        Ok(())
    }

    fn unmap(&mut self, address: u64, bytes: u64) {
        let mut at = address;
        while at < address + bytes {
            let size = self.mapped.remove(&at).expect("only a mapped range is unmapped");
            at += size;
            self.held -= round_up(size, self.options.granularity);
            self.frees += 1;
        }
        assert_eq!(at, address + bytes, "an unmapped range ends where a mapping ends");
    }

    fn unreserve(&mut self, base: u64, bytes: u64) {
        let inside = self.mapped.range(base..base + bytes).next();
        assert_eq!(inside, None, "a range with a mapping in it is given back");
    }
}
