"""Lists read by native code, by what Python makes of them."""

import random
import sys
from collections import namedtuple

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.runtime.columns import reader, single
from pyrelay.direct_columns import reader_of
from pyrelay.infer.containers.columns import columns_of

Point = namedtuple("Point", "x y")

LISTS = (
    lambda: [3, -7, 0, 2**63 - 1, -(2**63)],
    lambda: [0.5, -0.0, float("nan"), float("inf")],
    lambda: [True, False, True],
    lambda: [1j, 2.5 - 1j],
    lambda: [np.float32(1.5), np.float32(-2)],
    lambda: [np.int8(-3), np.int8(4)],
    lambda: [np.complex128(1j), np.complex128(2)],
    lambda: [(1, 2.5), (3, -0.5)],
    lambda: [(1, (True, 2j)), (3, (False, 0j))],
    lambda: [Point(1.0, 2), Point(2.0, 3)],
    lambda: ["ab", "", "grün", "日本語", "𝄞x"],
    lambda: [("a", 1, "bc"), ("def", 2, "")],
    lambda: [[1, 2, 3], [4], [], [5, 6]],
    lambda: [[(1, 2.5)], [(2, 3.5), (4, 5.5)]],
    lambda: [[0.5] for _ in range(3)],
    lambda: [["ab", "", "grün"], [], ["日本語", "𝄞x"]],
    lambda: [["a", "é"], ["𝄞"], []],
    lambda: [[("a", 1.5), ("bcd", 2.5)], [("", 3.5)]],
)


@pytest.mark.parametrize("make", LISTS, ids=[repr(make())[:20] for make in LISTS])
def test_lists_are_read_as_python_reads_them(make):
    key, expected = columns_of(make())
    found = reader(key)(make())
    assert len(found) == len(expected)
    counts = expected[0]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if key[0] == "list" and one.ndim > 1:  # what is behind the items of a list means nothing
            there = np.arange(one.shape[1]) < counts[:, None]
            one, other = one[there], other[there]
        np.testing.assert_array_equal(one, other)
        assert one.flags.writeable
        assert one.flags.c_contiguous


def test_other_lists_are_left_to_python():
    ints, floats = ("number", "int"), ("number", "float")
    shared = [1]
    for key, items in (
        (ints, [1, 2.5]), (ints, [1, True]), (ints, [1, 2**63]), (ints, []), (ints, (1, 2)),
        (floats, [1.5, None]), (floats, [1.5, np.float64(2.5)]), (("text",), ["a", 1]),
        (("tuple", None, ints, ints), [(1, 2), (1, 2, 3)]),
        (("tuple", None, floats, floats), [Point(1.0, 2.0)]),
        (("list", ints), [shared, shared]), (("list", ints), [[], []]),
        (("list", ints), [[1], (2,)]), (("list", ints), [[1], [2.5]]),
    ):  # fmt: skip
        before = sys.getrefcount(None), sys.getrefcount(items)
        assert reader(key)(items) is None
        assert sys.getrefcount(items) == before[1]
    assert reader(("list", ("list", ints))) is None  # nothing reads such
    assert reader(("tuple", None, *[ints] * 40)) is None


def test_whether_a_list_has_its_items_alone():
    item = [1]
    assert single()([[1], [2]]) is True
    assert single()([item, [2]]) is None
    assert single()({1: [2]}) is None


def total(rows):
    found = 0
    for row in rows:
        for x in row:
            found += x
    return found


def test_no_memory_is_lost():
    rng = random.Random(2)
    rows = [[rng.random() for _ in range(rng.randrange(1, 6))] for _ in range(200)]
    compiled = pyrelay.jit(total)
    assert compiled(rows) == total(rows)
    counts = [sys.getrefcount(rows), sys.getrefcount(rows[0]), sys.getrefcount(rows[0][0])]
    for _ in range(5):
        assert compiled(rows) == total(rows)
    assert counts == [sys.getrefcount(rows), sys.getrefcount(rows[0]), sys.getrefcount(rows[0][0])]


def test_one_list_in_two_places_is_one_list():
    @pyrelay.jit
    def grow(rows):
        rows[0].append(9)
        return len(rows[1])

    assert grow([[1], [2], [3], [4], [5]]) == 1
    one = [1]
    assert grow([one, one, [3], [4], [5]]) == 2
    assert one == [1, 9]


def test_dicts_of_texts_and_numbers():
    @pyrelay.jit
    def weigh(counts, words):
        found = 0.0
        for word in words:
            found += counts.get(word, 0.0)
        return found

    for k in range(3):
        counts = {f"w{n}": n * 0.5 + k for n in range(40)}
        words = [f"w{n}" for n in range(0, 60, 3 + k)]
        expected = sum(counts.get(word, 0.0) for word in words)
        assert weigh(counts, words) == expected


def test_lists_that_others_refer_to_are_read_where_they_are_known_to_be_different() -> None:
    inner = [[1, 2], [3], []]
    key = ("list", ("number", "int"))
    alone, apart = reader(key), reader(key, apart=True)
    assert alone is not None
    assert apart is not None
    assert alone([*inner]) is None
    found = apart([*inner])
    assert found is not None
    assert found[0].tolist() == [2, 1, 0]
    assert found[1][0].tolist() == [1, 2]

    def lengths(graph):
        return [len(near) for near in graph.values()], graph[3][0]

    graph = {k: [k] * (k % 5) for k in range(20)}
    compiled = pyrelay.jit(lengths)
    assert compiled(graph) == lengths(graph)
    read = reader_of(key)
    assert read is not None
    assert read([*graph.values()]) is not None
    assert read([inner[0], inner[0]]) is None
