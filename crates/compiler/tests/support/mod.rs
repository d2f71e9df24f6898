//! A slow, obvious executor of kernel images over byte buffers, for tests: what a device does, one
//! element at a time, with every buffer where the plan put it.

#![allow(dead_code)]

#[path = "control.rs"]
mod control;
#[path = "random.rs"]
pub mod random;

use vramlab_ir::interp::Tensor;
use vramlab_ir::kernel::*;
use vramlab_ir::{
    DType, Func, Inst, Literal, MemorySpace, Program, ReduceKind, Reg, ScalarOp, Type,
};

/// How a device may order what the images leave open.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Whether a stage reads a whole row before it writes any of it, or goes element by element.
    pub whole_rows: bool,
    pub rows_backwards: bool,
}

/// Bytes of one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    arena: usize,
    offset: usize,
    bytes: usize,
}

impl Span {
    fn part(self, offset: u64, bytes: u64) -> Span {
        let (offset, bytes) = (offset as usize, bytes as usize);
        assert!(offset + bytes <= self.bytes, "{offset}+{bytes} of {self:?}");
        Span { offset: self.offset + offset, bytes, ..self }
    }
}

/// The memory of one run.
#[derive(Default)]
pub struct Memory {
    arenas: Vec<Vec<u8>>,
}

impl Memory {
    fn add(&mut self, bytes: Vec<u8>) -> Span {
        self.arenas.push(bytes);
        let arena = self.arenas.len() - 1;
        Span { arena, offset: 0, bytes: self.arenas[arena].len() }
    }

    fn bytes(&mut self, span: Span) -> &mut [u8] {
        &mut self.arenas[span.arena][span.offset..][..span.bytes]
    }

    fn get(&mut self, span: Span, dtype: DType, element: isize) -> Literal {
        let size = dtype.size();
        let at = usize::try_from(element).expect("inside the buffer") * size;
        Literal::from_bytes(dtype, &self.bytes(span)[at..at + size])
    }

    fn set(&mut self, span: Span, element: isize, value: Literal) {
        let size = value.dtype().size();
        let at = usize::try_from(element).expect("inside the buffer") * size;
        self.bytes(span)[at..at + size].copy_from_slice(&value.to_bytes()[..size]);
    }

    fn copy(&mut self, from: Span, to: Span) {
        let bytes = self.bytes(from).to_vec();
        self.bytes(to).copy_from_slice(&bytes);
    }
}

/// Where the places of a program or of a routine are.
struct Places<'a> {
    arguments: &'a [Span],
    fresh: &'a [Span],
    temporary: Option<Span>,
    host: Option<Span>,
}

impl Places<'_> {
    fn of(&self, slot: &Slot) -> Span {
        let bytes = slot.ty.bytes();
        match slot.place {
            Place::Argument { index } => self.arguments[index as usize].part(0, bytes),
            Place::Result { index } => self.fresh[index as usize].part(0, bytes),
            Place::Temporary { offset } => {
                self.temporary.expect("a temporary has a block").part(offset, bytes)
            }
            Place::Host { offset } => {
                assert!(slot.ty.is_host(), "{slot:?}");
                self.host.expect("what is offloaded has a block").part(offset, bytes)
            }
        }
    }
}

fn run_kernels(
    memory: &mut Memory,
    kernels: &[Kernel],
    slots: &[Slot],
    places: &Places,
    order: Order,
) {
    for kernel in kernels {
        let buffers = kernel.buffers.iter().map(|&slot| places.of(&slots[slot as usize]));
        let buffers = buffers.collect();
        let moves = matches!(kernel.body, Body::Transfer(_) | Body::Loop(_) | Body::Branch(_));
        let host = kernel.buffers.iter().any(|&slot| slots[slot as usize].ty.is_host());
        assert!(moves || !host, "{} touches host memory", kernel.name);
        Launch { kernel, memory, buffers, order }.run();
    }
}

