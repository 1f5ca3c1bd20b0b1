"""Columns of matrices are read by vectors, whatever the matrix's width is."""

from __future__ import annotations

import ast

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.compiler import vocabulary
from pyrelay.devices.compiler.strides import strides
from pyrelay.python_trees import nodes
from tests.devices.running_kernels import kernel_assembly, needs_vectors

TEXT = """\
from pyrelay.devices.compiler.vocabulary import exp, load_f64, param_extent, param_i64, store_f64


def kernel(block, begin, end):
    a0 = param_i64(block, 1)
    o0 = param_i64(block, 2)
    n0 = param_extent(block, 3)
    s0 = param_i64(block, 4)
    for i0 in range(begin, end):
        x0 = i0 * n0
        store_f64(o0, i0, exp(load_f64(a0, x0 + s0 * n0)))
    return 0
"""


def test_a_stride_is_an_extent_that_a_rounds_number_is_multiplied_by() -> None:
    (kernel,) = (each for each in ast.parse(TEXT).body if isinstance(each, ast.FunctionDef))
    found = strides(nodes(kernel), {"exp": vocabulary.exp})
    assert [ast.unparse(each) for each in found] == ["i0 * n0"]
    few = ast.parse(TEXT.replace("exp(", "-(")).body[1]
    assert isinstance(few, ast.FunctionDef)
    assert not strides(nodes(few), {})
    nested = ast.parse(
        "def kernel(block, begin, end):\n"
        "    n0 = param_extent(block, 3)\n"
        "    for i0 in range(begin, end):\n"
        "        x0 = i0 * n0\n"
        "        for i1 in range(n0):\n"
        "            f(x0 + i1, (i1 + 1) * (2 * n0), i0 * n0 / i1)\n"
    ).body[0]
    assert isinstance(nested, ast.FunctionDef)
    assert [ast.unparse(each) for each in strides(nodes(nested), {})] == ["(i1 + 1) * (2 * n0)"]


def test_loops_of_the_users_own_have_strides_where_they_call_functions() -> None:
    (kernel,) = (each for each in ast.parse(TEXT).body if isinstance(each, ast.FunctionDef))
    names: dict[str, object] = {"param_apart": vocabulary.param_apart, "exp": vocabulary.exp}
    assert len(strides(nodes(kernel), names)) == 1
    assert not strides(nodes(kernel), {**names, "exp": vocabulary.load_f64})


def test_a_column_is_read_by_vectors() -> None:
    needs_vectors(512)
    assert "vgather" in kernel_assembly(TEXT)


@pytest.mark.parametrize("width", [1, 3])
def test_columns_are_those_of_the_matrix(width: int) -> None:
    def column(x):
        return np.exp(x[:, -1]), np.sqrt(x[:, 0]) + x[:, -1]

    x = np.random.default_rng(0).random((53, width))
    for found, wanted in zip(pyrelay.jit(column)(x), column(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
