"""Keys by identity: id() of objects."""

from __future__ import annotations

from typing import Any

import pyrelay


class Link:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_ids_are_keys_and_leave_the_program_as_ints() -> None:
    def kept(x: Any) -> Any:
        one, other = Link(x), Link(x)
        seen = {id(one): 1.0}
        seen[id(one)] += x
        return seen, id(other) in seen, id(one) == id(other), one

    seen, found, same, one = pyrelay.jit(kept)(2.0)
    assert seen == {id(one): 3.0}
    assert not found
    assert not same
