"""Random Python programs: plain, interpreted and compiled runs agree bit for bit.

What is refused because two names may or may not be one array is skipped: plain Python would depend
on which. Any other refusal fails the test.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import pyrelay
from pyrelay import config
from tests.property.writing import Drawn, Writer, arguments, function_of

EVERY_CHECK = list(HealthCheck)


@st.composite
def programs(draw: Callable[[Any], Any], size: int = 12) -> str:
    """Texts of programs; choices shrink to the first one, which is the simplest."""
    return Writer(Drawn(lambda a, b: draw(st.integers(a, b))), size).program()


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Result, exception, and arguments afterwards."""
    mine = copy.deepcopy(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return function(*mine), None, mine
        except pyrelay.PyrelayError:
            raise
        except Exception as error:
            return None, (type(error), str(error)), mine


def assert_agrees(got: Any, wanted: Any) -> None:
    """Equal, bit for bit; scalars are ints or floats as in plain Python."""
    if isinstance(wanted, tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert_agrees(one, other)
    elif isinstance(wanted, np.ndarray):
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
    else:
        integer = (int, np.integer)
        assert isinstance(got, integer) == isinstance(wanted, integer)
        assert got == wanted


def check(text: str, interpret: bool) -> bool:
    """Compare a program with plain Python on all arguments; false if it is refused."""
    function = function_of(text)
    with config.override(interpret=interpret):
        compiled = pyrelay.jit(function)
        for args in arguments():
            wanted, raised, left = outcome(function, args)
            try:
                got, error, found = outcome(compiled, args)
            except pyrelay.AliasError:
                return False
            assert error == raised
            if raised is None:
                assert_agrees(got, wanted)
            if raised is None or not interpret:  # the interpreter has no arrays to write into
                assert_agrees(found, left)
    return True


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=EVERY_CHECK)
@given(programs())
def test_random_programs_interpreted_do_what_python_does(text: str) -> None:
    assume(check(text, interpret=True))


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=EVERY_CHECK)
@given(programs())
def test_random_programs_compiled_do_what_python_does(text: str) -> None:
    assume(check(text, interpret=False))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(10))
def test_many_random_programs_do_what_python_does(batch: int) -> None:
    for seed in range(batch * 100, batch * 100 + 100):
        text = Writer(random.Random(seed), 20).program()
        for interpret in (True, False) if seed % 5 == 0 else (True,):
            try:
                check(text, interpret)
            except Exception as error:
                error.add_note(f"seed {seed}:\n{text}")
                raise
