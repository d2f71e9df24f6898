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

use xml::{Writer, number};

/// Something that can be drawn, alone or above something else.
pub trait Drawing {
    /// What it measures from top to bottom, in pixels; all are [`WIDTH`] wide.
    fn height(&self) -> f64;

    /// Draws it, its upper left corner at 0, 0.
    fn draw(&self, svg: &mut Writer);

    /// Its figures in one sentence: for who cannot see the picture.
    fn summary(&self) -> String;
}

/// What a picture measures from left to right, in pixels.
pub const WIDTH: f64 = 960.0;

/// Drawings one below the other, as one `<svg>` element.
pub fn sheet(drawings: &[&dyn Drawing], paper: Paper) -> String {
    let height: f64 = drawings.iter().map(|drawing| drawing.height() + BETWEEN).sum();
    let words: Vec<String> = drawings.iter().map(|drawing| drawing.summary()).collect();
    let mut svg = Writer::default();
    open_svg(&mut svg, (height - BETWEEN).max(1.0), paper, &words.join("; "));
    let mut top = 0.0;
    for drawing in drawings {
        svg.open("g", &[("transform", format!("translate(0 {})", number(top)))]);
        drawing.draw(&mut svg);
        svg.close();
        top += drawing.height() + BETWEEN;
    }
    svg.finish()
}

const BETWEEN: f64 = 12.0;

fn open_svg(svg: &mut Writer, height: f64, paper: Paper, words: &str) {
    svg.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg".into()),
            ("width", number(WIDTH)),
            ("height", number(height)),
            ("viewBox", format!("0 0 {} {}", number(WIDTH), number(height))),
            ("color", paper.ink().into()),
            ("font-family", words::FONT.into()),
            ("font-size", words::FONT_SIZE.into()),
            ("style", "max-width:100%;height:auto".into()),
            ("role", "img".into()),
            ("aria-label", words.into()),
        ],
    );
}

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
