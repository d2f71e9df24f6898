//! `%why`, `%explain`, `%caches why`, `%tour`: what is said, and that saying it changes nothing.

use super::{fails, ok, run, session};
use crate::Status;

#[test]
fn why_explains_every_kind_of_error_and_says_it_again() {
    let mut session = session(&[]);
    ok(&mut session, "let x = ones([4]);");
    for (cell, kind, word) in [
        ("let y = undefined;", "E0425", "%who"),
        ("x.reshape([3, 5])", "shape", "number of elements"),
        ("let s: String = 5;", "E0308", "same"),
        ("let a = x.clone(); drop(a); let b = a;", "E0382", "x.copy()"),
        ("%mode nonsense", "command", "session is as it was"),
        ("assert!(1 > 2);", "panic", "stopped itself"),
    ] {
        let text = fails(&mut session, cell, kind);
        let heading = text.lines().next().unwrap_or("").to_string();
        for _ in 0..2 {
            let told = ok(&mut session, "%why");
            assert!(told.contains(heading.trim()) && told.contains(word), "{cell}:\n{told}");
        }
    }
    ok(&mut session, "let z = x.exp();");
    let told = ok(&mut session, "%why");
    assert!(told.contains("the arrays went") && told.contains("%why error"), "{told}");
    assert!(ok(&mut session, "%why error").contains("assert"), "still known");
}

