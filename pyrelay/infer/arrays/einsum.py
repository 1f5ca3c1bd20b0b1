"""np.einsum as diagonals, sums, transposes and matmuls of one pair of operands after the other.

In: subscripts known while compiling. Out: contractions in their matrix form: axes that both
operands and the result have are a batch, those only the operands have are contracted. A letter
that no later operand and not the result has is summed as soon as it can be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.arrays.contraction import matmul
from pyrelay.infer.arrays.stretching import refined_along
from pyrelay.infer.arrays.subscripts import get_item
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import cast, operand
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.names.shape import transpose, view
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import TensorType

_FIRST = 0xE000  # letters of the axes of an ellipsis, counted from the last axis


@handles(np.einsum)
def einsum(
    it: Interpreter, *operands: V.Value, optimize: V.Value = V.Known(False),
    dtype: V.Value = V.NONE,
) -> V.Value:
    """np.einsum(subscripts, *operands), or np.einsum(a, letters, b, letters, ..., letters)."""
    inputs, wanted, given = _subscripts(it, operands)
    values = [cast(it, operand(it, v), dtype) for v in given]
    result_type, _ = types.promote([it.tensor(v) for v in values])
    if result_type is types.bf16:
        raise it.failure(
            errors.TypeMismatchError, "np.einsum does not take bfloat16",
            hints=("convert the operands, as with x.astype(np.float32), or use @",),
        )
    inputs, wanted = _without_ellipsis(it, inputs, wanted, values)
    text = ",".join(inputs)
    if wanted is None:
        letters = [c for c in sorted(set(text) - {","}) if text.count(c) == 1]
        wanted = _ellipsis_first("".join(letters), text)
    if len(set(wanted)) != len(wanted) or set(wanted) - set(text):
        raise it.failure(
            errors.InvalidValueError,
            "each letter of einsum's result stands in it once, and in an operand",
        )
    if len(values) == 1 and isinstance(values[0], V.ArrayRef):
        same = _diagonal_view(it, values[0], inputs[0], wanted)
        if same is not None:
            return same
    extents, values = _extents(it, inputs, values)
    for k, letters_of in enumerate(inputs):
        values[k], inputs[k] = _simple(it, values[k], letters_of, extents)
    value, letters_now = values[0], inputs[0]
    for k in range(1, len(values)):
        later = {*wanted, *"".join(inputs[k + 1 :])}
        kept = "".join(dict.fromkeys(c for c in letters_now + inputs[k] if c in later))
        value = _contracted(it, [letters_now, inputs[k]], [value, values[k]], kept, extents)
        letters_now = kept
    value = _arranged(it, value, letters_now, wanted)
    return cast(it, value, result_type)


def _subscripts(
    it: Interpreter, operands: tuple[V.Value, ...]
) -> tuple[list[str], str | None, tuple[V.Value, ...]]:
    """The letters of the operands, those of the result (None: not given), and the operands."""
    if not operands:
        raise it.failure(errors.SignatureError, "einsum() needs subscripts and operands")
    if V.tensor_type(operands[0]) is None:
        text = it.static(operands[0], "the subscripts of einsum").replace(" ", "")
        left, arrow, right = text.replace("...", ".").partition("->")
        inputs = left.split(",")
        if len(inputs) != len(operands) - 1:
            raise it.failure(
                errors.InvalidValueError,
                f"einsum({text!r}) names {len(inputs)} operands, and {len(operands) - 1} are given",
            )
        return inputs, right if arrow else None, operands[1:]
    lists = [_letters(it, v) for v in operands[1::2]]
    if len(operands) % 2:
        return lists, _letters(it, operands[-1]), operands[:-1:2]
    return lists, None, operands[::2]


def _letters(it: Interpreter, value: V.Value) -> str:
    """Letters for a list of numbers and Ellipsis."""
    items = it.static(value, "the subscripts of einsum")
    return "".join("." if i is Ellipsis else chr(ord("A") + i + 6 * (i > 25)) for i in items)


def _ellipsis_first(letters: str, text: str) -> str:
    """The letters of a result that is not given: those of an ellipsis stand first, whole."""
    broadcast = sorted({c for c in text if ord(c) >= _FIRST}, reverse=True)
    return "".join(broadcast) + "".join(c for c in letters if ord(c) < _FIRST)


def _without_ellipsis(
    it: Interpreter, inputs: list[str], wanted: str | None, values: list[V.Value]
) -> tuple[list[str], str | None]:
    """Letters in place of each ellipsis."""
    most, written = 0, []
    for letters, value in zip(inputs, values, strict=True):
        rank = it.tensor(value).rank
        count = rank - len(letters.replace(".", ""))
        if count < 0 or letters.count(".") > 1 or (count and "." not in letters):
            raise it.failure(
                errors.ShapeError,
                f"the subscripts {letters.replace('.', '...')!r} do not name each axis of "
                f"{it.tensor(value)}",
            )
        axes = "".join(chr(_FIRST + k) for k in reversed(range(count)))
        most = max(most, count)
        written.append(letters.replace(".", axes))
    if wanted is not None:
        axes = "".join(chr(_FIRST + k) for k in reversed(range(most)))
        wanted = wanted.replace(".", axes)
    return written, wanted


def _extents(
    it: Interpreter, inputs: list[str], values: list[V.Value]
) -> tuple[dict[str, Extent], list[V.Value]]:
    """The extent of each letter, and the operands with it: what only the running program can
    compare is checked there."""
    extents: dict[str, Extent] = {}
    for k, letters in enumerate(inputs):
        for axis, letter in enumerate(letters):
            extent = it.tensor(values[k]).shape[axis]
            known = extents.setdefault(letter, extent)
            if known == 1:
                extents[letter] = extent
            elif extent != 1:
                equal = it.program.guards.equal(known, extent)
                if equal is False:
                    raise it.failure(
                        errors.ShapeError,
                        f"the axes {letter!r} of the operands differ: {dims.show(known)} and "
                        f"{dims.show(extent)}",
                    )
                if equal is None:
                    values = list(values)
                    values[k] = refined_along(it, values[k], axis, known)
    return extents, values


def _simple(
    it: Interpreter, value: V.Value, letters: str, extents: dict[str, Extent]
) -> tuple[V.Value, str]:
    """The operand without axes of extent 1 that broadcast, and with diagonals in place of pairs."""
    spread = tuple(
        k for k, c in enumerate(letters)
        if it.tensor(value).shape[k] == 1 and extents[c] != 1
    )
    if spread:
        value = it.call("squeeze", value, axes=spread)
        letters = "".join(c for k, c in enumerate(letters) if k not in spread)
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            first, second = letters.index(c), letters.rindex(c)
            value = _diagonal(it, value, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + c
    return value, letters


def _diagonal_view(
    it: Interpreter, array: V.ArrayRef, letters: str, wanted: str
) -> V.Value | None:
    """The result where it is the diagonal of a square matrix, which can be written to."""
    if len(letters) == 2 and len(wanted) == 1 == len(set(letters)):
        size, whole = array.type.shape[0], array.type.size
        if it.program.guards.equal(size, array.type.shape[1]) is True:
            step = V.Scalar.of_extent(dims.add(size, 1))
            ty = TensorType(array.type.dtype, (whole,))
            flat = view(it, array, "reshape", ty, shape=ty.shape)
            return get_item(it, flat, V.Slice(V.NONE, V.NONE, step))
    return None


def _diagonal(it: Interpreter, value: V.Value, first: int, second: int) -> V.Value:
    from pyrelay.infer.in_python import arrangement
    from pyrelay.infer.names.composed import in_python

    take: Any = in_python("np.einsum", arrangement.diagonal)
    found: V.Value = take(it, value, V.Known(0), V.Known(first), V.Known(second))
    return found


def _arranged(it: Interpreter, value: V.Value, letters: str, wanted: str) -> V.Value:
    """The sum over the letters that are not wanted, the rest in the wanted order."""
    gone = tuple(k for k, c in enumerate(letters) if c not in wanted)
    if gone:
        value = it.call("sum", value, axes=gone, keepdims=False)
    left = [c for c in letters if c in wanted]
    order = tuple(left.index(c) for c in wanted)
    if order == tuple(range(len(order))):
        return value
    return transpose(it, value, V.Known(order))


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
    if not inner:  # nothing is added up: element by element
        left = _arranged(it, values[0], a, "".join(batch + rows))
        right = _arranged(it, values[1], b, "".join(batch + columns))
        if columns:
            own = tuple(extents[c] for c in rows)
            left = it.call("reshape", left, shape=(*outer, *own, *(1 for _ in columns)))
        if rows:
            own = tuple(extents[c] for c in columns)
            right = it.call("reshape", right, shape=(*outer, *(1 for _ in rows), *own))
        found = it.call("multiply", left, right)
        return _arranged(it, found, "".join(batch + rows + columns), wanted)
    if batch and not rows and not columns:
        # products of lines of their own: one kernel multiplies and adds up
        lines = [
            _arranged(it, v, letters, "".join(batch + inner))
            for v, letters in zip(values, inputs, strict=True)
        ]
        found = it.call("multiply", *lines)
        axes = tuple(range(len(batch), len(batch) + len(inner)))
        found = it.call("sum", found, axes=axes, keepdims=False)
        return _arranged(it, found, "".join(batch), wanted)

    left = _arranged(it, values[0], a, "".join(batch + rows + inner))
    right = _arranged(it, values[1], b, "".join(batch + inner + columns))
    left = it.call("reshape", left, shape=(*outer, size(rows), size(inner)))
    right = it.call("reshape", right, shape=(*outer, size(inner), size(columns)))
    product = matmul(it, left, right)
    shape = (*outer, *(extents[c] for c in rows), *(extents[c] for c in columns))
    return _arranged(
        it, it.call("reshape", product, shape=shape), "".join(batch + rows + columns), wanted
    )
