//! What a checkpoint keeps of its forward, under JAX's names.

use std::fmt;
use vramlab_ir::{Eqn, Fault, FaultKind, Func, Lowering, Param, Type};

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

    /// From its text: `dots_saveable`, `save_only_these_names(a, b)`.
    ///
    /// # Errors
    /// As [`Policy::named`].
    pub fn parse(text: &str) -> Result<Policy, Fault> {
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        let names = rest.trim_end_matches(')').split(',').map(|name| name.trim().to_string());
        Policy::named(name.trim(), names.filter(|name| !name.is_empty()).collect())
    }

    /// The names that the policy gives.
    pub fn names(&self) -> &[String] {
        match self {
            Policy::OnlyTheseNames(names)
            | Policy::AnythingExceptTheseNames(names)
            | Policy::AnyNamesButThese(names) => names,
            _ => &[],
        }
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
                (Policy::OnlyTheseNames(names), Some(name)) => names.contains(&name),
                (Policy::AnythingExceptTheseNames(names), Some(name)) => {
                    // A name is of its operand as well: both are one value.
                    let keep = !names.contains(&name);
                    kept[eqn.inputs[0].index()] &= keep;
                    keep
                }
                (Policy::AnyNamesButThese(names), Some(name)) => !names.contains(&name),
                (Policy::AnythingExceptTheseNames(_), None) => true,
                (Policy::OnlyTheseNames(_) | Policy::AnyNamesButThese(_), None) => false,
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
        let held = eqn.params.iter().filter_map(|(_, param)| match param {
            Param::Func(inner) => Some(names(inner)),
            _ => None,
        });
        for name in own.into_iter().chain(held.flatten()) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

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
        };
        match names {
            Some(names) => write!(f, "{name}({})", names.join(", ")),
            None => f.write_str(name),
        }
    }
}
