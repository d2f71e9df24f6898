//! Random programs with what they must give, for holding compiled code to the interpreter.
//!
//! Every value but a result's last op is a small whole number, so that any order of summation, any
//! fusion and any fused multiply-add gives the same bits; results that are not whole (`tanh`, `div`)
//! feed nothing and are compared within an error.

use std::sync::Arc;
use vramlab_ir::{
    DType, Func, FuncBuilder, Literal, Param, Params, Primitive, Shape, Tensor, Type, Value,
    evaluate, parse, verify,
};
use vramlab_ops::{Entry, Format, Operands, entries, lookup};

/// A program, arguments, and what the interpreter makes of them.
pub struct Sample {
    pub func: Arc<Func>,
    pub arguments: Vec<Tensor>,
    pub results: Vec<Tensor>,
}

/// The sample of a seed, always the same.
pub fn sample(seed: u64) -> Sample {
    let mut writer = Writer::new(seed);
    for _ in 0..1 + writer.below(3) {
        writer.argument();
    }
    let wanted = 1 + writer.below(12);
    for _ in 0..40 * wanted {
        if writer.equations >= wanted {
            break;
        }
        writer.equation();
    }
    writer.finish()
}

/// Whether `got` is `wanted`: the same bits for integers and bool, for floats within a relative error
/// that polynomials of any back end keep.
pub fn agrees(wanted: &Tensor, got: &Tensor) -> bool {
    let close = |(wanted, got): (Literal, Literal)| {
        let (a, b) = (wanted.as_f64(), got.as_f64());
        let error = if wanted.dtype() == DType::F64 { 1e-12 } else { 1e-5 };
        let near = wanted.dtype().is_float() && (a - b).abs() <= error * a.abs().max(1e-3);
        a == b || near || (a.is_nan() && b.is_nan())
    };
    wanted.ty == got.ty && wanted.literals().zip(got.literals()).all(close)
}

const DTYPES: [DType; 5] = [DType::F32, DType::F64, DType::I32, DType::U32, DType::Bool];
const LARGEST: f64 = 1024.0;

struct Writer {
    state: u64,
    builder: FuncBuilder,
    equations: usize,
    arguments: Vec<Tensor>,
    /// Values that later equations may use.
    whole: Vec<(Value, Tensor)>,
    /// Values that only results may use.
    inexact: Vec<Value>,
    unused: Vec<Value>,
}

