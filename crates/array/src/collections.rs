//! Several arrays as one argument.

use crate::array::Array;
use crate::decode::Held;
use crate::operand::{Input, Operand};
use std::borrow::Borrow;

/// Arrays or references to them, in an array, a slice or a `Vec`.
pub trait Arrays {
    fn arrays(&self) -> Vec<Array>;
}

/// Start positions, `i32` or scalar arrays, in an array, a slice or a `Vec`.
pub trait Starts {
    #[doc(hidden)]
    fn starts(&self) -> Vec<Held>;
}

fn aliases<B: Borrow<Array>>(items: &[B]) -> Vec<Array> {
    items.iter().map(|item| item.borrow().alias()).collect()
}

fn held<O: Operand>(items: &[O]) -> Vec<Held> {
    let hold = |item: &O| match item.input() {
        Input::Array(array) => Held::Array(array.alias()),
        Input::Number(number) => Held::Number(number),
    };
    items.iter().map(hold).collect()
}

macro_rules! containers {
    ($trait:ident $method:ident $bound:ident<$($of:ty)?> $function:ident $item:ty) => {
        impl<T: $bound$(<$of>)?, const N: usize> $trait for [T; N] {
            fn $method(&self) -> Vec<$item> {
                $function(self)
            }
        }
        impl<T: $bound$(<$of>)?, const N: usize> $trait for &[T; N] {
            fn $method(&self) -> Vec<$item> {
                $function(*self)
            }
        }
        impl<T: $bound$(<$of>)?> $trait for &[T] {
            fn $method(&self) -> Vec<$item> {
                $function(self)
            }
        }
        impl<T: $bound$(<$of>)?> $trait for Vec<T> {
            fn $method(&self) -> Vec<$item> {
                $function(self)
            }
        }
        impl<T: $bound$(<$of>)?> $trait for &Vec<T> {
            fn $method(&self) -> Vec<$item> {
                $function(self)
            }
        }
    };
}

containers!(Arrays arrays Borrow<Array> aliases Array);
containers!(Starts starts Operand<> held Held);
