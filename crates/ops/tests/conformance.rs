//! What holds for every op of the table, tried on random operands and parameters.

use std::collections::HashSet;
use std::sync::Arc;
use vramlab_ir::interp::evaluate_lowering;
use vramlab_ir::{
    DType, Func, FuncBuilder, Literal, Param, Params, Primitive, Shape, Tensor, Type, evaluate,
    parse, verify,
};
use vramlab_ops::{Entry, Format, Operands, entries, lookup};

/// SplitMix64: the same operands in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn dims(&mut self) -> Vec<usize> {
        let rank = self.pick(&[0, 0, 1, 1, 2, 2, 3, 4]);
        (0..rank).map(|_| self.pick(&[0, 1, 1, 2, 2, 3, 4])).collect()
    }

    /// Small, or of a size that no device holds.
    fn shape(&mut self) -> Shape {
        let mut dims = self.dims();
        if self.chance(2) && !dims.is_empty() {
            let at = self.below(dims.len());
            dims[at] = self.pick(&[1 << 31, 1 << 40, usize::MAX / 2, usize::MAX]);
        }
        Shape::new(dims)
    }

    fn int(&mut self) -> i64 {
        match self.below(50) {
            0 => self.pick(&[i64::MIN, i64::MAX, 1 << 40, -7]),
            1 => -1,
            n => (n % 4) as i64,
        }
    }

    fn param(&mut self, format: Format, inputs: &[Type]) -> Param {
        match format {
            Format::Bool => Param::Bool(self.chance(50)),
            Format::Int => Param::Int(self.int()),
            Format::Ints => {
                let rank = inputs.first().map_or(0, |ty| ty.shape.rank());
                let length = if self.chance(60) { rank } else { self.below(3) };
                Param::Ints((0..length).map(|_| self.int()).collect())
            }
            Format::Literal => {
                let dtype = self.pick(&DType::ALL);
                Param::Literal(Literal::from_bits(dtype, self.next()))
            }
            Format::DType => Param::DType(self.pick(&DType::ALL)),
            Format::Shape => Param::Shape(self.shape()),
            Format::Text => {
                let texts = ["jit", "jit", "device", "pinned_host", "", "no \"such\"\n"];
                Param::Text(self.pick(&texts).into())
            }
            Format::Func => {
                let types = if self.chance(70) { inputs.to_vec() } else { vec![self.ty()] };
                Param::Func(Arc::new(pass_through(types)))
            }
        }
    }

    fn ty(&mut self) -> Type {
        Type::new(self.pick(&DType::ALL), self.shape())
    }

    fn operands(&mut self, entry: &Entry) -> Vec<Type> {
        let count = match entry.operands {
            _ if self.chance(3) => self.below(4),
            Operands::Exactly(n) => n,
            Operands::AtLeast(n) => n + self.below(3),
        };
        let common = self.ty();
        let leading = self.pick(&[0, 1, 1, 2]);
        (0..count)
            .map(|operand| match self.below(10) {
                0 => self.ty(),
                1 if operand == 0 => Type::new(DType::Bool, common.shape.clone()),
                2 | 3 => Type::new(common.dtype, self.shape()),
                4 | 5 if operand >= leading => Type::new(DType::I32, []),
                6 => Type::new(DType::U32, []),
                7 if operand > 0 => Type::new(DType::I32, [3, 1]),
                _ => common.clone(),
            })
            .collect()
    }

    /// What chance would not find: filters of operand 0's rank and channels, and most often fitting.
    fn filters(&mut self) -> (Vec<Type>, Params) {
        let space = self.pick(&[1, 1, 2]);
        let dtype = self.pick(&DType::ALL);
        let [n, c, o] = [0; 3].map(|_| self.pick(&[0, 1, 2, 3]));
        let mut draw =
            |from: &[usize]| -> Vec<usize> { (0..space).map(|_| self.pick(from)).collect() };
        let (x, w) = (draw(&[1, 2, 3, 4, 5]), draw(&[1, 2, 3]));
        let mut ints = |from: &[i64]| {
            let wild = self.chance(3);
            let int = |random: &mut Random| if wild { random.int() } else { random.pick(from) };
            Param::Ints((0..space).map(|_| int(self)).collect())
        };
        let params = Params::new()
            .with("stride", ints(&[1, 1, 2, 3]))
            .with("low", ints(&[0, 0, 1, 2, -1]))
            .with("high", ints(&[0, 0, 1, 2, -1]))
            .with("x_dilation", ints(&[1, 1, 2, 3]))
            .with("w_dilation", ints(&[1, 1, 2]));
        let x = Type::new(dtype, [&[n], x.as_slice(), &[c]].concat());
        (vec![x, Type::new(dtype, [w.as_slice(), &[c, o]].concat())], params)
    }

    fn params(&mut self, entry: &Entry, inputs: &[Type]) -> Params {
        if self.chance(2) {
            return Params::new().with("axis", Param::Bool(true));
        }
        entry.params.iter().fold(Params::new(), |params, spec| {
            // A branch takes what stands behind the condition, and no loop goes on for ever.
            let inputs =
                if spec.name.starts_with("on_") { inputs.get(1..).unwrap_or(&[]) } else { inputs };
            match spec.name {
                "cond" => params.with(spec.name, Param::Func(Arc::new(never(inputs)))),
                _ => params.with(spec.name, self.param(spec.format, inputs)),
            }
        })
    }

    fn tensor(&mut self, ty: &Type) -> Tensor {
        let dtype = ty.dtype;
        Tensor::fill(ty.clone(), |_| match dtype {
            DType::Bool => Literal::from_i64(dtype, self.below(2) as i64),
            _ if self.chance(10) => Literal::from_bits(dtype, self.next()),
            _ => Literal::from_f64(dtype, self.below(17) as f64 / 4.0 - 2.0),
        })
        .unwrap()
    }
}

