//! What a checkpoint keeps of its forward, under JAX's names.

use std::fmt;
use vramlab_ir::{Eqn, Fault, FaultKind, Func, Lowering, MemorySpace, Param, Type};

/// Which values inside a checkpoint are kept; all others are computed again.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// Only the checkpoint's own operands.
    #[default]
    Nothing,
    Everything,
    /// Results of matrix products.
    Dots,
    /// Results of matrix products without batch axes.
    DotsWithNoBatchDims,
    /// Values named by `checkpoint_name` with one of these names.
    OnlyTheseNames(Vec<String>),
    /// Every value but those with these names.
    AnythingExceptTheseNames(Vec<String>),
    /// Every named value but those with these names.
    AnyNamesButThese(Vec<String>),
    /// As `OnlyTheseNames` of the first; values with the second names wait in host memory.
    SaveAndOffload {
        saved: Vec<String>,
        offloaded: Vec<String>,
    },
    /// Results of matrix products without batch axes wait in host memory.
    OffloadDotWithNoBatchDims,
}

/// The names of the policies: as JAX has them, and whether names follow.
pub static POLICIES: &[(&str, bool, &str)] = &[
    ("nothing_saveable", false, "Only the checkpoint's operands are kept."),
    ("everything_saveable", false, "All values are kept: as without a checkpoint."),
    ("dots_saveable", false, "Results of matrix products are kept."),
    (
        "dots_with_no_batch_dims_saveable",
        false,
        "Results of matrix products without batch axes are kept.",
    ),
    ("save_only_these_names", true, "Values named by checkpoint_name with these names are kept."),
    ("save_anything_except_these_names", true, "All values are kept but those with these names."),
    ("save_any_names_but_these", true, "All named values are kept but those with these names."),
    (
        "save_and_offload_only_these_names",
        true,
        "Values named by checkpoint_name: the first names are kept, the second wait in host memory.",
    ),
    (
        "offload_dot_with_no_batch_dims",
        false,
        "Results of matrix products without batch axes wait in host memory.",
    ),
];

impl Policy {
    /// The policy of a name.
    ///
    /// # Errors
    /// An argument fault that lists the policies.
    pub fn named(name: &str, names: Vec<String>) -> Result<Policy, Fault> {
        Ok(match name {
            "nothing_saveable" => Policy::Nothing,
            "everything_saveable" => Policy::Everything,
            "dots_saveable" | "checkpoint_dots" => Policy::Dots,
            "dots_with_no_batch_dims_saveable" | "checkpoint_dots_with_no_batch_dims" => {
                Policy::DotsWithNoBatchDims
            }
            "save_only_these_names" => Policy::OnlyTheseNames(names),
            "save_anything_except_these_names" => Policy::AnythingExceptTheseNames(names),
            "save_any_names_but_these" => Policy::AnyNamesButThese(names),
            other => {
                let known: Vec<&str> = POLICIES.iter().map(|(name, _, _)| *name).collect();
                let message = format!("there is no policy {other:?}");
                return Err(Fault::new(FaultKind::Argument, "checkpoint", message)
                    .help(format!("the policies are {}", known.join(", "))));
            }
        })
    }

    /// The policy of a name that offloads, from and to memories of these kinds.
    ///
    /// # Errors
    /// An argument fault: an unknown memory kind, a way that offloads nothing, a name in both lists,
    /// or a policy that does not offload.
    pub fn offloading(
        name: &str,
        saved: Vec<String>,
        offloaded: Vec<String>,
        [from, to]: [&str; 2],
    ) -> Result<Policy, Fault> {
        let refuse = |message: String, help: String| {
            Err(Fault::new(FaultKind::Argument, name, message).help(help))
        };
        let known = MemorySpace::ALL.map(MemorySpace::name).join(" and ");
        for kind in [from, to] {
            if MemorySpace::parse(kind).is_none() {
                let message = format!("there is no memory kind {kind:?}");
                return refuse(message, format!("the memory kinds are {known}"));
            }
        }
        if [from, to] != MemorySpace::ALL.map(MemorySpace::name) {
            let message = format!("values cannot be offloaded from {from} to {to}");
            let help = "they are made in \"device\", and wait in \"pinned_host\"";
            return refuse(message, help.into());
        }
        if let Some(both) = saved.iter().find(|name| offloaded.contains(name)) {
            let message = format!("{both:?} is both a name to save and a name to offload");
            return refuse(message, "a name stands in one of the two lists".into());
        }
        match name {
            "save_and_offload_only_these_names" => Ok(Policy::SaveAndOffload { saved, offloaded }),
            "offload_dot_with_no_batch_dims" => Ok(Policy::OffloadDotWithNoBatchDims),
            other => Policy::named(other, saved),
        }
    }

