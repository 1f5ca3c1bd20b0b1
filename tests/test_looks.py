"""Functions of many programs: calls find the short way into the right one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import looks

KINDS = ("f8", "f4", "i8", "i4", "i2", "i1", "u1", "u2", "c16")


@pyrelay.jit
def shifted(x: Any, y: Any, by: Any = 1) -> Any:
    if x.shape[0] == y.shape[0] and x[0] > 100:
        raise ValueError("too much")
    return x[:1] + y * by


def arguments() -> list[tuple[Any, ...]]:
    return [
        *((np.arange(1, 4).astype(kind), np.ones(3, kind)) for kind in KINDS if kind != "c16"),
        (np.ones(3), np.ones(1)), (np.ones(1), np.ones(3)), (np.ones(3), np.ones((2, 3))),
    ]


@pytest.fixture(scope="module")
def many() -> Any:
    made = shifted.again()
    for args in (*arguments(), *arguments(), *arguments()):
        made(*args)
    return made


def test_each_of_many_programs_is_entered_the_short_way(
    many: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hits = many.cache_info().hits
    monkeypatch.setattr(many._looks, "_otherwise", None)
    for args in arguments():
        result, expected = many(*args), shifted.py(*args)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
    assert many.cache_info().hits == hits + len(arguments())


def test_arguments_by_name_are_looked_at_as_they_are_given(
    many: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = arguments()[1]
    wanted = shifted.py(x, y)
    many(x, y=y), many(y=y, x=x)
    monkeypatch.setattr(many._looks, "_otherwise", None)
    np.testing.assert_array_equal(many(x, y=y), wanted)
    np.testing.assert_array_equal(many(y=y, x=x), wanted)


def test_a_third_program_that_is_entered_by_python_makes_calls_go_by_looks() -> None:
    made = pyrelay.jit(lambda pair, x: x * pair[0] + pair[1])
    kinds = [((2.0, 1.0), np.ones(3, kind)) for kind in ("f8", "f4", "i8")]
    for number, args in enumerate(kinds):
        assert made._looks is None
        np.testing.assert_array_equal(made(*args), made.py(*args))
        assert made._chained == min(4 * number + 4, 8)
    assert made._looks is not None
    for args in (*kinds, *kinds):
        result, wanted = made(*args), made.py(*args)
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)


def test_what_no_program_takes_goes_the_long_way(many: Any) -> None:
    for _ in range(3):
        assert many(np.ones(3), np.ones(3), by=2.5).tolist() == [3.5] * 3
        assert many(np.ones(6)[::2], np.ones(3)).tolist() == [2] * 3


def test_errors_name_the_users_call_as_those_of_one_program_do(many: Any) -> None:
    texts = []
    for function in (shifted, many):
        with pytest.raises(ValueError, match="too much"):
            function(np.full(3, 200.0), np.ones(3))
        with pytest.raises(pyrelay.errors.PyrelayError) as caught:
            function(np.ones((3, 2, 4)), np.ones((5, 1, 7)))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "shifted(" in texts[0]


def test_programs_that_went_are_not_kept(many: Any) -> None:
    made = shifted.again()
    for args in arguments():
        made(*args)
    made.forget()
    assert made._looks is None
    assert made(*arguments()[0]).tolist() == [2] * 3


def test_looks_tell_classes_dtypes_axes_texts_and_names_apart() -> None:
    x = np.ones(3)
    alike = looks.look_of((x, 1), {})
    assert alike == looks.look_of((x + 1, 2), {})
    others = [
        looks.look_of(args, named) for args, named in (
            ((x, 1.0), {}), ((x.astype("f4"), 1), {}), ((x[None], 1), {}), ((x,), {"n": 1}),
            ((x,), {"k": 1}), ((x, "a"), {}), ((x, "b"), {}), ((x, True), {}),
        )
    ]
    assert len({alike, *others}) == 1 + len(others)
