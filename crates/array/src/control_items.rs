//! Entries of the surface table for loops and branches.

use crate::control::{self, Held};
use crate::decode::Decoder;
use crate::jit::Results;
use crate::operand::Operand;
use crate::prelude_items::{flatten, rebuild};
use crate::surface::{Callable, Dyn, Item, Place};
use vramlab_ir::Fault;

fn held(value: Dyn) -> Result<Held, Fault> {
    let mut arrays = Vec::new();
    let structure = flatten(value, &mut arrays)?;
    Ok((arrays, structure))
}

fn value((arrays, structure): Held) -> Dyn {
    rebuild(&structure, &mut arrays.into_iter())
}

fn called(f: &dyn Callable, arguments: Vec<Held>) -> Result<Results, Fault> {
    held(f.call(arguments.into_iter().map(value).collect())?)
}

fn scanned(name: &'static str, reverse: bool, arguments: Vec<Dyn>) -> Result<Dyn, Fault> {
    let mut decoder = Decoder::new(name, arguments);
    let f = decoder.function()?;
    let (init, xs) = (held(decoder.next()?)?, held(decoder.next()?)?);
    decoder.end()?;
    let body = |carry, slice| called(&*f, vec![carry, slice]);
    control::scan(name, reverse, &body, init, xs).map(value)
}

pub(crate) static CONTROL: &[Item] = &[
    Item {
        name: "scan",
        place: Place::Function,
        signature: "fn scan<C: Tree, X: Tree, Y: Tree>(f: impl Fn(C, X) -> (C, Y), init: C, xs: X) -> (C, Y)",
        doc: "Goes through the slices of xs along their leading axis: f(carry, slice) gives the next \
              carry and a slice of the results. The last carry and the stacked results.",
        example: "let (total, sums) = scan(|c, x| (&c + &x, c + x), zeros(()), linspace(1.0, 4.0, 4));\n\
                  sums",
        call: |arguments| scanned("scan", false, arguments),
    },
    Item {
        name: "scan_reverse",
        place: Place::Function,
        signature: "fn scan_reverse<C: Tree, X: Tree, Y: Tree>(f: impl Fn(C, X) -> (C, Y), init: C, xs: X) -> (C, Y)",
        doc: "The same as scan from the last slice to the first; results stand where their slices \
              stood.",
        example: "let (total, sums) =\n    scan_reverse(|c, x| (&c + &x, c + x), zeros(()), linspace(1.0, 4.0, 4));\n\
                  sums",
        call: |arguments| scanned("scan_reverse", true, arguments),
    },
    Item {
        name: "fori_loop",
        place: Place::Function,
        signature: "fn fori_loop<C: Tree>(lo: impl Operand, hi: impl Operand, body: impl Fn(Array, C) -> C, init: C) -> C",
        doc: "body(i, carry) for i from lo to before hi. Between two numbers it has gradients; an \
              array as a bound makes it a while_loop.",
        example: "fori_loop(0, 10, |i, x| x * 0.5 + i, ones([3]))",
        call: |arguments| {
            let mut decoder = Decoder::new("fori_loop", arguments);
            let (lo, hi) = (decoder.operand()?, decoder.operand()?);
            let body = decoder.function()?;
            let init = held(decoder.next()?)?;
            decoder.end()?;
            let step = |at, carry| called(&*body, vec![at, carry]);
            control::fori(lo.input(), hi.input(), &step, init).map(value)
        },
    },
    Item {
        name: "while_loop",
        place: Place::Function,
        signature: "fn while_loop<C: Tree>(cond: impl Fn(C) -> Array, body: impl Fn(C) -> C, init: C) -> C",
        doc: "Goes on with body while cond, a bool scalar of the carried value, holds.",
        example: "while_loop(|x: Array| x.max().lt(100.0), |x| x * 2.0, linspace(1.0, 3.0, 3))",
        call: |arguments| {
            let mut decoder = Decoder::new("while_loop", arguments);
            let (cond, body) = (decoder.function()?, decoder.function()?);
            let init = held(decoder.next()?)?;
            decoder.end()?;
            let asked = |carry| called(&*cond, vec![carry]);
            let step = |carry| called(&*body, vec![carry]);
            control::repeat(&asked, &step, init).map(value)
        },
    },
    Item {
        name: "cond",
        place: Place::Function,
        signature: "fn cond<A: Tree, Out: Tree>(holds: impl Operand, on_true: impl Fn(A) -> Out, on_false: impl Fn(A) -> Out, operands: A) -> Out",
        doc: "One of two functions of the operands; only the one that the bool scalar chooses runs.",
        example: "let x = linspace(-1.0, 1.0, 3);\ncond(x.sum().gt(0.0), |x| x * 2.0, |x| -x, x.clone())",
        call: |arguments| {
            let mut decoder = Decoder::new("cond", arguments);
            let holds = decoder.operand()?;
            let (on_true, on_false) = (decoder.function()?, decoder.function()?);
            let operands = held(decoder.next()?)?;
            decoder.end()?;
            let yes = |a| called(&*on_true, vec![a]);
            let no = |a| called(&*on_false, vec![a]);
            control::cond(holds.input(), &yes, &no, operands).map(value)
        },
    },
];