    /// From its text: `dots_saveable`, `save_only_these_names(a, b)`,
    /// `save_and_offload_only_these_names([a], [b], device, pinned_host)`.
    ///
    /// # Errors
    /// As [`Policy::named`] and [`Policy::offloading`].
    pub fn parse(text: &str) -> Result<Policy, Fault> {
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        if rest.contains(MemorySpace::PinnedHost.name()) && name.contains("offload") {
            return Policy::parse_offloading(name, rest.trim_end_matches(')'));
        }
        let names = rest.trim_end_matches(')').split(',').map(|name| name.trim().to_string());
        Policy::named(name.trim(), names.filter(|name| !name.is_empty()).collect())
    }

    /// What stands in the brackets: two lists of names where the policy has them, then two memories.
    fn parse_offloading(name: &str, rest: &str) -> Result<Policy, Fault> {
        let mut lists = rest.split('[').skip(1).map(|list| {
            let inside = list.split(']').next().unwrap_or_default().split(',');
            let names = inside.map(|name| name.trim().to_string());
            names.filter(|name| !name.is_empty()).collect::<Vec<String>>()
        });
        let (saved, offloaded) =
            (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
        let mut kinds = rest.rsplit(',').map(str::trim);
        let (to, from) = (kinds.next().unwrap_or_default(), kinds.next().unwrap_or_default());
        Policy::offloading(name, saved, offloaded, [from, to])
    }

    /// The names that the policy gives.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        let (names, more): (&[String], &[String]) = match self {
            Policy::OnlyTheseNames(names)
            | Policy::AnythingExceptTheseNames(names)
            | Policy::AnyNamesButThese(names) => (names, &[]),
            Policy::SaveAndOffload { saved, offloaded } => (saved, offloaded),
            _ => (&[], &[]),
        };
        names.iter().chain(more)
    }

    /// Whether the result of an equation waits in host memory.
    pub(crate) fn offloads(&self, func: &Func, eqn: &Eqn) -> bool {
        match self {
            Policy::SaveAndOffload { offloaded, .. } => {
                let name = eqn.params.text("name").unwrap_or_default();
                eqn.op.name() == vramlab_ops::CHECKPOINT_NAME.name
                    && offloaded.iter().any(|offloaded| offloaded == name)
            }
            Policy::OffloadDotWithNoBatchDims => dot(func, eqn) == Some(0),
            _ => false,
        }
    }

    /// Whether an equation holds a function with a name that is not to be kept.
    pub(crate) fn excepts(&self, eqn: &Eqn) -> bool {
        let Policy::AnythingExceptTheseNames(excepted) = self else { return false };
        names_within(eqn).any(|name| excepted.contains(&name))
    }

    /// Per value of `func`, which holds no calls: whether it is kept.
    pub(crate) fn saveable(&self, func: &Func) -> Vec<bool> {
        let mut kept = vec![false; func.types.len()];
        let named = |eqn: &Eqn| eqn.params.text("name").map(str::to_string);
        // A function that is applied is gone into: there is no one equation whose results are kept.
        let leaves = func.eqns.iter().filter(|eqn| eqn.params.func("func").is_none());
        for eqn in leaves {
            let name = (eqn.op.name() == vramlab_ops::CHECKPOINT_NAME.name).then(|| named(eqn));
            let keep = match (self, name.flatten()) {
                (Policy::Nothing, _) => false,
                (Policy::Everything, _) => true,
                (Policy::Dots, _) => dot(func, eqn).is_some(),
                (Policy::DotsWithNoBatchDims, _) => dot(func, eqn) == Some(0),
                (
                    Policy::OnlyTheseNames(names) | Policy::SaveAndOffload { saved: names, .. },
                    Some(name),
                ) => names.contains(&name),
                (Policy::AnythingExceptTheseNames(names), Some(name)) => {
                    // A name is of its operand as well: both are one value.
                    let keep = !names.contains(&name);
                    kept[eqn.inputs[0].index()] &= keep;
                    keep
                }
                (Policy::AnyNamesButThese(names), Some(name)) => !names.contains(&name),
                (Policy::AnythingExceptTheseNames(_), None) => true,
                (
                    Policy::OnlyTheseNames(_)
                    | Policy::AnyNamesButThese(_)
                    | Policy::SaveAndOffload { .. },
                    None,
                )
                | (Policy::OffloadDotWithNoBatchDims, _) => false,
            };
            eqn.outputs.iter().for_each(|output| kept[output.index()] = keep);
            let one_value = eqn.op.name() == vramlab_ops::CHECKPOINT_NAME.name && keep;
            if one_value {
                kept[eqn.inputs[0].index()] = true;
            }
        }
        kept
    }
}

