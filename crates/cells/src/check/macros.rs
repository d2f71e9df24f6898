//! The macros that the tier knows: printing, formatting, assertions, `vec!`.

use super::more_macros::{MatchesInput, WriteInput};
use super::{Checked, Checker, syntax};
use crate::diagnostic::Diagnostic;
use crate::format::{Parsed, parse_format};
use crate::hir::{Count, Expr, Format, Kind, Piece, Style};
use crate::ir::Span;
use crate::library;
use crate::place::span_of;
use crate::ty::Ty;
use syn::parse::{Parse, ParseStream, Parser};
use syn::spanned::Spanned;

/// `"…", a, name = b`.
pub(super) struct FormatInput {
    text: Option<syn::LitStr>,
    /// What stands where the text should.
    other: Option<syn::Expr>,
    arguments: Vec<(Option<syn::Ident>, syn::Expr)>,
}

impl Parse for FormatInput {
    fn parse(input: ParseStream<'_>) -> syn::Result<FormatInput> {
        let mut out = FormatInput { text: None, other: None, arguments: Vec::new() };
        if input.is_empty() {
            return Ok(out);
        }
        if input.peek(syn::LitStr) {
            out.text = Some(input.parse()?);
        } else {
            out.other = Some(input.parse()?);
        }
        while !input.is_empty() {
            input.parse::<syn::Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let named = input.peek(syn::Ident) && input.peek2(syn::Token![=]);
            let named = named && !input.peek2(syn::Token![==]);
            let name = if named {
                let name: syn::Ident = input.parse()?;
                input.parse::<syn::Token![=]>()?;
                Some(name)
            } else {
                None
            };
            out.arguments.push((name, input.parse()?));
        }
        Ok(out)
    }
}

/// `vec![…]`'s two forms.
enum VecInput {
    List(Vec<syn::Expr>),
    Repeat(Box<syn::Expr>, Box<syn::Expr>),
}

impl Parse for VecInput {
    fn parse(input: ParseStream<'_>) -> syn::Result<VecInput> {
        if input.is_empty() {
            return Ok(VecInput::List(Vec::new()));
        }
        let first: syn::Expr = input.parse()?;
        if input.peek(syn::Token![;]) {
            input.parse::<syn::Token![;]>()?;
            return Ok(VecInput::Repeat(Box::new(first), Box::new(input.parse()?)));
        }
        let mut list = vec![first];
        while !input.is_empty() {
            input.parse::<syn::Token![,]>()?;
            if input.is_empty() {
                break;
            }
            list.push(input.parse()?);
        }
        Ok(VecInput::List(list))
    }
}

/// `condition, "message", …` and `left, right, "message", …`.
struct AssertInput {
    values: Vec<syn::Expr>,
    message: Option<FormatInput>,
}

fn assert_input(count: usize) -> impl Fn(ParseStream<'_>) -> syn::Result<AssertInput> {
    move |input| {
        let mut values = Vec::new();
        for index in 0..count {
            if index > 0 {
                input.parse::<syn::Token![,]>()?;
            }
            values.push(input.parse()?);
        }
        let mut message = None;
        if input.peek(syn::Token![,]) {
            input.parse::<syn::Token![,]>()?;
            if !input.is_empty() {
                message = Some(input.parse()?);
            }
        }
        Ok(AssertInput { values, message })
    }
}

/// A syntax error of `syn` as ours.
pub fn parse_fault(error: &syn::Error) -> Box<Diagnostic> {
    Diagnostic::parse(span_of(error.span()), error.to_string())
}

/// The same of a whole cell's text. Where a `;` is missing the fault stands behind what comes before
/// it, as rustc has it, and not at what comes next.
pub fn cell_fault(error: &syn::Error, text: &str) -> Box<Diagnostic> {
    let mut fault = parse_fault(error);
    let is_semicolon = fault.message.contains("expected `;`");
    let at_end = fault.message.starts_with("unexpected end of input");
    let Ok(tokens) = text.parse() else { return fault };
    if !is_semicolon && !at_end {
        return fault;
    }
    let here = (fault.span.line, fault.span.column);
    let (mut before, mut last) = (None, None);
    each_token(tokens, &mut |span: Span| {
        if (span.end_line, span.end_column) <= here {
            before = Some(span);
        }
        last = Some(span);
    });
    // The end of the text has no place of its own.
    let before = if at_end { last } else { before.or(last) };
    if let Some(before) = before {
        let (line, column) = (before.end_line, before.end_column);
        fault.span = Span { line, column, end_line: line, end_column: column + 1 };
    }
    if is_semicolon {
        fault.message = "expected `;`".into();
        fault.help.push("add `;` here".into());
    }
    fault
}

/// Every token in order, groups by their ends.
fn each_token(tokens: proc_macro2::TokenStream, see: &mut dyn FnMut(Span)) {
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Group(group) => {
                see(span_of(group.span_open()));
                each_token(group.stream(), see);
                see(span_of(group.span_close()));
            }
            other => see(span_of(other.span())),
        }
    }
}

