"""Programs whose objects are all records: what goes through them is unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.errors import PyrelayError


class Part:
    """An array, of its own shape, and the parts that it was made of."""

    def __init__(self, data: Any, parts: Any = ()) -> None:
        self.data, self.parts = data, parts


def total(part: Any) -> Any:
    found = part.data.sum()
    for inner in part.parts:
        found = found + total(inner)
    return found


def by_recursion(x: Any) -> Any:
    leaf = Part(x)
    return total(Part(x.sum(axis=0), (leaf, Part(x @ x, (leaf,)))))


def by_keys(x: Any) -> Any:
    a, b = Part(x), Part(x[0])
    grads = {}
    for part in (a, b, a):
        grads[part] = grads[part] + part.data if part in grads else part.data
    seen = {a, b, a}
    return grads[a], grads[b], len(grads), len(seen), a in seen, [p is a for p in grads]


@pytest.mark.parametrize("function", [by_recursion, by_keys])
def test_objects_of_arrays_of_several_shapes(function: Any) -> None:
    x = np.arange(4.0).reshape(2, 2)
    found, wanted = pyrelay.jit(function)(x), function(x)
    for mine, theirs in zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True) if (
        function is by_recursion
    ) else zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_recursion_that_data_end_is_refused_with_the_first_failure() -> None:
    def deeper(part: Any, least: Any) -> Any:
        if part.data.sum() < least:
            return part.data.sum()
        return deeper(Part(part.data[None] / 2, (part,)), least)

    with pytest.raises(PyrelayError):
        pyrelay.jit(lambda x: deeper(Part(x), 1.0))(np.ones(3))
