//! Every place of an instruction, to be looked at or changed.

use super::*;

/// Every place of an instruction, reads before writes.
pub fn visit_places(inst: &Inst, see: &mut dyn FnMut(&Place, Access)) {
    let operand = |operand: &Operand, see: &mut dyn FnMut(&Place, Access)| match operand {
        Operand::Copy(place) => see(place, Access::Copy),
        Operand::Move(place) => see(place, Access::Move),
        Operand::Const(_) => {}
    };
    let all = |operands: &[Operand], see: &mut dyn FnMut(&Place, Access)| {
        for one in operands {
            operand(one, see);
        }
    };
    let borrow = |mutable: bool| if mutable { Access::BorrowMut } else { Access::Borrow };
    let mut dest = None;
    match inst {
        Inst::Nop | Inst::Jump(_) | Inst::Static { .. } => {}
        Inst::Set { place, value } => {
            operand(value, see);
            see(place, Access::Write);
        }
        Inst::Ref { dest: to, place, mutable } => {
            see(place, borrow(*mutable));
            dest = Some(*to);
        }
        Inst::SliceOf { dest: to, place, range, mutable } => {
            operand(range, see);
            see(place, borrow(*mutable));
            dest = Some(*to);
        }
        Inst::Rest { dest: to, place, by, .. } => {
            see(
                place,
                match by {
                    Binding::Value => Access::Copy,
                    Binding::Ref => Access::Borrow,
                    Binding::Mut => Access::BorrowMut,
                },
            );
            dest = Some(*to);
        }
        Inst::Binary { dest: to, left, right, .. }
        | Inst::ArrayBinary { dest: to, left, right, .. } => {
            operand(left, see);
            operand(right, see);
            dest = Some(*to);
        }
        Inst::Not { dest: to, value, .. }
        | Inst::Negate { dest: to, value, .. }
        | Inst::Cast { dest: to, value, .. }
        | Inst::Some { dest: to, value }
        | Inst::ArrayNegate { dest: to, value }
        | Inst::Iterate { dest: to, value } => {
            operand(value, see);
            dest = Some(*to);
        }
        Inst::Tuple { dest: to, parts }
        | Inst::List { dest: to, parts }
        | Inst::Struct { dest: to, parts, .. } => {
            all(parts, see);
            dest = Some(*to);
        }
        Inst::Range { dest: to, start, end, .. } => {
            start.iter().chain(end).for_each(|one| operand(one, see));
            dest = Some(*to);
        }
        Inst::Repeat { dest: to, value, count } => {
            operand(value, see);
            operand(count, see);
            dest = Some(*to);
        }
        Inst::Closure { dest: to, captures, .. } => {
            all(captures, see);
            dest = Some(*to);
        }
        Inst::Member { dest: to, place, .. } => {
            see(place, Access::Copy);
            dest = Some(*to);
        }
        Inst::Call { dest: to, args, .. }
        | Inst::CallLibrary { dest: to, args, .. }
        | Inst::CallSurface { dest: to, args, .. } => {
            all(args, see);
            dest = Some(*to);
        }
        Inst::CallValue { dest: to, callee, args } => {
            operand(callee, see);
            all(args, see);
            dest = Some(*to);
        }
        Inst::Next { iter, dest: to, .. } => {
            see(&Place::slot(*iter), Access::Copy);
            dest = Some(*to);
        }
        Inst::Unless { condition, .. } => operand(condition, see),
        Inst::Test { place, .. } => see(place, Access::Copy),
        Inst::Format { dest: to, values, .. } => {
            all(values, see);
            dest = Some(*to);
        }
        Inst::Print { text, .. } | Inst::Panic { text } => operand(text, see),
        Inst::Unequal { left, right, text, .. } => {
            operand(left, see);
            operand(right, see);
            text.iter().for_each(|one| operand(one, see));
        }
        Inst::Drop(slot) => see(&Place::slot(*slot), Access::Drop),
        Inst::Bound { place, .. } | Inst::Look(place) | Inst::Count { list: place, .. } => {
            see(place, Access::Look);
        }
        Inst::Return(value) => operand(value, see),
    }
    if let Some(dest) = dest {
        see(&Place::slot(dest), Access::Write);
    }
}

