//! Tiles between memory and lanes.

use super::lanes::CHUNK;

/// Rows and columns that are worked on at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tile {
    pub rows: usize,
    pub columns: usize,
    pub first_column: usize,
}

impl Tile {
    pub fn lanes(self) -> usize {
        self.rows * self.columns
    }

    pub fn chunks(self) -> usize {
        self.lanes().div_ceil(CHUNK)
    }

    /// Whether the lanes fill whole chunks, so that arrays can be used in place.
    pub fn is_whole(self) -> bool {
        self.lanes().is_multiple_of(CHUNK)
    }
}

/// # Safety
/// An element of `size` bytes is readable at `ptr`.
#[inline(always)]
pub(super) unsafe fn load_bits(ptr: *const u8, size: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => *ptr as u64,
            2 => *ptr.cast::<u16>() as u64,
            4 => *ptr.cast::<u32>() as u64,
            _ => *ptr.cast::<u64>(),
        }
    }
}

/// # Safety
/// An element of `size` bytes is writable at `ptr`.
#[inline(always)]
pub(super) unsafe fn store_bits(ptr: *mut u8, size: usize, bits: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => *ptr = bits as u8,
            2 => *ptr.cast::<u16>() = bits as u16,
            4 => *ptr.cast::<u32>() = bits as u32,
            _ => *ptr.cast::<u64>() = bits,
        }
    }
}

/// Runs a generic copy for the unsigned integer of `size` bytes.
macro_rules! by_size {
    ($size:expr, $f:ident($($arg:expr),*)) => {
        match $size {
            1 => $f::<u8>($($arg),*),
            2 => $f::<u16>($($arg),*),
            4 => $f::<u32>($($arg),*),
            _ => $f::<u64>($($arg),*),
        }
    };
}

/// Gathers a tile from memory with (row, column) strides in elements into dense lanes.
///
/// # Safety
/// Both sides hold the tile, and do not overlap.
pub(super) unsafe fn copy_in(
    to: *mut u8,
    from: *const u8,
    tile: Tile,
    strides: (isize, isize),
    size: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { by_size!(size, copy_in_of(to.cast(), from.cast(), tile, strides)) }
}

/// # Safety
/// As for `copy_in`.
unsafe fn copy_in_of<T: Copy>(to: *mut T, from: *const T, tile: Tile, strides: (isize, isize)) {
    let Tile { rows, columns, .. } = tile;
    if rows > 1 && strides.0.abs() == 1 && strides.1.abs() > 1 {
        // Along the rows, so that a line of memory is read at once.
        // SAFETY: the caller's promise.
        unsafe { turn_rows_of(to, from, (rows, columns), strides, columns) };
        return;
    }
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let to = to.add(row * columns);
            let from = from.offset(row as isize * strides.0);
            match strides.1 {
                1 if columns >= 32 => to.copy_from_nonoverlapping(from, columns),
                0 => {
                    let value = *from;
                    for i in 0..columns {
                        *to.add(i) = value;
                    }
                }
                stride => {
                    for i in 0..columns {
                        *to.add(i) = *from.offset(i as isize * stride);
                    }
                }
            }
        }
    }
}

/// Copies rows that lie dense across each other, (row, column) strides in elements, into rows of `distance` bytes.
///
/// # Safety
/// Both sides hold the rows, and do not overlap.
pub(super) unsafe fn turn_rows(
    to: *mut u8,
    from: *const u8,
    (rows, columns): (usize, usize),
    strides: (isize, isize),
    (distance, size): (usize, usize),
) {
    // SAFETY: the caller's promise.
    unsafe {
        by_size!(
            size,
            turn_rows_of(to.cast(), from.cast(), (rows, columns), strides, distance / size)
        )
    }
}

/// # Safety
/// As for `turn_rows`; `distance` is in elements.
unsafe fn turn_rows_of<T: Copy>(
    to: *mut T,
    from: *const T,
    (rows, columns): (usize, usize),
    strides: (isize, isize),
    distance: usize,
) {
    for column in 0..columns {
        let from = from.wrapping_offset(column as isize * strides.1);
        // The rows after these lie behind them, and are turned next: no processor sees that by itself.
        fetch(from.wrapping_offset(rows as isize * strides.0).cast());
        for row in 0..rows {
            // SAFETY: the caller's promise.
            unsafe { *to.add(row * distance + column) = *from.offset(row as isize * strides.0) };
        }
    }
}

/// Asks for a line of memory; any address will do.
#[inline(always)]
pub(super) fn fetch(ptr: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that a program can see, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(ptr.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = ptr;
}

/// The way back.
///
/// # Safety
/// Both sides hold the tile, and do not overlap.
pub(super) unsafe fn copy_out(
    to: *mut u8,
    from: *const u8,
    tile: Tile,
    strides: (isize, isize),
    size: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { by_size!(size, copy_out_of(to.cast(), from.cast(), tile, strides)) }
}

/// # Safety
/// As for `copy_out`.
unsafe fn copy_out_of<T: Copy>(to: *mut T, from: *const T, tile: Tile, strides: (isize, isize)) {
    let Tile { rows, columns, .. } = tile;
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let from = from.add(row * columns);
            let to = to.offset(row as isize * strides.0);
            if strides.1 == 1 && columns >= 32 {
                to.copy_from_nonoverlapping(from, columns);
                continue;
            }
            for i in 0..columns {
                *to.offset(i as isize * strides.1) = *from.add(i);
            }
        }
    }
}

/// Writes one value to all of a tile.
///
/// # Safety
/// The tile is writable at `to`, and a value readable at `from`.
pub(super) unsafe fn fill_out(
    to: *mut u8,
    from: *const u8,
    tile: Tile,
    strides: (isize, isize),
    size: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { by_size!(size, fill_out_of(to.cast(), from.cast(), tile, strides)) }
}

/// # Safety
/// As for `fill_out`.
unsafe fn fill_out_of<T: Copy>(to: *mut T, from: *const T, tile: Tile, strides: (isize, isize)) {
    // SAFETY: the caller's promise.
    let value = unsafe { *from };
    for row in 0..tile.rows {
        // SAFETY: the caller's promise.
        unsafe {
            let to = to.offset(row as isize * strides.0);
            if strides.1 == 1 {
                std::slice::from_raw_parts_mut(to, tile.columns).fill(value);
                continue;
            }
            for i in 0..tile.columns {
                *to.offset(i as isize * strides.1) = value;
            }
        }
    }
}

/// Copies to memory without reading the lines that are written.
///
/// # Safety
/// Both sides hold `bytes`, a multiple of 64; `to` is aligned to 16.
pub(super) unsafe fn copy_past_cache(to: *mut u8, from: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..bytes).step_by(16) {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        // SAFETY: the caller's promise.
        unsafe {
            let value = _mm_loadu_si128(from.add(at).cast());
            _mm_stream_si128(to.add(at).cast(), value);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        to.copy_from_nonoverlapping(from, bytes)
    };
}

/// Makes what was written past the cache visible to other threads before they are told of it.
pub(super) fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a fence touches no memory of its own.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}
