//! Finding or making the device of a name.

use super::folder::{Folder, make_private, own_user};
use super::layout::{self, Content, Death, Header, SLOTS, Slot};
use super::seat::{Seat, bury, now};
use super::{check_name, locks};
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use vramlab_memory::{GIB, MIB, format_bytes};

/// What is asked of [`join`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// The device's name.
    pub name: String,
    /// Whether it carries shapes without data; the two kinds have names of their own.
    pub dry: bool,
    /// The size that the user asked for; who joins without one takes the device as it is.
    pub capacity: Option<u64>,
    /// The size of a device that nobody asked a size for.
    pub usual_capacity: u64,
    /// Where the ledger may lie, best first. Each is made if only the folder around it exists.
    pub folders: Vec<PathBuf>,
    /// What this process calls itself before the others.
    pub process: String,
}

/// A place at the device, and what the user should know about it.
#[derive(Debug)]
pub struct Joined {
    pub seat: Seat,
    /// A ledger elsewhere than usual, one that had to be made anew.
    pub notes: Vec<String>,
}

/// Why there is no place at the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// Not a name that a device may have.
    Name(String),
    /// The device has another size than was asked for.
    Capacity { name: String, asked: u64, has: u64, holders: Vec<u32> },
    /// Every slot is taken.
    Crowded { name: String },
    /// The ledger is no file of this user's, or nobody's ledger; in words.
    NotOurs { path: PathBuf, what: &'static str },
    /// Sessions of another version are at the device.
    OtherVersion { path: PathBuf, version: u32 },
    /// The ledger was damaged while processes use it.
    Damaged { path: PathBuf },
    /// The order of changes was not to be had for seconds.
    Busy { path: PathBuf },
    /// No folder would take the ledger; why each did not.
    NoFolder { name: String, reasons: Vec<String> },
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Name(why) => f.write_str(why),
            JoinError::Capacity { name, asked, has, holders } => {
                let holders: Vec<String> = holders.iter().map(u32::to_string).collect();
                let join = match name.starts_with("dry") {
                    true => format!("ask for {}", exact(*has)),
                    false => "leave the capacity out".to_string(),
                };
                write!(
                    f,
                    "the device of that name is there with {} (pid {}), so {} for {name} contradicts it; {join} to \
                     join, or choose another name",
                    format_bytes(*has),
                    holders.join(", "),
                    format_bytes(*asked)
                )
            }
            JoinError::Crowded { name } => {
                write!(
                    f,
                    "{SLOTS} processes are at the device {name} already, and there is no room for more"
                )
            }
            JoinError::NotOurs { path, what } => {
                write!(f, "{} {what}; move it away, or choose another name", path.display())
            }
            JoinError::OtherVersion { path, version } => write!(
                f,
                "{} is in use by another version of vramlab (format {version}); end those sessions, or choose another \
                 name",
                path.display()
            ),
            JoinError::Damaged { path } => write!(
                f,
                "{} was damaged while sessions use it; end them, or choose another name",
                path.display()
            ),
            JoinError::Busy { path } => write!(
                f,
                "another process has kept the lock of {} for seconds; is one of them stopped (Ctrl-Z)?",
                path.display()
            ),
            JoinError::NoFolder { name, reasons } => write!(
                f,
                "no folder takes the ledger of the shared device {name}: {}; a device without a name needs none",
                reasons.join("; ")
            ),
        }
    }
}

impl std::error::Error for JoinError {}

/// Why one folder did not do.
enum Trouble {
    /// Another folder may do: this one is absent, full, not writable.
    Unusable(String),
    /// No other folder would help.
    Refused(JoinError),
}

impl From<JoinError> for Trouble {
    fn from(error: JoinError) -> Trouble {
        Trouble::Refused(error)
    }
}

/// Joins the device of a name, or makes it. A device that somebody lives at is found in whichever folder it lies, so
/// that a folder which was full for the first process does not part it from the second.
///
/// # Errors
/// Each variant says what to do.
pub fn join(joining: &Joining) -> Result<Joined, JoinError> {
    check_name(&joining.name).map_err(JoinError::Name)?;
    full_disks_are_errors();
    let file = joining.file_name();
    let mut reasons = Vec::new();
    for path in joining.folders.iter().filter(|path| somebody_is_at(path, &file)) {
        match attempt(joining, path) {
            Ok(joined) => return Ok(joined),
            Err(Trouble::Refused(error)) => return Err(error),
            Err(Trouble::Unusable(why)) => reasons.push(why),
        }
    }
    reasons.clear();
    for path in &joining.folders {
        match attempt(joining, path) {
            Ok(mut joined) => {
                if !reasons.is_empty() {
                    let at = joined.seat.path();
                    joined.notes.insert(
                        0,
                        format!(
                            "the ledger of {} lies in {}, because {}",
                            joining.spelled(),
                            at.display(),
                            reasons.join("; ")
                        ),
                    );
                }
                return Ok(joined);
            }
            Err(Trouble::Refused(error)) => return Err(error),
            Err(Trouble::Unusable(why)) => reasons.push(why),
        }
    }
    Err(JoinError::NoFolder { name: joining.spelled(), reasons })
}

