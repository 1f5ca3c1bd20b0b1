"""Ops that may raise behind writes to the caller's objects: asked before they run, and once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.infer.running import inferred


def in_one_arm(p: Any, t: int, c: bool) -> None:
    p["a"] = 1.0
    if c:
        p["b"] = 0.0**t
    p["c"] = 0.0**t


def after_a_try(p: Any, t: int, c: bool) -> None:
    p["a"] = 1.0
    try:
        p["b"] = 0.0**t
    except ZeroDivisionError:
        p["b"] = -1.0
    p["c"] = 2.0
    if c:
        p["d"] = 0.0**t


def in_each_round(p: Any, t: int, c: bool) -> None:
    for k in p:
        p[k] = p[k] + 1.0
        p[k] = p[k] + 0.0**t


def of_another_number(p: Any, t: int, c: bool) -> None:
    for k in p:
        p[k] = 0.0**t
        t = t - 1 if c else t


@pytest.mark.parametrize("t", [2, 1, 0, -1])
@pytest.mark.parametrize("c", [True, False])
@pytest.mark.parametrize(
    "program", [in_one_arm, after_a_try, in_each_round, of_another_number],
    ids=lambda p: p.__name__,
)
def test_an_op_that_did_not_raise_is_asked_again_where_it_may(
    program: Any, t: int, c: bool
) -> None:
    mine, theirs = ({"a": 0.5, "b": 1.5, "c": 2.5, "d": 3.5} for _ in range(2))
    ends = []
    for run, p in ((pyrelay.jit(program), mine), (program, theirs)):
        try:
            ends.append(run(p, t, c))
        except ZeroDivisionError as error:
            ends.append(str(error))
    assert ends[0] == ends[1]
    assert mine == theirs


def test_an_op_of_the_same_numbers_is_asked_once() -> None:
    def stepped(p: Any, g: Any, t: int) -> None:
        for k in p:
            p[k] -= g[k] / (1 - 0.9**t)

    def text(count: int) -> str:
        p, g = ({f"w{k}": np.ones(3) for k in range(count)} for _ in range(2))
        return str(pyrelay.jit(stepped).ir(p, g, 3, stage="infer"))

    assert text(2).count("isinf(") == text(6).count("isinf(") == 1


def test_a_dict_that_enters_as_a_table_is_not_taken_for_written():
    def dearest(prices, names):
        total = 0
        for name in names:
            total += prices[name]
        return total

    prices = {k: 2 * k for k in range(20)}
    made = inferred(dearest, (prices, list(range(9))))
    assert "RaisedResult" not in repr(made.binding.result)  # nothing is followed to the caller
    with pytest.raises(KeyError) as caught:
        pyrelay.jit(dearest)(prices, [1, 2, 3, 50, 4])
    assert caught.value.args == (50,)


def test_a_character_that_is_raised_is_part_of_a_kernel():
    def told(text, known):
        total = 0
        for c in text:
            total += known[c]
        return total

    text = "a text of more than sixteen"
    known = {c: k for k, c in enumerate(sorted(set(text)))} | {str(k): k for k in range(9)}
    compiled = pyrelay.jit(told)
    assert compiled(text, known) == told(text, known)
    assert "host" not in str(compiled.ir(text, known))
    for odd in ("\U0001f600", "%", "\x00"):
        with pytest.raises(KeyError) as caught:
            compiled(text + odd, known)
        assert caught.value.args == (odd,)


def test_what_looks_at_a_diagonal_raises_nothing_to_catch():
    def traced(a, b, n):
        try:
            if n > 3:
                raise ValueError("more than three")
            m = np.outer(a[a > 0], b)
            seen = np.diagonal(m) if n > 1 else a[:0]
            for k in range(1):
                seen = seen + np.diagonal(m)[k]
        except ValueError:
            return -1.0
        return seen.sum() + m.trace()

    compiled = pyrelay.jit(traced)
    a, b = np.array([1.0, 0.0, 2.0, -1.0, 3.0]), np.arange(5.0)
    for n in (2, 3, 4):
        assert compiled(a, b, n) == traced(a, b, n)


def inverse_or_words(a: Any) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError as error:
        return str(error)


def summed_or_whole(a: Any) -> Any:
    try:
        return a.sum(axis=a.ndim + 3)
    except np.exceptions.AxisError as error:
        return str(error), a.sum()


@pytest.mark.parametrize("function", [inverse_or_words, summed_or_whole])
@pytest.mark.parametrize("shape", [(2, 3), (3,)])
def test_what_numpy_raises_for_shapes_is_caught_by_its_own_class(
    function: Any, shape: tuple[int, ...]
) -> None:
    a = np.ones(shape)
    assert pyrelay.jit(function)(a) == function(a)


def test_what_a_method_raises_behind_a_write_is_at_the_users_line() -> None:
    def found(xs: Any) -> Any:
        xs.append(1)
        return xs.index(9)

    given = [3]
    with pytest.raises(ValueError, match="not in list") as caught:
        pyrelay.jit(found)(given)
    assert caught.value.span.source.filename == __file__  # type: ignore[attr-defined]
    assert given == [3, 1]
