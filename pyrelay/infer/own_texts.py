"""What objects of the user's classes say of themselves: their `__str__` and `__repr__`.

In: an object of the program. Out: the text that the method of its class makes of it, where that is
a text of the program, or that the `__repr__` of a dataclass would make; None where Python has to be
asked: where the method goes round a loop, says what objects say that are asked already, or is not
compiled. A loop that makes a text longer is Python's for what it was before, too.
"""

from __future__ import annotations

import dataclasses
import dis
import types as python
from contextvars import ContextVar
from typing import Any

from pyrelay import errors
from pyrelay.infer import protocols
from pyrelay.infer import values as V
from pyrelay.infer.attributes import get_attribute, of_class
from pyrelay.infer.interpreter import Interpreter

_asked: ContextVar[frozenset[Any]] = ContextVar("asked", default=frozenset())
"""The methods that are being compiled, and the objects whose fields are being shown."""

_LOOPS = frozenset(["FOR_ITER", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"])


def said(it: Interpreter, value: V.Value, name: str) -> V.Value | None:
    """What `__str__` or `__repr__`, by its name, gives of an object."""
    if not protocols.is_object(value) or issubclass(value.cls or object, BaseException):
        return None
    cls: Any = value.cls
    if cls.__module__.startswith("pyrelay.infer."):
        return None
    method = of_class(it, cls, name)
    if method is object.__str__:
        name = "__repr__"
        method = of_class(it, cls, name)
    owner = next((c for c in cls.__mro__ if vars(c).get(name) is method), None)
    key = value.root if isinstance(value, V.Ref) else method
    if owner is None or key in _asked.get() or method in _asked.get():
        return None
    written = isinstance(method, python.FunctionType) and not hasattr(method, "__wrapped__")
    if not written and not _is_generated(owner, method):
        return None
    if written and any(each.opname in _LOOPS for each in dis.get_instructions(method)):
        return None
    token = _asked.set(_asked.get() | {method if written else key})
    try:
        return _compiled(it, value, name) if written else _of_fields(it, value, owner)
    finally:
        _asked.reset(token)


def _is_generated(owner: type, method: Any) -> bool:
    """Whether this is the `__repr__` that `dataclass` wrote."""
    code = getattr(getattr(method, "__wrapped__", None), "__code__", None)
    return dataclasses.is_dataclass(owner) and code is not None and (
        code.co_filename == "<string>"
    )


def _compiled(it: Interpreter, value: V.Value, name: str) -> V.Value | None:
    """What the user's method gives; nothing of it stays if it is not compiled."""
    from pyrelay.infer.containers.text import is_text

    mark, heap, env = it.mark(), it.heap.copy(), dict(it.frame.env)
    try:
        found = protocols.special(it, value, name)
    except errors.PyrelayError:
        found = None
    cases = found.possible if isinstance(found, V.Union) else (found,)
    if all(case is not None and is_text(case) for case in cases):
        return found
    it.take_back(mark)
    it.heap.reset(heap)
    it.frame.env = env
    return None


def _of_fields(it: Interpreter, value: V.Ref | V.Data, owner: type) -> V.Value | None:
    """`Class(field=..., ...)`, which a dataclass says."""
    from pyrelay.infer.containers.text import joined, shown, text

    assert value.cls is not None
    pieces: list[V.Value] = []
    before = f"{value.cls.__qualname__}("
    for field in dataclasses.fields(owner):
        if not field.repr:
            continue
        held = get_attribute(it, value, field.name)
        if isinstance(held, (V.Data, V.Union)) or V.node_of(held) is not None:
            return None
        pieces += [V.Known(f"{before}{field.name}="), shown(it, held, "r", V.Known(""))]
        before = ", "
    end = ")" if pieces else f"{before})"
    return text(it, joined, *pieces, V.Known(end))
