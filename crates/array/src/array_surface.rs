//! Layout, products and composites as methods and functions.

/// Ops that place elements.
pub mod layout {
    crate::declare::methods! { ITEMS:
        reshape(shape: Shape) = crate::layout::reshape,
            "The same elements in row-major order under another shape; one extent may be -1. No data moves.",
            "linspace(1.0, 6.0, 6).reshape([2, -1])";
        ravel() = crate::layout::ravel,
            "The elements in row-major order under one axis; no data moves.",
            "ones([2, 3]).ravel()";
        flatten() = crate::layout::ravel,
            "The same as ravel.",
            "ones([2, 3]).flatten()";
        squeeze() = crate::layout::squeeze,
            "Without the axes of extent 1.",
            "ones([1, 3, 1]).squeeze()";
        squeeze_axis(axis: Axis) = crate::layout::squeeze_axis,
            "Without one axis, which has extent 1.",
            "ones([1, 3]).squeeze_axis(0)";
        expand_dims(axis: Axis) = crate::layout::expand_dims,
            "With a new axis of extent 1 at that place.",
            "ones([3]).expand_dims(-1)";
        transpose() = crate::layout::transpose,
            "The axes in reverse order.",
            "linspace(1.0, 6.0, 6).reshape([2, 3]).transpose()";
        t() = crate::layout::transpose,
            "The same as transpose.",
            "linspace(1.0, 6.0, 6).reshape([2, 3]).t()";
        permute(axes: Axes) = crate::layout::permute,
            "Axes in another order: axis i of the result is axis axes[i] of x.",
            "ones([2, 3, 4]).permute([2, 0, 1])";
        swapaxes(a: Axis, b: Axis) = crate::layout::swapaxes,
            "Two axes exchanged.",
            "ones([2, 3, 4]).swapaxes(0, -1)";
        broadcast_to(shape: Shape) = crate::layout::broadcast_to,
            "Repeated along new leading axes and axes of extent 1.",
            "linspace(1.0, 3.0, 3).broadcast_to([2, 3])";
        slice(indices: Indices) = crate::layout::slice,
            "A window: a range keeps its axis, a position drops it; negative counts from the end.",
            "linspace(1.0, 6.0, 6).reshape([2, 3]).slice((0, 1..))";
        at(index: Extent) = crate::layout::at,
            "Position index of the first axis, which goes away.",
            "linspace(1.0, 6.0, 6).reshape([2, 3]).at(-1)";
        flip(axis: Axis) = crate::layout::flip,
            "The elements in reverse order along an axis.",
            "linspace(1.0, 3.0, 3).flip(0)";
        flip_axes(axes: Axes) = crate::layout::flip_axes,
            "The elements in reverse order along axes.",
            "linspace(1.0, 6.0, 6).reshape([2, 3]).flip_axes([0, 1])";
        pad(pairs: Padding, value: Number) = crate::layout::pad,
            "Surrounded by a value: (before, behind) for each axis.",
            "ones([2]).pad([(1, 2)], 0.0)";
        take(indices: Operand, axis: Axis) = crate::layout::take,
            "Elements at integer positions along an axis; negative ones count from its end, positions outside are moved to its ends.",
            "linspace(0.0, 0.9, 10).take(array([3, 1]), 0)";
        scatter_add(indices: Operand, updates: Operand, axis: Axis) = crate::layout::scatter_add,
            "With updates added at integer positions along an axis; equal positions add up, negative ones count from its end, positions outside are moved to its ends.",
            "zeros([4]).scatter_add(array([1, 3, 1]), ones([3]), 0)";
        cumsum(axis: Axis) = crate::reduce::cumsum,
            "The sum of the elements up to each along an axis.",
            "linspace(1.0, 4.0, 4).cumsum(0)";
        cumsum_reverse(axis: Axis) = crate::reduce::cumsum_reverse,
            "The sum of the elements from each on, to the end of an axis.",
            "linspace(1.0, 4.0, 4).cumsum_reverse(0)";
        cumprod(axis: Axis) = crate::reduce::cumprod,
            "The product of the elements up to each along an axis.",
            "linspace(1.0, 4.0, 4).cumprod(0)";
        cummax(axis: Axis) = crate::reduce::cummax,
            "The largest of the elements up to each along an axis; NaN wins.",
            "array([1.0, 3.0, 2.0]).cummax(0)";
        cummin(axis: Axis) = crate::reduce::cummin,
            "The smallest of the elements up to each along an axis; NaN wins.",
            "array([3.0, 1.0, 2.0]).cummin(0)";
        dynamic_slice(starts: Starts, sizes: Shape) = crate::layout::dynamic_slice,
            "A window whose start is data: one integer for each axis, moved so that it stays inside.",
            "linspace(0.0, 9.0, 10).dynamic_slice([3], [4])";
        dynamic_update_slice(update: Operand, starts: Starts) = crate::layout::dynamic_update_slice,
            "With a window replaced by update, at a start that is data.",
            "zeros([10]).dynamic_update_slice(ones([4]), [3])";
    }
}

