"""Kernels compile once, load from disk without what compiles, and bad object code is made anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from kernel_texts import ADD

from pyrelay import config
from pyrelay.devices import cache
from pyrelay.devices.compiler import native
from pyrelay.devices.compiler.late_parts import supported
from pyrelay.errors import DeviceError
from tests.devices.running_kernels import run

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
                  "llvm": "llvmlite.binding" in sys.modules,
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


PRODUCTS = """
import json, sys
import numpy as np, pyrelay
from pyrelay.devices import cache

def made():
    texts = cache.current().path("kernels", "x").parent.parent.rglob("*.py")
    return sorted(t.read_text().split()[-1].split("_f32")[0] for t in texts
                  if t.read_text().startswith("from pyrelay.devices.routines.matmul_"
                                              ) and t.read_text().count("\\n") == 1)

@pyrelay.jit
def product(a, b):
    return a @ b

steps = []
for m, n, k in ((1, 40, 50), (250, 192, 100), (1, 40, 50)):
    a, b = (np.ones(shape, np.float32) for shape in ((m, k), (k, n)))
    assert (product(a, b) == k).all()
    steps.append(made())
print(json.dumps(steps))
"""


@pytest.mark.skipif(not supported(), reason="parts are made first on this machine")
def test_parts_are_made_for_calls_that_reach_them(tmp_path: Path) -> None:
    """Of a program for all sizes, the first call compiles what it takes, and so do later ones."""
    environment = {**os.environ, "PYRELAY_CACHE_DIR": str(tmp_path / "cache")}
    script = tmp_path / "products.py"
    script.write_text(PRODUCTS)
    later = ["near_rows", "packed_columns", "product", "vector_lines"]
    for wanted in (["product", "vector_lines"], later, later), (later,) * 3:
        ended = subprocess.run(
            [sys.executable, str(script)], env=environment, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        assert tuple(json.loads(ended.stdout)) == wanted


FORKS = """
import os, threading
from pyrelay.devices.compiler import native
from pyrelay.devices.runtime.library import runtime

TEXT = "def kernel(block, begin, end):\\n    return {}\\n"
runtime()
ended = threading.Event()

def compile_more():
    number = 0
    while not ended.is_set():
        number += 1
        native.kernel_address(TEXT.format(number))

thread = threading.Thread(target=compile_more)
thread.start()
answers = []
for number in range(12):
    child = os.fork()
    if child == 0:
        native.kernel_address(TEXT.format(-number - 1))
        os._exit(0)
    answers.append(os.waitpid(child, 0)[1])
ended.set()
thread.join()
print(answers)
"""


def test_a_child_that_is_forked_while_a_thread_compiles_compiles_too(tmp_path: Path) -> None:
    environment = {
        **os.environ, "PYRELAY_CACHE_DIR": str(tmp_path), "PYRELAY_COMPILE_PROCESSES": "1",
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", FORKS], env=environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert ended.stdout.strip() == str([0] * 12), ended.stderr


def object_code_is_laid() -> bool:
    """Whether objects of this machine are loaded without LLVM."""
    machine = llvm.get_process_triple()
    return sys.platform == "linux" and machine.startswith("x86_64")


def test_a_fresh_process_with_a_warm_cache_imports_no_compiler(tmp_path: Path) -> None:
    cold = _fresh_process(tmp_path)
    assert cold["compiler"]
    assert cold["compiled"] == 1
    warm = _fresh_process(tmp_path)
    assert not warm["compiler"]
    assert not warm["llvm"] or not object_code_is_laid()
    assert warm["compiled"] == 0
    for path in tmp_path.glob("*/*"):
        if path.suffix != ".py":
            path.write_bytes(path.read_bytes()[:-7])
    damaged = _fresh_process(tmp_path)
    assert damaged["compiled"] == 1
    assert damaged["rejected"] == 3  # a kernel, the run time, what the generators say
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


_SORTS = """
from pyrelay.devices.routines.sort_blocks import (
    sort_block_f64x2)
from pyrelay.devices.compiler.vocabulary import *

BY_HAND = True


def kernel(block, begin, end):
    sort_block_f64x2(param_i64(block, 1), {count})
    return 0
"""


def test_kernels_share_the_parts_that_are_written_by_hand(tmp_path: Path) -> None:
    """A part is compiled once, and made again where the disk has lost it."""
    few, more = (_SORTS.format(count=count) for count in (3, 5))
    (part,) = native.parts_of(few).values()
    assert part == "from pyrelay.devices.routines.sort_blocks import sort_block_f64x2\n"
    assert native.parts_of(part) == {}

    def sorted_by(kernel: str) -> list[float]:
        numbers = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
        run(kernel, numbers, ranges=[(0, 1)])
        return numbers.tolist()

    with config.override(cache_dir=str(tmp_path)):
        compiled, loaded = native.counts.compiled, native.counts.loaded
        assert sorted_by(few) == [3.0, 4.0, 5.0, 2.0, 1.0]
        assert native.counts.compiled == compiled + 1  # the kernel, of which a part is none
        assert native.counts.loaded == loaded + 2
        assert sorted_by(more) == [1.0, 2.0, 3.0, 4.0, 5.0]
        assert native.counts.loaded == loaded + 3
        assert set(map(native.kernel_digest, (few, more, part))) == {
            path.name for path in tmp_path.glob("kernels/*") if path.suffix != ".py"
        }
        for text in (few, part):
            del native._addresses[native.kernel_digest(text)]
        (tmp_path / "kernels" / native.kernel_digest(part)).unlink()
        assert sorted_by(few) == [3.0, 4.0, 5.0, 2.0, 1.0]
        assert native.counts.compiled == compiled + 3
