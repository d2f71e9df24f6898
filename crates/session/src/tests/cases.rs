//! Cases with known answers, at the level of cells.

use super::{MIB, fails, ok, run, session};

#[test]
fn mode_one_add() {
    let mut session = session(&[("mode", "ondemand")]);
    let (_, result) = run(&mut session, "let y = ones([1]) + 1.0;");
    assert_eq!(result.memory.pool_bytes, 2 * MIB);
}

#[test]
fn mode_after_arrays() {
    let mut session = session(&[]);
    ok(&mut session, "let a = ones([1024]);");
    assert!(ok(&mut session, "%mode platform").contains("moves 1 array"));
    assert_eq!(ok(&mut session, "a.sum().item()").trim(), "1024.0");
    assert!(fails(&mut session, "%mode ondemand refuse", "command").contains("a"));
}

#[test]
fn mode_limit_named() {
    let mut session = session(&[("mode", "preallocate fraction=0.1")]);
    let text = fails(&mut session, "let a = zeros([200, 1024, 256]);", "OOM");
    assert!(text.contains("LIMIT") && text.contains("limit 102.4"), "{text}");
}

#[test]
fn plan_chain() {
    let mut session = session(&[("mode", "platform")]);
    ok(&mut session, "let x = ones([4096, 4096]);");
    let peak = |session: &mut crate::Session, cell: &str| {
        let (text, result) = run(session, cell);
        assert!(result.error.is_none(), "{text}");
        result.memory.peak_requested_bytes_cell / MIB
    };
    let free = "let y = tanh(exp(sin(abs(cos(sqrt(abs(&x)))))));";
    assert_eq!(peak(&mut session, free), 192);
    ok(&mut session, "drop(y);");
    let methods = "let y = x.abs().sqrt().cos().abs().sin().exp().tanh();";
    assert_eq!(peak(&mut session, methods), 512);
    ok(&mut session, "drop(y);");
    ok(&mut session, "let f = jit(|[x]| tanh(exp(sin(abs(cos(sqrt(abs(x))))))));");
    assert_eq!(peak(&mut session, "let y = f([&x]);"), 128);
    ok(&mut session, "drop(y);");
    assert_eq!(peak(&mut session, "let y = f.call((x,));"), 64);
    assert!(ok(&mut session, "%explain f").contains("planned = measured"));
}

#[test]
fn const_once() {
    let mut session = session(&[("mode", "platform")]);
    ok(&mut session, "let c = ones([4096, 4096]); let x = ones([4096]);");
    for number in 0..16 {
        let cell = format!(
            "let c{number} = c.clone(); let f{number} = jit(move |[x]| (x + &c{number}).sum()); f{number}([&x]).item()"
        );
        assert_eq!(ok(&mut session, &cell).trim(), "33554432.0");
    }
    let (_, result) = run(&mut session, "%mem");
    assert_eq!(result.memory.requested_bytes, 64 * MIB + 4096 * 4);
}

#[test]
fn cache_200_shapes() {
    let mut session = session(&[("mode", "platform")]);
    ok(&mut session, "let f = jit(|[x]| (x * 2.0).tanh()); let kept = ones([7]);");
    ok(&mut session, "%clear caches");
    ok(&mut session, "for n in 1..=200 { f([&zeros([n])]); }");
    let (_, result) = run(&mut session, "f([&kept]);");
    let compile = result.memory.compile;
    assert_eq!((result.memory.compile_hits_cell, result.memory.compile_misses_cell), (1, 0));
    assert!(compile.entries >= 200 && compile.bytes / compile.entries < 20 << 10, "{compile:?}");
    let text = ok(&mut session, "%clear f");
    assert!(text.contains("200 entries") && text.contains("arrays untouched"), "{text}");
    let (_, result) = run(&mut session, "f([&kept]);");
    assert_eq!(result.memory.compile_misses_cell, 1);
    assert_eq!(ok(&mut session, "kept.sum().item()").trim(), "7.0");
}

#[test]
fn cache_selective() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "let f = jit(|[x]| x * 2.0); let g = jit(|[x]| x * 3.0); let x = ones([8]); f([&x]); g([&x]);",
    );
    assert!(ok(&mut session, "%clear f").contains("1 entries"));
    assert!(ok(&mut session, "%clear older=1h").contains("caches: 0 entries"));
    assert!(ok(&mut session, "%clear under=1").contains("0 entries, 0 bytes left"));
    fails(&mut session, "%clear older=soon", "command");
    fails(&mut session, "%clear under=little", "command");
}

#[test]
fn loop_steady() {
    let mut session = session(&[("mode", "platform")]);
    let cell = "for i in 0..10000 { let a = zeros([32, 4, 84, 84]); }";
    let (text, result) = run(&mut session, cell);
    assert!(result.error.is_none(), "{text}");
    let array = 32 * 4 * 84 * 84 * 4;
    assert!(result.memory.peak_bytes_in_use_cell <= 2 * array, "{:?}", result.memory);
    assert_eq!(result.memory.num_allocs_cell, 10_000);
}

#[test]
fn oom_repeat() {
    let mut session = session(&[("mode", "platform")]);
    let cell = "let mut kept: Vec<Array> = vec![];\nfor i in 0..100 { println!(\"{i}\"); kept.push(zeros([51, 1024, 256])); }";
    for _ in 0..2 {
        let text = fails(&mut session, cell, "OOM");
        let last = text.lines().rfind(|line| line.parse::<u32>().is_ok());
        assert_eq!(last, Some("20"), "{text}");
        assert!(text.contains("kept[0]") || text.contains("kept["), "{text}");
        ok(&mut session, "drop(kept);");
    }
}

#[test]
fn out_owners() {
    let mut session = session(&[]);
    ok(&mut session, "let n = 3;");
    ok(&mut session, "zeros([1024, 1024])");
    let text = ok(&mut session, "%mem vars");
    assert!(text.contains("Out[2]"), "{text}");
    assert!(ok(&mut session, "%clear outputs").contains("1 values gone, 4.0 MiB"));
    assert_eq!(run(&mut session, "%mem").1.memory.live_arrays, 0);
}

#[test]
fn a_failed_call_gives_its_arguments_back() {
    let mut session = session(&[("mode", "platform")]);
    ok(
        &mut session,
        "let f = jit(|[x]| x.broadcast_to([8, 128, 1024, 256])); let x = ones([1024, 256]);",
    );
    let before = run(&mut session, "%mem").1.memory.requested_bytes;
    fails(&mut session, "let y = f.call((x,));", "OOM");
    let (_, result) = run(&mut session, "%mem");
    assert_eq!(result.memory.requested_bytes, before);
    assert_eq!(ok(&mut session, "x.sum().item()").trim(), "262144.0");
}

/// Through every mode with live arrays: the contents stay, and work goes on there.
#[test]
fn every_mode_holds_and_computes() {
    let mut session = session(&[]);
    ok(&mut session, "let a = ones([2560, 1024]); let b = ones([3]);");
    for mode in ["vmm", "cuda_async", "caching", "platform", "ondemand gc=on", "preallocate"] {
        ok(&mut session, &format!("%mode {mode}"));
        let text = ok(&mut session, "((&a + 1.0).sum() + b.sum()).item()");
        assert_eq!(text.trim(), "5242883.0", "{mode}");
        let (_, result) = run(&mut session, "%mem");
        assert_eq!(result.memory.requested_bytes, 10 * MIB + 12, "{mode}");
        assert!(result.memory.mode.starts_with(mode), "{:?}", result.memory.mode);
    }
}
