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
