//! The meaning of kernel images, element by element, and the way to run them on a device.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use vramlab_device::cpu::{self, Isa, Options};
use vramlab_device::{Device, DeviceRange, LaunchError};
use vramlab_ir::kernel::{
    Access, Body, ColumnReduce, Conv, Cumulative, Dot, LoopInst, Per, RowLoop, Scatter, Sink, Stage,
};
use vramlab_ir::{DType, Inst, Kernel, Literal, ReduceKind, Reg, ScalarOp};
use vramlab_memory::MIB;

/// Device buffers as bytes.
pub type Buffers = Vec<Vec<u8>>;

/// Runs an image as it is defined.
pub fn execute(kernel: &Kernel, buffers: &mut Buffers) {
    match &kernel.body {
        Body::Rows(image) => execute_rows(image, buffers),
        Body::Columns(image) => execute_columns(image, buffers),
        Body::Dot(image) => execute_dot(image, buffers),
        Body::Conv(image) => execute_conv(image, buffers),
        Body::Cumulative(image) => execute_cumulative(image, buffers),
        Body::Scatter(image) => execute_scatter(image, buffers),
        Body::Loop(_) | Body::Branch(_) | Body::Transfer(_) => {
            unreachable!("loops, branches and copies are tested as whole programs, in the runtime")
        }
    }
}

/// A dense array of a kernel that works on whole arrays.
fn dense(buffer: u32, dtype: DType) -> Access {
    Access { buffer, dtype, offset: 0, strides: vec![1], starts: Vec::new() }
}

fn execute_cumulative(image: &Cumulative, buffers: &mut Buffers) {
    let [read, write] = [image.read, image.write].map(|buffer| dense(buffer, image.dtype));
    for line in 0..image.outer * image.inner {
        let first = line / image.inner * image.length * image.inner + line % image.inner;
        let mut seen = Vec::new();
        for step in 0..image.length {
            let at = if image.reverse { image.length - 1 - step } else { step };
            let element = [first + at * image.inner];
            seen.push(load(&read, &element, 0, buffers));
            store(&write, &element, reduce(image.kind, image.dtype, &seen), buffers);
        }
    }
}

fn execute_scatter(image: &Scatter, buffers: &mut Buffers) {
    let [updates, write] = [image.updates, image.write].map(|buffer| dense(buffer, image.dtype));
    let indices = dense(image.indices, DType::I32);
    for at in 0..image.outer * image.count * image.inner {
        let line = at / image.inner;
        let index = load(&indices, &[line % image.count], 0, buffers).as_i64();
        let index = if index < 0 { index + image.extent as i64 } else { index };
        let index = index.clamp(0, image.extent as i64 - 1) as usize;
        let element = (line / image.count * image.extent + index) * image.inner + at % image.inner;
        let values = [load(&write, &[element], 0, buffers), load(&updates, &[at], 0, buffers)];
        store(&write, &[element], ScalarOp::Add.eval(image.dtype, &values), buffers);
    }
}

/// Runs an image on the CPU device, on fresh copies of the buffers.
pub fn launch(
    kernel: &Kernel,
    buffers: &Buffers,
    threads: usize,
    isa: Isa,
) -> Result<Buffers, LaunchError> {
    let options = Options { capacity: Some(512 * MIB), threads: Some(threads), isa: Some(isa) };
    let (device, mut driver) = cpu::open(options);
    let mut ranges = Vec::new();
    let mut regions = Vec::new();
    for bytes in buffers {
        let region = driver.obtain(bytes.len() as u64).expect("memory for a test");
        let range = DeviceRange::new(region.base(), bytes.len() as u64);
        device.upload(range, bytes)?;
        ranges.push(range);
        regions.push(region);
    }
    device.prepare(kernel)?.run(&ranges, &AtomicBool::new(false))?;
    let mut results = buffers.clone();
    for (range, bytes) in ranges.iter().zip(&mut results) {
        device.download(*range, bytes)?;
    }
    for region in regions {
        driver.release(region);
    }
    Ok(results)
}

