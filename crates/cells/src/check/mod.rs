//! Names and types: syntax in, typed tree out. Nothing runs here, and nothing of `syn` is kept.

mod access;
mod bounds;
mod call;
mod closure;
mod control;
mod expr;
mod gather;
mod impls;
mod items;
mod literals;
mod macros;
mod more_macros;
mod naming;
mod operator;
mod pattern;
mod structs;
mod syntax;

use crate::code::FnCell;
use crate::diagnostic::Diagnostic;
use crate::hir::{self, BodyId, Expr, Kind, Local, LocalId, LoopId, Tree};
use crate::ir::Span;
use crate::place::span_of;
use crate::structs::{Associated, StructDef};
use crate::ty::{Infer, Ty};
use crate::value::Value;
use std::collections::HashMap;
use std::sync::Arc;

pub use macros::{cell_fault, parse_fault};

pub type Checked<T> = Result<T, Box<Diagnostic>>;

/// What earlier cells left behind, as far as the check must know.
pub trait Names {
    fn variable(&self, name: &str) -> Option<Known>;
    fn function(&self, name: &str) -> Option<Arc<FnCell>>;
    fn constant(&self, name: &str) -> Option<(Ty, Value)>;
    fn structure(&self, name: &str) -> Option<Arc<StructDef>>;
    /// Every struct.
    fn structures(&self) -> Vec<Arc<StructDef>>;
    /// What `impl` blocks gave a struct under a name.
    fn associated(&self, id: u64, name: &str) -> Option<Associated>;
    fn associated_names(&self, id: u64) -> Vec<String>;
    /// An earlier cell brought `std::fmt::Write` into scope.
    fn writes(&self) -> bool;
    /// Every name, for the nearest spelling.
    fn all(&self) -> Vec<String>;
    /// The first free place for a new variable.
    fn next_global(&self) -> u32;
}

#[derive(Clone, Debug)]
pub struct Known {
    pub ty: Ty,
    pub mutable: bool,
    pub global: u32,
    pub cell: u32,
}

/// What a name stands for.
#[derive(Clone, Debug)]
enum Entity {
    Local(LocalId),
    Function(Arc<FnCell>),
    Constant(Ty, Value),
    /// A tuple or unit struct, as a value.
    Constructor(Arc<StructDef>),
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, Entity>,
    types: HashMap<String, Arc<StructDef>>,
    /// `std::fmt::Write` is in scope.
    writes: bool,
    /// The body of a `fn` item: locals outside are out of reach.
    barrier: bool,
}

struct Loop {
    id: LoopId,
    label: Option<String>,
    /// `Some`: `break` may carry a value.
    value: Option<Merge>,
    breaks: bool,
    is_block: bool,
    span: Span,
}

/// The common type of branches.
#[derive(Default)]
struct Merge {
    ty: Option<Ty>,
}

/// A function or closure being checked.
struct Body {
    id: BodyId,
    ret: Option<Ty>,
    is_closure: bool,
    loops: Vec<Loop>,
}

/// A condition on types that could not be decided when it came up.
#[derive(Clone, Debug)]
enum Pending {
    Binary { op: hir::BinaryOp, left: Ty, right: Ty, out: Ty, span: Span, spans: (Span, Span) },
    Bound { ty: Ty, name: &'static str, arguments: Vec<Ty>, span: Span },
    Cast { from: Ty, to: Ty, span: Span },
    Negate { ty: Ty, span: Span },
}

pub struct Checker<'n> {
    names: &'n dyn Names,
    pub infer: Infer,
    locals: Vec<Local>,
    scopes: Vec<Scope>,
    bodies: Vec<Body>,
    next_body: BodyId,
    functions: Vec<hir::Function>,
    pending: Vec<Pending>,
    earlier: HashMap<String, LocalId>,
    next_global: u32,
    next_loop: LoopId,
    pointers: Vec<(u64, Span, String)>,
    diverges: bool,
    /// New constants and functions of the top level, to be kept by the session.
    pub constants: Vec<(String, Ty, Value)>,
    pub top_functions: Vec<Arc<FnCell>>,
    /// New structs of the top level, and what `impl` blocks gave to which struct.
    pub structs: Vec<Arc<StructDef>>,
    pub associated: Vec<(u64, String, Associated)>,
    /// Structs of earlier cells that go, with everything that names them.
    pub replaced: Vec<u64>,
    /// The cell brings `std::fmt::Write` into scope.
    pub writes: bool,
    /// What `Self` stands for.
    self_ty: Option<Arc<StructDef>>,
    lines: Vec<&'n str>,
}

