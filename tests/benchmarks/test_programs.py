"""The answers that benchmarks are checked against are right themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from benchmarks import inputs, work, workloads
from benchmarks.frameworks import MODULES
from benchmarks.programs import image_networks, loops, plain


def slope(function: Callable[..., Any], args: list[Any], which: int, direction: Any) -> float:
    """The derivative of `function` along a direction in one argument, by central differences."""
    size = 1e-6
    moved = [
        function(*args[:which], args[which] + sign * size * direction, *args[which + 1 :])
        for sign in (1, -1)
    ]
    return float(moved[0] - moved[1]) / (2 * size)


@pytest.mark.parametrize(
    ("loss", "gradient", "args", "argnums"),
    [
        (plain.lstm_loss, plain.lstm_gradient, inputs.lstm(5, steps=4), (3, 4, 5)),
        (
            plain.mlp_loss,
            lambda *args: plain.mlp_gradient(*args)[1:],
            inputs.mlp(batch=4, inputs=6, hidden=5, classes=3),
            (0, 1, 2, 3),
        ),
        (
            plain.stores,
            lambda *args: (plain.stores_gradient(*args),),
            inputs.recurrence(9),
            (0,),
        ),
    ],
    ids=["lstm", "mlp", "stores"],
)
def test_the_gradients_derived_by_hand_agree_with_finite_differences(
    loss: Callable[..., Any],
    gradient: Callable[..., Any],
    args: tuple[Any, ...],
    argnums: tuple[int, ...],
) -> None:
    wide = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in args]
    rng = np.random.default_rng(0)
    for which, found in zip(argnums, gradient(*wide), strict=True):
        direction = rng.standard_normal(wide[which].shape)
        expected = slope(loss, wide, which, direction)
        assert np.sum(found * direction) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_the_loop_counts_what_the_recursion_counts() -> None:
    assert plain.depth_by_loop(50, 0.5) == plain.depth(50, 0.5)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("dqn", inputs.dqn(2)),
        *(
            pytest.param(name, make(2, 32), marks=pytest.mark.slow, id=name)
            for name, make in (
                ("resnet18", inputs.resnet18), ("vgg16", inputs.vgg16),
                ("mobilenet", inputs.mobilenet),
            )
        ),
    ],
)
def test_networks_for_images_compute_what_plain_python_does(name: str, args: Any) -> None:
    network = image_networks.FORWARD[name]
    np.testing.assert_allclose(pyrelay.jit(network)(*args), network(*args), rtol=1e-3, atol=1e-4)


def test_goals_name_peers_and_names_are_unique() -> None:
    for workload in workloads.WORKLOADS:
        assert {goal.peer for goal in workload.goals} <= set(MODULES)
    assert len(workloads.BY_NAME) == len(workloads.WORKLOADS)


@pytest.mark.parametrize("name", ["elimination", "lu_dots", "body_vectors", "durbin", "viterbi"])
def test_loops_for_numba_compute_what_rows_do(name: str) -> None:
    rng = np.random.default_rng(0)
    args: dict[str, tuple[Any, ...]] = {
        "elimination": (rng.random((6, 6)),),
        "lu_dots": (rng.random((6, 6)) + 6 * np.eye(6),),
        "body_vectors": (rng.random((5, 3)), rng.random((5, 3)), rng.random(5), 2, 0.01),
        "durbin": (rng.random(9) * 0.1,),
        "viterbi": (rng.random((3, 3)), rng.random((3, 4)), rng.random(3), rng.integers(0, 4, 8)),
    }
    expected = plain.as_arrays(plain.PROGRAMS[name](*args[name])())
    found = plain.as_arrays(loops.PROGRAMS[name](*args[name]))
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9)


def test_operations_are_those_of_the_definition() -> None:
    of = {"matmul": inputs.square_matrices(8), "conv3": inputs.image(4, 5, 6, 3)}
    assert work.flops("matmul", of["matmul"]) == 2 * 8**3
    assert work.flops("conv3", of["conv3"]) == 2 * 6 * 5 * 5 * 4 * 9
    assert work.flops("softmax", inputs.matrix(2, 3)) == 0
    assert work.flops("sieve", (100,)) is None
    # The published multiplications of ResNet-18, 1.8 thousand million of them.
    assert work.flops("resnet18", inputs.resnet18(1)) == pytest.approx(2 * 1.814e9, rel=1e-3)
    assert work.touched(inputs.matrix(2, 3), (np.zeros(2),)) == 2 * 3 * 4 + 2 * 8
    assert work.dtype(inputs.recurrence(3)) == "f64"


def test_the_straight_line_program_is_python() -> None:
    scope: dict[str, Any] = {}
    exec(plain.straight_line(3), scope)
    assert scope["chain"](np.ones(4)).shape == (4,)
