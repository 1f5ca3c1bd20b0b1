"""Generators as classes: plain Python runs what is made of them, item by item, as it runs them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pyrelay.frontend.parse import parse
from pyrelay.frontend.resuming import functions_of
from pyrelay.infer.in_python.iteration import as_indexed


def _object(function: Callable[..., Any], *args: Any) -> Any:
    functions: Any = functions_of(function, function.__code__.co_firstlineno, ())  # type: ignore[attr-defined,arg-type]
    assert functions is not None
    return type("Made", (), {**functions, "__indexed__": staticmethod(as_indexed)})(*args)


def _nested(rows: list[list[int]], /, scale: int = 2, *more: int, last: int, **named: int) -> Any:
    yield scale
    for row in rows:
        if not row:
            continue
        yield [scale * v for v in row]
        for k, v in enumerate(row):
            if v > 3:
                break
            yield k, v
        yield from more
    n = 0
    while n < last:
        n += 1
        if n % 2 == 0:
            yield n
        elif n == 3:
            yield named["x"]
            yield -n
        else:
            scale += n
    rows.append([scale])
    yield from rows


def _collatz(n: int) -> Iterator[int]:
    while True:
        yield n
        if n == 1:
            return
        n = n // 2 if n % 2 == 0 else 3 * n + 1


def _twos() -> Iterator[int]:
    value = 1
    while True:
        for each in range(value, value + 2):
            if each == 5:
                break
            yield each
        value *= 2


def test_items_are_those_of_the_generator() -> None:
    rows = [[1, 2], [], [3, 4, 5]]
    made = _object(_nested, [list(row) for row in rows], 3, (7, 8), 6, {"x": 10})
    assert list(made) == list(_nested([list(row) for row in rows], 3, 7, 8, last=6, x=10))
    assert list(made) == []
    with pytest.raises(StopIteration):
        next(made)


def test_one_that_returns_has_ended() -> None:
    made = _object(_collatz, 6)
    assert [next(made), *made] == list(_collatz(6))
    assert next(made, "over") == "over"


def test_one_without_an_end_goes_on_where_it_was_left() -> None:
    made = _object(_twos)
    taken = [next(made) for _ in range(3)] + list(itertools.islice(made, 6))
    assert taken == list(itertools.islice(_twos(), 9))


def _captured(step: int) -> Callable[[int], Iterator[int]]:
    def counted(start: int) -> Iterator[int]:
        while True:
            yield start
            start += step

    return counted


def test_what_is_captured_is_that_of_the_function() -> None:
    made = _object(_captured(3), 1)
    assert [next(made) for _ in range(4)] == [1, 4, 7, 10]


def _sends(x: int) -> Iterator[int]:
    while True:
        got = yield x
        x += got


def test_what_is_sent_is_assigned() -> None:
    made = _object(_sends, 1)
    with pytest.raises(TypeError, match="can't send non-None value to a just-started generator"):
        made.send(2)
    assert [next(made), made.send(2), made.send(5)] == [1, 3, 8]


def _sends_in_an_expression(x: int) -> Iterator[int]:
    while True:
        x += 2 * (yield x)


def _guards(x: int) -> Iterator[int]:
    while True:
        try:
            yield x
        finally:
            x += 1


def _has_a_function(x: int) -> Iterator[int]:
    while True:
        yield (lambda v: v + x)(1)


def _asks_in_a_test(x: int) -> Iterator[int]:
    while (yield x):
        x += 1


@pytest.mark.parametrize("function", [
    _sends_in_an_expression, _guards, _has_a_function, _asks_in_a_test,
])
def test_other_forms_are_not_taken_apart(function: Any) -> None:
    assert functions_of(function, function.__code__.co_firstlineno, ()) is None


def test_spans_are_those_of_the_generator() -> None:
    functions: Any = functions_of(_twos, _twos.__code__.co_firstlineno, ())
    parsed = parse(functions["__next__"])
    assert parsed.source.filename == __file__
    lines = {let.span.line for let in parsed.module.functions["__next__"].body.lets if let.span}
    first = _twos.__code__.co_firstlineno
    assert lines
    assert all(first <= line < first + 9 for line in lines)
