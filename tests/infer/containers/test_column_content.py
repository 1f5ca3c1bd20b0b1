"""What a program sees of lists that enter as arrays."""

from __future__ import annotations

from typing import Any

import pytest

from pyrelay.infer import layout
from pyrelay.infer.containers.column_content import content
from pyrelay.ir import dims
from pyrelay.ir.dims import Origin
from pyrelay.ir.nodes import Var

KEYS: list[Any] = [
    ("text",),
    ("list", ("text",)),
    ("tuple", None, ("number", "int"), ("text",)),
    ("tuple", None, ("text",), ("list", ("tuple", None, ("text",), ("text",)))),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_places_in_templates_have_the_numbers_that_lists_give_them(key: Any) -> None:
    """Else no list that a join makes of it is like it, and each call makes a function of its own:
    a bigram count of three texts had 28 of what looks up a key."""
    made = content(
        key, range(9), lambda leaf, axis: dims.fresh("n", Origin.ENTRY),
        lambda ty, leaf: Var("p", ty),
    )
    pending = [made.template]
    while pending:
        template = pending.pop()
        found = places(template)
        assert [place.key for place in found] == list(range(1, 1 + len(found)))
        pending += [place.content.template for place in found]


def places(template: Any) -> list[Any]:
    if isinstance(template, layout.LPlace):
        return [template]
    return [place for part in getattr(template, "children", ()) for place in places(part)]
