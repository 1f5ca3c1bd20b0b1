"""Parts of vectors that are computed from their own neighbours: `u[1:] -= c * (u[1:] - u[:-1])`.

In: what an update stores into a part of a vector, who makes that. Out: how many elements behind
the one that is replaced each slice of the vector reads, if the elements can be replaced one after
the other: those ahead have their old values then, and a few of those behind can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from pyrelay.ir import dims
from pyrelay.ir.nodes import Atom, Let, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.opt.shapes import is_array, shape_of

_MOST_KEPT = 4  # old elements


def behind(
    value: Var, update: OpCall, makers: Mapping[Var, Let], computed: Container[Var],
    touches: Callable[[Var], bool], is_updated: Callable[[Atom], bool],
) -> dict[Var, int] | None:
    """The slices that read elements which are replaced before, and how many elements ago.

    computed: the variables that have no memory. touches: whether a variable stands in the buffer
    of the vector or is computed from it. is_updated: whether it is the vector, as it is before.
    None if others than slices in the update's steps read the vector, or elements too far behind.
    """
    found: dict[Var, int] = {}
    pending, seen = [value], {value}
    while pending:
        here = pending.pop()
        if not touches(here):
            continue
        let = makers.get(here)
        if here not in computed or let is None or not isinstance(let.rhs, OpCall):
            return None
        call = let.rhs
        distance = _distance(call, update) if is_updated(call.args[0]) else None
        if distance is not None:
            if distance > _MOST_KEPT:
                return None
            if distance > 0:
                found[here] = distance
            continue
        if call.op.fusion is not Fusion.ELEMENTWISE:
            return None
        for arg in call.args:
            if isinstance(arg, Var) and is_array(arg) and arg not in seen:
                if shape_of(arg) != shape_of(value) and touches(arg):
                    return None
                seen.add(arg)
                pending.append(arg)
    return found


def _distance(read: OpCall, update: OpCall) -> int | None:
    """How many elements behind that which an update replaces a slice reads, negative for ahead."""
    if read.op.name != "slice" or "sizes" not in update.attrs:
        return None
    if len(update.attrs["sizes"]) != 1 or read.attrs["sizes"] != update.attrs["sizes"]:
        return None
    (step,), (other,) = update.attrs["steps"], read.attrs["steps"]
    (start,), (first,) = update.attrs["starts"], read.attrs["starts"]
    apart = dims.add(start, dims.multiply(-1, first))
    if step != other or not isinstance(step, int) or step < 1 or not isinstance(apart, int):
        return None
    return 0 if apart % step else apart // step  # 0: none of those that are replaced
