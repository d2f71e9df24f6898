//! `vramlab why`: texts from elsewhere, by the program.

use crate::binary::{Folder, run, stderr, stdout};
use serde_json::Value;

const SENTENCE: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 1 has a total \
    capacity of 24.00 GiB of which 1.00 GiB is free. Process 77 has 14.00 GiB memory in use. Including non-PyTorch \
    memory, this process has 9.00 GiB memory in use. Of the allocated memory 8.25 GiB is allocated by PyTorch, and \
    256.00 MiB is reserved by PyTorch but unallocated.";

#[test]
fn a_sentence_is_explained_in_words() {
    let output = run(&["why", "-"], SENTENCE);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(text.starts_with("verdict  OTHER PROCESS: asked 3 GiB, 1 GiB free"), "{text}");
    assert!(text.contains("process  77  14 GiB  another process"), "{text}");
    assert!(text.contains("try      ps -o pid,user,etime,cmd -p 77"), "{text}");
}

#[test]
fn each_file_is_a_line_of_json_and_a_missing_one_is_named() {
    let folder = Folder::new("why");
    let file = folder.file("a.log", SENTENCE);
    let empty = folder.file("empty.log", "");
    let output = run(&["--json", "why", &file, "/nonexistent/b.log", &empty], "");
    let lines: Vec<Value> =
        stdout(&output).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["verdict"], "other_process");
    assert_eq!(lines[0]["asked_bytes"], 3u64 << 30);
    assert_eq!(lines[0]["device_index"], 1);
    assert_eq!(lines[0]["largest_free_bytes"], Value::Null);
    assert_eq!(lines[1]["verdict"], "not_oom");
    assert_eq!(lines[1]["file"], empty);
    assert!(stderr(&output).contains("/nonexistent/b.log"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn no_file_is_an_error_in_words() {
    let output = run(&["why"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("why needs a FILE"));
}
