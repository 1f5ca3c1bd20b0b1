"""Arguments of calls that need a function each, told without a join."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyrelay.frontend.parse import parse
from pyrelay.infer import layout
from pyrelay.infer.flow import joining
from pyrelay.infer.flow.differing import differ
from pyrelay.infer.specialise import specialise
from pyrelay.ir import types
from pyrelay.ir.types import TensorType


def array(*shape: int, dtype: Any = types.f64) -> layout.LPlace:
    return layout.LPlace(0, "array", None, TensorType(dtype, shape))


def table(**values: Any) -> layout.LPlace:
    content = layout.LNode(("pairs", tuple(values)), tuple(values.values()))
    return layout.LPlace(1, "dict", None, content)


def closure(name: str, *cells: Any) -> layout.LNode:
    return layout.LNode(("closure", name, None, None, (), len(cells)), cells)


EXP = layout.LKnown(np.exp)
NUMBER = layout.LScalar(types.PY_INT)


@pytest.mark.parametrize(("old", "new"), [
    pytest.param(EXP, layout.LKnown(np.log), id="functions"),
    pytest.param(EXP, closure("f"), id="a closure"),
    pytest.param(closure("f", EXP), closure("f", layout.LKnown(np.log)), id="its cells"),
    pytest.param(array(3), table(a=array(3)), id="kinds"),
    pytest.param(array(3), array(3, 3), id="axes"),
    pytest.param(array(3), array(3, dtype=types.f32), id="element types"),
    pytest.param(table(a=array(3)), table(b=array(3)), id="keys"),
    pytest.param(table(a=array(3)), table(a=table()), id="values"),
])
def test_a_union_alone_holds_both(old: Any, new: Any) -> None:
    assert differ([NUMBER, old], [NUMBER, new]) is not None
    assert differ([NUMBER, new], [NUMBER, old]) is not None


@pytest.mark.parametrize(("old", "new"), [
    pytest.param(EXP, EXP, id="one function"),
    pytest.param(layout.LKnown(1), NUMBER, id="numbers"),
    pytest.param(layout.LKnown(None), NUMBER, id="None"),
    pytest.param(array(3), array(4), id="extents"),
    pytest.param(table(a=array(3)), table(a=array(4)), id="values"),
    pytest.param(layout.LUnion((NUMBER, array(3))), array(3, 3), id="a union"),
])
def test_a_join_has_to_tell(old: Any, new: Any) -> None:
    assert differ([old], [new]) is None


def mapped(f, tree):
    if isinstance(tree, dict):
        return {k: mapped(f, v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [mapped(f, v) for v in tree]
    return f(tree)


def chain(tree):
    for f in (np.exp, np.sin, np.cos, np.tanh, np.sqrt, np.negative):
        tree = mapped(f, tree)
    return tree


def test_functions_over_trees_are_not_joined_with_those_of_other_functions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each would be with all before it: of 56 functions 10,000 joins, half of a first call."""
    count = 0
    join = joining.Joiner._alike

    def counted(self: Any, *layouts: Any) -> Any:
        nonlocal count
        count += 1
        return join(self, *layouts)

    monkeypatch.setattr(joining.Joiner, "_alike", counted)
    tree = {"w": np.ones((2, 3)), "b": [np.ones(3), np.ones((3, 1))]}
    specialise(chain, (tree,), {}, parse)
    assert count < 300, count
