//! The socket side: five sockets, one task each, and the order of starting and leaving.

use crate::connection::Connection;
use crate::content;
use crate::executor::{self, Links};
use crate::input::Stdin;
use crate::outbox::Outbox;
use crate::wire::{self, Incoming, Outgoing, Signer};
use futures_channel::mpsc::Receiver;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use vramlab_session::{Config, Interrupt, Session};
use zeromq::{
    PubSocket, RepSocket, RouterRecvHalf, RouterSendHalf, RouterSocket, Socket, SocketEvent,
    SocketRecv, SocketSend, ZmqMessage,
};

/// ZeroMQ here has no linger: what was handed to a socket needs this long to reach a local peer.
const FLUSH: Duration = Duration::from_millis(80);

/// How long a running cell may take to notice that the kernel is going down.
const LEAVE: Duration = Duration::from_secs(2);

/// Subscriptions arrive a moment after the connection is accepted, so the welcome goes out twice.
const WELCOME_AFTER: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(60)];

/// Serves one connection until a client, a signal, the parent's end or a cell asks to leave.
///
/// # Errors
/// A socket that cannot bind, or settings that the session refuses.
pub fn serve(connection: Connection, config: Config) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the socket loop: {error}"))?;
    runtime.block_on(serve_sockets(connection, config))
}

/// What tasks share.
struct Hub {
    signer: Signer,
    session_id: String,
    iopub: Arc<Outbox>,
    interrupt: Interrupt,
    /// The executor is serving a request.
    busy: Arc<AtomicBool>,
    leave: UnboundedSender<()>,
}

impl Hub {
    fn frames(&self, message: &Outgoing) -> Option<ZmqMessage> {
        let mut frames = wire::encode(message, &self.signer, &self.session_id).into_iter();
        let mut packed = ZmqMessage::from(frames.next()?);
        frames.for_each(|frame| packed.push_back(frame.into()));
        Some(packed)
    }

    fn decode(&self, message: ZmqMessage) -> Option<Incoming> {
        // Frames that are no signed message have no sender to answer: they are dropped.
        wire::decode(&message.into_vec(), &self.signer).ok()
    }

    fn status(&self, parent: &Value, state: &str) {
        let content = json!({"execution_state": state});
        self.iopub.push(Outgoing::broadcast(parent, "status", content));
    }
}

async fn serve_sockets(connection: Connection, config: Config) -> Result<(), String> {
    let mut shell = RouterSocket::new();
    let mut control = RouterSocket::new();
    let mut stdin = RouterSocket::new();
    let mut heartbeat = RepSocket::new();
    let mut iopub = PubSocket::new();
    let accepted = iopub.monitor();
    bind(&mut shell, &connection, connection.shell_port).await?;
    bind(&mut control, &connection, connection.control_port).await?;
    bind(&mut stdin, &connection, connection.stdin_port).await?;
    bind(&mut heartbeat, &connection, connection.hb_port).await?;
    bind(&mut iopub, &connection, connection.iopub_port).await?;

    let outbox = Arc::new(Outbox::default());
    let (leave, mut leaving) = unbounded_channel();
    let (requests, for_executor) = channel();
    let (input_replies, for_input) = channel();
    let (shell_out, shell_outgoing) = unbounded_channel();
    let (stdin_out, stdin_outgoing) = unbounded_channel();
    let (session_is_up, handles) = tokio::sync::oneshot::channel();
    let replies = Arc::new(Mutex::new(for_input));
    let busy = Arc::new(AtomicBool::new(false));
    let executor = {
        let (iopub, leave, busy) = (outbox.clone(), leave.clone(), busy.clone());
        std::thread::Builder::new().name("session".into()).spawn(move || {
            let started = Session::new(config).map(|session| {
                let handles = (session.interrupt_handle(), session.parting());
                (session, handles)
            });
            let (mut session, (interrupt, parting)) = match started {
                Ok(pair) => pair,
                Err(why) => return drop(session_is_up.send(Err(why))),
            };
            let stdin = Stdin { requests: stdin_out, replies, interrupt: interrupt.clone() };
            let _ = session_is_up.send(Ok((interrupt, parting)));
            let links = Links { requests: for_executor, iopub, shell: shell_out, stdin, busy };
            executor::run(&mut session, &links);
            drop(session);
            let _ = leave.send(());
        })
    };
    executor.map_err(|error| format!("cannot start the session thread: {error}"))?;
    let (interrupt, parting) =
        handles.await.map_err(|_| "the session ended while it started")??;

    let signer = Signer::new(&connection.key);
    let session_id = uuid::Uuid::new_v4().to_string();
    let hub = Arc::new(Hub { signer, session_id, iopub: outbox, interrupt, busy, leave });
    let (shell_send, shell_receive) = shell.split();
    let (control_send, control_receive) = control.split();
    let (stdin_send, stdin_receive) = stdin.split();
    hub.status(&json!({}), "starting");
    tokio::spawn(publish(iopub, hub.clone()));
    tokio::spawn(welcome(accepted, hub.clone()));
    tokio::spawn(echo(heartbeat));
    tokio::spawn(forward(shell_receive, hub.clone(), requests));
    tokio::spawn(forward(stdin_receive, hub.clone(), input_replies));
    tokio::spawn(send_all(shell_send, shell_outgoing, hub.clone()));
    tokio::spawn(send_all(stdin_send, stdin_outgoing, hub.clone()));
    tokio::spawn(serve_control(control_receive, control_send, hub.clone()));
    tokio::spawn(watch_signals(hub.clone()));
    tokio::spawn(watch_parent(hub.clone()));

    leaving.recv().await;
    hub.interrupt.raise();
    let deadline = tokio::time::Instant::now() + LEAVE;
    let settled = || !hub.busy.load(Ordering::Acquire) && hub.iopub.is_empty();
    while !settled() && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(FLUSH).await;
    parting.leave();
    // Process exit returns device memory; a cell that did not stop must not keep the kernel alive.
    std::process::exit(0)
}

