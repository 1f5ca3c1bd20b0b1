"""pyrelay: the plain programs, compiled as they stand, and their derivatives."""

from __future__ import annotations

import pyrelay
from benchmarks.programs import (
    arrays,
    gradients,
    image_networks,
    networks,
    plain,
    recursions,
    rows,
    trees,
)
from benchmarks.programs.plain import as_arrays, thunk

__all__ = ["PROGRAMS", "as_arrays", "version"]

PROGRAMS = {
    "elementwise": thunk(pyrelay.jit(plain.elementwise)),
    "lstm_forward": thunk(pyrelay.jit(plain.lstm)),
    "lstm_gradient": thunk(pyrelay.grad(plain.lstm_loss, argnums=(3, 4, 5))),
    "matmul": thunk(pyrelay.jit(plain.matmul)),
    "mlp_gradient": thunk(pyrelay.value_and_grad(plain.mlp_loss, argnums=(0, 1, 2, 3))),
    "softmax": thunk(pyrelay.jit(plain.softmax)),
    "layer_norm": thunk(pyrelay.jit(plain.layer_norm)),
    "call": thunk(pyrelay.jit(plain.call)),
    "call_dict": thunk(pyrelay.jit(plain.call_dict)),
    "stores": thunk(pyrelay.jit(plain.stores)),
    "stores_gradient": thunk(pyrelay.grad(plain.stores)),
    "escape": thunk(pyrelay.jit(plain.escape)),
    "newton": thunk(pyrelay.jit(plain.newton)),
    "fibonacci": thunk(pyrelay.jit(plain.fibonacci)),
    "depth": thunk(pyrelay.jit(plain.depth)),
    "nest": thunk(pyrelay.jit(plain.nest)),
    **{name: thunk(pyrelay.jit(function)) for name, function in arrays.PROGRAMS.items()},
    **{name: thunk(pyrelay.jit(function)) for name, function in rows.PROGRAMS.items()},
    **{name: thunk(pyrelay.jit(function)) for name, function in recursions.PROGRAMS.items()},
    **{name: thunk(pyrelay.jit(function)) for name, function in networks.FORWARD.items()},
    **{name: thunk(pyrelay.jit(function)) for name, function in trees.PROGRAMS.items()},
    **{name: thunk(pyrelay.jit(function)) for name, function in image_networks.FORWARD.items()},
    **{
        name: thunk(pyrelay.grad(loss, argnums=argnums))
        for name, (loss, argnums) in {**networks.GRADIENTS, **gradients.GRADIENTS}.items()
    },
}


def version() -> str:
    from importlib import metadata  # as long as many an import: not in measured first calls

    return metadata.version("pyrelay")
