//! Gradients and checkpoints as cells call them.

use crate::array::Array;
use crate::differentiate::{self, Custom, Pullback};
use crate::jit::{Results, refer, unflatten};
use crate::operand::Operand;
use crate::raise::{catch, or_raise};
use crate::tree::Tree;
use vramlab_transform::Policy;

/// What a transform gives: a function of N borrowed arrays that can be kept and transformed again.
pub type Transformed<const N: usize, Out> = Box<dyn Fn([&Array; N]) -> Out + Send + Sync>;

/// A typed function in the form that can be traced.
fn body<const N: usize, Out: Tree>(
    f: &(impl Fn([&Array; N]) -> Out + ?Sized),
    arrays: &[Array],
) -> Result<Results, vramlab_ir::Fault> {
    let arguments: [&Array; N] = refer(arrays)?;
    let mut results = Vec::new();
    let structure = catch(|| f(arguments).into_leaves(&mut results))?;
    Ok((results, structure))
}

fn aliases<const N: usize>(arguments: [&Array; N]) -> Vec<Array> {
    arguments.iter().map(|array| array.alias()).collect()
}

fn fixed<const M: usize>(arrays: Vec<Array>) -> [Array; M] {
    arrays.try_into().expect("one gradient for each argument that was named")
}

/// The gradient by the first argument of a function whose result is a scalar.
pub fn grad<const N: usize>(
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
) -> Transformed<N, Array> {
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        let mut found = or_raise(differentiate::grad("grad", &body, &aliases(arguments), &[0]));
        found.remove(0)
    })
}

/// The value and its gradient by the first argument.
pub fn value_and_grad<const N: usize>(
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
) -> Transformed<N, (Array, Array)> {
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        let found =
            differentiate::value_and_grad("value_and_grad", &body, &aliases(arguments), &[0]);
        let (value, mut gradients) = or_raise(found);
        (value, gradients.remove(0))
    })
}

/// The gradients by the arguments at these positions, from 0; negative ones count from the back.
pub fn grad_wrt<const N: usize, const M: usize>(
    wrt: [i32; M],
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
) -> Transformed<N, [Array; M]> {
    let wrt = wrt.map(i64::from);
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        fixed(or_raise(differentiate::grad("grad_wrt", &body, &aliases(arguments), &wrt)))
    })
}

/// The value and its gradients by the arguments at these positions.
pub fn value_and_grad_wrt<const N: usize, const M: usize>(
    wrt: [i32; M],
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
) -> Transformed<N, (Array, [Array; M])> {
    let wrt = wrt.map(i64::from);
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        let name = "value_and_grad_wrt";
        let found = differentiate::value_and_grad(name, &body, &aliases(arguments), &wrt);
        let (value, gradients) = or_raise(found);
        (value, fixed(gradients))
    })
}

/// The value with whatever else the function gives beside it, and the value's gradient by the first
/// argument; JAX's `has_aux`.
pub fn value_and_grad_aux<const N: usize, Aux: Tree + 'static>(
    f: impl Fn([&Array; N]) -> (Array, Aux) + Send + Sync + 'static,
) -> Transformed<N, ((Array, Aux), Array)> {
    let of = value_and_grad_aux_wrt([0], f);
    Box::new(move |arguments| {
        let (value, [gradient]) = of(arguments);
        (value, gradient)
    })
}

/// The same by the arguments at these positions.
pub fn value_and_grad_aux_wrt<const N: usize, const M: usize, Aux: Tree + 'static>(
    wrt: [i32; M],
    f: impl Fn([&Array; N]) -> (Array, Aux) + Send + Sync + 'static,
) -> Transformed<N, ((Array, Aux), [Array; M])> {
    let wrt = wrt.map(i64::from);
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        let name = "value_and_grad_aux";
        let found = differentiate::value_and_grad_aux(name, &body, &aliases(arguments), &wrt);
        let (value, aux, gradients) = or_raise(found);
        ((value, or_raise(unflatten(aux))), fixed(gradients))
    })
}

/// The value, and the function from its cotangent to the arguments' cotangents.
#[track_caller]
pub fn vjp<const N: usize>(
    f: impl Fn([&Array; N]) -> Array,
    arguments: [&Array; N],
) -> (Array, Transformed<1, [Array; N]>) {
    let body = |arrays: &[Array]| body(&f, arrays);
    let (value, pullback) = or_raise(differentiate::vjp(&body, &aliases(arguments), N));
    (value, Box::new(move |[cotangent]| pulled(&pullback, cotangent)))
}

