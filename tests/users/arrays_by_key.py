"""Arrays in dicts and lists that are written in place, found by keys the program computes."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tests.users.corpus import refuse, use

STEPS = [((k % 3, k % 2), ((k * k) % 4, 1)) for k in range(24)]

KEYS = np.array([3, 1, 3, 2, 1, 3, 0])


@use((KEYS,), (KEYS[:0],))
def rows_counted_by_key(keys):
    found = {}
    for i, key in enumerate(keys.tolist()):
        if key not in found:
            found[key] = np.zeros(3)
        found[key][i % 3] += 1.5
    return found


@use((KEYS,), long=True)
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


@use((KEYS, True), (KEYS, False), long=True)
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


@use((KEYS, 3))
def q_learning(keys, actions):
    values = defaultdict(lambda: np.zeros(actions))
    for a, (s, after) in enumerate(zip(keys.tolist(), keys[1:].tolist())):
        a %= actions
        values[s][a] += 0.5 * (s + 0.9 * values[after].max() - values[s][a])
    return values[3], len(values)


@use((KEYS,))
def sums_by_key(keys):
    sums = defaultdict(lambda: np.zeros(2))
    counts = {}
    for k in keys.tolist():
        sums[k, k % 2] += np.array([k, 1.0])
        counts.setdefault(k % 2, np.zeros(2))[k % 2] += 1
        sums[k, 0] += sums[k, 1] + counts[k % 2]
    return sum(v[0] for v in sums.values()), list(sums), list(counts.values())


@use((KEYS,))
def rows_read_before_another_is_written(keys):
    rows = defaultdict(lambda: np.zeros(3))
    for s, after in zip(keys.tolist(), keys[1:].tolist()):
        row, following = rows[s], rows[after]
        row[0] += 1.0 + following.max()
        following[1] += row[0] + following[0]
        rows[after] = row * 2.0
    return [rows[k] for k in (3, 1, 2, 0)]


@use((KEYS,))
def rows_of_keys_that_go(keys):
    rows = {}
    for s in keys.tolist():
        rows.setdefault(s, np.zeros(3))
        row = rows[s]
        row += 1.0
        if s == 3:
            del rows[s]
        else:
            rows[s] = row
    return rows


@use((KEYS,))
def last_row_while_rows_are_added(keys):
    rows = [np.zeros(2)]
    for k in keys.tolist():
        row = rows[-1]
        rows.append(np.full(2, float(k)))
        row[0] += k
        rows[-1] += rows[0]
    return rows


@refuse((KEYS,), "a write in place would have to show in both")
def row_that_is_put_elsewhere(keys):
    rows = [np.zeros(2)]
    for k in keys.tolist():
        row = rows[0]
        rows.append(row)
        row[0] += k
    return rows


@use((3, 4), (1, 2))
def rows_written_after_others_were_appended(k, n):
    rows = []
    for i in range(k * 5):
        rows.append(np.zeros(n))
        row = rows[i // 2]
        if i % 3 == 0:
            rows.append(np.ones(n))
        row[0] += 1.0 + i
    return rows


@use((STEPS, 4), (STEPS[:1], 1))
def values_of_two_states(steps, n):
    values, total = {}, 0.0
    for state, following in steps:
        if state not in values:
            values[state] = np.zeros(n)
        row = values[state]
        if following[0] != 2:
            if following not in values:
                values[following] = np.ones(n)
            total += 0.5 * values[following][0]
        row[0] += 1.0 + total
    return values, total


@use((STEPS, 4))
def values_of_states_that_are_written_over(steps, n):
    values, total = {}, 0.0
    for state, following in steps:
        if state not in values or following in values:
            values[state] = np.full(n, total)
        values[state][0] += 1.0
        total += values[state][0]
    return values, total
