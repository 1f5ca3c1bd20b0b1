"""Statements and expressions that few programs need, each with a derivative."""

from __future__ import annotations

import contextlib

import numpy as np

from tests.users.corpus import use

X = np.array([1.0, -2.0, 3.0, 0.5])
SCALE = 1.5


@use((X, 0.4), (X, 9.0), wrt=(0,), slow=True, corners=(1,))
def else_of_loops(x, limit):
    total = 0.0
    for v in x:
        if v > limit:
            break
        total += v
    else:
        total *= 3
    k = 0
    while k < len(x):
        if x[k] * x[k] > limit:
            break
        k += 1
    else:
        total += x[0] * x[1]
    return total + x[min(k, 3)]


@use((X,), wrt=(0,))
def names_from_elsewhere(x):
    import math as m
    from operator import mul

    global SCALE
    kept = x * 2
    spare = x[0]
    del spare
    assert len(kept) == 4, "four numbers"
    return mul(m.sin(kept[0]), +SCALE) + pow(kept[2], 2)


@use((X, "scale"), (X, "shift"), (X, "else"), wrt=(0,), slow=True, corners=(2,))
def cases_with_conditions(x, what):
    match {"kind": what, "by": x[2]}:
        case {"kind": "scale", "by": by}:
            y = x * by
        case {"kind": str(kind), **others} if kind == "shift":
            y = x + others["by"]
        case _:
            y = x
    match (y[0], y[1], y[2]):
        case [first, *rest] if first > 1:
            return first * rest[0]
        case [first, *_]:
            return -first


@use((X, 2), (X, 9), wrt=(0,), slow=True)
def else_of_a_try(x, k):
    try:
        v = x[k]
    except IndexError:
        v = x[0] * 10
    else:
        v = v * v
    with contextlib.suppress(IndexError), np.errstate(all="ignore"):
        v = v + x[k + 1]
    return v


@use((X,), wrt=(0,), slow=True)
def pairs_of_a_comprehension(x):
    return sum([a * b for a in x for b in x[1:] if a != b])


@use((X,), wrt=(0,))
def said_on_the_way(x):
    total = (x * x).sum()
    print(f"{total:>10.3f}", total, sep="|")
    return total
