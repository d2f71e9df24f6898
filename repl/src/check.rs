//! `vramlab check FILE --against BASE`: the figures of each cell against those of a kept run, for CI.
//!
//! The figures are bytes that the rules decide, so a base from one machine holds on another. A base is what
//! `--update` wrote, or the lines of `vramlab run --json`.

use crate::face::Face;
use crate::options::Options;
use crate::{signals, source};
use serde_json::{Value, json};
use std::process::ExitCode;
use vramlab_session::report::{mib, signed};
use vramlab_session::{CellResult, Content, Event, MemoryReport, Session, Table, parse_bytes};

/// One compared figure.
struct Figure {
    /// The key in a base, as in `run --json`.
    key: &'static str,
    /// The word in tables.
    name: &'static str,
    of: fn(&MemoryReport) -> u64,
}

/// What is compared, in the order in which it is shown.
static FIGURES: [Figure; 4] = [
    Figure {
        key: "peak_bytes_in_use_cell",
        name: "peak",
        of: |memory| memory.peak_bytes_in_use_cell,
    },
    Figure { key: "requested_bytes", name: "arrays", of: |memory| memory.requested_bytes },
    Figure { key: "bytes_in_use", name: "in use", of: |memory| memory.bytes_in_use },
    Figure { key: "pool_bytes", name: "pool", of: |memory| memory.pool_bytes },
];

/// One cell of a run, kept or present.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cell {
    source: String,
    status: String,
    /// In the order of [`FIGURES`].
    figures: Vec<u64>,
    mode: String,
    limit: u64,
}

/// How much more is no regression.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tolerance {
    Bytes(u64),
    /// Of the base, as a part.
    Part(f64),
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Regression,
    Within,
    Improvement,
}

/// One figure of one cell that is not as it was.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    cell: usize,
    figure: &'static str,
    base: u64,
    now: u64,
    meaning: Meaning,
}

/// What a comparison found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    differences: Vec<Difference>,
    /// Cells that fail now and did not.
    failures: Vec<String>,
    /// What the reader should know: cells that changed, appeared, went, or work now.
    notes: Vec<String>,
}

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

impl Cell {
    fn of(source: &str, result: &CellResult) -> Cell {
        let memory = &result.memory;
        Cell {
            source: source.to_string(),
            status: result.status.name().to_string(),
            figures: FIGURES.iter().map(|figure| (figure.of)(memory)).collect(),
            mode: memory.mode.clone(),
            limit: memory.bytes_limit,
        }
    }

    /// A cell of a base: the same keys whether it is compact or a line of `run --json`.
    fn read(value: &Value) -> Option<Cell> {
        let memory = value.get("memory")?;
        let figure = |figure: &Figure| memory.get(figure.key)?.as_u64();
        Some(Cell {
            source: value.get("source")?.as_str()?.to_string(),
            status: value.get("status")?.as_str()?.to_string(),
            figures: FIGURES.iter().map(figure).collect::<Option<_>>()?,
            mode: memory.get("mode")?.as_str()?.to_string(),
            limit: memory.get("bytes_limit")?.as_u64()?,
        })
    }

    fn kept(&self, number: usize) -> String {
        let mut memory = json!({ "mode": self.mode, "bytes_limit": self.limit });
        for (figure, bytes) in FIGURES.iter().zip(&self.figures) {
            memory[figure.key] = (*bytes).into();
        }
        json!({ "cell": number, "source": self.source, "status": self.status, "memory": memory })
            .to_string()
    }
}

/// The base as it is written: one cell a line, so that a change shows as a line of a diff.
fn kept(cells: &[Cell]) -> String {
    let lines = cells.iter().enumerate().map(|(index, cell)| cell.kept(index + 1) + "\n");
    lines.collect()
}

fn read_base(text: &str) -> Result<Vec<Cell>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let cells: Vec<Cell> = lines
        .map(|(index, line)| {
            let value: Value = serde_json::from_str(line)
                .map_err(|why| format!("line {} is no JSON ({why})", index + 1))?;
            Cell::read(&value).ok_or(format!(
                "line {} is no cell of `vramlab run --json` or of `vramlab check --update`",
                index + 1
            ))
        })
        .collect::<Result<_, String>>()?;
    match cells.is_empty() {
        true => Err("it holds no cell".into()),
        false => Ok(cells),
    }
}

impl Tolerance {
    fn parse(text: &str) -> Result<Tolerance, String> {
        let wrong = || format!("--tolerance: `{text}` is neither a part (1%) nor a size (4MiB)");
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            let sound = percent.is_finite() && percent >= 0.0;
            return sound.then_some(Tolerance::Part(percent / 100.0)).ok_or_else(wrong);
        }
        parse_bytes(text).map(Tolerance::Bytes).map_err(|_| wrong())
    }

    fn covers(self, base: u64, now: u64) -> bool {
        let more = now.saturating_sub(base);
        match self {
            Tolerance::Bytes(bytes) => more <= bytes,
            Tolerance::Part(part) => more as f64 <= part * base as f64,
        }
    }
}

