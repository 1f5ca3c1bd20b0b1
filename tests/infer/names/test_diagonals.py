"""np.triu, np.tril, np.eye: the diagonal that they are told."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay
from pyrelay import errors


def of_a_diagonal(m, k):
    return np.triu(m, k), np.tril(m, k), np.eye(3, 4, k), np.tri(3, 4, k), np.diag(m, k)


def test_other_diagonals_need_no_new_compilation() -> None:
    m = np.arange(12.0).reshape(3, 4)
    compiled = pyrelay.jit(of_a_diagonal)
    for k in (1, -1, 0, 3, -7, 9):
        for got, wanted in zip(compiled(m, k), of_a_diagonal(m, k), strict=True):
            np.testing.assert_array_equal(got, wanted)
    assert compiled.cache_info().compilations == 1


def test_a_diagonal_that_is_no_int_is_refused() -> None:
    with pytest.raises(errors.TypeMismatchError, match="k must be an int, not float"):
        pyrelay.jit(lambda m: np.triu(m, 0.5))(np.ones((2, 2)))