/// Runs a program; fresh and temporary bytes begin as rubbish. Arguments that are not donated must
/// be as they were at the end, which is checked.
pub fn execute(program: &Program, arguments: &[Tensor], order: Order) -> Vec<Tensor> {
    let mut memory = Memory::default();
    let given: Vec<Span> = arguments.iter().map(|a| memory.add(a.bytes.clone())).collect();
    let fresh: Vec<Span> =
        program.fresh_bytes.iter().map(|&b| memory.add(vec![0xa5; b as usize])).collect();
    let temporary = Some(memory.add(vec![0x5a; program.temp_bytes as usize]));
    let host = Some(memory.add(vec![0x5a; program.host_temp_bytes as usize]));
    let places = Places { arguments: &given, fresh: &fresh, temporary, host };
    run_kernels(&mut memory, &program.kernels, &program.slots, &places, order);
    let offered: Vec<u32> = program.donations.iter().map(|d| d.argument).collect();
    for (index, argument) in arguments.iter().enumerate() {
        if !offered.contains(&(index as u32)) {
            assert_eq!(memory.bytes(given[index]), argument.bytes, "argument {index} was written");
        }
    }
    let types = program.func.result_types();
    let mut results: Vec<Tensor> = Vec::new();
    for (ty, source) in types.into_iter().zip(&program.results) {
        let bytes = match *source {
            ResultSource::Fresh { index } => memory.bytes(fresh[index as usize]).to_vec(),
            ResultSource::Donated { argument } => {
                assert!(offered.contains(&argument), "takes an argument that was not offered");
                memory.bytes(given[argument as usize]).to_vec()
            }
            ResultSource::Shared { argument } => memory.bytes(given[argument as usize]).to_vec(),
            ResultSource::Same { result } => results[result as usize].bytes.clone(),
        };
        results.push(Tensor::new(ty, bytes).expect("a result has the bytes of its type"));
    }
    results
}

struct Launch<'k, 'm> {
    kernel: &'k Kernel,
    memory: &'m mut Memory,
    buffers: Vec<Span>,
    order: Order,
}

/// Everything an instruction may look at.
#[derive(Default)]
struct Point {
    coordinates: Vec<usize>,
    dims: Vec<usize>,
    kept: Vec<Option<Literal>>,
    rows: Vec<Option<Literal>>,
}

fn points(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..dims.iter().product()).map(|at| coordinates(dims, at))
}

/// Coordinates of position `at` in `dims`.
fn coordinates(dims: &[usize], at: usize) -> Vec<usize> {
    let mut rest = at;
    let mut result: Vec<usize> = dims
        .iter()
        .rev()
        .map(|&d| {
            let c = rest % d;
            rest /= d;
            c
        })
        .collect();
    result.reverse();
    result
}

impl Launch<'_, '_> {
    fn run(mut self) {
        match &self.kernel.body {
            Body::Rows(rows) => self.rows(rows),
            Body::Columns(columns) => self.columns(columns),
            Body::Dot(dot) => self.dot(dot),
            Body::Conv(conv) => self.conv(conv),
            Body::Cumulative(body) => self.cumulative(body),
            Body::Scatter(body) => self.scatter(body),
            Body::Transfer(body) => {
                let [from, to] = [&body.read, &body.write].map(|end| {
                    let first = end.start.as_ref().map_or(0, |start| {
                        let slot = self.buffers[start.buffer as usize];
                        let value = self.memory.get(slot, DType::I32, 0).as_i64();
                        value.clamp(0, start.limit) as isize * start.stride
                    });
                    self.buffers[end.buffer as usize].part(first as u64, body.bytes)
                });
                self.memory.copy(from, to);
            }
            Body::Loop(body) => control::looped(self.memory, &self.buffers, body, self.order),
            Body::Branch(body) => control::branch(self.memory, &self.buffers, body, self.order),
        }
    }

    fn conv(&mut self, conv: &Conv) {
        let extents =
            |each: fn(&Space) -> usize| conv.space.iter().map(each).collect::<Vec<usize>>();
        let taps = extents(|axis| axis.taps);
        let space = extents(|axis| axis.results);
        let results = [&[conv.examples], space.as_slice(), &[conv.results]];
        for at in points(&results.concat()) {
            let mut sum = 0.0;
            for tap in points(&taps) {
                let read = |axis: usize| {
                    let space = conv.space[axis];
                    space.moves.element(at[axis + 1], tap[axis], space.x)
                };
                let inside: Option<Vec<usize>> = (0..taps.len()).map(read).collect();
                let Some(inside) = inside else { continue };
                for channel in 0..conv.channels {
                    let x = [&at[..1], &inside, &[channel]].concat();
                    let w = [tap.as_slice(), &[channel, at[taps.len() + 1]]].concat();
                    sum += self.load(&conv.x, &x, 0).as_f64() * self.load(&conv.w, &w, 0).as_f64();
                }
            }
            self.store(&conv.write, &at, Literal::from_f64(conv.dtype, sum));
        }
    }

