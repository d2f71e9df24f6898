//! Events of the session as contents of Jupyter messages.

use crate::wire::PROTOCOL_VERSION;
use serde_json::{Value, json};
use vramlab_session::{CellError, Completeness, Completions, Content, Past};

pub fn kernel_info() -> Value {
    json!({
        "status": "ok",
        "protocol_version": PROTOCOL_VERSION,
        "implementation": "vramlab",
        "implementation_version": env!("CARGO_PKG_VERSION"),
        "language_info": {
            "name": "rust",
            "version": env!("CARGO_PKG_RUST_VERSION"),
            "mimetype": "text/rust",
            "file_extension": ".rs",
            "pygments_lexer": "rust",
            "codemirror_mode": "rust",
        },
        "banner": format!("vramlab {}: Rust cells over live device memory", env!("CARGO_PKG_VERSION")),
        "debugger": false,
        "help_links": [],
        "supported_features": [],
    })
}

/// A MIME bundle: text always, HTML and a picture when there are some.
pub fn bundle(content: &Content) -> Value {
    let mut bundle = json!({"text/plain": content.text});
    if let Some(html) = &content.html {
        bundle["text/html"] = json!(html);
    }
    if let Some(svg) = &content.svg {
        bundle["image/svg+xml"] = json!(svg);
    }
    bundle
}

pub fn display(content: &Content, id: Option<&str>) -> Value {
    let transient = id.map_or_else(|| json!({}), |id| json!({"display_id": id}));
    json!({"data": bundle(content), "metadata": {}, "transient": transient})
}

pub fn execute_result(content: &Content, count: u32) -> Value {
    json!({"execution_count": count, "data": bundle(content), "metadata": {}})
}

/// The `error` broadcast, and the body of an error reply.
pub fn error(error: &CellError) -> Value {
    let traceback: Vec<&str> = error.rendered.lines().collect();
    json!({"ename": error.kind, "evalue": error.message, "traceback": traceback})
}

/// A reply that says why the request could not be served.
pub fn refusal(name: &str, why: &str) -> Value {
    json!({"status": "error", "ename": name, "evalue": why, "traceback": []})
}

/// Cursor positions count Unicode characters in the protocol and bytes in the session.
pub fn byte_position(code: &str, characters: u64) -> usize {
    code.char_indices().nth(characters as usize).map_or(code.len(), |(byte, _)| byte)
}

fn character_position(code: &str, byte: usize) -> usize {
    code.char_indices().take_while(|(at, _)| *at < byte).count()
}

pub fn complete(code: &str, completions: &Completions) -> Value {
    let start = character_position(code, completions.start);
    let end = character_position(code, completions.end);
    let matches: Vec<&str> = completions.items.iter().map(|item| item.text.as_str()).collect();
    let typed: Vec<Value> = completions
        .items
        .iter()
        .map(|item| {
            json!({"start": start, "end": end, "text": item.text, "type": item.detail,
                "signature": item.detail})
        })
        .collect();
    json!({
        "status": "ok",
        "matches": matches,
        "cursor_start": start,
        "cursor_end": end,
        "metadata": {"_jupyter_types_experimental": typed},
    })
}

pub fn is_complete(completeness: &Completeness) -> Value {
    match completeness {
        Completeness::Complete => json!({"status": "complete"}),
        Completeness::Incomplete { indent } => json!({"status": "incomplete", "indent": indent}),
        Completeness::Invalid => json!({"status": "invalid"}),
    }
}

pub fn inspect(found: Option<&Content>) -> Value {
    let data = found.map_or_else(|| json!({}), bundle);
    json!({"status": "ok", "found": found.is_some(), "data": data, "metadata": {}})
}

/// The body of a good execute reply. Expressions beside the cell are refused one by one.
pub fn execute_ok(count: u32, request: &Value) -> Value {
    let asked = request["user_expressions"].as_object();
    let why = "expressions beside a cell are not evaluated; write them in a cell";
    let values: serde_json::Map<String, Value> = asked
        .into_iter()
        .flat_map(|asked| asked.keys())
        .map(|name| (name.clone(), refusal("Unsupported", why)))
        .collect();
    json!({"status": "ok", "execution_count": count, "payload": [], "user_expressions": values})
}

/// The rows that a history request asks for, as (session 1, line, source).
pub fn history(cells: &[Past], request: &Value) -> Value {
    let wanted = match request["hist_access_type"].as_str() {
        Some("tail") => {
            let n = request["n"].as_u64().unwrap_or(u64::MAX).min(cells.len() as u64) as usize;
            cells.len() - n..cells.len()
        }
        Some("range") => {
            let index = |name: &str, default: usize| {
                let line = request[name].as_u64().map(|line| line.max(1) as usize - 1);
                line.unwrap_or(default).min(cells.len())
            };
            index("start", 0)..index("stop", cells.len())
        }
        _ => 0..cells.len(),
    };
    let pattern = request["pattern"].as_str().unwrap_or("*");
    let rows: Vec<Value> = wanted
        .filter(|&i| matches_glob(pattern.as_bytes(), cells[i].source.as_bytes()))
        .map(|i| json!([1, cells[i].cell, cells[i].source]))
        .collect();
    json!({"status": "ok", "history": rows})
}

/// `*` and `?` as in a shell. On a mismatch the last star takes one byte more, so the time is
/// bounded by the product of the lengths.
fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramlab_session::{Completion, Status};

    #[test]
    fn positions_count_characters_outside_and_bytes_inside() {
        let code = "let µ = x.ta";
        assert_eq!(byte_position(code, 5), 6);
        assert_eq!(byte_position(code, 99), code.len());
        let completions = Completions {
            start: code.len() - 2,
            end: code.len(),
            items: vec![Completion { text: "tanh".into(), detail: "fn".into() }],
        };
        let reply = complete(code, &completions);
        assert_eq!(reply["cursor_start"], 10);
        assert_eq!(reply["cursor_end"], 12);
        assert_eq!(reply["matches"][0], "tanh");
    }

    #[test]
    fn history_by_tail_range_and_pattern() {
        let cells: Vec<Past> = ["let a = 1;", "a", "let b = 2;"]
            .into_iter()
            .zip(1..)
            .map(|(source, cell)| Past { cell, source: source.into(), status: Status::Ok })
            .collect();
        let lines = |request: Value| -> Vec<u64> {
            let reply = history(&cells, &request);
            let rows = reply["history"].as_array().expect("rows");
            rows.iter().map(|row| row[1].as_u64().expect("line")).collect()
        };
        assert_eq!(lines(json!({"hist_access_type": "tail", "n": 2})), [2, 3]);
        assert_eq!(lines(json!({"hist_access_type": "range", "start": 1, "stop": 2})), [1]);
        assert_eq!(lines(json!({"hist_access_type": "range", "start": 9, "stop": 2})), [0u64; 0]);
        assert_eq!(lines(json!({"hist_access_type": "search", "pattern": "let*"})), [1, 3]);
        assert_eq!(lines(json!({"hist_access_type": "search", "pattern": "?"})), [2]);
    }
}
