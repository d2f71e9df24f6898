//! The leaf: regions of real memory, mapped when asked for and unmapped when given back.
//!
//! A region of 2 MiB or more is aligned to 2 MiB and asks for huge pages (a page fault costs the same for 4 KiB as for
//! 2 MiB, less the zeroing). It is mapped no longer than asked, so the kernel cannot put a huge page over its end and
//! the pages touched never exceed what is accounted for. Blocks below 32 KiB share slabs of 1 MiB, since a page
//! and a system call for four bytes would be wasteful in `platform` mode; what lies between is mapped by pages. Each
//! mapping ends in a guard page, so two regions never touch.

use super::space::AddressSpace;
use std::collections::BTreeMap;
use std::io;
use std::ptr;
use vramlab_memory::{
    Driver, DriverFigures, MIB, Refusal, RefusalCause, Region, UNIT, VirtualMemory, format_bytes,
    round_up,
};

const HUGE: u64 = 2 * MIB;
const PAGE: u64 = 4096;
const SLAB: u64 = MIB;
/// Blocks up to this size share slabs.
const SMALL: u64 = 32 * 1024;

/// The driver of the CPU device: a finite number of bytes, accounted exactly as asked for.
#[derive(Debug)]
pub struct CpuDriver {
    capacity: u64,
    held: u64,
    allocs: u64,
    frees: u64,
    refusals: u64,
    space: AddressSpace,
    next_token: u64,
    homes: BTreeMap<u64, Home>,
    slabs: Vec<Slab>,
    /// Reserved address ranges, by base.
    reserved: BTreeMap<u64, Mapping>,
    /// Mapped granules within reserved ranges: base to bytes.
    granules: BTreeMap<u64, u64>,
}

/// Where a region's bytes come from.
#[derive(Debug)]
enum Home {
    Mapped(Mapping),
    Slab { base: u64, offset: u64, bytes: u64 },
}

impl CpuDriver {
    /// A device of `capacity` bytes whose live regions appear in `space`.
    pub fn new(capacity: u64, space: AddressSpace) -> CpuDriver {
        CpuDriver {
            capacity,
            held: 0,
            allocs: 0,
            frees: 0,
            refusals: 0,
            space,
            next_token: 0,
            homes: BTreeMap::new(),
            slabs: Vec::new(),
            reserved: BTreeMap::new(),
            granules: BTreeMap::new(),
        }
    }

    fn free(&self) -> u64 {
        self.capacity - self.held
    }

    fn refuse(&mut self, asked: u64, cause: RefusalCause) -> Refusal {
        self.refusals += 1;
        Refusal { asked, free: self.free(), cause }
    }

    fn admit(&mut self, bytes: u64) -> Result<(), Refusal> {
        if bytes > self.free() {
            return Err(self.refuse(bytes, RefusalCause::Exhausted));
        }
        Ok(())
    }

    fn failed(&mut self, asked: u64, error: io::Error) -> Refusal {
        self.refuse(asked, RefusalCause::Failed(format!("the system gave no memory: {error}")))
    }

    fn place(&mut self, bytes: u64) -> io::Result<(u64, Home)> {
        if bytes <= SMALL {
            return self.place_small(bytes);
        }
        let mapping = Mapping::new(bytes)?;
        mapping.open(mapping.base, mapping.bytes)?;
        self.space.insert(mapping.base, bytes);
        Ok((mapping.base, Home::Mapped(mapping)))
    }

    fn place_small(&mut self, bytes: u64) -> io::Result<(u64, Home)> {
        // A hole of one unit after each block: blocks of two requests never touch.
        let bytes = round_up(bytes.max(1), UNIT) + UNIT;
        for slab in &mut self.slabs {
            if let Some(offset) = slab.take(bytes) {
                let base = slab.mapping.base;
                return Ok((base + offset, Home::Slab { base, offset, bytes }));
            }
        }
        let mapping = Mapping::new(SLAB)?;
        mapping.open(mapping.base, mapping.bytes)?;
        let base = mapping.base;
        self.space.insert(base, SLAB);
        let mut slab = Slab { mapping, free: BTreeMap::from([(0, SLAB)]) };
        let offset = slab.take(bytes).expect("a small block fits an empty slab");
        self.slabs.push(slab);
        Ok((base + offset, Home::Slab { base, offset, bytes }))
    }

