//! Tables of `nvidia-smi`: the boxes that it draws, its CSV, and the long form of `-q`. A snapshot: it tells who holds what
//! now, not what failed.

use crate::clean::Text;
use crate::quantity::{digits, number};
use crate::{Certainty, Diagnosis, Kind, Name, Process, Quantity, Verdict, show};
use vramlab_memory::Verdict as Live;

/// A device, or a slice of one.
#[derive(Clone, Debug)]
struct Device {
    index: Option<u64>,
    name: String,
    /// The GPU instance where this is a MIG slice.
    instance: Option<u64>,
    used: Quantity,
    total: Quantity,
}

#[derive(Clone, Debug)]
struct Row {
    device: Option<u64>,
    process: Process,
}

/// What the tables in a text say; empty where there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    devices: Vec<Device>,
    rows: Vec<Row>,
}

pub(crate) fn read(text: &Text) -> Table {
    let mut table = Table::default();
    for part in [boxes(text), comma_separated(text), long(text)] {
        if table.devices.is_empty() {
            table.devices = part.devices;
        }
        if table.rows.is_empty() {
            table.rows = part.rows;
        }
    }
    table
}

impl Table {
    /// The processes on one device; all of them where the table has one device only, or the text does not say which.
    pub fn processes_of(&self, device: Option<u64>) -> Vec<Process> {
        let single = self.devices.iter().filter(|d| d.instance.is_none()).count() < 2;
        let here = |row: &&Row| single || device.is_none() || row.device == device;
        self.rows.iter().filter(here).map(|row| row.process.clone()).collect()
    }

    /// The device that matters: a slice where there are slices (the slice is the limit), the fullest of several.
    fn fullest(&self) -> Option<&Device> {
        let slices = self.devices.iter().any(|d| d.instance.is_some());
        let candidates = self.devices.iter().filter(|d| d.instance.is_some() == slices);
        candidates.max_by(|a, b| filled(a).total_cmp(&filled(b)))
    }

    /// The whole card of a slice.
    fn card_of<'a>(&'a self, device: &'a Device) -> &'a Device {
        let card = |d: &&Device| d.instance.is_none() && d.index == device.index;
        self.devices.iter().find(card).unwrap_or(device)
    }

    /// The diagnosis of a table alone.
    pub fn diagnosis(&self) -> Option<Diagnosis> {
        let mut d = Diagnosis::new(Kind::DriverTable, "nvidia-smi table", Verdict::NoFailure);
        match self.fullest() {
            Some(device) => {
                self.give_device(device, &mut d);
                let slice = if device.instance.is_some() { "the MIG slice" } else { "the device" };
                d.because = format!(
                    "a snapshot: {} of {} are in use on {slice}; that anything failed is not said",
                    show(device.used),
                    show(device.total)
                );
            }
            None if self.rows.is_empty() => return None,
            None => d.because = "a snapshot: that anything failed is not said".into(),
        }
        d.absent = [
            "how much was asked for",
            "whether anything failed",
            "the largest free block",
            "memory that each process holds idle in its cache",
            "which process is yours",
        ]
        .map(String::from)
        .to_vec();
        if self.rows.is_empty() {
            d.notes.push(
                "an empty list does not mean nobody: processes of other containers and users are not shown".into(),
            );
        }
        if self.devices.iter().any(|d| d.instance.is_some()) {
            d.notes.push("MIG: the instance is the limit, not the card".into());
        }
        d.notes.push("a process's figure includes its idle cache and its context".into());
        d.advice = vec![
            "echo $$; nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"
                .into(),
            "compare your pid: what the others hold is not yours to free".into(),
        ];
        self.beside(&mut d);
        Some(d)
    }

    fn give_device(&self, device: &Device, d: &mut Diagnosis) {
        d.figures.complete(Name::Limit, Some(device.total));
        d.figures.complete(Name::DeviceTotal, Some(self.card_of(device).total));
        d.figures.complete(Name::InUse, Some(device.used));
        d.figures.complete(Name::Free, Some(device.total.minus(device.used)));
        if let Some(index) = device.index {
            d.counts.entry("device_index").or_insert(index);
        }
    }

