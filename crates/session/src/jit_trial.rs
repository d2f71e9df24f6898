//! Would the statement that ran out of memory have passed as one compiled program? It is traced and planned, and the plan's
//! requests are replayed in the pool as it is; nothing of it runs, and no cache keeps it.

use crate::event::TextSpan;
use crate::report::mib;
use crate::scan::{Kind, Token, names_in, scan};
use crate::session::Session;
use std::sync::Arc;
use vramlab_array::ir::{Fault, Func, Leaner, Type};
use vramlab_array::surface::Dyn;
use vramlab_array::{DynJit, JitCore, keeping_draws};
use vramlab_cells::Host;
use vramlab_memory::MIB;
use vramlab_runtime::PlannedRun;

/// What the explanation says of it, where it would pass: `jit (planned peak 128.0, 64.0 beside its arguments)`, or the same
/// under a limit, with what that costs: `jit(…).memory_limit("96MiB") (planned peak 95.5, +21 % FLOPs)`.
pub(crate) fn passing(session: &mut Session, span: TextSpan) -> Option<String> {
    let (func, leaner) = traced(session, span)?;
    let plan = session.context.plan(&func).ok()?;
    if plan.passes == Some(true) {
        // A program of one op is what ran.
        let says = format!(
            "jit (planned peak {}, {} beside its arguments)",
            mib(plan.peak_bytes),
            mib(plan.beside_bytes)
        );
        return (func.eqns.len() > 1).then_some(says);
    }
    let (limit, fitted) = fitted(session, &func, &leaner, &plan)?;
    let more = 100.0 * fitted.flops.saturating_sub(plan.flops) as f64 / plan.flops.max(1) as f64;
    Some(format!(
        "jit(…).memory_limit(\"{limit}\") (planned peak {}, +{more:.0} % FLOPs)",
        mib(fitted.peak_bytes)
    ))
}

/// Parts of the temporaries that a limit leaves, in 24ths: the first that fits the pool computes the least again.
const PARTS: [u64; 9] = [18, 12, 9, 6, 4, 3, 2, 1, 0];

/// The highest of a few limits under which the program would pass.
fn fitted(
    session: &Session,
    func: &Arc<Func>,
    leaner: &[Leaner],
    free: &PlannedRun,
) -> Option<(String, PlannedRun)> {
    let held = free.peak_bytes - free.temp_bytes;
    let mut tried = PARTS.into_iter().map_while(|part| {
        let bytes = held + free.temp_bytes / 24 * part;
        let (unit, name) = if bytes < 16 * MIB { (1 << 10, "KiB") } else { (MIB, "MiB") };
        let limit = bytes.div_ceil(unit) * unit;
        let plan = session.context.plan_under(func, Some(limit), leaner).ok()?;
        Some((format!("{}{name}", limit / unit), plan))
    });
    tried.find(|(_, plan)| plan.passes == Some(true))
}

/// The failed statement as a program, and leaner forms of it.
fn traced(session: &mut Session, span: TextSpan) -> Option<(Arc<Func>, Vec<Leaner>)> {
    let source = session.running.source.clone();
    let expression = statement_at(&source, span).and_then(value_of)?;
    if acts_outside(session, expression) {
        return None;
    }
    let names = arrays_in(session, expression);
    let core = jitted(session, expression, &names)?;
    let types: Option<Vec<Type>> = names.iter().map(|name| type_of(session, name)).collect();
    keeping_draws(|| core.programs(&types?).ok())
}

/// The expression as a jitted function of the arrays that it names. Each is an array of its own within, so that what was
/// moved, borrowed or called as a method still is.
fn jitted(session: &mut Session, expression: &str, names: &[String]) -> Option<Arc<JitCore>> {
    let list = names.join(", ");
    let own: String = names.iter().map(|name| format!("let {name} = {name}.clone(); ")).collect();
    let text = format!("jit(move |[{list}]: [&Array; {}]| {{ {own}{expression} }})", names.len());
    let (prepared, _) = session.prepare(&text, 1).ok()?;
    let value = session.interpreter.run(prepared, &mut Silent).value?.value;
    let Dyn::Function(function) = value else { return None };
    function.as_any().downcast_ref::<DynJit>().map(|jit| Arc::clone(jit.core()))
}

/// Functions of the prelude that change or ask more than arrays: a trial must not call them, not even within a function
/// of the session that it calls.
const ACTIONS: [&str; 5] = ["reset_peak", "clear_caches", "sleep", "input", "scope"];

fn acts_outside(session: &Session, expression: &str) -> bool {
    let names = |text: &str| -> Vec<String> {
        let tokens = scan(text).into_iter().filter(|token| token.kind == Kind::Word);
        tokens.map(|token| token.text(text).to_string()).collect()
    };
    let functions = session.interpreter.functions();
    let mut waiting = names(expression);
    let mut seen: Vec<String> = Vec::new();
    while let Some(word) = waiting.pop() {
        if ACTIONS.contains(&word.as_str()) {
            return true;
        }
        if !seen.contains(&word) {
            if let Some((_, _, source)) = functions.iter().find(|(name, ..)| *name == word) {
                waiting.extend(names(source));
            }
            seen.push(word);
        }
    }
    false
}

/// Nothing that a trial says is heard.
struct Silent;

impl Host for Silent {
    fn stdout(&mut self, _: &str) {}

    fn stderr(&mut self, _: &str) {}

