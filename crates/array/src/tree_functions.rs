//! Functions of a tree of parameters and a list of arrays: compiled, differentiated, checkpointed and
//! batched by the whole tree. The tree's arrays stand in front of the others, and everything that
//! names an argument names it by its path in the tree. The typed functions and the instant tier share
//! what stands above them here.

use crate::ambient::placed;
use crate::array::Array;
use crate::differentiate::{self, Function, Pullback};
use crate::gradient::Transformed;
use crate::jit::{Arg, Results, paths_and_arrays, refer, unflatten};
use crate::raise::{catch, or_raise};
use crate::structure::Structure;
use crate::tree::Tree;
use std::sync::Arc;
use vramlab_ir::{Fault, FaultKind};
use vramlab_transform::Policy;

/// A function of a tree and arrays in the form that can be traced: how the tree holds its arrays,
/// then these arrays and behind them the others.
pub(crate) type TreeBody<'f> =
    dyn Fn(&Structure, &[Array]) -> Result<Results, Fault> + Send + Sync + 'f;

/// The same, owned.
pub(crate) type SharedBody = Arc<TreeBody<'static>>;

/// A tree by its structure and its arrays.
pub(crate) type Held = (Vec<Array>, Structure);

/// What a transform is asked to work on: a tree, and arrays behind it.
pub(crate) struct Given<'a> {
    pub tree: &'a Held,
    pub arrays: &'a [Array],
}

impl Given<'_> {
    fn all(&self) -> Vec<Array> {
        self.tree.0.iter().chain(self.arrays).map(Array::alias).collect()
    }

    fn leaves(&self) -> usize {
        self.tree.0.len()
    }

    /// Runs a transform of the function with its arguments named.
    fn run<T>(
        &self,
        body: &TreeBody,
        transform: impl FnOnce(Function, &[Array]) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let all = self.all();
        let arg_names = paths_and_arrays(&self.tree.1, all.len());
        let traced = |arrays: &[Array]| body(&self.tree.1, arrays);
        transform(Function { body: &traced, arg_names: &arg_names }, &all)
    }

    /// # Errors
    /// A leaf that is no float, by its path.
    fn differentiable(&self, name: &'static str) -> Result<(), Fault> {
        let (leaves, structure) = self.tree;
        let Some(at) = leaves.iter().position(|leaf| !leaf.dtype().is_float()) else {
            return Ok(());
        };
        let path = structure.paths("params").swap_remove(at);
        let message = format!("{path} is {}, and only floats have gradients", leaves[at].ty());
        Err(placed(Fault::new(FaultKind::DType, name, message))
            .help("hand it over in the list of arrays, or convert it"))
    }
}

/// The value and the gradient by every array of the tree, in the tree's order.
///
/// # Errors
/// A parameter that is no float, by its path; else as the gradient of a function of arrays.
pub(crate) fn value_and_grad(
    name: &'static str,
    body: &TreeBody,
    given: &Given,
) -> Result<(Array, Vec<Array>), Fault> {
    given.differentiable(name)?;
    if given.leaves() == 0 {
        let (mut results, _) = body(&given.tree.1, &given.all())?;
        return Ok((results.remove(0), Vec::new()));
    }
    let wrt: Vec<i64> = (0..given.leaves() as i64).collect();
    given.run(body, |f, all| differentiate::value_and_grad(name, f, all, &wrt))
}

/// The value, and the way back from its cotangent to the tree's.
///
/// # Errors
/// As [`value_and_grad`], but the result may have any shape.
pub(crate) fn vjp(body: &TreeBody, given: &Given) -> Result<(Array, Pullback), Fault> {
    given.differentiable("vjp_tree")?;
    given.run(body, |f, all| differentiate::vjp(f, all, given.leaves()))
}

/// The value, and its derivative along tangents of the tree.
///
/// # Errors
/// As [`vjp`], and tangents of another structure or of other types, by their paths.
pub(crate) fn jvp(
    body: &TreeBody,
    given: &Given,
    tangents: &Held,
) -> Result<(Array, Array), Fault> {
    given.differentiable("jvp_tree")?;
    if let Some(difference) = given.tree.1.difference(&tangents.1, "params") {
        let message = format!("params and tangents differ: {difference}");
        return Err(placed(Fault::new(FaultKind::Argument, "jvp_tree", message)));
    }
    given.run(body, |f, all| differentiate::jvp(f, all, &tangents.0))
}

/// What the gradient by the tree keeps from the forward, as a table.
///
/// # Errors
/// As [`vjp`].
pub(crate) fn residuals(body: &TreeBody, given: &Given) -> Result<String, Fault> {
    given.differentiable("residuals_tree")?;
    given.run(body, |f, all| differentiate::residuals(f, all, given.leaves()))
}

