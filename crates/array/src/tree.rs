//! Trees: values made of arrays. Arrays, tuples, arrays and vectors of trees, and the structs that
//! [`tree!`](crate::tree) declares. What a traced function may return, and what parameters are.

use crate::array::Array;
use crate::structure::Structure;
use vramlab_ir::Fault;

/// A value made of arrays.
pub trait Tree: Sized {
    /// How it holds its arrays.
    fn structure(&self) -> Structure;

    /// Appends its arrays in order, borrowed.
    fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Array>);

    /// Appends its arrays in order; how they were held.
    fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure;

    /// The value again.
    ///
    /// # Errors
    /// A trace fault when the structure is another one.
    fn from_leaves(
        structure: &Structure,
        arrays: &mut dyn Iterator<Item = Array>,
    ) -> Result<Self, Fault>;

    /// A tree of the same structure whose arrays are made from this one's, in order.
    fn map(&self, f: impl FnMut(&Array) -> Array) -> Self {
        let mut leaves = Vec::new();
        self.leaves(&mut leaves);
        let made: Vec<Array> = leaves.into_iter().map(f).collect();
        Self::from_leaves(&self.structure(), &mut made.into_iter())
            .expect("a tree is made again from its own structure and as many arrays")
    }

    /// The path of every array, in order: `params.layers[3].w` where `root` is `params`.
    fn paths(&self, root: &str) -> Vec<String> {
        self.structure().paths(root)
    }
}

impl Tree for Array {
    fn structure(&self) -> Structure {
        Structure::Array
    }

    fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Array>) {
        leaves.push(self);
    }

    fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure {
        arrays.push(self);
        Structure::Array
    }

    fn from_leaves(
        structure: &Structure,
        arrays: &mut dyn Iterator<Item = Array>,
    ) -> Result<Array, Fault> {
        match structure {
            Structure::Array => arrays.next().ok_or_else(|| structure.changed()),
            _ => Err(structure.changed()),
        }
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn structure(&self) -> Structure {
        Structure::List(self.iter().map(Tree::structure).collect())
    }

    fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Array>) {
        self.iter().for_each(|item| item.leaves(leaves));
    }

    fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure {
        Structure::List(self.into_iter().map(|item| item.into_leaves(arrays)).collect())
    }

    fn from_leaves(
        structure: &Structure,
        arrays: &mut dyn Iterator<Item = Array>,
    ) -> Result<Vec<T>, Fault> {
        let Structure::List(items) = structure else { return Err(structure.changed()) };
        items.iter().map(|item| T::from_leaves(item, arrays)).collect()
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn structure(&self) -> Structure {
        Structure::List(self.iter().map(Tree::structure).collect())
    }

    fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Array>) {
        self.iter().for_each(|item| item.leaves(leaves));
    }

    fn into_leaves(self, arrays: &mut Vec<Array>) -> Structure {
        Structure::List(self.into_iter().map(|item| item.into_leaves(arrays)).collect())
    }

    fn from_leaves(
        structure: &Structure,
        arrays: &mut dyn Iterator<Item = Array>,
    ) -> Result<[T; N], Fault> {
        let items = Vec::<T>::from_leaves(structure, arrays)?;
        items.try_into().map_err(|_| structure.changed())
    }
}

macro_rules! tuple_trees {
    ($count:literal $($name:ident)*) => {
        impl<$($name: Tree),*> Tree for ($($name,)*) {
            #[allow(non_snake_case)]
            fn structure(&self) -> Structure {
                let ($($name,)*) = self;
                Structure::Tuple(vec![$($name.structure()),*])
            }

            #[allow(non_snake_case, unused_variables)]
            fn leaves<'a>(&'a self, leaves: &mut Vec<&'a Array>) {
                let ($($name,)*) = self;
                $($name.leaves(leaves);)*
            }

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
                            items.next().ok_or_else(|| structure.changed())?,
                            arrays,
                        )?,)*))
                    }
                    _ => Err(structure.changed()),
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

/// Declares structs that are trees: each field is an array or another tree. A traced function may
/// return them, and their arrays have paths (`params.layers[3].w`).
///
/// ```
/// use vramlab_array::prelude::*;
///
/// tree! {
///     #[derive(Clone)]
///     pub struct Layer {
///         w: Array,
///         b: Array,
///     }
///
///     pub struct Net {
///         layers: Vec<Layer>,
///         head: (Array, Array),
///     }
/// }
///
/// fn paths(net: &Net) -> Vec<String> {
///     net.paths("net") // net.layers[0].w, net.layers[0].b, …, net.head.0, net.head.1
/// }
/// ```
#[macro_export]
macro_rules! tree {
    () => {};
    (@impl $name:ident [$($field:tt)*]) => {
        impl $crate::prelude::Tree for $name {
            fn structure(&self) -> $crate::Structure {
                $crate::Structure::of_struct(
                    ::core::stringify!($name),
                    &[$(::core::stringify!($field)),*],
                    ::std::vec![$($crate::prelude::Tree::structure(&self.$field)),*],
                )
            }

            #[allow(unused_variables)]
            fn leaves<'a>(&'a self, leaves: &mut ::std::vec::Vec<&'a $crate::Array>) {
                $($crate::prelude::Tree::leaves(&self.$field, leaves);)*
            }

            #[allow(unused_variables)]
            fn into_leaves(self, arrays: &mut ::std::vec::Vec<$crate::Array>) -> $crate::Structure {
                $crate::Structure::of_struct(
                    ::core::stringify!($name),
                    &[$(::core::stringify!($field)),*],
                    ::std::vec![$($crate::prelude::Tree::into_leaves(self.$field, arrays)),*],
                )
            }

            #[allow(unused_variables, unused_mut)]
            fn from_leaves(
                structure: &$crate::Structure,
                arrays: &mut dyn ::core::iter::Iterator<Item = $crate::Array>,
            ) -> ::core::result::Result<Self, $crate::ir::Fault> {
                let names = [$(::core::stringify!($field)),*];
                let mut fields = structure.fields_of(::core::stringify!($name), &names)?;
                ::core::result::Result::Ok($name { $($field: fields.take(arrays)?),* })
            }
        }
    };
    // The positions of a tuple struct's fields, one for each type.
    (@numbered $name:ident [$($at:tt)*] [] [$($left:tt)*]) => {
        $crate::tree! { @impl $name [$($at)*] }
    };
    (@numbered $name:ident [$($at:tt)*] [$first:ty $(, $more:ty)*] [$next:tt $($left:tt)*]) => {
        $crate::tree! { @numbered $name [$($at)* $next] [$($more),*] [$($left)*] }
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident : $ty:ty),* $(,)?
        }
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $ty),*
        }
        $crate::tree! { @impl $name [$($field)*] }
        $crate::tree! { $($rest)* }
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident ( $($field_vis:vis $ty:ty),* $(,)? );
        $($rest:tt)*
    ) => {
        $(#[$meta])*
        $vis struct $name($($field_vis $ty),*);
        $crate::tree! { @numbered $name [] [$($ty),*] [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] }
        $crate::tree! { $($rest)* }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident; $($rest:tt)*) => {
        $(#[$meta])*
        $vis struct $name;
        $crate::tree! { @impl $name [] }
        $crate::tree! { $($rest)* }
    };
}