    fn display(&mut self, _: &Dyn) {}

    fn input(&mut self, _: &str) -> Result<String, Fault> {
        Err(Fault::new(vramlab_array::ir::FaultKind::Argument, "input", "nobody answers a trial"))
    }

    fn interrupted(&self) -> bool {
        false
    }

    fn bound(&mut self, _: &str, _: &Dyn) {}
    fn note(&mut self, _: &str) {}
}

fn type_of(session: &Session, name: &str) -> Option<Type> {
    match session.interpreter.value(name)? {
        Dyn::Array(array) | Dyn::Borrowed(array) => Some(array.ty().clone()),
        _ => None,
    }
}

/// The session's live arrays that the expression names, in its order.
fn arrays_in(session: &Session, expression: &str) -> Vec<String> {
    let variables = session.interpreter.variables();
    let is_array = |name: &str| {
        variables.iter().any(|v| v.name == name && v.ty == "Array" && v.moved.is_none())
    };
    let mut names: Vec<String> = Vec::new();
    for word in names_in(expression) {
        if is_array(word) && !names.iter().any(|name| name == word) {
            names.push(word.to_string());
        }
    }
    names
}

/// The statement of the cell's top level around a place, without its semicolon. What lies in a loop or a function is no
/// statement of its own.
fn statement_at(source: &str, span: TextSpan) -> Option<&str> {
    let at = offset(source, span.line, span.column)?;
    statements(source).into_iter().find(|(range, _)| range.contains(&at))?.1
}

/// Where each statement lies, and its text where it is no block.
fn statements(source: &str) -> Vec<(std::ops::Range<usize>, Option<&str>)> {
    let tokens: Vec<Token> =
        scan(source).into_iter().filter(|token| token.kind != Kind::Comment).collect();
    let (mut depth, mut start) = (0i32, None);
    let mut block = false;
    let mut all = Vec::new();
    for token in &tokens {
        let mark = if token.kind == Kind::Mark { token.text(source) } else { "" };
        let opening = start.is_none();
        let begin = *start.get_or_insert(token.range.start);
        if opening {
            let word = token.text(source);
            block = ["for", "while", "loop", "if", "fn", "match", "struct", "impl"].contains(&word);
        }
        depth +=
            i32::from(matches!(mark, "(" | "[" | "{")) - i32::from(matches!(mark, ")" | "]" | "}"));
        let ends = depth == 0 && (mark == ";" || block && mark == "}");
        if ends {
            let text = (!block).then(|| &source[begin..token.range.start]);
            all.push((begin..token.range.end, text));
            start = None;
        }
    }
    if let Some(begin) = start {
        all.push((begin..source.len() + 1, (!block).then(|| &source[begin..])));
    }
    all
}

fn offset(source: &str, line: u32, column: u32) -> Option<usize> {
    let (line, column) = (line.checked_sub(1)? as usize, column.checked_sub(1)? as usize);
    if line >= source.split('\n').count() {
        return None;
    }
    let before: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    let text = source[before..].split('\n').next()?;
    Some(before + text.char_indices().nth(column).map_or(text.len(), |(at, _)| at))
}

/// What is computed: behind the `=` of a `let` or of an assignment, or all of it.
fn value_of(statement: &str) -> Option<&str> {
    let tokens = scan(statement);
    let mut depth = 0i32;
    for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Mark) {
        let mark = token.text(statement);
        depth +=
            i32::from(matches!(mark, "(" | "[" | "{")) - i32::from(matches!(mark, ")" | "]" | "}"));
        let touches = |other: Option<&Token>, marks: &[&str], ahead: bool| {
            other.is_some_and(|other| {
                let close = match ahead {
                    true => other.range.start == token.range.end,
                    false => other.range.end == token.range.start,
                };
                close && marks.contains(&other.text(statement))
            })
        };
        let before = index.checked_sub(1).and_then(|before| tokens.get(before));
        let compound =
            touches(before, &["=", "<", ">", "!", "+", "-", "*", "/", "%", "&", "|", "^"], false)
                || touches(tokens.get(index + 1), &["=", ">"], true);
        if mark == "=" && depth == 0 && !compound {
            return Some(statement[token.range.end..].trim());
        }
    }
    let first = tokens.first()?.text(statement);
    (!["let", "return", "break", "use", "const", "static"].contains(&first))
        .then(|| statement.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(source: &str, needle: &str) -> Option<String> {
        let before = &source[..source.find(needle).expect("the needle")];
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32 + 1;
        let span = TextSpan { line, column, end_line: line, end_column: column };
        statement_at(source, span).and_then(value_of).map(String::from)
    }

    #[test]
    fn the_statement_around_a_place() {
        let source = "let a = b;\nfor n in 0..3 { zeros([n]); }\nlet y = tanh(exp(&x)) + 1.0; let z = 2;\ny == exp(x)";
        assert_eq!(at(source, "exp(&x)").as_deref(), Some("tanh(exp(&x)) + 1.0"));
        assert_eq!(at(source, "zeros"), None);
        assert_eq!(at(source, "exp(x)").as_deref(), Some("y == exp(x)"));
        assert_eq!(
            at("y = f(|a| { let b = a; b });", "f(").as_deref(),
            Some("f(|a| { let b = a; b })")
        );
        assert_eq!(at("y += exp(x);", "exp").as_deref(), Some("y += exp(x)"));
        assert_eq!(at("let q;", "q"), None);
    }
}
