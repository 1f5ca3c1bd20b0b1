"""Arguments of every layout, writes that reach the caller, results that do not share memory."""

from __future__ import annotations

import collections
import copy
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import pyrelay
from pyrelay.infer.guards import ExtentGuard


@pyrelay.jit
def scaled(x):
    return x * 2 + 1


@pyrelay.jit
def bump(x):
    x += 1
    return x


@pyrelay.jit
def set_first(x, y):
    x[0] = 5.0
    return y + x


def layouts() -> list[tuple[str, np.ndarray]]:
    """The numbers 0 to 5 in two rows, laid out in many ways."""
    plain = np.arange(6.0).reshape(2, 3)
    odd = np.empty(49, np.uint8)[1:].view(np.float64).reshape(2, 3)
    odd[...] = plain
    read_only = plain.copy()
    read_only.flags.writeable = False
    return [
        ("C", plain), ("Fortran", np.asfortranarray(plain)),
        ("strided", np.repeat(plain, 2, axis=1)[:, ::2]),
        ("reversed", plain[::-1, ::-1].copy()[::-1, ::-1]),
        ("transposed", plain.T.copy().T), ("byte-swapped", plain.astype(">f8")),
        ("unaligned", odd), ("read-only", read_only),
        ("unpickled", pickle.loads(pickle.dumps(plain))),
        ("other class for 64 bits", plain.astype(np.int64).astype(np.longlong)),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "x"), layouts(), ids=[n for n, _ in layouts()])
def test_arrays_of_every_layout_are_read_right(name, x):
    got = scaled(x)
    np.testing.assert_array_equal(got, scaled.py(x))
    assert got.flags.f_contiguous if name in ("Fortran", "transposed") else got.flags.c_contiguous
    assert got.dtype.isnative


@pytest.mark.parametrize(
    ("name", "x"), [(n, x) for n, x in layouts() if n != "read-only"],
    ids=[n for n, _ in layouts() if n != "read-only"],
)  # fmt: skip
def test_arrays_of_every_layout_are_written_right(name, x):
    before = x.copy()
    assert bump(x) is x
    np.testing.assert_array_equal(x, before + 1)


def test_arrays_with_gaps_are_written_by_calls_that_hardly_look_at_them():
    def raising(x, k):
        x[0] = 5.0
        return x[k]

    f, grid = pyrelay.jit(raising), np.zeros((4, 6))
    for _ in range(2):
        assert f(grid[1:, 2], 0) == 5.0
        assert f(grid[1:, 3].copy(), 0) == 5.0
    with pytest.raises(IndexError):
        f(grid[:, 5], 9)
    assert np.flatnonzero(grid).tolist() == [5, 8]
    assert f.cache_info().compilations == 1
    read_only = grid[:, 1]
    read_only.flags.writeable = False
    with pytest.raises(pyrelay.InvalidValueError, match="read-only"):
        f(read_only, 0)


def test_a_memory_map_is_an_array(tmp_path):
    x = np.memmap(tmp_path / "numbers", np.float64, "w+", shape=(3,))
    bump(x)
    assert x.tolist() == [1.0, 1.0, 1.0]


class Reversed(np.ndarray):
    """An array class with a meaning of its own."""


@pytest.mark.parametrize("x", [np.ma.array([1.0, 2.0], mask=[0, 1]), np.ones(2).view(Reversed)])
def test_arrays_that_behave_otherwise_are_refused(x):
    with pytest.raises(pyrelay.TypeMismatchError, match=r"pass np\.asarray"):
        scaled(x)


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]", "g", [("a", "f8")]])
def test_dtypes_that_are_not_supported_are_refused_with_those_that_are(dtype):
    with pytest.raises(pyrelay.TypeMismatchError, match="supported are bool, int8"):
        scaled(np.zeros(2, dtype))


def test_arrays_without_axes_are_arrays_that_can_be_written():
    x = np.array(3.0)
    assert bump(x) is x
    assert x == 4.0
    assert type(scaled(x)) is np.float64
    assert pyrelay.grad(lambda x: x * x)(x) == 8.0


def test_empty_arrays_and_arrays_of_extent_one_are_served_by_their_own_types():
    for shape in ((0, 3), (1, 3), (4, 0), (1, 1)):
        x = np.ones(shape)
        np.testing.assert_array_equal(scaled(x), scaled.py(x))


