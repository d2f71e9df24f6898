//! Plans that nobody runs: what a program would take with its arguments moved in, or in place of what failed; and how the
//! entries of one function differ. Compiling is pure, so the cache and the ledger hear nothing of it.

use crate::cache::Entry;
use crate::context::Context;
use std::sync::Arc;
use vramlab_ir::kernel::Donation;
use vramlab_ir::{ExecutableId, Fault, Func, Leaner, Param, Type};

/// A plan, and whether there would be room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Requested bytes at the peak, arguments included.
    pub peak_bytes: u64,
    /// Beside the arguments: results and temporaries.
    pub beside_bytes: u64,
    /// Of these, temporaries.
    pub temp_bytes: u64,
    pub flops: u64,
    /// Whether the pool as it is would give them, by replay; `None`: not known.
    pub passes: Option<bool>,
}

/// A plan with arguments moved in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedPlan {
    /// Requested bytes at the peak, arguments included.
    pub peak_bytes: u64,
    /// Those of the offered arguments whose buffers are used again, and by what.
    pub used: Vec<Donation>,
}

impl Context {
    /// The executable's program with its first `own` arguments moved in; those behind are constants that it captured.
    /// `None` if it has left the cache.
    pub fn if_moved(&self, executable: ExecutableId, own: usize) -> Option<MovedPlan> {
        let func = Arc::clone(&self.lock().cache.get(executable)?.compiled.program.func);
        let donate: Vec<bool> = (0..func.params.len()).map(|index| index < own).collect();
        let program = self.backend.explain(&func, &donate).ok()?;
        let used = program.donations.into_iter().filter(|donation| donation.used).collect();
        Some(MovedPlan { peak_bytes: program.peak_bytes, used })
    }

    /// What a program would take, and whether it would pass now.
    ///
    /// # Errors
    /// The compiler's fault.
    pub fn plan(&self, func: &Arc<Func>) -> Result<PlannedRun, Fault> {
        self.plan_under(func, None, &[])
    }

    /// The same under a limit of bytes at the peak, with what may be compiled instead.
    ///
    /// # Errors
    /// The compiler's fault, also when nothing fits the limit.
    pub fn plan_under(
        &self,
        func: &Arc<Func>,
        limit: Option<u64>,
        leaner: &[Leaner],
    ) -> Result<PlannedRun, Fault> {
        let donate = vec![false; func.params.len()];
        let program = self.backend.explain_under(func, &donate, limit, leaner)?;
        let mut requests = program.fresh_bytes.clone();
        requests.push(program.temp_bytes);
        Ok(PlannedRun {
            peak_bytes: program.peak_bytes,
            beside_bytes: requests.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)),
            temp_bytes: program.temp_bytes,
            flops: program.kernels.iter().map(|kernel| kernel.flops).sum(),
            passes: self.with_heap(|heap| heap.would_pass(&requests)),
        })
    }

    /// How the later of two entries differs from the earlier, a line each; `None` if one of them has left the cache.
    pub fn cache_differences(
        &self,
        earlier: ExecutableId,
        later: ExecutableId,
    ) -> Option<Vec<String>> {
        let state = self.lock();
        Some(differences(state.cache.get(earlier)?, state.cache.get(later)?))
    }
}

