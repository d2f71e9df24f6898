//! Random images: shapes, strides, dtypes, stages; and results that do not depend on threads or instruction sets.

use crate::support::{Buffers, Random, compare, execute, launch};
use vramlab_device::cpu::Isa;
use vramlab_ir::kernel::{
    Access, Body, ColumnReduce, Conv, Dot, Epilogue, LoopInst, Per, RowLoop, Sink, Space, Stage,
    Start,
};
use vramlab_ir::lowering::ConvAxis;
use vramlab_ir::{DType, Inst, Kernel, Literal, ReduceKind, Reg, ScalarOp};

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// An image under construction with its buffers.
struct Draft<'r> {
    random: &'r mut Random,
    extents: Vec<usize>,
    buffers: Buffers,
    dtypes: Vec<DType>,
}

impl Draft<'_> {
    fn new(random: &mut Random, extents: Vec<usize>) -> Draft<'_> {
        Draft { random, extents, buffers: Vec::new(), dtypes: Vec::new() }
    }

    fn buffer(&mut self, dtype: DType, elements: usize) -> u32 {
        self.buffers.push(self.random.buffer(dtype, elements));
        self.dtypes.push(dtype);
        self.buffers.len() as u32 - 1
    }

    /// Strides over the loop: dense, permuted, with gaps, and for reads also repeated or backwards.
    fn access(&mut self, dtype: DType, write: bool, skip: Option<usize>) -> Access {
        let rank = self.extents.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if self.random.chance(25) {
            order.swap(self.random.below(rank), rank - 1);
        }
        let mut strides = vec![0isize; rank];
        let (mut offset, mut next) = (self.random.below(3), 1usize);
        for &axis in order.iter().rev() {
            if Some(axis) == skip || (!write && self.random.chance(20)) {
                continue;
            }
            if self.random.chance(10) {
                next *= 2;
            }
            strides[axis] = next as isize;
            next *= self.extents[axis];
        }
        for (stride, &extent) in strides.iter_mut().zip(&self.extents) {
            if *stride != 0 && extent > 0 && self.random.chance(10) {
                offset += (extent - 1) * *stride as usize;
                *stride = -*stride;
            }
        }
        let mut reach = offset;
        for (&stride, &extent) in strides.iter().zip(&self.extents) {
            reach += extent.saturating_sub(1) * stride.max(0) as usize;
        }
        let mut starts = Vec::new();
        if !write && self.random.chance(10) {
            let value = self.random.below(9) as i64 - 2;
            let start = self.buffer(DType::I32, 1);
            self.buffers[start as usize] = (value as i32).to_le_bytes().to_vec();
            starts.push(Start { buffer: start, limit: 4, stride: 3 });
            reach += 12;
        }
        let buffer = self.buffer(dtype, reach + 1);
        Access { buffer, dtype, offset: offset as isize, strides, starts }
    }

    fn kernel(self, name: &str, body: Body) -> (Kernel, Buffers, Vec<DType>) {
        let buffers = (0..self.buffers.len() as u32).collect();
        let name = name.to_owned();
        let kernel = Kernel { name, buffers, body, bytes_read: 0, bytes_written: 0, flops: 0 };
        (kernel, self.buffers, self.dtypes)
    }
}

/// Instructions with the dtype of each register.
#[derive(Default)]
struct Code {
    insts: Vec<LoopInst>,
    dtypes: Vec<DType>,
}

impl Code {
    fn push(&mut self, inst: LoopInst, dtype: DType) -> Reg {
        self.insts.push(inst);
        self.dtypes.push(dtype);
        Reg(self.insts.len() as u32 - 1)
    }

    fn op(&mut self, op: ScalarOp, dtype: DType, args: &[Reg]) -> Reg {
        let inst = Inst::Op { op, dtype, args: args.to_vec() };
        self.push(LoopInst::Scalar(inst), op.result(dtype))
    }

    fn convert(&mut self, reg: Reg, to: DType) -> Reg {
        let from = self.dtypes[reg.0 as usize];
        if from == to {
            return reg;
        }
        self.push(LoopInst::Scalar(Inst::Convert { from, to, arg: reg }), to)
    }

