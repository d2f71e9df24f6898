//! An entry of the table, and what all entries have in common: operands and parameters are checked
//! here, once, before an op's own rule sees them.

use crate::application::{Application, list};
use crate::batch::{self, Batch};
use crate::domain::Domain;
use crate::elementwise::Body;
use crate::reduce;
use crate::rule::{self, Derivative};
use vramlab_ir::{
    Batched, Batching, Cotangents, Fault, FaultKind, Gradient, Lowering, Param, Params, Primitive,
    Pullback, ReduceKind, ScalarProgram, Shape, Type,
};

/// Everything about one op.
pub struct Entry {
    /// As in the text form; the Rust name of method and function where these are derived.
    pub name: &'static str,
    pub doc: &'static str,
    /// A cell that runs.
    pub example: &'static str,
    pub operands: Operands,
    /// In the order in which an equation gives them.
    pub params: &'static [ParamSpec],
    pub meaning: Meaning,
    pub gradient: Derivative,
    pub batch: Batch,
}

/// How many operands an op takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    Exactly(usize),
    AtLeast(usize),
}

/// One static parameter.
pub struct ParamSpec {
    pub name: &'static str,
    pub format: Format,
    pub doc: &'static str,
}

/// The formats of [`Param`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Bool,
    Int,
    Ints,
    Literal,
    DType,
    Shape,
    Text,
    Func,
}

/// Shape rule and lowering. The first two derive both from one thing.
pub enum Meaning {
    /// Operands of one element type in `domain`, broadcast together; the program is written for any
    /// type of the domain.
    Elementwise { domain: Domain, program: fn(&mut Body) -> vramlab_ir::Reg },
    /// Operand 0 over the axes of parameter `axes`.
    Reduce { domain: Domain, kind: ReduceKind },
    /// Rules of its own.
    Own { infer: fn(&Application) -> Result<Vec<Type>, Fault>, lower: fn(&Application) -> Lowering },
}

impl ParamSpec {
    pub const fn new(name: &'static str, format: Format, doc: &'static str) -> ParamSpec {
        ParamSpec { name, format, doc }
    }
}

impl Format {
    pub fn of(param: &Param) -> Format {
        match param {
            Param::Bool(_) => Format::Bool,
            Param::Int(_) => Format::Int,
            Param::Ints(_) => Format::Ints,
            Param::Literal(_) => Format::Literal,
            Param::DType(_) => Format::DType,
            Param::Shape(_) => Format::Shape,
            Param::Text(_) => Format::Text,
            Param::Func(_) => Format::Func,
        }
    }
}

impl Primitive for Entry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[Type], params: &Params) -> Result<Vec<Type>, Fault> {
        self.check_operands(inputs)?;
        self.check_params(params)?;
        inputs.iter().try_for_each(|ty| self.check_size(ty))?;
        let application = Application { name: self.name, inputs, params };
        let results = match &self.meaning {
            Meaning::Elementwise { domain, program } => {
                vec![infer_elementwise(&application, *domain, *program)?]
            }
            Meaning::Reduce { domain, kind } => {
                vec![reduce::infer(&application, *domain, *kind)?]
            }
            Meaning::Own { infer, .. } => infer(&application)?,
        };
        results.iter().try_for_each(|ty| self.check_size(ty))?;
        Ok(results)
    }

    fn lower(&self, inputs: &[Type], params: &Params) -> Lowering {
        let application = Application { name: self.name, inputs, params };
        match &self.meaning {
            Meaning::Elementwise { program, .. } => {
                Lowering::Elementwise(Body::build(inputs[0].dtype, *program))
            }
            Meaning::Reduce { kind, .. } => reduce::lower(&application, *kind),
            Meaning::Own { lower, .. } => lower(&application),
        }
    }

    fn gradient(&self) -> Gradient {
        match self.gradient {
            Derivative::Rule(_) => Gradient::Rule,
            Derivative::Zero(why) => Gradient::Zero(why),
            Derivative::None(why) => Gradient::None(why),
            Derivative::Held => Gradient::Held,
        }
    }

    fn vjp(&self, pullback: Pullback) -> Cotangents {
        match self.gradient {
            Derivative::Rule(rule) => rule::write(rule, pullback),
            _ => Ok(vec![None; pullback.inputs.len()]),
        }
    }

    fn batch(&'static self, batching: Batching) -> Batched {
        batch::write(self, batching)
    }
}

impl Entry {
    /// The element types that operands are converted to: `None` when the op has rules of its own.
    pub fn domain(&self) -> Option<Domain> {
        match self.meaning {
            Meaning::Elementwise { domain, .. } | Meaning::Reduce { domain, .. } => Some(domain),
            Meaning::Own { .. } => None,
        }
    }

    fn check_operands(&self, inputs: &[Type]) -> Result<(), Fault> {
        let (fits, words) = match self.operands {
            Operands::Exactly(n) => (inputs.len() == n, format!("{n}")),
            Operands::AtLeast(n) => (inputs.len() >= n, format!("at least {n}")),
        };
        if fits {
            return Ok(());
        }
        let given = match inputs {
            [] => "got none".to_string(),
            _ => format!("got {}: {}", inputs.len(), list(inputs)),
        };
        let message =
            format!("takes {words} operand{}, {given}", if words == "1" { "" } else { "s" });
        Err(Fault::new(FaultKind::Argument, self.name, message))
    }

    /// Exactly the declared parameters in the declared order: equal programs then hash alike.
    fn check_params(&self, params: &Params) -> Result<(), Fault> {
        let declared = self.params.iter().map(|spec| (spec.name, spec.format));
        if declared.eq(params.iter().map(|(name, param)| (name, Format::of(param)))) {
            return Ok(());
        }
        let show = |(name, format): (&str, Format)| format!("{name}: {format:?}");
        let wanted: Vec<String> = self.params.iter().map(|s| show((s.name, s.format))).collect();
        let given: Vec<String> = params.iter().map(|(n, p)| show((n, Format::of(p)))).collect();
        let message =
            format!("takes the parameters [{}], got [{}]", wanted.join(", "), given.join(", "));
        Err(Fault::new(FaultKind::Argument, self.name, message))
    }

    /// Sizes, offsets and strides of every verified array fit in `isize`, also where an extent is 0.
    fn check_size(&self, ty: &Type) -> Result<(), Fault> {
        let addressable = |shape: &Shape| {
            let mut bytes = ty.dtype.size();
            for &extent in shape.iter().filter(|&&extent| extent > 0) {
                bytes = bytes.checked_mul(extent)?;
            }
            isize::try_from(bytes).ok()
        };
        if addressable(&ty.shape).is_some() {
            return Ok(());
        }
        let message = format!("{ty} has more bytes than can be addressed");
        Err(Fault::new(FaultKind::Argument, self.name, message))
    }
}

fn infer_elementwise(
    application: &Application,
    domain: Domain,
    program: fn(&mut Body) -> vramlab_ir::Reg,
) -> Result<Type, Fault> {
    let dtype = application.want(domain, 0)?;
    (1..application.inputs.len()).try_for_each(|input| application.want_equal(0, input))?;
    let shape = application.broadcast()?;
    Ok(Type::new(result_dtype(&Body::build(dtype, program)), shape))
}

fn result_dtype(program: &ScalarProgram) -> vramlab_ir::DType {
    program.dtype(vramlab_ir::Reg(program.result))
}
