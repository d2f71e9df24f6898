//! A first look at the text, by tokens only and without recursion: how deep it nests, how long its
//! operator chains are, and whether it is a whole cell. The parser's and the checker's recursion is
//! bounded by what this finds.

use crate::diagnostic::Diagnostic;
use crate::ir::Span;

/// Deeper nesting of brackets is refused.
const DEEPEST: usize = 2_000;
/// Longer chains of operators, calls and `else` are refused.
const LONGEST_CHAIN: usize = 10_000;
/// More bytes are refused: the check's tables grow with the cell.
const LARGEST: usize = 32 << 20;

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

/// What the scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Nesting and chain lengths added up along the heaviest path: how deep a recursive walk of
    /// the tree can get.
    pub depth: usize,
}

/// Refuses what no recursive parser should see.
///
/// # Errors
/// A diagnostic that names the limit and the place.
pub fn weigh(text: &str) -> Result<Weight, Box<Diagnostic>> {
    if text.len() > LARGEST {
        let message = format!("the cell has {} bytes; the limit is {LARGEST}", text.len());
        return Err(Diagnostic::parse(point(1, 1), message));
    }
    let mut scan = Scan::new(text);
    while let Some(token) = scan.next_token() {
        scan.weigh_token(token)?;
    }
    Ok(Weight { depth: scan.heaviest })
}

/// Complete, to be continued, or hopeless.
pub fn completeness(text: &str) -> Completeness {
    let mut scan = Scan::new(text);
    let mut open: Vec<char> = Vec::new();
    while let Some(token) = scan.next_token() {
        match token {
            Token::Open(bracket) => open.push(bracket),
            Token::Close(bracket) if open.pop() != Some(partner(bracket)) => {
                return Completeness::Invalid;
            }
            _ => {}
        }
    }
    if !open.is_empty() || scan.unterminated {
        return Completeness::Incomplete { indent: "    ".repeat(open.len()) };
    }
    if ends_in_the_middle(&scan) {
        return Completeness::Incomplete { indent: "    ".into() };
    }
    Completeness::Complete
}

/// `let x =` or `a +`: the last token wants another one.
fn ends_in_the_middle(scan: &Scan<'_>) -> bool {
    matches!(scan.last, Some(Token::Operator(c)) if c != '?' && c != '\'') && !scan.last_was_range
}

fn partner(close: char) -> char {
    match close {
        ')' => '(',
        ']' => '[',
        _ => '{',
    }
}

fn point(line: u32, column: u32) -> Span {
    Span { line, column, end_line: line, end_column: column + 1 }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    Open(char),
    Close(char),
    Operator(char),
    /// `;` and `,`.
    Separator,
    Else,
    Other,
}

