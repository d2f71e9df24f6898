//! The session's side of the tier: variables, functions and constants across cells.

use crate::build::{self, BuiltCell, Context};
use crate::check::{Checker, Known, Names};
use crate::code::{Code, Entry, FnCell, GLOBAL, Held, SlotFacts};
use crate::diagnostic::Diagnostic;
use crate::guard;
use crate::hir::Tree;
use crate::host::{Host, RunOutcome, Shown, Variable};
use crate::library;
use crate::show;
use crate::structs::{Associated, StructDef, names_any};
use crate::ty::{Infer, Ty};
use crate::value::Value;
use crate::vm::Vm;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use syn::parse::Parser;
use vramlab_array::surface::Dyn;

/// A tree deeper than this is walked on a stack of its own.
const SHALLOW: usize = 96;
const DEEP_STACK: usize = 256 << 20;

#[derive(Clone, Debug)]
struct Binding {
    global: u32,
    ty: Ty,
    mutable: bool,
    cell: u32,
}

/// A name for completion, with its type or signature and a line of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub detail: String,
    pub doc: String,
}

/// A checked cell, ready to run. Nothing has happened yet.
#[derive(Debug)]
pub struct Prepared {
    cell: u32,
    code: Arc<Code>,
    bindings: Vec<(String, Binding)>,
    functions: Vec<Arc<FnCell>>,
    constants: Vec<(String, Ty, Value)>,
    structs: Vec<Arc<StructDef>>,
    associated: Vec<(u64, String, Associated)>,
    /// Structs of earlier cells that go.
    replaced: Vec<u64>,
    writes: bool,
    held: Vec<(u32, Held)>,
    next_global: u32,
    value_ty: Ty,
    tail_variable: bool,
}

impl Prepared {
    /// The type of the cell's value, as Rust spells it.
    pub fn value_type(&self) -> String {
        self.value_ty.to_string()
    }

    /// The code as text.
    pub fn listing(&self) -> String {
        self.code.to_string()
    }
}

/// The instant tier of one session.
#[derive(Debug, Default)]
pub struct Interpreter {
    /// Values of variables by their place.
    globals: Vec<Value>,
    variables: HashMap<String, Binding>,
    functions: HashMap<String, Arc<FnCell>>,
    constants: HashMap<String, (Ty, Value)>,
    structs: HashMap<String, Arc<StructDef>>,
    /// What `impl` blocks gave to the struct of that number.
    associated: HashMap<u64, BTreeMap<String, Associated>>,
    /// `std::fmt::Write` was brought into scope.
    writes: bool,
    held: HashMap<u32, Held>,
    /// Places of replaced variables that a reference may still look at.
    shadowed: Vec<u32>,
}

impl Names for Interpreter {
    fn variable(&self, name: &str) -> Option<Known> {
        self.variables.get(name).map(|binding| Known {
            ty: binding.ty.clone(),
            mutable: binding.mutable,
            global: binding.global,
            cell: binding.cell,
        })
    }

    fn function(&self, name: &str) -> Option<Arc<FnCell>> {
        self.functions.get(name).cloned()
    }

    fn constant(&self, name: &str) -> Option<(Ty, Value)> {
        self.constants.get(name).cloned()
    }

    fn structure(&self, name: &str) -> Option<Arc<StructDef>> {
        self.structs.get(name).cloned()
    }

    fn structures(&self) -> Vec<Arc<StructDef>> {
        self.structs.values().cloned().collect()
    }

    fn associated(&self, id: u64, name: &str) -> Option<Associated> {
        self.associated.get(&id)?.get(name).cloned()
    }

    fn associated_names(&self, id: u64) -> Vec<String> {
        self.associated.get(&id).into_iter().flat_map(|all| all.keys().cloned()).collect()
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn all(&self) -> Vec<String> {
        self.variables.keys().chain(self.functions.keys()).cloned().collect()
    }

    fn next_global(&self) -> u32 {
        self.globals.len() as u32
    }
}

impl Interpreter {
    pub fn new() -> Interpreter {
        Interpreter::default()
    }

