//! `jit`: a function that is traced once for each set of argument types and then runs as one
//! executable.

use crate::ambient::{Context, current, lock, placed};
use crate::array::{Array, Handle, Repr};
use crate::eager::Compiled;
use crate::leaner::{self, Loops};
use crate::raise::{catch, or_raise};
use crate::structure::Structure;
use crate::trace::{self, Finished};
use crate::tree::Tree;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use vramlab_ir::kernel::Donation;
use vramlab_ir::{
    Argument, BufferId, CompileKind, CompileRequest, Engine, Explanation, Fault, FaultKind, Leaner,
    MemoryAnalysis, Type,
};

/// One argument of a call: borrowed, or moved in, which offers its buffer for reuse.
#[derive(Debug)]
pub enum Arg<'a> {
    Borrowed(&'a Array),
    Moved(Array),
}

impl Arg<'_> {
    fn array(&self) -> &Array {
        match self {
            Arg::Borrowed(array) => array,
            Arg::Moved(array) => array,
        }
    }
}

impl<'a> From<&'a Array> for Arg<'a> {
    fn from(array: &'a Array) -> Arg<'a> {
        Arg::Borrowed(array)
    }
}

impl From<Array> for Arg<'_> {
    fn from(array: Array) -> Self {
        Arg::Moved(array)
    }
}

/// The traced function: how the tree in front holds its arrays, and all arrays in; arrays and how
/// they are held out.
type Body = Box<dyn Fn(&Structure, &[Array]) -> Result<Results, Fault> + Send + Sync>;

/// The structure in front of a function that takes no tree.
pub(crate) static NO_TREE: Structure = Structure::Tuple(Vec::new());

/// The one jit that typed cells and the instant tier share.
pub struct JitCore {
    name: Mutex<String>,
    /// Takes a tree in front of its arrays.
    of_tree: bool,
    body: Body,
    front: Mutex<Vec<Specialised>>,
    last: Mutex<Option<Last>>,
    /// The most bytes at the peak of a call.
    memory_limit: Mutex<Option<u64>>,
}

/// The function for one set of argument types on one engine. Two trees of other structures can have
/// the same arrays.
struct Specialised {
    hash: u64,
    engine: usize,
    tree: Structure,
    types: Vec<Type>,
    traced: Arc<Traced>,
    /// One executable for each set of moved arguments.
    executables: Vec<(Vec<bool>, Arc<Compiled>)>,
}

struct Traced {
    finished: Finished,
    structure: Structure,
}

/// What the last call ran.
#[derive(Clone)]
struct Last {
    engine: Arc<dyn Engine>,
    compiled: Arc<Compiled>,
}

/// A jitted function before its arguments: what a call of `JitCore` comes back with.
pub type Results = (Vec<Array>, Structure);

impl JitCore {
    pub fn new(
        name: impl Into<String>,
        body: impl Fn(&[Array]) -> Result<Results, Fault> + Send + Sync + 'static,
    ) -> JitCore {
        JitCore { of_tree: false, ..JitCore::of_tree(name, move |_, arrays| body(arrays)) }
    }

    /// A function of a tree and of arrays behind those of the tree.
    pub(crate) fn of_tree(
        name: impl Into<String>,
        body: impl Fn(&Structure, &[Array]) -> Result<Results, Fault> + Send + Sync + 'static,
    ) -> JitCore {
        JitCore {
            name: Mutex::new(name.into()),
            of_tree: true,
            body: Box::new(body),
            front: Mutex::new(Vec::new()),
            last: Mutex::new(None),
            memory_limit: Mutex::new(None),
        }
    }

    /// Sets the most bytes that a call may hold at its peak, arguments and results included: above
    /// that, values are computed again.
    ///
    /// # Errors
    /// Text that is no number of bytes.
    pub fn set_memory_limit(&self, limit: &str) -> Result<(), Fault> {
        let bytes = crate::bytes::parse(limit).map_err(|message| {
            let fault = Fault::new(FaultKind::Argument, "memory_limit", message);
            placed(fault).help("write \"512MiB\", \"1.5 GiB\" or a number of bytes")
        })?;
        *lock(&self.memory_limit) = Some(bytes);
        self.clear();
        Ok(())
    }

    /// The name in programs, tables and owners: that of the variable which holds the function.
    pub fn set_name(&self, name: &str) {
        *lock(&self.name) = name.to_string();
    }

    pub fn name(&self) -> String {
        lock(&self.name).clone()
    }