/// Several arrays as one.
pub mod joins {
    crate::declare::functions! { ITEMS:
        concatenate(arrays: Arrays, axis: Axis) = crate::layout::concatenate,
            "Arrays one behind the other along an axis.",
            "concatenate([&ones([2]), &zeros([3])], 0)";
        concat(arrays: Arrays, axis: Axis) = crate::layout::concatenate,
            "The same as concatenate.",
            "concat([&ones([2]), &zeros([3])], 0)";
        stack(arrays: Arrays, axis: Axis) = crate::layout::stack,
            "Arrays of one shape side by side along a new axis.",
            "stack([&ones([2]), &zeros([2])], 0)";
    }
}

/// Products.
pub mod products {
    crate::declare::methods! { ITEMS:
        dot(other: Operand) = crate::contract::dot,
            "Sums of products over the last axis of x and the second to last of other (the only one of a vector).",
            "ones([2, 3]).dot(&ones([3, 4]))";
        matmul(other: Operand) = crate::contract::matmul,
            "The matrix product of the last two axes; leading axes are batches, which broadcast.",
            "ones([5, 2, 3]).matmul(&ones([3, 4]))";
        conv2d(filters: Operand, stride: Int, padding: Int) = crate::contract::conv2d,
            "The convolution of [examples, height, width, channels] by filters [height, width, channels, results]; padding counts zeros on every side.",
            "ones([1, 5, 5, 2]).conv2d(&ones([3, 3, 2, 4]), 1, 1)";
        outer(other: Operand) = crate::contract::outer,
            "Every product of an element of x with one of other: a matrix.",
            "ones([2]).outer(ones([3]))";
    }
}

/// Plain functions of several ops.
pub mod composites {
    crate::declare::methods! { ITEMS:
        softmax(axis: Axis) = crate::composite::softmax,
            "exp(x) over its sum along an axis, without overflow.",
            "linspace(0.0, 2.0, 3).softmax(-1)";
        log_softmax(axis: Axis) = crate::composite::log_softmax,
            "The logarithm of softmax along an axis, without overflow.",
            "linspace(0.0, 2.0, 3).log_softmax(-1)";
        sigmoid() = crate::composite::sigmoid,
            "1 / (1 + exp(-x)), elementwise.",
            "linspace(-2.0, 2.0, 5).sigmoid()";
        relu() = crate::composite::relu,
            "The larger of x and 0, elementwise.",
            "linspace(-2.0, 2.0, 5).relu()";
        gelu() = crate::composite::gelu,
            "x times the normal distribution function, by the tanh approximation as JAX's default.",
            "linspace(-2.0, 2.0, 5).gelu()";
        gelu_exact() = crate::composite::gelu_exact,
            "x times the normal distribution function, by erf.",
            "linspace(-2.0, 2.0, 5).gelu_exact()";
        silu() = crate::composite::silu,
            "x · sigmoid(x), elementwise.",
            "linspace(-2.0, 2.0, 5).silu()";
        softplus() = crate::composite::softplus,
            "log(1 + exp(x)) without overflow, elementwise.",
            "linspace(-2.0, 2.0, 5).softplus()";
        layer_norm(axis: Axis) = crate::composite::layer_norm,
            "Mean 0 and variance 1 along an axis (epsilon 1e-5 under the root).",
            "linspace(0.0, 5.0, 6).reshape([2, 3]).layer_norm(-1)";
        one_hot(classes: Extent) = crate::composite::one_hot,
            "f32: 1 where the class is the element's, 0 elsewhere, along a new last axis.",
            "array([0, 2]).one_hot(3)";
        tril() = crate::composite::tril,
            "The elements on and below the diagonal of the last two axes, 0 elsewhere.",
            "ones([3, 3]).tril()";
        triu() = crate::composite::triu,
            "The elements on and above the diagonal of the last two axes, 0 elsewhere.",
            "ones([3, 3]).triu()";
        roll(shift: Int, axis: Axis) = crate::composite::roll,
            "The elements moved along an axis; those that leave at one end come in at the other.",
            "arange(5).roll(2, 0)";
        tile(counts: Shape) = crate::composite::tile,
            "Copies side by side, so many along each axis.",
            "arange(3).tile([2, 2])";
        repeat(count: Extent, axis: Axis) = crate::composite::repeat,
            "Each element so many times in a row along an axis.",
            "arange(3).repeat(2, 0)";
        zeros_like() = crate::create::zeros_like,
            "Zeros of the same shape and element type.",
            "ones([2, 3]).zeros_like()";
        ones_like() = crate::create::ones_like,
            "Ones of the same shape and element type.",
            "zeros([2, 3]).ones_like()";
        full_like(value: Number) = crate::create::full_like,
            "One value everywhere, of the same shape and element type.",
            "zeros([2, 3]).full_like(7.0)";
    }
}
