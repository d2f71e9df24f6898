//! `Func`: one traced program in SSA form.

use crate::dtype::{DType, Literal};
use crate::fault::{Fault, Origin};
use crate::primitive::Op;
use crate::shape::Shape;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Where the bytes of a value lie, under JAX's names of memory kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum MemorySpace {
    /// The device's own memory, where everything is computed.
    #[default]
    Device,
    /// Host memory that the device copies from and to. Only copies touch it.
    PinnedHost,
}

impl MemorySpace {
    pub const ALL: [MemorySpace; 2] = [MemorySpace::Device, MemorySpace::PinnedHost];

    /// JAX's name of the memory kind.
    pub fn name(self) -> &'static str {
        match self {
            MemorySpace::Device => "device",
            MemorySpace::PinnedHost => "pinned_host",
        }
    }

    /// The memory kind of a name.
    pub fn parse(name: &str) -> Option<MemorySpace> {
        MemorySpace::ALL.into_iter().find(|space| space.name() == name)
    }
}

/// The type of a value: `f32[4,3]`, and `f32<host>[4,3]` in host memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub dtype: DType,
    pub shape: Shape,
    pub memory: MemorySpace,
}

impl Type {
    /// In device memory.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Type {
        Type { dtype, shape: shape.into(), memory: MemorySpace::Device }
    }

    /// The same in another memory.
    pub fn within(&self, memory: MemorySpace) -> Type {
        Type { memory, ..self.clone() }
    }

    /// Whether it lies in host memory.
    pub fn is_host(&self) -> bool {
        self.memory == MemorySpace::PinnedHost
    }

    /// Bytes that it takes on the device.
    pub fn device_bytes(&self) -> u64 {
        if self.is_host() { 0 } else { self.bytes() }
    }

    /// Bytes that it takes on the host.
    pub fn host_bytes(&self) -> u64 {
        if self.is_host() { self.bytes() } else { 0 }
    }

    /// Bytes of the dense array; saturates, since a type may be asked about before it is refused.
    pub fn bytes(&self) -> u64 {
        match self.shape.checked_elements() {
            Some(n) => (n as u64).saturating_mul(self.dtype.size() as u64),
            None => u64::MAX,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = if self.is_host() { "<host>" } else { "" };
        write!(f, "{}{memory}{}", self.dtype, self.shape)
    }
}

/// A value of one `Func`: an index into its types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

impl Value {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A static parameter of an equation: the closed list of formats.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Bool(bool),
    Int(i64),
    Ints(Vec<i64>),
    Literal(Literal),
    DType(DType),
    Shape(Shape),
    Text(String),
    Func(Arc<Func>),
}

impl Hash for Param {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Param::Bool(v) => v.hash(state),
            Param::Int(v) => v.hash(state),
            Param::Ints(v) => v.hash(state),
            Param::Literal(v) => v.hash(state),
            Param::DType(v) => v.hash(state),
            Param::Shape(v) => v.hash(state),
            Param::Text(v) => v.hash(state),
            Param::Func(v) => v.hash(state),
        }
    }
}

/// The static parameters of an equation, in the order the op gives them.
#[derive(Clone, Debug, PartialEq, Hash, Default)]
pub struct Params(Vec<(String, Param)>);

impl Params {
    pub fn new() -> Params {
        Params::default()
    }

    pub fn with(mut self, name: impl Into<String>, param: Param) -> Params {
        self.0.push((name.into(), param));
        self
    }

