"""Random Python programs: plain, interpreted and compiled runs agree bit for bit.

Interpreted is the typed program after `infer` and after every stage that follows. Any refusal
but one fails the test. A failure shows the seed and the text:
`Writer(random.Random(seed), size).program()`.

Runs of 2026-11-22, seeds counted up from the ones named. Interpreted: 885 programs of size 6 from
500,000 (3 refused), 7,280 of size 6 from 1,000,000 (21 refused), then, with those mended, none
refused of 1,320 of size 6 from 1,007,280, 2,100 of size 4 from 1,100,000, 4,460 of size 2 from
1,300,000, 3,160 of size 3 from 1,400,000 and 1,750 of size 3 from 1,500,000. Compiled: 303 of size
5 from 600,000 (1 refused), 1,280 of size 4 from 1,200,000 and 760 of size 3 from 1,600,000 (none).
Gradients: 882 of size 6 from 700,000 (1 had no point) and 950 from 800,000. No value differed in
any of these 20,955 interpreted, 2,343 compiled and 1,832 derivatives. `found.py` has a program of
each kind that was refused. After numbers of several kinds and the order of stores: 2,297
interpreted of size 3 from 2,200,000 and 616 compiled of size 4 from 2,100,000, none refused.
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyrelay
from pyrelay import config, pipeline
from tests.infer.running import run
from tests.property import found
from tests.property.prelude import function_of
from tests.property.writing import Drawn, Writer, arguments

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


def check(text: str, interpret: bool, calls: int = 3, thorough: bool = True) -> None:
    """Compare a program with plain Python on the arguments.

    Interpreted and `thorough`, it is verified and compared after every stage.
    """
    function = function_of(text)
    compiled = pyrelay.jit(function)
    for number, args in enumerate(arguments()[:calls]):
        expected = outcome(function, args)
        with config.override(interpret=interpret, verify=thorough):
            compare(outcome(compiled, args), expected, written=not interpret)
        if interpret and thorough and number == 0:
            for each in stages(compiled, args):
                compare(outcome(each, args), expected, written=False)


def compare(found: tuple[Any, Any, Any], expected: tuple[Any, Any, Any], written: bool) -> None:
    """Compare outcomes; the interpreter has no arrays to write into if the program raises."""
    (got, error, after), (wanted, raised, left) = found, expected
    assert error == raised, f"raised {error}, plain Python {raised}"
    if raised is None:
        assert_agrees(got, wanted)
    if raised is None or written:
        assert_agrees(after, left)


def stages(compiled: Any, args: tuple[Any, ...]) -> Any:
    """The program after `infer` and after each stage, as functions."""
    with config.override(interpret=True):
        spec = compiled.lower(*copy.deepcopy(args))._spec
    module = spec.module
    yield lambda *mine: run(spec, spec.module, mine, {})
    for stage in pipeline.STAGES:
        module = pipeline.run_passes(module, stage)
        yield lambda *mine, module=module: run(spec, module, mine, {})


def check_seeds(
    first: int, count: int, size: int, interpret: bool, calls: int = 3, thorough: bool = True
) -> None:
    """Check programs by their seeds; the error of one that fails shows it."""
    for seed in range(first, first + count):
        text = Writer(random.Random(seed), size).program()
        try:
            check(text, interpret, calls, thorough)
        except BaseException as error:
            error.add_note(f"seed {seed}, size {size}:\n{text}")
            raise


# Found by these programs, and mended since.
@pytest.mark.parametrize("name", found.PROGRAMS)
def test_programs_that_went_wrong_once_do_what_python_does(name: str) -> None:
    for interpret in (True, False):
        check(found.PROGRAMS[name], interpret)


@pytest.mark.slow
def test_large_programs_that_went_wrong_once_do_what_python_does() -> None:
    check_seeds(990041, 1, 12, False)  # the number of no object was that of the first one


def some_of(batches: int, first: int) -> list[Any]:
    """Numbers of batches; those behind the first ones are left to the long run."""
    return [
        pytest.param(n, marks=() if n < first else pytest.mark.slow) for n in range(batches)
    ]


@pytest.mark.parametrize("batch", some_of(20, 5))
def test_small_random_programs_interpreted_do_what_python_does(batch: int) -> None:
    """500 programs, 2,000 in the long run; 40 in 2,000 of the larger
    ones are compared after every stage."""
    start = batch * 100
    check_seeds(start, 50, 1, True, calls=1, thorough=False)
    check_seeds(start + 50, 40, 2, True, calls=1, thorough=False)
    check_seeds(start + 90, 6, 3, True, calls=2, thorough=False)
    check_seeds(start + 96, 3, 4, True, calls=2, thorough=batch % 2 == 0)
    check_seeds(start + 99, 1, 12, True, calls=2, thorough=batch % 2 == 1)


@pytest.mark.parametrize("batch", some_of(10, 4))
def test_random_programs_compiled_do_what_python_does(batch: int) -> None:
    """60 programs, 150 in the long run; one in 15 of them are verified after every stage."""
    start = batch * 100 + 10_000
    check_seeds(start, 12, 2, False, calls=2, thorough=False)
    check_seeds(start + 12, 2, 4, False, thorough=False)
    check_seeds(start + 14, 1, 4, False)


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=EVERY_CHECK)
@given(programs(5))
def test_programs_drawn_by_hypothesis_do_what_python_does(text: str) -> None:
    check(text, interpret=True, calls=2)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(20))
def test_many_random_programs_do_what_python_does(batch: int) -> None:
    """20,000 programs interpreted and 2,000 compiled; every tenth is compared, or verified, after
    each stage, which takes as long as all the rest."""
    start = 100_000 + batch * 1000
    for first, count, size, interpret, calls in (
        (start, 800, 6, True, 2), (start + 800, 200, 20, True, 3),
        (start, 80, 8, False, 3), (start + 800, 20, 20, False, 3),
    ):
        closely = count // 10
        check_seeds(first, closely, size, interpret, calls)
        check_seeds(first + closely, count - closely, size, interpret, calls, thorough=False)
