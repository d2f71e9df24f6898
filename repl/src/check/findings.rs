//! A run against a base: what grew, what shrank, what changed.

use super::base::{Cell, FIGURES};
use vramlab_session::parse_bytes;
use vramlab_session::report::mib;

/// How much more is no regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    Bytes(u64),
    /// Of the base, as a part.
    Part(f64),
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Regression,
    Within,
    Improvement,
}

/// One figure of one cell that is not as it was.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub cell: usize,
    pub figure: &'static str,
    pub base: u64,
    pub now: u64,
    pub meaning: Meaning,
}

/// What a comparison found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub differences: Vec<Difference>,
    /// Cells that fail now and did not.
    pub failures: Vec<String>,
    /// What the reader should know: cells that changed, appeared, went, or work now.
    pub notes: Vec<String>,
}

impl Tolerance {
    pub fn parse(text: &str) -> Result<Tolerance, String> {
        let wrong = || format!("--tolerance: `{text}` is neither a part (1%) nor a size (4MiB)");
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            let sound = percent.is_finite() && percent >= 0.0;
            return sound.then_some(Tolerance::Part(percent / 100.0)).ok_or_else(wrong);
        }
        parse_bytes(text).map(Tolerance::Bytes).map_err(|_| wrong())
    }

    pub fn covers(self, base: u64, now: u64) -> bool {
        let more = now.saturating_sub(base);
        match self {
            Tolerance::Bytes(bytes) => more <= bytes,
            Tolerance::Part(part) => more as f64 <= part * base as f64,
        }
    }
}

pub fn compare(base: &[Cell], now: &[Cell], tolerance: Tolerance) -> Findings {
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
    pub fn compare_cell(&mut self, cell: usize, base: &Cell, now: &Cell, tolerance: Tolerance) {
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

    pub fn of(&self, meaning: Meaning) -> usize {
        self.differences.iter().filter(|difference| difference.meaning == meaning).count()
    }

    pub fn regressions(&self) -> usize {
        self.of(Meaning::Regression) + self.failures.len()
    }
}

impl Meaning {
    pub const fn name(self) -> &'static str {
        match self {
            Meaning::Regression => "more",
            Meaning::Within => "within tolerance",
            Meaning::Improvement => "less",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::base::tests::cell;
    use super::*;

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
