"""Softmax and its logarithms: values whose derivatives are simpler than those of their formulas.

In: x, and the value that the program's own formula gives for it. Out: that value. So the program
keeps its way to guard against overflow and empty rows, bit by bit, and the derivative is that of
the function: a softmax needs its result only, and nothing flows through the maximum that formulas
subtract. `opt.recognise` writes these ops before derivatives are taken, and `plain` replaces them
by the value afterwards.

    softmax      p = exp(x) / sum(exp(x)):  p (g - sum(g p))
    log_softmax  y = x - log(sum(exp(x))):  g - exp(y) sum(g)
    logsumexp    y = log(sum(exp(x))):      g exp(x - y)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir.build import Handle
from pyrelay.ir.op import Fusion, Op, Sample, Vjp, define
from pyrelay.ir.types import Type
from pyrelay.ops.elementwise import times
from pyrelay.ops.functions import exp
from pyrelay.ops.reduce import Axes, kept, sum_

_X = np.array([[0.5, -1.0, 2.0], [0.0, 3.0, 0.25]])
_SUMS = np.log(np.sum(np.exp(_X), axis=1, keepdims=True))


def _type_of_value(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    return args[1:]


def _given(name: str, vjp: Vjp, value: Any, attrs: Mapping[str, Any], doc: str) -> Op:
    # The value is given: differences of it by x are 0, so the samples' derivatives are not
    # compared with them (`tests/ops/test_normalised.py` compares the formulas').
    return define(
        name, relation=_type_of_value, numpy=lambda x, value, **attrs: value,
        fusion=Fusion.INJECTIVE, vjp=vjp, element=lambda s, i, x, value, **attrs: value(i),
        samples=(Sample((_X, value), attrs, differentiable=False),), doc=doc,
    )


def _cotangent_of_softmax(y: Handle, g: Handle, x: Handle, value: Handle, *, axes: Axes) -> Any:
    mean = sum_(times(g, y), axes=axes, keepdims=True)
    return times(g - mean, y), None


def _cotangent_of_log_softmax(
    y: Handle, g: Handle, x: Handle, value: Handle, *, axes: Axes
) -> Any:
    return g - times(sum_(g, axes=axes, keepdims=True), exp(y)), None


def _cotangent_of_logsumexp(
    y: Handle, g: Handle, x: Handle, value: Handle, *, axes: Axes, keepdims: bool
) -> Any:
    return times(kept(g, axes, keepdims), exp(x - kept(y, axes, keepdims))), None


softmax = _given(
    "softmax", _cotangent_of_softmax, np.exp(_X - _SUMS), {"axes": (1,)},
    "a value that is exp(x) / sum(exp(x)) over the axes",
)
log_softmax = _given(
    "log_softmax", _cotangent_of_log_softmax, _X - _SUMS, {"axes": (1,)},
    "a value that is x - log(sum(exp(x))) over the axes",
)
logsumexp = _given(
    "logsumexp", _cotangent_of_logsumexp, _SUMS, {"axes": (1,), "keepdims": True},
    "a value that is log(sum(exp(x))) over the axes",
)
