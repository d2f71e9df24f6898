//! Instruction lists of loop bodies: equal instructions are written once, and arithmetic that is
//! exact is done here.

use super::Emitter;
use crate::algebra::{Known, simplify};
use crate::form::Form;
use crate::fuse::Item;
use crate::graph::Kind;
use std::collections::HashMap;
use vramlab_ir::kernel::{LoopInst, Sink};
use vramlab_ir::{DType, Inst, Literal, Reg, ScalarOp};

/// Up to this length a scan finds an equal instruction faster than a table.
const SCANNED: usize = 24;

#[derive(Debug, Default)]
pub(crate) struct Insts {
    pub list: Vec<LoopInst>,
    table: HashMap<LoopInst, u32>,
}

impl Insts {
    /// The register that holds `inst`, which is written unless something equal is there already.
    pub fn push(&mut self, inst: LoopInst) -> Reg {
        let inst = match inst {
            LoopInst::Scalar(inst) => match simplify(inst, &|reg| self.known(reg)) {
                Ok(reg) => return reg,
                Err(inst) => LoopInst::Scalar(inst),
            },
            inst => inst,
        };
        if self.list.len() < SCANNED {
            if let Some(at) = self.list.iter().position(|i| *i == inst) {
                return Reg(at as u32);
            }
        } else {
            if self.table.is_empty() {
                self.table.extend(self.list.iter().cloned().zip(0..));
            }
            if let Some(&at) = self.table.get(&inst) {
                return Reg(at);
            }
            self.table.insert(inst.clone(), self.list.len() as u32);
        }
        self.list.push(inst);
        Reg(self.list.len() as u32 - 1)
    }

    fn known(&self, reg: Reg) -> Known<'_> {
        match &self.list[reg.0 as usize] {
            LoopInst::Scalar(Inst::Const(value)) => Known::Literal(*value),
            LoopInst::Scalar(inst) => Known::Inst(inst),
            _ => Known::Nothing,
        }
    }

    pub fn literal(&mut self, value: Literal) -> Reg {
        self.push(LoopInst::Scalar(Inst::Const(value)))
    }

    fn op(&mut self, op: ScalarOp, dtype: DType, args: &[Reg]) -> Reg {
        self.push(LoopInst::Scalar(Inst::Op { op, dtype, args: args.to_vec() }))
    }

    /// Drops what no sink uses; `extra` registers are kept and renumbered too.
    pub fn finish(self, sinks: &mut [Sink], extra: &mut [Reg]) -> Vec<LoopInst> {
        let mut used = vec![false; self.list.len()];
        for reg in sinks.iter().map(sink_reg).chain(extra.iter().copied()) {
            used[reg.0 as usize] = true;
        }
        for at in (0..self.list.len()).rev() {
            if used[at] {
                each_arg(&self.list[at], &mut |reg| used[reg.0 as usize] = true);
            }
        }
        if used.iter().all(|&u| u) {
            return self.list;
        }
        let mut renumbered = vec![Reg(0); self.list.len()];
        let mut kept = Vec::new();
        for (at, mut inst) in self.list.into_iter().enumerate() {
            if used[at] {
                map_args(&mut inst, &|reg| renumbered[reg.0 as usize]);
                renumbered[at] = Reg(kept.len() as u32);
                kept.push(inst);
            }
        }
        for sink in sinks {
            let (Sink::Store { reg, .. }
            | Sink::Keep { reg, .. }
            | Sink::Reduce { reg, .. }
            | Sink::SetRow { reg, .. }) = sink;
            *reg = renumbered[reg.0 as usize];
        }
        for reg in extra {
            *reg = renumbered[reg.0 as usize];
        }
        kept
    }
}

fn sink_reg(sink: &Sink) -> Reg {
    match *sink {
        Sink::Store { reg, .. }
        | Sink::Keep { reg, .. }
        | Sink::Reduce { reg, .. }
        | Sink::SetRow { reg, .. } => reg,
    }
}

fn each_arg(inst: &LoopInst, visit: &mut dyn FnMut(Reg)) {
    match inst {
        LoopInst::Gather { index, .. } => visit(*index),
        LoopInst::Scalar(Inst::Op { args, .. }) => args.iter().for_each(|&a| visit(a)),
        LoopInst::Scalar(Inst::Convert { arg, .. }) => visit(*arg),
        _ => {}
    }
}

