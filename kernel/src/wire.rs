//! The Jupyter wire format: frames, signature, headers.
//!
//! The header is decoded first and kept as it came, so that a reply to a malformed content still
//! carries the right parent, unknown keys included.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::{SystemTime, UNIX_EPOCH};

/// Separates routing identities from the message.
const DELIMITER: &[u8] = b"<IDS|MSG>";

/// The protocol version that this kernel speaks.
pub const PROTOCOL_VERSION: &str = "5.4";

/// Signs and checks messages with the connection's key; an empty key turns signing off.
#[derive(Clone)]
pub struct Signer {
    key: Vec<u8>,
}

impl Signer {
    pub fn new(key: &str) -> Signer {
        Signer { key: key.as_bytes().to_vec() }
    }

    fn mac(&self, parts: &[Vec<u8>]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes keys of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac
    }

    fn sign(&self, parts: &[Vec<u8>]) -> String {
        if self.key.is_empty() {
            return String::new();
        }
        let digest = self.mac(parts).finalize().into_bytes();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn verifies(&self, parts: &[Vec<u8>], signature: &[u8]) -> bool {
        if self.key.is_empty() {
            return true;
        }
        let Some(expected) = decode_hex(signature) else { return false };
        self.mac(parts).verify_slice(&expected).is_ok()
    }
}

fn decode_hex(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    if text.len() % 2 != 0 || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).ok()).collect()
}

/// A message that arrived. `content` is an error text when its JSON is malformed.
#[derive(Clone, Debug)]
pub struct Incoming {
    pub identities: Vec<Vec<u8>>,
    pub header: Value,
    pub content: Result<Value, String>,
}

impl Incoming {
    pub fn kind(&self) -> &str {
        self.header["msg_type"].as_str().unwrap_or("")
    }
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Routing identities, or the topic on iopub.
    pub identities: Vec<Vec<u8>>,
    pub kind: String,
    /// The header of the message this one answers, as it came; `{}` when there is none.
    pub parent: Value,
    pub content: Value,
    pub metadata: Value,
}

impl Outgoing {
    /// An answer to `request` along the way it came.
    pub fn reply(request: &Incoming, kind: &str, content: Value) -> Outgoing {
        Outgoing {
            identities: request.identities.clone(),
            kind: kind.to_string(),
            parent: request.header.clone(),
            content,
            metadata: json!({}),
        }
    }

    /// A broadcast under a topic that readers use for filtering.
    pub fn broadcast(parent: &Value, kind: &str, content: Value) -> Outgoing {
        Outgoing {
            identities: vec![format!("kernel.vramlab.{kind}").into_bytes()],
            kind: kind.to_string(),
            parent: parent.clone(),
            content,
            metadata: json!({}),
        }
    }
}

/// Why frames are not a message: such input is dropped, since there is nobody to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    NoDelimiter,
    TooFewFrames,
    BadSignature,
    HeaderIsNotJson,
}

/// # Errors
/// When the frames hold no signed header; a malformed content is not an error here.
pub fn decode(frames: &[impl AsRef<[u8]>], signer: &Signer) -> Result<Incoming, FrameError> {
    let split = frames
        .iter()
        .position(|frame| frame.as_ref() == DELIMITER)
        .ok_or(FrameError::NoDelimiter)?;
    let rest = &frames[split + 1..];
    if rest.len() < 5 {
        return Err(FrameError::TooFewFrames);
    }
    let parts: Vec<Vec<u8>> = rest[1..5].iter().map(|frame| frame.as_ref().to_vec()).collect();
    if !signer.verifies(&parts, rest[0].as_ref()) {
        return Err(FrameError::BadSignature);
    }
    let header: Value =
        serde_json::from_slice(&parts[0]).map_err(|_| FrameError::HeaderIsNotJson)?;
    if !header.is_object() {
        return Err(FrameError::HeaderIsNotJson);
    }
    let content = serde_json::from_slice(&parts[3]).map_err(|error| error.to_string());
    let identities = frames[..split].iter().map(|frame| frame.as_ref().to_vec()).collect();
    Ok(Incoming { identities, header, content })
}