fn pulled<const N: usize>(pullback: &Pullback, cotangent: &Array) -> [Array; N] {
    fixed(or_raise(pullback.call(cotangent)))
}

/// The value, and its derivative along tangents of the arguments.
#[track_caller]
pub fn jvp<const N: usize>(
    f: impl Fn([&Array; N]) -> Array,
    arguments: [&Array; N],
    tangents: [&Array; N],
) -> (Array, Array) {
    let body = |arrays: &[Array]| body(&f, arrays);
    or_raise(differentiate::jvp(&body, &aliases(arguments), &aliases(tangents)))
}

/// The derivative of every element of the result by every element of the first argument.
pub fn jacobian<const N: usize>(
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
) -> Transformed<N, Array> {
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        or_raise(differentiate::jacobian("jacobian", &body, &aliases(arguments)))
    })
}

/// The same as jacobian, under JAX's name: reverse mode, a way back for every element of the result.
pub fn jacrev<const N: usize>(
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
) -> Transformed<N, Array> {
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        or_raise(differentiate::jacobian("jacrev", &body, &aliases(arguments)))
    })
}

/// The same in forward mode, a way forward for every element of the argument: cheaper where the
/// argument is the smaller one, and through while loops.
pub fn jacfwd<const N: usize>(
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
) -> Transformed<N, Array> {
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        or_raise(differentiate::jacfwd(&body, &aliases(arguments)))
    })
}

/// The second derivatives of a scalar by the first argument.
pub fn hessian<const N: usize>(
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
) -> Transformed<N, Array> {
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        or_raise(differentiate::hessian(&body, &aliases(arguments)))
    })
}

/// The function; its gradient keeps the arguments only and computes the rest again.
pub fn checkpoint<const N: usize, Out: Tree>(
    f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static,
) -> Transformed<N, Out> {
    checkpoint_with(Policy::Nothing, f)
}

/// The same as checkpoint, under JAX's older name.
pub fn remat<const N: usize, Out: Tree>(
    f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static,
) -> Transformed<N, Out> {
    checkpoint(f)
}

/// The function; its gradient keeps the arguments and what the policy saves.
pub fn checkpoint_with<const N: usize, Out: Tree>(
    policy: Policy,
    f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static,
) -> Transformed<N, Out> {
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        let found = differentiate::checkpoint(&policy, &body, &aliases(arguments));
        or_raise(found.and_then(unflatten))
    })
}

/// The functions one behind the other, with a checkpoint around every `k` of them.
#[track_caller]
pub fn checkpoint_segments<F: Fn([&Array; 1]) -> Array + Send + Sync + 'static>(
    k: i32,
    fs: Vec<F>,
) -> Transformed<1, Array> {
    let length = or_raise(differentiate::segment_length(k.into()));
    let mut segments: Vec<Transformed<1, Array>> = Vec::new();
    let mut left = fs.into_iter();
    loop {
        let part: Vec<F> = left.by_ref().take(length).collect();
        if part.is_empty() {
            break;
        }
        segments.push(checkpoint(move |[x]| chain(&part, x)));
    }
    Box::new(move |[x]| chain(&segments, x))
}

/// Each value is dropped as soon as the next is there.
fn chain<F: Fn([&Array; 1]) -> Array>(fs: &[F], x: &Array) -> Array {
    let mut fs = fs.iter();
    let Some(first) = fs.next() else { return x.clone() };
    fs.fold(first([x]), |value, f| f([&value]))
}

/// The value itself, as a constant to gradients.
#[track_caller]
pub fn stop_gradient(x: impl Operand) -> Array {
    or_raise(differentiate::stop_gradient(x.input()))
}

impl Array {
    /// The value itself, as a constant to gradients.
    #[track_caller]
    pub fn stop_gradient(&self) -> Array {
        stop_gradient(self)
    }
}

/// The value itself under a name that a checkpoint's policy can save.
#[track_caller]
pub fn checkpoint_name(x: impl Operand, name: &str) -> Array {
    or_raise(differentiate::checkpoint_name(x.input(), name))
}

/// What the gradient of a function by its arguments keeps from the forward: shapes, bytes, where it
/// was made, and whose gradient wants it.
#[track_caller]
pub fn residuals<const N: usize>(
    f: impl Fn([&Array; N]) -> Array,
    arguments: [&Array; N],
) -> String {
    let body = |arrays: &[Array]| body(&f, arrays);
    or_raise(differentiate::residuals(&body, &aliases(arguments), N))
}

