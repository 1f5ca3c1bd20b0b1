"""What a program sees of a list that entered as arrays.

In: the key of its items (`columns`) and parameters of the program. Out: the growing content
(growing.py) whose rows these arrays are.
"""

from __future__ import annotations

from collections.abc import Callable

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers.columns import NUMBERS, Key
from pyrelay.ir import types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType


def content(
    key: Key, count: Extent, inner: Extent, parameter: Callable[[TensorType], Atom]
) -> V.Growing:
    """The content of a list of `count` items of a key; lists in it have room for `inner` items.

    parameter: gives the array of this type for the next leaf.
    """
    rows: list[Atom] = []

    def row(ty: TensorType, *extents: Extent) -> None:
        rows.append(parameter(TensorType(ty.dtype, (count, *extents))))

    def template(item: Key, *extents: Extent) -> L.Layout:
        match item:
            case ("tuple", cls, *parts):
                children = tuple(template(p, *extents) for p in parts)
                return L.LNode(("tuple", cls, len(parts)), children)
            case ("list", own):
                row(types.PY_INT)
                return L.LPlace(1, "list", None, L.LGrown(template(own, inner), inner))
            case ("number", name):
                ty = types.of_scalar(_EXAMPLES[name])
            case (_, name):
                ty = TensorType(types.DTYPES[name])
        assert ty is not None
        row(ty, *extents)
        return L.LScalar(ty)

    made = template(key)
    return V.Growing(V.Scalar.of_extent(count), tuple(rows), made, slots=object())


_EXAMPLES = {cls.__name__: cls(1) for cls in NUMBERS}
