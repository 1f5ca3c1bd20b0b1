"""What the run time calls is there, and stays there in other versions of Python."""

from __future__ import annotations

import ctypes
import sys

import pytest

from pyrelay.devices.runtime.runtime_parts import SYMBOLS, written

PRIVATE = "_PyThreadState_UncheckedGet"  # public by another name from 3.13 on


@pytest.mark.parametrize("part", sorted(SYMBOLS))
def test_functions_that_are_called_exist_and_those_of_python_are_public(part):
    called = {f.name for f in written(part).functions if f.is_declaration}
    private = {name for name in called if name.startswith("_Py")}
    assert private <= ({PRIVATE} if sys.version_info < (3, 13) else set())
    assert any(name.startswith("Py") for name in called)
    process = ctypes.CDLL(None)
    missing = [n for n in called if not n.startswith("llvm.") and not hasattr(process, n)]
    assert missing == []
