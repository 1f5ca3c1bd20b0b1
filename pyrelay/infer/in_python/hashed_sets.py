"""Sets whose items only the running program knows, as a class in plain Python.

In and out: what the methods of `set` take and give. Items are the keys of a table (tables.py), in
order of insertion; sets that are gone through in Python's order stand in set_order.py.
"""

from __future__ import annotations

from typing import Any

from pyrelay.infer.in_python.tables import Table, differ


def items_of(iterable: Any) -> Any:
    """What an iterable has; of a set in order of insertion, for what does not depend on it."""
    return list(iterable.table) if hasattr(iterable, "table") else iterable


def _with_membership(iterable: Any) -> Any:
    """A set with the items of an iterable."""
    return iterable if isinstance(iterable, (set, frozenset)) else Members(iterable)


def set_for(operator: str, other: Any) -> Any:
    """The right operand of an operator of sets."""
    if not isinstance(other, (set, frozenset)):
        raise TypeError(
            f"unsupported operand type(s) for {operator}: 'set' and '{type(other).__name__}'"
        )
    return other


def order_wanted(members: Any) -> Any:
    """Say that the order of a set matters; a handler has the next attempt keep it (set_order.py).
    """
    raise NotImplementedError(members)


def in_any_order(members: Any, item: Any) -> Any:
    """An item of a set that is gone through. A handler has the next attempt keep the order, but of
    objects that are equal to themselves only: by their addresses they may stand in any; and of what
    the caller gave in its order."""
    del members
    return item


class Members:
    """set: the keys of a table.

    given: they stand in the order in which Python goes through the set, which the caller gave; an
    item that is taken out leaves the others where they are.
    """

    def __init__(self, iterable: Any = ()) -> None:
        self.table = Table()
        self.given = False
        self.begin(iterable)

    def begin(self, iterable: Any) -> None:
        """Take the items of an iterable into a set that has none."""
        if hasattr(iterable, "table") and hasattr(iterable.table, "held"):
            self.table.take_over(iterable.table)
        else:
            self.update(iterable)

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, item: Any) -> bool:
        return item in self.table

    def __iter__(self) -> Any:
        table = self.table
        size = table.size
        for place in range(table.begins(), len(table.names)):
            if differ(table.size, size):
                raise RuntimeError("Set changed size during iteration")
            if table.alive[place]:
                yield in_any_order(self, table.names[place])
        if differ(table.size, size):
            raise RuntimeError("Set changed size during iteration")

    def add(self, item: Any) -> None:
        self.given = False
        self.table.take_up(item, True)

    def update(self, *iterables: Any) -> None:
        for iterable in iterables:
            for item in items_of(iterable):
                self.add(item)

    def discard(self, item: Any) -> None:
        if item in self.table:
            del self.table[item]

    def remove(self, item: Any) -> None:
        del self.table[item]

    def pop(self) -> Any:
        if self.table.size == 0:
            raise KeyError("pop from an empty set")
        self.given = False
        return in_any_order(self, self.table.popitem()[0])

    def clear(self) -> None:
        self.table.clear()

    def copy(self) -> Any:
        made = Members()
        made.table.take_over(self.table)
        return made

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, (set, frozenset)) or len(self) != len(other):
            return False
        return self.issubset(other)

    def issubset(self, other: Any) -> Any:
        members = _with_membership(other)
        for item in self.table:  # noqa: SIM110
            if item not in members:
                return False
        return True

    def issuperset(self, other: Any) -> Any:
        for item in items_of(other):  # noqa: SIM110
            if item not in self.table:
                return False
        return True

    def isdisjoint(self, other: Any) -> Any:
        for item in items_of(other):  # noqa: SIM110
            if item in self.table:
                return False
        return True

    def union(self, *others: Any) -> Any:
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Any) -> Any:
        made = self.copy()
        made.intersection_update(*others)
        return made

    def difference(self, *others: Any) -> Any:
        made = self.copy()
        made.difference_update(*others)
        return made

    def symmetric_difference(self, other: Any) -> Any:
        made = self.copy()
        made.symmetric_difference_update(other)
        return made

    def intersection_update(self, *others: Any) -> None:
        self.given = False  # Python makes a table anew
        for other in others:
            members = _with_membership(other)
            for item in items_of(self):
                if item not in members:
                    del self.table[item]

    def difference_update(self, *others: Any) -> None:
        self.given = False
        for other in others:
            for item in items_of(other):
                self.discard(item)

    def symmetric_difference_update(self, other: Any) -> None:
        self.given = False
        for item in items_of(_with_membership(other)):
            if item in self.table:
                del self.table[item]
            else:
                self.add(item)

    def __or__(self, other: Any) -> Any:
        return self.union(set_for("|", other))

    def __and__(self, other: Any) -> Any:
        return self.intersection(set_for("&", other))

    def __sub__(self, other: Any) -> Any:
        return self.difference(set_for("-", other))

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(set_for("^", other))

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__

    def __rsub__(self, other: Any) -> Any:
        return Members(other).difference(self)

    def __ior__(self, other: Any) -> Any:
        self.update(set_for("|=", other))
        return self

    def __iand__(self, other: Any) -> Any:
        self.intersection_update(set_for("&=", other))
        return self

    def __isub__(self, other: Any) -> Any:
        self.difference_update(set_for("-=", other))
        return self

    def __ixor__(self, other: Any) -> Any:
        self.symmetric_difference_update(set_for("^=", other))
        return self

    def __le__(self, other: Any) -> Any:
        return self.issubset(other)

    def __lt__(self, other: Any) -> Any:
        return len(self) < len(other) and self.issubset(other)

    def __ge__(self, other: Any) -> Any:
        return self.issuperset(other)

    def __gt__(self, other: Any) -> Any:
        return len(self) > len(other) and self.issuperset(other)

    __hash__ = None  # type: ignore[assignment]


