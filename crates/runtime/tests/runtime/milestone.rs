//! `full`, `add` and a jitted chain, with values.

use crate::lab::*;
use vramlab_ir::{Argument, CompileKind, DType, Engine, FaultKind, Literal, Params, Type};

#[test]
fn full_and_add_give_values_and_figures() {
    let lab = cpu(16 * MIB, "preallocate");
    let a = lab.full(&[3, 4], 1.5);
    let b = lab.full(&[3, 4], 2.0);
    let c = lab.op("add", &[a, b]);
    assert_eq!(lab.values(c), [3.5; 12]);
    let figures = lab.context.memory();
    assert_eq!(figures.requested_bytes, 3 * 48);
    assert_eq!(figures.bytes_in_use, 3 * 256);
    assert_eq!(figures.pool_bytes, 12 * MIB);
    assert_eq!(figures.live_arrays, 3);
    lab.check();
}

#[test]
fn a_jitted_chain_equals_the_eager_one() {
    let lab = cpu(16 * MIB, "ondemand");
    let values: Vec<f32> = (0..1000).map(|i| i as f32 * 0.37 - 100.0).collect();
    let x = lab.upload(&values, &[1000]);
    let eager = SEVEN.iter().fold(lab.op("identity", &[x]), |x, name| lab.take(name, x));
    let jitted = lab.jit(&chain(&[1000]), &[Argument::Borrowed(x)]).expect("it fits")[0];
    lab.expect(eager, &lab.values(jitted));
    lab.expect(x, &values);
    let kernels = lab.context.work().kernels;
    lab.jit(&chain(&[1000]), &[Argument::Borrowed(x)]).expect("it fits");
    assert_eq!(lab.context.work().kernels - kernels, 1, "seven ops are one kernel");
    lab.check();
}

#[test]
fn scalars_go_by_value_without_a_compile_each() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.upload(&[1.0, 2.0, 3.0], &[3]);
    let scalar = Type::new(DType::F32, []);
    let times = func("mul", &[f32s(&[3]), scalar], |build, params| {
        vec![build.binary("mul", params[0], params[1])]
    });
    let executable = lab.compile(&times, &[false, false], CompileKind::Eager);
    let misses = lab.context.compile_counts().eager.misses;
    for factor in [2.0, 3.0, -1.5] {
        let literal = Argument::Scalar(Literal::from_f64(DType::F32, factor));
        let arguments = [Argument::Borrowed(x), literal];
        let y = lab.context.execute(executable, &arguments, lab.origin()).expect("it fits")[0];
        let expected: Vec<f32> = [1.0, 2.0, 3.0].iter().map(|v| v * factor as f32).collect();
        assert_eq!(lab.values(y), expected);
        lab.drop(y);
    }
    assert_eq!(lab.context.compile_counts().eager.misses, misses);
    assert_eq!(lab.context.memory().live_arrays, 1, "no scalar is an array");
}

#[test]
fn a_scalar_that_is_returned_becomes_an_array() {
    let lab = cpu(MIB, "ondemand");
    let same = func("same", &[Type::new(DType::F32, [])], |_, params| vec![params[0], params[0]]);
    let literal = Argument::Scalar(Literal::from_f64(DType::F32, 7.0));
    let results = lab.jit(&same, &[literal]).expect("it fits");
    assert_eq!(lab.values(results[0]), [7.0]);
    assert_eq!(lab.values(results[1]), [7.0]);
    lab.check();
}

#[test]
fn arrays_without_elements_work() {
    for lab in [cpu(MIB, "preallocate"), cpu(MIB, "ondemand"), cpu(MIB, "platform")] {
        let empty = lab.full(&[0, 5], 1.0);
        let more = lab.op("tanh", &[empty]);
        let sum = lab.op("add", &[empty, more]);
        assert_eq!(lab.context.download(sum), Ok(Vec::new()));
        let figures = lab.context.memory();
        assert_eq!((figures.bytes_in_use, figures.live_arrays), (0, 3));
        for mode in ["platform", "ondemand gc=on", "preallocate"] {
            let mode = vramlab_runtime::ModeSpec::parse(mode).expect("a mode");
            lab.context.switch(&mode, vramlab_runtime::Policy::Migrate).expect("nothing to move");
        }
        [empty, more, sum].into_iter().for_each(|id| lab.drop(id));
        assert_eq!(lab.context.memory().live_arrays, 0);
        lab.check();
    }
}

