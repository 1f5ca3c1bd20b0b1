"""Gathers whose elements are computed where they are summed: `np.sum(v[a:b] * x[places[a:b]])`.

In: the Lets of a block of a kernel, in order. Out: for gathers with one reader after the other up
to a number that is made of all elements, each once, which Let makes that number. Then a gather
needs no memory, though its places have to be checked: nothing between the two can be noticed but
that extents are equal, and where they are not the places are checked first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyrelay.ir.nodes import Let, OpCall, Var
from pyrelay.ir.op import Effect, Fusion
from pyrelay.opt import places
from pyrelay.opt.shapes import GATHERS, is_array, same_elements, shape_of

_REDUCTIONS = frozenset(["sum", "prod", "max", "min"])
#: Ops whose elements are all of an operand's, each once.
SAME_ELEMENTS = frozenset(["reshape", "expand_dims", "squeeze", "refine", "transpose"])


def deferred(
    lets: Sequence[Let], readers: Mapping[Var, Sequence[Let]], uses: Mapping[Var, int]
) -> Iterable[tuple[Var, Let]]:
    """Each such gather of a block, and the Let that makes the number.

    readers: the Lets that read an array. uses: how often it is read, or is a result.
    """
    position = {let: k for k, let in enumerate(lets)}
    for k, let in enumerate(lets):
        if not isinstance(let.rhs, OpCall) or let.rhs.op.name not in GATHERS:
            continue
        end = _end(let.outs[0], readers, uses)
        between = lets[k + 1 : position.get(end, 0)] if end is not None else ()
        if end in position and all(map(_is_unnoticed, between)):
            assert end is not None
            yield let.outs[0], end


def _end(
    var: Var, readers: Mapping[Var, Sequence[Let]], uses: Mapping[Var, int]
) -> Let | None:
    """The Let that makes a number of all elements of an array, if all on the way is read once."""
    reduced = False
    while True:
        if uses.get(var) != 1 or len(readers.get(var, ())) != 1:
            return None
        (let,) = readers[var]
        call = let.rhs
        if not isinstance(call, OpCall) or not _is_unnoticed(let) or len(let.outs) != 1:
            return None
        if call.op.fusion is Fusion.REDUCTION:
            if reduced or call.op.name not in _REDUCTIONS or len(call.args) != 1:
                return None
            axes = call.attrs["axes"]
            kept = [d for k, d in enumerate(shape_of(var)) if k not in axes]
            if any(d != 1 for d in kept):
                return None
            reduced = True
        elif call.op.fusion is Fusion.ELEMENTWISE:
            if not same_elements(shape_of(var), shape_of(let.outs[0])):
                return None
        elif call.op.name not in SAME_ELEMENTS:
            return None
        var = let.outs[0]
        if not is_array(var):
            return let if reduced else None


def _is_unnoticed(let: Let) -> bool:
    """Whether nobody notices when a Let is run, but for an error that extents are not equal."""
    call = let.rhs
    if not isinstance(call, OpCall) or call.op.name in places.UPDATES:
        return False
    return call.op.effect is Effect.PURE or call.op.name == "check_equal"
