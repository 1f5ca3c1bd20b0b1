"""Totals of a loop: integers to which each round adds what lies between constants.

In: what computes and sets the integers of an innermost loop. Out: for a variable such as `total` in
`total += x % 1000` the most that a round adds and takes away, and which sums are those. In front of
the loop the number of its rounds then says whether any of these sums can leave 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import Assign, Compute, Local, Operand
from pyrelay.lower.kernels.values import operand_key
from pyrelay.lower.passes.intervals import (
    ANY,
    GREATEST,
    LEAST,
    Interval,
    constant,
    whatever_variables_are,
)
from pyrelay.lower.passes.loop_front import SUMS
from pyrelay.records import dataclass

_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Total:
    """What one round may add to a variable, and the keys of the sums that do."""

    least: int
    greatest: int
    sums: frozenset[tuple[object, ...]]


def sum_key(compute: Compute) -> tuple[object, ...]:
    """What tells a sum from others: of its check, too."""
    name = compute.primitive.removesuffix("_overflows")
    return (name, *map(operand_key, compute.args))


class Totals:
    """Finds totals: `makers` compute the loop's integers, `chosen` are variables that each round
    sets in both arms of a branch before it reads them."""

    def __init__(
        self, makers: Mapping[Local, Compute], chosen: Mapping[Local, tuple[Operand, ...]]
    ) -> None:
        self._makers, self._chosen = makers, chosen
        self._known = whatever_variables_are(makers.values(), chosen)

    def of(self, variable: Local, assigns: Sequence[Assign]) -> Total | None:
        """The total that a variable is, if all its Assigns in the loop add to it or take away."""
        if variable.dtype != i64:
            return None
        least, greatest = 0, 0
        sums: set[tuple[object, ...]] = set()
        for assign in assigns:
            added = self._added(variable, assign.value, sums, 0)
            if added.low == LEAST or added.high == GREATEST:
                return None
            least, greatest = least + min(added.low, 0), greatest + max(added.high, 0)
        return Total(least, greatest, frozenset(sums))

    def _added(
        self, variable: Local, value: Operand, sums: set[tuple[object, ...]], depth: int
    ) -> Interval:
        """What a value is more than a variable, the keys of the sums among `sums`."""
        if value is variable:
            return constant(0)
        if not isinstance(value, Local) or depth > _DEEPEST:
            return ANY
        maker = self._makers.get(value)
        arms = self._chosen.get(value) if value.variable else None
        if maker is not None and maker.primitive == "where":
            arms = maker.args[1:]
        if arms is not None:
            ways = [self._added(variable, arm, sums, depth + 1) for arm in arms]
            return reduce(Interval.joined, ways)
        if maker is None or maker.primitive not in SUMS:
            return ANY
        a, b = maker.args
        if b is variable and maker.primitive == "add":
            a, b = b, a
        if a is not variable or b is variable:
            return ANY
        sums.add(sum_key(maker))
        found = self._known.of(b)
        if maker.primitive == "add":
            return found
        return Interval(-found.high, -found.low, {}) if found.low > LEAST else ANY
