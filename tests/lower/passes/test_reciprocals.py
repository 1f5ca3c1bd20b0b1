"""Divisions by a number that is the same for all elements."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred


def softmax(scores: Any) -> Any:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def scaled(q: Any, k: Any, v: Any, scale: Any) -> Any:
    return softmax((q @ k.T + 1) / scale - q[0, 0] / scale) @ v


def by_elements(q: Any, k: Any, v: Any, scales: Any) -> Any:
    return softmax(q @ k.T / scales) @ v


def matrices() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (5, 4), (5, 2))]


def shaping(function: Any, scale: Any) -> str:
    """The function that makes scores of products."""
    module = lowered(inferred(function, (*matrices(), scale)).module, "fuse")
    texts = [forms[0].source for forms in plan_code(plan(module, TARGET)).with_forms()]
    (text,) = [text for text in texts if "void shaped(" in text]
    return text[text.index("void shaped(") : text.index("\n}\n")]


def test_one_reciprocal_stands_before_the_loops() -> None:
    text = shaping(scaled, np.float32(3))
    before, loops = text.split("for (", 1)
    assert len(re.findall(r"1\.0f / s\d", before)) == 1
    assert " / " not in loops
    assert "*" in loops


def test_numbers_of_elements_divide() -> None:
    assert " / " in shaping(by_elements, np.ones(5, np.float32)).split("for (", 1)[1]


@needs_compiler
@pytest.mark.parametrize("scale", [3.0, -0.25, 0.0, np.inf, np.nan])
def test_scores_are_those_of_divisions(scale: float) -> None:
    args = (*matrices(), np.float32(scale))
    with np.errstate(all="ignore"):
        wanted = scaled(*args)
    got = pyrelay.jit(scaled, device="cuda_emulator")(*args)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
