"""Lists of a caller's list that change places: the very lists are where the program puts them."""

from __future__ import annotations

import random

import pytest

import pyrelay


def eliminated(rows):
    """Gaussian elimination with rows exchanged, both ways of writing that."""
    n = len(rows)
    for c in range(n):
        p = max(range(c, n), key=lambda i: abs(rows[i][c]))
        rows[c], rows[p] = rows[p], rows[c]
        kept = rows[c]
        rows[c] = rows[n - 1]
        rows[n - 1] = kept
        rows[n - 1], rows[c] = rows[c], rows[n - 1]
        for r in range(c + 1, n):
            factor = rows[r][c] / rows[c][c]
            for k in range(c, n):
                rows[r][k] -= factor * rows[c][k]
    return rows[n // 2]


def sorted_and_changed(rows):
    rows.sort(key=lambda row: row[1], reverse=True)
    rows.reverse()
    last = rows.pop()
    rows.insert(1, [7.0, 8.0])
    rows.append([9.0, 9.0])
    rows[2] = [5.0]
    rows[0][0] += 1.0
    if rows[3][0] < 0.0:
        raise ValueError("a negative row")
    return rows, last[0]


def shuffled(rows):
    random.seed(4)
    random.shuffle(rows)
    return len(rows)


def rows_of(n, least=0.0):
    rng = random.Random(n)
    return [[rng.uniform(least, 5.0) for _ in range(n)] for _ in range(n)]


@pytest.mark.parametrize(("f", "n"), [
    (eliminated, 18), (eliminated, 4), (sorted_and_changed, 18), (shuffled, 4),
])
def test_the_callers_lists_change_places_as_in_python(f, n):
    compiled = pyrelay.jit(f)
    for least in (0.0, -5.0):
        outcomes = []
        for function in (f, compiled):
            rows = rows_of(n, least)
            before = {id(row): k for k, row in enumerate(rows)}
            kept = list(rows)
            try:
                given = function(rows)
            except ValueError as error:
                given = str(error)
            where = [before.get(id(row), -1) for row in rows]
            outcomes.append((given, rows, where, before.get(id(given), -1), kept))
        (want, *_), (got, *_) = outcomes
        assert outcomes[0][1:] == outcomes[1][1:]
        assert want == got


def test_rows_of_the_programs_own_are_exchanged():
    @pyrelay.jit
    def f(xs, i, j):
        heap = [[x, 2 * x] for x in xs]
        first = heap[i]
        heap[i], heap[j + 1] = heap[j + 1], heap[i]
        first.append(0.5)  # at its new place
        return heap

    for xs, i, j in (([3.0, 1.0, 2.0], 0, 1), ([1.0, 4.0, 5.0, 6.0], 3, 0), ([1.0, 2.0], 1, 0)):
        assert f(xs, i, j) == f.py(xs, i, j)
    with pytest.raises(IndexError):
        f([3.0, 1.0], 0, 5)


def test_a_list_that_was_taken_out_is_refused_where_it_is_used_and_others_go_on():
    @pyrelay.jit
    def f(n, i, j):
        rows = [[k] for k in range(n)]
        row = rows[i]
        rows[0] += rows.pop(j)
        row.append(n)
        return rows

    assert f(4, 3, 1) == [[0, 1], [2], [3, 4]]
    assert f(4, 1, 3) == [[0, 3], [1, 4], [2]]
    for i, j in ((2, 2), (1, 0)):
        with pytest.raises(pyrelay.AliasError, match=r"has been taken out of that.*row\.copy\(\)"):
            f(4, i, j)
