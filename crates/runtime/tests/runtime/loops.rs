//! Loops as the engine runs them: how they are interrupted, what they count, where they carry no data.

use crate::lab::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use vramlab_ir::{Argument, Engine, FaultKind, Func, parse};

/// Goes on for ever.
fn endless() -> Arc<Func> {
    let text = "func endless(%0: f32[1024]) -> (f32[1024]) {
        %1 = while[cond={ func c(%0: f32[1024]) -> (bool[]) {
            %1 = full[value=true:bool, shape=[]] : bool[]
            return %1 } },
          body={ func b(%0: f32[1024]) -> (f32[1024]) {
            %1 = cos %0 : f32[1024]
            return %1 } }, cond_consts=0, body_consts=0] %0 : f32[1024]
        return %1 }";
    Arc::new(parse(text, &vramlab_ops::lookup).expect("a program"))
}

fn halving(length: usize) -> Arc<Func> {
    let text = format!(
        "func halving(%0: f32[1024]) -> (f32[1024]) {{
        %1 = scan[body={{ func b(%0: f32[1024]) -> (f32[1024]) {{
            %1 = full[value=0.5:f32, shape=[]] : f32[]
            %2 = mul %0 %1 : f32[1024]
            return %2 }} }}, length={length}, consts=0, carries=1, reverse=false] %0 : f32[1024]
        return %1 }}"
    );
    Arc::new(parse(&text, &vramlab_ops::lookup).expect("a program"))
}

/// Raises the flag once the loop runs.
fn interrupted(lab: &Lab, argument: Argument) -> vramlab_ir::Fault {
    let flag = lab.context.interrupt_flag();
    let raise = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        flag.store(true, Ordering::Relaxed);
    });
    let fault = lab.jit(&endless(), &[argument]).expect_err("it is interrupted");
    raise.join().expect("the thread ends");
    lab.context.clear_interrupt();
    fault
}

#[test]
fn an_endless_loop_is_interrupted_and_its_argument_stays() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.bytes(4 * KIB);
    let before = lab.context.download(x).expect("data");
    let fault = interrupted(&lab, Argument::Borrowed(x));
    assert_eq!(fault.kind, FaultKind::Interrupted);
    assert_eq!(lab.context.download(x).expect("data"), before);
    lab.check();
}

#[test]
fn an_endless_loop_over_a_moved_argument_is_interrupted_and_says_what_is_gone() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.bytes(4 * KIB);
    lab.context.set_owner(x, "weights");
    let fault = interrupted(&lab, Argument::Donated(x));
    assert_eq!(fault.kind, FaultKind::Interrupted);
    assert!(fault.message.contains("weights"), "{fault}");
    assert!(lab.context.type_of(x).is_none(), "its claim ended");
    assert_eq!(lab.context.memory().requested_bytes, 0);
    lab.check();
}

#[test]
fn a_counted_loop_over_a_moved_argument_runs_to_its_end() {
    let lab = cpu(MIB, "ondemand");
    let x = lab.bytes(4 * KIB);
    lab.context.interrupt_flag().store(true, Ordering::Relaxed);
    let fault = lab.jit(&halving(4), &[Argument::Donated(x)]).expect_err("before it began");
    assert_eq!(fault.kind, FaultKind::Interrupted);
    assert!(lab.context.type_of(x).is_some(), "nothing was written yet");
    lab.context.clear_interrupt();
    lab.jit(&halving(4), &[Argument::Donated(x)]).expect("it runs");
    lab.check();
}

#[test]
fn every_iteration_counts() {
    for lab in [dry(GIB, "platform"), cpu(MIB, "platform")] {
        let x = lab.bytes(4 * KIB);
        let before = lab.context.work();
        lab.jit(&halving(10), &[Argument::Borrowed(x)]).expect("it fits");
        let work = lab.context.work().since(before);
        assert_eq!((work.flops, work.bytes_read, work.bytes_written), (10240, 40960, 40960));
        assert_eq!(work.kernels, 1);
    }
}
