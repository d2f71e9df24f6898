//! The whole lower half at once: random programs compiled and run on the CPU device give what the interpreter gives,
//! whatever is moved in and whoever else holds it; planned peaks are measured; nothing is left behind.

use crate::programs::{Sample, agrees, sample};
use crate::support::random::{Generator, Random, arguments};
use crate::support::{close, tolerance};
use std::sync::Arc;
use vramlab_ir::{
    Argument, BufferId, CompileKind, CompileRequest, Engine, Origin, Tensor, Type, evaluate,
};
use vramlab_runtime::{Config, Context, DeviceConfig, ModeSpec};

const MODES: [&str; 4] = ["preallocate", "ondemand gc=on", "platform", "caching"];

fn context(mode: &str) -> Arc<Context> {
    let device = DeviceConfig::Cpu { capacity: Some(64 << 20) };
    let mode = ModeSpec::parse(mode).expect("a mode");
    let config = Config { device, mode, threads: Some(2), ..Config::default() };
    Context::new(config).expect("a device")
}

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Given {
    Borrowed,
    Moved,
    /// Moved in while somebody else holds the bytes too.
    MovedAndHeld,
}

fn givens(seed: u64, count: usize) -> Vec<Given> {
    let all = [Given::Borrowed, Given::Moved, Given::MovedAndHeld];
    (0..count as u32).map(|i| all[(seed / 3u64.pow(i)) as usize % 3]).collect()
}

fn read(context: &Context, ty: &Type, buffer: BufferId) -> Tensor {
    let bytes = context.download(buffer).expect("data");
    Tensor::new(ty.clone(), bytes).expect("as many bytes as the type has")
}

/// Whether what was wanted is what came out.
type Agree<'a> = &'a dyn Fn(&Tensor, &Tensor) -> bool;

fn play(context: &Context, seed: u64, sample: &Sample, agree: Agree) {
    let Sample { func, arguments, results } = sample;
    let givens = givens(seed, arguments.len());
    let upload = |tensor: &Tensor| {
        context.upload(&tensor.ty, &tensor.bytes, Origin::default()).expect("it fits")
    };
    let buffers: Vec<BufferId> = arguments.iter().map(upload).collect();
    let held = |(given, &id): (&Given, &BufferId)| match given {
        Given::MovedAndHeld => Some(context.share(id)),
        _ => None,
    };
    let held: Vec<Option<BufferId>> = givens.iter().zip(&buffers).map(held).collect();
    let give = |(given, &id): (&Given, &BufferId)| match given {
        Given::Borrowed => Argument::Borrowed(id),
        _ => Argument::Donated(id),
    };
    let given: Vec<Argument> = givens.iter().zip(&buffers).map(give).collect();
    let donate = givens.iter().map(|given| *given != Given::Borrowed).collect();
    let request = CompileRequest {
        func: func.clone(),
        donate,
        kind: CompileKind::Jit,
        memory_limit: None,
        leaner: Vec::new(),
    };
    let executable = context.compile(&request).expect("it compiles");
    let before = context.memory().requested_bytes;
    context.scope_begin("run");
    let got = context.execute(executable, &given, Origin::default()).expect("it fits");
    let scope = context.scope_end();
    for ((id, wanted), ty) in got.iter().zip(results).zip(func.result_types()) {
        let got = read(context, &ty, *id);
        assert!(agree(wanted, &got), "{seed}, {givens:?}: {got:?}, wanted {wanted:?}\n{func}");
    }
    for ((given, id), (tensor, held)) in
        givens.iter().zip(&buffers).zip(arguments.iter().zip(&held))
    {
        match given {
            Given::Borrowed => assert_eq!(read(context, &tensor.ty, *id), *tensor, "{seed}"),
            _ => assert!(context.type_of(*id).is_none(), "{seed}: the claim ended"),
        }
        if let Some(held) = held {
            assert_eq!(read(context, &tensor.ty, *held), *tensor, "{seed}: the other holder's");
        }
    }
    if !givens.contains(&Given::MovedAndHeld) {
        let explanation = context.explain(executable).expect("an entry");
        let planned = explanation.analysis.peak_memory_in_bytes;
        assert_eq!(explanation.measured_peak_bytes, Some(planned), "{seed}, {givens:?}\n{func}");
        assert_eq!(scope.peak_bytes, planned, "{seed}: as a scope sees it");
        assert_eq!(before, explanation.analysis.argument_size_in_bytes);
    }
    let borrowed = givens.iter().zip(&buffers).filter(|(given, _)| **given == Given::Borrowed);
    let borrowed = borrowed.map(|(_, id)| *id);
    got.into_iter().chain(held.into_iter().flatten()).chain(borrowed).for_each(|id| {
        context.release(id);
    });
    assert_eq!((context.memory().requested_bytes, context.memory().live_arrays), (0, 0), "{seed}");
}

#[test]
fn random_programs_run_as_the_interpreter_has_it() {
    let contexts = MODES.map(context);
    for seed in 0..1200 {
        play(&contexts[seed as usize % MODES.len()], seed, &sample(seed), &agrees);
    }
    for context in contexts {
        context.with_heap(|heap| assert_eq!(heap.check(), Ok(())));
    }
}

/// Programs with loops, branches and calls inside each other.
#[test]
fn random_loops_run_as_the_interpreter_has_it() {
    let contexts = MODES.map(context);
    for seed in 0..1200 {
        let (func, _) = Generator::new(seed).program(1 + (seed % 17) as usize);
        let arguments = arguments(&func, &mut Random::new(seed ^ 0x5555));
        let results = evaluate(&func, &arguments).expect("a program of the table");
        let within = tolerance(&func);
        let sample = Sample { func: Arc::new(func), arguments, results };
        let context = &contexts[seed as usize % MODES.len()];
        play(context, seed, &sample, &|wanted, got| close(wanted, got, within));
    }
}
