"""What an elementwise kernel may do to a product of matrices or images while it is being stored.

In: the Let of a product, the Lets that are computed from it, the axes of their results. Out:
whether each element of the results needs just the element of the product at its own place, so that
finished parts of the product can be handed to their kernel, row by row, while they lie in the cache
(`lower/planning/finishing.py`).

A convolution of 16-bit floats is a `KernelCall` of its own (`half_products`), and stands in the
group with the casts of its operands.

The product may be several matrices of the results' shape side by side, as the gates of a recurrent
cell are: `z = h @ U`, then `z[:, :n]`, `z[:, n:2 * n]` and so on. Then an element of the results
needs the elements of the product at its place in each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Block, KernelCall, Let, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType
from pyrelay.opt import places
from pyrelay.opt.half_products import half_product_of
from pyrelay.opt.shapes import shape_of


def _column_axes(let: Let) -> int:
    """How many of the last axes of a product are the columns of its parts; the axes before them
    are the rows. 0 for what is no product that hands on its parts."""
    rhs = let.rhs
    if isinstance(rhs, KernelCall):  # an image of 16-bit floats; matrices of them are a library's
        inner = half_product_of(rhs.function.body)
        if inner is None or walk.call_of(inner).op.schedule != "convolution":
            return 0
        rhs = inner.rhs
    if not isinstance(rhs, OpCall):
        return 0
    if rhs.op.schedule == "matmul":
        return 1
    if rhs.op.name in ("convolve", "convolve_back"):
        return 1 if rhs.attrs["channels_last"] else len(rhs.attrs["size"])
    return 0


def is_product(let: Let) -> bool:
    """Whether a Let is a product whose parts another kernel may finish."""
    ty = let.outs[0].type if let.outs else None
    return isinstance(ty, TensorType) and ty.dtype.kind == "f" and _column_axes(let) > 0


def product_of(body: Block) -> Let | None:
    """The product among the Lets of a group, if there is one."""
    return next(filter(is_product, body.lets), None)


def operands_of(body: Block, product: Let) -> tuple[Atom, ...]:
    """What the product of a group reads in memory: images of 16-bit floats before they are cast."""
    cast = {let.outs[0]: let for let in body.lets if walk.is_call(let, "cast")}
    return tuple(
        walk.call_of(cast[a]).args[0] if isinstance(a, Var) and a in cast else a
        for a in walk.call_of(product).args
    )


def first_column_axis(product: Let, space: Sequence[Extent]) -> int | None:
    """The axis of a space at which rows end and columns begin; None if the product has others."""
    shape = shape_of(product.outs[0])
    split = len(shape) - _column_axes(product)
    rows, columns = dims.product(shape[:split]), dims.product(shape[split:])
    for axis in range(len(space), -1, -1):
        if dims.product(space[axis:]) == columns and dims.product(space[:axis]) == rows:
            return axis
    return None


_MOST_GATES = 8


def gates(product: Let, members: Sequence[Let], space: Sequence[Extent]) -> int:
    """How many matrices over `space` a product is whose elements Lets, in order, compute with at
    their place. 1 if it is one matrix; 0 if the Lets do anything else with it."""
    if finishes(product, members, space):
        return 1
    whole = shape_of(product.outs[0])
    count = _side_by_side(product, whole, space)
    wide, narrow = set(product.outs), set[Atom]()
    for let in members:
        rhs = let.rhs
        if let is product:
            continue
        if not _computes_elements(let):
            return 0
        assert isinstance(rhs, OpCall)
        seen = [a for a in rhs.args if a in wide or a in narrow]
        if not seen:
            continue
        if rhs.op.name == "slice" and rhs.args[0] in wide and _is_gate(rhs, space, count):
            narrow.update(let.outs)
            continue
        shape, known = (whole, wide) if seen[0] in wide else (tuple(space), narrow)
        if rhs.op.fusion is not Fusion.ELEMENTWISE:
            return 0
        if any(tuple(shape_of(a)) != shape for a in (*seen, *let.outs)):
            return 0
        known.update(let.outs)
    return count if narrow else 0


def _side_by_side(product: Let, whole: Sequence[Extent], space: Sequence[Extent]) -> int:
    """How many matrices over `space` a product of two matrices is as wide as; 0 if none."""
    if not isinstance(product.rhs, OpCall) or product.rhs.op.schedule != "matmul":
        return 0
    ranks = [len(shape_of(a)) for a in (*product.rhs.args, *product.outs)]
    if ranks != [2, 2, 2] or len(space) != 2 or whole[0] != space[0] or 1 in (*whole, *space):
        return 0
    counts = (c for c in range(2, _MOST_GATES + 1) if dims.multiply(space[1], c) == whole[1])
    return next(counts, 0)


def _is_gate(rhs: OpCall, space: Sequence[Extent], count: int) -> bool:
    """Whether a slice is one of the matrices side by side."""
    starts, sizes = rhs.attrs["starts"], tuple(rhs.attrs["sizes"])
    if sizes != tuple(space) or len(sizes) != 2 or tuple(rhs.attrs["steps"]) != (1, 1):
        return False
    lefts = [dims.multiply(space[1], gate) for gate in range(count)]
    return starts[0] == 0 and starts[1] in lefts


def _computes_elements(let: Let) -> bool:
    """Whether a Let gives elements that can be computed anywhere, without any reduction."""
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.element is None or let.dims:
        return False
    return rhs.op.fusion is not Fusion.REDUCTION and rhs.op.name not in places.UPDATES


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
        if not _computes_elements(let):
            return False
        assert isinstance(rhs, OpCall)
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
