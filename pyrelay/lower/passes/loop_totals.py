"""Totals of a loop: integers to which each round adds what lies between constants.

In: what computes and sets the integers of an innermost loop. Out: for a variable such as `total` in
`total += x % 1000` the most that a round adds and takes away, and which sums are those. In front of
the loop the number of its rounds then says whether any of these sums can leave 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import Assign, Compute, Literal, Local, Operand
from pyrelay.lower.kernels.values import operand_key
from pyrelay.lower.passes.loop_front import SUMS
from pyrelay.records import dataclass

#: The least and the greatest value that an integer may have.
Bounds: TypeAlias = tuple[int, int]
_DEEPEST = 8
_CASTS = frozenset(["cast", "bitcast"])
_EXACT: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "minimum": min, "maximum": max,
}


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
    """Finds totals: `makers` compute the loop's integers, `chosen` are variables that both arms of
    a branch set."""

    def __init__(
        self, makers: Mapping[Local, Compute], chosen: Mapping[Local, tuple[Operand, ...]]
    ) -> None:
        self._makers, self._chosen = makers, chosen

    def of(self, variable: Local, assigns: Sequence[Assign]) -> Total | None:
        """The total that a variable is, if all its Assigns in the loop add to it or take away."""
        if variable.dtype != i64:
            return None
        least, greatest = 0, 0
        sums: set[tuple[object, ...]] = set()
        for assign in assigns:
            bounds = self._added(variable, assign.value, sums, 0)
            if bounds is None:
                return None
            least, greatest = least + min(bounds[0], 0), greatest + max(bounds[1], 0)
        return Total(least, greatest, frozenset(sums))

    def _added(
        self, variable: Local, value: Operand, sums: set[tuple[object, ...]], depth: int
    ) -> Bounds | None:
        """What a value is more than a variable, the keys of the sums among `sums`."""
        if value is variable:
            return 0, 0
        if not isinstance(value, Local) or depth > _DEEPEST:
            return None
        maker = self._makers.get(value)
        arms = self._chosen.get(value) if value.variable else None
        if maker is not None and maker.primitive == "where":
            arms = maker.args[1:]
        if arms is not None:
            ways = [self._added(variable, arm, sums, depth + 1) for arm in arms]
            known = [way for way in ways if way is not None]
            return _hull(known) if len(known) == len(ways) else None
        if maker is None or maker.primitive not in SUMS:
            return None
        a, b = maker.args
        if b is variable and maker.primitive == "add":
            a, b = b, a
        bounds = self.bounds(b) if a is variable and b is not variable else None
        if bounds is None:
            return None
        sums.add(sum_key(maker))
        return bounds if maker.primitive == "add" else (-bounds[1], -bounds[0])

    def bounds(self, operand: Operand, depth: int = 0) -> Bounds | None:
        """Constants between which an integer lies, whatever the loop's variables are."""
        if isinstance(operand, Literal):
            return (int(operand.value), int(operand.value)) if operand.dtype.kind in "iub" else None
        narrow = _of_dtype(operand)
        if depth > _DEEPEST:
            return narrow
        if operand.variable:
            found = self._all(self._chosen.get(operand, ()), depth)
            return _hull(found) if found else narrow
        maker = self._makers.get(operand)
        made = None if maker is None else self._made(maker, depth + 1)
        whole = _whole(operand)
        fits = made and whole and whole[0] <= made[0] and made[1] <= whole[1]
        return made if fits else narrow

    def _all(self, operands: Sequence[Operand], depth: int) -> list[Bounds] | None:
        found = [self.bounds(each, depth) for each in operands]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    def _made(self, maker: Compute, depth: int) -> Bounds | None:
        """Bounds of what is computed, as if no integer were too large for its type."""
        match maker.primitive, maker.args:
            case name, (a,) if name in _CASTS:
                return self.bounds(a, depth)
            case "remainder", (_, Literal(value=n)) if n:
                return (0, n - 1) if n > 0 else (n + 1, 0)
            case "bitwise_and", args:
                most = [a.value for a in args if isinstance(a, Literal) and a.value >= 0]
                return (0, int(min(most))) if most else None
            case "right_shift", (a, Literal(value=by)) if 0 <= by < 8 * a.dtype.size:
                bounds = self.bounds(a, depth) or _whole(a)
                return None if bounds is None else (bounds[0] >> by, bounds[1] >> by)
            case "where", (_, *args):
                found = self._all(args, depth)
                return _hull(found) if found else None
            case name, args if name in _EXACT:
                found = self._all(args, depth)
                if not found:
                    return None
                one, other = found
                ends = [_EXACT[name](x, y) for x in one for y in other]
                return min(ends), max(ends)
        return None


def _hull(bounds: Sequence[Bounds]) -> Bounds:
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _whole(operand: Operand) -> Bounds | None:
    """What an integer of this type may be."""
    dtype = operand.dtype
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind not in "iu":
        return None
    bits = 8 * dtype.size - (dtype.kind == "i")
    return (0 if dtype.kind == "u" else -(1 << bits)), (1 << bits) - 1


def _of_dtype(operand: Operand) -> Bounds | None:
    """The same, where that says something of a sum of 64 bits."""
    return None if operand.dtype.kind in "iu" and operand.dtype.size == 8 else _whole(operand)
