//! The leaf of every stack: a device that hands out whole regions and may refuse.

/// A region as the driver gave it. Not `Clone`: it goes back by value, once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a region that is dropped is never released"]
pub struct Region {
    base: u64,
    bytes: u64,
    token: u64,
}

impl Region {
    /// A region as a driver makes it. `token` is the driver's own.
    pub fn new(base: u64, bytes: u64, token: u64) -> Region {
        Region { base, bytes, token }
    }

    /// Where it begins on the device.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Its size in bytes, as it was asked for.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The driver's own name for it.
    pub fn token(&self) -> u64 {
        self.token
    }
}

/// Why a driver said no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// Not enough bytes are free on the device.
    Exhausted,
    /// A fault that was put in on purpose, to test the road through it.
    Injected,
    /// The driver cannot do this at all (no virtual memory, say).
    Unsupported,
    /// The driver failed for a reason of its own, in its own words.
    Failed(String),
}

/// A refused request to the driver, with the figures at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Bytes that were asked for.
    pub asked: u64,
    /// Bytes free on the device then.
    pub free: u64,
    /// Why.
    pub cause: RefusalCause,
}

/// What a driver knows about its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverFigures {
    /// Size of the device in bytes.
    pub total: u64,
    /// Bytes that nobody holds.
    pub free: u64,
    /// Bytes that we hold, as the device counts them (rounded to its granularity).
    pub held: u64,
    /// Bytes that other processes hold.
    pub others: u64,
    /// What the driver rounds a region to, in bytes.
    pub granularity: u64,
    /// Regions handed out so far.
    pub allocs: u64,
    /// Regions taken back so far.
    pub frees: u64,
    /// Requests refused so far.
    pub refusals: u64,
}

/// Somebody beside our pools who holds memory of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What it is: `vramlab`, `guest 1`.
    pub name: String,
    /// Its process, where it is another one.
    pub pid: Option<u32>,
    /// Bytes that it holds.
    pub held: u64,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = self.held as f64 / crate::MIB as f64;
        match self.pid {
            Some(pid) => write!(f, "pid {pid} {} {held:.1}", self.name),
            None => write!(f, "{} in this process {held:.1}", self.name),
        }
    }
}

/// A device as the allocators see it: whole regions in, whole regions out.
pub trait Driver: Send {
    /// Hands out a region of exactly `bytes`, aligned to at least 256 bytes, never adjacent to another by promise.
    fn obtain(&mut self, bytes: u64) -> Result<Region, Refusal>;

    /// Takes a region back. It cannot fail: a driver that finds an error keeps it for its next refusal.
    fn release(&mut self, region: Region);

    /// The device's figures now.
    fn figures(&self) -> DriverFigures;

    /// Names the device in a few words.
    fn describe(&self) -> String;

    /// The calls that reserve addresses and map granules, where the device has them.
    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory>;
}

/// Addresses and physical bytes apart: `cuMemAddressReserve`, `cuMemMap` and their inverses, or `mmap` and `mprotect`.
pub trait VirtualMemory {
    /// What a mapping is a multiple of, in bytes.
    fn granule(&mut self) -> u64;

    /// Reserves a range of addresses that costs no memory; gives its base.
    fn reserve(&mut self, bytes: u64) -> Result<u64, Refusal>;

    /// Puts memory behind `bytes` at `address`, both multiples of the granule, within a reserved range.
    fn map(&mut self, address: u64, bytes: u64) -> Result<(), Refusal>;

    /// Takes the memory away again; the addresses stay reserved.
    fn unmap(&mut self, address: u64, bytes: u64);

    /// Gives a reserved range back. Nothing in it may be mapped.
    fn unreserve(&mut self, base: u64, bytes: u64);
}
