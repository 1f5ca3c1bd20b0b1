"""Large arrays of kernels lie outside of stacks: threads may have little of one."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from pyrelay.devices.compiler import native, rooms
from pyrelay.devices.compiler.codegen import runtime_machine
from pyrelay.devices.compiler.kernel_compiler import optimised_module
from pyrelay.devices.compiler.llvm_ir import Module
from pyrelay.devices.compiler.llvm_writer import Function, Word
from pyrelay.devices.runtime.layout import Status
from tests.devices.running_kernels import run

_IN_A_SMALL_STACK = """
    import threading
    import numpy as np
    import pyrelay
    from pyrelay import nn

    def layers(x, w, a, q):
        image = nn.conv2d(x, w, padding=1)
        return image, (a @ a.T)[:, :3], nn.scaled_dot_product_attention(q, q, q)

    def run():
        shapes = (1, 16, 32, 32), (16, 16, 3, 3), (120, 70), (2, 64, 32)
        given = [np.ones(shape, "f4") for shape in shapes]
        image, product, mixed = pyrelay.jit(layers)(*given)
        assert image[0, 3, 5, 7] == 144 and (product == 70).all() and np.allclose(mixed, 1)
        done.append(True)

    done = []
    threading.stack_size({kib} * 1024)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done
"""


def test_threads_of_small_stacks_run_what_packs_and_transforms(tmp_path):
    """The threads of the pool too: they are started with the same size of stack."""
    path = tmp_path / "small_stack.py"
    path.write_text(textwrap.dedent(_IN_A_SMALL_STACK).replace("{kib}", "128"))
    ended = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


_TWO = """
from pyrelay.devices.compiler.vocabulary import *

def kernel(block, begin, end):
    a, b = local_i64({count}), local_i64({count})
    o = param_i64(block, 1)
    if begin > 5:
        return 0
    for i in range(begin, end):
        store_ordered_i64(a, i, i)
        store_ordered_i64(b, {count} - 1 - i, -i)
    store_ordered_i64(o, 0, a)
    store_ordered_i64(o, 1, b)
    store_ordered_i64(o, 2, load_ordered_i64(a, end - 1) + load_ordered_i64(b, {count} - end))
    return 0
"""


def test_a_room_is_taken_once_and_taken_again():
    count = rooms.LARGEST_ON_STACK // 8 + 1
    found = np.ones((3, 3), np.int64)
    for k, ranges in enumerate([[(0, 7)], [(6, 7)], [(6, 7), (2, 7)]]):
        run(_TWO.format(count=count), found[k], ranges=ranges)
    first, left, again = found.tolist()
    assert abs(first[0] - first[1]) >= 8 * count
    assert first[0] % 64 == first[1] % 64 == 0
    assert first[2] == again[2] == 0  # 6 + -6
    assert left == [1, 1, 1]
    assert sorted(again[:2]) == sorted(first[:2])  # kept mapped, also where a kernel leaves early


def _taking(nbytes: int) -> tuple[Any, Any]:
    """Functions that take and give rooms of so many bytes."""
    machine = runtime_machine()
    module = Module(machine.triple, str(machine.target_data))
    for name, made, count in (("taken", rooms.take, 0), ("given", rooms.give, 1)):
        f = Function(module, name, count)
        f.ret(Word(f, f.b.call(made(module, nbytes), [p.raw for p in f.parameters])))
    reference = llvm.parse_assembly(str(module))
    reference.verify()
    found = native.load_all(machine.emit_object(reference), ("taken", "given"))
    words = ctypes.c_int64
    return (
        ctypes.CFUNCTYPE(words)(found["taken"]), ctypes.CFUNCTYPE(words, words)(found["given"])
    )


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two CPUs, and threads that stay on one",
)
def test_a_cpu_takes_the_room_again_that_it_had():
    """Whoever gave one back first: what another CPU has written is far away."""
    take, give = _taking(4096)
    cpus = sorted(os.sched_getaffinity(0))[:2]
    found: list[tuple[int, ...]] = []

    def on(cpu: int, function: Any, *args: int) -> int:
        os.sched_setaffinity(0, {cpus[cpu]})  # of this thread
        return int(function(*args))

    def turns() -> None:
        for order in ((1, 0), (0, 1), (1, 0)):
            found.append((on(0, take), on(1, take)))
            for cpu in order:
                on(cpu, give, found[-1][cpu])

    thread = threading.Thread(target=turns)
    thread.start()
    thread.join()
    assert len(set(found[0])) == 2
    assert found == [found[0]] * 3


def test_more_rooms_are_taken_than_can_wait():
    take, give = _taking(640)
    taken = [take() for _ in range(rooms._KEPT + 3)]
    assert len(set(taken)) == len(taken)
    for room in taken:
        give(room)
    assert take() in taken


def test_no_memory_is_a_status():
    block = np.zeros(2, np.int64)
    kernel = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(
        native.kernel_address(_TWO.format(count=1 << 58))
    )
    assert kernel(block.ctypes.data, 0, 1) == Status.MEMORY


def test_small_arrays_stay_in_frames():
    texts = [_TWO.format(count=rooms.LARGEST_ON_STACK // 8 + more) for more in (0, 1)]
    assert ["posix_memalign" in str(optimised_module(each, "x")) for each in texts] == [False, True]