    fn read(&mut self, input: u32, dtype: DType) -> Reg {
        self.push(LoopInst::Scalar(Inst::Input { input, dtype }), dtype)
    }

    fn any_of(&self, random: &mut Random, dtype: DType) -> Option<Reg> {
        let of: Vec<u32> =
            (0..self.dtypes.len() as u32).filter(|&i| self.dtypes[i as usize] == dtype).collect();
        (!of.is_empty()).then(|| Reg(random.pick(&of)))
    }

    /// Well-behaved ops, so that a difference in rounding stays one.
    fn grow(&mut self, random: &mut Random, dtype: DType, count: usize) -> Reg {
        use ScalarOp::*;
        let mut last = self.any_of(random, dtype).expect("something to begin with");
        for _ in 0..count {
            let a = self.any_of(random, dtype).expect("as above");
            let b = if random.chance(50) {
                last
            } else {
                self.any_of(random, dtype).expect("as above")
            };
            last = if dtype == DType::Bool {
                let op = random.pick(&[And, Or, Xor, Eq, Ne, Not]);
                if op == Not { self.op(op, dtype, &[a]) } else { self.op(op, dtype, &[a, b]) }
            } else if random.chance(15) {
                let op = random.pick(&[Lt, Le, Gt, Ge]);
                let flag = self.op(op, dtype, &[a, b]);
                self.op(Select, dtype, &[flag, b, a])
            } else if random.chance(25) {
                let ops: &[ScalarOp] =
                    if dtype.is_float() { &[Tanh, Sin, Cos, Abs, Neg] } else { &[Neg, Abs, Sign] };
                let op = random.pick(ops);
                self.op(op, dtype, &[a])
            } else if dtype.is_float() {
                let product = self.op(Mul, dtype, &[a, b]);
                let bounded = self.op(Tanh, dtype, &[product]);
                let op = random.pick(&[Add, Sub, Max, Min]);
                let sum = self.op(op, dtype, &[bounded, a]);
                let half = LoopInst::Scalar(Inst::Const(Literal::from_f64(dtype, 0.5)));
                let half = self.push(half, dtype);
                self.op(Mul, dtype, &[sum, half])
            } else {
                let op = random.pick(&[Add, Sub, Mul, Max, Min, Div, Rem, And, Xor]);
                self.op(op, dtype, &[a, b])
            };
        }
        last
    }
}

fn extents(random: &mut Random, long: bool) -> Vec<usize> {
    let rank = random.below(3);
    let mut extents: Vec<usize> = (0..rank).map(|_| random.pick(&[1, 2, 3, 5, 17])).collect();
    let columns = if long {
        random.pick(&[1025, 2500, 70_001])
    } else {
        random.pick(&[1, 1, 2, 3, 7, 16, 31, 64, 65, 100, 128, 129, 200, 1000, 1024])
    };
    extents.push(columns);
    let most = if long { 150_000 } else { 20_000 };
    while extents.iter().product::<usize>() > most {
        extents.remove(0);
    }
    if random.chance(3) {
        let axis = random.below(extents.len());
        extents[axis] = 0;
    }
    extents
}

