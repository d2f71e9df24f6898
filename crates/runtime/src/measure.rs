//! What a compiled program weighs on the host: the bytes behind its vectors and texts, by their capacities.

use std::mem::{size_of, size_of_val};
use std::sync::Arc;
use vramlab_ir::kernel::{
    Access, Body, Branch, ColumnReduce, Conv, Donation, Dot, Epilogue, Feed, Loop, LoopInst,
    ResultSource, Routine, RowLoop, Sink, Slot, Space, Stage, Start, Trips,
};
use vramlab_ir::{
    Eqn, Func, Kernel, MemorySpace, Param, Program, ReduceKind, Reg, Shape, Type, Value,
};

/// Bytes on the host's heap that belong to a value, beside its own `size_of`.
pub(crate) trait Behind {
    fn behind(&self) -> u64;
}

/// A value and what is behind it.
pub(crate) fn whole<T: Behind>(value: &T) -> u64 {
    size_of::<T>() as u64 + value.behind()
}

impl<T: Behind> Behind for Vec<T> {
    fn behind(&self) -> u64 {
        (self.capacity() * size_of::<T>()) as u64 + self.iter().map(Behind::behind).sum::<u64>()
    }
}

impl<T: Behind> Behind for Option<T> {
    fn behind(&self) -> u64 {
        self.as_ref().map_or(0, Behind::behind)
    }
}

impl<A: Behind, B: Behind> Behind for (A, B) {
    fn behind(&self) -> u64 {
        self.0.behind() + self.1.behind()
    }
}

impl Behind for String {
    fn behind(&self) -> u64 {
        self.capacity() as u64
    }
}

macro_rules! nothing_behind {
    ($($ty:ty),*) => { $(impl Behind for $ty {
        fn behind(&self) -> u64 {
            0
        }
    })* };
}

nothing_behind!(
    bool,
    u32,
    u64,
    i64,
    usize,
    isize,
    Value,
    Reg,
    MemorySpace,
    ReduceKind,
    Feed,
    ResultSource,
    LoopInst,
    Sink,
    Start,
    (ReduceKind, Reg, u32)
);

impl Behind for Shape {
    fn behind(&self) -> u64 {
        size_of_val(self.dims()) as u64
    }
}

impl Behind for Type {
    fn behind(&self) -> u64 {
        self.shape.behind()
    }
}

impl Behind for Arc<Func> {
    fn behind(&self) -> u64 {
        // The two counters of the Arc come with it.
        whole(&**self) + 2 * size_of::<usize>() as u64
    }
}

impl Behind for Func {
    fn behind(&self) -> u64 {
        self.name.behind()
            + self.params.behind()
            + self.eqns.behind()
            + self.results.behind()
            + self.types.behind()
    }
}

impl Behind for Eqn {
    fn behind(&self) -> u64 {
        let params: u64 = self
            .params
            .iter()
            .map(|(name, param)| {
                (name.len() + size_of::<(String, Param)>()) as u64 + param.behind()
            })
            .sum();
        params + self.inputs.behind() + self.outputs.behind()
    }
}

impl Behind for Param {
    fn behind(&self) -> u64 {
        match self {
            Param::Ints(ints) => ints.behind(),
            Param::Shape(shape) => shape.behind(),
            Param::Text(text) => text.behind(),
            Param::Func(func) => func.behind(),
            Param::Bool(_) | Param::Int(_) | Param::Literal(_) | Param::DType(_) => 0,
        }
    }
}

impl Behind for Access {
    fn behind(&self) -> u64 {
        self.strides.behind() + self.starts.behind()
    }
}

impl Behind for Stage {
    fn behind(&self) -> u64 {
        self.insts.behind() + self.sinks.behind()
    }
}

impl Behind for RowLoop {
    fn behind(&self) -> u64 {
        self.outer.behind() + self.reads.behind() + self.writes.behind() + self.stages.behind()
    }
}

impl Behind for ColumnReduce {
    fn behind(&self) -> u64 {
        self.outer.behind()
            + self.reads.behind()
            + self.writes.behind()
            + self.insts.behind()
            + self.reduces.behind()
    }
}

impl Behind for Epilogue {
    fn behind(&self) -> u64 {
        self.reads.behind() + self.insts.behind()
    }
}

impl Behind for Conv {
    fn behind(&self) -> u64 {
        let space = self.space.capacity() * size_of::<Space>();
        space as u64 + self.x.behind() + self.w.behind() + self.write.behind()
    }
}

impl Behind for Dot {
    fn behind(&self) -> u64 {
        self.batch.behind()
            + self.a.behind()
            + self.b.behind()
            + self.c.behind()
            + self.epilogue.behind()
    }
}

impl Behind for Routine {
    fn behind(&self) -> u64 {
        self.name.behind()
            + self.slots.behind()
            + self.kernels.behind()
            + self.results.behind()
            + self.fresh_bytes.behind()
    }
}

impl Behind for Loop {
    fn behind(&self) -> u64 {
        let condition = match &self.trips {
            Trips::Counted { .. } => 0,
            Trips::While { condition, arguments, .. } => condition.behind() + arguments.behind(),
        };
        let places = [&self.inits, &self.storages, &self.next, &self.results];
        condition
            + self.body.behind()
            + self.arguments.behind()
            + places.iter().map(|places| places.behind()).sum::<u64>()
    }
}

impl Behind for Branch {
    fn behind(&self) -> u64 {
        self.on_true.behind()
            + self.on_false.behind()
            + self.arguments.behind()
            + self.results.behind()
    }
}

impl Behind for Kernel {
    fn behind(&self) -> u64 {
        let body = match &self.body {
            Body::Rows(rows) => rows.behind(),
            Body::Columns(columns) => columns.behind(),
            Body::Dot(dot) => dot.behind(),
            Body::Conv(conv) => conv.behind(),
            Body::Cumulative(_) | Body::Scatter(_) | Body::Transfer(_) => 0,
            Body::Loop(looped) => whole(&**looped),
            Body::Branch(branch) => whole(&**branch),
        };
        self.name.behind() + self.buffers.behind() + body
    }
}

impl Behind for Slot {
    fn behind(&self) -> u64 {
        self.ty.behind() + self.label.behind()
    }
}

impl Behind for Donation {
    fn behind(&self) -> u64 {
        self.reason.behind()
    }
}

impl Behind for Program {
    fn behind(&self) -> u64 {
        self.func.behind()
            + self.slots.behind()
            + self.kernels.behind()
            + self.results.behind()
            + self.fresh_bytes.behind()
            + self.fresh_memory.behind()
            + self.donations.behind()
            + self.stages.behind()
            + self.notes.behind()
    }
}
