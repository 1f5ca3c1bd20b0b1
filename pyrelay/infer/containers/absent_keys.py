"""Keys that a table surely lacks: `if key not in table: table[key] = value` enters one.

In: what `key in table` gave, and the key that a value is stored under. Out: whether the key was not
there where it was last asked for, and the table has the same ones since. Then no entry is written
over, so that what was read from other entries is still in the table.
"""

from __future__ import annotations

from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.flow import narrowing
from pyrelay.infer.in_python.tables import Table
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir.nodes import Var

_LACKED, _HAD = frozenset((0,)), frozenset((1,))


def note(it: Interpreter, table: V.Value, key: V.Value, found: V.Value) -> None:
    """Keep what a bool of the program says: whether a table has a key."""
    held = _keys(it, table)
    if held is not None and isinstance(found, V.Scalar) and isinstance(found.atom, Var):
        it.program.looked_up[found.atom] = key, held
        fact = narrowing.Fact(((found.atom, _HAD),), ((found.atom, _LACKED),))
        narrowing.note(it, found, fact)


def lacks(it: Interpreter, table: V.Value, key: V.Value) -> bool:
    """Whether a table surely has no such key here."""
    held = _keys(it, table)
    if held is None:
        return False
    for atom in {atom for atom, _ in it.assumed}:
        if it.cases.get(atom) == _LACKED and atom in it.program.looked_up:
            asked, before = it.program.looked_up[atom]
            if asked == key and all(a is b for a, b in zip(before, held, strict=True)):
                return True
    return False


def _keys(it: Interpreter, table: V.Value) -> tuple[Any, ...] | None:
    """What tells the keys of a table; None for what is none, or changes its items otherwise."""
    if not isinstance(table, V.Ref) or not isinstance(table.cls, type) or (
        getattr(table.cls, "__setitem__", None) is not Table.__setitem__
    ):
        return None
    content: Any = it.heap.contents[table.root]
    parts = [content[name] for name in ("names", "alive")]
    if not all(isinstance(part, V.Ref) for part in parts):
        return None
    return (table.root, *(it.heap.contents[part.root] for part in parts))


__all__ = ["lacks", "note"]
