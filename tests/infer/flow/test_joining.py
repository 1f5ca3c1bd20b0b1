"""Layouts of two paths: what they have in common."""

from __future__ import annotations

import pytest

from pyrelay.infer import layout
from pyrelay.infer.flow import joining
from pyrelay.infer.kinds import holders
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Origin, Symbol

EXTENT = dims.of(Symbol("n", Origin.RUNTIME))
NUMBERS = [
    layout.LScalar(types.PY_INT), layout.LScalar(types.PY_FLOAT, holders=holders(2)),
    layout.LScalar(types.PY_INT, EXTENT), layout.LScalar(types.TensorType(types.f32)),
    layout.LScalar(types.PY_FLOAT, kinds=(types.PY_INT, types.TensorType(types.f32))),
    layout.LScalar(types.PY_FLOAT, kinds=(types.PY_INT, types.PY_FLOAT)),
]


@pytest.mark.parametrize("kinds", [False, True])
@pytest.mark.parametrize("number", NUMBERS, ids=range(len(NUMBERS)))
def test_equal_numbers_are_joined_once_as_any_two_are(
    number: layout.LScalar, kinds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    joiner, ty = joining.Joiner(kinds=kinds), number.type
    wanted = joining._joined_number((number, number), (ty, ty), kinds)
    assert joiner(number, number) == wanted
    monkeypatch.setattr(joining, "_joined_number", None)
    assert joiner(number, number) == wanted


@pytest.mark.parametrize("order", [("array", "list"), ("list", "array")])
def test_an_extent_of_items_is_not_that_of_a_list_without_any(order: tuple[str, ...]) -> None:
    width, own = dims.of(Symbol("d", Origin.RUNTIME)), dims.of(Symbol("d", Origin.RUNTIME))

    def array(extent: dims.Extent) -> layout.LPlace:
        ty = types.TensorType(types.i64, (extent,))
        return layout.LPlace(order.index("array"), "array", None, ty)

    def listed(content: object) -> layout.LPlace:
        return layout.LPlace(order.index("list"), "list", list, content)

    made = {"array": array(width), "list": listed(layout.LGrown(array(width), own))}
    empty = listed(layout.LNode(("items", 0), ()))
    for extent, differs in ((EXTENT, True), (0, False)):
        given = {"array": array(extent), "list": empty}
        joiner = joining.Joiner(grows=True, bound=frozenset({width, own}))
        assert [joiner(made[name], given[name]) for name in order] == [made[n] for n in order]
        assert joiner.differs_in_none() == differs
