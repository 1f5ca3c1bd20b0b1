"""What a program sees of a list that entered as arrays.

In: the key of its items (`columns`) and parameters of the program. Out: the growing content
(growing.py) whose rows these arrays are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers.columns import NUMBERS, Key
from pyrelay.infer.containers.open_layouts import OPEN_TEXT
from pyrelay.infer.slots import Inside
from pyrelay.ir import types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType


def content(
    key: Key, leaves: Iterable[int], extent: Callable[[int, int], Extent],
    parameter: Callable[[TensorType, int], Atom],
) -> V.Growing:
    """The content of a list of items of a key, whose arrays are these leaves.

    extent: gives that of a leaf along an axis. parameter: gives the array of this type for a leaf.
    Lists and texts in an item have room for what the second axis of their leaves says.
    """
    own = list(leaves)
    waiting, rows = iter(own), list[Atom]()
    count = extent(own[-1], 0)

    def row(ty: TensorType, *extents: Extent) -> None:
        rows.append(parameter(TensorType(ty.dtype, (count, *extents)), next(waiting)))

    def template(item: Key, places: Iterator[int], *extents: Extent) -> L.Layout:
        match item:
            case ("tuple", cls, *parts):
                children = tuple(template(p, places, *extents) for p in parts)
                return L.LNode(("tuple", cls, len(parts)), children)
            case ("list", inside):
                row(types.PY_INT, *extents)
                room = extent(own[len(rows)], 1 + len(extents))
                items = template(inside, itertools.count(1), *extents, room)
                own_slots = Inside(object()) if inside[0] == "list" else None
                grown = L.LGrown(items, room, slots=own_slots)
                return L.LPlace(next(places), "list", None, grown)
            case ("text",):
                row(types.PY_INT, *extents)
                room = extent(own[len(rows)], 1 + len(extents))
                row(types.PY_INT, *extents, room)
                grown = L.LGrown(L.LScalar(types.PY_INT), room)
                return L.LNode(OPEN_TEXT, (L.LPlace(next(places), "list", None, grown),))
            case ("letter",):
                row(types.PY_INT, *extents)
                return L.LETTER
            case ("numbers", *found):
                common, *kinds = (TensorType(types.DTYPES[name], (), weak) for name, weak in found)
                row(common, *extents)
                row(types.PY_INT, *extents)
                return L.LScalar(common, kinds=tuple(kinds))
            case ("number", name):
                ty = types.of_scalar(_EXAMPLES[name])
            case (_, name):
                ty = TensorType(types.DTYPES[name])
        assert ty is not None
        row(ty, *extents)
        return L.LScalar(ty)

    made = template(key, itertools.count(1))  # numbers as those of `as_template`
    return V.Growing(V.Scalar.of_extent(count), tuple(rows), made, slots=object())


_EXAMPLES = {cls.__name__: cls(1) for cls in NUMBERS}
