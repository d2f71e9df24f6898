"""Temporaries of gradients under JAX on the CPU: `memory_analysis().temp_size_in_bytes`, as JSON.

The models are those of tests/gradients.rs, which holds vramlab's temporaries to these figures.
    python benches/jax_temps.py > tests/jax_cpu_temps.json
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
    return compiled.memory_analysis().temp_size_in_bytes


def mlp(layers, batch, width):
    def loss(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return x.sum()

    return temps(jax.grad(loss), [shape(width, width)] * layers, shape(batch, width))


def attention(length, model=512, heads=8):
    depth = model // heads

    def block(params, x):
        wq, wk, wv, wo = params
        split = lambda y: y.reshape(length, heads, depth).transpose(1, 0, 2)  # noqa: E731
        q, k, v = split(x @ wq), split(x @ wk), split(x @ wv)
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / depth**0.5
        mixed = jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, axis=-1), v)
        return (mixed.transpose(1, 0, 2).reshape(length, model) @ wo).sum()

    return temps(jax.grad(block), [shape(model, model)] * 4, shape(length, model))


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


def gru(steps, checkpointed, batch=32, width=256):
    def step(params, h, x):
        w, u = params
        gates = x @ w + 0.0
        hidden = h @ u
        z = jax.nn.sigmoid(gates[:, :width] + hidden[:, :width])
        r = jax.nn.sigmoid(gates[:, width : 2 * width] + hidden[:, width : 2 * width])
        n = jnp.tanh(gates[:, 2 * width :] + r * hidden[:, 2 * width :])
        return (1.0 - z) * n + z * h

    if checkpointed:
        step = jax.checkpoint(step)

    def loss(params, h, xs):
        h, _ = jax.lax.scan(lambda h, x: (step(params, h, x), None), h, xs)
        return h.sum()

    params = [shape(width, 3 * width)] * 2
    return temps(jax.grad(loss), params, shape(batch, width), shape(steps, batch, width))


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
        "mlp 64": mlp(64, 1024, 256),
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
