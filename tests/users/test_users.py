"""Programs of demanding users: compiled, they do what plain Python does, and so do derivatives.

Derivatives are compared with central differences of plain Python along one direction per call.
What is not compiled is refused with an error that says what to write instead.
"""

from __future__ import annotations

import copy
import importlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyrelay
from pyrelay.errors import PyrelayError
from tests.infer.running import Outcome, assert_same_outcome, plainly
from tests.users.corpus import REFUSED, USED, Refusal, Use
from tests.users.differences import difference, slope

for _file in sorted(Path(__file__).parent.glob("[!_]*.py")):  # each fills the corpus
    if not _file.stem.startswith("test_"):
        importlib.import_module(f"tests.users.{_file.stem}")


def calls(differentiable: bool) -> list[Any]:
    """The corpus, one entry per call; the long run has more of them."""
    return [
        pytest.param(
            u, k, id=f"{u.name}-{k}",
            marks=[pytest.mark.slow] if u.long or (differentiable and (u.slow or k)) else [],
        )
        for u in USED if u.wrt or not differentiable for k in range(len(u.inputs))
        if k not in u.corners or not differentiable
    ]


def compiledly(function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome:
    """What a call of the compiled function does."""
    mine = copy.deepcopy(args)
    try:
        return Outcome(pyrelay.jit(function)(*mine), None, mine)
    except Exception as error:
        return Outcome(None, error, mine)


@pytest.mark.parametrize(("used", "number"), calls(differentiable=False))
def test_compiled_program_does_what_python_does(used: Use, number: int) -> None:
    args = used.arguments(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = compiledly(used.function, args)
    if isinstance(got.error, PyrelayError):
        raise got.error
    assert_same_outcome(got, plainly(used.function, args), used.joins)


# -- derivatives -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("used", "number"), calls(differentiable=True))
def test_compiled_gradient_agrees_with_finite_differences(used: Use, number: int) -> None:
    args = used.arguments(number)
    function = used.function

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = difference(function, args, used.wrt)
        except Exception:
            pytest.skip("plain Python raises here")
        got = slope(function, args, used.wrt)
    assert got == pytest.approx(expected, rel=5e-5, abs=1e-5)


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("refusal", [pytest.param(r, id=r.name) for r in REFUSED])
def test_what_is_not_compiled_is_refused_with_advice(refusal: Refusal) -> None:
    with pytest.raises(PyrelayError) as caught:
        pyrelay.jit(refusal.function)(*copy.deepcopy(refusal.args))
    text = str(caught.value)
    for part in refusal.texts:
        assert part in text
    assert refusal.name in text
