//! `%compare`: rows that are measured, and a session that is not touched.

use super::{MIB, fails, ok, run, session};

/// The words of a row that begins with these words.
#[track_caller]
fn row(text: &str, begins: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let begins = words(begins);
    let found = text.lines().map(words).find(|line| line.starts_with(&begins));
    found.unwrap_or_else(|| panic!("no row {begins:?} in\n{text}"))
}

const SEVEN: &str = "let x = ones([1024, 1024]);
    fn seven(x: &Array) -> Array { tanh(exp(sin(abs(cos(sqrt(abs(x))))))) }";

#[test]
fn each_style_and_mode_is_a_row_of_its_own() {
    let mut session = session(&[]);
    ok(&mut session, SEVEN);
    let text =
        ok(&mut session, "%compare seven(&x) modes=ondemand gc=on,platform styles=jit,eager");
    // Two regions more for the growing pool, a call for each block in platform.
    assert_eq!(row(&text, "eager platform")[2..9], ["12.0", "8.0", "–", "7", "56.0", "14", "7"]);
    assert_eq!(row(&text, "eager ondemand gc=on")[3..7], ["12.0", "8.0", "–", "7"]);
    assert_eq!(row(&text, "jit platform")[2..9], ["8.0", "4.0", "8.0", "1", "8.0", "2", "1"]);
    assert!(text.contains("jit plans 8.0, 4.0 of it beside the inputs"), "{text}");
    assert_eq!(text.matches("passes").count(), 4, "{text}");
    let all = ok(&mut session, "%compare seven(&x) modes=all");
    assert_eq!(all.matches("passes").count(), 12, "{all}");
}

#[test]
fn a_capacity_says_who_survives() {
    let mut session = session(&[("mode", "platform")]);
    ok(&mut session, SEVEN);
    let text = ok(&mut session, "%compare seven(&x) capacity=10MiB");
    assert!(
        text.lines().any(|line| line.contains("eager") && line.contains("OOM at 4.0 (limit)")),
        "{text}"
    );
    assert!(
        text.lines().any(|line| line.contains("jit") && line.trim_end().ends_with("passes")),
        "{text}"
    );
    let text = ok(&mut session, "%compare seven(&x) capacity=2MiB");
    assert_eq!(text.matches("the inputs do not fit").count(), 2, "{text}");
    let text = fails(&mut session, "%compare seven(&x) capacity=900TiB", "command");
    assert!(text.contains("does not fit in this machine"), "{text}");
}

#[test]
fn the_dry_device_compares_what_no_laptop_holds() {
    let mut session = session(&[("device", "dry:80GiB")]);
    ok(
        &mut session,
        "let x = zeros([4096, 1024, 1024]); fn two(x: &Array) -> Array { tanh(exp(x)) }",
    );
    let text = ok(&mut session, "%compare two(&x) modes=platform capacity=40GiB");
    assert!(row(&text, "eager platform").join(" ").contains("OOM at 16384.0 (limit)"), "{text}");
    assert_eq!(row(&text, "jit platform")[2..4], ["32768.0", "16384.0"]);
}

#[test]
fn checkpoint_is_put_around_what_is_differentiated() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "let (x, w) = (ones([64, 256]), full([256, 256], 0.01));
        fn loss([w, x]: [&Array; 2]) -> Array { x.dot(w).tanh().dot(w).tanh().sum() }",
    );
    let text = ok(&mut session, "%compare grad(loss)([&w, &x]) styles=jit,checkpoint");
    // The forward products are done once more.
    let kernels = |style| row(&text, style)[4].parse::<u64>().expect("a count");
    assert!(kernels("checkpoint") > kernels("jit"), "{text}");
    let text = ok(&mut session, "%compare grad(loss)([&w, &x]) styles=jit,offload");
    assert!(text.contains("0.1 more wait in host memory"), "{text}");
    let text = ok(&mut session, "%compare tanh(&x) styles=checkpoint");
    assert!(text.contains("nothing is differentiated in it"), "{text}");
}