/// The names that `checkpoint_name` gives in `func` and in the functions it holds.
pub fn names(func: &Func) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for eqn in &func.eqns {
        let own = match eqn.op.name() == vramlab_ops::CHECKPOINT_NAME.name {
            true => eqn.params.text("name").map(str::to_string).into_iter().collect(),
            false => Vec::new(),
        };
        for name in own.into_iter().chain(names_within(eqn)) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

/// The names in the functions that an equation holds.
fn names_within(eqn: &Eqn) -> impl Iterator<Item = String> {
    let held = eqn.params.iter().filter_map(|(_, param)| match param {
        Param::Func(inner) => Some(names(inner)),
        _ => None,
    });
    held.flatten()
}

/// From where and to where, in a policy's text.
const OFFLOADED: &str = "device, pinned_host";

/// The number of batch axes of a product.
fn dot(func: &Func, eqn: &Eqn) -> Option<usize> {
    let types: Vec<Type> = eqn.inputs.iter().map(|&v| func.ty(v).clone()).collect();
    match eqn.op.lower(&types, &eqn.params) {
        Lowering::Dot(axes) => Some(axes.lhs_batch.len()),
        // The examples of a convolution are a batch.
        Lowering::Conv(_) => Some(1),
        _ => None,
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, names) = match self {
            Policy::Nothing => ("nothing_saveable", None),
            Policy::Everything => ("everything_saveable", None),
            Policy::Dots => ("dots_saveable", None),
            Policy::DotsWithNoBatchDims => ("dots_with_no_batch_dims_saveable", None),
            Policy::OnlyTheseNames(names) => ("save_only_these_names", Some(names)),
            Policy::AnythingExceptTheseNames(names) => {
                ("save_anything_except_these_names", Some(names))
            }
            Policy::AnyNamesButThese(names) => ("save_any_names_but_these", Some(names)),
            Policy::SaveAndOffload { saved, offloaded } => {
                let (saved, offloaded) = (saved.join(", "), offloaded.join(", "));
                let name = "save_and_offload_only_these_names";
                return write!(f, "{name}([{saved}], [{offloaded}], {OFFLOADED})");
            }
            Policy::OffloadDotWithNoBatchDims => {
                return write!(f, "offload_dot_with_no_batch_dims({OFFLOADED})");
            }
        };
        match names {
            Some(names) => write!(f, "{name}({})", names.join(", ")),
            None => f.write_str(name),
        }
    }
}