def test_ints_that_do_not_fit_are_refused_and_those_at_the_edge_are_not():
    @pyrelay.jit
    def same(n):
        return n

    assert same(2**63 - 1) == 2**63 - 1
    assert same(-(2**63)) == -(2**63)
    with pytest.raises(pyrelay.InvalidValueError, match="does not fit into 64 bits"):
        same(2**63)


# -- writing ---------------------------------------------------------------------------------------


def test_the_same_array_twice_is_one_array():
    x = np.zeros(2)
    assert set_first(x, x).tolist() == [10.0, 0.0]
    assert set_first(np.zeros(2), np.zeros(2)).tolist() == [5.0, 0.0]


def test_arrays_of_one_buffer_that_do_not_overlap_may_be_written():
    x = np.zeros(6)
    assert set_first(x[::2], x[1::2]).tolist() == [5.0, 0.0, 0.0]
    assert x.tolist() == [5.0, 0, 0, 0, 0, 0]


def test_a_read_only_array_is_not_written():
    x = np.zeros(3)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="the function writes into x, which is read-only"):
        set_first(x, np.ones(3))


@dataclass
class State:
    x: object
    count: int
    log: list


def test_lists_dicts_and_objects_are_written_as_the_function_writes_them():
    def change(items, table, state):
        items.append(items[0] * 2)
        items[0] = 7
        table["new"] = table.pop("old") + 1
        state.count += 1
        state.x[0] = 9.0
        state.log.append("done")
        state.x = state.x * 2
        return items, table, state

    def given():
        return [1, 2.0], {"old": 1.0, "other": "text"}, State(np.ones(2), 0, [])

    compiled, plain = given(), given()
    array = compiled[2].x
    results = pyrelay.jit(change)(*compiled)
    change(*plain)
    assert all(result is argument for result, argument in zip(results, compiled, strict=True))
    assert compiled[:2] == plain[:2]
    assert list(compiled[1]) == list(plain[1])
    assert (compiled[2].count, compiled[2].log) == (plain[2].count, plain[2].log)
    assert compiled[2].x.tolist() == plain[2].x.tolist()
    assert array.tolist() == [9.0, 1.0]


def test_one_list_in_two_places_stays_one_list():
    @pyrelay.jit
    def append(pair):
        pair[0].append(1)
        return len(pair[1]), pair[1]

    shared = []
    count, found = append((shared, shared))
    assert (count, found is shared, shared) == (1, True, [1])


def test_writes_made_before_an_exception_stay_in_arrays_of_every_layout():
    @pyrelay.jit
    def fill(x, limit):
        for i in range(len(x)):
            if i == limit:
                raise ValueError(f"stopped at {i}")
            x[i] = 9.0
        return x

    for x in (np.zeros(5), np.zeros(10)[::2]):
        with pytest.raises(ValueError, match="stopped at 2"):
            fill(x, 2)
        assert x.tolist() == [9.0, 9.0, 0.0, 0.0, 0.0]


# -- results ---------------------------------------------------------------------------------------


def test_a_returned_argument_is_the_very_object():
    x, items = np.ones(2), [1]
    found = pyrelay.jit(lambda x, items: (x, items, x))(x, items)
    assert found[0] is x
    assert found[1] is items
    assert found[2] is x