async fn bind(socket: &mut impl Socket, connection: &Connection, port: u16) -> Result<(), String> {
    let endpoint = connection.endpoint(port);
    socket.bind(&endpoint).await.map_err(|error| format!("cannot bind {endpoint}: {error}"))?;
    Ok(())
}

async fn publish(mut socket: PubSocket, hub: Arc<Hub>) {
    loop {
        for message in hub.iopub.take().await {
            if let Some(frames) = hub.frames(&message) {
                let _ = socket.send(frames).await;
            }
        }
    }
}

/// JEP 65: a subscriber learns that its subscription stands. `Accepted` comes before the
/// subscription itself, hence the delays.
async fn welcome(mut events: Receiver<SocketEvent>, hub: Arc<Hub>) {
    while let Ok(event) = events.recv().await {
        if !matches!(event, SocketEvent::Accepted(..)) {
            continue;
        }
        let hub = hub.clone();
        tokio::spawn(async move {
            for delay in WELCOME_AFTER {
                tokio::time::sleep(delay).await;
                let content = json!({"subscription": ""});
                hub.iopub.push(Outgoing::broadcast(&json!({}), "iopub_welcome", content));
            }
        });
    }
}

async fn echo(mut socket: RepSocket) {
    while let Ok(message) = socket.recv().await {
        if socket.send(message).await.is_err() {
            // The peer left between ping and pong; the next one may be well.
            continue;
        }
    }
}

async fn forward(mut socket: RouterRecvHalf, hub: Arc<Hub>, to: Sender<Incoming>) {
    while let Ok(message) = socket.recv().await {
        if let Some(incoming) = hub.decode(message)
            && to.send(incoming).is_err()
        {
            return;
        }
    }
}

async fn send_all(
    mut socket: RouterSendHalf,
    mut messages: UnboundedReceiver<Outgoing>,
    hub: Arc<Hub>,
) {
    while let Some(message) = messages.recv().await {
        if let Some(frames) = hub.frames(&message) {
            // A client that left needs no answer.
            let _ = socket.send(frames).await;
        }
    }
}

/// Control requests are answered while a cell runs.
async fn serve_control(mut receive: RouterRecvHalf, mut send: RouterSendHalf, hub: Arc<Hub>) {
    while let Ok(message) = receive.recv().await {
        let Some(request) = hub.decode(message) else { continue };
        hub.status(&request.header, "busy");
        let (kind, body) = match request.kind() {
            "interrupt_request" => {
                hub.interrupt.raise();
                ("interrupt_reply".to_string(), json!({"status": "ok"}))
            }
            "shutdown_request" => {
                let restart = request.content.as_ref().ok().map(|content| &content["restart"]);
                let restart = restart.and_then(Value::as_bool).unwrap_or(false);
                ("shutdown_reply".to_string(), json!({"status": "ok", "restart": restart}))
            }
            "kernel_info_request" => ("kernel_info_reply".to_string(), content::kernel_info()),
            other => {
                let kind = executor::reply_kind(other);
                let why = format!("{other}: not a control request of this kernel");
                (kind, content::refusal("BadRequest", &why))
            }
        };
        let leaving = request.kind() == "shutdown_request";
        if leaving {
            hub.iopub.push(Outgoing::broadcast(&request.header, &kind, body.clone()));
        }
        if let Some(frames) = hub.frames(&Outgoing::reply(&request, &kind, body)) {
            let _ = send.send(frames).await;
        }
        hub.status(&request.header, "idle");
        if leaving {
            let _ = hub.leave.send(());
        }
    }
}

/// An interrupt from the keyboard or a front end without messages stops the cell, not the kernel.
async fn watch_signals(hub: Arc<Hub>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => hub.interrupt.raise(),
            _ = terminate.recv() => {
                let _ = hub.leave.send(());
                return;
            }
        }
    }
}

/// A kernel whose front end was killed must not keep the device's memory.
async fn watch_parent(hub: Arc<Hub>) {
    let expected = std::env::var("JPY_PARENT_PID").ok().and_then(|pid| pid.parse::<u32>().ok());
    let first = std::os::unix::process::parent_id();
    // The variable may name a process outside this container: then its word means nothing here.
    if expected != Some(first) {
        return;
    }
    while std::os::unix::process::parent_id() == first {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let _ = hub.leave.send(());
}
