//! An expression of the user's, as code that runs it in a style.

use crate::rewrite::rewrite;
use crate::scan::{Token, scan};
use crate::session::Session;

/// The text, and the variables of the session that it names.
pub(super) struct Expression {
    text: String,
    /// All of them, as the interpreter knows them.
    pub names: Vec<String>,
    /// Those that are an array or a reference to one, in the order of their first use: what a transformed function
    /// takes.
    arrays: Vec<Parameter>,
    /// The others: what it captures.
    others: Vec<String>,
}

struct Parameter {
    name: String,
    is_reference: bool,
}

impl Expression {
    pub fn of(session: &Session, text: &str) -> Expression {
        let text = rewrite(text, session.last_output).text;
        let variables = session.interpreter.variables();
        let mut found = Expression {
            names: Vec::new(),
            arrays: Vec::new(),
            others: Vec::new(),
            text: text.clone(),
        };
        for token in scan(&text) {
            let word = token.text(&text);
            let variable = variables.iter().find(|variable| variable.name == word);
            let Some(variable) = variable.filter(|variable| variable.moved.is_none()) else {
                continue;
            };
            if found.names.iter().any(|name| name == word) {
                continue;
            }
            let name = word.to_string();
            found.names.push(name.clone());
            match variable.ty.as_str() {
                "Array" => found.arrays.push(Parameter { name, is_reference: false }),
                "&Array" => found.arrays.push(Parameter { name, is_reference: true }),
                _ => found.others.push(name),
            }
        }
        found
    }

    /// The value lives to the end of the block, as it would under a name.
    pub fn eager(&self) -> String {
        format!("{{ let _kept = {}; }}", self.text)
    }

    /// With a transform, the expression as a function of its arrays; `None` where it has none.
    pub fn code(&self, transform: Option<(&str, &str)>) -> Option<String> {
        let Some((before, behind)) = transform else { return Some(self.eager()) };
        if self.arrays.is_empty() {
            return None;
        }
        let names: Vec<&str> = self.arrays.iter().map(|array| array.name.as_str()).collect();
        let given = |array: &Parameter| match array.is_reference {
            true => array.name.clone(),
            false => format!("&{}", array.name),
        };
        let given: Vec<String> = self.arrays.iter().map(given).collect();
        // A function that is kept owns what it captures: clones, which share the bytes.
        let captured: String =
            self.others.iter().map(|name| format!("let {name} = {name}.clone(); ")).collect();
        Some(format!(
            "{{ {captured}let compared = {before}move |[{}]| {}{behind}; let _kept = compared([{}]); }}",
            names.join(", "),
            self.body(),
            given.join(", ")
        ))
    }

    /// Inside, a parameter is a reference already: `&x` becomes `x`.
    fn body(&self) -> String {
        let tokens: Vec<Token> = scan(&self.text);
        let (mut body, mut at) = (String::new(), 0);
        for (index, token) in tokens.iter().enumerate() {
            let next = tokens.get(index + 1).map(|token| token.text(&self.text));
            let is_own =
                |array: &Parameter| !array.is_reference && Some(array.name.as_str()) == next;
            if token.is_mark(&self.text, '&') && self.arrays.iter().any(is_own) {
                body.push_str(&self.text[at..token.range.start]);
                at = token.range.end;
            }
        }
        body.push_str(&self.text[at..]);
        body
    }
}
