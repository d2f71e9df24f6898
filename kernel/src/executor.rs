//! The one thread that owns the session. Shell requests reach it in order; it answers each between
//! `busy` and `idle`, and says everything through the outbox.

use crate::content;
use crate::input::Stdin;
use crate::outbox::Outbox;
use crate::wire::{Incoming, Outgoing};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use tokio::sync::mpsc::UnboundedSender;
use vramlab_session::{Event, MEMORY_DISPLAY, MemoryReport, Session, Status, Watch, report};

/// The executor's ends of every channel.
pub struct Links {
    pub requests: Receiver<Incoming>,
    pub iopub: Arc<Outbox>,
    pub shell: UnboundedSender<Outgoing>,
    pub stdin: Stdin,
    /// Set while a request is served.
    pub busy: Arc<AtomicBool>,
}

/// The session and what this face remembers of it.
struct Executor<'a> {
    session: &'a mut Session,
    links: &'a Links,
    /// Requests that arrived before a failure and were not aborted by it.
    waiting: VecDeque<Incoming>,
    /// The number of the last cell.
    count: u32,
    /// The pinned memory display exists.
    pinned: bool,
}

/// Serves until the request channel closes or a cell asks to exit.
pub fn run(session: &mut Session, links: &Links) {
    let waiting = VecDeque::new();
    let mut executor = Executor { session, links, waiting, count: 0, pinned: false };
    while let Some(request) = executor.next() {
        links.busy.store(true, Ordering::Release);
        let answer = Answer::to(&request, links);
        answer.status("busy");
        let outcome = executor.serve(&request, &answer);
        if outcome == Outcome::Abort {
            executor.abort_waiting();
        }
        answer.status("idle");
        links.busy.store(false, Ordering::Release);
        if outcome == Outcome::Exit {
            return;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Continue,
    /// A cell failed, and its request asked that those behind it be dropped.
    Abort,
    Exit,
}

/// Everything one request needs to be answered.
struct Answer<'a> {
    request: &'a Incoming,
    parent: Arc<Value>,
    links: &'a Links,
}

impl<'a> Answer<'a> {
    fn to(request: &'a Incoming, links: &'a Links) -> Answer<'a> {
        Answer { request, parent: Arc::new(request.header.clone()), links }
    }

    fn status(&self, state: &str) {
        self.broadcast("status", json!({"execution_state": state}));
    }

    fn broadcast(&self, kind: &str, content: Value) {
        self.links.iopub.push(Outgoing::broadcast(&self.parent, kind, content));
    }

    fn reply(&self, kind: &str, content: Value) {
        // The receiver outlives this thread; a failure means that the kernel is going down.
        let _ = self.links.shell.send(Outgoing::reply(self.request, kind, content));
    }
}

/// `x_request` is answered by `x_reply`.
pub fn reply_kind(request: &str) -> String {
    match request.strip_suffix("_request") {
        Some(stem) => format!("{stem}_reply"),
        None => format!("{request}_reply"),
    }
}

