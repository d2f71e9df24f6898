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

/// What a redirection in PowerShell writes; other programs leave the mark at the start away.
fn utf16(bytes: &[u8]) -> Option<String> {
    let zeros = |odd: usize| {
        let pairs = bytes.chunks_exact(2).take(1 << 12);
        let zero = pairs.clone().filter(|pair| pair[odd] == 0 && pair[1 - odd] != 0).count();
        zero > 8 && zero * 10 > pairs.len() * 9
    };
    let (little, marked) = match bytes {
        [0xff, 0xfe, ..] => (true, 2),
        [0xfe, 0xff, ..] => (false, 2),
        _ if zeros(1) => (true, 0),
        _ if zeros(0) => (false, 0),
        _ => return None,
    };
    let unit = |pair: &[u8]| match little {
        true => u16::from_le_bytes([pair[0], pair[1]]),
        false => u16::from_be_bytes([pair[0], pair[1]]),
    };
    let units: Vec<u16> = bytes[marked..].chunks_exact(2).map(unit).collect();
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

    /// The lines of a log as they were written: what a terminal or a mail program broke is joined, what launchers put in
    /// front is gone. A line that neither a logger nor one of `starts` begins belongs to the one before it.
    pub fn records(&self, starts: &[&str]) -> Vec<Record> {
        let mut records: Vec<Record> = Vec::new();
        let widest = self.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let mut full = false;
        for line in self.whole_figures() {
            let piece =
                log_record(line).unwrap_or_else(|| unprefixed(line).trim_end_matches(FRAME));
            let begins = log_record(line).is_some() || starts.iter().any(|s| piece.starts_with(s));
            match records.last_mut().filter(|_| !begins && !piece.is_empty()) {
                Some(record) => record.append(piece, full),
                None => records.push(Record::new(piece)),
            }
            full = line.chars().count() == widest;
        }
        records
    }

    /// Lines without what mail, launchers and loggers put in front.
    pub fn unprefixed(&self) -> impl Iterator<Item = &str> {
        self.lines().map(unprefixed)
    }

    /// Does the squeezed text contain one of these (squeezed, lower case)?
    pub fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.squeezed.contains(word))
    }
}

/// One line of a log, whole again.
pub struct Record {
    /// As it was written, but for spaces at the places where it had been broken.
    pub plain: String,
    /// Lower case, without white space.
    pub squeezed: String,
}

impl Record {
    fn new(piece: &str) -> Self {
        Record { plain: piece.into(), squeezed: squeezed_line(piece) }
    }

    /// Adds what stood in the next line; `full`: the break may stand within a number.
    fn append(&mut self, piece: &str, full: bool) {
        if !full {
            self.plain.push(' ');
            let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
            // Two numbers do not become one.
            if digit(self.squeezed.chars().next_back()) && digit(piece.trim_start().chars().next())
            {
                self.squeezed.push(' ');
            }
        }
        self.plain.push_str(piece);
        self.squeezed.push_str(&squeezed_line(piece));
    }
}

fn squeezed_line(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect()
}

