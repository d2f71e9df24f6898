//! Wrong input: a plain error that says what is wrong, nothing lost, no panic.

use crate::binary::{Folder, run, stderr, stdout};

/// Feeds cells to standard input; gives both outputs and the status.
fn feed(options: &[&str], cells: &str) -> (String, String, Option<i32>) {
    let arguments: Vec<&str> = options.iter().copied().chain(["--keep-going"]).collect();
    let output = run(&arguments, cells);
    let errors = stderr(&output);
    assert!(!errors.contains("panicked"), "{errors}");
    (stdout(&output), errors, output.status.code())
}

#[test]
fn unknown_words_list_the_valid_ones_and_change_nothing() {
    for (cell, words) in [
        ("%mode ondemnd", ["ondemand", "platform"]),
        ("%mode ondemand gc=perhaps", ["on", "off"]),
        ("%mode ondemand gcc=on", ["fraction", "`gc`"]),
        ("%watch breif", ["brief", "full"]),
        ("%moed", ["`%mode`", "%help"]),
        ("%clear poool", ["`pool`", "outputs"]),
        ("%expect peek<=1MiB", ["`peak`", "in_use"]),
        ("%expect peak<=lots", ["peak", "512MiB"]),
        ("%env XLA_PYTHON_CLIENT_PREALLOCATE=perhaps", ["false", "true"]),
        ("%env XLA_PYTHON_CLIENT_PREALOCATE=0", ["XLA_PYTHON_CLIENT_PREALLOCATE", "did you mean"]),
        ("%tier fast", ["auto", "instant"]),
        ("%%tiem\n1", ["`time`", "capture"]),
    ] {
        let (shown, errors, code) = feed(&[], &format!("{cell}\n// %%\n%mode\n"));
        assert_eq!(code, Some(1), "{cell}");
        for word in words {
            assert!(errors.contains(word), "{cell}: {word} is missing in {errors}");
        }
        assert!(shown.contains("→    preallocate"), "{cell} changed the mode: {shown}");
    }
}

#[test]
fn wrong_options_are_refused_before_anything_starts() {
    for (arguments, word) in [
        (vec!["--mode", "perhaps"], "preallocate, ondemand"),
        (vec!["--capacity", "much"], "--capacity"),
        (vec!["--capacity", "1"], "256 B"),
        (vec!["--device", "cuda:0"], "cpu, dry:SIZE"),
        (vec!["--watch", "always"], "brief"),
        (vec!["--colour"], "--help"),
        (vec!["rum"], "`run`"),
        (vec!["run", "/nonexistent/file.rs"], "/nonexistent/file.rs"),
    ] {
        let output = run(&arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let errors = stderr(&output);
        assert!(errors.contains(word), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_notebook_that_is_none() {
    let folder = Folder::new("bad-notebook");
    for (name, text, word) in [
        ("a.ipynb", "hello", "JSON"),
        ("b.ipynb", "{}", "cells"),
        ("c.ipynb", "{\"cells\": [{\"cell_type\": \"code\"}]}", "source"),
    ] {
        let file = folder.file(name, text);
        let output = run(&["run", &file], "");
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
        assert!(stderr(&output).contains(name));
    }
}

#[test]
fn text_that_does_not_parse_says_where() {
    let (shown, errors, code) = feed(&[], "// %%\nlet a = 3;\n// %%\nlet x = ;\n// %%\na + 1\n");
    assert_eq!(code, Some(1));
    assert!(errors.contains("error") && errors.contains("^"), "{errors}");
    assert!(shown.contains('4'), "the session is intact: {shown}");
}

#[test]
fn more_than_the_device_fails_before_the_pool_is_touched() {
    let (shown, errors, _) =
        feed(&["--capacity", "1GiB"], "let a = zeros([1024, 1024, 1024]);\n%mem\n");
    assert!(errors.contains("TOO BIG"), "{errors}");
    assert!(shown.contains("0 regions"), "{shown}");
}

#[test]
fn odd_arrays_work() {
    let (shown, errors, code) = feed(
        &[],
        "// %%\nlet z = zeros([0, 3]); println!(\"{:?}\", z.shape());\n// %%\nlet n = zeros([1]) / 0.0; n.item().is_nan()\n// %%\n(ones([1]) / 0.0).item()\n",
    );
    assert_eq!(code, Some(0), "{errors}");
    assert!(shown.contains("[0, 3]") && shown.contains("true") && shown.contains("inf"), "{shown}");
}

#[test]
fn depth_and_size_neither_crash_nor_hang() {
    let deep = format!("{}1{}", "(".repeat(50_000), ")".repeat(50_000));
    let long = format!("let s = 0{};", "+1".repeat(200_000));
    let large = format!("let s = \"{}\";", "x".repeat(10 << 20));
    for cell in [deep, long, large, "-".repeat(200_000) + "1"] {
        let (shown, errors, _) = feed(&[], &format!("// %%\n{cell}\n// %%\n20 + 22\n"));
        assert!(shown.contains("42"), "{}", &errors[..errors.len().min(500)]);
    }
}

/// An interrupt ends a program that waits for cells from a pipe, and only stops the cell of one
/// that runs.
#[test]
fn an_interrupt_from_outside() {
    use std::io::Write;
    let start = || {
        let mut child = crate::binary::command(&["--keep-going"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("a pipe");
        (child, stdin)
    };
    let interrupt = |child: &std::process::Child| {
        std::thread::sleep(std::time::Duration::from_millis(400));
        // SAFETY: kill with the id of a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    };
    let (mut waiting, stdin) = start();
    interrupt(&waiting);
    assert_eq!(waiting.wait().expect("it ends").code(), Some(130));
    drop(stdin);
    let (running, mut stdin) = start();
    stdin.write_all(b"// %%\nloop {}\n// %%\n").expect("it reads");
    interrupt(&running);
    drop(stdin);
    let output = running.wait_with_output().expect("it ends");
    assert!(stderr(&output).contains("error[interrupted]"), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
}

/// Who drives a session through a pipe gets each answer before sending the next cell; lines of one cell
/// stay together.
#[test]
fn a_pipe_is_answered_before_its_next_line() {
    use std::io::{BufRead, BufReader, Write};
    let mut child = crate::binary::command(&["--watch", "off"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut answer = || lines.next().expect("an answer").expect("text");
    stdin.write_all(b"2 + 3\n").expect("it reads");
    assert_eq!(answer(), "5");
    stdin.write_all(b"let x = if 1 > 2 {\n    10\n}\nelse {\n    20\n};\nx\n").expect("it reads");
    assert_eq!(answer(), "20");
    stdin.write_all(b"fn f() -> i32 {\n").expect("it reads");
    std::thread::sleep(std::time::Duration::from_millis(200));
    stdin.write_all(b"    7\n}\nf() + 1\n").expect("it reads");
    assert_eq!(answer(), "8");
    drop(stdin);
    assert!(child.wait().expect("it ends").success());
}
