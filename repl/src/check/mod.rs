//! `vramlab check FILE --against BASE`: the figures of each cell against those of a kept run, for CI.
//!
//! The figures are bytes that the rules decide, so a base from one machine holds on another. A base is what
//! `--update` wrote, or the lines of `vramlab run --json`.

mod base;
mod findings;

use crate::face::Face;
use crate::options::Options;
use crate::{signals, source};
use base::{Cell, kept, read_base};
use findings::{Findings, Meaning, Tolerance, compare};
use serde_json::{Value, json};
use std::process::ExitCode;
use vramlab_session::report::{mib, signed};
use vramlab_session::{Content, Event, Session, Table};

/// Runs the file and compares.
///
/// # Errors
/// A file, a base or a tolerance that cannot be read: exit status 2.
pub fn run(file: &str, options: &Options) -> Result<ExitCode, String> {
    let base_path = options.against.as_deref().unwrap_or_default();
    let tolerance = match &options.tolerance {
        Some(text) => Tolerance::parse(text)?,
        None => Tolerance::Bytes(0),
    };
    let base = match std::fs::read_to_string(base_path) {
        Ok(text) => Some(read_base(&text).map_err(|why| format!("{base_path}: {why}"))?),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound && options.update => None,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("{base_path} is not there; --update makes it from this run"));
        }
        Err(why) => return Err(format!("{base_path}: {why}")),
    };
    let cells = source::read(file)?;
    let (now, errors) = run_cells(&cells, options)?;
    let findings = base.as_ref().map(|base| compare(base, &now, tolerance));
    let mut face = Face::new();
    if options.update {
        std::fs::write(base_path, kept(&now)).map_err(|why| format!("{base_path}: {why}"))?;
    }
    if options.json {
        face.line(&as_json(file, base_path, findings.as_ref(), options.update).to_string());
    } else {
        errors.iter().for_each(|error| face.warn(error));
        show(&mut face, findings.as_ref(), now.len());
        if options.update {
            face.line(&format!(" {} cells kept in {base_path}", now.len()));
        }
    }
    let regressed = findings.is_some_and(|findings| findings.regressions() > 0);
    Ok(ExitCode::from(u8::from(regressed && !options.update)))
}

/// Every cell, whatever fails before it; what cells print is dropped.
fn run_cells(cells: &[String], options: &Options) -> Result<(Vec<Cell>, Vec<String>), String> {
    let mut session = Session::new(options.config.clone())?;
    signals::catch(session.interrupt_handle());
    let mut now = Vec::new();
    let mut errors = Vec::new();
    for source in cells {
        let result = session.execute(source, &mut |event| {
            if let Event::Error(error) = event {
                errors.push(format!("cell {}: {}", error.cell, error.rendered));
            }
        });
        if result.error.as_ref().is_some_and(|error| error.kind == "interrupted") {
            return Err("stopped; nothing was compared".into());
        }
        now.push(Cell::of(source, &result));
        if result.exit {
            break;
        }
    }
    Ok((now, errors))
}

fn show(face: &mut Face, findings: Option<&Findings>, cells: usize) {
    let Some(findings) = findings else { return };
    if !findings.differences.is_empty() {
        let mut table = Table::new(&["cell", "figure", "base", "now", "delta", ""]);
        for difference in &findings.differences {
            table.row([
                difference.cell.to_string(),
                difference.figure.to_string(),
                mib(difference.base),
                mib(difference.now),
                signed(difference.now as i64 - difference.base as i64),
                difference.meaning.name().to_string(),
            ]);
        }
        let content = Content::of_table(table);
        face.show(Event::Display { content, id: None, update: false });
    }
    findings.failures.iter().for_each(|failure| face.line(&format!(" {failure}")));
    findings.notes.iter().for_each(|note| face.line(&format!(" note: {note}")));
    let improved = findings.of(Meaning::Improvement);
    let verdict = match (findings.regressions(), improved) {
        (0, 0) if findings.of(Meaning::Within) > 0 => "no regression beyond the tolerance".into(),
        (0, 0) => format!("as in the base: {cells} cells"),
        (0, 1) => "no regression; 1 figure is lower, --update keeps it".into(),
        (0, improved) => {
            format!("no regression; {improved} figures are lower, --update keeps them")
        }
        (1, _) => "1 regression".to_string(),
        (regressions, _) => format!("{regressions} regressions"),
    };
    face.line(&format!(" {verdict}"));
}

fn as_json(file: &str, base: &str, findings: Option<&Findings>, updated: bool) -> Value {
    let differences: Vec<Value> = findings
        .iter()
        .flat_map(|findings| &findings.differences)
        .map(|difference| {
            json!({
                "cell": difference.cell,
                "figure": difference.figure,
                "base": difference.base,
                "now": difference.now,
                "delta": difference.now as i64 - difference.base as i64,
                "meaning": difference.meaning.name(),
            })
        })
        .collect();
    json!({
        "file": file,
        "base": base,
        "compared": findings.is_some(),
        "updated": updated,
        "regressions": findings.map_or(0, Findings::regressions),
        "improvements": findings.map_or(0, |findings| findings.of(Meaning::Improvement)),
        "differences": differences,
        "failures": findings.map_or(&[][..], |findings| &findings.failures),
        "notes": findings.map_or(&[][..], |findings| &findings.notes),
    })
}
