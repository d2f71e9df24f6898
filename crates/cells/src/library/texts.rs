//! `String`, `str` and `char`.

use super::{Row, count, free, method, size, take, text};
use crate::interrupt::{Fallible, internal, panic};
use crate::iter::Iter;
use crate::value::Value;
use crate::vm::Vm;
use std::sync::Arc;

const STRING: &str = "String";
const STR: &str = "str";

fn string_mut<'v>(vm: &'v mut Vm<'_>, value: &Value) -> Fallible<&'v mut String> {
    match vm.get_mut(value)? {
        Value::Text(text) => Ok(Arc::make_mut(text)),
        _ => Err(internal("a text")),
    }
}

fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value::Iter(Box::new(Iter::owned(values)))
}

/// A text or a character to search for.
fn needle(vm: &Vm<'_>, value: &Value) -> Fallible<String> {
    Ok(match vm.peel(value)? {
        Value::Text(text) => text.to_string(),
        Value::Char(c) => c.to_string(),
        _ => return Err(internal("a pattern")),
    })
}

pub fn rows() -> Vec<Row> {
    let mut rows = strings();
    rows.extend(slices());
    rows.extend(characters());
    rows
}

fn strings() -> Vec<Row> {
    vec![
        free("String::new", "", "fn new() -> String", |_, _, _| Ok(Value::text(""))),
        free(
            "String::with_capacity",
            "",
            "fn with_capacity(capacity: usize) -> String",
            |_, _, _| Ok(Value::text("")),
        ),
        free("String::from", "", "fn from<T: Into<String>>(text: T) -> String", |vm, args, _| {
            Ok(Value::text(needle(vm, &args[0])?))
        }),
        method(STRING, "fn push_str(&mut self, text: &str)", |vm, args, _| {
            let more = text(vm, &args[1])?.to_string();
            string_mut(vm, &args[0])?.push_str(&more);
            Ok(Value::Unit)
        }),
        method(STRING, "fn push(&mut self, c: char)", |vm, args, _| {
            let Value::Char(c) = args[1] else { return Err(internal("a character")) };
            string_mut(vm, &args[0])?.push(c);
            Ok(Value::Unit)
        }),
        method(STRING, "fn pop(&mut self) -> Option<char>", |vm, args, _| {
            let last = string_mut(vm, &args[0])?.pop();
            Ok(Value::Option(last.map(|c| Box::new(Value::Char(c)))))
        }),
        method(STRING, "fn clear(&mut self)", |vm, args, _| {
            string_mut(vm, &args[0])?.clear();
            Ok(Value::Unit)
        }),
        method(STRING, "fn truncate(&mut self, length: usize)", |vm, args, _| {
            let length = size(vm, &args[1])?;
            let text = string_mut(vm, &args[0])?;
            if length < text.len() && !text.is_char_boundary(length) {
                return Err(panic("assertion failed: self.is_char_boundary(new_len)"));
            }
            text.truncate(length);
            Ok(Value::Unit)
        }),
        method(STRING, "fn insert(&mut self, at: usize, c: char)", |vm, args, _| {
            let at = size(vm, &args[1])?;
            let Value::Char(c) = args[2] else { return Err(internal("a character")) };
            let own = string_mut(vm, &args[0])?;
            if !own.is_char_boundary(at) {
                return Err(panic("assertion failed: self.is_char_boundary(idx)"));
            }
            own.insert(at, c);
            Ok(Value::Unit)
        }),
        method(STRING, "fn insert_str(&mut self, at: usize, text: &str)", |vm, args, _| {
            let at = size(vm, &args[1])?;
            let more = text(vm, &args[2])?.to_string();
            let own = string_mut(vm, &args[0])?;
            if !own.is_char_boundary(at) {
                return Err(panic("assertion failed: self.is_char_boundary(idx)"));
            }
            own.insert_str(at, &more);
            Ok(Value::Unit)
        }),
        method(STRING, "fn as_str(&self) -> &str", |_, args, _| Ok(take(args, 0))),
    ]
}

