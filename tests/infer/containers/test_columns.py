"""Lists of many numbers as arguments: one program for all lengths, and the caller's lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import pyrelay


def total(xs):
    s = 0.0
    for v in xs:
        s += v * v
    return s


class Edge(NamedTuple):
    """A weighted edge."""

    start: int
    end: int
    weight: float


@pytest.mark.parametrize("item", [
    lambda k: 0.5 * k, lambda k: k, lambda k: k % 2 == 0, lambda k: complex(k, 1),
    lambda k: np.float32(k), lambda k: np.int64(k), lambda k: (k, 0.5 * k),
    lambda k: Edge(k, k + 1, 0.5), lambda k: [k] * (k % 3), lambda k: [(k, 1.0)] * (k % 3),
    lambda k: [[k] * (k % 3), [k]],
])
def test_a_new_length_compiles_nothing(item):
    @pyrelay.jit
    def first_and_last(xs):
        return xs[0], xs[-1], len(xs)

    for n in (5, 9, 30):
        xs = [item(k) for k in range(n)]
        got = first_and_last(xs)
        assert got == (xs[0], xs[-1], n)
        assert list(map(type, got)) == list(map(type, (xs[0], xs[-1], n)))
    assert first_and_last.cache_info().compilations == 1


@pytest.mark.parametrize("item", [
    lambda k, n: k if k % n else k + 0.5, lambda k, n: k > 2 if k % n else k,
    lambda k, n: 0.5 * k if k % n else np.float64(k), lambda k, n: np.int32(k) if k % n else k,
    lambda k, n: np.float32(k) if k % n else 0.1, lambda k, n: (k if k % n else 1.5, 2.0 * k),
])
def test_which_items_are_of_which_kind_compiles_nothing(item):
    @pyrelay.jit
    def turned(xs):
        xs[1] = xs[3]
        xs.append(xs[0])
        return xs[2], xs[::-1], len(xs)

    def plain(xs):
        xs[1] = xs[3]
        xs.append(xs[0])
        return xs[2], xs[::-1], len(xs)

    for n in (2, 3, 5):
        mine, pythons = ([item(k, n) for k in range(7 + n)] for _ in range(2))
        got, wanted = turned(mine), plain(pythons)
        assert repr(got) == repr(wanted)
        assert repr(mine) == repr(pythons)
    assert turned.cache_info().compilations == 1


def test_which_items_of_rows_are_of_which_kind_compiles_nothing():
    def totals(rows):
        rows[1][0] *= 2
        return [sum(row) for row in rows], rows[2][::-1], rows[1][0]

    compiled = pyrelay.jit(totals)
    for n in (2, 3, 5):
        mine, pythons = ([[k, 1.5] if k % n else [2.5, k, 3] for k in range(6)] for _ in range(2))
        assert repr(compiled(mine)) == repr(totals(pythons))
        assert repr(mine) == repr(pythons)
    assert compiled.cache_info().compilations == 1


def test_ints_that_no_float_holds_are_items_of_their_own():
    @pyrelay.jit
    def ends(xs):
        return xs[0], xs[-1]

    assert repr(ends([2**53 + 1, 0.5, 1, 2, 3])) == repr((2**53 + 1, 3))
    assert repr(ends([2**53, 0.5, 1, 2, 3.5])) == repr((2**53, 3.5))


def test_the_gradient_of_a_list_of_several_kinds_says_which_have_one():
    assert pyrelay.grad(total)([1, 2.5, 3.0, 4, 5.5]) == [None, 5.0, 6.0, None, 11.0]


def test_the_gradient_of_a_list_is_a_list_and_a_new_length_compiles_nothing():
    f = pyrelay.grad(lambda xs: sum(w * k * k for k, w in xs))
    for n in (5, 12):
        assert f([(k, 1.5) for k in range(n)]) == [(None, float(k * k)) for k in range(n)]
    assert f.cache_info().compilations == 1
    assert pyrelay.grad(total)([1.0, 2.0, 3.0, 4.0, 5.0]) == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert pyrelay.grad(lambda g: g[1][0] * g[4][1])([[1.0, 2.0]] + [[k, 3.0] for k in (1.0, 2.0,
        3.0, 4.0)]) == [[0, 0], [3, 0], [0, 0], [0, 0], [0, 1]]


def test_what_is_changed_is_the_callers_list():
    @pyrelay.jit
    def change(xs, rows):
        xs[2] = 7
        xs.append(8)
        rows[1][0] = -1
        rows.append([5])
        return rows[2], xs, rows

    xs, rows = list(range(6)), [[k, k] for k in range(6)]
    kept = list(rows)
    row, same, all_rows = change(xs, rows)
    assert same is xs
    assert all_rows is rows
    assert row is kept[2]
    assert xs == [0, 1, 7, 3, 4, 5, 8]
    assert all(a is b for a, b in zip(rows, kept, strict=False))
    assert rows == [[0, 0], [-1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [5]]


def test_rows_in_rows_stay_the_callers_own():
    @pyrelay.jit
    def change(layers, k):
        layers[k][1][0] = -1
        layers[k].append([5])
        layers.append([[6]])
        return layers[k], layers[k][0]

    layers = [[[k], [k, k]] for k in range(6)]
    kept = [[layer, *layer] for layer in layers]
    for k in (2, 3):
        layer, row = change(layers, k)
        assert layer is layers[k]
        assert row is layers[k][0]
    assert layers[2:] == [
        [[2], [-1, 2], [5]], [[3], [-1, 3], [5]], [[4], [4, 4]], [[5], [5, 5]], [[6]], [[6]],
    ]
    for layer, before in zip(layers, kept, strict=False):
        assert all(a is b for a, b in zip([layer, *layer], before, strict=False))
    assert change.cache_info().compilations == 1


def test_rows_in_rows_that_move_stay_the_callers_own():
    @pyrelay.jit
    def swap(layers):
        layers[1][0], layers[1][1] = layers[1][1], layers[1][0]
        layers[1][0][0] = 9

    layers = [[[k], [k, k]] for k in range(6)]
    first, second = layers[1]
    swap(layers)
    assert layers[1][0] is second
    assert layers[1][1] is first
    assert second == [9, 1]


def test_one_row_in_two_layers_is_one_list():
    @pyrelay.jit
    def change(layers, rows):
        layers[0][0][0] = 5
        return layers[1][0][0] + rows[0][0]

    row = [1, 2]
    assert change([[row] for _ in range(6)], [[1]]) == 6
    assert row == [5, 2]
    layers = [[[k, 0]] for k in range(6)]
    assert change(layers, layers[0]) == 6
    assert change([[[k, 0]] for k in range(6)], [[1]]) == 2


def test_rows_that_move_stay_the_callers_own():
    @pyrelay.jit
    def swap(rows):
        rows[0], rows[3] = rows[3], rows[0]
        rows[0][1] = 9

    rows = [[k, k] for k in range(6)]
    first, fourth = rows[0], rows[3]
    swap(rows)
    assert rows[0] is fourth
    assert rows[3] is first
    assert fourth == [3, 9]


def test_one_list_in_two_places_is_one_list():
    @pyrelay.jit
    def change(rows, row):
        rows[0][0] = 5
        return rows[1][0] + row[0]

    row = [1, 2]
    assert change([row] * 6, [1]) == 6
    assert row == [5, 2]
    row = [1, 2]
    assert change([row, *([k, 0] for k in range(5))], row) == 5
    assert change([[k, 0] for k in range(6)], [1]) == 2


def test_a_program_that_needs_the_length_is_compiled_for_it():
    def split(a, b, *rest):
        return a - b, len(rest)

    @pyrelay.jit
    def parts(xs):
        return split(*xs)

    assert parts([1, 2, 3, 4, 5]) == (-1, 3)
    assert parts([1, 2, 3, 4, 5, 6]) == (-1, 4)
    assert parts([3, 2, 3, 4, 5]) == (1, 3)
    assert parts.cache_info().compilations == 2


def test_a_program_that_needs_the_items_is_compiled_for_them():
    @pyrelay.jit
    def keyed(xs):
        table = {}
        for x in xs:
            table[x] = np.ones(x)
        return len(table)

    assert keyed([1, 2, 3, 4, 5]) == 5
    assert keyed([1, 2, 2, 4, 4]) == 3
    assert keyed([1, 2, 3, 4, 5, 6]) == 6


def test_a_list_of_long_ints_is_refused():
    with pytest.raises(pyrelay.errors.InvalidValueError, match="does not fit into 64 bits"):
        pyrelay.jit(total)([1, 2, 3, 4, 2**70])


NUMBERS = [0.5 * k for k in range(20)]


def test_a_list_that_is_read_from_outside_may_grow():
    @pyrelay.jit
    def from_outside(k):
        return NUMBERS[k] + len(NUMBERS)

    assert from_outside(3) == 21.5
    NUMBERS.append(1.0)
    assert from_outside(20) == 22.0
    assert from_outside.cache_info().compilations == 1


def counted_into(keys, counts):
    for k in keys:
        counts[int(k)] = counts.get(int(k), 0) + 1
    return len(counts)


def test_a_dict_with_other_keys_compiles_nothing_once_it_is_a_table():
    f = pyrelay.jit(counted_into)
    counts: dict[int, int] = {}
    assert f(np.arange(20), counts) == 20
    assert f(np.arange(5, 30), counts) == 30
    made = f._compilations
    assert f(np.arange(10, 50), counts) == 50
    assert f._compilations == made
    assert counts == {k: (k < 20) + (5 <= k < 30) + (k >= 10) for k in range(50)}
    assert list(counts) == list(range(50))


def test_lists_in_a_dict_that_is_a_table_stay_the_callers():
    @pyrelay.jit
    def appended(groups, n):
        for i in range(n):
            groups[i].append(i)
        return len(groups)

    groups = {i: [i] for i in range(20)}
    mine = groups[2]
    assert appended(groups, 3) == 20
    assert mine is groups[2]
    assert mine == [2, 2]


@pytest.mark.parametrize("make", [
    lambda n: [f"w{k * k}" for k in range(n)], lambda n: [(f"w{k * k}", 0.5) for k in range(n)],
    lambda n: {f"w{k}": [k] * (k % 3) for k in range(n)}, lambda n: {f"w{k}" for k in range(n)},
])
def test_a_new_number_of_texts_or_other_texts_compile_nothing(make):
    @pyrelay.jit
    def first_and_last(texts):
        found = sorted(texts)
        return found[0], found[-1], len(texts)

    for n in (17, 20, 130):
        texts = make(n)
        assert first_and_last(texts) == first_and_last.py(texts)
    assert first_and_last.cache_info().compilations == 1


def test_names_of_choices_are_known_where_a_program_needs_them():
    steps = {"double": lambda v: 2 * v, "one": lambda v: v + 1}

    @pyrelay.jit
    def chosen(names, x):
        for name in names:
            x = steps[name](x)
        return x

    names = ["double", "one"] * 9
    assert chosen(names, 1) == chosen.py(names, 1)


def test_the_gradient_of_texts_is_none():
    f = pyrelay.grad(lambda rows: sum(w * w for _, w in rows))
    for n in (17, 30):
        assert f([("ab" * k, float(k)) for k in range(n)]) == [(None, 2.0 * k) for k in range(n)]
    assert f.cache_info().compilations == 1


def test_other_letters_on_a_board_compile_nothing():
    @pyrelay.jit
    def cleared(board, letter):
        count = 0
        for row in board:
            for k in range(len(row)):
                if row[k] == letter:
                    row[k] = "."
                    count += 1
        return count

    for board in (["ab", "ba"], ["a.b", "é", "aab"], ["bbbaa"] * 30):
        ours, plain = [list(row) for row in board], [list(row) for row in board]
        assert cleared(ours, "a") == cleared.py(plain, "a")
        assert ours == plain
    assert cleared.cache_info().compilations == 1
    words = [["a", "ab"], ["", "a"]]
    assert cleared(words, "a") == 2
    assert words == [[".", "ab"], ["", "."]]


def test_other_names_in_rows_compile_nothing():
    @pyrelay.jit
    def best(rows):
        found = rows[0]
        for row in rows:
            if row[1] > found[1]:
                found = row
        found[1] += 1
        return found[0]

    for n in (17, 30):
        rows, plain = ([[f"{n} {k}", k % 13, 0.5] for k in range(n)] for _ in range(2))
        assert best(rows) == best.py(plain)
        assert rows == plain
    assert best.cache_info().compilations == 1
