"""What Python says of operands that do not go together: `1 + "a"`, `-[]`.

In: values, and what Python calls for the operator. Out: the error of the line, or the TypeError
raised in the program, where somebody catches that. Python is asked, with objects of the same
classes; of others than its own nothing is said.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyrelay import errors
from pyrelay.infer import values as V

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.spellings import PYTHON

_EACH: tuple[Any, ...] = (
    None, True, 1, 1.5, 1j, "a", b"a", (), [], {}, set(), frozenset(), range(0),
)
_OBJECTS: dict[Any, Any] = {type(each): each for each in _EACH}
_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv,
    "//": operator.ifloordiv, "%": operator.imod, "**": operator.ipow, "&": operator.iand,
    "|": operator.ior, "^": operator.ixor, "<<": operator.ilshift, ">>": operator.irshift,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert,
}


def of_binary(
    it: Interpreter, failure: errors.PyrelayError, op: str, x: V.Value, y: V.Value
) -> errors.PyrelayError:
    """The error of `x op y`, or of `x op= y`."""
    in_place = it.let is not None and getattr(it.let.rhs, "kind", "") == "inplace"
    return _of(it, failure, (_IN_PLACE if in_place else PYTHON)[op], x, y)


def of_unary(
    it: Interpreter, failure: errors.PyrelayError, op: str, x: V.Value
) -> errors.PyrelayError:
    """The error of `op x`."""
    return _of(it, failure, _UNARY[op], x)


def of_call(
    it: Interpreter, failure: errors.PyrelayError, callee: V.Value
) -> errors.PyrelayError:
    """The error of `callee()`."""
    return _of(it, failure, lambda each: each(), callee)


def of_contains(it: Interpreter, container: V.Value, item: V.Value) -> errors.PyrelayError:
    """The error of `item in container`."""
    failure = it.failure(errors.TypeMismatchError, f"{V.describe(container)} has no items")
    return _of(it, failure, lambda each: None in each, container)


def _of(
    it: Interpreter, failure: errors.PyrelayError, function: Callable[..., Any], *values: V.Value
) -> errors.PyrelayError:
    from pyrelay.infer.flow.handling import certain
    from pyrelay.infer.names.builtins import class_of

    classes = [class_of(value) for value in values]
    if any(cls not in _OBJECTS for cls in classes):
        return failure
    if function in (operator.mod, operator.imod) and classes[0] in (str, bytes):
        return failure  # which depends on the text
    try:
        function(*(_OBJECTS[cls] for cls in classes))
    except TypeError as error:
        return certain(it, failure, TypeError, *error.args)
    return failure
