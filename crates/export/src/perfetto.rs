//! A Chrome trace (the JSON object format of the Trace Event Format), which Perfetto opens.
//!
//! One process, the device. Counters: `arrays` (bytes asked for), `in use` and `pool`. Threads: cells and named scopes
//! as slices; compiles and cache entries, and what happened to the pool (regions, refusals, OOM, switches), as
//! instants. Kernels are not among the events of a ledger, so there are no slices for them. Times are microseconds
//! since the session began. A cell that has not ended lasts until the export.

use crate::fold::Fold;
use crate::json::{Micros, Quoted};
use crate::recording::Recording;
use std::io::{self, Write};
use vramlab_memory::ledger::{Event, EventKind, TextId};

/// The rows of the picture.
#[derive(Clone, Copy)]
enum Thread {
    Cells = 1,
    Scopes = 2,
    Compiler = 3,
    Pool = 4,
}

const THREADS: [(Thread, &str); 4] = [
    (Thread::Cells, "cells"),
    (Thread::Scopes, "scopes"),
    (Thread::Compiler, "compiler"),
    (Thread::Pool, "pool"),
];

pub(crate) fn write(recording: &Recording<'_>, out: &mut dyn Write) -> io::Result<String> {
    let ledger = recording.ledger();
    let start_ns = ledger.events().next().map_or(0, |event| event.time_ns);
    let mut trace = Trace {
        recording,
        fold: Fold::at_start(recording),
        out,
        open: Vec::new(),
        start_ns,
        count: 0,
        shown: [u64::MAX; 3],
    };
    trace.head()?;
    trace.counters(start_ns)?;
    for event in ledger.events() {
        trace.event(event)?;
    }
    trace.close_all()?;
    let count = trace.count;
    trace.out.write_all(b"\n]}\n")?;
    Ok(format!("{count} trace events"))
}

struct Trace<'a, 'b> {
    recording: &'a Recording<'a>,
    fold: Fold,
    out: &'b mut dyn Write,
    /// Cells and scopes that have begun: their thread, name and time.
    open: Vec<(Thread, TextId, u64)>,
    start_ns: u64,
    count: u64,
    /// The counters as they were last written.
    shown: [u64; 3],
}

impl Trace<'_, '_> {
    fn head(&mut self) -> io::Result<()> {
        let device = self.recording.device;
        let epoch = self.recording.epoch_ns;
        write!(
            self.out,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"device\":{},\"epoch_ns\":\"{epoch}\"}},\"traceEvents\":[",
            Quoted(device)
        )?;
        let name = Quoted(&format!("device {device}")).to_string();
        self.put(format_args!(
            "\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\",\"args\":{{\"name\":{name}}}"
        ))?;
        for (thread, name) in THREADS {
            let tid = thread as u32;
            self.put(format_args!(
                "\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}"
            ))?;
        }
        Ok(())
    }

    fn put(&mut self, fields: std::fmt::Arguments<'_>) -> io::Result<()> {
        let comma = if self.count == 0 { "" } else { "," };
        self.count += 1;
        write!(self.out, "{comma}\n{{{fields}}}")
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.fold.apply(event);
        let at = event.time_ns;
        match event.kind {
            EventKind::Alloc | EventKind::Free | EventKind::Migrate => {}
            EventKind::OwnerChange => return Ok(()),
            EventKind::CellBegin => self.open.push((Thread::Cells, event.text, at)),
            EventKind::ScopeBegin => self.open.push((Thread::Scopes, event.text, at)),
            EventKind::CellEnd | EventKind::ScopeEnd => self.close(event)?,
            EventKind::Compile | EventKind::CacheInsert | EventKind::CacheEvict => {
                self.instant(Thread::Compiler, event)?;
            }
            EventKind::RegionGrow
            | EventKind::RegionRelease
            | EventKind::Map
            | EventKind::Unmap
            | EventKind::DriverRefusal
            | EventKind::ModeSwitch
            | EventKind::Oom
            | EventKind::Reclaim
            | EventKind::BackOff => self.instant(Thread::Pool, event)?,
        }
        self.counters(at)
    }

    /// One track for each figure; what did not change is not written again.
    fn counters(&mut self, at: u64) -> io::Result<()> {
        let now = [self.fold.requested, self.fold.in_use, self.fold.pool];
        for (index, name) in ["arrays", "in use", "pool"].iter().enumerate() {
            if std::mem::replace(&mut self.shown[index], now[index]) != now[index] {
                let (at, bytes) = (Micros(at), now[index]);
                self.put(format_args!(
                    "\"ph\":\"C\",\"pid\":1,\"tid\":0,\"ts\":{at},\"name\":\"{name}\",\"args\":{{\"bytes\":{bytes}}}"
                ))?;
            }
        }
        Ok(())
    }

    /// Ends a slice. One whose begin is no longer kept began before the first kept event.
    fn close(&mut self, event: &Event) -> io::Result<()> {
        let thread = if event.kind == EventKind::CellEnd { Thread::Cells } else { Thread::Scopes };
        let (thread, text, from) = self.open.pop().unwrap_or((thread, event.text, self.start_ns));
        self.slice(thread, text, from, event.time_ns, Some(event.granted))
    }

    fn close_all(&mut self) -> io::Result<()> {
        let last = self.recording.ledger().events().next_back().map_or(0, |event| event.time_ns);
        let now = self.recording.now_ns.max(last);
        while let Some((thread, text, from)) = self.open.pop() {
            self.slice(thread, text, from, now, None)?;
        }
        Ok(())
    }

    fn slice(
        &mut self,
        thread: Thread,
        text: TextId,
        from: u64,
        to: u64,
        peak: Option<u64>,
    ) -> io::Result<()> {
        let text = self.recording.ledger().text_of(text);
        let name = match thread {
            Thread::Cells => format!("cell {text}"),
            _ => text.to_string(),
        };
        let args = match peak {
            Some(peak) => format!("\"peak_bytes_in_use\":{peak}"),
            None => "\"unfinished\":true".to_string(),
        };
        let (tid, name) = (thread as u32, Quoted(&name));
        let (at, lasts) = (Micros(from), Micros(to.saturating_sub(from)));
        self.put(format_args!(
            "\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"ts\":{at},\"dur\":{lasts},\"name\":{name},\"args\":{{{args}}}"
        ))
    }

    fn instant(&mut self, thread: Thread, event: &Event) -> io::Result<()> {
        let text = self.recording.ledger().text_of(event.text);
        let kind = event.kind.name().replace('_', " ");
        let name = if text.is_empty() { kind } else { format!("{kind} {text}") };
        // A failure is drawn across all rows.
        let scope = if event.kind == EventKind::Oom { "g" } else { "t" };
        let (tid, at, name) = (thread as u32, Micros(event.time_ns), Quoted(&name));
        let (asked, granted) = (event.requested, event.granted);
        let (cell, line) = (event.site.cell, event.site.line);
        self.put(format_args!(
            "\"ph\":\"i\",\"pid\":1,\"tid\":{tid},\"ts\":{at},\"s\":\"{scope}\",\"name\":{name},\"args\":{{\
             \"requested_bytes\":{asked},\"granted_bytes\":{granted},\"cell\":{cell},\"line\":{line}}}"
        ))
    }
}
