"""`sum` carries rounding errors as Python does since 3.12, whichever Python runs the tests."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import python_sums

A_FEW = [0.1, 0.2, 0.3, 1e16, 1.0, -1e16]


def carried(items: Iterable[Any], start: Any = 0) -> Any:
    """What `sum` gives in Python 3.12."""
    so_far = start, 0.0
    for item in items:
        so_far = python_sums.with_item(so_far, item)
    return python_sums.total_of(so_far)


def _numbers(seed: int, count: int) -> list[float]:
    source = random.Random(seed)
    return [source.uniform(-1, 1) * 10 ** source.randint(-6, 6) for _ in range(count)]


LISTS = [
    _numbers(1, 300), [0.1] * 10, [1e16, 1.0, -1e16], [1e308, 1e308, -1e308],
    [float("inf"), 1.0], [float("nan")], [-0.0], [0.1], [],
]  # fmt: skip


@pytest.fixture
def carries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(python_sums, "CARRIES", True)
    with pyrelay.config.override(cache_dir=str(tmp_path)):
        yield


def same(found: Any, expected: Any) -> None:
    assert repr(found) == repr(expected)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sum carries errors since 3.12")
@pytest.mark.parametrize("items", LISTS)
def test_steps_are_those_of_pythons_sum(items: list[float]) -> None:
    for start in (0, 0.5, -0.0):
        same(carried(items, start), sum(items, start))


def test_what_is_carried_is_what_this_python_carries() -> None:
    assert (sum([0.1] * 10) == 1.0) is python_sums.CARRIES


@pytest.mark.parametrize(
    ("program", "items"),
    [
        (sum, lambda a: a),
        (lambda a: sum(x * x for x in a), lambda a: [x * x for x in a]),
        (lambda a: sum(x for x in a if x > 0.15), lambda a: [x for x in a if x > 0.15]),
        (lambda a: sum(map(abs, a)), lambda a: list(map(abs, a))),
        (lambda a: sum(x + y for x in a[:3] for y in a), lambda a: [
            x + y for x in a[:3] for y in a]),
        (lambda a: sum(1 for x in a if x > 0), lambda a: [1 for x in a if x > 0]),
    ],
    ids=["list", "squares", "chosen", "map", "pairs", "ints"],
)  # fmt: skip
@pytest.mark.usefixtures("carries")
def test_sums_of_lists(
    program: Callable[..., Any], items: Callable[[list[float]], list[float]]
) -> None:
    compiled = pyrelay.jit(program)
    for numbers in LISTS:
        same(compiled(numbers), carried(items(numbers)))


def test_a_list_is_added_up_in_this_pythons_order() -> None:
    """To the last bit, where errors are carried and where they are not."""
    compiled = pyrelay.jit(lambda a: (sum(a), sum([x * x for x in a])))
    draws = random.Random(3)
    for count in (0, 1, 7, 64, 1000):
        a = [draws.random() * 10.0 ** draws.randint(-3, 3) for _ in range(count)]
        same(compiled(a), compiled.py(a))


@pytest.mark.usefixtures("carries")
def test_sums_of_other_things() -> None:
    def other(a: list[float], b: float, mixed: list[Any], array: Any) -> Any:
        made = []
        for k in range(len(a)):
            made.append(a[k] * 0.1)
        return (
            sum(a, 0.25), sum((b, 0.1, b)), sum([b, b, b], -0.0), sum(made[2:]), sum((0.1,) * 10),
            sum(mixed), sum(x if x > 0.25 else 1 for x in mixed),
            sum(dict(enumerate(a)).values()),
            sum(array[k] for k in range(3)), sum(set(a)), sum([[1], [2]], []),  # noqa: RUF017
        )  # fmt: skip

    mixed = [1, 0.1, 0.2, 3, 0.3, 0.7, 10**6, 0.1]
    array = np.full(3, 0.1)
    same(
        pyrelay.jit(other)(A_FEW, 0.3, mixed, array),
        (
            carried(A_FEW, 0.25), carried((0.3, 0.1, 0.3)), carried([0.3] * 3, -0.0),
            carried([x * 0.1 for x in A_FEW[2:]]), carried([0.1] * 10), carried(mixed),
            carried(x if x > 0.25 else 1 for x in mixed), carried(A_FEW),
            np.float64(0.1) + np.float64(0.1) + np.float64(0.1), carried(set(A_FEW)), [1, 2],
        ),
    )  # fmt: skip


@pytest.mark.usefixtures("carries")
def test_rows_of_numbers_and_objects_with_an_addition_of_their_own() -> None:
    class Length:
        def __init__(self, x: float) -> None:
            self.x = x

        def __add__(self, other: Length) -> Length:
            return Length(self.x + other.x)

    def product(a: list[list[float]], b: list[list[float]]) -> Any:
        whole = sum((Length(x) for x in a[0]), Length(0.5)).x
        return [[sum(x * y for x, y in zip(r, c)) for c in zip(*b)] for r in a], whole  # noqa: B905

    a, b = ([_numbers(k + j, 7) for k in range(7)] for j in (2, 20))
    expected = [[carried(x * y for x, y in zip(r, c)) for c in zip(*b)] for r in a]  # noqa: B905
    whole = 0.5
    for x in a[0]:
        whole = whole + x
    same(pyrelay.jit(product)(a, b), (expected, whole))


@pytest.mark.usefixtures("carries")
def test_what_is_lost_has_no_derivative() -> None:
    def loss(w: Any) -> Any:
        return sum((x * 0.3 - 0.1) ** 2 for x in w) + sum([x * 0.5 for x in w])

    w = [1.0, 2.0, 3.0]
    expected = [2 * (x * 0.3 - 0.1) * 0.3 + 0.5 for x in w]
    np.testing.assert_allclose(pyrelay.grad(loss)(w), expected, rtol=1e-14)
