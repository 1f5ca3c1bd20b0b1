"""pyrelay's own functions, called inside a program: `jit`, `grad`, `vmap`, ...

They are entered by name: the functions themselves are defined above this package.
"""

from __future__ import annotations

from typing import Any

from pyrelay import errors
from pyrelay.infer import calls, differentials
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import shape_of


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


def vmap(
    it: Interpreter, function: V.Value, in_axes: V.Value = V.Known(0),
    out_axes: V.Value = V.Known(0),
) -> V.Value:
    """pyrelay.vmap(function, in_axes, out_axes)."""
    return calls.mapping(function, in_axes, out_axes)


def jvp(
    it: Interpreter, function: V.Value, primals: V.Value, tangents: V.Value,
    has_aux: V.Value = V.Known(False),
) -> V.Value:
    """pyrelay.jvp(function, primals, tangents)."""
    request = V.Derivative(function, "jvp", 0, None, bool(it.static(has_aux, "has_aux")))
    return differentials.call_differential(it, request, (primals, tangents), {})


def hvp(
    it: Interpreter, function: V.Value, x: V.Value, v: V.Value, *rest: V.Value,
    **keywords: V.Value,
) -> V.Value:
    """pyrelay.hvp(function, x, v)."""
    request = V.Derivative(function, "hvp", 0, None, False)
    return differentials.call_differential(it, request, (x, v, *rest), keywords)


def vjp(
    it: Interpreter, function: V.Value, *primals: V.Value, has_aux: V.Value = V.Known(False)
) -> V.Value:
    """pyrelay.vjp(function, *primals)."""
    return differentials.vjp(it, function, primals, bool(it.static(has_aux, "has_aux")))


def checkpoint(it: Interpreter, function: V.Value) -> V.Value:
    """pyrelay.checkpoint(function)."""
    return V.Derivative(function, "checkpoint")


def custom_vjp(it: Interpreter, function: V.Value) -> V.Value:
    """pyrelay.custom_vjp(function), which programs find made."""
    raise it.failure(
        errors.UnsupportedOperationError,
        "a function with a derivative of its own is not made inside a compiled function",
        hints=("write @pyrelay.custom_vjp above a function of the module, and call that",),
    )


def stop_gradient(it: Interpreter, x: V.Value) -> V.Value:
    """pyrelay.nn.stop_gradient(x)."""
    return it.call("stop_gradient", x)


def _convolution(op: str) -> Any:
    def handler(
        it: Interpreter, x: V.Value, w: V.Value, stride: V.Value, dilation: V.Value,
        before: V.Value, size: V.Value, groups: V.Value, channels_last: V.Value,
    ) -> V.Value:
        """pyrelay.nn's convolutions: an op, its numbers known except those of zeros and sizes."""
        return it.call(
            op, x, w, before=shape_of(it, before), size=shape_of(it, size),
            stride=tuple(it.static(stride, "stride")),
            dilation=tuple(it.static(dilation, "dilation")),
            groups=it.static(groups, "groups"),
            channels_last=bool(it.static(channels_last, "channels_last")),
        )

    return handler


#: by module and name
HANDLERS = {
    ("pyrelay.api", "jit"): jit,
    ("pyrelay.api", "grad"): _derivative("grad"),
    ("pyrelay.api", "value_and_grad"): _derivative("value_and_grad"),
    ("pyrelay.api", "jacobian"): _derivative("jacobian"),
    ("pyrelay.api", "jacfwd"): _derivative("jacfwd"),
    ("pyrelay.api", "jacrev"): _derivative("jacrev"),
    ("pyrelay.api", "hessian"): _derivative("hessian"),
    ("pyrelay.api", "vmap"): vmap,
    ("pyrelay.api", "jvp"): jvp,
    ("pyrelay.api", "vjp"): vjp,
    ("pyrelay.api", "hvp"): hvp,
    ("pyrelay.ruled_functions", "checkpoint"): checkpoint,
    ("pyrelay.ruled_functions", "custom_vjp"): custom_vjp,
    ("pyrelay.nn.activations", "stop_gradient"): stop_gradient,
    ("pyrelay.nn.convolution", "_convolve"): _convolution("convolve"),
    ("pyrelay.nn.convolution", "_convolve_back"): _convolution("convolve_back"),
}
