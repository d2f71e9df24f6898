//! Cells in, text out. Each `cases/NAME.rs` holds cells in percent format, `cases/NAME.out` what
//! they print, show and are refused with. `BLESS=1` writes the outputs anew.

use std::fmt::Write as _;
use std::path::Path;
use vramlab_array::surface::Dyn;
use vramlab_cells::ir::Fault;
use vramlab_cells::{
    Completeness, DiagnosticKind, Host, Interpreter, completeness, render, render_place,
};

/// Keeps what a cell says; stops after a number of questions.
#[derive(Default)]
struct Recorder {
    text: String,
    /// How often `interrupted` may be asked before the answer is yes.
    patience: Option<std::cell::Cell<u32>>,
    names: Vec<String>,
}

impl Host for Recorder {
    fn stdout(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn stderr(&mut self, text: &str) {
        let _ = write!(self.text, "(error) {text}");
    }

    fn display(&mut self, value: &Dyn) {
        let _ = writeln!(self.text, "(display) {}", value.kind_name());
    }

    fn input(&mut self, prompt: &str) -> Result<String, Fault> {
        Ok(format!("answer to {prompt:?}"))
    }

    fn interrupted(&self) -> bool {
        let Some(patience) = &self.patience else { return false };
        patience.set(patience.get().saturating_sub(1));
        patience.get() == 0
    }

    fn bound(&mut self, path: &str, _: &Dyn) {
        self.names.push(path.into());
    }

    fn note(&mut self, text: &str) {
        let _ = writeln!(self.text, "(note) {text}");
    }
}

/// What a session with these cells shows.
fn transcript(text: &str) -> String {
    let mut interpreter = Interpreter::new();
    let mut recorder = Recorder::default();
    for (index, cell) in cut(text).iter().enumerate() {
        let number = index as u32 + 1;
        let _ = writeln!(recorder.text, "[{number}]");
        match interpreter.prepare(cell, number) {
            Err(diagnostic) => {
                let _ = writeln!(recorder.text, "{}", render(&diagnostic, cell, number));
            }
            Ok(prepared) => {
                let outcome = interpreter.run(prepared, &mut recorder);
                if let Some(value) = outcome.value {
                    let _ = writeln!(recorder.text, "{} : {}", value.text, value.ty);
                }
                if let Some(fault) = outcome.error {
                    let span = fault.span.expect("a fault of a run has a place");
                    let place = render_place(cell, number, span, "");
                    let _ = writeln!(recorder.text, "fault: {fault}\n{place}");
                }
            }
        }
    }
    recorder.text
}

fn cut(text: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    for line in text.lines() {
        if line.starts_with("// %%") {
            cells.push(String::new());
        } else {
            let cell = cells.last_mut().expect("there is a cell from the start");
            cell.push_str(line);
            cell.push('\n');
        }
    }
    cells
}

#[test]
fn cases_print_what_they_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of the cases")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable case");
        let got = transcript(&text);
        let kept = path.with_extension("out");
        if bless {
            std::fs::write(&kept, &got).expect("a writable output");
        } else if std::fs::read_to_string(&kept).ok().as_deref() != Some(got.as_str()) {
            wrong.push(format!("{}:\n{got}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn refused(text: &str) -> (DiagnosticKind, String) {
    let diagnostic = Interpreter::new().prepare(text, 1).expect_err("must be refused");
    (diagnostic.kind, diagnostic.message)
}

#[test]
fn nesting_is_refused_in_words_and_within_the_limit_it_runs() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Interpreter::new().prepare(&nested(1_500), 1).is_ok());
    let (kind, message) = refused(&nested(30_000));
    assert_eq!(kind, DiagnosticKind::Parse);
    assert!(message.contains("nest deeper than 2000"), "{message}");
    assert!(refused(&nested(30_000).replace('(', "[").replace(')', "]")).1.contains("nest"));
    let (_, message) = refused(&format!("{}1", "-".repeat(200_000)));
    assert!(message.contains("more than 10000 operators"), "{message}");
    let sum = vec!["1"; 5_000].join("+");
    let mut interpreter = Interpreter::new();
    let prepared = interpreter.prepare(&sum, 1).expect("a long sum is fine");
    let outcome = interpreter.run(prepared, &mut Recorder::default());
    assert_eq!(outcome.value.expect("a value").text, "5000");
}

#[test]
fn unclosed_and_hostile_text_is_refused_without_a_panic() {
    for text in
        ["(", "\"", "'", "let", "}", "r#\"", "/*", "#", "\u{0}", "𝒳 +", "let x = ;", "x.", "{{{"]
    {
        let _ = completeness(text);
        assert!(Interpreter::new().prepare(text, 1).is_err(), "{text:?}");
    }
}

#[test]
fn a_megabyte_of_text_takes_no_stack() {
    let cell = format!("let s = \"{}\"; s.len()", "ä".repeat(1 << 20));
    let mut interpreter = Interpreter::new();
    let prepared = interpreter.prepare(&cell, 1).expect("a long literal is fine");
    let value = interpreter.run(prepared, &mut Recorder::default()).value.expect("a value");
    assert_eq!(value.text, (2 << 20).to_string());
}

