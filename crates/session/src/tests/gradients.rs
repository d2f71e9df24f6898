//! Gradients in cells: what the tables, `%explain` and the faults say of them.

use super::{fails, ok, run, session};

#[test]
fn explain_shows_forward_residuals_backward_and_the_peak() {
    let mut session = session(&[]);
    ok(&mut session, "let x = ones([256, 64]);\nlet w = full([64, 64], 0.1);");
    let layers =
        "let h = x.dot(w).tanh();\n    let h = h.dot(w).tanh();\n    h.dot(w).tanh().sum()";
    ok(&mut session, &format!("let g = jit(grad(|[w, x]| {{\n    {layers}\n}}));\ng([&w, &x]);"));
    let told = ok(&mut session, "%explain g gradient");
    for words in ["forward: ", "backward: ", "residuals, ", "tanh f32[256,64] 64.0 KiB", "peak: "] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    assert!(!told.contains("recompute: "), "{told}");
    ok(
        &mut session,
        &format!("let c = jit(grad(checkpoint(|[w, x]| {{\n    {layers}\n}})));\nc([&w, &x]);"),
    );
    assert!(ok(&mut session, "%explain c gradient").contains("recompute: "));
}

#[test]
fn grad_residuals_are_owners_and_lines_of_a_list() {
    let mut session = session(&[]);
    ok(&mut session, "let x = ones([64, 64]);");
    let told = ok(
        &mut session,
        "print!(\"{}\", residuals(|[x]| {\n    let h = x.dot(x);\n    h.tanh().sin().sum()\n}, [&x]));",
    );
    assert!(told.contains("kept for the backward pass: 16.0 KiB in 1 value"), "{told}");
    assert!(
        told.contains("argument 0") && told.contains("for the gradient of dot, line 2"),
        "{told}"
    );
    assert!(
        told.contains("tanh, line 3") && told.contains("for the gradient of sin, line 3"),
        "{told}"
    );
}

#[test]
fn oom_owners_of_an_eager_gradient_are_its_residuals() {
    let mut session = session(&[]);
    ok(&mut session, "let x = ones([4096, 4096]);");
    let body =
        "x.exp().tanh().sin().cos().exp().tanh().sin().cos().exp().tanh().sin().cos().exp().sum()";
    let text = fails(&mut session, &format!("let g = grad(|[x]| {body});\ng([&x])"), "OOM");
    assert!(text.contains("residual"), "{text}");
    let live = session.interpreter.variables().len();
    assert_eq!(ok(&mut session, "live_arrays().len()").trim(), "1", "{live}");
}

#[test]
fn faults_of_gradients_name_the_place_and_the_remedy() {
    let mut session = session(&[]);
    ok(&mut session, "let x = ones([3]);");
    let text = fails(&mut session, "let g = grad(|[x]| {\n    x * 2.0\n});\ng([&x])", "shape");
    assert!(text.contains("gives f32[3], and a gradient is of a scalar"), "{text}");
    assert!(text.contains("sum() or mean()"), "{text}");
    let text = fails(&mut session, "grad(|[x]| x.sum())([&full_as(I32, [2], 1.0)])", "dtype");
    assert!(text.contains("argument 0 is i32[2], and integers have no gradient"), "{text}");
    let cell = "let f = checkpoint_with(save_only_these_names([\"h\"]), |[x]| x.tanh().sum());\ngrad(f)([&x])";
    let text = fails(&mut session, cell, "argument");
    assert!(text.contains("no checkpoint_name in the function gives \"h\""), "{text}");
    let cell = "let mut total = zeros([3]);\nlet g = grad(move |[x]| {\n    total = &total + x;\n    total.sum()\n});";
    fails(&mut session, cell, "E0594");
}

/// A step that fails gives the tree back that was moved in; one that works has its arrays' buffers.
#[test]
fn a_tree_that_moves_into_a_step_is_kept_when_the_step_fails() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "tree! { struct Net { ws: Vec<Array>, b: Array } }
        let mut net = Net { ws: vec![ones([64, 64]), ones([64, 64])], b: zeros([64]) };
        let gradient = value_and_grad_tree(|n: &Net, [x]| {
            (x.dot(&n.ws[0]).dot(&n.ws[1]) + &n.b).square().mean()
        });
        let step = jit_update(move |n: &Net, [x, lr]| {
            let (loss, d) = gradient(n, [x]);
            (sgd(n, &d, lr), loss)
        });
        let mut loss = zeros(());",
    );
    fails(&mut session, "(net, loss) = step(net, [&ones([3, 5]), &full((), 0.1)]);", "shape");
    assert!(ok(&mut session, "net.ws[1].sum().item()").contains("4096"));
    let first = "let x = full([4, 64], 0.01);\n(net, loss) = step(net, [&x, &full((), 0.1)]);";
    ok(&mut session, first);
    let before = ok(&mut session, "loss.item()");
    let (text, result) = run(
        &mut session,
        "for i in 0..5 { (net, loss) = step(net, [&x, &full((), 0.1 + f64::from(i))]); }",
    );
    let memory = result.memory;
    assert_eq!((memory.compile_misses_cell, memory.delta_bytes), (0, 0), "{text}");
    assert_ne!(before, ok(&mut session, "loss.item()"));
    fails(&mut session, "sgd(&net, &net, &ones([2]))", "shape");
}