impl<'n> Checker<'n> {
    pub fn new(names: &'n dyn Names, source: &'n str) -> Checker<'n> {
        Checker {
            names,
            infer: Infer::default(),
            locals: Vec::new(),
            scopes: vec![Scope::default()],
            bodies: vec![Body { id: 0, ret: None, is_closure: false, loops: Vec::new() }],
            next_body: 1,
            functions: Vec::new(),
            pending: Vec::new(),
            earlier: HashMap::new(),
            next_global: names.next_global(),
            next_loop: 0,
            pointers: Vec::new(),
            diverges: false,
            constants: Vec::new(),
            top_functions: Vec::new(),
            structs: Vec::new(),
            associated: Vec::new(),
            replaced: Vec::new(),
            writes: false,
            self_ty: None,
            lines: source.split('\n').collect(),
        }
    }

    /// The whole cell.
    ///
    /// # Errors
    /// The first fault, under rustc's code.
    pub fn cell(&mut self, statements: &[syn::Stmt]) -> Checked<Tree> {
        self.declare_items(statements)?;
        let (out, tail, _) = self.statements(statements, None)?;
        self.finish()?;
        let tail_variable = tail.as_ref().is_some_and(|tail| matches!(tail.kind, Kind::Local(_)));
        let span = Span::default();
        Ok(Tree {
            pointers: std::mem::take(&mut self.pointers),
            locals: std::mem::take(&mut self.locals),
            functions: std::mem::take(&mut self.functions),
            body: hir::Block { statements: out, tail: tail.map(Box::new), span, label: None },
            tail_variable,
        })
    }

    /// Every local seen so far with its type, innermost last; for completion.
    pub fn known_locals(&self) -> impl Iterator<Item = (&str, Ty)> {
        self.locals.iter().map(|local| (local.name.as_str(), self.infer.resolve(&local.ty)))
    }

    pub fn check_statements_loosely(&mut self, statements: &[syn::Stmt]) {
        let _ = self.declare_items(statements);
        for statement in statements {
            let _ = self.statements(std::slice::from_ref(statement), None);
        }
        let _ = self.select();
        for index in 0..self.locals.len() {
            let ty = self.locals[index].ty.clone();
            self.default_inside(&ty);
        }
    }

    pub fn check_expression(&mut self, expr: &syn::Expr) -> Checked<Ty> {
        let checked = self.expr(expr, None)?;
        let _ = self.select();
        Ok(self.infer.resolve(&checked.ty))
    }

    /// A type written outside of any cell.
    ///
    /// # Errors
    /// An unknown name.
    pub fn read_type(&mut self, ty: &syn::Type) -> Checked<Ty> {
        self.user_type(ty)
    }

    fn body(&mut self) -> &mut Body {
        self.bodies.last_mut().expect("the cell's own body is never popped")
    }

    fn new_local(&mut self, name: &str, ty: Ty, mutable: bool, span: Span) -> LocalId {
        let owner = self.body().id;
        let global = (owner == 0 && self.scopes.len() == 1).then(|| {
            self.next_global += 1;
            self.next_global - 1
        });
        self.locals.push(Local {
            name: name.into(),
            ty,
            mutable,
            span,
            owner,
            global,
            earlier: None,
        });
        self.locals.len() as LocalId - 1
    }

    fn declare(&mut self, name: &str, entity: Entity) {
        let scope = self.scopes.last_mut().expect("the outermost scope is never popped");
        scope.names.insert(name.into(), entity);
    }

    fn in_scope<T>(&mut self, inside: impl FnOnce(&mut Self) -> Checked<T>) -> Checked<T> {
        self.scopes.push(Scope::default());
        let out = inside(self);
        self.scopes.pop();
        out
    }

    /// The innermost meaning of a name.
    fn lookup(&mut self, name: &str, span: Span) -> Checked<Option<Entity>> {
        let mut crossed = false;
        let mut found = None;
        for scope in self.scopes.iter().rev() {
            if let Some(entity) = scope.names.get(name) {
                found = Some(entity.clone());
                break;
            }
            crossed |= scope.barrier;
        }
        if found.is_none()
            && let Some(id) = self.session_variable(name)
        {
            found = Some(Entity::Local(id));
        }
        if crossed && matches!(found, Some(Entity::Local(_))) && name != "self" {
            return Err(Diagnostic::check(
                "E0434",
                span,
                "can't capture dynamic environment in a fn item",
            )
            .help("use the `|| { ... }` closure form instead"));
        }
        if crossed && name == "self" {
            return Ok(None);
        }
        if found.is_none() {
            found = self.earlier_item(name);
        }
        Ok(found)
    }

    /// An item of an earlier cell; what names a struct that goes is gone with it.
    fn earlier_item(&self, name: &str) -> Option<Entity> {
        let gone = |ty: &Ty| crate::structs::names_any(ty, &self.replaced);
        if let Some(cell) = self.names.function(name) {
            let lost = cell.sig.params.iter().chain([&cell.sig.ret]).any(gone);
            return (!lost).then_some(Entity::Function(cell));
        }
        if let Some((ty, value)) = self.names.constant(name) {
            return (!gone(&ty)).then_some(Entity::Constant(ty, value));
        }
        let def = self.names.structure(name)?;
        let lost = def.form == crate::structs::Form::Named || self.replaced.contains(&def.id);
        (!lost).then_some(Entity::Constructor(def))
    }

    fn session_variable(&mut self, name: &str) -> Option<LocalId> {
        if let Some(id) = self.earlier.get(name) {
            return Some(*id);
        }
        let known = self.names.variable(name)?;
        if crate::structs::names_any(&known.ty, &self.replaced) {
            return None;
        }
        self.locals.push(Local {
            name: name.into(),
            ty: known.ty,
            mutable: known.mutable,
            span: Span::default(),
            owner: 0,
            global: Some(known.global),
            earlier: Some(known.cell),
        });
        let id = self.locals.len() as LocalId - 1;
        self.earlier.insert(name.into(), id);
        Some(id)
    }

    /// Statements of one block: (statements, tail, whether the end is out of reach).
    fn statements(
        &mut self,
        statements: &[syn::Stmt],
        expected: Option<&Ty>,
    ) -> Checked<(Vec<hir::Statement>, Option<Expr>, bool)> {
        let mut out = Vec::with_capacity(statements.len());
        let mut tail = None;
        for (index, statement) in statements.iter().enumerate() {
            let last = index + 1 == statements.len();
            match statement {
                syn::Stmt::Local(local) => out.push(self.let_statement(local)?),
                syn::Stmt::Item(item) => self.item(item)?,
                syn::Stmt::Expr(syn::Expr::Verbatim(tokens), _) if tokens.is_empty() => {}
                syn::Stmt::Expr(expr, None) if last => tail = Some(self.expr(expr, expected)?),
                syn::Stmt::Expr(expr, semi) => {
                    out.push(self.expr_statement(expr, semi.is_some())?);
                }
                syn::Stmt::Macro(call) if structs::is_tree(&call.mac) => {}
                syn::Stmt::Macro(call) => {
                    let tail_here = last && call.semi_token.is_none();
                    let want = if tail_here { expected } else { None };
                    let span = span_of(syn::spanned::Spanned::span(&call.mac));
                    let checked = self.macro_call(&call.mac, span, want)?;
                    if tail_here {
                        tail = Some(checked);
                    } else {
                        out.push(hir::Statement::Expr(checked));
                    }
                }
            }
        }
        Ok((out, tail, self.diverges))
    }

    fn expr_statement(&mut self, expr: &syn::Expr, semi: bool) -> Checked<hir::Statement> {
        let unit = Ty::unit();
        let checked = self.expr(expr, if semi { None } else { Some(&unit) })?;
        if !semi && !self.infer.shallow(&checked.ty).is_never() {
            return Ok(hir::Statement::Expr(self.coerce(checked, &unit)?));
        }
        Ok(hir::Statement::Expr(checked))
    }

    fn let_statement(&mut self, local: &syn::Local) -> Checked<hir::Statement> {
        let span = span_of(local.let_token.span);
        let (pattern, annotated) = match &local.pat {
            syn::Pat::Type(typed) => (&*typed.pat, Some(self.user_type(&typed.ty)?)),
            pattern => (pattern, None),
        };
        let ty = annotated.clone().unwrap_or_else(|| self.infer.fresh());
        let mut value = None;
        let mut otherwise = None;
        if let Some(init) = &local.init {
            let mut checked = self.expr(&init.expr, annotated.as_ref())?;
            checked = match &annotated {
                Some(ty) => self.coerce(checked, ty)?,
                None => {
                    if !self.infer.shallow(&checked.ty).is_never() {
                        self.equate(&ty, &checked.ty, checked.span)?;
                    } else if self.infer.var_kind(&ty).is_some() {
                        self.equate(&ty, &checked.ty.clone(), checked.span)?;
                    }
                    checked
                }
            };
            if let Some((_, diverging)) = &init.diverge {
                otherwise = Some(self.let_else(diverging)?);
            }
            value = Some(checked);
        }
        let pattern = self.binding_pattern(pattern, &ty)?;
        Ok(hir::Statement::Let {
            pattern: Box::new(pattern),
            value: value.map(Box::new),
            otherwise: otherwise.map(Box::new),
            span,
        })
    }

    fn let_else(&mut self, diverging: &syn::Expr) -> Checked<hir::Block> {
        let syn::Expr::Block(block) = diverging else {
            return Err(Diagnostic::unsupported(syntax::span(diverging), "this `let … else`"));
        };
        let before = self.diverges;
        let checked = self.block(&block.block, None)?;
        let leaves = self.diverges;
        self.diverges = before;
        if !leaves {
            return Err(Diagnostic::check(
                "E0308",
                checked.span,
                "`else` clause of `let...else` does not diverge",
            )
            .label("expected `!`, found `()`"));
        }
        let Kind::Block(block) = checked.kind else { unreachable!("`block` makes blocks") };
        Ok(block)
    }

    /// `{ … }` with a scope of its own.
    fn block(&mut self, block: &syn::Block, expected: Option<&Ty>) -> Checked<Expr> {
        let span = syntax::block_span(block);
        self.in_scope(|this| {
            let before = std::mem::replace(&mut this.diverges, false);
            this.declare_items(&block.stmts)?;
            let (statements, mut tail, ends) = this.statements(&block.stmts, expected)?;
            let ty = match &mut tail {
                Some(tail) => {
                    if let Some(expected) = expected
                        && this.infer.var_kind(expected) != Some(crate::ty::VarKind::General)
                    {
                        let own = std::mem::replace(
                            tail,
                            Expr { kind: Kind::Tuple(Vec::new()), ty: Ty::unit(), span },
                        );
                        *tail = this.coerce(own, expected)?;
                    }
                    tail.ty.clone()
                }
                None if ends => Ty::Never,
                None => Ty::unit(),
            };
            this.diverges = before || ends;
            let block = hir::Block { statements, tail: tail.map(Box::new), span, label: None };
            Ok(Expr { kind: Kind::Block(block), ty, span })
        })
    }

    /// A block whose value must be of the type; a missing tail is pointed at.
    fn block_of(&mut self, block: &syn::Block, expected: &Ty) -> Checked<Expr> {
        let checked = self.block(block, Some(expected))?;
        if checked.ty.is_unit()
            && !self.infer.shallow(expected).is_unit()
            && self.infer.var_kind(expected).is_none()
            && let Kind::Block(inner) = &checked.kind
            && inner.tail.is_none()
        {
            let mut fault = self.mismatch(expected, &checked.ty, checked.span);
            if let Some(syn::Stmt::Expr(_, Some(semi))) = block.stmts.last() {
                fault.help.push("remove this semicolon to return this value".into());
                fault.labels.push(crate::diagnostic::Label {
                    span: span_of(semi.span),
                    text: "the semicolon".into(),
                    cell: None,
                });
            }
            return Err(fault);
        }
        self.coerce(checked, expected)
    }

    /// The types are the same, or the cell is refused.
    fn equate(&mut self, expected: &Ty, found: &Ty, span: Span) -> Checked<()> {
        match self.infer.unify(expected, found) {
            Ok(()) => Ok(()),
            Err(()) => Err(self.mismatch(expected, found, span)),
        }
    }

    fn mismatch(&self, expected: &Ty, found: &Ty, span: Span) -> Box<Diagnostic> {
        let word = |ty: &Ty| match self.infer.text(ty).as_str() {
            "{integer}" => "integer".to_string(),
            "{float}" => "floating-point number".to_string(),
            text => format!("`{text}`"),
        };
        let label = format!("expected {}, found {}", word(expected), word(found));
        let mut fault = Diagnostic::check("E0308", span, "mismatched types").label(label);
        let (want, have) = (self.infer.shallow(expected), self.infer.shallow(found));
        if let Ty::Ref(mutable, to) = &want
            && self.infer.resolve(to) == self.infer.resolve(&have)
        {
            let sign = if *mutable { "&mut " } else { "&" };
            fault.help.push(format!("consider borrowing here: write `{sign}` before it"));
        }
        // As in `grad(f)(&x)`, which users of JAX write.
        if is_references_to_arrays(&self.infer.resolve(&want))
            && matches!(have.peeled(), Ty::Named("Array", _))
        {
            fault.help.push("arguments of transformed functions stand in brackets: `[&x]`".into());
        }
        fault
    }

    /// The value at a place that wants the type: reborrows, dereferences and unsizes as Rust does.
    fn coerce(&mut self, expr: Expr, expected: &Ty) -> Checked<Expr> {
        let want = self.infer.shallow(expected);
        let have = self.infer.shallow(&expr.ty);
        match (&have, &want) {
            (Ty::Never, _) => Ok(expr),
            (Ty::Ref(mutable, from), Ty::Ref(wanted, to)) if *mutable || !*wanted => {
                self.coerce_reference(expr, *mutable, from, *wanted, to, &want)
            }
            (Ty::FnItem(_, sig), Ty::FnPtr(pointer)) => {
                if self.infer.unify_sig(sig, pointer).is_err() {
                    return Err(self.mismatch(&want, &have, expr.span));
                }
                Ok(Expr { ty: want, ..expr })
            }
            (Ty::Closure(closure), Ty::FnPtr(pointer)) => {
                let words =
                    format!("expected fn pointer, found closure `{}`", self.infer.text(&have));
                self.pointers.push((closure.id, expr.span, words));
                if self.infer.unify_sig(&closure.sig, pointer).is_err() {
                    return Err(self.mismatch(&want, &have, expr.span));
                }
                Ok(expr)
            }
            (_, Ty::Named("impl Fn" | "impl FnMut" | "impl FnOnce", wanted)) => {
                if let Ty::Named(own, _) = &have
                    && own.starts_with("impl ")
                    && self.infer.unify(&have, &want).is_ok()
                {
                    return Ok(expr);
                }
                let Ty::DynFn(sig) = self.infer.shallow(&wanted[0]) else { return Ok(expr) };
                let kind = kind_of(&want);
                self.callable_bound(&have, kind, &sig, expr.span)?;
                Ok(expr)
            }
            (Ty::Named("Box", from), Ty::Named("Box", to)) => {
                let (from, to) = (self.infer.shallow(&from[0]), self.infer.shallow(&to[0]));
                if self.unsize(&from, &to) {
                    return Ok(Expr { ty: want, ..expr });
                }
                self.equate(&want, &have, expr.span)?;
                Ok(expr)
            }
            _ => {
                self.equate(&want, &have, expr.span)?;
                Ok(expr)
            }
        }
    }

    /// `T` → `dyn Fn`, `[T; N]` → `[T]`.
    fn unsize(&mut self, from: &Ty, to: &Ty) -> bool {
        match (from, to) {
            (Ty::Closure(_) | Ty::FnItem(..), Ty::DynFn(sig)) => {
                let own = match from {
                    Ty::Closure(closure) => closure.sig.clone(),
                    Ty::FnItem(_, sig) => (**sig).clone(),
                    _ => return false,
                };
                self.infer.unify_sig(&own, sig).is_ok()
            }
            (Ty::Array(element, _), Ty::Slice(want)) => self.infer.unify(element, want).is_ok(),
            _ => false,
        }
    }

    fn coerce_reference(
        &mut self,
        expr: Expr,
        mutable: bool,
        from: &Ty,
        wanted: bool,
        to: &Ty,
        want: &Ty,
    ) -> Checked<Expr> {
        let span = expr.span;
        let original = expr.ty.clone();
        let to = self.infer.shallow(to);
        let mut from = self.infer.shallow(from);
        let mut place = expr;
        let mut steps = 0;
        loop {
            let same_head = matches!(
                (&from, &to),
                (_, Ty::Var(_)) | (Ty::Var(_), _) | (Ty::Ref(..), Ty::Ref(..))
            );
            if (same_head || !matches!(from, Ty::Ref(..))) && self.infer.unify(&from, &to).is_ok() {
                if steps == 0 && !mutable {
                    return Ok(place);
                }
                break;
            }
            if self.unsize(&from, &to) {
                if !mutable && steps == 0 {
                    return Ok(Expr { ty: want.clone(), ..place });
                }
                break;
            }
            let next = match &from {
                Ty::Ref(_, inner) => (**inner).clone(),
                Ty::Named("String", _) => Ty::Str,
                Ty::Named("Vec", arguments) => Ty::Slice(Arc::new(arguments[0].clone())),
                Ty::Named("Box", arguments) => arguments[0].clone(),
                _ => return Err(self.mismatch(want, &original, span)),
            };
            // `String`, `Vec` and `Box` look the same behind a reference as what they hold.
            if matches!(from, Ty::Ref(..)) {
                place = Expr { kind: Kind::Deref(Box::new(place)), ty: from.clone(), span };
                steps += 1;
            } else if steps == 0 && !mutable {
                place.ty = Ty::reference(next.clone());
            }
            from = self.infer.shallow(&next);
        }
        if steps == 0 && !mutable {
            return Ok(place);
        }
        let target = Expr { kind: Kind::Deref(Box::new(place)), ty: self.infer.resolve(&to), span };
        let ty = Ty::Ref(wanted, Arc::new(to));
        Ok(Expr { kind: Kind::Borrow(wanted, Box::new(target)), ty, span })
    }

    /// Two functions, or closures without captures, have in common that they can be called by a pointer.
    fn common_pointer(&mut self, target: &Ty, expr: &Expr) -> Option<Ty> {
        let (want, have) = (self.infer.shallow(target), self.infer.shallow(&expr.ty));
        let sig = match (&want, &have) {
            (Ty::FnItem(a, _), Ty::FnItem(b, _)) if a == b => return None,
            (Ty::Closure(a), Ty::Closure(b)) if a.id == b.id => return None,
            (Ty::FnItem(_, sig), Ty::FnItem(..) | Ty::Closure(_)) => sig.clone(),
            (Ty::Closure(closure), Ty::FnItem(..) | Ty::Closure(_)) => {
                let words = self.infer.text(&want);
                let words = format!("expected fn pointer, found closure `{words}`");
                self.pointers.push((closure.id, expr.span, words));
                Arc::new(closure.sig.clone())
            }
            _ => return None,
        };
        Some(Ty::FnPtr(sig))
    }

    /// A branch's value joins the common type.
    fn merge(&mut self, merge: &mut Merge, expr: Expr, expected: Option<&Ty>) -> Checked<Expr> {
        if self.infer.shallow(&expr.ty).is_never() {
            return Ok(expr);
        }
        let target = match (&merge.ty, expected) {
            (Some(ty), _) => Some(ty.clone()),
            (None, Some(expected)) if self.infer.var_kind(expected).is_none() => {
                Some(expected.clone())
            }
            _ => None,
        };
        match target {
            Some(target) => {
                let target = self.common_pointer(&target, &expr).unwrap_or(target);
                let expr = self.coerce(expr, &target)?;
                merge.ty = Some(target);
                Ok(expr)
            }
            None => {
                merge.ty = Some(expr.ty.clone());
                Ok(expr)
            }
        }
    }
}

/// Which of the closure traits an `impl Fn…` type names.
pub(crate) fn kind_of(ty: &Ty) -> crate::ty::ClosureKind {
    match ty {
        Ty::Named("impl FnOnce", _) => crate::ty::ClosureKind::FnOnce,
        Ty::Named("impl FnMut", _) => crate::ty::ClosureKind::FnMut,
        _ => crate::ty::ClosureKind::Fn,
    }
}

/// `[&Array; N]`: how transformed functions take arrays.
fn is_references_to_arrays(ty: &Ty) -> bool {
    let Ty::Array(element, _) = ty else { return false };
    let Ty::Ref(false, of) = &**element else { return false };
    matches!(**of, Ty::Named("Array", _))
}
