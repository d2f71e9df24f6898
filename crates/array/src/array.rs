//! `Array`: one type for a device buffer and for a value of a running trace.

use crate::ambient::{self, Context, State, lock, placed};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use vramlab_ir::{BufferId, Engine, Fault, FaultKind, Type, Value};

/// An array on the device, or a value of a running trace.
///
/// `clone` shares the buffer and is a holder of its own; `copy` copies. Dropping the last holder
/// frees the memory at once.
pub struct Array {
    pub(crate) repr: Repr,
}

#[derive(Clone)]
pub(crate) enum Repr {
    Concrete(Arc<Handle>),
    Traced(Arc<Traced>),
}

/// One claim on a device buffer.
pub(crate) struct Handle {
    pub buffer: BufferId,
    pub ty: Type,
    pub engine: Arc<dyn Engine>,
    state: Arc<State>,
    /// The claim ended in a call that took the array; nothing is left to release.
    donated: AtomicBool,
}

/// A value of the trace `trace`.
pub(crate) struct Traced {
    pub trace: u64,
    pub value: Value,
    pub ty: Type,
}

/// Every claim that this process holds on one engine.
pub(crate) type Live = HashMap<BufferId, Weak<Handle>>;

impl Handle {
    pub(crate) fn new(context: &Context, buffer: BufferId, ty: Type) -> Arc<Handle> {
        let handle = Arc::new(Handle {
            buffer,
            ty,
            engine: Arc::clone(&context.engine),
            state: Arc::clone(&context.state),
            donated: AtomicBool::new(false),
        });
        lock(&handle.state.live).insert(buffer, Arc::downgrade(&handle));
        handle
    }

    pub(crate) fn context(&self) -> Context {
        Context { engine: Arc::clone(&self.engine), state: Arc::clone(&self.state) }
    }

    pub(crate) fn set_donated(&self) {
        self.donated.store(true, Ordering::Release);
    }

    pub(crate) fn is_donated(&self) -> bool {
        self.donated.load(Ordering::Acquire)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        lock(&self.state.live).remove(&self.buffer);
        if !self.is_donated() {
            self.engine.release(self.buffer);
        }
    }
}

impl Array {
    pub(crate) fn concrete(context: &Context, buffer: BufferId, ty: Type) -> Array {
        Array { repr: Repr::Concrete(Handle::new(context, buffer, ty)) }
    }

    pub(crate) fn traced(trace: u64, value: Value, ty: Type) -> Array {
        Array { repr: Repr::Traced(Arc::new(Traced { trace, value, ty })) }
    }

    /// The array behind a claim that the engine has handed out and that nobody releases yet.
    pub fn of_claim(engine: Arc<dyn Engine>, buffer: BufferId, ty: Type) -> Array {
        Array::concrete(&Context::of(engine), buffer, ty)
    }

    /// Element type and shape.
    pub fn ty(&self) -> &Type {
        match &self.repr {
            Repr::Concrete(handle) => &handle.ty,
            Repr::Traced(traced) => &traced.ty,
        }
    }

    /// Whether this is a value of a trace rather than a device buffer.
    pub fn is_traced(&self) -> bool {
        matches!(self.repr, Repr::Traced(_))
    }

    /// The same array without a claim of its own: what a borrow is in dynamic code. It never names
    /// an owner, and it is dead once the array it came from was donated.
    pub fn alias(&self) -> Array {
        Array { repr: self.repr.clone() }
    }

    /// Whether the buffer went to a call that took the array.
    pub fn is_donated(&self) -> bool {
        matches!(&self.repr, Repr::Concrete(handle) if handle.is_donated())
    }

    /// The claim's id; `None` inside a trace.
    pub fn buffer(&self) -> Option<BufferId> {
        match &self.repr {
            Repr::Concrete(handle) => Some(handle.buffer),
            Repr::Traced(_) => None,
        }
    }

    /// Names this holder for tables: `w`, `params[3].w`, `Out[3]`; empty: where it was made.
    pub fn set_owner(&self, owner: &str) {
        if let Repr::Concrete(handle) = &self.repr {
            handle.engine.set_owner(handle.buffer, owner);
        }
    }

    /// The owners of every claim on the same bytes, this one included.
    pub fn holders(&self) -> Vec<String> {
        match &self.repr {
            Repr::Concrete(handle) => handle.engine.holders(handle.buffer),
            Repr::Traced(_) => Vec::new(),
        }
    }

    /// The device buffer behind the array, for `op`, which reads data.
    pub(crate) fn handle(&self, op: &str) -> Result<&Arc<Handle>, Fault> {
        match &self.repr {
            Repr::Concrete(handle) if handle.is_donated() => Err(placed(Fault::new(
                FaultKind::Donated,
                op,
                format!("the {} was donated to an earlier call", handle.ty),
            ))),
            Repr::Concrete(handle) => Ok(handle),
            Repr::Traced(traced) => Err(placed(
                Fault::new(FaultKind::Trace, op, format!("a traced {} has no data yet", traced.ty))
                    .help(
                        "inside jit, gradients, vmap and loops an array stands for values of a later run: \
                     return it from the function and read it there, or choose with select(c, a, b) or cond",
                    ),
            )),
        }
    }

    /// The array's bytes, dense and row-major.
    pub(crate) fn bytes(&self, op: &str) -> Result<Vec<u8>, Fault> {
        let handle = self.handle(op)?;
        handle.engine.download(handle.buffer).map_err(placed)
    }
}

/// A new array of `ty` from host bytes.
pub(crate) fn upload(ty: Type, bytes: &[u8]) -> Result<Array, Fault> {
    let context = ambient::current()?;
    let buffer = context.engine.upload(&ty, bytes, ambient::origin()).map_err(placed)?;
    Ok(Array::concrete(&context, buffer, ty))
}

/// Another holder of the same bytes.
impl Clone for Array {
    fn clone(&self) -> Array {
        match &self.repr {
            Repr::Concrete(handle) if !handle.is_donated() => {
                let buffer = handle.engine.share(handle.buffer);
                Array::concrete(&handle.context(), buffer, handle.ty.clone())
            }
            _ => self.alias(),
        }
    }
}

/// Short: the type only, since a debug print must not read the device.
impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repr {
            Repr::Concrete(handle) => write!(f, "Array({})", handle.ty),
            Repr::Traced(traced) => write!(f, "Array({}, traced)", traced.ty),
        }
    }
}

/// The arrays that are alive on the ambient engine, oldest first.
pub(crate) fn live_arrays() -> Result<Vec<Array>, Fault> {
    let context = ambient::current()?;
    let mut live: Vec<Arc<Handle>> =
        lock(&context.state.live).values().filter_map(Weak::upgrade).collect();
    live.sort_by_key(|handle| handle.buffer);
    Ok(live.into_iter().map(|handle| Array { repr: Repr::Concrete(handle) }).collect())
}
