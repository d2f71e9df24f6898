//! What `%compare` is asked: an expression, and options behind it.

use super::super::Refusal;
use crate::config::unknown;
use crate::scan::{Kind, scan};
use vramlab_memory::ModeSpec;
use vramlab_memory::modes::{MODES, parse_capacity};

/// The words of the options.
const OPTIONS: [&str; 3] = ["modes", "styles", "capacity"];

#[derive(Debug)]
pub(super) struct Question {
    pub expression: String,
    /// None given: the mode that answers.
    pub modes: Vec<ModeSpec>,
    /// None given: the usual ones.
    pub styles: Vec<String>,
    pub capacity: Option<u64>,
}

/// # Errors
/// No expression, an unknown option or mode, a capacity that is none.
pub(super) fn parse(arguments: &str) -> Result<Question, Refusal> {
    let (expression, options) = arguments.split_at(options_from(arguments));
    let expression = expression.trim().trim_end_matches(';').trim();
    if expression.is_empty() {
        return Err(Refusal::new("compare what? write %compare tanh(&x)"));
    }
    let mut question = Question {
        expression: expression.to_string(),
        modes: Vec::new(),
        styles: Vec::new(),
        capacity: None,
    };
    for (name, value) in options_of(options)? {
        match name {
            "modes" => question.modes = modes_of(&value)?,
            "styles" => question.styles = listed(&value).map(str::to_string).collect(),
            _ => question.capacity = Some(parse_capacity(value.trim())?),
        }
    }
    Ok(question)
}

/// Where the options begin: at the first `word=` outside of brackets that is not the expression's beginning.
fn options_from(text: &str) -> usize {
    let tokens = scan(text);
    let mut depth = 0i32;
    for (index, token) in tokens.iter().enumerate() {
        match token.text(text) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        let is_apart = text[..token.range.start].ends_with(char::is_whitespace);
        let mark = |at: usize| tokens.get(index + at).is_some_and(|next| next.is_mark(text, '='));
        let assigns = mark(1) && !mark(2) && token.range.end == tokens[index + 1].range.start;
        if depth == 0 && index > 0 && is_apart && token.kind == Kind::Word && assigns {
            return token.range.start;
        }
    }
    text.len()
}

/// Options with their values. A mode's own options (`gc=on`) belong to the modes.
fn options_of(text: &str) -> Result<Vec<(&'static str, String)>, Refusal> {
    let mut options: Vec<(&'static str, String)> = Vec::new();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or(("", word));
        if let Some(known) = OPTIONS.iter().find(|known| **known == name) {
            if options.iter().any(|(given, _)| given == known) {
                return Err(Refusal::new(format!("option {known} is given twice")));
            }
            options.push((known, value.to_string()));
            continue;
        }
        match options.last_mut() {
            Some(("modes", modes)) => {
                modes.push(' ');
                modes.push_str(word);
            }
            _ => return Err(Refusal::new(unknown("option", name, OPTIONS))),
        }
    }
    Ok(options)
}

fn modes_of(text: &str) -> Result<Vec<ModeSpec>, Refusal> {
    if text.trim() == "all" {
        return Ok(MODES.iter().map(|entry| ModeSpec::new(entry.mode)).collect());
    }
    let mode = |text: &str| ModeSpec::parse(text).map_err(|why| Refusal::new(why.to_string()));
    let modes = listed(text).map(mode).collect::<Result<Vec<_>, _>>()?;
    match modes.is_empty() {
        true => Err(Refusal::new("modes= takes modes with commas between them, or all")),
        false => Ok(modes),
    }
}

fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_behind_the_expression() {
        let asked =
            parse("tanh(&x) modes=ondemand gc=on, platform styles=jit capacity=1GiB").unwrap();
        assert_eq!(asked.expression, "tanh(&x)");
        let modes: Vec<String> = asked.modes.iter().map(ModeSpec::to_string).collect();
        assert_eq!(modes, ["ondemand gc=on", "platform"]);
        assert_eq!((asked.styles, asked.capacity), (vec!["jit".to_string()], Some(1 << 30)));
        assert_eq!(parse("x modes=all").unwrap().modes.len(), MODES.len());
    }

    #[test]
    fn an_expression_keeps_its_own_signs() {
        for text in
            ["{ let y = &x * 2.0; y.sum() }", "x.ge(3.0)", "if a == b { 1 } else { 2 }", "a <= b"]
        {
            let asked = parse(&format!("{text};")).unwrap();
            assert_eq!(asked.expression, text);
        }
    }

    #[test]
    fn wrong_words_name_the_nearest() {
        let why = |text: &str| parse(text).unwrap_err().message;
        assert!(why("").contains("compare what?"));
        assert!(why("f(&x) mode=platform").contains("did you mean `modes`?"));
        assert!(why("f(&x) modes=platfrom").contains("did you mean `platform`?"));
        assert!(why("f(&x) modes=ondemand gx=on").contains("has no option `gx`"));
        assert!(why("f(&x) capacity=big").contains("big"));
        assert!(why("f(&x) capacity=1GiB capacity=2GiB").contains("twice"));
        assert!(why("f(&x) modes=").contains("all"));
    }
}
