"""Expressions of the kernel language as `ast`: names, calls, numbers, primitives.

In: names, numbers with their types, the templates of `ops.scalar`. Out: expressions that are not
shared between trees.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay.ir.types import DTYPES, DType, f32, f64, i64


def fresh(counts: dict[str, int], prefix: str) -> str:
    """A name that nothing has yet; that of a dtype is what casts to it are called.

    counts: by prefix, how many names there are; one more afterwards.
    """
    number = counts.get(prefix, 0)
    while f"{prefix}{number}" in DTYPES:
        number += 1
    counts[prefix] = number + 1
    return f"{prefix}{number}"


@functools.cache
def _template(text: str) -> ast.expr:
    return ast.parse(text.format("_0", "_1", "_2"), mode="eval").body


_PLACES = {"_0": 0, "_1": 1, "_2": 2}


def copied(node: Any, values: Sequence[ast.expr] = ()) -> Any:
    """A copy of a template: `ast` nodes of a tree must not be shared.

    values: what stands in place of the names `_0`, `_1` and `_2`.
    """
    if isinstance(node, ast.AST):
        kind = type(node)
        if not kind._fields:  # an operator or a context: these are shared
            return node
        if values and isinstance(node, ast.Name) and node.id in _PLACES:
            return values[_PLACES[node.id]]
        return kind(*[copied(getattr(node, name), values) for name in kind._fields])
    if isinstance(node, list):
        return [copied(item, values) for item in node]
    return node


def spelled(text: str, values: Sequence[ast.expr]) -> ast.expr:
    filled: ast.expr = copied(_template(text), values)
    return filled


def named(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(named(name), list(args), [])


def binding(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=1)


def number(value: float) -> ast.expr:
    """A number, negative ones as Python reads them: minus applied to a positive one."""
    if value != value or value in (float("inf"), float("-inf")):
        magnitude = named("nan" if value != value else "inf")
    else:
        magnitude = ast.Constant(abs(value))
    negative = value < 0 or (value == 0 and str(value).startswith("-"))
    return ast.UnaryOp(ast.USub(), magnitude) if negative else magnitude


def literal(value: Any, dtype: DType) -> ast.expr:
    """A constant of the kernel language."""
    if dtype.kind == "b":
        return ast.Constant(bool(value))
    if dtype.kind == "c":
        part = f32 if dtype.size == 8 else f64
        parts = [_float(v, part) for v in (value.real, value.imag)]
        return call(dtype.name, *parts)
    if dtype.kind == "f":
        return _float(value, dtype)
    if dtype == i64:
        return number(value)
    # Literals are i64; the upper half of u64 is its negative counterpart, cast back.
    return call(dtype.name, number(value - 2**64 if value >= 2**63 else value))


def _float(value: float, dtype: DType) -> ast.expr:
    if dtype == f64:
        return number(float(value))
    short = float(str(np.float32(value)))  # the shortest decimal that rounds to it
    return call(dtype.name, number(short))
