//! Rust's operators on arrays and numbers, in every combination. A consumed array is freed as soon
//! as the result is there; no operator reuses its buffer.

use crate::array::Array;
use crate::elementwise::{binary, unary};
use crate::operand::Operand;
use crate::raise::or_raise;
use std::ops::{
    Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign,
};
use vramlab_ops::{ADD, DIV, MUL, NEG, REM, SUB};

macro_rules! pair {
    ($trait:ident $method:ident $entry:ident: $($left:ty, $right:ty;)*) => {$(
        impl $trait<$right> for $left {
            type Output = Array;

            #[track_caller]
            fn $method(self, right: $right) -> Array {
                or_raise(binary(&$entry, self.input(), right.input()))
            }
        }
    )*};
}

macro_rules! assign {
    ($trait:ident $method:ident $entry:ident: $($right:ty)*) => {$(
        impl $trait<$right> for Array {
            #[track_caller]
            fn $method(&mut self, right: $right) {
                *self = or_raise(binary(&$entry, self.input(), right.input()));
            }
        }
    )*};
}

macro_rules! operator {
    ($trait:ident $method:ident $assign:ident $assign_method:ident $entry:ident) => {
        pair! { $trait $method $entry:
            Array, Array;
            Array, &Array;
            &Array, Array;
            &Array, &Array;
            Array, f64;
            &Array, f64;
            f64, Array;
            f64, &Array;
            Array, i32;
            &Array, i32;
            i32, Array;
            i32, &Array;
        }
        assign! { $assign $assign_method $entry: Array &Array f64 i32 }
    };
}

operator!(Add add AddAssign add_assign ADD);
operator!(Sub sub SubAssign sub_assign SUB);
operator!(Mul mul MulAssign mul_assign MUL);
operator!(Div div DivAssign div_assign DIV);
operator!(Rem rem RemAssign rem_assign REM);

impl Neg for Array {
    type Output = Array;

    #[track_caller]
    fn neg(self) -> Array {
        or_raise(unary(&NEG, self.input()))
    }
}

impl Neg for &Array {
    type Output = Array;

    #[track_caller]
    fn neg(self) -> Array {
        or_raise(unary(&NEG, self.input()))
    }
}
