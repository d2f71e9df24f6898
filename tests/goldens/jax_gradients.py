"""Gradients by JAX, as texts that the Rust tests compare with.

Writes crates/transform/tests/gradients/jax.txt (programs in the text form, ops of the table) and
crates/array/tests/array/jax.txt (composites by name). Run it from the root of the repository with
JAX installed, after a change of the cases: python tests/goldens/jax_gradients.py. With --check it
writes nothing and fails when JAX says something else than the files.
"""

import sys
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "crates/transform/tests/gradients/jax.txt"
COMPOSITES = ROOT / "crates/array/tests/array/jax.txt"


def draw(name, shape, low=0.3, high=1.4):
    """Numbers that hang on the name only, so that a new case changes no other."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    return random.uniform(low, high, shape).astype(np.float32)


def numbers(array):
    flat = np.asarray(array).astype(np.float64).reshape(-1)
    return " ".join("nan" if np.isnan(v) else repr(float(v)) for v in flat)


def case(name, function, arguments, text=None, floats=None):
    """One case: arguments, the result's cotangent, and what JAX gives for them."""
    arguments = [np.asarray(a) for a in arguments]
    floats = [a.dtype == np.float32 for a in arguments] if floats is None else floats
    wrt = [i for i, is_float in enumerate(floats) if is_float]

    def of_floats(*given):
        full = list(arguments)
        for i, value in zip(wrt, given):
            full[i] = value
        return function(*full)

    value, back = jax.vjp(of_floats, *[arguments[i] for i in wrt])
    cotangent = draw(name + ".ct", value.shape, -1.0, 1.0)
    lines = [f"case {name}"]
    lines += [text] if text else []
    for argument in arguments:
        shape = ",".join(str(extent) for extent in argument.shape)
        dtype = {"float32": "f32", "int32": "i32", "bool": "bool"}[str(argument.dtype)]
        lines.append(f"at {dtype}[{shape}] {numbers(argument)}")
    lines.append(f"value {numbers(value)}")
    lines.append(f"ct {numbers(cotangent)}")
    lines += [f"grad {i} {numbers(g)}" for i, g in zip(wrt, back(jnp.asarray(cotangent)))]
    return "\n".join(lines) + "\n"


def ty(array):
    shape = ",".join(str(extent) for extent in np.shape(array))
    return {"float32": "f32", "int32": "i32", "bool": "bool"}[str(array.dtype)] + f"[{shape}]"


def one_op(name, op, function, *arguments, params="", label=None):
    """A program of one op."""
    label = label or name
    arguments = [np.asarray(a) for a in arguments]
    result = jax.eval_shape(function, *arguments)
    heads = ", ".join(f"%{i}: {ty(a)}" for i, a in enumerate(arguments))
    names = " ".join(f"%{i}" for i in range(len(arguments)))
    out = f"%{len(arguments)}"
    brackets = f"[{params}]" if params else ""
    text = (
        f"func f({heads}) -> ({ty(result)}) {{\n"
        f"  {out} = {op}{brackets} {names} : {ty(result)}\n  return {out}\n}}"
    )
    return case(label, function, arguments, text)


UNARY = {
    "neg": jnp.negative, "abs": jnp.abs, "sign": jnp.sign, "floor": jnp.floor, "ceil": jnp.ceil,
    "round": jnp.round, "sqrt": jnp.sqrt, "rsqrt": lax.rsqrt, "exp": jnp.exp, "expm1": jnp.expm1,
    "log": jnp.log, "log1p": jnp.log1p, "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan,
    "tanh": jnp.tanh, "erf": lax.erf, "square": jnp.square, "reciprocal": jnp.reciprocal,
}  # fmt: skip
POSITIVE = {"sqrt", "rsqrt", "log"}
BINARY = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "div": jnp.divide, "rem": jnp.fmod,
    "pow": jnp.power, "atan2": jnp.arctan2, "maximum": jnp.maximum, "minimum": jnp.minimum,
}  # fmt: skip
REDUCE = {"sum": jnp.sum, "prod": jnp.prod, "max": jnp.max, "min": jnp.min}
TIES = np.array([[1, 3, 3], [2, 2, 2], [0, 1, 0]], np.float32)


def elementwise():
    for name, function in UNARY.items():
        low = 0.2 if name in POSITIVE else -0.9 if name in {"log1p", "tan"} else -2.4
        yield one_op(name, name, function, draw(name, (7,), low, 2.4 if name != "tan" else 1.2))
    for name, function in BINARY.items():
        a, b = draw(name, (2, 3), 0.3, 2.0), draw(name + "b", (3,), 0.3, 2.0)
        yield one_op(name, name, function, a, b)
    for name in ["maximum", "minimum"]:
        yield one_op(name, name, BINARY[name], TIES, TIES.T.copy(), label=name + " of ties")
    zeros = np.array([0.0, 0.0, 2.0], np.float32)
    powers = np.array([2.0, 1.0, 0.0], np.float32)
    yield one_op("pow", "pow", jnp.power, zeros, powers, label="pow of zeros")
    flags = np.array([True, False, True])
    yield one_op("select", "select", jnp.where, flags, draw("s", (2, 3)), draw("t", (3,)))


