"""Stores on a condition that compares what they replace are stores of one of two values.

In: a body of kernel IR. Out: the same with `if new < a[i]: a[i] = new` as `a[i] = where(new < a[i],
new, a[i])`, which is what loops that relax distances or sort by exchanges consist of. Data decide
such a branch, so processors guess it wrong; and a loop without it can be made of vectors. What is
stored where the condition does not hold has been read from there before (if-conversion: Allen,
Kennedy, Porterfield and Warren, "Conversion of control dependence to data dependence", POPL 1983).
So are stores of both arms in the same places, as those of a mosaic's colours.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    renamed,
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
            both = _of_both_arms(each) if isinstance(each, If) else None
            out += [each] if both is None else both
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


def _of_both_arms(branch: If) -> list[Statement] | None:
    """Stores of one of two values, where both arms do nothing but store in the same places what
    they read in the same ones."""
    arms = branch.then, branch.orelse
    stores = [[s for s in arm if isinstance(s, Store)] for arm in arms]
    if branch.unlikely or not stores[0] or len(stores[0]) != len(stores[1]):
        return None
    written = {s.array for s in stores[0]}
    if not all(_only_stores(arm, written) for arm in arms):
        return None
    makers = {s.out: s for arm in arms for s in arm if isinstance(s, Compute)}
    out: list[Statement] = [s for s in branch.then if not isinstance(s, Store)]
    loads = {(s.array, _structure(s.index, makers)): s for s in out if isinstance(s, Load)}
    names: dict[Operand, Operand] = {}
    for s in branch.orelse:
        if isinstance(s, Load):
            same = loads.get((s.array, _structure(s.index, makers)))
            if same is None:
                return None
            names[s.out] = same.out
        elif isinstance(s, Compute):
            out.append(renamed(s, names))
    if len(set(names.values())) < len({s.out for s in loads.values()}):
        return None  # what one arm alone reads may lie outside of the array for the other
    for one, other in zip(*stores, strict=True):
        if one.array != other.array or (
            _structure(one.index, makers) != _structure(other.index, makers)
        ):
            return None
        chosen = Local(one.array.dtype)
        value = names.get(other.value, other.value)
        out.append(Compute(chosen, "where", (branch.cond, one.value, value)))
        out.append(replace(one, value=chosen))
    return out


def _only_stores(arm: Body, written: set[Array]) -> bool:
    """Whether an arm computes little and stores it, in arrays that it does not read."""
    computed = [s for s in arm if isinstance(s, Compute)]
    stored = [s for s in arm if isinstance(s, Store)]
    if any(s.primitive not in _CHEAP for s in computed):
        return False
    if len(computed) > _MOST_COMPUTED * len(stored):
        return False
    return all(
        isinstance(s, Compute)
        or (isinstance(s, Store) and isinstance(s.array, (Parameter, LocalArray)))
        or (isinstance(s, Load) and isinstance(s.array, Parameter) and s.array not in written)
        for s in arm
    )


def _structure(operand: Operand, makers: Mapping[Any, Compute]) -> tuple[Any, ...]:
    """Equal for positions that are computed alike."""
    made = makers.get(operand)
    if made is None:
        return operand_key(operand)
    return (made.primitive, *(_structure(arg, makers) for arg in made.args))
