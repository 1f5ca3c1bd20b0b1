"""What an element of an op costs on one thread, and how many one thread computes in no time.

In: a call of an op. Out: its cost in additions. Loops over arrays of so few elements that launches
would cost more are kernels of one thread (`infer/short_arrays`, `opt/scalars`).
"""

from __future__ import annotations

from pyrelay.ir import dims
from pyrelay.ir.nodes import OpCall
from pyrelay.ir.op import Promotion

#: What a round may cost on one thread, in additions of elements: ten microseconds.
_MOST_WORK = 16 * dims.NEAR
_SLOW = 32  # additions that a function of the library costs
_QUICK = frozenset([
    "sqrt", "square", "reciprocal", "absolute", "sign", "copysign", "floor", "ceil", "trunc",
    "rint",
])  # fmt: skip


def element_work(call: OpCall) -> int:
    """What an element costs, in additions."""
    function = call.op.promotion is Promotion.FLOAT and call.op.name not in _QUICK
    return _SLOW if function else 1


def most_elements(work: int) -> int:
    """How many elements of each array of a round one thread computes at no more cost than that of
    launches; work: what one of each costs, in additions."""
    return min(dims.NEAR, _MOST_WORK // max(work, 1))


__all__ = ["element_work", "most_elements"]