    /// What the arguments are called where the function takes a tree: the paths of its arrays, and
    /// `arrays[0]`, … behind them.
    fn arg_names(&self, tree: &Structure, arguments: usize) -> Vec<String> {
        if !self.of_tree {
            return Vec::new();
        }
        paths_and_arrays(tree, arguments)
    }

    /// Calls the function: `tree` is how the first arguments are held where it takes a tree. Inside
    /// a trace its equations join that trace.
    ///
    /// # Errors
    /// A fault of the body or of the run; moved arguments that the caller holds aliases of are as
    /// they were.
    pub(crate) fn call(&self, tree: &Structure, arguments: &[Arg]) -> Result<Results, Fault> {
        if trace::active() {
            let arrays: Vec<Array> = arguments.iter().map(|arg| arg.array().alias()).collect();
            return (self.body)(tree, &arrays);
        }
        let handles = self.concrete(tree, arguments)?;
        let context = match handles.first() {
            Some(handle) => handle.context(),
            None => {
                let ambient = current()?;
                Context { engine: Arc::clone(&ambient.engine), state: Arc::clone(&ambient.state) }
            }
        };
        let mask = donation_mask(arguments, &handles);
        let (traced, compiled) = self.specialised(&context, tree, &handles, &mask)?;
        let given = run_arguments(&handles, &mask, &traced.finished.captured)?;
        let buffers = compiled.execute(&*context.engine, &given);
        *lock(&self.last) =
            Some(Last { engine: Arc::clone(&context.engine), compiled: Arc::clone(&compiled) });
        let buffers = buffers?;
        for (handle, _) in handles.iter().zip(&mask).filter(|(_, moved)| **moved) {
            handle.set_donated();
        }
        let results = buffers.into_iter().zip(&compiled.results);
        let arrays =
            results.map(|(buffer, ty)| Array::concrete(&context, buffer, ty.clone())).collect();
        Ok((arrays, traced.structure.clone()))
    }

    /// The trace and the executable for these arguments, made now if they are new.
    fn specialised(
        &self,
        context: &Context,
        tree: &Structure,
        handles: &[&Arc<Handle>],
        mask: &[bool],
    ) -> Result<(Arc<Traced>, Arc<Compiled>), Fault> {
        let engine = Arc::as_ptr(&context.engine) as *const () as usize;
        let mut hasher = DefaultHasher::new();
        handles.iter().for_each(|handle| handle.ty.hash(&mut hasher));
        let hash = hasher.finish();
        let same = |entry: &&mut Specialised| {
            entry.hash == hash
                && entry.engine == engine
                && entry.tree == *tree
                && entry.types.iter().eq(handles.iter().map(|handle| &handle.ty))
        };
        let traced = {
            let mut front = lock(&self.front);
            match front.iter_mut().find(same) {
                Some(entry) => {
                    let known = entry.executables.iter().find(|(given, _)| given == mask);
                    if let Some((_, compiled)) = known {
                        return Ok((Arc::clone(&entry.traced), Arc::clone(compiled)));
                    }
                    Some(Arc::clone(&entry.traced))
                }
                None => None,
            }
        };
        let types: Vec<Type> = handles.iter().map(|handle| handle.ty.clone()).collect();
        // The lock is not held while the user's function runs: it may call itself.
        let traced = match traced {
            Some(traced) => traced,
            None => Arc::new(self.trace(tree, &types)?),
        };
        let mut donate = mask.to_vec();
        donate.resize(traced.finished.func.params.len(), false);
        let func = Arc::clone(&traced.finished.func);
        let memory_limit = *lock(&self.memory_limit);
        let leaner = match memory_limit {
            Some(_) => self.leaner(tree, &types, &traced.finished),
            None => Vec::new(),
        };
        let request = CompileRequest { func, donate, kind: CompileKind::Jit, memory_limit, leaner };
        let compiled = Arc::new(Compiled::new(&*context.engine, request)?);
        let executable = (mask.to_vec(), Arc::clone(&compiled));
        let mut front = lock(&self.front);
        match front.iter_mut().find(same) {
            Some(entry) => entry.executables.push(executable),
            None => front.push(Specialised {
                hash,
                engine,
                tree: tree.clone(),
                types,
                traced: Arc::clone(&traced),
                executables: vec![executable],
            }),
        }
        Ok((traced, compiled))
    }