#[test]
fn why_reads_files_as_the_program_does() {
    let mut session = session(&[]);
    let folder = std::env::temp_dir().join(format!("vramlab why {}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("a log.txt");
    std::fs::write(&file, "RuntimeError: CUDA out of memory. Tried to allocate 9.00 GiB (GPU 0; 8.00 GiB total capacity; 1.00 GiB already allocated; 6.00 GiB free; 1.00 GiB reserved in total by PyTorch)").expect("written");
    let told = ok(&mut session, &format!("%why {}", file.display()));
    assert!(told.contains("TOO BIG"), "{told}");
    assert!(ok(&mut session, &format!("%why \"{}\"", file.display())).contains("TOO BIG"));
    for wrong in ["/nonexistent", "/dev/zero", "/dev/null /nonexistent", "/"] {
        let told = fails(&mut session, &format!("%why {wrong}"), "command");
        assert!(told.contains("%why FILE"), "{told}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

/// A gradient whose residuals do not fit passes under a limit: what is offered is what then runs.
#[test]
fn an_oom_offers_a_limit_under_which_the_gradient_passes() {
    let mut session = session(&[("capacity", "48MiB")]);
    ok(
        &mut session,
        "let w = randn([256, 256]) * 0.05; let x = randn([1024, 256]);
         fn loss([w, x]: [&Array; 2]) -> Array {
             let mut h = x.clone();
             for _ in 0..64 { h = h.dot(w).tanh(); }
             h.sum()
         }
         let f = jit(grad(loss));",
    );
    let (_, result) = run(&mut session, "let dw = f([&w, &x]);");
    let text = result.error.expect("no room").rendered;
    let at = text.find("jit(…).memory_limit(\"").unwrap_or_else(|| panic!("{text}"));
    let limit = text[at..].split('"').nth(1).expect("a limit");
    assert!(text.replace("\n         ", "").contains("% FLOPs)"), "{text}");
    ok(
        &mut session,
        &format!("let g = jit(grad(loss)).memory_limit(\"{limit}\"); let dw = g([&w, &x]);"),
    );
    // An eager gradient, whose tape is live arrays, is offered one too.
    let (_, result) = run(&mut session, "let dx = grad(loss)([&w, &x]);");
    let text = result.error.expect("no room for the tape").rendered;
    assert!(text.contains("memory_limit(\"") || text.contains("jit (planned"), "{text}");
}

#[test]
fn an_oom_says_whether_one_program_would_pass_and_changes_no_cache() {
    let mut session = session(&[]);
    ok(&mut session, "let x = ones([4096, 4096]);");
    let cell =
        "let y = x.exp().tanh().sin().cos().sqrt().abs().exp().tanh().sin().cos().exp().sin();";
    let before = session.context.compile_counts();
    let (_, first) = run(&mut session, cell);
    let entries = session.context.compile_counts().entries;
    let text = first.error.expect("no room").rendered;
    assert!(text.contains("jit (planned peak 128.0, 64.0 beside its arguments)"), "{text}");
    assert_eq!(session.context.compile_counts().jit, before.jit, "a trial is not kept");
    // oom-repeat: it fails at the same point, and the trial left nothing behind.
    let (_, again) = run(&mut session, cell);
    let error = again.error.expect("no room again");
    assert_eq!(error.rendered.replace("cell 3", "cell 2"), text);
    assert_eq!(session.context.compile_counts().entries, entries);
    assert_eq!(again.memory.requested_bytes, first.memory.requested_bytes);
    // A trial draws no random numbers: what follows is as if it had not been.
    ok(&mut session, "seed(5); let r = randn([4]);");
    ok(&mut session, "seed(5);");
    let (_, result) = run(
        &mut session,
        "let y = (x.exp().tanh().sin().cos().sqrt().abs().exp().tanh().sin().cos().exp().sin(), randn([4]));",
    );
    assert!(result.error.is_some());
    ok(&mut session, "assert!((randn([4]) - &r).abs().sum().item() == 0.0);");
    // What it promises holds.
    ok(
        &mut session,
        "let f = jit(|[x]| { let x = x.clone(); x.exp().tanh().sin().cos().sqrt().abs().exp().tanh().sin().cos().exp().sin() });",
    );
    let (_, result) = run(&mut session, "let y = f([&x]);");
    assert_eq!(result.status, Status::Ok);
}

#[test]
fn explain_says_what_moving_would_save() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "let x = ones([4096, 4096]); let f = jit(|[x]| x.tanh().exp()); let y = f([&x]);",
    );
    let told = ok(&mut session, "%explain f");
    assert!(
        told.contains(
            "move x instead, f.call((x,)): peak 64.0, because the result takes x's buffer"
        ),
        "{told}"
    );
    ok(&mut session, "drop(y); let y = f.call((x,));");
    let told = ok(&mut session, "%explain f");
    assert!(!told.contains("move x instead"), "{told}");
    // A constant that is captured is never offered, and what is not reused is not advised.
    ok(
        &mut session,
        "let c = ones([1024]); fn pair([p, q]: [&Array; 2]) -> Array { (p + q).sum() }
         let g = jit(pair); let s = g([&ones([1024]), &c]); let h = jit(move |[p]| (p * &c).sum()); let s = h([&ones([1024])]);",
    );
    for name in ["g", "h"] {
        assert!(!ok(&mut session, &format!("%explain {name}")).contains("instead"), "{name}");
    }
}

#[test]
fn caches_why_names_what_changed() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "let lr = 0.1; let f = jit(move |[x]| x * lr); let a = f([&ones([4])]); let b = f([&ones([8])]);
         let c = f([&ones_as(F64, [4])]); let lr = 0.05; let f = jit(move |[x]| x * lr); let a = f([&ones([4])]);
         let d = f.call((ones([4]),));",
    );
    let told = ok(&mut session, "%caches why f");
    for line in [
        "shape of argument 0: f32[4] → f32[8]",
        "dtype of argument 0: f32[4] → f64[4]",
        "from 1: a captured number: 0.1 → 0.05",
        "arguments moved in: none → 0",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    assert!(fails(&mut session, "%caches why", "command").contains("%caches why f"));
    assert!(fails(&mut session, "%caches why ff", "command").contains("did you mean `f`"));
    assert!(fails(&mut session, "%caches wyh f", "command").contains("why NAME"));
}

#[test]
fn every_page_of_the_tour_runs() {
    let mut session = session(&[]);
    let contents = ok(&mut session, "%tour");
    let pages = contents.lines().count();
    assert!(pages >= 5, "{contents}");
    for page in 1..=pages {
        let told = ok(&mut session, &format!("%tour {page}"));
        assert!(told.contains("then: "), "{told}");
        // Only the page on failures shows one.
        assert_eq!(told.contains("error["), page == pages, "page {page}:\n{told}");
    }
    assert!(fails(&mut session, "%tour 99", "command").contains("1 to"));
    ok(&mut session, "let mine = tour_a.sum();");
}

/// What is refused, kept or failed in a function is told by the cell that the function stands in, and by
/// the call.
#[test]
fn places_in_functions_of_other_cells_name_their_cell() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "
fn wave([x]: [&Array; 1]) -> Array {
    let y = x.sin();
    y * 2.0
}
fn bad([x]: [&Array; 1]) -> Array { x.dot(&ones([3, 3])).sum() }
fn steps([x]: [&Array; 1]) -> Array { while_loop(|c: Array| c.lt(3.0), |c: Array| c * 1.5, x.sum()) }
let x = ones([2, 4]);",
    );
    for (call, place) in [
        ("grad(wave)([&x])", "line 4"),
        ("jit(grad(wave))([&x])", "line 4"),
        ("grad(steps)([&x])", "line 7"),
        ("jit(grad(steps))([&x])", "line 7"),
        ("jit(bad)([&x])", "line 6"),
        ("vmap(bad)([&x])", "line 6"),
        ("bad([&x])", "line 6"),
    ] {
        let (_, result) = run(&mut session, &format!("let a = 1;\n\n{call}"));
        let error = result.error.expect(call);
        assert!(error.rendered.contains(&format!(" --> cell 1, {place}\n")), "{}", error.rendered);
        assert!(error.rendered.contains(":3:1\n") && error.rendered.contains("called here"));
        assert_eq!(error.span.map(|span| span.line), Some(3));
    }
    let text = ok(&mut session, "print!(\"{}\", residuals(|[x]| wave([x]).exp().sum(), [&x]));");
    assert!(text.contains("sin, cell 1, line 3") || text.contains("mul, cell 1, line 4"), "{text}");
    assert!(text.contains("exp, line 1"), "{text}");
}
