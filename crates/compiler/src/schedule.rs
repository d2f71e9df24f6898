//! The order of kernels: the one that needs the fewest bytes at its peak, of three candidates. The
//! program's own order wins ties, since it is the one its writer expects.

use crate::emit::Draft;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use vramlab_ir::MemorySpace;
use vramlab_ir::kernel::Body;

/// Which buffers may end before the program does, and their sizes.
#[derive(Debug)]
pub(crate) struct Lives<'a> {
    pub bytes: &'a [u64],
    /// Donated arguments are there from the start.
    pub donated: &'a [bool],
    pub results: &'a [u32],
}

/// The drafts in an order that respects what each needs.
pub(crate) fn schedule(drafts: Vec<Draft>, lives: &Lives) -> Vec<Draft> {
    if drafts.len() <= 1 {
        return drafts;
    }
    let needs = needs(&drafts, lives.bytes.len());
    let mut order = program_order(&drafts, &needs);
    if drafts.len() > 2 {
        let model = Model::new(&drafts, &needs, lives);
        model.settle_transfers(&mut order);
        let mut peak = model.peak(&order);
        for mut other in [model.greedy(), model.depth_first(&order)] {
            model.settle_transfers(&mut other);
            let other_peak = model.peak(&other);
            if other_peak < peak {
                (order, peak) = (other, other_peak);
            }
        }
        model.wait_for_places(&mut order, peak);
    }
    let mut drafts: Vec<Option<Draft>> = drafts.into_iter().map(Some).collect();
    order
        .into_iter()
        .map(|at| drafts[at as usize].take().expect("an order names each kernel once"))
        .collect()
}

/// Which drafts each draft needs before it, by index.
fn needs(drafts: &[Draft], slots: usize) -> Vec<Vec<u32>> {
    let mut writers: Vec<Vec<u32>> = vec![Vec::new(); slots];
    for (at, draft) in drafts.iter().enumerate() {
        for &slot in &draft.writes {
            writers[slot as usize].push(at as u32);
        }
    }
    drafts
        .iter()
        .enumerate()
        .map(|(at, draft)| {
            let slots = draft.reads.iter().chain(&draft.after_slots);
            let mut needs: Vec<u32> = slots
                .flat_map(|&s| writers[s as usize].iter().copied())
                .chain(draft.after.iter().copied())
                .filter(|&w| w as usize != at)
                .collect();
            needs.sort_unstable();
            needs.dedup();
            needs
        })
        .collect()
}

/// The order in which the program was written, as far as what each kernel needs allows.
fn program_order(drafts: &[Draft], needs: &[Vec<u32>]) -> Vec<u32> {
    let mut by_program: Vec<u32> = (0..drafts.len() as u32).collect();
    by_program.sort_by_key(|&at| (drafts[at as usize].order, at));
    visit_in(by_program.into_iter(), needs)
}

/// The kernels of `wanted` in turn, each behind all that it needs.
fn visit_in(wanted: impl Iterator<Item = u32>, needs: &[Vec<u32>]) -> Vec<u32> {
    let mut done = vec![false; needs.len()];
    let mut order = Vec::with_capacity(needs.len());
    // A kernel, and how many of its needs were looked at.
    let mut stack: Vec<(u32, usize)> = Vec::new();
    for at in wanted {
        stack.push((at, 0));
        while let Some((top, looked)) = stack.last_mut() {
            let at = *top as usize;
            if done[at] {
                stack.pop();
                continue;
            }
            match needs[at].get(*looked) {
                Some(&need) => {
                    *looked += 1;
                    if !done[need as usize] {
                        stack.push((need, 0));
                        assert!(stack.len() <= needs.len(), "kernels need each other in a circle");
                    }
                }
                None => {
                    done[at] = true;
                    order.push(at as u32);
                    stack.pop();
                }
            }
        }
    }
    order
}

/// Live bytes as kernels run.
struct Model<'a> {
    drafts: &'a [Draft],
    needs: &'a [Vec<u32>],
    lives: &'a Lives<'a>,
    /// Per slot: kernels that read it (each once).
    readers: Vec<Vec<u32>>,
    /// Per slot: whether its bytes can be free again before the end.
    ends: Vec<bool>,
}

