//! The table that PyTorch's `memory_summary()` prints: what this process allocated and reserved, now and at most.

use crate::clean::Text;
use crate::quantity::{digits, number};
use crate::{Diagnosis, Kind, Name, Quantity, Verdict, show};

/// Rows of the table, in its own words, and the figures in their columns "current" and "peak".
const ROWS: [(&str, Option<Name>, Option<Name>); 3] = [
    ("Allocated memory", Some(Name::InUse), Some(Name::PeakInUse)),
    ("GPU reserved memory", Some(Name::Reserved), None),
    ("Requested memory", Some(Name::Requested), None),
];

/// What the table says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    figures: Vec<(Name, Quantity)>,
    device: Option<u64>,
    ooms: u64,
    retries: u64,
}

/// The first table of a text.
pub(crate) fn read(text: &Text) -> Option<Summary> {
    if !text.has(&["memorysummary,deviceid"]) {
        return None;
    }
    let mut summary = Summary::default();
    let mut tables = 0;
    for line in text.unprefixed() {
        if let Some((_, rest)) = line.split_once("memory summary, device ID ") {
            tables += 1;
            summary.device = summary.device.or_else(|| number(rest));
        }
        // Each device has its own table.
        if tables == 1 {
            summary.row(line);
        }
    }
    Some(summary).filter(|summary| !summary.figures.is_empty())
}

impl Summary {
    fn row(&mut self, line: &str) {
        let count = |label: &str| {
            let (_, rest) = line.split_once(label)?;
            number(rest.trim_start())
        };
        self.ooms = count("CUDA OOMs:").unwrap_or(self.ooms);
        self.retries = count("cudaMalloc retries:").unwrap_or(self.retries);
        let mut cells = line.split('|').map(str::trim).filter(|cell| !cell.is_empty());
        let Some(label) = cells.next() else { return };
        let Some((_, current, peak)) = ROWS.iter().find(|row| row.0 == label) else { return };
        // A row that was cut has not all of its columns.
        let cells: Vec<_> = cells.map(floored).collect();
        if let [now, most, ..] = cells.as_slice()
            && cells.len() == 4
        {
            for (name, figure) in [(current, now), (peak, most)] {
                let known = |name: &Name| self.figures.iter().any(|(known, _)| known == name);
                if let (Some(name), Some(figure)) = (name.filter(|n| !known(n)), figure) {
                    self.figures.push((name, *figure));
                }
            }
        }
    }

    /// Adds what the table knows and the text beside it does not say.
    pub fn beside(&self, d: &mut Diagnosis) {
        if d.kind == Kind::HostError {
            return;
        }
        for (name, figure) in &self.figures {
            d.figures.complete(*name, Some(*figure));
        }
        if let Some(device) = self.device {
            d.counts.entry("device_index").or_insert(device);
        }
        if let (Some(reserved), Some(in_use)) =
            (d.figures.get(Name::Reserved), d.figures.get(Name::InUse))
        {
            d.figures.complete(Name::IdleReserved, Some(reserved.minus(in_use)));
        }
        if self.retries > 0 {
            d.notes.push(format!(
                "the allocator gave its cache back and tried again {} times before: it ran at the limit",
                self.retries
            ));
        }
    }

    /// The diagnosis of a table alone.
    pub fn diagnosis(&self) -> Diagnosis {
        let failed = self.ooms > 0;
        let verdict = if failed { Verdict::CannotTell } else { Verdict::NoFailure };
        let mut d = Diagnosis::new(Kind::Counters, "PyTorch memory summary", verdict);
        self.beside(&mut d);
        let say = |name| d.figures.get(name).map_or("?".to_string(), show);
        d.because = format!(
            "{}: {} allocated, {} reserved; {}",
            if failed { "a request failed" } else { "a snapshot" },
            say(Name::InUse),
            say(Name::Reserved),
            if failed {
                "what was asked for and what was free are not in it"
            } else {
                "nothing failed"
            }
        );
        d.absent = [
            "how much was asked for",
            "what the device has, and what was free",
            "the largest free block",
            "other processes",
            "what is alive and which line made it",
        ]
        .map(String::from)
        .to_vec();
        d.advice = vec![
            "torch.cuda.memory._record_memory_history()  # then _dump_snapshot(\"oom.pickle\"), to see what is alive"
                .into(),
        ];
        d
    }
}

/// `  20480 KiB`: the table drops what is left of a division, so the truth is up to one unit above.
fn floored(cell: &str) -> Option<Quantity> {
    let whole = number(cell)?;
    let unit = cell[digits(cell)..].trim();
    let shift = match unit {
        "B" => 0,
        "KiB" | "KB" => 10,
        "MiB" | "MB" => 20,
        "GiB" | "GB" => 30,
        "TiB" | "TB" => 40,
        _ => return None,
    };
    let bytes = whole.checked_mul(1 << shift)?;
    Some(Quantity { bytes, tolerance: if shift == 0 { 0 } else { 1 << shift } })
}
