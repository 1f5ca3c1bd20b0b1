"""Short lists, dicts and sets of the caller that a branch changes, and names that mean them or new
lists behind a branch or a loop."""

from __future__ import annotations

from tests.users.corpus import use


@use(([1, 2, 3], 1), ([1, 2, 3], 0))
def lengthened_on_a_branch(xs, n):
    if n:
        xs.append(n)


@use(([1, 2, 3], 5), ([], 2), long=True)
def shortened_in_a_branch_of_a_branch(xs, n):
    if n > 1:
        if len(xs) > 1:
            n = xs.pop()
        n += 1
    return n, sum(xs)


@use(({"a": 3}, 1), ({"a": 3}, 0))
def keys_of_a_branch(d, n):
    if n:
        d["z"] = n
    else:
        del d["a"]
    return len(d)


@use(({1, 2}, 7), ({1, 2}, 0), long=True)
def set_of_a_branch(s, n):
    if n:
        s.add(n)
    return len(s)


@use(([6, 5], 3), ([6, 5], 5))
def sorted_on_a_branch(xs, n):
    given = xs
    if n > 4:
        xs = sorted(xs)
    xs.append(n)
    return xs, xs is given


@use(([6, 5, 7], 2), ([6, 5, 7], 6), long=True)
def sorted_in_a_round(xs, n):
    given = xs
    for i in range(n):
        if i == 3:
            xs = sorted(xs)
        xs.append(i)
    return xs, xs is given


@use(([6, 5], 3), ([6, 5], 5), long=True)
def one_of_two_lengthened(xs, n):
    ys = []
    if n > 4:
        ys = xs
    ys.append(n)
    return ys, ys is xs


@use(([6, 5], 3), ([6, 5], 0))
def named_anew_in_a_loop(xs, n):
    ys = []
    for i in range(n):
        ys = xs
        xs[1] += i
    return ys


@use((0,), (2,), (5,))
def item_of_another_on_a_branch(n):
    ys, rows = [1, 2], [[0]]
    if n > 1:
        if n > 3:
            rows.append(ys)
        else:
            ys[0] = 3
        ys.append(4)
    return ys, len(rows)


@use((2, [2]), (3, [2]), long=True)
def given_up_in_a_try(n, xs):
    try:
        xs = sorted(xs)
        n //= n - 2
    except ZeroDivisionError:
        xs.pop()
    return xs


def quick(a):
    if len(a) <= 1:
        return a
    pivot, *rest = a
    return quick([x for x in rest if x < pivot]) + [pivot] + quick([x for x in rest if x >= pivot])


def merged(a):
    if len(a) < 2:
        return a
    half = len(a) // 2
    left, right = merged(a[:half]), merged(a[half:])
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            found.append(left[i])
            i += 1
        else:
            found.append(right[j])
            j += 1
    return found + left[i:] + right[j:]


@use(([3, 1, 4, 1, 5],), ([2.5],), ([],))
def the_very_list_or_a_sorted_one(a):
    return quick(a)


@use(([3, 1, 4, 1, 5],), ([],), long=True)
def sorted_in_two_ways(a):
    return [quick(a), merged(a)]
