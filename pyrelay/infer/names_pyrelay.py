"""pyrelay's own functions, called inside a program: `jit`, `grad`, `value_and_grad`, ...

They are entered by name: the functions themselves are defined above this package.
"""

from __future__ import annotations

from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter


def jit(it: Interpreter, function: V.Value) -> V.Value:
    """pyrelay.jit(function): everything here is compiled already."""
    return function


def _derivative(kind: str) -> Any:
    def handler(
        it: Interpreter, function: V.Value, argnums: V.Value = V.Known(0),
        argnames: V.Value = V.NONE, has_aux: V.Value = V.Known(False),
    ) -> V.Value:
        numbers = it.static(argnums, "argnums")
        names = it.static(argnames, "argnames")
        return V.Derivative(
            function, kind, tuple(numbers) if isinstance(numbers, list) else numbers,
            tuple(names) if isinstance(names, list) else names,
            bool(it.static(has_aux, "has_aux")),
        )

    return handler


def stop_gradient(it: Interpreter, x: V.Value) -> V.Value:
    """pyrelay.nn.stop_gradient(x)."""
    return it.call("stop_gradient", x)


#: by module and name
HANDLERS = {
    ("pyrelay.api", "jit"): jit,
    ("pyrelay.api", "grad"): _derivative("grad"),
    ("pyrelay.api", "value_and_grad"): _derivative("value_and_grad"),
    ("pyrelay.nn", "stop_gradient"): stop_gradient,
}
