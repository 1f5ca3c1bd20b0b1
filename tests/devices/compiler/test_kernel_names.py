"""Names that stand for one value wherever they are used, and those that need memory."""

from __future__ import annotations

import ast

import pytest

from pyrelay.devices.compiler.kernel_names import values_alone


def alone(body: str) -> str:
    text = "def kernel(block, begin, end):\n" + "".join(f"    {x}\n" for x in body.splitlines())
    definition = ast.parse(text).body[0]
    assert isinstance(definition, ast.FunctionDef)
    return " ".join(sorted(values_alone(definition) - {"block", "begin", "end"}))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("x = 1\ny = x", "x y"),
        ("x = 1\nx = 2", ""),
        ("x = x + 1", ""),
        ("x += 1", ""),
        ("if end:\n    x = 1\n    y = x\nz = y", "x z"),
        ("if end:\n    x = 1\nelse:\n    y = x", "y"),
        ("x = 1\nwhile x:\n    y = x\n    z = y", "x y z"),
        ("while end:\n    if begin:\n        z = y\n    y = 1", "z"),
        ("for i in range(end):\n    y = i", "i y"),
        ("for i in range(end):\n    y = 1\nz = i", "y z"),
        ("for i in range(end):\n    pass\nfor i in range(end):\n    pass", ""),
        ("for i in range(i):\n    pass", ""),
        ("x, y = 1, 2\nx, z = y, x", "y z"),
    ],
)
def test_names_bound_once_above_all_uses_need_no_memory(body: str, wanted: str) -> None:
    assert alone(body) == wanted


def test_a_parameter_that_is_assigned_needs_memory() -> None:
    tree = ast.parse("def kernel(block, begin, end):\n    begin = end\n").body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert values_alone(tree) == {"block", "end"}
