"""Derivatives along one direction: of compiled gradients, and by differences of plain Python.

In: a function of numbers, arrays and structures of them, its arguments, and the positions that are
displaced. What it returns is made one number, and each floating leaf moves its own way.
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
        float(np.sum(g * direction(g, k))) for k, g in enumerate(leaves(gradients, []), 1)
    )


def difference(function: Callable[..., Any], args: Sequence[Any], wrt: Sequence[int]) -> float:
    """The central difference of plain Python. Raises what the function raises."""

    def displaced(by: float) -> float:
        mine = list(copy.deepcopy(args))
        salt = [0]
        for k in wrt:
            mine[k] = moved(mine[k], by, salt)
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


def leaves(value: Any, into: list[Any]) -> list[Any]:
    """Floating leaves of a structure, in order; None stands for what has no derivative."""
    if isinstance(value, (tuple, list)):
        for v in value:
            leaves(v, into)
    elif isinstance(value, dict):
        leaves(list(value.values()), into)
    elif dataclasses.is_dataclass(value):
        leaves([getattr(value, f.name) for f in dataclasses.fields(value)], into)
    elif isinstance(value, (float, np.floating)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ):
        into.append(value)
    return into


def moved(value: Any, by: float, salt: list[int]) -> Any:
    """A structure whose floating leaves are displaced along their direction."""
    if isinstance(value, tuple):
        items = [moved(v, by, salt) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [moved(v, by, salt) for v in value]
    if isinstance(value, dict):
        return {k: moved(v, by, salt) for k, v in value.items()}
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(
            value, **{f.name: moved(getattr(value, f.name), by, salt)
                      for f in dataclasses.fields(value)}
        )
    if leaves(value, []):
        salt[0] += 1
        return type(value)(value + by * direction(value, salt[0])) if np.ndim(value) == 0 else (
            value + by * direction(value, salt[0])
        )
    return value


def direction(value: Any, salt: int) -> Any:
    """Deterministic numbers of a shape."""
    return np.cos(np.arange(np.size(value)) * 2.3 + salt).reshape(np.shape(value))[()]
