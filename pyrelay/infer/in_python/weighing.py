"""Results of a function times a cotangent, in plain Python: what a pullback is the gradient of
where only the running program knows the sizes of the results.

In: a function, its arguments, a cotangent of the structure of its result: tuples, lists and dicts
of arrays and numbers. Out: the sum of the products, a float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay.infer.in_python import refuse

__all__: list[str] = []


def weighed(
    function: Callable[..., Any], has_aux: bool, cotangent: Any, primals: tuple[Any, ...]
) -> Any:
    """The sum of all products of a part of the result and its cotangent."""
    value = function(*primals)
    return 0.0 + _product(value[0] if has_aux else value, cotangent, "the cotangent")


def _product(value: Any, cotangent: Any, name: str) -> Any:
    if cotangent is None:
        return 0.0
    if isinstance(value, dict):
        total = 0.0
        for key in value:
            total += _product(value[key], cotangent[key], f"{name}[{key!r}]")
        return total
    if isinstance(value, (tuple, list)):
        total = 0.0
        for k, (part, weight) in enumerate(zip(value, cotangent, strict=True)):
            total += _product(part, weight, f"{name}[{k}]")
        return total
    if not isinstance(value, (float, np.ndarray, np.floating)):
        refuse("results are tuples, lists, dicts and arrays")
    x, w = np.asarray(value), np.asarray(cotangent)
    if x.dtype.kind == "c":
        refuse("results are arrays of real numbers")
    if x.dtype.kind != "f":
        return 0.0
    for axis in range(x.ndim):
        if x.shape[axis] != w.shape[axis]:
            raise ValueError(
                f"{name} has {w.shape[axis]} elements along axis {axis}, and what it belongs to "
                f"{x.shape[axis]}"
            )
    return np.sum(x * w)
