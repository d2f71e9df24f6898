//! Loop dimensions and the places of arrays in them: simplified once, checked against buffers at each run.

use crate::LaunchError;
use crate::cpu::space::DevicePtr;
use vramlab_ir::DType;
use vramlab_ir::kernel::{Access, Start};

/// The dimensions of a loop nest: `outer`, then columns.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    /// Never empty: a nest without outer dimensions has one of extent 1.
    pub outer: Vec<usize>,
    pub columns: usize,
    /// Where each dimension of the image went.
    pub axes: Vec<Axis>,
}

/// What became of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// Its extent is 1: the coordinate is always 0.
    Single,
    Outer(usize),
    Columns,
    /// Merged with its neighbour. No instruction asks for its coordinate.
    Merged,
}

/// An access over the dimensions of a [`Nest`].
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub buffer: usize,
    pub dtype: DType,
    /// Bytes of an element.
    pub size: usize,
    pub offset: isize,
    /// One for each outer dimension, in elements.
    pub outer: Vec<isize>,
    pub column: isize,
    pub starts: Vec<Start>,
    /// First and last element that may be touched; `None` where the loop is empty.
    pub span: Option<(i64, i64)>,
    /// How far gathers reach from it, already in the span.
    pub reach: (i64, i64),
}

impl Place {
    /// Elements from one row of a tile to the next.
    pub fn row_stride(&self) -> isize {
        self.outer[self.outer.len() - 1]
    }

    /// Whether rows of `columns` lie one behind the other without a gap, or there is only one.
    pub fn is_dense(&self, rows: usize, columns: usize) -> bool {
        (self.column == 1 || columns == 1) && (rows == 1 || (self.row_stride() == columns as isize))
    }
}

/// Dimensions and accesses of an image, as the rest of tier 0 sees them. `extents` are outer dimensions, then columns.
/// Neighbours merge where every access steps evenly over them, and `keep` says of each dimension whether it must stay
/// (its coordinate is asked for). With `flat`, columns may merge with outer dimensions: nothing happens by rows.
pub(super) fn simplify(
    extents: &[usize],
    accesses: &[&Access],
    keep: &[bool],
    flat: bool,
) -> (Nest, Vec<Place>) {
    let last = extents.len() - 1;
    // Groups of merged dimensions, outermost first, each as its members.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for axis in 0..extents.len() {
        if extents[axis] == 1 && !keep[axis] && (axis != last || (flat && !groups.is_empty())) {
            continue;
        }
        let joins = groups.last().is_some_and(|group| {
            let before = group[group.len() - 1];
            let free = !keep[axis] && group.iter().all(|&member| !keep[member]);
            let even = accesses.iter().all(|access| {
                access.strides[before] == access.strides[axis] * extents[axis] as isize
            });
            free && even && (axis != last || flat)
        });
        match groups.last_mut() {
            Some(group) if joins => group.push(axis),
            _ => groups.push(vec![axis]),
        }
    }
    let columns = groups.pop().unwrap_or_else(|| vec![last]);
    let axes = (0..extents.len()).map(|axis| whereabouts(axis, &groups, &columns)).collect();
    let product = |group: &Vec<usize>| group.iter().map(|&axis| extents[axis]).product();
    let mut outer: Vec<usize> = groups.iter().map(product).collect();
    let stride = |access: &Access, group: &[usize]| access.strides[group[group.len() - 1]];
    let places = accesses.iter().map(|access| {
        let mut strides: Vec<isize> = groups.iter().map(|group| stride(access, group)).collect();
        if strides.is_empty() {
            strides.push(0);
        }
        Place {
            buffer: access.buffer as usize,
            dtype: access.dtype,
            size: access.dtype.size(),
            offset: access.offset,
            outer: strides,
            column: if product(&columns) == 1 { 0 } else { stride(access, &columns) },
            starts: access.starts.clone(),
            span: span(access, extents),
            reach: (0, 0),
        }
    });
    let places = places.collect();
    if outer.is_empty() {
        outer.push(1);
    }
    (Nest { outer, columns: product(&columns), axes }, places)
}

fn whereabouts(axis: usize, groups: &[Vec<usize>], columns: &[usize]) -> Axis {
    if columns.contains(&axis) {
        return if columns.len() == 1 { Axis::Columns } else { Axis::Merged };
    }
    match groups.iter().position(|group| group.contains(&axis)) {
        Some(index) if groups[index].len() == 1 => Axis::Outer(index),
        Some(_) => Axis::Merged,
        None => Axis::Single,
    }
}

