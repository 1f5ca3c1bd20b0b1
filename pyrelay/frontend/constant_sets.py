"""Sets written as constants: the order in which their items are put in, one after another.

CPython makes one constant of them, a frozenset, of which a set is a copy, or a `for` goes through
the constant itself. Items that hash to one slot then have another order than as written, and a
module that comes from its .pyc yet another: the constant in the function's code says which.

In: the display and the code. Out: its items, so that a set that gets them in turn has the order of
the constant, and whether the set is a copy of that one, in a smaller table.
"""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Iterator, Sequence

_MOST_TRIED = 720  # permutations of six items
_COPIED_FROM = 3  # a display of fewer constants is made item by item
_COPIED_AS_IT_IS = 4  # a set of more constants has a smaller table than the constant


def in_order(
    node: ast.Set, code: types.CodeType, gone_through: bool
) -> tuple[Sequence[ast.expr], bool]:
    """The items of a display in an order that brings them to CPython's slots; whether it is copied.

    As written where they are not all constants, or no order tried does that.
    """
    try:
        values = [ast.literal_eval(e) for e in node.elts]
    except ValueError:
        return node.elts, False
    if len(values) < _COPIED_FROM and not gone_through:
        return node.elts, False
    copied = len(values) > _COPIED_AS_IT_IS and not gone_through
    wanted = [(type(v), v) for v in values]
    for constant in _frozensets(code):
        if len(constant) == len(values) and all((type(v), v) in wanted for v in constant):
            order = list(constant) if gone_through or copied else list(_copy(constant))
            break
    else:
        return node.elts, copied
    places = [order.index(v) for v in values]
    for tried in itertools.islice(_permutations(len(values), places), _MOST_TRIED):
        if list(_one_by_one(order, tried)) == order:
            return [node.elts[places.index(k)] for k in tried], copied
    return node.elts, copied


def _permutations(count: int, written: list[int]) -> Iterator[Sequence[int]]:
    yield written
    yield from itertools.permutations(range(count))


def _one_by_one(order: list[object], places: Sequence[int]) -> set[object]:
    made: set[object] = set()
    for k in places:
        made.add(order[k])
    return made


def _copy(constant: frozenset[object]) -> set[object]:
    made: set[object] = set()
    made.update(constant)
    return made


def _frozensets(code: types.CodeType) -> Iterator[frozenset[object]]:
    pending = [code]
    for one in pending:
        for constant in one.co_consts:
            if isinstance(constant, frozenset):
                yield constant
            elif isinstance(constant, types.CodeType):
                pending.append(constant)
