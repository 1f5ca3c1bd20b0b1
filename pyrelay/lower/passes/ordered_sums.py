"""Sums of floats are written so that their addends are computed as vectors, and added in order.

In: a body of kernel IR, for the CPU. Out: the same, in which loops that add up what takes long add
one number in each round, whatever branches say:

    s = 0.0                               s = 0.0
    for i in range(n):                    for i in range(n):
        if x[i] > 0.0:          as            y = log(x[i]) if x[i] > 0.0 else -0.0
            s += log(x[i])                    s += y

Of such loops LLVM computes the addends of several rounds at once, and adds them one after the
other, as floats are (`kernel_compiler` asks for it): the numbers are the same. It knows sums only:
a difference has the sum with the other sign, and is 0.0 minus that. To add -0.0 changes no float.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import copysign

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    If,
    Literal,
    Load,
    Local,
    Operand,
    Statement,
    Store,
    operands,
    replace_bodies,
    statements,
)

_SLOW = frozenset([
    "exp", "exp2", "log", "log2", "log10", "log1p", "power", "erf", "sin", "cos", "arcsinh",
    "arccosh", "arctanh", "sqrt", "divide",
])  # fmt: skip
"""Functions of floats that take long enough for vectors of them to pay."""


def with_ordered_sums(body: Body) -> Body:
    """The body with such loops in place of others."""
    read: Counter[Operand] = Counter()

    def walked(part: Body) -> Body:
        out: list[Statement] = []
        for s in part:
            if isinstance(s, For) and _may_be_summed(s):
                out += _written(s, out, read)
            else:
                out.append(replace_bodies(s, walked))
        return tuple(out)

    if not any(map(_is_slow, statements(body))):
        return body
    read.update(o for s in statements(body) for o in operands(s))
    return walked(body)


def _written(loop: For, before: list[Statement], read: Counter[Operand]) -> list[Statement]:
    """A loop as sums, and what stands around it for that, if it is one of sums that take long."""
    if any(map(_is_slow, statements(loop.body))):
        new = replace(loop, body=_without_branches(_handed_on(loop.body, read)))
        new, (front, behind) = _with_sums(new, before)
        new, (asked, told) = _with_flags(new)
        if adds_in_order(new):
            return [*front, *asked, new, *behind, *told]
    return [loop]


def adds_in_order(loop: For) -> bool:
    """Whether all that a loop hands on from round to round are sums, of which LLVM computes several
    rounds at once."""
    if not _may_be_summed(loop):
        return False
    read = Counter(o for s in statements(loop.body) for o in operands(s))
    assigned = Counter(s.variable for s in statements(loop.body) if isinstance(s, Assign))
    made = {s.out: s for s in loop.body if isinstance(s, Compute)}
    begun: set[Operand] = set()
    known: set[Local] = set()
    sums = 0
    for s in loop.body:
        if isinstance(s, Assign) and s.variable not in known:
            total = made.get(s.value) if isinstance(s.value, Local) else None
            if s.variable not in begun:
                known.add(s.variable)  # told anew by each round
            elif total is not None and total.primitive == "add" and assigned[s.variable] == 1 and (
                _is_sum(s.variable, total, read)
            ):
                known.add(s.variable)
                sums += s.variable.dtype.kind == "f"
        begun.update(_mentioned(s))
    return sums > 0 and all(variable in known for variable in assigned)


def _mentioned(statement: Statement) -> Iterator[Operand]:
    for s in statements((statement,)):
        yield from operands(s)
        if isinstance(s, Assign):
            yield s.variable


def _may_be_summed(loop: For) -> bool:
    """Whether rounds do nothing but compute, and store what no other round touches."""
    return loop.bounded and not loop.lanes and loop.rescaled is None and all(
        isinstance(s, (Compute, Load, Assign, If)) or (isinstance(s, Store) and s.parallel)
        for s in statements(loop.body)
    )


def _is_slow(s: Statement) -> bool:
    return isinstance(s, Compute) and s.out.dtype.kind == "f" and s.primitive in _SLOW


def _handed_on(body: Body, read: Counter[Operand]) -> Body:
    """The body with branches that assign to variables what they only hand on to them: of `v` and
    `t`, `t = v + x` or `t = v`, and then `v = t`."""
    out: list[Statement] = []
    for s in body:
        k = len(out) - 1
        while isinstance(s, Assign) and k >= 0 and isinstance(out[k], Assign) and (
            s.variable not in _mentioned(out[k])
        ):
            k -= 1
        branch = out[k] if out else None
        if isinstance(s, Assign) and isinstance(branch, If) and read[s.value] == 1:
            arms = [_handing(arm, s) for arm in (branch.then, branch.orelse)]
            if arms[0] is not None and arms[1] is not None:
                out[k] = replace(branch, then=arms[0], orelse=arms[1])
                continue
        out.append(s)
    return tuple(out)


def _handing(arm: Body, handed: Assign) -> Body | None:
    """The arm with what it assigns to a number assigned to the variable this is handed on to; None
    where it does so in more than one place, or reads the variable behind it."""
    places = [k for k, s in enumerate(arm) if isinstance(s, Assign) and s.variable is handed.value]
    if len(places) != 1 or any(handed.variable in operands(s) for s in arm[places[0] + 1 :]) or any(
        isinstance(s, (If, For)) or (isinstance(s, Assign) and s.variable is handed.variable)
        for s in arm
    ):
        return None
    (k,), s = places, arm[places[0]]
    assert isinstance(s, Assign)
    new = () if s.value is handed.variable else (replace(s, variable=handed.variable),)
    return (*arm[:k], *new, *arm[k + 1 :])


def _without_branches(body: Body) -> Body:
    """The body with one sum behind each branch in which something is added to a number."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, If):
            names: dict[Local, Local] = {}
            arms = [_addends(arm, names) for arm in (s.then, s.orelse)]
            for total, addend in names.items():
                out.append(Assign(addend, _nothing(total)))
            out.append(replace(s, then=arms[0], orelse=arms[1]) if names else s)
            for total, addend in names.items():
                found = Local(total.dtype)
                out += [Compute(found, "add", (total, addend)), Assign(total, found)]
        else:
            out.append(s)
    return tuple(out)


