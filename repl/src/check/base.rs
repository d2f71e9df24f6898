//! A kept run: the cells of a base, written and read.

use serde_json::{Value, json};
use vramlab_session::{CellResult, MemoryReport};

/// One compared figure.
pub struct Figure {
    /// The key in a base, as in `run --json`.
    pub key: &'static str,
    /// The word in tables.
    pub name: &'static str,
    pub of: fn(&MemoryReport) -> u64,
}

/// What is compared, in the order in which it is shown.
pub static FIGURES: [Figure; 4] = [
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
pub struct Cell {
    pub source: String,
    pub status: String,
    /// In the order of [`FIGURES`].
    pub figures: Vec<u64>,
    pub mode: String,
    pub limit: u64,
}

impl Cell {
    pub fn of(source: &str, result: &CellResult) -> Cell {
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
    pub fn read(value: &Value) -> Option<Cell> {
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

    pub fn kept(&self, number: usize) -> String {
        let mut memory = json!({ "mode": self.mode, "bytes_limit": self.limit });
        for (figure, bytes) in FIGURES.iter().zip(&self.figures) {
            memory[figure.key] = (*bytes).into();
        }
        json!({ "cell": number, "source": self.source, "status": self.status, "memory": memory })
            .to_string()
    }
}

/// The base as it is written: one cell a line, so that a change shows as a line of a diff.
pub fn kept(cells: &[Cell]) -> String {
    let lines = cells.iter().enumerate().map(|(index, cell)| cell.kept(index + 1) + "\n");
    lines.collect()
}

pub fn read_base(text: &str) -> Result<Vec<Cell>, String> {
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

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A cell with this peak.
    pub fn cell(peak: u64, status: &str) -> Cell {
        Cell {
            source: "let a = zeros([4]);".into(),
            status: status.into(),
            figures: vec![peak, 4, 4, 100],
            mode: "ondemand".into(),
            limit: 1 << 30,
        }
    }

    #[test]
    fn what_is_kept_reads_back() {
        let cells = [cell(8, "ok"), cell(9, "error")];
        assert_eq!(read_base(&kept(&cells)).expect("a base"), cells);
        for wrong in ["", "{}", "[1]", "{\"source\":\"x\",\"status\":\"ok\",\"memory\":{}}", "x"] {
            assert!(read_base(wrong).is_err(), "{wrong}");
        }
    }
}