fn pass_through(types: Vec<Type>) -> Func {
    let mut builder = FuncBuilder::new("pass");
    let params = types.into_iter().map(|ty| builder.param(ty)).collect();
    builder.finish(params)
}

/// A condition that does not hold.
fn never(types: &[Type]) -> Func {
    let mut builder = FuncBuilder::new("never");
    types.iter().for_each(|ty| {
        builder.param(ty.clone());
    });
    let value = Param::Literal(Literal::from_i64(DType::Bool, 0));
    let params = Params::new().with("value", value).with("shape", Param::Shape(Shape::scalar()));
    let results = builder.push(lookup("full").unwrap(), params, &[], None).unwrap();
    builder.finish(results)
}

/// One application as a program of one equation.
fn program(entry: &'static Entry, inputs: &[Type], params: &Params) -> Func {
    let mut builder = FuncBuilder::new(entry.name);
    let values: Vec<_> = inputs.iter().map(|ty| builder.param(ty.clone())).collect();
    let results = builder.push(entry, params.clone(), &values, None).unwrap();
    builder.finish(results)
}

/// Verifies, prints, parses, runs in both ways, and compares types.
fn accepted(random: &mut Random, entry: &'static Entry, inputs: &[Type], params: &Params) {
    let types = entry.infer(inputs, params).unwrap();
    let func = program(entry, inputs, params);
    assert_eq!(verify(&func), Ok(()), "{func}");
    let text = func.to_string();
    let again = parse(&text, &lookup).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again, func, "{text}");
    assert_eq!(again.to_string(), text);
    let lowering = entry.lower(inputs, params);
    if inputs.iter().chain(&types).any(|ty| ty.bytes() > 1 << 16) {
        return;
    }
    let tensors: Vec<Tensor> = inputs.iter().map(|ty| random.tensor(ty)).collect();
    let direct = if types.is_empty() {
        Vec::new()
    } else {
        evaluate_lowering(&lowering, &tensors.iter().collect::<Vec<_>>(), &types).unwrap()
    };
    for (tensor, ty) in direct.iter().zip(&types) {
        assert_eq!(&tensor.ty, ty, "{text}");
        assert_eq!(tensor.bytes.len() as u64, ty.bytes(), "{text}");
        assert!(tensor.literals().all(|l| ty.dtype != DType::Bool || l.bits() <= 1), "{text}");
    }
    assert_eq!(evaluate(&func, &tensors).unwrap(), direct, "{text}");
}

#[test]
fn random_applications_are_refused_in_words_or_run() {
    let mut random = Random(7);
    for entry in entries() {
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..20_000 {
            if taken > 60 && refused > 60 {
                break;
            }
            let (inputs, params) = match entry.name {
                "conv" if random.chance(70) => random.filters(),
                _ => {
                    let inputs = random.operands(entry);
                    let params = random.params(entry, &inputs);
                    (inputs, params)
                }
            };
            match entry.infer(&inputs, &params) {
                Ok(_) => {
                    taken += 1;
                    accepted(&mut random, entry, &inputs, &params);
                }
                Err(fault) => {
                    refused += 1;
                    assert_eq!(fault.op, entry.name);
                    assert!(!fault.message.is_empty());
                }
            }
        }
        assert!(taken > 20, "{}: only {taken} random applications were taken", entry.name);
        assert!(refused > 20, "{}: only {refused} were refused", entry.name);
    }
}

#[test]
fn every_entry_is_whole() {
    let mut names = HashSet::new();
    for entry in entries() {
        assert!(names.insert(entry.name), "{} is in the table twice", entry.name);
        assert!(entry.doc.ends_with('.'), "{}: its words are sentences", entry.name);
        assert!(!entry.example.trim().is_empty(), "{} has no example", entry.name);
        assert!(entry.params.iter().all(|p| p.doc.ends_with('.')), "{}", entry.name);
        assert_eq!(lookup(entry.name).map(|op| op.name()), Some(entry.name));
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(entry.name.chars().all(word), "{}", entry.name);
    }
    assert!(lookup("no_such_op").is_none());
    assert!(names.len() >= 45);
}

