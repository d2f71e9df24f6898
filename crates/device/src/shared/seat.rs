//! A process's place at a shared device: what it holds, and what the others do.

use super::folder::Folder;
use super::layout::{self, Content, Death, Header, SLOTS, Slot};
use super::locks;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A place at the device, kept until [`Seat::leave`] or the end of the process. Clones are the same place.
#[derive(Clone, Debug)]
pub struct Seat(Arc<Place>);

#[derive(Debug)]
struct Place {
    file: File,
    folder: Folder,
    file_name: String,
    index: usize,
    header: Header,
    /// Orders the threads of this process; the lock on the file orders processes.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Our slot as it stands in the file.
    slot: Slot,
    /// Bytes in regions of ours.
    held: u64,
    /// What we keep from others even while we hold less.
    floor: u64,
    left: bool,
    /// What the others held when the file was last readable.
    last_others: u64,
    /// Dead peers that we found and have not spoken of yet.
    news: Vec<Death>,
}

/// A process at the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub pid: u32,
    /// What it is: `vramlab`, `vramlab-kernel`.
    pub name: String,
    /// Its allocation mode.
    pub mode: String,
    /// Bytes that it holds of the device.
    pub held: u64,
    /// Bytes of its arrays, when it last said so.
    pub live: u64,
    /// When it came, in seconds since 1970.
    pub since: u64,
    /// It is the one that asks.
    pub own: bool,
}

/// Who is at the device, and who was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Company {
    /// In the order of their coming.
    pub peers: Vec<Peer>,
    /// The last processes that ended without leaving, oldest first; their bytes came back.
    pub deaths: Vec<Death>,
    /// Somebody removed the file: those who come now find another device of the same name.
    pub removed: bool,
}

/// Why bytes were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Not enough is free.
    Full { free: u64 },
    /// The ledger cannot be used, in words.
    Failed(String),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Failed(format!("the ledger of the shared device: {error}"))
    }
}

impl Seat {
    /// A seat in the slot `index`, whose life this `file` holds; `slot` stands in the file already.
    pub(super) fn new(
        file: File,
        folder: Folder,
        file_name: String,
        index: usize,
        header: Header,
        slot: Slot,
        news: Vec<Death>,
    ) -> Seat {
        let state = State { slot, held: 0, floor: 0, left: false, last_others: 0, news };
        let state = Mutex::new(state);
        Seat(Arc::new(Place { file, folder, file_name, index, header, state }))
    }

    /// Size of the device in bytes.
    pub fn capacity(&self) -> u64 {
        self.0.header.capacity
    }

    /// Whether the device carries shapes without data.
    pub fn is_dry(&self) -> bool {
        self.0.header.dry
    }

    /// Where the ledger lies.
    pub fn path(&self) -> std::path::PathBuf {
        self.0.folder.path_of(&self.0.file_name)
    }

    /// Takes `bytes` of the device, if nobody holds them.
    pub(super) fn charge(&self, bytes: u64) -> Result<(), Refused> {
        let mut state = self.0.state();
        let Some(held) = state.held.checked_add(bytes) else {
            return Err(Refused::Full { free: self.0.free(&mut state) });
        };
        let wanted = held.max(state.floor);
        if wanted > state.slot.held {
            self.0.raise(&mut state, wanted)?;
        }
        state.held = held;
        Ok(())
    }

    /// Gives bytes back. A failure to write is made good by the next change.
    pub(super) fn refund(&self, bytes: u64) {
        let mut state = self.0.state();
        state.held -= bytes;
        self.0.lower(&mut state);
    }

    /// Bytes that we hold, that others hold, and that nobody holds.
    pub(super) fn figures(&self) -> (u64, u64, u64) {
        let mut state = self.0.state();
        let free = self.0.free(&mut state);
        (state.held, state.last_others, free)
    }

    /// Keeps what we hold now from the others until the value is dropped: while arrays move through the host nobody may
    /// take the room that they come back to.
    pub fn keep_share(&self) -> KeptShare {
        let mut state = self.0.state();
        state.floor = state.held;
        KeptShare(self.clone())
    }

