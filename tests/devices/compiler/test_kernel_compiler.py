"""Kernels are optimised, and what LLVM makes of them is sound."""

from __future__ import annotations

import numpy as np

import pyrelay


def filtered(f, h, q, r, x, p, seen):
    """Kalman's filter: LLVM 22 packs its straight lines into vectors that it uses before it has
    them, and its code generator then ends the process."""
    for t in range(len(seen)):
        x = f @ x
        p = f @ p @ f.T + q
        k = p @ h.T @ np.linalg.inv(h @ p @ h.T + r)
        x = x + k @ (seen[t] - h @ x)
        p = (np.eye(4) - k @ h) @ p
    return x


def test_straight_lines_that_llvm_packs_wrongly_are_not_packed() -> None:
    f = np.eye(4) + 0.1 * np.eye(4, k=2)
    seen = np.random.default_rng(0).standard_normal((9, 2))
    args = (f, np.eye(2, 4), 0.01 * np.eye(4), 0.1 * np.eye(2), np.zeros(4), np.eye(4), seen)
    np.testing.assert_allclose(pyrelay.jit(filtered)(*args), filtered(*args), rtol=1e-9)
