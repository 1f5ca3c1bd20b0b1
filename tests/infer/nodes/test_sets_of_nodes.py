"""Sets of a few nodes in fields of nodes: gone through, looked for in, counted; and changed."""

from __future__ import annotations

from typing import Any

import pytest

import pyrelay
from tests.infer.running import assert_same_outcome, interpreted, plainly


class Term:
    """A number, and a set of those that it is computed of."""

    def __init__(self, value: Any, parts: Any = ()) -> None:
        self.value = value
        self.parts = set(parts)

    def __add__(self, other: Any) -> Any:
        return Term(self.value + other.value, (self, other))

    def doubled(self) -> Any:
        return Term(2 * self.value, {self})


def below(term: Any) -> Any:
    return sum([below(part) for part in term.parts]) + term.value


def gone_through(x: float) -> Any:
    a, b = Term(x), Term(2.0)
    c = a + b
    d = c + c  # one part
    e = d.doubled()
    found = [len(t.parts) for t in (a, c, d, e)]
    return below(e), found, bool(a.parts), bool(d.parts), isinstance(c.parts, set)


def looked_for(x: float) -> Any:
    a, b = Term(x), Term(2.0)
    c = a + b
    (only,) = a.doubled().parts
    return a in c.parts, c in c.parts, b not in c.parts, only is a, c.parts is not None


def of_another(x: float) -> Any:
    a, b = Term(x), Term(2.0)
    c = a + b
    d = Term(x)
    d.parts = c.parts
    return below(d), len(d.parts), len(set(c.parts)), len(list(d.parts))


def in_a_loop(n: int) -> Any:
    total = Term(0.5)
    for k in range(n):
        total = total + Term(k * 1.0) if k % 2 else total.doubled()
    count, here = 0, [total]
    while here:
        term = here.pop()
        count += len(term.parts)
        here.extend(term.parts)
    return count, total.value


def not_indexed(x: float) -> Any:
    a = Term(x)
    return (a + a).parts[0].value  # type: ignore[index]


def matched(x: float) -> Any:
    a = Term(x)
    match (a + a).parts:
        case [_]:
            return 1.0
    return 2.0


def changed(x: float) -> Any:
    a, b, c = Term(x), Term(2.0), Term(3.0)
    d = a + b
    d.parts.add(c)
    d.parts.discard(a)
    return len(d.parts), c in d.parts, a in d.parts, c in a.parts


def changed_under_another_name(x: float) -> Any:
    a, b = Term(x), Term(2.0)
    parts = {a}
    c = Term(3.0)
    c.parts = parts
    parts.add(b)
    return len(c.parts), b in c.parts


def joined(x: float) -> Any:
    a, b, c = Term(x), Term(2.0), Term(3.0)
    d, e = a + b, b + c
    return len(d.parts | e.parts), d.parts == (a + b).parts


def filled(x: float) -> Any:
    a, b = Term(x), Term(2.0)
    a.parts.add(b)
    a.parts.add(a)
    return len(a.parts), b in a.parts, len(b.parts)


@pytest.mark.parametrize(("function", "arg"), [
    (gone_through, 1.5), (looked_for, 1.5), (of_another, 1.5), (in_a_loop, 5), (in_a_loop, 0),
    (matched, 1.5), (changed, 1.5), (changed_under_another_name, 1.5), (joined, 1.5),
    (filled, 1.5),
])  # fmt: skip
def test_sets_in_fields_do_what_pythons_do(function: Any, arg: Any) -> None:
    assert_same_outcome(interpreted(function, (arg,)), plainly(function, (arg,)))


def test_a_set_has_no_first_item() -> None:
    with pytest.raises(TypeError, match="'set' object is not subscriptable"):
        pyrelay.jit(not_indexed)(1.5)


def test_sets_that_nobody_changes_are_no_tables() -> None:
    text = str(pyrelay.jit(gone_through).ir(1.5, stage="infer"))
    assert len(text.splitlines()) < 300  # of tables there were 2,259
