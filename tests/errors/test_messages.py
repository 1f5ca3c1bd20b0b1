"""What a person reads who made a mistake: every message of `infer`, word for word."""

from __future__ import annotations

import linecache
from collections.abc import Callable

import numpy as np
import pytest

import pyrelay
from pyrelay.errors import PyrelayError, render
from pyrelay.frontend.parse import parse
from pyrelay.infer.specialise import specialise
from tests.errors.bad_programs import BAD


@pytest.mark.parametrize("name", BAD)
def test_a_bad_program_is_explained_at_the_line(
    name: str, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, args = BAD[name]
    lines = source.strip("\n").splitlines(keepends=True)
    entry = (len(source), None, lines, "model.py")
    monkeypatch.setitem(linecache.cache, "model.py", entry)
    namespace = {"np": np, "pyrelay": pyrelay, "weight": 2.0, "__name__": "model"}
    exec(compile("".join(lines), "model.py", "exec"), namespace)
    function = [v for v in namespace.values() if getattr(v, "__module__", "") == "model"][-1]
    with pytest.raises(PyrelayError) as caught:
        specialise(function, args, {}, parse)
    golden(f"errors/{name}.txt", render(caught.value))