    fn element(&mut self, access: &Access, coordinates: &[usize]) -> isize {
        assert_eq!(access.strides.len(), coordinates.len(), "one stride a dimension");
        let along: isize =
            access.strides.iter().zip(coordinates).map(|(s, &c)| s * c as isize).sum();
        let starts: isize = access
            .starts
            .iter()
            .map(|start| {
                let slot = self.buffers[start.buffer as usize];
                let value = self.memory.get(slot, DType::I32, 0).as_i64();
                value.clamp(0, start.limit) as isize * start.stride
            })
            .sum();
        access.offset + along + starts
    }

    fn load(&mut self, access: &Access, coordinates: &[usize], extra: isize) -> Literal {
        let element = self.element(access, coordinates) + extra;
        let slot = self.buffers[access.buffer as usize];
        self.memory.get(slot, access.dtype, element)
    }

    fn store(&mut self, access: &Access, coordinates: &[usize], value: Literal) {
        assert_eq!(access.dtype, value.dtype(), "a store in the buffer's dtype");
        let element = self.element(access, coordinates);
        let slot = self.buffers[access.buffer as usize];
        self.memory.set(slot, element, value);
    }

    /// The registers of an instruction list at one point.
    fn insts(&mut self, insts: &[LoopInst], reads: &[Access], point: &Point) -> Vec<Literal> {
        let mut registers: Vec<Literal> = Vec::new();
        for inst in insts {
            let of = |reg: &Reg| registers[reg.0 as usize];
            let value = match inst {
                LoopInst::Gather { read, index, limit, stride } => {
                    let at = of(index).as_i64().clamp(0, *limit) as isize * stride;
                    self.load(&reads[*read as usize], &point.coordinates, at)
                }
                LoopInst::Kept { slot, dtype } => {
                    let value = point.kept[*slot as usize].expect("kept before it is used");
                    assert_eq!(value.dtype(), *dtype);
                    value
                }
                LoopInst::RowScalar { slot, dtype } => {
                    let value = point.rows[*slot as usize].expect("set before it is used");
                    assert_eq!(value.dtype(), *dtype);
                    value
                }
                LoopInst::Scalar(inst) => match inst {
                    Inst::Input { input, dtype } => {
                        let access = &reads[*input as usize];
                        assert_eq!(access.dtype, *dtype);
                        self.load(access, &point.coordinates, 0)
                    }
                    Inst::Index { axis } => {
                        Literal::from_i64(DType::I32, point.coordinates[*axis as usize] as i64)
                    }
                    Inst::Position => {
                        let position = point
                            .coordinates
                            .iter()
                            .zip(&point.dims)
                            .fold(0usize, |sum, (&c, &d)| sum * d + c);
                        Literal::from_i64(DType::U32, position as u32 as i64)
                    }
                    Inst::Const(value) => *value,
                    Inst::Op { op, dtype, args } => {
                        let args: Vec<Literal> = args.iter().map(of).collect();
                        op.eval(*dtype, &args)
                    }
                    Inst::Convert { to, arg, .. } => of(arg).convert(*to),
                    Inst::Gather { .. } => panic!("a scalar gather in a loop body"),
                },
            };
            registers.push(value);
        }
        registers
    }

    fn rows(&mut self, rows: &RowLoop) {
        let count: usize = rows.outer.iter().product();
        for row in 0..count {
            let row = if self.order.rows_backwards { count - 1 - row } else { row };
            let outer = coordinates(&rows.outer, row);
            let mut scalars = vec![None; rows.row_scalars as usize];
            let mut kept = vec![vec![None; rows.columns]; rows.kept as usize];
            for stage in &rows.stages {
                self.stage(rows, stage, &outer, &mut scalars, &mut kept);
            }
        }
    }