def test_a_returned_basic_slice_of_an_argument_is_a_view():
    @pyrelay.jit
    def parts(x, k):
        return x[1:3], x[::-1], x.T, x[k]

    x = np.arange(12.0).reshape(4, 3)
    for got, wanted in zip(parts(x, 2), parts.py(x, 2), strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert got.base is not None
        assert np.shares_memory(got, x)
        assert got.strides == wanted.strides


def test_results_share_memory_exactly_where_plain_python_says_so():
    @pyrelay.jit
    def several(x):
        y = x * 2
        return y, y, y.copy(), x + 0, x.copy()

    x = np.ones(4)
    one, same, copied, fresh, again = several(x)
    assert same is one
    for a, b in (
        (one, copied), (one, fresh), (copied, fresh), (fresh, x), (again, x), (again, fresh)
    ):
        assert not np.shares_memory(a, b)
    one[:] = 7.0
    assert several(x)[0].tolist() == [2.0] * 4


Point = collections.namedtuple("Point", "x y")


def test_results_have_the_structure_and_the_kinds_that_plain_python_gives():
    def make(x, n):
        inner = {"a": (n > 1, None, "text")}
        return Point(x, n), [n, x[0]], inner, State(x, n, [1.5]), 2.5 * n, n // 2

    x = np.ones(2, np.float32)
    got, wanted = pyrelay.jit(make)(x, 3), make(x, 3)
    assert got[:3] == wanted[:3]
    assert type(got[1][1]) is np.float32
    assert type(got[2]["a"][0]) is bool
    assert vars(got[3]) == vars(wanted[3])
    assert [type(v) for v in got[4:]] == [float, int]


def test_results_outlive_the_function_and_the_arguments():
    def make():
        return pyrelay.jit(lambda x: x + 1)(np.zeros(1000))

    kept = [make() for _ in range(20)]
    assert all((each == 1).all() for each in kept)


# -- exceptions ------------------------------------------------------------------------------------


def _caught(function, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        function(*args)
    return caught.value


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x, k: x[k], (np.ones(4), 9)),
        (lambda x, k: x[k], (np.ones(4), -5)),
        (lambda x, k: x[1, k], (np.ones((2, 3)), 3)),
        (lambda a, b: a // b, (1, 0)),
        (lambda a, b: a / b, (1.0, 0.0)),
        (lambda a, b: a % b, (1, 0)),
        (lambda a: math.sqrt(a), (-1.0,)),
        (lambda a: math.log(a), (0.0,)),
        (lambda a: math.exp(a), (1000.0,)),
        (lambda n: np.zeros(n), (-1,)),
    ],
)
def test_run_time_errors_are_pythons_and_name_the_line(function, args):
    got, wanted = _caught(pyrelay.jit(function), *copy.deepcopy(args)), _caught(function, *args)
    assert type(got) is type(wanted)
    assert str(got) == str(wanted)
    assert "test_boundary.py" in got.__notes__[0]


def test_ints_that_leave_64_bits_raise():
    for function, args in ((lambda a: a * a, (2**40,)), (lambda a: a + 1, (2**63 - 1,)),
                           (lambda a: -a, (-(2**63),))):  # fmt: skip
        with pytest.raises(OverflowError, match="64 bits"):
            pyrelay.jit(function)(*args)


def test_failed_assertions_keep_their_message():
    @pyrelay.jit
    def check(x):
        assert len(x) > 2, f"only {len(x)}"
        assert x[0] > 0
        return x

    assert str(_caught(check, np.ones(2))) == "only 2"
    assert type(_caught(check, np.zeros(3))) is AssertionError


def test_a_result_that_may_be_an_argument_takes_the_direct_way() -> None:
    @pyrelay.jit
    def last(h, n):
        for _ in range(n):
            h = h * 2
        return h

    h = np.ones(3)
    last(h, 0)
    assert last._short is not None
    for n in (0, 1, 0, 2):
        got = last(h, n)
        assert (got is h) == (n == 0)
        np.testing.assert_array_equal(got, h * 2**n)


def test_an_equal_frozenset_of_other_numbers_is_another_argument() -> None:
    compiled = pyrelay.jit(lambda s: sorted(s))
    for given in (frozenset((1, 2)), frozenset((True, 2.0)), frozenset((2, 1))):
        assert repr(compiled(given)) == repr(sorted(given))
    assert compiled.cache_info().compilations == 2


@dataclass
class Branch:
    value: np.ndarray
    below: list[Branch]


@pyrelay.jit
def total(tree, x):
    return (tree.value * x).sum() + sum(total(b, x) for b in tree.below)


def test_extents_of_the_last_call_are_not_compared_again(monkeypatch):
    """Trees are arguments that the short way of calls does not know."""
    asked = []
    holds = ExtentGuard.holds

    def noted(guard, values):
        asked.append(guard)
        return holds(guard, values)

    monkeypatch.setattr(ExtentGuard, "holds", noted)
    counts = []
    for size in (3, 3, 3, 4):
        before = len(asked)
        tree = Branch(np.ones(size), [Branch(np.full(size, 2.0), [])])
        assert total(tree, np.arange(size)) == 3 * sum(range(size))
        counts.append(len(asked) - before)
    assert counts[2] == 0 < counts[3]


CONSTANTS = {f"valve {k}": (k + 1.0, k + 2.0) for k in range(40)}


def test_a_table_is_taken_apart_as_its_program_needs_it_whatever_arguments_ask_for() -> None:
    def loss(x: float, name: str) -> float:
        first = None
        if name in CONSTANTS:
            first, _ = CONSTANTS[name]
        if first is None:
            try:
                first, _ = VALUES[KEYS.index(name)]
            except NameError as error:
                raise ValueError("not in the table") from error
        return x * first

    compiled = pyrelay.jit(loss)
    for name in ("valve 3", "valve 11"):
        assert compiled(2.0, name) == loss(2.0, name)