    pub fn get(&self, name: &str) -> Option<&Param> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, p)| p)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Param)> {
        self.0.iter().map(|(n, p)| (n.as_str(), p))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Some(Param::Int(v)) => Some(*v),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Param::Bool(true)))
    }

    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name) {
            Some(Param::Ints(v)) => Some(v),
            _ => None,
        }
    }

    pub fn literal(&self, name: &str) -> Option<Literal> {
        match self.get(name) {
            Some(Param::Literal(v)) => Some(*v),
            _ => None,
        }
    }

    pub fn dtype(&self, name: &str) -> Option<DType> {
        match self.get(name) {
            Some(Param::DType(v)) => Some(*v),
            _ => None,
        }
    }

    pub fn shape(&self, name: &str) -> Option<&Shape> {
        match self.get(name) {
            Some(Param::Shape(v)) => Some(v),
            _ => None,
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Param::Text(v)) => Some(v),
            _ => None,
        }
    }

    pub fn func(&self, name: &str) -> Option<&Arc<Func>> {
        match self.get(name) {
            Some(Param::Func(v)) => Some(v),
            _ => None,
        }
    }
}

/// What an equation of a gradient's program is there for. Not part of the identity of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Stage {
    /// What the user wrote.
    #[default]
    Forward,
    /// A checkpoint's forward, done again for its gradient.
    Recompute,
    /// From cotangents of results to cotangents of parameters.
    Backward,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Forward => "forward",
            Stage::Recompute => "recompute",
            Stage::Backward => "backward",
        })
    }
}

/// One application of an op.
#[derive(Clone, Debug, PartialEq)]
pub struct Eqn {
    pub op: Op,
    pub params: Params,
    pub inputs: Vec<Value>,
    pub outputs: Vec<Value>,
    /// Where the user wrote it; not part of the identity of the program.
    pub origin: Option<Origin>,
    pub stage: Stage,
}

/// A program: parameters in, results out, equations in between in order of execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Func {
    pub name: String,
    pub params: Vec<Value>,
    pub eqns: Vec<Eqn>,
    pub results: Vec<Value>,
    /// The type of every value, indexed by [`Value`].
    pub types: Vec<Type>,
    /// What people call the parameters, in order: `params.layers[3].w`. Parameters behind the last
    /// name, and those whose name is empty, are known by their position.
    pub arg_names: Vec<String>,
}

impl Func {
    pub fn ty(&self, value: Value) -> &Type {
        &self.types[value.index()]
    }

    pub fn param_types(&self) -> Vec<Type> {
        self.params.iter().map(|&p| self.ty(p).clone()).collect()
    }

    /// `params.layers[3].w`, or `argument 3` where it has no name.
    pub fn arg_name(&self, index: usize) -> String {
        arg_name(&self.arg_names, index)
    }

    pub fn result_types(&self) -> Vec<Type> {
        self.results.iter().map(|&r| self.ty(r).clone()).collect()
    }
}

/// What the argument at `index` is called by these names, which may be fewer or empty.
pub fn arg_name(names: &[String], index: usize) -> String {
    match names.get(index) {
        Some(name) if !name.is_empty() => name.clone(),
        _ => format!("argument {index}"),
    }
}

/// The hash is the compile cache's key: names and spans do not count, structure and types do.
impl Hash for Func {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.params.hash(state);
        self.results.hash(state);
        self.types.hash(state);
        for eqn in &self.eqns {
            eqn.op.name().hash(state);
            eqn.params.hash(state);
            eqn.inputs.hash(state);
            eqn.outputs.hash(state);
        }
    }
}

/// Builds a [`Func`] front to back, applying each op's shape rule.
#[derive(Debug)]
pub struct FuncBuilder {
    func: Func,
}

impl FuncBuilder {
    pub fn new(name: impl Into<String>) -> FuncBuilder {
        FuncBuilder {
            func: Func {
                name: name.into(),
                params: Vec::new(),
                eqns: Vec::new(),
                results: Vec::new(),
                types: Vec::new(),
                arg_names: Vec::new(),
            },
        }
    }

    fn value(&mut self, ty: Type) -> Value {
        self.func.types.push(ty);
        Value(self.func.types.len() as u32 - 1)
    }

    /// A new parameter, behind those there are.
    pub fn param(&mut self, ty: Type) -> Value {
        let value = self.value(ty);
        self.func.params.push(value);
        value
    }