    /// Parses, checks and builds the cell. No side effect.
    ///
    /// # Errors
    /// The first fault, as rustc would have it, or what is outside of the subset.
    pub fn prepare(&self, text: &str, cell: u32) -> Result<Prepared, Box<Diagnostic>> {
        let weight = guard::weigh(text)?;
        if weight.depth <= SHALLOW {
            return self.prepare_here(text, cell);
        }
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().stack_size(DEEP_STACK);
            match builder.spawn_scoped(scope, || self.prepare_here(text, cell)) {
                Ok(thread) => thread.join().expect("`prepare_here` catches panics"),
                Err(error) => Err(Diagnostic::unsupported(
                    Default::default(),
                    format!("a cell this deep: no stack for it ({error})"),
                )),
            }
        })
    }

    fn prepare_here(&self, text: &str, cell: u32) -> Result<Prepared, Box<Diagnostic>> {
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.prepare_parsed(text, cell)
        }));
        let prepared = checked.unwrap_or_else(|_| {
            let what = "this cell: its check ended in a fault of vramlab";
            Err(Diagnostic::unsupported(Default::default(), what))
        });
        // Spans of this text are not asked for any more; the table of them would only grow.
        proc_macro2::extra::invalidate_current_thread_spans();
        prepared
    }

    fn prepare_parsed(&self, text: &str, cell: u32) -> Result<Prepared, Box<Diagnostic>> {
        let statements = syn::Block::parse_within
            .parse_str(text)
            .map_err(|error| crate::check::cell_fault(&error, text))?;
        let mut checker = Checker::new(self, text);
        let tree = checker.cell(&statements)?;
        let constants = std::mem::take(&mut checker.constants);
        let functions = std::mem::take(&mut checker.top_functions);
        let structs = std::mem::take(&mut checker.structs);
        let associated = std::mem::take(&mut checker.associated);
        let replaced = std::mem::take(&mut checker.replaced);
        let built = self.build(&tree, &checker.infer, cell)?;
        let bindings = new_bindings(&tree, &checker.infer, cell);
        Ok(Prepared {
            cell,
            code: built.code,
            bindings,
            functions,
            constants,
            structs,
            associated,
            replaced,
            writes: checker.writes,
            held: built.held,
            next_global: built.next_global,
            value_ty: built.value_ty,
            tail_variable: tree.tail_variable,
        })
    }

    fn build(&self, tree: &Tree, infer: &Infer, cell: u32) -> Result<BuiltCell, Box<Diagnostic>> {
        let held = |global: u32| self.held.get(&global).cloned().unwrap_or_default();
        let earlier = |name: &str| self.variables.get(name).map(|binding| binding.global);
        let borrowers = self.borrowers();
        let references = self.has_references()
            || tree
                .locals
                .iter()
                .any(|local| local.global.is_some() && may_borrow(&infer.resolve(&local.ty)));
        let context = Context {
            infer,
            locals: &tree.locals,
            cell,
            held: &held,
            earlier: &earlier,
            references,
            borrowers: &borrowers,
            pointers: &tree.pointers,
        };
        let first = tree
            .locals
            .iter()
            .filter_map(|local| local.global)
            .map(|global| global + 1)
            .max()
            .unwrap_or(0)
            .max(self.globals.len() as u32);
        build::build_cell(tree, &context, first)
    }

    /// The variables that hold references to others, as the flow check sees them.
    fn borrowers(&self) -> Vec<(u32, SlotFacts)> {
        self.variables
            .iter()
            .filter_map(|(name, binding)| {
                let held = self.held.get(&binding.global)?;
                if held.loans.is_empty() {
                    return None;
                }
                let facts = SlotFacts {
                    ty: binding.ty.clone(),
                    name: Some(name.clone()),
                    mutable: binding.mutable,
                    span: Default::default(),
                    entry: Entry::Earlier { cell: binding.cell, held: held.clone() },
                };
                Some((GLOBAL | binding.global, facts))
            })
            .collect()
    }

    fn has_references(&self) -> bool {
        self.variables.values().any(|binding| may_borrow(&binding.ty))
    }

    /// The functions and constants of this session, with a place for each variable and none bound.
    pub(crate) fn without_variables(&self) -> Interpreter {
        let mut globals = Vec::new();
        globals.resize_with(self.globals.len(), Value::default);
        let (functions, constants) = (self.functions.clone(), self.constants.clone());
        Interpreter {
            globals,
            functions,
            constants,
            structs: self.structs.clone(),
            associated: self.associated.clone(),
            writes: self.writes,
            ..Interpreter::default()
        }
    }

    /// The place of a variable that has a value.
    pub(crate) fn slot_of(&self, name: &str) -> Option<u32> {
        let global = self.variables.get(name)?.global;
        (!self.is_gone(global)).then_some(global)
    }

    pub(crate) fn value_at(&self, slot: u32) -> &Value {
        self.globals.get(slot as usize).unwrap_or(&Value::Gone)
    }

    pub(crate) fn put(&mut self, slot: u32, value: Value) {
        if let Some(place) = self.globals.get_mut(slot as usize) {
            *place = value;
        }
    }

    /// Binds a name as another interpreter does, at the same place.
    pub(crate) fn bind_as(&mut self, other: &Interpreter, name: &str) {
        let Some(binding) = other.variables.get(name) else { return };
        if let Some(held) = other.held.get(&binding.global) {
            self.held.insert(binding.global, held.clone());
        }
        self.variables.insert(name.to_string(), binding.clone());
    }

    /// Runs a prepared cell. Statements that completed stay, whatever comes after them.
    pub fn run(&mut self, prepared: Prepared, host: &mut dyn Host) -> RunOutcome {
        self.forget(&prepared, host);
        self.writes |= prepared.writes;
        for def in &prepared.structs {
            self.structs.insert(def.name().to_string(), def.clone());
        }
        for (id, name, value) in &prepared.associated {
            self.associated.entry(*id).or_default().insert(name.clone(), value.clone());
        }
        for function in &prepared.functions {
            self.variables.remove(&function.name);
            self.functions.insert(function.name.clone(), function.clone());
        }
        for (name, ty, value) in &prepared.constants {
            self.constants.insert(name.clone(), (ty.clone(), value.clone()));
        }
        let there: Vec<bool> = self.globals.iter().map(|value| !value.is_gone()).collect();
        self.globals.resize_with(prepared.next_global as usize, Value::default);
        let mut vm = Vm::new(std::mem::take(&mut self.globals), host);
        let mut outcome = RunOutcome::default();
        match vm.run_code(&prepared.code, Vec::new(), Vec::new()) {
            Ok((value, _)) => match shown(&vm, value, &prepared) {
                Ok(value) => outcome.value = value,
                Err(fault) => outcome.error = Some(fault),
            },
            Err(fault) => outcome.error = Some(fault),
        }
        outcome.failed_at = vm.failed_at.filter(|_| outcome.error.is_some());
        self.globals = std::mem::take(&mut vm.stack);
        self.globals.truncate(prepared.next_global as usize);
        self.keep(&prepared, &there, outcome.error.is_some());
        outcome
    }

    /// Structs that a cell defines anew end with everything that names them: values of the old type
    /// would be read as the new one.
    fn forget(&mut self, prepared: &Prepared, host: &mut dyn Host) {
        let ids = prepared.replaced.as_slice();
        if ids.is_empty() {
            return;
        }
        let gone = |ty: &Ty| names_any(ty, ids);
        let in_sig = |cell: &FnCell| cell.sig.params.iter().chain([&cell.sig.ret]).any(gone);
        let mut dropped: Vec<(u32, String)> = Vec::new();
        self.variables.retain(|name, binding| {
            let ends = gone(&binding.ty);
            if ends {
                dropped.push((binding.global, name.clone()));
            }
            !ends
        });
        let mut lost: Vec<String> = Vec::new();
        self.functions.retain(|name, cell| {
            let ends = in_sig(cell);
            if ends {
                lost.push(format!("fn {name}"));
            }
            !ends
        });
        self.constants.retain(|name, (ty, _)| {
            let ends = gone(ty);
            if ends {
                lost.push(format!("const {name}"));
            }
            !ends
        });
        let is_new = |name: &String| prepared.structs.iter().any(|def| def.name() == name);
        let mut anew: Vec<String> = Vec::new();
        self.structs.retain(|name, def| {
            let ends = ids.contains(&def.id);
            match ends && is_new(name) {
                true => anew.push(name.clone()),
                false if ends => lost.push(format!("struct {name}")),
                false => {}
            }
            !ends
        });
        for id in ids {
            self.associated.remove(id);
        }
        for own in self.associated.values_mut() {
            own.retain(|_, value| !value.names_any(ids));
        }
        self.shadowed.extend(dropped.iter().map(|(global, _)| *global));
        for (global, _) in &dropped {
            self.held.remove(global);
        }
        self.sweep();
        dropped.sort();
        let names: Vec<String> = dropped.into_iter().map(|(_, name)| name).collect();
        tell_gone(anew, &names, lost, host);
    }

    /// Takes over what the cell bound and moved.
    fn keep(&mut self, prepared: &Prepared, there: &[bool], failed: bool) {
        let held: HashMap<u32, &Held> =
            prepared.held.iter().map(|(global, held)| (*global, held)).collect();
        let mut replaced = Vec::new();
        for (name, binding) in &prepared.bindings {
            let gone = self.is_gone(binding.global);
            if failed && gone {
                continue;
            }
            if let Some(old) = self.variables.insert(name.clone(), binding.clone()) {
                replaced.push(old.global);
            }
        }
        for (global, own) in held {
            let was_there = there.get(global as usize).copied().unwrap_or(false);
            let mut own = own.clone();
            if failed {
                // Only what really happened counts.
                let moved_now = self.is_gone(global) && was_there;
                let before = self.held.get(&global).cloned().unwrap_or_default();
                own.moved = match (moved_now, &before.moved) {
                    (true, None) => own.moved.or(Some((prepared.cell, Default::default()))),
                    (true, Some(_)) => own.moved,
                    (false, moved) => *moved,
                };
                own.invalid = before.invalid.or(own.invalid);
            }
            self.held.insert(global, own);
        }
        self.shadowed.extend(replaced);
        self.sweep();
    }

    fn is_gone(&self, global: u32) -> bool {
        self.globals.get(global as usize).is_none_or(Value::is_gone)
    }

    /// Ends the lives of replaced variables, unless a reference may look at them.
    fn sweep(&mut self) {
        if self.has_references() {
            return;
        }
        for global in std::mem::take(&mut self.shadowed) {
            if let Some(slot) = self.globals.get_mut(global as usize) {
                *slot = Value::Gone;
            }
        }
    }

    /// Whether a session variable has this name, moved or not.
    pub fn has_variable(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// The session's variables in the order of their making.
    pub fn variables(&self) -> Vec<Variable> {
        let mut bindings: Vec<(&String, &Binding)> = self.variables.iter().collect();
        bindings.sort_by_key(|(_, binding)| binding.global);
        bindings
            .into_iter()
            .map(|(name, binding)| Variable {
                name: name.clone(),
                ty: binding.ty.to_string(),
                mutable: binding.mutable,
                cell: binding.cell,
                moved: self
                    .held
                    .get(&binding.global)
                    .and_then(|held| held.moved)
                    .map(|(cell, _)| cell),
            })
            .collect()
    }

    /// The `fn` items: (name, signature, source).
    pub fn functions(&self) -> Vec<(String, String, String)> {
        let mut all: Vec<_> = self
            .functions
            .values()
            .map(|cell| {
                (cell.name.clone(), format!("fn {}{}", cell.name, cell.sig), cell.source.clone())
            })
            .collect();
        all.sort();
        all
    }

    /// A variable's value, borrowed; `None` when there is none, or it was moved.
    pub fn value(&self, name: &str) -> Option<Dyn> {
        let binding = self.variables.get(name)?;
        let value = self.globals.get(binding.global as usize)?;
        self.with_vm(|vm| vm.borrowed_dyn(value).ok())
    }

    /// A variable's value as the session shows it.
    pub fn text(&self, name: &str) -> Option<String> {
        let binding = self.variables.get(name)?;
        let value = self.globals.get(binding.global as usize)?;
        self.with_vm(|vm| show::shown(vm, value, &binding.ty).ok())
    }

    /// Looks at values with the variables in reach of their references.
    fn with_vm<T>(&self, look: impl FnOnce(&Vm<'_>) -> T) -> T {
        let mut nobody = Quiet;
        let stack = self.globals.iter().map(Value::alias).collect();
        look(&Vm::new(stack, &mut nobody))
    }

    /// Forgets a variable and hands its value over.
    pub fn remove(&mut self, name: &str) -> Option<Dyn> {
        let binding = self.variables.remove(name)?;
        self.held.remove(&binding.global);
        let value = self.globals.get_mut(binding.global as usize)?.take();
        self.sweep();
        self.with_vm(|vm| vm.to_dyn(value).ok())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Interpreter::default();
    }

    /// Binds a variable from outside; an older one of that name ends.
    ///
    /// # Errors
    /// A type that the tier does not know.
    pub fn insert(&mut self, name: &str, ty: &str, value: Dyn, cell: u32) -> Result<(), String> {
        let parsed: syn::Type = syn::parse_str(ty).map_err(|error| error.to_string())?;
        let ty = Checker::new(self, ty).read_type(&parsed).map_err(|fault| fault.message)?;
        self.bind_value(name, ty, value, cell);
        Ok(())
    }

    /// Binds a cell's value to a name; an older one of that name ends.
    ///
    /// # Errors
    /// A type that the tier cannot keep: a closure's.
    pub fn keep_output(&mut self, name: &str, shown: Shown, cell: u32) -> Result<(), String> {
        if holds_struct(&shown.of) {
            self.bind_value(name, shown.of, shown.value, cell);
            return Ok(());
        }
        self.insert(name, &shown.ty, shown.value, cell)
    }

    fn bind_value(&mut self, name: &str, ty: Ty, value: Dyn, cell: u32) {
        let global = self.globals.len() as u32;
        self.globals.push(Value::from_dyn(value));
        let binding = Binding { global, ty, mutable: false, cell };
        if let Some(old) = self.variables.insert(name.into(), binding) {
            self.shadowed.push(old.global);
            self.sweep();
        }
    }

    /// The type of an expression, as far as the session's variables and the text before it tell.
    pub fn type_of(&self, before: &str, expression: &str) -> Option<String> {
        self.type_in(before, expression).map(|ty| ty.to_string())
    }

    fn type_in(&self, before: &str, expression: &str) -> Option<Ty> {
        guard::weigh(before).ok().filter(|weight| weight.depth <= SHALLOW)?;
        guard::weigh(expression).ok().filter(|weight| weight.depth <= SHALLOW)?;
        let expr: syn::Expr = syn::parse_str(expression).ok()?;
        let statements = parse_prefix(before);
        let mut checker = Checker::new(self, before);
        checker.check_statements_loosely(&statements);
        let ty = checker.check_expression(&expr).ok();
        proc_macro2::extra::invalidate_current_thread_spans();
        ty
    }

    /// What may follow the dot at the end of `code`: methods and fields of the receiver's type.
    /// `None` when the text does not end behind a dot, or the type is unknown.
    pub fn members(&self, code: &str) -> Option<Vec<Member>> {
        let dot = code.trim_end_matches(|c: char| c == '_' || c.is_alphanumeric());
        let receiver = dot.strip_suffix('.')?;
        let start = receiver_start(receiver);
        let ty = self.type_in(&receiver[..start], receiver[start..].trim())?;
        let mut out: Vec<Member> = Vec::new();
        if let Ty::Tuple(parts) = ty.peeled() {
            out.extend(parts.iter().enumerate().map(|(index, part)| Member {
                name: index.to_string(),
                detail: part.to_string(),
                doc: String::new(),
            }));
        }
        if let Ty::Struct(def) = ty.peeled() {
            out.extend(self.members_of(def));
        }
        if let Ty::Named(record, _) = ty.peeled()
            && let Some(record) =
                vramlab_array::surface::RECORDS.iter().find(|own| own.name == *record)
        {
            out.extend(record.fields.iter().map(|(name, ty)| Member {
                name: (*name).into(),
                detail: (*ty).into(),
                doc: String::new(),
            }));
        }
        let methods = library::methods(&ty).into_iter().filter(|candidate| match ty.peeled() {
            Ty::Struct(def) => candidate.name() == "clone" && def.derives.clone,
            _ => true,
        });
        out.extend(methods.map(|candidate| Member {
            name: candidate.name().into(),
            detail: candidate.text().into(),
            doc: match candidate {
                library::Candidate::Item(item) => item.doc.into(),
                library::Candidate::Row(_) => String::new(),
            },
        }));
        Some(out)
    }

    /// Fields and methods of a struct.
    fn members_of(&self, def: &StructDef) -> Vec<Member> {
        let fields = def.names.fields.iter().zip(def.fields());
        let mut out: Vec<Member> = fields
            .map(|(name, ty)| Member {
                name: name.to_string(),
                detail: ty.to_string(),
                doc: String::new(),
            })
            .collect();
        for (name, value) in self.associated.get(&def.id).into_iter().flatten() {
            if let Associated::Function { receiver: Some(_), .. } = value {
                let detail = value.text(name);
                out.push(Member { name: name.clone(), detail, doc: String::new() });
            }
        }
        out
    }

    /// The structs: (name, source, what `impl` blocks gave them).
    pub fn structs(&self) -> Vec<(String, String, Vec<String>)> {
        let mut all: Vec<_> = self
            .structs
            .values()
            .map(|def| {
                let own = self.associated.get(&def.id).into_iter().flatten();
                let given = own.map(|(name, value)| value.text(name)).collect();
                (def.name().to_string(), def.source.clone(), given)
            })
            .collect();
        all.sort();
        all
    }

    /// Names that may stand at the end of `code`: variables bound before it, functions, constants
    /// and the prelude.
    pub fn names_at(&self, code: &str) -> Vec<Member> {
        let mut out: Vec<Member> = Vec::new();
        let mut add = |name: &str, detail: String, doc: &str| {
            if let Some(known) = out.iter_mut().find(|own| own.name == name) {
                known.detail = detail;
            } else {
                out.push(Member { name: name.into(), detail, doc: doc.into() });
            }
        };
        for name in library::function_names() {
            match library::surface_function(name) {
                Some(item) => add(name, item.signature.into(), item.doc),
                None => {
                    let text = library::function(name).map_or("", library::Row::text);
                    add(name, text.into(), "");
                }
            }
        }
        for name in library::constant_names() {
            if let Some(item) = library::surface_constant(name) {
                add(name, item.signature.into(), item.doc);
            }
        }
        for (name, detail, _) in self.functions() {
            add(&name, detail, "");
        }
        for (name, ..) in self.structs() {
            add(&name, format!("struct {name}"), "");
        }
        for (name, (ty, _)) in &self.constants {
            add(name, format!("const {name}: {ty}"), "");
        }
        for variable in self.variables() {
            add(&variable.name, variable.ty, "");
        }
        let light = guard::weigh(code).is_ok_and(|weight| weight.depth <= SHALLOW);
        if light {
            let statements = parse_prefix(code);
            let mut checker = Checker::new(self, code);
            checker.check_statements_loosely(&statements);
            let locals: Vec<(String, String)> = checker
                .known_locals()
                .map(|(name, ty)| (name.to_string(), checker.infer.text(&ty)))
                .collect();
            for (name, ty) in locals {
                add(&name, ty, "");
            }
            proc_macro2::extra::invalidate_current_thread_spans();
        }
        out.sort_by(|a, b| a.name.cmp(&b.name));
        out
    }
}

fn shown(
    vm: &Vm<'_>,
    value: Value,
    prepared: &Prepared,
) -> Result<Option<Shown>, crate::ir::Fault> {
    let ty = &prepared.value_ty;
    if ty.is_unit() || ty.is_never() {
        return Ok(None);
    }
    let text = show::shown(vm, &value, ty)?;
    let value = if prepared.tail_variable || ty.holds_references() {
        vm.borrowed_dyn(&value)?
    } else {
        vm.to_dyn(value)?
    };
    let is_variable = prepared.tail_variable;
    Ok(Some(Shown { value, ty: ty.to_string(), text, is_variable, of: ty.clone() }))
}

/// A struct's name may mean another type later, so such a type is not told as text.
fn holds_struct(ty: &Ty) -> bool {
    match ty {
        Ty::Struct(_) => true,
        Ty::Tuple(parts) | Ty::Named("Vec" | "Option" | "Result" | "Box", parts) => {
            parts.iter().any(holds_struct)
        }
        Ty::Named("Jit", parts) => holds_struct(&parts[1]),
        Ty::Named("JitTree" | "JitUpdate", parts) => {
            holds_struct(&parts[0]) || holds_struct(&parts[2])
        }
        Ty::Array(element, _) => holds_struct(element),
        _ => false,
    }
}

fn tell_gone(
    mut anew: Vec<String>,
    dropped: &[String],
    mut lost: Vec<String>,
    host: &mut dyn Host,
) {
    if dropped.is_empty() && lost.is_empty() {
        return;
    }
    anew.sort();
    lost.sort();
    let list = |names: &[String]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let verb = if anew.len() == 1 { "is a new type" } else { "are new types" };
    let mut words = format!("{} {verb}", list(&anew));
    if !dropped.is_empty() {
        words.push_str(&format!("; dropped with the old: {}", list(dropped)));
    }
    if !lost.is_empty() {
        words.push_str(&format!("; gone, since they name the old: {}", list(&lost)));
    }
    host.note(&words);
}

/// Values of the type may refer to variables; what transforms return may not.
fn may_borrow(ty: &Ty) -> bool {
    ty.holds_references() && !ty.is_named("Box")
}

/// The cell's top-level bindings; of several under one name the last one counts, and the others
/// are listed before it.
fn new_bindings(tree: &Tree, infer: &Infer, cell: u32) -> Vec<(String, Binding)> {
    tree.locals
        .iter()
        .filter(|local| local.earlier.is_none())
        .filter_map(|local| {
            let global = local.global?;
            let ty = infer.resolve(&local.ty);
            Some((local.name.clone(), Binding { global, ty, mutable: local.mutable, cell }))
        })
        .collect()
}

/// The longest run of whole statements at the start of unfinished text.
fn parse_prefix(code: &str) -> Vec<syn::Stmt> {
    let mut end = code.len();
    for _ in 0..64 {
        if let Ok(statements) = syn::Block::parse_within.parse_str(&code[..end]) {
            return statements;
        }
        match code[..end.saturating_sub(1)].rfind([';', '}', '{', '\n']) {
            Some(at) => end = at + 1,
            None => return Vec::new(),
        }
        if end == 0 {
            break;
        }
    }
    Vec::new()
}

/// Where the expression before a dot begins.
fn receiver_start(text: &str) -> usize {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut at = chars.len();
    let mut depth = 0usize;
    while at > 0 {
        let c = chars[at - 1].1;
        match c {
            ')' | ']' => depth += 1,
            '(' | '[' if depth > 0 => depth -= 1,
            c if depth > 0 => {
                let _ = c;
            }
            '_' | '.' | ':' | '"' => {}
            c if c.is_alphanumeric() => {}
            _ => break,
        }
        at -= 1;
    }
    chars.get(at).map_or(text.len(), |(index, _)| *index)
}

/// For looking at values outside of a run.
struct Quiet;

impl Host for Quiet {
    fn stdout(&mut self, _: &str) {}
    fn stderr(&mut self, _: &str) {}
    fn display(&mut self, _: &Dyn) {}
    fn input(&mut self, _: &str) -> Result<String, crate::ir::Fault> {
        Err(crate::ir::Fault::new(
            crate::ir::FaultKind::Argument,
            "input",
            "there is nobody to ask",
        ))
    }
    fn interrupted(&self) -> bool {
        false
    }
    fn bound(&mut self, _: &str, _: &Dyn) {}
    fn note(&mut self, _: &str) {}
}
