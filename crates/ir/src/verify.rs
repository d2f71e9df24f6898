//! The verifier: what every pass may rely on, said in words where it does not hold.

use crate::func::{Eqn, Func, Param, Type, Value};
use crate::lowering::Lowering;
use crate::text::Names;
use std::collections::HashSet;
use std::fmt;

/// One thing that is wrong with a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The function, or the path to it: `f`, `f / equation 2 (call) / g`.
    pub func: String,
    /// The equation by position and op; `None` for the function's own parameters and results.
    pub eqn: Option<(usize, &'static str)>,
    pub message: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.eqn {
            Some((at, op)) => write!(f, "{}, equation {at} ({op}): {}", self.func, self.message),
            None => write!(f, "{}: {}", self.func, self.message),
        }
    }
}

/// Checks that every value is defined once and before its use, that equations have the types their
/// ops infer, that results are defined, and the same of functions held by parameters.
///
/// # Errors
/// Everything that is wrong, in order of the text.
pub fn verify(func: &Func) -> Result<(), Vec<Complaint>> {
    let mut verifier = Verifier {
        path: func.name.clone(),
        func,
        names: Names::of(func),
        defined: HashSet::new(),
        complaints: Vec::new(),
    };
    verifier.run();
    if verifier.complaints.is_empty() { Ok(()) } else { Err(verifier.complaints) }
}

struct Verifier<'a> {
    path: String,
    func: &'a Func,
    names: Names,
    defined: HashSet<Value>,
    complaints: Vec<Complaint>,
}

impl Verifier<'_> {
    fn run(&mut self) {
        for &param in &self.func.params {
            self.define(param, None, "parameter");
        }
        for (at, eqn) in self.func.eqns.iter().enumerate() {
            self.equation(at, eqn);
        }
        for &result in &self.func.results {
            self.uses(result, None, "result");
        }
    }

    fn equation(&mut self, at: usize, eqn: &Eqn) {
        let place = Some((at, eqn.op.name()));
        let before = self.complaints.len();
        for &input in &eqn.inputs {
            self.uses(input, place, "operand");
        }
        self.nested(at, eqn);
        if self.complaints.len() == before {
            self.types(place, eqn);
        }
        for &output in &eqn.outputs {
            self.define(output, place, "value");
        }
    }

    fn types(&mut self, place: Option<(usize, &'static str)>, eqn: &Eqn) {
        let inputs: Vec<Type> = eqn.inputs.iter().map(|&v| self.func.ty(v).clone()).collect();
        let inferred = match eqn.op.infer(&inputs, &eqn.params) {
            Ok(types) => types,
            Err(fault) => return self.complain(place, fault.message),
        };
        if let Some(at) = inputs.iter().position(Type::is_host)
            // Scans and branches hand them on to what they hold, which is verified by itself.
            && !matches!(
                eqn.op.lower(&inputs, &eqn.params),
                Lowering::Transfer | Lowering::Scan(_) | Lowering::Cond { .. }
            )
        {
            let name = self.names.of_value(eqn.inputs[at]);
            let message =
                format!("operand {name} is {}: only a copy reads host memory", inputs[at]);
            return self.complain(place, message);
        }
        if inferred.len() != eqn.outputs.len() {
            let (gives, names) = (inferred.len(), eqn.outputs.len());
            return self
                .complain(place, format!("gives {gives} results, the equation names {names}"));
        }
        for (&output, inferred) in eqn.outputs.iter().zip(&inferred) {
            match self.func.types.get(output.index()) {
                Some(declared) if declared != inferred => {
                    let name = self.names.of_value(output);
                    let message = format!("{name} is declared {declared}, the op gives {inferred}");
                    self.complain(place, message);
                }
                _ => {}
            }
        }
    }

    fn nested(&mut self, at: usize, eqn: &Eqn) {
        for (_, param) in eqn.params.iter() {
            let Param::Func(inner) = param else { continue };
            let path = format!("{} / equation {at} ({}) / ", self.path, eqn.op.name());
            let complaints = verify(inner).err().unwrap_or_default();
            self.complaints.extend(
                complaints
                    .into_iter()
                    .map(|c| Complaint { func: format!("{path}{}", c.func), ..c }),
            );
        }
    }

    fn define(&mut self, value: Value, place: Option<(usize, &'static str)>, what: &str) {
        let name = self.names.of_value(value);
        if self.func.types.get(value.index()).is_none() {
            self.complain(place, format!("{what} {name} has no type"));
        } else if !self.defined.insert(value) {
            self.complain(place, format!("{what} {name} is defined twice"));
        }
    }

    fn uses(&mut self, value: Value, place: Option<(usize, &'static str)>, what: &str) {
        if !self.defined.contains(&value) {
            let name = self.names.of_value(value);
            self.complain(place, format!("{what} {name} is not defined before its use"));
        }
    }

    fn complain(&mut self, eqn: Option<(usize, &'static str)>, message: String) {
        self.complaints.push(Complaint { func: self.path.clone(), eqn, message });
    }
}