    /// The function with loops that keep less, where it has loops.
    fn leaner(&self, tree: &Structure, types: &[Type], first: &Finished) -> Vec<Leaner> {
        if !first.func.eqns.iter().any(|eqn| eqn.op.name() == vramlab_ops::SCAN.name) {
            return Vec::new();
        }
        let buffers = |finished: &Finished| -> Vec<_> {
            finished
                .captured
                .iter()
                .map(|array| array.handle("jit").ok().map(|h| h.buffer))
                .collect()
        };
        let captured = buffers(first);
        let again = |(loops, how)| {
            let traced = leaner::with(loops, || self.trace(tree, types)).ok()?;
            let func = traced.finished.func.clone();
            // A function that does not do the same twice has no other form.
            let alike = buffers(&traced.finished) == captured
                && func.param_types() == first.func.param_types()
                && func.result_types() == first.func.result_types();
            alike.then_some(Leaner { how, func })
        };
        Loops::LEANER.into_iter().filter_map(again).collect()
    }

    fn trace(&self, tree: &Structure, types: &[Type]) -> Result<Traced, Fault> {
        let name = self.name();
        let names = self.arg_names(tree, types.len());
        let (finished, structure) =
            trace::run_named(&name, types, names, |arrays| (self.body)(tree, arrays))?;
        for captured in &finished.captured {
            captured.set_owner(&format!("captured by {name}"));
        }
        Ok(Traced { finished, structure })
    }

    /// The executable for these arguments without a run; with `asked` as if those that are moved in could be
    /// reused whoever else holds them, or all where none is.
    fn compiled(&self, tree: &Structure, arguments: &[Arg], asked: bool) -> Result<Last, Fault> {
        let handles = self.concrete(tree, arguments)?;
        let context = match handles.first() {
            Some(handle) => Arc::new(handle.context()),
            None => current()?,
        };
        let moved: Vec<bool> = arguments.iter().map(|arg| matches!(arg, Arg::Moved(_))).collect();
        let mask = match asked {
            true if moved.contains(&true) => moved,
            true => vec![true; handles.len()],
            false => donation_mask(arguments, &handles),
        };
        let (_, compiled) = self.specialised(&context, tree, &handles, &mask)?;
        Ok(Last { engine: Arc::clone(&context.engine), compiled })
    }

    /// What the last call ran, stage by stage; `None` before the first call.
    ///
    /// # Errors
    /// A fault of compiling again, when the executable had been evicted.
    pub fn explanation(&self) -> Result<Option<Explanation>, Fault> {
        let last = lock(&self.last).clone();
        last.map(|last| last.explain()).transpose()
    }

    /// What a call with these arguments would run.
    ///
    /// # Errors
    /// A fault of the trace or of the compiler.
    pub(crate) fn lower(&self, tree: &Structure, arguments: &[Arg]) -> Result<Explanation, Fault> {
        self.compiled(tree, arguments, false)?.explain()
    }

    /// The program for arguments of these types, and leaner forms of it for a plan under a limit. Nothing
    /// is compiled or kept.
    ///
    /// # Errors
    /// A fault of the body.
    pub fn programs(&self, types: &[Type]) -> Result<(Arc<vramlab_ir::Func>, Vec<Leaner>), Fault> {
        let traced = self.trace(&NO_TREE, types)?;
        let leaner = self.leaner(&NO_TREE, types, &traced.finished);
        Ok((Arc::clone(&traced.finished.func), leaner))
    }

    /// For each argument: whether its buffer would be reused if it were moved in, or why not, as
    /// text.
    ///
    /// # Errors
    /// A fault of the trace or of the compiler.
    pub(crate) fn donations(&self, tree: &Structure, arguments: &[Arg]) -> Result<String, Fault> {
        let explanation = self.compiled(tree, arguments, true)?.explain()?;
        let line = |donation: &Donation| {
            let used = if donation.used { "used" } else { "not used" };
            format!("{}: {used}, {}\n", explanation.arg_name(donation.argument), donation.reason)
        };
        Ok(explanation.donations.iter().map(line).collect())
    }

    /// The arguments as the device has them. Where one cannot be used, its name is said.
    fn concrete<'a>(
        &self,
        tree: &Structure,
        arguments: &'a [Arg],
    ) -> Result<Vec<&'a Arc<Handle>>, Fault> {
        let found = arguments.iter().enumerate().map(|(at, argument)| {
            let handle = match &argument.array().repr {
                Repr::Traced(traced) => Err(trace::leaked(&traced.ty)),
                Repr::Concrete(_) => argument.array().handle("jit"),
            };
            handle.map_err(|mut fault| {
                if let Some(name) = self.arg_names(tree, arguments.len()).get(at) {
                    fault.message = format!("{name}: {}", fault.message);
                }
                fault
            })
        });
        found.collect()
    }

    /// Forgets traces and executables.
    pub fn clear(&self) {
        lock(&self.front).clear();
    }
}

impl fmt::Debug for JitCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Jit({})", self.name())
    }
}

