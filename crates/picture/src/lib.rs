//! Pictures of memory: plain data in, SVG or terminal text out.
//!
//! Place in the flow: beside the reports that `session` makes of a ledger, and of use to whatever else draws a page
//! from a trace. What comes in: regions with their chunks ([`Map`]), step functions of time ([`Timeline`] over
//! [`Samples`]). What goes out: one SVG element, well-formed and the same for the same input, or characters of a width
//! that the caller names ([`strip`], [`spark`]).
//!
//! What it must not know: allocators, ledgers, Jupyter, terminals. It reads nothing and keeps nothing. From `memory` it
//! takes only how a size is written.
//!
//! A picture is read on light and on dark paper: shapes have colours of middling lightness, writing and lines take the
//! colour of the text around them ([`Paper`]), and nothing is filled behind.

pub mod colour;
pub mod map;
mod samples;
pub mod spark;
pub mod strip;
pub mod timeline;
pub mod words;
pub mod xml;

pub use map::{Chunk, ChunkState, Map, Region};
pub use samples::{Bucket, Samples};
pub use timeline::{Mark, MarkKind, Series, Style, Timeline, Unit};

/// Where a picture will stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paper {
    /// In a page: writing takes the colour of the page's text, and hovering shows titles.
    #[default]
    Page,
    /// A file or an image of its own: a grey that is read on white and on black.
    Alone,
}

impl Paper {
    /// What the root element says about colour.
    fn ink(self) -> &'static str {
        match self {
            Paper::Page => "currentColor",
            Paper::Alone => "#808080",
        }
    }
}
