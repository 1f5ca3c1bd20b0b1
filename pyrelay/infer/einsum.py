"""np.einsum of one or two operands, as transposes, sums and one matmul.

In: subscripts known while compiling. Out: the contraction in its matrix form: axes that both
operands and the result have are a batch, those only the operands have are contracted.
"""

from __future__ import annotations

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.adapters import operand
from pyrelay.infer.contraction import matmul
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import handles
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent


@handles(np.einsum)
def einsum(it: Interpreter, subscripts: V.Value, *operands: V.Value) -> V.Value:
    """np.einsum(subscripts, a[, b]) without ellipses and repeated letters in one operand."""
    text = it.static(subscripts, "the subscripts of einsum").replace(" ", "")
    given, _, wanted = text.partition("->")
    inputs = given.split(",")
    if "->" not in text:
        wanted = "".join(sorted(c for c in set(given) - {","} if given.count(c) == 1))
    values = [operand(it, v) for v in operands]
    plain = all(len(set(i)) == len(i) and i.isalpha() for i in inputs)
    if not plain or len(inputs) not in (1, 2) or len(inputs) != len(values):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"np.einsum({text!r}) is not supported: one or two operands, with letters that differ "
            "within each, are",
        )
    extents = _extents(it, inputs, values)
    if len(values) == 1:
        return _arranged(it, values[0], inputs[0], wanted)
    return _contracted(it, inputs, values, wanted, extents)


def _extents(
    it: Interpreter, inputs: list[str], values: list[V.Value]
) -> dict[str, Extent]:
    extents: dict[str, Extent] = {}
    for letters, value in zip(inputs, values, strict=True):
        ty = it.tensor(value)
        if len(letters) != ty.rank:
            raise it.failure(
                errors.ShapeError, f"the subscripts {letters!r} do not name each axis of {ty}"
            )
        for letter, extent in zip(letters, ty.shape, strict=True):
            if it.program.guards.equal(extents.setdefault(letter, extent), extent) is False:
                raise it.failure(
                    errors.ShapeError,
                    f"the axes {letter!r} of the operands differ: {dims.show(extents[letter])} and "
                    f"{dims.show(extent)}",
                )
    return extents


def _arranged(it: Interpreter, value: V.Value, letters: str, wanted: str) -> V.Value:
    """The sum over the letters that are not wanted, the rest in the wanted order."""
    gone = tuple(k for k, c in enumerate(letters) if c not in wanted)
    if gone:
        value = it.call("sum", value, axes=gone, keepdims=False)
    left = [c for c in letters if c in wanted]
    order = tuple(left.index(c) for c in wanted)
    if order == tuple(range(len(order))):
        return value
    return it.call("transpose", value, axes=order)


def _contracted(
    it: Interpreter, inputs: list[str], values: list[V.Value], wanted: str,
    extents: dict[str, Extent],
) -> V.Value:
    a, b = inputs
    batch = [c for c in a if c in b and c in wanted]
    inner = [c for c in a if c in b and c not in wanted]
    rows = [c for c in a if c not in b and c in wanted]
    columns = [c for c in b if c not in a and c in wanted]

    def size(letters: list[str]) -> Extent:
        return dims.product(extents[c] for c in letters)

    outer = tuple(extents[c] for c in batch)
    left = _arranged(it, values[0], a, "".join(batch + rows + inner))
    right = _arranged(it, values[1], b, "".join(batch + inner + columns))
    left = it.call("reshape", left, shape=(*outer, size(rows), size(inner)))
    right = it.call("reshape", right, shape=(*outer, size(inner), size(columns)))
    product = matmul(it, left, right)
    shape = (*outer, *(extents[c] for c in rows), *(extents[c] for c in columns))
    return _arranged(
        it, it.call("reshape", product, shape=shape), "".join(batch + rows + columns), wanted
    )
