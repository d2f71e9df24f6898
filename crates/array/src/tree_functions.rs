//! Functions of a tree of parameters and a list of arrays: compiled and differentiated by the whole
//! tree. The typed functions and the instant tier share what stands above them here.

use crate::ambient::{lock, placed};
use crate::array::Array;
use crate::differentiate;
use crate::jit::{Arg, JitCore, Results, refer, unflatten};
use crate::raise::{catch, or_raise};
use crate::structure::Structure;
use crate::tree::Tree;
use std::sync::{Arc, Mutex};
use vramlab_ir::{Fault, FaultKind};

/// A function of a tree and arrays in the form that can be traced: how the tree holds its arrays,
/// then these arrays and behind them the others.
pub(crate) type TreeBody =
    Arc<dyn Fn(&Structure, &[Array]) -> Result<Results, Fault> + Send + Sync>;

/// A tree by its structure and its arrays.
pub(crate) type Held = (Vec<Array>, Structure);

/// One jitted function for each structure of the tree: two structures can have the same arrays.
pub(crate) struct TreeJit {
    name: &'static str,
    body: TreeBody,
    cores: Mutex<Vec<(Structure, Arc<JitCore>)>>,
}

impl TreeJit {
    pub(crate) fn new(name: &'static str, body: TreeBody) -> TreeJit {
        TreeJit { name, body, cores: Mutex::new(Vec::new()) }
    }

    fn core(&self, structure: Structure) -> Arc<JitCore> {
        let mut cores = lock(&self.cores);
        if let Some((_, core)) = cores.iter().find(|(own, _)| *own == structure) {
            return Arc::clone(core);
        }
        let (body, own) = (Arc::clone(&self.body), structure.clone());
        let core = Arc::new(JitCore::new(self.name, move |arrays: &[Array]| body(&own, arrays)));
        cores.push((structure, Arc::clone(&core)));
        core
    }

    /// Calls with a tree that is kept.
    ///
    /// # Errors
    /// As [`JitCore::call`].
    pub(crate) fn borrow(&self, tree: &Held, others: &[Array]) -> Result<Results, Fault> {
        let given: Vec<Arg> = tree.0.iter().chain(others).map(Arg::Borrowed).collect();
        self.core(tree.1.clone()).call(&given)
    }

    /// Calls with a tree that is moved in: its buffers may be reused, and are gone afterwards.
    ///
    /// # Errors
    /// As [`JitCore::call`].
    pub(crate) fn consume(&self, tree: Held, others: &[Array]) -> Result<Results, Fault> {
        let moved = tree.0.into_iter().map(Arg::Moved);
        let given: Vec<Arg> = moved.chain(others.iter().map(Arg::Borrowed)).collect();
        self.core(tree.1).call(&given)
    }
}

/// The value and the gradient by every array of the tree, in the tree's structure.
///
/// # Errors
/// A parameter that is no float, by its path; else as the gradient of a function of arrays.
pub(crate) fn value_and_grad(
    name: &'static str,
    body: &TreeBody,
    (leaves, structure): &Held,
    others: &[Array],
) -> Result<(Array, Vec<Array>), Fault> {
    if let Some(at) = leaves.iter().position(|leaf| !leaf.dtype().is_float()) {
        let path = structure.paths("params").swap_remove(at);
        let message = format!("{path} is {}, and only floats have gradients", leaves[at].ty());
        return Err(placed(Fault::new(FaultKind::DType, name, message))
            .help("hand it over in the list of arrays, or convert it"));
    }
    let all: Vec<Array> = leaves.iter().chain(others).map(Array::alias).collect();
    let traced = |arrays: &[Array]| body(structure, arrays);
    if leaves.is_empty() {
        let (mut results, _) = traced(&all)?;
        return Ok((results.remove(0), Vec::new()));
    }
    let wrt: Vec<i64> = (0..leaves.len() as i64).collect();
    differentiate::value_and_grad(name, &traced, &all, &wrt)
}

/// What a transform of a function of a tree gives: it borrows the tree.
pub type TreeFunction<P, const N: usize, Out> = Box<dyn Fn(&P, [&Array; N]) -> Out + Send + Sync>;

/// A jitted function that takes its tree by value.
pub type TreeUpdate<P, const N: usize, Out> = Box<dyn Fn(P, [&Array; N]) -> Out + Send + Sync>;

fn body<P: Tree + 'static, const N: usize, Out: Tree + 'static>(
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> TreeBody {
    Arc::new(move |structure, arrays| {
        let mut all = arrays.iter().map(Array::alias);
        let tree = P::from_leaves(structure, &mut all)?;
        let others: Vec<Array> = all.collect();
        let others: [&Array; N] = refer(&others)?;
        let mut results = Vec::new();
        let structure = catch(|| f(&tree, others).into_leaves(&mut results))?;
        Ok((results, structure))
    })
}

fn borrowed(tree: &impl Tree) -> Held {
    let mut leaves = Vec::new();
    tree.leaves(&mut leaves);
    (leaves.into_iter().map(Array::alias).collect(), tree.structure())
}

fn aliases<const N: usize>(arrays: [&Array; N]) -> Vec<Array> {
    arrays.iter().map(|array| array.alias()).collect()
}

/// A jitted function of a tree and arrays, which borrows the tree.
pub fn jit_tree<P: Tree + 'static, const N: usize, Out: Tree + 'static>(
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> TreeFunction<P, N, Out> {
    let jitted = TreeJit::new("jit_tree", body(f));
    Box::new(move |tree: &P, others: [&Array; N]| {
        let found = jitted.borrow(&borrowed(tree), &aliases(others));
        or_raise(found.and_then(unflatten))
    })
}

/// A jitted function of a tree and arrays that is called with the tree by value: its buffers are
/// reused for the results.
pub fn jit_update<P: Tree + 'static, const N: usize, Out: Tree + 'static>(
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> TreeUpdate<P, N, Out> {
    let jitted = TreeJit::new("jit_update", body(f));
    Box::new(move |tree: P, others: [&Array; N]| {
        let mut leaves = Vec::new();
        let structure = tree.into_leaves(&mut leaves);
        let found = jitted.consume((leaves, structure), &aliases(others));
        or_raise(found.and_then(unflatten))
    })
}

/// The value and the gradient by a tree of parameters.
pub fn value_and_grad_tree<P: Tree + 'static, const N: usize>(
    f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync + 'static,
) -> TreeFunction<P, N, (Array, P)> {
    let body = body(f);
    Box::new(move |tree: &P, others: [&Array; N]| {
        let tree = borrowed(tree);
        let found = value_and_grad("value_and_grad_tree", &body, &tree, &aliases(others));
        or_raise(found.and_then(|(value, leaves)| Ok((value, unflatten((leaves, tree.1))?))))
    })
}

/// The gradient by a tree of parameters, in its structure.
pub fn grad_tree<P: Tree + 'static, const N: usize>(
    f: impl Fn(&P, [&Array; N]) -> Array + Send + Sync + 'static,
) -> TreeFunction<P, N, P> {
    let body = body(f);
    Box::new(move |tree: &P, others: [&Array; N]| {
        let tree = borrowed(tree);
        let found = value_and_grad("grad_tree", &body, &tree, &aliases(others));
        or_raise(found.and_then(|(_, leaves)| unflatten((leaves, tree.1))))
    })
}
