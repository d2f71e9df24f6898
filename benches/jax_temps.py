"""Temporaries of gradients under JAX on the CPU: `memory_analysis().temp_size_in_bytes`, in MiB, as JSON.

The programs are those of crates/transform/tests/gradients/plans.rs, which holds ours to these figures.
"""

import json
import os

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

f32 = jnp.float32


def shape(*dims):
    return jax.ShapeDtypeStruct(dims, f32)


def temps(function, *arguments):
    compiled = jax.jit(function).lower(*arguments).compile()
    return round(compiled.memory_analysis().temp_size_in_bytes / 2**20, 2)


def mlp(layers, batch, width):
    def loss(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return x.sum()

    return temps(jax.grad(loss), [shape(width, width)] * layers, shape(batch, width))


def attention(rows, width=64):
    def loss(x, wq, wk, wv, wo):
        scores = (x @ wq) @ (x @ wk).T * 0.125
        weights = jax.nn.softmax(scores, axis=-1)
        return (weights @ (x @ wv) @ wo).sum()

    square = [shape(width, width)] * 4
    return temps(jax.grad(loss, (0, 1, 2, 3, 4)), shape(rows, width), *square)


def convnet(layers=10, batch=8, size=32, channels=32):
    def loss(ws, x):
        for w in ws:
            x = jax.lax.conv_general_dilated(
                x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jnp.maximum(x, 0.0)
        return x.sum()

    ws = [shape(3, 3, channels, channels)] * layers
    return temps(jax.grad(loss), ws, shape(batch, size, size, channels))


def gru(steps, checkpointed, batch=32, inputs=128, width=256):
    """The weights of a gate are a slice of those of all."""

    def step(w, u, h, x):
        gate = lambda k: slice(k * width, (k + 1) * width)  # noqa: E731
        z = jax.nn.sigmoid(x @ w[:, gate(0)] + h @ u[:, gate(0)])
        r = jax.nn.sigmoid(x @ w[:, gate(1)] + h @ u[:, gate(1)])
        n = jnp.tanh(x @ w[:, gate(2)] + r * (h @ u[:, gate(2)]))
        return (h - n) * z + n

    if checkpointed:
        step = jax.checkpoint(step)

    def loss(w, u, h, xs):
        h, _ = jax.lax.scan(lambda h, x: (step(w, u, h, x), None), h, xs)
        return h.sum()

    gradient = jax.grad(loss, (0, 1))
    weights = shape(inputs, 3 * width), shape(width, 3 * width)
    return temps(gradient, *weights, shape(batch, width), shape(steps, batch, inputs))


def power(n=1000, chunk=50, size=128):
    """((A + lambda B)^n x).sum(), chunk by chunk, each recomputed."""

    def loss(lam, a, b, x):
        m = a + lam * b

        @jax.checkpoint
        def several(x, m):
            return jax.lax.scan(lambda x, _: (m @ x, None), x, None, length=chunk)[0]

        x = jax.lax.scan(lambda x, _: (several(x, m), None), x, None, length=n // chunk)[0]
        return x.sum()

    return temps(jax.grad(loss), shape(), shape(size, size), shape(size, size), shape(size, size))


def main():
    figures = {
        "jax": jax.__version__,
        "mlp 8": mlp(8, 4096, 512),
        "mlp 64": mlp(64, 4096, 512),
        "attention 512": attention(512),
        "attention 2048": attention(2048),
        "convnet 10": convnet(),
        "gru 64": gru(64, False),
        "gru 64 checkpointed": gru(64, True),
        "gru 1000": gru(1000, False),
        "gru 1000 checkpointed": gru(1000, True),
        "power 1000": power(),
    }
    print(json.dumps(figures, indent=2))


main()
