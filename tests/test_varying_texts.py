"""Texts, lengths of lists and keys of dicts that differ from call to call become data: programs for
each of them end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.compiled import _MOST_ALIKE
from pyrelay.infer import specialise
from pyrelay.infer.structure import (
    keys_of,
    lengths_of,
    texts_of,
    without_lengths,
    without_texts,
)

WORDS = [f"{'ab' * (k % 3)}{k}" for k in range(_MOST_ALIKE + 4)]


def same_backwards(word: str) -> bool:
    low, high = 0, len(word) - 1
    while low < high:
        if word[low] != word[high]:
            return False
        low, high = low + 1, high - 1
    return True


def longest(words: list[str], letter: str) -> Any:
    found = ""
    for word in words:
        if word.startswith(letter) and len(word) > len(found):
            found = word
    return found, len(words)


def test_programs_for_single_texts_end() -> None:
    compiled = pyrelay.jit(same_backwards)
    for word in [*WORDS, "", "otto", "anna" * 9]:
        assert compiled(word) is same_backwards(word)
    assert compiled.cache_info().compilations == _MOST_ALIKE + 1
    again = compiled.lower("nnn").with_plan(lambda plan: plan)
    assert again("abba")
    assert again.cache_info().compilations == 1
    compiled.forget()
    assert compiled("otto")
    assert compiled.cache_info().signatures == 1


def test_lists_of_texts_of_any_length_are_of_one_program() -> None:
    compiled = pyrelay.jit(longest)
    for count in range(5, len(WORDS) + 5):
        words = (WORDS + WORDS)[:count]
        assert compiled(words, "a") == longest(words, "a")
    before = compiled.cache_info().compilations
    assert before == _MOST_ALIKE + 1
    assert compiled(WORDS[:7], "b") == ("", 7)
    assert compiled.cache_info().compilations == before


@pytest.mark.parametrize("form", ["known", "refused"])
def test_names_that_a_program_has_to_know_stay_known(form: str) -> None:
    def computed(name: str, x: Any) -> Any:
        if form == "refused":
            x = np.sum(x, **{name: 0})
        return getattr(np, name)(x) if form == "known" else x

    compiled = pyrelay.jit(computed)
    x = np.array([0.5, 0.25])
    names = ["sin", "cos", "tan", "exp", "sqrt", "log", "tanh", "sinh", "cosh", "log1p"]
    for name in names if form == "known" else ["axis"]:
        np.testing.assert_allclose(compiled(name, x), computed(name, x))


def cheapest(graph: dict[str, list[tuple[str, int]]], start: str) -> dict[str, int]:
    found, pending = {start: 0}, [start]
    while pending:
        here = pending.pop(0)
        for other, cost in graph[here]:
            if other not in found or found[here] + cost < found[other]:
                found[other] = found[here] + cost
                pending.append(other)
    return found


def test_short_lists_of_any_length_are_of_one_program() -> None:
    compiled = pyrelay.jit(cheapest)
    for count in range(1, _MOST_ALIKE + 5):
        ways = [("abc"[k % 3], k + 1) for k in range(count)]
        graph = {"a": ways[1:3] or ways, "b": ways[: count // 2] or ways, "c": ways[:1]}
        assert compiled(graph, "a") == cheapest(graph, "a")
    assert compiled.cache_info().compilations <= _MOST_ALIKE + 1


def doubled(points: dict[Any, float], how: str) -> Any:
    best = max(points, key=points.get)  # type: ignore[arg-type]
    return {k: getattr(np, how)(v) for k, v in points.items()}, best, sum(points.values())


@pytest.mark.parametrize("keys", ["abcdefgh", range(8)])
def test_dicts_of_any_keys_are_of_one_program(keys: Any) -> None:
    compiled = pyrelay.jit(doubled)
    for count in range(_MOST_ALIKE + 8):
        chosen = [keys[(count * 3 + k * 5) % 8] for k in range(1 + count % 5)]
        points = {key: (k * 7 + count) % 9 * 0.5 for k, key in enumerate(chosen)}
        assert compiled(points, "sqrt") == doubled(points, "sqrt")
    assert compiled.cache_info().compilations <= _MOST_ALIKE + 2
    assert not compiled._open_texts


def test_names_stay_known_where_lengths_alone_vary() -> None:
    def summed(rows: list[list[float]], how: str) -> Any:
        total = 0.0
        for row in rows:
            total = total + getattr(np, how)(np.array(row))
        return total

    compiled = pyrelay.jit(summed)
    shapes = [(a, b) for a in range(1, 4) for b in range(1, 4)]
    for a, b in shapes:
        rows = [[0.5] * a, [1.5] * b]
        assert compiled(rows, "sum") == summed(rows, "sum")
    assert compiled.cache_info().compilations < len(shapes)
    assert not compiled._open_texts


def test_keys_without_texts_and_lengths_are_those_of_others() -> None:
    def of(*texts: str) -> Any:
        return tuple(("constant", str, text) for text in texts)

    one = (("list", *of("a", "b")), ("dict", ("k", "m"), *of("c", "e")), ("set", *of("x", "y")))
    other = (("list", *of("c")), ("dict", ("n",), *of("d")), ("set", *of("z")))

    def general(key: Any) -> Any:
        return without_lengths(without_texts(key))

    assert general(one) == general(other) != one
    assert without_texts(one) != without_texts(other)
    assert texts_of(one) == {"a", "b", "c", "e", "x", "y"}
    assert (lengths_of(one), keys_of(one)) == ([3, 3], [("k", "m")])
    for different in (
        (("list",), *other[1:]), (other[0], ("dict", (1,), *of("d")), other[2]),
        (("list", ("constant", type(None), None)), *other[1:]),
    ):
        assert general(different) != general(one)


def test_bytes_are_data_where_they_are_long_or_many() -> None:
    def checksum(data: bytes) -> int:
        low, high = 1, 0
        for item in data:
            low = (low + item) % 65521
            high = (high + low) % 65521
        return high << 16 | low

    compiled = pyrelay.jit(checksum)
    for k in range(4):
        assert compiled(bytes(range(20 + k))) == checksum(bytes(range(20 + k)))
    assert compiled.cache_info().compilations == 1
    compiled = pyrelay.jit(checksum)
    for k in range(_MOST_ALIKE + 4):
        assert compiled(bytes([k])) == checksum(bytes([k]))
    assert compiled.cache_info().compilations == _MOST_ALIKE + 1


def test_bytes_that_a_program_was_compiled_for_are_compared() -> None:
    compiled = pyrelay.jit(lambda data: data.decode("ascii"))
    for data in (b"a" * 20, b"b" * 20, b"a" * 20):
        assert compiled(data) == data.decode("ascii")


def first_to_win(board: str, player: str) -> Any:
    lines = ((0, 1, 2), (3, 4, 5), (0, 3, 1), (1, 4, 2), (2, 5, 3))
    if any(board[i] == board[j] == board[k] != "." for i, j, k in lines):
        return -1, None
    free = [i for i, c in enumerate(board) if c == "."]
    if not free:
        return 0, None
    other = "O" if player == "X" else "X"
    return max((-first_to_win(board[:m] + player + board[m + 1 :], other)[0], m) for m in free)


def test_known_texts_are_data_where_the_program_for_them_would_be_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(specialise, "MOST_STEPS_OF_TEXTS", 1000)
    compiled = pyrelay.jit(first_to_win)
    for board in ("X.O...", "......"):
        assert compiled(board, "X") == first_to_win(board, "X")
    assert compiled.cache_info().compilations == 1