struct Scan<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: u32,
    column: u32,
    /// One counter of operators per open bracket.
    chains: Vec<usize>,
    sum: usize,
    heaviest: usize,
    last: Option<Token>,
    before: Option<Token>,
    last_was_range: bool,
    unterminated: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Scan<'a> {
        Scan {
            rest: text.chars().peekable(),
            line: 1,
            column: 1,
            chains: vec![0],
            sum: 0,
            heaviest: 0,
            last: None,
            before: None,
            last_was_range: false,
            unterminated: false,
        }
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn weigh_token(&mut self, token: Token) -> Result<(), Box<Diagnostic>> {
        let after_block = self.before == Some(Token::Close('}'));
        let continues = matches!(token, Token::Operator(_) | Token::Else | Token::Separator);
        if after_block && !continues {
            self.reset_chain();
        }
        match token {
            Token::Open(_) => {
                self.chains.push(0);
                self.sum += 1;
                if self.chains.len() > DEEPEST {
                    let words = format!("brackets nest deeper than {DEEPEST} here");
                    return Err(Diagnostic::parse(point(self.line, self.column - 1), words));
                }
            }
            Token::Close(_) if self.chains.len() > 1 => {
                self.reset_chain();
                self.chains.pop();
                self.sum -= 1;
                self.count()?;
            }
            Token::Operator(_) | Token::Else => self.count()?,
            Token::Separator => self.reset_chain(),
            Token::Close(_) | Token::Other => {}
        }
        self.heaviest = self.heaviest.max(self.sum);
        Ok(())
    }

    fn count(&mut self) -> Result<(), Box<Diagnostic>> {
        let chain = self.chains.last_mut().expect("the outermost counter is never popped");
        *chain += 1;
        self.sum += 1;
        if *chain > LONGEST_CHAIN {
            let words = format!("a chain of more than {LONGEST_CHAIN} operators ends here");
            return Err(Diagnostic::parse(point(self.line, self.column - 1), words));
        }
        Ok(())
    }

    fn reset_chain(&mut self) {
        let chain = self.chains.last_mut().expect("the outermost counter is never popped");
        self.sum -= *chain;
        *chain = 0;
    }

    fn next_token(&mut self) -> Option<Token> {
        loop {
            let c = self.bump()?;
            let token = match c {
                c if c.is_whitespace() => continue,
                '/' if self.rest.peek() == Some(&'/') => {
                    self.skip_line();
                    continue;
                }
                '/' if self.rest.peek() == Some(&'*') => {
                    self.skip_comment();
                    continue;
                }
                '(' | '[' | '{' => Token::Open(c),
                ')' | ']' | '}' => Token::Close(c),
                ';' | ',' => Token::Separator,
                '"' => {
                    self.skip_string();
                    Token::Other
                }
                '\'' => self.quote(),
                c if c.is_ascii_digit() => {
                    self.skip_number();
                    Token::Other
                }
                c if c == '_' || c.is_alphanumeric() => self.word(c),
                c => {
                    self.last_was_range = c == '.' && self.last == Some(Token::Operator('.'));
                    self.remember(Token::Operator(c));
                    return Some(Token::Operator(c));
                }
            };
            self.last_was_range = false;
            self.remember(token);
            return Some(token);
        }
    }

    fn remember(&mut self, token: Token) {
        self.before = self.last;
        self.last = Some(token);
    }

    fn skip_line(&mut self) {
        while self.rest.peek().is_some_and(|&c| c != '\n') {
            self.bump();
        }
    }

    fn skip_comment(&mut self) {
        self.bump();
        let mut depth = 1;
        while depth > 0 {
            match self.bump() {
                Some('*') if self.rest.peek() == Some(&'/') => {
                    self.bump();
                    depth -= 1;
                }
                Some('/') if self.rest.peek() == Some(&'*') => {
                    self.bump();
                    depth += 1;
                }
                Some(_) => {}
                None => {
                    self.unterminated = true;
                    return;
                }
            }
        }
    }

    fn skip_string(&mut self) {
        loop {
            match self.bump() {
                Some('\\') => {
                    self.bump();
                }
                Some('"') => return,
                Some(_) => {}
                None => {
                    self.unterminated = true;
                    return;
                }
            }
        }
    }

    /// A character literal, or a lifetime or label.
    fn quote(&mut self) -> Token {
        match self.rest.peek() {
            Some('\\') => {
                self.bump();
                self.bump();
                while self.rest.peek().is_some_and(|&c| c != '\'' && c != '\n') {
                    self.bump();
                }
                self.bump();
            }
            Some(&c) => {
                let mut ahead = self.rest.clone();
                ahead.next();
                if ahead.peek() == Some(&'\'') {
                    self.bump();
                    self.bump();
                } else if c == '_' || c.is_alphabetic() {
                    while self.rest.peek().is_some_and(|&c| c == '_' || c.is_alphanumeric()) {
                        self.bump();
                    }
                }
            }
            None => {}
        }
        Token::Other
    }

    fn skip_number(&mut self) {
        while let Some(&c) = self.rest.peek() {
            let mut ahead = self.rest.clone();
            ahead.next();
            let fraction = c == '.' && ahead.peek().is_some_and(char::is_ascii_digit);
            if !(fraction || c == '_' || c.is_alphanumeric()) {
                return;
            }
            self.bump();
        }
    }

    fn word(&mut self, first: char) -> Token {
        let mut word = String::from(first);
        while let Some(&c) = self.rest.peek() {
            if c != '_' && !c.is_alphanumeric() {
                break;
            }
            if word.len() < 8 {
                word.push(c);
            }
            self.bump();
        }
        let raw = matches!(word.as_str(), "r" | "br" | "cr");
        match self.rest.peek() {
            Some('"') if raw => self.skip_raw_string(0),
            Some('#') if raw => {
                let mut ahead = self.rest.clone();
                let mut hashes = 0;
                while ahead.next_if_eq(&'#').is_some() {
                    hashes += 1;
                }
                if ahead.peek() == Some(&'"') {
                    for _ in 0..hashes {
                        self.bump();
                    }
                    self.skip_raw_string(hashes);
                }
            }
            _ => {}
        }
        if word == "else" { Token::Else } else { Token::Other }
    }

    fn skip_raw_string(&mut self, hashes: usize) {
        self.bump();
        loop {
            match self.bump() {
                Some('"') => {
                    let mut ahead = self.rest.clone();
                    let mut seen = 0;
                    while seen < hashes && ahead.next_if_eq(&'#').is_some() {
                        seen += 1;
                    }
                    if seen == hashes {
                        for _ in 0..hashes {
                            self.bump();
                        }
                        return;
                    }
                }
                Some(_) => {}
                None => {
                    self.unterminated = true;
                    return;
                }
            }
        }
    }
}
