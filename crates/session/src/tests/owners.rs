//! Who holds which bytes: paths into containers, outputs, captured constants, temporaries, clones and views.

use super::{MIB, fails, ok, run, session};
use crate::Session;
use vramlab_memory::{EventKind, Owner};

/// Owners and their MiB, largest first.
fn owners(session: &Session) -> Vec<(String, u64)> {
    let all = session.context.owners().into_iter();
    all.map(|owner| (owner.owner, owner.requested / MIB)).collect()
}

fn names(session: &Session) -> Vec<String> {
    let mut names: Vec<String> = owners(session).into_iter().map(|(name, _)| name).collect();
    names.sort();
    names
}

#[test]
fn paths_reach_into_containers() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "let t = (zeros([1, 1024, 256]), 3, [zeros([2, 1024, 256]), zeros([3, 1024, 256])]);
         let mut params = vec![(zeros([4, 1024, 256]), zeros([5, 1024, 256])), (zeros([6, 1024, 256]), zeros([7, 1024, 256]))];",
    );
    let expected = [
        ("params[1].1", 7),
        ("params[1].0", 6),
        ("params[0].1", 5),
        ("params[0].0", 4),
        ("t.2[1]", 3),
        ("t.2[0]", 2),
        ("t.0", 1),
    ];
    assert_eq!(owners(&session), expected.map(|(name, mib)| (name.to_string(), mib)));
    // The container owns all of its parts; a part is asked by its path.
    let text = ok(&mut session, "%mem who params");
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(ok(&mut session, "%mem who t.2[1]").contains("t.2[1] f32[3,1024,256]   3.0 at 0x"));
    // What moves within the container is renamed.
    ok(&mut session, "params.remove(0);");
    assert_eq!(names(&session), ["params[0].0", "params[0].1", "t.0", "t.2[0]", "t.2[1]"]);
    ok(&mut session, "params.push((zeros([8, 1024, 256]), zeros([9, 1024, 256])));");
    assert!(names(&session).contains(&"params[1].1".to_string()), "{:?}", names(&session));
    ok(&mut session, "let other = params;");
    let moved = names(&session);
    assert!(moved.contains(&"other[1].1".to_string()), "{moved:?}");
    assert!(!moved.iter().any(|name| name.starts_with("params")), "{moved:?}");
}

#[test]
fn out_owners_reach_into_containers_too() {
    let mut session = session(&[]);
    ok(&mut session, "(zeros([1, 1024, 256]), vec![zeros([2, 1024, 256])])");
    assert_eq!(owners(&session), [("Out[1].1[0]".into(), 2), ("Out[1].0".into(), 1)]);
    assert!(ok(&mut session, "%mem vars").contains("Out[1].1[0]"));
    assert!(ok(&mut session, "%clear outputs").contains("1 values gone, 3.0 MiB of arrays freed"));
    assert_eq!(session.context.report().figures.live_arrays, 0);
}

/// An error keeps no array: what a failing cell had made is gone, whatever made it fail.
#[test]
fn out_owners_the_last_error_keeps_nothing() {
    let mut session = session(&[("mode", "platform")]);
    ok(
        &mut session,
        "let x = zeros([4, 1024, 256]); fn bad(x: Array) -> Array { assert!(x.item() > 1.0); x }",
    );
    for (cell, kind) in [
        ("{ let t = zeros([16, 1024, 256]); t.dot(&zeros([3, 3])) }", "shape"),
        ("{ let t = zeros([16, 1024, 256]); panic!(\"no\") }", "panic"),
        ("{ let t = zeros([16, 1024, 256]); zeros([2000, 1024, 256]) }", "OOM"),
        ("bad(zeros([1]))", "panic"),
        ("let f = jit(|[x]| x.reshape([3])); f.call((zeros([16, 1024, 256]),))", "shape"),
    ] {
        let (text, result) = run(&mut session, cell);
        let error = result.error.unwrap_or_else(|| panic!("{cell} fails: {text}"));
        assert_eq!(error.kind, kind, "{cell}");
        assert_eq!(names(&session), ["x"], "{cell}");
        ok(&mut session, "%why");
        assert_eq!(session.context.report().figures.requested_bytes, 4 * MIB, "{cell}");
    }
}

