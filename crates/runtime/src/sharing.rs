//! The others at the device: processes that share it, and guests in this process.

use crate::context::{Context, State};
use vramlab_device::shared::{self, Company, Death, KeptShare, Seat};
use vramlab_memory::oom::GuestReport;
use vramlab_memory::{Holder, format_bytes};

/// A guest beside our pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestRow {
    pub number: u32,
    pub bytes: u64,
    /// How long it has been here.
    pub age_ns: u64,
}

/// How a guest's request went: the figures of the device afterwards, and what a refusal comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestAnswer {
    /// Its number; `None` when it was refused.
    pub number: Option<u32>,
    /// The device's figures now; where it passed, the guest is among the others.
    pub report: GuestReport,
}

/// What is said of a dead peer.
pub fn death_text(death: &Death) -> String {
    let Death { pid, held, name, .. } = death;
    let back = match held {
        0 => "it held nothing".to_string(),
        held => format!("its {} came back", format_bytes(*held)),
    };
    format!("pid {pid} {name} ended without leaving the device; {back}")
}

/// Checks the name of a shared device.
///
/// # Errors
/// What is wrong with it, and what a name may be.
pub fn check_device_name(name: &str) -> Result<(), String> {
    shared::check_name(name)
}

impl Context {
    /// Whether other processes may hold memory of the device.
    pub fn is_shared(&self) -> bool {
        self.backend.seat.is_some()
    }

    /// Where the ledger of a shared device lies.
    pub fn ledger_path(&self) -> Option<std::path::PathBuf> {
        self.backend.seat.as_ref().map(Seat::path)
    }

    /// Everybody at a shared device; `None` for one of our own.
    ///
    /// # Errors
    /// In words: its ledger cannot be read.
    pub fn company(&self) -> Option<Result<Company, String>> {
        let seat = self.backend.seat.as_ref()?;
        self.lock().publish(self);
        Some(seat.company())
    }

    /// The other processes at the device, as holders.
    pub(crate) fn neighbours(&self) -> Vec<Holder> {
        let company = self.backend.seat.as_ref().and_then(|seat| seat.company().ok());
        let peers = company.unwrap_or_default().peers.into_iter().filter(|peer| !peer.own);
        peers.map(|peer| Holder { name: peer.name, pid: Some(peer.pid), held: peer.held }).collect()
    }

    /// Somebody beside our pools asks the driver for memory.
    ///
    /// # Errors
    /// In words: a size that no guest can have.
    pub fn invite(&self, bytes: u64) -> Result<GuestAnswer, String> {
        if bytes == 0 {
            return Err(
                "a guest that asks for nothing gets nothing; write for example 64MiB".into()
            );
        }
        let now_ns = self.clock.now();
        let mut state = self.lock();
        let answer = match state.heap.invite(bytes, now_ns) {
            Ok(number) => {
                GuestAnswer { number: Some(number), report: state.heap.guest_figures(bytes) }
            }
            Err(report) => GuestAnswer { number: None, report: *report },
        };
        state.publish(self);
        Ok(answer)
    }

    /// The guests, in the order of their coming.
    pub fn guests(&self) -> Vec<GuestRow> {
        let now_ns = self.clock.now();
        let row = |guest: &vramlab_memory::Guest| GuestRow {
            number: guest.number(),
            bytes: guest.bytes(),
            age_ns: now_ns.saturating_sub(guest.since_ns()),
        };
        self.lock().heap.guests().iter().map(row).collect()
    }

    /// Sends one guest away, or all of them: how many went and the bytes that came back.
    pub fn dismiss_guests(&self, number: Option<u32>) -> (u32, u64) {
        self.lock().heap.dismiss(number)
    }

    /// Leaves a shared device: this process holds nothing of it any more in the eyes of the others. The last one
    /// removes it. Only for the end of a session: from here on the driver refuses.
    pub fn leave_device(&self) {
        if let Some(seat) = &self.backend.seat {
            seat.leave();
        }
    }

    /// What we hold stays ours while arrays move through the host.
    pub(crate) fn keep_share(&self) -> Option<KeptShare> {
        self.backend.seat.as_ref().map(Seat::keep_share)
    }

    /// Dead peers whose bytes this session found and gave back.
    pub(crate) fn news(&self) -> Vec<String> {
        let news = self.backend.seat.as_ref().map(Seat::take_news).unwrap_or_default();
        news.iter().map(death_text).collect()
    }
}

/// How often a running cell tells the others of its arrays.
const PUBLISH_EVERY_NS: u64 = 100_000_000;

impl State {
    /// Tells the other processes our mode and the bytes of our arrays.
    pub fn publish(&self, context: &Context) {
        if let Some(seat) = &context.backend.seat {
            let live = self.heap.ledger().totals().live_requested;
            seat.publish(&self.heap.mode().to_string(), live);
        }
    }

    /// As [`State::publish`], now and then within a cell.
    pub fn publish_in_passing(&mut self, context: &Context) {
        if context.backend.seat.is_none() {
            return;
        }
        let now_ns = context.clock.now();
        if now_ns.saturating_sub(self.published_ns) >= PUBLISH_EVERY_NS {
            self.published_ns = now_ns;
            self.publish(context);
        }
    }
}
