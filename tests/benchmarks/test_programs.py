"""The answers that benchmarks are checked against are right themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from benchmarks import workloads
from benchmarks.programs import image_networks, networks, plain
from benchmarks.worker import MODULES


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
        (plain.lstm_loss, plain.lstm_gradient, workloads.lstm(5, steps=4), (3, 4, 5)),
        (
            plain.mlp_loss,
            lambda *args: plain.mlp_gradient(*args)[1:],
            workloads.mlp(batch=4, inputs=6, hidden=5, classes=3),
            (0, 1, 2, 3),
        ),
        (
            plain.stores,
            lambda *args: (plain.stores_gradient(*args),),
            workloads.recurrence(9),
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
        ("dqn", workloads.dqn(2)),
        *(
            pytest.param(name, make(2, 32), marks=pytest.mark.slow, id=name)
            for name, make in (("resnet18", workloads.resnet18), ("mobilenet", workloads.mobilenet))
        ),
    ],
)
def test_networks_for_images_compute_what_plain_python_does(name: str, args: Any) -> None:
    network = image_networks.FORWARD[name]
    np.testing.assert_allclose(pyrelay.jit(network)(*args), network(*args), rtol=1e-3, atol=1e-4)


def test_every_workload_has_a_plain_program_or_loss_and_goals_name_peers() -> None:
    for workload in workloads.WORKLOADS:
        assert workload.program in {**plain.PROGRAMS, **networks.GRADIENTS}
        assert {goal.peer for goal in workload.goals} <= set(MODULES)
    assert len(workloads.BY_NAME) == len(workloads.WORKLOADS)


def test_the_straight_line_program_is_python() -> None:
    scope: dict[str, Any] = {}
    exec(plain.straight_line(3), scope)
    assert scope["chain"](np.ones(4)).shape == (4,)
