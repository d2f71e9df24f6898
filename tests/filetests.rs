//! Programs as text, and what a stage makes of them.
//!
//! A file of `tests/filetests` begins with one or more `test STAGE` lines, then `arg TYPE VALUES…`
//! lines (for `run`), then one program; its last comment lines hold what the stages print. With
//! `BLESS=1` the files are rewritten to what the stages print now. The file's name is its point.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vramlab_compiler::{Options, compile};
use vramlab_ir::interp::Tensor;
use vramlab_ir::text::{parse_literal, parse_type};
use vramlab_ir::{Func, Type, evaluate, parse, verify};
use vramlab_ops::lookup;

/// A stage's text for a program and its arguments.
type Stage = fn(&Func, &[Tensor]) -> String;

/// Stages whose program must parse and verify first.
const STAGES: &[(&str, Stage)] = &[
    ("run", run),
    ("simplify", |func, _| compiled(func, "simplify", false)),
    ("fuse", |func, _| compiled(func, "fuse", false)),
    ("schedule", |func, _| compiled(func, "schedule", false)),
    ("plan", |func, _| compiled(func, "plan", false)),
    ("plan-donated", |func, _| compiled(func, "plan", true)),
];

#[test]
fn every_file_prints_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let mut files = Vec::new();
    collect(&folder, &mut files);
    assert!(files.len() >= 25, "only {} files under {}", files.len(), folder.display());
    let wrong: Vec<String> = files.iter().filter_map(|file| check(file).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder can be listed");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("listed").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "ir") {
            files.push(path);
        }
    }
}

/// Compares, or blesses.
fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let case = Case::read(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let printed = case.run();
    if printed == case.expected {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        let blessed = format!("{}{}", case.source, comment(&printed));
        return std::fs::write(path, blessed).map_err(|e| format!("{}: {e}", path.display()));
    }
    Err(format!(
        "{}: printed\n{}but the file says\n{}(BLESS=1 rewrites it)",
        path.display(),
        comment(&printed),
        comment(&case.expected)
    ))
}

struct Case {
    stages: Vec<String>,
    arguments: Vec<Tensor>,
    program: String,
    /// All but the expected output.
    source: String,
    expected: String,
}

impl Case {
    fn read(text: &str) -> Result<Case, String> {
        let lines: Vec<&str> = text.lines().collect();
        let code = lines.iter().rposition(|line| !line.starts_with(';')).map_or(0, |last| last + 1);
        let header = |line: &&&str| line.starts_with("test ") || line.starts_with("arg ");
        let headers = lines.iter().take_while(header).count();
        let (mut stages, mut arguments) = (Vec::new(), Vec::new());
        for line in &lines[..headers] {
            match line.split_once(' ') {
                Some(("test", stage)) => stages.push(stage.trim().to_string()),
                Some((_, argument)) => arguments.push(read_argument(argument)?),
                None => unreachable!("header lines hold a blank"),
            }
        }
        if stages.is_empty() {
            return Err("the first line is not `test STAGE`".into());
        }
        let join =
            |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let uncomment =
            |line: &&str| format!("{}\n", line[1..].strip_prefix(' ').unwrap_or(&line[1..]));
        Ok(Case {
            stages,
            arguments,
            program: join(&lines[headers..code]),
            source: join(&lines[..code]),
            expected: lines[code..].iter().map(uncomment).collect(),
        })
    }

    fn run(&self) -> String {
        let print = |stage: &String| {
            let heading =
                if self.stages.len() > 1 { format!("[{stage}]\n") } else { String::new() };
            heading + self.stage(stage).trim_end() + "\n"
        };
        self.stages.iter().map(print).collect()
    }

    fn stage(&self, stage: &str) -> String {
        let func = match parse(&self.program, &lookup) {
            Ok(func) => func,
            Err(error) => return format!("error: {error}"),
        };
        match stage {
            "parse" => return func.to_string(),
            "verify" => return complaints(&func).unwrap_or("ok".into()),
            "shape" => return shapes(&func),
            _ => {}
        }
        let Some((_, run)) = STAGES.iter().find(|(name, _)| *name == stage) else {
            return format!("error: no stage `{stage}`");
        };
        complaints(&func).unwrap_or_else(|| run(&func, &self.arguments))
    }
}

fn comment(text: &str) -> String {
    text.lines().map(|line| format!("; {line}").trim_end().to_string() + "\n").collect()
}

fn read_argument(text: &str) -> Result<Tensor, String> {
    let mut words = text.split_whitespace();
    let ty = parse_type(words.next().unwrap_or("")).map_err(|e| format!("arg {text}: {e}"))?;
    let literals: Option<Vec<_>> = words.map(|word| parse_literal(word, ty.dtype)).collect();
    let literals = literals.ok_or_else(|| format!("arg {text}: not all values are of {ty}"))?;
    let bytes = literals.iter().flat_map(|l| l.to_bytes().into_iter().take(ty.dtype.size()));
    Tensor::new(ty.clone(), bytes.collect()).map_err(|fault| format!("arg {text}: {fault}"))
}

fn complaints(func: &Func) -> Option<String> {
    let complaints = verify(func).err()?;
    Some(complaints.iter().map(|complaint| format!("{complaint}\n")).collect())
}

/// What each equation's op infers from the declared types of its operands.
fn shapes(func: &Func) -> String {
    let mut text = String::new();
    for eqn in &func.eqns {
        let types: Vec<Type> = eqn.inputs.iter().map(|&v| func.ty(v).clone()).collect();
        match eqn.op.infer(&types, &eqn.params) {
            Ok(types) => {
                let types: Vec<String> = types.iter().map(Type::to_string).collect();
                writeln!(text, "{}: {}", eqn.op.name(), types.join(", ")).expect("memory");
            }
            Err(fault) => {
                writeln!(text, "error[{}] {fault}", fault.kind.code()).expect("memory");
                if let Some(help) = fault.help {
                    writeln!(text, "  help: {help}").expect("memory");
                }
            }
        }
    }
    text
}

fn run(func: &Func, arguments: &[Tensor]) -> String {
    match evaluate(func, arguments) {
        Ok(results) => results.iter().map(|tensor| format!("{tensor}\n")).collect(),
        Err(fault) => format!("error[{}] {fault}", fault.kind.code()),
    }
}

/// The compiler's words for one of its stages, with every argument donated or none. Behind the
/// fusions stands what was refused and why, behind a plan each donation.
fn compiled(func: &Func, stage: &str, donated: bool) -> String {
    let donate = vec![donated; func.params.len()];
    let program = match compile(&Arc::new(func.clone()), &donate, &Options::default()) {
        Ok(program) => program,
        Err(fault) => return format!("error[{}] {fault}", fault.kind.code()),
    };
    let words = program.stages.iter().find(|(name, _)| name == stage);
    let mut text = words.map_or(String::new(), |(_, text)| text.clone());
    if stage == "fuse" {
        program.notes.iter().for_each(|note| writeln!(text, "note: {note}").expect("memory"));
    }
    if stage == "plan" {
        for donation in &program.donations {
            let used = if donation.used { "used" } else { "unused" };
            writeln!(text, "argument {} {used}: {}", donation.argument, donation.reason)
                .expect("memory");
        }
    }
    text
}
