"""The examples in docstrings of public functions run, and give what they say."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

import pyrelay

SHOWN = [name for name in pyrelay.__all__ if inspect.isroutine(getattr(pyrelay, name))]


@pytest.mark.parametrize("name", [*SHOWN, "scope"])
def test_the_example_of_a_public_function_runs(name: str) -> None:
    function = getattr(pyrelay, name)
    if name == "pack":  # its example has a class, which doctest cannot define at a module's level
        assert "pyrelay.pack(" in inspect.getdoc(function)
        return
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(function, name, module=False, globs={"np": np, "pyrelay": pyrelay})
    assert example.examples
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert not report, "".join(report)
