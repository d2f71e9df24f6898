//! Structs in a session: paths of leaves in the tables, completion, inspection, and what a new
//! definition drops.

use super::{fails, ok, run, session};
use crate::Session;

const MODEL: &str = "#[derive(Clone)]\nstruct Layer { w: Array, b: Array }\n\
    struct Net { layers: Vec<Layer>, head: (Array, Option<Array>) }\n\
    impl Net {\n    fn grow(&mut self, n: i32) {\n        let layer = Layer { w: ones([n]), b: zeros([n]) };\n        \
    self.layers.push(layer);\n    }\n    fn make(n: i32) -> Net { Net { layers: vec![], head: (ones([n]), None) } }\n}";

/// Who holds the arrays, sorted.
fn owners(session: &mut Session) -> Vec<String> {
    ok(session, "%watch full");
    let (_, result) = run(session, "let __look = 1;");
    let mut names: Vec<String> =
        result.memory.variables.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

#[test]
fn owners_are_the_paths_of_leaves() {
    let mut session = session(&[]);
    ok(&mut session, MODEL);
    ok(&mut session, "let mut net = Net::make(3);\nnet.grow(4);\nnet.grow(5);");
    let paths =
        ["net.head.0", "net.layers[0].b", "net.layers[0].w", "net.layers[1].b", "net.layers[1].w"];
    assert_eq!(owners(&mut session), paths);
    ok(&mut session, "net.layers[1].w = zeros([7]);\nnet.head.1 = Some(ones([1]));");
    ok(&mut session, "net.layers.push(Layer { w: ones([1]), b: ones([2]) });");
    let all = owners(&mut session);
    assert!(all.contains(&"net.head.1".to_string()), "{all:?}");
    assert!(all.contains(&"net.layers[2].w".to_string()), "{all:?}");
    ok(&mut session, "let Net { layers, .. } = net;");
    let all = owners(&mut session);
    assert!(all.contains(&"layers[2].b".to_string()), "{all:?}");
    ok(&mut session, "let first = layers[0].w.clone() * 2.0;\nfor l in &layers { first.len(); }");
    ok(
        &mut session,
        "let l = layers.into_iter().next().expect(\"one\");\nl.w = l.b.clone();"
            .replace("let l", "let mut l")
            .as_str(),
    );
    let all = owners(&mut session);
    assert!(all.contains(&"first".to_string()) && all.contains(&"l.b".to_string()), "{all:?}");
}

#[test]
fn closures_tell_the_same_paths() {
    let mut session = session(&[]);
    ok(&mut session, MODEL);
    ok(&mut session, "let mut net = Net::make(3);\nlet mut t = (ones([1]), zeros([2]));");
    ok(
        &mut session,
        "fn put(place: &mut Array, n: i32) { *place = zeros([n]); }\n\
         let mut f = || { net.head.0 = zeros([4]); net.head.1 = Some(ones([2])); };\n\
         let mut g = || { put(&mut t.0, 3); t.1 = ones([4]); };\n\
         net.layers.push(Layer { w: ones([1]), b: ones([1]) });\nf();\ng();",
    );
    let wanted = ["net.head.0", "net.head.1", "net.layers[0].b", "net.layers[0].w", "t.0", "t.1"];
    let all = owners(&mut session);
    let known: Vec<&String> = all.iter().filter(|name| wanted.contains(&name.as_str())).collect();
    assert!(known.len() >= 5, "{all:?}");
}

#[test]
fn a_new_definition_drops_the_old_values_and_says_so() {
    let mut session = session(&[]);
    ok(&mut session, MODEL);
    ok(&mut session, "let net = Net::make(1 << 18);\nlet x = 1;");
    let before = run(&mut session, "let y = 1;").1.memory.bytes_in_use;
    let (text, result) = run(&mut session, "struct Layer { w: Array }\nlet z = 1;");
    assert!(text.contains("`Layer`") && text.contains("`net`"), "{text}");
    assert!(result.memory.bytes_in_use + (1 << 20) <= before, "its arrays are free");
    fails(&mut session, "net.head.0", "E0425");
    fails(&mut session, "Net::make(1)", "E0433");
    assert!(ok(&mut session, "%vars").contains('x'));
    assert!(!ok(&mut session, "%vars").contains("net"));
}

#[test]
fn what_is_shown_of_structs() {
    let mut session = session(&[]);
    ok(&mut session, MODEL);
    ok(&mut session, "let net = Net::make(2);\n#[derive(Debug)] struct N(i32);\nlet n = N(3);");
    let text = ok(&mut session, "?Net");
    assert!(text.contains("struct Net {") && text.contains("fn grow(&mut self, i32)"), "{text}");
    let text = ok(&mut session, "?net");
    assert!(text.contains("net: Net") && text.contains("net.head.0: f32[2]"), "{text}");
    let text = ok(&mut session, "%whos");
    assert!(text.contains("Net") && text.contains("1 array"), "{text}");
    assert_eq!(ok(&mut session, "n"), "N(3)\n");
    assert_eq!(ok(&mut session, "N(4)"), "N(4)\n");
    assert_eq!(ok(&mut session, "Out[7].0 + _.0"), "8\n");
    let offered = |code: &str| -> Vec<String> {
        let found = session.complete(code, code.len());
        found.items.into_iter().map(|item| item.text).collect()
    };
    assert_eq!(offered("net.he"), ["head"]);
    assert!(offered("net.").contains(&"grow".to_string()));
    assert_eq!(offered("net.layers[0]."), ["b", "clone", "w"]);
    assert!(offered("Ne").contains(&"Net".to_string()));
}

#[test]
fn a_failed_call_gives_the_parts_back() {
    let mut session = session(&[]);
    ok(&mut session, MODEL);
    ok(
        &mut session,
        "let l = Layer { w: ones([2]), b: ones([3]) };\nfn bad(l: Layer) -> Array { l.w + l.b }",
    );
    fails(&mut session, "bad(l)", "shape");
    assert_eq!(ok(&mut session, "l.w.len() + l.b.len()"), "5\n");
    fails(&mut session, "let m = Layer { w: l.w, b: l.b.reshape([7]) };", "shape");
}