impl Joining {
    fn kind(&self) -> &'static str {
        if self.dry { "dry" } else { "cpu" }
    }

    fn file_name(&self) -> String {
        format!("{}-{}.device", self.kind(), self.name)
    }

    /// As the user writes it.
    fn spelled(&self) -> String {
        match (self.dry, self.capacity) {
            (true, Some(bytes)) => format!("dry:{}:{}", exact(bytes), self.name),
            _ => format!("{}:{}", self.kind(), self.name),
        }
    }
}

/// A size as it may be written again, without loss.
fn exact(bytes: u64) -> String {
    match (bytes % GIB, bytes % MIB) {
        (0, _) => format!("{}GiB", bytes / GIB),
        (_, 0) => format!("{}MiB", bytes / MIB),
        _ => bytes.to_string(),
    }
}

/// Whether the file is there and a process lives at it.
fn somebody_is_at(path: &Path, file: &str) -> bool {
    let Ok(Some(folder)) = Folder::find(path) else { return false };
    let Ok(open) = folder.open(file, false) else { return false };
    locks::anybody_lives(&open, SLOTS).unwrap_or(false)
}

/// How often a file may vanish between its opening and its locking, since its last user left, before it is odd.
const TRIES: u32 = 1000;

fn attempt(joining: &Joining, path: &Path) -> Result<Joined, Trouble> {
    for _ in 0..TRIES {
        let folder = Folder::make(path).map_err(Trouble::Unusable)?;
        if let Some(joined) = enter(joining, folder)? {
            return Ok(joined);
        }
    }
    Err(JoinError::Busy { path: path.join(joining.file_name()) }.into())
}

/// One try; `None` when the file was removed in between.
fn enter(joining: &Joining, folder: Folder) -> Result<Option<Joined>, Trouble> {
    let name = joining.file_name();
    let path = folder.path_of(&name);
    let unusable = |error: io::Error| Trouble::Unusable(format!("{}: {error}", path.display()));
    let not_ours = |what| Trouble::from(JoinError::NotOurs { path: path.clone(), what });
    let file = match folder.open(&name, true) {
        Ok(file) => file,
        Err(error) => {
            return match error.raw_os_error() {
                Some(libc::ELOOP) => Err(not_ours("is a link, which is not followed")),
                Some(libc::EISDIR) => Err(not_ours("is a folder")),
                // The folder itself was removed.
                Some(libc::ENOENT) => Ok(None),
                _ => Err(unusable(error)),
            };
        }
    };
    let meta = file.metadata().map_err(unusable)?;
    if !meta.is_file() {
        return Err(not_ours("is no regular file"));
    }
    if meta.uid() != own_user() {
        return Err(not_ours("belongs to another user"));
    }
    make_private(&file, &meta, 0o600).map_err(unusable)?;
    let Some(order) = locks::order(&file).map_err(unusable)? else {
        return Err(JoinError::Busy { path }.into());
    };
    let meta = file.metadata().map_err(unusable)?;
    if meta.nlink() == 0 {
        return Ok(None);
    }
    let mut notes = Vec::new();
    let entered = sit_down(joining, &file, &path, &mut notes);
    if matches!(entered, Err(Trouble::Unusable(_))) && meta.len() == 0 {
        // A file that we made and could not fill.
        folder.remove(&name, &file);
    }
    let (index, header, slot, news) = entered?;
    drop(order);
    let seat = Seat::new(file, folder, name, index, header, slot, news);
    Ok(Some(Joined { seat, notes }))
}

type Seated = (usize, Header, Slot, Vec<Death>);

