//! What waits to be sent. The executor thread never touches a socket: it appends here, and tasks
//! of the socket side take what there is. Stream text that has not been sent yet is joined, so a
//! cell that prints a million lines makes a few large messages.

use crate::wire::Outgoing;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use tokio::sync::Notify;

/// Unsent stream text beyond this makes the printing cell wait for the reader's side.
const STREAM_LIMIT: usize = 8 << 20;

enum Item {
    Message(Outgoing),
    Stream { name: &'static str, parent: Arc<Value>, text: String },
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    stream_bytes: usize,
}

/// A queue of broadcasts with one reader.
#[derive(Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    drained: Condvar,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn push(&self, message: Outgoing) {
        self.lock().items.push_back(Item::Message(message));
        self.filled.notify_one();
    }

    /// Appends to the stream `name` (`stdout`, `stderr`) of the cell whose request is `parent`.
    pub fn stream(&self, name: &'static str, parent: &Arc<Value>, text: &str) {
        let mut queue = self.lock();
        while queue.stream_bytes > STREAM_LIMIT {
            queue = self.drained.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        queue.stream_bytes += text.len();
        match queue.items.back_mut() {
            Some(Item::Stream { name: last, parent: same, text: waiting })
                if *last == name && Arc::ptr_eq(same, parent) =>
            {
                waiting.push_str(text);
            }
            _ => queue.items.push_back(Item::Stream {
                name,
                parent: parent.clone(),
                text: text.to_string(),
            }),
        }
        drop(queue);
        self.filled.notify_one();
    }

    /// Waits for messages; all there are, in order.
    pub async fn take(&self) -> Vec<Outgoing> {
        loop {
            let items = {
                let mut queue = self.lock();
                queue.stream_bytes = 0;
                std::mem::take(&mut queue.items)
            };
            if !items.is_empty() {
                self.drained.notify_all();
                return items.into_iter().map(Item::into_message).collect();
            }
            self.filled.notified().await;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }
}

impl Item {
    fn into_message(self) -> Outgoing {
        match self {
            Item::Message(message) => message,
            Item::Stream { name, parent, text } => {
                let content = json!({"name": name, "text": text});
                let mut message = Outgoing::broadcast(&parent, "stream", content);
                message.identities = vec![format!("stream.{name}").into_bytes()];
                message
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_stream_text_is_joined_but_never_across_another_message() {
        let outbox = Outbox::default();
        let parent = Arc::new(json!({"msg_id": "1"}));
        outbox.stream("stdout", &parent, "a");
        outbox.stream("stdout", &parent, "b");
        outbox.stream("stderr", &parent, "c");
        outbox.push(Outgoing::broadcast(&parent, "status", json!({})));
        outbox.stream("stdout", &parent, "d");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let sent = runtime.block_on(outbox.take());
        let texts: Vec<&str> =
            sent.iter().map(|m| m.content["text"].as_str().unwrap_or("-")).collect();
        assert_eq!(texts, ["ab", "c", "-", "d"]);
        assert!(outbox.is_empty());
    }
}