fn map_args(inst: &mut LoopInst, map: &dyn Fn(Reg) -> Reg) {
    match inst {
        LoopInst::Gather { index, .. } => *index = map(*index),
        LoopInst::Scalar(Inst::Op { args, .. }) => args.iter_mut().for_each(|a| *a = map(*a)),
        LoopInst::Scalar(Inst::Convert { arg, .. }) => *arg = map(*arg),
        _ => {}
    }
}

impl Emitter<'_> {
    /// The program of a map item; `value` gives the register of a request.
    pub fn program(
        &mut self,
        item: &Item,
        insts: &mut Insts,
        value: &mut dyn FnMut(&mut Self, &mut Insts, u32) -> Reg,
    ) -> Reg {
        let graph = self.graph;
        let Kind::Map(program) = &graph.node(item.node).kind else {
            unreachable!("only maps have programs")
        };
        let operand = |input: u32, gather: Option<u32>| {
            item.operands
                .iter()
                .find(|o| o.input == input && o.gather == gather)
                .expect("every operand that a program names was asked for")
                .request
        };
        let mut map: Vec<Reg> = Vec::with_capacity(program.insts.len());
        for inst in &program.insts {
            let reg = match inst {
                Inst::Input { input, .. } => value(self, insts, operand(*input, None)),
                Inst::Gather { input, axis, index, .. } => {
                    let request = operand(*input, Some(*axis));
                    self.gather(request, map[index.0 as usize], insts)
                }
                Inst::Index { axis } => {
                    let form = item.indices.iter().find(|(a, _)| a == axis);
                    let form = &form.expect("every axis that a program names was located").1;
                    self.coordinate(form, DType::I32, insts)
                }
                Inst::Position => self.position(&item.form, insts),
                Inst::Const(literal) => insts.literal(*literal),
                Inst::Op { op, dtype, args } => {
                    let args = args.iter().map(|a| map[a.0 as usize]).collect();
                    insts.push(LoopInst::Scalar(Inst::Op { op: *op, dtype: *dtype, args }))
                }
                Inst::Convert { from, to, arg } => {
                    let arg = map[arg.0 as usize];
                    insts.push(LoopInst::Scalar(Inst::Convert { from: *from, to: *to, arg }))
                }
            };
            map.push(reg);
        }
        map[program.result as usize]
    }

    fn gather(&mut self, request: u32, index: Reg, insts: &mut Insts) -> Reg {
        let form = &self.group.requests[request as usize].form;
        let axis = form.starts.iter().find(|s| s.source == crate::form::StartSource::Index);
        let (limit, stride) = axis.map_or((0, 0), |s| (s.limit, s.stride));
        let read = self.read(request);
        insts.push(LoopInst::Gather { read, index, limit, stride })
    }

    /// The row-major position in the item's own array, u32.
    fn position(&self, form: &Form, insts: &mut Insts) -> Reg {
        let whole = form.is_dense(&self.group.dims) && self.rows_only();
        if whole {
            return insts.push(LoopInst::Scalar(Inst::Position));
        }
        self.coordinate(form, DType::U32, insts)
    }

    /// Row stages know no position, and a product's loop has a dimension too many.
    fn rows_only(&self) -> bool {
        use crate::fuse::GroupKind::*;
        matches!(self.group.kind, Map | Columns)
    }

    /// An affine function of the loop's coordinates, wrapping in `dtype`.
    fn coordinate(&self, form: &Form, dtype: DType, insts: &mut Insts) -> Reg {
        let mut sum: Option<Reg> = None;
        for (axis, (&stride, &extent)) in form.strides.iter().zip(&self.group.dims).enumerate() {
            if stride == 0 || extent <= 1 {
                continue;
            }
            let index = insts.push(LoopInst::Scalar(Inst::Index { axis: axis as u32 }));
            let index = match dtype {
                DType::I32 => index,
                _ => insts.push(LoopInst::Scalar(Inst::Convert {
                    from: DType::I32,
                    to: dtype,
                    arg: index,
                })),
            };
            let term = match stride {
                1 => index,
                _ => {
                    let step = insts.literal(Literal::from_i64(dtype, stride as i64));
                    insts.op(ScalarOp::Mul, dtype, &[index, step])
                }
            };
            sum = Some(match sum {
                Some(before) => insts.op(ScalarOp::Add, dtype, &[before, term]),
                None => term,
            });
        }
        let offset = Literal::from_i64(dtype, form.offset as i64);
        match sum {
            None => insts.literal(offset),
            Some(sum) if form.offset == 0 => sum,
            Some(sum) => {
                let offset = insts.literal(offset);
                insts.op(ScalarOp::Add, dtype, &[sum, offset])
            }
        }
    }
}
