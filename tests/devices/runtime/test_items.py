"""Lists made of arrays by native code, by what Python makes of them."""

import sys

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.runtime.items import writer
from pyrelay.infer.containers.code_points import from_items
from pyrelay.infer.result_trees import (
    CaseResult,
    ConstantResult,
    GrownResult,
    LeafResult,
    NodeResult,
    grown_items,
)
from pyrelay.infer.structure import Flattened
from pyrelay.ir import types

INT, FLOAT = types.PY_INT, types.PY_FLOAT
BOOL = types.TensorType(types.DTYPES["bool"], (), True)
COMPLEX = types.TensorType(types.DTYPES["c128"], (), True)
NARROW = types.TensorType(types.DTYPES["f32"], ())
TEXT = NodeResult(
    "call", from_items, (), (GrownResult((1,), 0, LeafResult(0, INT)),)
)
COUNTS, CODES = np.array([2, 0, 200]), np.arange(600).reshape(3, 200) + 60

ITEMS = {
    "numbers": (
        NodeResult("tuple", None, (), (
            LeafResult(0, INT), LeafResult(1, FLOAT), LeafResult(2, BOOL), LeafResult(3, COMPLEX),
            LeafResult(4, NARROW),
        )),
        [np.array([1, -2, 2**62]), np.array([0.5, -0.0, 3]), np.array([True, False, True]),
         np.array([1j, 2, 3 - 1j]), np.array([1.5, 2.5, 3.5], np.float32)],
    ),
    "texts": (TEXT, [COUNTS, CODES]),
    "lists": (
        GrownResult((1,), 0, LeafResult(0, FLOAT)),
        [np.array([1, 3, 0]), np.arange(9.0).reshape(3, 3)],
    ),
    "lists of pairs of lists": (
        GrownResult((1, 2, 3), 0, NodeResult("tuple", None, (), (
            LeafResult(0, INT), GrownResult((2,), 1, LeafResult(0, INT)),
        ))),
        [np.array([1, 2, 0]), np.arange(6).reshape(3, 2), np.array([[2, 0], [1, 3], [9, 9]]),
         np.arange(18).reshape(3, 2, 3)],
    ),
    "dicts": (
        NodeResult("dict", None, ("a", 2), (LeafResult(0, INT), NodeResult(
            "list", None, (), (LeafResult(1, FLOAT), ConstantResult(None))
        ))),
        [np.array([4, 5, 6]), np.array([1.0, 2.0, 3.0])],
    ),
    "choices": (
        CaseResult(0, (ConstantResult("none"), LeafResult(1, INT))),
        [np.array([1, 0, 1]), np.array([4, 5, 6])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_items_are_made_as_python_makes_them(name):
    item, arrays = ITEMS[name]
    write, order = writer(item)
    given = [arrays[k] for k in order]
    for count in (3, 1, 0):
        tree = GrownResult(tuple(range(len(arrays))), len(arrays), item)
        expected = grown_items(tree, [*arrays, count], Flattened(), {})
        found = write(*given, count)
        assert found == expected
        assert repr(found) == repr(expected)


def test_other_arrays_are_left_to_python():
    write, _ = writer(ITEMS["lists"][0])
    counts, rows = ITEMS["lists"][1]
    assert write(counts, np.asfortranarray(rows), 3) is None
    assert write(counts, rows.astype(np.float32), 3) is None
    assert write(counts, rows, 4) is None
    assert write(counts, rows, "3") is None
    assert write(counts, rows) is None
    assert write([1, 2, 3], rows, 3) is None
    assert writer(LeafResult(0, types.TensorType(types.DTYPES["f64"], (3,)))) is None
    deep = LeafResult(0, INT)
    for axes in range(1, 6):
        deep = GrownResult(tuple(range(1, axes + 1)), 0, deep)
    assert writer(deep) is None


def test_no_memory_is_lost():
    write, _ = writer(ITEMS["dicts"][0])
    arrays = ITEMS["dicts"][1]
    before = sys.getrefcount(None), sys.getrefcount(arrays[0])
    for _ in range(20):
        write(*arrays, 3)
    after = sys.getrefcount(None), sys.getrefcount(arrays[0])
    assert abs(after[0] - before[0]) < 5
    assert after[1] == before[1]


def rows_of_everything(n):
    out = []
    for i in range(n):
        inner = []
        for k in range(i % 3):
            inner.append((k, f"{k}"))
        out.append((i, i * 0.5, str(i * i), inner, i % 2 == 0))
    return out


def dicts_in_a_list(n):
    return [{"name": i, "half": i * 0.5, "even": i % 2 == 0} for i in range(n)]


@pytest.mark.parametrize("f", [rows_of_everything, dicts_in_a_list])
def test_what_functions_give(f):
    compiled = pyrelay.jit(f)
    for n in (30, 0, 25, 40):
        found = compiled(n)
        assert found == f(n)
        assert repr(found) == repr(f(n))
    first, second = compiled(20), compiled(20)
    assert first[0] is not second[0]
