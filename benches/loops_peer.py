"""What JAX's CPU compiler plans for the loops of tests/loops.rs: temporary bytes, one line a case.

Run it with the JAX of requirements.txt; the figures stand in tests/loops.rs as upper bounds.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

BATCH, INPUTS, HIDDEN, SIDE = 32, 64, 128, 128


def cell(weights, h, x):
    wz, uz, wr, ur, wc, uc = weights
    z = jax.nn.sigmoid(x @ wz + h @ uz)
    r = jax.nn.sigmoid(x @ wr + h @ ur)
    c = jnp.tanh(x @ wc + (r * h) @ uc)
    return (1.0 - z) * h + z * c


def gru(step):
    def run(weights, h, xs):
        def body(h, x):
            h = step(weights, h, x)
            return h, h

        return jax.lax.scan(body, h, xs)

    return run


def loss(step):
    return lambda weights, h, xs: gru(step)(weights, h, xs)[1].sum()


def powers(chunks, steps, keep):
    def run(a, b, scale):
        m = a + scale * b

        def chunk(p):
            return jax.lax.fori_loop(0, steps, lambda _, p: p @ m, p)

        body = chunk if keep else jax.checkpoint(chunk)
        return jax.lax.fori_loop(0, chunks, lambda _, p: body(p), jnp.eye(SIDE))

    return run


def temps(f, *shapes):
    args = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, jnp.float32), shapes, is_leaf=lambda s: isinstance(s, tuple) and all(isinstance(d, int) for d in s))
    return jax.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes


def main():
    print("jax", jax.__version__)
    weights = [(INPUTS, HIDDEN), (HIDDEN, HIDDEN)] * 3
    for steps in (64, 1000):
        shapes = (weights, (BATCH, HIDDEN), (steps, BATCH, INPUTS))
        print(f"gru {steps}", temps(gru(cell), *shapes))
        print(f"gru {steps} gradient", temps(jax.grad(loss(cell)), *shapes))
        print(f"gru {steps} gradient, checkpointed", temps(jax.grad(loss(jax.checkpoint(cell))), *shapes))
    square = (SIDE, SIDE)
    total = lambda f: lambda a, b, scale: f(a, b, scale).sum()  # noqa: E731
    print("power 1000", temps(powers(1, 1000, True), square, square, ()))
    print("power 100 x 10 gradient", temps(jax.grad(total(powers(100, 10, True)), 2), square, square, ()))
    print("power 100 x 10 gradient, checkpointed", temps(jax.grad(total(powers(100, 10, False)), 2), square, square, ()))


main()
