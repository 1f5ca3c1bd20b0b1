"""Solvers, planners and alignments: loops until something holds, over Python's containers."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np

from tests.users.corpus import use

_RANDOM = np.random.default_rng(13)


def normal(*shape):
    return 0.3 * _RANDOM.standard_normal(shape)


def adaptive(f, y, end, tolerance, h=0.1):
    t, steps, rejected = 0.0, 0, 0
    while t < end:
        h = min(h, end - t)
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + 3 * h / 4 * k2)
        ahead = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        off = np.linalg.norm(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - f(ahead) / 8))
        if off <= tolerance:
            t, y = t + h, ahead
            steps += 1
        else:
            rejected += 1
        h *= 0.9 * (tolerance / max(off, 1e-12)) ** (1 / 3)
    return y, steps, rejected


@use((2.0, np.array([1.0, 0.5])))
def oscillator_by_adaptive_steps(stiffness, start):
    return adaptive(
        lambda y: np.array([y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]]), start, 2.0, 1e-4
    )


@use((normal(4, 4), normal(4)), (20 * normal(4, 4), normal(4), 1e-16, 5), wrt=(0, 1))
def fixed_point_of_a_layer(w, x, tolerance=1e-10, most=200):
    z = np.zeros_like(x)
    for rounds in range(most):
        after = np.tanh(w @ z + x)
        if np.linalg.norm(after - z) < tolerance:
            break
        z = after
    else:
        raise RuntimeError(f"no convergence after {most} iterations")
    return after, rounds


_CHOICES = [
    [[(0.5, 0, 1.0), (0.5, 1, 0.0)], [(1.0, 2, 0.5)]], [[(1.0, 2, 2.0)]],
    [[(0.9, 0, 0.0), (0.1, 2, 1.0)], [(1.0, 1, 0.1)]],
]


@use((_CHOICES, 0.9, 1e-6))
def values_of_choices(states, discount, tolerance):
    values = [0.0] * len(states)
    for sweep in range(1000):
        change = 0.0
        for s, choices in enumerate(states):
            best = max(sum(p * (r + discount * values[t]) for p, t, r in c) for c in choices)
            change = max(change, abs(best - values[s]))
            values[s] = best
        if change < tolerance:
            return values, sweep
    raise RuntimeError("no convergence")


@use((np.cumsum(_RANDOM.random(6)), _RANDOM.random(6), 2), wrt=(0, 1))
def waiting_in_a_queue(arrivals, services, servers):
    free = [0.0] * servers
    waits = []
    for arrival, service in zip(arrivals, services, strict=True):
        start = max(arrival, heapq.heappop(free))
        waits.append(start - arrival)
        heapq.heappush(free, start + service)
    return np.mean(waits), max(free)


class Sets:
    def __init__(self, n):
        self.parent = list(range(n))

    def find(self, a):
        while self.parent[a] != a:
            self.parent[a] = self.parent[self.parent[a]]
            a = self.parent[a]
        return a

    def join(self, a, b):
        a, b = self.find(a), self.find(b)
        self.parent[b] = a
        return a != b


@use((normal(5, 2),), wrt=(0,), slow=True)
def shortest_net(points):
    sets = Sets(len(points))
    edges = sorted(
        (float(np.hypot(*(points[i] - points[j]))), i, j)
        for i, j in itertools.combinations(range(len(points)), 2)
    )
    used = [(length, i, j) for length, i, j in edges if sets.join(i, j)]
    return math.fsum(length for length, _, _ in used), [(i, j) for _, i, j in used]


@use(("kitten", "sitting"), ("", "ab"))
def aligned_texts(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1), int)
    d[:, 0], d[0, :] = range(len(a) + 1), range(len(b) + 1)
    for i, one in enumerate(a, 1):
        for j, other in enumerate(b, 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (one != other))
    i, j, pairs = len(a), len(b), []
    while i or j:
        if i and j and d[i, j] == d[i - 1, j - 1] + (a[i - 1] != b[j - 1]):
            pairs.append(a[i - 1] + b[j - 1])
            i, j = i - 1, j - 1
        elif i and d[i, j] == d[i - 1, j] + 1:
            pairs.append(a[i - 1] + "-")
            i -= 1
        else:
            pairs.append("-" + b[j - 1])
            j -= 1
    return int(d[-1, -1]), " ".join(reversed(pairs))
