//! Jitted functions of a tree and arrays: [`jit_tree`] borrows the tree, [`jit_update`] takes it by
//! value. Both have the methods of [`Jit`](crate::jit::Jit).

use crate::array::Array;
use crate::jit::{Arg, Arguments, JitCore, Results, explanation_text, last_explanation, unflatten};
use crate::raise::or_raise;
use crate::tree::Tree;
use crate::tree_functions::{body, borrowed, in_front};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use vramlab_ir::{Explanation, Fault, MemoryAnalysis};

type Borrowing<P, const N: usize, Out> = dyn Fn(&P, [&Array; N]) -> Out + Send + Sync;
type Taking<P, const N: usize, Out> = dyn Fn(P, [&Array; N]) -> Out + Send + Sync;

/// A jitted function that borrows its tree: `f(&params, [&x])`, or `f.call(&params, (x,))` where
/// arrays are moved in.
pub struct JitTree<P, const N: usize, Out> {
    core: Arc<JitCore>,
    function: Box<Borrowing<P, N, Out>>,
}

/// A jitted function that takes its tree by value: `f(params, [&x])`. The tree's buffers may be
/// reused for the results, and are gone afterwards.
pub struct JitUpdate<P, const N: usize, Out> {
    core: Arc<JitCore>,
    function: Box<Taking<P, N, Out>>,
}

/// A jitted function of a tree and arrays, which borrows the tree.
pub fn jit_tree<P: Tree + 'static, const N: usize, Out: Tree + 'static>(
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> JitTree<P, N, Out> {
    let core = Arc::new(JitCore::of_tree("jit_tree", body(f)));
    let shared = Arc::clone(&core);
    let function = Box::new(move |tree: &P, others: [&Array; N]| {
        let others = others.map(Arg::Borrowed);
        or_raise(with_borrowed(&shared, tree, others.into()).and_then(unflatten))
    });
    JitTree { core, function }
}

/// A jitted function of a tree and arrays that is called with the tree by value: its buffers are
/// reused for the results.
pub fn jit_update<P: Tree + 'static, const N: usize, Out: Tree + 'static>(
    f: impl Fn(&P, [&Array; N]) -> Out + Send + Sync + 'static,
) -> JitUpdate<P, N, Out> {
    let core = Arc::new(JitCore::of_tree("jit_update", body(f)));
    let shared = Arc::clone(&core);
    let function = Box::new(move |tree: P, others: [&Array; N]| {
        let others = others.map(Arg::Borrowed);
        or_raise(with_moved(&shared, tree, others.into()).and_then(unflatten))
    });
    JitUpdate { core, function }
}

fn with_borrowed(core: &JitCore, tree: &impl Tree, others: Vec<Arg>) -> Result<Results, Fault> {
    let (leaves, structure) = borrowed(tree);
    core.call(&structure, &in_front(&leaves, false, others))
}

fn with_moved(core: &JitCore, tree: impl Tree, others: Vec<Arg>) -> Result<Results, Fault> {
    let mut leaves = Vec::new();
    let structure = tree.into_leaves(&mut leaves);
    core.call(&structure, &in_front(&leaves, true, others))
}

/// What a call would run, with the tree's arrays offered for reuse when they are `moved` in.
fn lowered(
    core: &JitCore,
    tree: &impl Tree,
    moved: bool,
    others: Result<Vec<Arg>, Fault>,
) -> Result<Explanation, Fault> {
    let (leaves, structure) = borrowed(tree);
    core.lower(&structure, &in_front(&leaves, moved, others?))
}

impl<P: Tree, const N: usize, Out: Tree> JitTree<P, N, Out> {
    /// Calls with the tree borrowed, and with moved or borrowed arrays in an array, a tuple or a
    /// `Vec`. A moved array's buffer may be reused; it is gone afterwards.
    #[track_caller]
    pub fn call<'a>(&self, tree: &P, arrays: impl Arguments<'a, N>) -> Out {
        let others = arrays.arguments();
        let found = others.and_then(|others| with_borrowed(&self.core, tree, others));
        or_raise(found.and_then(unflatten))
    }
}

impl<P: Tree, const N: usize, Out: Tree> JitUpdate<P, N, Out> {
    /// Calls with the tree moved in, and with moved or borrowed arrays in an array, a tuple or a
    /// `Vec`. What is moved may be reused; it is gone afterwards.
    #[track_caller]
    pub fn call<'a>(&self, tree: P, arrays: impl Arguments<'a, N>) -> Out {
        let others = arrays.arguments();
        let found = others.and_then(|others| with_moved(&self.core, tree, others));
        or_raise(found.and_then(unflatten))
    }
}

/// The methods that both have, which differ in whether the tree's arrays are offered for reuse.
macro_rules! inspected {
    ($name:ident, $moved:literal, $function:ident) => {
        impl<P: Tree, const N: usize, Out: Tree> $name<P, N, Out> {
            /// The same function under a limit, `"512MiB"`, of what a call holds at its peak, as
            /// [`Jit::memory_limit`](crate::jit::Jit::memory_limit).
            #[track_caller]
            pub fn memory_limit(self, limit: &str) -> $name<P, N, Out> {
                or_raise(self.core.set_memory_limit(limit));
                self
            }

            /// Bytes of the last call's executable under JAX's names.
            #[track_caller]
            pub fn memory_analysis(&self) -> MemoryAnalysis {
                or_raise(last_explanation(&self.core, "memory_analysis")).analysis
            }

            /// Bytes of what a call with this tree and these arrays would run; nothing runs, and
            /// the tree stays.
            #[track_caller]
            pub fn memory_analysis_of<'a>(
                &self,
                tree: &P,
                arrays: impl Arguments<'a, N>,
            ) -> MemoryAnalysis {
                or_raise(lowered(&self.core, tree, $moved, arrays.arguments())).analysis
            }

            /// The last call's way through the compiler, as text.
            #[track_caller]
            pub fn explain(&self) -> String {
                explanation_text(&or_raise(last_explanation(&self.core, "explain")))
            }

            /// What a call with this tree and these arrays would run, as text; nothing runs, and
            /// the tree stays.
            #[track_caller]
            pub fn lower<'a>(&self, tree: &P, arrays: impl Arguments<'a, N>) -> String {
                explanation_text(&or_raise(lowered(&self.core, tree, $moved, arrays.arguments())))
            }

            /// Lists each leaf by its path, and each array: whether its buffer would be reused if
            /// it were moved in, or why not; nothing runs, and the tree stays.
            #[track_caller]
            pub fn donations<'a>(&self, tree: &P, arrays: impl Arguments<'a, N>) -> String {
                let (leaves, structure) = borrowed(tree);
                let found = arrays.arguments().and_then(|others| {
                    self.core.donations(&structure, &in_front(&leaves, $moved, others))
                });
                or_raise(found)
            }
        }

        impl<P, const N: usize, Out> $name<P, N, Out> {
            /// What the instant tier shares with this function.
            pub fn core(&self) -> &Arc<JitCore> {
                &self.core
            }
        }

        impl<P: 'static, const N: usize, Out: 'static> Deref for $name<P, N, Out> {
            type Target = $function<P, N, Out>;

            fn deref(&self) -> &Self::Target {
                &*self.function
            }
        }

        impl<P, const N: usize, Out> fmt::Debug for $name<P, N, Out> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.core.fmt(f)
            }
        }
    };
}

inspected!(JitTree, false, Borrowing);
inspected!(JitUpdate, true, Taking);
