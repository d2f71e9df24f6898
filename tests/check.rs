//! `vramlab check` and `vramlab run --export`, by the program.

use crate::binary::{Folder, run, stderr, stdout};
use serde_json::Value;

const LESSON: &str =
    "let x = ones([1024, 1024]);\n// %%\nlet y = (&x + 1.0).tanh();\n// %%\ndrop(y);";

fn check(options: &[&str], file: &str, base: &str) -> (String, String, Option<i32>) {
    let mut arguments = vec!["check", file, "--against", base, "--capacity", "256MiB"];
    arguments.extend(options);
    let output = run(&arguments, "");
    (stdout(&output), stderr(&output), output.status.code())
}

#[test]
fn a_kept_run_is_kept_and_a_regression_found() {
    let folder = Folder::new("check");
    let (file, base) = (folder.file("lesson.rs", LESSON), folder.file("base.json", ""));
    std::fs::remove_file(&base).expect("there");
    let (_, why, code) = check(&[], &file, &base);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("--update makes it"), "{why}");
    let (text, _, code) = check(&["--update"], &file, &base);
    assert_eq!((code, text.trim()), (Some(0), format!("3 cells kept in {base}").as_str()));
    let (text, _, code) = check(&[], &file, &base);
    assert_eq!((code, text.trim()), (Some(0), "as in the base: 3 cells"));
    // One array more that stays: the peak of its cell, and what later cells hold.
    folder.file("lesson.rs", &LESSON.replace("tanh();", "tanh(); let z = y.copy();"));
    let (text, _, code) = check(&[], &file, &base);
    assert_eq!(code, Some(1), "{text}");
    let row = |words: &[&str]| {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert!(lines.any(|line| line.starts_with(words)), "{words:?} in\n{text}");
    };
    row(&["2", "arrays", "8.0", "12.0", "+4.0", "more"]);
    row(&["3", "in", "use", "4.0", "8.0", "+4.0", "more"]);
    assert!(text.contains("cell 2: its text is not that of the base"), "{text}");
    assert!(text.trim_end().ends_with("regressions"), "{text}");
    let (text, _, code) = check(&["--tolerance", "4MiB"], &file, &base);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("within tolerance"), "{text}");
    let (text, _, code) = check(&["--tolerance", "150%", "--json"], &file, &base);
    let said: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((code, said["regressions"].as_u64()), (Some(0), Some(0)), "{said}");
    assert_eq!(said["differences"][0]["cell"], 2);
    // The new figures become the base, and then the old file is an improvement.
    assert_eq!(check(&["--update"], &file, &base).2, Some(0));
    folder.file("lesson.rs", LESSON);
    let (text, _, code) = check(&[], &file, &base);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("less") && text.contains("figures are lower"), "{text}");
}

#[test]
fn the_lines_of_run_json_are_a_base() {
    let folder = Folder::new("check-json");
    let file = folder.file("lesson.rs", LESSON);
    let kept = stdout(&run(&["run", "--json", "--capacity", "256MiB", &file], ""));
    let base = folder.file("base.json", &kept);
    assert_eq!(check(&[], &file, &base).2, Some(0));
    // A smaller device is said: the pool of a mode that takes a part of it is smaller too.
    let output = run(&["check", &file, "--against", &base, "--capacity", "128MiB"], "");
    let text = stdout(&output);
    assert!(text.contains("limit 96.0, in the base 192.0"), "{text}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_cell_that_fails_now_is_a_regression() {
    let folder = Folder::new("check-fails");
    let (file, base) = (folder.file("lesson.rs", LESSON), folder.file("base.json", ""));
    assert_eq!(check(&["--update"], &file, &folder.0.join("new").display().to_string()).2, Some(0));
    let new = folder.0.join("new").display().to_string();
    folder.file("lesson.rs", &LESSON.replace("drop(y)", "drop(w)"));
    let (text, errors, code) = check(&[], &file, &new);
    assert_eq!(code, Some(1));
    assert!(text.contains("cell 3 fails and did not"), "{text}");
    assert!(errors.contains("E0425"), "{errors}");
    // Cells that come or go are said.
    folder.file("lesson.rs", "let x = ones([1024, 1024]);");
    assert!(check(&[], &file, &new).0.contains("2 cells of the base (3) are not run here"));
    for (text, words) in [("", "holds no cell"), ("{}", "is no cell"), ("[", "no JSON")] {
        std::fs::write(&base, text).expect("writable");
        let (_, why, code) = check(&[], &file, &base);
        assert_eq!(code, Some(2));
        assert!(why.contains(words), "{why}");
    }
    assert_eq!(check(&["--tolerance", "much"], &file, &new).2, Some(2));
}

#[test]
fn a_run_exports_at_its_end_even_after_a_failure() {
    let folder = Folder::new("run-export");
    let file = folder.file("cells.rs", "let x = ones([64]);\n// %%\nlet y: i32 = x;");
    let (csv, viz) = (folder.0.join("e=1.csv"), folder.0.join("v.pickle"));
    let options = [format!("csv={}", csv.display()), format!("viz={}", viz.display())];
    let output = run(&["run", &file, "--export", &options[0], "--export", &options[1]], "");
    assert_eq!(output.status.code(), Some(1));
    let events = std::fs::read_to_string(&csv).expect("written");
    assert!(events.contains(",alloc,1,1,"), "{events}");
    assert_eq!(std::fs::read(&viz).expect("written")[..2], [0x80, 4]);
    assert!(stderr(&output).contains("export csv: "), "{}", stderr(&output));
    let output = run(&["-c", "1 + 1", "--export", "trace=/nonexistent/x"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no such folder"), "{}", stderr(&output));
    let output = run(&["run", &file, "--export", "pprofe=x"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `pprof`?"), "{}", stderr(&output));
}
