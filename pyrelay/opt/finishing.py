"""What an elementwise kernel may do to a product of matrices while it is being stored.

In: the Let of a product, the Lets that are computed from it, the axes of their results. Out:
whether each element of the results needs just the element of the product at its own place, so that
finished parts of the product can be handed to their kernel, row by row, while they lie in the cache
(`lower/finishing.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, Let, OpCall
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType
from pyrelay.opt import places
from pyrelay.opt.shapes import shape_of

#: Schedules of products that hand on their parts, and how many of the last axes of the result are
#: the columns of a part; the axes before them are its rows.
COLUMN_AXES = {"matmul": 1}


def is_product(let: Let) -> bool:
    """Whether a Let is a product whose parts another kernel may finish."""
    if not isinstance(let.rhs, OpCall) or let.rhs.op.schedule not in COLUMN_AXES:
        return False
    ty = let.outs[0].type
    return isinstance(ty, TensorType) and ty.dtype.kind == "f"


def product_of(body: Block) -> Let | None:
    """The product among the Lets of a group, if there is one."""
    return next(filter(is_product, body.lets), None)


def first_column_axis(product: Let, space: Sequence[Extent]) -> int | None:
    """The axis of a space at which rows end and columns begin; None if the product has others."""
    assert isinstance(product.rhs, OpCall)
    shape, schedule = shape_of(product.outs[0]), product.rhs.op.schedule
    assert schedule is not None
    split = len(shape) - COLUMN_AXES[schedule]
    rows, columns = dims.product(shape[:split]), dims.product(shape[split:])
    for axis in range(len(space), -1, -1):
        if dims.product(space[axis:]) == columns and dims.product(space[:axis]) == rows:
            return axis
    return None


def finishes(product: Let, members: Iterable[Let], space: Sequence[Extent]) -> bool:
    """Whether Lets, in order, compute elements over `space` from those of a product at their place.

    Views of the product that keep its elements in order count as the product.
    """
    if first_column_axis(product, space) is None or dims.product(space) == 1:
        return False
    shown: set[Atom] = set(product.outs)
    made: set[Atom] = set()
    for let in members:
        rhs = let.rhs
        if let is product:
            continue
        if not isinstance(rhs, OpCall) or rhs.op.element is None or let.dims:
            return False
        if rhs.op.fusion is Fusion.REDUCTION or rhs.op.name in places.UPDATES:
            return False
        seen = [a for a in rhs.args if a in shown or a in made]
        if not seen:
            continue
        if places.is_view(rhs) and rhs.args[0] in shown:
            shown.update(let.outs)
            continue
        if rhs.op.fusion is not Fusion.ELEMENTWISE:
            return False
        if any(tuple(shape_of(a)) != tuple(space) for a in (*seen, *let.outs)):
            return False
        made.update(let.outs)
    return bool(made)
