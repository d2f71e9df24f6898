//! Every figure and every verdict of texts with known answers.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use vramlab_diagnosis::{Certainty, Diagnosis, Kind, Name, diagnose};

fn texts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts")
}

fn answers() -> Vec<Value> {
    let text = fs::read_to_string(texts().join("answers.json")).expect("the answers");
    serde_json::from_str::<Vec<Value>>(&text).expect("a list")
}

/// What disagrees with an answer.
fn complaints(answer: &Value, d: &Diagnosis) -> Vec<String> {
    let found = d.json();
    let mut wrong = Vec::new();
    let tolerance = answer["tolerance_bytes"].as_u64().unwrap_or(0);
    for (key, right) in answer.as_object().expect("an object") {
        let skipped = key == "tolerance_bytes" || key == "idle_reserved_tolerance_bytes";
        if (key.ends_with("_bytes") && !skipped)
            || matches!(
                key.as_str(),
                "device_index" | "live_buffers" | "executables" | "live_requested_bytes_of_ours"
            )
        {
            // A difference or a sum of two printed figures has twice the tolerance.
            let wide = [
                "idle_reserved_bytes",
                "outside_pytorch_bytes",
                "reserved_bytes",
                "other_process_bytes",
            ];
            let own = answer.get(format!("{}_tolerance_bytes", key.trim_end_matches("_bytes")));
            let width = own.and_then(Value::as_u64).unwrap_or(tolerance)
                * if wide.contains(&key.as_str()) { 2 } else { 1 };
            // A sum over bins that are printed with two decimals; the answer is the truth, to the byte.
            let width = match key.as_str() {
                "live_requested_bytes_of_ours" => {
                    d.figures.get(Name::Requested).map_or(0, |q| q.tolerance)
                }
                _ => width,
            };
            let close = match (right.as_u64(), found[key].as_u64()) {
                (Some(right), Some(found)) => right.abs_diff(found) <= width,
                (None, None) => true,
                _ => false,
            };
            if !close {
                wrong.push(format!("{key}: {} is not {right}", found[key]));
            }
        }
    }
    let accepted = match answer["accept"].as_array() {
        Some(words) => words.clone(),
        None => vec![answer["verdict"].clone()],
    };
    if !accepted.contains(&found["verdict"]) {
        wrong.push(format!("verdict: {} is not {:?}", found["verdict"], accepted));
    }
    if answer["sub"].is_string()
        && answer["sub"] != found["sub"]
        && answer["verdict"] == found["verdict"]
    {
        wrong.push(format!("sub: {} is not {}", found["sub"], answer["sub"]));
    }
    if answer["certainty"] == "inferred" && d.certainty != Certainty::Inferred {
        wrong.push("certainty: not inferred".into());
    }
    if answer["other_pids"].is_array() && answer["other_pids"] != found["other_pids"] {
        wrong.push(format!("other_pids: {}", found["other_pids"]));
    }
    if let Some(by_function) = answer["by_function"].as_object() {
        let owners = d.owners.iter().map(|o| (o.name.clone(), Value::from(o.held.bytes)));
        let owners: serde_json::Map<String, Value> = owners.collect();
        if owners != *by_function {
            wrong.push(format!("by_function: {owners:?}"));
        }
    }
    if let Some(processes) = answer["processes"].as_object() {
        for (pid, bytes) in processes {
            let listed = d.processes.iter().find(|p| p.pid.to_string() == *pid);
            let held = listed.and_then(|p| p.held).map(|q| q.bytes);
            if bytes.as_u64().zip(held).is_none_or(|(a, b)| a.abs_diff(b) > tolerance) {
                wrong.push(format!("process {pid}: {held:?} is not {bytes}"));
            }
        }
    }
    for (n, failure) in answer["failures"].as_array().into_iter().flatten().enumerate() {
        match n.checked_sub(1).map_or(Some(d), |later| d.later.get(later)) {
            Some(d) => wrong
                .extend(complaints(failure, d).into_iter().map(|w| format!("failure {n}: {w}"))),
            None => wrong.push(format!("failure {n} is not found")),
        }
    }
    wrong
}

#[test]
fn every_figure_and_verdict_is_right() {
    let mut wrong = Vec::new();
    let answers = answers();
    let mut read = 0;
    for answer in &answers {
        let file = answer["file"].as_str().expect("a file");
        let bytes = fs::read(texts().join(file)).expect("the text");
        let d = diagnose(&bytes);
        read += 1;
        let complaints = complaints(answer, &d);
        if !complaints.is_empty() {
            wrong.push(format!("{file}: {}", complaints.join("; ")));
        }
        assert!(!d.because.is_empty() && !d.to_string().is_empty(), "{file} says why");
        let silent = d.advice.is_empty() && d.kind != Kind::Nothing;
        assert!(!silent, "{file} says what to try");
    }
    println!("{} of {read} right", read - wrong.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
