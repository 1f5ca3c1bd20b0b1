"""What is computed and asked in front of a loop that stands twice.

In: primitives on integers that the loop does not change. Out: the statements that compute them,
each once, and the choice between two versions by conditions that all have to be false.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import Compute, If, Literal, Local, Operand, Statement
from pyrelay.lower.kernels.values import operand_key

SUMS = frozenset(["add", "subtract"])
ORDER = frozenset(["less", "less_equal", "greater", "greater_equal"])
OVERFLOWS = frozenset(["add_overflows", "subtract_overflows", "multiply_overflows"])
BOTH = frozenset(["logical_and", "bitwise_and"])
EITHER = frozenset(["logical_or", "bitwise_or"])
SWAPPED = {
    "less": "greater", "less_equal": "greater_equal", "greater": "less",
    "greater_equal": "less_equal",
}  # fmt: skip
NEGATED = {
    "less": "greater_equal", "less_equal": "greater", "greater": "less_equal",
    "greater_equal": "less",
}  # fmt: skip
_FOLDED: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": max,
}


def is_number(operand: Operand, value: int) -> bool:
    """Whether an operand is this number."""
    return isinstance(operand, Literal) and operand.value == value


class Front:
    """What is computed in front of a loop, each value once, and what must be false there.

    `negative`: integers that are never above 0; `natural`: those that are never below it.
    """

    def __init__(
        self, negative: Container[Operand] = (), natural: Container[Operand] = ()
    ) -> None:
        self._negative, self._natural = negative, natural
        self.statements: list[Statement] = []
        self.doubts: dict[tuple[Any, ...], Operand] = {}
        self._known: dict[tuple[Any, ...], Operand] = {}

    def put(self, primitive: str, *args: Operand) -> Operand:
        """The value of a primitive."""
        key = (primitive, *map(operand_key, args))
        if key not in self._known:
            self._known[key] = self._made(primitive, args)
        return self._known[key]

    def _made(self, primitive: str, args: tuple[Operand, ...]) -> Operand:
        truth = primitive in ORDER or primitive in OVERFLOWS or primitive == "logical_or"
        numbers = [a.value for a in args if isinstance(a, Literal)]
        if primitive in SUMS and isinstance(args[1], Literal) and args[1].value == 0:
            return args[0]
        if primitive in _FOLDED and len(numbers) == len(args):
            value = _FOLDED[primitive](*numbers)
            if -(2**63) <= value < 2**63:
                return Literal(value, i64)
        if primitive in OVERFLOWS and len(numbers) == len(args):
            value = _FOLDED[primitive.removesuffix("_overflows")](*numbers)
            return Literal(not -(2**63) <= value < 2**63, bool_)
        if primitive in ("add_overflows", "subtract_overflows") and (
            is_number(args[1], 0)
            or (primitive[0] == "s" and is_number(args[0], 0) and args[1] in self._natural)
        ):
            return Literal(False, bool_)
        out = Local(bool_ if truth else i64)
        self.statements.append(Compute(out, primitive, args))
        return out

    def exact(self, primitive: str, *args: Operand) -> Operand:
        """The value of a sum, difference or product, which must not leave 64 bits."""
        self.doubt(self.put(f"{primitive}_overflows", *args))
        return self.put(primitive, *args)

    def linear(self, primitive: str, args: Sequence[Operand]) -> Operand:
        """The value of what may leave 64 bits, or of what cannot."""
        if primitive == "negative":
            return self.exact("subtract", Literal(0, i64), *args)
        if primitive in SUMS or primitive == "multiply":
            return self.exact(primitive, *args)
        return self.put(primitive, *args)

    def doubt(self, condition: Operand) -> None:
        """Only where this is false, the short version runs."""
        if not isinstance(condition, Literal) or condition.value:
            self.doubts[operand_key(condition)] = condition

    def _asked(self) -> list[Operand]:
        """The doubts, without those whether an integer is less than one that is never above 0 where
        it is asked whether it is less than 0."""
        makers = {s.out: s for s in self.statements if isinstance(s, Compute)}
        below: dict[Operand, tuple[Operand, ...]] = {
            doubt: maker.args for doubt in self.doubts.values()
            if isinstance(doubt, Local) and (maker := makers.get(doubt)) is not None
            and maker.primitive == "less"
        }  # fmt: skip
        def is_negative(bound: Operand) -> bool:
            maker = makers.get(bound)  # type: ignore[arg-type]
            return bound in self._negative or (
                maker is not None and maker.primitive == "subtract"
                and is_number(maker.args[0], 0) and maker.args[1] in self._natural
            )

        zero = operand_key(Literal(0, i64))
        signs = {operand_key(a) for a, bound in below.values() if operand_key(bound) == zero}
        return [
            doubt for doubt in self.doubts.values()
            if doubt not in below or not is_negative(below[doubt][1])
            or operand_key(below[doubt][0]) not in signs
        ]  # fmt: skip

    def choice(self, slow: Statement, fast: Statement) -> list[Statement]:
        """Everything, with the two versions at the end."""
        doubts = self._asked()
        if not doubts:
            return [*self.statements, fast]
        unsafe, *others = doubts
        for doubt in others:
            unsafe = self.put("logical_or", unsafe, doubt)
        # Neither is marked unlikely: a loop that fills a queue has to keep its checks every time.
        return [*self.statements, If(unsafe, (slow,), (fast,))]