impl Checker<'_> {
    pub(super) fn macro_call(
        &mut self,
        call: &syn::Macro,
        span: Span,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let name = call.path.get_ident().map(ToString::to_string).unwrap_or_default();
        let tokens = call.tokens.clone();
        let parsed = |error: syn::Error| parse_fault(&error);
        let unit = Ty::unit();
        let (kind, ty) = match name.as_str() {
            "println" | "print" | "eprintln" | "eprint" => {
                let input = FormatInput::parse.parse2(tokens).map_err(parsed)?;
                let format = self.format(input, span)?;
                let error = name.starts_with('e');
                let newline = name.ends_with("ln");
                (Kind::Print { format, error, newline }, unit)
            }
            "format" => {
                let input = FormatInput::parse.parse2(tokens).map_err(parsed)?;
                if input.text.is_none() && input.other.is_none() {
                    return Err(Diagnostic::parse(
                        span,
                        "requires at least a format string argument",
                    ));
                }
                (Kind::Format(self.format(input, span)?), Ty::string())
            }
            "panic" | "unreachable" | "todo" | "unimplemented" => {
                let input = FormatInput::parse.parse2(tokens).map_err(parsed)?;
                (Kind::Panic(self.panic_text(&name, input, span)?), Ty::Never)
            }
            "assert" | "debug_assert" => {
                let input = assert_input(1).parse2(tokens).map_err(parsed)?;
                (self.assertion(input, span)?, unit)
            }
            "assert_eq" | "assert_ne" | "debug_assert_eq" | "debug_assert_ne" => {
                let input = assert_input(2).parse2(tokens).map_err(parsed)?;
                (self.equality(input, name.ends_with("eq"), span)?, unit)
            }
            "vec" => return self.vec_macro(tokens, span, expected),
            "matches" => {
                let input = MatchesInput::parse.parse2(tokens).map_err(parsed)?;
                return self.matches(&input, span);
            }
            "dbg" => {
                let list =
                    syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
                return self.dbg_macro(&list.parse2(tokens).map_err(parsed)?, span, expected);
            }
            "write" | "writeln" => {
                let input = WriteInput::parse.parse2(tokens).map_err(parsed)?;
                return self.write_macro(input, name == "writeln", span);
            }
            "include_str" | "env" | "concat" | "stringify" | "line" | "file" | "cfg"
            | "thread_local" => {
                return Err(Diagnostic::unsupported(span, format!("the macro `{name}!`")));
            }
            _ => {
                let names = [
                    "println",
                    "print",
                    "eprintln",
                    "eprint",
                    "format",
                    "panic",
                    "assert",
                    "assert_eq",
                    "assert_ne",
                    "vec",
                    "matches",
                    "dbg",
                    "write",
                    "writeln",
                    "tree",
                    "unreachable",
                    "todo",
                ];
                let fault = Diagnostic::check(
                    "",
                    span_of(call.path.span()),
                    format!("cannot find macro `{name}` in this scope"),
                );
                return Err(match library::nearest(&name, names.into_iter()) {
                    Some(near) => {
                        fault.help(format!("a macro with a similar name exists: `{near}`"))
                    }
                    None => fault,
                });
            }
        };
        Ok(Expr { kind, ty, span })
    }

    fn vec_macro(
        &mut self,
        tokens: proc_macro2::TokenStream,
        span: Span,
        expected: Option<&Ty>,
    ) -> Checked<Expr> {
        let hint = self.element_hint(expected);
        match VecInput::parse.parse2(tokens).map_err(|error| parse_fault(&error))? {
            VecInput::List(list) => {
                let (elements, ty) = self.elements(list.iter(), hint)?;
                Ok(Expr { kind: Kind::List(elements), ty: Ty::generic("Vec", ty), span })
            }
            VecInput::Repeat(element, count) => {
                let element = self.expr(&element, hint.as_ref())?;
                let count = self.expr_of(&count, &Ty::usize())?;
                self.require(&element.ty.clone(), "Clone", &[], element.span);
                let ty = Ty::generic("Vec", element.ty.clone());
                let kind = Kind::Repeat(Box::new(element), Box::new(count));
                Ok(Expr { kind, ty, span })
            }
        }
    }

    fn panic_text(&mut self, name: &str, input: FormatInput, span: Span) -> Checked<Format> {
        let empty = input.text.is_none() && input.other.is_none();
        let (plain, prefix) = match name {
            "unreachable" => (
                "internal error: entered unreachable code",
                "internal error: entered unreachable code: ",
            ),
            "todo" => ("not yet implemented", "not yet implemented: "),
            "unimplemented" => ("not implemented", "not implemented: "),
            _ => ("explicit panic", ""),
        };
        if empty {
            let pieces = vec![Piece::Text(plain.into())];
            return Ok(Format { pieces, arguments: Vec::new() });
        }
        let mut format = self.format(input, span)?;
        if !prefix.is_empty() {
            format.pieces.insert(0, Piece::Text(prefix.into()));
        }
        Ok(format)
    }

    fn assertion(&mut self, input: AssertInput, span: Span) -> Checked<Kind> {
        let text = self.text(syntax::span(&input.values[0]));
        let condition = self.expr(&input.values[0], Some(&Ty::Bool))?;
        let ty = self.infer.shallow(&condition.ty);
        let condition = match ty {
            Ty::Ref(..) => condition,
            _ => self.coerce(condition, &Ty::Bool)?,
        };
        let message = match input.message {
            Some(message) => Some(self.format(message, span)?),
            None => None,
        };
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Kind::Assert(Box::new(condition), message, format!("assertion failed: {text}")))
    }

    fn equality(&mut self, input: AssertInput, equal: bool, span: Span) -> Checked<Kind> {
        let left = self.expr(&input.values[0], None)?;
        let right = self.expr(&input.values[1], Some(&left.ty.clone()))?;
        let op = if equal { crate::hir::BinaryOp::Eq } else { crate::hir::BinaryOp::Ne };
        let spans = (left.span, right.span);
        if self.binary_type(op, &left.ty, &right.ty, span, spans)?.is_none() {
            self.pending.push(super::Pending::Binary {
                op,
                left: left.ty.clone(),
                right: right.ty.clone(),
                out: Ty::Bool,
                span,
                spans,
            });
        }
        self.require(&left.ty.clone(), "Debug", &[], left.span);
        self.require(&right.ty.clone(), "Debug", &[], right.span);
        let message = match input.message {
            Some(message) => Some(self.format(message, span)?),
            None => None,
        };
        Ok(Kind::AssertEqual {
            left: Box::new(borrowed(left)),
            right: Box::new(borrowed(right)),
            equal,
            message,
        })
    }

    /// The text with its arguments, each borrowed.
    pub(super) fn format(&mut self, input: FormatInput, span: Span) -> Checked<Format> {
        let Some(literal) = input.text else {
            return match input.other {
                None => Ok(Format { pieces: Vec::new(), arguments: Vec::new() }),
                Some(other) => Err(Diagnostic::parse(
                    syntax::span(&other),
                    "format argument must be a string literal",
                )
                .help("you might be missing a string literal to format with: `\"{}\", `")),
            };
        };
        let literal_span = span_of(literal.span());
        let names: Vec<Option<String>> = input
            .arguments
            .iter()
            .map(|(name, _)| name.as_ref().map(ToString::to_string))
            .collect();
        let parsed = parse_format(&literal.value(), &names)
            .map_err(|words| Diagnostic::parse(literal_span, words))?;
        let Parsed { pieces, captured, used } = parsed;
        let mut arguments = Vec::new();
        for (_, expr) in &input.arguments {
            arguments.push(borrowed(self.expr(expr, None)?));
        }
        for name in captured {
            let ident = syn::Ident::new(&name, literal.span());
            let path = syn::Expr::Path(syn::ExprPath {
                attrs: Vec::new(),
                qself: None,
                path: ident.into(),
            });
            let mut expr = self.expr(&path, None)?;
            expr.span = literal_span;
            arguments.push(borrowed(expr));
        }
        if let Some(unused) = used.iter().position(|used| !used) {
            let span = input.arguments.get(unused).map_or(span, |(_, expr)| syntax::span(expr));
            return Err(Diagnostic::parse(span, "argument never used").label("argument never used"));
        }
        self.format_bounds(&pieces, &arguments)?;
        Ok(Format { pieces, arguments })
    }

    pub(super) fn format_bounds(&mut self, pieces: &[Piece], arguments: &[Expr]) -> Checked<()> {
        for piece in pieces {
            let Piece::Value { argument, spec } = piece else { continue };
            let expr = &arguments[*argument];
            let ty = match &expr.ty {
                Ty::Ref(_, to) => (**to).clone(),
                other => other.clone(),
            };
            let span = expr.span;
            let bound = match spec.style {
                Style::Display => "Display",
                Style::Debug => "Debug",
                Style::LowerExp | Style::UpperExp => "LowerExp",
                _ => "Hex",
            };
            self.require(&ty, bound, &[], span);
            for count in [spec.width, spec.precision].into_iter().flatten() {
                if let Count::Argument(index) = count {
                    let ty = arguments[index].ty.clone();
                    let span = arguments[index].span;
                    self.equate(&Ty::reference(Ty::usize()), &ty, span)?;
                }
            }
        }
        self.select()
    }
}

/// `&expr`, as macros take their arguments.
pub(super) fn borrowed(expr: Expr) -> Expr {
    let span = expr.span;
    let ty = Ty::reference(expr.ty.clone());
    Expr { kind: Kind::Borrow(false, Box::new(expr)), ty, span }
}
