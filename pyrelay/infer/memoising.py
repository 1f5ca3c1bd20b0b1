"""Calls of functions under functools.cache that were decorated outside the program.

In: the cached object and the arguments of a call. Out: the value, from a table of the program where
the function is recursive and the arguments are numbers, texts, or tuples of them; else computed
anew, which only takes longer. In programs with derivatives, floats are no keys: the derivative of
one argument would be another's.

The tables are objects of the program that every function of its own is given, as it is given the
objects that the program captures: an attempt that meets the first call notes it, and the next one
begins with a table (`Attempt.memos`).
"""

from __future__ import annotations

import enum
import types as python_types
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.containers.open_keys import is_known, is_number
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import leaf_types
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Memo:
    """A function, and those of its arguments by position that are no part of the keys."""

    function: Any
    fixed: tuple[tuple[int, Any], ...]


class NeedsMemo(Exception):
    """The program has no table for these calls yet."""

    def __init__(self, memo: Memo) -> None:
        super().__init__()
        self.memo = memo


class NeedsExactKeys(Exception):
    """Tables of a program with derivatives had floats as keys."""


def begin_derivative(it: Interpreter) -> None:
    """Keep floats out of the keys of tables from here on. Raises NeedsExactKeys if some are."""
    if it.program.keeps_floats and not it.program.exact_keys:
        raise NeedsExactKeys
    it.program.exact_keys = True


def wrapped_function(fn: Any) -> python_types.FunctionType | None:
    """The Python function that functools.cache or lru_cache was given; None for anything else."""
    if not hasattr(fn, "cache_info"):
        return None
    wrapped = getattr(fn, "__wrapped__", None)
    spec = getattr(wrapped, "__pyrelay__", None)
    if spec is not None and spec[0] == "jit":
        wrapped = spec[1]
    return wrapped if isinstance(wrapped, python_types.FunctionType) else None


def call_cached(
    it: Interpreter, function: python_types.FunctionType, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> V.Value:
    """The value of `functools.cache(function)(*args, **keywords)`."""
    from pyrelay.infer.calls import bind_arguments, call, call_closure, function_value
    from pyrelay.infer.in_python.iteration import recalled

    closure = function_value(it, function)
    called = closure.function
    again = called in it.active or called in it.program.recursive
    if any(p.kind != "positional_or_keyword" for p in called.signature) or not again:
        return call_closure(it, closure, args, keywords)
    bound = bind_arguments(it, closure, args, keywords)
    memo = _memo(it, function, bound)
    if memo is None or not it.program.remembers:
        return call_closure(it, closure, bound, {})
    number = it.program.memos.get(memo)
    if number is None:
        raise NeedsMemo(memo)
    known = it.program.objects if it.captured is None else it.captured
    found, fixed = known[number], dict(memo.fixed)
    open_ = [v for k, v in enumerate(bound) if k not in fixed]
    key = open_[0] if len(open_) == 1 else V.Tuple(tuple(open_))
    return call(it, V.Known(recalled), (found, key, V.Known(function), V.Tuple(tuple(bound))), {})


def _memo(it: Interpreter, function: Any, bound: Sequence[V.Value]) -> Memo | None:
    """The table for a call; None if its arguments make no key, or are all known."""
    if not make_key(it, bound) or is_known(V.Tuple(tuple(bound))):
        return None
    return Memo(function, tuple(
        (k, value.value) for k, value in enumerate(bound)
        if isinstance(value, V.Known) and not is_number(value)
    ))  # fmt: skip


def make_key(it: Interpreter, args: Sequence[V.Value]) -> bool:
    """Whether arguments are a key of a table: numbers, texts, constants, tuples of them."""
    kinds = set().union(*(_kinds(it, v) for v in args))
    if "f" in kinds and not it.program.exact_keys:
        it.program.keeps_floats = True
    return kinds <= (set("biu") if it.program.exact_keys else set("biuf"))


def _kinds(it: Interpreter, key: V.Value) -> set[str]:
    """Of which kinds of dtype the numbers in a key are; "O" for what is none."""
    match key:
        case V.Known(tuple() as items):
            return set().union(*(_kinds(it, V.Known(v)) for v in items))
        case V.Known(str() | bytes() | enum.Enum() | None) | V.Text():
            return set()
        case V.Tuple(items):
            return set().union(*(_kinds(it, v) for v in items))
        case V.Union():
            return set().union(*(_kinds(it, v) for v in key.possible))
        case V.OpenTuple(items):
            content = it.content(items.root)
            leaves = leaf_types([content.template]) if isinstance(content, V.Growing) else ()
            return {ty.dtype.kind for ty in leaves}
    ty = V.number_type(key)
    return {"O" if ty is None else ty.dtype.kind}
