//! Places of the machine: reading, locating and referring to values, their parts and slices.

use super::{Vm, is_snapshot};
use crate::code::{Operand, Place, Slot, Step};
use crate::hir::Binding;
use crate::interrupt::{Fallible, internal, panic};
use crate::ir::Fault;
use crate::value::{RangeValue, Ref, SliceRef, Value};
use std::sync::Arc;

impl Vm<'_> {
    /// An operand's value: copied out of its place, or moved.
    pub(super) fn take(&mut self, operand: &Operand, base: usize) -> Fallible<Value> {
        match operand {
            Operand::Const(value) => Ok(value.alias()),
            Operand::Copy(place) => Ok(self.read(place, base)?.alias()),
            Operand::Move(place) if place.steps.is_empty() => {
                let address = self.address(place.slot, base);
                Ok(self.stack[address].take())
            }
            Operand::Move(place) => {
                let place = self.locate(place, base)?;
                Ok(self.at_mut(&place)?.take())
            }
        }
    }

    pub(super) fn take_all(&mut self, operands: &[Operand], base: usize) -> Fallible<Vec<Value>> {
        operands.iter().map(|operand| self.take(operand, base)).collect()
    }

    /// A range's bound as a number, and whether it is a character.
    pub(super) fn bound(
        &mut self,
        operand: Option<&Operand>,
        base: usize,
    ) -> Fallible<(Option<i128>, bool)> {
        match operand {
            None => Ok((None, false)),
            Some(operand) => match self.take(operand, base)? {
                Value::Int(value) => Ok((Some(value), false)),
                Value::Char(value) => Ok((Some(i128::from(value as u32)), true)),
                _ => Err(internal("a range's bound")),
            },
        }
    }

    pub(super) fn count(&mut self, operand: &Operand, base: usize) -> Fallible<usize> {
        match self.take(operand, base)? {
            Value::Int(value) => usize::try_from(value).map_err(|_| internal("a count")),
            _ => Err(internal("a count")),
        }
    }

    /// The place's value.
    pub(super) fn read(&self, place: &Place, base: usize) -> Fallible<&Value> {
        let mut value = &self.stack[self.address(place.slot, base)];
        for step in &place.steps {
            value = match step {
                Step::Deref => self.follow(value)?,
                Step::Child(index) => self
                    .whole(value)
                    .and_then(|(list, start)| list.child(start as u32 + *index))
                    .ok_or_else(|| internal("a part of a value"))?,
                Step::FromEnd(back) => {
                    let list = self.list(value)?;
                    list.len()
                        .checked_sub(*back as usize)
                        .and_then(|index| list.get(index))
                        .ok_or_else(|| internal("an element"))?
                }
                Step::At(index) => self.indexed(value, *index as usize)?,
                Step::Index(slot) => {
                    let index = self.index_at(*slot, base)?;
                    self.indexed(value, index)?
                }
            };
        }
        Ok(value)
    }

    pub(super) fn index_at(&self, slot: Slot, base: usize) -> Fallible<usize> {
        match &self.stack[self.address(slot, base)] {
            Value::Int(value) => usize::try_from(*value).map_err(|_| internal("an index")),
            _ => Err(internal("an index")),
        }
    }

    pub(super) fn indexed<'v>(&'v self, value: &'v Value, index: usize) -> Fallible<&'v Value> {
        // The list may lie behind a slice's own reference.
        let (list, start, end) = match value {
            Value::List(list) => {
                return list.get(index).ok_or_else(|| out_of_bounds(list.len(), index));
            }
            Value::Slice(slice) => {
                let Value::List(list) = self.follow(&slice.list)? else {
                    return Err(internal("a list"));
                };
                (list, slice.start, slice.end)
            }
            _ => return Err(internal("a list")),
        };
        if index >= end - start {
            return Err(out_of_bounds(end - start, index));
        }
        list.get(start + index).ok_or_else(|| internal("an element"))
    }

    /// A list and where its part begins.
    pub(super) fn whole<'v>(&'v self, value: &'v Value) -> Option<(&'v Value, usize)> {
        match value {
            Value::Slice(slice) => Some((self.follow(&slice.list).ok()?, slice.start)),
            other => Some((other, 0)),
        }
    }

    /// Through a reference; a snapshot is what it stands for.
    pub fn follow<'v>(&'v self, value: &'v Value) -> Fallible<&'v Value> {
        match value {
            Value::Ref(place) => self.at(place),
            other => Ok(other),
        }
    }

    /// Through all references.
    pub fn peel<'v>(&'v self, value: &'v Value) -> Fallible<&'v Value> {
        let mut value = value;
        while let Value::Ref(place) = value {
            value = self.at(place)?;
        }
        Ok(value)
    }

    pub fn at(&self, place: &Ref) -> Fallible<&Value> {
        let mut value =
            self.stack.get(place.slot as usize).ok_or_else(|| internal("a reference"))?;
        for index in place.steps() {
            value = value.child(*index).ok_or_else(|| internal("a reference"))?;
        }
        Ok(value)
    }

    pub fn at_mut(&mut self, place: &Ref) -> Fallible<&mut Value> {
        let mut value =
            self.stack.get_mut(place.slot as usize).ok_or_else(|| internal("a reference"))?;
        for index in place.steps() {
            value = value.child_mut(*index).ok_or_else(|| internal("a reference"))?;
        }
        Ok(value)
    }

    /// The place as a slot and the way from it, through references and slices.
    pub(super) fn locate(&self, place: &Place, base: usize) -> Fallible<Ref> {
        let mut here = Ref { slot: self.address(place.slot, base) as u32, path: None };
        for step in &place.steps {
            match step {
                Step::Deref => {
                    if let Value::Ref(to) = self.at(&here)? {
                        here = to.clone();
                    }
                }
                Step::Child(index) => here = self.part(&here, *index as usize)?,
                Step::FromEnd(back) => {
                    let length = self.list(self.at(&here)?)?.len();
                    let index =
                        length.checked_sub(*back as usize).ok_or_else(|| internal("an element"))?;
                    here = self.part(&here, index)?;
                }
                Step::At(index) => here = self.element_place(&here, *index as usize)?,
                Step::Index(slot) => {
                    let index = self.index_at(*slot, base)?;
                    here = self.element_place(&here, index)?;
                }
            }
        }
        Ok(here)
    }

    pub(super) fn element_place(&self, list: &Ref, index: usize) -> Fallible<Ref> {
        self.indexed(self.at(list)?, index)?;
        self.part(list, index)
    }

    pub(super) fn part(&self, place: &Ref, index: usize) -> Fallible<Ref> {
        match self.at(place)? {
            Value::Slice(slice) => match &slice.list {
                Value::Ref(list) => Ok(list.child((slice.start + index) as u32)),
                _ => Err(internal("a slice")),
            },
            _ => Ok(place.child(index as u32)),
        }
    }

    pub(super) fn reference(&self, place: &Place, mutable: bool, base: usize) -> Fallible<Value> {
        if !mutable {
            let value = self.read(place, base)?;
            if is_snapshot(value) {
                return Ok(value.alias());
            }
            if let (Value::Borrowed(_) | Value::Slice(_), Some(Step::Deref)) =
                (value, place.steps.last())
            {
                return Ok(value.alias());
            }
        } else if let Ok(Value::Slice(_)) = self.read(place, base)
            && place.steps.last() == Some(&Step::Deref)
        {
            return Ok(self.read(place, base)?.alias());
        }
        let place = self.locate(place, base)?;
        if self.at(&place)?.is_gone() {
            return Err(internal("a borrowed value"));
        }
        Ok(Value::Ref(place))
    }

    pub(super) fn repeat(&mut self, value: Value, count: usize) -> Fallible<Value> {
        const MOST: usize = 1 << 28;
        if count > MOST {
            return Err(panic(format!("a list of {count} elements is beyond the instant tier")));
        }
        let mut list = Vec::with_capacity(count);
        for _ in 1..count {
            list.push(value.cloned());
        }
        if count > 0 {
            list.push(value);
        }
        Ok(Value::List(list))
    }

    pub(super) fn rest(
        &mut self,
        place: &Place,
        skip: u32,
        leave: u32,
        by: Binding,
        base: usize,
    ) -> Fallible<Value> {
        let length = self.list(self.read(place, base)?)?.len();
        let (start, end) = (skip as usize, length.saturating_sub(leave as usize));
        if by == Binding::Value {
            let list = self.list(self.read(place, base)?)?;
            return Ok(Value::List(list[start..end].iter().map(Value::alias).collect()));
        }
        let here = self.locate(place, base)?;
        self.slice_of(&Value::Ref(here), start, end)
    }

    pub(super) fn slice(
        &mut self,
        place: &Place,
        range: &Operand,
        _mutable: bool,
        base: usize,
    ) -> Fallible<Value> {
        let Value::Range(range) = self.take(range, base)? else {
            return Err(internal("a range"));
        };
        if let Value::Text(text) = self.peel(self.read(place, base)?)? {
            return text_slice(text, &range);
        }
        let length = self.list(self.read(place, base)?)?.len();
        let (start, end) = slice_bounds(&range, length)?;
        match self.read(place, base)? {
            Value::Slice(slice) => {
                let list = slice.list.alias();
                let offset = slice.start;
                self.slice_of(&list, offset + start, offset + end)
            }
            _ => {
                let here = self.locate(place, base)?;
                self.slice_of(&Value::Ref(here), start, end)
            }
        }
    }

    /// A slice of the list behind a reference.
    pub fn slice_of(&self, list: &Value, start: usize, end: usize) -> Fallible<Value> {
        match list {
            Value::Ref(place) => {
                if let Value::Slice(slice) = self.at(place)? {
                    return self.slice_of(&slice.list, slice.start + start, slice.start + end);
                }
                Ok(Value::Slice(Box::new(SliceRef { list: list.alias(), start, end })))
            }
            Value::Slice(slice) => {
                self.slice_of(&slice.list, slice.start + start, slice.start + end)
            }
            _ => Err(internal("a list")),
        }
    }

    /// The elements of a list, an array or a slice.
    pub fn list<'v>(&'v self, value: &'v Value) -> Fallible<&'v [Value]> {
        match self.peel(value)? {
            Value::List(list) => Ok(list),
            Value::Slice(slice) => match self.peel(&slice.list)? {
                Value::List(list) => {
                    list.get(slice.start..slice.end).ok_or_else(|| internal("a slice"))
                }
                _ => Err(internal("a slice")),
            },
            _ => Err(internal("a list")),
        }
    }

    /// The same, to be changed in place.
    pub fn list_mut(&mut self, value: &Value) -> Fallible<&mut [Value]> {
        match value {
            Value::Slice(slice) => {
                let (start, end) = (slice.start, slice.end);
                let list = slice.list.alias();
                let whole = self.vec_mut(&list)?;
                whole.get_mut(start..end).ok_or_else(|| internal("a slice"))
            }
            Value::Ref(place) => {
                if let Value::Slice(_) | Value::Ref(_) = self.at(place)? {
                    let inner = self.at(place)?.alias();
                    return self.list_mut(&inner);
                }
                Ok(self.vec_mut(value)?.as_mut_slice())
            }
            _ => Err(internal("a list")),
        }
    }

    /// The vector behind a mutable reference.
    pub fn vec_mut(&mut self, value: &Value) -> Fallible<&mut Vec<Value>> {
        match self.get_mut(value)? {
            Value::List(list) => Ok(list),
            _ => Err(internal("a vector")),
        }
    }

    /// What a mutable reference refers to.
    pub fn get_mut(&mut self, value: &Value) -> Fallible<&mut Value> {
        let Value::Ref(place) = value else { return Err(internal("a mutable reference")) };
        let mut place = place.clone();
        while let Value::Ref(next) = self.at(&place)? {
            place = next.clone();
        }
        self.at_mut(&place)
    }

    /// A reference to an element of a list.
    pub fn element(&self, list: &Value, index: usize, mutable: bool) -> Fallible<Value> {
        match list {
            Value::Slice(slice) => self.element(&slice.list, slice.start + index, mutable),
            Value::Ref(place) => match self.at(place)? {
                inner @ (Value::Slice(_) | Value::Ref(_)) => self.element(inner, index, mutable),
                whole => {
                    let value = whole.child(index as u32).ok_or_else(|| internal("an element"))?;
                    if !mutable && is_snapshot(value) {
                        return Ok(value.alias());
                    }
                    Ok(Value::Ref(place.child(index as u32)))
                }
            },
            Value::List(values) => {
                Ok(values.get(index).ok_or_else(|| internal("an element"))?.alias())
            }
            _ => Err(internal("a list")),
        }
    }

    /// Rust's `clone()` of what the value refers to.
    pub fn clone_of(&self, value: &Value) -> Fallible<Value> {
        Ok(match self.follow(value)? {
            Value::Borrowed(array) => Value::Array(array.clone()),
            Value::Slice(_) => Value::List(self.list(value)?.iter().map(Value::cloned).collect()),
            other => other.cloned(),
        })
    }
}

