"""Library functions written as plain Python over NumPy, which our own frontend compiles.

In and out of each: what the function of the same name takes and gives, for the arguments listed.
They run as they are; `names.composed` enters those of a module's `__all__` in the table of names.
Derivatives follow from their bodies.
"""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: The functions that `once` was asked for.
ONCE: set[Any] = set()


def once(function: _Function) -> _Function:
    """Infer the body once for each type of the arguments, not at each call.

    For what is called often: it is a function of the program, which passes write in line where its
    calls are few. It raises nothing.
    """
    ONCE.add(function)
    return function


def refuse(message: str) -> NoReturn:
    """Say that these arguments are not compiled: an error of compilation, at the user's line."""
    raise NotImplementedError(message)