def reductions():
    for name, function in REDUCE.items():
        x = draw(name, (2, 3, 4), -1.5, 1.5)
        for axes in [(1,), (0, 2), (0, 1, 2)]:
            listed = ", ".join(str(a) for a in axes)
            yield one_op(
                name, name, lambda x, f=function, a=axes: f(x, axis=a), x,
                params=f"axes=({listed}), keep=false", label=f"{name} over {listed}",
            )  # fmt: skip
    for name in ["max", "min", "prod"]:
        yield one_op(
            name, name, lambda x, f=REDUCE[name]: f(x, axis=1), TIES,
            params="axes=(1), keep=false", label=name + " of ties and zeros",
        )  # fmt: skip
    for reverse in [False, True]:
        flag = "true" if reverse else "false"
        x = draw("cum" + flag, (4, 3), -1.5, 1.5)
        zero = np.where(np.abs(x) < 0.4, np.float32(0), x)
        running = [("cumsum", lax.cumsum, x), ("cumprod", lax.cumprod, zero)]
        running += [("cummax", lax.cummax, x), ("cummin", lax.cummin, x)]
        for name, function, at in running:
            yield one_op(
                name, name, lambda x, f=function, r=reverse: f(x, axis=0, reverse=r), at,
                params=f"axis=0, reverse={flag}", label=f"{name} {flag}",
            )  # fmt: skip


def layout():
    x = draw("layout", (3, 4), -1.0, 1.0)
    yield one_op("transpose", "transpose", lambda x: x.T, x, params="perm=(1, 0)")
    yield one_op("reshape", "reshape", lambda x: x.reshape(2, 6), x, params="shape=[2,6]")
    yield one_op(
        "broadcast", "broadcast", lambda x: jnp.broadcast_to(x, (2, 3, 4)), x, params="shape=[2,3,4]"
    )
    yield one_op("flip", "flip", lambda x: jnp.flip(x, 1), x, params="axes=(1)")
    yield one_op(
        "slice", "slice", lambda x: x[1:3, 0:4:2], x, params="start=(1, 0), stop=(3, 4), step=(1, 2)"
    )
    yield one_op(
        "concatenate", "concatenate", lambda a, b: jnp.concatenate([a, b], 1), x,
        draw("behind", (3, 2)), params="axis=1",
    )  # fmt: skip
    yield one_op(
        "pad", "pad", lambda x, v: lax.pad(x, v, [(1, 0, 0), (0, 2, 0)]), x, draw("value", ()),
        params="low=(1, 0), high=(0, 2)",
    )  # fmt: skip
    at = np.array([[5], [0], [2], [2]], np.int32)
    yield one_op(
        "gather", "gather", lambda x, i: jnp.take(x, i[:, 0], axis=0, mode="clip"), x, at,
        params="axis=0",
    )  # fmt: skip
    starts = [np.int32(2), np.int32(1)]
    yield one_op(
        "dynamic_slice", "dynamic_slice", lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 2)), x,
        *starts, params="sizes=[2,2]",
    )  # fmt: skip
    yield one_op(
        "dynamic_update_slice", "dynamic_update_slice",
        lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), x, draw("u", (2, 2)), *starts,
    )  # fmt: skip
    yield one_op(
        "scatter_add", "scatter_add",
        lambda x, i, u: x.at[i[:, 0]].add(u, mode="clip"), x, at, draw("updates", (4, 4)),
        params="axis=0",
    )  # fmt: skip


def dots():
    shapes = [
        ("matrix", (3, 4), (4, 2), ((1,), (0,)), ((), ())),
        ("turned", (4, 3), (2, 4), ((0,), (1,)), ((), ())),
        ("batched", (2, 3, 4), (2, 4, 2), ((2,), (1,)), ((0,), (0,))),
        ("batch behind", (3, 4, 2), (4, 2, 2), ((1,), (0,)), ((2,), (1,))),
        ("two axes crossed", (2, 3, 4), (4, 2, 3), ((0, 2), (1, 0)), ((), ())),
        ("outer", (3,), (2,), ((), ()), ((), ())),
    ]
    for label, left, right, contract, batch in shapes:
        numbers = lambda axes: ", ".join(str(a) for a in axes)  # noqa: E731
        params = (
            f"lhs_batch=({numbers(batch[0])}), rhs_batch=({numbers(batch[1])}), "
            f"lhs_contract=({numbers(contract[0])}), rhs_contract=({numbers(contract[1])})"
        )
        yield one_op(
            "dot", "dot",
            lambda a, b, c=contract, d=batch: lax.dot_general(
                a, b, (c, d), precision=lax.Precision.HIGHEST
            ),
            draw(label, left, -1, 1), draw(label + "r", right, -1, 1), params=params,
            label="dot " + label,
        )  # fmt: skip


