"""Random programs in which names share arrays do what plain Python does; none is refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.infer.running import Outcome, assert_same_outcome, interpreted, plainly
from tests.property.prelude import function_of
from tests.property.sharing import Sharing


def calls() -> list[tuple[Any, ...]]:
    """Arguments; in some of them two are one array."""
    x, y, z = np.array([0.5, 1, 2, -1]), np.array([3, -2, 1.5, 0.5]), np.array([1, 0, -0.5, 4])
    return [(x, y, z, 0), (x, y, z, 1), (x, y, z, 3), (x, x, z, 0), (x, x, z, 3)]


def compiledly(function: Any, args: tuple[Any, ...]) -> Outcome:
    mine = copy.deepcopy(args)
    return Outcome(pyrelay.jit(function)(*mine), None, mine)


def check(seed: int, run: Any) -> None:
    text = Sharing(seed).program()
    function = function_of(text)
    for args in calls():
        try:
            assert_same_outcome(run(function, args), plainly(function, args))
        except Exception as error:
            error.add_note(f"seed {seed}:\n{text}")
            raise


@pytest.mark.parametrize("batch", range(2))
def test_programs_that_share_arrays_do_what_python_does(batch: int) -> None:
    for seed in range(batch * 5, batch * 5 + 5):
        check(seed, interpreted)


def test_compiled_programs_that_share_arrays_do_what_python_does() -> None:
    for seed in range(100, 102):
        check(seed, compiledly)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(8))
def test_many_programs_that_share_arrays_do_what_python_does(batch: int) -> None:
    for seed in range(batch * 50 + 200, batch * 50 + 250):
        check(seed, interpreted)
