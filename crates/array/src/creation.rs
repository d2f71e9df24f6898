//! Creation functions and the element types, as names of the prelude.

use crate::surface::{Dyn, Item, Place};
use vramlab_ir::DType;

crate::declare::functions! { ITEMS:
    zeros(shape: Shape) = crate::create::zeros,
        "An f32 array of zeros.", "zeros([2, 3])";
    zeros_as(dtype: DType, shape: Shape) = crate::create::zeros_as,
        "An array of zeros of an element type.", "zeros_as(U8, [4])";
    ones(shape: Shape) = crate::create::ones,
        "An f32 array of ones.", "ones([2, 3])";
    ones_as(dtype: DType, shape: Shape) = crate::create::ones_as,
        "An array of ones of an element type.", "ones_as(I32, [4])";
    full(shape: Shape, value: Number) = crate::create::full,
        "An f32 array with one value everywhere.", "full([2, 3], 7.0)";
    full_as(dtype: DType, shape: Shape, value: Number) = crate::create::full_as,
        "An array with one value everywhere, of an element type.", "full_as(BF16, [4], 1.0)";
    arange(range: Interval) = crate::create::arange,
        "f32: 0, 1, 2, … before n, or the numbers of a range.", "arange(5)";
    arange_as(dtype: DType, range: Interval) = crate::create::arange_as,
        "0, 1, 2, … before n, or the numbers of a range, in an element type.", "arange_as(I32, 2..6)";
    arange_step(start: Float, stop: Float, step: Float) = crate::create::arange_step,
        "f32: start, start + step, … before stop.", "arange_step(0.0, 1.0, 0.25)";
    linspace(start: Float, stop: Float, count: Extent) = crate::create::linspace,
        "f32: count numbers from start to stop at equal distances, both ends included.",
        "linspace(0.0, 1.0, 5)";
    iota_as(dtype: DType, shape: Shape, axis: Axis) = crate::create::iota_as,
        "Each element's coordinate along an axis.", "iota_as(I32, [2, 3], 1)";
    eye(n: Extent) = crate::create::eye,
        "The f32 identity matrix.", "eye(3)";
    eye_as(dtype: DType, n: Extent) = crate::create::eye_as,
        "The identity matrix of an element type.", "eye_as(I32, 3)";
    uniform(shape: Shape) = crate::random::uniform,
        "f32, uniform on [0, 1). Inside jit a draw belongs to the trace: every call gives the same numbers, and so do the steps of a loop and the examples of a vmap.",
        "uniform([2, 3])";
    rand(shape: Shape) = crate::random::uniform,
        "The same as uniform.", "rand([2, 3])";
    randn(shape: Shape) = crate::random::randn,
        "f32, of the standard normal distribution. Inside jit a draw belongs to the trace: every call gives the same numbers, and so do the steps of a loop and the examples of a vmap.",
        "randn([2, 3])";
    randint(shape: Shape, low: Int, high: Int) = crate::random::randint,
        "i32, uniform from low up to and without high.", "randint([4], 0, 10)";
}

macro_rules! constants {
    ($($name:ident = $dtype:ident;)*) => {
        $(
            #[doc = concat!("The element type `", stringify!($dtype), "`.")]
            pub const $name: DType = DType::$dtype;
        )*

        pub(crate) static CONSTANTS: &[Item] = &[$(
            Item {
                name: stringify!($name),
                place: Place::Constant,
                signature: concat!("const ", stringify!($name), ": DType"),
                doc: concat!("The element type ", stringify!($name), "."),
                example: concat!("zeros_as(", stringify!($name), ", [4])"),
                call: |_| Ok(Dyn::DType(DType::$dtype)),
            }
        ),*];
    };
}

constants! {
    F32 = F32;
    F64 = F64;
    F16 = F16;
    BF16 = BF16;
    I32 = I32;
    I64 = I64;
    U8 = U8;
    U32 = U32;
    BOOL = Bool;
}
