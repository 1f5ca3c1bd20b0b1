"""What NumPy says of shapes that do not fit, for handlers that look at it.

In: types of arrays. Out: the text of NumPy's exception; None where extents are known at run time
only. Those of arguments are fixed: calls with other ones are other programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import TensorType

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter


def _shape(it: Interpreter, extents: Sequence[Extent]) -> str | None:
    """A shape as NumPy's messages have it, without spaces; None if it is not known."""
    known = [it.program.guards.fix(extent) for extent in extents]
    if None in known:
        return None
    spelled = ["newaxis" if extent == -1 else str(extent) for extent in known]
    return f"({','.join(spelled)}{',' * (len(spelled) == 1)})"


def not_broadcast(it: Interpreter, operands: Sequence[Atom]) -> str | None:
    """Of operands that do not broadcast to one shape."""
    shapes = [_shape(it, a.type.shape) for a in operands if isinstance(a.type, TensorType)]
    if None in shapes:
        return None
    return f"operands could not be broadcast together with shapes {' '.join(map(str, shapes))} "


def not_an_output(it: Interpreter, result: TensorType, target: TensorType) -> str | None:
    """Of an array that an operation in place cannot write its result into."""
    own, wanted = _shape(it, result.shape), _shape(it, target.shape)
    if own is None or wanted is None:
        return None
    return (
        f"non-broadcastable output operand with shape {wanted} doesn't match the broadcast shape "
        f"{own}"
    )


def not_stored(it: Interpreter, value: TensorType, part: TensorType) -> str | None:
    """Of a value that does not broadcast to the part of an array that it is assigned to."""
    own, wanted = _shape(it, value.shape), _shape(it, part.shape)
    if own is None or wanted is None:
        return None
    return f"could not broadcast input array from shape {own} into shape {wanted}"


def not_reshaped(it: Interpreter, size: Extent, shape: Sequence[Extent]) -> str | None:
    """Of a shape that holds another number of elements; -1 stands for the rest."""
    held = shape[1:] if shape[0] == -1 else shape  # NumPy leaves a leading -1 out, and the comma
    wanted, count = _shape(it, held), it.program.guards.fix(size)
    if wanted is None or count is None:
        return None
    if len(held) < len(shape):
        wanted = wanted.replace(",)", ")")
    return f"cannot reshape array of size {count} into shape {wanted}"


def not_multiplied(it: Interpreter, left: TensorType, right: TensorType) -> str | None:
    """Of operands of `@` whose inner axes differ."""
    ends = left.shape[-1], right.shape[-2 if right.rank > 1 else -1]
    inner, other = map(it.program.guards.fix, ends)
    if inner is None or other is None:
        return None
    return (
        "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
        f"(n?,k),(k,m?)->(n?,m?) (size {other} is different from {inner})"
    )