    /// Tells the others our mode and the bytes of our arrays.
    pub fn publish(&self, mode: &str, live: u64) {
        let mut state = self.0.state();
        if state.left || (state.slot.mode == mode && state.slot.live == live) {
            return;
        }
        state.slot.mode = mode.to_string();
        state.slot.live = live;
        // Words for people only: whoever reads them while they change sees old and new ones.
        let _ = self.0.write(layout::words_record(self.0.index, &state.slot));
    }

    /// Everybody at the device, after what the dead held went back.
    ///
    /// # Errors
    /// In words: the ledger cannot be read.
    pub fn company(&self) -> Result<Company, String> {
        let mut state = self.0.state();
        let place = &*self.0;
        let said = |refused| match refused {
            Refused::Failed(why) => why,
            Refused::Full { .. } => String::new(),
        };
        place.bury(&mut state).map_err(said)?;
        let bytes = place.read(&state).map_err(said)?;
        let peer = |(index, slot): (usize, Slot)| {
            let own = index == place.index;
            (own || place.lives(index)).then_some(Peer {
                pid: slot.pid,
                name: slot.name,
                mode: slot.mode,
                held: slot.held,
                live: slot.live,
                since: slot.since,
                own,
            })
        };
        let mut peers: Vec<Peer> = layout::slots(&bytes).filter_map(peer).collect();
        peers.sort_by_key(|peer| (peer.since, peer.pid));
        let removed = place.file.metadata().is_ok_and(|meta| meta.nlink() == 0);
        Ok(Company { peers, deaths: layout::deaths(&bytes), removed })
    }

    /// The dead peers that this seat found since the last call.
    pub fn take_news(&self) -> Vec<Death> {
        std::mem::take(&mut self.0.state().news)
    }

    /// Gives the place back; the last one at the device takes the file away. Later calls do nothing and get nothing.
    pub fn leave(&self) {
        self.0.leave();
    }
}

/// What we hold is kept from others; see [`Seat::keep_share`].
#[must_use = "the share is kept as long as this value"]
#[derive(Debug)]
pub struct KeptShare(Seat);

impl Drop for KeptShare {
    fn drop(&mut self) {
        let mut state = self.0.0.state();
        state.floor = 0;
        self.0.0.lower(&mut state);
    }
}

