"""The peer of repl/benches/session.rs: runs one named workload per line of input, prints its nanoseconds.

One core, as the other side: XLA's CPU client takes its threads from the affinity of the process.
"""

import os
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402


def arrays(n):
    keys = jax.random.split(jax.random.key(0), 3)
    return [jax.random.normal(key, (n,), jnp.float32) for key in keys]


def polynomial(x):
    y = x
    for i in range(10):
        y = y * x + (0.5 - 0.1 * i)
    return y


def step(a, b, c, x, y):
    def loss(params):
        a, b, c = params
        h = jnp.maximum(jnp.maximum(x @ a, 0.0) @ b, 0.0)
        return -(jax.nn.log_softmax(h @ c, axis=-1) * y).sum() / 1024.0

    value, slopes = jax.value_and_grad(loss)((a, b, c))
    return (value, *(p - g * 0.1 for p, g in zip((a, b, c), slopes)))


def mlp():
    keys = jax.random.split(jax.random.key(0), 4)
    shapes = [(784, 1024), (1024, 1024), (1024, 10)]
    params = [jax.random.normal(key, s, jnp.float32) * 0.03 for key, s in zip(keys, shapes)]
    labels = jax.nn.one_hot(jnp.arange(1024) % 10, 10)
    return [*params, jax.random.normal(keys[3], (1024, 784), jnp.float32), labels]


class Training:
    """Parameters are donated, so each step goes on from the one before."""

    def __init__(self):
        self.step = jax.jit(step, donate_argnums=(0, 1, 2))
        self.params = None

    def __call__(self, a, b, c, x, y):
        value, *self.params = self.step(*(self.params or (a, b, c)), x, y)
        jax.block_until_ready(self.params)
        return value


SIXTEEN_M = 1 << 24
WORKLOADS = {
    "tanh(a*b+c)*2, 16M": (jax.jit(lambda a, b, c: jnp.tanh(a * b + c) * 2.0), lambda: arrays(SIXTEEN_M)),
    "20-op polynomial, 16M": (jax.jit(polynomial), lambda: arrays(SIXTEEN_M)[:1]),
    "softmax, 4096x4096": (
        jax.jit(lambda x: jax.nn.softmax(x, axis=-1)),
        lambda: [arrays(SIXTEEN_M)[0].reshape(4096, 4096)],
    ),
    "step of an MLP 784-1024-1024-10, batch 1024": (Training(), mlp),
}


def main():
    loaded = None
    print("ready", jax.__version__, flush=True)
    for line in sys.stdin:
        name = line.strip()
        function, make = WORKLOADS[name]
        if loaded is None or loaded[0] != name:
            loaded = (name, make())
            function(*loaded[1]).block_until_ready()
        begin = time.perf_counter_ns()
        function(*loaded[1]).block_until_ready()
        print(time.perf_counter_ns() - begin, flush=True)


main()
