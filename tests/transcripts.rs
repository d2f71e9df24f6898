//! Sessions as text: what is typed, and what the terminal then shows, on a real pseudo-terminal.
//!
//! A transcript begins with `$ vramlab OPTIONS`. A line that begins with `[n] ` is typed, and so are
//! the lines right behind it that are indented by the width of the prompt. Everything else is what
//! must be shown. Byte counts are exact; times, process ids and addresses are holes. `BLESS=1`
//! writes what was shown.

use crate::binary;
use crate::terminal::Terminal;
use std::path::{Path, PathBuf};

const COLUMNS: u16 = 100;

#[derive(Debug, Default)]
struct Transcript {
    options: Vec<String>,
    greeting: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Debug, Default)]
struct Step {
    cell: String,
    shown: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lie in the workspace").into()
}

fn parse(text: &str) -> Transcript {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("");
    let command = first.strip_prefix("$ vramlab").expect("a transcript begins with $ vramlab");
    let mut transcript = Transcript { options: words(command), ..Transcript::default() };
    let mut typing = 0;
    for line in lines {
        if let Some((prompt, cell)) = prompt(line) {
            typing = prompt;
            transcript.steps.push(Step { cell: cell.into(), shown: Vec::new() });
            continue;
        }
        let indented = typing > 0 && line.len() > typing && line[..typing].trim().is_empty();
        match transcript.steps.last_mut() {
            Some(step) if indented && step.shown.is_empty() => {
                step.cell.push('\n');
                step.cell.push_str(&line[typing..]);
            }
            Some(step) => step.shown.push(line.trim_end().to_string()),
            None => transcript.greeting.push(line.trim_end().to_string()),
        }
    }
    transcript
}

/// Words of the command line; single quotes hold spaces together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in text.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_string)),
            _ => words.push(part.to_string()),
        }
    }
    words
}

/// The prompt's width and what was typed behind it.
fn prompt(line: &str) -> Option<(usize, &str)> {
    let close = line.strip_prefix('[')?.find("] ")?;
    let digits = &line[1..=close];
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| (close + 3, &line[close + 3..]))
}

/// Types every cell and gathers what is shown.
fn play(transcript: &Transcript) -> Transcript {
    let options: Vec<&str> = transcript.options.iter().map(String::as_str).collect();
    let mut command = binary::command(&options);
    command.arg("--no-history").env("TERM", "xterm");
    let mut terminal = Terminal::start(command, COLUMNS);
    terminal.wait_for_prompt(1);
    let mut seen = terminal.lines().len();
    let greeting = terminal.lines()[..seen - 1].to_vec();
    let mut steps = Vec::new();
    for (index, step) in transcript.steps.iter().enumerate() {
        terminal.cell(&step.cell);
        let is_exit = step.cell.trim() == "%exit";
        match is_exit {
            true => break,
            false => terminal.wait_for_prompt(index + 2),
        }
        let lines = terminal.lines();
        let typed = step.cell.lines().count();
        let shown = lines[seen - 1 + typed..lines.len() - 1].to_vec();
        seen = lines.len();
        steps.push(Step { cell: step.cell.clone(), shown });
    }
    terminal.keys("\x04");
    assert!(terminal.end(), "the program did not end well");
    Transcript { options: transcript.options.clone(), greeting, steps }
}

fn print(transcript: &Transcript) -> String {
    let quoted = |word: &String| {
        if word.contains(' ') { format!(" '{word}'") } else { format!(" {word}") }
    };
    let options: String = transcript.options.iter().map(quoted).collect();
    let mut lines = vec![format!("$ vramlab{options}")];
    lines.extend(transcript.greeting.iter().cloned());
    for (index, step) in transcript.steps.iter().enumerate() {
        let prompt = format!("[{}] ", index + 1);
        let indent = format!("\n{}", " ".repeat(prompt.len()));
        lines.push(format!("{prompt}{}", step.cell.replace('\n', &indent)));
        lines.extend(step.shown.iter().cloned());
    }
    lines.join("\n")
}

/// Holes for what differs from run to run.
fn with_holes(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        // nvidia-smi's process row begins with the process id, right-aligned.
        if line.starts_with('|') && line.contains("   vramlab ") {
            out.push_str("| <pid>");
            out.push_str(&line[line.find("   vramlab ").unwrap_or(0)..]);
            out.push('\n');
            continue;
        }
        let words: Vec<String> = line.split(' ').map(str::to_string).collect();
        let mut shown: Vec<String> = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let next = words.get(at + 1).map(|word| word.trim_end_matches([',', ';', '.']));
            let is_number = !words[at].is_empty()
                && words[at].trim_end_matches(['.', ',']).parse::<f64>().is_ok();
            if is_number && matches!(next, Some("ns" | "µs" | "ms" | "s")) {
                shown.push("<time>".into());
                at += 2;
                continue;
            }
            let word = &words[at];
            if word.starts_with("0x") {
                shown.push("<address>".into());
            } else if shown.last().is_some_and(|before| before == "(pid") {
                shown.push("<pid>)".into());
            } else {
                shown.push(word.clone());
            }
            at += 1;
        }
        out.push_str(shown.join(" ").trim_end());
        out.push('\n');
    }
    out
}

fn check(name: &str, text: &str) -> Result<String, String> {
    let expected = parse(text);
    let played = print(&play(&expected));
    let (want, got) = (with_holes(&print(&expected)), with_holes(&played));
    match want == got {
        true => Ok(played),
        false => Err(format!("{name} shows\n{}\ninstead of\n{}", got, want)),
    }
}

#[test]
fn transcripts() {
    let folder = root().join("tests/transcripts");
    let mut wrong = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder of transcripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a transcript");
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        if std::env::var_os("BLESS").is_some() {
            let played = print(&play(&parse(&text)));
            std::fs::write(&file, played + "\n").expect("a blessed transcript");
        } else if let Err(why) = check(&name.unwrap_or_default(), &text) {
            wrong.push(why);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What a reader of the README types must show what the README shows.
#[test]
fn the_transcript_of_the_readme() {
    let path = root().join("README.md");
    let readme = std::fs::read_to_string(&path).expect("a README");
    let start = readme.find("$ vramlab").expect("the README has a transcript");
    let end = start + readme[start..].find("\n```").expect("the block ends");
    let text = &readme[start..end];
    if std::env::var_os("BLESS").is_some() {
        let played = print(&play(&parse(text)));
        let blessed = format!("{}{played}{}", &readme[..start], &readme[end..]);
        std::fs::write(&path, blessed).expect("a blessed README");
    } else if let Err(why) = check("README.md", text) {
        panic!("{why}");
    }
}

#[test]
fn holes_keep_byte_counts() {
    assert_eq!(
        with_holes(" 10.0 (+10.0)  768/768   1.9 ms instant\n"),
        " 10.0 (+10.0)  768/768   <time> instant\n"
    );
    assert_eq!(
        with_holes("vramlab (pid 47)  10 / 1024 MiB"),
        "vramlab (pid <pid>)  10 / 1024 MiB\n"
    );
}
