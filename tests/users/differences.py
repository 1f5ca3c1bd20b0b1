"""Derivatives along one direction: of compiled gradients, and by differences of plain Python.

In: a function of numbers, arrays and structures of them, its arguments, and the positions that are
displaced. What it returns is made one number, and each floating leaf moves its own way; a node that
stands in several places is one, and so are its leaves.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pyrelay

STEP = 1e-6


def slope(function: Callable[..., Any], args: Sequence[Any], wrt: Sequence[int]) -> float:
    """What the gradient says of the direction."""

    def loss(*args):
        return measured(function(*args))

    gradients = pyrelay.grad(loss, argnums=tuple(wrt))(*copy.deepcopy(args))
    return sum(
        float(np.sum(g * direction(g, k))) for k, g in enumerate(leaves(gradients), 1)
    )


def difference(function: Callable[..., Any], args: Sequence[Any], wrt: Sequence[int]) -> float:
    """The central difference of plain Python. Raises what the function raises."""

    def displaced(by: float) -> float:
        mine = list(copy.deepcopy(args))
        moving = Moving(by)
        for k in wrt:
            mine[k] = moving(mine[k])
        return float(measured(function(*mine)))

    return (displaced(STEP) - displaced(-STEP)) / (2 * STEP)


def measured(value):
    """One number of all floats in a structure; plain Python, compiled with the program."""
    if isinstance(value, (tuple, list)):
        return sum(measured(v) * (k + 1) for k, v in enumerate(value))
    if isinstance(value, dict):
        return sum(measured(v) for v in value.values())
    if isinstance(value, np.ndarray):
        if value.dtype.kind != "f":
            return 0.0
        weights = np.cos(np.arange(value.size)).reshape(value.shape)
        return np.sum(weights * value)
    if isinstance(value, (float, np.floating)):
        return value
    if dataclasses.is_dataclass(value):
        return sum(measured(getattr(value, f.name)) for f in dataclasses.fields(value))
    return 0.0


def leaves(value: Any, seen: set[int] | None = None) -> list[Any]:
    """Floating leaves of a structure, in order."""
    seen = set() if seen is None else seen
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in leaves(v, seen)]
    if isinstance(value, dict):
        return leaves(list(value.values()), seen)
    if dataclasses.is_dataclass(value):
        if id(value) in seen:
            return []
        seen.add(id(value))
        return leaves([getattr(value, f.name) for f in dataclasses.fields(value)], seen)
    is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return [value] if is_array or isinstance(value, (float, np.floating)) else []


class Moving:
    """Displaces floating leaves of structures along their directions."""

    def __init__(self, by: float) -> None:
        self.by, self.moved_leaves = by, 0
        self.moved: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, tuple):
            items = map(self, value)
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, list):
            return list(map(self, value))
        if isinstance(value, dict):
            return {k: self(v) for k, v in value.items()}
        if dataclasses.is_dataclass(value):
            if id(value) not in self.moved:
                fields = {f.name: self(getattr(value, f.name)) for f in dataclasses.fields(value)}
                self.moved[id(value)] = dataclasses.replace(value, **fields)
            return self.moved[id(value)]
        if not leaves(value):
            return value
        self.moved_leaves += 1
        there = value + self.by * direction(value, self.moved_leaves)
        return np.asarray(there) if isinstance(value, np.ndarray) else type(value)(there)


def direction(value: Any, salt: int) -> Any:
    """Deterministic numbers of a shape."""
    return np.cos(np.arange(np.size(value)) * 2.3 + salt).reshape(np.shape(value))[()]
