//! Loops, branches, and the ops that gradients of views and gathers want.

use super::Generator;
use std::sync::Arc;
use vramlab_ir::{DType, Literal, Param, Params, Shape, Type, Value};

/// Functions deeper than this hold no further ones.
const DEEPEST: u32 = 2;

impl Generator {
    /// The generator of a function of these parameters.
    pub(super) fn inside(&mut self, params: &[Type]) -> Option<Generator> {
        if self.depth == DEEPEST {
            return None;
        }
        let mut inner = Generator::scaled(self.random.next(), self.scale);
        inner.depth = self.depth + 1;
        for ty in params {
            let value = inner.builder.param(ty.clone());
            inner.values.push(value);
        }
        Some(inner)
    }

    /// A late value of that type, or a parameter; floats bounded, so that iterations stay so.
    fn late(&mut self, ty: &Type) -> Option<Value> {
        let fits = |&&value: &&Value| self.builder.ty(value) == ty;
        let all: Vec<Value> = self.values.iter().filter(fits).copied().collect();
        let behind = self.random.below(all.len().clamp(1, 3));
        let value = *all.get(all.len().checked_sub(1 + behind)?)?;
        match ty.dtype.is_float() && !self.random.one_in(4) {
            true => self.push("tanh", Params::new(), &[value]),
            false => Some(value),
        }
    }