/// Reads of several dtypes, converted to the one that is computed in.
fn inputs(draft: &mut Draft, code: &mut Code, dtype: DType) -> Vec<Access> {
    let mut reads = Vec::new();
    for _ in 0..1 + draft.random.below(3) {
        let own = if draft.random.chance(75) { dtype } else { draft.random.pick(&DType::ALL) };
        let access = draft.access(own, false, None);
        let reg = code.read(reads.len() as u32, own);
        reads.push(access);
        code.convert(reg, dtype);
    }
    if draft.random.chance(30) {
        let axis = draft.random.below(draft.extents.len()) as u32;
        let index = code.push(LoopInst::Scalar(Inst::Index { axis }), DType::I32);
        if draft.random.chance(50) {
            // A gather along an array of its own, beside the coordinates.
            let mut access = draft.access(dtype, false, None);
            let reach = draft.buffers[access.buffer as usize].len() / dtype.size();
            draft.buffers[access.buffer as usize] = draft.random.buffer(dtype, reach + 7 * 2);
            access.starts.clear();
            let read = reads.len() as u32;
            reads.push(access);
            code.push(LoopInst::Gather { read, index, limit: 7, stride: 2 }, dtype);
        }
        let index = code.convert(index, dtype);
        if dtype.is_float() {
            code.op(ScalarOp::Sin, dtype, &[index]);
        }
    }
    if draft.random.chance(15) {
        let position = code.push(LoopInst::Scalar(Inst::Position), DType::U32);
        let limit = Literal::from_i64(DType::U32, 63);
        let limit = code.push(LoopInst::Scalar(Inst::Const(limit)), DType::U32);
        let low = code.op(ScalarOp::And, DType::U32, &[position, limit]);
        let position = code.convert(low, dtype);
        if dtype.is_float() {
            code.op(ScalarOp::Cos, dtype, &[position]);
        }
    }
    reads
}

fn check(kernel: &Kernel, buffers: &Buffers, dtypes: &[DType], work: DType, context: &str) {
    let mut want = buffers.clone();
    execute(kernel, &mut want);
    let first = launch(kernel, buffers, 1, Isa::best());
    let first = first.unwrap_or_else(|error| panic!("{context}: {error}\n{kernel:#?}"));
    for (i, &dtype) in dtypes.iter().enumerate() {
        compare(dtype, work, &first[i], &want[i], &format!("{context}, buffer {i}\n{kernel:#?}"));
    }
    for threads in [2, 3] {
        let again = launch(kernel, buffers, threads, Isa::best()).expect("it ran on one thread");
        assert!(first == again, "{context}: {threads} threads give another result\n{kernel:#?}");
    }
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        let other = launch(kernel, buffers, 1, isa).expect("it ran on one instruction set");
        for (i, &dtype) in dtypes.iter().enumerate() {
            compare(
                dtype,
                work,
                &other[i],
                &want[i],
                &format!("{context} with {isa:?}\n{kernel:#?}"),
            );
        }
    }
}

fn random_map(seed: u64, long: bool) {
    let mut random = Random::new(seed);
    let extents = extents(&mut random, long);
    let dtype = random.pick(&DType::ALL);
    let mut draft = Draft::new(&mut random, extents.clone());
    let mut code = Code::default();
    let reads = inputs(&mut draft, &mut code, dtype);
    let mut writes = Vec::new();
    let mut sinks = Vec::new();
    for _ in 0..1 + draft.random.below(2) {
        let count = draft.random.below(6);
        let result = code.grow(draft.random, dtype, count);
        let stored = if draft.random.chance(70) { dtype } else { draft.random.pick(&FLOATS) };
        let reg = code.convert(result, stored);
        sinks.push(Sink::Store { write: writes.len() as u32, reg });
        writes.push(draft.access(stored, true, None));
    }
    // In place over the first operand.
    let first = &reads[0];
    let place = &mut writes[0];
    if first.dtype == place.dtype
        && first.starts.is_empty()
        && first.strides.iter().zip(&extents).all(|(&stride, &n)| stride != 0 || n <= 1)
        && draft.random.chance(40)
    {
        *place = first.clone();
    }
    let columns = extents[extents.len() - 1];
    let outer = extents[..extents.len() - 1].to_vec();
    let stages = vec![Stage { per: Per::Columns, insts: code.insts, sinks }];
    let body = RowLoop { outer, columns, reads, writes, stages, kept: 0, row_scalars: 0 };
    let (kernel, buffers, dtypes) = draft.kernel("map", Body::Rows(body));
    check(&kernel, &buffers, &dtypes, dtype, &format!("map {seed}"));
}

