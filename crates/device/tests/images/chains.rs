//! Runs of arithmetic, which some instruction sets keep in registers: the bits of one op after the other, with each
//! product that is added or subtracted rounded together with the sum.

use crate::support::{Buffers, Random, launch};
use vramlab_device::cpu::Isa;
use vramlab_ir::kernel::{Access, Body, LoopInst, Per, RowLoop, Sink, Stage};
use vramlab_ir::{DType, Inst, Kernel, Literal, Reg, ScalarOp};

/// What the chain does next with its value x and an array or number y (and z).
#[derive(Clone, Copy, Debug)]
enum Link {
    Op(ScalarOp),
    /// The other way round: y op x.
    Turned(ScalarOp),
    Unary(ScalarOp),
    /// x·y + z, x·y − z, z − x·y
    Product(usize),
    /// y·z + x, y·z − x, x − y·z
    Beside(usize),
}

fn links() -> Vec<Link> {
    use ScalarOp::*;
    let mut links: Vec<Link> = [Add, Sub, Div, Max, Min].map(Link::Op).to_vec();
    links.extend([Sub, Div, Max, Add].map(Link::Turned));
    links.extend([Neg, Abs, Sqrt].map(Link::Unary));
    links.extend((0..3).map(Link::Product));
    links.extend((0..3).map(Link::Beside));
    links
}

struct Chain {
    dtype: DType,
    insts: Vec<LoopInst>,
    /// Every register's value for each element, computed alongside.
    values: Vec<Vec<f64>>,
    fused: bool,
}

impl Chain {
    fn push(&mut self, inst: Inst, values: Vec<f64>) -> usize {
        self.insts.push(LoopInst::Scalar(inst));
        self.values.push(values);
        self.insts.len() - 1
    }

    fn op(&mut self, op: ScalarOp, args: &[usize], values: Vec<f64>) -> usize {
        let args = args.iter().map(|&arg| Reg(arg as u32)).collect();
        self.push(Inst::Op { op, dtype: self.dtype, args }, values)
    }

    fn simple(&mut self, op: ScalarOp, args: &[usize]) -> usize {
        let value = |i: usize| {
            let args: Vec<Literal> = args
                .iter()
                .map(|&arg| Literal::from_f64(self.dtype, self.values[arg][i]))
                .collect();
            op.eval(self.dtype, &args).as_f64()
        };
        let values = (0..self.values[0].len()).map(value).collect();
        self.op(op, args, values)
    }

    /// a·b ± c in one rounding or in two.
    fn product(&mut self, (a, b): (usize, usize), c: usize, kind: usize) -> usize {
        let each = |i: usize| {
            let [a, b, c] = [a, b, c].map(|reg| self.values[reg][i]);
            let (a, c) = match kind {
                0 => (a, c),
                1 => (a, -c),
                _ => (-a, c),
            };
            match (self.dtype, self.fused) {
                (DType::F32, true) => (a as f32).mul_add(b as f32, c as f32) as f64,
                (DType::F32, false) => (a as f32 * b as f32 + c as f32) as f64,
                (_, true) => a.mul_add(b, c),
                (_, false) => a * b + c,
            }
        };
        let values: Vec<f64> = (0..self.values[0].len()).map(each).collect();
        let product = self.op(ScalarOp::Mul, &[a, b], values.clone());
        match kind {
            0 => self.op(ScalarOp::Add, &[product, c], values),
            1 => self.op(ScalarOp::Sub, &[product, c], values),
            _ => self.op(ScalarOp::Sub, &[c, product], values),
        }
    }

    fn link(&mut self, link: Link, x: usize, (y, z): (usize, usize)) -> usize {
        match link {
            Link::Op(op) => self.simple(op, &[x, y]),
            Link::Turned(op) => self.simple(op, &[y, x]),
            Link::Unary(op) => self.simple(op, &[x]),
            Link::Product(kind) => self.product((x, y), z, kind),
            Link::Beside(kind) => self.product((y, z), x, kind),
        }
    }
}

fn check(dtype: DType, isa: Isa, elements: usize, seed: u64) {
    let mut random = Random::new(seed);
    let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-42, -1e38];
    let mut chain = Chain { dtype, insts: vec![], values: vec![], fused: isa.contracts() };
    let mut buffers: Buffers = Vec::new();
    for input in 0..3 {
        let mut bytes = Vec::new();
        let mut values = Vec::new();
        for _ in 0..elements {
            let odd = random.chance(3);
            let value = if odd {
                Literal::from_f64(dtype, random.pick(&special))
            } else {
                random.value(dtype)
            };
            bytes.extend_from_slice(&value.to_bytes()[..dtype.size()]);
            values.push(value.as_f64());
        }
        buffers.push(bytes);
        chain.push(Inst::Input { input, dtype }, values);
    }
    let number = Literal::from_f64(dtype, 0.75);
    chain.push(Inst::Const(number), vec![number.as_f64(); elements]);
    let mut x = 0;
    let mut trail = Vec::new();
    for _ in 0..1 + random.below(12) {
        let link = random.pick(&links());
        let operands = (1 + random.below(3), 1 + random.below(3));
        x = chain.link(link, x, operands);
        trail.push((link, operands));
    }
    let access = |buffer| Access { buffer, dtype, offset: 0, strides: vec![1], starts: Vec::new() };
    buffers.push(vec![0; elements * dtype.size()]);
    let sinks = vec![Sink::Store { write: 0, reg: Reg(x as u32) }];
    let want = chain.values[x].clone();
    let stages = vec![Stage { per: Per::Columns, insts: chain.insts, sinks }];
    let reads = (0..3).map(access).collect();
    let writes = vec![access(3)];
    let body = RowLoop {
        outer: vec![],
        columns: elements,
        reads,
        writes,
        stages,
        kept: 0,
        row_scalars: 0,
    };
    let (name, buffer_slots) = ("chain".to_owned(), vec![0, 1, 2, 3]);
    let body = Body::Rows(body);
    let kernel =
        Kernel { name, buffers: buffer_slots, body, bytes_read: 0, bytes_written: 0, flops: 0 };
    let results = launch(&kernel, &buffers, 1, isa).expect("it runs");
    for (i, got) in results[3].chunks_exact(dtype.size()).enumerate() {
        let (got, want) = (Literal::from_bytes(dtype, got), Literal::from_f64(dtype, want[i]));
        let nan = got.as_f64().is_nan() && want.as_f64().is_nan();
        assert!(
            got == want || nan,
            "{isa:?} {trail:?} at {i} of {elements}: {got:?}, not {want:?}"
        );
    }
}

#[test]
fn a_chain_has_the_bits_of_its_ops() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for dtype in [DType::F32, DType::F64] {
            for seed in 0..150 {
                for elements in [1, 64, 100, 192, 1088] {
                    check(dtype, isa, elements, seed);
                }
            }
        }
    }
}
