"""Calls of functions under functools.cache that were decorated outside the program.

In: the cached object and the arguments of a call. Out: the value, from a table of the program where
the function is recursive and the arguments are ints, characters, or tuples of them; else computed
anew, which only takes longer (keys of floats would hand one argument's derivative to another).

The tables are objects of the program that every function of its own is given, as it is given the
objects that the program captures: an attempt that meets the first call notes it, and the next one
begins with a table (`Attempt.memos`).
"""

from __future__ import annotations

import types as python_types
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.containers.characters import code_of
from pyrelay.infer.containers.open_keys import is_int
from pyrelay.infer.interpreter import Interpreter
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
    fixed: list[tuple[int, Any]] = []
    for k, value in enumerate(bound):
        if is_int(value) or _is_open(value):
            continue
        if not isinstance(value, V.Known) or not isinstance(value.value, (str, type(None))):
            return None
        fixed.append((k, value.value))
    return Memo(function, tuple(fixed)) if any(map(_is_open, bound)) else None


def _is_open(value: V.Value) -> bool:
    """Whether an argument is known only to the running program, and made of ints and characters."""
    if isinstance(value, V.Tuple):
        plain = all(is_int(v) or code_of(v) is not None for v in value.items)
        return plain and any(map(_is_open, value.items))
    return not isinstance(value, V.Known) and (is_int(value) or code_of(value) is not None)