    fn stage(
        &mut self,
        rows: &RowLoop,
        stage: &Stage,
        outer: &[usize],
        scalars: &mut [Option<Literal>],
        kept: &mut [Vec<Option<Literal>>],
    ) {
        let columns = if stage.per == Per::Row { 1 } else { rows.columns };
        let dims = [rows.outer.as_slice(), &[rows.columns]].concat();
        let mut sums: Vec<Vec<Literal>> = vec![Vec::new(); stage.sinks.len()];
        let blocks: Vec<Vec<usize>> = match self.order.whole_rows {
            true => vec![(0..columns).collect()],
            false => (0..columns).map(|c| vec![c]).collect(),
        };
        for block in blocks {
            let mut computed = Vec::new();
            for &column in &block {
                let point = Point {
                    coordinates: [outer, &[column]].concat(),
                    dims: dims.clone(),
                    kept: kept.iter().map(|k| k[column]).collect(),
                    rows: scalars.to_vec(),
                };
                let registers = self.insts(&stage.insts, &rows.reads, &point);
                computed.push((column, point, registers));
            }
            for (column, point, registers) in computed {
                for (sink, sum) in stage.sinks.iter().zip(&mut sums) {
                    match *sink {
                        Sink::Store { write, reg } => {
                            let access = &rows.writes[write as usize];
                            self.store(access, &point.coordinates, registers[reg.0 as usize]);
                        }
                        Sink::Keep { slot, reg } => {
                            assert_eq!(stage.per, Per::Columns);
                            kept[slot as usize][column] = Some(registers[reg.0 as usize]);
                        }
                        Sink::Reduce { reg, .. } => {
                            assert_eq!(stage.per, Per::Columns);
                            sum.push(registers[reg.0 as usize]);
                        }
                        Sink::SetRow { slot, reg } => {
                            assert_eq!(stage.per, Per::Row);
                            scalars[slot as usize] = Some(registers[reg.0 as usize]);
                        }
                    }
                }
            }
        }
        for (sink, sum) in stage.sinks.iter().zip(sums) {
            if let Sink::Reduce { kind, slot, .. } = *sink {
                scalars[slot as usize] = Some(reduce(kind, &sum));
            }
        }
    }

    fn columns(&mut self, body: &ColumnReduce) {
        let outer: usize = body.outer.iter().product();
        let dims = [body.outer.as_slice(), &[body.reduced, body.columns]].concat();
        for row in 0..outer {
            for column in 0..body.columns {
                let mut values: Vec<Vec<Literal>> = vec![Vec::new(); body.reduces.len()];
                for r in 0..body.reduced {
                    let at = [coordinates(&body.outer, row).as_slice(), &[r, column]].concat();
                    let point = Point { coordinates: at, dims: dims.clone(), ..Point::default() };
                    let registers = self.insts(&body.insts, &body.reads, &point);
                    for (value, (_, reg, _)) in values.iter_mut().zip(&body.reduces) {
                        value.push(registers[reg.0 as usize]);
                    }
                }
                let at = [coordinates(&body.outer, row).as_slice(), &[0, column]].concat();
                for (value, &(kind, _, write)) in values.iter().zip(&body.reduces) {
                    self.store(&body.writes[write as usize], &at, reduce(kind, value));
                }
            }
        }
    }

    fn cumulative(&mut self, body: &Cumulative) {
        let [read, write] = [body.read, body.write].map(|b| self.buffers[b as usize]);
        for line in 0..body.outer * body.inner {
            let first = line / body.inner * body.length * body.inner + line % body.inner;
            let mut seen = Vec::new();
            for step in 0..body.length {
                let at = if body.reverse { body.length - 1 - step } else { step };
                let element = (first + at * body.inner) as isize;
                seen.push(self.memory.get(read, body.dtype, element));
                self.memory.set(write, element, reduce(body.kind, &seen));
            }
        }
    }