/// The frames of a message, signed. `session` is this kernel's own session id.
pub fn encode(message: &Outgoing, signer: &Signer, session: &str) -> Vec<Vec<u8>> {
    let header = json!({
        "msg_id": uuid::Uuid::new_v4().to_string(),
        "session": session,
        "username": "kernel",
        "date": timestamp(SystemTime::now()),
        "msg_type": message.kind,
        "version": PROTOCOL_VERSION,
    });
    let parts: Vec<Vec<u8>> = [&header, &message.parent, &message.metadata, &message.content]
        .into_iter()
        .map(|value| value.to_string().into_bytes())
        .collect();
    let mut frames = message.identities.clone();
    frames.push(DELIMITER.to_vec());
    frames.push(signer.sign(&parts).into_bytes());
    frames.extend(parts);
    frames
}

/// ISO 8601 in UTC with microseconds, as the protocol wants dates.
fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days as i64);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:06}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_micros()
    )
}

/// The Gregorian date of a day counted from 1970-01-01, by walking years and months.
fn civil(mut days: i64) -> (i64, i64, i64) {
    let leap = |y: i64| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    let mut year = 1970;
    while days >= 365 + leap(year) as i64 {
        days -= 365 + leap(year) as i64;
        year += 1;
    }
    let february = 28 + leap(year) as i64;
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as i64 + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn message() -> Outgoing {
        Outgoing {
            identities: vec![b"peer".to_vec()],
            kind: "stream".into(),
            parent: json!({"msg_id": "1", "unknown": [1, 2]}),
            content: json!({"text": "ü"}),
            metadata: json!({}),
        }
    }

    #[test]
    fn frames_round_trip_under_the_same_key_only() {
        let frames = encode(&message(), &Signer::new("secret"), "s");
        let incoming = decode(&frames, &Signer::new("secret")).expect("signed by the same key");
        assert_eq!(incoming.kind(), "stream");
        assert_eq!(incoming.identities, vec![b"peer".to_vec()]);
        assert_eq!(incoming.content, Ok(json!({"text": "ü"})));
        assert_eq!(decode(&frames, &Signer::new("other")).err(), Some(FrameError::BadSignature));
    }

    #[test]
    fn known_hmac_answer() {
        let parts = vec![b"what do ya want ".to_vec(), b"for nothing?".to_vec()];
        assert_eq!(
            Signer::new("Jefe").sign(&parts),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn malformed_content_keeps_the_header() {
        let signer = Signer::new("");
        let mut frames = encode(&message(), &signer, "s");
        let last = frames.len() - 1;
        frames[last] = b"{not json".to_vec();
        let incoming = decode(&frames, &signer).expect("the header is fine");
        assert!(incoming.content.is_err());
        assert_eq!(incoming.kind(), "stream");
    }

    #[test]
    fn rubbish_is_refused_in_words() {
        let signer = Signer::new("k");
        let none: [&[u8]; 0] = [];
        assert_eq!(decode(&none, &signer).err(), Some(FrameError::NoDelimiter));
        assert_eq!(decode(&[DELIMITER, b"x"], &signer).err(), Some(FrameError::TooFewFrames));
        let bad = [DELIMITER, b"zz", b"{}", b"{}", b"{}", b"{}"];
        assert_eq!(decode(&bad, &signer).err(), Some(FrameError::BadSignature));
        let list = [DELIMITER, b"", b"[]", b"{}", b"{}", b"{}"];
        assert_eq!(decode(&list, &Signer::new("")).err(), Some(FrameError::HeaderIsNotJson));
    }

    #[test]
    fn dates_are_gregorian() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59.000000Z");
    }
}
