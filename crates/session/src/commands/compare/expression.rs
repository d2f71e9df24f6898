//! An expression of the user's, as code that runs it in a style.

use crate::rewrite::rewrite;
use crate::scan::{Token, names_in, scan};
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
        for word in names_in(&text) {
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

    /// As a jitted function of its arrays.
    pub fn jitted(&self) -> Result<String, &'static str> {
        self.called(&self.body())
    }

    /// As jitted, with a checkpoint around every function that is differentiated.
    pub fn checkpointed(&self) -> Result<String, &'static str> {
        self.with_checkpoints("(")
    }

    /// As checkpointed, with the results of matrix products waiting in host memory.
    pub fn offloaded(&self) -> Result<String, &'static str> {
        self.with_checkpoints("_with(offload_dot_with_no_batch_dims(\"device\", \"pinned_host\"), ")
    }

    fn with_checkpoints(&self, opening: &str) -> Result<String, &'static str> {
        let body = with_checkpoints(&self.body(), opening);
        let body =
            body.ok_or("nothing is differentiated in it, so there is nothing to checkpoint")?;
        self.called(&body)
    }

    /// A jitted closure with this body, called with the session's arrays.
    fn called(&self, body: &str) -> Result<String, &'static str> {
        if self.arrays.is_empty() {
            return Err("no array variable is named in it, so there is nothing to jit over");
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
        Ok(format!(
            "{{ {captured}let compared = jit(move |[{}]| {body}); let _kept = compared([{}]); }}",
            names.join(", "),
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

/// What differentiates a function, which of its arguments that function is, and what puts a checkpoint around it.
const DIFFERENTIATE: [(&str, usize, &str); 6] = [
    ("grad", 0, "checkpoint"),
    ("value_and_grad", 0, "checkpoint"),
    ("grad_wrt", 1, "checkpoint"),
    ("value_and_grad_wrt", 1, "checkpoint"),
    ("grad_tree", 0, "checkpoint_tree"),
    ("value_and_grad_tree", 0, "checkpoint_tree"),
];

/// `grad(f)` as `grad(checkpoint(f))` where the opening is the bracket, wherever it stands; `None` where it
/// does not.
fn with_checkpoints(text: &str, opening: &str) -> Option<String> {
    let tokens: Vec<Token> = scan(text);
    let mut inserts: Vec<(usize, String)> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let found = DIFFERENTIATE.iter().find(|(name, ..)| *name == token.text(text));
        if let Some((_, position, checkpoint)) = found
            && let Some((start, end)) = argument(text, &tokens[index + 1..], *position)
        {
            inserts.extend([(start, format!("{checkpoint}{opening}")), (end, ")".into())]);
        }
    }
    inserts.sort_by_key(|(at, _)| *at);
    let mut out = String::new();
    let mut from = 0;
    for (at, insert) in &inserts {
        out.push_str(&text[from..*at]);
        out.push_str(insert);
        from = *at;
    }
    out.push_str(&text[from..]);
    (!inserts.is_empty()).then_some(out)
}

/// Where an argument of a call stands, from the call's opening bracket on.
fn argument(text: &str, tokens: &[Token], position: usize) -> Option<(usize, usize)> {
    tokens.first().filter(|open| open.is_mark(text, '('))?;
    let (mut depth, mut bars, mut seen) = (0i32, false, 0);
    let mut start = tokens.get(1)?.range.start;
    for (index, token) in tokens.iter().enumerate() {
        match token.text(text) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            // Commas between the bars of a closure part its parameters.
            "|" if depth == 1 => bars = !bars,
            _ => {}
        }
        let ends = depth == 0 || (depth == 1 && !bars && token.is_mark(text, ','));
        if ends && seen == position {
            return Some((start, token.range.start));
        }
        if depth == 0 {
            return None;
        }
        if ends {
            seen += 1;
            start = tokens.get(index + 1)?.range.start;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::with_checkpoints;

    #[test]
    fn every_differentiated_function_gets_a_checkpoint() {
        for (text, expected) in [
            ("grad(loss)([w])", Some("grad(checkpoint(loss))([w])")),
            (
                "value_and_grad(|[w, x]| f(w, x).sum())([w, x]).0",
                Some("value_and_grad(checkpoint(|[w, x]| f(w, x).sum()))([w, x]).0"),
            ),
            (
                "grad_wrt([0, 1], |a| g(a))([w])",
                Some("grad_wrt([0, 1], checkpoint(|a| g(a)))([w])"),
            ),
            ("grad(grad(f))([x])", Some("grad(checkpoint(grad(checkpoint(f))))([x])")),
            (
                "grad_tree(|p: &P, [x]| f(p, x))(&p, [x])",
                Some("grad_tree(checkpoint_tree(|p: &P, [x]| f(p, x)))(&p, [x])"),
            ),
            ("x.grad + 1", None),
            ("grad(f", None),
            ("\"grad(f)\"", None),
        ] {
            assert_eq!(with_checkpoints(text, "(").as_deref(), expected, "{text}");
        }
    }
}
