//! `!command`: a shell line whose output streams into the cell.

use crate::event::Event;
use crate::interrupt::Interrupt;
use crate::sink::Sink;
use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

enum Piece {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// The exit status in words when it was not zero.
///
/// # Errors
/// When no shell can be started.
pub fn run(
    line: &str,
    env: &BTreeMap<String, String>,
    interrupt: &Interrupt,
    sink: &mut Sink,
) -> Result<Option<String>, String> {
    let mut child = Command::new("sh")
        .args(["-c", line])
        .envs(env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("no shell can be started: {error}"))?;
    let (send, pieces) = channel();
    if let Some(out) = child.stdout.take() {
        follow(out, send.clone(), Piece::Out);
    }
    if let Some(err) = child.stderr.take() {
        follow(err, send, Piece::Err);
    }
    let (mut out, mut err) = (Decoder::default(), Decoder::default());
    loop {
        match pieces.recv_timeout(Duration::from_millis(20)) {
            Ok(Piece::Out(bytes)) => sink.send(Event::Stdout(out.decode(&bytes))),
            Ok(Piece::Err(bytes)) => sink.send(Event::Stderr(err.decode(&bytes))),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt.is_raised() {
            // It may have ended by itself at this moment, which is as good.
            let _ = child.kill();
            break;
        }
    }
    let status = child.wait().map_err(|error| format!("the shell was lost: {error}"))?;
    Ok((!status.success()).then(|| status.to_string()))
}

fn follow(mut from: impl Read + Send + 'static, to: Sender<Piece>, wrap: fn(Vec<u8>) -> Piece) {
    std::thread::spawn(move || {
        let mut buffer = [0u8; 8192];
        while let Ok(count) = from.read(&mut buffer) {
            if count == 0 || to.send(wrap(buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
}

/// Bytes to text, holding back a character that was cut in two.
#[derive(Default)]
struct Decoder(Vec<u8>);

impl Decoder {
    fn decode(&mut self, bytes: &[u8]) -> String {
        self.0.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.0) {
            Ok(_) => self.0.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.0.len(),
        };
        let rest = self.0.split_off(whole);
        let text = String::from_utf8_lossy(&self.0).into_owned();
        self.0 = rest;
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, env: &[(&str, &str)]) -> (Vec<Event>, Option<String>) {
        let env = env.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let mut events = Vec::new();
        let mut send = |event| events.push(event);
        let status = run(line, &env, &Interrupt::default(), &mut Sink::new(&mut send)).unwrap();
        (events, status)
    }

    fn text(events: &[Event]) -> String {
        let piece = |event: &Event| match event {
            Event::Stdout(text) => text.clone(),
            _ => String::new(),
        };
        events.iter().map(piece).collect()
    }

    #[test]
    fn output_streams_and_the_status_is_said() {
        let (events, status) = shell("printf 'a\\nb'; printf e >&2; exit 3", &[]);
        assert_eq!(text(&events), "a\nb");
        assert!(events.contains(&Event::Stderr("e".into())));
        assert!(status.unwrap().contains('3'));
    }

    #[test]
    fn variables_reach_the_shell() {
        let (events, status) = shell("echo $VRAMLAB_TEST_WORD", &[("VRAMLAB_TEST_WORD", "hé")]);
        assert_eq!(text(&events), "hé\n");
        assert_eq!(status, None);
    }

    #[test]
    fn an_interrupt_ends_it() {
        let interrupt = Interrupt::default();
        let raise = interrupt.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            raise.raise();
        });
        let mut ignore = |_| {};
        let started = std::time::Instant::now();
        let ended = run("sleep 20", &BTreeMap::new(), &interrupt, &mut Sink::new(&mut ignore));
        assert!(ended.unwrap().is_some());
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_cut_character_waits_for_its_rest() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.decode(&[b'a', 0xC3]), "a");
        assert_eq!(decoder.decode(&[0xA9]), "é");
        assert_eq!(decoder.decode(&[0xFF, b'b']), "\u{FFFD}b");
    }
}
