"""The time to infer grows with the program, not with its nesting."""

from __future__ import annotations

import linecache
import time
from typing import Any

import numpy as np
import pytest

from pyrelay.frontend.parse import parse
from pyrelay.infer.specialise import specialise


def defined(source: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function `f` of a source text."""
    lines = source.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "generated.py", (len(source), None, lines, "generated.py"))
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, "generated.py", "exec"), namespace)
    return namespace["f"]


def seconds(function: Any, *args: Any) -> float:
    """Processor time that inference takes."""
    started = time.process_time()
    specialise(function, args, {}, parse)
    return time.process_time() - started


def test_four_hundred_statements_take_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [f"    a{k} = x * {k}.0 + {f'a{k - 1}' if k else 'x'}" for k in range(400)]
    function = defined("def f(x):\n" + "\n".join(steps) + "\n    return a399\n", monkeypatch)
    assert seconds(function, np.ones(3)) < 3.0


def test_six_nested_loops_take_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["def f(x, n):", "    s = 0", "    m = 0.0", "    y = np.zeros(n)"]
    lines += ["    " * (k + 1) + f"for i{k} in range(n):" for k in range(6)]
    inside = ("s = s + x[i0]", "y[i1] = y[i0] + s", "if s > m:", "    m = s")
    lines += ["    " * 7 + text for text in inside]
    function = defined("\n".join([*lines, "    return s, y, m", ""]), monkeypatch)
    assert seconds(function, np.ones(3), 3) < 3.0


def test_six_nested_loops_that_swap_arrays_take_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["def f(u, v, n):"] + ["    " * (k + 1) + f"for i{k} in range(n):" for k in range(6)]
    for depth in range(7, 1, -1):
        lines += ["    " * depth + text for text in ("v[1:] = u[:-1] * 0.5", "u, v = v, u")]
    function = defined("\n".join([*lines, "    return u, v", ""]), monkeypatch)
    assert seconds(function, np.ones(5), np.ones(5), 3) < 3.0
