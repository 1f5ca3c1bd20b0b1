"""Describers number places: which earlier ones a place may be the same as, at a look for each."""

from __future__ import annotations

import pytest

from pyrelay.infer import values
from pyrelay.infer.describing import Describer
from pyrelay.infer.heap import Heap


def described(roots: list[values.Root]) -> list[frozenset[int]]:
    """Which earlier places each may overlap; each root is seen twice, the second time as a part."""
    describer = Describer(Heap(), lambda root: False, 0)
    part = (values.ViewStep("transpose", (), ()),)
    return [
        describer.rivals[describer._key(root, view)] for view in ((), part) for root in roots
    ]


def test_objects_that_no_join_made_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks hand a hundred arrays on in each call: of every two, nothing has to be asked."""
    def may_alias(root: values.Root, other: values.Root) -> bool:
        raise AssertionError("two roots are compared")

    roots = [values.Root("array") for _ in range(4)]
    with monkeypatch.context() as patched:
        patched.setattr(values.Root, "may_alias", may_alias)
        found = described(roots)
    assert found == [frozenset()] * 4 + [frozenset([k]) for k in range(4)]


def test_what_a_join_made_may_be_what_was_there_before_and_made_with_it() -> None:
    first, second, third = (values.Root("array") for _ in range(3))
    either = values.Root("array", may_be=frozenset([first, third]))
    join = object()
    left, right = values.Root("array", join=join), values.Root("array", join=join)
    left.rivals, right.rivals = {right}, {left}
    roots = [first, either, second, third, left, right]
    found = described(roots)
    every = [*roots, *roots]
    for k, root in enumerate(every):
        assert found[k] == {j for j in range(k) if root.may_alias(every[j])}
    assert [found[k] for k in (1, 3, 5)] == [{0}, {1}, {4}]
