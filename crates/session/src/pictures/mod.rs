//! Pictures of the session's memory: the reports and the ledger of the runtime as `picture` wants them.

mod course;
mod map;
mod timeline;

pub use map::{map, map_content, pool_strip};
pub use timeline::{Asked, Scale, fragmentation, timeline};

use crate::event::Content;
use crate::table::escape;
use vramlab_picture::{Drawing, Paper, sheet};

/// Drawings as content: the picture in a page with its figures as a line of words, the picture alone, and the text.
fn content(drawings: &[&dyn Drawing], text: String) -> Content {
    let words: Vec<String> = drawings.iter().map(|drawing| drawing.summary()).collect();
    let html = format!(
        "{}<div style=\"font-family:monospace;font-size:90%\">{}</div>",
        inline(&sheet(drawings, Paper::Page)),
        escape(&words.join(" · "))
    );
    let svg = sheet(drawings, Paper::Alone);
    Content { text, html: Some(html), svg: Some(svg), ..Content::default() }
}

/// A picture within a page.
pub fn inline(svg: &str) -> String {
    format!("<div style=\"margin:4px 0\">{svg}</div>")
}
