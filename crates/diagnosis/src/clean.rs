//! What a paste did to a text, undone: compression, encodings, colours, escapes, quoting, prefixes, wrapping.

use flate2::read::MultiGzDecoder;
use std::io::Read;

/// What the bytes are, once unpacked.
pub enum Input {
    Text(String),
    Binary(Vec<u8>),
    /// Why they cannot be unpacked.
    Broken(&'static str),
}

/// A file of a few kilobytes can unpack to gigabytes; no memory profile is larger than this.
const UNPACKED_LIMIT: u64 = 256 << 20;

/// Unpacks and decodes. A gzip file that was cut gives what came before the cut.
pub fn input(bytes: &[u8]) -> Input {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return decoded(bytes);
    }
    let mut unpacked = Vec::new();
    let complete = MultiGzDecoder::new(bytes).take(UNPACKED_LIMIT).read_to_end(&mut unpacked);
    match complete {
        Err(_) if unpacked.is_empty() => Input::Broken("a gzip file without readable content"),
        _ => decoded(&unpacked),
    }
}

fn decoded(bytes: &[u8]) -> Input {
    if let Some(text) = utf16(bytes) {
        return Input::Text(text);
    }
    let strange = |b: &&u8| matches!(b, 0..=6 | 14..=26 | 28..=31);
    let strange = bytes.iter().take(1 << 16).filter(strange).count();
    // Colours and progress bars bring a few control characters; a profile is full of them.
    match strange * 50 > bytes.len().min(1 << 16) {
        true => Input::Binary(bytes.to_vec()),
        false => Input::Text(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// What a redirection in PowerShell writes.
fn utf16(bytes: &[u8]) -> Option<String> {
    let little = match bytes {
        [0xff, 0xfe, ..] => true,
        [0xfe, 0xff, ..] => false,
        _ => return None,
    };
    let unit = |pair: &[u8]| match little {
        true => u16::from_le_bytes([pair[0], pair[1]]),
        false => u16::from_be_bytes([pair[0], pair[1]]),
    };
    let units: Vec<u16> = bytes[2..].chunks_exact(2).map(unit).collect();
    Some(String::from_utf16_lossy(&units))
}

/// A text in the two forms that readers need.
pub struct Text {
    /// Without colours and escapes, lines as they stand.
    pub plain: String,
    /// Lower case, without white space, quoting and prefixes of lines: a sentence that was wrapped, even inside a word or
    /// a number, is whole again.
    pub squeezed: String,
}

impl Text {
    pub fn new(raw: &str) -> Self {
        let plain = without_colours(raw).replace("\r\n", "\n").replace('\r', "\n");
        let plain = unescaped(plain);
        let squeezed = squeezed(&plain);
        Text { plain, squeezed }
    }

    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.plain.lines()
    }

    /// Lines for readers of numbers without units: digits at the very end of a text that does not end its last line may
    /// have lost others.
    pub fn whole_figures(&self) -> impl Iterator<Item = &str> {
        self.plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').lines()
    }

    /// Does the squeezed text contain one of these (squeezed, lower case)?
    pub fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.squeezed.contains(word))
    }
}

/// Removes ECMA-48 control sequences, operating system commands, and other control characters but tab and newline.
fn without_colours(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.peek() {
                Some('[') => {
                    chars.next();
                    while let Some(c) = chars.peek().copied() {
                        if !(' '..='~').contains(&c) {
                            break;
                        }
                        chars.next();
                        if ('@'..='~').contains(&c) {
                            break;
                        }
                    }
                }
                Some(']') => {
                    while let Some(c) = chars.peek().copied() {
                        if c == '\n' {
                            break;
                        }
                        chars.next();
                        if c == '\u{7}' {
                            break;
                        }
                    }
                }
                _ => {}
            },
            '\n' | '\r' | '\t' => out.push(c),
            c if c.is_control() || c == '\u{feff}' => {}
            // A no-break space, as web pages have them.
            '\u{a0}' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Undoes the escapes of JSON and of Python's `repr`, as often as they were put on.
fn unescaped(mut text: String) -> String {
    for _ in 0..3 {
        if !["\\n", "\\\"", "\\u00", "\\x1b", "&gt;", "&quot;"].iter().any(|e| text.contains(e)) {
            break;
        }
        text = without_colours(&unescaped_once(&text));
    }
    text
}

fn unescaped_once(text: &str) -> String {
    let text = text.replace("&gt;", ">").replace("&lt;", "<").replace("&quot;", "\"");
    let text = text.replace("&#39;", "'").replace("&amp;", "&");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (written, length) = escape(&rest[at..]);
        match written {
            Some(c) => out.push(c),
            None => out.push_str(&rest[at..at + length]),
        }
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    out
}

/// The character that an escape at the start stands for, and the escape's length.
fn escape(text: &str) -> (Option<char>, usize) {
    let code = |from: usize, length: usize| {
        let digits = text.get(from..from + length)?;
        char::from_u32(u32::from_str_radix(digits, 16).ok()?)
    };
    match text.as_bytes().get(1) {
        Some(b'n' | b'r') => (Some('\n'), 2),
        Some(b't') => (Some('\t'), 2),
        Some(b'"') => (Some('"'), 2),
        Some(b'\'') => (Some('\''), 2),
        Some(b'\\') => (Some('\\'), 2),
        Some(b'/') => (Some('/'), 2),
        Some(b'u') if code(2, 4).is_some() => (code(2, 4), 6),
        Some(b'x') if code(2, 2).is_some() => (code(2, 2), 4),
        _ => (None, 1),
    }
}

fn squeezed(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len());
    for line in plain.lines() {
        let line = unprefixed(line).trim_end_matches(FRAME);
        out.extend(line.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()));
    }
    out
}