impl Place {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change ends with the file written, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, (at, record): (usize, Vec<u8>)) -> io::Result<()> {
        self.file.write_all_at(&record, at as u64)
    }

    /// The file as it is now, if it is still the ledger that we joined.
    fn read(&self, state: &State) -> Result<Vec<u8>, Refused> {
        if state.left {
            return Err(Refused::Failed("this session has left the shared device".into()));
        }
        let mut bytes = vec![0; layout::FILE_BYTES];
        let whole = match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => layout::read(&bytes) == Content::Ledger(self.header),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(error.into()),
        };
        let own = layout::slot(&bytes, self.index).map(|slot| slot.identity);
        if !whole || own != Some(state.slot.identity) {
            return Err(self.damaged());
        }
        Ok(bytes)
    }

    fn damaged(&self) -> Refused {
        let path = self.folder.path_of(&self.file_name);
        Refused::Failed(format!(
            "the ledger {} was damaged by something else: end every session on this device, then start again",
            path.display()
        ))
    }

    fn lives(&self, index: usize) -> bool {
        // A question that fails is answered for the living: nobody's share is taken by mistake.
        locks::lives(&self.file, index).unwrap_or(true)
    }

    fn others(&self, bytes: &[u8], only_living: bool) -> u64 {
        layout::slots(bytes)
            .filter(|(index, _)| *index != self.index && (!only_living || self.lives(*index)))
            .fold(0, |sum: u64, (_, slot)| sum.saturating_add(slot.held))
    }

    /// Publishes that we hold `wanted`, which is more than before, if the others leave that much.
    fn raise(&self, state: &mut State, wanted: u64) -> Result<(), Refused> {
        let _order = self.order()?;
        let mut bytes = self.read(state)?;
        let capacity = self.header.capacity;
        let fits = |others: u64| others.checked_add(wanted).is_some_and(|sum| sum <= capacity);
        let mut others = self.others(&bytes, false);
        if !fits(others) {
            self.bury_among(state, &mut bytes)?;
            others = self.others(&bytes, true);
        }
        state.last_others = others;
        if others.saturating_add(state.slot.held) > capacity {
            return Err(self.damaged());
        }
        if !fits(others) {
            return Err(Refused::Full { free: capacity - others - state.slot.held });
        }
        self.write(layout::held_record(self.index, wanted))?;
        state.slot.held = wanted;
        Ok(())
    }

    /// Publishes that we hold less, which needs nobody's leave.
    fn lower(&self, state: &mut State) {
        let wanted = state.held.max(state.floor);
        if state.left || wanted >= state.slot.held {
            return;
        }
        if self.write(layout::held_record(self.index, wanted)).is_ok() {
            state.slot.held = wanted;
        }
    }

    fn free(&self, state: &mut State) -> u64 {
        if let Ok(bytes) = self.read(state) {
            state.last_others = self.others(&bytes, true);
        }
        self.header.capacity.saturating_sub(state.last_others).saturating_sub(state.slot.held)
    }

    fn order(&self) -> Result<locks::Order<'_>, Refused> {
        match locks::order(&self.file)? {
            Some(order) => Ok(order),
            None => Err(Refused::Failed(
                "another process has kept the shared device's lock for seconds: is one of them stopped (Ctrl-Z)?"
                    .into(),
            )),
        }
    }

    /// Returns what the dead held, if there are any.
    fn bury(&self, state: &mut State) -> Result<(), Refused> {
        let bytes = self.read(state)?;
        if layout::slots(&bytes).all(|(index, _)| index == self.index || self.lives(index)) {
            return Ok(());
        }
        let _order = self.order()?;
        let mut bytes = self.read(state)?;
        self.bury_among(state, &mut bytes)
    }

    /// Empties the slots of the dead, in the file and in `bytes`; the order of changes is ours.
    fn bury_among(&self, state: &mut State, bytes: &mut [u8]) -> Result<(), Refused> {
        let dead: Vec<(usize, Slot)> = layout::slots(bytes)
            .filter(|(index, _)| *index != self.index && !self.lives(*index))
            .collect();
        for (index, slot) in dead {
            state.news.push(bury(&self.file, bytes, index, slot)?);
        }
        Ok(())
    }

    fn leave(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.left, true) {
            return;
        }
        // Without the order the file stays, and whoever comes next clears it.
        let order = locks::order(&self.file).ok().flatten();
        let _ = self.write(layout::empty_record(self.index));
        // Before the order goes: of two that leave at once the second must not take the first for alive.
        locks::end_life(&self.file, self.index);
        if order.is_some() && !locks::anybody_lives(&self.file, SLOTS).unwrap_or(true) {
            self.folder.remove(&self.file_name, &self.file);
        }
        drop(order);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Empties the slot of a dead process and keeps a word on it. The slot goes first: whoever is killed in between loses
/// the word and not the bytes.
pub(super) fn bury(file: &File, bytes: &mut [u8], index: usize, slot: Slot) -> io::Result<Death> {
    let (at, record) = layout::empty_record(index);
    file.write_all_at(&record, at as u64)?;
    bytes[at..at + record.len()].copy_from_slice(&record);
    let Slot { pid, held, name, .. } = slot;
    let death = Death { pid, held, noticed: now(), name };
    let (at, record) = layout::deaths_with(bytes, death.clone());
    file.write_all_at(&record, at as u64)?;
    bytes[at..at + record.len()].copy_from_slice(&record);
    Ok(death)
}

/// Seconds since 1970; 0 for a clock set before.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
