//! `vramlab replay` and `vramlab view`: recordings from files, by the program.

use crate::binary::{Folder, run, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};

const LOG: &str = "Thread,Time,Action,Pointer,Size,Stream
1001,14:21:19.998533,allocate,0x7f0000000000,1048576,0x0
1001,14:21:19.998600,allocate,0x7f0000100000,2097152,0x0
1002,14:21:20.000001,free,0x7f0000000000,1048576,0x0
1002,14:21:20.000200,allocate,0x7f0000300000,4194304,0x0
";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The recorded traces, where they are; with `CI=true` their absence is a failure.
fn recorded() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/benchmarks/traces");
    if folder.is_dir() {
        return Some(folder);
    }
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "the recorded traces are absent: {}", folder.display());
    eprintln!("skipped: the recorded traces are absent");
    None
}

#[test]
fn caching_real_traces_from_the_shell() {
    let Some(folder) = recorded() else { return };
    let names =
        ["small-cnn", "lm-1024-train", "lm-128-forward", "lm-256-step", "lm-512-forward-bf16"];
    let files = names.map(|name| folder.join(format!("{name}.pickle")).display().to_string());
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let seen = run(&[&["--json", "view"], &files[..]].concat(), "");
    let predicted = lines(&stdout(&seen));
    let predicted = predicted.iter().map(|view| view["addresses_predicted"].as_u64());
    assert_eq!(predicted.sum::<Option<u64>>(), Some(21_055), "{}", stderr(&seen));
    let replayed = run(&[&["--json", "--mode=caching", "replay"], &files[..]].concat(), "");
    for (replayed, view) in lines(&stdout(&replayed)).iter().zip(lines(&stdout(&seen))) {
        let row = &replayed["modes"][0];
        assert_eq!(row["passes"], true, "{replayed}");
        assert_eq!(replayed["peak_requested_bytes"], view["peak"]["requested_bytes"]);
    }
}

#[test]
fn a_table_names_each_mode_and_where_it_fails() {
    let folder = Folder::new("replay");
    let file = folder.file("log.csv", LOG);
    let output = run(&["replay", &file, "--mode=vmm,platform", "--capacity=5MiB"], "");
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(text.starts_with(&format!("{file}: RMM log, device 0, 4 events\n")), "{text}");
    assert!(text.contains("on a device of 5.0 MiB; at most 6.0 MiB asked for at once"), "{text}");
    assert!(text.contains("OOM at event 4: 4.0 MiB asked"), "{text}");
    let output = run(&["replay", "--json", &file, "--capacity", "32GiB"], "");
    let json = &lines(&stdout(&output))[0];
    let modes = json["modes"].as_array().expect("rows");
    assert_eq!(modes.len(), 6);
    assert!(modes.iter().all(|row| row["passes"] == true && row["failure"].is_null()), "{json}");
    let platform = modes.iter().find(|row| row["mode"] == "platform").expect("a row");
    assert_eq!(platform["peak_bytes_in_use"], 6 << 20);
    assert_eq!(platform["driver_calls"], 4);
    assert_eq!(platform["smallest_device_bytes"], 6 << 20);
}

#[test]
fn a_session_s_own_trace_is_replayed_and_viewed() {
    let folder = Folder::new("own-trace");
    let trace = folder.0.join("a.trace").display().to_string();
    let cell = "let x = zeros([1024, 1024]);\nlet y = exp(&x);";
    let ran = run(&["--export", &format!("trace={trace}"), "-c", cell], "");
    assert!(ran.status.success(), "{}{}", stdout(&ran), stderr(&ran));
    let viewed = run(&["view", &trace], "");
    let text = stdout(&viewed);
    assert!(text.contains("peak           8.0 MiB (8388608 bytes)"), "{text}{}", stderr(&viewed));
    let output = run(&["--json", "replay", &trace, "--mode=platform"], "");
    let json = &lines(&stdout(&output))[0];
    assert_eq!((&json["format"], &json["capacity_from"]), (&"vramlab".into(), &"recorded".into()));
    assert_eq!(json["peak_requested_bytes"], 8 << 20);
}

#[test]
fn a_page_needs_nothing_else() {
    let folder = Folder::new("page");
    let file = folder.file(
        "a<b>.trace",
        include_str!("../docs/trace-format.md")
            .split("```")
            .nth(1)
            .expect("an example")
            .trim_start_matches("trace\n"),
    );
    let page = folder.0.join("page.html").display().to_string();
    let output = run(&["view", "--html", &page, &file], "");
    assert!(stdout(&output).contains("temporary of exp"), "{}{}", stdout(&output), stderr(&output));
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.starts_with("<!doctype html>") && html.contains("a&lt;b&gt;.trace"));
    assert_eq!(html.matches("<svg").count(), 2);
    for outside in ["src=", "href=", "url(", "@import", "fetch("] {
        assert!(!html.contains(outside), "the page reaches outside: {outside}");
    }
    let unwritable = run(&["view", "--html", "/nonexistent/page.html", &file], "");
    assert_eq!(unwritable.status.code(), Some(2));
    assert!(stderr(&unwritable).contains("/nonexistent/page.html"));
}

#[test]
fn files_that_are_no_recordings_are_named_and_the_others_go_on() {
    let folder = Folder::new("no-recording");
    let (log, json) = (folder.file("log.csv", LOG), folder.file("a.json", "{\"segments\": []}"));
    let code = folder.file("code.pickle", "cposix\nsystem\n(S'true'\ntR.");
    let cut = folder.file("cut.csv", &LOG[..LOG.len() - 20]);
    for command in ["view", "replay"] {
        let output = run(&[command, "/nonexistent/x", &json, &code, &cut, &log, "/"], "");
        let (out, err) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert_eq!(out.matches("RMM log").count(), 2, "{out}");
        assert!(out.contains("note: the log breaks off in line 5"), "{out}");
        for words in ["/nonexistent/x", "(JSON)", "posix.system", "it is a folder"] {
            assert!(err.contains(words), "{words}: {err}");
        }
    }
}

#[test]
fn wrong_lines_are_refused_in_words() {
    for (arguments, words) in [
        (&["replay"][..], "replay needs a FILE"),
        (&["view"], "view needs a FILE"),
        (&["replay", "x", "--mode=cachnig"], "did you mean `caching`?"),
        (&["replay", "x", "--mode=vmm granule=1"], "granule must be a multiple of"),
        (&["replay", "x", "--mode="], "no mode is named"),
        (&["replay", "x", "--capacity=much"], "is not a size"),
        (&["replay", "x", "--capacity=0"], "smaller than one block"),
        (&["replay", "x", "--capacity=9000000TiB"], "no device is larger than 4 PiB"),
        (&["replay", "x", "--html", "p"], "--html goes with view"),
        (&["view", "x", "--exact"], "--exact goes with replay"),
        (&["repaly", "x"], "did you mean `replay`?"),
    ] {
        let output = run(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
}
