//! Loops and branches as cells call them. Carried values, slices and operands are trees by value:
//! in the function they are values of its trace, and a clone of these costs nothing.

use crate::array::Array;
use crate::control::{self, Held};
use crate::jit::{Results, unflatten};
use crate::operand::Operand;
use crate::raise::{catch, or_raise};
use crate::tree::Tree;
use vramlab_ir::Fault;

fn held(tree: impl Tree) -> Held {
    let mut arrays = Vec::new();
    let structure = tree.into_leaves(&mut arrays);
    (arrays, structure)
}

fn one<A: Tree, Out: Tree>(f: &impl Fn(A) -> Out, a: Held) -> Result<Results, Fault> {
    let a: A = unflatten(a)?;
    catch(|| held(f(a)))
}

fn two<A: Tree, B: Tree, Out: Tree>(
    f: &impl Fn(A, B) -> Out,
    a: Held,
    b: Held,
) -> Result<Results, Fault> {
    let (a, b): (A, B) = (unflatten(a)?, unflatten(b)?);
    catch(|| held(f(a, b)))
}

/// Goes through the slices of `xs` along their leading axis: f(carry, slice) gives the next carry and
/// a slice of the results. The last carry and the stacked results.
#[track_caller]
pub fn scan<C: Tree, X: Tree, Y: Tree>(f: impl Fn(C, X) -> (C, Y), init: C, xs: X) -> (C, Y) {
    let body = |carry, slice| two(&f, carry, slice);
    or_raise(control::scan("scan", false, &body, held(init), held(xs)).and_then(unflatten))
}

/// The same as scan from the last slice to the first; results stand where their slices stood.
#[track_caller]
pub fn scan_reverse<C: Tree, X: Tree, Y: Tree>(
    f: impl Fn(C, X) -> (C, Y),
    init: C,
    xs: X,
) -> (C, Y) {
    let body = |carry, slice| two(&f, carry, slice);
    or_raise(control::scan("scan_reverse", true, &body, held(init), held(xs)).and_then(unflatten))
}

/// `body(i, carry)` for i from lo to before hi. Between two numbers it has gradients; an array as a
/// bound makes it a while_loop.
#[track_caller]
pub fn fori_loop<C: Tree>(
    lo: impl Operand,
    hi: impl Operand,
    body: impl Fn(Array, C) -> C,
    init: C,
) -> C {
    let step = |at, carry| two(&body, at, carry);
    or_raise(control::fori(lo.input(), hi.input(), &step, held(init)).and_then(unflatten))
}

/// Goes on with body while cond, a bool scalar of the carried value, holds.
#[track_caller]
pub fn while_loop<C: Tree>(cond: impl Fn(C) -> Array, body: impl Fn(C) -> C, init: C) -> C {
    let (asked, step) = (|carry| one(&cond, carry), |carry| one(&body, carry));
    or_raise(control::repeat(&asked, &step, held(init)).and_then(unflatten))
}

/// One of two functions of the operands; only the one that the bool scalar chooses runs.
#[track_caller]
pub fn cond<A: Tree, Out: Tree>(
    holds: impl Operand,
    on_true: impl Fn(A) -> Out,
    on_false: impl Fn(A) -> Out,
    operands: A,
) -> Out {
    let (yes, no) = (|a| one(&on_true, a), |a| one(&on_false, a));
    or_raise(control::cond(holds.input(), &yes, &no, held(operands)).and_then(unflatten))
}