def with_table(table: Table) -> Members:
    """The set of the caller's whose items are the keys of a table."""
    made = Members()
    made.table = table
    made.given = True
    return made


def union_of(sets: Any) -> Any:
    """set.union(*sets)."""
    if not sets:
        raise TypeError("unbound method set.union() needs an argument")
    made = sets[0].copy()
    for other in sets[1:]:
        made.update(other)
    return made


def intersection_of(sets: Any) -> Any:
    """set.intersection(*sets)."""
    if not sets:
        raise TypeError("unbound method set.intersection() needs an argument")
    made = sets[0].copy()
    for other in sets[1:]:
        made.intersection_update(other)
    return made


def union_with(own: Any, others: Any) -> Any:
    """own.union(*others)."""
    if not others:
        return own.copy()
    made = own | others[0]
    for other in others[1:]:
        made.update(other)
    return made


def updated_with(own: Any, others: Any) -> None:
    """own.update(*others)."""
    for other in others:
        own.update(other)


#: The same for methods of a set.
WITH_SEVERAL: dict[str, Any] = {"union": union_with, "update": updated_with}

#: What stands for methods of sets that are called with a list of them.
OF_SEVERAL: dict[Any, Any] = {
    set.union: union_of, set.intersection: intersection_of,
}


# -- what is asked of a frozenset that is known ----------------------------------------------------


def is_superset(items: Any, iterable: Any) -> Any:
    """frozenset.issuperset(items, iterable)."""
    return all(item in items for item in iterable)


def is_disjoint(items: Any, iterable: Any) -> Any:
    """frozenset.isdisjoint(items, iterable)."""
    return not any(item in items for item in iterable)


def is_subset(items: Any, iterable: Any) -> Any:
    """frozenset.issubset(items, iterable)."""
    held = set(iterable)
    return all(item in held for item in items)


ASKED = {"isdisjoint": is_disjoint, "issubset": is_subset, "issuperset": is_superset}