def convolutions():
    plain = ((1, 1), (1, 1), (1, 1), (1, 1), (1, 1))
    strided = ((2, 1), (1, 0), (2, 1), (1, 2), (2, 1))
    for label, (stride, low, high, x_dilation, w_dilation) in [("plain", plain), ("strided", strided)]:

        def conv(x, w, s=stride, pads=(low, high), xd=x_dilation, wd=w_dilation):
            return lax.conv_general_dilated(
                x, w, s, list(zip(*pads)), xd, wd, ("NHWC", "HWIO", "NHWC"),
                precision=lax.Precision.HIGHEST,
            )  # fmt: skip

        named = zip(
            ["stride", "low", "high", "x_dilation", "w_dilation"],
            [stride, low, high, x_dilation, w_dilation],
        )
        yield one_op(
            "conv", "conv", conv, draw(label, (2, 5, 4, 2), -1, 1), draw("w" + label, (3, 2, 2, 3), -1, 1),
            params=", ".join(f"{name}=({a}, {b})" for name, (a, b) in named), label="conv " + label,
        )  # fmt: skip


def control():
    text = """func f(%0: f32[2,2], %1: f32[2], %2: f32[6,2]) -> (f32[2]) {
  %3 = scan[body={
    func step(%0: f32[2,2], %1: f32[2], %2: f32[2]) -> (f32[2]) {
      %3 = dot[lhs_batch=(), rhs_batch=(), lhs_contract=(0), rhs_contract=(0)] %1 %0 : f32[2]
      %4 = add %3 %2 : f32[2]
      %5 = tanh %4 : f32[2]
      return %5
    }
  }, length=6, consts=1, carries=1, reverse=REVERSE] %0 %1 %2 : f32[2]
  return %3
}"""
    for reverse in [False, True]:

        def loop(w, h, xs, reverse=reverse):
            return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), h, xs, reverse=reverse)[0]

        yield case(
            f"scan {reverse}", loop,
            [draw("w", (2, 2), -1, 1), draw("h", (2,)), draw("xs", (6, 2), -1, 1)],
            text.replace("REVERSE", str(reverse).lower()),
        )  # fmt: skip


def attention(q, k, v):
    return jax.nn.softmax(q @ k.T / np.sqrt(np.float32(4)), axis=-1) @ v


def cross_entropy(x):
    return -(jax.nn.log_softmax(x, axis=-1)[:, 1]).mean(keepdims=True)[0]


def layer_norm(x):
    shifted = x - x.mean(-1, keepdims=True)
    return shifted * lax.rsqrt(jnp.square(shifted).mean(-1, keepdims=True) + 1e-5)


def composites():
    x = draw("x", (3, 4), -2, 2)
    zeros = np.array([[-1, 0, 1, 2]], np.float32)
    yield case("softmax", lambda x: jax.nn.softmax(x, axis=-1), [x])
    yield case("log_softmax", lambda x: jax.nn.log_softmax(x, axis=-1), [x])
    yield case("sigmoid", jax.nn.sigmoid, [x])
    yield case("relu", jax.nn.relu, [zeros])
    yield case("gelu", jax.nn.gelu, [x])
    yield case("gelu_exact", lambda x: jax.nn.gelu(x, approximate=False), [x])
    yield case("silu", jax.nn.silu, [x])
    yield case("softplus", jax.nn.softplus, [x])
    yield case("layer_norm", layer_norm, [x])
    yield case("logsumexp", lambda x: jax.nn.logsumexp(x, axis=1), [x])
    yield case("norm", lambda x: jnp.linalg.norm(x, axis=1), [x])
    yield case("var", lambda x: jnp.var(x, axis=0), [x])
    yield case("std", lambda x: jnp.std(x, axis=0), [x])
    yield case("mean", lambda x: jnp.mean(x, axis=0), [x])
    yield case("cross_entropy", cross_entropy, [x])
    yield case("attention", attention, [draw(n, (3, 4), -1, 1) for n in "qkv"])


def main():
    parts = (elementwise, reductions, layout, dots, convolutions, control)
    programs = [c for part in parts for c in part()]
    wanted = {PROGRAMS: programs, COMPOSITES: list(composites())}
    head = f"# Written by tests/goldens/jax_gradients.py with JAX {jax.__version__}.\n"
    for path, cases in wanted.items():
        if "--check" not in sys.argv:
            path.write_text(head + "\n".join(cases))
        elif path.read_text().split("\n", 1)[1] != (head + "\n".join(cases)).split("\n", 1)[1]:
            sys.exit(f"{path.relative_to(ROOT)}: JAX {jax.__version__} says something else")


if __name__ == "__main__":
    main()