    /// Adds what the table knows to the diagnosis of the text beside it.
    pub fn beside(&self, d: &mut Diagnosis) {
        if self.devices.is_empty() && self.rows.is_empty() {
            return;
        }
        let device = d.counts.get("device_index").copied();
        if d.processes.is_empty() {
            d.processes = self.processes_of(device);
        }
        match d.kind {
            Kind::DriverTable | Kind::PytorchSentence => {}
            Kind::JaxError | Kind::DeviceError => self.weigh(d),
            _ => return,
        }
        if d.kind == Kind::PytorchSentence {
            d.grammar.push_str(", nvidia-smi table beside it");
            d.notes.push(
                "the table's total counts memory that the driver keeps for itself; the sentence's does not".into(),
            );
            self.mind_slices(d);
        }
    }

    /// A sentence that names a card's total while the table shows slices.
    fn mind_slices(&self, d: &mut Diagnosis) {
        if self.devices.iter().any(|d| d.instance.is_some()) {
            d.notes.push("MIG: the instance is the limit, not the card".into());
        }
    }

    /// An error without the device's figures, and a table that has them.
    fn weigh(&self, d: &mut Diagnosis) {
        let Some(device) = self.fullest() else { return };
        let (total, free) = (device.total, device.total.minus(device.used));
        d.figures.complete(Name::DeviceTotal, Some(self.card_of(device).total));
        if d.kind == Kind::DeviceError {
            d.figures.complete(Name::InUse, Some(device.used));
        }
        d.figures.complete(Name::Limit, Some(total));
        d.figures.complete(Name::Free, Some(free));
        let needs = [Name::Asked, Name::Total].into_iter().filter_map(|name| d.figures.get(name));
        let Some(needs) = needs.max_by_key(|q| q.bytes) else { return };
        if d.verdict == Verdict::CannotTell && needs.bytes > total.bytes {
            d.verdict = Verdict::Failure(Live::TooBig);
            d.certainty = Certainty::Shown;
            d.because = format!("{} are needed, the device has {}", show(needs), show(total));
        }
    }
}

fn filled(device: &Device) -> f64 {
    device.used.bytes as f64 / device.total.bytes.max(1) as f64
}

/// The drawn boxes of any width.
fn boxes(text: &Text) -> Table {
    let mut table = Table::default();
    let mut head: Option<(u64, String)> = None;
    let mut in_slices = false;
    for line in text.unprefixed() {
        // Without its left edge, which looks like the frame of a traceback.
        let cells: Vec<&str> = line.split(['|', '│']).map(str::trim).collect();
        if cells.len() < 2 {
            continue;
        }
        in_slices |= cells.iter().any(|cell| cell.starts_with("MIG devices"));
        in_slices &= !cells.iter().any(|cell| cell.starts_with("Processes"));
        let words: Vec<&str> = cells[0].split_whitespace().collect();
        let memory = cells.iter().find_map(|cell| used_of(cell));
        match (memory, head.take()) {
            (Some((used, total)), _) if in_slices => {
                if let (Some(index), Some(instance)) = (word(&words, 0), word(&words, 1)) {
                    let (index, instance) = (Some(index), Some(instance));
                    let device = Device { index, name: "MIG".into(), instance, used, total };
                    table.devices.push(device);
                }
            }
            (Some((used, total)), head) => {
                let (index, name) = head.map_or((None, String::new()), |(i, n)| (Some(i), n));
                table.devices.push(Device { index, name, instance: None, used, total });
            }
            (None, _) => {
                if let Some(row) = process_row(&words) {
                    table.rows.push(row);
                } else if let Some(index) = word(&words, 0).filter(|_| words.len() > 1) {
                    head = Some((index, words[1..].join(" ")));
                }
            }
        }
    }
    table.devices.retain(|device| device.total.bytes > 0 || !device.name.is_empty());
    table
}

fn word(words: &[&str], at: usize) -> Option<u64> {
    words.get(at)?.parse().ok()
}

/// `38214MiB / 40960MiB`
fn used_of(cell: &str) -> Option<(Quantity, Quantity)> {
    let (used, total) = cell.split_once('/')?;
    let used = used.split_whitespace().next_back()?;
    Some((mebibytes(used)?, mebibytes(total.split_whitespace().next()?)?))
}