    fn leave_slab(&mut self, base: u64, offset: u64, bytes: u64) {
        let index = self.slabs.iter().position(|slab| slab.mapping.base == base);
        let index = index.expect("a small block lies in a live slab");
        self.slabs[index].give(offset, bytes);
        if self.slabs[index].is_empty() {
            let slab = self.slabs.swap_remove(index);
            self.space.remove(slab.mapping.base);
        }
    }
}

impl Driver for CpuDriver {
    fn obtain(&mut self, bytes: u64) -> Result<Region, Refusal> {
        self.admit(bytes)?;
        let (address, home) = match self.place(bytes) {
            Ok(placed) => placed,
            Err(error) => return Err(self.failed(bytes, error)),
        };
        self.next_token += 1;
        self.homes.insert(self.next_token, home);
        self.held += bytes;
        self.allocs += 1;
        Ok(Region::new(address, bytes, self.next_token))
    }

    fn release(&mut self, region: Region) {
        let home =
            self.homes.remove(&region.token()).expect("a region goes back to its own driver");
        match home {
            Home::Mapped(mapping) => self.space.remove(mapping.base),
            Home::Slab { base, offset, bytes } => self.leave_slab(base, offset, bytes),
        }
        self.held -= region.bytes();
        self.frees += 1;
    }

    fn figures(&self) -> DriverFigures {
        DriverFigures {
            total: self.capacity,
            free: self.free(),
            held: self.held,
            others: 0,
            granularity: 1,
            allocs: self.allocs,
            frees: self.frees,
            refusals: self.refusals,
        }
    }

    fn describe(&self) -> String {
        format!("cpu, {} of the host's memory", format_bytes(self.capacity))
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        Some(self)
    }
}

impl VirtualMemory for CpuDriver {
    fn granule(&mut self) -> u64 {
        HUGE
    }

    fn reserve(&mut self, bytes: u64) -> Result<u64, Refusal> {
        match Mapping::new(round_up(bytes, HUGE)) {
            Ok(mapping) => {
                let base = mapping.base;
                self.reserved.insert(base, mapping);
                Ok(base)
            }
            Err(error) => Err(self.failed(bytes, error)),
        }
    }

    fn map(&mut self, address: u64, bytes: u64) -> Result<(), Refusal> {
        self.admit(bytes)?;
        let before = self.granules.range(..address + bytes).next_back();
        let overlaps = before.is_some_and(|(base, size)| base + size > address);
        assert!(!overlaps, "{bytes} bytes mapped at {address:#x} over an earlier mapping");
        let range = self.reserved.range(..=address).next_back();
        let (_, mapping) = range.expect("memory is mapped into a reserved range");
        assert!(address + bytes <= mapping.base + mapping.bytes, "a mapping leaves its range");
        if let Err(error) = mapping.open(address, bytes) {
            return Err(self.failed(bytes, error));
        }
        self.space.insert(address, bytes);
        self.granules.insert(address, bytes);
        self.held += bytes;
        self.allocs += 1;
        Ok(())
    }

    fn unmap(&mut self, address: u64, bytes: u64) {
        let mut at = address;
        while at < address + bytes {
            let size = self.granules.remove(&at).expect("only a mapped range is unmapped");
            self.space.remove(at);
            let range = self.reserved.range(..=at).next_back();
            let (_, mapping) = range.expect("a mapped range lies in a reserved one");
            mapping.close(at, size);
            at += size;
            self.held -= size;
            self.frees += 1;
        }
        assert_eq!(at, address + bytes, "an unmapped range ends where a mapping ends");
    }

    fn unreserve(&mut self, base: u64, bytes: u64) {
        let inside = self.granules.range(base..base + bytes).next();
        assert_eq!(inside, None, "a range with a mapping in it is given back");
        self.reserved.remove(&base).expect("only a reserved range is given back");
    }
}

/// 1 MiB of small blocks.
#[derive(Debug)]
struct Slab {
    mapping: Mapping,
    /// Free extents: offset to bytes, never touching.
    free: BTreeMap<u64, u64>,
}

impl Slab {
    fn is_empty(&self) -> bool {
        self.free.get(&0) == Some(&SLAB)
    }

    fn take(&mut self, bytes: u64) -> Option<u64> {
        let (&offset, &size) = self.free.iter().find(|&(_, &size)| size >= bytes)?;
        self.free.remove(&offset);
        if size > bytes {
            self.free.insert(offset + bytes, size - bytes);
        }
        Some(offset)
    }