/// Reads the file, or makes it anew, and takes a free slot; the order of changes is ours.
fn sit_down(
    joining: &Joining,
    file: &File,
    path: &Path,
    notes: &mut Vec<String>,
) -> Result<Seated, Trouble> {
    let unusable = |error: io::Error| Trouble::Unusable(format!("{}: {error}", path.display()));
    let alive = locks::anybody_lives(file, SLOTS).map_err(unusable)?;
    let mut bytes = read_some(file).map_err(unusable)?;
    let header = match (layout::read(&bytes), alive) {
        (Content::Ledger(header), true) => {
            if let Some(asked) = joining.capacity.filter(|asked| *asked != header.capacity) {
                let holders = layout::slots(&bytes).map(|(_, slot)| slot.pid).collect();
                let (name, has) = (joining.spelled(), header.capacity);
                return Err(JoinError::Capacity { name, asked, has, holders }.into());
            }
            header
        }
        (Content::Foreign, _) => {
            let what = "is no ledger of vramlab's";
            return Err(JoinError::NotOurs { path: path.into(), what }.into());
        }
        (Content::OtherVersion(version), true) => {
            return Err(JoinError::OtherVersion { path: path.into(), version }.into());
        }
        (Content::Damaged | Content::Blank, true) => {
            return Err(JoinError::Damaged { path: path.into() }.into());
        }
        (content, false) => {
            if let Some(why) = why_anew(content) {
                notes.push(format!("{} {why}: it was made anew", path.display()));
            }
            bytes = make_anew(joining, file, &bytes).map_err(unusable)?;
            let Content::Ledger(header) = layout::read(&bytes) else {
                return Err(JoinError::Damaged { path: path.into() }.into());
            };
            header
        }
    };
    let mut news = Vec::new();
    for index in 0..SLOTS {
        if !locks::begin_life(file, index).map_err(unusable)? {
            continue;
        }
        if let Some(dead) = layout::slot(&bytes, index) {
            news.push(bury(file, &mut bytes, index, dead).map_err(unusable)?);
        }
        let slot = own_slot(joining);
        let (at, record) = layout::slot_record(index, &slot);
        file.write_all_at(&record, at as u64).map_err(unusable)?;
        return Ok((index, header, slot, news));
    }
    Err(JoinError::Crowded { name: joining.spelled() }.into())
}

fn why_anew(content: Content) -> Option<String> {
    match content {
        Content::Damaged => Some("was damaged and nobody used it".into()),
        Content::OtherVersion(version) => {
            Some(format!("was of another version of vramlab (format {version}) and nobody used it"))
        }
        Content::Ledger(_) | Content::Blank | Content::Foreign => None,
    }
}

/// The file's bytes, as far as a ledger would go.
fn read_some(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; layout::FILE_BYTES];
    let mut have = 0;
    while have < bytes.len() {
        match file.read_at(&mut bytes[have..], have as u64) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(have);
    Ok(bytes)
}

/// Writes a new ledger over what nobody uses. Whoever still had a slot there died in it, and is remembered.
fn make_anew(joining: &Joining, file: &File, before: &[u8]) -> io::Result<Vec<u8>> {
    let mut deaths = Vec::new();
    if matches!(layout::read(before), Content::Ledger(_)) {
        deaths = layout::deaths(before);
        let death = |(_, slot): (usize, Slot)| Death {
            pid: slot.pid,
            held: slot.held,
            noticed: now(),
            name: slot.name,
        };
        deaths.extend(layout::slots(before).map(death));
    }
    let capacity = joining.capacity.unwrap_or(joining.usual_capacity);
    let bytes = layout::image(Header { capacity, dry: joining.dry }, &deaths);
    // Written and not only lengthened: pages that a full file system lacks are missed here, and not later.
    file.write_all_at(&bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    Ok(bytes)
}

fn own_slot(joining: &Joining) -> Slot {
    let random = std::hash::RandomState::new().build_hasher().finish();
    Slot {
        identity: random | 1,
        pid: std::process::id(),
        started: own_start().unwrap_or(0),
        since: now(),
        name: joining.process.clone(),
        ..Slot::default()
    }
}

/// When this process began, in ticks since boot (proc(5), field 22 of `stat`).
fn own_start() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let behind_name = text.rsplit_once(')')?.1;
    behind_name.split_whitespace().nth(19)?.parse().ok()
}

/// A limit on file sizes ends a process by a signal unless it is ignored; then it is an error like a full disk.
fn full_disks_are_errors() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: only the disposition of one signal changes; no handler of anybody's is replaced.
        unsafe {
            let before = libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            if before != libc::SIG_DFL && before != libc::SIG_ERR {
                libc::signal(libc::SIGXFSZ, before);
            }
        }
    });
}