impl Writer {
    fn new(seed: u64) -> Writer {
        Writer {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d,
            builder: FuncBuilder::new(format!("sample_{seed}")),
            equations: 0,
            arguments: Vec::new(),
            whole: Vec::new(),
            inexact: Vec::new(),
            unused: Vec::new(),
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.state =
            self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x14057b7ef767814f);
        ((self.state >> 33) % n as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn shape(&mut self) -> Shape {
        let rank = self.pick(&[0, 1, 2, 2, 2, 3]);
        Shape::new((0..rank).map(|_| self.pick(&[1, 2, 3, 3, 4, 8, 0])).collect::<Vec<_>>())
    }

    fn tensor(&mut self, ty: Type) -> Tensor {
        let low = if matches!(ty.dtype, DType::U32 | DType::Bool) { 0 } else { -4 };
        let dtype = ty.dtype;
        Tensor::fill(ty, |_| Literal::from_i64(dtype, low + self.below(9) as i64))
            .expect("a few bytes")
    }

    fn argument(&mut self) {
        let ty = Type::new(self.pick(&DTYPES), self.shape());
        let value = self.builder.param(ty.clone());
        let tensor = self.tensor(ty);
        self.arguments.push(tensor.clone());
        self.whole.push((value, tensor));
    }

    /// Filters of an argument's rank and channels: what chance would not find.
    fn convolution(&mut self) {
        let space = 1 + self.below(2);
        let mut dims = |from: &[usize], count: usize| -> Vec<usize> {
            (0..count).map(|_| self.pick(from)).collect()
        };
        let (x, w) = (dims(&[1, 2, 4, 5], space), dims(&[1, 2, 3], space));
        let sides = dims(&[1, 2, 3], 3);
        let mut ints = |from: &[i64]| Param::Ints((0..space).map(|_| self.pick(from)).collect());
        let params = Params::new()
            .with("stride", ints(&[1, 1, 2]))
            .with("low", ints(&[0, 1, 2, -1]))
            .with("high", ints(&[0, 1, 2, -1]))
            .with("x_dilation", ints(&[1, 1, 2]))
            .with("w_dilation", ints(&[1, 1, 2]));
        let x = Type::new(DType::F32, [&sides[..1], x.as_slice(), &sides[1..2]].concat());
        let w = Type::new(DType::F32, [w.as_slice(), &sides[1..]].concat());
        if vramlab_ops::CONV.infer(&[x.clone(), w.clone()], &params).is_err() {
            return;
        }
        let first = self.whole.len();
        for ty in [x, w] {
            let value = self.builder.param(ty.clone());
            let tensor = self.tensor(ty);
            self.arguments.push(tensor.clone());
            self.whole.push((value, tensor));
        }
        self.apply(&vramlab_ops::CONV, params, &[first, first + 1]);
    }

    /// Tries one random equation; most do not fit and leave no trace.
    fn equation(&mut self) {
        let table: Vec<&'static Entry> = entries().filter(|entry| sampled(entry)).collect();
        let entry = self.pick(&table);
        if entry.name == vramlab_ops::CONV.name {
            // It brings arguments of its own, and these come before every equation.
            if self.equations == 0 {
                self.convolution();
            }
            return;
        }
        let count = match entry.operands {
            Operands::Exactly(n) => n,
            Operands::AtLeast(n) => n + self.below(3),
        };
        if count > 0 && self.whole.is_empty() {
            return;
        }
        let chosen: Vec<usize> = (0..count).map(|_| self.below(self.whole.len())).collect();
        let inputs: Vec<Type> = chosen.iter().map(|&i| self.whole[i].1.ty.clone()).collect();
        let params = entry.params.iter().fold(Params::new(), |params, spec| {
            params.with(spec.name, self.param(spec.format, &inputs))
        });
        self.apply(entry, params, &chosen);
    }

    fn apply(&mut self, entry: &'static Entry, params: Params, chosen: &[usize]) {
        let Some(result) = self.attempt(entry, &params, chosen) else { return };
        let values: Vec<Value> = chosen.iter().map(|&i| self.whole[i].0).collect();
        let outputs = self.builder.push(entry, params, &values, None);
        let value = outputs.expect("the attempt went through the same rule")[0];
        self.equations += 1;
        self.unused.retain(|unused| !values.contains(unused));
        if small_and_whole(&result) {
            self.unused.push(value);
            self.whole.push((value, result));
        } else {
            self.inexact.push(value);
        }
    }

    /// What the equation gives, if it fits and keeps to numbers that every order of summation agrees
    /// on.
    fn attempt(&self, entry: &'static Entry, params: &Params, chosen: &[usize]) -> Option<Tensor> {
        let mut alone = FuncBuilder::new(entry.name);
        let tensors: Vec<Tensor> = chosen.iter().map(|&i| self.whole[i].1.clone()).collect();
        let values: Vec<Value> = tensors.iter().map(|t| alone.param(t.ty.clone())).collect();
        let results = alone.push(entry, params.clone(), &values, None).ok()?;
        if alone.ty(results[0]).shape.elements() > 512
            || !DTYPES.contains(&alone.ty(results[0]).dtype)
        {
            return None;
        }
        // A product may leave the exact numbers on its way to a result that is one.
        if entry.name == "prod" && tensors[0].ty.shape.elements() > 2 {
            return None;
        }
        let result = evaluate(&alone.finish(results), &tensors).ok()?.remove(0);
        // Whole results of inexact ops may be missed by a rounding and then take another branch.
        let inexact = [
            "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "erf", "pow", "rsqrt",
            "atan2",
        ];
        let sink = result.ty.dtype.is_float() && inexact.contains(&entry.name);
        let finite = result.literals().all(|l| l.as_f64().is_finite());
        if !finite || (sink && small_and_whole(&result)) {
            return None;
        }
        Some(result)
    }

    fn param(&mut self, format: Format, inputs: &[Type]) -> Param {
        let rank = inputs.first().map_or(0, |ty| ty.shape.rank());
        match format {
            Format::Bool => Param::Bool(self.below(2) == 0),
            Format::Int => Param::Int(self.below(3) as i64),
            Format::Ints => {
                let length = if self.below(3) > 0 { rank } else { self.below(3) };
                Param::Ints((0..length).map(|_| self.below(3) as i64).collect())
            }
            Format::Literal => {
                let dtype = self.pick(&DTYPES);
                Param::Literal(Literal::from_i64(dtype, self.below(4) as i64))
            }
            Format::DType => Param::DType(self.pick(&DTYPES)),
            Format::Shape => Param::Shape(self.shape()),
            // A name, or the memory kind of a copy.
            Format::Text => Param::Text("device".into()),
            Format::Func => unreachable!("calls are not drawn"),
        }
    }

    fn finish(mut self) -> Sample {
        let mut results = std::mem::take(&mut self.unused);
        results.append(&mut self.inexact);
        if results.is_empty() {
            results.extend(self.whole.last().map(|(value, _)| *value));
        }
        let func = self.builder.finish(results);
        let results = evaluate(&func, &self.arguments).expect("every equation was tried alone");
        Sample { func: Arc::new(func), arguments: self.arguments, results }
    }
}

fn small_and_whole(tensor: &Tensor) -> bool {
    tensor.literals().all(|l| l.as_f64().abs() <= LARGEST && l.as_f64().fract() == 0.0)
}

/// Ops that hold functions have programs of their own, in the compiler's tests.
fn sampled(entry: &Entry) -> bool {
    entry.params.iter().all(|spec| spec.format != Format::Func)
}

#[test]
fn samples_verify_and_survive_the_text() {
    let mut used = std::collections::HashSet::new();
    for seed in 0..1500 {
        let sample = sample(seed);
        assert_eq!(verify(&sample.func), Ok(()), "{}", sample.func);
        let again = parse(&sample.func.to_string(), &lookup).expect("what prints parses");
        assert_eq!(again, *sample.func);
        let results = evaluate(&again, &sample.arguments).expect("what ran runs again");
        assert!(results.iter().zip(&sample.results).all(|(a, b)| agrees(b, a)), "{again}");
        used.extend(sample.func.eqns.iter().map(|eqn| eqn.op.name()));
    }
    let missing: Vec<&str> =
        entries().filter(|e| sampled(e) && !used.contains(e.name)).map(|e| e.name).collect();
    assert!(missing.is_empty(), "no sample uses {missing:?}");
}

#[test]
fn agreement_tells_numbers_apart() {
    let tensor = |values: &[f64]| Tensor::from_f64(DType::F32, [2], values).expect("two values");
    assert!(agrees(&tensor(&[0.1, 2.0]), &tensor(&[0.1000001, 2.0])));
    assert!(!agrees(&tensor(&[0.1, 2.0]), &tensor(&[0.11, 2.0])));
    assert!(agrees(&tensor(&[f64::NAN, 0.0]), &tensor(&[f64::NAN, 0.0])));
    assert!(!agrees(&tensor(&[f64::NAN, 0.0]), &tensor(&[0.0, 0.0])));
}
