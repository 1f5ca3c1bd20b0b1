"""Kernels have the same text whatever was compiled before, and in every process: the disk has them
by their texts."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from pyrelay.devices import cpu
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.errors import PyrelayError
from pyrelay.lower.planning.plan import plan
from pyrelay.lower.text import emit_kernel
from pyrelay.pipeline import lowered
from tests.infer.running import inferred
from tests.programs import PROGRAMS, Program

#: Some whose places say at run time which array they are, and one of each other form.
FEW = ("heat", "walrus", "array_or_none_at_run_time", "recursion_over_arrays", "softmax_rows")


def texts_of(program: Program) -> list[str]:
    """The texts of a program's kernels, and of what launches them, for both targets."""
    try:
        module = inferred(program.function, program.arguments()[0]).module
        near = plan(lowered(module, "fuse", on="cpu"), cpu.DEVICE.target)
    except PyrelayError:  # a program that is refused for these arguments
        return []
    host = [k.source if k.code is None else emit_kernel.emit(k.code) for k in near.kernels]
    device = plan_code(plan(lowered(module, "fuse", on="cuda_emulator"), TARGET))
    return [*host, *(t.source for t in (*device.texts, *device.late)), device.source]


def told(programs: Sequence[Program]) -> dict[str, str]:
    return {p.name: hashlib.sha256("\0".join(texts_of(p)).encode()).hexdigest() for p in programs}


def test_texts_do_not_hang_on_what_was_compiled_before() -> None:
    programs = [p for p in PROGRAMS if p.name in FEW]
    assert len(programs) == len(FEW)
    assert told(programs) == told(programs[::-1])


@pytest.mark.slow
def test_two_processes_have_the_same_texts() -> None:
    """In another order, with sets and dicts of texts in another one."""
    script = f"from {__name__} import *\nprint(sorted(told(PROGRAMS[::STEP]).items()))"
    found = []
    for seed in (1, 2):
        command = [sys.executable, "-c", script.replace("STEP", "1" if seed == 1 else "-1")]
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.getcwd()}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] == found[1]
    assert len(found[0]) > 1000
