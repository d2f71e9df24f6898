//! An export into a file: whole or not at all.

use crate::interrupt::Interrupt;
use crate::report;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use vramlab_export::{Executable, Format, Recording};
use vramlab_runtime::Context;

/// Writes the device's memory and its events; says what was written.
///
/// A file that was there is replaced, and the answer says so; it stays as it was when writing fails.
///
/// # Errors
/// In words, with the path: it cannot be written, or the user stopped it.
pub(crate) fn to_file(
    context: &Context,
    format: &Format,
    path: &str,
    interrupt: &Interrupt,
) -> Result<String, String> {
    let wrong = |error: io::Error| format!("{path}: {}", in_words(&error));
    let target = Target::of(path).map_err(wrong)?;
    let file = target.open().map_err(wrong)?;
    let mut out = Counted { out: BufWriter::with_capacity(1 << 16, file), bytes: 0, interrupt };
    let written = write(context, format, &mut out).and_then(|what| out.flush().map(|()| what));
    let bytes = out.bytes;
    drop(out);
    let what = written.and_then(|what| target.keep().map(|()| what)).map_err(|error| {
        target.discard();
        wrong(error)
    })?;
    let before = if target.replaces { " (the file that was there is replaced)" } else { "" };
    Ok(format!("{what} in {}: {path}{before}", report::size(bytes)))
}

fn write(context: &Context, format: &Format, out: &mut dyn Write) -> io::Result<String> {
    let caches = context.caches();
    let executables: Vec<Executable> = caches
        .into_iter()
        .map(|entry| Executable { name: entry.names.join(", "), bytes: entry.code_bytes })
        .collect();
    let device = context.device_name();
    let now_ns = context.clock_ns();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let epoch_ns = since_1970.map_or(0, |now| (now.as_nanos() as u64).saturating_sub(now_ns));
    context.with_heap(|heap| {
        let executables = &executables;
        let recording = Recording { heap, device: &device, executables, epoch_ns, now_ns };
        (format.write)(&recording, out)
    })
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such folder".into(),
        io::ErrorKind::IsADirectory => "is a folder; name a file in it".into(),
        _ => error.to_string(),
    }
}

/// Where the bytes go: a file beside the one that is meant, which takes its place at the end. What is no file (a pipe,
/// `/dev/stdout`) is written as it is.
struct Target {
    path: PathBuf,
    beside: Option<PathBuf>,
    replaces: bool,
}

impl Target {
    fn of(path: &str) -> io::Result<Target> {
        // A link stays a link; what it points to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => Ok(Target { path, beside: None, replaces: false }),
            Ok(_) => Ok(Target { beside: Some(beside(&path)), path, replaces: true }),
            Err(_) => Ok(Target { beside: Some(beside(&path)), path, replaces: false }),
        }
    }

    fn open(&self) -> io::Result<File> {
        match &self.beside {
            Some(beside) => File::create(beside),
            None => File::options().write(true).open(&self.path),
        }
    }

    fn keep(&self) -> io::Result<()> {
        self.beside.as_ref().map_or(Ok(()), |beside| fs::rename(beside, &self.path))
    }

    fn discard(&self) {
        if let Some(beside) = &self.beside {
            // What went wrong before is what the user is told.
            let _ = fs::remove_file(beside);
        }
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".part-{}", std::process::id()));
    path.with_file_name(name)
}

/// Counts what goes through, and stops when the user asks.
struct Counted<'a> {
    out: BufWriter<File>,
    bytes: u64,
    interrupt: &'a Interrupt,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupt.is_raised() {
            return Err(io::Error::other("stopped; nothing was written"));
        }
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
