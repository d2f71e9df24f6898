//! The order of kernels.

use crate::emit::Draft;

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

/// The drafts in an order that respects what each needs.
pub(crate) fn schedule(drafts: Vec<Draft>, bytes: &[u64]) -> Vec<Draft> {
    let needs = needs(&drafts, bytes.len());
    let order = program_order(&drafts, &needs);
    let mut drafts: Vec<Option<Draft>> = drafts.into_iter().map(Some).collect();
    order
        .into_iter()
        .map(|at| drafts[at as usize].take().expect("an order names each kernel once"))
        .collect()
}

/// The order in which the program was written, as far as what each kernel needs allows.
fn program_order(drafts: &[Draft], needs: &[Vec<u32>]) -> Vec<u32> {
    let mut by_program: Vec<u32> = (0..drafts.len() as u32).collect();
    by_program.sort_by_key(|&at| (drafts[at as usize].order, at));
    let mut done = vec![false; drafts.len()];
    let mut order = Vec::with_capacity(drafts.len());
    let mut stack: Vec<u32> = Vec::new();
    for at in by_program {
        stack.push(at);
        while let Some(&top) = stack.last() {
            if done[top as usize] {
                stack.pop();
                continue;
            }
            let missing = needs[top as usize].iter().copied().find(|&n| !done[n as usize]);
            match missing {
                Some(missing) => {
                    assert!(stack.len() <= drafts.len(), "kernels need each other in a circle");
                    stack.push(missing);
                }
                None => {
                    done[top as usize] = true;
                    order.push(top);
                    stack.pop();
                }
            }
        }
    }
    order
}
