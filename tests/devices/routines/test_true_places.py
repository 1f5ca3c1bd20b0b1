"""Where flags are true: any number of them, near ends and in between, by vectors and by bytes."""

from __future__ import annotations

import numpy as np
import pytest

from pyrelay.devices.routines.true_places import places_kernel
from tests.devices.running_kernels import run


@pytest.mark.parametrize("compressing", [None, False])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99, 1])
def test_places_are_those_of_true_flags(compressing: bool | None, share: float) -> None:
    rng = np.random.default_rng(1)
    for count in (0, 1, 7, 8, 9, 16, 23, 64, 100, 1000):
        flags = rng.random(count) < share
        wanted = np.flatnonzero(flags)
        places = np.full(len(wanted) + 1, -7)
        run(places_kernel(compressing), flags, count, places, len(wanted), ranges=[(0, 1)])
        np.testing.assert_array_equal(places[:-1], wanted)
        assert places[-1] == -7