    fn scatter(&mut self, body: &Scatter) {
        let [indices, updates, write] =
            [body.indices, body.updates, body.write].map(|b| self.buffers[b as usize]);
        let mut sums: Vec<Vec<Literal>> = vec![Vec::new(); body.outer * body.extent * body.inner];
        for (at, sum) in sums.iter_mut().enumerate() {
            sum.push(self.memory.get(write, body.dtype, at as isize));
        }
        for at in 0..body.outer * body.count * body.inner {
            let [o, j, i] =
                [at / body.inner / body.count, at / body.inner % body.count, at % body.inner];
            let index = self.memory.get(indices, DType::I32, j as isize).as_i64();
            let index = if index < 0 { index + body.extent as i64 } else { index };
            let index = index.clamp(0, body.extent as i64 - 1) as usize;
            let value = self.memory.get(updates, body.dtype, at as isize);
            sums[(o * body.extent + index) * body.inner + i].push(value);
        }
        for (at, sum) in sums.iter().enumerate() {
            self.memory.set(write, at as isize, reduce(ReduceKind::Sum, sum));
        }
    }

    fn dot(&mut self, dot: &Dot) {
        let batches: usize = dot.batch.iter().product();
        let out = [dot.batch.as_slice(), &[dot.m, dot.n]].concat();
        for row in 0..batches * dot.m {
            let (batch, i) = (row / dot.m, row % dot.m);
            let at = coordinates(&dot.batch, batch);
            let mut product = Vec::new();
            for j in 0..dot.n {
                let mut terms = Vec::new();
                for k in 0..dot.k {
                    let a = self.load(&dot.a, &[at.as_slice(), &[i, k]].concat(), 0);
                    let b = self.load(&dot.b, &[at.as_slice(), &[k, j]].concat(), 0);
                    terms.push(multiply(dot.dtype, a, b));
                }
                product.push(sum_terms(dot.dtype, &terms));
            }
            // A device may sum products in the result's place, but where the epilogue may work in it.
            for (j, &value) in product.iter().enumerate() {
                if !dot.may_work_in_place() {
                    self.store(&dot.c, &[at.as_slice(), &[i, j]].concat(), value);
                }
            }
            let Some(epilogue) = &dot.epilogue else { continue };
            for (j, &value) in product.iter().enumerate() {
                let point = Point {
                    coordinates: [at.as_slice(), &[i, j]].concat(),
                    dims: out.clone(),
                    kept: vec![Some(value)],
                    rows: Vec::new(),
                };
                let registers = self.insts(&epilogue.insts, &epilogue.reads, &point);
                let result = *registers.last().expect("an epilogue has a result");
                self.store(&dot.c, &point.coordinates, result);
            }
        }
    }
}

enum Term {
    Float(f64),
    Integer(Literal),
}

fn multiply(dtype: DType, a: Literal, b: Literal) -> Term {
    match dtype.is_float() {
        true => Term::Float(a.as_f64() * b.as_f64()),
        false => Term::Integer(ScalarOp::Mul.eval(dtype, &[a, b])),
    }
}

fn sum_terms(dtype: DType, terms: &[Term]) -> Literal {
    if dtype.is_float() {
        let term = |t: &Term| match t {
            Term::Float(value) => *value,
            Term::Integer(_) => unreachable!("floats only"),
        };
        return Literal::from_f64(dtype, terms.iter().map(term).sum());
    }
    terms.iter().fold(Literal::from_i64(dtype, 0), |sum, term| match term {
        Term::Integer(value) => ScalarOp::Add.eval(dtype, &[sum, *value]),
        Term::Float(_) => unreachable!("integers only"),
    })
}