fn compare(base: &[Cell], now: &[Cell], tolerance: Tolerance) -> Findings {
    let mut findings = Findings::default();
    for (index, (base, now)) in base.iter().zip(now).enumerate() {
        findings.compare_cell(index + 1, base, now, tolerance);
    }
    match (base.len(), now.len()) {
        (before, after) if after > before => findings.notes.push(format!(
            "{} more cells than the base has ({before}); --update takes them in",
            after - before
        )),
        (before, after) if after < before => findings
            .notes
            .push(format!("{} cells of the base ({before}) are not run here", before - after)),
        _ => {}
    }
    findings
}

impl Findings {
    fn compare_cell(&mut self, cell: usize, base: &Cell, now: &Cell, tolerance: Tolerance) {
        if base.source != now.source {
            self.notes.push(format!("cell {cell}: its text is not that of the base"));
        }
        match (base.status == "ok", now.status == "ok") {
            (true, false) => self.failures.push(format!("cell {cell} fails and did not")),
            (false, true) => self.notes.push(format!("cell {cell} works and did not")),
            _ => {}
        }
        if base.mode != now.mode {
            self.notes.push(format!("cell {cell}: mode {}, in the base {}", now.mode, base.mode));
        } else if base.limit != now.limit {
            let (now, base) = (mib(now.limit), mib(base.limit));
            self.notes.push(format!(
                "cell {cell}: limit {now}, in the base {base}; --capacity makes them equal"
            ));
        }
        for (figure, (base, now)) in FIGURES.iter().zip(base.figures.iter().zip(&now.figures)) {
            let (base, now) = (*base, *now);
            let meaning = match now > base {
                true if tolerance.covers(base, now) => Meaning::Within,
                true => Meaning::Regression,
                false => Meaning::Improvement,
            };
            if base != now {
                let figure = figure.name;
                self.differences.push(Difference { cell, figure, base, now, meaning });
            }
        }
    }

    fn of(&self, meaning: Meaning) -> usize {
        self.differences.iter().filter(|difference| difference.meaning == meaning).count()
    }

    fn regressions(&self) -> usize {
        self.of(Meaning::Regression) + self.failures.len()
    }
}

impl Meaning {
    const fn name(self) -> &'static str {
        match self {
            Meaning::Regression => "more",
            Meaning::Within => "within tolerance",
            Meaning::Improvement => "less",
        }
    }
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
        (0, 0) => format!("as in the base: {cells} cells"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(peak: u64, status: &str) -> Cell {
        Cell {
            source: "let a = zeros([4]);".into(),
            status: status.into(),
            figures: vec![peak, 4, 4, 100],
            mode: "ondemand".into(),
            limit: 1 << 30,
        }
    }

    #[test]
    fn tolerances_are_read() {
        assert_eq!(Tolerance::parse("1%"), Ok(Tolerance::Part(0.01)));
        assert_eq!(Tolerance::parse("4MiB"), Ok(Tolerance::Bytes(4 << 20)));
        for wrong in ["", "%", "-1%", "NaN%", "inf%", "much", "1 percent"] {
            assert!(Tolerance::parse(wrong).is_err(), "{wrong}");
        }
        assert!(
            Tolerance::Part(0.01).covers(1000, 1010) && !Tolerance::Part(0.01).covers(1000, 1011)
        );
        assert!(Tolerance::Bytes(0).covers(7, 7) && !Tolerance::Bytes(0).covers(7, 8));
        assert!(!Tolerance::Part(0.5).covers(0, 1));
    }

    #[test]
    fn what_is_kept_reads_back() {
        let cells = [cell(8, "ok"), cell(9, "error")];
        assert_eq!(read_base(&kept(&cells)).expect("a base"), cells);
        for wrong in ["", "{}", "[1]", "{\"source\":\"x\",\"status\":\"ok\",\"memory\":{}}", "x"] {
            assert!(read_base(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn more_is_a_regression_and_less_an_improvement() {
        let base = [cell(8, "ok"), cell(8, "ok"), cell(8, "error"), cell(8, "ok")];
        let now = [cell(9, "ok"), cell(7, "ok"), cell(8, "ok"), cell(8, "error")];
        let findings = compare(&base, &now, Tolerance::Bytes(0));
        assert_eq!(findings.regressions(), 2);
        assert_eq!(findings.failures, ["cell 4 fails and did not"]);
        assert_eq!(findings.notes, ["cell 3 works and did not"]);
        assert_eq!(findings.of(Meaning::Improvement), 1);
        let findings = compare(&base[..1], &now[..1], Tolerance::Bytes(1));
        assert_eq!((findings.regressions(), findings.of(Meaning::Within)), (0, 1));
    }

    #[test]
    fn changed_cells_are_said() {
        let mut changed = cell(8, "ok");
        changed.source = "other".into();
        changed.mode = "platform".into();
        let findings = compare(&[cell(8, "ok")], &[changed, cell(1, "ok")], Tolerance::Bytes(0));
        assert_eq!(findings.regressions(), 0);
        assert_eq!(findings.notes.len(), 3, "{:?}", findings.notes);
    }
}
