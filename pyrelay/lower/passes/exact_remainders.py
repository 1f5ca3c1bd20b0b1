"""Remainders of what does not fit in 64 bits: `a * b % n` is computed as Python does.

In: the body of a kernel. Out: the same, where a sum, difference, product or power of ints that only
a remainder reads does not fail when it overflows: then, which is seldom, the remainder is computed
from those of the operands, with 128 bits for a product, by squaring for a power. What is known to
fit has no check any more and stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    Fail,
    If,
    Literal,
    Local,
    Operand,
    Statement,
    bodies,
    bound_by,
    operands,
    replace_bodies,
    statements,
)

#: What a remainder may be taken of, with the name of its check.
_PARTS = {"add": "add", "subtract": "subtract", "multiply": "multiply", "square": "multiply"}
#: From where on a power, as a float, does not fit.
_TOO_LARGE, _TOO_SMALL = 2.0**63, -(2.0**63)


def with_exact_remainders(body: Body, results: Sequence[Operand] = ()) -> Body:
    """The body with exact remainders of sums, products and powers; `results` are read after it."""
    if not any(isinstance(s, Compute) and s.primitive == "remainder" for s in statements(body)):
        return body
    readers: dict[Operand, list[Statement | None]] = {}
    for s in statements(body):
        for operand in operands(s):
            readers.setdefault(operand, []).append(s)
    for operand in results:
        readers.setdefault(operand, []).append(None)
    return _rewritten(body, readers)


def _rewritten(body: Body, readers: dict[Operand, list[Statement | None]]) -> Body:
    changed: dict[Statement, list[Statement]] = {}
    for place, s in enumerate(body):
        if isinstance(s, Compute) and s.primitive == "remainder" and s.out.dtype == i64:
            found = _Chain(body, place, s, readers)
            if found.failing:
                changed.update({fail: [] for fail in found.failing})
                changed[s] = found.exactly()
    kept: list[Statement] = []
    for s in body:
        kept += changed.get(s, [
            replace_bodies(s, lambda inner: _rewritten(inner, readers)) if bodies(s) else s
        ])
    return tuple(kept)


class _Chain:
    """The sums, products and powers that only one remainder reads.

    failing   the statements that fail where one of them overflows.
    """

    def __init__(
        self, body: Body, place: int, remainder: Compute,
        readers: dict[Operand, list[Statement | None]],
    ) -> None:
        self.remainder, self.readers = remainder, readers
        self.before = body[:place]
        self.makers = {s.out: k for k, s in enumerate(self.before) if isinstance(s, Compute)}
        self.parts: list[Compute] = []
        self.lost: list[Local] = []
        self.failing: list[Fail] = []
        self._follow(remainder.args[0], [remainder])

    def _follow(self, operand: Operand, known: list[Statement]) -> None:
        """Take in what makes an operand that nothing but the `known` statements reads."""
        place = self.makers.get(operand) if isinstance(operand, Local) else None
        if place is None or not set(self.readers[operand]) <= set(known):
            return
        part = self.before[place]
        assert isinstance(part, Compute)
        check = _PARTS.get(part.primitive)
        power = part.primitive == "power" and part.out.dtype == i64
        if not (check or power) or not self._still_read(part, place):
            return
        args = part.args * 2 if len(part.args) == 1 else part.args
        tests = [
            s for s in self.before[place:] if isinstance(s, Compute) and (
                self._asks_its_float(s, args) if power
                else s.primitive == f"{check}_overflows" and s.args == args
            )
        ]
        fails = [s for test in tests for s in self.readers.get(test.out, ())]
        mine = [s for s in fails if isinstance(s, Fail) and not s.values and s in self.before]
        if len(mine) < len(fails):
            return
        self.parts.insert(0, part)
        self.lost += [test.out for test in tests]
        self.failing += mine
        for arg in () if power else dict.fromkeys(args):
            self._follow(arg, [part, *tests])

    def _made_by(self, operand: Operand, *primitives: str) -> Compute | None:
        """What makes an operand, if it is one of these primitives."""
        place = self.makers.get(operand) if isinstance(operand, Local) else None
        maker = None if place is None else self.before[place]
        known = isinstance(maker, Compute) and maker.primitive in primitives
        return maker if known else None  # type: ignore[return-value]

    def _asks_its_float(self, test: Compute, args: Sequence[Operand]) -> bool:
        """Whether it asks if a power of these ints has more than 64 bits, as a float shows, perhaps
        beside whether the exponent is greater than 1 (`ops/python_numbers.py`)."""
        if any(isinstance(s, Compute) for s in self.readers.get(test.out, ())):
            return False
        beyond: Compute | None = test
        if test.primitive == "logical_and":
            beyond = self._made_by(test.args[0], "logical_or")
        if beyond is None or beyond.primitive != "logical_or":
            return False
        above, below = (
            self._made_by(arg, name)
            for arg, name in zip(beyond.args, ("greater_equal", "less"), strict=True)
        )
        if above is None or below is None or above.args[0] != below.args[0]:
            return False
        bounds = [each.args[1] for each in (above, below)]
        real = self._made_by(above.args[0], "power")
        return (
            real is not None and all(map(self._is_float_of, real.args, args))
            and [b.value for b in bounds if isinstance(b, Literal)] == [_TOO_LARGE, _TOO_SMALL]
        )

    def _is_float_of(self, real: Operand, number: Operand) -> bool:
        if isinstance(real, Literal) and isinstance(number, Literal):
            return real.value == number.value
        cast = self._made_by(real, "cast")
        return cast is not None and cast.args == (number,)

    def _still_read(self, part: Compute, place: int) -> bool:
        """Whether the operands still are what they were, where the remainder is computed."""
        variables = {o for o in part.args if isinstance(o, Local) and o.variable}
        set_later = {v for s in statements(self.before[place:]) for v in bound_by(s)}
        return variables.isdisjoint(set_later)

    def exactly(self) -> list[Statement]:
        """The remainder, computed otherwise where a check says that a number was lost."""
        made: list[Statement] = []
        lost = self.lost[0]
        for each in self.lost[1:]:
            both = Local(bool_)
            made.append(Compute(both, "logical_or", (lost, each)))
            lost = both
        divisor = self.remainder.args[1]
        found, chosen = Local(i64), Local(i64, variable=True)
        rests: dict[Operand, Operand] = {}
        exact: list[Statement] = []
        for part in self.parts:
            args = part.args * 2 if len(part.args) == 1 else part.args
            rest = Local(i64)
            exact.append(Compute(
                rest, f"{_PARTS.get(part.primitive, part.primitive)}_remainder",
                (*(rests.get(a, a) for a in args), divisor),
            ))
            rests[part.out] = rest
        exact.append(Assign(chosen, rests[self.remainder.args[0]]))
        return [
            *made, Compute(found, "remainder", self.remainder.args), Assign(chosen, found),
            If(lost, tuple(exact), (), unlikely=True),
            Compute(self.remainder.out, "positive", (chosen,)),
        ]
