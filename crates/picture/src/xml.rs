//! XML out of our own hands, and back in: a writer that cannot leave a tag open, and a small strict reader for tests.

use std::fmt::Write;

/// Elements in the making.
#[derive(Default)]
pub struct Writer {
    out: String,
    open: Vec<&'static str>,
}

impl Writer {
    /// Begins an element.
    pub fn open(&mut self, name: &'static str, attributes: &[(&str, String)]) {
        self.tag(name, attributes);
        self.out.push('>');
        self.open.push(name);
    }

    /// Ends the innermost element.
    pub fn close(&mut self) {
        let name = self.open.pop().expect("an element is open");
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    /// An element without content.
    pub fn leaf(&mut self, name: &'static str, attributes: &[(&str, String)]) {
        self.tag(name, attributes);
        self.out.push_str("/>");
    }

    /// An element with text in it.
    pub fn text(&mut self, name: &'static str, attributes: &[(&str, String)], text: &str) {
        self.open(name, attributes);
        escape(text, &mut self.out);
        self.close();
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }

    /// The text of what was written; every element has been closed.
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }
}

/// Text as XML has it. What XML 1.0 cannot say (control characters, U+FFFE, U+FFFF) becomes U+FFFD.
pub fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            c if is_allowed(c) => out.push(c),
            _ => out.push('\u{FFFD}'),
        }
    }
}

fn is_allowed(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{B}'..='\u{1F}' | '\u{7F}' | '\u{FFFE}' | '\u{FFFF}')
}

/// A coordinate, with at most two decimals.
pub fn number(value: f64) -> String {
    let mut text = String::new();
    write!(text, "{value:.2}").expect("a String takes every text");
    let trimmed = text.trim_end_matches('0').trim_end_matches('.');
    match trimmed {
        "-0" | "" => "0".into(),
        trimmed => trimmed.into(),
    }
}

/// An element that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Names and values, in order.
    pub attributes: Vec<(String, String)>,
    /// Its own text, without that of its children.
    pub text: String,
    /// How many elements it stands in.
    pub depth: usize,
}

impl Element {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value of an attribute that is a figure.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.attribute(name)?.parse().ok()
    }
}

/// The elements of a document in the order of their opening. Strict: one root, quoted attributes, each once, known
/// entities, no stray `<`, `>` or `&`.
///
/// # Errors
/// What is wrong, and at which byte.
pub fn read(text: &str) -> Result<Vec<Element>, String> {
    let mut reader = Reader { text, at: 0, all: Vec::new(), open: Vec::new() };
    while reader.at < text.len() {
        reader.step()?;
    }
    match (reader.open.last(), reader.all.is_empty()) {
        (Some(&open), _) => Err(format!("<{}> is never closed", reader.all[open].name)),
        (None, true) => Err("there is no element".into()),
        (None, false) => Ok(reader.all),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    all: Vec<Element>,
    open: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn wrong<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("{what} at byte {}", self.at))
    }

    fn step(&mut self) -> Result<(), String> {
        if self.rest().starts_with("</") {
            return self.end_tag();
        }
        if self.rest().starts_with('<') {
            return self.start_tag();
        }
        let length = self.rest().find('<').unwrap_or(self.rest().len());
        let raw = &self.rest()[..length];
        let Some(&open) = self.open.last() else { return self.wrong("text outside the root") };
        let text = self.unescaped(raw)?;
        self.all[open].text.push_str(&text);
        self.at += length;
        Ok(())
    }

    fn name(&mut self) -> Result<String, String> {
        let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
        let length = self.rest().find(|c| !of_name(c)).unwrap_or(self.rest().len());
        let name = &self.rest()[..length];
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return self.wrong("a name is missing");
        }
        self.at += length;
        Ok(name.to_string())
    }

    fn end_tag(&mut self) -> Result<(), String> {
        self.at += 2;
        let name = self.name()?;
        let Some(open) = self.open.pop() else { return self.wrong("nothing to close") };
        if self.all[open].name != name || !self.rest().starts_with('>') {
            return self.wrong(&format!("</{name}> closes <{}>", self.all[open].name));
        }
        self.at += 1;
        Ok(())
    }

    fn start_tag(&mut self) -> Result<(), String> {
        if self.open.is_empty() && !self.all.is_empty() {
            return self.wrong("a second root");
        }
        self.at += 1;
        let name = self.name()?;
        let mut element = Element { name, depth: self.open.len(), ..Element::default() };
        loop {
            let before = self.at;
            self.at += self.rest().len() - self.rest().trim_start().len();
            let rest = self.rest();
            if let Some(end) = ["/>", ">"].into_iter().find(|end| rest.starts_with(end)) {
                self.at += end.len();
                self.all.push(element);
                if end == ">" {
                    self.open.push(self.all.len() - 1);
                }
                return Ok(());
            }
            if self.at == before {
                return self.wrong("attributes are not parted");
            }
            let attribute = self.attribute()?;
            if element.attribute(&attribute.0).is_some() {
                return self.wrong("an attribute stands twice");
            }
            element.attributes.push(attribute);
        }
    }

    fn attribute(&mut self) -> Result<(String, String), String> {
        let name = self.name()?;
        let Some(rest) = self.rest().strip_prefix("=\"") else { return self.wrong("no =\"") };
        let Some(length) = rest.find('"') else { return self.wrong("an open value") };
        let value = self.unescaped(&rest[..length])?;
        self.at += length + 3;
        Ok((name, value))
    }

    fn unescaped(&self, raw: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = raw;
        while let Some(c) = rest.chars().next() {
            if c == '<' || c == '>' || !is_allowed(c) {
                return self.wrong("a character that must be escaped");
            }
            let Some(entity) = rest.strip_prefix('&') else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            };
            let Some((name, after)) = entity.split_once(';') else {
                return self.wrong("an open entity");
            };
            let known = [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("#10", '\n')];
            let Some((_, c)) = known.iter().find(|(known, _)| *known == name) else {
                return self.wrong("an unknown entity");
            };
            out.push(*c);
            rest = after;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut writer = Writer::default();
        writer.open("svg", &[("width", number(10.0))]);
        writer.text("title", &[], "a < b && \"c\"\n\u{1}é");
        writer.leaf("rect", &[("id", "x\"<>&".into())]);
        let elements = read(&writer.finish()).expect("well-formed");
        assert_eq!(elements[1].text, "a < b && \"c\"\n\u{FFFD}é");
        assert_eq!(elements[2].attribute("id"), Some("x\"<>&"));
        assert_eq!((elements[0].figure("width"), elements[2].depth), (Some(10.0), 1));
    }

    #[test]
    fn what_is_wrong_is_found() {
        for wrong in [
            "",
            "text",
            "<a>",
            "<a></b>",
            "<a/><b/>",
            "<a x=1/>",
            "<a x=\"1\" x=\"2\"/>",
            "<a x=\"1\"y=\"2\"/>",
            "<a>&nbsp;</a>",
            "<a>&</a>",
            "<a>></a>",
            "<a x=\"<\"/>",
            "<a>\u{1}</a>",
            "<1/>",
            "</a>",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(1.25), "1.25");
        assert_eq!(number(-0.001), "0");
        assert_eq!(number(100.0), "100");
    }
}
