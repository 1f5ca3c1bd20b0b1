"""Arrays in dicts and lists that are written in place, found by keys the program computes."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tests.users.corpus import refuse, use

KEYS = np.array([3, 1, 3, 2, 1, 3, 0])


@use((KEYS,), (KEYS[:0],))
def rows_counted_by_key(keys):
    found = {}
    for i, key in enumerate(keys.tolist()):
        if key not in found:
            found[key] = np.zeros(3)
        found[key][i % 3] += 1.5
    return found


@use((KEYS,))
def rows_set_anew(keys):
    found = {}
    for i, key in enumerate(keys.tolist()):
        found[key % 2] = np.zeros(3)
        found[key % 2][i % 3] = 1
    return found


@use((KEYS,))
def rows_by_default(keys):
    found = defaultdict(lambda: np.zeros(3))
    for i, key in enumerate(keys):
        found[int(key), i % 2][i % 3] += 1.5
    return sum(row.sum() for row in found.values()), len(found)


@use((KEYS, np.ones(3)), (KEYS[:2], np.ones(2)), wrt=(1,))
def rows_of_one_dict_written_beside_those_of_another(keys, start):
    written, read = {}, {}
    read[-1] = np.copy(start)
    for t in range(len(keys)):
        written[t] = np.zeros(4)
        written[t][keys[t]] = 1
        read[t] = np.tanh(read[t - 1] * written[t].sum())
    return read[len(keys) - 1], written[0]


@use((KEYS, np.arange(7.0)), wrt=(1,))
def last_of_a_list(keys, x):
    rows = []
    for key, v in zip(keys.tolist(), x):
        rows.append(np.zeros(4))
        rows[-1][key] = v * v
    return np.array(rows)


@use((KEYS, True), (KEYS, False))
def one_array_in_either_of_two_lists(keys, first):
    a, b = [], []
    for key in keys.tolist():
        row = np.zeros(2)
        if first:
            a.append(row)
        else:
            b.append(row)
    for rows in (a, b):
        if rows:
            rows[0][1] = 5.0
    return a, b


@refuse((KEYS,), "a write in place would have to show in both")
def one_array_in_two_lists(keys):
    a, b = [], []
    for _ in keys.tolist():
        row = np.zeros(2)
        a.append(row)
        b.append(row)
    a[0][1] = 5.0
    return b
