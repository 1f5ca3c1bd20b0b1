"""JAX: jit, and scan and fori_loop where the plain program has a loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.programs import (
    arrays,
    gradients,
    image_layers,
    jax_arrays,
    jax_gradients,
    jax_networks,
    networks,
)
from benchmarks.programs.plain import as_arrays

__all__ = ["PROGRAMS", "as_arrays", "version"]


def elementwise(x, w, b):
    return jnp.tanh(x * w + b) * jnp.exp(-x * x)


def lstm(xs, h, c, W, U, b):  # noqa: N803
    n = h.shape[0]
    inputs = xs @ W + b

    def step(state, x):
        h, c = state
        z = x + h @ U
        i, f = jax.nn.sigmoid(z[:n]), jax.nn.sigmoid(z[n : 2 * n])
        g, o = jnp.tanh(z[2 * n : 3 * n]), jax.nn.sigmoid(z[3 * n :])
        c = f * c + i * g
        return (o * jnp.tanh(c), c), None

    (h, _), _ = jax.lax.scan(step, (h, c), inputs)
    return h


def lstm_loss(*args):
    return jnp.sum(lstm(*args) ** 2)


def mlp_loss(w1, b1, w2, b2, x, y):
    logits = jnp.tanh(x @ w1 + b1) @ w2 + b2
    return -jnp.sum(y * jax.nn.log_softmax(logits)) / x.shape[0]


def softmax(x):
    return jax.nn.softmax(x, axis=1)


def layer_norm(x):
    centred = x - jnp.mean(x, axis=1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=1, keepdims=True) + 1e-5)


def stores(v, a):
    def step(i, x):
        return x.at[i].set(a * x[i - 1] + v[i])

    start = jnp.zeros_like(v).at[0].set(v[0])
    return jnp.sum(jax.lax.fori_loop(1, v.shape[0], step, start))


def newton(f0, x):
    return jax.lax.while_loop(
        lambda x: jnp.abs(x * x - f0) > 1e-12, lambda x: 0.5 * (x + f0 / x), x
    )


def program(function, *, double=False, static=()):
    """Compile `function`; `double` keeps float64, which JAX narrows unless told otherwise, as do
    arrays of it.

    `static`: the arguments that are extents, which JAX has to know.
    """
    compiled = jax.jit(function, static_argnums=static)

    def setup(*args):
        wide = double or any(isinstance(a, np.ndarray) and a.dtype == np.float64 for a in args)
        with jax.enable_x64(wide):
            arrays = [jnp.asarray(a) if isinstance(a, np.ndarray | float) else a for a in args]

        def run():
            with jax.enable_x64(wide):
                return jax.block_until_ready(compiled(*arrays))

        return run if wide else lambda: jax.block_until_ready(compiled(*arrays))

    return setup


def call_dict(p):
    compiled = jax.jit(lambda p: sum(p.values()))
    arrays = {name: jnp.asarray(value) for name, value in p.items()}
    return lambda: jax.block_until_ready(compiled(arrays))


STATIC = {
    "histogram": (1,), "knapsack": (2,), "generator": (6,), "transformer": (7,),
    "transformer_gradient": (7,),
}
PROGRAMS = {
    "elementwise": program(elementwise),
    "lstm_forward": program(lstm),
    "lstm_gradient": program(jax.grad(lstm_loss, argnums=(3, 4, 5))),
    "matmul": program(jnp.matmul),
    "mlp_gradient": program(jax.value_and_grad(mlp_loss, argnums=(0, 1, 2, 3))),
    "softmax": program(softmax),
    "layer_norm": program(layer_norm),
    "call": program(lambda a, b, c, d: a * b + c - d),
    "call_dict": call_dict,
    "stores": program(stores, double=True),
    "stores_gradient": program(jax.grad(stores), double=True),
    "newton": program(newton, double=True),
    **{
        name: program(getattr(jax_arrays, name), double=True, static=STATIC.get(name, ()))
        for name in arrays.PROGRAMS if hasattr(jax_arrays, name)
    },
    **{
        name: program(getattr(jax_networks, name), static=STATIC.get(name, ()))
        for name in networks.FORWARD if hasattr(jax_networks, name)
    },
    **{name: program(jax_networks.image_network(name)) for name in image_layers.NETWORKS},
    **{
        name: program(
            jax.grad(getattr(jax_networks, loss.__name__), argnums=argnums),
            static=STATIC.get(name, ()),
        )
        for name, (loss, argnums) in networks.GRADIENTS.items()
        if hasattr(jax_networks, loss.__name__)
    },
    **{
        name: program(jax.grad(getattr(jax_gradients, loss.__name__), argnums=argnums), double=True)
        for name, (loss, argnums) in gradients.GRADIENTS.items()
        if hasattr(jax_gradients, loss.__name__)
    },
}


def version() -> str:
    return jax.__version__
