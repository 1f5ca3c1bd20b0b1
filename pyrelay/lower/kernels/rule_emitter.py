"""The emitter that element rules meet.

In: what a rule computes. Out: its statements, with loops for reductions, for places of extremes and
for bisections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.ir.dims import Extent
from pyrelay.ir.types import DType, bool_, i64
from pyrelay.lower.kernels.bisection import Evenly, first_without
from pyrelay.lower.kernels.emitter import Emitter
from pyrelay.lower.kernels.extreme_places import index_of_extreme
from pyrelay.lower.kernels.reductions import Reduction, in_place
from pyrelay.lower.kernels.values import Value


class RuleEmitter(Emitter):
    """The emitter that element rules meet: scalars and reductions.

    While `captured` is a list, a reduction that a rule asks for is noted there instead of written,
    and the rule gets `placeholder`.
    """

    captured: list[Reduction] | None = None

    def reduce(
        self, op: str, extents: Sequence[Extent], element: Callable[[Any], Value], dtype: DType
    ) -> Value:
        """`op` over the elements at all index tuples below `extents`, computed in `dtype`.

        `op` is add, multiply, minimum, maximum, logical_and or logical_or.
        """
        reduction = Reduction(op, tuple(extents), element, dtype)
        if self.captured is not None:
            self.captured.append(reduction)
            return self.placeholder(dtype)
        return in_place(self, reduction)

    def argreduce(
        self, kind: str, extents: Sequence[Extent], element: Callable[[Any], Value]
    ) -> Value:
        """The flat index of the first "max" or "min"; NaN counts as the extreme, as in NumPy."""
        restore = self.scope.snapshot()
        dtype = element(tuple(self.const(0, i64) for _ in extents)).dtype
        restore()
        return index_of_extreme(self, kind, extents, element, dtype)

    def bisect(
        self, extent: Extent, asked: Callable[[Value], Value],
        number: tuple[Value, Callable[[Value], Value]] | None = None,
    ) -> Value:
        """The first of so many places where `asked` is not true, if it is true at all before.

        number: what is looked for, and the element at a place, as doubles (`Evenly`).
        """
        return first_without(self, extent, asked, None if number is None else Evenly(*number))

    def placeholder(self, dtype: DType) -> Value:
        """Stands for a captured reduction; equal to `const(0)` of the bool type nobody reads."""
        return self.const(False, bool_) if dtype == bool_ else self.const(0, dtype)