/// First and last element of the buffer that the access may touch, run-time starts included.
fn span(access: &Access, extents: &[usize]) -> Option<(i64, i64)> {
    if extents.contains(&0) {
        return None;
    }
    let (mut low, mut high) = (access.offset as i64, access.offset as i64);
    let mut reach = |distance: i64| {
        low = low.saturating_add(distance.min(0));
        high = high.saturating_add(distance.max(0));
    };
    for (&extent, &stride) in extents.iter().zip(&access.strides) {
        reach((extent as i64 - 1).saturating_mul(stride as i64));
    }
    for start in &access.starts {
        reach(start.limit.max(0).saturating_mul(start.stride as i64));
    }
    Some((low, high))
}

/// Makes the outer dimension along which some array lies dense the last one, where that array does not lie dense along
/// columns: rows of a tile are then read together. Whether there was one. The order of rows must not matter.
pub(super) fn turn_rows(nest: &mut Nest, places: &mut [Place]) -> bool {
    let turned = places.iter().find_map(|place| {
        let strided = place.column.abs() > 1;
        let dense = |axis: &usize| place.outer[*axis].abs() == 1 && nest.outer[*axis] > 1;
        (0..nest.outer.len()).find(dense).filter(|_| strided)
    });
    let Some(axis) = turned else { return false };
    let last = nest.outer.len() - 1;
    nest.outer.swap(axis, last);
    for place in places {
        place.outer.swap(axis, last);
    }
    for whereabouts in &mut nest.axes {
        *whereabouts = match *whereabouts {
            Axis::Outer(at) if at == axis => Axis::Outer(last),
            Axis::Outer(at) if at == last => Axis::Outer(axis),
            other => other,
        };
    }
    true
}

/// The span of column 0 alone: what stages that run once a row touch of an empty row.
pub(super) fn span_of_rows(place: &Place, nest: &Nest) -> Option<(i64, i64)> {
    let access = Access {
        buffer: place.buffer as u32,
        dtype: place.dtype,
        offset: place.offset,
        strides: place.outer.clone(),
        starts: place.starts.clone(),
    };
    span(&access, &nest.outer)
}

/// The span of an access that does not step along the last outer dimension, whatever that one's extent.
pub(super) fn span_without(place: &Place, nest: &Nest) -> Option<(i64, i64)> {
    let outer = &nest.outer[..nest.outer.len() - 1];
    let access = Access {
        buffer: place.buffer as u32,
        dtype: place.dtype,
        offset: place.offset,
        strides: place.outer[..outer.len()].iter().copied().chain([place.column]).collect(),
        starts: place.starts.clone(),
    };
    let extents: Vec<usize> = outer.iter().copied().chain([nest.columns]).collect();
    span(&access, &extents)
}

/// Widens a place's span by a gather's reach. Several gathers may read at one place: the span holds
/// what any of them reaches.
pub(super) fn widen(place: &mut Place, limit: i64, stride: isize) {
    let distance = limit.max(0).saturating_mul(stride as i64);
    let (down, up) = place.reach;
    place.reach = (down.min(distance), up.max(distance));
    if let Some((low, high)) = &mut place.span {
        *low = low.saturating_add(place.reach.0 - down);
        *high = high.saturating_add(place.reach.1 - up);
    }
}

/// The pointer to the access's element at coordinates 0, after all its elements were found to lie in the buffer.
pub(super) fn bind(
    place: &Place,
    buffers: &[DevicePtr],
    kernel: &str,
) -> Result<*mut u8, LaunchError> {
    let malformed = |what: String| LaunchError::Malformed { kernel: kernel.to_owned(), what };
    let Some(&buffer) = buffers.get(place.buffer) else {
        return Err(malformed(format!("an access names buffer {}", place.buffer)));
    };
    let Some((first, last)) = place.span else { return Ok(buffer.as_ptr()) };
    let elements = (buffer.bytes() / place.size) as u64;
    if first < 0 || last as u64 >= elements {
        return Err(LaunchError::OutOfBounds {
            kernel: kernel.to_owned(),
            buffer: place.buffer as u32,
            first,
            last,
            elements,
        });
    }
    if !(buffer.as_ptr().addr()).is_multiple_of(place.size) {
        return Err(malformed(format!("buffer {} is not aligned to its elements", place.buffer)));
    }
    let mut offset = place.offset;
    for start in &place.starts {
        offset += start_value(start, buffers, kernel)? as isize * start.stride;
    }
    Ok(buffer.as_ptr().wrapping_offset(offset * place.size as isize))
}

fn start_value(start: &Start, buffers: &[DevicePtr], kernel: &str) -> Result<i64, LaunchError> {
    let buffer = buffers.get(start.buffer as usize).filter(|buffer| buffer.bytes() >= 4);
    let Some(buffer) = buffer else {
        return Err(LaunchError::Malformed {
            kernel: kernel.to_owned(),
            what: format!("a start is read from buffer {}, which holds no i32", start.buffer),
        });
    };
    // SAFETY: the buffer is live device memory of at least 4 bytes.
    let value = unsafe { buffer.as_ptr().cast::<i32>().read_unaligned() };
    Ok((value as i64).clamp(0, start.limit.max(0)))
}
