"""What a callable is that users give to `jit` or `grad`: the function below it, how it is called.

In: a function, a method, a partial, an object that can be called, or what pyrelay or numba made of
one. Out: the Python function, its name and its positional parameters.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types as python_types
from collections.abc import Sequence
from typing import Any

from pyrelay.annotations import signature_of
from pyrelay.infer.objects import below_numba


def plain(function: Any) -> Any:
    """The Python callable below all transforms, numba's included."""
    while hasattr(function, "__pyrelay__"):
        function = function.__pyrelay__[1]
    return below_numba(function) or function


def function_of(function: Any) -> Any:
    """The Python function that a partial or a method calls."""
    while not isinstance(function, python_types.FunctionType):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, python_types.MethodType):
            function = function.__func__
        elif hasattr(type(function), "__call__") and hasattr(function, "__dict__"):  # noqa: B004
            function = plain(type(function).__call__)
        else:
            return function
        function = plain(function)
    return function


def keep_source(function: Any) -> None:
    """Keep the text of a function as it is now: its file may be edited before the first call."""
    from pyrelay.frontend import source

    if isinstance(function, python_types.FunctionType):
        source.keep(function)


def positional(function: Any) -> list[inspect.Parameter]:
    """The parameters that may be given by position; none if a callable does not tell."""
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p for p in parameters if p.kind in kinds]


def names_of(kind: str, parameters: Sequence[inspect.Parameter]) -> tuple[str, ...]:
    """What a transform of a function with these parameters is called with, by position."""
    names = tuple(p.name for p in parameters)
    match kind:
        case "jvp":
            return ("primals", "tangents")
        case "pullback":
            return ("primals", "cotangent")
        case "hvp":
            return (*names[:1], "v", *names[1:])
    return names


def pickled_by_value() -> bool:
    """Whether the pickler at work takes functions of `__main__` along whole, as cloudpickle does.

    Workers of joblib and dask do not import the `__main__` of the process that started them.
    """
    frame: python_types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).rpartition(".")[2] == "cloudpickle":
            return True
        frame = frame.f_back
    return False


def name_of(function: Any) -> str:
    name = getattr(function_of(function), "__qualname__", None)
    return str(name or type(function).__qualname__)