#[test]
fn the_session_is_as_it_was() {
    let mut session = session(&[("mode", "ondemand")]);
    ok(&mut session, SEVEN);
    ok(&mut session, "let v = vec![x.clone(), zeros([256])]; seed(3);");
    let state = |session: &mut crate::Session| {
        let report = session.context.report();
        let events = session.context.with_heap(|heap| heap.ledger().events().len());
        (report, events)
    };
    let before = state(&mut session);
    ok(
        &mut session,
        "%compare (seven(&x) + randn([1024, 1024])) * v[1].sum() modes=all capacity=64MiB",
    );
    fails(&mut session, "%compare x.reshape([3])", "shape");
    let after = state(&mut session);
    assert_eq!(before.0, after.0);
    // A cell's begin and end, twice.
    assert_eq!(before.1 + 4, after.1);
    let drawn = ok(&mut session, "randn([2]).to_vec::<f32>()");
    ok(&mut session, "seed(3);");
    assert_eq!(
        ok(&mut session, "randn([2]).to_vec::<f32>()"),
        drawn,
        "the random stream did not move"
    );
}

#[test]
fn variables_of_every_kind_come_along() {
    let mut session = session(&[]);
    ok(&mut session, SEVEN);
    ok(
        &mut session,
        "let n = 3; let v = vec![ones([1024, 1024])]; let t = (2.0, x.clone()); let r = &x;",
    );
    ok(&mut session, "let scale = |y: &Array| y * 2.0; x.copy()");
    for expression in [
        "(&x * n).dot(&v[0])",
        "&t.1 * t.0",
        "seven(r)",
        "seven(&Out[3]) + &_",
        "scale(&x)",
        "{ let y = seven(&x); y.sum() }",
    ] {
        let text = ok(&mut session, &format!("%compare {expression}"));
        assert!(row(&text, "eager").len() > 5, "{expression}\n{text}");
    }
    // `t.1` shares the bytes of `x` in the session, and there.
    let text = ok(&mut session, "%compare tanh(&t.1) + &x styles=eager");
    assert_eq!(row(&text, "eager")[1..3], ["12.0", "8.0"]);
    let text = ok(&mut session, "%compare x.sum().item()");
    assert!(text.contains("not as jit:"), "{text}");
    ok(&mut session, "let f = jit(|[x]| seven(x));");
    let text = fails(&mut session, "%compare f([&x])", "command");
    assert!(text.contains("`f` is a compiled or transformed function"), "{text}");
}

#[test]
fn wrong_words_run_nothing() {
    let mut session = session(&[]);
    ok(&mut session, "let x = ones([4]);");
    for (cell, word) in [
        ("%compare tanh(&x) modes=platfrom", "did you mean `platform`?"),
        ("%compare tanh(&x) styles=egaer", "did you mean `eager`?"),
        ("%compare tanh(&x) mods=platform", "did you mean `modes`?"),
        ("%compare", "compare what?"),
    ] {
        let text = fails(&mut session, cell, "command");
        assert!(text.contains(word), "{cell}\n{text}");
    }
    fails(&mut session, "%compare tahn(&x)", "E0425");
    let (_, result) = run(&mut session, "1 + 1");
    assert_eq!((result.memory.live_arrays, result.memory.pool_bytes), (1, 768 * MIB));
}

#[test]
fn a_field_is_not_the_variable_of_its_name_and_trees_are_checkpointed() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "tree! { #[derive(Clone)] struct P { w: Array, b: Array } }
         let b = ones([256, 1024]); let w = ones([256, 1024]); let x = ones([256, 1024]);
         let p = P { w: ones([256, 1024]) * 0.01, b: ones([256, 1024]) * 0.001 };",
    );
    let step =
        "%compare jit_update(|p: &P, [x]| P { w: &p.w - x * 0.1, b: &p.b + x })(p.clone(), [&x])";
    let plans = "jit plans 5.0, 2.0 of it beside the inputs";
    assert!(ok(&mut session, step).contains(plans), "w and b are fields alone");
    let told = ok(
        &mut session,
        "%compare grad_tree(|p: &P, [x]| (&p.w * x).tanh().sum())(&p, [&x]) styles=jit,checkpoint,offload",
    );
    assert!(told.contains("checkpoint plans") && told.contains("offload plans"), "{told}");
}
