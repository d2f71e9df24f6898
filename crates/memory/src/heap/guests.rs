//! Guests: memory that somebody beside the allocators takes from the driver, as another package in this process would.
//!
//! For the allocators a guest is one of the others: its bytes are missing from the device and lie in no pool. The ledger
//! tells of pools and has no guests in it; a replay meets them as bytes that others hold.

use super::Heap;
use crate::oom::GuestReport;
use crate::{DriverFigures, Holder, Region, UNIT, round_up};

/// A guest and what it holds.
#[derive(Debug)]
pub struct Guest {
    number: u32,
    since_ns: u64,
    region: Region,
}

impl Guest {
    /// Its number, counted from 1 and never used again.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.region.bytes()
    }

    /// When it came, in nanoseconds of the caller's clock.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// As it is called among the holders of a device.
    pub fn name(&self) -> String {
        format!("guest {}", self.number)
    }
}

impl Heap {
    /// A guest asks the driver for `bytes`, rounded up to 256 as our own requests are; gives its number.
    ///
    /// # Errors
    /// The driver refuses: what we hold, what of it lives, and which modes would have left room.
    pub fn invite(&mut self, bytes: u64, now_ns: u64) -> Result<u32, Box<GuestReport>> {
        match self.driver.obtain(round_up(bytes, UNIT)) {
            Ok(region) => {
                self.guests_made += 1;
                let number = self.guests_made;
                self.guests.push(Guest { number, since_ns: now_ns, region });
                Ok(number)
            }
            Err(refusal) => {
                let report = self.explain_guest(bytes);
                Err(Box::new(GuestReport { refusal: Some(refusal), ..report }))
            }
        }
    }

    /// The guests, in the order of their coming.
    pub fn guests(&self) -> &[Guest] {
        &self.guests
    }

    /// Sends a guest away, or all of them; gives how many went and the bytes that came back.
    pub fn dismiss(&mut self, number: Option<u32>) -> (u32, u64) {
        let leaves = |guest: &mut Guest| number.is_none_or(|number| guest.number == number);
        let leaving: Vec<Guest> = self.guests.extract_if(.., leaves).collect();
        let (mut count, mut bytes) = (0, 0);
        for guest in leaving {
            count += 1;
            bytes += guest.bytes();
            self.driver.release(guest.region);
        }
        (count, bytes)
    }

    /// Bytes of all guests.
    pub fn guest_bytes(&self) -> u64 {
        self.guests.iter().map(Guest::bytes).sum()
    }

    /// The guests among the holders of the device.
    pub(crate) fn guest_holders(&self) -> Vec<Holder> {
        let holder = |guest: &Guest| Holder { name: guest.name(), pid: None, held: guest.bytes() };
        self.guests.iter().map(holder).collect()
    }
}

impl DriverFigures {
    /// The same device as the allocators see it beside `guests` bytes of guests.
    pub(crate) fn beside(self, guests: u64) -> DriverFigures {
        DriverFigures { held: self.held - guests, others: self.others + guests, ..self }
    }
}
