"""Kernels over rows as functions of a row and a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyrelay.ir import dims
from pyrelay.ir.nodes import KernelCall
from pyrelay.ir.types import TensorType
from pyrelay.lower.kernels.kernel import ARRAY, Fail, For, Kernel, statements
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.kernels.row_elements import COLUMN, Given, row_element
from pyrelay.pipeline import lowered
from tests.infer.running import inferred

TABLE, PLACES, X = np.ones((7, 3), "f4"), np.arange(5), np.ones((5, 3), "f4")


def element(function: Callable[..., Any], *args: Any, looked_at: bool = True) -> Kernel | None:
    """That of a function's last kernel, whose result has rows for each index of the argument `i`,
    which is looked at before or not."""
    module = lowered(inferred(function, args).module, "fuse", on="cuda_emulator")
    body = module.main.body
    *_, call = [let.rhs for let in body.lets if isinstance(let.rhs, KernelCall)]
    (kernel,) = kernelise(call.function, splits=True).kernels
    own = dict(zip(call.function.dims, call.dims, strict=True))
    table, *_ = call.args
    ty = body.results[0].type
    assert isinstance(table.type, TensorType)
    assert isinstance(ty, TensorType)
    given = Given(
        lambda q: call.dims[q.position],
        lambda q: 0 if looked_at and q.role == ARRAY and q.position == 1 else None,
        table.type.shape[:1], ty.shape[0], dims.product(ty.shape[1:]),
    )
    return row_element(kernel, dims.substitute(kernel.extent, own), given)


def test_a_loop_over_columns_is_a_parameter_and_checks_that_were_made_are_left_out() -> None:
    found = element(lambda table, i: table[i] * 2, TABLE, PLACES)
    assert found is not None
    assert COLUMN in found.parameters
    assert sum(isinstance(s, For) for s in statements(found.body)) == 1
    assert not any(isinstance(s, Fail) for s in statements(found.body))
    assert not found.sites


def test_elements_of_all_rows_need_no_column() -> None:
    found = element(lambda x, i: x * 2, X, PLACES)
    assert found is not None
    assert COLUMN not in found.parameters


@pytest.mark.parametrize("function", [
    lambda table, i: table[i].sum(axis=1),
    lambda table, i: table[i] - table[i].max(axis=1)[:, None],
    lambda table, i: table[i] * np.exp(i)[:, None],
], ids=["sums", "what is found of a row", "much for a row"])  # fmt: skip
def test_what_is_not_made_element_by_element_is_none(function: Callable[..., Any]) -> None:
    assert element(function, TABLE, PLACES) is None


def test_checks_that_nobody_has_made_stay_where_they_are() -> None:
    assert element(lambda table, i: table[i] * 2, TABLE, PLACES, looked_at=False) is None
