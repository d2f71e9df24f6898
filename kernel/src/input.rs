//! `input("…")`: asks the client that sent the cell, over the stdin socket.

use crate::wire::{Incoming, Outgoing};
use serde_json::json;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use vramlab_session::Interrupt;

/// How often a cell that waits for input looks whether it was interrupted.
const POLL: Duration = Duration::from_millis(50);

/// The two directions of the stdin socket.
#[derive(Clone)]
pub struct Stdin {
    pub requests: UnboundedSender<Outgoing>,
    pub replies: Arc<Mutex<Receiver<Incoming>>>,
    pub interrupt: Interrupt,
}

impl Stdin {
    /// The line that the user typed, or `None` when the cell was interrupted or the client is gone.
    pub fn ask(&self, request: &Incoming, prompt: &str) -> Option<String> {
        let replies = self.replies.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // A reply to a question that was interrupted must not answer this one.
        while replies.try_recv().is_ok() {}
        let content = json!({"prompt": prompt, "password": false});
        self.requests.send(Outgoing::reply(request, "input_request", content)).ok()?;
        loop {
            match replies.recv_timeout(POLL) {
                Ok(reply) => {
                    let content = reply.content.ok()?;
                    return content["value"].as_str().map(str::to_string);
                }
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_raised() => return None,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}
