"""What attempts ask for, and what is done where the next one cannot have it."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.infer.attempt import Attempt
from pyrelay.infer.flow import choice


def numbers(xs: list[int]) -> int:
    squares: dict[int, int] = {}
    for k in range(6):
        squares[k] = k * k
    total = 0
    for x in xs:
        total += squares[x] + squares.get(x + 3, -1)
    return total


def words_and_numbers(xs: list[int]) -> list[str]:
    named = {0: "none", 1: 1, 2: 2.5, 3: "three", 4: 4, 5: (5, "five")}
    return [str(named[x]) for x in xs]


def words_and_lists(xs: list[int]) -> list[str]:
    named = {0: "none", 1: 1, 2: 2.5, 3: "three", 4: [4, 4], 5: (5, "five")}
    return [str(named[x]) for x in xs]


@pytest.mark.parametrize(
    ("function", "tables"),
    [(numbers, [0, 1]), (words_and_numbers, [0, 1]), (words_and_lists, [0, 1, 1, 0])],
)
def test_dicts_of_many_keys_become_tables_if_they_can(
    function: Any, tables: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they hold lists, what may have an open length is looked at in between."""
    taken: list[frozenset[Any]] = []
    run = Attempt.run

    def noted(self: Attempt, *args: Any) -> Any:
        taken.append(self.asked.tables)
        return run(self, *args)

    monkeypatch.setattr(choice, "MOST_COMPARED", 10)
    monkeypatch.setattr(Attempt, "run", noted)
    xs = [1, 5, 0, 3] * 10  # enters as an array
    with config.override(interpret=True):
        assert pyrelay.jit(function)(xs) == function(xs)
    assert list(map(len, taken)) == tables


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[Attempt]:
    """The attempts that a test makes, in order."""
    found: list[Attempt] = []
    run = Attempt.run

    def noted(self: Attempt, *args: Any) -> Any:
        found.append(self)
        return run(self, *args)

    monkeypatch.setattr(Attempt, "run", noted)
    return found


def orders(letters: str) -> list[str]:
    found: list[str] = []

    def go(rest: str, begun: str) -> None:
        if not rest:
            found.append(begun)
        for k in range(len(rest)):
            go(rest[:k] + rest[k + 1 :], begun + rest[k])

    go(letters, "")
    return found


def test_texts_that_functions_lengthen_for_themselves_are_of_run_time_length_before_loops_unroll(
    attempts: list[Attempt],
) -> None:
    """Once each loop around a call was unrolled where that failed: minutes for four letters."""
    with config.override(interpret=True):
        assert pyrelay.jit(orders)("abcd") == orders("abcd")
    assert len(attempts) == 2  # one of a known length, which also finds the text that is an array
    assert attempts[-1].asked.effort.steps < 800


def neighbours(words: list[str], of: str) -> list[str]:
    alike: dict[str, list[str]] = {}
    for word in words:
        for k in range(len(word)):
            alike.setdefault(word[:k] + "*" + word[k + 1 :], []).append(word)
    found: list[str] = []
    queue, seen = [of], {of}
    while queue:
        word = queue.pop(0)
        found.append(word)
        for k in range(len(word)):
            for other in alike.get(word[:k] + "*" + word[k + 1 :], []):
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
    return found


def test_texts_that_are_read_as_arrays_behind_branches_take_no_attempt(
    attempts: list[Attempt],
) -> None:
    """Each word, and each with a letter left out, was asked for by an attempt of its own."""
    words = ["hot", "dot", "dog", "lag"]
    with config.override(interpret=True):
        assert pyrelay.jit(neighbours)(words, "hot") == neighbours(words, "hot")
    assert len(attempts) == 3  # the tables of numbers that are written first
    assert not attempts[-1].asked.captured
    assert attempts[-1].read_in_paths


def by_round(xs: np.ndarray, n: int) -> list[float]:
    halves, squares, sums = {}, {}, {-1: np.zeros(2)}
    for t in range(len([x for x in xs if x > n])):
        halves[t] = xs[:2] * 0.5
        squares[t] = halves[t] ** 2
        sums[t] = sums[t - 1] + squares[t]
    return [float(sums[t].sum()) for t in range(len(sums) - 1)]


def drawn_behind_a_raise(xs: np.ndarray, n: int) -> float:
    if len(xs) < n:
        raise ValueError("too few")
    xs[n] = np.random.random()
    if xs[n] < 0:
        raise ValueError("cannot be")
    return xs.sum()


def chosen_in_rounds(xs: np.ndarray, n: int) -> int:
    return sum(np.random.choice(len(xs), p=xs / xs.sum()) for _ in range(n))


