//! What surrounds a call without being an argument: the engine, the place in the cell, the random
//! state that belongs to the engine.

use crate::array::Live;
use crate::eager::Front;
use crate::random::Stream;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use vramlab_ir::{Engine, Fault, FaultKind, Origin};

/// An engine and what this crate keeps beside it.
pub(crate) struct Context {
    pub engine: Arc<dyn Engine>,
    pub state: Arc<State>,
}

/// Kept for as long as the engine lives, however often it becomes the ambient one.
#[derive(Default)]
pub(crate) struct State {
    pub random: Mutex<Stream>,
    pub front: Mutex<Front>,
    pub live: Mutex<Live>,
}

/// An engine that was ambient, and its state.
type Known = (Weak<dyn Engine>, Arc<State>);

static SHARED: RwLock<Option<Arc<Context>>> = RwLock::new(None);
static STATES: Mutex<Vec<Known>> = Mutex::new(Vec::new());

thread_local! {
    static LOCAL: RefCell<Option<Arc<Context>>> = const { RefCell::new(None) };
    static ORIGIN: Cell<Origin> = const {
        Cell::new(Origin {
            cell: 0,
            span: vramlab_ir::Span { line: 0, column: 0, end_line: 0, end_column: 0 },
        })
    };
}

/// A poisoned lock is taken all the same: the data behind these locks is a cache or a counter that
/// is whole between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    pub(crate) fn of(engine: Arc<dyn Engine>) -> Arc<Context> {
        let mut states = lock(&STATES);
        states.retain(|(known, _)| known.strong_count() > 0);
        let found = states.iter().find(|(known, _)| same_engine(known.as_ptr(), &engine));
        let state = match found {
            Some((_, state)) => Arc::clone(state),
            None => {
                let state = Arc::new(State::default());
                states.push((Arc::downgrade(&engine), Arc::clone(&state)));
                state
            }
        };
        Arc::new(Context { engine, state })
    }
}

fn same_engine(known: *const dyn Engine, engine: &Arc<dyn Engine>) -> bool {
    std::ptr::addr_eq(known, Arc::as_ptr(engine))
}

/// Makes `engine` the one that every thread without an engine of its own uses.
pub fn set_engine(engine: Arc<dyn Engine>) {
    *SHARED.write().unwrap_or_else(PoisonError::into_inner) = Some(Context::of(engine));
}

/// Runs `body` with `engine` as this thread's engine.
pub fn with_engine<T>(engine: Arc<dyn Engine>, body: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<Context>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            LOCAL.set(self.0.take());
        }
    }
    let context = Context::of(engine);
    let _restore = Restore(LOCAL.replace(Some(context)));
    body()
}

/// The engine of this thread, else the process's.
pub(crate) fn current() -> Result<Arc<Context>, Fault> {
    if let Some(context) = LOCAL.with_borrow(Clone::clone) {
        return Ok(context);
    }
    SHARED.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(|| {
        Fault::new(FaultKind::Argument, "", "there is no device")
            .help("call set_engine or with_engine first")
    })
}

/// The ambient engine, where there is one.
pub fn engine() -> Option<Arc<dyn Engine>> {
    current().ok().map(|context| Arc::clone(&context.engine))
}

/// Where in the user's text the following calls are made; the value before it comes back.
pub fn set_origin(origin: Origin) -> Origin {
    ORIGIN.replace(origin)
}

/// Where in the user's text this call is made.
pub fn origin() -> Origin {
    ORIGIN.get()
}

/// `fault` with the current place, when it has none and there is one.
pub(crate) fn placed(fault: Fault) -> Fault {
    match origin() {
        place if place == Origin::default() => fault,
        place => fault.at(place.cell, place.span),
    }
}
