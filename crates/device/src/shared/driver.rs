//! The driver of a shared device: a leaf of this process, and a seat that is asked first.

use super::Seat;
use super::seat::Refused;
use vramlab_memory::{Driver, DriverFigures, Refusal, RefusalCause, Region, VirtualMemory};

/// Every region of the leaf is charged to the seat before it is made and refunded after it is gone.
pub struct SharedDriver {
    leaf: Box<dyn Driver>,
    seat: Seat,
    refusals: u64,
}

impl SharedDriver {
    /// `leaf` is a device of the seat's capacity that this process has for itself.
    pub fn new(leaf: Box<dyn Driver>, seat: Seat) -> SharedDriver {
        SharedDriver { leaf, seat, refusals: 0 }
    }

    fn charge(&mut self, asked: u64) -> Result<(), Refusal> {
        let (free, cause) = match self.seat.charge(asked) {
            Ok(()) => return Ok(()),
            Err(Refused::Full { free }) => (free, RefusalCause::Exhausted),
            Err(Refused::Failed(why)) => (self.seat.figures().2, RefusalCause::Failed(why)),
        };
        self.refusals += 1;
        Err(Refusal { asked, free, cause })
    }

    /// Runs `make` on charged bytes; gives them back if it fails.
    fn charged<R>(
        &mut self,
        bytes: u64,
        make: impl FnOnce(&mut dyn Driver) -> Result<R, Refusal>,
    ) -> Result<R, Refusal> {
        self.charge(bytes)?;
        make(&mut *self.leaf).map_err(|refusal| {
            self.seat.refund(bytes);
            Refusal { free: self.seat.figures().2, ..refusal }
        })
    }

    fn below(&mut self) -> &mut dyn VirtualMemory {
        self.leaf.virtual_memory().expect("only a leaf with virtual memory is asked for it")
    }
}

impl Driver for SharedDriver {
    fn obtain(&mut self, bytes: u64) -> Result<Region, Refusal> {
        self.charged(bytes, |leaf| leaf.obtain(bytes))
    }

    fn release(&mut self, region: Region) {
        let bytes = region.bytes();
        self.leaf.release(region);
        self.seat.refund(bytes);
    }

    fn figures(&self) -> DriverFigures {
        let leaf = self.leaf.figures();
        let (_, others, free) = self.seat.figures();
        DriverFigures { free, others, refusals: leaf.refusals + self.refusals, ..leaf }
    }

    fn describe(&self) -> String {
        format!("{}, shared", self.leaf.describe())
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        self.leaf.virtual_memory().is_some().then_some(self as &mut dyn VirtualMemory)
    }
}

impl VirtualMemory for SharedDriver {
    fn granule(&mut self) -> u64 {
        self.below().granule()
    }

    fn reserve(&mut self, bytes: u64) -> Result<u64, Refusal> {
        self.below().reserve(bytes)
    }

    fn map(&mut self, address: u64, bytes: u64) -> Result<(), Refusal> {
        let virtual_memory = "only a leaf with virtual memory is asked for it";
        self.charged(bytes, |leaf| leaf.virtual_memory().expect(virtual_memory).map(address, bytes))
    }

    fn unmap(&mut self, address: u64, bytes: u64) {
        self.below().unmap(address, bytes);
        self.seat.refund(bytes);
    }

    fn unreserve(&mut self, base: u64, bytes: u64) {
        self.below().unreserve(base, bytes);
    }
}