/// What has run so far.
struct State {
    written: Vec<bool>,
    /// Readers that have not run, per slot.
    waiting: Vec<u32>,
}

/// What one kernel changes, in bytes.
#[derive(Clone, Copy)]
struct Step {
    /// While it runs.
    during: i64,
    /// When it has run.
    after: i64,
}

impl<'a> Model<'a> {
    fn new(drafts: &'a [Draft], needs: &'a [Vec<u32>], lives: &'a Lives) -> Model<'a> {
        let slots = lives.bytes.len();
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); slots];
        for (at, draft) in drafts.iter().enumerate() {
            for &slot in &draft.reads {
                readers[slot as usize].push(at as u32);
            }
        }
        let mut ends: Vec<bool> =
            (0..slots).map(|s| *lives.donated.get(s).unwrap_or(&true)).collect();
        for &result in lives.results {
            ends[result as usize] = false;
        }
        Model { drafts, needs, lives, readers, ends }
    }

    fn state(&self) -> State {
        let mut written = vec![false; self.lives.bytes.len()];
        written[..self.lives.donated.len()].fill(true);
        State { written, waiting: self.readers.iter().map(|r| r.len() as u32).collect() }
    }

    fn step(&self, at: u32, state: &State) -> Step {
        let draft = &self.drafts[at as usize];
        let bytes = |slot: u32| self.lives.bytes[slot as usize] as i64;
        let dies = |slot: u32| self.ends[slot as usize] && state.waiting[slot as usize] == 1;
        let fresh: i64 =
            draft.writes.iter().filter(|&&w| !state.written[w as usize]).map(|&w| bytes(w)).sum();
        let freed: i64 = draft.reads.iter().filter(|&&r| dies(r)).map(|&r| bytes(r)).sum();
        let mut reused = 0;
        for (at, &(write, read)) in draft.in_place.iter().enumerate() {
            let taken = draft.in_place[..at].iter().any(|&(w, r)| w == write || r == read);
            if !taken && dies(read) && !state.written[write as usize] {
                reused += bytes(write);
            }
        }
        Step { during: fresh - reused, after: fresh - freed }
    }

    fn run(&self, at: u32, state: &mut State) {
        for &slot in &self.drafts[at as usize].reads {
            state.waiting[slot as usize] -= 1;
        }
        for &slot in &self.drafts[at as usize].writes {
            state.written[slot as usize] = true;
        }
    }

    fn peak(&self, order: &[u32]) -> i64 {
        let mut state = self.state();
        let (mut live, mut peak) = (0i64, 0i64);
        for &at in order {
            let step = self.step(at, &state);
            peak = peak.max(live + step.during);
            live += step.after;
            self.run(at, &mut state);
        }
        peak
    }

    /// Moves each copy to the host right behind what made its value, and each copy back right before its
    /// first reader: the device's bytes are free as long as they can be, so no peak rises by it.
    fn settle_transfers(&self, order: &mut [u32]) {
        let direction = |at: u32| match &self.drafts[at as usize].kernel.body {
            Body::Transfer(transfer) => Some(transfer.to),
            _ => None,
        };
        let moving = |to: MemorySpace| {
            let of = (0..self.drafts.len() as u32).filter(move |&at| direction(at) == Some(to));
            of.collect::<Vec<u32>>()
        };
        let place = |order: &[u32], at: u32| {
            order.iter().position(|&o| o == at).expect("an order names each kernel")
        };
        for at in moving(MemorySpace::PinnedHost) {
            let from = place(order, at);
            let needs = &self.needs[at as usize];
            let behind = order[..from].iter().rposition(|before| needs.contains(before));
            order[behind.map_or(0, |last| last + 1)..=from].rotate_right(1);
        }
        for at in moving(MemorySpace::Device) {
            let from = place(order, at);
            let needs = |later: &u32| self.needs[*later as usize].contains(&at);
            if let Some(gap) = order[from + 1..].iter().position(needs) {
                order[from..=from + gap].rotate_left(1);
            }
        }
    }

    /// Lets an update of a donated argument wait for the other readers of that argument, so that it can
    /// work in its place, where nothing needs the update before and the peak stays.
    fn wait_for_places(&self, order: &mut [u32], peak: i64) {
        let donated = |slot: u32| *self.lives.donated.get(slot as usize).unwrap_or(&false);
        let updates = |&at: &u32| self.drafts[at as usize].in_place.iter().any(|p| donated(p.1));
        let updates: Vec<u32> = order.iter().copied().filter(updates).collect();
        for at in updates {
            let from = order.iter().position(|&o| o == at).expect("an order names each kernel");
            let reads = |&later: &u32, slot| self.drafts[later as usize].reads.contains(&slot);
            let arguments = self.drafts[at as usize].in_place.iter().map(|p| p.1);
            let last = |slot| order.iter().rposition(|later| reads(later, slot));
            let Some(to) = arguments.filter(|&slot| donated(slot)).filter_map(last).min() else {
                continue;
            };
            let needed = |later: &u32| self.needs[*later as usize].contains(&at);
            if to <= from || order[from..=to].iter().any(needed) {
                continue;
            }
            order[from..=to].rotate_left(1);
            if self.peak(order) > peak {
                order[from..=to].rotate_right(1);
            }
        }
    }

    /// Always the ready kernel that leaves the fewest bytes behind.
    fn greedy(&self) -> Vec<u32> {
        let count = self.drafts.len();
        let mut missing: Vec<u32> = self.needs.iter().map(|n| n.len() as u32).collect();
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (at, needs) in self.needs.iter().enumerate() {
            for &need in needs {
                users[need as usize].push(at as u32);
            }
        }
        let mut state = self.state();
        let mut done = vec![false; count];
        let mut order = Vec::with_capacity(count);
        let mut heap = BinaryHeap::new();
        let key = |at: u32, state: &State| {
            let step = self.step(at, state);
            Reverse((step.after, step.during, self.drafts[at as usize].order, at))
        };
        for at in 0..count as u32 {
            if missing[at as usize] == 0 {
                heap.push(key(at, &state));
            }
        }
        while let Some(Reverse((_, _, _, at))) = heap.pop() {
            if std::mem::replace(&mut done[at as usize], true) {
                continue;
            }
            order.push(at);
            self.run(at, &mut state);
            for &user in &users[at as usize] {
                missing[user as usize] -= 1;
                if missing[user as usize] == 0 {
                    heap.push(key(user, &state));
                }
            }
            // A slot with one reader left makes that reader cheaper.
            for &slot in &self.drafts[at as usize].reads {
                if state.waiting[slot as usize] == 1 {
                    let last = self.readers[slot as usize].iter().find(|&&r| !done[r as usize]);
                    if let Some(&last) = last.filter(|&&l| missing[l as usize] == 0) {
                        heap.push(key(last, &state));
                    }
                }
            }
        }
        order
    }

    /// Each result as a whole before the next, and of a kernel's needs the hungriest first, as
    /// Sethi and Ullman number expression trees.
    fn depth_first(&self, order: &[u32]) -> Vec<u32> {
        let mut hunger: Vec<(u64, u64)> = vec![(0, 0); self.drafts.len()];
        let mut needs: Vec<Vec<u32>> = self.needs.to_vec();
        for &at in order {
            let draft = &self.drafts[at as usize];
            let own: u64 = draft.writes.iter().map(|&w| self.lives.bytes[w as usize]).sum();
            let below = &mut needs[at as usize];
            below.sort_by_key(|&n| {
                let (peak, left) = hunger[n as usize];
                (Reverse(peak.saturating_sub(left)), n)
            });
            let (mut held, mut peak) = (0u64, 0u64);
            for &need in below.iter() {
                let (most, left) = hunger[need as usize];
                peak = peak.max(held.saturating_add(most));
                held = held.saturating_add(left);
            }
            hunger[at as usize] = (peak.max(held.saturating_add(own)), own);
        }
        visit_in(order.iter().copied().filter(|&at| self.is_sink(at)), &needs)
    }

    /// Whether nothing reads what the kernel writes.
    fn is_sink(&self, at: u32) -> bool {
        self.drafts[at as usize]
            .writes
            .iter()
            .any(|&w| self.readers[w as usize].is_empty() || !self.ends[w as usize])
    }
}
