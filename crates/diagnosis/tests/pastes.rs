//! The same text as people paste it, cut, and broken: no figure may change, none may be invented, nothing may panic.

use serde_json::Value;
use std::fs;
use std::path::Path;
use vramlab_diagnosis::{Diagnosis, Name, Quantity, Verdict, diagnose};

/// Files by the start of their names.
fn files(start: &[&str]) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/texts");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the texts")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path))
        .filter(|(name, _)| start.iter().any(|s| name.starts_with(s)) && name != "answers.json")
        .map(|(name, path)| (name, fs::read(path).expect("a text")))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn sentences() -> Vec<(String, String)> {
    let files = files(&["torch_g", "torch_other"]);
    files.into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).expect("text"))).collect()
}

/// Breaks lines at `width` characters, inside words and numbers.
fn wrapped(text: &str, width: usize, prefix: &str) -> String {
    let chars: Vec<char> = text.trim_end().chars().collect();
    let lines =
        chars.chunks(width).map(|line| format!("{prefix}{}", line.iter().collect::<String>()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Breaks lines at spaces, as mail programs do.
fn filled(text: &str, width: usize, prefix: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("one line");
        if line.len() + word.len() >= width && !line.is_empty() {
            lines.push(word.into());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{prefix}{line}")).collect::<Vec<_>>().join("\n")
}

fn coloured(text: &str) -> String {
    let mut out = String::from("\u{1b}[0;31m");
    for c in text.chars() {
        match c {
            '.' => out.push_str("\u{1b}[1m.\u{1b}[22m"),
            c => out.push(c),
        }
    }
    out + "\u{1b}[0m"
}

fn pastes(text: &str) -> Vec<(&'static str, String)> {
    let rank = "[rank3]: ";
    let docker = "2026-02-03T11:20:41.123456789Z stderr F ";
    vec![
        ("colours", coloured(text)),
        ("CRLF", text.replace('\n', "\r\n")),
        ("JSON", serde_json::json!({"level": "error", "message": text, "gpu": 1}).to_string()),
        ("JSON twice", Value::String(Value::String(text.into()).to_string()).to_string()),
        ("JSON with colours", Value::String(coloured(text)).to_string()),
        ("repr", format!("{:?}", text)),
        ("HTML", text.replace('>', "&gt;").replace('"', "&quot;")),
        ("wrap 80", wrapped(text, 80, "")),
        ("wrap 41", wrapped(text, 41, "")),
        ("wrap 7", wrapped(text, 7, "")),
        ("mail", filled(text, 72, "> ")),
        ("mail twice", filled(text, 60, "> > ")),
        ("ranks", wrapped(text, 100, rank)),
        ("srun", filled(text, 90, "12: ")),
        ("kubernetes", filled(text, 120, docker)),
        ("compose", filled(text, 70, "trainer-1  | ")),
        ("ray", filled(text, 70, "(Trainer pid=4242, ip=10.0.0.1) ")),
        ("rich", filled(text, 70, "│ ").replace('\n', "  │\n")),
        ("upper", format!("ERROR {text}\n100%|####| 10/10 [00:01<00:00, 8.00it/s]")),
        (
            "prose",
            format!(
                "I have 24 GB and 32 GB of RAM, 3.5 GiB free!\n\n{text}\nBatch 8 needs 20 GiB."
            ),
        ),
    ]
}

#[test]
fn a_paste_changes_no_figure() {
    for (name, text) in sentences() {
        let whole = diagnose(text.as_bytes());
        for (paste, pasted) in pastes(&text) {
            let d = diagnose(pasted.as_bytes());
            assert_eq!(d.figures, whole.figures, "{name}, {paste}:\n{pasted}");
            assert_eq!((d.verdict, d.sub), (whole.verdict, whole.sub), "{name}, {paste}");
            assert_eq!(d.processes, whole.processes, "{name}, {paste}");
        }
    }
}

/// What a part says must be what the whole says.
fn agrees(name: &str, at: usize, part: &Diagnosis, whole: &Diagnosis) {
    for (figure, quantity) in part.figures.iter() {
        let right = whole.figures.get(figure);
        let close = |right: Option<Quantity>| {
            right.is_some_and(|r| {
                r.bytes.abs_diff(quantity.bytes) <= r.tolerance + quantity.tolerance
            })
        };
        // Without its "allowed", a sentence's limit is the device.
        let device = figure == Name::Limit && close(whole.figures.get(Name::DeviceTotal));
        let near = close(right) || device;
        assert!(near, "{name} cut at {at}: {} is {quantity:?}, not {right:?}", figure.key());
    }
    let humble = [Verdict::CannotTell, Verdict::NotOom, Verdict::NoFailure, Verdict::Unreadable];
    let fair = part.verdict == whole.verdict || humble.contains(&part.verdict);
    assert!(fair, "{name} cut at {at}: {} is not {}", part.verdict, whole.verdict);
}

fn cuts(length: usize) -> impl Iterator<Item = usize> {
    // Every place in a sentence, a few hundred in a dump.
    (0..length).step_by((length / 700).max(1))
}

#[test]
fn a_text_that_lost_its_end_invents_nothing() {
    for (name, bytes) in files(&["torch_", "bfc_", "jax_", "xla_", "nvidia", "no_or"]) {
        let whole = diagnose(&bytes);
        // The end of a dump's list of allocations cannot be told from a shorter list.
        let sums = name.starts_with("xla_buffer");
        for at in cuts(bytes.len()).filter(|_| !sums) {
            let part = diagnose(&bytes[..at]);
            // A bare word at a cut may be any word's start; a table's device is known by its fullest.
            if !name.starts_with("nvidia_smi_05") {
                agrees(&name, at, &part, &whole);
            }
        }
    }
}

#[test]
fn a_text_that_lost_its_beginning_invents_nothing() {
    for (name, bytes) in files(&["torch_", "bfc_", "jax_error", "no_or"]) {
        // Of two failures the first would be lost.
        if name.starts_with("bfc_dump_12") {
            continue;
        }
        let whole = diagnose(&bytes);
        for at in cuts(bytes.len()) {
            agrees(&name, at, &diagnose(&bytes[at..]), &whole);
        }
    }
}

/// A small generator of numbers: the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

#[test]
fn nothing_that_is_broken_panics() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let all = files(&["torch_", "bfc_", "jax_", "xla_", "nvidia", "no_or"]);
    for (_, bytes) in &all {
        for _ in 0..60 {
            let mut broken = bytes.clone();
            for _ in 0..1 + numbers.below(8) {
                let at = numbers.below(broken.len());
                match numbers.below(6) {
                    0 if !broken.is_empty() => broken[at] = numbers.below(256) as u8,
                    1 => broken.truncate(at),
                    2 => drop(broken.drain(..at)),
                    3 => broken
                        .splice(
                            at..at,
                            b"99999999999999999999.999999999999999999999999 GiB".iter().copied(),
                        )
                        .for_each(drop),
                    4 => {
                        let other = &all[numbers.below(all.len())].1;
                        broken.extend_from_slice(&other[numbers.below(other.len())..]);
                    }
                    _ => broken.splice(at..at, "é│\u{1b}[\\u00".bytes()).for_each(drop),
                }
            }
            let d = diagnose(&broken);
            assert!(!d.json().to_string().is_empty() && !d.to_string().is_empty());
        }
    }
}

#[test]
fn hostile_texts_are_answered() {
    let long = "Tried to allocate ".repeat(20_000);
    let deep = "[".repeat(100_000) + &"\\".repeat(100_000);
    for text in [
        "",
        " ",
        "\n",
        "\0",
        "GPU",
        "Process has",
        "[",
        "(",
        "\u{1b}[",
        "\\u",
        "\\x",
        "1",
        ".",
        &long,
        &deep,
    ] {
        let d = diagnose(text.as_bytes());
        assert!(d.figures.iter().next().is_none(), "{:?}", &text[..text.len().min(20)]);
    }
    let binary: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    assert_eq!(diagnose(&binary).verdict, Verdict::Unreadable);
    assert_eq!(diagnose(&[0x1f, 0x8b]).verdict, Verdict::Unreadable);
    let huge = "CUDA out of memory. Tried to allocate 17179869184.00 GiB. GPU 99999999999999999999 has a total capacity of 1.00 GiB of which 0 bytes is free.";
    assert_eq!(diagnose(huge.as_bytes()).figures.get(Name::Asked), None);
}
