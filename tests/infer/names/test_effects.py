"""What programs do besides giving results: filters of warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyrelay


def quiet(x, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("not heard", stacklevel=1)
        if k < 0:
            raise ValueError("negative")
        if k > 3:
            return np.log(x)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        warnings.warn("not heard", stacklevel=1)
    warnings.warn("heard", stacklevel=1)
    return x


def test_filters_of_warnings_are_set_in_a_block_however_it_is_left():
    f, x, before = pyrelay.jit(quiet), np.array([1.0, 2.0]), list(warnings.filters)
    with pytest.warns(UserWarning, match="^heard$") as heard:
        np.testing.assert_array_equal(f(x, 1), x)
    assert len(heard) == 1
    np.testing.assert_array_equal(f(x, 4), np.log(x))
    with pytest.raises(ValueError, match="negative"):
        f(x, -1)
    assert list(warnings.filters) == before


def test_warnings_are_not_recorded():
    def recorded(x):
        with warnings.catch_warnings(record=True) as caught:
            return x, len(caught)

    with pytest.raises(pyrelay.PyrelayError, match=r"(?s)recorded inside.*call the compiled func"):
        pyrelay.jit(recorded)(1.0)
