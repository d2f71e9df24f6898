//! Tables as plain text and as HTML; a terminal draws [`Table`] itself.

use crate::event::{Content, Table};

impl Content {
    pub fn of_text(text: impl Into<String>) -> Content {
        Content { text: text.into(), ..Content::default() }
    }

    pub fn of_table(table: Table) -> Content {
        Content {
            text: plain(&table),
            html: Some(html(&table)),
            table: Some(table),
            ..Content::default()
        }
    }
}

impl Table {
    /// `header` in words; a heading that begins with `>` is of a column of figures.
    pub fn new(header: &[&str]) -> Table {
        Table {
            title: None,
            header: header.iter().map(|name| name.trim_start_matches('>').to_string()).collect(),
            rows: Vec::new(),
            numeric: header.iter().map(|name| name.starts_with('>')).collect(),
            footer: Vec::new(),
        }
    }

    pub fn titled(mut self, title: impl Into<String>) -> Table {
        self.title = Some(title.into());
        self
    }

    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub fn note(&mut self, line: impl Into<String>) {
        self.footer.push(line.into());
    }
}

/// Columns parted by two spaces, one space before the first, as wide as their content.
pub fn plain(table: &Table) -> String {
    let columns = table.header.len();
    let width = |column: usize| {
        let rows = table.rows.iter().filter_map(|row| row.get(column));
        let cells = rows.chain(table.header.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &[String]| {
        let mut out = String::new();
        for (column, cell) in cells.iter().enumerate() {
            out.push_str(if column == 0 { " " } else { "  " });
            let pad = " ".repeat(
                widths.get(column).copied().unwrap_or(0).saturating_sub(cell.chars().count()),
            );
            if table.numeric.get(column).copied().unwrap_or(false) {
                out.push_str(&pad);
                out.push_str(cell);
            } else {
                out.push_str(cell);
                out.push_str(&pad);
            }
        }
        out.trim_end().to_string()
    };
    let title = table.title.iter().map(|title| format!(" {title}"));
    let header = (table.header.iter().any(|name| !name.is_empty())).then(|| line(&table.header));
    let rows = table.rows.iter().map(|row| line(row));
    let footer = table.footer.iter().map(|note| format!(" {note}"));
    title.chain(header).chain(rows).chain(footer).collect::<Vec<_>>().join("\n")
}

/// Styles stand in the elements: a notebook keeps no style sheet of ours.
pub fn html(table: &Table) -> String {
    let cell = |tag: &str, column: usize, text: &str| {
        let align =
            if table.numeric.get(column).copied().unwrap_or(false) { "right" } else { "left" };
        format!(
            "<{tag} style=\"text-align:{align};padding:1px 10px 1px 0;white-space:nowrap\">{}</{tag}>",
            escape(text)
        )
    };
    let line = |tag: &str, cells: &[String]| {
        let cells: String =
            cells.iter().enumerate().map(|(column, text)| cell(tag, column, text)).collect();
        format!("<tr>{cells}</tr>")
    };
    let mut out = String::from(
        "<table style=\"border-collapse:collapse;border:0;margin:4px 0;font-family:monospace;font-size:90%\">",
    );
    if let Some(title) = &table.title {
        out.push_str(&format!(
            "<caption style=\"text-align:left;font-weight:bold;padding:0\">{}</caption>",
            escape(title)
        ));
    }
    out.push_str(&format!("<thead>{}</thead><tbody>", line("th", &table.header)));
    out.extend(table.rows.iter().map(|row| line("td", row)));
    out.push_str("</tbody></table>");
    for note in &table.footer {
        out.push_str(&format!(
            "<div style=\"font-family:monospace;font-size:90%;white-space:pre-wrap\">{}</div>",
            escape(note)
        ));
    }
    out
}

/// Text as HTML shows it.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&["name", ">bytes"]);
        table.row(["x", "1.0"]);
        table.row(["<weights>", "128.0"]);
        table.note("a & b");
        table
    }

    #[test]
    fn columns_line_up() {
        assert_eq!(
            plain(&sample()),
            " name       bytes\n x            1.0\n <weights>  128.0\n a & b"
        );
    }

    #[test]
    fn html_is_escaped() {
        let html = html(&sample());
        assert!(html.contains("&lt;weights&gt;") && html.contains("a &amp; b"), "{html}");
        assert!(!html.contains("<weights>"));
    }
}
