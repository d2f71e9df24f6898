//! What a function under a memory limit is traced as when dropping values is not enough: its loops
//! keep less for their gradients. A loop's gradient stacks what an iteration computes; here an
//! iteration is a checkpoint, or a segment of about the root of all iterations is one too, and then
//! only what enters a segment is kept.

use std::cell::Cell;
use std::sync::Arc;
use vramlab_ir::{Fault, Func, FuncBuilder, Op, Param, Params, Shape, Type, Value};
use vramlab_ops::{CHECKPOINT, RESHAPE, SCAN};

/// How the loops of a trace are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loops {
    AsWritten,
    Bodies,
    Segments,
}

impl Loops {
    /// Leaner ways, the cheapest first, each in words for notes.
    pub const LEANER: [(Loops, &'static str); 2] = [
        (Loops::Bodies, "loop bodies computed again"),
        (Loops::Segments, "loops computed again in segments of about the root of their steps"),
    ];
}

thread_local! {
    static LOOPS: Cell<Loops> = const { Cell::new(Loops::AsWritten) };
}

/// Runs `trace` with the loops of this thread written in another way.
pub(crate) fn with<T>(loops: Loops, trace: impl FnOnce() -> T) -> T {
    struct Guard(Loops);
    impl Drop for Guard {
        fn drop(&mut self) {
            LOOPS.set(self.0);
        }
    }
    let _guard = Guard(LOOPS.replace(loops));
    trace()
}

/// A scan: its body, and the numbers that its equation has.
pub(crate) struct Scan {
    pub body: Arc<Func>,
    pub length: usize,
    pub consts: usize,
    pub carries: usize,
    pub reverse: bool,
}

impl Scan {
    pub fn params(&self) -> Params {
        Params::new()
            .with("body", Param::Func(Arc::clone(&self.body)))
            .with("length", Param::Int(self.length as i64))
            .with("consts", Param::Int(self.consts as i64))
            .with("carries", Param::Int(self.carries as i64))
            .with("reverse", Param::Bool(self.reverse))
    }

    /// The equation that stands for the loop: the loop itself, or a call of what is kept leaner.
    /// Operands and results are the loop's.
    ///
    /// # Errors
    /// The fault of a shape rule.
    pub fn written(self) -> Result<(Op, Params), Fault> {
        match LOOPS.get() {
            Loops::AsWritten => Ok((&SCAN, self.params())),
            Loops::Bodies => Ok((&SCAN, self.checkpointed()?.params())),
            Loops::Segments => match segment(self.length) {
                Some(steps) => self.in_segments(steps),
                None => Ok((&SCAN, self.checkpointed()?.params())),
            },
        }
    }

    /// The body as one checkpoint.
    fn checkpointed(self) -> Result<Scan, Fault> {
        let body = checkpoint(&self.body)?;
        Ok(Scan { body: Arc::new(body), ..self })
    }

    /// A loop over segments of `steps` iterations, each one a checkpoint, as a function.
    fn in_segments(self, steps: usize) -> Result<(Op, Params), Fault> {
        let (whole, count) = (self.body.param_types(), self.length / steps);
        let Scan { consts, carries, length, reverse, .. } = self;
        let inner = Scan { length: steps, ..self.checkpointed()? };
        let stacked = |ty: &Type, extents: &[usize]| {
            Type::new(ty.dtype, Shape::new([extents, ty.shape.dims()].concat()))
        };
        let first = consts + carries;
        let mut segment = FuncBuilder::new("segment");
        let operands: Vec<Value> = whole
            .iter()
            .enumerate()
            .map(|(at, ty)| match at < first {
                true => segment.param(ty.clone()),
                false => segment.param(stacked(ty, &[steps])),
            })
            .collect();
        let results = segment.push(&SCAN, inner.params(), &operands, None)?;
        let segment = checkpoint(&Arc::new(segment.finish(results)))?;
        let outer = Scan { body: Arc::new(segment), length: count, consts, carries, reverse };
        let mut builder = FuncBuilder::new("segments");
        let params: Vec<Value> = whole
            .iter()
            .enumerate()
            .map(|(at, ty)| match at < first {
                true => builder.param(ty.clone()),
                false => builder.param(stacked(ty, &[length])),
            })
            .collect();
        let mut operands = params[..first].to_vec();
        for (&slices, ty) in params[first..].iter().zip(&whole[first..]) {
            let shape = stacked(ty, &[count, steps]).shape;
            operands.push(reshape(&mut builder, slices, shape)?);
        }
        let mut results = builder.push(&SCAN, outer.params(), &operands, None)?;
        for result in &mut results[carries..] {
            let dims = builder.ty(*result).shape.dims()[2..].to_vec();
            let shape = Shape::new([&[length], dims.as_slice()].concat());
            *result = reshape(&mut builder, *result, shape)?;
        }
        let func = Arc::new(builder.finish(results));
        let params =
            Params::new().with("kind", Param::Text("jit".into())).with("func", Param::Func(func));
        Ok((&vramlab_ops::CALL, params))
    }
}

/// A number of iterations that goes into `length` and is nearest its root, where both it and what
/// remains are more than a few.
fn segment(length: usize) -> Option<usize> {
    const FEW: usize = 4;
    let root = (length as f64).sqrt();
    let fits = |&steps: &usize| length.is_multiple_of(steps) && length / steps >= FEW;
    let far = |steps: &usize| ((*steps as f64).ln() - root.ln()).abs();
    (FEW..=length / FEW).filter(fits).min_by(|a, b| far(a).total_cmp(&far(b)))
}

/// A function of one equation: the checkpoint of `func`.
fn checkpoint(func: &Arc<Func>) -> Result<Func, Fault> {
    let mut builder = FuncBuilder::new(func.name.clone());
    let operands: Vec<Value> = func.param_types().into_iter().map(|ty| builder.param(ty)).collect();
    let params = Params::new()
        .with("policy", Param::Text("nothing_saveable".into()))
        .with("func", Param::Func(Arc::clone(func)));
    let results = builder.push(&CHECKPOINT, params, &operands, None)?;
    Ok(builder.finish(results))
}

fn reshape(builder: &mut FuncBuilder, value: Value, shape: Shape) -> Result<Value, Fault> {
    let params = Params::new().with("shape", Param::Shape(shape));
    Ok(builder.push(&RESHAPE, params, &[value], None)?[0])
}
