"""What numba made of a Python function, as that function.

In: an object that a program calls. Out: the function that `numba.njit`, `jit` or `vectorize` was
given, which compiles as any other does and has derivatives; `range` for `numba.prange`. A decorator
that declares types converts arguments to them: such functions are refused, and so are numba's
typed lists and dicts, which convert items. numba itself is not imported.
"""

from __future__ import annotations

from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.in_python import applying
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.objects import below_numba, loaded_classes


def called(it: Interpreter, value: Any) -> V.Value | None:
    """What is called in place of an object of numba's; None for all else."""
    if any(value is each for each in loaded_classes("numba.misc.special", "prange")):
        return V.Known(range)
    _refuse_typed(it, value)
    function = below_numba(value)
    if function is None:
        return None
    of_elements = hasattr(value, "_frozen")
    if value._frozen if of_elements else not value._can_compile:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"{function.__name__!r} is compiled by numba for the types that its decorator declares",
            notes=("numba converts arguments to these types, and pyrelay takes them as they are.",),
            hints=(f"leave the types out, or call {function.__name__}.py_func",)
            if not of_elements else ("leave the types out",),
        )
    if of_elements:
        return V.Partial(V.Known(applying.of_elements), (V.Known(function),), ())
    return V.Known(function)


_TYPED = (
    ("numba.typed.typedlist", "List", "[]"), ("numba.typed.typeddict", "Dict", "{}"),
)


def _refuse_typed(it: Interpreter, value: Any) -> None:
    """Refuse to make a typed list or dict of numba's, by its class or `List.empty_list`."""
    cls = value if isinstance(value, type) else getattr(value, "__self__", None)
    for module, name, literal in _TYPED:
        if any(cls is each for each in loaded_classes(module, name)):
            raise it.failure(
                errors.UnsupportedOperationError,
                f"a numba.typed.{name} cannot be made in a compiled function",
                notes=("it converts its items to the types that it is made for.",),
                hints=(f"write {literal}: a {name.lower()} of Python's is compiled just as well, "
                       "and its items need no types",),
            )