impl Last {
    fn explain(&self) -> Result<Explanation, Fault> {
        if let Some(found) = self.engine.explain(self.compiled.id()) {
            return Ok(found);
        }
        let id = self.compiled.recompile(&*self.engine)?;
        self.engine.explain(id).ok_or_else(|| {
            placed(Fault::new(
                FaultKind::Argument,
                "explain",
                "the device keeps nothing to explain of this function",
            ))
        })
    }
}

/// What the arguments of a function of a tree and arrays are called.
pub(crate) fn paths_and_arrays(tree: &Structure, arguments: usize) -> Vec<String> {
    let mut names = tree.paths("params");
    let others = arguments.saturating_sub(names.len());
    names.extend((0..others).map(|at| format!("arrays[{at}]")));
    names
}

/// Moved arguments whose claim no other argument uses.
fn donation_mask(arguments: &[Arg], handles: &[&Arc<Handle>]) -> Vec<bool> {
    let moved = |argument: &Arg| matches!(argument, Arg::Moved(_));
    if !arguments.iter().any(moved) {
        return vec![false; arguments.len()];
    }
    let mut uses: HashMap<BufferId, u32> = HashMap::with_capacity(handles.len());
    handles.iter().for_each(|handle| *uses.entry(handle.buffer).or_default() += 1);
    let once = |handle: &Arc<Handle>| uses[&handle.buffer] == 1;
    arguments.iter().zip(handles).map(|(given, handle)| moved(given) && once(handle)).collect()
}

fn run_arguments(
    handles: &[&Arc<Handle>],
    mask: &[bool],
    captured: &[Array],
) -> Result<Vec<Argument>, Fault> {
    let mut given: Vec<Argument> = handles
        .iter()
        .zip(mask)
        .map(|(handle, &moved)| match moved {
            true => Argument::Donated(handle.buffer),
            false => Argument::Borrowed(handle.buffer),
        })
        .collect();
    for array in captured {
        given.push(Argument::Borrowed(array.handle("jit")?.buffer));
    }
    Ok(given)
}

/// What a transform takes and gives: a function of N borrowed arrays.
type Function<const N: usize, Out> = dyn Fn([&Array; N]) -> Out + Send + Sync;

/// A jitted function: `f([&x, &w])` borrows, `f.call((w, &x))` moves what is moved.
pub struct Jit<const N: usize, Out> {
    core: Arc<JitCore>,
    function: Box<Function<N, Out>>,
}

/// A function that is traced once for each set of shapes and element types, and runs as one
/// executable.
pub fn jit<const N: usize, Out: Tree + 'static>(
    f: impl Fn([&Array; N]) -> Out + Send + Sync + 'static,
) -> Jit<N, Out> {
    let core = Arc::new(JitCore::new("jit", move |arrays: &[Array]| {
        let arguments: [&Array; N] = refer(arrays)?;
        let mut results = Vec::new();
        let structure = catch(|| f(arguments).into_leaves(&mut results))?;
        Ok((results, structure))
    }));
    let shared = Arc::clone(&core);
    let function = Box::new(move |arguments: [&Array; N]| {
        or_raise(shared.call(&NO_TREE, &arguments.map(Arg::Borrowed)).and_then(unflatten))
    });
    Jit { core, function }
}

pub(crate) fn unflatten<Out: Tree>((arrays, structure): Results) -> Result<Out, Fault> {
    Out::from_leaves(&structure, &mut arrays.into_iter())
}

pub(crate) fn refer<const N: usize>(arrays: &[Array]) -> Result<[&Array; N], Fault> {
    let references: Vec<&Array> = arrays.iter().collect();
    references.try_into().map_err(|_| wrong_count(N, arrays.len()))
}

pub(crate) fn wrong_count(wanted: usize, given: usize) -> Fault {
    let plural = if wanted == 1 { "" } else { "s" };
    let message = format!("the function takes {wanted} array{plural}, and {given} were given");
    placed(Fault::new(FaultKind::Argument, "call", message))
}

