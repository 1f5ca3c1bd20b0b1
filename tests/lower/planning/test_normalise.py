"""What is left outside kernels when planning begins, and what is not made for it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import pyrelay


def test_one_number_that_is_added_at_many_places_is_no_array() -> None:
    def counted(places: Any, rows: Any) -> Any:
        totals = np.zeros((4, 2))
        np.add.at(totals, places, 0.5)
        np.add.at(totals, places, rows)
        return totals, np.bincount(places)

    function, places, rows = pyrelay.jit(counted), np.array([3, 0, 3, 1]), np.ones((4, 2))
    for found, wanted in zip(function(places, rows), counted(places, rows), strict=True):
        np.testing.assert_array_equal(found, wanted)
    made = re.findall(r"store_\w+\(o0, i0, (.+)\)", str(function.code(places, rows)))
    assert set(made) <= {"0", "0.0"}


def test_a_number_that_others_read_too_is_an_array() -> None:
    def both(places: Any) -> Any:
        ones = np.ones(places.shape[0])
        totals = np.zeros(4)
        np.add.at(totals, places, ones)
        return totals, ones

    places = np.array([3, 0, 3, 1])
    for found, wanted in zip(pyrelay.jit(both)(places), both(places), strict=True):
        np.testing.assert_array_equal(found, wanted)
