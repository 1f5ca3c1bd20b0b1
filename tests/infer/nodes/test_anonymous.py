"""Tuples that are nodes are told apart by the texts in them, as long as these are few."""

from __future__ import annotations

import pytest

from pyrelay.infer import values
from pyrelay.infer.nodes.anonymous import Groups, NeedsNodes
from pyrelay.infer.nodes.datatypes import EVERYWHERE, Families
from pyrelay.ir.nodes import Attrs, Let, PyCall


def test_many_texts_of_one_expression_are_data() -> None:
    site = Let((), PyCall("tuple", (), Attrs()))
    groups, families = Groups(), Families(EVERYWHERE)
    groups.note(NeedsNodes(frozenset((site,))))

    def class_of(word: str) -> type:
        group = groups.of(site)
        assert group is not None
        return group.class_of(families, site, (values.Known(word), values.Known(1)))

    found = {class_of(word) for word in "abcda"}
    assert len(found) == 4
    with pytest.raises(NeedsNodes) as caught:
        class_of("e")
    assert groups.note(caught.value)
    assert len({class_of(word) for word in "abcdef"} | found) == 5
