"""Which way integers of a loop go from its first round to its last.

In: what computes them, and the way of those they are made of. Out: their way, and at which end of
the loop a comparison of them is true if it is anywhere: there alone it has to be asked.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from pyrelay.lower.kernels.kernel import Compute, Literal, Local, Operand
from pyrelay.lower.passes.loop_front import ORDER


class Slopes:
    """The ways of a loop's integers: 1 from the least to the greatest, -1 the other way, 0 for one
    that stays, None if that is not known."""

    def __init__(self, makers: Mapping[Local, Compute]) -> None:
        self._makers = makers
        #: Of the loop's index, of counters, and of other numbers that what is asked is made of.
        self.known: dict[Operand, int | None] = {}

    def of(self, operand: Operand) -> int | None:
        """The way of a number. What the loop does not compute stays."""
        if operand not in self.known:
            compute = self._makers.get(operand)  # type: ignore[arg-type]
            self.known[operand] = 0 if compute is None else self._made(compute)
        return self.known[operand]

    def end(self, compute: Compute) -> int | None:
        """The end at which a comparison is true if it is anywhere, 0 or 1; None if that is not
        known."""
        if compute.primitive not in ORDER:
            return None
        first, second = map(self.of, compute.args)
        slope = _joined(first, _turned(second))
        if slope is None:
            return None
        return int((slope > 0) == (compute.primitive in ("greater", "greater_equal")))

    def goes_through(
        self, asked: Iterable[Compute], index: Local, start: Operand, extents: Container[Operand]
    ) -> bool:
        """Whether what is asked lies inside an array, at another place in each round. That an index
        is not negative is not asked where it begins at zero."""
        natural = isinstance(start, Literal) and start.value >= 0
        sides: dict[Operand, set[str]] = {index: {"less"}} if natural else {}
        for compute in asked:
            if compute.primitive in ("less", "greater_equal"):
                a, b = compute.args
                if compute.primitive == "less" or b in extents:
                    sides.setdefault(a, set()).add(compute.primitive)
        return any(len(names) == 2 and self.of(a) for a, names in sides.items())

    def _made(self, compute: Compute) -> int | None:
        slopes = [self.of(a) for a in compute.args]
        if not any(slopes) and None not in slopes:
            return 0
        match compute.primitive, slopes:
            case "add", [a, b]:
                return _joined(a, b)
            case "subtract", [a, b]:
                return _joined(a, _turned(b))
            case "negative", [a]:
                return _turned(a)
            case "multiply", [a, b]:
                for slope, by in ((a, compute.args[1]), (b, compute.args[0])):
                    if isinstance(by, Literal) and by.value:
                        return slope if by.value > 0 else _turned(slope)
        return None


def _turned(slope: int | None) -> int | None:
    return None if slope is None else -slope


def _joined(a: int | None, b: int | None) -> int | None:
    """The way of a sum of what goes one way each; None if they go apart."""
    return None if a is None or b is None or a * b < 0 else a or b
