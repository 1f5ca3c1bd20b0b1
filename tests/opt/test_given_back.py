"""What functions give back of the arrays that they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import core

from pyrelay.opt.given_back import given_back

X, Y = np.arange(4.0), np.ones(4)


def stores(x: Any, k: int) -> Any:
    if k == 0:
        return 0.0
    x[k] = k
    return stores(x, k - 1)


def turns(x: Any, y: Any, k: int) -> Any:
    x[k] += 1.0
    return 0.0 if k == 0 else turns(y, x, k - 1)


def in_rounds(x: Any, k: int) -> None:
    if k > 0:
        for i in range(k):
            x[i] = k
            in_rounds(x, k - 1)


def copies(x: Any, k: int) -> Any:
    return x * 2.0 if k == 0 else copies(x, k - 1)


def one_or_the_other(x: Any, k: int) -> None:
    if k > 0:
        x[0] = k
        if k > 2:
            x[:] = x * 2.0
        one_or_the_other(x, k - 1)


@pytest.mark.parametrize(
    ("f", "args", "arrays"),
    [
        (stores, (X, 3), [0]), (turns, (X, Y, 3), [0, 1]), (in_rounds, (X, 2), [0]),
        (copies, (X, 3), [None]), (one_or_the_other, (X, 3), [None]),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_results_are_versions_of_parameters(
    f: Any, args: tuple[Any, ...], arrays: list[int | None]
) -> None:
    module = core(f, *args)
    found = given_back(module.functions)
    name = next(n for n in module.functions if n != module.entry)
    results = module.functions[name].body.results
    got = [k for k, r in zip(found[name], results, strict=True) if getattr(r.type, "shape", ())]
    assert got == arrays
