"""Queues, heaps, tables and sets: programs that do not depend on keys, and what they refuse."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

import numpy as np
import pytest

import pyrelay


def counted(keys):
    counts = {}
    for k in keys.tolist():
        counts[k] = counts.get(k, 0) + 1
    return counts


def test_other_keys_compile_nothing():
    f = pyrelay.jit(counted)
    for keys in ([1, 2, 1, 0, 2], [5, -3, 2**40, 5, 1024], list(range(0, 4096 * 5, 4096))):
        assert f(np.array(keys)) == Counter(keys)
        assert list(f(np.array(keys))) == list(dict.fromkeys(keys))
    assert f._compilations == 1


def test_a_deque_is_made_an_array_like_a_list():
    def means(x):
        window, found = deque(maxlen=3), []
        for v in x:
            window.append(v)
            found.append(np.mean(window))
        return found, np.array(window), np.max(window)

    got, wanted = pyrelay.jit(means)(np.arange(5.0)), means(np.arange(5.0))
    assert got[0] == wanted[0]
    np.testing.assert_array_equal(got[1], wanted[1])
    assert got[2] == wanted[2]


def test_containers_come_back_as_what_they_stand_for():
    @pyrelay.jit
    def made(keys):
        queue, counts, groups, seen = deque(maxlen=2), Counter(), defaultdict(list), set()
        for k in keys.tolist():
            queue.append(k)
            counts[k] += 1
            groups[k % 2].append(k)
            seen.add(k)
        return queue, counts, groups, seen

    queue, counts, groups, seen = made(np.array([3, 1, 2, 3]))
    assert queue == deque([2, 3])
    assert type(queue) is deque
    assert queue.maxlen == 2
    assert counts == Counter([3, 1, 2, 3])
    assert type(counts) is Counter
    assert groups == {1: [3, 1, 3], 0: [2]}
    assert groups.default_factory is list
    assert seen == {1, 2, 3}


def floats_met(x):
    counts, seen = {}, set()
    for v in x:
        counts[v] = counts.get(v, 0) + 1
        seen.add(float(v))
    return sorted(counts.items()), len(seen), 1 in counts, 0.3 in counts, counts.get(2.0**63, 0)


def test_floats_are_keys_as_they_compare():
    x = np.array([0.5, 1.0, -0.0, 0.0, 0.1 + 0.2, np.inf, -np.inf, 2.0**63, 1e300, 1e-300, 0.5])
    assert pyrelay.jit(floats_met)(x) == floats_met(x)


def met_nan(x):
    seen = set()
    for i in range(len(x)):
        seen.add(x[i])
    return len(seen), x[0] in seen


def test_a_nan_equals_no_key():
    assert pyrelay.jit(met_nan)(np.array([np.nan, np.nan, 1.0])) == (3, False)


def counted_by_names(text, keys, x):
    counts = Counter()
    for character in text:
        counts[character] += x
    sums = defaultdict(float, start=x)
    for key in ("a", "start", "a"):
        sums[key] = sums[key] * x + 1.0
    places = defaultdict(list)
    for k in keys:
        places[int(k)].append(x)
    return counts, sums, counts.most_common(1), len(places), places[5]


def test_known_keys_stay_known_and_open_ones_make_a_table():
    arguments = ("abca", np.array([5, 3, 5]), 2.0)
    assert pyrelay.jit(counted_by_names)(*arguments) == counted_by_names(*arguments)


def text_beside_numbers(keys):
    counts = Counter()
    for k in keys:
        counts[int(k)] += 1
    counts["all"] += len(keys)
    counts[None] += 1
    return counts, counts["all"], counts["none"]


def test_text_stands_beside_keys_that_only_the_program_knows():
    keys = np.array([1, 2, 1])
    assert pyrelay.jit(text_beside_numbers)(keys) == text_beside_numbers(keys)


def compared(keys):
    queue, counts, seen = deque(), Counter(), set()
    for k in keys.tolist():
        queue.append(k)
        counts[k] += 1
        seen.add(k)
    del counts[77]
    return (
        queue == deque(keys.tolist()), queue == deque([1]), queue == [3, 1, 3],
        seen == {1, 3}, seen == {1, 2}, counts == {3: 2, 1: 1}, counts == {3: 2, 2: 1},
    )


def test_containers_are_compared_by_what_they_hold():
    keys = np.array([3, 1, 3])
    assert pyrelay.jit(compared)(keys) == compared(keys)


def emptied(n):
    queue = deque()
    for i in range(n):
        queue.append(i)
    for _ in range(n + 1):
        queue.pop()  # the last one fails
    return len(queue)


def test_errors_within_pyrelays_own_python_point_at_the_line_that_called_it():
    with pytest.raises(IndexError, match="pop from an empty deque") as caught:
        pyrelay.jit(emptied)(3)
    (note,) = caught.value.__notes__
    assert "queue.pop()  # the last one fails" in note
    assert "in_python" not in note


def test_returned_sets_have_the_order_that_adding_one_by_one_gives():
    @pyrelay.jit
    def with_more(a):
        return {*a, 7}

    for items in ([16, 8, 0, 24, 1], [8, 16, 0], [15, 7, 23, 31]):
        assert list(with_more(items)) == list(with_more.py(items))
