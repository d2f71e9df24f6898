//! Random programs over every loop class.

#[path = "random/control.rs"]
mod control;

use std::sync::Arc;
use vramlab_ir::interp::Tensor;
use vramlab_ir::{DType, Func, FuncBuilder, Literal, Param, Params, Shape, Type, Value};

/// xorshift64*: the same programs on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

pub struct Generator {
    pub random: Random,
    builder: FuncBuilder,
    values: Vec<Value>,
    /// How many functions it is inside of.
    depth: u32,
    /// Extents above 1 are this many times as large.
    scale: usize,
}

const FLOATS: [DType; 3] = [DType::F32, DType::F64, DType::F32];

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator {
            random: Random::new(seed),
            builder: FuncBuilder::new("f"),
            values: Vec::new(),
            depth: 0,
            scale: 1,
        }
    }

    /// A generator of programs over larger arrays.
    pub fn scaled(seed: u64, scale: usize) -> Generator {
        Generator { scale, ..Generator::new(seed) }
    }

    /// A program of about `size` equations, and a donation mask.
    pub fn program(mut self, size: usize) -> (Func, Vec<bool>) {
        let params = 1 + self.random.below(4);
        for _ in 0..params {
            let ty = self.param_type();
            let value = self.builder.param(ty);
            self.values.push(value);
        }
        for _ in 0..size {
            self.step();
        }
        let count = 1 + self.random.below(4);
        let results: Vec<Value> = (0..count)
            .map(|_| {
                let behind = self.random.below(self.values.len()).min(self.random.below(6));
                self.values[self.values.len() - 1 - behind]
            })
            .collect();
        let donate = (0..params).map(|_| self.random.one_in(2)).collect();
        (self.builder.finish(results), donate)
    }

    fn extent(&mut self) -> usize {
        match self.random.below(60) {
            0 => 0,
            1..=9 => 1,
            n => (2 + n % 4) * self.scale,
        }
    }

    fn param_type(&mut self) -> Type {
        let dtype = *self.random.pick(&[
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F64,
            DType::I32,
            DType::F16,
            DType::Bool,
        ]);
        let rank = self.random.below(4);
        let dims: Vec<usize> = (0..rank).map(|_| self.extent()).collect();
        Type::new(dtype, dims)
    }

    fn push(&mut self, op: &str, params: Params, inputs: &[Value]) -> Option<Value> {
        let op = vramlab_ops::lookup(op).unwrap_or_else(|| panic!("no op {op}"));
        let outputs = self.builder.push(op, params, inputs, None).ok()?;
        let elements: usize = outputs.iter().map(|&o| self.builder.ty(o).shape.elements()).sum();
        if elements > 20_000 * self.scale.pow(3) {
            return None;
        }
        self.values.extend(&outputs);
        outputs.first().copied()
    }

    fn value(&mut self) -> Value {
        let late = self.random.one_in(2);
        let behind = match late {
            true => self.random.below(self.values.len().min(4)),
            false => self.random.below(self.values.len()),
        };
        self.values[self.values.len() - 1 - behind]
    }

    fn of_dtype(&mut self, wanted: impl Fn(DType) -> bool) -> Option<Value> {
        for _ in 0..8 {
            let value = self.value();
            if wanted(self.builder.ty(value).dtype) {
                return Some(value);
            }
        }
        None
    }

    fn float(&mut self) -> Option<Value> {
        self.of_dtype(|d| matches!(d, DType::F32 | DType::F64))
    }

    fn ty(&self, value: Value) -> Type {
        self.builder.ty(value).clone()
    }

    fn literal(&mut self, dtype: DType, value: f64) -> Value {
        let params = Params::new()
            .with("value", Param::Literal(Literal::from_f64(dtype, value)))
            .with("shape", Param::Shape(Shape::scalar()));
        self.push("full", params, &[]).expect("a fill has no shape rule")
    }

    fn step(&mut self) {
        let _ = match self.random.below(42) {
            0..=4 => self.unary(),
            5..=10 => self.binary(),
            11 => self.select(),
            12 => self.convert(),
            13..=15 => self.reduce(),
            16 => self.position(),
            17..=18 => self.reshape(),
            19 => self.transpose(),
            20 => self.broadcast(),
            21 => self.slice(),
            22 => self.flip(),
            23 => self.concatenate(),
            24 => self.pad(),
            25 => self.gather(),
            26 => self.dynamic_slice(),
            27 => self.dynamic_update_slice(),
            28..=29 => self.dot(),
            30 => self.create(),
            31 => self.identity(),
            32 => self.call(),
            33..=35 => self.scan(),
            36 => self.repeat(),
            37 => self.cond(),
            38 => self.cumulative(),
            39 => self.scatter_add(),
            _ => self.softmax(),
        };
    }

    fn unary(&mut self) -> Option<Value> {
        let x = self.float()?;
        let op = *self.random.pick(&["neg", "abs", "sin", "cos", "tanh", "erf", "square", "exp"]);
        // Bounded before and behind, so that chains stay well conditioned.
        let x = match op {
            "sin" | "cos" | "exp" => self.push("tanh", Params::new(), &[x])?,
            _ => x,
        };
        let y = self.push(op, Params::new(), &[x])?;
        match op {
            "square" | "exp" => self.push("tanh", Params::new(), &[y]),
            _ => Some(y),
        }
    }

    fn binary(&mut self) -> Option<Value> {
        let x = self.value();
        let dtype = self.ty(x).dtype;
        let y = match self.random.one_in(4) {
            true => {
                let value = *self.random.pick(&[0.0, 1.0, -1.0, 2.0, 0.5, -0.0]);
                self.literal(dtype, value)
            }
            false => self.of_dtype(|d| d == dtype)?,
        };
        let ops: &[&str] = match dtype {
            DType::Bool => &["logical_and", "logical_or", "logical_xor"],
            DType::I32 => &["add", "sub", "mul", "maximum", "minimum", "lt", "eq"],
            _ => &["add", "sub", "mul", "add", "mul", "maximum", "minimum"],
        };
        let op = *self.random.pick(ops);
        match self.random.one_in(2) {
            true => self.push(op, Params::new(), &[x, y]),
            false => self.push(op, Params::new(), &[y, x]),
        }
    }

    fn select(&mut self) -> Option<Value> {
        let condition = self.of_dtype(|d| d == DType::Bool)?;
        let x = self.value();
        let dtype = self.ty(x).dtype;
        let y = self.of_dtype(|d| d == dtype)?;
        self.push("select", Params::new(), &[condition, x, y])
    }

    fn convert(&mut self) -> Option<Value> {
        let x = self.of_dtype(|d| d != DType::F16)?;
        let to = match self.ty(x).dtype {
            DType::F32 | DType::F64 => *self.random.pick(&FLOATS),
            _ => *self.random.pick(&[DType::F32, DType::F64, DType::I32]),
        };
        self.push("convert", Params::new().with("dtype", Param::DType(to)), &[x])
    }

    fn axes(&mut self, rank: usize) -> Vec<i64> {
        (0..rank as i64).filter(|_| self.random.one_in(2)).collect()
    }

    fn reduce(&mut self) -> Option<Value> {
        let x = self.value();
        let ty = self.ty(x);
        let op = *match ty.dtype {
            DType::Bool => self.random.pick(&["any", "all"]),
            _ => self.random.pick(&["sum", "max", "min", "sum"]),
        };
        let mut axes = self.axes(ty.shape.rank());
        if self.random.one_in(2) && ty.shape.rank() > 0 {
            axes = vec![ty.shape.rank() as i64 - 1];
        }
        let keep = self.random.one_in(2);
        let params = Params::new().with("axes", Param::Ints(axes)).with("keep", Param::Bool(keep));
        self.push(op, params, &[x])
    }

    fn position(&mut self) -> Option<Value> {
        let x = self.of_dtype(|d| d == DType::I32)?;
        let rank = self.ty(x).shape.rank();
        let op = *self.random.pick(&["argmax", "argmin"]);
        let axis = self.random.below(rank.max(1)) as i64;
        let params =
            Params::new().with("axes", Param::Ints(vec![axis])).with("keep", Param::Bool(false));
        self.push(op, params, &[x])
    }

    fn reshape(&mut self) -> Option<Value> {
        let x = self.value();
        let mut rest = self.ty(x).shape.elements();
        let mut dims = Vec::new();
        while rest > 1 && dims.len() < 3 {
            let divisors: Vec<usize> = (1..=rest).filter(|d| rest.is_multiple_of(*d)).collect();
            let d = *self.random.pick(&divisors);
            dims.push(d);
            rest /= d;
        }
        dims.push(rest);
        let params = Params::new().with("shape", Param::Shape(Shape::new(dims)));
        self.push("reshape", params, &[x])
    }

    fn transpose(&mut self) -> Option<Value> {
        let x = self.value();
        let mut perm: Vec<i64> = (0..self.ty(x).shape.rank() as i64).collect();
        for i in (1..perm.len()).rev() {
            perm.swap(i, self.random.below(i + 1));
        }
        self.push("transpose", Params::new().with("perm", Param::Ints(perm)), &[x])
    }

    fn broadcast(&mut self) -> Option<Value> {
        let x = self.value();
        let mut dims = self.ty(x).shape.to_vec();
        for dim in &mut dims {
            if *dim == 1 && self.random.one_in(2) {
                *dim = 1 + self.random.below(4);
            }
        }
        if dims.len() < 4 && self.random.one_in(2) {
            dims.insert(0, 1 + self.random.below(3));
        }
        let params = Params::new().with("shape", Param::Shape(Shape::new(dims)));
        self.push("broadcast", params, &[x])
    }

    fn slice(&mut self) -> Option<Value> {
        let x = self.value();
        let (mut start, mut stop, mut step) = (Vec::new(), Vec::new(), Vec::new());
        for &d in self.ty(x).shape.iter() {
            let from = self.random.below(d + 1).min(d / 2);
            start.push(from as i64);
            stop.push((from + self.random.below(d - from + 1).max((d - from).min(2))) as i64);
            step.push(1 + self.random.below(2) as i64);
        }
        let params = Params::new()
            .with("start", Param::Ints(start))
            .with("stop", Param::Ints(stop))
            .with("step", Param::Ints(step));
        self.push("slice", params, &[x])
    }

    fn flip(&mut self) -> Option<Value> {
        let x = self.value();
        let axes = self.axes(self.ty(x).shape.rank());
        self.push("flip", Params::new().with("axes", Param::Ints(axes)), &[x])
    }

    fn concatenate(&mut self) -> Option<Value> {
        let x = self.value();
        let ty = self.ty(x);
        let same: Vec<Value> = self
            .values
            .iter()
            .copied()
            .filter(|&v| {
                let other = self.builder.ty(v);
                other.dtype == ty.dtype && other.shape.rank() == ty.shape.rank()
            })
            .collect();
        let axis = self.random.below(ty.shape.rank().max(1)) as i64;
        let mut parts = vec![x];
        for _ in 0..self.random.below(3) {
            parts.push(*self.random.pick(&same));
        }
        self.push("concatenate", Params::new().with("axis", Param::Int(axis)), &parts)
    }

    fn pad(&mut self) -> Option<Value> {
        let x = self.value();
        let ty = self.ty(x);
        let value = self.literal(ty.dtype, 1.0);
        let low = (0..ty.shape.rank()).map(|_| self.random.below(3) as i64).collect();
        let high = (0..ty.shape.rank()).map(|_| self.random.below(2) as i64).collect();
        let params = Params::new().with("low", Param::Ints(low)).with("high", Param::Ints(high));
        self.push("pad", params, &[x, value])
    }

    fn gather(&mut self) -> Option<Value> {
        let x = self.value();
        let ty = self.ty(x);
        if ty.shape.rank() == 0 {
            return None;
        }
        let axis = self.random.below(ty.shape.rank());
        let indices = self.of_dtype(|d| d == DType::I32)?;
        let behind = ty.shape.rank() - axis - 1;
        let mut dims = self.ty(indices).shape.to_vec();
        dims.extend(std::iter::repeat_n(1, behind));
        if dims.len() > 4 {
            return None;
        }
        let params = Params::new().with("shape", Param::Shape(Shape::new(dims)));
        let indices = self.push("reshape", params, &[indices])?;
        self.push("gather", Params::new().with("axis", Param::Int(axis as i64)), &[x, indices])
    }

    fn starts(&mut self, rank: usize) -> Option<Vec<Value>> {
        (0..rank)
            .map(|_| {
                let scalar = self.values.iter().copied().find(|&v| {
                    let ty = self.builder.ty(v);
                    ty.dtype == DType::I32 && ty.shape.rank() == 0
                });
                match scalar.filter(|_| self.random.one_in(2)) {
                    Some(scalar) => Some(scalar),
                    None => {
                        let value = self.random.below(5) as f64 - 1.0;
                        Some(self.literal(DType::I32, value))
                    }
                }
            })
            .collect()
    }

    fn dynamic_slice(&mut self) -> Option<Value> {
        let x = self.value();
        let ty = self.ty(x);
        let sizes: Vec<usize> =
            ty.shape.iter().map(|&d| if d == 0 { 0 } else { 1 + self.random.below(d) }).collect();
        let mut inputs = vec![x];
        inputs.extend(self.starts(ty.shape.rank())?);
        let params = Params::new().with("sizes", Param::Shape(Shape::new(sizes)));
        self.push("dynamic_slice", params, &inputs)
    }

    fn dynamic_update_slice(&mut self) -> Option<Value> {
        let x = self.value();
        let ty = self.ty(x);
        let update = match self.random.one_in(2) {
            true => {
                let sizes = ty.shape.iter().map(|&d| d.div_ceil(2)).collect::<Vec<usize>>();
                let mut inputs = vec![x];
                inputs.extend(self.starts(ty.shape.rank())?);
                let params = Params::new().with("sizes", Param::Shape(Shape::new(sizes)));
                let part = self.push("dynamic_slice", params, &inputs)?;
                match ty.dtype {
                    DType::Bool => part,
                    _ => self.push("add", Params::new(), &[part, part])?,
                }
            }
            false => self.of_dtype(|d| d == ty.dtype)?,
        };
        let mut inputs = vec![x, update];
        inputs.extend(self.starts(ty.shape.rank())?);
        self.push("dynamic_update_slice", Params::new(), &inputs)
    }

    fn dot(&mut self) -> Option<Value> {
        let x = self.of_dtype(|d| matches!(d, DType::F32 | DType::F64 | DType::I32))?;
        let ty = self.ty(x);
        let y = self.of_dtype(|d| d == ty.dtype)?;
        let other = self.ty(y);
        // Axes of equal extent pair up at random; the pair is batch or contracted.
        let mut taken = Vec::new();
        let (mut lb, mut rb, mut lc, mut rc) = (vec![], vec![], vec![], vec![]);
        for (l, &extent) in ty.shape.iter().enumerate() {
            let fits: Vec<usize> = (0..other.shape.rank())
                .filter(|&r| other.shape[r] == extent && !taken.contains(&r))
                .collect();
            if fits.is_empty() || self.random.one_in(4) {
                continue;
            }
            let r = *self.random.pick(&fits);
            taken.push(r);
            let (left, right) =
                if self.random.one_in(3) { (&mut lb, &mut rb) } else { (&mut lc, &mut rc) };
            left.push(l as i64);
            right.push(r as i64);
        }
        if ty.shape.rank() + other.shape.rank() - lb.len() - 2 * lc.len() > 5 {
            return None;
        }
        let params = Params::new()
            .with("lhs_batch", Param::Ints(lb))
            .with("rhs_batch", Param::Ints(rb))
            .with("lhs_contract", Param::Ints(lc))
            .with("rhs_contract", Param::Ints(rc));
        self.push("dot", params, &[x, y])
    }

    fn create(&mut self) -> Option<Value> {
        let ty = self.param_type();
        if self.random.one_in(3) {
            let key = self.literal(DType::U32, 7.0);
            let params = Params::new().with("shape", Param::Shape(ty.shape));
            let bits = self.push("random_bits", params, &[key, key])?;
            let float = Params::new().with("dtype", Param::DType(DType::F64));
            let bits = self.push("convert", float, &[bits])?;
            let scale = self.literal(DType::F64, 1.0 / 4_294_967_296.0);
            return self.push("mul", Params::new(), &[bits, scale]);
        }
        let dtype = if ty.dtype == DType::Bool { DType::I32 } else { ty.dtype };
        let axis = self.random.below(ty.shape.rank().max(1)) as i64;
        let params = Params::new()
            .with("dtype", Param::DType(dtype))
            .with("shape", Param::Shape(ty.shape))
            .with("axis", Param::Int(axis));
        self.push("iota", params, &[])
    }

    fn identity(&mut self) -> Option<Value> {
        let x = self.value();
        self.push("identity", Params::new(), &[x])
    }

    fn call(&mut self) -> Option<Value> {
        let inputs: Vec<Value> = (0..2).map(|_| self.value()).collect();
        let types: Vec<Type> = inputs.iter().map(|&input| self.ty(input)).collect();
        let mut inner = self.inside(&types)?;
        for _ in 0..4 {
            inner.step();
        }
        let results = vec![inner.value(), inner.value()];
        let func = Arc::new(inner.builder.finish(results));
        let params =
            Params::new().with("kind", Param::Text("jit".into())).with("func", Param::Func(func));
        self.push("call", params, &inputs)
    }

    fn softmax(&mut self) -> Option<Value> {
        let x = self.float()?;
        let rank = self.ty(x).shape.rank();
        let axis = rank.checked_sub(1)? as i64;
        let params =
            || Params::new().with("axes", Param::Ints(vec![axis])).with("keep", Param::Bool(true));
        let most = self.push("max", params(), &[x])?;
        let shifted = self.push("sub", Params::new(), &[x, most])?;
        let powers = self.push("exp", Params::new(), &[shifted])?;
        let total = self.push("sum", params(), &[powers])?;
        self.push("div", Params::new(), &[powers, total])
    }
}

/// Arguments for a program: small numbers, so that sums stay near exact.
pub fn arguments(func: &Func, random: &mut Random) -> Vec<Tensor> {
    let fill = |ty: Type| {
        Tensor::fill(ty.clone(), |_| {
            let value = random.below(17) as f64 / 4.0 - 2.0;
            match ty.dtype {
                DType::I32 => Literal::from_i64(ty.dtype, random.below(7) as i64 - 2),
                DType::Bool => Literal::from_i64(ty.dtype, random.below(2) as i64),
                _ => Literal::from_f64(ty.dtype, value),
            }
        })
        .expect("small arrays fit")
    };
    func.param_types().into_iter().map(fill).collect()
}