    fn give(&mut self, offset: u64, bytes: u64) {
        let (mut start, mut end) = (offset, offset + bytes);
        if let Some((&before, &size)) = self.free.range(..offset).next_back()
            && before + size == offset
        {
            start = before;
        }
        if let Some(size) = self.free.remove(&end) {
            end += size;
        }
        self.free.insert(start, end - start);
        self.drop_pages(start, end, offset, offset + bytes);
    }

    /// Returns the pages that became wholly free when `from..to` joined the extent `start..end`.
    fn drop_pages(&self, start: u64, end: u64, from: u64, to: u64) {
        let first = round_up(start, PAGE).max(from / PAGE * PAGE);
        let last = (end / PAGE * PAGE).min(round_up(to, PAGE));
        if first < last {
            self.mapping.discard(self.mapping.base + first, last - first);
        }
    }
}

/// An address range of our own, inaccessible until opened, with a guard page behind it. Unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    pub base: u64,
    pub bytes: u64,
    /// The whole range from the system, guard included.
    outer_base: u64,
    outer_bytes: u64,
}

impl Mapping {
    /// Reserves `bytes`, rounded up to pages, aligned to 2 MiB where that is their size or less.
    pub fn new(bytes: u64) -> io::Result<Mapping> {
        let bytes = round_up(bytes, PAGE);
        let align = if bytes >= HUGE { HUGE } else { PAGE };
        let outer = bytes.checked_add(align + PAGE).and_then(|outer| usize::try_from(outer).ok());
        let Some(outer) = outer else { return Err(io::ErrorKind::OutOfMemory.into()) };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address of the system's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), outer, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start.expose_provenance() as u64;
        let base = round_up(start, align);
        Ok(Mapping { base, bytes, outer_base: start, outer_bytes: outer as u64 })
    }

