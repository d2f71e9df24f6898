//! What a traced function may return: an array, tuples, arrays and vectors of arrays.

use crate::array::Array;
use vramlab_ir::{Fault, FaultKind};

/// How a function's result holds its arrays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    Array,
    /// A tuple; `()` is the empty one.
    Tuple(Vec<Structure>),
    /// `[T; N]` or `Vec<T>`.
    List(Vec<Structure>),
}

/// A value made of arrays.
pub trait Tree: Sized {
    /// Appends the arrays in order; how they were held.
    fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure;

    /// The value again.
    ///
    /// # Errors
    /// A trace fault when the structure is another one.
    fn from_leaves(
        structure: &Structure,
        arrays: &mut dyn Iterator<Item = Array>,
    ) -> Result<Self, Fault>;
}

fn changed(structure: &Structure) -> Fault {
    let message = format!("the result is {structure:?}, which is not what was traced");
    Fault::new(FaultKind::Trace, "jit", message)
}

impl Tree for Array {
    fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure {
        arrays.push(self);
        Structure::Array
    }

    fn from_leaves(
        structure: &Structure,
        arrays: &mut dyn Iterator<Item = Array>,
    ) -> Result<Array, Fault> {
        match structure {
            Structure::Array => arrays.next().ok_or_else(|| changed(structure)),
            _ => Err(changed(structure)),
        }
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure {
        Structure::List(self.into_iter().map(|item| item.into_leaves(arrays)).collect())
    }

    fn from_leaves(
        structure: &Structure,
        arrays: &mut dyn Iterator<Item = Array>,
    ) -> Result<Vec<T>, Fault> {
        let Structure::List(items) = structure else { return Err(changed(structure)) };
        items.iter().map(|item| T::from_leaves(item, arrays)).collect()
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure {
        Structure::List(self.into_iter().map(|item| item.into_leaves(arrays)).collect())
    }

    fn from_leaves(
        structure: &Structure,
        arrays: &mut dyn Iterator<Item = Array>,
    ) -> Result<[T; N], Fault> {
        let items = Vec::<T>::from_leaves(structure, arrays)?;
        items.try_into().map_err(|_| changed(structure))
    }
}

macro_rules! tuple_trees {
    ($count:literal $($name:ident)*) => {
        impl<$($name: Tree),*> Tree for ($($name,)*) {
            #[allow(non_snake_case, unused_variables)]
            fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure {
                let ($($name,)*) = self;
                Structure::Tuple(vec![$($name.into_leaves(arrays)),*])
            }

            #[allow(unused_variables, unused_mut)]
            fn from_leaves(
                structure: &Structure,
                arrays: &mut dyn Iterator<Item = Array>,
            ) -> Result<Self, Fault> {
                match structure {
                    Structure::Tuple(items) if items.len() == $count => {
                        let mut items = items.iter();
                        Ok(($($name::from_leaves(
                            items.next().ok_or_else(|| changed(structure))?,
                            arrays,
                        )?,)*))
                    }
                    _ => Err(changed(structure)),
                }
            }
        }
    };
}

tuple_trees!(0);
tuple_trees!(1 A);
tuple_trees!(2 A B);
tuple_trees!(3 A B C);
tuple_trees!(4 A B C D);
tuple_trees!(5 A B C D E);
tuple_trees!(6 A B C D E F);
tuple_trees!(7 A B C D E F G);
tuple_trees!(8 A B C D E F G H);
