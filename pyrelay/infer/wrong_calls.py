"""Calls whose arguments do not fit the parameters of a function: what Python says of them.

In: the function and what it is given. Out: the text of Python's TypeError, which a function of the
same name and parameters raises that is called with as many arguments and the same keywords.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any

from pyrelay.infer import values as V

_STARS = {"var_positional": "*", "var_keyword": "**"}


def said(closure: V.Closure, count: int, keywords: Iterable[str]) -> str:
    """The text of Python's TypeError for a call with `count` arguments and these keywords."""
    made: dict[str, Any] = {}
    exec(f"def called({', '.join(_parameters(closure))}): pass", made)
    made["called"].__qualname__ = _qualified(closure)
    try:
        made["called"](*[None] * count, **dict.fromkeys(keywords))
    except TypeError as error:
        return str(error)
    raise AssertionError(closure)


def _parameters(closure: V.Closure) -> Iterator[str]:
    signature, defaults = closure.function.signature, dict(closure.defaults)
    before = ""
    for p in signature:
        if before == "positional_only" != p.kind:
            yield "/"
        if p.kind == "keyword_only" and before not in ("keyword_only", "var_positional"):
            yield "*"
        yield _STARS.get(p.kind, "") + p.name + ("=None" if p.name in defaults else "")
        before = p.kind
    if before == "positional_only":
        yield "/"


def _qualified(closure: V.Closure) -> str:
    """The name of a function with those of the functions and classes that it is defined in."""
    first, *inner = closure.function.name.split(".")
    outermost = closure.owner.__qualname__ if isinstance(closure.owner, types.FunctionType) else (
        first
    )
    names = ["<lambda>" if name.startswith("<lambda>") else name for name in inner]
    return ".<locals>.".join([outermost, *names])