/// The function's results; its gradient computes it again but for what the policy saves.
///
/// # Errors
/// As [`differentiate::checkpoint`].
pub(crate) fn checkpoint(
    policy: &Policy,
    body: &TreeBody,
    given: &Given,
) -> Result<Results, Fault> {
    given.run(body, |f, all| differentiate::checkpoint(policy, f, all))
}

/// Which of a function's arguments have an axis of examples: leaves by path, or by the path of the
/// part that they are in, and arrays by position.
pub(crate) struct Mapped {
    pub leaves: Vec<String>,
    pub arrays: Vec<i64>,
}

impl Mapped {
    /// Positions among leaves and arrays.
    fn positions(&self, name: &'static str, given: &Given) -> Result<Vec<i64>, Fault> {
        let paths = given.tree.1.paths("params");
        let mut mapped: Vec<i64> = Vec::new();
        for part in &self.leaves {
            let inside = |path: &str| {
                path.strip_prefix(part.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            let found: Vec<i64> =
                (0i64..).zip(&paths).filter(|(_, path)| inside(path)).map(|(at, _)| at).collect();
            if found.is_empty() {
                let message = format!("the tree has no part {part:?}");
                return Err(placed(Fault::new(FaultKind::Argument, name, message)).help(format!(
                    "its leaves are {}; \"params\" is all of them",
                    listed(&paths)
                )));
            }
            mapped.extend(
                found.iter().filter(|&at| !mapped.contains(at)).copied().collect::<Vec<_>>(),
            );
        }
        let count = given.arrays.len() as i64;
        for &at in &self.arrays {
            let own = if at < 0 { at + count } else { at };
            if !(0..count).contains(&own) {
                let message = format!("there is no array {at}; the function takes {count}");
                return Err(placed(Fault::new(FaultKind::Argument, name, message)));
            }
            mapped.push(own + given.leaves() as i64);
        }
        Ok(mapped)
    }
}

fn listed(paths: &[String]) -> String {
    match paths.len() {
        0..=8 => paths.join(", "),
        many => format!("{}, … {} more", paths[..8].join(", "), many - 8),
    }
}

/// The function for every example at once. `None`: all arrays have one more leading axis, and the
/// tree is the same for all.
///
/// # Errors
/// As [`differentiate::vmap`], and a path that the tree does not have.
pub(crate) fn vmap(
    name: &'static str,
    mapped: Option<&Mapped>,
    body: &TreeBody,
    given: &Given,
) -> Result<Results, Fault> {
    let all = Mapped { leaves: Vec::new(), arrays: (0..given.arrays.len() as i64).collect() };
    let positions = mapped.unwrap_or(&all).positions(name, given)?;
    given.run(body, |f, all| differentiate::vmap(name, f, all, Some(&positions)))
}

/// What a transform of a function of a tree gives: it borrows the tree.
pub type TreeFunction<P, const N: usize, Out> = Box<dyn Fn(&P, [&Array; N]) -> Out + Send + Sync>;

/// A typed function in the form that can be traced.
pub(crate) fn body<'f, P: Tree, const N: usize, Out: Tree>(
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'f,
) -> impl Fn(&Structure, &[Array]) -> Result<Results, Fault> + Send + Sync + 'f {
    move |structure, arrays| {
        let mut all = arrays.iter().map(Array::alias);
        let tree = P::from_leaves(structure, &mut all)?;
        let others: Vec<Array> = all.collect();
        let others: [&Array; N] = refer(&others)?;
        let mut results = Vec::new();
        let structure = catch(|| f(&tree, others).into_leaves(&mut results))?;
        Ok((results, structure))
    }
}

pub(crate) fn borrowed(tree: &impl Tree) -> Held {
    let mut leaves = Vec::new();
    tree.leaves(&mut leaves);
    (leaves.into_iter().map(Array::alias).collect(), tree.structure())
}

pub(crate) fn aliases<const N: usize>(arrays: [&Array; N]) -> Vec<Array> {
    arrays.iter().map(|array| array.alias()).collect()
}

/// The tree's leaves, moved or only referred to, in front of the other arguments.
pub(crate) fn in_front<'a>(
    leaves: &'a [Array],
    moved: bool,
    others: impl IntoIterator<Item = Arg<'a>>,
) -> Vec<Arg<'a>> {
    let leaf = |leaf: &'a Array| match moved {
        true => Arg::Moved(leaf.alias()),
        false => Arg::Borrowed(leaf),
    };
    leaves.iter().map(leaf).chain(others).collect()
}