def _addends(arm: Body, names: dict[Local, Local]) -> Body:
    """The arm with what it adds to numbers assigned to others, which `names` tells."""
    read = Counter(o for s in statements(arm) for o in operands(s))
    made = {s.out: s for s in arm if isinstance(s, Compute)}
    out: list[Statement] = []
    for s in arm:
        total = made.get(s.value) if isinstance(s, Assign) and isinstance(s.value, Local) else None
        if total is None or not _is_sum(s.variable, total, read):  # type: ignore[union-attr]
            out.append(s)
            continue
        variable = s.variable  # type: ignore[union-attr]
        addend = names.setdefault(variable, Local(variable.dtype, variable=True))
        value = _other(variable, total)
        if total.primitive == "subtract":
            value = Local(variable.dtype)
            out.append(Compute(value, "negative", (_other(variable, total),)))
        out.remove(total)
        out.append(Assign(addend, value))
    return tuple(out)


def _is_sum(variable: Local, total: Compute, read: Counter[Operand]) -> bool:
    """Whether a number is a variable plus, or minus, something, which nothing else reads."""
    if variable.dtype.kind not in "fiu" or read[variable] != 1 or read[total.out] != 1:
        return False
    return variable in total.args if total.primitive == "add" else (
        total.primitive == "subtract" and total.args[0] is variable
    )


def _nothing(total: Local) -> Literal:
    """What changes no number if it is added."""
    return Literal(-0.0 if total.dtype.kind == "f" else 0, total.dtype)


def _other(variable: Local, total: Compute) -> Operand:
    a, b = total.args
    return b if a is variable else a


