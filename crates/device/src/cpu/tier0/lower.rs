//! From a stage's instructions to lowered ones: dead registers go, odd types are spelled out, products join sums.

use super::access::Axis;
use super::chain::{self, Kind};
use super::convert;
use super::decode::Decoder;
use super::lanes::BlockFn;
use super::ops::{self, Fused};
use crate::LaunchError;
use std::collections::BTreeMap;
use vramlab_ir::kernel::{LoopInst, Sink};
use vramlab_ir::{DType, Inst, Reg, ScalarOp};

/// An instruction over lowered registers: 16-bit arithmetic and odd types are spelled out.
#[derive(Clone, Debug)]
pub(super) enum Low {
    Read { read: u16 },
    Gather { read: u16, index: usize, wide: bool, limit: i64, stride: isize },
    Kept { slot: u32 },
    RowScalar { slot: u32 },
    Index { axis: Axis },
    Position,
    Constant { bits: u64 },
    Apply { f: BlockFn, args: Vec<usize>, cost: f64, arithmetic: Arithmetic },
}

/// Whether an op may stand in a chain, and as what.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Other,
    Op(ScalarOp),
    Fused(Fused),
}

impl Arithmetic {
    /// How it continues a chain whose running value is operand `position`.
    pub fn continues(self, position: usize) -> Option<Kind> {
        match self {
            Arithmetic::Other => None,
            Arithmetic::Op(op) => chain::continues(op, position),
            Arithmetic::Fused(op) => Some(chain::continues_fused(op, position)),
        }
    }
}

pub(super) struct Lowered {
    pub insts: Vec<(Low, DType)>,
    /// From the stage's registers.
    pub map: Vec<usize>,
}

impl Lowered {
    pub fn push(&mut self, low: Low, dtype: DType) -> usize {
        self.insts.push((low, dtype));
        self.insts.len() - 1
    }
}

impl Decoder<'_> {
    pub fn lower(
        &mut self,
        insts: &[LoopInst],
        sinks: &[Sink],
        dtypes: &[DType],
    ) -> Result<Lowered, LaunchError> {
        let uses = count_uses(insts, sinks);
        let contracted =
            if self.isa.contracts() { contract(insts, &uses) } else { BTreeMap::new() };
        let absorbed: Vec<usize> = contracted.values().map(|c| c.product).collect();
        let mut lowered = Lowered { insts: Vec::new(), map: vec![usize::MAX; insts.len()] };
        for (at, inst) in insts.iter().enumerate() {
            if uses[at] == 0 || absorbed.contains(&at) {
                continue;
            }
            let index = match contracted.get(&at) {
                Some(contraction) => self.lower_contraction(&mut lowered, contraction, dtypes[at]),
                None => self.lower_inst(&mut lowered, inst, dtypes[at])?,
            };
            lowered.map[at] = index;
        }
        Ok(lowered)
    }

    fn lower_contraction(&self, lowered: &mut Lowered, c: &Contraction, dtype: DType) -> usize {
        let f = ops::fused(c.op, dtype, self.isa);
        let args = c.args.iter().map(|arg| lowered.map[arg.0 as usize]).collect();
        let cost = 0.05 * dtype.size() as f64 / 4.0;
        lowered.push(Low::Apply { f, args, cost, arithmetic: Arithmetic::Fused(c.op) }, dtype)
    }

    fn lower_inst(
        &self,
        lowered: &mut Lowered,
        inst: &LoopInst,
        dtype: DType,
    ) -> Result<usize, LaunchError> {
        let low = match inst {
            LoopInst::Scalar(Inst::Input { input, .. }) => Low::Read { read: *input as u16 },
            LoopInst::Scalar(Inst::Index { axis }) => {
                Low::Index { axis: self.nest.axes[*axis as usize] }
            }
            LoopInst::Scalar(Inst::Position) => Low::Position,
            LoopInst::Scalar(Inst::Const(value)) => Low::Constant { bits: value.bits() },
            LoopInst::Scalar(Inst::Op { op, dtype, args }) => {
                return self.lower_op(lowered, *op, *dtype, args);
            }
            LoopInst::Scalar(Inst::Convert { from, to, arg }) => {
                let arg = lowered.map[arg.0 as usize];
                return Ok(self.lower_conversion(lowered, *from, *to, arg));
            }
            LoopInst::Scalar(Inst::Gather { .. }) => {
                return Err(self.malformed("a scalar gather in a loop"));
            }
            LoopInst::Gather { read, index, limit, stride } => {
                let index = lowered.map[index.0 as usize];
                let wide = lowered.insts[index].1 == DType::I64;
                Low::Gather { read: *read as u16, index, wide, limit: *limit, stride: *stride }
            }
            LoopInst::Kept { slot, .. } => Low::Kept { slot: *slot },
            LoopInst::RowScalar { slot, .. } => Low::RowScalar { slot: *slot },
        };
        Ok(lowered.push(low, dtype))
    }

    /// An op in its own type, or in the type that stands in for one without arithmetic of its own: f32 for the 16-bit
    /// floats (rounded after each op), i32 for bool, f64 for functions of integers.
    fn lower_op(
        &self,
        lowered: &mut Lowered,
        op: ScalarOp,
        dtype: DType,
        args: &[Reg],
    ) -> Result<usize, LaunchError> {
        let stand_ins: &[DType] = match dtype {
            DType::F16 | DType::BF16 => &[DType::F32],
            DType::Bool => &[dtype, DType::I32, DType::F64],
            _ if dtype.is_float() => &[dtype],
            _ => &[dtype, DType::F64],
        };
        let found = |&work: &DType| ops::lookup(op, work, self.isa).map(|f| (f, work));
        let Some((f, work)) = stand_ins.iter().find_map(found) else {
            return Err(self.unsupported(format!("{op:?} on {dtype}")));
        };
        let mut args: Vec<usize> = args.iter().map(|arg| lowered.map[arg.0 as usize]).collect();
        for (i, arg) in args.iter_mut().enumerate() {
            if !(op == ScalarOp::Select && i == 0) {
                *arg = self.lower_conversion(lowered, dtype, work, *arg);
            }
        }
        if ops::swapped(op) {
            args.swap(0, 1);
        }
        let arithmetic = Arithmetic::Op(op);
        let apply = Low::Apply { f, args, cost: cost(op, work), arithmetic };
        let result = lowered.push(apply, op.result(work));
        Ok(self.lower_conversion(lowered, op.result(work), op.result(dtype), result))
    }

    pub fn lower_conversion(
        &self,
        lowered: &mut Lowered,
        from: DType,
        to: DType,
        arg: usize,
    ) -> usize {
        if from == to {
            return arg;
        }
        let mut at = arg;
        for (f, dtype) in convert::conversion(from, to, self.isa) {
            let arithmetic = Arithmetic::Other;
            at = lowered.push(Low::Apply { f, args: vec![at], cost: 0.1, arithmetic }, dtype);
        }
        at
    }
}

