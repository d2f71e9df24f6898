//! The macros that hand families of ops to another crate, used as `array` uses them.

use vramlab_ir::{DType, Fault, Op, Params, Primitive, Type};

pub struct Stand(Type);

macro_rules! unary_methods {
    ([$holder:ident] $($name:ident $entry:ident $doc:literal $example:literal;)*) => {
        #[allow(dead_code, reason = "one of the family stands for all")]
        impl $holder {
            $(#[doc = $doc] pub fn $name(&self) -> Result<Type, Fault> {
                let results = vramlab_ops::$entry.infer(std::slice::from_ref(&self.0), &Params::new())?;
                Ok(results[0].clone())
            })*
        }
    };
}

vramlab_ops::with_unary! { unary_methods, Stand }

macro_rules! names {
    ([] $($name:ident $entry:ident $doc:literal $example:literal;)*) => {
        vec![$((stringify!($name), &vramlab_ops::$entry as Op, $doc, $example)),*]
    };
}

#[test]
fn a_family_becomes_methods() {
    let x = Stand(Type::new(DType::F32, [4, 3]));
    assert_eq!(x.tanh().unwrap(), Type::new(DType::F32, [4, 3]));
    assert_eq!(x.isnan().unwrap(), Type::new(DType::Bool, [4, 3]));
    let n = Stand(Type::new(DType::I32, [2]));
    assert_eq!(
        n.tanh().unwrap_err().to_string(),
        "tanh: i32[2]: takes floats (f16 bf16 f32 f64), not i32"
    );
}

#[test]
fn every_family_reaches_another_crate() {
    let all = [
        vramlab_ops::with_unary! { names },
        vramlab_ops::with_arithmetic! { names },
        vramlab_ops::with_binary! { names },
        vramlab_ops::with_bitwise! { names },
        vramlab_ops::with_comparison! { names },
        vramlab_ops::with_reduce! { names },
    ]
    .concat();
    assert_eq!(all.len(), 24 + 5 + 4 + 8 + 6 + 8);
    for (name, op, doc, example) in all {
        let entry = vramlab_ops::entry(name).unwrap();
        assert_eq!((op.name(), entry.doc, entry.example), (name, doc, example));
    }
}
