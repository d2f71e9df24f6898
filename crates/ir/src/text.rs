//! The text form of a [`Func`]. It prints and it parses; printing what was parsed gives the same
//! text.
//!
//! ```text
//! func f(%0: f32[4,3], %1: f32[3]) -> (f32[4,3]) {
//!   %2 = add %0 %1 : f32[4,3]
//!   %3 = sum[axes=(1), keep=false] %2 : f32[4]
//!   %4 = call[kind="jit", func={
//!     func g(%0: f32[4,3]) -> (f32[4,3]) {
//!       return %0
//!     }
//!   }] %2 : f32[4,3]
//!   return %4
//! }
//! ```
//!
//! Values are numbered in the order of their definition; behind a parameter's number its name may
//! stand (`%0 "params.w": f32[3]`). Parameters of equations: `true`, `3`, `(0, 1)` integers,
//! `2.0:f32` literals (also `inf`, `NaN`, and `0x7fc00001:f32` for other NaNs), `f32` types, `[4,3]`
//! shapes, `"text"`, `{ func … }`. `;` begins a comment. Spans are not part of the text.

use crate::dtype::{DType, Literal};
use crate::func::{Eqn, Func, MemorySpace, Param, Params, Stage, Type, Value};
use crate::primitive::Op;
use crate::shape::Shape;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The numbers that values have in the text form.
pub struct Names(HashMap<Value, usize>);

impl Names {
    pub fn of(func: &Func) -> Names {
        let mut names = HashMap::new();
        let outputs = func.eqns.iter().flat_map(|eqn| &eqn.outputs);
        for &value in func.params.iter().chain(outputs) {
            let next = names.len();
            names.entry(value).or_insert(next);
        }
        Names(names)
    }

    /// `%3`; `%?7` for a value that nothing defines.
    pub fn of_value(&self, value: Value) -> String {
        match self.0.get(&value) {
            Some(number) => format!("%{number}"),
            None => format!("%?{}", value.0),
        }
    }

    fn list(&self, values: &[Value]) -> String {
        values.iter().map(|&value| self.of_value(value)).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_func(f, self, "")
    }
}

/// `f32[4,3], i32[]`.
pub(crate) fn type_list(types: &[Type]) -> String {
    types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}

fn write_func(f: &mut fmt::Formatter<'_>, func: &Func, indent: &str) -> fmt::Result {
    let names = Names::of(func);
    let ty = |value: Value| func.types.get(value.index()).map_or("?".into(), Type::to_string);
    let params: Vec<String> = func
        .params
        .iter()
        .enumerate()
        .map(|(at, &param)| match func.arg_names.get(at) {
            Some(name) if !name.is_empty() => {
                format!("{} {}: {}", names.of_value(param), quote(name), ty(param))
            }
            _ => format!("{}: {}", names.of_value(param), ty(param)),
        })
        .collect();
    let results: Vec<String> = func.results.iter().map(|&r| ty(r)).collect();
    let (name, params, results) = (quote_name(&func.name), params.join(", "), results.join(", "));
    writeln!(f, "{indent}func {name}({params}) -> ({results}) {{")?;
    for eqn in &func.eqns {
        let types: Vec<String> = eqn.outputs.iter().map(|&o| ty(o)).collect();
        let none = "()".to_string();
        let outputs = if types.is_empty() { none.clone() } else { names.list(&eqn.outputs) };
        let types = if types.is_empty() { none } else { types.join(", ") };
        write!(f, "{indent}  {outputs} = {}", eqn.op.name())?;
        write_params(f, &eqn.params, indent)?;
        let space = if eqn.inputs.is_empty() { "" } else { " " };
        writeln!(f, "{space}{} : {types}", names.list(&eqn.inputs))?;
    }
    let space = if func.results.is_empty() { "" } else { " " };
    writeln!(f, "{indent}  return{space}{}", names.list(&func.results))?;
    write!(f, "{indent}}}")
}

fn write_params(f: &mut fmt::Formatter<'_>, params: &Params, indent: &str) -> fmt::Result {
    for (i, (name, param)) in params.iter().enumerate() {
        f.write_str(if i == 0 { "[" } else { ", " })?;
        write!(f, "{name}=")?;
        match param {
            Param::Func(func) => {
                f.write_str("{\n")?;
                write_func(f, func, &format!("{indent}    "))?;
                write!(f, "\n{indent}  }}")?;
            }
            _ => write!(f, "{param}")?,
        }
    }
    if params.is_empty() { Ok(()) } else { f.write_str("]") }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Bool(v) => write!(f, "{v}"),
            Param::Int(v) => write!(f, "{v}"),
            Param::Ints(v) => {
                let ints: Vec<String> = v.iter().map(i64::to_string).collect();
                write!(f, "({})", ints.join(", "))
            }
            Param::Literal(v) => f.write_str(&literal_text(*v)),
            Param::DType(v) => write!(f, "{v}"),
            Param::Shape(v) => write!(f, "{v}"),
            Param::Text(v) => f.write_str(&quote(v)),
            Param::Func(v) => write!(f, "{{{}}}", v.name),
        }
    }
}

