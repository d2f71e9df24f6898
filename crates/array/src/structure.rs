//! How a value holds its arrays: tuples, lists and structs, with a path for every array.

use crate::array::Array;
use crate::tree::Tree;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use vramlab_ir::{Fault, FaultKind};

/// How a value holds its arrays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Structure {
    Array,
    /// A tuple; `()` is the empty one.
    Tuple(Vec<Structure>),
    /// `[T; N]` or `Vec<T>`.
    List(Vec<Structure>),
    /// One structure a field, in the order of declaration.
    Struct(Arc<StructNames>, Vec<Structure>),
}

/// A struct's name and those of its fields: `0`, `1`, … in a tuple struct.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructNames {
    pub name: Cow<'static, str>,
    pub fields: Vec<Cow<'static, str>>,
}

impl StructNames {
    /// Its fields are numbered.
    pub fn is_tuple(&self) -> bool {
        self.fields.first().is_some_and(|field| field.starts_with(|c: char| c.is_ascii_digit()))
    }
}

impl Structure {
    /// The structure of a struct that [`tree!`](crate::tree) declares.
    pub fn of_struct(
        name: &'static str,
        fields: &[&'static str],
        parts: Vec<Structure>,
    ) -> Structure {
        let fields = fields.iter().map(|field| Cow::Borrowed(*field)).collect();
        Structure::Struct(Arc::new(StructNames { name: Cow::Borrowed(name), fields }), parts)
    }

    /// How many arrays it holds.
    pub fn leaf_count(&self) -> usize {
        match self {
            Structure::Array => 1,
            Structure::Tuple(parts) | Structure::List(parts) | Structure::Struct(_, parts) => {
                parts.iter().map(Structure::leaf_count).sum()
            }
        }
    }

    /// The path of every array, in their order: `params.layers[3].w`, `params.0`, where `root` is
    /// `params`.
    pub fn paths(&self, root: &str) -> Vec<String> {
        let mut out = Vec::with_capacity(self.leaf_count());
        self.walk(root.to_string(), &mut out);
        out
    }

    fn walk(&self, path: String, out: &mut Vec<String>) {
        if *self == Structure::Array {
            out.push(path);
            return;
        }
        for (at, part) in self.parts().iter().enumerate() {
            part.walk(format!("{path}{}", self.step(at)), out);
        }
    }

    fn parts(&self) -> &[Structure] {
        match self {
            Structure::Array => &[],
            Structure::Tuple(parts) | Structure::List(parts) | Structure::Struct(_, parts) => parts,
        }
    }

    /// How a path goes on to the part at `at`: `.w`, `.0`, `[3]`.
    fn step(&self, at: usize) -> String {
        match self {
            Structure::Array => String::new(),
            Structure::Tuple(_) => format!(".{at}"),
            Structure::List(_) => format!("[{at}]"),
            Structure::Struct(names, _) => format!(".{}", names.fields[at]),
        }
    }

    /// Where the other is not the same, in words with the path from `root`; `None` where the two
    /// are equal.
    pub fn difference(&self, other: &Structure, root: &str) -> Option<String> {
        let differs = || {
            let at = if root.is_empty() { "the value" } else { root };
            Some(format!("{at} is {self} here and {other} there"))
        };
        let alike = match (self, other) {
            (Structure::Array, Structure::Array) => return None,
            (Structure::Tuple(a), Structure::Tuple(b)) => a.len() == b.len(),
            (Structure::List(a), Structure::List(b)) if a.len() != b.len() => {
                let at = if root.is_empty() { "the list" } else { root };
                return Some(format!("{at} has {} elements here and {} there", a.len(), b.len()));
            }
            (Structure::List(_), Structure::List(_)) => true,
            (Structure::Struct(a, _), Structure::Struct(b, _)) => a == b,
            _ => false,
        };
        if !alike {
            return differs();
        }
        let mut pairs = self.parts().iter().zip(other.parts()).enumerate();
        pairs.find_map(|(at, (a, b))| a.difference(b, &format!("{root}{}", self.step(at))))
    }

    /// The structures of the fields, when it is that struct.
    ///
    /// # Errors
    /// A trace fault when it is anything else.
    pub fn fields_of(&self, name: &str, fields: &[&str]) -> Result<FieldsOf<'_>, Fault> {
        match self {
            Structure::Struct(names, parts)
                if names.name == name && names.fields.iter().eq(fields.iter()) =>
            {
                Ok(FieldsOf { whole: self, parts: parts.iter() })
            }
            _ => Err(self.changed()),
        }
    }

    /// What was traced had another structure than this.
    pub(crate) fn changed(&self) -> Fault {
        let message = format!("the result is {self}, which is not what was traced");
        Fault::new(FaultKind::Trace, "jit", message)
    }
}

/// The fields of a struct that is made again, one after the other.
pub struct FieldsOf<'s> {
    whole: &'s Structure,
    parts: std::slice::Iter<'s, Structure>,
}

impl FieldsOf<'_> {
    /// The next field's value.
    ///
    /// # Errors
    /// A trace fault when its structure is another one.
    pub fn take<T: Tree>(&mut self, arrays: &mut dyn Iterator<Item = Array>) -> Result<T, Fault> {
        let structure = self.parts.next().ok_or_else(|| self.whole.changed())?;
        T::from_leaves(structure, arrays)
    }
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = |f: &mut fmt::Formatter<'_>, parts: &[Structure]| {
            for (at, part) in parts.iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                write!(f, "{comma}{part}")?;
            }
            Ok(())
        };
        match self {
            Structure::Array => f.write_str("Array"),
            Structure::Tuple(items) => {
                f.write_str("(")?;
                parts(f, items)?;
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            Structure::List(items) => match items.first() {
                Some(first) if items.len() > 1 && items.iter().all(|item| item == first) => {
                    write!(f, "[{first}; {}]", items.len())
                }
                _ => {
                    f.write_str("[")?;
                    parts(f, items)?;
                    f.write_str("]")
                }
            },
            Structure::Struct(names, _) => f.write_str(&names.name),
        }
    }
}
