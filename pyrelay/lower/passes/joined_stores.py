"""What both arms of a branch store last, in the same place, is stored behind the branch.

In: a body of kernel IR, and what is known of the integers around it. Out: the same, in which

    if c:                              if c:
        ...                                ...
        a[i, j] = x                        v = x
    else:                   as         else:
        ...                                ...
        a[i, j] = y                        v = y
                                       a[i, j] = v

so that who follows what rounds store finds one store, which is in each round.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir.dims import Extent
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    If,
    Load,
    Local,
    Pointed,
    Statement,
    Store,
)
from pyrelay.lower.passes.copies import Copy, makers
from pyrelay.lower.passes.distinct_places import Integers, accesses


def with_joined_stores(body: Body, integers: Integers) -> Body:
    """The body with such stores behind their branches."""
    if not any(isinstance(s, If) and s.orelse for s in body):
        return body
    return _joined(body, dict(accesses(body, Integers(integers))))


def _joined(body: Body, places: dict[Load | Store, Extent]) -> Body:
    out: list[Statement] = []
    for s in body:
        if not isinstance(s, If) or not s.orelse:
            out.append(s)
            continue
        then, orelse = _joined(s.then, places), _joined(s.orelse, places)
        first, second = then[-1] if then else None, orelse[-1]
        if isinstance(first, Store) and isinstance(second, Store) and _alike(first, second, places):
            value = Local(first.value.dtype, variable=True)
            then = *then[:-1], Assign(value, first.value)
            orelse = *orelse[:-1], Assign(value, second.value)
            out.append(replace(s, then=then, orelse=orelse))
            copy = Copy({}, set())
            out += copy.body(makers(then, first.index))
            store = replace(first, index=copy.operand(first.index), value=value)
            places[store] = places[first]
            out.append(store)
        else:
            out.append(replace(s, then=then, orelse=orelse))
    return tuple(out)


def _alike(a: Store, b: Store, places: dict[Load | Store, Extent]) -> bool:
    """Whether two stores are in the same place of the same array."""
    same = a.array == b.array
    if isinstance(a.array, Pointed) and isinstance(b.array, Pointed):
        same = a.array.address is b.array.address
    return same and places[a] == places[b] and a.value.dtype == b.value.dtype
