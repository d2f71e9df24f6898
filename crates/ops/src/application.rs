//! One application of an op to operand types: what shape rules read, and how they refuse.

use vramlab_ir::{DType, Fault, FaultKind, Func, Literal, Params, Shape, Type};

use crate::domain::Domain;
use std::sync::Arc;

/// An op's name with operand types and parameters. [`crate::Entry`] makes one only after it checked
/// the number of operands and the parameters' names and formats, so the accessors below do not fail.
pub struct Application<'a> {
    pub name: &'static str,
    pub inputs: &'a [Type],
    pub params: &'a Params,
}

const CHECKED: &str = "the entry checked names and formats of its parameters";

impl Application<'_> {
    pub fn flag(&self, name: &str) -> bool {
        self.params.flag(name)
    }

    pub fn int(&self, name: &str) -> i64 {
        self.params.int(name).expect(CHECKED)
    }

    pub fn ints(&self, name: &str) -> &[i64] {
        self.params.ints(name).expect(CHECKED)
    }

    pub fn shape(&self, name: &str) -> &Shape {
        self.params.shape(name).expect(CHECKED)
    }

    pub fn dtype(&self, name: &str) -> DType {
        self.params.dtype(name).expect(CHECKED)
    }

    pub fn literal(&self, name: &str) -> Literal {
        self.params.literal(name).expect(CHECKED)
    }

    pub fn text(&self, name: &str) -> &str {
        self.params.text(name).expect(CHECKED)
    }

    pub fn func(&self, name: &str) -> &Arc<Func> {
        self.params.func(name).expect(CHECKED)
    }

    /// A fault whose message opens with the operands' types, if there are any.
    pub fn fault(&self, kind: FaultKind, what: impl AsRef<str>) -> Fault {
        let what = what.as_ref();
        let message = match self.inputs {
            [] => what.to_string(),
            inputs => format!("{}: {what}", list(inputs)),
        };
        Fault::new(kind, self.name, message)
    }

    pub fn shape_fault(&self, what: impl AsRef<str>) -> Fault {
        self.fault(FaultKind::Shape, what)
    }

    pub fn argument_fault(&self, what: impl AsRef<str>) -> Fault {
        self.fault(FaultKind::Argument, what)
    }

    /// # Errors
    /// A dtype fault unless `domain` holds the operand's type.
    pub fn want(&self, domain: Domain, input: usize) -> Result<DType, Fault> {
        let dtype = self.inputs[input].dtype;
        if domain.accepts(dtype) {
            return Ok(dtype);
        }
        let what = format!("takes {}, not {dtype}", domain.words());
        let to = domain.coerce(dtype);
        Err(self.fault(FaultKind::DType, what).help(format!("convert to {to} first")))
    }

    /// # Errors
    /// A dtype fault unless the two operands' types are equal.
    pub fn want_equal(&self, a: usize, b: usize) -> Result<(), Fault> {
        let (left, right) = (self.inputs[a].dtype, self.inputs[b].dtype);
        if left == right {
            return Ok(());
        }
        let what = format!("element types {left} and {right} differ");
        let help = format!("convert both to {} first", left.promote(right));
        Err(self.fault(FaultKind::DType, what).help(help))
    }

    /// # Errors
    /// A shape fault unless the operands' shapes broadcast together, as NumPy has it.
    pub fn broadcast(&self) -> Result<Shape, Fault> {
        self.inputs.iter().try_fold(Shape::scalar(), |shape, ty| {
            shape.broadcast(&ty.shape).ok_or_else(|| {
                let (axis, a, b) = first_clash(&shape, &ty.shape);
                let what = "shapes do not broadcast";
                self.shape_fault(format!("{what}: extents {a} and {b} at axis -{axis}"))
            })
        })
    }

    /// # Errors
    /// An argument fault unless `ints` has one entry per axis of operand 0.
    pub fn per_axis(&self, name: &str) -> Result<&[i64], Fault> {
        let (ints, rank) = (self.ints(name), self.inputs[0].shape.rank());
        if ints.len() == rank {
            return Ok(ints);
        }
        Err(self.argument_fault(format!("{name} has {} entries for {rank} axes", ints.len())))
    }

    /// Axes in canonical form: in range, ascending, each once.
    ///
    /// # Errors
    /// An argument fault that says which one is not.
    pub fn ascending_axes(&self, name: &str) -> Result<Vec<usize>, Fault> {
        let ty = &self.inputs[0];
        let ints = self.ints(name);
        if ints.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(self.argument_fault(format!("{name} {ints:?} are not ascending")));
        }
        ints.iter().map(|&int| self.front_axis(ty, int)).collect()
    }

    /// An axis in canonical form, counted from the front.
    ///
    /// # Errors
    /// An argument fault that says which are valid.
    pub fn front_axis(&self, ty: &Type, int: i64) -> Result<usize, Fault> {
        let front = usize::try_from(int).ok().filter(|&axis| axis < ty.shape.rank());
        front.ok_or_else(|| axis_fault(self.name, ty, int))
    }
}

/// The first axis from the back where two shapes clash: (counted from 1, extent, extent).
fn first_clash(a: &Shape, b: &Shape) -> (usize, usize, usize) {
    a.iter()
        .rev()
        .zip(b.iter().rev())
        .enumerate()
        .find(|(_, (x, y))| x != y && **x != 1 && **y != 1)
        .map_or((1, 1, 1), |(i, (x, y))| (i + 1, *x, *y))
}

/// `f32[4,3]`, `f32[4,3] and f32[4,5]`, `a, b and c`.
pub fn list(types: &[Type]) -> String {
    let names: Vec<String> = types.iter().map(Type::to_string).collect();
    match names.split_last() {
        Some((last, front)) if !front.is_empty() => format!("{} and {last}", front.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

fn axis_fault(op: &str, ty: &Type, axis: i64) -> Fault {
    let valid = match ty.shape.rank() as i64 {
        0 => "a scalar has no axes".to_string(),
        rank => format!("valid are {}..={}", -rank, rank - 1),
    };
    Fault::new(FaultKind::Argument, op, format!("axis {axis} of {ty}; {valid}"))
}

/// `given` (negative counts from the back) as ops take it, counted from the front.
///
/// # Errors
/// `sum: axis 3 of f32[4,3]; valid are -2..=1`.
pub fn axis(op: &str, ty: &Type, given: i64) -> Result<i64, Fault> {
    let front = ty.shape.axis(given).map(|axis| axis as i64);
    front.ok_or_else(|| axis_fault(op, ty, given))
}

/// `given` (in any order, negative counts from the back) as ops take them: ascending.
///
/// # Errors
/// As [`axis`], and when an axis is named twice.
pub fn axes(op: &str, ty: &Type, given: &[i64]) -> Result<Vec<i64>, Fault> {
    let mut front: Vec<i64> = given.iter().map(|&a| axis(op, ty, a)).collect::<Result<_, _>>()?;
    front.sort_unstable();
    if let Some(pair) = front.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("axis {} of {ty} is named twice in {given:?}", pair[0]);
        return Err(Fault::new(FaultKind::Argument, op, message));
    }
    Ok(front)
}
