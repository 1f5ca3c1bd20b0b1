"""Lists, tuples and sets with starred items: `[1.0, *items]`.

In: the items of a display. Out: a list of them, where the length of a starred one is known only to
the running program.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.infer import values as V
from pyrelay.infer.containers import lists
from pyrelay.infer.interpreter import Interpreter


def joined(
    it: Interpreter, args: Sequence[V.Value], starred: Sequence[bool]
) -> V.Ref | None:
    """A list of the items, where only the running program knows how many these are; else None.

    What can be known to the next attempt, as the extent of an argument, counts as known.
    """
    from pyrelay.infer import methods
    from pyrelay.infer.names.builtins import list_

    pairs = list(zip(args, starred, strict=True))
    if not any(is_open(it, value) for value, spread in pairs if spread):
        return None
    made = it.new_ref("list", ())
    for value, spread in pairs:
        if spread:
            methods.call(it, made, "extend", (list_(it, value),), {})
        else:
            methods.call(it, made, "append", (value,), {})
    return made


def is_open(it: Interpreter, value: V.Value) -> bool:
    """Whether only the running program knows how many items there are."""
    if isinstance(value, (V.OpenTuple, V.Items)):
        return True
    content = lists.growing_content(it, value)
    if content is not None:
        return not isinstance(content.count, V.Known)
    if not isinstance(value, V.ArrayRef) or not value.type.shape:
        return False
    extent = value.type.shape[0]
    return not isinstance(extent, int) and it.program.guards.fix(extent) is None