fn kinds(dtype: DType) -> &'static [ReduceKind] {
    use ReduceKind::*;
    match dtype {
        DType::Bool => &[Any, All, Max, ArgMax],
        d if d.is_float() => &[Sum, Max, Min, ArgMax, ArgMin],
        _ => &[Sum, Prod, Max, Min, ArgMax, ArgMin],
    }
}

/// Reduces, works on the row scalars, and uses them and kept values in a last pass.
fn random_rows(seed: u64, long: bool) {
    let mut random = Random::new(seed + 1_000_000);
    let extents = extents(&mut random, long);
    let dtype = random.pick(&DType::ALL);
    let columns = extents[extents.len() - 1];
    let mut draft = Draft::new(&mut random, extents.clone());
    let mut code = Code::default();
    let reads = inputs(&mut draft, &mut code, dtype);
    let result = code.grow(draft.random, dtype, 3);
    let kind = draft.random.pick(kinds(dtype));
    let arg = matches!(kind, ReduceKind::ArgMax | ReduceKind::ArgMin);
    let kind = if arg && columns == 0 { kinds(dtype)[0] } else { kind };
    let arg = matches!(kind, ReduceKind::ArgMax | ReduceKind::ArgMin);
    let first = Stage {
        per: Per::Columns,
        insts: code.insts,
        sinks: vec![
            Sink::Keep { slot: 0, reg: result },
            Sink::Reduce { kind, reg: result, slot: 0 },
        ],
    };
    let scalar = if arg { DType::I32 } else { dtype };
    let mut row = Code::default();
    let reduced = row.push(LoopInst::RowScalar { slot: 0, dtype: scalar }, scalar);
    let own = row.convert(reduced, dtype);
    let settled =
        if dtype.is_float() && !arg { row.op(ScalarOp::Tanh, dtype, &[own]) } else { own };
    let grown = row.grow(draft.random, dtype, 1);
    let row = Stage {
        per: Per::Row,
        insts: row.insts,
        sinks: vec![
            Sink::SetRow { slot: 1, reg: if dtype.is_float() { settled } else { grown } },
            Sink::Store { write: 0, reg: reduced },
        ],
    };
    let last_axis = extents.len() - 1;
    let per_row = draft.access(scalar, true, Some(last_axis));
    let mut code = Code::default();
    let kept = code.push(LoopInst::Kept { slot: 0, dtype }, dtype);
    let scalar = code.push(LoopInst::RowScalar { slot: 1, dtype }, dtype);
    let op = if dtype == DType::Bool { ScalarOp::Xor } else { ScalarOp::Add };
    code.op(op, dtype, &[kept, scalar]);
    let again = draft.random.chance(50).then(|| code.read(0, reads[0].dtype));
    if let Some(again) = again {
        code.convert(again, dtype);
    }
    let result = code.grow(draft.random, dtype, 1);
    let store = Sink::Store { write: 1, reg: result };
    let last = Stage { per: Per::Columns, insts: code.insts, sinks: vec![store] };
    let writes = vec![per_row, draft.access(dtype, true, None)];
    let body = RowLoop {
        outer: extents[..last_axis].to_vec(),
        columns,
        reads,
        writes,
        stages: vec![first, row, last],
        kept: 1,
        row_scalars: 2,
    };
    let (kernel, buffers, dtypes) = draft.kernel("rows", Body::Rows(body));
    check(
        &kernel,
        &buffers,
        &dtypes,
        dtype,
        &format!("rows {seed}, {kind:?} of {dtype} over {extents:?}"),
    );
}