#[test]
fn completeness_asks_for_more() {
    let incomplete = |text: &str| matches!(completeness(text), Completeness::Incomplete { .. });
    for text in
        ["fn f() {", "let x = (1,", "let x =", "a +", "\"abc", "/* b", "r#\"x\"", "if a {\n  b("]
    {
        assert!(incomplete(text), "{text:?}");
    }
    for text in ["1 + 1", "let x = 'a';", "fn f<'a>(x: &'a str) {}", "0..", "\"}\"", "// (", "x;"] {
        assert_eq!(completeness(text), Completeness::Complete, "{text:?}");
    }
    assert_eq!(completeness("(]"), Completeness::Invalid);
    assert_eq!(completeness("}"), Completeness::Invalid);
}

#[test]
fn an_endless_loop_is_interrupted_and_variables_stay() {
    let mut interpreter = Interpreter::new();
    let patience = Some(std::cell::Cell::new(1_000));
    let mut host = Recorder { patience, ..Recorder::default() };
    let prepared =
        interpreter.prepare("let mut n = 0u64; loop { n += 1; }", 1).expect("a right cell");
    let error = interpreter.run(prepared, &mut host).error.expect("an interrupt");
    assert_eq!(error.kind, vramlab_cells::ir::FaultKind::Interrupted);
    let n: u64 = interpreter.text("n").expect("n stays").parse().expect("a number");
    assert!(n > 500, "{n}");
}

#[test]
fn recursion_without_end_is_a_fault() {
    let mut interpreter = Interpreter::new();
    let cell = "fn f(n: u64) -> u64 { f(n + 1) + 1 }\nf(0)";
    let prepared = interpreter.prepare(cell, 1).expect("a right cell");
    let error = interpreter.run(prepared, &mut Recorder::default()).error.expect("a fault");
    assert!(error.message.contains("stack overflow"), "{error}");
    let through_closures = "let v = [1];\n\
        fn g(v: &[i32], n: u64) -> u64 { v.iter().map(|_| g(v, n + 1)).sum::<u64>() + 1 }\n\
        g(&v, 0)";
    let prepared = interpreter.prepare(through_closures, 2).expect("a right cell");
    let error = interpreter.run(prepared, &mut Recorder::default()).error.expect("a fault");
    assert!(error.message.contains("stack overflow"), "{error}");
}

#[test]
fn variables_are_listed_with_rust_types() {
    let mut interpreter = Interpreter::new();
    let cell =
        "let a = 1; let mut b = vec![2.5]; let c = String::new(); let d = (1u8, 'x'); drop(c);";
    let prepared = interpreter.prepare(cell, 3).expect("a right cell");
    assert!(interpreter.variables().is_empty(), "preparing has no side effect");
    assert!(interpreter.run(prepared, &mut Recorder::default()).error.is_none());
    let listed: Vec<(String, String, bool, Option<u32>)> = interpreter
        .variables()
        .into_iter()
        .map(|own| (own.name, own.ty, own.mutable, own.moved))
        .collect();
    let want = |name: &str, ty: &str, mutable, moved| (name.into(), ty.into(), mutable, moved);
    assert_eq!(
        listed,
        [
            want("a", "i32", false, None),
            want("b", "Vec<f64>", true, None),
            want("c", "String", false, Some(3)),
            want("d", "(u8, char)", false, None),
        ]
    );
    assert!(matches!(interpreter.remove("a"), Some(Dyn::Int(1))));
    assert!(interpreter.prepare("a", 4).is_err());
}

#[test]
fn values_from_outside_have_the_type_they_say() {
    let mut interpreter = Interpreter::new();
    interpreter.insert("n", "u8", Dyn::Int(200), 1).expect("a known type");
    assert!(interpreter.insert("m", "Nonsense", Dyn::Unit, 1).is_err());
    let prepared = interpreter.prepare("n + 100", 2).expect("a right cell");
    let error = interpreter.run(prepared, &mut Recorder::default()).error.expect("an overflow");
    assert_eq!(error.message, "attempt to add with overflow");
}

#[test]
fn members_follow_the_type_of_the_receiver() {
    let mut interpreter = Interpreter::new();
    let prepared =
        interpreter.prepare("let v = vec![1, 2]; let t = (1, \"a\");", 1).expect("right");
    interpreter.run(prepared, &mut Recorder::default());
    let names = |code: &str| -> Vec<String> {
        let members = interpreter.members(code).unwrap_or_default();
        members.into_iter().map(|member| member.name).collect()
    };
    assert!(names("v.").contains(&"push".to_string()));
    assert!(names("let s = \"x\"; s.to_upp").contains(&"to_uppercase".to_string()));
    assert!(names("t.").contains(&"1".to_string()));
    assert!(names("v.iter().").contains(&"enumerate".to_string()));
    assert!(names("let x = zeros([2]);\nx.").contains(&"tanh".to_string()));
    assert!(interpreter.members("unknown.").is_none());
    assert!(interpreter.members("v").is_none());
    let known = interpreter.names_at("let here = 1; he");
    let detail =
        |name: &str| known.iter().find(|own| own.name == name).map(|own| own.detail.clone());
    assert_eq!(detail("here").as_deref(), Some("i32"));
    assert_eq!(detail("v").as_deref(), Some("Vec<i32>"));
    assert!(detail("zeros").is_some_and(|text| text.starts_with("fn zeros(")));
    assert_eq!(interpreter.type_of("let q = 2.5;", "q.floor()").as_deref(), Some("f64"));
}