impl<const N: usize, Out: Tree> Jit<N, Out> {
    /// Calls with moved or borrowed arguments, in an array, a tuple or a `Vec`. A moved array's
    /// buffer may be reused; it is gone afterwards.
    #[track_caller]
    pub fn call<'a>(&self, arguments: impl Arguments<'a, N>) -> Out {
        let found = arguments.arguments().and_then(|given| self.core.call(&NO_TREE, &given));
        or_raise(found.and_then(unflatten))
    }

    /// The same function under a limit, `"512MiB"`, of what a call holds at its peak, arguments and
    /// results included: values are computed again where it would be above. Which, and at what cost,
    /// is in [`Jit::explain`].
    #[track_caller]
    pub fn memory_limit(self, limit: &str) -> Jit<N, Out> {
        or_raise(self.core.set_memory_limit(limit));
        self
    }

    /// Bytes of the last call's executable under JAX's names.
    #[track_caller]
    pub fn memory_analysis(&self) -> MemoryAnalysis {
        or_raise(last_explanation(&self.core, "memory_analysis")).analysis
    }

    /// Bytes of what a call with these arguments would run; nothing runs.
    #[track_caller]
    pub fn memory_analysis_of<'a>(&self, arguments: impl Arguments<'a, N>) -> MemoryAnalysis {
        let lowered = arguments.arguments().and_then(|given| self.core.lower(&NO_TREE, &given));
        or_raise(lowered).analysis
    }

    /// The last call's way through the compiler, as text.
    #[track_caller]
    pub fn explain(&self) -> String {
        explanation_text(&or_raise(last_explanation(&self.core, "explain")))
    }

    /// What a call with these arguments would run, as text; nothing runs.
    #[track_caller]
    pub fn lower<'a>(&self, arguments: impl Arguments<'a, N>) -> String {
        let lowered = arguments.arguments().and_then(|given| self.core.lower(&NO_TREE, &given));
        explanation_text(&or_raise(lowered))
    }

    /// Lists each argument: whether its buffer would be reused if it were moved in, or why not. Where some are moved
    /// in, those.
    #[track_caller]
    pub fn donations<'a>(&self, arguments: impl Arguments<'a, N>) -> String {
        or_raise(arguments.arguments().and_then(|given| self.core.donations(&NO_TREE, &given)))
    }
}

impl<const N: usize, Out> Jit<N, Out> {
    /// What the instant tier shares with this function.
    pub fn core(&self) -> &Arc<JitCore> {
        &self.core
    }
}

pub(crate) fn last_explanation(core: &JitCore, asked: &str) -> Result<Explanation, Fault> {
    core.explanation()?.ok_or_else(|| {
        let message = format!("{} was not called yet", core.name());
        placed(Fault::new(FaultKind::Argument, asked, message))
            .help("call it once, or lower it with the arguments in question")
    })
}

pub(crate) fn explanation_text(explanation: &Explanation) -> String {
    let mut text = String::new();
    for (stage, program) in &explanation.stages {
        text.push_str(&format!("{stage}:\n{}\n", program.trim_end()));
    }
    for note in &explanation.notes {
        text.push_str(&format!("{note}\n"));
    }
    text
}

impl<const N: usize, Out: 'static> Deref for Jit<N, Out> {
    type Target = Function<N, Out>;

    fn deref(&self) -> &Self::Target {
        &*self.function
    }
}

impl<const N: usize, Out> fmt::Debug for Jit<N, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

/// What `call` takes: an array of N arguments, a tuple of N, or a `Vec`, whose length is checked.
pub trait Arguments<'a, const N: usize> {
    /// # Errors
    /// An argument fault when a `Vec` has another length.
    fn arguments(self) -> Result<Vec<Arg<'a>>, Fault>;
}

impl<'a, A: Into<Arg<'a>>, const N: usize> Arguments<'a, N> for [A; N] {
    fn arguments(self) -> Result<Vec<Arg<'a>>, Fault> {
        Ok(self.into_iter().map(Into::into).collect())
    }
}

impl<'a, A: Into<Arg<'a>>, const N: usize> Arguments<'a, N> for Vec<A> {
    fn arguments(self) -> Result<Vec<Arg<'a>>, Fault> {
        match self.len() {
            given if given == N => Ok(self.into_iter().map(Into::into).collect()),
            given => Err(wrong_count(N, given)),
        }
    }
}

macro_rules! tuple_arguments {
    ($count:literal $($name:ident)*) => {
        impl<'a, $($name: Into<Arg<'a>>),*> Arguments<'a, $count> for ($($name,)*) {
            #[allow(non_snake_case)]
            fn arguments(self) -> Result<Vec<Arg<'a>>, Fault> {
                let ($($name,)*) = self;
                Ok(vec![$($name.into()),*])
            }
        }
    };
}

tuple_arguments!(1 A);
tuple_arguments!(2 A B);
tuple_arguments!(3 A B C);
tuple_arguments!(4 A B C D);
tuple_arguments!(5 A B C D E);
tuple_arguments!(6 A B C D E F);
tuple_arguments!(7 A B C D E F G);
tuple_arguments!(8 A B C D E F G H);
