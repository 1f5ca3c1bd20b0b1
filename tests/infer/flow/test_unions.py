"""Values that are one of several: what only some of them have."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import pyrelay
from tests.infer.running import assert_same_outcome, interpreted, plainly


class Dense:
    def __init__(self, x):
        self.x, self.slope = x, 2 * x


class Rectifier:
    def __init__(self, x):
        self.x, self.mask = x, None


def slope(x, k):
    layer = Dense(x) if k > 0 else Rectifier(x)
    return layer.slope


def slope_or_zeros(x, k):
    layer = Dense(x) if k > 0 else Rectifier(x)
    try:
        return layer.slope
    except AttributeError:
        return 0 * x


def slope_of_named(x, k):
    layers = {f"{kind.__name__}{n}": kind(n * x) for n in (1, 2) for kind in (Dense, Rectifier)}
    return layers[f"Dense{k}"].slope


def test_an_attribute_that_only_some_objects_have_is_read_where_it_is_there():
    x = np.array([1.0, 3.0])
    compiled = pyrelay.jit(slope)
    np.testing.assert_array_equal(compiled(x, 1), 2 * x)
    with pytest.raises(AttributeError) as wanted:
        slope(x, -1)
    with pytest.raises(AttributeError) as caught:
        compiled(x, -1)
    assert str(caught.value).startswith(str(wanted.value))
    for f, k in ((slope_or_zeros, 1), (slope_or_zeros, -1), (slope_of_named, 2)):
        np.testing.assert_array_equal(pyrelay.jit(f)(x, k), f(x, k))


def test_an_attribute_that_no_object_has_is_refused_at_once():
    def f(x, k):
        layer = Dense(x) if k > 0 else Rectifier(x)
        return layer.slop

    with pytest.raises(pyrelay.PyrelayError, match="has no attribute 'slop'"):
        pyrelay.jit(f)(np.ones(2), 1)


def successors(edges):
    graph = collections.defaultdict(list)
    for u, v in edges:
        graph[u].append(v)
    found = []
    left = ["pants", "shirt"]
    while left:
        word = left.pop()
        found.append(word)
        for after in graph[word]:
            left.append(after)
    return found


def test_lists_of_other_words_are_told_apart_by_their_words():
    edges = [("shirt", "tie"), ("tie", "hat"), ("pants", "shoes"), ("pants", "belt")]
    assert interpreted(successors, (edges,)).result == successors(edges)


def test_texts_computed_of_several_are_one_case_each_however_often_they_come():
    from pyrelay.infer.flow.joining import Joiner
    from pyrelay.infer.layout import LKnown, LUnion

    before = LUnion(tuple(map(LKnown, ("ab", "bb"))))
    again = LUnion(tuple(map(LKnown, ("ab", "bb", "ab", "ba", "ba"))))
    joined = Joiner()(before, again)
    assert joined == LUnion(tuple(map(LKnown, ("ab", "bb", "ba"))))
    assert Joiner()(joined, again) == joined


def counted(seen, n):
    for k in range(n):
        new = collections.Counter()
        new[k] += seen[k] + 1
        seen = new
    return seen


def test_a_counter_is_the_callers_or_a_new_one():
    compiled = pyrelay.jit(counted)
    for n in (3, 0):
        given = collections.Counter({0: 5, 1: 7})
        found = compiled(given, n)
        assert (type(found), found) == (collections.Counter, counted(given, n))
        assert given == {0: 5, 1: 7}


def measured(x):
    """Whether the second and third are numbers the first says, which the compiler does not know."""
    first, second, third = (x, -2 * x, 0.5 - x) if x > 0 else (None, None, None)
    if first is None:
        return 0.0
    return abs(second) + round(third) + round(third, 1)


def measured_late(x, k):
    return round(x) + abs(None if k > 3 else x)


@pytest.mark.parametrize(("function", "args"), [
    (measured, (2.75,)), (measured, (-1.0,)), (measured_late, (1.5, 1)), (measured_late, (1.5, 4)),
])
def test_builtins_of_what_may_be_none_raise_where_it_is(function, args):
    """abs() and round() of None failed while compiling."""
    assert_same_outcome(interpreted(function, args), plainly(function, args))


def refused(x, key):
    found = key if x[0] > 0 else x.argmax()  # an int, or one of NumPy's
    if x[1] > 9.0:
        found = None
    if found != 3:
        raise KeyError(found)
    return found


def test_exceptions_of_one_of_several_values_need_no_python():
    x = np.array([1.0, 3.0])
    assert "host_call" not in pyrelay.jit(refused).ir(x, 7)
    for given in ((x, 7), (-x, 7), (x * 4.0, 7)):
        wanted, got = plainly(refused, given), plainly(pyrelay.jit(refused), given)
        assert_same_outcome(got, wanted)
        assert [type(a) for a in got.error.args] == [type(a) for a in wanted.error.args]


def descends(chosen, one, n):
    if n == 0:
        return 0.0
    if chosen is not None:
        chosen.x[0] *= 1.5
    one.x[0] += 2.0
    return descends(chosen, one, n - 1) + one.x.sum()


def certain_behind_chosen(x, n):
    """One of two objects, or none, is passed on before each of them."""
    one, two = Rectifier(x), Rectifier(2 * x)
    chosen = None
    if n > 2:
        chosen = one
    elif n > 1:
        chosen = two
    total = descends(chosen, one, n) + descends(chosen, two, n)
    return total, one.x, two.x, x


def meets(link, other, n):
    if n == 0:
        return 0.0
    link.mask = other if n % 2 else link.mask
    if link.mask is not None:
        link.mask.x = link.mask.x + 1.0
    return meets(link, other, n - 1) + link.x.sum()


def certain_inside_chosen(x, n):
    """What an object has in a field that may be None is passed on beside it, in both orders."""
    one, two = Rectifier(x), Rectifier(2 * x)
    if n > 2:
        one.mask = two
    return meets(one, two, n), meets(two, one, n), one.x, two.x, one.mask is two


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("function", [certain_behind_chosen, certain_inside_chosen])
def test_an_object_is_passed_on_for_certain_and_as_one_of_several(function, n):
    """It was refused: its content was written where it is first met, in a case not at hand."""
    x = np.arange(1.0, 4.0)
    assert_same_outcome(interpreted(function, (x.copy(), n)), plainly(function, (x.copy(), n)))


def refused_pair(x, i):
    counts = {}
    for k in range(len(x)):
        counts[k, (x[k], "of")] = i
    if i > 2:
        raise ValueError("no", ((i, 1.5), x[0]))
    return counts[i, (x[i - 1], "of")]


def test_exceptions_of_tuples_need_no_python():
    x = np.array([1.0, 3.0])
    assert "host_call" not in pyrelay.jit(refused_pair).ir(x, 1)
    for given in ((x, 0), (x, 3)):
        wanted, got = plainly(refused_pair, given), plainly(pyrelay.jit(refused_pair), given)
        assert_same_outcome(got, wanted)
        assert repr(got.error) == repr(wanted.error)


def viewed_either_way(a, b, n, m):
    if n:
        b = a[::-1]
    if m:
        b[0] = 1.0
        b = b[::-1]
    return b


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("m", [0, 1])
def test_a_view_of_one_of_several_arrays_is_no_whole_one(n, m):
    args = (np.arange(5.0) * 2.0, np.arange(4.0) - 3.0, n, m)
    assert_same_outcome(interpreted(viewed_either_way, args), plainly(viewed_either_way, args))


def parts_backwards(o, k, m, n):
    b = o[::-1]
    if n:
        b = o[:-1][::-1]
    b[0] += 7.0
    c, d = (o[k:0:-1], o[m:0:-1]) if n % 2 else (o[m:0:-1], o[k:0:-1])
    e = c if n < 1 else d
    e[1:] += 5.0
    return o, e


@pytest.mark.parametrize("n", [0, 1, 2])
def test_parts_of_an_array_that_run_backwards_from_other_places_are_told_apart(n):
    args = (np.arange(6.0), 4, 2, n)
    assert_same_outcome(interpreted(parts_backwards, args), plainly(parts_backwards, args))