fn slices() -> Vec<Row> {
    vec![
        method(STR, "fn len(&self) -> usize", |vm, args, _| Ok(count(text(vm, &args[0])?.len()))),
        method(STR, "fn is_empty(&self) -> bool", |vm, args, _| {
            Ok(Value::Bool(text(vm, &args[0])?.is_empty()))
        }),
        method(STR, "fn to_string(&self) -> String", |vm, args, _| {
            Ok(Value::text(text(vm, &args[0])?))
        }),
        method(STR, "fn to_owned(&self) -> String", |vm, args, _| {
            Ok(Value::text(text(vm, &args[0])?))
        }),
        method(STR, "fn to_uppercase(&self) -> String", |vm, args, _| {
            Ok(Value::text(text(vm, &args[0])?.to_uppercase()))
        }),
        method(STR, "fn to_lowercase(&self) -> String", |vm, args, _| {
            Ok(Value::text(text(vm, &args[0])?.to_lowercase()))
        }),
        method(STR, "fn trim(&self) -> &str", |vm, args, _| {
            Ok(Value::text(text(vm, &args[0])?.trim()))
        }),
        method(STR, "fn trim_start(&self) -> &str", |vm, args, _| {
            Ok(Value::text(text(vm, &args[0])?.trim_start()))
        }),
        method(STR, "fn trim_end(&self) -> &str", |vm, args, _| {
            Ok(Value::text(text(vm, &args[0])?.trim_end()))
        }),
        method(STR, "fn contains(&self, part: impl Pattern) -> bool", |vm, args, _| {
            let part = needle(vm, &args[1])?;
            Ok(Value::Bool(text(vm, &args[0])?.contains(&part)))
        }),
        method(STR, "fn starts_with(&self, part: impl Pattern) -> bool", |vm, args, _| {
            let part = needle(vm, &args[1])?;
            Ok(Value::Bool(text(vm, &args[0])?.starts_with(&part)))
        }),
        method(STR, "fn ends_with(&self, part: impl Pattern) -> bool", |vm, args, _| {
            let part = needle(vm, &args[1])?;
            Ok(Value::Bool(text(vm, &args[0])?.ends_with(&part)))
        }),
        method(STR, "fn find(&self, part: impl Pattern) -> Option<usize>", |vm, args, _| {
            let part = needle(vm, &args[1])?;
            let found = text(vm, &args[0])?.find(&part);
            Ok(Value::Option(found.map(|at| Box::new(count(at)))))
        }),
        method(STR, "fn rfind(&self, part: impl Pattern) -> Option<usize>", |vm, args, _| {
            let part = needle(vm, &args[1])?;
            let found = text(vm, &args[0])?.rfind(&part);
            Ok(Value::Option(found.map(|at| Box::new(count(at)))))
        }),
        method(
            STR,
            "fn split_once(&self, part: impl Pattern) -> Option<(&str, &str)>",
            |vm, args, _| {
                let part = needle(vm, &args[1])?;
                let pair = text(vm, &args[0])?.split_once(part.as_str());
                Ok(Value::Option(
                    pair.map(|(a, b)| Box::new(Value::Tuple(vec![Value::text(a), Value::text(b)]))),
                ))
            },
        ),
        method(STR, "fn replace(&self, from: impl Pattern, to: &str) -> String", |vm, args, _| {
            let from = needle(vm, &args[1])?;
            let to = text(vm, &args[2])?.to_string();
            Ok(Value::text(text(vm, &args[0])?.replace(&from, &to)))
        }),
        method(STR, "fn repeat(&self, times: usize) -> String", |vm, args, _| {
            const MOST: usize = 1 << 28;
            let times = size(vm, &args[1])?;
            let own = text(vm, &args[0])?;
            if own.len().saturating_mul(times) > MOST {
                return Err(panic("capacity overflow"));
            }
            Ok(Value::text(own.repeat(times)))
        }),
        method(STR, "fn chars(&self) -> Iter<char>", |vm, args, _| {
            Ok(list(text(vm, &args[0])?.chars().map(Value::Char).collect::<Vec<_>>()))
        }),
        method(STR, "fn char_indices(&self) -> Iter<(usize, char)>", |vm, args, _| {
            let pairs: Vec<Value> = text(vm, &args[0])?
                .char_indices()
                .map(|(at, c)| Value::Tuple(vec![count(at), Value::Char(c)]))
                .collect();
            Ok(list(pairs))
        }),
        method(STR, "fn bytes(&self) -> Iter<u8>", |vm, args, _| {
            let bytes: Vec<Value> =
                text(vm, &args[0])?.bytes().map(|byte| Value::Int(byte.into())).collect();
            Ok(list(bytes))
        }),
        method(STR, "fn lines(&self) -> Iter<&str>", |vm, args, _| {
            Ok(list(text(vm, &args[0])?.lines().map(Value::text).collect::<Vec<_>>()))
        }),
        method(STR, "fn split(&self, part: impl Pattern) -> Iter<&str>", |vm, args, _| {
            let part = needle(vm, &args[1])?;
            let parts: Vec<Value> = text(vm, &args[0])?.split(&part).map(Value::text).collect();
            Ok(list(parts))
        }),
        method(STR, "fn split_whitespace(&self) -> Iter<&str>", |vm, args, _| {
            Ok(list(text(vm, &args[0])?.split_whitespace().map(Value::text).collect::<Vec<_>>()))
        }),
        method(STR, "fn strip_prefix(&self, part: impl Pattern) -> Option<&str>", |vm, args, _| {
            let part = needle(vm, &args[1])?;
            let rest = text(vm, &args[0])?.strip_prefix(&part);
            Ok(Value::Option(rest.map(|rest| Box::new(Value::text(rest)))))
        }),
        method(STR, "fn strip_suffix(&self, part: impl Pattern) -> Option<&str>", |vm, args, _| {
            let part = needle(vm, &args[1])?;
            let rest = text(vm, &args[0])?.strip_suffix(&part);
            Ok(Value::Option(rest.map(|rest| Box::new(Value::text(rest)))))
        }),
    ]
}