/// A function of a tree and arrays that `run` gives, for the tree that it borrows.
fn function<P: Tree + 'static, const N: usize, Out: 'static>(
    run: impl Fn(&Given) -> Result<Out, Fault> + Send + Sync + 'static,
) -> TreeFunction<P, N, Out> {
    Box::new(move |tree: &P, arrays: [&Array; N]| {
        let (tree, arrays) = (borrowed(tree), aliases(arrays));
        or_raise(run(&Given { tree: &tree, arrays: &arrays }))
    })
}

/// The value and the gradient by a tree of parameters.
pub fn value_and_grad_tree<P: Tree + 'static, const N: usize>(
    f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync + 'static,
) -> TreeFunction<P, N, (Array, P)> {
    let body = body(f);
    function(move |given| {
        let (value, leaves) = value_and_grad("value_and_grad_tree", &body, given)?;
        Ok((value, unflatten((leaves, given.tree.1.clone()))?))
    })
}

/// The gradient by a tree of parameters, in its structure.
pub fn grad_tree<P: Tree + 'static, const N: usize>(
    f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync + 'static,
) -> TreeFunction<P, N, P> {
    let body = body(f);
    function(move |given| {
        let (_, leaves) = value_and_grad("grad_tree", &body, given)?;
        unflatten((leaves, given.tree.1.clone()))
    })
}

/// The value, and the function from its cotangent to the tree's cotangents.
#[track_caller]
pub fn vjp_tree<P: Tree + Send + Sync + 'static, const N: usize>(
    f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync,
    tree: &P,
    arrays: [&Array; N],
) -> (Array, Transformed<1, P>) {
    let (tree, arrays) = (borrowed(tree), aliases(arrays));
    let (value, pullback) = or_raise(vjp(&body(f), &Given { tree: &tree, arrays: &arrays }));
    let structure = tree.1;
    let back = move |[cotangent]: [&Array; 1]| {
        let found = pullback.call(cotangent);
        or_raise(found.and_then(|leaves| unflatten((leaves, structure.clone()))))
    };
    (value, Box::new(back))
}

/// The value, and its derivative along tangents of the tree.
#[track_caller]
pub fn jvp_tree<P: Tree, const N: usize>(
    f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync,
    tree: &P,
    arrays: [&Array; N],
    tangents: &P,
) -> (Array, Array) {
    let (tree, arrays, tangents) = (borrowed(tree), aliases(arrays), borrowed(tangents));
    or_raise(jvp(&body(f), &Given { tree: &tree, arrays: &arrays }, &tangents))
}

/// What the gradient by a tree keeps from the forward: shapes, bytes, where it was made, and whose
/// gradient wants it.
#[track_caller]
pub fn residuals_tree<P: Tree, const N: usize>(
    f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync,
    tree: &P,
    arrays: [&Array; N],
) -> String {
    let (tree, arrays) = (borrowed(tree), aliases(arrays));
    or_raise(residuals(&body(f), &Given { tree: &tree, arrays: &arrays }))
}

/// The function of a tree; its gradient keeps the leaves and arrays only and computes the rest again.
pub fn checkpoint_tree<P: Tree + 'static, const N: usize, Out: Tree + 'static>(
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> TreeFunction<P, N, Out> {
    checkpoint_tree_with(Policy::Nothing, f)
}

/// The function of a tree; its gradient keeps the leaves and arrays and what the policy saves.
pub fn checkpoint_tree_with<P: Tree + 'static, const N: usize, Out: Tree + 'static>(
    policy: Policy,
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> TreeFunction<P, N, Out> {
    let body = body(f);
    function(move |given| unflatten(checkpoint(&policy, &body, given)?))
}

/// The function for every example at once: each array has one more leading axis, and so has every
/// result; the tree is the same for all.
pub fn vmap_tree<P: Tree + 'static, const N: usize, Out: Tree + 'static>(
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> TreeFunction<P, N, Out> {
    let body = body(f);
    function(move |given| unflatten(vmap("vmap_tree", None, &body, given)?))
}

/// As vmap_tree over the leaves under these paths (`"params"` is all of them) and the arrays at these
/// positions; the others are the same for all examples.
pub fn vmap_tree_wrt<
    P: Tree + 'static,
    const K: usize,
    const M: usize,
    const N: usize,
    Out: Tree + 'static,
>(
    leaves: [&str; K],
    mapped: [i32; M],
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> TreeFunction<P, N, Out> {
    let leaves = leaves.map(str::to_string).into();
    let mapped = Mapped { leaves, arrays: mapped.map(i64::from).into() };
    let body = body(f);
    function(move |given| unflatten(vmap("vmap_tree_wrt", Some(&mapped), &body, given)?))
}
