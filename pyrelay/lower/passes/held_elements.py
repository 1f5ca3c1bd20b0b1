"""An element that a loop reads and stores in all its rounds is a variable of the loop.

In: a kernel of a program's loops, for the CPU. Out: its body, in which

    for k in range(m):                      if 0 < m: v = c[i, j]
        c[i, j] += a[i, k] * b[k, j]   as   for k in range(m): v += a[i, k] * b[k, j]
                                            if 0 < m: c[i, j] = v

and where `c[i, j] = 0.0` stands before it, that is `v = 0.0`, and nothing is asked (scalar
replacement: Callahan, Carr and Kennedy, "Improving register allocation for subscripted variables",
PLDI 1990). The place is touched only where the loop would have touched it: it is read or stored in
each round, of inner loops as well. Nothing else that the loop stores or reads of the same array may
be there, and nothing in the loop may fail, for then what was stored so far stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyrelay.ir.dims import Extent
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    SLOT,
    Array,
    Assign,
    Body,
    Call,
    Compute,
    Fail,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Parameter,
    Pointed,
    Read,
    Statement,
    Store,
    While,
    bodies,
    bound_by,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.copies import Copy
from pyrelay.lower.passes.distinct_places import Integers, never_at, places
from pyrelay.records import dataclass

_PLACES = frozenset(["add", "subtract", "multiply"])


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """An element: the accesses that are it, what computes its place, a store to it, the place, and
    the loops inside that go round at least once where it is touched."""

    accesses: frozenset[Load | Store]
    made: tuple[Compute, ...]
    first: Store
    place: Extent
    around: tuple[For, ...]


def with_held_elements(kernel: Kernel) -> Body:
    """The body of a kernel in which loops hold elements in variables."""
    every = list(statements(kernel.body))
    if not kernel.apart or not any(isinstance(s, Store) for s in every):
        return kernel.body
    return tuple(_walked(kernel.body, Integers()))


def _walked(body: Body, integers: Integers) -> Iterator[Statement]:
    out: list[Statement] = []
    for statement in body:
        integers.note(statement)
        if isinstance(statement, For):
            inside = Integers(integers)
            inside.enter(statement)
            held = list(_held(statement, integers)) if _fits(statement) else []
            if held:
                _hold(statement, held, integers, out)
            else:
                out.append(replace(statement, body=tuple(_walked(statement.body, inside))))
        else:
            out.append(replace_bodies(statement, lambda b: tuple(_walked(b, Integers(integers)))))
    yield from out


def _fits(loop: For) -> bool:
    """Whether a loop may hold anything: nothing fails in it, and it writes something."""
    stores = False
    for s in statements(loop.body):
        if isinstance(s, (Fail, Call, While)) or (isinstance(s, For) and s.rescaled is not None):
            return False
        stores |= isinstance(s, Store)
    return stores and loop.rescaled is None


def _held(loop: For, around: Integers) -> Iterator[_Held]:
    bound = {o for s in statements((loop,)) for o in bound_by(s)}
    made = _unchanging(loop, bound)
    known = places(loop, around)
    if any(isinstance(access.array, Pointed) for access in known):
        return  # which may be any array
    stored: dict[Array, list[Store]] = {}
    for access in known:
        if isinstance(access, Store):
            stored.setdefault(access.array, []).append(access)
    for array, stores in stored.items():
        first = stores[0]
        is_slot = isinstance(array, Parameter) and array.role == SLOT
        if not isinstance(array, Parameter) or is_slot or array.dtype.kind not in "iuf":
            continue
        if array.dtype.size not in (4, 8) or (first.index in bound and first.index not in made):
            continue
        if any(known[s] != known[first] for s in stores):
            continue
        loads = [a for a in known if isinstance(a, Load) and a.array == array]
        same = [a for a in loads if known[a] == known[first]]
        others = [a for a in loads if a not in same]
        accesses: frozenset[Load | Store] = frozenset([*stores, *same])
        sure = _surely(loop.body, accesses, bound)
        if not same or sure is None or not never_at(loop, first, others, around):
            continue
        yield _Held(accesses, tuple(made.values()), first, known[first], sure)


def _unchanging(loop: For, bound: set[Local]) -> dict[Operand, Compute]:
    """The integers that a loop computes alike in all its rounds."""
    made: dict[Operand, Compute] = {}
    for s in statements(loop.body):
        if not isinstance(s, Compute) or s.out.dtype != i64 or s.primitive not in _PLACES:
            continue
        if all(a not in bound or a in made for a in s.args):
            made[s.out] = s
    return made


def _surely(
    body: Body, accesses: frozenset[Load | Store], bound: set[Local]
) -> tuple[For, ...] | None:
    """The loops inside which a body touches an element, if it does wherever these go round at all;
    None if a branch or an end decides."""
    for s in body:
        if s in accesses:
            return ()
        if isinstance(s, For) and s.start not in bound and s.stop not in bound:
            inside = _surely(s.body, accesses, bound)
            if inside is not None:
                return (s, *inside)
        if not isinstance(s, (Compute, Load, Store, Assign, For, If)):
            return None
    return None


def _hold(
    loop: For, held: Sequence[_Held], integers: Integers, out: list[Statement]
) -> None:
    """Writes a loop with variables for elements."""
    copy = Copy({}, set())
    out += copy.body(held[0].made)
    back: list[Statement] = []
    variables: dict[Statement, Local] = {}
    for each in held:
        array = each.first.array
        variable = Local(array.dtype, variable=True)
        place = copy.operand(each.first.index)
        variables |= dict.fromkeys(each.accesses, variable)
        store = Store(array, place, variable, False)
        known = _stored_before(out, each, integers)
        if known is not None:
            before = out[known]
            assert isinstance(before, Store)
            out[known] = Assign(variable, before.value)
            back.append(store)
            continue
        goes = _goes([loop, *each.around], out)
        found = Local(array.dtype)
        zero = 0.0 if array.dtype.kind == "f" else 0
        out.append(Assign(variable, Literal(zero, array.dtype)))
        out.append(If(goes, (Load(found, array, place, False), Assign(variable, found))))
        back.append(If(goes, (store,)))
    out.append(replace(loop, body=_replaced(loop.body, variables)))
    out += back


def _goes(loops: Sequence[For], out: list[Statement]) -> Local:
    """Whether loops go round at all."""
    goes: Local | None = None
    for loop in loops:
        more = Local(bool_)
        out.append(Compute(more, "less", (loop.start, loop.stop)))
        if goes is not None:
            both = Local(bool_)
            out.append(Compute(both, "logical_and", (goes, more)))
            more = both
        goes = more
    assert goes is not None
    return goes


def _stored_before(out: Sequence[Statement], held: _Held, integers: Integers) -> int | None:
    """Which of the statements in front of a loop stores the element, if nothing behind it may see
    that."""
    for number in range(len(out) - 1, -1, -1):
        s = out[number]
        if isinstance(s, Store) and s.array == held.first.array:
            return number if integers.of(s.index) == held.place else None
        touches = isinstance(s, Load) and s.array == held.first.array
        if touches or not isinstance(s, (Compute, Load, Read, Assign, Store)):
            return None
    return None


def _replaced(body: Body, variables: dict[Statement, Local]) -> Body:
    out: list[Statement] = []
    for s in body:
        if s in variables and isinstance(s, Load):
            out.append(Compute(s.out, "positive", (variables[s],)))
        elif s in variables and isinstance(s, Store):
            out.append(Assign(variables[s], s.value))
        elif bodies(s):
            out.append(replace_bodies(s, lambda b: _replaced(b, variables)))
        else:
            out.append(s)
    return tuple(out)
