"""Python's operators in place: `x += y` and the like.

In: an operator and two values. Out: the value that the name has then; an array, a list or a dict is
changed itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import protocols, wide
from pyrelay.infer import values as V
from pyrelay.infer.arrays.numpys_words import not_an_output
from pyrelay.infer.containers import sets
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.operators import binary, over_cases, waiting
from pyrelay.ir import types
from pyrelay.ir.types import TensorType

_PYTHON_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv,
    "//": operator.ifloordiv, "%": operator.imod, "**": operator.ipow, "@": operator.imatmul,
    "&": operator.iand, "|": operator.ior, "^": operator.ixor, "<<": operator.ilshift,
    ">>": operator.irshift,
}


def _of_shape(it: Interpreter, op: str, result: V.Value, target: TensorType) -> V.Value:
    """The result of `op=`, which has to have the shape of what it is written into."""
    ty = it.tensor(result)
    pairs = list(zip(ty.shape, target.shape, strict=False))
    answers = [it.program.guards.equal(own, wanted) for own, wanted in pairs]
    if ty.rank != target.rank or False in answers:
        from pyrelay.infer.flow.handling import without_words

        failure = it.failure(
            errors.ShapeError,
            f"'{op}=' cannot write {ty} into {target}: the result has another shape",
            hints=(f"write 'x = x {op} y' to make a new array",),
        )
        raise without_words(it, failure, ValueError, not_an_output(it, ty, target))
    for (own, wanted), answer in zip(pairs, answers, strict=True):
        if answer is None:
            it.emit("check_equal", left=own, right=wanted, text=_OUTPUT)
    return result if all(answers) else it.call("refine", result, shape=target.shape)


_OUTPUT = "non-broadcastable output operand with shape ({1},) doesn't match the shape ({0},)"


def inplace(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value:
    """The new value of `x` after `x op= y`; an array or list is changed itself."""
    from pyrelay.infer.arrays.storing import write_whole

    if isinstance(x, V.Union) or isinstance(y, V.Union):
        result = over_cases(
            it, x, y, lambda a, b: wide.settled(it, inplace(it, op, a, b)), _PYTHON_INPLACE[op]
        )
        cases = x.possible if isinstance(x, V.Union) else (x,)
        return x if all(isinstance(c, V.ArrayRef) for c in cases) else result
    if isinstance(x, V.ArrayRef):
        result = _of_shape(it, op, binary(it, op, x, y), x.type)
        write_whole(it, x, _same_kind(it, op, result, x.type))
        return x
    changed = sets.inplace(it, op, x, y) or protocols.inplace(it, op, x, y)
    if changed is not None:
        return changed
    if V.is_list(x) and isinstance(y, V.ArrayRef) and y.type.shape:
        return binary(it, op, x, y)  # the array is asked first, so that the name becomes an array
    if (V.is_list(x) and op == "+") or (_is_dict(x) and op == "|"):
        from pyrelay.infer.attributes import call_method

        call_method(it, V.Method(x, "extend" if op == "+" else "update"), (y,), {})
        return x
    result = waiting(it, op, x, y)
    if V.is_list(x) and op == "*":
        from pyrelay.infer.arrays.subscripts import set_item

        set_item(it, x, V.Slice(V.NONE, V.NONE, V.NONE), result)
        return x
    return result


def _is_dict(value: V.Value) -> bool:
    return isinstance(value, V.Ref) and value.root.kind == "dict"


def _same_kind(it: Interpreter, op: str, result: V.Value, target: types.TensorType) -> Any:
    """The result cast to the array's dtype, as NumPy's casting='same_kind' allows."""
    ty = it.tensor(result)
    if not np.can_cast(ty.dtype.numpy, target.dtype.numpy, "same_kind"):
        raise it.failure(
            errors.TypeMismatchError,
            f"'{op}=' cannot write {ty} into {target}: NumPy does not cast {ty.dtype} to "
            f"{target.dtype} here",
            hints=(f"write 'x = x {op} y' to make a new array",),
        )
    return it.builder.cast(it.atom(result), target.dtype)
