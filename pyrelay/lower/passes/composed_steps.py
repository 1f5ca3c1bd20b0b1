"""Steps of a linear congruence are all taken from the first of them.

In: the body of a kernel. Out: the same, in which innermost loops do four steps in a round, and

    s = (a * s + c) & m                         t = s
    use(s)                                      s = (a * t + c) & m
    s = (a * s + c) & m             as          use(s)
    use(s)                                      s = (a * a * t + (a * c + c)) & m
                                                use(s)

Each step waits five cycles for the one before; of steps from one number only the last one is waited
for (Brown, "Random number generation with arbitrary strides", Transactions of the American Nuclear
Society 71, 1994). Remainders of powers of two, which masks leave, are those of what wraps around in
64 bits, and so are numbers that do that themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyrelay.ir.types import DType, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    Store,
    While,
    has_loops,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.copies import Copy
from pyrelay.records import dataclass

_STEPS = 4  # in a round
_MOST_STATEMENTS = 32  # of a round that is written out
_KEPT = frozenset(["cast", "bitcast"])


def with_composed_steps(body: Body) -> Body:
    """The body with steps from the first number of a round."""
    if not any(isinstance(s, Compute) and s.primitive == "multiply" for s in statements(body)):
        return body
    return tuple(_walked(body))


def _walked(body: Body) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, For) and not has_loops(statement.body):
            yield from _loop(statement)
        elif isinstance(statement, While) and not has_loops(statement.body):
            yield replace(statement, body=_Steps().composed(statement.body))
        else:
            yield replace_bodies(statement, lambda b: tuple(_walked(b)))


def _loop(loop: For) -> Iterator[Statement]:
    """A loop with several rounds in one, if these do few steps; what is left goes on one by one."""
    every = list(statements(loop.body))
    plain = all(isinstance(s, (Compute, Load, Read, Store, Assign, If, Fail)) for s in every)
    steps = _Steps().count(loop.body)
    times = max(_STEPS // steps, 1) if steps else 1
    if not steps or not plain or loop.lanes or loop.rescaled is not None:
        yield replace(loop, body=_Steps().composed(loop.body)) if steps > 1 else loop
        return
    if times == 1 or len(every) > _MOST_STATEMENTS:
        yield replace(loop, body=_Steps().composed(loop.body))
        return
    rounds, some, whole, done, rest, block, first = (Local(i64) for _ in range(7))
    by = Literal(times.bit_length() - 1, i64)
    yield Compute(rounds, "subtract", (loop.stop, loop.start))
    yield Compute(some, "maximum", (rounds, Literal(0, i64)))
    yield Compute(whole, "right_shift", (some, by))
    yield Compute(done, "left_shift", (whole, by))
    yield Compute(rest, "add", (loop.start, done))
    inside: list[Statement] = [
        Compute(done := Local(i64), "left_shift", (block, by)),
        Compute(first, "add", (loop.start, done)),
    ]
    for number in range(times):
        index = Local(i64)
        inside.append(Compute(index, "add", (first, Literal(number, i64))))
        inside += Copy({loop.index: index}, set()).body(loop.body)
    body = _Steps().composed(tuple(inside))
    yield replace(loop, index=block, start=Literal(0, i64), stop=whole, body=body)
    yield replace(loop, start=rest)


def _mask(statement: Statement) -> int | None:
    """How many bits a statement leaves."""
    match statement:
        case Compute(
            primitive="bitwise_and", args=(_, Literal(value=mask)) | (Literal(value=mask), _)
        ):
            number = int(mask)
            return number.bit_length() if number > 0 and number & (number + 1) == 0 else None
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """An integer that leaves the same remainder as `factor * root + term`, divided by 2**bits, and
    how many products have made it of that."""

    root: Local
    factor: int
    term: int
    bits: int
    steps: int


class _Steps:
    """Follows integers through a round."""

    def __init__(self) -> None:
        self.forms: dict[Operand, _Form] = {}
        self.held: dict[Operand, Operand] = {}  # copies of variables, which may change

    def count(self, body: Body) -> int:
        """How many steps lead from a variable to what it is in the next round."""
        self.composed(body)
        roots: dict[Operand, Operand] = {
            s.out: s.args[0] for s in body if isinstance(s, Compute) and s.primitive in _KEPT
        }
        roots.update(self.held)
        most = 0
        for s in body:
            if isinstance(s, Assign) and (form := self.forms.get(s.variable)) is not None:
                root: Operand = form.root
                while root in roots:
                    root = roots[root]
                most = max(most, form.steps if root is s.variable else 0)
        return most

    def composed(self, body: Body) -> Body:
        """The round with each step from the first number."""
        out: list[Statement] = []
        for s in body:
            match s:
                case Compute():
                    out += self._computed(s)
                case Assign(variable=variable, value=value):
                    self._learn(variable, self.forms.get(value))
                    out.append(s)
                case _:
                    for each in statements((s,)):
                        if isinstance(each, Assign):
                            self.forms.pop(each.variable, None)
                    out.append(s)
        return tuple(out)

    def _learn(self, local: Local, form: _Form | None) -> None:
        if form is None:
            self.forms.pop(local, None)
        else:
            self.forms[local] = form

    def _computed(self, s: Compute) -> list[Statement]:
        """A statement, from the first number if others lie between, and what its number is made of.
        """
        bits = 8 * s.out.dtype.size
        args = s.args if len(s.args) < 2 or isinstance(s.args[1], Literal) else s.args[::-1]
        if s.out.dtype.kind not in "iu" or not isinstance(args[0], Local):
            return [s]
        form = self.forms.get(args[0])
        before: list[Statement] = []
        match s.primitive, args:
            case "multiply", (Local() as x, Literal(value=a)) if x.dtype == s.out.dtype:
                if form is None:
                    root = x
                    if x.variable:
                        root = Local(x.dtype, variable=True)
                        self.held[root] = x
                        before.append(Assign(root, x))
                    form = _Form(root, 1, 0, bits, 0)
                found = replace(
                    form, factor=form.factor * int(a), term=form.term * int(a), steps=form.steps + 1
                )
            case "add", (_, Literal(value=c)) if form is not None:
                found = replace(form, term=form.term + int(c))
            case ("cast" | "bitcast"), _ if form is not None:
                found = form
            case "bitwise_and", _ if form is not None and (left := _mask(s)) is not None:
                self.forms[s.out] = found = replace(form, bits=min(left, form.bits))
                return self._from_first(s, found) if left <= form.bits else [s]
            case _:
                return [s]
        self.forms[s.out] = found = replace(found, bits=min(found.bits, bits))
        is_sum = s.primitive == "add" and found.bits == bits
        return self._from_first(s, found) if is_sum else [*before, s]

    def _from_first(self, s: Compute, form: _Form) -> list[Statement]:
        """A step of which all bits are known."""
        dtype = s.out.dtype
        if form.steps < 2 or form.root.dtype != dtype:
            return [s]
        product, total = Local(dtype), Local(dtype)
        masked = s.primitive == "bitwise_and"
        factor, term = (_wrapped(each, form.bits, dtype) for each in (form.factor, form.term))
        out: list[Statement] = [
            Compute(product, "multiply", (form.root, factor)),
            Compute(total if masked else s.out, "add", (product, term)),
        ]
        if masked:
            literals = (a for a in s.args if isinstance(a, Literal))
            out.append(replace(s, args=(total, *literals)))
        return out


def _wrapped(number: int, bits: int, dtype: DType) -> Literal:
    """The number of a dtype that leaves the same remainder, divided by 2**bits."""
    rest = number % (1 << bits)
    signed = dtype.kind == "i" and bits == 8 * dtype.size and rest >> (bits - 1)
    return Literal(rest - (1 << bits) if signed else rest, dtype)
