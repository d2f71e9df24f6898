//! What a session says while a cell runs: a closed set, plain data only.

/// One thing that happened. Faces render it; nothing else may be printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Text written by the cell, in order with everything else.
    Stdout(String),
    Stderr(String),
    /// The cell's value: `Out[number]`, or the value of a variable shown without `Out` (`None`).
    Value {
        number: Option<u32>,
        content: Content,
    },
    /// `display(&x)`, a table asked for by a command. With an id it replaces the earlier one.
    Display {
        content: Content,
        id: Option<String>,
        update: bool,
    },
    Error(Box<CellError>),
    Memory(Box<MemoryReport>),
    /// 0.0 ..= 1.0 with a label; for long work only.
    Progress {
        label: String,
        fraction: f64,
    },
    /// Forget what was shown for this cell.
    ClearOutput {
        wait: bool,
    },
}

/// The id of the display that `%watch live` pins.
pub const MEMORY_DISPLAY: &str = "vramlab-memory";

/// The same thing for several faces. `text` is always there and complete.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Content {
    pub text: String,
    pub html: Option<String>,
    /// A picture by itself, for faces that show images; in a page it stands in `html` already.
    pub svg: Option<String>,
    /// A table for the terminal to draw by its width; then `text` is its plain rendering.
    pub table: Option<Table>,
}

/// Plain rows; the first column is a label.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table {
    pub title: Option<String>,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Columns that hold figures: right-aligned.
    pub numeric: Vec<bool>,
    pub footer: Vec<String>,
}

/// 1-based, in characters; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TextSpan {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CellError {
    /// `E0382`, `shape`, `OOM`, `command`, `interrupted`, …: the word in `error[…]`.
    pub kind: String,
    pub message: String,
    pub cell: u32,
    pub span: Option<TextSpan>,
    /// The whole rendering: heading, source line with caret, labels, help; no colour.
    pub rendered: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    Error,
    Interrupted,
}

impl Status {
    pub const fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Error => "error",
            Status::Interrupted => "interrupted",
        }
    }
}

/// How a cell ended; the events were delivered before.
#[derive(Clone, Debug, PartialEq)]
pub struct CellResult {
    pub cell: u32,
    pub status: Status,
    pub tier: Tier,
    pub wall_ns: u64,
    pub error: Option<CellError>,
    pub memory: MemoryReport,
    /// What the next cell's text should begin as (`%load`).
    pub next_input: Option<String>,
    /// The session was asked to end (`%exit`).
    pub exit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Instant,
    Compiled,
    /// A cell of `%` commands only.
    Command,
}

impl Tier {
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Instant => "instant",
            Tier::Compiled => "compiled",
            Tier::Command => "command",
        }
    }
}

/// Device memory after a cell, and what the cell did. Bytes. The names are the contract of
/// `vramlab run --json`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MemoryReport {
    pub cell: u32,
    /// As `%mode` would set it: `ondemand gc=on`.
    pub mode: String,
    pub device: String,
    pub requested_bytes: u64,
    pub bytes_in_use: u64,
    pub delta_bytes: i64,
    /// Highest requested bytes inside the cell.
    pub peak_requested_bytes_cell: u64,
    /// Highest granted bytes inside the cell.
    pub peak_bytes_in_use_cell: u64,
    pub pool_bytes: u64,
    pub bytes_limit: u64,
    pub device_bytes: u64,
    pub largest_free_block_bytes: u64,
    pub fragmentation: f64,
    pub num_allocs_cell: u64,
    pub num_frees_cell: u64,
    pub driver_allocs_cell: u64,
    pub driver_frees_cell: u64,
    pub live_arrays: u64,
    /// In the order of their making.
    pub regions: Vec<u64>,
    /// Since the session began; calls of jitted functions.
    pub compile: CompileCounts,
    pub compile_hits_cell: u64,
    pub compile_misses_cell: u64,
    /// What the misses of this cell took.
    pub compile_ns_cell: u64,
    pub scopes: Vec<ScopeReport>,
    /// Variables by bytes, largest first (for the full table).
    pub variables: Vec<(String, u64)>,
    /// The pool as a strip of characters: `█` in use, `▒` partly, `·` free, `│` between regions.
    /// Only for the full table.
    pub strip: String,
    /// Compile cache entries by bytes, largest first (for the full table).
    pub caches: Vec<(String, u64)>,
    /// The map of the pool as SVG. Only for the pinned display.
    pub picture: String,
    pub wall_ns: u64,
    pub tier: Option<Tier>,
    /// Lines that must not be missed: a backed-off preallocation, a copied donation and its holder.
    pub notes: Vec<String>,
    /// How much the face should show.
    pub watch: Watch,
}

impl MemoryReport {
    /// In use beyond what was asked for.
    pub fn slack_bytes(&self) -> u64 {
        self.bytes_in_use.saturating_sub(self.requested_bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Watch {
    /// Nothing.
    Off,
    #[default]
    Brief,
    Full,
    /// One pinned display, updated after every cell (Jupyter); brief elsewhere.
    Live,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CompileCounts {
    pub hits: u64,
    pub misses: u64,
    pub entries: u64,
    pub bytes: u64,
}

/// A `scope("name", || …)` that ended in the cell.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ScopeReport {
    pub name: String,
    pub depth: u32,
    pub peak_bytes: u64,
    pub allocated_bytes: u64,
    pub freed_bytes: u64,
}

/// A completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub text: String,
    /// The signature or type, shown beside it.
    pub detail: String,
}

/// The span of the code that completions replace, in bytes of the code.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Completions {
    pub start: usize,
    pub end: usize,
    pub items: Vec<Completion>,
}

/// Whether the text is a whole cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completeness {
    Complete,
    /// More is to come; the suggested indentation of the next line.
    Incomplete {
        indent: String,
    },
    /// No continuation can make it right.
    Invalid,
}