/// What frames of tracebacks are drawn with, and white space.
const FRAME: [char; 7] = ['│', '┃', '║', '|', '╎', ' ', '\t'];

/// A line without what mail, launchers and loggers put in front of it.
fn unprefixed(line: &str) -> &str {
    let mut line = line;
    // Each turn removes one prefix; a line of nothing but prefixes ends soon.
    for _ in 0..12 {
        let before = line.len();
        line = line.trim_start_matches(FRAME).trim_start_matches('>');
        line = without_group(line);
        line = without_rank(line);
        line = without_time(line);
        line = without_container(line);
        if line.len() == before {
            break;
        }
    }
    line
}

/// `[rank0]: `, `[2026-02-03 11:20:41] `, `(Trainer pid=4242, ip=…) `.
fn without_group(line: &str) -> &str {
    let inner = |close: char| line[1..].find(close).filter(|at| *at < 80);
    let end = match line.chars().next() {
        Some('[') => inner(']'),
        Some('(') => inner(')').filter(|at| line[1..=*at].contains("pid=")),
        _ => None,
    };
    match end {
        Some(at) => line[at + 2..].trim_start_matches([':', ' ']),
        None => line,
    }
}

/// `3: `, as srun -l and mpirun put it.
fn without_rank(line: &str) -> &str {
    let digits = crate::quantity::digits(line);
    match line[digits..].strip_prefix(": ") {
        Some(rest) if (1..=5).contains(&digits) => rest,
        _ => line,
    }
}

/// `2026-02-03T11:20:41.123Z stderr F `, `11:20:41,123 ERROR - `.
fn without_time(line: &str) -> &str {
    let stamp =
        |c: char| c.is_ascii_digit() || matches!(c, '-' | '/' | ':' | '.' | ',' | 'T' | 'Z' | '+');
    let end = line.len() - line.trim_start_matches(stamp).len();
    let colons = line[..end].matches(':').count();
    let dashes = line[..end].matches(['-', '/']).count();
    if colons < 2 && dashes < 2 {
        return line;
    }
    let mut rest = &line[end..];
    let words =
        ["stderr", "stdout", "ERROR", "WARNING", "INFO", "DEBUG", "CRITICAL", "F ", "- ", "| "];
    loop {
        let before = rest.len();
        rest = rest.trim_start_matches([' ', ':', ']']);
        for word in words {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        if rest.len() == before {
            return rest;
        }
    }
}

/// `trainer-1  | `, as docker compose puts it.
fn without_container(line: &str) -> &str {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = line.len() - line.trim_start_matches(name).len();
    match line[end..].trim_start_matches(' ').strip_prefix("| ") {
        Some(rest) if end > 0 => rest,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_paste_did_is_undone() {
        let whole = "gpu0hasatotalcapacityof23.64gibofwhich";
        for text in [
            "GPU 0 has a total capacity of 23.64 GiB of which",
            "\u{1b}[1mGPU 0\u{1b}[0m has a total capacity of \u{1b}[1m23.64\u{1b}[22m GiB of which",
            "> GPU 0 has a total capacity of 2\n> 3.64 GiB of which",
            "> > GPU 0 has a total\r\n> > capacity of 23.64 GiB of which",
            "[rank0]: GPU 0 has a total\n[rank0]: capacity of 23.64 GiB of which",
            "3: GPU 0 has a total\n3: capacity of 23.64 GiB of which",
            "trainer-1  | GPU 0 has a total\ntrainer-1  | capacity of 23.64 GiB of which",
            "2026-02-03T11:20:41.1Z stderr F GPU 0 has a total\n2026-02-03T11:20:41.1Z stderr F capacity of 23.64 GiB of which",
            "(Trainer pid=1) GPU 0 has a total\n(Trainer pid=1) capacity of 23.64 GiB of which",
            "│ GPU 0 has a total   │\n│ capacity of 23.64 GiB of which │",
            r"GPU 0 has a total\ncapacity of \u001b[1m23.64\u001b[0m GiB of which",
            r"GPU 0 has a total\\ncapacity of 23.64 GiB of which",
        ] {
            assert_eq!(Text::new(text).squeezed, whole, "{text:?}");
        }
    }

    #[test]
    fn wide_encodings_are_read() {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend("Killed\n".encode_utf16().flat_map(u16::to_le_bytes));
        assert!(matches!(input(&bytes), Input::Text(text) if text == "Killed\n"));
    }

    #[test]
    fn a_gzip_file_of_rubbish_is_broken() {
        assert!(matches!(input(&[0x1f, 0x8b, 8, 0]), Input::Broken(_)));
    }
}
