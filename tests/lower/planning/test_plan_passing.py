"""Which results of products may lie in larger blocks of memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyrelay
from pyrelay import nn, pipeline
from pyrelay.lower.planning.instructions import Alloc


def passing(f: Any, *args: Any) -> list[bool]:
    """For each array that a program makes, whether its memory is soon given back."""
    spec = pyrelay.jit(f)._specialised(args, {})
    plan = pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))
    return [i.passing for each in plan.functions for i in each.code if isinstance(i, Alloc)]


def layers(x, w, b):
    return nn.relu(nn.conv(nn.relu(nn.conv(nn.relu(nn.conv(x, w, b)), w, b)), w, b))


def layers_and_middle(x, w, b):
    y = nn.relu(nn.conv(x, w, b))
    z = nn.relu(nn.conv(y, w, b))
    return nn.relu(nn.conv(z, w, b)), z


def layers_and_mean(x, w, b):
    y = nn.relu(nn.conv(x, w, b))
    z = nn.relu(nn.conv(y, w, b))
    return np.mean(y), z


def with_a_residual(x, w, b):
    y = nn.relu(nn.conv(x, w, b))
    return nn.conv(nn.relu(nn.conv(y, w, b)), w, b) + y


ARGS = (
    np.random.default_rng(0).standard_normal((2, 5, 6, 7)).astype(np.float32),
    np.random.default_rng(1).standard_normal((5, 5, 1, 1)).astype(np.float32),
    np.random.default_rng(2).standard_normal(5).astype(np.float32),
)


def test_what_only_products_read_passes() -> None:
    assert passing(layers, *ARGS) == [True, True, False]


def test_what_the_caller_gets_and_what_others_read_does_not() -> None:
    assert passing(layers_and_middle, *ARGS) == [True, False, False]
    assert not any(passing(layers_and_mean, *ARGS))


def test_a_result_is_not_made_in_the_memory_of_what_passes() -> None:
    """The residual dies where it is added, and its block may be four times as large."""
    assert passing(with_a_residual, *ARGS) == [True, True, False]
    np.testing.assert_allclose(
        pyrelay.jit(with_a_residual)(*ARGS), with_a_residual(*ARGS), rtol=1e-4, atol=1e-4
    )