const LAYERS: &str = "let x = randn([256, 256]); let ws = randn([16, 256, 256]) * 0.05;
fn net([x, ws]: [&Array; 2]) -> Array {
    let mut h = x.clone();
    for i in 0..16 { h = h.dot(&ws.at(i)).tanh(); }
    h.sum()
}
let g = jit(grad_wrt([1], net)); let [d] = g([&x, &ws]);";

/// The figure behind `words`, in MiB.
fn mib_behind(told: &str, words: &str) -> f64 {
    let rest = told.split(words).nth(1).unwrap_or_else(|| panic!("{words}\n{told}"));
    let figure = rest.split_whitespace().next().unwrap_or_default();
    figure.parse().unwrap_or_else(|_| panic!("{words} {figure}\n{told}"))
}

#[test]
fn the_peak_of_a_gradient_is_that_of_the_plan() {
    let mut session = session(&[]);
    ok(&mut session, LAYERS);
    let told = ok(&mut session, "%explain g gradient");
    let beside = mib_behind(&told, "outputs") + mib_behind(&told, "; temp");
    assert_eq!(mib_behind(&told, "peak: "), beside, "{told}");
    // One kernel for the gradient and what is done with it is the gradient's.
    ok(
        &mut session,
        "let u = jit(|[w, x]| w - grad(|[w]| w.sin().exp().sum())([w]) * x.sum());
         let v = u([&ones([64]), &ones([64])]);",
    );
    assert!(ok(&mut session, "%explain u gradient").contains("backward: 1 kernel"));
    ok(
        &mut session,
        "let s = jit(|[w, x]| {
             let d = grad(|[w, x]| x.dot(w).tanh().sum())([w, x]);
             let scale = d.square().sum();
             (w - &d / scale, d)
         });
         let (a, b) = s([&ones([64, 64]), &ones([64, 64])]);",
    );
    assert!(ok(&mut session, "%explain s gradient").contains("update: "));
}

#[test]
fn the_least_peak_is_the_same_whatever_the_limit() {
    let mut session = session(&[("mode", "platform")]);
    ok(&mut session, LAYERS);
    let least = |session: &mut crate::Session, limit: &str| {
        let cell = format!(
            "let l = jit(grad_wrt([1], net)).memory_limit(\"{limit}\"); let [e] = l([&x, &ws]);"
        );
        let told = fails(session, &cell, "argument");
        assert!(told.contains("more"), "not all that is held is listed: {told}");
        mib_behind(&told, "l: ")
    };
    let reached = least(&mut session, "9.2MiB");
    assert_eq!(least(&mut session, "8.8MiB"), reached);
    // By hand, checkpoints of four layers reach 10.25 MiB.
    assert!(reached < 10.3, "{reached}");
    ok(
        &mut session,
        "let l = jit(grad_wrt([1], net)).memory_limit(\"10.5MiB\"); let [e] = l([&x, &ws]);
         assert!((&d - &e).abs().max().item() == 0.0);",
    );
}

#[test]
fn a_refusal_is_told_under_the_name_that_was_called() {
    let mut session = session(&[]);
    for (cell, kind, words) in [
        ("hessian(|[x]| x.sin())([&ones([4])])", "shape", "hessian: the function gives f32[4]"),
        ("jacobian(|[x]| x.sum())([&array([1])])", "dtype", "let the function capture it"),
        ("grad_wrt([0], |[x]| x.sum())([&array([1])])", "dtype", "grad_wrt: argument 0 is i32[1]"),
        ("grad_tree(|p: &Array, [x]| x + p)(&ones([3]), [&ones([3])])", "shape", "grad_tree: "),
        ("cond(ones([4]).sum(), |x: Array| x, |x: Array| x, ones([4]))", "dtype", ".ne(0.0)"),
        ("let j = jit_tree(|p: &Array, [x]| x + p); j.explain()", "argument", "explain: j was"),
        ("grad(|x| x.sum())([&ones([4])])", "E0599", "write `|[x]|`"),
        ("grad(|[x]| x.sum())(&ones([4]))", "E0308", "stand in brackets: `[&x]`"),
        ("checkpoint_with(nothing_saveable, |[x]| x.sin())", "unsupported", "`nothing_saveable()`"),
        ("struct Q { w: Array } let f = jit_tree(|p: &Q, []| p.w.sum());", "E0277", "tree! {"),
    ] {
        let told = fails(&mut session, cell, kind);
        assert!(told.contains(words), "{told}");
    }
}

/// A weight that all layers share is read to the end, and the sum of its gradients has a buffer of its own: the
/// update takes the weight's.
#[test]
fn a_step_of_shared_weights_updates_them_in_place() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "tree! { struct P { w: Array, b: Array } }
         fn loss(p: &P, x: &Array) -> Array {
             let mut h = x.clone();
             for i in 0..8 { h = (h.dot(&p.w) + &p.b).tanh(); }
             h.square().mean()
         }
         let g = value_and_grad_tree(|p: &P, [x]| loss(p, x));
         let step = jit_update(move |p: &P, [x]| { let (l, d) = g(p, [x]); (sgd(p, &d, 0.1), l) });
         let p = P { w: randn([64, 64]) * 0.1, b: zeros([64]) }; let x = randn([128, 64]);
         let (p, l) = step(p, [&x]);",
    );
    let told = ok(&mut session, "%explain step plan");
    assert!(told.contains("aliased 16.2 K") && !told.contains("not reused"), "{told}");
}