/// Renumbers the frame's slots; places of slots marked `behind` are looked through first.
pub fn rename(inst: &mut Inst, renumber: &[Slot], behind: &[bool]) {
    let slot = |slot: &mut Slot| {
        if *slot & GLOBAL == 0 {
            *slot = renumber[*slot as usize];
        }
    };
    let place = |place: &mut Place| {
        let through = place.slot & GLOBAL == 0 && behind[place.slot as usize];
        slot(&mut place.slot);
        for step in &mut place.steps {
            if let Step::Index(index) = step {
                slot(index);
            }
        }
        if through {
            place.steps.insert(0, Step::Deref);
        }
    };
    parts_mut(inst, &place, &slot);
}

/// Every place of the instruction, to be changed.
pub fn places_mut(inst: &mut Inst, change: &mut dyn FnMut(&mut Place)) {
    let change = std::cell::RefCell::new(change);
    parts_mut(inst, &|place| (change.borrow_mut())(place), &|_| {});
}

fn parts_mut(inst: &mut Inst, place: &dyn Fn(&mut Place), slot: &dyn Fn(&mut Slot)) {
    let operand = |operand: &mut Operand| match operand {
        Operand::Copy(own) | Operand::Move(own) => place(own),
        Operand::Const(_) => {}
    };
    match inst {
        Inst::Nop | Inst::Jump(_) => {}
        Inst::Set { place: own, value } => {
            place(own);
            operand(value);
        }
        Inst::Ref { dest, place: own, .. }
        | Inst::Member { dest, place: own, .. }
        | Inst::Rest { dest, place: own, .. } => {
            slot(dest);
            place(own);
        }
        Inst::SliceOf { dest, place: own, range, .. } => {
            slot(dest);
            place(own);
            operand(range);
        }
        Inst::Binary { dest, left, right, .. } | Inst::ArrayBinary { dest, left, right, .. } => {
            slot(dest);
            operand(left);
            operand(right);
        }
        Inst::Not { dest, value, .. }
        | Inst::Negate { dest, value, .. }
        | Inst::Cast { dest, value, .. }
        | Inst::Some { dest, value }
        | Inst::ArrayNegate { dest, value }
        | Inst::Iterate { dest, value } => {
            slot(dest);
            operand(value);
        }
        Inst::Tuple { dest, parts }
        | Inst::List { dest, parts }
        | Inst::Struct { dest, parts, .. } => {
            slot(dest);
            parts.iter_mut().for_each(operand);
        }
        Inst::Range { dest, start, end, .. } => {
            slot(dest);
            start.iter_mut().chain(end).for_each(operand);
        }
        Inst::Repeat { dest, value, count } => {
            slot(dest);
            operand(value);
            operand(count);
        }
        Inst::Closure { dest, captures, .. } => {
            slot(dest);
            captures.iter_mut().for_each(operand);
        }
        Inst::Call { dest, args, .. }
        | Inst::CallLibrary { dest, args, .. }
        | Inst::CallSurface { dest, args, .. } => {
            slot(dest);
            args.iter_mut().for_each(operand);
        }
        Inst::CallValue { dest, callee, args } => {
            slot(dest);
            operand(callee);
            args.iter_mut().for_each(operand);
        }
        Inst::Next { iter, dest, .. } => {
            slot(iter);
            slot(dest);
        }
        Inst::Unless { condition, .. } => operand(condition),
        Inst::Test { place: own, .. } => place(own),
        Inst::Format { dest, values, .. } => {
            slot(dest);
            values.iter_mut().for_each(operand);
        }
        Inst::Print { text, .. } | Inst::Panic { text } => operand(text),
        Inst::Unequal { left, right, text, .. } => {
            operand(left);
            operand(right);
            text.iter_mut().for_each(operand);
        }
        Inst::Drop(own) | Inst::Static { slot: own, .. } => slot(own),
        Inst::Bound { place: own, .. } | Inst::Look(own) | Inst::Count { list: own, .. } => {
            place(own);
        }
        Inst::Return(value) => operand(value),
    }
}
