"""Kernels compile once, load from disk without what compiles, and bad object code is made anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_texts import ADD

from pyrelay import config
from pyrelay.devices import cache
from pyrelay.devices.compiler import native
from pyrelay.errors import DeviceError

SCRIPT = """
import json, sys
import numpy as np
from pyrelay.devices import cache
from pyrelay.devices.compiler import native
from pyrelay.devices.runtime.entry import Executable
from pyrelay.lower.planning.boundary import ArrayParameter, ArrayResult
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import *
code = (Alloc(4, immediate(80)), Launch(0, (Slot(0), Slot(2), Slot(4)), Slot(1), immediate(100)),
        Return((Slot(4), Slot(1))))
array = ArrayParameter("float64", 1, extents=(10,))
plan = Plan((PlanFunction("main", 4, 5, code),), (Kernel("add", sys.stdin.read()),),
            parameters=(array, array), results=(ArrayResult("float64", 1),), single=True)
answer = Executable(encode(plan)).call(np.arange(10.0), np.ones(10))
print(json.dumps({"answer": answer.tolist(),
                  "compiler": "pyrelay.devices.compiler.kernel_lowering" in sys.modules,
                  "compiled": native.counts.compiled, "rejected": cache.current().counts.rejected}))
"""


def _fresh_process(directory: Path) -> dict[str, Any]:
    environment = {**os.environ, "PYRELAY_CACHE_DIR": str(directory)}
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=ADD, env=environment, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert found["answer"] == [1.0 + i for i in range(10)]
    return found


def test_a_fresh_process_with_a_warm_cache_imports_no_compiler(tmp_path: Path) -> None:
    cold = _fresh_process(tmp_path)
    assert cold["compiler"]
    assert cold["compiled"] == 1
    warm = _fresh_process(tmp_path)
    assert not warm["compiler"]
    assert warm["compiled"] == 0
    for path in tmp_path.glob("*/*"):
        if path.suffix != ".py":
            path.write_bytes(path.read_bytes()[:-7])
    damaged = _fresh_process(tmp_path)
    assert damaged["compiled"] == 1
    assert damaged["rejected"] == 2
    assert _fresh_process(tmp_path)["compiled"] == 0


def test_processes_that_start_at_once_share_a_cache(tmp_path: Path) -> None:
    environment = {**os.environ, "PYRELAY_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, env=environment, text=True)
        for _ in range(3)
    ]  # fmt: skip
    answers = [json.loads(process.communicate(ADD, timeout=120)[0]) for process in running]
    assert all(answer["answer"] == [1.0 + i for i in range(10)] for answer in answers)
    assert not list(tmp_path.glob("*/*.tmp"))


def test_the_source_lies_beside_the_object_code(tmp_path: Path) -> None:
    source = ADD + "# of this test\n"
    with config.override(cache_dir=str(tmp_path)):
        native.kernel_address(source)
        digest = native.kernel_digest(source)
        assert (tmp_path / "kernels" / f"{digest}.py").read_text() == source
        assert cache.current().get("kernels", digest)


def test_a_kernel_works_without_a_disk_cache() -> None:
    with config.override(cache=False):
        before = native.counts.compiled
        first = native.kernel_address(ADD + "# not kept\n")
        assert native.kernel_address(ADD + "# not kept\n") == first
        assert native.counts.compiled == before + 1


def test_bytes_that_are_no_object_code_or_lack_a_symbol_are_a_device_error(tmp_path: Path) -> None:
    with pytest.raises(DeviceError):
        native.load(b"no object code at all", "pyrelay_kernel")
    with config.override(cache_dir=str(tmp_path)):
        native.kernel_address(ADD + "# symbol\n")
        code = cache.current().get("kernels", native.kernel_digest(ADD + "# symbol\n"))
    assert code is not None
    with pytest.raises(DeviceError):
        native.load(code, "another_symbol")
    assert native.load(code, "pyrelay_kernel")


def test_the_digest_depends_on_the_text_only_within_one_installation() -> None:
    assert native.kernel_digest(ADD) == native.kernel_digest(str(ADD))
    assert native.kernel_digest(ADD) != native.kernel_digest(ADD + " ")