/// `38214MiB`. The tool rounds to whole mebibytes.
fn mebibytes(word: &str) -> Option<Quantity> {
    let length = digits(word);
    let megabytes = matches!(&word[length..], "MiB" | "MB");
    let bytes = number(word).filter(|_| megabytes)?.checked_mul(1 << 20)?;
    Some(Quantity { bytes, tolerance: 1 << 20 })
}

/// `0 N/A N/A 18734 C python 33706MiB`, and without the two columns of instances.
fn process_row(words: &[&str]) -> Option<Row> {
    let kind = words.iter().position(|w| matches!(*w, "C" | "G" | "C+G" | "M+C"))?;
    let pid = word(words, kind.checked_sub(1)?)?;
    let device = word(words, 0);
    let last = words.last()?;
    let held = mebibytes(last);
    if held.is_none() && *last != "N/A" {
        return None;
    }
    let name = words.get(kind + 1..words.len() - 1).unwrap_or(&[]).join(" ");
    let process = Process { pid, held, name: Some(name).filter(|n| !n.is_empty()), ours: None };
    Some(Row { device, process })
}

/// `--query-gpu=… --format=csv` and `--query-compute-apps=… --format=csv`.
fn comma_separated(text: &Text) -> Table {
    let mut table = Table::default();
    let mut columns: Vec<String> = Vec::new();
    for line in text.unprefixed() {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let head = cells.iter().any(|c| {
            c.starts_with("memory.total")
                || c.starts_with("used_gpu_memory")
                || c.starts_with("used_memory")
        });
        if head {
            columns = cells.iter().map(|c| c.to_string()).collect();
            continue;
        }
        if columns.is_empty() || cells.len() != columns.len() {
            continue;
        }
        let cell = |name: &str| {
            let at = columns.iter().position(|c| c.split_whitespace().next() == Some(name))?;
            cells.get(at).copied()
        };
        let memory = |name: &str| {
            mebibytes(&cell(name)?.replace(' ', "")).or_else(|| {
                let in_mebibytes =
                    columns.iter().any(|c| c.starts_with(name) && c.contains("[MiB]"));
                let bytes = number(cell(name)?).filter(|_| in_mebibytes)?.checked_mul(1 << 20)?;
                Some(Quantity { bytes, tolerance: 1 << 20 })
            })
        };
        if let Some(total) = memory("memory.total") {
            let used = memory("memory.used").or_else(|| Some(total.minus(memory("memory.free")?)));
            let index = cell("index").and_then(|i| i.parse().ok());
            let name = cell("name").unwrap_or("device").to_string();
            if let Some(used) = used {
                table.devices.push(Device { index, name, instance: None, used, total });
            }
        } else if let Some(pid) = cell("pid").and_then(|p| p.parse().ok()) {
            let held = memory("used_gpu_memory").or_else(|| memory("used_memory"));
            let name = cell("process_name").or_else(|| cell("name")).map(String::from);
            let process = Process { pid, held, name, ours: None };
            table.rows.push(Row { device: None, process });
        }
    }
    table
}

/// `nvidia-smi -q`: one `Key : value` a line.
fn long(text: &Text) -> Table {
    let mut table = Table::default();
    let (mut section, mut total, mut name) = (String::new(), None, None);
    for line in text.unprefixed() {
        let Some((key, value)) = line.split_once(" : ") else {
            section = line.trim().to_string();
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        let memory = || mebibytes(&value.replace(' ', ""));
        match key {
            "Total" if section == "FB Memory Usage" => total = memory(),
            "Used" if section == "FB Memory Usage" => {
                if let (Some(total), Some(used)) = (total.take(), memory()) {
                    let index = Some(table.devices.len() as u64);
                    table.devices.push(Device {
                        index,
                        name: "device".into(),
                        instance: None,
                        used,
                        total,
                    });
                }
            }
            "Process ID" => {
                if let Ok(pid) = value.parse() {
                    let device = table.devices.len().checked_sub(1).map(|n| n as u64);
                    let process = Process { pid, held: None, name: None, ours: None };
                    table.rows.push(Row { device, process });
                }
            }
            "Name" => name = Some(value.to_string()),
            "Used GPU Memory" => {
                if let Some(row) = table.rows.last_mut() {
                    (row.process.held, row.process.name) = (memory(), name.take());
                }
            }
            _ => {}
        }
    }
    table
}
