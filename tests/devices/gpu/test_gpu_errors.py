"""What kernels find wrong: Python's exception with its values, at Python's line, from every form
of kernel, in graphs that are replayed, behind guesses, and in gradients."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.devices import failing_programs
from tests.devices.failing_programs import CASES, GRADIENTS
from tests.devices.running_kernels import compiled_together, needs_compiler

pytestmark = needs_compiler
ON = "cuda_emulator"
FILE = failing_programs.__file__
ALL = {**CASES, **GRADIENTS}

#: A loop as one kernel, native recursion, a gradient; other tests have elements and scatters.
FEW = ("recurrence_with_assert", "recursion_in_a_kernel", "loss_of_gathered")


def plainly(function: Callable[..., Any], args: Any) -> tuple[BaseException, int]:
    """What Python raises, and at which line."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function(*args)
        except Exception as error:
            trace, line = sys.exc_info()[2], 0
            while trace is not None:
                if trace.tb_frame.f_code.co_filename == FILE:
                    line = trace.tb_lineno
                trace = trace.tb_next
            return error, line
    raise AssertionError("nothing is raised")


def check(names: Sequence[str]) -> None:
    """Each call three times: launch by launch, captured, and replayed."""
    made = {
        name: (pyrelay.jit if name in CASES else pyrelay.grad)(ALL[name][0], device=ON)
        for name in names
    }
    compiled_together([(made[name], ALL[name][1]) for name in names])
    for name in names:
        function, args = ALL[name]
        wanted, line = plainly(function, args)
        for _ in range(3):
            with pytest.raises(type(wanted)) as caught:
                made[name](*args)
            assert str(caught.value).partition("\n  ")[0] == str(wanted)
            assert caught.value.span.line == line, name  # type: ignore[attr-defined]


def test_errors_are_pythons_with_values_and_line() -> None:
    check(FEW)


@pytest.mark.slow
def test_errors_of_every_form_are_pythons_with_values_and_line() -> None:
    check([name for name in ALL if name not in FEW])


def summed_into(table: Any, places: Any, out: Any) -> None:
    rows = table[places]
    out[:] = rows + 1.0
    for _ in range(3):
        out += rows


def rows_until(x: Any, places: Any, y: Any) -> Any:
    k = 0
    while k < places.shape[0]:
        y = y + x[places[k]]
        x[places[k]] = y
        k += 1
    return y


def test_what_was_not_computed_is_not_copied_to_the_callers_arrays() -> None:
    """The device goes on behind a kernel that failed: what the host asks for then is a kernel that
    looks at the record too."""
    out, x = np.full((2, 3), 5.0), np.arange(6.0)
    calls: list[tuple[Any, Any]] = [
        (pyrelay.jit(summed_into, device=ON), (np.ones((4, 3)), np.array([0, 9]), out)),
        (pyrelay.jit(rows_until, device=ON), (x, np.array([[0, 1], [4, 6]]), np.ones(2))),
    ]
    compiled_together(calls)
    for function, args in calls:
        with pytest.raises(IndexError, match="is out of bounds for axis 0"):
            function(*args)
    assert (out == 5).all()
    assert (x == [1, 2, 2, 3, 4, 5]).all()
