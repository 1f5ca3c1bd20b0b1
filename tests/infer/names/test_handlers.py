"""The table of names: each Python object is entered in one place."""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from pathlib import Path

import pytest
import scipy.special

import pyrelay
import pyrelay.infer


def entered(path: Path) -> list[str]:
    """What the decorators and calls `handles(...)` of a file name."""
    calls = (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call))
    return [
        ast.unparse(argument) for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "handles"
        for argument in call.args
        if isinstance(argument, ast.Attribute)
        or (isinstance(argument, ast.Name) and hasattr(builtins, argument.id))
    ]


def test_no_name_has_two_handlers() -> None:
    folder = Path(pyrelay.infer.__file__).parent
    found = Counter(name for path in folder.rglob("*.py") for name in entered(path))
    assert found["functools.cache"] == 1  # this finds names
    assert [name for name, times in found.items() if times > 1] == []


def test_a_function_of_scipys_that_is_not_compiled_is_not_called_numpys() -> None:
    with pytest.raises(pyrelay.UnsupportedOperationError, match=r"^'j0' cannot be compiled"):
        pyrelay.jit(lambda x: scipy.special.j0(x))(1.0)