#[test]
fn clones_and_views_are_holders_of_one_buffer() {
    let mut session = session(&[]);
    ok(
        &mut session,
        "let x = zeros([4, 1024, 256]); let y = x.clone(); let z = x.reshape([1024, 1024]);",
    );
    assert_eq!(owners(&session), [("x".into(), 4)]);
    let text = ok(&mut session, "%mem who y");
    assert!(text.contains("x, y, z f32[4,1024,256]"), "{text}");
    let row = ok(&mut session, "%mem vars");
    assert!(row.contains("y, z"), "{row}");
    let text = ok(&mut session, "%del x");
    assert!(text.contains("x: 0 B freed; y, z still holds it"), "{text}");
    assert_eq!(owners(&session), [("y".into(), 4)]);
    assert_eq!(ok(&mut session, "%del y z").matches("4.0 MiB freed").count(), 1);
}

#[test]
fn captured_constants_name_their_function() {
    let mut session = session(&[]);
    ok(&mut session, "let c = ones([4, 1024, 256]); let d = c.clone();");
    ok(
        &mut session,
        "let f = jit(move |[x]| (x * &d).sum()); let x = ones([4, 1024, 256]); f([&x]).item()",
    );
    let text = ok(&mut session, "%mem who c");
    assert!(text.contains("constant of f"), "{text}");
    assert!(ok(&mut session, "%del c").contains("constant of f still holds it"));
    assert!(names(&session).contains(&"constant of f".to_string()), "{:?}", names(&session));
    assert!(ok(&mut session, "%mem who f").contains("constant of f"));
    // With the function its constant goes.
    let text = ok(&mut session, "%del f");
    assert!(text.contains("f: 4.0 MiB freed"), "{text}");
    assert!(!names(&session).iter().any(|name| name.contains("constant")), "{:?}", names(&session));
}

#[test]
fn closures_hold_what_they_captured() {
    let mut session = session(&[]);
    ok(&mut session, "let c = ones([4, 1024, 256]); let h = move |x: &Array| x + &c;");
    let names = names(&session);
    assert_eq!(names, ["constant of h"]);
    assert!(ok(&mut session, "%mem who h").contains("4.0"));
    assert!(ok(&mut session, "%del h").contains("h: 4.0 MiB freed"));
}

#[test]
fn temporaries_of_a_running_program_have_its_name() {
    let mut session = session(&[("mode", "platform")]);
    // The product is stored before the second one reads it.
    ok(
        &mut session,
        "let f = jit(|[a]| a.dot(a).tanh().dot(a)); let a = ones([512, 512]); let y = f([&a]);",
    );
    let owners: Vec<Owner> = session.context.with_heap(|heap| {
        let ledger = heap.ledger();
        let allocs = ledger.events().filter(|event| event.kind == EventKind::Alloc);
        allocs.map(|event| ledger.owner(event.owner).clone()).collect()
    });
    assert!(owners.contains(&Owner::Temporary("f".into())), "{owners:?}");
    // None of them is left.
    assert_eq!(names(&session), ["a", "y"]);
    ok(&mut session, "let hog = zeros([900, 1024, 256]); let b = zeros([4000, 4000]);");
    let text = fails(&mut session, "f([&b])", "OOM");
    assert!(text.contains("hog 900.0") && text.contains("b 61.0"), "{text}");
}

#[test]
fn an_address_tells_its_chunk() {
    let mut session = session(&[("mode", "ondemand")]);
    ok(&mut session, "let x = zeros([3, 1024, 256]);");
    let address = session.context.buffers()[0].address;
    let text = ok(&mut session, &format!("%mem who {:#x}", address + 1000));
    assert!(text.contains("x f32[3,1024,256]   3.0 at"), "{text}");
    assert!(
        text.contains("chunk 4.0 (slack 1.0), region 1 of 4   made in cell 1, line 1"),
        "{text}"
    );
    ok(&mut session, "drop(x);");
    let text = ok(&mut session, &format!("%mem who {address}"));
    assert!(text.contains("free   4.0 at") && text.contains("region 1"), "{text}");
    assert!(fails(&mut session, "%mem who 0x10", "command").contains("outside the pool"));
    assert!(fails(&mut session, "%mem who nobody", "command").contains("no live array"));
    fails(&mut session, "%mem who", "command");
}

#[test]
fn many_owners_are_a_short_table() {
    let mut session = session(&[]);
    ok(&mut session, "let mut v = vec![]; for n in 0..500 { v.push(zeros([n + 1])); }");
    let text = ok(&mut session, "%mem vars");
    assert!(text.contains("440 more owners"), "{text}");
    assert!(text.lines().count() < 70, "{text}");
    assert!(ok(&mut session, "%mem who v").contains("440 more arrays"));
    assert!(ok(&mut session, "%del v").contains("v: 489.3 KiB freed"));
}
