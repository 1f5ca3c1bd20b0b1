"""Which loops over rows of arrays become one kernel, and which stay with the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyrelay
from pyrelay.ir import walk
from pyrelay.ir.nodes import KernelCall, Loop
from pyrelay.pipeline import lowered
from tests.infer.running import inferred


def counts(function: Callable[..., Any], *args: Any) -> tuple[int, int]:
    """How many loops the plan runs, and how many kernels the program has."""
    module = lowered(inferred(function, args).module, "fuse")
    lets = list(walk.nested_lets(module.main.body))
    return sum(isinstance(let.rhs, Loop) for let in lets), sum(
        isinstance(let.rhs, KernelCall) for let in lets
    )


def test_rows_in_a_loop_in_a_loop_are_part_of_its_kernel() -> None:
    def distances(x, d):
        for i in range(len(x)):
            for j in range(len(x)):
                d[i, j] = np.sqrt(((x[i] - x[j]) ** 2).sum())
        return d

    assert counts(distances, np.ones((5, 3)), np.zeros((5, 5))) == (0, 1)


def test_a_dot_product_of_parts_whose_length_is_the_loop_s_index_is_too() -> None:
    def solved(a, b, x):
        for i in range(len(b)):
            x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
        return x

    assert counts(solved, np.eye(4), np.ones(4), np.zeros(4)) == (0, 1)


def test_places_of_what_is_true_in_a_row_are_found_and_gone_through_in_the_kernel() -> None:
    def summed(a):
        total = 0.0
        for i in range(len(a)):
            for j in np.where(a[i] > 0.5)[0]:
                total += a[i, j]
        return total

    def reached(near):
        far = np.full(len(near), -1)
        queue = np.zeros(len(near), dtype=np.int64)
        far[0], head, tail = 0, 0, 1
        while head < tail:
            here = queue[head]
            head += 1
            for there in np.nonzero(near[here])[0]:
                if far[there] < 0:
                    far[there] = far[here] + 1
                    queue[tail] = there
                    tail += 1
        return far

    assert counts(summed, np.ones((5, 3)))[0] == 0
    assert counts(reached, np.eye(4, 4, 1) > 0)[0] == 0
    near = np.random.default_rng(3).random((30, 30)) < 0.1
    assert np.array_equal(pyrelay.jit(reached)(near), reached(near))
    for size in (0, 1, 7):
        a = np.random.default_rng(size).random((5, size))
        assert pyrelay.jit(summed)(a) == summed(a)


def test_vectors_of_known_small_size_are_in_any_loop() -> None:
    def walked(y, steps):
        for _ in range(steps):
            y = y + 0.1 * np.array([y[1], -y[0], 0.0])
        return y

    assert counts(walked, np.ones(3), 5)[0] == 0


def test_whole_arrays_in_a_loop_of_steps_keep_kernels_that_may_use_all_threads() -> None:
    def diffused(u, steps):
        for _ in range(steps):
            u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        return u

    assert counts(diffused, np.ones(4099), 5)[0] == 1
    assert counts(diffused, np.ones(4098), 5)[0] == 0  # 4096 elements are updated


def test_a_loop_in_which_arrays_change_places_is_a_kernel() -> None:
    def smoothed(u, v, n):
        for i in range(len(u)):
            for j in range(n):
                v[1:] = 0.5 * (u[1:] + u[:-1]) + i * j
                u, v = v, u
        return u

    loops, _ = counts(smoothed, np.ones(6), np.zeros(6), 2)
    assert loops == 1


def test_an_array_from_outside_that_each_round_updates_is_copied_in_the_kernel() -> None:
    def marked(x, total):
        for i in range(len(x)):
            for j in range(2):
                y = x.copy()
                y[i] = j
                total[i] += np.sum(y * y)
        return total

    assert counts(marked, np.ones(4), np.zeros(4))[0] == 0
    np.testing.assert_array_equal(
        pyrelay.jit(marked)(np.arange(4.0), np.zeros(4)), marked(np.arange(4.0), np.zeros(4))
    )


def test_vectors_of_one_branch_need_no_values_on_the_other() -> None:
    def pulled(x, v):
        for i in range(len(x)):
            for j in range(len(x)):
                if i != j:
                    d = x[j] - x[i]
                    v[i] += d / (np.sum(d * d) + 1.0)
        return np.sum(v * v)

    x, v = np.arange(8.0).reshape(4, 2) ** 2, np.zeros((4, 2))
    gradient = pyrelay.grad(pulled)
    assert "loop" not in str(gradient.ir(x, v, stage="fuse")).split("kernel @")[0]
    h = np.zeros_like(x)
    h[1, 1] = 1e-5
    difference = (pulled(x + h, v.copy()) - pulled(x - h, v.copy())) / 2e-5
    np.testing.assert_allclose(gradient(x, v.copy())[1, 1], difference, rtol=1e-6)
