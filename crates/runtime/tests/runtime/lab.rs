//! A context with a few short words for what the tests do all the time.

use std::cell::Cell;
use std::sync::Arc;
use vramlab_ir::{
    Argument, BufferId, CompileKind, CompileRequest, DType, Engine, ExecutableId, Fault, Func,
    FuncBuilder, Literal, Origin, Param, Params, Shape, Span, Type, Value,
};
use vramlab_runtime::{Config, Context, DeviceConfig, ModeSpec};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

pub struct Lab {
    pub context: Arc<Context>,
    origin: Cell<Origin>,
}

fn with(device: DeviceConfig, mode: &str) -> Lab {
    let mode = ModeSpec::parse(mode).expect("a mode");
    let config = Config { device, mode, threads: Some(2), ..Config::default() };
    Lab { context: Context::new(config).expect("a device"), origin: Cell::default() }
}

pub fn dry(capacity: u64, mode: &str) -> Lab {
    with(DeviceConfig::Dry { capacity }, mode)
}

pub fn cpu(capacity: u64, mode: &str) -> Lab {
    with(DeviceConfig::Cpu { capacity: Some(capacity) }, mode)
}

pub fn f32s(dims: &[usize]) -> Type {
    Type::new(DType::F32, dims)
}

/// A builder with the op table at hand.
pub struct Build(pub FuncBuilder);

impl Build {
    pub fn op(&mut self, name: &str, params: Params, inputs: &[Value]) -> Value {
        let op = vramlab_ops::lookup(name).expect("an op of the table");
        self.0.push(op, params, inputs, None).expect("operands that fit")[0]
    }

    pub fn unary(&mut self, name: &str, x: Value) -> Value {
        self.op(name, Params::new(), &[x])
    }

    pub fn binary(&mut self, name: &str, a: Value, b: Value) -> Value {
        self.op(name, Params::new(), &[a, b])
    }

    pub fn full(&mut self, dims: &[usize], value: f64) -> Value {
        self.op("full", full_params(dims, value), &[])
    }
}

fn full_params(dims: &[usize], value: f64) -> Params {
    let literal = Literal::from_f64(DType::F32, value);
    Params::new()
        .with("value", Param::Literal(literal))
        .with("shape", Param::Shape(Shape::from(dims)))
}

/// A program of `params` whose results `body` gives.
pub fn func(
    name: &str,
    params: &[Type],
    body: impl FnOnce(&mut Build, &[Value]) -> Vec<Value>,
) -> Arc<Func> {
    let mut build = Build(FuncBuilder::new(name));
    let params: Vec<Value> = params.iter().map(|ty| build.0.param(ty.clone())).collect();
    let results = body(&mut build, &params);
    Arc::new(build.0.finish(results))
}

/// `tanh(exp(sin(abs(cos(sqrt(abs(x)))))))`, innermost first.
pub const SEVEN: [&str; 7] = ["abs", "sqrt", "cos", "abs", "sin", "exp", "tanh"];

pub fn chain(dims: &[usize]) -> Arc<Func> {
    func("seven", &[f32s(dims)], |build, params| {
        let last = SEVEN.iter().fold(params[0], |x, name| build.unary(name, x));
        vec![last]
    })
}

impl Lab {
    /// What follows happens in that cell and line.
    pub fn at(&self, cell: u32, line: u32) {
        let span = Span { line, column: 1, end_line: line, end_column: 2 };
        self.origin.set(Origin { cell, span });
    }

    pub fn origin(&self) -> Origin {
        self.origin.get()
    }

    pub fn compile(&self, func: &Arc<Func>, donate: &[bool], kind: CompileKind) -> ExecutableId {
        let request = CompileRequest {
            func: func.clone(),
            donate: donate.to_vec(),
            kind,
            memory_limit: None,
            leaner: Vec::new(),
        };
        self.context.compile(&request).expect("it compiles")
    }

    pub fn jit(&self, func: &Arc<Func>, arguments: &[Argument]) -> Result<Vec<BufferId>, Fault> {
        let donate: Vec<bool> =
            arguments.iter().map(|a| matches!(a, Argument::Donated(_))).collect();
        let executable = self.compile(func, &donate, CompileKind::Jit);
        self.context.execute(executable, arguments, self.origin.get())
    }

