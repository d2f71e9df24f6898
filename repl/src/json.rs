//! One cell as one line of JSON. The names are a contract.

use serde_json::{Map, Value, json};
use vramlab_session::{CellError, CellResult, Content, Event, MemoryReport, TextSpan};

/// What a cell said, gathered from its events.
#[derive(Default)]
pub struct Outputs {
    list: Vec<Value>,
    /// The last output is a stream: what follows on the same one belongs to it.
    streaming: bool,
}

const PLAIN: &str = "text/plain";
const STDERR: &str = "application/x.stderr";

impl Outputs {
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Stdout(text) => self.stream(PLAIN, text),
            Event::Stderr(text) => self.stream(STDERR, text),
            Event::Value { content, .. } | Event::Display { content, .. } => self.content(content),
            Event::ClearOutput { .. } => self.list.clear(),
            Event::Error(_) | Event::Memory(_) | Event::Progress { .. } => {}
        }
    }

    /// Text of one stream that comes in pieces is one output.
    fn stream(&mut self, mime: &str, text: &str) {
        if self.streaming
            && let Some(Value::String(so_far)) = self.list.last_mut().and_then(|o| o.get_mut(mime))
        {
            so_far.push_str(text);
            return;
        }
        self.streaming = true;
        self.list.push(json!({ mime: text }));
    }

    fn content(&mut self, content: &Content) {
        let mut output = Map::new();
        output.insert(PLAIN.into(), content.text.clone().into());
        if let Some(html) = &content.html {
            output.insert("text/html".into(), html.clone().into());
        }
        if let Some(svg) = &content.svg {
            output.insert("image/svg+xml".into(), svg.clone().into());
        }
        self.streaming = false;
        self.list.push(Value::Object(output));
    }
}

/// The whole line, without its end.
pub fn line(source: &str, outputs: Outputs, result: &CellResult) -> String {
    json!({
        "cell": result.cell,
        "source": source,
        "tier": result.tier.name(),
        "status": result.status.name(),
        "wall_ns": result.wall_ns,
        "outputs": outputs.list,
        "error": result.error.as_ref().map(error),
        "memory": memory(&result.memory),
    })
    .to_string()
}

fn error(error: &CellError) -> Value {
    json!({ "kind": error.kind, "message": error.message, "span": error.span.map(span) })
}

fn span(span: TextSpan) -> Value {
    json!({
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    })
}

fn memory(report: &MemoryReport) -> Value {
    json!({
        "mode": report.mode,
        "requested_bytes": report.requested_bytes,
        "bytes_in_use": report.bytes_in_use,
        "delta_bytes": report.delta_bytes,
        "peak_bytes_in_use_cell": report.peak_bytes_in_use_cell,
        "pool_bytes": report.pool_bytes,
        "bytes_limit": report.bytes_limit,
        "largest_free_block_bytes": report.largest_free_block_bytes,
        "fragmentation": report.fragmentation,
        "num_allocs_cell": report.num_allocs_cell,
        "num_frees_cell": report.num_frees_cell,
        "driver_allocs_cell": report.driver_allocs_cell,
        "driver_frees_cell": report.driver_frees_cell,
        "live_arrays": report.live_arrays,
        "regions": report.regions,
        "compile": {
            "hits": report.compile.hits,
            "misses": report.compile.misses,
            "entries": report.compile.entries,
            "bytes": report.compile.bytes,
        },
    })
}