    fn types(&self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&value| self.ty(value)).collect()
    }

    fn several(&mut self, most: usize) -> Vec<Value> {
        (0..self.random.below(most + 1)).map(|_| self.value()).collect()
    }

    pub(super) fn scan(&mut self) -> Option<Value> {
        let (consts, carries) = (self.several(2), self.several(3));
        let mut arrays = Vec::new();
        let mut length = self.random.below(5);
        for array in self.several(2) {
            let shape = self.ty(array).shape;
            let fits = match (shape.first(), arrays.is_empty()) {
                (Some(&extent), true) => {
                    length = extent;
                    true
                }
                (extent, _) => extent == Some(&length),
            };
            if fits && length <= 8 {
                arrays.push(array);
            }
        }
        if length > 8 {
            return None;
        }
        let mut params = self.types(&[consts.clone(), carries.clone()].concat());
        for ty in self.types(&arrays) {
            params.push(Type::new(ty.dtype, &ty.shape[1..]));
        }
        let mut inner = self.inside(&params)?;
        if params.is_empty() {
            inner.create()?;
        }
        for _ in 0..1 + self.random.below(5) {
            inner.step();
        }
        let mut results = Vec::new();
        for ty in self.types(&carries) {
            results.push(inner.late(&ty)?);
        }
        for _ in 0..self.random.below(3) {
            results.push(inner.value());
        }
        let reverse = self.random.one_in(3);
        let params = Params::new()
            .with("body", Param::Func(Arc::new(inner.builder.finish(results))))
            .with("length", Param::Int(length as i64))
            .with("consts", Param::Int(consts.len() as i64))
            .with("carries", Param::Int(carries.len() as i64))
            .with("reverse", Param::Bool(reverse));
        self.push("scan", params, &[consts, carries, arrays].concat())
    }

    /// A loop that counts, beside what else it does.
    pub(super) fn repeat(&mut self) -> Option<Value> {
        let (consts, mut carries) = (self.several(2), self.several(3));
        let mut params = self.types(&consts);
        let counter = Type::new(DType::I32, []);
        let start = self.random.below(4) as f64;
        carries.push(self.literal(DType::I32, start));
        let carried = self.types(&carries);
        params.extend(carried.iter().cloned());
        let mut body = self.inside(&params)?;
        let mut condition = self.inside(&carried)?;
        let count = Value(params.len() as u32 - 1);
        for _ in 0..1 + self.random.below(4) {
            body.step();
        }
        let mut results = Vec::new();
        for ty in &carried[..carried.len() - 1] {
            results.push(body.late(ty)?);
        }
        let one = body.literal(DType::I32, 1.0);
        results.push(body.push("add", Params::new(), &[count, one])?);
        let limit = condition.literal(DType::I32, 5.0);
        let count = Value(carried.len() as u32 - 1);
        assert_eq!(condition.ty(count), counter);
        let holds = condition.push("lt", Params::new(), &[count, limit])?;
        let params = Params::new()
            .with("cond", Param::Func(Arc::new(condition.builder.finish(vec![holds]))))
            .with("body", Param::Func(Arc::new(body.builder.finish(results))))
            .with("cond_consts", Param::Int(0))
            .with("body_consts", Param::Int(consts.len() as i64));
        self.push("while", params, &[consts, carries].concat())
    }

    pub(super) fn cond(&mut self) -> Option<Value> {
        let condition = self.of_dtype(|d| d == DType::Bool)?;
        let axes = (0..self.ty(condition).shape.rank() as i64).collect();
        let whole = Params::new().with("axes", Param::Ints(axes)).with("keep", Param::Bool(false));
        let condition = self.push("any", whole, &[condition])?;
        let mut operands = self.several(3);
        operands.push(self.value());
        let types = self.types(&operands);
        let wanted: Vec<Type> = (0..1 + self.random.below(2))
            .map(|_| types[self.random.below(types.len())].clone())
            .collect();
        let mut branches = Vec::new();
        for _ in 0..2 {
            let mut inner = self.inside(&types)?;
            for _ in 0..self.random.below(5) {
                inner.step();
            }
            let mut results = Vec::new();
            for ty in &wanted {
                results.push(inner.late(ty)?);
            }
            branches.push(Param::Func(Arc::new(inner.builder.finish(results))));
        }
        let on_false = branches.pop()?;
        let params = Params::new().with("on_true", branches.pop()?).with("on_false", on_false);
        operands.insert(0, condition);
        self.push("cond", params, &operands)
    }

    pub(super) fn cumulative(&mut self) -> Option<Value> {
        let mut x = self.of_dtype(|d| matches!(d, DType::F32 | DType::F64 | DType::I32))?;
        let ty = self.ty(x);
        if ty.shape.rank() == 0 {
            return None;
        }
        let op = *self.random.pick(&["cumsum", "cumsum", "cumprod", "cummax", "cummin"]);
        if ty.dtype.is_float() {
            x = self.push("tanh", Params::new(), &[x])?;
        }
        let axis = self.random.below(ty.shape.rank()) as i64;
        let reverse = self.random.one_in(2);
        let params =
            Params::new().with("axis", Param::Int(axis)).with("reverse", Param::Bool(reverse));
        self.push(op, params, &[x])
    }

    pub(super) fn scatter_add(&mut self) -> Option<Value> {
        let x = self.of_dtype(|d| d != DType::Bool)?;
        let ty = self.ty(x);
        let axis = self.random.below(ty.shape.rank().max(1));
        let behind = ty.shape.rank().checked_sub(axis + 1)?;
        let indices = self.of_dtype(|d| d == DType::I32)?;
        let mut dims = self.ty(indices).shape.to_vec();
        dims.extend(std::iter::repeat_n(1, behind));
        if dims.len() > 4 {
            return None;
        }
        let params = Params::new().with("shape", Param::Shape(Shape::new(dims)));
        let indices = self.push("reshape", params, &[indices])?;
        let axis = || Params::new().with("axis", Param::Int(axis as i64));
        let updates = self.push("gather", axis(), &[x, indices])?;
        let onto = match self.random.one_in(2) {
            true => x,
            false => {
                let value = Literal::from_f64(ty.dtype, 0.0);
                let params = Params::new()
                    .with("value", Param::Literal(value))
                    .with("shape", Param::Shape(ty.shape));
                self.push("full", params, &[])?
            }
        };
        self.push("scatter_add", axis(), &[onto, indices, updates])
    }
}