fn random_columns(seed: u64) {
    let mut random = Random::new(seed + 2_000_000);
    let mut extents: Vec<usize> = (0..random.below(2)).map(|_| random.pick(&[1, 2, 3])).collect();
    let reduced_axis = extents.len();
    extents.push(random.pick(&[0, 1, 2, 9, 30, 65, 300]));
    extents.push(random.pick(&[1, 2, 3, 10, 32, 64, 100, 128, 129, 257, 1500]));
    if random.chance(8) {
        extents[reduced_axis] = 20_000;
        extents[reduced_axis + 1] = random.pick(&[1, 3, 7]);
    }
    let dtype = random.pick(&DType::ALL);
    let mut draft = Draft::new(&mut random, extents.clone());
    let mut code = Code::default();
    let plain = draft.random.chance(40);
    let reads = if plain {
        let access = draft.access(dtype, false, None);
        code.read(0, dtype);
        vec![access]
    } else {
        inputs(&mut draft, &mut code, dtype)
    };
    let (mut writes, mut reduces) = (Vec::new(), Vec::new());
    for write in 0..1 + draft.random.below(2) as u32 {
        let reg = if plain { Reg(0) } else { code.grow(draft.random, dtype, 2) };
        let mut kind = draft.random.pick(kinds(dtype));
        if extents[reduced_axis] == 0 && matches!(kind, ReduceKind::ArgMax | ReduceKind::ArgMin) {
            kind = kinds(dtype)[0];
        }
        let arg = matches!(kind, ReduceKind::ArgMax | ReduceKind::ArgMin);
        writes.push(draft.access(if arg { DType::I32 } else { dtype }, true, Some(reduced_axis)));
        reduces.push((kind, reg, write));
    }
    let body = ColumnReduce {
        outer: extents[..reduced_axis].to_vec(),
        reduced: extents[reduced_axis],
        columns: extents[reduced_axis + 1],
        reads,
        writes,
        insts: code.insts,
        reduces,
    };
    let (kernel, buffers, dtypes) = draft.kernel("columns", Body::Columns(body));
    check(
        &kernel,
        &buffers,
        &dtypes,
        dtype,
        &format!("columns {seed} of {dtype} over {extents:?}"),
    );
}

fn random_dot(seed: u64) {
    let mut random = Random::new(seed + 3_000_000);
    let batch: Vec<usize> = (0..random.below(3)).map(|_| random.pick(&[1, 2, 3])).collect();
    let mut size = || random.pick(&[1, 1, 2, 5, 16, 33, 70, 150]);
    let (m, n, k) = (size(), size(), size());
    let k = if random.chance(5) { 0 } else { k };
    let dtype = random.pick(&DType::ALL);
    let over = |random: &mut Random, rows: usize, columns: usize, dense: bool| {
        let extents = [batch.as_slice(), &[rows, columns]].concat();
        let mut strides = vec![0isize; extents.len()];
        let mut order: Vec<usize> = (0..extents.len()).collect();
        if !dense && random.chance(50) {
            order.swap(extents.len() - 2, extents.len() - 1);
        }
        let mut next = 1;
        for &axis in order.iter().rev() {
            strides[axis] = next as isize;
            next *= extents[axis];
        }
        (strides, next)
    };
    let places = [
        over(&mut random, m, k, false),
        over(&mut random, k, n, false),
        over(&mut random, m, n, true),
    ];
    let extents = [batch.as_slice(), &[m, n]].concat();
    let mut draft = Draft::new(&mut random, extents);
    let mut accesses = Vec::new();
    for (strides, elements) in places {
        let buffer = draft.buffer(dtype, elements);
        accesses.push(Access { buffer, dtype, offset: 0, strides, starts: Vec::new() });
    }
    let epilogue = draft.random.chance(50).then(|| {
        let mut code = Code::default();
        let product = code.push(LoopInst::Kept { slot: 0, dtype }, dtype);
        let skip = draft.random.chance(50).then_some(batch.len());
        // What lay in the result's place is an operand like any other.
        let bias = match draft.random.chance(30) {
            true => accesses[2].clone(),
            false => draft.access(dtype, false, skip),
        };
        let bias_reg = code.read(0, dtype);
        let op = if dtype == DType::Bool { ScalarOp::Or } else { ScalarOp::Max };
        code.op(op, dtype, &[product, bias_reg]);
        Epilogue { reads: vec![bias], insts: code.insts }
    });
    let c = accesses.pop().expect("three arrays");
    let b = accesses.pop().expect("three arrays");
    let a = accesses.pop().expect("three arrays");
    let body = Dot { dtype, batch: batch.clone(), m, n, k, a, b, c, epilogue };
    let (kernel, buffers, dtypes) = draft.kernel("dot", Body::Dot(body));
    check(
        &kernel,
        &buffers,
        &dtypes,
        dtype,
        &format!("dot {seed} of {dtype}, {batch:?} {m}×{n}×{k}"),
    );
}

