"""Which Python objects are constants to a program, and which are structures of its values.

In: any object. Out: whether it stands for itself while compiling, takes output, is an instance of a
user's class. Nothing here needs the rest of `infer`: every call asks.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import io
import sys
import types as python_types
from typing import Any

import numpy as np

CAUSE = " cause"
"""The keyword that stands for the cause of an exception on its way; no argument has such a name."""


_INDEX_TRICKS = tuple(map(type, (np.r_, np.c_, np.mgrid, np.ogrid, np.s_)))
"""The classes of NumPy's objects that make something of what stands in brackets."""


def is_constant_object(value: Any) -> bool:
    """True for objects that stand for themselves while compiling (never a hidden argument)."""
    return (
        value is None
        or value is Ellipsis
        or isinstance(
            value,
            (bool, int, float, complex, str, bytes, type, slice, range, np.generic, np.dtype,
             enum.Enum, frozenset, np.ufunc, python_types.ModuleType, python_types.FunctionType,
             python_types.BuiltinFunctionType, python_types.MethodDescriptorType,
             functools.partial, property, *_INDEX_TRICKS),
        )
        or is_writer(value)
        or (isinstance(value, tuple) and hasattr(type(value), "n_sequence_fields"))
        or (callable(value) and hasattr(type(value), "__get__") and hasattr(value, "__name__"))
        or (callable(value) and not dataclasses.is_dataclass(value)
            and not isinstance(value, (list, dict, tuple, np.ndarray))
            and not is_plain_object(value))
    )


def is_writer(value: Any) -> bool:
    """True for objects that output goes to: streams and loggers."""
    streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    classes = (io.IOBase, *loaded_classes("logging", "Logger"))
    return isinstance(value, classes) or any(value is s for s in streams)


def is_generator(value: Any) -> bool:
    """True for generators of random numbers, whose state programs carry (`random_state`)."""
    cls: Any = type(value)
    return _is_generator_class(cls)


@functools.cache
def _is_generator_class(cls: Any) -> bool:
    """A class of generators that an object has is loaded: the answer stays what it is."""
    return issubclass(cls, generator_classes())


def generator_classes() -> tuple[type, ...]:
    """The classes of generators of random numbers of which there can be instances."""
    return (
        *loaded_classes("numpy.random", "Generator", "RandomState"),
        *loaded_classes("random", "Random"),
    )


def loaded_classes(module: str, *names: str) -> tuple[type, ...]:
    """Classes of a module, none if it is not loaded: nothing is an instance of them then."""
    found = sys.modules.get(module)
    return tuple(getattr(found, name) for name in names if hasattr(found, name))


def below_numba(value: Any) -> Any:
    """The function that `numba.njit`, `jit` or `vectorize` was given; None for all else."""
    held = value
    if isinstance(value, loaded_classes("numba.np.ufunc.dufunc", "DUFunc")):
        held = getattr(value, "_dispatcher")  # noqa: B009 -- numba says nothing of its type
    elif not isinstance(value, loaded_classes("numba.core.dispatcher", "Dispatcher")):
        return None
    return getattr(held, "py_func")  # noqa: B009


def is_plain_object(value: Any) -> bool:
    """True for an instance of a user's class with attributes of its own: it becomes a record."""
    cls = type(value)
    return (
        cls.__module__ not in ("builtins", "numpy", "functools", "numba.np.ufunc.dufunc")
        and not hasattr(value, "__pyrelay__")
        and hasattr(value, "__dict__")
        and not isinstance(value, (python_types.ModuleType, python_types.FunctionType, type))
    )


def is_callable_object(value: Any) -> bool:
    """True for an instance of a user's class with a `__call__` written in Python."""
    if not is_plain_object(value):
        return False
    method = getattr(type(value), "__call__", None)  # noqa: B004 -- not whether there is one
    return isinstance(method, python_types.FunctionType) or hasattr(method, "__pyrelay__")
