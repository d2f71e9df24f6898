//! The structs of cells: what a `struct` item declares, and what an `impl` block adds to it.

use crate::code::{Code, FnCell, Inst, Operand, Place};
use crate::signature::Receiver;
use crate::ty::{FnSig, Ty};
use crate::value::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use vramlab_array::StructNames;

/// How a struct's fields are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Named,
    Tuple,
    Unit,
}

/// The traits that a struct derives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Derives {
    pub clone: bool,
    pub copy: bool,
    pub debug: bool,
    pub default: bool,
    pub partial_eq: bool,
    pub eq: bool,
    pub partial_ord: bool,
    pub ord: bool,
}

/// A struct. Two of them are the same type when their numbers are equal.
pub struct StructDef {
    /// Unique in the process.
    pub id: u64,
    pub form: Form,
    pub derives: Derives,
    /// Declared by `tree!`: its values are trees of arrays.
    pub is_tree: bool,
    pub names: Arc<StructNames>,
    /// As the user wrote it.
    pub source: String,
    fields: OnceLock<Vec<Ty>>,
}

impl StructDef {
    /// A struct whose fields have no types yet.
    pub fn new(
        id: u64,
        form: Form,
        derives: Derives,
        is_tree: bool,
        names: StructNames,
        source: String,
    ) -> StructDef {
        StructDef {
            id,
            form,
            derives,
            is_tree,
            names: Arc::new(names),
            source,
            fields: OnceLock::new(),
        }
    }

    /// The same declaration as a type of its own, without the types of its fields.
    pub fn anew(&self, id: u64) -> StructDef {
        StructDef::new(
            id,
            self.form,
            self.derives,
            self.is_tree,
            (*self.names).clone(),
            self.source.clone(),
        )
    }

    pub fn name(&self) -> &str {
        &self.names.name
    }

    /// The types of its fields in the order of declaration; none before they are set.
    pub fn fields(&self) -> &[Ty] {
        self.fields.get().map_or(&[], Vec::as_slice)
    }

    pub fn set_fields(&self, fields: Vec<Ty>) {
        let _ = self.fields.set(fields);
    }

    pub fn position(&self, field: &str) -> Option<usize> {
        self.names.fields.iter().position(|own| own == field)
    }

    /// Whether the other says the same, field by field.
    pub fn says_the_same(&self, other: &StructDef) -> bool {
        self.id == other.id
            || (self.form == other.form
                && self.derives == other.derives
                && self.is_tree == other.is_tree
                && self.names == other.names
                && self.fields().len() == other.fields().len()
                && self.fields().iter().zip(other.fields()).all(|(a, b)| alike(a, b)))
    }

    /// The constructor of a tuple struct as a function.
    pub fn constructor(self: &Arc<StructDef>) -> Arc<FnCell> {
        let count = self.fields().len() as u32;
        let parts = (0..count).map(|slot| Operand::Move(Place::slot(slot))).collect();
        let insts = vec![
            Inst::Struct { dest: count, names: self.names.clone(), parts },
            Inst::Return(Operand::Move(Place::slot(count))),
        ];
        let code = Code {
            name: self.name().into(),
            cell: 0,
            slots: count + 1,
            args: count,
            captures: 0,
            spans: vec![Default::default(); insts.len()],
            insts,
            restores: HashMap::new(),
        };
        let ret = Ty::Struct(self.clone());
        Arc::new(FnCell {
            id: self.id,
            name: self.name().into(),
            sig: Arc::new(FnSig { params: self.fields().to_vec(), ret }),
            code: OnceLock::from(Arc::new(code)),
            source: String::new(),
            lends: None,
            lends_first: false,
        })
    }
}

impl fmt::Debug for StructDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "struct {}", self.name())
    }
}

/// The same type, but for structs that say the same.
fn alike(a: &Ty, b: &Ty) -> bool {
    let all = |a: &[Ty], b: &[Ty]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b));
    let same = |a: &FnSig, b: &FnSig| all(&a.params, &b.params) && alike(&a.ret, &b.ret);
    match (a, b) {
        (Ty::Struct(a), Ty::Struct(b)) => a.says_the_same(b),
        (Ty::Tuple(a), Ty::Tuple(b)) => all(a, b),
        (Ty::Named(p, a), Ty::Named(q, b)) => p == q && all(a, b),
        (Ty::Array(a, n), Ty::Array(b, m)) => alike(a, b) && n == m,
        (Ty::Slice(a), Ty::Slice(b)) => alike(a, b),
        (Ty::Ref(m, a), Ty::Ref(n, b)) => m == n && alike(a, b),
        (Ty::FnPtr(a), Ty::FnPtr(b)) | (Ty::DynFn(a), Ty::DynFn(b)) => same(a, b),
        (a, b) => a == b,
    }
}

/// Whether a type names one of the structs, however deep.
pub fn names_any(ty: &Ty, ids: &[u64]) -> bool {
    let any = |types: &[Ty]| types.iter().any(|ty| names_any(ty, ids));
    let in_sig = |sig: &FnSig| any(&sig.params) || names_any(&sig.ret, ids);
    match ty {
        Ty::Struct(def) => ids.contains(&def.id) || any(def.fields()),
        Ty::Tuple(parts) | Ty::Named(_, parts) => any(parts),
        Ty::Array(element, _) | Ty::Slice(element) | Ty::Ref(_, element) => names_any(element, ids),
        Ty::FnItem(_, sig) | Ty::FnPtr(sig) | Ty::DynFn(sig) => in_sig(sig),
        Ty::Closure(closure) => in_sig(&closure.sig),
        _ => false,
    }
}

/// What an `impl` block declares under a name.
#[derive(Clone, Debug)]
pub enum Associated {
    /// With a receiver it is a method.
    Function {
        receiver: Option<Receiver>,
        cell: Arc<FnCell>,
    },
    Constant(Ty, Value),
}

impl Associated {
    /// Whether it names one of the structs in its type.
    pub fn names_any(&self, ids: &[u64]) -> bool {
        match self {
            Associated::Function { cell, .. } => {
                cell.sig.params.iter().chain([&cell.sig.ret]).any(|ty| names_any(ty, ids))
            }
            Associated::Constant(ty, _) => names_any(ty, ids),
        }
    }

    /// As Rust has it: `fn norm(&self) -> f64`.
    pub fn text(&self, name: &str) -> String {
        match self {
            Associated::Function { receiver, cell } => {
                let own = receiver.map(|receiver| match receiver {
                    Receiver::Value => "self".to_string(),
                    Receiver::Ref => "&self".to_string(),
                    Receiver::Mut => "&mut self".to_string(),
                });
                let rest = cell.sig.params.iter().skip(usize::from(own.is_some()));
                let params: Vec<String> =
                    own.into_iter().chain(rest.map(ToString::to_string)).collect();
                let ret = match &cell.sig.ret {
                    ret if ret.is_unit() => String::new(),
                    ret => format!(" -> {ret}"),
                };
                format!("fn {name}({}){ret}", params.join(", "))
            }
            Associated::Constant(ty, _) => format!("const {name}: {ty}"),
        }
    }
}