#[test]
fn wrong_operand_counts_are_refused_by_every_op() {
    let params = Params::new();
    let many = vec![Type::new(DType::F32, [2]); 9];
    for entry in entries() {
        if let Operands::Exactly(n) = entry.operands {
            for count in (0..9).filter(|&count| count != n) {
                let fault = entry.infer(&many[..count], &params).unwrap_err();
                assert!(fault.message.contains("operand"), "{fault}");
            }
        }
    }
}

fn fault(op: &str, inputs: &[(DType, &[usize])], params: Params) -> String {
    let types: Vec<Type> = inputs.iter().map(|(d, s)| Type::new(*d, *s)).collect();
    lookup(op).unwrap().infer(&types, &params).unwrap_err().to_string()
}

fn ints(params: &[(&str, &[i64])]) -> Params {
    params
        .iter()
        .fold(Params::new(), |all, (name, ints)| all.with(*name, Param::Ints(ints.to_vec())))
}

#[test]
fn faults_name_the_op_and_the_operands() {
    use DType::*;
    let dot = ints(&[
        ("lhs_batch", &[]),
        ("rhs_batch", &[]),
        ("lhs_contract", &[1]),
        ("rhs_contract", &[0]),
    ]);
    assert_eq!(
        fault("dot", &[(F32, &[4, 3]), (F32, &[4, 5])], dot),
        "dot: f32[4,3] and f32[4,5]: contracted extents 3 and 4 differ"
    );
    assert_eq!(
        fault("sum", &[(F32, &[4, 3])], ints(&[("axes", &[3])]).with("keep", Param::Bool(false))),
        "sum: axis 3 of f32[4,3]; valid are -2..=1"
    );
    assert_eq!(
        fault("add", &[(F32, &[4, 3]), (F32, &[4, 5])], Params::new()),
        "add: f32[4,3] and f32[4,5]: shapes do not broadcast: extents 3 and 5 at axis -1"
    );
    assert_eq!(
        fault("add", &[(F32, &[3]), (I32, &[3])], Params::new()),
        "add: f32[3] and i32[3]: element types f32 and i32 differ"
    );
    assert_eq!(fault("add", &[(F32, &[3])], Params::new()), "add: takes 2 operands, got 1: f32[3]");
    assert_eq!(
        fault("max", &[(F32, &[0, 3])], ints(&[("axes", &[0])]).with("keep", Param::Bool(false))),
        "max: f32[0,3]: no elements along axes [0], and max of nothing is undefined"
    );
    let huge = Params::new()
        .with("value", Param::Literal(Literal::from_f64(F32, 0.0)))
        .with("shape", Param::Shape(Shape::from([1 << 40, 1 << 40])));
    assert_eq!(
        fault("full", &[], huge),
        "full: f32[1099511627776,1099511627776] has more bytes than can be addressed"
    );
    assert_eq!(
        fault(
            "reshape",
            &[(F32, &[4, 3])],
            Params::new().with("shape", Param::Shape(Shape::from([5])))
        ),
        "reshape: f32[4,3]: 12 elements do not fill [5], which holds 5"
    );
    assert_eq!(
        fault("reshape", &[(F32, &[4, 3])], Params::new()),
        "reshape: takes the parameters [shape: Shape], got []"
    );
}

#[test]
fn axes_are_brought_into_the_order_that_ops_take() {
    let ty = Type::new(DType::F32, [2, 3, 4]);
    assert_eq!(vramlab_ops::axes("sum", &ty, &[-1, 0]).unwrap(), [0, 2]);
    let twice = vramlab_ops::axes("sum", &ty, &[2, -1]).unwrap_err();
    assert_eq!(twice.to_string(), "sum: axis 2 of f32[2,3,4] is named twice in [2, -1]");
    let scalar = vramlab_ops::axis("sum", &Type::new(DType::F32, []), 0).unwrap_err();
    assert_eq!(scalar.to_string(), "sum: axis 0 of f32[]; a scalar has no axes");
}

#[test]
fn halves_compute_in_f32_and_round_once() {
    let ty = Type::new(DType::BF16, [1]);
    let func = program(vramlab_ops::entry("square").unwrap(), &[ty], &Params::new());
    let x = Tensor::from_f64(DType::BF16, [1], &[1.0078125]).unwrap();
    // 1.0078125² = 1.01568603515625, between the neighbours 1.015625 and 1.0234375.
    assert_eq!(evaluate(&func, &[x]).unwrap()[0].to_f64(), [1.015625]);
}