/// All coordinates of a loop, in row-major order.
fn coordinates(extents: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &extent in extents {
        let longer = |prefix: &Vec<usize>| {
            (0..extent).map(|at| [prefix.as_slice(), &[at]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

fn element(access: &Access, at: &[usize], buffers: &Buffers) -> isize {
    let mut offset = access.offset;
    for (&at, &stride) in at.iter().zip(&access.strides) {
        offset += at as isize * stride;
    }
    for start in &access.starts {
        let value = Literal::from_bytes(DType::I32, &buffers[start.buffer as usize]).as_i64();
        offset += value.clamp(0, start.limit) as isize * start.stride;
    }
    offset
}

fn load(access: &Access, at: &[usize], extra: isize, buffers: &Buffers) -> Literal {
    let offset = (element(access, at, buffers) + extra) as usize * access.dtype.size();
    Literal::from_bytes(access.dtype, &buffers[access.buffer as usize][offset..])
}

fn store(access: &Access, at: &[usize], value: Literal, buffers: &mut Buffers) {
    assert_eq!(value.dtype(), access.dtype);
    let size = access.dtype.size();
    let offset = element(access, at, buffers) as usize * size;
    let bytes = value.to_bytes();
    buffers[access.buffer as usize][offset..offset + size].copy_from_slice(&bytes[..size]);
}

/// What instructions may read besides arrays.
#[derive(Default)]
struct Scope {
    kept: HashMap<(u32, usize), Literal>,
    scalars: HashMap<u32, Literal>,
}

fn evaluate(
    insts: &[LoopInst],
    reads: &[Access],
    at: &[usize],
    extents: &[usize],
    scope: &Scope,
    buffers: &Buffers,
) -> Vec<Literal> {
    let mut regs: Vec<Literal> = Vec::new();
    for inst in insts {
        let value = match inst {
            LoopInst::Scalar(Inst::Input { input, .. }) => {
                load(&reads[*input as usize], at, 0, buffers)
            }
            LoopInst::Scalar(Inst::Index { axis }) => {
                Literal::from_i64(DType::I32, at[*axis as usize] as i64)
            }
            LoopInst::Scalar(Inst::Position) => {
                let position = at.iter().zip(extents).fold(0, |sum, (&at, &n)| sum * n + at);
                Literal::from_i64(DType::U32, position as i64)
            }
            LoopInst::Scalar(Inst::Const(value)) => *value,
            LoopInst::Scalar(Inst::Op { op, dtype, args }) => {
                let args: Vec<Literal> = args.iter().map(|arg| regs[arg.0 as usize]).collect();
                op.eval(*dtype, &args)
            }
            LoopInst::Scalar(Inst::Convert { to, arg, .. }) => regs[arg.0 as usize].convert(*to),
            LoopInst::Scalar(Inst::Gather { .. }) => panic!("scalar gathers do not stand in loops"),
            LoopInst::Gather { read, index, limit, stride } => {
                let index = regs[index.0 as usize].as_i64().clamp(0, *limit);
                load(&reads[*read as usize], at, index as isize * stride, buffers)
            }
            LoopInst::Kept { slot, .. } => scope.kept[&(*slot, at[at.len() - 1])],
            LoopInst::RowScalar { slot, .. } => scope.scalars[slot],
        };
        regs.push(value);
    }
    regs
}

/// Floats add up in f64; the first of equals wins, and the first NaN before all.
fn reduce(kind: ReduceKind, dtype: DType, values: &[Literal]) -> Literal {
    let fold = |op: ScalarOp, first: f64| {
        let first = Literal::from_f64(dtype, first);
        values.iter().fold(first, |sum, &value| op.eval(dtype, &[sum, value]))
    };
    let wide = |start: f64, join: fn(f64, f64) -> f64| {
        Literal::from_f64(dtype, values.iter().fold(start, |sum, value| join(sum, value.as_f64())))
    };
    let extreme = |highest: bool| match dtype {
        DType::Bool => {
            if highest {
                1.0
            } else {
                0.0
            }
        }
        d if d.is_float() => {
            if highest {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            }
        }
        _ => {
            if highest {
                1e30
            } else {
                -1e30
            }
        }
    };
    match kind {
        ReduceKind::Sum if dtype.is_float() => wide(0.0, |a, b| a + b),
        ReduceKind::Prod if dtype.is_float() => wide(1.0, |a, b| a * b),
        ReduceKind::Sum => fold(ScalarOp::Add, 0.0),
        ReduceKind::Prod => fold(ScalarOp::Mul, 1.0),
        ReduceKind::Max => fold(ScalarOp::Max, extreme(false)),
        ReduceKind::Min => fold(ScalarOp::Min, extreme(true)),
        ReduceKind::Any => fold(ScalarOp::Or, 0.0),
        ReduceKind::All => fold(ScalarOp::And, 1.0),
        ReduceKind::ArgMax | ReduceKind::ArgMin => {
            let mut best = 0;
            for (i, value) in values.iter().enumerate() {
                let (new, old) = (value.as_f64(), values[best].as_f64());
                let beyond = if kind == ReduceKind::ArgMax { new > old } else { new < old };
                if beyond || (new.is_nan() && !old.is_nan()) {
                    best = i;
                }
            }
            Literal::from_i64(DType::I32, best as i64)
        }
    }
}

fn execute_rows(image: &RowLoop, buffers: &mut Buffers) {
    let mut extents = image.outer.clone();
    extents.push(image.columns);
    for row in coordinates(&image.outer) {
        let mut scope = Scope::default();
        for stage in &image.stages {
            execute_stage(image, stage, &row, &extents, &mut scope, buffers);
        }
    }
}

fn execute_stage(
    image: &RowLoop,
    stage: &Stage,
    row: &[usize],
    extents: &[usize],
    scope: &mut Scope,
    buffers: &mut Buffers,
) {
    let columns = if stage.per == Per::Columns { image.columns } else { 1 };
    let mut reduced: Vec<Vec<Literal>> = vec![Vec::new(); stage.sinks.len()];
    let mut dtypes: Vec<DType> = Vec::new();
    for column in 0..columns {
        let at = [row, &[column]].concat();
        let regs = evaluate(&stage.insts, &image.reads, &at, extents, scope, buffers);
        dtypes = regs.iter().map(|reg| reg.dtype()).collect();
        for (sink, values) in stage.sinks.iter().zip(&mut reduced) {
            match *sink {
                Sink::Store { write, reg } => {
                    store(&image.writes[write as usize], &at, regs[reg.0 as usize], buffers);
                }
                Sink::Keep { slot, reg } => {
                    scope.kept.insert((slot, column), regs[reg.0 as usize]);
                }
                Sink::Reduce { reg, .. } => values.push(regs[reg.0 as usize]),
                Sink::SetRow { slot, reg } => {
                    scope.scalars.insert(slot, regs[reg.0 as usize]);
                }
            }
        }
    }
    for (sink, values) in stage.sinks.iter().zip(&reduced) {
        if let Sink::Reduce { kind, reg, slot } = *sink {
            let dtype = dtypes.get(reg.0 as usize).copied();
            let dtype = dtype.unwrap_or_else(|| dtype_of(&stage.insts, &image.reads, reg));
            scope.scalars.insert(slot, reduce(kind, dtype, values));
        }
    }
}

/// The dtype of a register that was never computed, since its row is empty.
fn dtype_of(insts: &[LoopInst], reads: &[Access], reg: Reg) -> DType {
    match &insts[reg.0 as usize] {
        LoopInst::Scalar(Inst::Op { op, dtype, .. }) => op.result(*dtype),
        LoopInst::Scalar(Inst::Convert { to, .. }) => *to,
        LoopInst::Scalar(Inst::Const(value)) => value.dtype(),
        LoopInst::Scalar(Inst::Index { .. }) => DType::I32,
        LoopInst::Scalar(Inst::Position) => DType::U32,
        LoopInst::Scalar(Inst::Input { dtype, .. } | Inst::Gather { dtype, .. })
        | LoopInst::Kept { dtype, .. }
        | LoopInst::RowScalar { dtype, .. } => *dtype,
        LoopInst::Gather { read, .. } => reads[*read as usize].dtype,
    }
}

fn execute_columns(image: &ColumnReduce, buffers: &mut Buffers) {
    let mut extents = image.outer.clone();
    extents.extend([image.reduced, image.columns]);
    let mut kept = image.outer.clone();
    kept.push(image.columns);
    for place in coordinates(&kept) {
        let (outer, column) = place.split_at(image.outer.len());
        let mut values: Vec<Vec<Literal>> = vec![Vec::new(); image.reduces.len()];
        for r in 0..image.reduced {
            let at = [outer, &[r], column].concat();
            let regs =
                evaluate(&image.insts, &image.reads, &at, &extents, &Scope::default(), buffers);
            for (values, (_, reg, _)) in values.iter_mut().zip(&image.reduces) {
                values.push(regs[reg.0 as usize]);
            }
        }
        let at = [outer, &[0], column].concat();
        for (values, &(kind, _, write)) in values.iter().zip(&image.reduces) {
            let write = &image.writes[write as usize];
            let dtype = values.first().map_or(write.dtype, |value| value.dtype());
            store(write, &at, reduce(kind, dtype, values), buffers);
        }
    }
}

fn execute_conv(image: &Conv, buffers: &mut Buffers) {
    let results: Vec<usize> = image.space.iter().map(|axis| axis.results).collect();
    let taps: Vec<usize> = image.space.iter().map(|axis| axis.taps).collect();
    for at in coordinates(&[&[image.examples], results.as_slice(), &[image.results]].concat()) {
        let mut products = Vec::new();
        for tap in coordinates(&taps) {
            let read = |axis: usize| {
                let space = image.space[axis];
                space.moves.element(at[axis + 1], tap[axis], space.x)
            };
            let Some(inside) = (0..taps.len()).map(read).collect::<Option<Vec<usize>>>() else {
                continue;
            };
            for channel in 0..image.channels {
                let x = load(&image.x, &[&at[..1], &inside, &[channel]].concat(), 0, buffers);
                let filter = [tap.as_slice(), &[channel, at[taps.len() + 1]]].concat();
                products.push((x, load(&image.w, &filter, 0, buffers)));
            }
        }
        let value = sum_of(image.dtype, &products);
        store(&image.write, &at, value, buffers);
    }
}

fn sum_of(dtype: DType, products: &[(Literal, Literal)]) -> Literal {
    if dtype.is_float() {
        let sum = products.iter().map(|(a, b)| a.as_f64() * b.as_f64()).sum();
        return Literal::from_f64(dtype, sum);
    }
    let zero = Literal::from_i64(dtype, 0);
    products.iter().fold(zero, |sum, &(a, b)| {
        let product = ScalarOp::Mul.eval(dtype, &[a, b]);
        ScalarOp::Add.eval(dtype, &[sum, product])
    })
}

fn execute_dot(image: &Dot, buffers: &mut Buffers) {
    let mut extents = image.batch.clone();
    extents.extend([image.m, image.n]);
    for at in coordinates(&extents) {
        let (batch, place) = at.split_at(image.batch.len());
        let mut products = Vec::new();
        for k in 0..image.k {
            let a = load(&image.a, &[batch, &[place[0], k]].concat(), 0, buffers);
            let b = load(&image.b, &[batch, &[k, place[1]]].concat(), 0, buffers);
            products.push((a, b));
        }
        let value = sum_of(image.dtype, &products);
        let mut result = value;
        if let Some(epilogue) = &image.epilogue {
            let mut scope = Scope::default();
            scope.kept.insert((0, place[1]), value);
            let regs = evaluate(&epilogue.insts, &epilogue.reads, &at, &extents, &scope, buffers);
            result = *regs.last().expect("an epilogue has a result");
        }
        store(&image.c, &at, result, buffers);
    }
}

/// Numbers without a pattern, the same in every run (an xorshift generator).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 11) as usize % n
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A moderate value of the dtype.
    pub fn value(&mut self, dtype: DType) -> Literal {
        let unit = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        match dtype {
            DType::Bool => Literal::from_i64(dtype, self.below(2) as i64),
            d if d.is_float() => Literal::from_f64(dtype, unit * 4.0 - 2.0),
            _ => Literal::from_i64(dtype, self.below(41) as i64 - 20),
        }
    }

    pub fn buffer(&mut self, dtype: DType, elements: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(elements * dtype.size());
        for _ in 0..elements {
            bytes.extend_from_slice(&self.value(dtype).to_bytes()[..dtype.size()]);
        }
        bytes
    }
}

/// How far a chain of ops may drift from rounding after each op in f64.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 8e-3,
        DType::BF16 => 6e-2,
        DType::F32 => 2e-5,
        DType::F64 => 1e-11,
        _ => 0.0,
    }
}

/// Compares one buffer; `dtype` is its element type, `work` the one that was computed in.
pub fn compare(dtype: DType, work: DType, got: &[u8], want: &[u8], context: &str) {
    let tolerance = if dtype.is_float() { tolerance(dtype).max(tolerance(work)) } else { 0.0 };
    assert_eq!(got.len(), want.len());
    for (i, (got, want)) in
        got.chunks_exact(dtype.size()).zip(want.chunks_exact(dtype.size())).enumerate()
    {
        let got = Literal::from_bytes(dtype, got);
        let want = Literal::from_bytes(dtype, want);
        let (x, y) = (got.as_f64(), want.as_f64());
        let close = got == want
            || (x.is_nan() && y.is_nan())
            || (x - y).abs() <= tolerance * (1.0 + y.abs().max(x.abs()));
        assert!(close, "{context}: element {i} is {got:?}, not {want:?}");
    }
}
