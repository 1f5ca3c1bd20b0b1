"""Three programs as text after every stage: diffs of these files show what a change does."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay

STAGES = ("parse", "infer", "grad", "optimise", "fuse")


def newton(square, guess):
    while abs(guess * guess - square) > 1e-9:
        guess = 0.5 * (guess + square / guess)
    return guess


def recurrence(xs, w):
    h = np.zeros(w.shape[0])
    for t in range(xs.shape[0]):
        h = np.tanh(xs[t] + h @ w)
    return np.sum(h * h)


def running_sum(x):
    out = np.zeros(x.shape[0])
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            continue
        total += x[i]
        out[i] = total
    return out


PROGRAMS = {
    "newton": (pyrelay.jit(newton), (2.0, 1.0)),
    "recurrence_gradient": (pyrelay.grad(recurrence, argnums=1), (np.ones((5, 20)), np.eye(20))),
    "running_sum": (pyrelay.jit(running_sum), (np.arange(4.0),)),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_reads_as_recorded_after_each_stage(name, stage, golden):
    function, arguments = PROGRAMS[name]
    golden(f"stages/{name}_{stage}", str(function.ir(*arguments, stage=stage)) + "\n")


@pytest.mark.parametrize("name", ["newton", "running_sum"])
def test_kernels_and_plan_read_as_recorded(name, golden):
    function, arguments = PROGRAMS[name]
    golden(f"stages/{name}_code", str(function.code(*arguments)))
