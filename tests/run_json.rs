//! `vramlab run --json`: the names are a contract.

use crate::binary::{Folder, run, stderr, stdout};
use serde_json::Value;

/// Runs a `.rs` file and gives its lines as JSON.
fn cells(options: &[&str], source: &str) -> (Vec<Value>, Option<i32>) {
    let folder = Folder::new("run-json");
    let file = folder.file("cells.rs", source);
    let arguments: Vec<&str> =
        ["run", "--json"].iter().chain(options).copied().chain([file.as_str()]).collect();
    let output = run(&arguments, "");
    let lines = stdout(&output);
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    (lines.lines().map(parse).collect(), output.status.code())
}

const MIB: u64 = 1 << 20;

#[test]
fn every_name_is_there() {
    let (cells, code) = cells(&["--capacity", "1GiB"], "let a = zeros([2560, 1024]);");
    assert_eq!(code, Some(0));
    let names = |value: &Value| {
        let mut names: Vec<String> =
            value.as_object().expect("an object").keys().cloned().collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(names(&cells[0]), "cell error memory outputs source status tier wall_ns");
    assert_eq!(
        names(&cells[0]["memory"]),
        "bytes_in_use bytes_limit compile delta_bytes driver_allocs_cell driver_frees_cell \
         fragmentation largest_free_block_bytes live_arrays mode num_allocs_cell num_frees_cell \
         peak_bytes_in_use_cell pool_bytes regions requested_bytes"
    );
    assert_eq!(names(&cells[0]["memory"]["compile"]), "bytes entries hits misses");
}

#[test]
fn figures_are_exact() {
    let (cells, _) = cells(
        &["--capacity", "1GiB"],
        "let a = zeros([2560, 1024]);\n// %%\n%mode ondemand\n// %%\n%mode platform\n// %%\ndrop(a);",
    );
    let memory = |cell: usize, name: &str| cells[cell]["memory"][name].as_u64().expect(name);
    assert_eq!(memory(0, "requested_bytes"), 10 * MIB);
    assert_eq!(memory(0, "pool_bytes"), 768 * MIB);
    assert_eq!(memory(0, "bytes_limit"), 768 * MIB);
    assert_eq!(memory(0, "largest_free_block_bytes"), 758 * MIB);
    assert_eq!(memory(0, "driver_allocs_cell"), 1);
    assert_eq!(memory(0, "num_allocs_cell"), 1);
    assert_eq!(cells[0]["memory"]["delta_bytes"], 10 * MIB);
    assert_eq!(cells[0]["memory"]["mode"], "preallocate");
    assert_eq!(memory(1, "bytes_in_use"), 16 * MIB);
    assert_eq!(cells[1]["memory"]["regions"], serde_json::json!([16 * MIB]));
    assert_eq!(cells[1]["tier"], "command");
    assert_eq!(memory(2, "pool_bytes"), 10 * MIB);
    assert_eq!(memory(3, "live_arrays"), 0);
    assert_eq!(memory(3, "pool_bytes"), 0);
    assert_eq!(cells[3]["memory"]["delta_bytes"], -10 * MIB as i64);
    assert_eq!(cells[3]["memory"]["driver_frees_cell"], 1);
}

#[test]
fn outputs_stand_in_order() {
    let (cells, _) = cells(&[], "println!(\"a\"); eprintln!(\"b\"); println!(\"c\"); 1 + 1");
    let outputs = cells[0]["outputs"].as_array().expect("a list");
    assert_eq!(outputs[0]["text/plain"], "a\n");
    assert_eq!(outputs[1]["application/x.stderr"], "b\n");
    assert_eq!(outputs[2]["text/plain"], "c\n");
    assert_eq!(outputs[3]["text/plain"], "2");
    assert_eq!(cells[0]["tier"], "instant");
    assert_eq!(cells[0]["status"], "ok");
    assert!(cells[0]["error"].is_null());
}

#[test]
fn errors_have_kind_message_and_span() {
    let source = "let a = zeros([2, 3]);\n// %%\nlet é = 1;\nlet b = a.dot(&a);\n// %%\nlet c = a.tahn();\n// %%\n1 + 1";
    let (cells, code) = cells(&[], source);
    assert_eq!(code, Some(1));
    assert_eq!(cells.len(), 4, "--json goes on after a failure");
    assert_eq!(cells[1]["status"], "error");
    assert_eq!(cells[1]["error"]["kind"], "shape");
    assert_eq!(cells[1]["error"]["span"]["line"], 2);
    assert_eq!(cells[1]["error"]["span"]["column"], 9);
    assert_eq!(cells[2]["error"]["kind"], "E0599");
    assert_eq!(cells[2]["error"]["span"]["column"], 11);
    assert_eq!(cells[3]["status"], "ok");
    assert_eq!(cells[3]["cell"], 4);
}

#[test]
fn statements_that_completed_stay() {
    let source = "let a = zeros([4]);\nlet b = a.reshape([3]);\n// %%\na.shape()";
    let (cells, _) = cells(&[], source);
    assert_eq!(cells[0]["status"], "error");
    assert_eq!(cells[0]["memory"]["live_arrays"], 1);
    assert_eq!(cells[1]["status"], "ok");
}

#[test]
fn a_wrong_cell_runs_nothing() {
    let (cells, _) = cells(&[], "let a = zeros([4]);\n%mode platform\nlet b = nothing;");
    assert_eq!(cells[0]["error"]["kind"], "E0425");
    assert_eq!(cells[0]["error"]["span"]["line"], 3);
    assert_eq!(cells[0]["memory"]["live_arrays"], 0);
    assert_eq!(cells[0]["memory"]["mode"], "preallocate");
}

#[test]
fn compile_counts_are_of_jitted_calls() {
    let source = "let f = jit(|[x]| (x * 2.0).tanh()); let x = zeros([8]);\n// %%\nlet y = f([&x]);\n// %%\nlet z = f([&x]);";
    let (cells, _) = cells(&[], source);
    let compile = |cell: usize, name: &str| cells[cell]["memory"]["compile"][name].as_u64();
    assert_eq!(compile(1, "misses"), Some(1));
    assert_eq!(compile(1, "hits"), Some(0));
    assert_eq!(compile(2, "misses"), Some(1));
    assert_eq!(compile(2, "hits"), Some(1));
}

#[test]
fn a_notebook_runs_and_stops_at_the_first_failure() {
    let folder = Folder::new("run-notebook");
    let text = r##"{"nbformat": 4, "cells": [
        {"cell_type": "markdown", "source": ["# words"]},
        {"cell_type": "code", "source": ["println!(\"one\");\n", "let n = 3;"]},
        {"cell_type": "code", "source": "let m: i32 = \"x\";"},
        {"cell_type": "code", "source": "println!(\"never\");"}]}"##;
    let file = folder.file("cells.ipynb", text);
    let output = run(&["run", &file], "");
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout(&output);
    assert!(shown.contains("one") && !shown.contains("never\n"), "{shown}");
    assert!(stderr(&output).contains("error[E0308]"), "{}", stderr(&output));
    let output = run(&["run", "--keep-going", &file], "");
    assert!(stdout(&output).contains("never"));
    assert_eq!(output.status.code(), Some(1));
}