    /// Names the parameters, from the first on.
    pub fn name_params(&mut self, names: Vec<String>) {
        self.func.arg_names = names;
    }

    /// Names the newest parameter.
    pub fn name_last_param(&mut self, name: &str) {
        self.func.arg_names.resize(self.func.params.len(), String::new());
        if let Some(last) = self.func.arg_names.last_mut() {
            *last = name.to_string();
        }
    }

    /// What the parameter is called; `None` for other values, and where it has no name.
    pub fn param_name(&self, value: Value) -> Option<&str> {
        let at = self.func.params.iter().position(|&param| param == value)?;
        self.func.arg_names.get(at).map(String::as_str).filter(|name| !name.is_empty())
    }

    pub fn ty(&self, value: Value) -> &Type {
        self.func.ty(value)
    }

    /// Appends `op(inputs)`; its results.
    ///
    /// # Errors
    /// The fault of the op's shape rule; the program is unchanged then.
    pub fn push(
        &mut self,
        op: Op,
        params: Params,
        inputs: &[Value],
        origin: Option<Origin>,
    ) -> Result<Vec<Value>, Fault> {
        let types: Vec<Type> = inputs.iter().map(|&v| self.ty(v).clone()).collect();
        let results = op.infer(&types, &params)?;
        let outputs: Vec<Value> = results.into_iter().map(|ty| self.value(ty)).collect();
        self.func.eqns.push(Eqn {
            op,
            params,
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
            origin,
            stage: Stage::Forward,
        });
        Ok(outputs)
    }

    pub fn params(&self) -> &[Value] {
        &self.func.params
    }

    /// What was appended so far.
    pub fn eqns(&self) -> &[Eqn] {
        &self.func.eqns
    }

    /// Says what the equations from `from` on are there for.
    pub fn mark(&mut self, from: usize, stage: Stage) {
        self.func.eqns[from..].iter_mut().for_each(|eqn| eqn.stage = stage);
    }

    /// Puts another equation in the place of equation `at`: its results, then new ones. The op
    /// must give the old results first.
    ///
    /// # Errors
    /// The fault of the op's shape rule; the program is unchanged then.
    pub fn replace(
        &mut self,
        at: usize,
        op: Op,
        params: Params,
        inputs: Vec<Value>,
    ) -> Result<Vec<Value>, Fault> {
        let types: Vec<Type> = inputs.iter().map(|&v| self.ty(v).clone()).collect();
        let results = op.infer(&types, &params)?;
        let mut outputs = self.func.eqns[at].outputs.clone();
        for ty in results.into_iter().skip(outputs.len()) {
            outputs.push(self.value(ty));
        }
        let Eqn { origin, stage, .. } = self.func.eqns[at];
        self.func.eqns[at] = Eqn { op, params, inputs, outputs: outputs.clone(), origin, stage };
        Ok(outputs)
    }

    pub fn finish(mut self, results: Vec<Value>) -> Func {
        self.func.results = results;
        self.func
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_say_their_bytes_and_saturate() {
        assert_eq!(Type::new(DType::F32, [4, 3]).bytes(), 48);
        assert_eq!(Type::new(DType::F64, []).bytes(), 8);
        assert_eq!(Type::new(DType::F32, [usize::MAX, 2]).bytes(), u64::MAX);
        assert_eq!(Type::new(DType::F32, [4, 3]).to_string(), "f32[4,3]");
    }

    #[test]
    fn parameters_are_read_by_name_and_format() {
        let params = Params::new()
            .with("axis", Param::Int(1))
            .with("keep", Param::Bool(true))
            .with("axes", Param::Ints(vec![0, 2]));
        assert_eq!(params.int("axis"), Some(1));
        assert_eq!(params.int("keep"), None);
        assert!(params.flag("keep"));
        assert_eq!(params.ints("axes"), Some(&[0, 2][..]));
        assert_eq!(params.get("none"), None);
    }
}
