"""Stores on a condition that compares what they replace are stores of one of two values.

In: a body of kernel IR. Out: the same with `if new < a[i]: a[i] = new` as `a[i] = where(new < a[i],
new, a[i])`, which is what loops that relax distances or sort by exchanges consist of. Data decide
such a branch, so processors guess it wrong; and a loop without it can be made of vectors. What is
stored where the condition does not hold has been read from there before (if-conversion: Allen,
Kennedy, Porterfield and Warren, "Conversion of control dependence to data dependence", POPL 1983).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

from pyrelay.lower.kernels.kernel import (
    Array,
    Assign,
    Body,
    Call,
    Compute,
    If,
    Load,
    Local,
    LocalArray,
    Operand,
    Parameter,
    Read,
    Statement,
    Store,
    bodies,
    operands,
    replace_bodies,
    statements,
)
from pyrelay.lower.kernels.values import operand_key

_MOST_COMPUTED = 8  # primitives behind a condition that are computed in any case
_MOST_STORED = 2
_ORDER = frozenset(["less", "less_equal", "greater", "greater_equal"])
_CHEAP = frozenset([
    "add", "subtract", "multiply", "negative", "absolute", "minimum", "maximum", "where", "cast",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
]) | _ORDER  # fmt: skip

_Place: TypeAlias = "tuple[Array, tuple[Any, ...]]"


def with_chosen_stores(body: Body) -> Body:
    """The body with stores of one of two values in place of such branches."""
    out: list[Statement] = []
    read: dict[_Place, Local] = {}  # what stands at a place, as far as that is known
    makers: dict[Operand, Compute] = {}
    for statement in body:
        found = _chosen(statement, read, makers) if isinstance(statement, If) else None
        for each in (statement,) if found is None else found:
            if bodies(each):
                each = replace_bodies(each, with_chosen_stores)
            out.append(each)
            match each:
                case Compute(out=local):
                    makers[local] = each
                case Load(out=local, array=Parameter() | LocalArray() as array):
                    read[array, operand_key(each.index)] = local
                case Load() | Read():
                    pass
                case _:
                    _forget(each, read)
    return tuple(out)


def _forget(statement: Statement, read: dict[_Place, Local]) -> None:
    """Drops what a statement may overwrite. Only parameters and local arrays share no memory."""
    inside = [s for b in bodies(statement) for s in statements(b)]
    stores = [s for s in (statement, *inside) if isinstance(s, Store)]
    if any(isinstance(s, Call) for s in (statement, *inside)):
        read.clear()
    if any(not isinstance(s.array, (Parameter, LocalArray)) for s in stores):
        read.clear()
    written = {s.array for s in stores}
    for place in [p for p in read if p[0] in written]:
        del read[place]
    assigned = {s.variable for s in (statement, *inside) if isinstance(s, Assign)}
    for place in [p for p in read if p[1][-1] in assigned]:
        del read[place]


def _chosen(
    branch: If, read: dict[_Place, Local], makers: dict[Operand, Compute]
) -> list[Statement] | None:
    """The statements that do without a branch what it does; None if there are none."""
    compared = makers.get(branch.cond)
    stores = [s for s in branch.then if isinstance(s, Store)]
    if branch.orelse or branch.unlikely or compared is None or compared.primitive not in _ORDER:
        return None
    if not 0 < len(stores) <= _MOST_STORED or len(branch.then) > _MOST_COMPUTED:
        return None
    made: list[Statement] = []
    names: dict[Operand, Operand] = {}
    stored = False
    for statement in branch.then:
        match statement:
            case Compute(primitive=name) if name in _CHEAP and not stored:
                args = tuple(names.get(a, a) for a in statement.args)
                made.append(replace(statement, args=args))
            case Load(out=out, array=array, index=index) if not stored:
                known = read.get((array, operand_key(index)))
                if known is None:
                    return None
                names[out] = known
            case Store(array=array, index=index, value=value):
                old = read.get((array, operand_key(index)))
                if old is None or old not in operands(compared):
                    return None
                chosen = Local(old.dtype)
                new = names.get(value, value)
                made.append(Compute(chosen, "where", (branch.cond, new, old)))
                made.append(replace(statement, value=chosen))
                stored = True
            case _:
                return None
    return made
