"""What a branch stores and what is read behind it again goes from one to the other in a variable.

In: a body of kernel IR. Out: the same, in which

    if c: a[i] = x             as       v = a[i]
    y = a[i]                            if c: a[i] = x; v = x
                                        y = v

LLVM finds the same, but reads the element in the other arm, and then both arms' elements by one
load from either of two addresses: a loop that does so is never vectors. What is read in front is
read behind the branch in any case, so it is there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

from pyrelay.lower.kernels.kernel import (
    SLOT,
    Array,
    Assign,
    Body,
    Compute,
    If,
    Load,
    Local,
    LocalArray,
    Operand,
    Parameter,
    Pointed,
    Statement,
    Store,
    replace_bodies,
)
from pyrelay.lower.kernels.values import operand_key

_MOST_BEHIND = 24  # statements between a branch and what reads
_MOST_INSIDE = 24  # statements of an arm

_Place: TypeAlias = "tuple[Array, tuple[Any, ...]]"


def with_handed_elements(body: Body) -> Body:
    """The body with elements in variables from a branch to what is behind it."""
    out: list[Statement] = []
    waiting: dict[Statement, Local] = {}
    for number, statement in enumerate(body):
        if isinstance(statement, If):
            for place, loads in _read_behind(body, number, _stored(statement)).items():
                dtype = loads[0].out.dtype
                variable, before = Local(dtype, variable=True), Local(dtype)
                out += [replace(loads[0], out=before), Assign(variable, before)]
                statement = _handing(statement, place, variable)
                waiting |= dict.fromkeys(loads, variable)
        if statement in waiting:
            assert isinstance(statement, Load)
            out.append(Compute(statement.out, "positive", (waiting[statement],)))
        else:
            out.append(replace_bodies(statement, with_handed_elements))
    return tuple(out)


def _place(access: Load | Store) -> _Place:
    return access.array, operand_key(access.index)


def _stored(branch: If) -> dict[_Place, Operand]:
    """The places that arms store to, each the only one of its array, and their indices."""
    arms = branch.then, branch.orelse
    if branch.unlikely or max(map(len, arms)) > _MOST_INSIDE:
        return {}
    found: dict[_Place, Operand] = {}
    arrays: dict[Array, _Place] = {}
    for s in (*arms[0], *arms[1]):
        match s:
            case Store(array=Parameter() | LocalArray() as array, index=index):
                place = _place(s)
                if arrays.setdefault(array, place) != place:
                    return {}
                if not isinstance(array, Parameter) or array.role != SLOT:
                    found[place] = index
            case Compute() | Assign() | Load(array=Parameter() | LocalArray()):
                pass
            case _:
                return {}
    assigned = {s.variable for arm in arms for s in arm if isinstance(s, Assign)}
    return {place: index for place, index in found.items() if index not in assigned}


def _read_behind(
    body: Body, number: int, stored: dict[_Place, Operand]
) -> dict[_Place, list[Load]]:
    """The loads behind a branch of what it stores, which certainly run."""
    left, found = set(stored), dict[_Place, list[Load]]()
    for s in body[number + 1 : number + 1 + _MOST_BEHIND]:
        match s:
            case Load(array=array) if not isinstance(array, Pointed):
                if _place(s) in left:
                    found.setdefault(_place(s), []).append(s)
            case Store(array=Parameter() | LocalArray() as array):
                left = {p for p in left if p[0] != array}
            case Assign(variable=variable):
                left = {p for p in left if stored[p] is not variable}
            case Compute():
                pass
            case _:
                break
        if not left:
            break
    return found


def _handing(branch: If, place: _Place, variable: Local) -> If:
    """A branch that assigns what it stores at a place."""

    def arm(body: Body) -> Body:
        stores = [s for s in body if isinstance(s, Store) and _place(s) == place]
        return (*body, Assign(variable, stores[-1].value)) if stores else body

    return replace(branch, then=arm(branch.then), orelse=arm(branch.orelse))