/// Rough nanoseconds an element on one core: only good enough to decide whether a second thread pays.
fn cost(op: ScalarOp, dtype: DType) -> f64 {
    use ScalarOp::*;
    let wide = dtype.size() as f64 / 4.0;
    match op {
        Exp | Expm1 | Log | Tanh | Sqrt | Rsqrt | Div if dtype == DType::F32 => 0.4,
        Sin | Cos | Tan | Log1p | Erf | Pow | Threefry if dtype.size() == 4 => 1.5,
        Exp | Expm1 | Log | Log1p | Sin | Cos | Tan | Tanh | Erf | Pow | Atan2 | Rem => 10.0,
        Div if dtype.is_integer() => 1.0,
        _ => 0.06 * wide,
    }
}

pub(super) fn register(sink: &Sink) -> usize {
    match sink {
        Sink::Store { reg, .. }
        | Sink::Keep { reg, .. }
        | Sink::Reduce { reg, .. }
        | Sink::SetRow { reg, .. } => reg.0 as usize,
    }
}

fn operands(inst: &LoopInst) -> &[Reg] {
    match inst {
        LoopInst::Scalar(Inst::Op { args, .. }) => args,
        LoopInst::Scalar(Inst::Convert { arg, .. }) => std::slice::from_ref(arg),
        LoopInst::Gather { index, .. } => std::slice::from_ref(index),
        _ => &[],
    }
}

/// How often each register is read by sinks and by registers that are themselves used.
fn count_uses(insts: &[LoopInst], sinks: &[Sink]) -> Vec<u32> {
    let mut uses = vec![0; insts.len()];
    for sink in sinks {
        uses[register(sink)] += 1;
    }
    for at in (0..insts.len()).rev() {
        if uses[at] > 0 {
            for arg in operands(&insts[at]) {
                uses[arg.0 as usize] += 1;
            }
        }
    }
    uses
}

/// A sum and the product in it, as one op.
struct Contraction {
    op: Fused,
    args: [Reg; 3],
    product: usize,
}

/// Sums and differences of f32 and f64 with a product that nothing else uses. Where both operands are such products,
/// the first is taken.
fn contract(insts: &[LoopInst], uses: &[u32]) -> BTreeMap<usize, Contraction> {
    let product = |reg: Reg, wanted: DType| match &insts[reg.0 as usize] {
        LoopInst::Scalar(Inst::Op { op: ScalarOp::Mul, dtype, args })
            if *dtype == wanted && uses[reg.0 as usize] == 1 =>
        {
            Some([args[0], args[1]])
        }
        _ => None,
    };
    let mut found = BTreeMap::new();
    for (at, inst) in insts.iter().enumerate() {
        let LoopInst::Scalar(Inst::Op { op, dtype, args }) = inst else { continue };
        let sum = matches!(op, ScalarOp::Add | ScalarOp::Sub);
        if !sum || !matches!(dtype, DType::F32 | DType::F64) || uses[at] == 0 {
            continue;
        }
        let (x, y) = (args[0], args[1]);
        let contraction = if let Some([a, b]) = product(x, *dtype) {
            let op = if *op == ScalarOp::Add { Fused::MulAdd } else { Fused::MulSub };
            Contraction { op, args: [a, b, y], product: x.0 as usize }
        } else if let Some([a, b]) = product(y, *dtype) {
            let op = if *op == ScalarOp::Add { Fused::MulAdd } else { Fused::SubMul };
            Contraction { op, args: [a, b, x], product: y.0 as usize }
        } else {
            continue;
        };
        found.insert(at, contraction);
    }
    found
}