fn differences(a: &Entry, b: &Entry) -> Vec<String> {
    let mut found = Vec::new();
    let (x, y) = (&a.compiled.params, &b.compiled.params);
    if x.len() != y.len() {
        found.push(format!("{} arguments → {}", x.len(), y.len()));
    }
    let (before, after) = (&a.compiled.program.func, &b.compiled.program.func);
    // Between trees of two structures an argument is known by its path and not by its position.
    if before.arg_names == after.arg_names {
        for (index, (x, y)) in x.iter().zip(y).enumerate() {
            let name = after.arg_name(index);
            if x.dtype != y.dtype {
                found.push(format!("dtype of {name}: {x} → {y}"));
            }
            if x.shape != y.shape {
                found.push(format!("shape of {name}: {x} → {y}"));
            }
        }
    } else {
        named_arguments(before, after, &mut found);
    }
    let same_arguments = found.is_empty();
    let (x, y) = (before, after);
    programs(x, y, same_arguments, &mut found);
    let moved = |entry: &Entry| {
        let moved = entry.donate.iter().enumerate().filter(|(_, moved)| **moved);
        let func = &entry.compiled.program.func;
        let name = |index: usize| match func.arg_names.get(index).filter(|name| !name.is_empty()) {
            Some(name) => name.clone(),
            None => index.to_string(),
        };
        let list: Vec<String> = moved.map(|(index, _)| name(index)).collect();
        if list.is_empty() { "none".to_string() } else { list.join(", ") }
    };
    let donated = |entry: &Entry| entry.donate.iter().any(|moved| *moved);
    if a.donate != b.donate && (donated(a) || donated(b)) {
        found.push(format!("arguments moved in: {} → {}", moved(a), moved(b)));
    }
    if a.memory_limit != b.memory_limit {
        let limit = |entry: &Entry| match entry.memory_limit {
            Some(bytes) => format!("{bytes} bytes"),
            None => "none".to_string(),
        };
        found.push(format!("memory_limit: {} → {}", limit(a), limit(b)));
    }
    if found.is_empty() {
        found.push("the program is the same, with its values in another order".to_string());
    }
    found
}

/// Arguments that only one of the programs has, and those whose types differ.
fn named_arguments(a: &Func, b: &Func, found: &mut Vec<String>) {
    let named = |func: &Func| -> Vec<(String, Type)> {
        (0..func.params.len()).map(|at| func.arg_name(at)).zip(func.param_types()).collect()
    };
    let (a, b) = (named(a), named(b));
    for (name, x) in &a {
        match b.iter().find(|(other, _)| other == name) {
            None => found.push(format!("without {name}, which was {x}")),
            Some((_, y)) if x != y => found.push(format!("type of {name}: {x} → {y}")),
            Some(_) => {}
        }
    }
    let new = b.iter().filter(|(name, _)| !a.iter().any(|(other, _)| other == name));
    found.extend(new.map(|(name, ty)| format!("with {name}, {ty}")));
}

/// Numbers and other parameters that changed between programs of one form; else that the form changed.
fn programs(a: &Func, b: &Func, same_arguments: bool, found: &mut Vec<String>) {
    let form = |func: &Func| func.eqns.iter().map(|eqn| eqn.op.name()).collect::<Vec<_>>();
    if form(a) != form(b) {
        let at = form(a).iter().zip(form(b)).position(|(x, y)| *x != y);
        let place = match at.map(|at| (&a.eqns[at], &b.eqns[at])) {
            Some((x, y)) => format!(", first {} → {}", x.op.name(), y.op.name()),
            None => String::new(),
        };
        return found.push(format!("the program: {} ops → {}{place}", a.eqns.len(), b.eqns.len()));
    }
    for (x, y) in a.eqns.iter().zip(&b.eqns) {
        for ((name, x_value), (_, y_value)) in x.params.iter().zip(y.params.iter()) {
            match (x_value, y_value) {
                (Param::Func(x), Param::Func(y)) => programs(x, y, same_arguments, found),
                (x, y) if x == y => {}
                // A number takes the dtype of the array beside it.
                (Param::Literal(x), Param::Literal(y)) if x.to_string() == y.to_string() => {}
                (Param::Literal(x), Param::Literal(y)) => {
                    found.push(format!("a captured number: {x} → {y}"));
                }
                // Shapes within follow from those of the arguments.
                (Param::Shape(_) | Param::Ints(_), _) if !same_arguments => {}
                (before, after) => {
                    found.push(format!("{name} of {}: {before} → {after}", x.op.name()));
                }
            }
        }
    }
}