@pytest.mark.parametrize(
    ("function", "attempts"),
    [
        (by_round, 2),  # tables of all three dicts at once
        (drawn_behind_a_raise, 3),  # what follows the raises begins with the generator
        (chosen_in_rounds, 4),  # nothing of pyrelay's own is captured
    ],
)
def test_attempts_are_given_all_that_is_known_to_be_needed(
    function: Any, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    run = Attempt.run

    def counted(self: Attempt, *args: Any) -> Any:
        nonlocal count
        count += 1
        return run(self, *args)

    monkeypatch.setattr(Attempt, "run", counted)
    given = [np.linspace(1.0, 2.0, 6) for _ in range(2)]
    with config.override(interpret=True):
        np.random.seed(0)
        found = pyrelay.jit(function)(given[0], 1)
    np.random.seed(0)
    assert found == function(given[1], 1)
    assert np.array_equal(*given)
    assert count == attempts


class Affine:
    def __init__(self, rows: int, columns: int) -> None:
        self.w = np.ones((rows, columns))
        self.dw: Any = None


class Relu:
    pass


class Net:
    def __init__(self) -> None:
        self.count = 2
        self.layers = [Affine(2, 3), Relu(), Affine(3, 1)]


def gradients_by_index(net: Net) -> list[np.ndarray]:
    net.layers[0].dw, net.layers[2].dw = net.layers[0].w, net.layers[2].w
    return [net.layers[2 * i].dw for i in range(net.count)]


def test_arrays_of_other_shapes_are_items_in_programs_that_lose_writes_where_they_raise() -> None:
    """A Relu has no `dw`, and to keep what was written before that would take another program."""
    with config.override(interpret=True):
        got = pyrelay.jit(gradients_by_index)(Net())
    assert [g.shape for g in got] == [(2, 3), (3, 1)]


def learnt(n: int, m: int) -> list[Any]:
    """A table of rows that begin where they are read, gone through in order."""
    rows: Any = collections.defaultdict(lambda: [0.0, 0.0])
    for _ in range(n):
        s = 0
        for _ in range(30):
            after = s * 7 % 11 + m
            rows[s][s % 2] += 0.5 * (max(rows[after]) - rows[s][s % 2] + 1.0)
            s = after
            if s == 4:
                break
    return sorted(rows.items())


@pytest.mark.slow
def test_lists_of_a_table_are_copied_rather_than_loops_unrolled() -> None:
    """The loops were unrolled, which was too much to compile."""
    with config.override(interpret=True):
        assert pyrelay.jit(learnt)(40, 1) == learnt(40, 1)


class Person:
    def __init__(self, x: float, state: str) -> None:
        self.x, self.state = x, state


class Weights:
    def __init__(self, count: int) -> None:
        self.values = np.ones(count)


def spread(n: int) -> list[str]:
    people = [Person(0.1 * i, "ill" if i < 2 else "well") for i in range(n)]
    for a in people:
        for b in people:
            if a.state == "ill" and b.state == "well" and b.x - a.x < 0.25:
                b.state = "ill" if b.x < 0.7 else "immune"
    return [p.state for p in people]


def always_spread() -> list[str]:
    return spread(30)


def totals(n: int) -> list[float]:
    layers = [Weights(i + 1) for i in range(n)]
    return [layer.values.sum() for layer in layers]


def test_objects_of_as_many_rounds_as_an_argument_says_are_nodes() -> None:
    """They were unrolled, for each number of them anew."""
    compiled = pyrelay.jit(spread)
    for n in (6, 9, 30):
        assert compiled(n) == spread(n)
    assert compiled.cache_info().compilations == 1


def test_objects_of_many_rounds_are_nodes() -> None:
    assert pyrelay.jit(always_spread)() == spread(30)


def test_objects_that_cannot_be_nodes_are_apart() -> None:
    assert pyrelay.jit(totals)(6) == totals(6)


def turns(codes: list[int]) -> list[str]:
    """Tuples that nest without end, and texts that a function lengthens for itself."""
    tree = None
    for code in codes:
        tree = (code, tree, None) if code % 2 else (code, None, tree)
    found: list[str] = []

    def walk(tree: Any, way: str) -> None:
        if tree is None:
            return
        code, left, right = tree
        found.append(way + str(code))
        walk(left, way + "l")
        walk(right, way + "r")

    walk(tree, "")
    return found


def test_nodes_that_nest_without_end_stay_where_texts_have_no_known_length(
    attempts: list[Attempt],
) -> None:
    codes = [3, 6, 7, 2, 9, 4, 1, 8]
    with config.override(interpret=True):
        assert pyrelay.jit(turns)(codes) == turns(codes)
    assert len(attempts) == 5  # there were 8: what nodes hold was found anew


def letters_by_word(pairs: list[tuple[str, int]]) -> dict[str, dict[str, int]]:
    """Dicts in a dict, one for each item of a list that a loop makes."""
    words = sorted([word for word, _ in pairs])
    found = {}
    for word in words:
        found[word] = {word[0]: len(word)}
    return found


def test_dicts_in_dicts_are_no_reason_to_unroll_loops() -> None:
    compiled = pyrelay.jit(letters_by_word)
    for n in (20, 33, 50):
        pairs = [(f"w{k % 7}", k) for k in range(n)]
        assert compiled(pairs) == letters_by_word(pairs)
    assert compiled.cache_info().compilations == 1


class Visitor:
    def __init__(self, place: float, state: str) -> None:
        self.place, self.state, self.days = place, state, 0


def counted_each_day(count: int, days: int) -> list[dict[str, int]]:
    people = [Visitor(k * k % 7 / 7.0, "I" if k == 0 else "S") for k in range(count)]
    found = []
    for _ in range(days):
        ill = [p for p in people if p.state == "I"]
        for p in people:
            if p.state == "S" and any(abs(p.place - q.place) < 0.2 for q in ill):
                p.state = "I"
            elif p.state == "I":
                p.days += 1
                if p.days > 2:
                    p.state = "R"
        found.append({state: sum(p.state == state for p in people) for state in "SIR"})
    return found


def test_dicts_that_get_other_keys_leave_objects_nodes(attempts: list[Attempt]) -> None:
    assert pyrelay.jit(counted_each_day)(25, 6) == counted_each_day(25, 6)
    assert len(attempts) <= 8
    assert attempts[-1].asked.quick_classes == {Visitor}


def texts_by_number(numbers: list[int]) -> list[list[int]]:
    chosen = {n: set(range(n % 3, 9, 2)) for n in numbers}
    return [sorted(of) for n, of in chosen.items() if of != {n}]


def test_numbers_of_an_argument_are_known_together(attempts: list[Attempt]) -> None:
    numbers = [4, 7, 2, 9]
    assert pyrelay.jit(texts_by_number)(numbers) == texts_by_number(numbers)
    asked = attempts[-1].asked
    assert len(attempts) <= 4  # there were 6
    assert len(asked.known) == len(numbers)


def ways_to(n: int) -> list[list[int]]:
    known: dict[int, list[list[int]]] = {0: [[]]}
    for k in range(1, n + 1):
        known[k] = [[*rest, k] for j in range(k) for rest in known[j]]
    return known[n]


def test_lists_in_lists_hold_lists_with_what_was_granted_before(attempts: list[Attempt]) -> None:
    assert pyrelay.jit(ways_to)(3) == ways_to(3)
    asked = attempts[-1].asked
    assert asked.deep
    assert asked.tables
    assert len({id(attempt.asked) for attempt in attempts}) == 1  # no other way was taken


def balanced(n: int, opened: int = 0, closed: int = 0, text: str = "") -> Iterator[str]:
    if len(text) == 2 * n:
        yield text
    if opened < n:
        yield from balanced(n, opened + 1, closed, text + "(")
    if closed < opened:
        yield from balanced(n, opened, closed + 1, text + ")")


def all_balanced(n: int) -> list[str]:
    return list(balanced(n))


def test_generators_that_call_themselves_with_longer_texts_are_soon_of_any_length(
    attempts: list[Attempt],
) -> None:
    assert pyrelay.jit(all_balanced)(3) == all_balanced(3)
    assert len(attempts) == 3
    assert attempts[-1].asked.effort.steps < 1000  # there were 8,000


class Sum:
    def __init__(self, text: str) -> None:
        self.words, self.at = [c for c in text if not c.isspace()], 0

    def take(self) -> float:
        word = self.words[self.at]
        self.at += 1
        if word == "(":
            raise SyntaxError("missing )")
        try:
            return float(word)
        except ValueError:
            raise SyntaxError(f"unexpected {word!r}") from None

    def total(self) -> float:
        found = self.take()
        while self.at < len(self.words):
            found += self.take()
        return found


def sums(lines: list[str]) -> list[str]:
    out = []
    for line in lines:
        try:
            out.append(f"{Sum(line).total():g}")
        except SyntaxError as error:
            out.append(f"bad: {error}")
    return out


def test_a_list_of_another_length_on_each_path_is_no_reason_for_a_table(
    attempts: list[Attempt],
) -> None:
    """No list becomes one: the attempt with it ended where the one before did."""
    lines = ["1 2", "x", "3"]
    with config.override(interpret=True):
        assert pyrelay.jit(sums)(lines) == sums(lines)
    assert len(attempts) == 2