    /// Lets `bytes` at `address` be read and written; they read as zeros.
    pub fn open(&self, address: u64, bytes: u64) -> io::Result<()> {
        let start = ptr::with_exposed_provenance_mut(address as usize);
        let bytes = bytes as usize;
        // SAFETY: the range lies within this mapping, which is ours and was not yet given out.
        if unsafe { libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        #[cfg(target_os = "linux")]
        if bytes as u64 >= HUGE {
            // SAFETY: as above. A system without huge pages refuses the advice, which is no error.
            unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(())
    }

    /// Takes the memory behind `bytes` at `address` away and forbids access; the addresses stay.
    fn close(&self, address: u64, bytes: u64) {
        self.discard(address, bytes);
        let start = ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the range lies within this mapping, and its region was given back.
        let closed = unsafe { libc::mprotect(start, bytes as usize, libc::PROT_NONE) };
        debug_assert_eq!(closed, 0, "pages of our own mapping can be closed");
    }

    /// Gives the pages back to the system; they read as zeros again.
    fn discard(&self, address: u64, bytes: u64) {
        let start = ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: the range lies within this mapping, and nothing in it is in use.
        let dropped = unsafe { libc::madvise(start, bytes as usize, libc::MADV_DONTNEED) };
        debug_assert_eq!(dropped, 0, "pages of our own mapping can be dropped");
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let start = ptr::with_exposed_provenance_mut(self.outer_base as usize);
        // SAFETY: the range is one mapping of ours, and its regions were given back or die with the device.
        let unmapped = unsafe { libc::munmap(start, self.outer_bytes as usize) };
        debug_assert_eq!(unmapped, 0, "our own mapping can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceRange;
    use vramlab_memory::{GIB, KIB};

    fn device(capacity: u64) -> (CpuDriver, AddressSpace) {
        let space = AddressSpace::default();
        (CpuDriver::new(capacity, space.clone()), space)
    }

    /// Resident bytes of the mapping that holds `address`.
    fn resident(address: u64) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has smaps");
        let mut inside = false;
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if let Some((from, to)) = first.split_once('-') {
                let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
                inside = (number(from)..number(to)).contains(&address);
            } else if inside && first == "Rss:" {
                return words.next().and_then(|kb| kb.parse().ok()).unwrap_or(0) * KIB;
            }
        }
        0
    }

    #[test]
    fn bytes_are_accounted_exactly_and_the_capacity_is_hard() {
        let (mut driver, space) = device(64 * MIB);
        let a = driver.obtain(10).expect("ten bytes");
        let b = driver.obtain(40 * MIB + 4).expect("forty MiB");
        assert_eq!(driver.figures().held, 40 * MIB + 14);
        assert_eq!(b.base() % HUGE, 0);
        assert_eq!(a.base() % UNIT, 0);
        let refusal = driver.obtain(30 * MIB).expect_err("only 24 MiB are free");
        assert_eq!(refusal.cause, RefusalCause::Exhausted);
        assert_eq!(refusal.free, 24 * MIB - 14);
        let inside = DeviceRange::new(b.base() + 8, 40 * MIB - 4);
        assert!(space.pointer(inside).is_ok());
        assert!(space.pointer(DeviceRange::new(b.base(), 40 * MIB + 5)).is_err());
        let base = b.base();
        driver.release(b);
        assert!(space.pointer(DeviceRange::new(base, 1)).is_err(), "the region is gone");
        driver.release(a);
        let figures = driver.figures();
        assert_eq!((figures.held, figures.allocs, figures.frees, figures.refusals), (0, 2, 2, 1));
    }

    #[test]
    fn more_than_any_address_space_is_refused_in_words() {
        let (mut driver, _) = device(u64::MAX);
        let refusal = driver.obtain(u64::MAX - GIB).expect_err("no machine has that");
        assert!(matches!(refusal.cause, RefusalCause::Failed(_)), "{refusal:?}");
        assert_eq!(driver.figures().held, 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn touched_pages_never_exceed_the_region_and_go_back() {
        let (mut driver, space) = device(GIB);
        let bytes = 9 * MIB + 8192;
        let region = driver.obtain(bytes).expect("nine MiB");
        let base = region.base();
        assert_eq!(resident(base), 0, "nothing is touched before it is used");
        space.pointer(DeviceRange::new(base, bytes)).expect("live").fill(7);
        assert_eq!(resident(base), bytes);
        driver.release(region);
        let again = driver.obtain(bytes).expect("nine MiB again");
        assert_eq!(resident(again.base()), 0, "returned pages are gone");
        driver.release(again);
    }

    #[test]
    fn small_blocks_share_slabs_and_join_again() {
        let (mut driver, space) = device(64 * MIB);
        let mut regions: Vec<Region> =
            (0..5000).map(|i| driver.obtain(1 + i % 1000).expect("a small block")).collect();
        let mut sorted: Vec<(u64, u64)> = regions.iter().map(|r| (r.base(), r.bytes())).collect();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            assert!(pair[0].0 + pair[0].1 < pair[1].0, "two blocks touch");
        }
        for region in &regions {
            let range = DeviceRange::new(region.base(), region.bytes());
            space.pointer(range).expect("live").fill(1);
        }
        let mut order: Vec<Region> = Vec::new();
        while let Some(region) = regions.pop() {
            order.push(region);
            if regions.len() > 3 {
                order.push(regions.remove(regions.len() / 3));
            }
        }
        for region in order {
            driver.release(region);
        }
        assert_eq!(driver.slabs.len(), 0, "empty slabs are unmapped");
        assert_eq!(driver.figures().held, 0);
    }

    #[test]
    fn granules_come_and_go_within_a_reserved_range() {
        let (mut driver, space) = device(16 * MIB);
        let base = driver.reserve(GIB).expect("addresses cost nothing");
        assert_eq!(driver.figures().held, 0);
        driver.map(base, 4 * MIB).expect("four MiB");
        driver.map(base + 4 * MIB, 2 * MIB).expect("two MiB behind them");
        space.pointer(DeviceRange::new(base, 4 * MIB)).expect("mapped").fill(3);
        assert!(driver.map(base + 8 * MIB, 12 * MIB).is_err(), "ten MiB are free");
        driver.unmap(base, 6 * MIB);
        assert_eq!(driver.figures().held, 0);
        driver.map(base, 2 * MIB).expect("mapped again");
        let mut byte = [9];
        let first = space.pointer(DeviceRange::new(base, 1)).expect("mapped");
        first.read_into(&mut byte).expect("one byte each");
        assert_eq!(byte, [0], "mapped memory begins as zeros");
        driver.unmap(base, 2 * MIB);
        driver.unreserve(base, GIB);
    }
}