def _with_sums(
    loop: For, before: list[Statement]
) -> tuple[For, tuple[list[Statement], list[Statement]]]:
    """A loop with sums in place of differences that begin with a number which is not -0.0, and what
    stands around it for that."""
    read = Counter(o for s in statements(loop.body) for o in operands(s))
    made = {s.out: s for s in loop.body if isinstance(s, Compute)}
    begun = _begun(before)
    sums: dict[Statement, list[Statement]] = {}
    front: list[Statement] = []
    behind: list[Statement] = []
    for s in loop.body:
        total = made.get(s.value) if isinstance(s, Assign) and isinstance(s.value, Local) else None
        if total is None or total.primitive != "subtract" or total.out.dtype.kind != "f":
            continue
        variable = s.variable  # type: ignore[union-attr]
        start = begun.get(variable)
        if start is None or not _is_sum(variable, total, read):
            continue
        other, found, back = (Local(variable.dtype, k == 0) for k in range(3))
        sums[total] = [Compute(found, "add", (other, total.args[1]))]
        sums[s] = [Assign(other, found)]
        front.append(Assign(other, Literal(-start.value, start.dtype)))
        behind.append(Compute(back, "subtract", (Literal(0.0, variable.dtype), other)))
        behind.append(Assign(variable, back))
    body = tuple(new for s in loop.body for new in sums.get(s, [s]))
    return (replace(loop, body=body) if sums else loop), (front, behind)


def _with_flags(loop: For) -> tuple[For, tuple[list[Statement], list[Statement]]]:
    """A loop that counts in which rounds branches assign a number, always the same, that no round
    reads, and what stands around it: LLVM knows sums."""
    read = Counter(o for s in statements(loop.body) for o in operands(s))
    assigned: dict[Local, list[Operand]] = {}
    for s in statements(loop.body):
        if isinstance(s, Assign):
            assigned.setdefault(s.variable, []).append(s.value)
    everywhere = {s.variable for s in loop.body if isinstance(s, Assign)}
    flags = {
        variable: values[0] for variable, values in assigned.items()
        if variable not in everywhere and not read[variable]
        and all(isinstance(v, Literal) and v.value == values[0].value for v in values)  # type: ignore[union-attr]
    }  # fmt: skip
    front: list[Statement] = []
    behind: list[Statement] = []
    body = list(loop.body)
    for variable, value in flags.items():
        count, one, found = (Local(i64, variable=k < 2) for k in range(3))
        marked = [_marking(s, variable, one) for s in body]
        body = [
            Assign(one, _nothing(one)), *marked,
            Compute(found, "add", (count, one)), Assign(count, found),
        ]  # fmt: skip
        some, chosen = Local(bool_), Local(variable.dtype)
        front.append(Assign(count, _nothing(count)))
        behind += [
            Compute(some, "greater", (count, _nothing(count))),
            Compute(chosen, "where", (some, value, variable)), Assign(variable, chosen),
        ]  # fmt: skip
    return (replace(loop, body=tuple(body)) if flags else loop), (front, behind)


def _marking(statement: Statement, variable: Local, mark: Local) -> Statement:
    """A statement that sets `mark` to 1 where it assigned to `variable`."""
    if isinstance(statement, Assign) and statement.variable is variable:
        return Assign(mark, Literal(1, mark.dtype))
    return replace_bodies(
        statement, lambda body: tuple(_marking(s, variable, mark) for s in body)
    )


def _begun(before: list[Statement]) -> dict[Local, Literal]:
    """Numbers, but -0.0, that variables have after these statements of a body."""
    found: dict[Local, Literal] = {}
    for s in before:
        for inner in statements((s,)):
            if isinstance(inner, Assign):
                found.pop(inner.variable, None)
        if isinstance(s, Assign) and isinstance(s.value, Literal) and _is_no_minus_zero(s.value):
            found[s.variable] = s.value
    return found


def _is_no_minus_zero(number: Literal) -> bool:
    value = number.value
    return number.dtype.kind == "f" and (value != 0.0 or copysign(1.0, value) > 0.0)