fn character(vm: &Vm<'_>, value: &Value) -> Fallible<char> {
    match vm.peel(value)? {
        Value::Char(c) => Ok(*c),
        _ => Err(internal("a character")),
    }
}

/// A row for a question about a character.
macro_rules! about {
    ($($name:ident),*) => {
        vec![$(method(
            "char",
            concat!("fn ", stringify!($name), "(self) -> bool"),
            |vm, args, _| Ok(Value::Bool(character(vm, &args[0])?.$name())),
        )),*]
    };
}

/// The same for questions that Rust asks by reference.
macro_rules! about_ascii {
    ($($name:ident),*) => {
        vec![$(method(
            "char",
            concat!("fn ", stringify!($name), "(&self) -> bool"),
            |vm, args, _| Ok(Value::Bool(character(vm, &args[0])?.$name())),
        )),*]
    };
}

fn characters() -> Vec<Row> {
    let mut rows: Vec<Row> = about![
        is_alphabetic,
        is_numeric,
        is_alphanumeric,
        is_whitespace,
        is_uppercase,
        is_lowercase
    ];
    rows.extend(about_ascii![
        is_ascii_digit,
        is_ascii_alphabetic,
        is_ascii_uppercase,
        is_ascii_lowercase,
        is_ascii_punctuation
    ]);
    rows.push(method("char", "fn to_ascii_uppercase(&self) -> char", |vm, args, _| {
        Ok(Value::Char(character(vm, &args[0])?.to_ascii_uppercase()))
    }));
    rows.push(method("char", "fn to_ascii_lowercase(&self) -> char", |vm, args, _| {
        Ok(Value::Char(character(vm, &args[0])?.to_ascii_lowercase()))
    }));
    rows.push(method("char", "fn len_utf8(self) -> usize", |vm, args, _| {
        Ok(count(character(vm, &args[0])?.len_utf8()))
    }));
    rows.push(method("char", "fn to_digit(self, radix: u32) -> Option<u32>", |vm, args, _| {
        let radix = size(vm, &args[1])? as u32;
        if !(2..=36).contains(&radix) {
            return Err(panic(
                "to_digit: invalid radix -- radix must be in the range 2 to 36 inclusive",
            ));
        }
        let digit = character(vm, &args[0])?.to_digit(radix);
        Ok(Value::Option(digit.map(|digit| Box::new(Value::Int(digit.into())))))
    }));
    rows
}