/// `2.0:f32`; a NaN other than the usual one by its bits, so that the text is exact.
fn literal_text(value: Literal) -> String {
    let dtype = value.dtype();
    let usual = Literal::from_f64(dtype, f64::NAN);
    if dtype.is_float() && value.as_f64().is_nan() && value != usual {
        return format!("{:#x}:{dtype}", value.bits());
    }
    format!("{value}:{dtype}")
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

fn quote_name(name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(is_word);
    if plain { name.to_string() } else { quote(name) }
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Why a text is not a program, and where: lines and columns count from 1, in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub line: u32,
    pub column: u32,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Functions nested deeper than this in parameters are refused: the parser recurses.
const DEEPEST: u32 = 64;

/// Reads one function; `registry` finds ops by name. Types are taken as written: the verifier checks
/// them.
///
/// # Errors
/// The first thing that is not as it should be.
pub fn parse(text: &str, registry: &dyn Fn(&str) -> Option<Op>) -> Result<Func, ParseError> {
    let mut parser = Parser { text, at: 0, registry, depth: 0 };
    let func = parser.func()?;
    match parser.peek() {
        None => Ok(func),
        Some(c) => Err(parser.error(format!("expected the end, found `{c}`"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Byte position.
    at: usize,
    registry: &'a dyn Fn(&str) -> Option<Op>,
    depth: u32,
}

type Parsed<T> = Result<T, ParseError>;

/// The values of the function that is being read, by the number they have in the text.
#[derive(Default)]
struct Scope {
    values: HashMap<u32, Value>,
    types: Vec<Type>,
}

impl<'a> Parser<'a> {
    fn func(&mut self) -> Parsed<Func> {
        self.keyword("func")?;
        let name = self.func_name()?;
        let mut scope = Scope::default();
        let mut arg_names = Vec::new();
        let params = self.list('(', ')', |p| {
            let at = p.start();
            let number = p.value_number()?;
            arg_names.push(if p.peek() == Some('"') { p.quoted()? } else { String::new() });
            p.expect(':')?;
            let ty = p.ty()?;
            p.define(&mut scope, at, number, ty)
        })?;
        self.expect('-')?;
        self.expect('>')?;
        let declared_at = self.start();
        let declared = self.list('(', ')', Parser::ty)?;
        self.expect('{')?;
        let mut eqns = Vec::new();
        while matches!(self.peek(), Some('%' | '(')) {
            eqns.push(self.eqn(&mut scope)?);
        }
        self.keyword("return")?;
        let results = self.values(&scope)?;
        self.expect('}')?;
        let named = arg_names.iter().rposition(|name| !name.is_empty()).map_or(0, |at| at + 1);
        arg_names.truncate(named);
        let func = Func { name, params, eqns, results, types: scope.types, arg_names };
        if func.result_types() != declared {
            let message = format!("the results are of types ({})", type_list(&func.result_types()));
            return Err(self.error_at(declared_at, message));
        }
        Ok(func)
    }

    /// `open`, items with commas between them, `close`.
    fn list<T>(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        self.expect(open)?;
        let mut items = Vec::new();
        while !self.accept(close) {
            if !items.is_empty() {
                self.expect(',')?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn func_name(&mut self) -> Parsed<String> {
        if self.peek() == Some('"') { self.quoted() } else { Ok(self.word("a name")?.to_string()) }
    }

    fn eqn(&mut self, scope: &mut Scope) -> Parsed<Eqn> {
        let mut numbers = Vec::new();
        if self.accept('(') {
            self.expect(')')?;
        }
        while self.peek() == Some('%') {
            let at = self.start();
            numbers.push((at, self.value_number()?));
        }
        self.expect('=')?;
        let op = self.op()?;
        let params = self.params()?;
        let inputs = self.values(scope)?;
        self.expect(':')?;
        let mut outputs = Vec::new();
        if numbers.is_empty() {
            self.expect('(')?;
            self.expect(')')?;
        }
        for (at, number) in numbers {
            if !outputs.is_empty() {
                self.expect(',')?;
            }
            let ty = self.ty()?;
            outputs.push(self.define(scope, at, number, ty)?);
        }
        Ok(Eqn { op, params, inputs, outputs, origin: None, stage: Stage::Forward })
    }

    fn op(&mut self) -> Parsed<Op> {
        let at = self.start();
        let name = self.word("an op")?;
        (self.registry)(name).ok_or_else(|| self.error_at(at, format!("unknown op `{name}`")))
    }

    fn params(&mut self) -> Parsed<Params> {
        if self.peek() != Some('[') {
            return Ok(Params::new());
        }
        let list = self.list('[', ']', |p| {
            let at = p.start();
            let name = p.word("a parameter's name")?;
            p.expect('=')?;
            Ok((at, name, p.param()?))
        })?;
        let mut params = Params::new();
        for (at, name, param) in list {
            if params.get(name).is_some() {
                return Err(self.error_at(at, format!("parameter `{name}` is given twice")));
            }
            params = params.with(name, param);
        }
        Ok(params)
    }

    fn param(&mut self) -> Parsed<Param> {
        match self.peek() {
            Some('"') => Ok(Param::Text(self.quoted()?)),
            Some('(') => Ok(Param::Ints(self.ints()?)),
            Some('[') => Ok(Param::Shape(self.shape()?)),
            Some('{') => self.nested(),
            _ => self.scalar_param(),
        }
    }

    fn nested(&mut self) -> Parsed<Param> {
        if self.depth == DEEPEST {
            return Err(self.error(format!("functions are nested deeper than {DEEPEST}")));
        }
        self.expect('{')?;
        self.depth += 1;
        let func = self.func()?;
        self.depth -= 1;
        self.expect('}')?;
        Ok(Param::Func(Arc::new(func)))
    }

    /// `true`, `f32`, `3`, `2.0:f32`.
    fn scalar_param(&mut self) -> Parsed<Param> {
        let at = self.start();
        let word = self.number_or_word()?;
        if self.accept(':') {
            let dtype = self.dtype()?;
            let literal = parse_literal(word, dtype);
            let message = || format!("`{word}` is not a value of {dtype}");
            return literal.map(Param::Literal).ok_or_else(|| self.error_at(at, message()));
        }
        let param = match word {
            "true" => Some(Param::Bool(true)),
            "false" => Some(Param::Bool(false)),
            _ => DType::parse(word).map(Param::DType).or(word.parse().ok().map(Param::Int)),
        };
        param.ok_or_else(|| self.error_at(at, format!("`{word}` is not a parameter's value")))
    }

    fn ints(&mut self) -> Parsed<Vec<i64>> {
        self.list('(', ')', |p| p.integer("an integer"))
    }

    fn integer<T: std::str::FromStr>(&mut self, what: &str) -> Parsed<T> {
        let at = self.start();
        let word = self.number_or_word()?;
        word.parse().map_err(|_| self.error_at(at, format!("`{word}` is not {what}")))
    }

    fn ty(&mut self) -> Parsed<Type> {
        let dtype = self.dtype()?;
        let memory = self.memory()?;
        Ok(Type::new(dtype, self.shape()?).within(memory))
    }

    fn dtype(&mut self) -> Parsed<DType> {
        let at = self.start();
        let word = self.word("an element type")?;
        let names = || DType::ALL.map(DType::name).join(" ");
        let message = || format!("`{word}` is not an element type; these are {}", names());
        DType::parse(word).ok_or_else(|| self.error_at(at, message()))
    }

    /// `<host>`, or nothing for device memory.
    fn memory(&mut self) -> Parsed<MemorySpace> {
        if !self.accept('<') {
            return Ok(MemorySpace::Device);
        }
        self.keyword("host")?;
        self.expect('>')?;
        Ok(MemorySpace::PinnedHost)
    }

    fn shape(&mut self) -> Parsed<Shape> {
        Ok(Shape::new(self.list('[', ']', |p| p.integer::<usize>("an extent"))?))
    }

    fn values(&mut self, scope: &Scope) -> Parsed<Vec<Value>> {
        let mut values = Vec::new();
        while self.peek() == Some('%') {
            let at = self.start();
            let number = self.value_number()?;
            let value = scope.values.get(&number).copied();
            values
                .push(value.ok_or_else(|| self.error_at(at, format!("%{number} is not defined")))?);
        }
        Ok(values)
    }

    fn value_number(&mut self) -> Parsed<u32> {
        let at = self.start();
        self.expect('%')?;
        let digits = self.text[self.at..].find(|c: char| !c.is_ascii_digit());
        let end = digits.map_or(self.text.len(), |n| self.at + n);
        let number = self.text[self.at..end].parse().ok();
        self.at = end;
        number.ok_or_else(|| self.error_at(at, "a value is % and a number"))
    }

    fn define(&self, scope: &mut Scope, at: usize, number: u32, ty: Type) -> Parsed<Value> {
        let value = Value(scope.types.len() as u32);
        if scope.values.insert(number, value).is_some() {
            return Err(self.error_at(at, format!("%{number} is defined twice")));
        }
        scope.types.push(ty);
        Ok(value)
    }

    fn quoted(&mut self) -> Parsed<String> {
        let at = self.start();
        self.expect('"')?;
        let mut text = String::new();
        let mut chars = self.text[self.at..].char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    _ => return Err(self.error_at(self.at + i, "known escapes are \\n \\\" \\\\")),
                },
                c => text.push(c),
            }
        }
        Err(self.error_at(at, "this text has no closing quote"))
    }

    fn keyword(&mut self, keyword: &str) -> Parsed<()> {
        let at = self.start();
        match self.word(&format!("`{keyword}`"))? {
            word if word == keyword => Ok(()),
            word => Err(self.error_at(at, format!("expected `{keyword}`, found `{word}`"))),
        }
    }

    fn word(&mut self, what: &str) -> Parsed<&'a str> {
        self.while_char(is_word, what)
    }

    fn number_or_word(&mut self) -> Parsed<&'a str> {
        self.while_char(|c| is_word(c) || c == '-' || c == '+', "a value")
    }

    fn while_char(&mut self, holds: fn(char) -> bool, what: &str) -> Parsed<&'a str> {
        let at = self.start();
        let rest = &self.text[at..];
        let length = rest.find(|c| !holds(c)).unwrap_or(rest.len());
        if length == 0 {
            let found = self.found();
            return Err(self.error(format!("expected {what}, found {found}")));
        }
        self.at += length;
        Ok(&rest[..length])
    }

    fn expect(&mut self, wanted: char) -> Parsed<()> {
        if self.accept(wanted) {
            return Ok(());
        }
        let found = self.found();
        Err(self.error(format!("expected `{wanted}`, found {found}")))
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn found(&mut self) -> String {
        self.peek().map_or("the end".to_string(), |c| format!("`{c}`"))
    }

    fn peek(&mut self) -> Option<char> {
        self.start();
        self.text[self.at..].chars().next()
    }

    /// Skips blanks and comments; where the next token begins.
    fn start(&mut self) -> usize {
        loop {
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
            if !self.text[self.at..].starts_with(';') {
                return self.at;
            }
            let rest = &self.text[self.at..];
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn error(&mut self, message: impl Into<String>) -> ParseError {
        let at = self.start();
        self.error_at(at, message)
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> ParseError {
        let before = &self.text[..at];
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() as u32 + 1;
        ParseError { line, column, message: message.into() }
    }
}

/// Reads a type: `f32[4,3]`.
///
/// # Errors
/// The first thing that is not as it should be.
pub fn parse_type(text: &str) -> Result<Type, ParseError> {
    let mut parser = Parser { text, at: 0, registry: &|_| None, depth: 0 };
    let ty = parser.ty()?;
    match parser.peek() {
        None => Ok(ty),
        Some(c) => Err(parser.error(format!("expected the end, found `{c}`"))),
    }
}

/// The literal that prints as `word:dtype`.
pub fn parse_literal(word: &str, dtype: DType) -> Option<Literal> {
    if let Some(digits) = word.strip_prefix("0x") {
        let bits = u64::from_str_radix(digits, 16).ok()?;
        let literal = Literal::from_bits(dtype, bits);
        return (literal.bits() == bits).then_some(literal);
    }
    match dtype {
        DType::Bool => word.parse::<bool>().ok().map(|v| Literal::from_i64(dtype, v as i64)),
        // Read as f32: rounding twice, through f64, can give a neighbour.
        DType::F32 => word.parse::<f32>().ok().map(|v| Literal::from_f64(dtype, v as f64)),
        dtype if dtype.is_float() => word.parse().ok().map(|v| Literal::from_f64(dtype, v)),
        _ => {
            let value: i64 = word.parse().ok()?;
            let literal = Literal::from_i64(dtype, value);
            (literal.as_i64() == value).then_some(literal)
        }
    }
}
