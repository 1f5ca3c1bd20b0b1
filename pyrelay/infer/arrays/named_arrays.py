"""The arrays, and texts, that the code of functions names: what a program is likely to read.

In: Python functions. Out: a request for each array that they, or functions that they name, find
under a global name, in a cell, as an attribute of a module or a class, or in a tuple there. Which
of these reads happen is not known here: an attempt that did not read one asks for fewer.
"""

from __future__ import annotations

import dis
import random
import sys
import types as python_types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pyrelay.infer import needs, own_arrays
from pyrelay.infer.attributes import of_pyrelay
from pyrelay.infer.guards import NameGuard
from pyrelay.ir import types

_MOST = 64
"""Arrays, and functions to look through: beyond, code names more than one program reads."""
_METHODS = (python_types.BuiltinMethodType, python_types.MethodType)
_STATES = (np.random.RandomState, random.Random)
"""What functions as np.random.choice and random.shuffle are methods of."""
_MOST_TEXTS = 24
_LONGEST = 64  # characters of a text that one of several may be


def named_arrays(functions: Sequence[Any]) -> list[needs.NeedsCapture]:
    """Requests for the arrays that functions name, and for what their functions that draw numbers
    change, in the order of the code, each once."""
    found: dict[int, needs.NeedsCapture] = {}
    for function, reads in _named_functions(functions):
        own = of_pyrelay(function)
        for guard in reads:
            for value, source in _arrays(guard):
                if len(found) < _MOST:
                    found.setdefault(id(value), needs.NeedsCapture(None if own else source, value))
    return list(found.values())


def named_texts(functions: Sequence[Any], least: int = 2) -> list[needs.NeedsCapture]:
    """Requests for the code points of the strings that the users' functions among them contain, of
    at least so many characters: one is mostly a character.

    A program that does not read some is as good: they are pyrelay's own, and never change.
    """
    found: dict[str, None] = {}
    for function, _ in _named_functions(functions):
        if not of_pyrelay(function):
            found.update(dict.fromkeys(_texts(function, least)))
    return [needs.NeedsCapture(None, own_arrays.codes(text)) for text in list(found)[:_MOST_TEXTS]]


def _named_functions(
    functions: Sequence[Any],
) -> Iterator[tuple[python_types.FunctionType, list[NameGuard]]]:
    """Functions and those that they name, each once, with what they find outside of them."""
    pending = [f for f in functions if isinstance(f, python_types.FunctionType)]
    met: set[Any] = set()
    while pending and len(met) < _MOST:
        function = pending.pop(0)
        if function in met or _is_of_a_library(function):
            continue
        met.add(function)
        reads = list(_reads(function))
        yield function, reads
        for guard in reads:
            pending += _functions(guard.value)


def _texts(function: python_types.FunctionType, least: int) -> Iterator[str]:
    """The strings of so many characters in a function and those in it, but what documents it."""
    pending: list[Any] = [function.__code__]
    while pending:
        code = pending.pop(0)
        for value in code.co_consts:
            if isinstance(value, python_types.CodeType):
                pending.append(value)
                continue
            for text in value if isinstance(value, tuple) else (value,):
                if type(text) is not str or text == function.__doc__:
                    continue
                if least <= len(text) <= _LONGEST:
                    yield text


def _is_of_a_library(function: Any) -> bool:
    """True for NumPy's functions, in place of which programs have others."""
    return str(function.__globals__.get("__name__")).split(".")[0] == "numpy"


def _is_of_python(cls: type) -> bool:
    """True for the classes of the standard library."""
    return cls.__module__.split(".")[0] in sys.stdlib_module_names


def _functions(value: Any) -> list[python_types.FunctionType]:
    """The functions that are interpreted where a value is called: of a class, its methods."""
    spec = getattr(value, "__pyrelay__", None)
    if isinstance(spec, tuple) and spec[0] == "jit":
        value = spec[1]
    own: Iterable[Any] = (value,)
    if isinstance(value, type):
        own = () if _is_of_python(value) else vars(value).values()
    return [each for each in own if isinstance(each, python_types.FunctionType)]


def _arrays(guard: NameGuard) -> Iterator[tuple[Any, NameGuard | None]]:
    """The arrays that a read gives, with what guards them: an item of a tuple stays."""
    pending: list[tuple[Any, NameGuard | None]] = [(guard.value, guard)]
    while pending:
        value, source = pending.pop(0)
        if type(value) is tuple and len(value) <= _MOST:
            pending += [(item, None) for item in value]
        elif type(value) is np.ndarray and value.ndim and types.from_numpy(value.dtype) is not None:
            yield value, source
        elif isinstance(value, _METHODS) and type(value.__self__) in _STATES:
            yield value.__self__, None


def _reads(function: python_types.FunctionType) -> Iterator[NameGuard]:
    """What a function and those defined in it find outside of it, by the code's loads of names."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name, cell in cells.items():
        try:
            yield NameGuard("cell", cell, name, cell.cell_contents, False)
        except ValueError:
            continue  # the enclosing function has not set it
    namespace = function.__globals__
    codes = [function.__code__]
    while codes:
        code = codes.pop(0)
        codes += [c for c in code.co_consts if isinstance(c, python_types.CodeType)]
        owner: Any = None  # the module or class that was loaded last
        for load in dis.get_instructions(code):
            value: Any = None
            if load.opname in ("LOAD_GLOBAL", "LOAD_NAME") and load.argval in namespace:
                value = namespace[load.argval]
                yield NameGuard("item", namespace, load.argval, value, False)
            elif owner is not None and load.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                value = _attribute(owner, load.argval)
                yield NameGuard("attribute", owner, load.argval, value, False)
            owner = value if isinstance(value, (python_types.ModuleType, type)) else None


def _attribute(owner: Any, name: str) -> Any:
    """An attribute that is there without any code that is run to find it."""
    owners = owner.__mro__ if isinstance(owner, type) else (owner,)
    return next((vars(o)[name] for o in owners if name in vars(o)), None)