pub fn out_of_bounds(length: usize, index: usize) -> Fault {
    panic(format!("index out of bounds: the len is {length} but the index is {index}"))
}

/// The bounds of a slice, under rustc's words when they do not fit.
pub fn slice_bounds(range: &RangeValue, length: usize) -> Fallible<(usize, usize)> {
    let start = range.start.unwrap_or(0) as usize;
    let end = match range.end {
        Some(end) if range.inclusive => end as usize + 1,
        Some(end) => end as usize,
        None => length,
    };
    if end > length {
        return Err(panic(format!(
            "range end index {end} out of range for slice of length {length}"
        )));
    }
    if start > end {
        let message = match range.end {
            None => format!("range start index {start} out of range for slice of length {length}"),
            Some(_) => format!("slice index starts at {start} but ends at {end}"),
        };
        return Err(panic(message));
    }
    Ok((start, end))
}

pub(super) fn text_slice(text: &Arc<String>, range: &RangeValue) -> Fallible<Value> {
    let start = range.start.unwrap_or(0) as usize;
    let end = match range.end {
        Some(end) if range.inclusive => end as usize + 1,
        Some(end) => end as usize,
        None => text.len(),
    };
    match text.get(start..end) {
        Some(part) => Ok(Value::text(part)),
        None => Err(panic(format!(
            "byte range {start}..{end} does not fit the text `{text}` of {} bytes",
            text.len()
        ))),
    }
}
