"""Programs whose compiling would not end are refused, and short tables are not taken apart at any
price."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import errors
from pyrelay.infer import effort, specialisation, specialise
from pyrelay.infer.containers import columns


def pools(grid: list[list[int]]) -> int:
    """Regions of ones, found by a queue."""
    height, width = len(grid), len(grid[0])
    seen = [[0] * width for _ in range(height)]
    queue: list[tuple[int, int]] = []
    count = 0
    for i in range(height):
        for j, cell in enumerate(grid[i]):
            if cell == 1 and seen[i][j] != 1:
                seen[i][j] = 1
                queue.append((i, j))
                while queue:
                    x, y = queue.pop(0)
                    for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                        u, v = x + dx, y + dy
                        if 0 <= u < height and 0 <= v < width and seen[u][v] != 1 and grid[u][v]:
                            queue.append((u, v))
                            seen[u][v] = 1
                count += 1
    return count


def determinant(m: list[list[float]]) -> float:
    (a, b), (c, d) = m
    return a * d - b * c


def test_a_small_grid_enters_as_a_table_where_its_rows_would_be_much_to_compile() -> None:
    compiled = pyrelay.jit(pools)
    for grid in ([[1, 1, 0], [0, 0, 1], [1, 0, 1]], [[0, 1, 0], [1, 0, 1], [0, 1, 0]]):
        assert compiled(grid) == pools(grid)
    assert compiled.cache_info().compilations == 1
    assert "i64[grid0, grid1]" in str(compiled.ir([[1, 1, 0], [0, 0, 1], [1, 0, 1]]))


def test_the_rows_of_a_short_table_are_known_where_that_costs_little() -> None:
    compiled, m = pyrelay.jit(determinant), [[1.0, 2.0], [3.0, 4.5]]
    assert compiled(m) == determinant(m)
    assert "(a0: float, a1: float, a2: float, a3: float)" in str(compiled.ir(m))


def parted(text: str, parts: tuple[str, ...]) -> int:
    """Ways to part a text into pieces, no two of them the same."""
    if not text:
        return 1
    ways = 0
    for end in range(1, len(text) + 1):
        if text[:end] not in parts:
            ways += parted(text[end:], (*parts, text[:end]))
    return ways


def test_a_program_without_an_end_in_sight_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "MOST_STEPS", 1000)
    monkeypatch.setattr(specialise, "MOST_STEPS", 1000)
    with pytest.raises(pyrelay.UnsupportedOperationError) as caught:
        pyrelay.jit(lambda: parted("abracadabra", ()))()
    text = str(caught.value)
    assert "this program is too much to compile: its end is not in sight after 1,000 steps" in text
    assert "'parted' was compiled" in text


def frequent(baskets: list[list[str]], least: int) -> list[int]:
    sets = [frozenset(basket) for basket in baskets]
    items = {frozenset([item]) for basket in baskets for item in basket}
    found = []
    while items:
        counts = {one: sum(1 for each in sets if one <= each) for one in items}
        kept = {one: count for one, count in counts.items() if count >= least}
        found += kept.values()
        items = {a | b for a in kept for b in kept if len(a | b) == len(a) + 1}
    return found


def test_other_ways_than_the_first_end_soon_and_the_first_refusal_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(specialise, "MOST_STEPS_OTHERWISE", 500)
    with pytest.raises(pyrelay.UnsupportedOperationError, match="its order is not compiled"):
        pyrelay.jit(frequent)([["a", "b", "c"], ["a", "c"], ["b", "d"]], 2)


class Chain:
    def __init__(self, n: int, before: Chain | None = None) -> None:
        self.n, self.before = n, before
        self.after = Chain(n - 1, self) if n > 0 else None


def test_objects_that_only_grow_in_calls_inside_each_other_are_given_up_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is compared with all before it, as a whole: 1,030 times, for five seconds."""
    compared = []
    widened = specialisation._widened

    def counting(*args: Any) -> Any:
        compared.append(1)
        return widened(*args)

    monkeypatch.setattr(specialisation, "_widened", counting)
    with pytest.raises(pyrelay.UnsupportedOperationError, match="before it is complete"):
        pyrelay.jit(lambda n: Chain(n).after.before.n)(3)
    assert len(compared) < 500


class Account:
    """What one customer has, and what was done."""

    def __init__(self, owner: str) -> None:
        self.owner, self.balance = owner, 0.0
        self.log: list[tuple[str, float]] = []

    def book(self, amount: float) -> None:
        if amount < 0 and -amount > self.balance:
            raise ValueError("insufficient")
        self.balance += amount
        self.log.append(("in" if amount > 0 else "out", amount))


def booked(entries: list[tuple[str, float]]) -> Any:
    accounts: dict[str, Account] = {}
    failed = 0
    for owner, amount in entries:
        account = accounts.setdefault(owner, Account(owner))
        try:
            account.book(amount)
        except ValueError:
            failed += 1
    return {owner: (a.balance, a.log) for owner, a in accounts.items()}, failed


def test_long_loops_are_not_unrolled_where_there_is_another_way(monkeypatch: Any) -> None:
    """In 300 rounds of its own the loop takes 20,000 steps, and what comes of them is not used."""
    monkeypatch.setattr(effort, "MOST_STEPS", 6_000)
    entries = [("abc"[k % 3], float(k % 7 - 3)) for k in range(300)]
    assert pyrelay.jit(booked)(entries) == booked(entries)


def alternating(arrays: tuple[Any, ...]) -> Any:
    total = 0.0
    for a in arrays:
        total = total + (a if a.ndim == 0 else a.sum())
    return total


def test_long_loops_are_unrolled_where_nothing_else_helps() -> None:
    arrays = tuple(np.ones((k % 3,) * (k % 2)) for k in range(effort.FEW_ROUNDS + 6))
    assert pyrelay.jit(alternating)(arrays) == alternating(arrays)


def test_ways_that_are_the_same_are_not_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ways, made = [], specialise._specialised

    def noted(*given: Any, **how: Any) -> Any:
        ways.append(given[4])  # up to which length lists are structures
        return made(*given, **how)

    monkeypatch.setattr(specialise, "_specialised", noted)
    with pytest.raises(errors.TypeMismatchError):
        pyrelay.jit(lambda rows: rows[0] < {1: 2})([[1, 2], [3, 4]])
    assert columns.ALL_APART not in ways  # as the first one is: no list of these is longer
    assert ways.count(columns.NONE_APART) == 1


def balance(text: str, n: int) -> int:
    found = 0
    for c in text:
        if (c == "a") == (found < n):
            found += n
        elif found > n:
            found -= 1
    return found


def test_short_texts_are_data_where_they_make_many_branches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, opened = pyrelay.jit(balance), pyrelay.jit(balance)
    assert known("abba", 1) == known("bab", 1) == balance("bab", 1)
    assert known.cache_info().compilations == 2
    monkeypatch.setattr(effort, "MOST_JOINS_OF_TEXTS", 2)
    for text in ("abba", "bab", "aabba"):
        assert opened(text, 1) == balance(text, 1)
    assert opened.cache_info().compilations == 1


def test_or_known_all_the_same_where_they_cannot_be_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_known(text: str, n: int) -> Any:
        return np.zeros(balance(text, n) + 3, dtype=text)

    monkeypatch.setattr(effort, "MOST_JOINS_OF_TEXTS", 1)
    assert pyrelay.jit(of_known)("f4", 1).dtype == np.float32