/// A function with a gradient rule of its own: `forward` gives the result and K arrays that
/// `backward` needs; `backward` takes these and the result's cotangent (M = K + 1), and gives one
/// cotangent an argument.
pub fn custom_vjp<const N: usize, const K: usize, const M: usize>(
    f: impl Fn([&Array; N]) -> Array + Send + Sync + 'static,
    forward: impl Fn([&Array; N]) -> (Array, [Array; K]) + Send + Sync + 'static,
    backward: impl Fn([&Array; M]) -> [Array; N] + Send + Sync + 'static,
) -> Transformed<N, Array> {
    Box::new(move |arguments| {
        let custom = Custom {
            func: &|arrays: &[Array]| body(&f, arrays),
            forward: &|arrays: &[Array]| body(&forward, arrays),
            backward: &|arrays: &[Array]| body(&backward, arrays),
        };
        or_raise(differentiate::custom_vjp(&custom, &aliases(arguments)).and_then(unflatten))
    })
}

/// Only the checkpoint's operands are kept.
pub fn nothing_saveable() -> Policy {
    Policy::Nothing
}

/// All values are kept: as without a checkpoint.
pub fn everything_saveable() -> Policy {
    Policy::Everything
}

/// Results of matrix products are kept.
pub fn dots_saveable() -> Policy {
    Policy::Dots
}

/// Results of matrix products without batch axes are kept.
pub fn dots_with_no_batch_dims_saveable() -> Policy {
    Policy::DotsWithNoBatchDims
}

/// Values named by checkpoint_name with these names are kept.
pub fn save_only_these_names<const K: usize>(names: [&str; K]) -> Policy {
    Policy::OnlyTheseNames(names.map(str::to_string).into())
}

/// All values are kept but those with these names.
pub fn save_anything_except_these_names<const K: usize>(names: [&str; K]) -> Policy {
    Policy::AnythingExceptTheseNames(names.map(str::to_string).into())
}

/// All named values are kept but those with these names.
pub fn save_any_names_but_these<const K: usize>(names: [&str; K]) -> Policy {
    Policy::AnyNamesButThese(names.map(str::to_string).into())
}

/// Of the values named by checkpoint_name, those with the first names are kept, and those with the
/// second wait in host memory until their gradient: copied there once they are made, and back before
/// they are read. `offload_src` is "device", `offload_dst` "pinned_host".
///
/// # Panics
/// With a fault that names it: an unknown memory kind, or a name in both lists.
#[track_caller]
pub fn save_and_offload_only_these_names<const K: usize, const M: usize>(
    names_which_can_be_saved: [&str; K],
    names_which_can_be_offloaded: [&str; M],
    offload_src: &str,
    offload_dst: &str,
) -> Policy {
    let saved = names_which_can_be_saved.map(str::to_string).into();
    let offloaded = names_which_can_be_offloaded.map(str::to_string).into();
    let name = "save_and_offload_only_these_names";
    or_raise(differentiate::offloading(name, saved, offloaded, [offload_src, offload_dst]))
}

/// Results of matrix products without batch axes wait in host memory until their gradient.
///
/// # Panics
/// With a fault that names it: an unknown memory kind.
#[track_caller]
pub fn offload_dot_with_no_batch_dims(offload_src: &str, offload_dst: &str) -> Policy {
    let name = "offload_dot_with_no_batch_dims";
    or_raise(differentiate::offloading(name, vec![], vec![], [offload_src, offload_dst]))
}

/// The function for every example at once: each argument has one more leading axis, and so has every
/// result.
pub fn vmap<const N: usize, Out: Tree>(
    f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static,
) -> Transformed<N, Out> {
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        or_raise(differentiate::vmap("vmap", &body, &aliases(arguments), None).and_then(unflatten))
    })
}

/// As vmap over the arguments at these positions; the others are the same for all examples.
pub fn vmap_wrt<const N: usize, const M: usize, Out: Tree>(
    mapped: [i32; M],
    f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static,
) -> Transformed<N, Out> {
    let mapped = mapped.map(i64::from);
    Box::new(move |arguments| {
        let body = |arrays: &[Array]| body(&f, arrays);
        let found = differentiate::vmap("vmap_wrt", &body, &aliases(arguments), Some(&mapped));
        or_raise(found.and_then(unflatten))
    })
}
