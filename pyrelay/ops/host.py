"""Calls of Python from a running program.

In: numbers and arrays. Out: what the Python function in the attributes returns for them. Ops of a
library that stay in Python (a decomposition, say) are records of their own with schedule "host".
`host_call` is for functions that do something: print, show progress, read the clock; it keeps its
place among everything else that has an effect. `host_value` is for those that only compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyrelay.errors import GradientError
from pyrelay.ir import types
from pyrelay.ir.build import Handle
from pyrelay.ir.op import Effect, Fusion, Op, Sample, define, not_differentiable
from pyrelay.ir.types import Type
from pyrelay.ops.elementwise import elementwise

_FROM_OUTSIDE = not_differentiable("what it returns comes from outside of the program")


def _typed(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    found: tuple[Type, ...] = attrs["types"]
    return found


def _called(*values: Any, function: Callable[..., Any], types: tuple[Type, ...]) -> Any:
    result = function(*values)
    return result if types else ()


def _no_derivative(y: Any, g: Any, *args: Handle, **attrs: Any) -> tuple[Any, ...]:
    raise GradientError(
        "random numbers of this distribution have no derivative by its parameters.",
        span=args[0].builder.span,
        hints=("use pyrelay.nn.stop_gradient(...) on the parameters if none is meant",),
    )


def _call(name: str, effect: Effect, doc: str, vjp: Any = _FROM_OUTSIDE) -> Op:
    return define(
        name, relation=_typed, numpy=_called, fusion=Fusion.OPAQUE, schedule="host", effect=effect,
        vjp=vjp, doc=doc,
        samples=(
            Sample(
                (3, 4.5), {"function": divmod, "types": (types.PY_FLOAT, types.PY_FLOAT)}, False
            ),
            Sample((2.5,), {"function": abs, "types": (types.PY_FLOAT,)}, False),
            Sample((), {"function": tuple, "types": ()}),
        ),
    )


host_call = _call(
    "host_call", Effect.HOST,
    "calls `function` on the operands; its results have `types`; never removed, moved or repeated",
)
host_value = _call(
    "host_value", Effect.RAISES,
    "what `function`, which only computes, gives for the operands; its results have `types`",
)
host_draw = _call(
    "host_draw", Effect.RAISES,
    "as `host_value`, of numbers that depend on the operands in a way without a derivative rule",
    _no_derivative,
)
drawn_by = elementwise(
    "drawn_by", lambda x: x, vjp=_no_derivative, python=lambda x: x,
    element=lambda s, i, x: x(i), samples=(Sample((2.5,), {}, False),),
    doc="x, a parameter of random numbers drawn by the program: as `host_draw`, no derivative rule",
)