/// From the logger's own mark on: `W0000 00:00:1796…`, `I0203 11:20:41.1`, `2026-02-03 11:20:41.123456: W tensorflow/…`.
fn log_record(line: &str) -> Option<&str> {
    let bytes = line.as_bytes();
    let severity = |at: usize| matches!(bytes.get(at), Some(b'I' | b'W' | b'E' | b'F'));
    let shape = |at: usize, pattern: &str| {
        pattern.bytes().enumerate().all(|(n, wanted)| match (wanted, bytes.get(at + n)) {
            (b'0', Some(digit)) => digit.is_ascii_digit(),
            (wanted, Some(found)) => wanted == *found,
            (_, None) => false,
        })
    };
    (0..bytes.len().min(160)).filter(|at| line.is_char_boundary(*at)).find_map(|at| {
        let alone = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let glog = severity(at) && shape(at + 1, "0000 00:00:");
        let dated = shape(at, "0000-00-00 00:00:00.") && {
            let behind = line[at + 20..].trim_start_matches(|c: char| c.is_ascii_digit());
            let mark = line.len() - behind.len() + 2;
            behind.starts_with(": ")
                && severity(mark)
                && matches!(bytes.get(mark + 1), Some(b' ') | None)
        };
        (alone && (glog || dated)).then(|| &line[at..])
    })
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
        line = without_worker(line);
        line = without_level(line);
        line = without_journal(line);
        line = without_json(line);
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
        Some(at) => {
            let rest = line[at + 2..].trim_start_matches([':', ' ']);
            let rest = ["<stderr>:", "<stdout>:"]
                .iter()
                .find_map(|s| rest.strip_prefix(s))
                .unwrap_or(rest);
            rest.strip_prefix("- ").unwrap_or(rest)
        }
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

/// `worker-0: `, as launchers over ssh put it.
fn without_worker(line: &str) -> &str {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = line.len() - line.trim_start_matches(name).len();
    let numbered = line[..end].ends_with(|c: char| c.is_ascii_digit());
    match line[end..].strip_prefix(": ") {
        Some(rest) if numbered && line[..end].contains('-') => rest,
        _ => line,
    }
}

/// `ERROR:root:`, as Python's logging puts it, and `__main__:main:42 - `, as loguru does.
fn without_level(line: &str) -> &str {
    let levels = ["CRITICAL:", "ERROR:", "WARNING:", "INFO:", "DEBUG:"];
    if let Some(rest) = levels.iter().find_map(|level| line.strip_prefix(level)) {
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        return rest.trim_start_matches(name).strip_prefix(':').unwrap_or(rest);
    }
    match line.split_once(" - ") {
        Some((place, rest)) if place.matches(':').count() == 2 && !place.contains([' ', '(']) => {
            rest
        }
        _ => line,
    }
}

/// `Feb 03 11:20:41 node7 python3[4242]: `, as syslog and the journal put it.
fn without_journal(line: &str) -> &str {
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let Some(rest) = months.iter().find_map(|month| line.strip_prefix(month)) else { return line };
    let rest = rest.trim_start();
    let Some((day, rest)) = rest.split_once(' ') else { return line };
    let Some((time, rest)) = rest.split_once(' ') else { return line };
    let clock = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.');
    if day.parse::<u8>().is_err() || !time.contains(':') || !time.chars().all(clock) {
        return line;
    }
    // Host and program; a program without a pid has the colon at its name.
    match rest.split_once(": ") {
        Some((who, rest)) if who.len() < 80 && who.split(' ').count() <= 2 => rest,
        _ => rest,
    }
}

/// `{"log":"`, as Docker keeps the lines of a container.
fn without_json(line: &str) -> &str {
    line.strip_prefix("{\"log\":\"").unwrap_or(line)
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
            "Feb 03 11:20:41 node7 python3[42]: GPU 0 has a total\nFeb  3 11:20:41 node7 python3[42]: capacity of 23.64 GiB of which",
            "[1,0]<stderr>:GPU 0 has a total\n[1,0]<stderr>:capacity of 23.64 GiB of which",
            "[pod/trainer-0/main] GPU 0 has a total\n[pod/trainer-0/main] capacity of 23.64 GiB of which",
            "worker-0: GPU 0 has a total\nworker-0: capacity of 23.64 GiB of which",
            "[2026-02-03 11:20:41,123][__main__][ERROR] - GPU 0 has a total\n[2026-02-03 11:20:41,123][__main__][ERROR] - capacity of 23.64 GiB of which",
            "ERROR:root:GPU 0 has a total\nERROR:root:capacity of 23.64 GiB of which",
            "2026-02-03 11:20:41 | ERROR    | __main__:main:42 - GPU 0 has a total capacity of 23.64 GiB of which",
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
