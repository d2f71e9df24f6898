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


SIXTEEN_M = 1 << 24
WORKLOADS = {
    "tanh(a*b+c)*2, 16M": (jax.jit(lambda a, b, c: jnp.tanh(a * b + c) * 2.0), lambda: arrays(SIXTEEN_M)),
    "20-op polynomial, 16M": (jax.jit(polynomial), lambda: arrays(SIXTEEN_M)[:1]),
    "softmax, 4096x4096": (
        jax.jit(lambda x: jax.nn.softmax(x, axis=-1)),
        lambda: [arrays(SIXTEEN_M)[0].reshape(4096, 4096)],
    ),
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