/// Reduces in order; float sums and products accumulate in f64, as the interpreter does.
pub fn reduce(kind: ReduceKind, values: &[Literal]) -> Literal {
    let dtype = values[0].dtype();
    let fold = |op: ScalarOp| {
        values[1..].iter().fold(values[0], |sum, &value| op.eval(dtype, &[sum, value]))
    };
    match kind {
        ReduceKind::Sum if dtype.is_float() => {
            Literal::from_f64(dtype, values.iter().map(|v| v.as_f64()).sum())
        }
        ReduceKind::Prod if dtype.is_float() => {
            Literal::from_f64(dtype, values.iter().map(|v| v.as_f64()).product())
        }
        ReduceKind::Sum => fold(ScalarOp::Add),
        ReduceKind::Prod => fold(ScalarOp::Mul),
        ReduceKind::Max => fold(ScalarOp::Max),
        ReduceKind::Min => fold(ScalarOp::Min),
        ReduceKind::Any => fold(ScalarOp::Or),
        ReduceKind::All => fold(ScalarOp::And),
        ReduceKind::ArgMax | ReduceKind::ArgMin => {
            let mut best = 0;
            for at in 1..values.len() {
                let (value, held) = (values[at].as_f64(), values[best].as_f64());
                let wins = match kind {
                    ReduceKind::ArgMax => value > held,
                    _ => value < held,
                };
                if !held.is_nan() && (wins || value.is_nan()) {
                    best = at;
                }
            }
            Literal::from_i64(DType::I32, best as i64)
        }
    }
}

/// The relative error that another order of rounding may bring to a program's values: that of the
/// narrowest float it computes in.
pub fn tolerance(func: &Func) -> f64 {
    let of = |ty: &Type| match ty.dtype {
        DType::F16 | DType::BF16 => 3e-2,
        DType::F32 => 1e-4,
        _ => 1e-9,
    };
    func.types.iter().map(of).fold(0.0, f64::max)
}

/// Whether two arrays agree within a relative error.
pub fn close(a: &Tensor, b: &Tensor, tolerance: f64) -> bool {
    a.ty == b.ty
        && a.literals().zip(b.literals()).all(|(x, y)| {
            if !x.dtype().is_float() || x == y {
                return x == y;
            }
            let (x, y) = (x.as_f64(), y.as_f64());
            (x.is_nan() && y.is_nan())
                || x == y
                || (x - y).abs() <= tolerance * (1.0 + x.abs().max(y.abs()))
        })
}

/// Checks what must hold of every program's plan, whatever it computes.
pub fn check_plan(program: &Program) {
    let arguments: u64 = program.func.param_types().iter().map(|t| t.device_bytes()).sum();
    let fresh = program.fresh_bytes.iter().zip(&program.fresh_memory);
    let fresh: u64 =
        fresh.filter(|(_, memory)| **memory == MemorySpace::Device).map(|(bytes, _)| bytes).sum();
    assert_eq!(program.peak_bytes, arguments + fresh + program.temp_bytes);
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; program.slots.len()];
    for (at, kernel) in program.kernels.iter().enumerate() {
        for &slot in &kernel.buffers {
            let life = lives[slot as usize].get_or_insert((at, at));
            life.1 = at;
        }
    }
    let mut touched = 0;
    for (at, slot) in program.slots.iter().enumerate() {
        let Some(life) = lives[at] else { continue };
        if let Place::Temporary { offset } = slot.place {
            assert_eq!(offset % 64, 0);
            assert!(offset + slot.ty.bytes() <= program.temp_bytes);
            touched = touched.max(offset + slot.ty.bytes());
            assert!(!slot.ty.is_host());
        }
        if let Place::Host { offset } = slot.place {
            assert!(slot.ty.is_host() && offset + slot.ty.bytes() <= program.host_temp_bytes);
        }
        for (other_at, other) in program.slots.iter().enumerate().skip(at + 1) {
            let Some(other_life) = lives[other_at] else { continue };
            if !overlap(slot, other) {
                continue;
            }
            // One may begin in the kernel that reads the other for the last time.
            let apart = life.1 <= other_life.0 || other_life.1 <= life.0;
            assert!(apart, "slots {at} and {other_at} share bytes while both live");
        }
    }
    assert_eq!(touched, program.temp_bytes, "the temporary block has no unused end");
}

fn overlap(a: &Slot, b: &Slot) -> bool {
    match (a.place, b.place) {
        (Place::Temporary { offset: x }, Place::Temporary { offset: y }) => {
            x < y + b.ty.bytes() && y < x + a.ty.bytes()
        }
        (Place::Host { offset: x }, Place::Host { offset: y }) => {
            x < y + b.ty.bytes() && y < x + a.ty.bytes()
        }
        (x, y) => x == y && a.ty.bytes() > 0 && b.ty.bytes() > 0,
    }
}