impl Executor<'_> {
    fn next(&mut self) -> Option<Incoming> {
        self.waiting.pop_front().or_else(|| self.links.requests.recv().ok())
    }

    fn serve(&mut self, request: &Incoming, answer: &Answer<'_>) -> Outcome {
        let kind = request.kind();
        let content = match &request.content {
            Ok(content) if content.is_object() => content,
            Ok(_) => return refuse(answer, kind, "the content is not an object"),
            Err(problem) => {
                return refuse(answer, kind, &format!("the content is not JSON: {problem}"));
            }
        };
        let body = match kind {
            "execute_request" | "complete_request" | "inspect_request" | "is_complete_request" => {
                let Some(code) = content["code"].as_str() else {
                    return refuse(answer, kind, "the content has no text 'code'");
                };
                let at = content["cursor_pos"].as_u64().unwrap_or(u64::MAX);
                let at = content::byte_position(code, at);
                match kind {
                    "execute_request" => return self.execute(code, content, answer),
                    "complete_request" => content::complete(code, &self.session.complete(code, at)),
                    "inspect_request" => content::inspect(self.session.inspect(code, at).as_ref()),
                    _ => content::is_complete(&self.session.completeness(code)),
                }
            }
            "kernel_info_request" => content::kernel_info(),
            "history_request" => content::history(self.session.history(), content),
            "comm_info_request" => json!({"status": "ok", "comms": {}}),
            "comm_open" => {
                // No comm target exists here: the protocol's answer is to close it at once.
                let closed = json!({"comm_id": content["comm_id"], "data": {}});
                answer.broadcast("comm_close", closed);
                return Outcome::Continue;
            }
            "comm_msg" | "comm_close" => return Outcome::Continue,
            _ => return refuse(answer, kind, "this kernel does not know this request"),
        };
        answer.reply(&reply_kind(kind), body);
        Outcome::Continue
    }

    fn execute(&mut self, code: &str, content: &Value, answer: &Answer<'_>) -> Outcome {
        if code.trim().is_empty() {
            answer.reply("execute_reply", content::execute_ok(self.count, content));
            return Outcome::Continue;
        }
        let silent = content["silent"].as_bool().unwrap_or(false);
        let number = self.session.next_cell();
        if !silent {
            answer.broadcast("execute_input", json!({"code": code, "execution_count": number}));
        }
        self.connect_input(content["allow_stdin"].as_bool().unwrap_or(false), answer);
        let pinned = &mut self.pinned;
        let result = self.session.execute(code, &mut |event| {
            if !silent {
                show(event, number, answer, pinned);
            }
        });
        self.count = result.cell;
        let failed = result.error.filter(|_| result.status != Status::Ok);
        let Some(error) = failed else {
            answer.reply("execute_reply", content::execute_ok(self.count, content));
            return if result.exit { Outcome::Exit } else { Outcome::Continue };
        };
        let mut body = content::error(&error);
        body["status"] = json!("error");
        body["execution_count"] = json!(self.count);
        answer.reply("execute_reply", body);
        match content["stop_on_error"].as_bool().unwrap_or(true) {
            true => Outcome::Abort,
            false => Outcome::Continue,
        }
    }

    /// A client that cannot be asked gets a fault from `input("…")`, never a hanging cell.
    fn connect_input(&mut self, allowed: bool, answer: &Answer<'_>) {
        let stdin = self.links.stdin.clone();
        let request = answer.request.clone();
        self.session.set_input(Box::new(
            move |prompt| {
                if allowed { stdin.ask(&request, prompt) } else { None }
            },
        ));
    }

    /// Answers execute requests that arrived before the failure with `aborted`; keeps the others.
    fn abort_waiting(&mut self) {
        self.waiting.extend(self.links.requests.try_iter());
        let (cells, others) =
            self.waiting.drain(..).partition(|request| request.kind() == "execute_request");
        self.waiting = others;
        let cells: VecDeque<Incoming> = cells;
        for request in &cells {
            let answer = Answer::to(request, self.links);
            answer.status("busy");
            answer.reply("execute_reply", json!({"status": "aborted"}));
            answer.status("idle");
        }
    }
}

fn refuse(answer: &Answer<'_>, kind: &str, why: &str) -> Outcome {
    let body = content::refusal("BadRequest", &format!("{kind}: {why}"));
    answer.reply(&reply_kind(kind), body);
    Outcome::Continue
}

fn show(event: Event, number: u32, answer: &Answer<'_>, pinned: &mut bool) {
    let iopub = &answer.links.iopub;
    match event {
        Event::Stdout(text) => iopub.stream("stdout", &answer.parent, &text),
        Event::Stderr(text) => iopub.stream("stderr", &answer.parent, &text),
        Event::Value { content, .. } => {
            answer.broadcast("execute_result", content::execute_result(&content, number));
        }
        Event::Display { content, id, update } => {
            let kind = if update { "update_display_data" } else { "display_data" };
            *pinned |= id.as_deref() == Some(MEMORY_DISPLAY);
            answer.broadcast(kind, content::display(&content, id.as_deref()));
        }
        Event::Error(error) => answer.broadcast("error", content::error(&error)),
        Event::Memory(memory) => show_memory(&memory, answer, pinned),
        Event::Progress { label, fraction } => {
            let text = format!("{label} {:.0} %\n", fraction * 100.0);
            iopub.stream("stderr", &answer.parent, &text);
        }
        Event::ClearOutput { wait } => answer.broadcast("clear_output", json!({"wait": wait})),
    }
}

/// Under `%watch live` every cell updates the one display that the command made; a session that began so makes it with
/// its first cell.
fn show_memory(memory: &MemoryReport, answer: &Answer<'_>, pinned: &mut bool) {
    let table = report::content(memory);
    if memory.watch != Watch::Live {
        *pinned = false;
        answer.broadcast("display_data", content::display(&table, None));
        return;
    }
    let kind = if *pinned { "update_display_data" } else { "display_data" };
    *pinned = true;
    answer.broadcast(kind, content::display(&table, Some(MEMORY_DISPLAY)));
}