#[test]
fn a_reshape_shares_the_bytes() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.upload(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    let shape = vramlab_ir::Param::Shape([3, 2].into());
    let reshape = func("reshape", &[f32s(&[2, 3])], |build, params| {
        vec![build.op("reshape", Params::new().with("shape", shape), params)]
    });
    let y = lab.jit(&reshape, &[Argument::Borrowed(x)]).expect("no bytes needed")[0];
    assert_eq!(lab.context.memory().requested_bytes, 24);
    assert_eq!(lab.context.memory().live_arrays, 1, "one buffer, two holders");
    lab.context.set_owner(x, "x");
    lab.context.set_owner(y, "y");
    assert_eq!(lab.context.holders(x), ["x", "y"]);
    lab.drop(x);
    assert_eq!(lab.values(y), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    lab.drop(y);
    assert_eq!(lab.context.memory().requested_bytes, 0);
    lab.check();
}

#[test]
fn wrong_arguments_are_faults() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.full(&[4], 1.0);
    let y = lab.full(&[5], 1.0);
    let double = func("double", &[f32s(&[4])], |build, params| {
        vec![build.binary("add", params[0], params[0])]
    });
    let kind = |arguments: &[Argument]| lab.jit(&double, arguments).expect_err("a fault").kind;
    assert_eq!(kind(&[Argument::Borrowed(y)]), FaultKind::Shape);
    assert_eq!(kind(&[]), FaultKind::Argument);
    assert_eq!(kind(&[Argument::Scalar(Literal::from_i64(DType::I32, 1))]), FaultKind::DType);
    lab.drop(y);
    assert_eq!(kind(&[Argument::Borrowed(y)]), FaultKind::Donated);
    assert_eq!(lab.context.download(y).expect_err("gone").kind, FaultKind::Donated);
    assert!(lab.context.upload(&f32s(&[3]), &[0; 11], lab.origin()).is_err());
    assert!(lab.context.download_range(x, 8, 9).is_err());
    assert_eq!(lab.context.download_range(x, 8, 4), Ok(1.0f32.to_le_bytes().to_vec()));
    lab.drop(y);
    lab.check();
}

#[test]
fn a_raised_interrupt_stops_the_next_call_and_keeps_every_array() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.full(&[4], 1.0);
    lab.context.interrupt_flag().store(true, std::sync::atomic::Ordering::Relaxed);
    let fault = lab.jit(&chain(&[4]), &[Argument::Donated(x)]).expect_err("interrupted");
    assert_eq!(fault.kind, FaultKind::Interrupted);
    assert_eq!(lab.context.memory().live_arrays, 1);
    lab.context.clear_interrupt();
    assert_eq!(lab.values(x), [1.0; 4]);
    lab.jit(&chain(&[4]), &[Argument::Donated(x)]).expect("it runs again");
    lab.check();
}

/// From another thread, at any moment: the call that runs then says so, and its arguments are whole.
#[test]
fn an_interrupt_within_a_run_leaves_every_array_whole() {
    let lab = cpu(64 * MIB, "ondemand");
    let n = 1 << 20;
    let mut x = lab.full(&[n], 0.5);
    let chain = chain(&[n]);
    let halve = func("halve", &[f32s(&[n])], |build, params| {
        let half = build.full(&[], 0.5);
        vec![build.binary("mul", params[0], half)]
    });
    let flag = lab.context.interrupt_flag();
    let raiser = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let mut value = 0.5f32;
    loop {
        match lab.jit(&chain, &[Argument::Borrowed(x)]) {
            Ok(results) => lab.drop(results[0]),
            Err(fault) => break assert_eq!(fault.kind, FaultKind::Interrupted),
        }
        match lab.jit(&halve, &[Argument::Donated(x)]) {
            Ok(results) => (x, value) = (results[0], value * 0.5),
            Err(fault) => break assert_eq!(fault.kind, FaultKind::Interrupted),
        }
    }
    raiser.join().expect("it only sleeps");
    lab.context.clear_interrupt();
    lab.expect(x, &vec![value; n]);
    assert_eq!(lab.requested(), 4 * n as u64, "what the stopped call had allocated went back");
    lab.check();
}

#[test]
fn the_dry_device_has_figures_and_no_data() {
    let lab = dry(80 * GIB, "preallocate");
    let x = lab.full(&[1 << 30], 0.0);
    let fault = lab.context.download(x).expect_err("no data");
    assert_eq!(fault.kind, FaultKind::NoData);
    assert_eq!(lab.context.memory().pool_bytes, 60 * GIB);
    assert_eq!(lab.context.device_name(), "dry:80GiB");
    lab.check();
}

#[test]
fn greetings_name_the_device() {
    let lab = cpu(GIB, "preallocate");
    assert_eq!(lab.context.device_description(), "a CPU device of 1024 MiB, not a GPU");
    for capacity in [0, 10, 1 << 60] {
        let config = vramlab_runtime::Config {
            device: vramlab_runtime::DeviceConfig::Cpu { capacity: Some(capacity) },
            ..Default::default()
        };
        let error = vramlab_runtime::Context::new(config).err().expect("no such device");
        assert!(error.contains("device of"), "{error}");
    }
}