    fn eager(&self, func: &Arc<Func>, arguments: &[Argument]) -> Result<BufferId, Fault> {
        let executable = self.compile(func, &vec![false; arguments.len()], CompileKind::Eager);
        Ok(self.context.execute(executable, arguments, self.origin.get())?[0])
    }

    pub fn try_full(&self, dims: &[usize], value: f64) -> Result<BufferId, Fault> {
        let func = func("full", &[], |build, _| vec![build.full(dims, value)]);
        self.eager(&func, &[])
    }

    pub fn full(&self, dims: &[usize], value: f64) -> BufferId {
        self.try_full(dims, value).expect("it fits")
    }

    /// Zeros of so many bytes; a multiple of four.
    pub fn bytes(&self, bytes: u64) -> BufferId {
        self.full(&[bytes as usize / 4], 0.0)
    }

    pub fn try_bytes(&self, bytes: u64) -> Result<BufferId, Fault> {
        self.try_full(&[bytes as usize / 4], 0.0)
    }

    /// A method call: the operands stay.
    pub fn op(&self, name: &str, operands: &[BufferId]) -> BufferId {
        let types: Vec<Type> = operands.iter().map(|&id| self.ty(id)).collect();
        let func = func(name, &types, |build, params| vec![build.op(name, Params::new(), params)]);
        let arguments: Vec<Argument> = operands.iter().map(|&id| Argument::Borrowed(id)).collect();
        self.eager(&func, &arguments).expect("it fits")
    }

    /// A free function: its operand is dropped right after.
    pub fn take(&self, name: &str, operand: BufferId) -> BufferId {
        let result = self.op(name, &[operand]);
        self.drop(operand);
        result
    }

    pub fn drop(&self, buffer: BufferId) {
        self.context.release(buffer);
    }

    pub fn ty(&self, buffer: BufferId) -> Type {
        self.context.type_of(buffer).expect("a live array")
    }

    pub fn upload(&self, values: &[f32], dims: &[usize]) -> BufferId {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.context.upload(&f32s(dims), &bytes, self.origin.get()).expect("it fits")
    }

    pub fn values(&self, buffer: BufferId) -> Vec<f32> {
        let bytes = self.context.download(buffer).expect("data");
        bytes.chunks(4).map(|word| f32::from_le_bytes(word.try_into().expect("four"))).collect()
    }

    /// Fails with the first difference instead of two long lists.
    pub fn expect(&self, buffer: BufferId, values: &[f32]) {
        let held = self.values(buffer);
        assert_eq!(held.len(), values.len());
        let differs = |(held, wanted): &(&f32, &f32)| held.to_bits() != wanted.to_bits();
        let first = held.iter().zip(values).position(|pair| differs(&(pair.0, pair.1)));
        if let Some(at) = first {
            panic!("element {at} is {} and not {}", held[at], values[at]);
        }
    }

    pub fn requested(&self) -> u64 {
        self.context.memory().requested_bytes
    }

    /// The highest requested bytes inside `body`.
    pub fn peak(&self, body: impl FnOnce()) -> u64 {
        self.context.scope_begin("measured");
        body();
        self.context.scope_end().peak_bytes
    }

    /// Every invariant, checked slowly; the table of buffers agrees with the allocators.
    pub fn check(&self) {
        self.context.with_heap(|heap| assert_eq!(heap.check(), Ok(())));
        let report = self.context.report();
        let figures = &report.figures;
        let buffers = self.context.buffers();
        let granted: u64 = buffers.iter().map(|buffer| buffer.granted).sum();
        let requested: u64 = buffers.iter().map(|buffer| buffer.requested).sum();
        assert_eq!(figures.bytes_in_use, granted, "in use is what live blocks hold");
        assert_eq!(figures.requested_bytes, requested);
        assert_eq!(figures.bytes_in_use, figures.requested_bytes + report.slack_bytes);
        let free: u64 = self
            .context
            .chunks()
            .iter()
            .filter(|chunk| chunk.owner.is_none())
            .map(|chunk| chunk.bytes)
            .sum();
        assert_eq!(figures.bytes_in_use + free, figures.pool_bytes);
        assert!(figures.pool_bytes <= figures.bytes_limit);
        assert!(figures.pool_bytes <= figures.device_bytes);
        let regions: u64 = report.regions.iter().map(|region| region.bytes).sum();
        assert_eq!(regions, figures.pool_bytes);
        let owned: u64 = report.owners.iter().map(|owner| owner.bytes).sum();
        assert_eq!(owned, figures.bytes_in_use);
    }
}
