"""Programs of demanding users: compiled, they do what plain Python does, and so do derivatives.

Derivatives are compared with central differences of plain Python along one direction per call.
What is not compiled is refused with an error that says what to write instead.
"""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.errors import PyrelayError
from tests.infer.running import Outcome, assert_same_outcome, plainly
from tests.users import (  # noqa: F401  (each fills the corpus)
    attempts,
    built_trees,
    changed_trees,
    choices,
    containers,
    empty_arrays,
    functions,
    generators,
    graphs,
    grids,
    idioms,
    learning,
    library,
    list_arguments,
    list_changes,
    lists,
    managers,
    matrices,
    motion,
    networks,
    numbers_listed,
    objects,
    positions,
    protocols,
    raised_classes,
    raising,
    raising_structures,
    ranges,
    refusals,
    roots,
    rows,
    searches,
    sharing,
    signals,
    slices_of_one,
    stencils,
    strings,
    style,
    syntax,
    tables,
    tree_networks,
    trees,
    views,
)
from tests.users.corpus import REFUSED, USED, Refusal, Use

STEP = 1e-6


def calls(differentiable: bool) -> list[Any]:
    """The corpus, one entry per call; the long run has more of them."""
    return [
        pytest.param(
            u, k, id=f"{u.name}-{k}",
            marks=[pytest.mark.slow] if u.long or (differentiable and (u.slow or k)) else [],
        )
        for u in USED if u.wrt or not differentiable for k in range(len(u.inputs))
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


def measured(value):
    """One number of all floats in a structure; plain Python, compiled with the program."""
    if isinstance(value, (tuple, list)):
        return sum(measured(v) * (k + 1) for k, v in enumerate(value))
    if isinstance(value, dict):
        return sum(measured(v) for v in value.values())
    if isinstance(value, np.ndarray):
        if value.dtype.kind != "f":
            return 0.0
        weights = np.cos(np.arange(value.size)).reshape(value.shape)
        return np.sum(weights * value)
    if isinstance(value, (float, np.floating)):
        return value
    if dataclasses.is_dataclass(value):
        return sum(measured(getattr(value, f.name)) for f in dataclasses.fields(value))
    return 0.0


def leaves(value: Any, into: list[Any]) -> list[Any]:
    """Floating leaves of a structure, in order; None stands for what has no derivative."""
    if isinstance(value, (tuple, list)):
        for v in value:
            leaves(v, into)
    elif isinstance(value, dict):
        leaves(list(value.values()), into)
    elif dataclasses.is_dataclass(value):
        leaves([getattr(value, f.name) for f in dataclasses.fields(value)], into)
    elif isinstance(value, (float, np.floating)) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ):
        into.append(value)
    return into


def moved(value: Any, by: float, salt: list[int]) -> Any:
    """A structure whose floating leaves are displaced along their direction."""
    if isinstance(value, tuple):
        items = [moved(v, by, salt) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [moved(v, by, salt) for v in value]
    if isinstance(value, dict):
        return {k: moved(v, by, salt) for k, v in value.items()}
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(
            value, **{f.name: moved(getattr(value, f.name), by, salt)
                      for f in dataclasses.fields(value)}
        )
    if leaves(value, []):
        salt[0] += 1
        return type(value)(value + by * direction(value, salt[0])) if np.ndim(value) == 0 else (
            value + by * direction(value, salt[0])
        )
    return value


def direction(value: Any, salt: int) -> Any:
    """Deterministic numbers of a shape."""
    return np.cos(np.arange(np.size(value)) * 2.3 + salt).reshape(np.shape(value))[()]


@pytest.mark.parametrize(("used", "number"), calls(differentiable=True))
def test_compiled_gradient_agrees_with_finite_differences(used: Use, number: int) -> None:
    args = used.arguments(number)
    function = used.function

    def loss(*args):
        return measured(function(*args))

    def plain_loss(by: float) -> float:
        mine = list(copy.deepcopy(args))
        salt = [0]
        for k in used.wrt:
            mine[k] = moved(mine[k], by, salt)
        return float(loss(*mine))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = (plain_loss(STEP) - plain_loss(-STEP)) / (2 * STEP)
        except Exception:
            pytest.skip("plain Python raises here")
        gradients = pyrelay.grad(loss, argnums=used.wrt)(*copy.deepcopy(args))
    got, salt = 0.0, 0
    for gradient in leaves(gradients, []):
        salt += 1
        got += float(np.sum(gradient * direction(gradient, salt)))
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
