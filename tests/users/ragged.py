"""Arrays of several shapes in one list: chunks, groups, runs, levels of a pyramid."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use

X = np.array([0.64, 0.27, 0.04, 0.02, 0.81, 0.91, 0.61, 0.73, 0.54, 0.94])
LABELS = np.array([2, 0, 1, 1, 2, 0, 2, 2, 1, 2])
IMAGE = np.sin(np.arange(64.0)).reshape(8, 8)


@use((X, 3), (X, 5), wrt=(0,))
def chunks(x, size):
    parts = [x[i:i + size] for i in range(0, len(x), size)]
    total = np.zeros(size)
    for part in parts:
        total[:len(part)] += part**2
    return total, len(parts), [part.mean() for part in parts], np.concatenate(parts[::-1])


@use((X, 3), (X, 5), wrt=(0,), long=True)
def nearly_equal_parts(x, n):
    return [part.sum() * k for k, part in enumerate(np.array_split(x, n))]


@use((np.stack([X, X**2], 1), LABELS), wrt=(0,), slow=True)
def rows_by_label(rows, labels):
    parts, means = [], []
    for k in range(labels.max() + 1):
        parts.append(rows[labels == k])
    for part in parts:
        means.append(part.mean(axis=0))
    return np.array(means), np.concatenate(parts)


@use((X, LABELS))
def by_label_with_its_name(x, labels):
    groups = []
    for k in range(labels.max() + 1):
        groups.append((k, x[labels == k]))
    return [(k, group.sum()) for k, group in groups], groups


@use((X, LABELS), long=True)
def in_a_dict(x, labels):
    found = {}
    for k in labels:
        found[k] = x[labels == k]
    return [found[k].sum() for k in range(3)]


@use((X,), long=True)
def merge_sort_of_runs(x):
    runs, start = [], 0
    for i in range(1, len(x) + 1):
        if i == len(x) or x[i] < x[i - 1]:
            runs.append(x[start:i])
            start = i
    while len(runs) > 1:
        a, b = runs.pop(0), runs.pop(0)
        merged, i, j = np.empty(len(a) + len(b)), 0, 0
        for k in range(len(merged)):
            if j == len(b) or (i < len(a) and a[i] <= b[j]):
                merged[k], i = a[i], i + 1
            else:
                merged[k], j = b[j], j + 1
        runs.append(merged)
    return runs[0]


@use((X, 0.3), long=True)
def longest_and_in_order(x, step):
    runs, start = [], 0
    for i in range(1, len(x) + 1):
        if i == len(x) or abs(x[i] - x[i - 1]) > step:
            runs.append(x[start:i])
            start = i
    return max(runs, key=len), [run.mean() for run in sorted(runs, key=len)]


@use((X, 0.25), wrt=(0,), slow=True)
def written_in_place(x, step):
    runs, start = [], 0
    for i in range(1, len(x) + 1):
        if i == len(x) or abs(x[i] - x[i - 1]) > step:
            runs.append(x[start:i].copy())
            start = i
    for run in runs:
        run -= run.mean()
    runs[-1][0] = 9.0
    runs.pop(1)
    return runs, np.concatenate(runs)


@use((IMAGE, 3), wrt=(0,), slow=True)
def pyramid(image, levels):
    found = [image]
    for _ in range(levels):
        a = found[-1]
        if min(a.shape) < 2:
            break
        found.append((a[::2, ::2] + a[1::2, ::2] + a[::2, 1::2] + a[1::2, 1::2]) / 4)
    return found


@use((X[:8],), wrt=(0,))
def haar(x):
    found = []
    while len(x) > 1:
        found.append((x[::2] - x[1::2]) / np.sqrt(2))
        x = (x[::2] + x[1::2]) / np.sqrt(2)
    return np.concatenate([x] + found[::-1])


@use((np.outer(X[:3], X[:7]), 3), wrt=(0,), slow=True)
def columns(a, size):
    parts = [a[:, i:i + size] for i in range(0, a.shape[1], size)]
    return np.hstack(parts), np.concatenate(parts, axis=1) * 2, np.concatenate(parts, axis=None)


@use((np.array([3, 4, 2]), np.sin(np.arange(20.0))), wrt=(1,), long=True)
def layers(sizes, numbers):
    weights, begin = [], 0
    for k in range(len(sizes) - 1):
        size = sizes[k] * sizes[k + 1]
        weights.append(numbers[begin:begin + size].reshape(sizes[k], sizes[k + 1]))
        begin += size
    h = np.ones((2, sizes[0]))
    for w in weights:
        h = np.tanh(h @ w)
    return h


@use((X, 3), (X, 5))
def as_rows(x, size):
    return np.vstack([x[i:i + size] for i in range(0, len(x), size)])


@use((X, 3), (X, 5))
def as_an_array(x, size):
    return np.array([x[i:i + size] for i in range(0, len(x), size)])


@use((X, 3), long=True)
def two_lists(x, n):
    heads, tails = [x[:i] for i in range(1, n)], [x[i:] for i in range(n)]
    return heads + tails, heads * 2


@use((3, "hello", 2), (2, "hello", 4), long=True)
def states_by_step(n, text, steps):
    codes = [ord(letter) for letter in text[:steps]]
    weights, start = np.full((n, n), 0.1), np.zeros((n, 1))
    states = {-1: np.copy(start)}
    for t in range(len(codes)):
        states[t] = np.tanh(weights @ states[t - 1] + codes[t] / 100)
    return states[len(codes) - 1], sum(states[t].sum() for t in reversed(range(len(codes))))
