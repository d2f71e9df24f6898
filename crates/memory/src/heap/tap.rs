//! The driver as a stack sees it through a heap: every call goes into the ledger on its way.

use crate::ledger::{Event, EventKind, Ledger};
use crate::{Driver, DriverFigures, PoolId, Refusal, Region, VirtualMemory};

/// The driver with the ledger listening.
pub(super) struct Tap<'a> {
    pub(super) driver: &'a mut dyn Driver,
    pub(super) ledger: &'a mut Ledger,
    pub(super) now_ns: u64,
    pub(super) pool: PoolId,
    /// Bytes of guests, which the allocators take for others'.
    guests: u64,
    /// The first size asked for in this call, refusals, and the size granted.
    pub(super) wanted: u64,
    pub(super) refused: u64,
    pub(super) granted: u64,
}

impl<'a> Tap<'a> {
    pub(super) fn new(
        driver: &'a mut dyn Driver,
        ledger: &'a mut Ledger,
        now_ns: u64,
        pool: PoolId,
        guests: u64,
    ) -> Tap<'a> {
        Tap { driver, ledger, now_ns, pool, guests, wanted: 0, refused: 0, granted: 0 }
    }

    fn event(&mut self, kind: EventKind, address: u64, bytes: u64) {
        self.ledger.record(Event {
            address,
            requested: bytes,
            granted: bytes,
            pool: self.pool,
            ..Event::of(kind, self.now_ns)
        });
    }
}

impl Driver for Tap<'_> {
    fn obtain(&mut self, bytes: u64) -> Result<Region, Refusal> {
        if self.wanted == 0 {
            self.wanted = bytes;
        }
        let result = self.driver.obtain(bytes);
        match &result {
            Ok(region) => {
                self.granted = region.bytes();
                self.event(EventKind::RegionGrow, region.base(), region.bytes());
            }
            Err(_) => {
                self.refused += 1;
                self.event(EventKind::DriverRefusal, 0, bytes);
            }
        }
        result
    }

    fn release(&mut self, region: Region) {
        self.event(EventKind::RegionRelease, region.base(), region.bytes());
        self.driver.release(region);
    }

    fn figures(&self) -> DriverFigures {
        self.driver.figures().beside(self.guests)
    }

    fn describe(&self) -> String {
        self.driver.describe()
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        self.driver.virtual_memory().is_some().then_some(self as &mut dyn VirtualMemory)
    }
}

impl Tap<'_> {
    fn below(&mut self) -> &mut dyn VirtualMemory {
        self.driver.virtual_memory().expect("only a driver with virtual memory is tapped for it")
    }
}

impl VirtualMemory for Tap<'_> {
    fn granule(&mut self) -> u64 {
        self.below().granule()
    }

    fn reserve(&mut self, bytes: u64) -> Result<u64, Refusal> {
        self.below().reserve(bytes)
    }

    fn map(&mut self, address: u64, bytes: u64) -> Result<(), Refusal> {
        let result = self.below().map(address, bytes);
        let kind = if result.is_ok() { EventKind::Map } else { EventKind::DriverRefusal };
        self.event(kind, address, bytes);
        result
    }

    fn unmap(&mut self, address: u64, bytes: u64) {
        self.event(EventKind::Unmap, address, bytes);
        self.below().unmap(address, bytes);
    }

    fn unreserve(&mut self, base: u64, bytes: u64) {
        self.below().unreserve(base, bytes);
    }
}