/// Filters over an operand whose axes lie in any order, some of them backwards.
fn random_conv(seed: u64) {
    let mut random = Random::new(seed);
    let axes = random.pick(&[1, 1, 2, 2, 3]);
    let dtype = random.pick(&[DType::F32, DType::F32, DType::F64, DType::I32, DType::U8]);
    let mut space = Vec::new();
    while space.len() < axes {
        let moves = ConvAxis {
            stride: random.pick(&[1, 1, 2, 3]),
            low: random.pick(&[0, 1, 2, -1]),
            high: random.pick(&[0, 1, 2, -1]),
            x_dilation: random.pick(&[1, 1, 2, 3]),
            w_dilation: random.pick(&[1, 1, 2]),
        };
        let (x, taps) = (random.pick(&[1, 2, 3, 5, 9]), random.pick(&[1, 2, 3, 7]));
        match moves.results(x, taps) {
            Some(results) if results > 0 => space.push(Space { x, taps, results, moves }),
            _ => {}
        }
    }
    let [examples, channels, results] = [0; 3].map(|_| random.pick(&[1, 2, 3, 20]));
    let extents = |first: Option<usize>, of: fn(&Space) -> usize, last: &[usize]| -> Vec<usize> {
        first.into_iter().chain(space.iter().map(of)).chain(last.iter().copied()).collect()
    };
    let x = extents(Some(examples), |s| s.x, &[channels]);
    let w = extents(None, |s| s.taps, &[channels, results]);
    let write = extents(Some(examples), |s| s.results, &[results]);
    let mut draft = Draft::new(&mut random, Vec::new());
    let mut accesses = Vec::new();
    for (extents, any) in [(&x, true), (&w, true), (&write, false)] {
        let mut order: Vec<usize> = (0..extents.len()).collect();
        if any && draft.random.chance(40) {
            let at = draft.random.below(order.len());
            order.swap(at, extents.len() - 1);
        }
        let (mut strides, mut offset, mut next) = (vec![0isize; extents.len()], 0, 1);
        for &axis in order.iter().rev() {
            strides[axis] = next as isize;
            if any && draft.random.chance(20) {
                offset += (extents[axis] - 1) as isize * strides[axis];
                strides[axis] = -strides[axis];
            }
            next *= extents[axis];
        }
        let buffer = draft.buffer(dtype, next);
        accesses.push(Access { buffer, dtype, offset, strides, starts: Vec::new() });
    }
    let [x, w, write]: [Access; 3] = accesses.try_into().expect("three arrays");
    let context = format!("conv {seed} of {dtype}, {examples} {space:?} {channels} {results}");
    let body = Conv { dtype, examples, space, channels, results, x, w, write };
    let (kernel, buffers, dtypes) = draft.kernel("conv", Body::Conv(body));
    check(&kernel, &buffers, &dtypes, dtype, &context);
}

#[test]
fn random_convolutions_mean_what_they_say() {
    (0..200).for_each(random_conv);
}

#[test]
fn random_maps_mean_what_they_say() {
    (0..250).for_each(|seed| random_map(seed, false));
}

#[test]
fn random_long_maps_mean_what_they_say() {
    (0..12).for_each(|seed| random_map(seed + 5000, true));
}

#[test]
fn random_row_reductions_mean_what_they_say() {
    (0..250).for_each(|seed| random_rows(seed, false));
}

#[test]
fn random_long_row_reductions_mean_what_they_say() {
    (0..12).for_each(|seed| random_rows(seed + 5000, true));
}

#[test]
fn random_column_reductions_mean_what_they_say() {
    (0..250).for_each(random_columns);
}

#[test]
fn random_dots_mean_what_they_say() {
    (0..200).for_each(random_dot);
}
