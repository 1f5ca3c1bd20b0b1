"""Programs whose objects are all records: structures of objects that are known while compiling.

In: calls with objects of the user, in attempts that have no nodes (`Program.unfolds`): those come
behind all others, where nodes cannot hold what the program gives them, such as arrays of several
shapes. Out: which of these calls are interpreted in line, however deep they call themselves: what
they do is decided by the structure of the objects, so that it ends where the structure does.

Objects are then known apart from each other, and what goes through them is unrolled: the program is
as long as what it does to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrelay.infer import values as V
from pyrelay.infer.nodes.annotations import is_record_class

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter

DEEPEST = 150
"""How often a function calls itself: Python's own frames are several for each."""


def is_unfolded(it: Interpreter, values: Sequence[V.Value]) -> bool:
    """Whether a call with these arguments is in line, as there is an object of the user in them."""
    return it.program.unfolds and any(map(_holds_object, values))


def is_of_few(it: Interpreter, keys: Sequence[V.Value]) -> bool:
    """Whether a dict or set made with these keys has objects for keys, or may get such."""
    return it.program.unfolds and (not keys or is_unfolded(it, keys))


def _holds_object(value: V.Value) -> bool:
    if isinstance(value, V.Tuple):
        return any(map(_holds_object, value.items))
    return isinstance(value, V.Ref) and value.cls is not None and is_record_class(value.cls)
