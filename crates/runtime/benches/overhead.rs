//! What a call costs beside its arithmetic: eager ops, jitted calls, claims, the ledger. Prints one line each.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use vramlab_ir::{
    Argument, CompileKind, CompileRequest, DType, Engine, Func, FuncBuilder, Literal, Origin,
    Param, Params, Type,
};
use vramlab_memory::{Heap, Request, Stream};
use vramlab_runtime::{Config, Context, DeviceConfig, ModeSpec};

/// The least of several rounds, in nanoseconds a call.
fn measure(name: &str, calls: u32, mut call: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let begin = Instant::now();
        (0..calls).for_each(|_| call());
        best = best.min(begin.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    println!("{name:44} {best:9.0} ns");
}

fn context(device: DeviceConfig, mode: &str) -> Arc<Context> {
    let mode = ModeSpec::parse(mode).expect("a mode");
    Context::new(Config { device, mode, ..Config::default() }).expect("a device")
}

fn one_op(name: &str, params: &[Type]) -> Arc<Func> {
    let op = vramlab_ops::lookup(name).expect("an op");
    let mut build = FuncBuilder::new(name);
    let params: Vec<_> = params.iter().map(|ty| build.param(ty.clone())).collect();
    let results = build.push(op, Params::new(), &params, None).expect("operands that fit");
    Arc::new(build.finish(results))
}

/// A loop whose body is these ops on 16 elements.
fn looped(device: &DeviceConfig, body: &str) {
    let context = context(device.clone(), "preallocate");
    let ty = Type::new(DType::F32, [16]);
    let mut build = FuncBuilder::new("step");
    let mut x = build.param(ty.clone());
    for name in body.split(' ') {
        let op = vramlab_ops::lookup(name).expect("an op");
        x = build.push(op, Params::new(), &[x], None).expect("operands that fit")[0];
    }
    let params = Params::new()
        .with("body", Param::Func(Arc::new(build.finish(vec![x]))))
        .with("length", Param::Int(i64::from(ITERATIONS)))
        .with("consts", Param::Int(0))
        .with("carries", Param::Int(1))
        .with("reverse", Param::Bool(false));
    let mut build = FuncBuilder::new("loop");
    let first = build.param(ty.clone());
    let scan = vramlab_ops::lookup("scan").expect("an op");
    let last = build.push(scan, params, &[first], None).expect("operands that fit");
    let func = Arc::new(build.finish(last));
    let request = CompileRequest {
        func,
        donate: vec![false],
        kind: CompileKind::Jit,
        memory_limit: None,
        leaner: Vec::new(),
    };
    let executable = context.compile(&request).expect("it compiles");
    let x = context.upload(&ty, &[0; 64], Origin::default()).expect("it fits");
    let arguments = [Argument::Borrowed(x)];
    measure(&format!("scan of {ITERATIONS} iterations: {body}"), 10, || {
        let y = context.execute(executable, &arguments, Origin::default()).expect("it fits");
        context.release(black_box(y[0]));
    });
}

const ITERATIONS: u32 = 10_000;

fn main() {
    let cpu = DeviceConfig::Cpu { capacity: Some(256 << 20) };
    let dry = DeviceConfig::Dry { capacity: 80 << 30 };
    let ty = Type::new(DType::F32, [16]);
    let scalar = Type::new(DType::F32, []);
    for (name, device, mode) in [
        ("cpu preallocate", cpu.clone(), "preallocate"),
        ("cpu platform", cpu, "platform"),
        ("dry preallocate", dry, "preallocate"),
    ] {
        let context = context(device, mode);
        let x = context.upload(&ty, &[0; 64], Origin::default()).expect("it fits");
        let func = one_op("mul", &[ty.clone(), scalar.clone()]);
        let donate = vec![false, false];
        let request = CompileRequest {
            func,
            donate,
            kind: CompileKind::Eager,
            memory_limit: None,
            leaner: Vec::new(),
        };
        let executable = context.compile(&request).expect("it compiles");
        let two = Argument::Scalar(Literal::from_f64(DType::F32, 2.0));
        let arguments = [Argument::Borrowed(x), two];
        measure(&format!("{name}: x * 2.0 on 16 elements, and its drop"), 20_000, || {
            let y = context.execute(executable, &arguments, Origin::default()).expect("it fits");
            context.release(black_box(y[0]));
        });
        measure(&format!("{name}: finding a program again"), 20_000, || {
            black_box(context.compile(&request).expect("it compiles"));
        });
        measure(&format!("{name}: share and release"), 20_000, || {
            context.release(black_box(context.share(x)));
        });
        measure(&format!("{name}: set_owner, two names in turn"), 20_000, || {
            context.set_owner(x, "a");
            context.set_owner(x, "b");
        });
        measure(&format!("{name}: figures"), 20_000, || {
            black_box(context.memory());
        });
    }
    for body in ["neg", "neg identity neg"] {
        looped(&DeviceConfig::Cpu { capacity: Some(256 << 20) }, body);
    }
    ledger_on_and_off();
    table_of_many_arrays();
    let driver = Box::new(vramlab_memory::Fake::new(1 << 30));
    let mut heap = Heap::new(driver, ModeSpec::default());
    let warm = heap.allocate(Request::of(1 << 20)).expect("it fits");
    measure("ledger and BFC: allocate and deallocate", 100_000, || {
        let block = heap.allocate(Request::of(4096)).expect("it fits");
        heap.deallocate(black_box(block), Stream(0), 0);
    });
    heap.deallocate(warm, Stream(0), 0);
    let mut now_ns = 0;
    measure("ledger: one event", 100_000, || {
        now_ns += 1;
        let kind = vramlab_memory::EventKind::Reclaim;
        heap.ledger_mut().record(vramlab_memory::Event::of(kind, now_ns));
    });
}

/// A loop of 1,000 eager ops with the ledger keeping its events and without, in turn, so that both meet the same noise.
fn ledger_on_and_off() {
    let context = context(DeviceConfig::Cpu { capacity: Some(256 << 20) }, "preallocate");
    let ty = Type::new(DType::F32, [256]);
    let x = context.upload(&ty, &[0; 1024], Origin::default()).expect("it fits");
    let func = one_op("mul", &[ty.clone(), Type::new(DType::F32, [])]);
    let donate = vec![false, false];
    let request = CompileRequest {
        func,
        donate,
        kind: CompileKind::Eager,
        memory_limit: None,
        leaner: Vec::new(),
    };
    let executable = context.compile(&request).expect("it compiles");
    let arguments = [Argument::Borrowed(x), Argument::Scalar(Literal::from_f64(DType::F32, 2.0))];
    let mut times: [Vec<f64>; 2] = Default::default();
    for round in 0..400 {
        let on = round % 2;
        context.set_recording(on == 1);
        let begin = Instant::now();
        for _ in 0..1000 {
            let y = context.execute(executable, &arguments, Origin::default()).expect("it fits");
            context.release(black_box(y[0]));
        }
        times[on].push(begin.elapsed().as_nanos() as f64 / 1000.0);
    }
    let [off, on] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        (times[0], times[times.len() / 2])
    });
    println!("{:44} {:9.0} ns, median {:.0}", "eager op of 256 elements, ledger off", off.0, off.1);
    println!("{:44} {:9.0} ns, median {:.0}", "eager op of 256 elements, ledger on", on.0, on.1);
    println!(
        "{:44} {:8.1} %, median {:.1} %",
        "the ledger on against off",
        (on.0 / off.0 - 1.0) * 100.0,
        (on.1 / off.1 - 1.0) * 100.0
    );
}

/// What the table after a cell asks, with 10,000 named arrays alive.
fn table_of_many_arrays() {
    let context = context(DeviceConfig::Cpu { capacity: Some(256 << 20) }, "preallocate");
    let ty = Type::new(DType::F32, [16]);
    let bytes = [0; 64];
    for n in 0..10_000 {
        let x = context.upload(&ty, &bytes, Origin::default()).expect("it fits");
        context.set_owner(x, &format!("v[{n}]"));
    }
    measure("the report of a table, 10,000 live arrays", 20, || {
        black_box(context.report());
    });
    measure("the map of 10,000 live arrays", 20, || {
        black_box(context.chunks());
    });
}
